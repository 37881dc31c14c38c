#include "base/messages/finite.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/messages/fields_within.h"
#include "google/protobuf/descriptor.h"

namespace pawl {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

bool IsReal(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE || field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT;
}

double RealOf(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  return field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE ? reflection.GetDouble(message, &field)
                                                             : reflection.GetFloat(message, &field);
}

double RealOf(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  return field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE ? reflection.GetRepeatedDouble(message, &field, index)
                                                             : reflection.GetRepeatedFloat(message, &field, index);
}

std::vector<const FieldDescriptor*> FieldsOf(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return fields;
}

}  // namespace

std::optional<std::string> FirstNonFinite(const Message& message) {
  static thread_local FieldsWithin with_reals(IsReal);
  const Reflection& reflection = *message.GetReflection();
  for (const FieldDescriptor* field : with_reals.Of(*message.GetDescriptor())) {
    const bool real = IsReal(*field);
    if (!field->is_repeated()) {
      if (real && !std::isfinite(RealOf(message, *field))) return field->name();
      if (real || !reflection.HasField(message, field)) continue;
      if (const auto inner = FirstNonFinite(reflection.GetMessage(message, field)))
        return absl::StrCat(field->name(), ".", *inner);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      if (real && !std::isfinite(RealOf(message, *field, i))) return absl::StrCat(field->name(), "[", i, "]");
      if (real) continue;
      const auto inner = FirstNonFinite(reflection.GetRepeatedMessage(message, field, i));
      if (inner) return absl::StrCat(field->name(), "[", i, "].", *inner);
    }
  }
  return std::nullopt;
}

void ClearNonFinite(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  for (const FieldDescriptor* field : FieldsOf(*message)) {
    const bool real = IsReal(*field);
    if (!real && field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      if (!real) {
        ClearNonFinite(reflection.MutableMessage(message, field));
      } else if (!std::isfinite(RealOf(*message, *field))) {
        reflection.ClearField(message, field);
      }
      continue;
    }
    for (int i = reflection.FieldSize(*message, field) - 1; i >= 0; --i) {
      if (real && field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
        if (!std::isfinite(RealOf(*message, *field, i))) reflection.SetRepeatedDouble(message, field, i, 0);
      } else if (real) {
        if (!std::isfinite(RealOf(*message, *field, i))) reflection.SetRepeatedFloat(message, field, i, 0);
      } else if (field->is_map() && FirstNonFinite(reflection.GetRepeatedMessage(*message, field, i))) {
        reflection.SwapElements(message, field, i, reflection.FieldSize(*message, field) - 1);
        reflection.RemoveLast(message, field);
      } else {
        ClearNonFinite(reflection.MutableRepeatedMessage(message, field, i));
      }
    }
  }
}

}  // namespace pawl
