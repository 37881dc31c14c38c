#include "cli/draft/read/macros.h"

#include <algorithm>

#include "cli/draft/read/cpp_expression.h"

namespace pawl {
namespace {

constexpr int kMaxExpansions = 12;        // in each other
constexpr size_t kMaxTokens = 3'000'000;  // of a file after expansion

// 256, (8 * WARPS), -1: arithmetic over numbers and names in capitals.
bool IsConstant(const std::vector<CppToken>& body) {
  return std::all_of(body.begin(), body.end(), [](const CppToken& token) {
    if (token.kind == CppToken::Kind::kNumber) return true;
    if (token.IsWord()) {
      return std::none_of(token.text.begin(), token.text.end(), [](char c) { return c >= 'a' && c <= 'z'; }) ||
             token.Is("sizeof");
    }
    return token.kind == CppToken::Kind::kPunctuation && !token.Is("{") && !token.Is(";") && !token.Is(",");
  });
}

}  // namespace

void MacroTable::Read(const CppToken& directive) {
  const std::vector<CppToken> tokens = DirectiveTokens(directive);
  if (tokens.size() < 3 || !tokens[2].IsWord()) return;
  const std::string name(tokens[2].text);
  if (tokens[1].Is("undef")) {
    macros_.erase(name);
    return;
  }
  if (!tokens[1].Is("define")) return;
  Macro macro;
  size_t body = 3;
  if (tokens.size() > 3 && tokens[3].Is("(") && tokens[3].offset == tokens[2].offset + tokens[2].text.size()) {
    macro.function = true;
    const size_t close = ClosingBracket(tokens, 3);
    for (const auto& [from, to] : SplitAtCommas(tokens, 4, std::min(close, tokens.size()))) {
      macro.parameters.push_back(TokensText(tokens, from, to));
    }
    body = close + 1;
  }
  if (body < tokens.size()) macro.body.assign(tokens.begin() + static_cast<std::ptrdiff_t>(body), tokens.end());
  const bool pastes = std::any_of(macro.body.begin(), macro.body.end(),
                                  [](const CppToken& token) { return token.Is("#") || token.Is("##"); });
  if (pastes || (!macro.function && IsConstant(macro.body))) return;
  macros_[name] = std::move(macro);
}

std::vector<CppToken> MacroTable::Expand(const std::vector<CppToken>& tokens) const {
  std::vector<CppToken> out;
  Expand(tokens, 0, tokens.size(), 0, out);
  return out;
}

void MacroTable::Expand(const std::vector<CppToken>& tokens, size_t begin, size_t end, int depth,
                        std::vector<CppToken>& out) const {
  for (size_t i = begin; i < end && out.size() < kMaxTokens; ++i) {
    const CppToken& token = tokens[i];
    if (token.kind == CppToken::Kind::kDirective) {
      const std::vector<CppToken> words = DirectiveTokens(token);
      if (words.size() > 1 && words[1].Is("pragma")) out.push_back(token);
      continue;
    }
    const auto found = token.IsWord() && depth < kMaxExpansions ? macros_.find(token.text) : macros_.end();
    if (found == macros_.end()) {
      out.push_back(token);
      continue;
    }
    const Macro& macro = found->second;
    std::vector<CppToken> body = macro.body;
    if (macro.function) {
      if (i + 1 >= end || !tokens[i + 1].Is("(")) {
        out.push_back(token);
        continue;
      }
      const size_t close = ClosingBracket(tokens, i + 1);
      if (close >= end) {
        out.push_back(token);
        continue;
      }
      const auto ranges = SplitAtCommas(tokens, i + 2, close);
      body.clear();
      for (const CppToken& word : macro.body) {
        const auto parameter = std::find_if(
            macro.parameters.begin(), macro.parameters.end(),
            [&](const std::string& p) { return p == word.text || (p == "..." && word.text == "__VA_ARGS__"); });
        const size_t which = static_cast<size_t>(parameter - macro.parameters.begin());
        if (parameter == macro.parameters.end() || which >= ranges.size()) {
          body.push_back(word);
          continue;
        }
        const size_t to = *parameter == "..." ? close : ranges[which].second;
        for (size_t k = ranges[which].first; k < to; ++k) body.push_back(tokens[k]);
      }
      i = close;
    }
    for (CppToken& word : body) {
      word.offset = token.offset;
      word.line = token.line;
    }
    // A macro does not expand itself: what is left of it at the end of the depth stays.
    Expand(body, 0, body.size(), depth + 1, out);
  }
}

}  // namespace pawl
