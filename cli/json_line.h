#pragma once

#include <string>

#include "google/protobuf/message.h"

namespace pawl {

// protobuf's JSON of a message, on one line without the newline. A field that is not set is left out; `every_field`
// prints numbers, flags and lists at their defaults, too, for messages that are looked at field by field.
std::string JsonLine(const google::protobuf::Message& message, bool every_field = false);

// To standard output.
void PrintJsonLine(const google::protobuf::Message& message, bool every_field = false);

}  // namespace pawl
