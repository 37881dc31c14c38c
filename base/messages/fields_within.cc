#include "base/messages/fields_within.h"

#include <algorithm>
#include <set>

namespace pawl {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

const std::vector<const FieldDescriptor*>& FieldsWithin::Of(const Descriptor& type) {
  const auto [entry, is_new] = known_.try_emplace(&type);
  std::vector<const FieldDescriptor*>& fields = entry->second;
  if (!is_new) return fields;
  // A type may contain itself: who leads to a field that counts is found from those who have one, step by step.
  std::vector<const Descriptor*> types = {&type};
  for (size_t i = 0; i < types.size(); ++i) {
    for (int f = 0; f < types[i]->field_count(); ++f) {
      const Descriptor* inner = types[i]->field(f)->message_type();
      if (inner != nullptr && std::find(types.begin(), types.end(), inner) == types.end()) types.push_back(inner);
    }
  }
  std::set<const Descriptor*> with;
  const auto counts = [&](const FieldDescriptor& field) {
    return counts_(field) || (field.message_type() != nullptr && with.contains(field.message_type()));
  };
  for (size_t before = types.size() + 1; before != with.size();) {
    before = with.size();
    for (const Descriptor* each : types) {
      for (int f = 0; f < each->field_count(); ++f) {
        if (counts(*each->field(f))) with.insert(each);
      }
    }
  }
  for (int f = 0; f < type.field_count(); ++f) {
    if (counts(*type.field(f))) fields.push_back(type.field(f));
  }
  std::sort(fields.begin(), fields.end(), [](const auto* a, const auto* b) { return a->number() < b->number(); });
  return fields;
}

}  // namespace pawl
