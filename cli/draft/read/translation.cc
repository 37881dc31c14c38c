#include "cli/draft/read/translation.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/draft/read/constants.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

constexpr int kMaxInlined = 8;     // functions in each other
constexpr size_t kMaxParts = 256;  // of an expression that a function returns

size_t PartsOf(const CppExpression& e) {
  size_t parts = 1;
  for (const CppExpression& part : e.parts) parts += PartsOf(part);
  return parts;
}

// The text and how tightly it binds: 4 an atom, 3 * and /, 2 + and -, 1 comparisons, 0 the rest.
struct Formula {
  std::string text;
  int binds = 4;
};

std::string At(const Formula& formula, int least) {
  return formula.binds >= least ? formula.text : absl::StrCat("(", formula.text, ")");
}

class Translating {
 public:
  Translating(const SourceModel& model, const LeafText& leaf, std::string* missing)
      : model_(model), leaf_(leaf), missing_(missing) {}

  std::optional<Formula> Make(const CppExpression& e, int inlined = 0) {
    switch (e.kind) {
      case Kind::kNumber:
        return Number(e);
      case Kind::kCast:
        return Make(e.parts[0], inlined);
      case Kind::kPrefix:
        return Prefix(e, inlined);
      case Kind::kBinary:
        return Binary(e, inlined);
      case Kind::kConditional:
        return Conditional(e, inlined);
      case Kind::kCall:
        return Call(e, inlined);
      default:
        return Leaf(e);
    }
  }

 private:
  std::optional<Formula> Missing(const CppExpression& e) {
    if (missing_ != nullptr && missing_->empty()) *missing_ = CppText(e);
    return std::nullopt;
  }

  std::optional<Formula> Leaf(const CppExpression& e) {
    if (e.kind == Kind::kName && (e.text == "true" || e.text == "false")) return Formula{e.text == "true" ? "1" : "0"};
    std::optional<std::string> text = leaf_(e);
    if (!text) return Missing(e);
    const bool atom = text->find_first_of(" +-*/%<>=&|?") == std::string::npos ||
                      (text->back() == ')' && text->find('(') < text->find_first_of(" +-*/%<>=&|?"));
    return Formula{*std::move(text), atom ? 4 : 0};
  }

  std::optional<Formula> Number(const CppExpression& e) {
    if (const std::optional<int64_t> whole = WholeNumber(e.text)) return Formula{absl::StrCat(*whole)};
    std::string text = e.text;
    while (!text.empty() && (text.back() == 'f' || text.back() == 'F')) text.pop_back();
    double number = 0;
    if (!absl::SimpleAtod(text, &number)) return Missing(e);
    return Formula{absl::StrCat(number)};
  }

  std::optional<Formula> Prefix(const CppExpression& e, int inlined) {
    if (e.text != "-" && e.text != "+" && e.text != "!") return Missing(e);
    std::optional<Formula> inner = Make(e.parts[0], inlined);
    if (!inner || e.text == "+") return inner;
    if (e.text == "!") return Formula{absl::StrCat("!", At(*inner, 4)), 3};
    return Formula{absl::StrCat("-", At(*inner, 4)), 2};
  }

  // The summands of an expression, numbers added up apart.
  struct Summands {
    std::vector<std::pair<bool, CppExpression>> terms;  // negative, term
    int64_t number = 0;
  };
  void Sum(const CppExpression& e, bool negative, Summands& sum) const {
    if (e.kind == Kind::kBinary && (e.text == "+" || e.text == "-")) {
      Sum(e.parts[0], negative, sum);
      Sum(e.parts[1], negative != (e.text == "-"), sum);
      return;
    }
    if (e.kind == Kind::kCast) return Sum(e.parts[0], negative, sum);
    if (const std::optional<int64_t> value = ConstantValue(e, {})) {
      sum.number += negative ? -*value : *value;
      return;
    }
    sum.terms.push_back({negative, e});
  }

