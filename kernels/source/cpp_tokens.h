// The tokens of a C++ source, as its compiler sees them before preprocessing: what blanks host code, writes values into
// a source and reads launches out of it goes by tokens, so that comments and strings never mislead it.
#pragma once

#include <string_view>
#include <vector>

namespace pawl {

struct CppToken {
  enum class Kind { kWord, kNumber, kString, kCharacter, kPunctuation, kDirective };

  Kind kind = Kind::kPunctuation;
  std::string_view text;  // of the source, which must outlive it; a directive is its whole line with continuations
  size_t offset = 0;
  int line = 1;

  bool Is(std::string_view other) const { return text == other; }
  bool IsWord() const { return kind == Kind::kWord; }
};

// Comments are left out. `>` always stands alone, so that nested template arguments need no care; `<<<` is one token.
// Any bytes at all give tokens: what is none in C++ is punctuation.
std::vector<CppToken> CppTokens(std::string_view source);

// The tokens of one directive, the # included.
std::vector<CppToken> DirectiveTokens(const CppToken& directive);

// The index of the bracket that closes the (, [ or { at `open`; tokens.size(): none does. Of #if ... #else ... #endif
// only the first branch counts, since both may open what is closed once.
size_t ClosingBracket(const std::vector<CppToken>& tokens, size_t open);

// The same for every token at once; tokens.size() for those that open nothing. Branches each begin as the first does.
std::vector<size_t> ClosingBrackets(const std::vector<CppToken>& tokens);

// For each token: whether it is in the first branch of every #if ... #else ... #endif around it.
std::vector<bool> InFirstBranch(const std::vector<CppToken>& tokens);

}  // namespace pawl
