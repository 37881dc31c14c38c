#include "cli/handoff/host_expression.h"

#include <cctype>
#include <cmath>
#include <initializer_list>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace pawl {
namespace {

bool IsHostNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// By precedence, as muParser has it: all comparisons are one level, ^ binds to the right and tighter than a sign.
class HostExpressionParser {
 public:
  HostExpressionParser(const std::string& text, const std::function<std::string(const std::string&)>& name_of)
      : text_(text), name_of_(name_of) {}

  absl::StatusOr<std::string> Parse() {
    const std::string result = Choice().text;
    Skip();
    if (failed_ || at_ != text_.size()) {
      return absl::InvalidArgumentError(absl::StrCat("\"", text_, "\" is not an expression"));
    }
    return result;
  }

 private:
  static constexpr int kMaxDepth = 200;

  void Skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  bool Take(const std::string& token) {
    Skip();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }

  // A part of the expression: its text, and its value where that is known.
  struct Part {
    std::string text;
    std::optional<double> value;

    bool Is(double other) const { return value && *value == other; }
  };

  Part Fail() {
    failed_ = true;
    at_ = text_.size();
    return Constant(0);
  }

  static Part Constant(double value) {
    std::string text = absl::StrFormat("%.17g", value);
    if (text.find_first_of(".en") == std::string::npos) absl::StrAppend(&text, ".0");
    return {value < 0 ? absl::StrCat("(", text, ")") : text, value};
  }

  // A sum, product, ... of two parts. What is known is computed here.
  static Part Binary(const Part& a, const std::string& sign, const Part& b) {
    const double known = a.value && b.value ? ValueOf(*a.value, sign, *b.value) : HUGE_VAL;
    if (std::isfinite(known)) return Constant(known);
    if (sign == "*" && (a.Is(0) || b.Is(0))) return Constant(0);
    if ((sign == "*" && a.Is(1)) || (sign == "+" && a.Is(0))) return b;
    if (((sign == "*" || sign == "/") && b.Is(1)) || ((sign == "+" || sign == "-") && b.Is(0))) return a;
    if (sign == "%") return {absl::StrCat("std::fmod(", a.text, ", ", b.text, ")"), std::nullopt};
    if (sign == "^") return {absl::StrCat("std::pow(", a.text, ", ", b.text, ")"), std::nullopt};
    if (sign == "&&" || sign == "||") {
      return {absl::StrCat("(", a.text, " != 0 ", sign, " ", b.text, " != 0 ? 1.0 : 0.0)"), std::nullopt};
    }
    const bool compares = sign.find_first_of("<>=!") != std::string::npos;
    return {absl::StrCat("(", a.text, " ", sign, " ", b.text, compares ? " ? 1.0 : 0.0)" : ")"), std::nullopt};
  }

  static double ValueOf(double a, const std::string& sign, double b) {
    if (sign == "+") return a + b;
    if (sign == "-") return a - b;
    if (sign == "*") return a * b;
    if (sign == "/") return a / b;
    if (sign == "%") return std::fmod(a, b);
    if (sign == "^") return std::pow(a, b);
    if (sign == "&&") return a != 0 && b != 0;
    if (sign == "||") return a != 0 || b != 0;
    if (sign == "==") return a == b;
    if (sign == "!=") return a != b;
    if (sign == "<=") return a <= b;
    if (sign == ">=") return a >= b;
    return sign == "<" ? a < b : a > b;
  }

  // The first of the signs that comes next; empty: none of them.
  std::string TakeOneOf(std::initializer_list<const char*> signs) {
    for (const char* sign : signs) {
      if (Take(sign)) return sign;
    }
    return "";
  }

  // Parts of a level, joined from the left.
  Part Joined(std::initializer_list<const char*> signs, Part (HostExpressionParser::*level)()) {
    Part part = (this->*level)();
    for (std::string sign; !(sign = TakeOneOf(signs)).empty();) part = Binary(part, sign, (this->*level)());
    return part;
  }

