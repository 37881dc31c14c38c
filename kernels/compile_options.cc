// CompileOptions and what decides them, declared in plan.h.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/plan.h"
#include "kernels/source/active_source.h"
#include "kernels/substitution.h"
#include "kernels/variable_values.h"

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

// Each of `texts` is what one file has.
void AddSizes(const std::vector<std::string>& texts, const v1::Size& size, std::vector<std::string>& options) {
  const std::map<std::string, int32_t> sorted(size.values().begin(), size.values().end());
  for (const auto& [name, value] : sorted) {
    const std::string macro = absl::StrCat("SIZE_", name);
    if (std::any_of(texts.begin(), texts.end(), [&](const std::string& text) { return Mentions(text, macro); })) {
      options.push_back(absl::StrCat("-D", macro, "=", value));
    }
  }
}

// #define NAME or #undef NAME, perhaps with blanks between.
bool Defines(const std::string& source, const std::string& name) {
  for (const char* word : {"define", "undef"}) {
    for (size_t at = source.find(word); at != std::string::npos; at = source.find(word, at + 1)) {
      const size_t begin = source.find_first_not_of(" \t\\\r\n", at + std::string(word).size());
      if (begin == std::string::npos || source.compare(begin, name.size(), name) != 0) continue;
      const size_t end = begin + name.size();
      if (end == source.size() || !IsWordCharacter(source[end])) return true;
    }
  }
  return false;
}

int32_t ValueOf(const v1::Variant& variant, const v1::Variable& variable) {
  const auto it = variant.values().find(variable.name());
  return it == variant.values().end() ? variable.start() : it->second;
}

// The variables that the source sees as macros. One that the bundle's own options define as well is not known.
// A word has no number: a condition on it is not known.
std::map<std::string, int64_t> MacrosOf(const v1::Bundle& bundle, const v1::Variant& variant) {
  std::map<std::string, int64_t> macros;
  for (const v1::Variable& variable : bundle.variables()) {
    const bool clash = std::any_of(bundle.options().begin(), bundle.options().end(), [&](const std::string& option) {
      return Mentions(option, variable.name()) || absl::StrContains(option, absl::StrCat("D", variable.name()));
    });
    if (variable.option().empty() && variable.replaces().empty() && !clash && variable.words().empty())
      macros[variable.name()] = ValueOf(variant, variable);
  }
  return macros;
}

// What of the source and its files can matter for these macros. A file that defines one of them hides its value from
// the others: then nothing is left out.
std::vector<std::string> ActiveTexts(const v1::Bundle& bundle, const v1::Variant& variant) {
  std::vector<std::string> texts = {bundle.source().text()};
  for (const v1::SourceFile& file : bundle.files()) texts.push_back(file.text());
  absl::StatusOr<CompiledFiles> compiled = absl::NotFoundError("the files are compiled as they are");
  if (ChangesFiles(bundle)) compiled = FilesToCompile(bundle, variant);
  if (compiled.ok()) {
    texts = {compiled->source.text()};
    for (const v1::SourceFile& file : compiled->files) texts.push_back(file.text());
  }
  std::map<std::string, int64_t> macros = MacrosOf(bundle, variant);
  if (texts.size() > 1) {
    std::erase_if(macros, [&](const auto& macro) {
      return std::any_of(texts.begin(), texts.end(),
                         [&](const std::string& text) { return Defines(text, macro.first); });
    });
  }
  for (std::string& text : texts) text = ActiveSource(text, macros);
  return texts;
}

}  // namespace

std::vector<std::string> CompileOptions(const v1::Bundle& bundle, const v1::Variant& variant, const v1::Size& size) {
  std::vector<std::string> options(bundle.options().begin(), bundle.options().end());
  const bool compiled = IsCudaSource(bundle.source().path());
  for (const v1::Variable& variable : bundle.variables()) {
    const int32_t value = ValueOf(variant, variable);
    if (!variable.replaces().empty()) continue;  // it is in the files
    if (variable.option().empty()) {
      if (compiled) options.push_back(absl::StrCat("-D", variable.name(), "=", MacroText(variable, value)));
    } else if (absl::StrContains(variable.option(), "{}")) {
      options.push_back(absl::StrReplaceAll(variable.option(), {{"{}", ValueText(variable, value)}}));
    } else if (value != 0) {
      options.push_back(variable.option());
    }
  }
  if (compiled) AddSizes(ActiveTexts(bundle, variant), size, options);
  return options;
}

std::vector<std::string> ContractCompileOptions(const v1::SourceFile& source, const v1::Size& size,
                                                const google::protobuf::RepeatedPtrField<v1::SourceFile>& files) {
  std::vector<std::string> texts = {source.text()};
  for (const v1::SourceFile& file : files) texts.push_back(file.text());
  std::vector<std::string> options;
  AddSizes(texts, size, options);
  return options;
}

bool IsCudaSource(const std::string& path) { return !absl::EndsWith(path, ".ptx") && !absl::EndsWith(path, ".cubin"); }

bool FixesSizes(const v1::Bundle& bundle) {
  std::set<std::string> names;
  for (const v1::Size& size : bundle.sizes()) {
    for (const auto& [name, value] : size.values()) names.insert(name);
  }
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const std::string macro = absl::StrCat("SIZE_", name);
    return Mentions(bundle.source().text(), macro) ||
           std::any_of(bundle.files().begin(), bundle.files().end(),
                       [&](const v1::SourceFile& file) { return Mentions(file.text(), macro); }) ||
           std::any_of(bundle.launches().begin(), bundle.launches().end(),
                       [&](const v1::Launch& launch) { return Mentions(launch.entry(), macro); });
  });
}

}  // namespace pawl
