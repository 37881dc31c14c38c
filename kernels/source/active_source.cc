#include "kernels/source/active_source.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace pawl {
namespace {

using Macros = std::map<std::string, int64_t>;

bool IsNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Lines joined at backslashes, comments replaced by a space. Texts in quotes stay as they are.
std::string WithoutComments(const std::string& source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size();) {
    const absl::string_view rest = absl::string_view(source).substr(i);
    if (absl::StartsWith(rest, "\\\n")) {
      i += 2;
    } else if (absl::StartsWith(rest, "\\\r\n")) {
      i += 3;
    } else if (absl::StartsWith(rest, "//")) {
      // A comment that ends in a backslash goes on in the next line.
      do {
        i = std::min(source.find('\n', i + 1), source.size());
      } while (i < source.size() && (source[i - 1] == '\\' || source.compare(i - 2, 2, "\\\r") == 0));
    } else if (absl::StartsWith(rest, "/*")) {
      const size_t end = source.find("*/", i + 2);
      i = end == std::string::npos ? source.size() : end + 2;
      text += ' ';
    } else if (source[i] == '"' || source[i] == '\'') {
      const char quote = source[i];
      // An apostrophe between digits separates them.
      const bool separator = quote == '\'' && i > 0 && IsNameCharacter(source[i - 1]);
      text += source[i++];
      while (!separator && i < source.size() && source[i] != '\n') {
        const char c = source[i];
        text += source[i++];
        if (c == '\\' && i < source.size()) text += source[i++];
        if (c == quote) break;
      }
    } else {
      const size_t end = std::min(source.find_first_of("\\/\"'", i + 1), source.size());
      text.append(source, i, end - i);
      i = end;
    }
  }
  return text;
}

// The value of a condition of #if; nothing where it can't be known. Whole numbers, macros that are known, brackets and
// ! - + - * < <= > >= == != && ||.
class Condition {
 public:
  Condition(absl::string_view text, const Macros& macros) : text_(text), macros_(macros) {}

  std::optional<int64_t> Value() {
    const std::optional<int64_t> value = Or();
    Skip();
    return broken_ || !text_.empty() ? std::nullopt : value;
  }

 private:
  using Maybe = std::optional<int64_t>;

  void Skip() { text_ = absl::StripLeadingAsciiWhitespace(text_); }
  bool Take(absl::string_view token) {
    Skip();
    return absl::ConsumePrefix(&text_, token);
  }

  // One side decides where it can, whether the other is known or not.
  Maybe Or() {
    Maybe value = And();
    while (Take("||")) {
      const Maybe right = And();
      const bool yes = value.value_or(0) != 0 || right.value_or(0) != 0;
      value = yes ? Maybe(1) : value && right ? Maybe(0) : std::nullopt;
    }
    return value;
  }
  Maybe And() {
    Maybe value = Equal();
    while (Take("&&")) {
      const Maybe right = Equal();
      const bool no = value.value_or(1) == 0 || right.value_or(1) == 0;
      value = no ? Maybe(0) : value && right ? Maybe(1) : std::nullopt;
    }
    return value;
  }
  Maybe Equal() {
    Maybe value = Less();
    for (;;) {
      const bool equal = Take("==");
      if (!equal && !Take("!=")) return value;
      const Maybe right = Less();
      value = value && right ? Maybe((*value == *right) == equal) : std::nullopt;
    }
  }
  Maybe Less() {
    Maybe value = Sum();
    for (;;) {
      const bool at_most = Take("<="), at_least = !at_most && Take(">=");
      const bool below = !at_most && !at_least && Take("<");
      if (!at_most && !at_least && !below && !Take(">")) return value;
      const Maybe right = Sum();
      if (!value || !right) {
        value = std::nullopt;
      } else {
        value = at_most ? *value <= *right : at_least ? *value >= *right : below ? *value < *right : *value > *right;
      }
    }
  }
  Maybe Sum() {
    Maybe value = Product();
    for (;;) {
      const bool plus = Take("+");
      if (!plus && !Take("-")) return value;
      const Maybe right = Product();
      value = value && right ? Maybe(plus ? *value + *right : *value - *right) : std::nullopt;
    }
  }
  Maybe Product() {
    Maybe value = Unary();
    while (Take("*")) {
      const Maybe right = Unary();
      value = value && right ? Maybe(*value * *right) : std::nullopt;
    }
    return value;
  }
  Maybe Unary() {
    if (++depth_ > 100) broken_ = true;
    if (broken_) return std::nullopt;
    Skip();
    if (absl::StartsWith(text_, "!=")) broken_ = true;
    if (Take("!")) {
      const Maybe value = Unary();
      return value ? Maybe(*value == 0) : std::nullopt;
    }
    if (Take("-")) {
      const Maybe value = Unary();
      return value ? Maybe(-*value) : std::nullopt;
    }
    if (Take("(")) {
      const Maybe value = Or();
      if (!Take(")")) broken_ = true;
      return value;
    }
    return Word();
  }
  Maybe Word() {
    size_t end = 0;
    while (end < text_.size() && IsNameCharacter(text_[end])) ++end;
    const std::string word(text_.substr(0, end));
    text_.remove_prefix(end);
    if (word.empty()) {
      broken_ = true;
      return std::nullopt;
    }
    if (!std::isdigit(static_cast<unsigned char>(word[0]))) {
      const auto known = macros_.find(word);
      if (known != macros_.end()) return known->second;
      // `defined X`, `defined(X)` and macros with arguments are not known, and neither is what follows them.
      if (Take("(") || word == "defined") broken_ = true;
      return std::nullopt;
    }
    // Octal, hexadecimal and suffixes are left to the compiler.
    if (word.size() > 9 || (word.size() > 1 && word[0] == '0')) broken_ = true;
    int64_t number = 0;
    for (const char c : word) {
      if (!std::isdigit(static_cast<unsigned char>(c))) broken_ = true;
      number = number * 10 + (c - '0');
    }
    return number;
  }

