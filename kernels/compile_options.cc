// CompileOptions and what decides them, declared in plan.h.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/active_source.h"
#include "kernels/plan.h"

namespace pawl {
namespace {

bool IsWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool Mentions(const std::string& source, const std::string& word) {
  for (size_t at = source.find(word); at != std::string::npos; at = source.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !IsWordCharacter(source[at - 1])) && (end == source.size() || !IsWordCharacter(source[end]))) {
      return true;
    }
  }
  return false;
}

void AddSizes(const std::string& source, const v1::Size& size, std::vector<std::string>& options) {
  const std::map<std::string, int32_t> sorted(size.values().begin(), size.values().end());
  for (const auto& [name, value] : sorted) {
    if (Mentions(source, absl::StrCat("SIZE_", name))) options.push_back(absl::StrCat("-DSIZE_", name, "=", value));
  }
}

int32_t ValueOf(const v1::Variant& variant, const v1::Variable& variable) {
  const auto it = variant.values().find(variable.name());
  return it == variant.values().end() ? variable.start() : it->second;
}

// The variables that the source sees as macros. One that the bundle's own options define as well is not known.
std::map<std::string, int64_t> MacrosOf(const v1::Bundle& bundle, const v1::Variant& variant) {
  std::map<std::string, int64_t> macros;
  for (const v1::Variable& variable : bundle.variables()) {
    const bool clash = std::any_of(bundle.options().begin(), bundle.options().end(), [&](const std::string& option) {
      return Mentions(option, variable.name()) || absl::StrContains(option, absl::StrCat("D", variable.name()));
    });
    if (variable.option().empty() && !clash) macros[variable.name()] = ValueOf(variant, variable);
  }
  return macros;
}

}  // namespace

std::vector<std::string> CompileOptions(const v1::Bundle& bundle, const v1::Variant& variant, const v1::Size& size) {
  std::vector<std::string> options(bundle.options().begin(), bundle.options().end());
  for (const v1::Variable& variable : bundle.variables()) {
    const std::string value = absl::StrCat(ValueOf(variant, variable));
    if (variable.option().empty()) {
      options.push_back(absl::StrCat("-D", variable.name(), "=", value));
    } else {
      options.push_back(absl::StrReplaceAll(variable.option(), {{"{}", value}}));
    }
  }
  AddSizes(ActiveSource(bundle.source().text(), MacrosOf(bundle, variant)), size, options);
  return options;
}

std::vector<std::string> ReferenceCompileOptions(const v1::Bundle& bundle, const v1::Size& size) {
  std::vector<std::string> options;
  AddSizes(bundle.reference().source().text(), size, options);
  return options;
}

bool FixesSizes(const v1::Bundle& bundle) {
  std::set<std::string> names;
  for (const v1::Size& size : bundle.sizes()) {
    for (const auto& [name, value] : size.values()) names.insert(name);
  }
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return Mentions(bundle.source().text(), absl::StrCat("SIZE_", name));
  });
}

}  // namespace pawl
