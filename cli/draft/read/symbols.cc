// ReadSymbols, declared in source_model.h: variables of the device that the host may fill.
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/draft/read/source_model.h"

namespace pawl {
namespace {

bool IsAlignment(const CppToken& token) { return token.Is("__align__") || token.Is("alignas"); }

// Behind what stands before the type: __constant__ static const __align__(16)
size_t SkipQualifiers(const std::vector<CppToken>& tokens, size_t at, size_t end) {
  static const auto& qualifiers = *new std::set<std::string_view>{"__constant__", "__device__", "static",  "extern",
                                                                  "const",        "volatile",   "typename"};
  while (at < end) {
    if (IsAlignment(tokens[at]) && at + 1 < end && tokens[at + 1].Is("(")) {
      at = ClosingBracket(tokens, at + 1) + 1;
    } else if (qualifiers.contains(tokens[at].text)) {
      ++at;
    } else {
      break;
    }
  }
  return at;
}

class SymbolReader {
 public:
  SymbolReader(SourceModel& model, const std::vector<CppToken>& tokens) : model_(model), tokens_(tokens) {}

  void Declarations() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      while (!scopes_.empty() && scopes_.back().first <= i) scopes_.pop_back();
      if (tokens_[i].Is("namespace")) Scope(i);
      if (!tokens_[i].Is("__constant__") && !tokens_[i].Is("__device__")) continue;
      size_t end = i;
      while (end < tokens_.size() && !tokens_[end].Is(";") && !tokens_[end].Is("(") && !tokens_[end].Is("{") &&
             !tokens_[end].Is("=")) {
        const bool brackets = tokens_[end].Is("[") || (IsAlignment(tokens_[end]) && end + 1 < tokens_.size());
        end = brackets ? ClosingBracket(tokens_, tokens_[end].Is("[") ? end : end + 1) + 1 : end + 1;
      }
      if (end >= tokens_.size() || tokens_[end].Is("(")) continue;  // a function
      Declaration(i, end);
      i = end;
    }
  }

  void Copies() {
    for (size_t i = 0; i + 2 < tokens_.size(); ++i) {
      if (!tokens_[i].text.starts_with("cudaMemcpyToSymbol") && !tokens_[i].text.starts_with("hipMemcpyToSymbol"))
        continue;
      const auto arguments = SplitAtCommas(tokens_, i + 2, ClosingBracket(tokens_, i + 1));
      if (arguments.empty()) continue;
      for (size_t k = arguments[0].first; k < arguments[0].second; ++k) {
        for (SourceSymbol& symbol : model_.symbols) {
          if (!tokens_[k].Is(symbol.name) || symbol.filled != 0) continue;
          symbol.filled = tokens_[i].line;
          if (arguments.size() > 2)
            symbol.copied = ParseCppExpression(tokens_, arguments[2].first, arguments[2].second);
        }
      }
    }
  }

 private:
  // namespace a::b {
  void Scope(size_t at) {
    size_t open = at + 1;
    std::string name;
    while (open < tokens_.size() && (tokens_[open].IsWord() || tokens_[open].Is("::"))) name += tokens_[open++].text;
    if (open < tokens_.size() && tokens_[open].Is("{")) scopes_.push_back({ClosingBracket(tokens_, open), name});
  }

  // __constant__ float a[9], b
  void Declaration(size_t begin, size_t end) {
    std::string type;
    bool constant = false;
    for (size_t i = begin; i < end; ++i) constant = constant || tokens_[i].Is("__constant__");
    for (const auto& [from, to] : SplitAtCommas(tokens_, begin, end)) {
      size_t name = from;
      while (name + 1 < to && !tokens_[name + 1].Is("[")) ++name;
      if (name >= to || !tokens_[name].IsWord()) return;
      size_t behind = name;  // the type
      while (behind > from && (tokens_[behind - 1].Is("*") || tokens_[behind - 1].Is("&") ||
                               tokens_[behind - 1].Is("const") || tokens_[behind - 1].Is("__restrict__"))) {
        --behind;
      }
      if (from == begin) {
        const size_t first = SkipQualifiers(tokens_, begin, behind);
        if (first >= behind) return;
        type = TokensText(tokens_, first, behind);
      }
      SourceSymbol symbol;
      symbol.name = tokens_[name].text;
      for (const auto& [close, scope] : scopes_) {
        if (!scope.empty()) absl::StrAppend(&symbol.qualified, scope, "::");
      }
      symbol.qualified += symbol.name;
      symbol.declaration = TokensText(tokens_, begin, end);
      symbol.type = type;
      for (size_t i = behind; i < name; ++i) symbol.pointer = symbol.pointer || tokens_[i].Is("*");
      for (size_t open = name + 1; open < to && tokens_[open].Is("["); open = ClosingBracket(tokens_, open) + 1) {
        symbol.extents.push_back(
            ParseCppExpression(tokens_, open + 1, ClosingBracket(tokens_, open)).value_or(CppExpression{}));
      }
      // A __device__ variable without a value is zero, and the kernel's own.
      symbol.initialised = !tokens_[end].Is(";") || !constant;
      Add(std::move(symbol));
    }
  }

  // extern __constant__ float a[9]; declares what another file defines.
  void Add(SourceSymbol symbol) {
    const auto known = std::find_if(model_.symbols.begin(), model_.symbols.end(),
                                    [&](const SourceSymbol& other) { return other.qualified == symbol.qualified; });
    if (known == model_.symbols.end()) {
      model_.symbols.push_back(std::move(symbol));
    } else {
      known->initialised = known->initialised || symbol.initialised;
    }
  }

  SourceModel& model_;
  const std::vector<CppToken>& tokens_;
  std::vector<std::pair<size_t, std::string>> scopes_;  // where each ends, and its name
};

}  // namespace

void ReadSymbols(SourceModel& model) {
  for (const std::unique_ptr<SourceText>& file : model.files) SymbolReader(model, file->tokens).Declarations();
  for (const std::unique_ptr<SourceText>& file : model.files) SymbolReader(model, file->tokens).Copies();
}

}  // namespace pawl
