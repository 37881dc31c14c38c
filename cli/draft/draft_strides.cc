// Strides, and other integer parameters that are made of sizes (declared in drafting.h).
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/expression/expression.h"
#include "cli/draft/drafting.h"
#include "cli/draft/read/constants.h"
#include "cli/draft/read/translation.h"
#include "cli/draft/shapes.h"

namespace pawl {
namespace {

using Kind = CppExpression::Kind;

}  // namespace

std::optional<std::string> Drafting::StrideText(const CppExpression& argument, const PlannedKernel& planned) {
  const std::string text = RootText(argument, planned);
  const std::vector<CppToken> tokens = CppTokens(text);
  const std::optional<CppExpression> call = ParseCppExpression(tokens, 0, tokens.size());
  if (!call || call->kind != Kind::kCall || call->parts.size() != 2 || call->parts[0].kind != Kind::kMember ||
      call->parts[0].text != "stride") {
    return std::nullopt;
  }
  const std::optional<int64_t> axis = ConstantValue(call->parts[1], {});
  if (!axis) return std::nullopt;
  // The axes of the tensor whose extents the host asks for.
  const std::string tensor = CppText(call->parts[0].parts[0]);
  std::set<int64_t> asked;
  const std::vector<CppToken>& host = planned.launch->host->file->tokens;
  const size_t end = ClosingBracket(host, planned.launch->host->body);
  for (size_t i = planned.launch->host->body; i + 5 < end; ++i) {
    if (!host[i].Is(tensor) || !host[i + 1].Is(".") || !host[i + 2].Is("size") || !host[i + 3].Is("(")) continue;
    const bool negative = host[i + 4].Is("-");
    const std::optional<int64_t> number = WholeNumber(host[i + (negative ? 5 : 4)].text);
    if (number) asked.insert(negative ? -*number : *number);
  }
  if (asked.empty()) return std::nullopt;
  // Without an axis from the front the tensor is taken for a matrix.
  const int64_t last = *axis < 0 ? -1 : std::max<int64_t>(*asked.rbegin(), 1);
  if (*axis == last) return "1";
  std::vector<std::string> extents;
  for (int64_t later = *axis + 1; later <= last; ++later) {
    const bool by_end = !asked.contains(later) && *axis >= 0 && asked.contains(later - last - 1);
    const std::string key = absl::StrCat(tensor, ".size(", by_end ? later - last - 1 : later, ")");
    const auto known = size_of_.find(key);
    if (known == size_of_.end() && !asked.contains(later) && !by_end) return std::nullopt;
    extents.push_back(known != size_of_.end()
                          ? known->second
                          : AddSize(key, absl::StrCat(tensor, "_dim", later), std::nullopt, absl::StrCat("is ", key)));
  }
  return absl::StrJoin(extents, " * ");
}

bool Drafting::IsLarger(const std::string& a, const std::string& b) const {
  std::map<std::string, double> values;
  for (const DraftSize& size : draft_.sizes) values[size.name] = 64;
  const absl::StatusOr<double> x = Evaluate(a, values), y = Evaluate(b, values);
  return x.ok() && y.ok() && *x > *y;
}

void Drafting::DerivedNumbers(PlannedKernel& planned, DraftLaunch& launch) {
  std::set<std::string> strides;
  for (const SourceParameter& parameter : planned.kernel->parameters) {
    if (HasWord(parameter.name, {"stride", "pitch"})) strides.insert(parameter.name);
    for (const SourceParameter& field : parameter.fields) {
      if (HasWord(field.name, {"stride", "pitch"})) strides.insert(absl::StrCat(parameter.name, ".", field.name));
    }
  }
  const auto derive = [&](const SourceParameter& parameter, const CppExpression* given) {
    const std::optional<ElementType> type = TypeOf(parameter.type, planned);
    if (parameter.type.pointers > 0 || parameter.type.record || !type || !IsWholeType(type->type)) return;
    const auto size = planned.sizes.find(parameter.name);
    const bool alone = size != planned.sizes.end() &&
                       std::any_of(draft_.sizes.begin(), draft_.sizes.end(),
                                   [&](const DraftSize& own) { return own.name == size->second && own.stride; });
    if (given != nullptr && size == planned.sizes.end() && !IsFlagName(parameter.name)) {
      const std::optional<std::string> text = HostText(*given, planned);
      if (text && !NumberIn(*text) && SizesOnly({*text})[0] == *text) planned.sizes[parameter.name] = *text;
    }
    const bool of_tensor = given != nullptr && absl::StrContains(RootText(*given, planned), ".stride(");
    const std::string known = size == planned.sizes.end() || alone ? "" : size->second;
    if (!HasWord(parameter.name, {"stride", "pitch"}) || (!known.empty() && !of_tensor)) return;
    if (given != nullptr && !alone && !of_tensor) return;
    ShapeScope scope{&model_, &planned.body, [&](const CppExpression& e) { return KernelLeaf(e, planned); }, {}, {}};
    for (const auto& [pointer, use] : planned.body.pointers) {
      const std::optional<std::string> stride = StrideOf(use.indices, scope, parameter.name, strides);
      if (!stride || *stride == parameter.name || SizesOnly({*stride})[0] != *stride) continue;
      if (!known.empty() && !IsLarger(*stride, known)) break;
      if (alone) {
        const std::string gone = size->second;
        std::erase_if(draft_.sizes, [&](const DraftSize& own) { return own.name == gone; });
        std::erase_if(size_of_, [&](const auto& known) { return known.second == gone; });
      }
      planned.sizes[parameter.name] = *stride;
      launch.todos.push_back(
          absl::StrCat("arguments: ", parameter.name, " is ", *stride, " where ", pointer, " is contiguous"));
      return;
    }
    if (!known.empty()) {
      launch.todos.push_back(absl::StrCat("arguments: ", parameter.name, " is ", known, " where the tensor of ",
                                          CppText(*given), " is contiguous"));
    }
  };
  ForEachParameter(planned, derive);
}

}  // namespace pawl
