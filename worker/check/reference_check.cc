#include "worker/check/reference_check.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/data_type.h"
#include "kernels/plan.h"
#include "kernels/source/cpp_tokens.h"
#include "kernels/tolerance.h"

namespace pawl {
namespace {

struct Sum {
  std::string_view name;
  int line = 0;  // 0: there is none
};

// For each token: where the statement that begins with it, and has no braces, ends.
std::vector<size_t> EndsOfStatements(const std::vector<CppToken>& tokens, const std::vector<size_t>& closing) {
  std::vector<size_t> ends(tokens.size() + 1, tokens.size());
  for (size_t i = tokens.size(); i-- > 0;) {
    const bool opens = tokens[i].Is("(") || tokens[i].Is("{");
    ends[i] = tokens[i].Is(";") ? i : ends[opens ? std::min(closing[i] + 1, tokens.size()) : i + 1];
  }
  return ends;
}

bool IsAddition(const std::vector<CppToken>& tokens, const std::vector<size_t>& closing, size_t name) {
  if (tokens[name + 1].Is("+=")) return true;
  // sum = sum + x, sum = fmaf(a, b, sum)
  if (!tokens[name + 1].Is("=")) return false;
  const std::string_view next = tokens[name + 2].text;
  if (next == tokens[name].text) return tokens[name + 3].Is("+");
  if (next != "fmaf" && next != "__fmaf_rn" && next != "__fadd_rn") return false;
  const size_t close = closing[name + 3];
  return close < tokens.size() && tokens[close - 1].Is(tokens[name].text);
}

// The first float that is declared before a loop and added to in it.
Sum FloatSum(const std::string& source) {
  const std::vector<CppToken> tokens = CppTokens(source);
  const std::vector<size_t> closing = ClosingBrackets(tokens), ends = EndsOfStatements(tokens, closing);
  std::map<std::string_view, size_t> floats;     // where each was declared last
  std::vector<std::pair<size_t, size_t>> loops;  // those around: their first and last tokens
  bool declares = false;
  for (size_t i = 1; i + 4 < tokens.size(); ++i) {
    while (!loops.empty() && loops.back().second <= i) loops.pop_back();
    if ((tokens[i].Is("for") || tokens[i].Is("while")) && tokens[i + 1].Is("(")) {
      const size_t body = std::min(closing[i + 1] + 1, tokens.size());
      const bool braces = body < tokens.size() && tokens[body].Is("{");
      loops.emplace_back(i, braces ? closing[body] : ends[body]);
    }
    if (tokens[i].Is(";") || tokens[i].Is(")") || tokens[i].Is("{")) declares = false;
    if (tokens[i].Is("float")) declares = true;
    if (!tokens[i].IsWord()) continue;
    if (declares && tokens[i + 1].Is("=") && (tokens[i - 1].Is("float") || tokens[i - 1].Is(","))) {
      floats[tokens[i].text] = i;
      continue;
    }
    const auto declared = floats.find(tokens[i].text);
    if (declared == floats.end() || loops.empty() || !IsAddition(tokens, closing, i)) continue;
    if (declared->second < loops.back().first) return {tokens[i].text, tokens[i].line};
  }
  return {};
}

}  // namespace

std::string RoundingOfReference(const v1::Bundle& bundle) {
  if (!bundle.has_reference()) return "";
  std::vector<const v1::SourceFile*> sources = {&bundle.reference().source()};
  for (const v1::SourceFile& file : bundle.reference().files()) sources.push_back(&file);
  Sum sum;
  std::string path;
  for (const v1::SourceFile* source : sources) {
    if (sum.line > 0 || !IsCudaSource(source->path())) continue;
    sum = FloatSum(source->text());
    path = source->path();
  }
  if (sum.line == 0) return "";
  for (const v1::Size& size : bundle.sizes()) {
    const absl::StatusOr<v1::Plan> plan = MakeReferencePlan(bundle, size, TypicalGpu());
    if (!plan.ok()) continue;
    for (const v1::PlanTensor& output : plan->tensors()) {
      const v1::Tolerance& tolerance = output.has_tolerance() ? output.tolerance() : plan->tolerance();
      if (!IsCompared(output.role()) || !IsFloat(output.type()) || tolerance.exact()) continue;
      // Each addition rounds, and where the values are alike, all of them in one direction.
      const double terms = ReductionLength(*plan, output), own = terms * UnitRoundoff(v1::DATA_TYPE_F32);
      if (own <= tolerance.relative()) continue;
      return absl::StrFormat(
          "line %d of %s adds up `%s` in float: at %s, where sums may have %.0f values, its own rounding may be %.2g "
          "of the result, and the relative tolerance of %s is %g. A more exact kernel, which adds in another order, "
          "would be rejected: make it a double",
          sum.line, path, sum.name, size.name(), terms, own, output.name(), tolerance.relative());
    }
  }
  return "";
}

}  // namespace pawl
