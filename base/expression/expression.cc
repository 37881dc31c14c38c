#include "base/expression/expression.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <exception>
#include <map>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/names/utf8.h"
#include "muParser.h"

namespace pawl {
namespace {

constexpr double kMaxWhole = 9007199254740992.0;  // 2^53

double CeilDiv(double a, double b) { return std::ceil(a / b); }
double Mod(double a, double b) { return std::fmod(a, b); }
double Not(double a) { return a == 0 ? 1 : 0; }
double Negative(double a) { return -a; }
double Positive(double a) { return a; }
double Min(const double* values, int count) { return *std::min_element(values, values + count); }
double Max(const double* values, int count) { return *std::max_element(values, values + count); }
double Abs(double a) { return std::fabs(a); }
double Floor(double a) { return std::floor(a); }
double Ceil(double a) { return std::ceil(a); }
double Round(double a) { return std::round(a); }
double Sqrt(double a) { return std::sqrt(a); }
double Log2(double a) { return std::log2(a); }
double Pow(double a, double b) { return std::pow(a, b); }

const std::set<std::string>& Functions() {
  static const auto& functions = *[] {
    auto* names = new std::set<std::string>;
    for (const ExpressionFunction& function : ExpressionFunctions()) names->insert(function.name);
    return names;
  }();
  return functions;
}

bool IsNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Of one that is beyond ASCII: it is shown, with what may have been meant. The text up to it is ASCII.
absl::Status UnexpectedCharacter(const std::string& text, size_t at) {
  static const auto& meant = *new std::map<std::string, std::string>{
      {"\u00d7", "*"},  {"\u00b7", "*"},  {"\u22c5", "*"},       {"\u2217", "*"},      {"\u00f7", "/"},
      {"\u2215", "/"},  {"\u2212", "-"},  {"\u2013", "-"},       {"\u2014", "-"},      {"\u2264", "<="},
      {"\u2265", ">="}, {"\u2260", "!="}, {"\u00a0", "a blank"}, {"\u202f", "a blank"}};
  const std::string character = text.substr(at, CharacterLength(std::string_view(text).substr(at)));
  if (character.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat("unexpected byte 0x%02x at position %d; expected ASCII",
                                                      static_cast<unsigned char>(text[at]), at + 1));
  }
  const auto found = meant.find(character);
  return absl::InvalidArgumentError(
      absl::StrCat("unexpected '", character, "' at position ", at + 1, " of \"", ValidUtf8(text), "\"; ",
                   found == meant.end() ? "names and operators are ASCII" : absl::StrCat("write ", found->second)));
}

// muParser also takes strings, assignments and several results; none of them means anything in a bundle.
absl::Status CheckCharacters(const std::string& text) {
  if (text.size() > kMaxExpression) {
    return absl::InvalidArgumentError(
        absl::StrCat("the expression has ", text.size(), " characters; at most ", kMaxExpression, " are read"));
  }
  bool blank = true;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' || c == '\t') continue;
    blank = false;
    if (static_cast<unsigned char>(c) >= 128) return UnexpectedCharacter(text, i);
    if (!IsNameCharacter(c) && std::string_view(".+-*/%^()<>=!&|?:,").find(c) == std::string_view::npos) {
      const bool printable = c > ' ' && c < 127;
      return absl::InvalidArgumentError(absl::StrCat("unexpected ",
                                                     printable ? std::string{'\'', c, '\''} : "character",
                                                     " at position ", i + 1, " of \"", printable ? text : "...", "\""));
    }
    if (c == '=') {
      const char before = i > 0 ? text[i - 1] : ' ';
      const char after = i + 1 < text.size() ? text[i + 1] : ' ';
      if (after == '=') {
        ++i;
      } else if (before != '<' && before != '>' && before != '!') {
        return absl::InvalidArgumentError(
            absl::StrCat("'=' at position ", i + 1, " of \"", text, "\": write == to compare"));
      }
    }
  }
  if (blank) return absl::InvalidArgumentError("the expression is empty");
  return absl::OkStatus();
}

absl::Status CheckFunctions(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    if (!IsNameCharacter(text[i])) {
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < text.size() && IsNameCharacter(text[i])) ++i;
    const std::string word = text.substr(begin, i - begin);
    while (i < text.size() && (text[i] == ' ' || text[i] == '\t')) ++i;
    if (i < text.size() && text[i] == '(' && !std::isdigit(static_cast<unsigned char>(word[0])) &&
        !Functions().contains(word)) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown function ", word, " in \"", text, "\"; there are ", absl::StrJoin(Functions(), ", ")));
    }
  }
  return absl::OkStatus();
}

}  // namespace

// Owns the places that muParser reads values from; they may not move.
struct Expression::Parser {
  std::string text;
  std::map<std::string, double> values;
  std::vector<std::string> names;
  std::vector<double*> places;  // in the order of names
  mu::Parser parser;

  static double* AddName(const char* name, void* self) {
    // 1 and not 0, so that the trial evaluation while parsing does not divide by zero.
    return &static_cast<Parser*>(self)->values.try_emplace(name, 1.0).first->second;
  }