  Part Choice() {
    if (++depth_ > kMaxDepth) return Fail();
    Part part = Or();
    if (Take("?")) {
      const Part yes = Choice();
      if (!Take(":")) return Fail();
      const Part no = Choice();
      if (part.value) {
        part = *part.value != 0 ? yes : no;
      } else {
        part = {absl::StrCat("(", part.text, " != 0 ? ", yes.text, " : ", no.text, ")"), std::nullopt};
      }
    }
    --depth_;
    return part;
  }

  Part Or() { return Joined({"||"}, &HostExpressionParser::And); }
  Part And() { return Joined({"&&"}, &HostExpressionParser::Comparison); }
  Part Comparison() { return Joined({"==", "!=", "<=", ">=", "<", ">"}, &HostExpressionParser::Sum); }
  Part Sum() { return Joined({"+", "-"}, &HostExpressionParser::Product); }
  Part Product() { return Joined({"*", "/", "%"}, &HostExpressionParser::Signed); }

  Part Signed() {
    if (++depth_ > kMaxDepth) return Fail();
    Part part;
    Skip();
    if (Take("-")) {
      const Part negated = Signed();
      part = negated.value ? Constant(-*negated.value) : Part{absl::StrCat("(-", negated.text, ")"), std::nullopt};
    } else if (Take("+")) {
      part = Signed();
    } else if (text_.compare(at_, 2, "!=") != 0 && Take("!")) {
      part = Binary(Signed(), "==", Constant(0));
    } else {
      part = Power();
    }
    --depth_;
    return part;
  }

  Part Power() {
    const Part base = Atom();
    return Take("^") ? Binary(base, "^", Signed()) : base;
  }

  Part Atom() {
    if (Take("(")) {
      const Part inner = Choice();
      return Take(")") ? inner : Fail();
    }
    Skip();
    if (at_ >= text_.size()) return Fail();
    const char first = text_[at_];
    if (std::isdigit(static_cast<unsigned char>(first)) || first == '.') return Number();
    const size_t begin = at_;
    while (at_ < text_.size() && IsHostNameCharacter(text_[at_])) ++at_;
    if (at_ == begin) return Fail();
    const std::string name = text_.substr(begin, at_ - begin);
    if (Take("(")) return Call(name);
    const std::string stands = name_of_(name);
    double value = 0;
    return absl::SimpleAtod(stands, &value) ? Constant(value) : Part{stands, std::nullopt};
  }

  Part Number() {
    const size_t begin = at_;
    const auto digits = [&] {
      while (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.')) ++at_;
    };
    digits();
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      digits();
    }
    double value = 0;
    if (!absl::SimpleAtod(text_.substr(begin, at_ - begin), &value)) return Fail();
    return Constant(value);
  }

  Part Call(const std::string& function) {
    static const auto& functions = *new std::map<std::string, std::string>{
        {"ceil_div", "CeilDiv"}, {"min", "Min"},        {"max", "Max"},          {"abs", "std::fabs"},
        {"floor", "std::floor"}, {"ceil", "std::ceil"}, {"round", "std::round"}, {"sqrt", "std::sqrt"},
        {"log2", "std::log2"},   {"pow", "std::pow"}};
    const auto found = functions.find(function);
    if (found == functions.end()) return Fail();
    std::vector<std::string> arguments;
    do {
      arguments.push_back(Choice().text);
    } while (!failed_ && Take(","));
    if (!Take(")")) return Fail();
    const bool list = function == "min" || function == "max";
    return {absl::StrCat(found->second, list ? "({" : "(", absl::StrJoin(arguments, ", "), list ? "})" : ")"),
            std::nullopt};
  }

  const std::string& text_;
  const std::function<std::string(const std::string&)>& name_of_;
  size_t at_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

}  // namespace

absl::StatusOr<std::string> HostExpression(const std::string& expression,
                                           const std::function<std::string(const std::string&)>& name_of) {
  return HostExpressionParser(expression, name_of).Parse();
}

}  // namespace pawl