  std::optional<Formula> Terms(const std::vector<std::pair<bool, CppExpression>>& terms, int64_t number, int inlined) {
    Formula result{"", 4};
    for (const auto& [negative, term] : terms) {
      std::optional<Formula> made = Make(term, inlined);
      if (!made) return std::nullopt;
      if (result.text.empty() && !negative) {
        result = *made;
      } else {
        result = {absl::StrCat(result.text.empty() ? "0" : At(result, 2), negative ? " - " : " + ", At(*made, 3)), 2};
      }
    }
    if (result.text.empty()) return Formula{absl::StrCat(number), number < 0 ? 2 : 4};
    if (number != 0) result = {absl::StrCat(At(result, 2), number < 0 ? " - " : " + ", std::abs(number)), 2};
    return result;
  }

  // (a + b - 1) / b with the summands in any order.
  std::optional<Formula> CeilDiv(const CppExpression& e, int inlined) {
    Summands sum;
    Sum(e.parts[0], false, sum);
    const CppExpression& by = Bare(e.parts[1]);
    if (const std::optional<int64_t> number = ConstantValue(by, {})) {
      if (sum.terms.empty() || *number < 2 || sum.number != *number - 1) return std::nullopt;
      std::optional<Formula> over = Terms(sum.terms, 0, inlined);
      if (!over) return std::nullopt;
      return Formula{absl::StrCat("ceil_div(", over->text, ", ", *number, ")")};
    }
    const auto found = std::find_if(sum.terms.begin(), sum.terms.end(), [&](const auto& term) {
      return !term.first && CppText(Bare(term.second)) == CppText(by);
    });
    if (found == sum.terms.end() || sum.number != -1) return std::nullopt;
    sum.terms.erase(found);
    if (sum.terms.empty()) return std::nullopt;
    std::optional<Formula> over = Terms(sum.terms, 0, inlined), under = Make(by, inlined);
    if (!over || !under) return std::nullopt;
    return Formula{absl::StrCat("ceil_div(", over->text, ", ", under->text, ")")};
  }

  static const CppExpression& Bare(const CppExpression& e) { return e.kind == Kind::kCast ? Bare(e.parts[0]) : e; }

  // 1 + (a - 1) / b
  std::optional<Formula> CeilDivBefore(const CppExpression& e, int inlined) {
    Summands sum;
    Sum(e, false, sum);
    if (sum.number != 1 || sum.terms.size() != 1 || sum.terms[0].first) return std::nullopt;
    const CppExpression& division = sum.terms[0].second;
    if (division.kind != Kind::kBinary || division.text != "/") return std::nullopt;
    Summands over;
    Sum(division.parts[0], false, over);
    if (over.number != -1 || over.terms.empty()) return std::nullopt;
    std::optional<Formula> a = Terms(over.terms, 0, inlined), b = Make(division.parts[1], inlined);
    if (!a || !b) return std::nullopt;
    return Formula{absl::StrCat("ceil_div(", a->text, ", ", b->text, ")")};
  }

  static bool IsReal(const CppExpression& e) {
    if (e.kind == Kind::kNumber) return !WholeNumber(e.text).has_value();
    if (e.kind == Kind::kCast) return e.text == "float" || e.text == "double" || IsReal(e.parts[0]);
    if (e.kind == Kind::kCall && (e.parts[0].text == "float" || e.parts[0].text == "double" ||
                                  e.parts[0].text.find("sqrt") != std::string::npos)) {
      return true;
    }
    return std::any_of(e.parts.begin(), e.parts.end(), IsReal);
  }

