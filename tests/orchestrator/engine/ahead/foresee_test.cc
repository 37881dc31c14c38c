// What a campaign may try after the trial that is being measured.
#include "orchestrator/engine/ahead/foresee.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/space.h"
#include "orchestrator/engine/search/tree_chooser.h"
#include "tests/orchestrator/engine/campaign_script.h"
#include "tests/orchestrator/engine/tiny_bundle.h"

namespace pawl {
namespace {

// They come next, whatever Pawl would choose.
TEST(ForeseeTest, NamesTheProposalsThatWaitFirst) {
  CampaignScript script;
  script.Run(MeasuredStart(100));
  script.Propose("TILE", 64);
  const std::optional<v1::Event> event = script.Decide(TreeChooser());
  ASSERT_TRUE(event && event->has_planned());
  ASSERT_EQ(event->planned().author(), "ann");
  EXPECT_THAT(Foresee(script.state(), event->planned()), testing::IsEmpty()) << "nobody looked ahead";
  script.ProposePatch("more", "@@ -1 +1,2 @@\n+#define MORE\n ...");
  script.Propose("SPLIT", 2);
  const std::vector<v1::ForeseenVariant> foreseen = Foresee(script.state(), event->planned());
  ASSERT_EQ(foreseen.size(), 4u) << "each where the trial is reverted, and where it is kept";
  for (const size_t i : {0u, 2u}) {
    EXPECT_EQ(foreseen[i].kept(), i == 2);
    EXPECT_EQ(foreseen[i].parent(), i == 2 ? 1 : 0);
    EXPECT_EQ(foreseen[i].change().source().name(), "more");
    EXPECT_EQ(foreseen[i].change().source().patch(), "@@ -1 +1,2 @@\n+#define MORE\n ...");
    EXPECT_EQ(foreseen[i].variant().values().at("TILE"), i == 2 ? 64 : 32);
    EXPECT_EQ(foreseen[i + 1].change().variable(), "SPLIT");
    EXPECT_EQ(foreseen[i + 1].variant().values().at("SPLIT"), 2);
    EXPECT_EQ(foreseen[i + 1].variant().values().at("TILE"), i == 2 ? 64 : 32);
  }
}

TEST(ForeseeTest, KnowsNothingBeforeTheStartIsMeasured) {
  CampaignScript script;
  const std::optional<v1::Event> event = script.Decide();
  ASSERT_TRUE(event && event->has_planned());
  EXPECT_THAT(Foresee(script.state(), event->planned()), testing::IsEmpty());
}

}  // namespace
}  // namespace pawl
