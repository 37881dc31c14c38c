#include "cli/draft/read/class_constants.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/draft/read/translation.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

constexpr int kMaxConstants = 8;  // from a constant to those that it is made of

// Traits<64, 4> as Traits and its arguments.
struct NamedType {
  std::string name;
  std::vector<std::string> arguments;
};

NamedType NamedTypeOf(const std::string& text) {
  NamedType type;
  const std::vector<CppToken> tokens = CppTokens(text);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].Is("typename") || tokens[i].Is("struct") || tokens[i].Is("const")) continue;
    if (tokens[i].IsWord()) type.name = tokens[i].text;  // without its namespaces
    if (!tokens[i].Is("<")) continue;
    size_t close = tokens.size() - 1;
    while (close > i && !tokens[close].Is(">")) --close;
    for (const auto& [from, to] : SplitAtCommas(tokens, i + 1, close))
      type.arguments.push_back(TokensText(tokens, from, to));
    break;
  }
  return type;
}

// A class with a body.
struct ClassText {
  const std::vector<CppToken>* tokens = nullptr;
  size_t body = 0;                      // its {
  std::vector<std::string> parameters;  // of its template
  std::vector<std::string> defaults;    // of each parameter; empty: none
  bool is_template = false;
  std::vector<std::string> special;  // the arguments of a specialisation
};

std::vector<ClassText> ClassesOf(const SourceModel& model, const std::string& name) {
  std::vector<ClassText> classes;
  for (const std::unique_ptr<SourceText>& file : model.files) {
    const std::vector<CppToken>& tokens = file->tokens;
    for (size_t i = 0; i + 2 < tokens.size(); ++i) {
      if ((!tokens[i].Is("struct") && !tokens[i].Is("class")) || !tokens[i + 1].Is(name)) continue;
      if (i > 0 && (tokens[i - 1].Is("<") || tokens[i - 1].Is(",") || tokens[i - 1].Is("enum"))) continue;
      ClassText found;
      found.tokens = &tokens;
      size_t at = i + 2;
      if (tokens[at].Is("<")) {
        size_t close = at;
        while (close < tokens.size() && !tokens[close].Is("{") && !tokens[close].Is(";")) ++close;
        while (close > at && !tokens[close].Is(">")) --close;
        for (const auto& [from, to] : SplitAtCommas(tokens, at + 1, close))
          found.special.push_back(TokensText(tokens, from, to));
        at = close + 1;
      }
      while (at < tokens.size() && !tokens[at].Is("{") && !tokens[at].Is(";")) ++at;
      if (at >= tokens.size() || !tokens[at].Is("{")) continue;
      found.body = at;
      size_t open = i;  // template <int A, int B>
      while (open > 0 && !tokens[open - 1].Is(";") && !tokens[open - 1].Is("}") && !tokens[open].Is("template")) --open;
      if (tokens[open].Is("template") && open + 1 < i && tokens[open + 1].Is("<")) {
        found.is_template = true;
        size_t close = i;
        while (close > open && !tokens[close].Is(">")) --close;
        for (const auto& [from, to] : SplitAtCommas(tokens, open + 2, close)) {
          size_t end = from;
          while (end < to && !tokens[end].Is("=")) ++end;
          if (end == from) continue;
          found.parameters.emplace_back(tokens[end - 1].text);
          found.defaults.push_back(end < to ? TokensText(tokens, end + 1, to) : "");
        }
      }
      classes.push_back(std::move(found));
    }
  }
  return classes;
}

class Constants {
 public:
  Constants(const SourceModel& model, const TypeMeaning& meaning) : model_(model), meaning_(meaning) {}

