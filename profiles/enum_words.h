// The words that data files use for the values of a proto enum: PHASE_MEMORY is "memory".
#pragma once

#include <map>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/generated_enum_reflection.h"

namespace pawl {

// Every value but the unspecified one, by its name without the prefix, in lower case.
template <typename Enum>
std::map<std::string, Enum> EnumWords(const std::string& prefix) {
  std::map<std::string, Enum> words;
  const google::protobuf::EnumDescriptor* all = google::protobuf::GetEnumDescriptor<Enum>();
  for (int i = 0; i < all->value_count(); ++i) {
    if (all->value(i)->number() == 0) continue;
    words[absl::AsciiStrToLower(all->value(i)->name().substr(prefix.size()))] =
        static_cast<Enum>(all->value(i)->number());
  }
  return words;
}

// Empty for a value that the enum lacks.
template <typename Enum>
std::string WordOf(const std::string& prefix, Enum value) {
  const google::protobuf::EnumValueDescriptor* named =
      google::protobuf::GetEnumDescriptor<Enum>()->FindValueByNumber(value);
  return named == nullptr ? "" : absl::AsciiStrToLower(named->name().substr(prefix.size()));
}

// "compute, memory, parallelism": for messages.
template <typename Enum>
std::string Listed(const std::map<std::string, Enum>& words) {
  return absl::StrJoin(words, ", ", [](std::string* out, const auto& word) { out->append(word.first); });
}

}  // namespace pawl