  explicit Parser(const std::string& expression) : text(expression) {
    parser.ClearFun();
    parser.ClearConst();
    parser.ClearOprt();
    parser.ClearInfixOprt();
    parser.DefineInfixOprt("-", Negative);
    parser.DefineInfixOprt("+", Positive);
    parser.DefineInfixOprt("!", Not);
    parser.DefineOprt("%", Mod, mu::prMUL_DIV, mu::oaLEFT, true);
    parser.DefineFun("ceil_div", CeilDiv);
    parser.DefineFun("min", Min);
    parser.DefineFun("max", Max);
    parser.DefineFun("abs", Abs);
    parser.DefineFun("floor", Floor);
    parser.DefineFun("ceil", Ceil);
    parser.DefineFun("round", Round);
    parser.DefineFun("sqrt", Sqrt);
    parser.DefineFun("log2", Log2);
    parser.DefineFun("pow", Pow);
    parser.SetVarFactory(AddName, this);
    parser.SetExpr(expression);
    parser.Eval();
    for (auto& [name, value] : values) {
      names.push_back(name);
      places.push_back(&value);
    }
  }
};

Expression::Expression(std::unique_ptr<Parser> parser) : parser_(std::move(parser)) {}
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;
Expression::~Expression() = default;

const std::vector<std::string>& Expression::names() const { return parser_->names; }
const std::string& Expression::text() const { return parser_->text; }

absl::StatusOr<Expression> Expression::Parse(const std::string& text) {
  if (absl::Status status = CheckCharacters(text); !status.ok()) return status;
  if (absl::Status status = CheckFunctions(text); !status.ok()) return status;
  try {
    auto parser = std::make_unique<Parser>(text);
    if (parser->parser.GetNumResults() != 1) {
      return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is more than one expression"));
    }
    for (const std::string& name : parser->names) {
      if (name.size() > kMaxName) return absl::InvalidArgumentError("a name is longer than 64 characters");
    }
    return Expression(std::move(parser));
  } catch (const mu::ParserError& error) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not an expression: ", error.GetMsg()));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not an expression: ", error.what()));
  }
}

absl::StatusOr<double> Expression::Evaluate(std::span<const double> values) {
  if (values.size() != parser_->places.size()) {
    return absl::InternalError(
        absl::StrCat("\"", text(), "\" uses ", parser_->places.size(), " names, given ", values.size(), " values"));
  }
  for (size_t i = 0; i < values.size(); ++i) *parser_->places[i] = values[i];
  try {
    const double result = parser_->parser.Eval();
    if (!std::isfinite(result)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", text(), "\" is ", std::isnan(result) ? "not a number" : "infinite",
                       ": it divides by zero, takes the root of a negative number or is too large"));
    }
    return result;
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text(), "\" can't be evaluated: ", error.what()));
  } catch (const mu::ParserError& error) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text(), "\" can't be evaluated: ", error.GetMsg()));
  }
}

absl::StatusOr<double> Expression::Evaluate(const std::map<std::string, double>& values) {
  std::vector<double> ordered;
  std::vector<std::string> unknown;
  for (const std::string& name : names()) {
    if (auto it = values.find(name); it != values.end()) {
      ordered.push_back(it->second);
    } else {
      unknown.push_back(name);
    }
  }
  if (!unknown.empty()) {
    std::vector<std::string> known;
    for (const auto& [name, value] : values) known.push_back(name);
    return absl::InvalidArgumentError(absl::StrCat("unknown name", unknown.size() > 1 ? "s " : " ",
                                                   absl::StrJoin(unknown, ", "), " in \"", text(), "\"; there ",
                                                   known.empty() ? "are none" : "are ", absl::StrJoin(known, ", ")));
  }
  return Evaluate(ordered);
}

absl::StatusOr<int64_t> Expression::EvaluateInteger(const std::map<std::string, double>& values) {
  absl::StatusOr<double> result = Evaluate(values);
  if (!result.ok()) return result.status();
  if (std::fabs(*result) > kMaxWhole) {
    return absl::OutOfRangeError(absl::StrCat("\"", text(), "\" is ", *result, ", too large to count with"));
  }
  if (*result != std::floor(*result)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text(), "\" is ", *result, ", not a whole number"));
  }
  return static_cast<int64_t>(*result);
}

const std::vector<ExpressionFunction>& ExpressionFunctions() {
  static const auto& functions = *new std::vector<ExpressionFunction>{
      {"ceil_div", "ceil_div(a, b)", "a / b, rounded up"},
      {"min", "min(a, b, ...)", "the smallest"},
      {"max", "max(a, b, ...)", "the largest"},
      {"abs", "abs(a)", "a without its sign"},
      {"floor", "floor(a)", "rounded down"},
      {"ceil", "ceil(a)", "rounded up"},
      {"round", "round(a)", "rounded to the nearest whole number, halves away from 0"},
      {"sqrt", "sqrt(a)", "square root"},
      {"log2", "log2(a)", "logarithm to base 2"},
      {"pow", "pow(a, b)", "a to the power of b, as a ^ b is"}};
  return functions;
}

absl::StatusOr<double> Evaluate(const std::string& text, const std::map<std::string, double>& values) {
  absl::StatusOr<Expression> expression = Expression::Parse(text);
  if (!expression.ok()) return expression.status();
  return expression->Evaluate(values);
}

absl::StatusOr<int64_t> EvaluateInteger(const std::string& text, const std::map<std::string, double>& values) {
  absl::StatusOr<Expression> expression = Expression::Parse(text);
  if (!expression.ok()) return expression.status();
  return expression->EvaluateInteger(values);
}

absl::StatusOr<std::set<std::string>> NamesIn(const std::string& text) {
  absl::StatusOr<Expression> expression = Expression::Parse(text);
  if (!expression.ok()) return expression.status();
  return std::set<std::string>(expression->names().begin(), expression->names().end());
}

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxName && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), IsNameCharacter) && !Functions().contains(name);
}

}  // namespace pawl
