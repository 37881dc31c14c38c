#include <set>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/descriptor.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/http/json.h"

namespace pawl {
namespace {

using Field = google::protobuf::FieldDescriptor;

absl::Status Fill(const Field& field, const std::string& value, google::protobuf::Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  if (field.is_repeated()) {
    if (field.cpp_type() != Field::CPPTYPE_STRING) return BadField(field.name(), "can't be given in a query");
    reflection.AddString(message, &field, value);
    return absl::OkStatus();
  }
  switch (field.cpp_type()) {
    case Field::CPPTYPE_STRING:
      reflection.SetString(message, &field, value);
      return absl::OkStatus();
    case Field::CPPTYPE_INT32: {
      int32_t number = 0;
      if (!absl::SimpleAtoi(value, &number)) return BadField(field.name(), "expected a whole number");
      reflection.SetInt32(message, &field, number);
      return absl::OkStatus();
    }
    case Field::CPPTYPE_INT64: {
      int64_t number = 0;
      if (!absl::SimpleAtoi(value, &number)) return BadField(field.name(), "expected a whole number");
      reflection.SetInt64(message, &field, number);
      return absl::OkStatus();
    }
    case Field::CPPTYPE_BOOL:
      if (value != "true" && value != "false") return BadField(field.name(), "expected true or false");
      reflection.SetBool(message, &field, value == "true");
      return absl::OkStatus();
    case Field::CPPTYPE_ENUM: {
      const google::protobuf::EnumValueDescriptor* found = field.enum_type()->FindValueByName(value);
      if (found == nullptr)
        return BadField(field.name(), absl::StrCat("expected a value of ", field.enum_type()->name()));
      reflection.SetEnum(message, &field, found);
      return absl::OkStatus();
    }
    default:
      return BadField(field.name(), "can't be given in a query");
  }
}

}  // namespace

absl::Status FillFromParameters(const std::multimap<std::string, std::string>& parameters,
                                google::protobuf::Message* message) {
  for (const auto& [name, value] : parameters) {
    const Field* field = message->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) {
      return BadField(name.substr(0, 64),
                      absl::StrCat("unknown parameter; known are the fields of ", message->GetDescriptor()->name()));
    }
    if (absl::Status status = Fill(*field, value, message); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void KeepFields(const std::string& names, google::protobuf::Message* message) {
  if (names.empty()) return;
  const std::set<std::string> kept = absl::StrSplit(names, ',');
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  std::vector<const Field*> fields;
  reflection.ListFields(*message, &fields);
  for (const Field* field : fields) {
    if (kept.count(field->json_name()) == 0) reflection.ClearField(message, field);
  }
}

}  // namespace pawl
