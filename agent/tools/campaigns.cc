// `campaigns`: what there is, newest first.
#include "agent/tools/forms.h"
#include "agent/tools/tool.h"

namespace pawl {

absl::StatusOr<Json> CampaignsTool(const ToolContext& context, const Json& arguments, const McpCall&) {
  Json result = {{"campaigns", Json::array()}};
  if (!context.campaign.empty() || arguments.contains("campaign")) {
    absl::StatusOr<std::string> name = CampaignArgument(context, arguments);
    if (!name.ok()) return name.status();
    absl::StatusOr<v1::Campaign> campaign = context.campaigns.GetCampaign(*name);
    if (!campaign.ok()) return campaign.status();
    result["campaigns"].push_back(CampaignForm(*campaign));
    return result;
  }
  v1::ListCampaignsRequest request;
  const Json* size = JsonAt(arguments, "pageSize");
  request.set_page_size(size == nullptr ? 20 : size->get<int>());
  request.set_page_token(TextAt(arguments, "pageToken"));
  absl::StatusOr<v1::ListCampaignsResponse> list = context.campaigns.ListCampaigns(request);
  if (!list.ok()) return list.status();
  for (const v1::Campaign& campaign : list->campaigns()) result["campaigns"].push_back(CampaignForm(campaign));
  AddText("nextPageToken", list->next_page_token(), &result);
  return result;
}

}  // namespace pawl