  std::optional<Formula> Binary(const CppExpression& e, int inlined) {
    if (const std::optional<int64_t> value = ConstantValue(e, {})) {
      return Formula{absl::StrCat(*value), *value < 0 ? 2 : 4};
    }
    if (e.text == "/") {
      if (std::optional<Formula> division = CeilDiv(e, inlined)) return division;
    }
    if (e.text == "+") {
      if (std::optional<Formula> division = CeilDivBefore(e, inlined)) return division;
    }
    std::optional<Formula> a = Make(e.parts[0], inlined), b = Make(e.parts[1], inlined);
    if (!a || !b) return std::nullopt;
    const std::optional<int64_t> x = NumberIn(a->text), y = NumberIn(b->text);
    if (e.text == "*") {
      if (x && y) return Formula{absl::StrCat(*x * *y)};
      if (y && *y == 1) return a;
      if (x && *x == 1) return b;
      return Formula{absl::StrCat(At(*a, 3), " * ", At(*b, 4)), 3};
    }
    if (e.text == "+" || e.text == "-") {
      if (y && *y == 0) return a;
      return Formula{absl::StrCat(At(*a, 2), " ", e.text, " ", At(*b, 3)), 2};
    }
    if (e.text == "/") {
      if (y && *y == 0) return Missing(e);
      if (y && *y == 1) return a;
      if (x && y && *y != 0 && !IsReal(e)) return Formula{absl::StrCat(*x / *y)};
      if (IsReal(e)) return Formula{absl::StrCat(At(*a, 3), " / ", At(*b, 4)), 3};
      return Formula{absl::StrCat("floor(", At(*a, 3), " / ", At(*b, 4), ")")};
    }
    if (e.text == "%") return Formula{absl::StrCat(At(*a, 3), " % ", At(*b, 4)), 3};
    if ((e.text == ">>" || e.text == "<<") && x && y && *x >= 0 && *x < 1 << 30 && *y >= 0 && *y < 31) {
      return Formula{absl::StrCat(e.text == "<<" ? *x << *y : *x >> *y)};
    }
    if (e.text == ">>" && y && *y >= 0 && *y < 31) {
      return Formula{absl::StrCat("floor(", At(*a, 3), " / ", int64_t{1} << *y, ")")};
    }
    if (e.text == "<<" && y && *y >= 0 && *y < 31) {
      return Formula{absl::StrCat(At(*a, 3), " * ", int64_t{1} << *y), 3};
    }
    static const auto& comparisons = *new std::set<std::string>{"==", "!=", "<", ">", "<=", ">="};
    if (comparisons.contains(e.text)) return Formula{absl::StrCat(At(*a, 2), " ", e.text, " ", At(*b, 2)), 1};
    if (e.text == "&&" || e.text == "||") return Formula{absl::StrCat(At(*a, 1), " ", e.text, " ", At(*b, 1)), 0};
    return Missing(e);
  }

  std::optional<Formula> Conditional(const CppExpression& e, int inlined) {
    std::optional<Formula> condition = Make(e.parts[0], inlined), yes = Make(e.parts[1], inlined),
                           no = Make(e.parts[2], inlined);
    if (!condition || !yes || !no) return std::nullopt;
    return Formula{absl::StrCat(At(*condition, 1), " ? ", At(*yes, 1), " : ", At(*no, 1)), 0};
  }

  std::optional<Formula> Call(const CppExpression& e, int inlined) {
    if (const std::optional<int64_t> value = ConstantValue(e, {})) return Formula{absl::StrCat(*value)};
    const std::string& qualified = e.parts[0].text;
    const std::string name = qualified.substr(qualified.rfind(':') == std::string::npos ? 0 : qualified.rfind(':') + 1);
    if (e.parts[0].kind == Kind::kMember) return Leaf(e);
    if ((name == "min" || name == "max") && e.parts.size() == 3) return Function(name, e, inlined);
    if ((name == "ceil" || name == "ceilf") && e.parts.size() == 2) {
      const CppExpression& inner = Bare(e.parts[1]);
      if (inner.kind == Kind::kBinary && inner.text == "/") {
        std::optional<Formula> a = Make(inner.parts[0], inlined), b = Make(inner.parts[1], inlined);
        if (!a || !b) return std::nullopt;
        return Formula{absl::StrCat("ceil_div(", a->text, ", ", b->text, ")")};
      }
      return Function("ceil", e, inlined);
    }
    if (name == "sqrt" || name == "sqrtf" || name == "floor" || name == "log2" || name == "abs") {
      return Function(name == "sqrtf" ? "sqrt" : name, e, inlined);
    }
    if ((name == "rsqrtf" || name == "rsqrt") && e.parts.size() == 2) {
      std::optional<Formula> inner = Make(e.parts[1], inlined);
      if (!inner) return std::nullopt;
      return Formula{absl::StrCat("1 / sqrt(", inner->text, ")"), 3};
    }
    static const auto& casts = *new std::set<std::string>{"int",   "unsigned", "size_t",  "int64_t",  "long",
                                                          "float", "double",   "int32_t", "uint32_t", "uint"};
    if (casts.contains(name) && e.parts.size() == 2) return Make(e.parts[1], inlined);
    if (std::optional<Formula> made = Inline(e, inlined)) return made;
    static const auto& divisions = *new std::set<std::string>{
        "ceil_div", "ceildiv",  "CeilDiv", "ceilDiv", "cdiv",   "div_up",   "divUp", "DivUp",
        "DIVUP",    "CEIL_DIV", "DIV_UP",  "divup",   "iDivUp", "div_ceil", "CEIL",  "ceildiv"};
    if (divisions.contains(name) && e.parts.size() == 3) return Function("ceil_div", e, inlined);
    return Leaf(e);
  }

