#include "base/finite/finite.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"

namespace pawl {
namespace {

using google::protobuf::Descriptor;
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

// Real numbers, and messages with some in them at any depth, by number.
std::vector<const FieldDescriptor*> FieldsWithReals(const Descriptor& type) {
  // A type may contain itself: who leads to a real number is found from those who have one, step by step.
  std::vector<const Descriptor*> types = {&type};
  for (size_t i = 0; i < types.size(); ++i) {
    for (int f = 0; f < types[i]->field_count(); ++f) {
      const Descriptor* inner = types[i]->field(f)->message_type();
      if (inner != nullptr && std::find(types.begin(), types.end(), inner) == types.end()) types.push_back(inner);
    }
  }
  std::set<const Descriptor*> with_reals;
  const auto counts = [&](const FieldDescriptor& field) {
    return IsReal(field) || (field.message_type() != nullptr && with_reals.contains(field.message_type()));
  };
  for (size_t before = types.size() + 1; before != with_reals.size();) {
    before = with_reals.size();
    for (const Descriptor* each : types) {
      for (int f = 0; f < each->field_count(); ++f) {
        if (counts(*each->field(f))) with_reals.insert(each);
      }
    }
  }
  std::vector<const FieldDescriptor*> fields;
  for (int f = 0; f < type.field_count(); ++f) {
    if (counts(*type.field(f))) fields.push_back(type.field(f));
  }
  std::sort(fields.begin(), fields.end(), [](const auto* a, const auto* b) { return a->number() < b->number(); });
  return fields;
}

// Every call's message is looked at: asking each part for all its fields would take longer than reading it.
const std::vector<const FieldDescriptor*>& KnownFieldsWithReals(const Descriptor& type) {
  static thread_local std::unordered_map<const Descriptor*, std::vector<const FieldDescriptor*>> known;
  const auto [entry, is_new] = known.try_emplace(&type);
  if (is_new) entry->second = FieldsWithReals(type);
  return entry->second;
}

}  // namespace

std::optional<std::string> FirstNonFinite(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  for (const FieldDescriptor* field : KnownFieldsWithReals(*message.GetDescriptor())) {
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
