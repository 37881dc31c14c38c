#include <utility>

#include "cli/connect/requests.h"
#include "cli/text/campaign_text.h"

namespace pawl {

absl::StatusOr<std::vector<v1::Iteration>> AllIterations(Connection& connection, v1::ListIterationsRequest request) {
  std::vector<v1::Iteration> all;
  request.set_page_size(1000);
  request.clear_page_token();
  do {
    absl::StatusOr<v1::ListIterationsResponse> page =
        connection.Ask([&](CampaignClient& client) { return client.ListIterations(request); });
    if (!page.ok()) return page.status();
    for (v1::Iteration& iteration : *page->mutable_iterations()) all.push_back(std::move(iteration));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<std::vector<v1::Iteration>> KeptPath(Connection& connection, const std::string& campaign, int number) {
  v1::ListIterationsRequest request;
  request.set_campaign(campaign);  // with what was reverted: an expedition led over it
  absl::StatusOr<std::vector<v1::Iteration>> iterations = AllIterations(connection, request);
  if (!iterations.ok()) return iterations.status();
  return KeptPathIn(*iterations, number);
}

}  // namespace pawl
