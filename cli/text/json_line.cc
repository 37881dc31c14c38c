#include "cli/text/json_line.h"

#include <google/protobuf/util/json_util.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"

namespace pawl {
namespace {

// What a field is that is not set.
std::string DefaultJson(const google::protobuf::FieldDescriptor& field) {
  using Field = google::protobuf::FieldDescriptor;
  if (field.is_map()) return "{}";
  if (field.is_repeated()) return "[]";
  switch (field.cpp_type()) {
    case Field::CPPTYPE_ENUM:
      return absl::StrCat("\"", field.default_value_enum()->name(), "\"");
    case Field::CPPTYPE_STRING:
      return "\"\"";
    case Field::CPPTYPE_BOOL:
      return "false";
    case Field::CPPTYPE_MESSAGE:
      return "null";
    default:
      return "0";
  }
}

}  // namespace

std::string JsonLine(const google::protobuf::Message& message, bool every_field) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = every_field;
  std::string text;
  // Fails only for messages with an Any, of which there are none.
  if (!google::protobuf::util::MessageToJsonString(message, &text, options).ok()) return "{}";
  return text;
}

std::string JsonRow(const google::protobuf::Message& message, std::initializer_list<const char*> always) {
  std::string row = JsonLine(message);
  row.pop_back();
  for (const char* name : always) {
    const google::protobuf::FieldDescriptor& field = *message.GetDescriptor()->FindFieldByName(name);
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    const bool there =
        field.is_repeated() ? reflection.FieldSize(message, &field) > 0 : reflection.HasField(message, &field);
    if (!there) absl::StrAppend(&row, row.size() > 1 ? "," : "", "\"", field.json_name(), "\":", DefaultJson(field));
  }
  return row + "}";
}

void PrintJsonLine(const google::protobuf::Message& message, bool every_field) {
  std::printf("%s\n", JsonLine(message, every_field).c_str());
}

}  // namespace pawl
