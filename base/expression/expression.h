// Arithmetic that users write in bundles, rules and metrics: + - * / %, ^ (power), comparisons, && || !, a ? b : c, and
// the functions ceil_div, min, max, abs, floor, ceil, round, sqrt, log2, pow. Text comes from users: nothing in it may
// crash.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace pawl {

// Parsed once, evaluated often. Evaluating writes the values into the parser: one thread at a time.
class Expression {
 public:
  static absl::StatusOr<Expression> Parse(const std::string& text);

  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;
  ~Expression();

  // The names it uses, sorted.
  const std::vector<std::string>& names() const;
  const std::string& text() const;

  // `values` has one value for each of names(), in that order. An error when the result is not finite.
  absl::StatusOr<double> Evaluate(std::span<const double> values);
  // Names that are not in `values` are an error that lists them and what there is.
  absl::StatusOr<double> Evaluate(const std::map<std::string, double>& values);
  // Refuses results that are no whole number or beyond 2^53, where a double no longer counts exactly.
  absl::StatusOr<int64_t> EvaluateInteger(const std::map<std::string, double>& values);

 private:
  struct Parser;
  explicit Expression(std::unique_ptr<Parser> parser);
  std::unique_ptr<Parser> parser_;
};

absl::StatusOr<double> Evaluate(const std::string& text, const std::map<std::string, double>& values);
absl::StatusOr<int64_t> EvaluateInteger(const std::string& text, const std::map<std::string, double>& values);
absl::StatusOr<std::set<std::string>> NamesIn(const std::string& text);

// The functions that an expression may call.
struct ExpressionFunction {
  std::string name;
  std::string call;  // "ceil_div(a, b)"
  std::string meaning;
};
const std::vector<ExpressionFunction>& ExpressionFunctions();

inline constexpr size_t kMaxExpression = 2000;  // characters
inline constexpr size_t kMaxName = 64;

// Whether `name` can be used in an expression: a letter or _, then letters, digits or _; at most kMaxName characters;
// not a function's name.
bool IsName(const std::string& name);

}  // namespace pawl
