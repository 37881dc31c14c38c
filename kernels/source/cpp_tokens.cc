#include "kernels/source/cpp_tokens.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace pawl {
namespace {

// A byte above 0x7f is part of a letter in UTF-8.
bool StartsWord(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalpha(byte) || c == '_' || c == '$' || byte > 0x7f;
}
bool GoesOnInWord(char c) { return StartsWord(c) || std::isdigit(static_cast<unsigned char>(c)); }
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

constexpr std::array<std::string_view, 24> kLongPunctuation = {"<<<", "<<=", "...", "->*", "::", "->", "++", "--",
                                                               "<<",  "<=",  ">=",  "==",  "!=", "&&", "||", "+=",
                                                               "-=",  "*=",  "/=",  "%=",  "&=", "|=", "^=", "##"};

class Lexer {
 public:
  Lexer(std::string_view source, bool in_directive) : source_(source), in_directive_(in_directive) {}

  std::vector<CppToken> Run() {
    while (SkipBlank()) {
      const size_t begin = at_;
      const int line = line_;
      const CppToken::Kind kind = Next();
      tokens_.push_back({kind, source_.substr(begin, at_ - begin), begin, line});
      line_begins_ = false;
    }
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  bool Has(std::string_view text) const { return source_.substr(at_, text.size()) == text; }

  void Advance(size_t count) {
    for (size_t i = 0; i < count && at_ < source_.size(); ++i) {
      if (source_[at_++] == '\n') ++line_;
    }
  }

  // A line that goes on: 2 or 3 characters, otherwise 0.
  size_t Continuation() const { return Has("\\\n") ? 2 : Has("\\\r\n") ? 3 : 0; }

  void SkipLine() {
    while (at_ < source_.size() && Peek() != '\n') Advance(Continuation() != 0 ? Continuation() : 1);
  }

  void SkipComment() {
    const size_t end = source_.find("*/", at_ + 2);
    Advance((end == std::string_view::npos ? source_.size() : end + 2) - at_);
  }

  // To the next token; false: there is none.
  bool SkipBlank() {
    while (at_ < source_.size()) {
      if (Peek() == '\n') {
        line_begins_ = true;
        Advance(1);
      } else if (std::isspace(static_cast<unsigned char>(Peek()))) {
        Advance(1);
      } else if (Continuation() != 0) {
        Advance(Continuation());
      } else if (Has("//")) {
        SkipLine();
      } else if (Has("/*")) {
        SkipComment();
      } else if (at_ == 0 && Has("\xef\xbb\xbf")) {
        Advance(3);  // the mark of UTF-8
      } else {
        return true;
      }
    }
    return false;
  }

  // The quote stands at the start. An unfinished one ends with its line.
  void Quoted(char quote) {
    Advance(1);
    while (at_ < source_.size() && Peek() != quote && Peek() != '\n') Advance(Peek() == '\\' ? 2 : 1);
    if (Peek() == quote) Advance(1);
  }

  // R"delimiter( ... )delimiter"
  void RawString() {
    const size_t open = source_.find('(', at_);
    if (open == std::string_view::npos || open - at_ > 20) return Quoted('"');
    const std::string end = ")" + std::string(source_.substr(at_ + 1, open - at_ - 1)) + "\"";
    const size_t found = source_.find(end, open);
    Advance((found == std::string_view::npos ? source_.size() : found + end.size()) - at_);
  }

  void Directive() {
    while (at_ < source_.size() && Peek() != '\n') {
      if (Continuation() != 0) {
        Advance(Continuation());
      } else if (Has("//")) {
        SkipLine();
      } else if (Has("/*")) {
        SkipComment();
      } else if (Peek() == '"' || Peek() == '\'') {
        Quoted(Peek());
      } else {
        Advance(1);
      }
    }
  }

  void Number() {
    while (at_ < source_.size()) {
      const char c = Peek(), before = source_[at_ - 1];
      const bool sign = (c == '+' || c == '-') && (before == 'e' || before == 'E' || before == 'p' || before == 'P') &&
                        !(source_.substr(start_, 2) == "0x" && (before == 'e' || before == 'E'));
      const bool separator = c == '\'' && GoesOnInWord(Peek(1));
      if (!GoesOnInWord(c) && c != '.' && !sign && !separator) return;
      Advance(1);
    }
  }

  CppToken::Kind Next() {
    using Kind = CppToken::Kind;
    start_ = at_;
    const char c = Peek();
    if (c == '#' && line_begins_ && !in_directive_) {
      Directive();
      return Kind::kDirective;
    }
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) {
      Advance(1);
      Number();
      return Kind::kNumber;
    }
    if (StartsWord(c)) {
      while (GoesOnInWord(Peek())) Advance(1);
      const std::string_view word = source_.substr(start_, at_ - start_);
      if (Peek() == '"' && (word == "R" || word == "u8R" || word == "uR" || word == "UR" || word == "LR")) {
        RawString();
        return Kind::kString;
      }
      if (Peek() == '"' && (word == "u8" || word == "u" || word == "U" || word == "L")) {
        Quoted('"');
        return Kind::kString;
      }
      return Kind::kWord;
    }
    if (c == '"' || c == '\'') {
      Quoted(c);
      return c == '"' ? Kind::kString : Kind::kCharacter;
    }
    for (const std::string_view punctuation : kLongPunctuation) {
      if (!Has(punctuation)) continue;
      Advance(punctuation.size());
      return Kind::kPunctuation;
    }
    Advance(1);
    return Kind::kPunctuation;
  }

