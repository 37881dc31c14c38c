#include "cli/draft/read/cpp_statement.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

using StatementKind = CppStatement::Kind;
using Words = std::set<std::string_view>;

constexpr int kMaxNesting = 200;

class BodyParser {
 public:
  explicit BodyParser(const std::vector<CppToken>& tokens) : tokens_(tokens) {}

  std::vector<CppStatement> Statements(size_t at, size_t end) {
    std::vector<CppStatement> statements;
    if (nesting_ > kMaxNesting) return statements;
    ++nesting_;
    while (at < end) {
      if (tokens_[at].kind == CppToken::Kind::kDirective || Is(at, ";")) {
        ++at;
        continue;
      }
      CppStatement statement = Statement(at, end);
      at = std::max(statement.end, at + 1);
      statements.push_back(std::move(statement));
    }
    --nesting_;
    return statements;
  }

 private:
  bool Is(size_t at, std::string_view text) const { return at < tokens_.size() && tokens_[at].Is(text); }

  CppStatement Made(StatementKind kind, size_t begin) const {
    CppStatement made;
    made.kind = kind;
    made.begin = begin;
    made.line = tokens_[begin].line;
    return made;
  }

  // The index of the ; that ends what begins at `at`, or `end`.
  size_t Semicolon(size_t at, size_t end) const {
    for (; at < end; ++at) {
      if (Is(at, ";")) return at;
      if (Is(at, "(") || Is(at, "[") || Is(at, "{")) at = std::min(ClosingBracket(tokens_, at), end);
    }
    return end;
  }

  void AddExpression(size_t begin, size_t end, std::vector<CppExpression>& list) const {
    for (const auto& [from, to] : SplitAtCommas(tokens_, begin, end)) {
      std::optional<CppExpression> expression = ParseCppExpression(tokens_, from, to);
      if (!expression) {
        expression.emplace();
        expression->text = TokensText(tokens_, from, to);
      }
      list.push_back(*std::move(expression));
    }
  }

  size_t SkipDirectives(size_t at, size_t end) const {
    while (at < end && tokens_[at].kind == CppToken::Kind::kDirective) ++at;
    return at;
  }

  // Adds the statement at `at` to the parent's body; answers where it ends.
  size_t AddBody(size_t at, size_t end, CppStatement& parent) {
    at = SkipDirectives(at, end);
    if (at >= end || nesting_ > kMaxNesting) return end;
    ++nesting_;
    parent.body.push_back(Statement(at, end));
    --nesting_;
    return std::max(parent.body.back().end, at + 1);
  }

  CppStatement Statement(size_t at, size_t end) {
    if (Is(at, "{")) {
      CppStatement block = Made(StatementKind::kBlock, at);
      const size_t close = std::min(ClosingBracket(tokens_, at), end);
      block.body = Statements(at + 1, close);
      block.end = close + 1;
      return block;
    }
    if (Is(at, "if") || Is(at, "while") || Is(at, "switch")) return Conditional(at, end);
    if (Is(at, "for") && Is(at + 1, "(")) return For(at, end);
    if (Is(at, "do")) {
      CppStatement loop = Made(StatementKind::kWhile, at);
      loop.end = Semicolon(AddBody(at + 1, end, loop), end) + 1;
      return loop;
    }
    if (Is(at, "else")) {  // of an #if that has the `if`
      CppStatement block = Made(StatementKind::kBlock, at);
      block.end = AddBody(at + 1, end, block);
      return block;
    }
    if (Is(at, "case") || Is(at, "default")) {
      const size_t value = at + 1;
      while (at < end && !Is(at, ":")) ++at;
      CppStatement label = Made(StatementKind::kCase, std::min(at, end - 1));
      if (value < at) AddExpression(value, at, label.expressions);
      label.end = at + 1;
      return label;
    }
    if (Is(at, "return") || Is(at, "break") || Is(at, "continue")) {
      CppStatement jump = Made(Is(at, "return") ? StatementKind::kReturn : StatementKind::kJump, at);
      const size_t close = Semicolon(at, end);
      if (Is(at, "return") && close > at + 1) AddExpression(at + 1, close, jump.expressions);
      jump.end = close + 1;
      return jump;
    }
    return Simple(at, end);
  }

  CppStatement Conditional(size_t at, size_t end) {
    const bool is_if = Is(at, "if");
    CppStatement made = Made(is_if             ? StatementKind::kIf
                             : Is(at, "while") ? StatementKind::kWhile
                                               : StatementKind::kSwitch,
                             at);
    size_t open = at + 1;
    if (Is(open, "constexpr")) ++open;
    if (!Is(open, "(")) {
      made.end = Semicolon(at, end) + 1;
      return made;
    }
    const size_t close = std::min(ClosingBracket(tokens_, open), end);
    AddExpression(open + 1, close, made.expressions);
    made.end = AddBody(close + 1, end, made);
    const size_t next = SkipDirectives(made.end, end);
    if (is_if && next < end && Is(next, "else")) made.end = AddBody(next + 1, end, made);
    return made;
  }

