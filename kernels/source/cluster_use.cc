#include "kernels/source/cluster_use.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

// The call or instruction of this token, where it is one that uses clusters; otherwise empty.
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

// What stands between the bracket at `open` and its end, split at commas that are in no further brackets.
std::vector<std::string> Arguments(const std::vector<CppToken>& tokens, size_t open) {
  std::vector<std::string> arguments(1);
  const size_t close = ClosingBracket(tokens, open);
  int depth = 0;
  for (size_t i = open + 1; i < close; ++i) {
    if (tokens[i].Is("(") || tokens[i].Is("[") || tokens[i].Is("{")) ++depth;
    if (tokens[i].Is(")") || tokens[i].Is("]") || tokens[i].Is("}")) --depth;
    if (depth == 0 && tokens[i].Is(",")) {
      arguments.emplace_back();
    } else {
      arguments.back() += tokens[i].text;
    }
  }
  std::erase(arguments, "");
  return arguments;
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
    use.dims = Arguments(tokens, i + 1);
    if (use.dims.size() > 3) use.dims.resize(3);
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