  std::optional<Formula> Function(const std::string& name, const CppExpression& e, int inlined) {
    std::string text = absl::StrCat(name, "(");
    for (size_t i = 1; i < e.parts.size(); ++i) {
      std::optional<Formula> part = Make(e.parts[i], inlined);
      if (!part) return std::nullopt;
      absl::StrAppend(&text, i > 1 ? ", " : "", part->text);
    }
    return Formula{absl::StrCat(text, ")")};
  }

  // A function of the source whose body is `return EXPRESSION;`.
  std::optional<Formula> Inline(const CppExpression& e, int inlined) {
    if (inlined >= kMaxInlined) return std::nullopt;
    const std::optional<CppExpression> made = Inlined(e, model_);
    return made ? Make(*made, inlined + 1) : std::nullopt;
  }

  const SourceModel& model_;
  const LeafText& leaf_;
  std::string* missing_;
};

}  // namespace

std::optional<std::string> Translate(const CppExpression& expression, const SourceModel& model, const LeafText& leaf,
                                     std::string* missing) {
  std::optional<Formula> formula = Translating(model, leaf, missing).Make(expression);
  return formula ? std::optional(formula->text) : std::nullopt;
}

std::optional<CppExpression> Inlined(const CppExpression& call, const SourceModel& model) {
  if (call.kind != Kind::kCall || call.parts[0].kind != Kind::kName) return std::nullopt;
  const std::string& name = call.parts[0].text;
  const SourceFunction* function = model.Find(name.substr(name.rfind(':') + 1));
  if (function == nullptr || function->parameters.size() != call.parts.size() - 1) return std::nullopt;
  std::map<std::string, CppExpression> values;
  for (size_t i = 0; i < function->parameters.size(); ++i) values[function->parameters[i].name] = call.parts[i + 1];
  return Returned(ParseCppBody(function->file->tokens, function->body), std::move(values));
}

std::optional<CppExpression> Returned(const std::vector<CppStatement>& body,
                                      std::map<std::string, CppExpression> arguments) {
  for (const CppStatement& statement : body) {
    if (statement.kind == CppStatement::Kind::kReturn && statement.expressions.size() == 1 &&
        &statement == &body.back()) {
      CppExpression returned = Substituted(statement.expressions[0], arguments);
      return PartsOf(returned) > kMaxParts ? std::nullopt : std::optional(std::move(returned));
    }
    if (statement.kind != CppStatement::Kind::kDeclaration) return std::nullopt;
    for (const CppDeclarator& declared : statement.declared) {
      if (declared.initial.size() != 1 || declared.array || declared.pointer) return std::nullopt;
      arguments[declared.name] = Substituted(declared.initial[0], arguments);
      if (PartsOf(arguments[declared.name]) > kMaxParts) return std::nullopt;  // each may double the one before
    }
  }
  return std::nullopt;
}

CppExpression Substituted(const CppExpression& expression, const std::map<std::string, CppExpression>& values) {
  if (expression.kind == Kind::kName) {
    const auto found = values.find(expression.text);
    return found == values.end() ? expression : found->second;
  }
  CppExpression result = expression;
  for (CppExpression& part : result.parts) part = Substituted(part, values);
  return result;
}

std::optional<int64_t> NumberIn(const std::string& text) {
  int64_t value = 0;
  return absl::SimpleAtoi(text, &value) ? std::optional(value) : std::nullopt;
}

}  // namespace pawl
