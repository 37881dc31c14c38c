#pragma once

#include <utility>

#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "orchestrator/core/errors.h"

namespace pawl {

// The codes are the same numbers; the details travel in the status's bytes. The store's errors say what to do in their
// message.
inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string details = DetailsOf(status);
  if (details.empty()) {
    v1::ErrorDetail detail;
    detail.set_fix("see the message; the orchestrator's log may have more");
    details = detail.SerializeAsString();
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()), std::string(status.message()), details);
}

inline grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

// Ends a unary call with what was found.
template <typename Reply>
grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, absl::StatusOr<Reply> found, Reply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (found.ok()) *reply = *std::move(found);
  reactor->Finish(ToGrpc(found.status()));
  return reactor;
}

}  // namespace pawl
