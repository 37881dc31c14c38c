// Whole numbers that a source names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/draft/read/cpp_expression.h"
#include "cli/draft/read/source_model.h"

namespace pawl {

// The value of an expression over numbers and these names, with C++'s division. Nothing: it is none.
std::optional<int64_t> ConstantValue(const CppExpression& expression, const std::map<std::string, int64_t>& names);

// #define NAME ..., by the tokens of the directive.
void AddDefinedConstant(const std::vector<CppToken>& directive, const SourceText& file, SourceModel& model);

// constexpr and const integers of all files, in functions and out of them, added to model.constants.
void ReadConstants(SourceModel& model);

// Name to value of all that the model has.
std::map<std::string, int64_t> ConstantValues(const SourceModel& model);

}  // namespace pawl
