// `history`: the iterations of a campaign, a page at a time.
#include "agent/tools/forms.h"
#include "agent/tools/tool.h"

namespace pawl {

absl::StatusOr<Json> HistoryTool(const ToolContext& context, const Json& arguments, const McpCall&) {
  absl::StatusOr<std::string> campaign = CampaignArgument(context, arguments);
  if (!campaign.ok()) return campaign.status();
  v1::ListIterationsRequest request;
  request.set_campaign(*campaign);
  const Json* size = JsonAt(arguments, "pageSize");
  request.set_page_size(size == nullptr ? 30 : size->get<int>());
  request.set_page_token(TextAt(arguments, "pageToken"));
  const std::string verdict = TextAt(arguments, "verdict");
  if (verdict == "kept") request.set_verdict(v1::KEPT);
  if (verdict == "reverted") request.set_verdict(v1::REVERTED);
  if (verdict == "rejected") request.set_verdict(v1::REJECTED);
  request.set_variable(TextAt(arguments, "variable"));
  request.set_finding(TextAt(arguments, "finding"));
  const std::string order = TextAt(arguments, "order");
  request.set_order(order == "speedup"  ? v1::ITERATION_ORDER_SPEEDUP
                    : order == "oldest" ? v1::ITERATION_ORDER_NUMBER
                                        : v1::ITERATION_ORDER_NUMBER_DESCENDING);
  absl::StatusOr<v1::ListIterationsResponse> list = context.campaigns.ListIterations(request);
  if (!list.ok()) return list.status();
  Json result = {{"campaign", *campaign}, {"iterations", Json::array()}};
  for (const v1::Iteration& iteration : list->iterations()) result["iterations"].push_back(IterationForm(iteration));
  AddText("nextPageToken", list->next_page_token(), &result);
  if (JsonText(result).size() <= kMostResult) return result;
  return absl::InvalidArgumentError("pageSize: this many iterations do not fit in one result; ask for fewer");
}

}  // namespace pawl
