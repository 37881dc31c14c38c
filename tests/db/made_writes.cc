#include "tests/db/made_writes.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/names/resource_name.h"

namespace pawl {

v1::Campaign MakeCampaign(int64_t number, v1::CampaignState state) {
  v1::Campaign campaign;
  campaign.set_name(CampaignName(number));
  campaign.set_state(state);
  campaign.set_bundle("attention");
  return campaign;
}

v1::Event MakeProposal(int64_t campaign, const std::string& why) {
  v1::Event event;
  event.set_campaign(CampaignName(campaign));
  event.mutable_time()->set_seconds(1700000000);
  event.mutable_proposed()->set_why(why);
  return event;
}

v1::Iteration MakeIteration(int64_t campaign, int number, v1::Verdict verdict) {
  v1::Iteration iteration;
  iteration.set_name(IterationName(campaign, number));
  iteration.set_number(number);
  if (number > 0) iteration.set_parent(number - 1);
  iteration.set_verdict(verdict);
  return iteration;
}

v1::Event MakeJudged(int64_t campaign, const v1::Iteration& iteration) {
  v1::Event event;
  event.set_campaign(CampaignName(campaign));
  *event.mutable_finished()->mutable_iteration() = iteration;
  return event;
}

Writes MakeWrites(const v1::Event& event) {
  Writes writes;
  writes.campaigns = {MakeCampaign(*ParseCampaignName(event.campaign()))};
  writes.events = {event};
  return writes;
}

std::unique_ptr<Store> OpenStore(const StoreOptions& options) {
  absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(options);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

}  // namespace pawl
