#include "kernels/source/cluster_use.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

// What this token has to do with clusters; empty: nothing.
std::string UseOf(const CppToken& token) {
  if (token.Is("this_cluster")) return "this_cluster()";
  const std::string text(token.text);
  if (token.IsWord() && absl::StartsWith(text, "__cluster")) return absl::StrCat(text, "()");
  if (token.kind != CppToken::Kind::kString) return "";
  for (const char* instruction : {"mapa.", "barrier.cluster", "%cluster_ctarank", "%cluster_nctarank"}) {
    if (absl::StrContains(text, instruction)) return absl::StrCat("`", instruction, "`");
  }
  return "";
}

}  // namespace

ClusterUse FindClusterUse(const std::vector<CppToken>& tokens, size_t name, size_t body) {
  ClusterUse use;
  size_t head = std::min(name, tokens.size());
  while (head > 0 && !tokens[head - 1].Is(";") && !tokens[head - 1].Is("}") &&
         tokens[head - 1].kind != CppToken::Kind::kDirective) {
    --head;
  }
  for (size_t i = head; i + 1 < name && i + 1 < tokens.size(); ++i) {
    if (!tokens[i].Is("__cluster_dims__") || !tokens[i + 1].Is("(")) continue;
    use.dims_line = tokens[i].line;
    const size_t close = ClosingBracket(tokens, i + 1);
    std::string dim;
    for (size_t k = i + 2; k <= close && k < tokens.size(); ++k) {
      if (k != close && !tokens[k].Is(",")) {
        dim += tokens[k].text;
        continue;
      }
      if (!dim.empty()) use.dims.push_back(dim);
      dim.clear();
    }
    break;
  }
  const size_t end = ClosingBracket(tokens, body);
  for (size_t i = body; i < end && use.line == 0; ++i) {
    use.what = UseOf(tokens[i]);
    if (!use.what.empty()) use.line = tokens[i].line;
  }
  return use;
}

}  // namespace pawl