  CppExpression Written(const CppExpression& e, int steps = 0) const {
    if (steps > kMaxConstants) return e;
    const size_t colons = e.kind == Kind::kName ? e.text.rfind("::") : std::string::npos;
    if (colons != std::string::npos && colons > 0) {
      std::string type = e.text.substr(0, colons);
      if (!e.template_arguments.empty()) absl::StrAppend(&type, "<", absl::StrJoin(e.template_arguments, ", "), ">");
      return Of(type, e.text.substr(colons + 2), steps).value_or(e);
    }
    CppExpression result = e;
    for (CppExpression& part : result.parts) part = Written(part, steps);
    return result;
  }

 private:
  std::optional<CppExpression> Of(std::string type, const std::string& name, int steps) const {
    for (int step = 0; step < kMaxConstants; ++step) {
      const std::string meant = meaning_(type);
      if (meant.empty() || meant == type) break;
      type = meant;
    }
    NamedType wanted = NamedTypeOf(type);
    for (std::string& argument : wanted.arguments) {
      if (const std::string meant = meaning_(argument); !meant.empty()) argument = meant;
    }
    const std::vector<ClassText> classes = ClassesOf(model_, wanted.name);
    const ClassText* primary = nullptr;
    bool other = false;
    for (const ClassText& own : classes) {
      if (!own.special.empty() && own.special == wanted.arguments) return In(own, wanted, name, steps);
      if (own.special.empty()) {
        if (primary == nullptr) primary = &own;
      } else {
        other = other || MayBe(own, wanted.arguments);
      }
    }
    return primary == nullptr || other ? std::nullopt : In(*primary, wanted, name, steps);
  }

