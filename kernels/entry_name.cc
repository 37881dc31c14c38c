#include "kernels/entry_name.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/expression/expression.h"
#include "kernels/limits.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

bool IsEntryWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// a::b::c
bool IsQualifiedName(absl::string_view text) {
  absl::ConsumePrefix(&text, "::");
  for (;;) {
    size_t end = 0;
    while (end < text.size() && IsEntryWordCharacter(text[end])) ++end;
    if (end == 0 || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
    text.remove_prefix(end);
    if (text.empty()) return true;
    if (!absl::ConsumePrefix(&text, "::")) return false;
  }
}

// Brackets of both kinds close in order.
bool AreArguments(absl::string_view text) {
  std::string open;
  for (const char c : text) {
    if (!IsEntryWordCharacter(c) && (c == '\0' || std::strchr(" :,<>()*&+-.!", c) == nullptr)) return false;
    if (c == '<' || c == '(') open += c;
    if (c != '>' && c != ')') continue;
    if (open.empty() || open.back() != (c == '>' ? '<' : '(')) return false;
    open.pop_back();
  }
  return open.empty();
}

// Calls `word` for each word of the text and `other` for what is between them.
template <typename Word, typename Other>
void VisitWords(absl::string_view text, Word word, Other other) {
  while (!text.empty()) {
    size_t end = 0;
    const bool is_word = IsEntryWordCharacter(text[0]);
    while (end < text.size() && IsEntryWordCharacter(text[end]) == is_word) ++end;
    is_word ? word(text.substr(0, end)) : other(text.substr(0, end));
    text.remove_prefix(end);
  }
}

}  // namespace

bool IsCppEntry(const std::string& entry) { return absl::StrContains(entry, "<") || absl::StrContains(entry, "::"); }

bool IsEntryName(const std::string& entry) {
  if (!IsCppEntry(entry)) return IsName(entry);
  if (entry.size() > kMaxEntry) return false;
  const size_t open = entry.find('<');
  if (!IsQualifiedName(absl::string_view(entry).substr(0, open))) return false;
  if (open == std::string::npos) return true;
  return entry.back() == '>' && AreArguments(absl::string_view(entry).substr(open));
}

bool IsSymbolName(const std::string& name) { return name.size() <= kMaxEntry && IsQualifiedName(name); }

bool IsLoopName(const std::string& name) {
  return name.size() <= kMaxBundleName && !absl::StrContains(name, ":") && IsQualifiedName(name);
}

std::string FunctionName(const std::string& entry) {
  const std::string qualified = entry.substr(0, entry.find('<'));
  const size_t last = qualified.rfind("::");
  return last == std::string::npos ? qualified : qualified.substr(last + 2);
}

std::set<std::string> WordsOf(const std::string& entry) {
  std::set<std::string> words;
  VisitWords(
      entry, [&](absl::string_view word) { words.emplace(word); }, [](absl::string_view) {});
  return words;
}

std::string EntryOf(const v1::Bundle& bundle, const std::string& entry, const v1::Variant& variant,
                    const v1::Size& size) {
  const size_t open = std::min(entry.find('<'), entry.size());
  std::string result = entry.substr(0, open);
  const auto replace = [&](absl::string_view word) {
    const std::string name(word);
    if (const auto value = variant.values().find(name); value != variant.values().end()) {
      absl::StrAppend(&result, ValueText(bundle, name, value->second));
      return;
    }
    const auto dimension = size.values().find(std::string(absl::StripPrefix(word, "SIZE_")));
    if (absl::StartsWith(word, "SIZE_") && dimension != size.values().end()) {
      absl::StrAppend(&result, dimension->second);
    } else {
      absl::StrAppend(&result, word);
    }
  };
  VisitWords(absl::string_view(entry).substr(open), replace,
             [&](absl::string_view other) { absl::StrAppend(&result, other); });
  return result;
}

}  // namespace pawl
