#pragma once

#include <optional>
#include <string>

#include "google/protobuf/message.h"

namespace pawl {

// Numbers that are infinite or not a number (NaN) have no place in JSON, and spread through whatever is computed of
// them. A stranger's message is refused for them; what an earlier version stored is shown without them.

// Where the first such number of a message is: "result.errors[0].relative". Nothing: all are finite.
std::optional<std::string> FirstNonFinite(const google::protobuf::Message& message);

// Takes them out: fields are cleared, entries of maps removed, elements of lists set to 0.
void ClearNonFinite(google::protobuf::Message* message);

}  // namespace pawl
