// C++ arithmetic as expressions of kernel.toml.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/draft/read/cpp_expression.h"
#include "cli/draft/read/cpp_statement.h"
#include "cli/draft/read/source_model.h"

namespace pawl {

// What a leaf (a name, a member, a call that is not arithmetic) is in kernel.toml; nothing: it has no meaning there.
using LeafText = std::function<std::optional<std::string>(const CppExpression& leaf)>;

// Integer arithmetic: (a + b - 1) / b becomes ceil_div(a, b), a / b floor(a / b), sizeof its number; functions of the
// source that only return an expression are written out. Nothing: a part of it has no meaning in kernel.toml; the first
// such part is put into `missing`.
std::optional<std::string> Translate(const CppExpression& expression, const SourceModel& model, const LeafText& leaf,
                                     std::string* missing = nullptr);

// What a call of a function of the source returns, where that is one expression, with the arguments in it. Nothing: it
// is no such call.
std::optional<CppExpression> Inlined(const CppExpression& call, const SourceModel& model);

// What a function with this body returns for these arguments, where it only declares values before. Nothing: it does
// more than that.
std::optional<CppExpression> Returned(const std::vector<CppStatement>& body,
                                      std::map<std::string, CppExpression> arguments);

// The expression with names replaced.
CppExpression Substituted(const CppExpression& expression, const std::map<std::string, CppExpression>& values);

// Numbers computed where both sides are: "32 * 8" is 256.
std::optional<int64_t> NumberIn(const std::string& text);

}  // namespace pawl
