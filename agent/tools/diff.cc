// `diff`: what differs between two iterations, or between the best variants of two campaigns.
#include <set>

#include "absl/strings/str_cat.h"
#include "agent/tools/forms.h"
#include "agent/tools/metric_pairs.h"
#include "agent/tools/tool.h"

namespace pawl {
namespace {

// Variables whose values differ.
Json VariablePairs(const v1::Iteration& a, const v1::Iteration& b) {
  std::set<std::string> names;
  for (const auto& [name, value] : a.variant()) names.insert(name);
  for (const auto& [name, value] : b.variant()) names.insert(name);
  Json pairs = Json::array();
  for (const std::string& name : names) {
    const auto one = a.variant().find(name), other = b.variant().find(name);
    Json pair = {{"variable", name}};
    if (one != a.variant().end()) pair["a"] = one->second;
    if (other != b.variant().end()) pair["b"] = other->second;
    if (!pair.contains("a") || !pair.contains("b") || pair["a"] != pair["b"]) pairs.push_back(std::move(pair));
  }
  return pairs;
}

Json Compared(const v1::Iteration& a, const v1::Iteration& b) {
  Json result = {{"a", IterationForm(a)}, {"b", IterationForm(b)}};
  if (a.time_us() > 0 && b.time_us() > 0) result["timeRatio"] = Rounded(a.time_us() / b.time_us());
  result["variables"] = VariablePairs(a, b);
  result["sameSource"] = a.patched_source_hash() == b.patched_source_hash();
  result["sameMachineCode"] = !a.cubin_hash().empty() && a.cubin_hash() == b.cubin_hash();
  result["metrics"] = MetricPairs(a.evidence(), b.evidence());
  result["uris"] = {{"a", absl::StrCat("pawl://", a.name(), "/source")},
                    {"b", absl::StrCat("pawl://", b.name(), "/source")}};
  FitResult({"metrics", "variables"}, kMostResult, &result);
  return result;
}

}  // namespace

absl::StatusOr<Json> DiffTool(const ToolContext& context, const Json& arguments, const McpCall&) {
  absl::StatusOr<std::string> campaign = CampaignArgument(context, arguments);
  if (!campaign.ok()) return campaign.status();
  if (arguments.contains("otherCampaign")) {
    if (arguments.contains("a") || arguments.contains("b")) {
      return absl::InvalidArgumentError("otherCampaign compares best variants: omit a and b");
    }
    absl::StatusOr<std::string> other = CampaignArgument(context, arguments, "otherCampaign");
    if (!other.ok()) return other.status();
    absl::StatusOr<v1::BestVariant> a = context.campaigns.GetBestVariant(*campaign);
    if (!a.ok()) return a.status();
    absl::StatusOr<v1::BestVariant> b = context.campaigns.GetBestVariant(*other);
    if (!b.ok()) return b.status();
    return Compared(a->iteration(), b->iteration());
  }
  v1::Iteration both[2];
  const char* const keys[] = {"a", "b"};
  for (int i = 0; i < 2; ++i) {
    absl::StatusOr<std::string> name = IterationArgument(*campaign, arguments, keys[i]);
    if (!name.ok()) return name.status();
    absl::StatusOr<v1::Iteration> iteration = context.campaigns.GetIteration(*name);
    if (!iteration.ok()) return iteration.status();
    both[i] = *std::move(iteration);
  }
  return Compared(both[0], both[1]);
}

}  // namespace pawl
