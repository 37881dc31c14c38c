#include "cli/json_line.h"

#include <google/protobuf/util/json_util.h>

#include <cstdio>

namespace pawl {

std::string JsonLine(const google::protobuf::Message& message, bool every_field) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = every_field;
  std::string text;
  // Fails only for messages with an Any, of which there are none.
  if (!google::protobuf::util::MessageToJsonString(message, &text, options).ok()) return "{}";
  return text;
}

void PrintJsonLine(const google::protobuf::Message& message, bool every_field) {
  std::printf("%s\n", JsonLine(message, every_field).c_str());
}

}  // namespace pawl
