// `submit`: a campaign for a bundle.
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "agent/tools/forms.h"
#include "agent/tools/tool.h"
#include "base/hash/hash.h"
#include "base/names/spelling.h"
#include "kernels/bundle_message.h"

namespace pawl {
namespace {

double NumberAt(const Json& arguments, const char* key) {
  const Json* given = JsonAt(arguments, key);
  return given == nullptr ? 0 : given->get<double>();
}

absl::StatusOr<v1::Goal> GoalOf(const v1::Bundle& bundle, const Json& arguments) {
  v1::Goal goal = bundle.goal();
  if (const std::string size = TextAt(arguments, "size"); !size.empty()) {
    std::vector<std::string> known;
    for (const v1::Size& each : bundle.sizes()) known.push_back(each.name());
    if (std::find(known.begin(), known.end(), size) == known.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(bundle.name(), " has no size ", size.substr(0, 64), Expected(size.substr(0, 64), known)));
    }
    goal.set_size(size);
    goal.clear_sizes();
    goal.clear_worst();
    goal.clear_portfolio();
  }
  if (const double speedup = NumberAt(arguments, "goal"); speedup > 0) goal.set_speedup(speedup);
  return goal;
}

}  // namespace

absl::StatusOr<Json> SubmitTool(const ToolContext& context, const Json& arguments, const McpCall& call) {
  if (!context.campaign.empty()) {
    return absl::PermissionDeniedError(absl::StrCat("this server is for ", context.campaign, " only"));
  }
  absl::StatusOr<BundleSource> source = BundleArgument(arguments);
  if (!source.ok()) return source.status();
  absl::StatusOr<v1::Bundle> bundle = context.bundles.Read(*source);
  if (!bundle.ok()) return bundle.status();
  v1::SubmitCampaignRequest request;
  v1::CampaignSpec& spec = *request.mutable_spec();
  absl::StatusOr<v1::Goal> goal = GoalOf(*bundle, arguments);
  if (!goal.ok()) return goal.status();
  *spec.mutable_goal() = *std::move(goal);
  spec.mutable_budget()->set_iterations(static_cast<int>(NumberAt(arguments, "iterations")));
  spec.mutable_budget()->set_minutes(NumberAt(arguments, "minutes"));
  spec.mutable_budget()->set_dollars(NumberAt(arguments, "dollars"));
  const std::string chooser = TextAt(arguments, "chooser");
  if (chooser == "tree") spec.mutable_chooser()->set_kind(v1::CHOOSER_KIND_TREE);
  if (chooser == "outside") spec.mutable_chooser()->set_kind(v1::CHOOSER_KIND_OUTSIDE);
  if (chooser == "mixed") spec.mutable_chooser()->set_kind(v1::CHOOSER_KIND_MIXED);
  if (chooser == "both") spec.mutable_chooser()->set_kind(v1::CHOOSER_KIND_BOTH);
  spec.mutable_chooser()->set_wait_seconds(NumberAt(arguments, "waitForProposalSeconds"));
  spec.set_gpu(TextAt(arguments, "gpu"));
  *request.mutable_bundle() = *std::move(bundle);
  request.set_request_id(absl::BytesToHexString(RandomBytes(16)));
  request.set_author(AuthorOf(context, call));
  absl::StatusOr<v1::Campaign> campaign = context.campaigns.Submit(request);
  if (!campaign.ok()) return campaign.status();
  return Json{{"campaign", CampaignForm(*campaign)},
              {"next", IsContractAlone(request.bundle())
                           ? "it is a contract alone: call situation, then propose the device code; the first that "
                             "passes validation is the start"
                           : "call wait with this campaign until its start variant is measured, then situation"}};
}

}  // namespace pawl
