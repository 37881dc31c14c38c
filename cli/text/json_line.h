#pragma once

#include <initializer_list>
#include <string>

#include "google/protobuf/message.h"

namespace pawl {

// protobuf's JSON of a message, on one line without the newline. A field that is not set is left out; `every_field`
// prints numbers, flags and lists at their defaults, too, for messages that are looked at field by field.
std::string JsonLine(const google::protobuf::Message& message, bool every_field = false);

// The same without what is not set, but for the fields of these names: who reads rows finds them in each.
std::string JsonRow(const google::protobuf::Message& message, std::initializer_list<const char*> always);

// To standard output.
void PrintJsonLine(const google::protobuf::Message& message, bool every_field = false);

}  // namespace pawl