  absl::string_view text_;
  const Macros& macros_;
  bool broken_ = false;
  int depth_ = 0;
};

// The word behind # in a line, and what follows it; an empty word: no directive.
std::pair<std::string, absl::string_view> Directive(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "#")) return {};
  line = absl::StripLeadingAsciiWhitespace(line);
  size_t end = 0;
  while (end < line.size() && IsNameCharacter(line[end])) ++end;
  return {std::string(line.substr(0, end)), absl::StripAsciiWhitespace(line.substr(end))};
}

std::string FirstName(absl::string_view text) {
  size_t end = 0;
  while (end < text.size() && IsNameCharacter(text[end])) ++end;
  return std::string(text.substr(0, end));
}

// One #if and the branches behind it.
struct Branches {
  bool outside;        // what surrounds it is in
  bool taken = false;  // a branch that is in for certain came before
  bool in = false;     // the present one is
};

// Whether the line with the condition can matter: not where the answer is known without it.
bool Enter(std::optional<int64_t> condition, Branches& branches) {
  const bool possible = branches.outside && !branches.taken;
  branches.in = possible && condition.value_or(1) != 0;
  if (condition && *condition != 0) branches.taken = true;
  return possible && !condition;
}

}  // namespace

std::string ActiveSource(const std::string& source, const Macros& given) {
  for (const char* beyond : {"R\"", "%:", "?\?="}) {
    if (absl::StrContains(source, beyond)) return source;
  }
  const std::string text = WithoutComments(source);
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  Macros macros = given;
  for (const absl::string_view line : lines) {
    const auto [word, rest] = Directive(line);
    if (word == "define" || word == "undef") macros.erase(FirstName(rest));
  }
  std::string active;
  std::vector<Branches> open;
  for (const absl::string_view line : lines) {
    const auto [word, rest] = Directive(line);
    bool matters = open.empty() || open.back().in;
    if (word == "if" || word == "ifdef" || word == "ifndef") {
      open.push_back({.outside = matters});
      const bool known = macros.contains(FirstName(rest));
      matters = Enter(word == "if" ? Condition(rest, macros).Value()
                      : known      ? std::optional<int64_t>(word == "ifdef")
                                   : std::nullopt,
                      open.back());
    } else if (!open.empty() && (word == "elif" || word == "else")) {
      matters = Enter(word == "else" ? std::optional<int64_t>(1) : Condition(rest, macros).Value(), open.back());
    } else if (!open.empty() && (word == "elifdef" || word == "elifndef")) {
      matters = Enter(std::nullopt, open.back());
    } else if (!open.empty() && word == "endif") {
      open.pop_back();
      matters = false;
    }
    if (!matters) continue;
    active.append(line.data(), line.size());
    active += '\n';
  }
  return active;
}

}  // namespace pawl
