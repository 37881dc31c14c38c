// How much of what a campaign tries was foreseen, over the recording of a GPU.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "bench/measured_campaign.h"
#include "bench/measured_space.h"
#include "kernels/space.h"
#include "orchestrator/engine/ahead/foresee.h"
#include "orchestrator/engine/ahead/look_ahead.h"
#include "orchestrator/engine/search/tree_chooser.h"

namespace pawl {
namespace {

TEST(ForeseenTest, HasMostOfWhatIsTriedNext) {
  const MeasuredSpace space = RecordedSpace(getenv("PAWL_SOURCE_DIR"), "attention").value();
  const TreeChooser chooser;
  const MeasuredSpace::Entry* start = space.Find(StartVariant(space.bundle).values());
  ASSERT_NE(start, nullptr);
  for (const bool kept : {false, true}) {
    int foreseen = 0, tried = 0;
    for (const uint64_t seed : {1, 2, 3}) {
      std::set<std::string> next;
      bool after_kept = false, is_known = false;
      RunMeasuredCampaign(
          space, *start, chooser, 40, seed, {},
          [&](const CampaignState&, const v1::Iteration& iteration) {
            after_kept = iteration.verdict() == v1::KEPT;
            return true;
          },
          [&](const CampaignState& campaign, const v1::Event& event) {
            if (event.planned().purpose() != v1::TRIAL_PURPOSE_ITERATION || !event.planned().has_parent()) return;
            if (is_known && after_kept == kept) {
              ++tried;
              foreseen += next.contains(VariantText(event.planned().variant()));
            }
            const std::shared_ptr<CampaignState> planned = campaign.Copy();
            LookAhead(campaign, event, chooser);
            planned->Apply(event);
            planned->search_memo().following = campaign.search_memo().following;
            next.clear();
            for (const v1::ForeseenVariant& each : Foresee(*planned, event.planned())) {
              next.insert(VariantText(each.variant()));
            }
            is_known = true;
          });
    }
    printf("after %s changes, %d of %d choices were foreseen\n", kept ? "kept" : "reverted", foreseen, tried);
    EXPECT_GT(tried, kept ? 10 : 20);
    EXPECT_GE(foreseen, 0.65 * tried);
  }
}

}  // namespace
}  // namespace pawl
