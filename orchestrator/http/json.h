#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/status.h"
#include "orchestrator/http/exchange.h"

namespace pawl {

// Protobuf's JSON, as `pawl --json` prints it, without numbers that are infinite or NaN: protobuf writes them as
// strings, which no page could compute with. Nothing stores them any more; an earlier version did.
std::string MessageJson(const google::protobuf::Message& message);

// {"code": "NOT_FOUND", "message": ..., "detail": the ErrorDetail}
std::string ErrorJson(const grpc::Status& status);
// With the HTTP status that is nearest to the code.
HttpReply ErrorReply(const grpc::Status& status);

// Sets fields of a request message by a query's parameters, which have their names: page_size=1000&verdict=KEPT. A
// repeated one may come several times. INVALID_ARGUMENT: no such field, or no value of it.
absl::Status FillFromParameters(const std::multimap<std::string, std::string>& parameters,
                                google::protobuf::Message* message);

// Clears all but these fields of a message, by their JSON names and with commas between; empty: keeps all. So that ten
// thousand iterations can be drawn without sending everything that is known of them.
void KeepFields(const std::string& names, google::protobuf::Message* message);

}  // namespace pawl