  // Whether the arguments, which are not those of the specialisation as they are written, may mean the same.
  static bool MayBe(const ClassText& own, const std::vector<std::string>& arguments) {
    if (!own.parameters.empty() || own.special.size() != arguments.size()) return true;
    const auto number = [](const std::string& text) { return WholeNumber(text).has_value(); };
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (own.special[i] != arguments[i] && number(own.special[i]) == number(arguments[i])) return false;
    }
    return true;
  }

  std::optional<CppExpression> In(const ClassText& own, const NamedType& type, const std::string& name,
                                  int steps) const {
    const std::vector<CppToken>& tokens = *own.tokens;
    const size_t close = ClosingBracket(tokens, own.body);
    size_t at = 0;
    for (size_t i = own.body + 1; i + 1 < close; ++i) {
      if (tokens[i].Is("{") && !tokens[i - 1].Is("enum") && !(i > 1 && tokens[i - 2].Is("enum"))) {
        i = ClosingBracket(tokens, i);  // a function's
        continue;
      }
      if (!tokens[i].Is(name) || !tokens[i + 1].Is("=") || !IsConstant(tokens, own.body, i)) continue;
      if (at != 0) return std::nullopt;  // another one under #else
      at = i;
    }
    if (at == 0) return std::nullopt;
    size_t end = at + 2;
    while (end < close && !tokens[end].Is(";") && !tokens[end].Is(",") && !tokens[end].Is("}"))
      end = tokens[end].Is("(") || tokens[end].Is("{") ? ClosingBracket(tokens, end) + 1 : end + 1;
    const std::optional<CppExpression> value = ParseCppExpression(tokens, at + 2, end);
    if (!value) return std::nullopt;
    const auto named = std::count_if(model_.constants.begin(), model_.constants.end(),
                                     [&](const SourceConstant& constant) { return constant.name == name; });
    if (value->kind == Kind::kNumber && named == 1) {
      CppExpression kept;
      kept.kind = Kind::kName;
      kept.text = name;
      return kept;
    }
    std::map<std::string, CppExpression> arguments;
    for (size_t k = 0; k < own.parameters.size() && own.special.empty(); ++k) {
      const bool given = k < type.arguments.size();
      const std::vector<CppToken> words = CppTokens(given ? type.arguments[k] : own.defaults[k]);
      std::optional<CppExpression> argument = ParseCppExpression(words, 0, words.size());
      if (!argument) argument = Unknown(own.parameters[k]);
      arguments[own.parameters[k]] = given ? *argument : Substituted(*argument, arguments);
    }
    return Members(*value, own, type, arguments, steps + 1);
  }

  static CppExpression Unknown(const std::string& name) {
    CppExpression unknown;
    unknown.kind = Kind::kOther;
    unknown.text = name;
    return unknown;
  }

  // Other constants of the class, and its parameters. What the arguments are made of is not the class's.
  CppExpression Members(const CppExpression& e, const ClassText& own, const NamedType& type,
                        const std::map<std::string, CppExpression>& arguments, int steps) const {
    if (steps > kMaxConstants) return e;
    if (e.kind == Kind::kName) {
      if (const auto argument = arguments.find(e.text); argument != arguments.end()) return argument->second;
      if (absl::StrContains(e.text, "::")) return Written(WithMembers(e, own, arguments), steps + 1);
      if (std::optional<CppExpression> member = In(own, type, e.text, steps); member && !member->IsName(e.text))
        return *member;
      // What the host function has by this name is not what the class means.
      const bool known = e.text == "true" || e.text == "false" || model_.FindConstant(e.text) != nullptr;
      return known ? e : Unknown(e.text);
    }
    if (e.kind == Kind::kCall && e.parts[0].IsName("sizeof")) return Substituted(e, arguments);
    CppExpression result = e;
    for (size_t i = e.kind == Kind::kCall ? 1 : 0; i < e.parts.size(); ++i)
      result.parts[i] = Members(e.parts[i], own, type, arguments, steps);
    return result;
  }

  // B::kM, where the class has `using B = Base<kM_>`, with the class's own arguments.
  static CppExpression WithMembers(const CppExpression& e, const ClassText& own,
                                   const std::map<std::string, CppExpression>& arguments) {
    const auto with_arguments = [&](const std::string& text) {
      std::string written;
      for (const CppToken& token : CppTokens(text)) {
        const auto argument = arguments.find(std::string(token.text));
        absl::StrAppend(&written, argument == arguments.end() ? std::string(token.text) : CppText(argument->second));
      }
      return written;
    };
    CppExpression result = e;
    const size_t colons = e.text.rfind("::");
    const std::string alias =
        AliasIn(*own.tokens, own.body, ClosingBracket(*own.tokens, own.body), e.text.substr(0, colons));
    if (!alias.empty()) {
      const NamedType type = NamedTypeOf(alias);
      result.text = absl::StrCat(type.name, e.text.substr(colons));
      result.template_arguments = type.arguments;
    }
    for (std::string& argument : result.template_arguments) argument = with_arguments(argument);
    return result;
  }

  // static constexpr int NAME = ..., enum { NAME = ... }
  static bool IsConstant(const std::vector<CppToken>& tokens, size_t body, size_t at) {
    for (size_t i = at; i > body; --i) {
      const CppToken& before = tokens[i - 1];
      if (before.Is("constexpr") || before.Is("const") || before.Is("enum")) return true;
      if (before.Is(";") || before.Is("}") || before.Is(")")) return false;
    }
    return false;
  }

  const SourceModel& model_;
  const TypeMeaning& meaning_;
};

}  // namespace

CppExpression WithClassConstants(const CppExpression& expression, const SourceModel& model,
                                 const TypeMeaning& meaning) {
  return Constants(model, meaning).Written(expression);
}

std::string AliasIn(const std::vector<CppToken>& tokens, size_t begin, size_t end, const std::string& name) {
  for (size_t i = begin; i + 3 < end; ++i) {
    if (!tokens[i].Is("using") && !tokens[i].Is("typedef")) continue;
    size_t close = i;
    while (close < end && !tokens[close].Is(";")) ++close;
    if (tokens[i].Is("using") && tokens[i + 1].Is(name) && tokens[i + 2].Is("="))
      return TokensText(tokens, i + 3, close);
    if (tokens[i].Is("typedef") && close > i + 2 && tokens[close - 1].Is(name))
      return TokensText(tokens, i + 1, close - 1);
    i = close;
  }
  return "";
}

}  // namespace pawl
