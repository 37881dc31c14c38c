// Expressions of C++ as trees, read from tokens. Names need not be declared: headers that a file includes may be
// missing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/source/cpp_tokens.h"

namespace pawl {

struct CppExpression {
  enum class Kind {
    kNumber,
    kName,  // qualified: std::min
    kString,
    kMember,       // parts[0].text, also ->
    kCall,         // parts[0](parts[1], ...)
    kSubscript,    // parts[0][parts[1]]
    kPrefix,       // text parts[0]
    kPostfix,      // parts[0] text
    kBinary,       // parts[0] text parts[1]
    kAssign,       // the same; in a list `.rows = n`, where parts[0] is kOther
    kConditional,  // parts[0] ? parts[1] : parts[2]
    kCast,         // (text)parts[0], also static_cast and its kin
    kList,         // {parts...}
    kOther,        // a lambda and what else is not understood
  };

  Kind kind = Kind::kOther;
  std::string text;
  std::vector<std::string> template_arguments;  // of kName
  std::vector<CppExpression> parts;
  size_t offset = 0;  // of its first token

  bool IsName(std::string_view name) const { return kind == Kind::kName && text == name; }
};

// The tokens from `begin` to `end`. Nothing: they are no expression.
std::optional<CppExpression> ParseCppExpression(const std::vector<CppToken>& tokens, size_t begin, size_t end);

// The name of a list's part with its value, .rows = n; null: it has none.
const CppExpression* DesignatedValue(const CppExpression& part, std::string* name);

// Whether the name stands anywhere in it.
bool Mentions(const CppExpression& expression, std::string_view name);

// As C++ text, every operation in brackets that its place needs.
std::string CppText(const CppExpression& expression);

// The tokens' texts with single blanks where they are needed.
std::string TokensText(const std::vector<CppToken>& tokens, size_t begin, size_t end);

// The ranges between the top-level commas of [begin, end).
std::vector<std::pair<size_t, size_t>> SplitAtCommas(const std::vector<CppToken>& tokens, size_t begin, size_t end);

// Behind the > that closes the < at `open`, where these are template arguments; `open` where they are not.
size_t SkipTemplateArguments(const std::vector<CppToken>& tokens, size_t open, size_t end);

// 12, 0x10, 4u, 1'000; nothing for 1.5.
std::optional<int64_t> WholeNumber(std::string_view text);

}  // namespace pawl
