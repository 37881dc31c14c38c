#include "orchestrator/http/json.h"

#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/messages/finite.h"
#include "nlohmann/json.hpp"
#include "pawl/v1/error.pb.h"

namespace pawl {
namespace {

int HttpStatus(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::OUT_OF_RANGE:
      return 400;
    case grpc::StatusCode::UNAUTHENTICATED:
      return 401;
    case grpc::StatusCode::PERMISSION_DENIED:
      return 403;
    case grpc::StatusCode::NOT_FOUND:
      return 404;
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::ABORTED:
      return 409;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return 429;
    case grpc::StatusCode::UNIMPLEMENTED:
      return 501;
    case grpc::StatusCode::UNAVAILABLE:
      return 503;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return 504;
    default:
      return 500;
  }
}

}  // namespace

std::string MessageJson(const google::protobuf::Message& message) {
  if (FirstNonFinite(message)) {
    const std::unique_ptr<google::protobuf::Message> finite(message.New());
    finite->CopyFrom(message);
    ClearNonFinite(finite.get());
    return MessageJson(*finite);
  }
  std::string text;
  // Fails only for messages with an Any, of which there are none.
  if (!google::protobuf::util::MessageToJsonString(message, &text).ok()) return "{}";
  return text;
}

std::string ErrorJson(const grpc::Status& status) {
  v1::ErrorDetail detail;
  if (!detail.ParseFromString(status.error_details())) detail.Clear();
  nlohmann::json error;
  error["code"] = absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code()));
  error["message"] = status.error_message();
  error["detail"] = nlohmann::json::parse(MessageJson(detail), nullptr, false);
  // What is no UTF-8 must not be an exception.
  return error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

HttpReply ErrorReply(const grpc::Status& status) {
  HttpReply reply;
  reply.status = HttpStatus(status.error_code());
  reply.body = ErrorJson(status);
  v1::ErrorDetail detail;
  if (detail.ParseFromString(status.error_details()) && detail.retry_after_seconds() > 0) {
    reply.headers.emplace_back("Retry-After", absl::StrCat(std::lround(std::ceil(detail.retry_after_seconds()))));
  }
  return reply;
}

}  // namespace pawl
