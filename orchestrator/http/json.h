#pragma once

#include <string>

#include "google/protobuf/message.h"
#include "grpcpp/support/status.h"
#include "orchestrator/http/exchange.h"

namespace pawl {

// Protobuf's JSON, as `pawl --json` prints it, without numbers that are infinite or NaN: protobuf writes them as
// strings, which no page could compute with. Nothing stores them any more; an earlier version did.
std::string Json(const google::protobuf::Message& message);

// {"code": "NOT_FOUND", "message": ..., "detail": the ErrorDetail}
std::string ErrorJson(const grpc::Status& status);
// With the HTTP status that is nearest to the code.
HttpReply ErrorReply(const grpc::Status& status);

}  // namespace pawl