  std::string_view source_;
  bool in_directive_;
  std::vector<CppToken> tokens_;
  size_t at_ = 0, start_ = 0;
  int line_ = 1;
  bool line_begins_ = true;
};

// Which branch of the #ifs around a token it is in.
class SkippedBranches {
 public:
  void Pass(const CppToken& directive) {
    const std::vector<CppToken> tokens = DirectiveTokens(directive);
    const std::string_view name = tokens.size() < 2 ? std::string_view() : tokens[1].text;
    if (name == "if" || name == "ifdef" || name == "ifndef") {
      later_.push_back(false);
    } else if ((name == "else" || name == "elif") && !later_.empty() && !later_.back()) {
      later_.back() = true;
      ++others_;
    } else if (name == "endif" && !later_.empty()) {
      if (later_.back()) --others_;
      later_.pop_back();
    }
  }
  bool in_first() const { return others_ == 0; }

 private:
  std::vector<bool> later_;  // of each #if that is open: whether its #else was seen
  int others_ = 0;           // so many of them
};

}  // namespace

std::vector<CppToken> CppTokens(std::string_view source) { return Lexer(source, false).Run(); }

std::vector<CppToken> DirectiveTokens(const CppToken& directive) {
  std::vector<CppToken> tokens = Lexer(directive.text, true).Run();
  for (CppToken& token : tokens) {
    token.offset += directive.offset;
    token.line += directive.line - 1;
  }
  return tokens;
}

std::vector<bool> InFirstBranch(const std::vector<CppToken>& tokens) {
  std::vector<bool> first;
  SkippedBranches branches;
  for (const CppToken& token : tokens) {
    if (token.kind == CppToken::Kind::kDirective) branches.Pass(token);
    first.push_back(token.kind == CppToken::Kind::kDirective || branches.in_first());
  }
  return first;
}

size_t ClosingBracket(const std::vector<CppToken>& tokens, size_t open) {
  int depth = 0;
  SkippedBranches branches;
  for (size_t i = open; i < tokens.size(); ++i) {
    const CppToken& token = tokens[i];
    if (token.kind == CppToken::Kind::kDirective) branches.Pass(token);
    if (!branches.in_first() || token.kind != CppToken::Kind::kPunctuation || token.text.size() != 1) continue;
    const char c = token.text[0];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && --depth <= 0) return i;
  }
  return tokens.size();
}

std::vector<size_t> ClosingBrackets(const std::vector<CppToken>& tokens) {
  constexpr size_t kNone = static_cast<size_t>(-1);
  std::vector<size_t> closing(tokens.size(), tokens.size());
  std::vector<size_t> around(tokens.size(), kNone);  // of each opening bracket: the one that it stands in
  size_t innermost = kNone;
  struct Branches {
    size_t before, behind;  // the innermost bracket before the #if, and behind its first branch
    bool later = false;
  };
  std::vector<Branches> open;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const CppToken& token = tokens[i];
    if (token.kind == CppToken::Kind::kDirective) {
      const std::vector<CppToken> words = DirectiveTokens(token);
      const std::string_view name = words.size() < 2 ? std::string_view() : words[1].text;
      if (name == "if" || name == "ifdef" || name == "ifndef") {
        open.push_back({innermost, innermost});
      } else if ((name == "else" || name == "elif") && !open.empty()) {
        if (!open.back().later) open.back().behind = innermost;
        open.back().later = true;
        innermost = open.back().before;
      } else if (name == "endif" && !open.empty()) {
        if (open.back().later) innermost = open.back().behind;
        open.pop_back();
      }
    }
    if (token.kind != CppToken::Kind::kPunctuation || token.text.size() != 1) continue;
    const char c = token.text[0];
    if (c == '(' || c == '[' || c == '{') {
      around[i] = innermost;
      innermost = i;
    }
    if ((c != ')' && c != ']' && c != '}') || innermost == kNone) continue;
    closing[innermost] = std::min(closing[innermost], i);
    innermost = around[innermost];
  }
  return closing;
}

}  // namespace pawl
