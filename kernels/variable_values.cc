#include "kernels/variable_values.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/names/spelling.h"
#include "kernels/limits.h"
#include "kernels/space.h"

namespace pawl {
namespace {

bool IsValueNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The name that ends the text, behind == or !=.
std::string ComparedBefore(absl::string_view text) {
  text = absl::StripTrailingAsciiWhitespace(text);
  if (!absl::ConsumeSuffix(&text, "==") && !absl::ConsumeSuffix(&text, "!=")) return "";
  text = absl::StripTrailingAsciiWhitespace(text);
  size_t begin = text.size();
  while (begin > 0 && IsValueNameCharacter(text[begin - 1])) --begin;
  return std::string(text.substr(begin));
}

// The name that begins the text, behind == or !=.
std::string ComparedBehind(absl::string_view text) {
  text = absl::StripLeadingAsciiWhitespace(text);
  if (!absl::ConsumePrefix(&text, "==") && !absl::ConsumePrefix(&text, "!=")) return "";
  text = absl::StripLeadingAsciiWhitespace(text);
  size_t end = 0;
  while (end < text.size() && IsValueNameCharacter(text[end])) ++end;
  return std::string(text.substr(0, end));
}

std::vector<std::string> ValueTexts(const v1::Variable& variable) {
  std::vector<std::string> texts;
  for (const int32_t value : variable.values()) texts.push_back(ValueText(variable, value));
  return texts;
}

}  // namespace

const v1::Variable* FindVariable(const v1::Bundle& bundle, const std::string& name) {
  const auto found = std::find_if(bundle.variables().begin(), bundle.variables().end(),
                                  [&](const v1::Variable& variable) { return variable.name() == name; });
  return found == bundle.variables().end() ? nullptr : &*found;
}

std::string ValueText(const v1::Variable& variable, int32_t value) {
  if (value >= 0 && value < variable.words_size()) return variable.words(value);
  if (variable.flag() && (value == 0 || value == 1)) return value == 1 ? "true" : "false";
  return absl::StrCat(value);
}

std::string ValueText(const v1::Bundle& bundle, const std::string& name, int32_t value) {
  const v1::Variable* variable = FindVariable(bundle, name);
  return variable == nullptr ? absl::StrCat(value) : ValueText(*variable, value);
}

std::string ValuesText(const v1::Variable& variable) { return absl::StrJoin(ValueTexts(variable), ", "); }

absl::StatusOr<int32_t> ReadValue(const v1::Variable& variable, const std::string& text) {
  for (const int32_t value : variable.values()) {
    if (ValueText(variable, value) == text) return value;
  }
  int32_t number = 0;
  if (absl::SimpleAtoi(text, &number) &&
      std::find(variable.values().begin(), variable.values().end(), number) != variable.values().end()) {
    return number;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is not a value of ", variable.name(), Expected(text, ValueTexts(variable))));
}

std::string VariantText(const v1::Bundle& bundle, const v1::Variant& variant) {
  const std::map<std::string, int32_t> sorted(variant.values().begin(), variant.values().end());
  return absl::StrJoin(sorted, " ", [&](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first, "=", ValueText(bundle, entry.first, entry.second));
  });
}

void NameWords(const v1::Bundle& bundle, v1::Change* change) {
  const v1::Variable* variable = FindVariable(bundle, change->variable());
  if (variable == nullptr || (variable->words().empty() && !variable->flag())) return;
  if (change->has_from()) change->set_from_word(ValueText(*variable, change->from()));
  if (change->has_to()) change->set_to_word(ValueText(*variable, change->to()));
}

google::protobuf::Map<std::string, std::string> WordsOf(const v1::Bundle& bundle,
                                                        const google::protobuf::Map<std::string, int32_t>& values) {
  google::protobuf::Map<std::string, std::string> words;
  for (const v1::Variable& variable : bundle.variables()) {
    const auto value = values.find(variable.name());
    if (value == values.end() || (variable.words().empty() && !variable.flag())) continue;
    words[variable.name()] = ValueText(variable, value->second);
  }
  return words;
}

absl::Status ReadWord(const google::protobuf::RepeatedPtrField<v1::Variable>& variables, v1::Change* change) {
  if (change->kind_case() != v1::Change::kVariable || change->has_to()) return absl::OkStatus();
  for (const v1::Variable& variable : variables) {
    if (variable.name() != change->variable()) continue;
    const absl::StatusOr<int32_t> value = ReadValue(variable, change->to_word());
    if (!value.ok()) return value.status();
    change->set_to(*value);
  }
  return absl::OkStatus();
}

std::string FromText(const v1::Change& change) {
  return change.from_word().empty() ? absl::StrCat(change.from()) : change.from_word();
}

std::string ToText(const v1::Change& change) {
  return change.to_word().empty() ? absl::StrCat(change.to()) : change.to_word();
}

std::string MacroText(const v1::Variable& variable, int32_t value) {
  return variable.flag() ? absl::StrCat(value) : ValueText(variable, value);
}

bool IsValueWord(const std::string& word) {
  double number = 0;
  return !word.empty() && word.size() <= kMaxWord && IsValueNameCharacter(word[0]) &&
         !absl::SimpleAtod(word, &number) && word != "true" && word != "false" &&
         std::all_of(word.begin(), word.end(), [](char c) {
           return IsValueNameCharacter(c) || (c != '\0' && std::strchr(":<>,.+-*&()", c) != nullptr);
         });
}

absl::StatusOr<std::string> WithoutWords(const v1::Bundle& bundle, const std::string& expression) {
  std::string result;
  size_t done = 0;
  for (size_t open; (open = expression.find('"', done)) != std::string::npos;) {
    const size_t close = expression.find('"', open + 1);
    if (close == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("a quote is not closed in ", expression));
    }
    const std::string word = expression.substr(open + 1, close - open - 1);
    std::string name = ComparedBefore(absl::string_view(expression).substr(0, open));
    if (name.empty()) name = ComparedBehind(absl::string_view(expression).substr(close + 1));
    const v1::Variable* variable = FindVariable(bundle, name);
    if (variable == nullptr || variable->words().empty()) {
      return absl::InvalidArgumentError(absl::StrCat("\"", word, "\" in ", expression,
                                                     " must be compared with a variable whose values are words, by == "
                                                     "or !="));
    }
    absl::StatusOr<int32_t> value = ReadValue(*variable, word);
    if (!value.ok()) return value.status();
    absl::StrAppend(&result, expression.substr(done, open - done), *value);
    done = close + 1;
  }
  return result + expression.substr(done);
}

}  // namespace pawl
