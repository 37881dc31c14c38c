// Constants of the source's classes: static constexpr int kThreads = kWarps * 32.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/draft/read/cpp_expression.h"
#include "cli/draft/read/source_model.h"

namespace pawl {

// What a name of a type stands for: Traits<64, 4> of a template's parameter, or of `using T = Traits<64, 4>`. Empty:
// the name is the type's own.
using TypeMeaning = std::function<std::string(const std::string&)>;

// The expression with constants of classes written out: Traits<64, 4>::kThreads is 4 * 32. A constant that is written
// as a number, where no other has its name, keeps that: kThreads. What is not understood stays.
CppExpression WithClassConstants(const CppExpression& expression, const SourceModel& model, const TypeMeaning& meaning);

// The type behind `using NAME = TYPE;` or `typedef TYPE NAME;` among these tokens of a file, the first; empty: none.
std::string AliasIn(const std::vector<CppToken>& tokens, size_t begin, size_t end, const std::string& name);

}  // namespace pawl