  CppStatement For(size_t at, size_t end) {
    CppStatement made = Made(StatementKind::kFor, at);
    const size_t close = std::min(ClosingBracket(tokens_, at + 1), end);
    const size_t first = std::min(Semicolon(at + 2, close), close);
    if (first == close) {  // for (x : range)
      made.body.push_back(Made(StatementKind::kOther, at));
      made.end = AddBody(close + 1, end, made);
      return made;
    }
    made.body.push_back(first > at + 2 ? Simple(at + 2, first) : Made(StatementKind::kOther, at));
    const size_t second = std::min(Semicolon(first + 1, close), close);
    made.has_condition = second > first + 1;
    if (made.has_condition) {
      std::optional<CppExpression> condition = ParseCppExpression(tokens_, first + 1, second);
      made.expressions.push_back(condition.value_or(CppExpression{}));
    }
    if (close > second + 1) AddExpression(second + 1, close, made.expressions);
    made.end = AddBody(close + 1, end, made);
    return made;
  }

  // A declaration or an expression, up to its ;
  CppStatement Simple(size_t at, size_t end) {
    const size_t close = Semicolon(at, end);
    CppStatement made = Made(StatementKind::kExpression, at);
    // NAME(...) { : a macro that stands for a loop.
    if (tokens_[at].IsWord() && Is(at + 1, "(")) {
      const size_t bracket = ClosingBracket(tokens_, at + 1);
      if (bracket + 1 < close && Is(bracket + 1, "{")) {
        AddExpression(at, bracket + 1, made.expressions);
        made.kind = StatementKind::kWhile;
        made.end = AddBody(bracket + 1, end, made);
        return made;
      }
    }
    made.end = close + 1;
    if (Declaration(at, close, made)) return made;
    AddExpression(at, close, made.expressions);
    return made;
  }

  // Behind the type that begins here; 0: no type does.
  size_t TypeEnd(size_t at, size_t end) const {
    static const auto& specifiers = *new Words{
        "const",    "constexpr",    "static",  "volatile", "extern",       "__shared__",   "register", "inline",
        "typename", "__restrict__", "mutable", "struct",   "thread_local", "__constant__", "__align__"};
    static const auto& many = *new Words{"unsigned", "signed", "long", "short", "int", "char", "double", "float"};
    bool named = false;
    while (at < end && tokens_[at].IsWord()) {
      const std::string_view word = tokens_[at].text;
      if (word == "alignas" || word == "__align__") {
        if (!Is(at + 1, "(")) return 0;
        at = ClosingBracket(tokens_, at + 1) + 1;
      } else if (specifiers.contains(word)) {
        ++at;
      } else if (many.contains(word)) {
        named = true;
        ++at;
      } else if (!named) {
        named = true;
        for (;;) {
          ++at;
          if (at < end && Is(at, "<")) {
            const size_t behind = SkipTemplateArguments(tokens_, at, end);
            if (behind == at) return 0;
            at = behind;
          }
          if (at + 1 >= end || !Is(at, "::") || !tokens_[at + 1].IsWord()) break;
          ++at;
        }
      } else {
        break;  // the name
      }
    }
    return named ? at : 0;
  }

  bool Declaration(size_t at, size_t end, CppStatement& made) const {
    static const auto& never = *new Words{"delete", "new",    "throw",         "goto", "using", "typedef",
                                          "asm",    "sizeof", "static_assert", "this", "printf"};
    if (!tokens_[at].IsWord() || never.contains(tokens_[at].text)) return false;
    const size_t type_end = TypeEnd(at, end);
    if (type_end == 0 || type_end >= end) return false;
    const std::string type = TokensText(tokens_, at, type_end);
    std::vector<CppDeclarator> declared;
    for (size_t i = type_end; i < end;) {
      CppDeclarator declarator;
      declarator.type = type;
      for (; i < end; ++i) {
        if (Is(i, "*")) {
          declarator.pointer = true;
        } else if (Is(i, "&") || Is(i, "&&")) {
          declarator.reference = true;
        } else if (!Is(i, "const") && !Is(i, "__restrict__") && !Is(i, "__restrict") && !Is(i, "restrict")) {
          break;
        }
      }
      if (i >= end || !tokens_[i].IsWord()) return false;
      declarator.name = tokens_[i++].text;
      while (i < end && Is(i, "[")) {
        declarator.array = true;
        i = ClosingBracket(tokens_, i) + 1;
      }
      size_t stop = i;
      while (stop < end && !Is(stop, ",")) {
        if (Is(stop, "(") || Is(stop, "[") || Is(stop, "{")) {
          stop = ClosingBracket(tokens_, stop);
        } else if (Is(stop, "<") && tokens_[stop - 1].IsWord()) {
          const size_t behind = SkipTemplateArguments(tokens_, stop, end);
          if (behind > stop) stop = behind - 1;
        }
        ++stop;
      }
      stop = std::min(stop, end);
      if (i < stop) {
        if (Is(i, "=")) {
          declarator.assigned = true;
          AddExpression(i + 1, stop, declarator.initial);
        } else if ((Is(i, "(") || Is(i, "{")) && ClosingBracket(tokens_, i) + 1 == stop) {
          if (stop - 1 > i + 1) AddExpression(i + 1, stop - 1, declarator.initial);
        } else {
          return false;
        }
      }
      declared.push_back(std::move(declarator));
      i = stop + 1;
    }
    if (declared.empty()) return false;
    made.kind = StatementKind::kDeclaration;
    made.declared = std::move(declared);
    return true;
  }

  const std::vector<CppToken>& tokens_;
  int nesting_ = 0;
};

}  // namespace

std::vector<CppStatement> ParseCppBody(const std::vector<CppToken>& tokens, size_t open) {
  return BodyParser(tokens).Statements(open + 1, std::min(ClosingBracket(tokens, open), tokens.size()));
}

}  // namespace pawl
