// What a campaign would choose after each outcome of the trial that is being measured.
#include "orchestrator/engine/ahead/look_ahead.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "kernels/space.h"
#include "orchestrator/engine/ahead/foresee.h"
#include "orchestrator/engine/search/next_event.h"
#include "orchestrator/engine/search/tree_chooser.h"
#include "tests/orchestrator/engine/campaign_script.h"
#include "tests/orchestrator/engine/tiny_bundle.h"

namespace pawl {
namespace {

// As an orchestrator whose workers build ahead.
std::optional<v1::Event> DecideAndLookAhead(CampaignScript& script, const Chooser& chooser) {
  std::optional<v1::Event> event = Decide(script.state(), chooser, script.now());
  if (!event) return std::nullopt;
  if (event->has_planned()) LookAhead(script.state(), *event, chooser);
  script.Apply(*event);
  return event;
}

TEST(LookAheadTest, NamesWhatFollowsAKeptAndARevertedTrial) {
  const TreeChooser chooser;
  for (const bool keeps : {false, true}) {
    CampaignScript script;
    script.Run(MeasuredStart(100));
    const std::optional<v1::Event> event = DecideAndLookAhead(script, chooser);
    ASSERT_TRUE(event);
    const std::vector<v1::ForeseenVariant> foreseen = Foresee(script.state(), event->planned());
    bool kept = false, reverted = false;
    std::set<std::string> once;
    for (const v1::ForeseenVariant& next : foreseen) {
      const v1::Variant base = next.kept() ? event->planned().variant() : StartVariant(TinyBundle());
      int differing = 0;
      for (const auto& [name, value] : next.variant().values()) differing += base.values().at(name) != value;
      EXPECT_EQ(differing, 1) << VariantText(next.variant());
      EXPECT_NE(VariantText(next.variant()), VariantText(event->planned().variant())) << "it is being measured";
      EXPECT_EQ(next.parent(), next.kept() ? event->planned().iteration() : 0);
      EXPECT_EQ(next.variant().values().at(next.change().variable()), next.change().to());
      (next.kept() ? kept : reverted) = true;
      EXPECT_TRUE(once.insert(VariantText(next.variant())).second) << "it is built once, whatever the outcome";
    }
    EXPECT_TRUE(kept && reverted);
    ASSERT_GE(foreseen.size(), 2u);
    EXPECT_FALSE(foreseen[0].kept() && foreseen[1].kept()) << "both outcomes in turn";
    script.Lease(event->planned().trial());
    script.Finish(event->planned().trial(), keeps ? Measured(100, 80) : Measured(100, 110));
    const std::optional<v1::Event> after = script.Decide(chooser);
    ASSERT_TRUE(after && after->has_planned());
    EXPECT_THAT(foreseen, testing::Contains(testing::ResultOf(
                              [](const v1::ForeseenVariant& next) { return VariantText(next.variant()); },
                              VariantText(after->planned().variant()))))
        << "what is chosen then is among them";
  }
}

TEST(LookAheadTest, LooksAheadWithoutAnyEffectOnWhatIsChosen) {
  const TreeChooser chooser;
  CampaignScript looks, does_not;
  for (CampaignScript* script : {&looks, &does_not}) {
    script->Run(MeasuredStart(100));
    for (int i = 0; i < 3; ++i) {
      const std::optional<v1::Event> event =
          script == &looks ? DecideAndLookAhead(*script, chooser) : script->Decide(chooser);
      ASSERT_TRUE(event && event->has_planned());
      script->Lease(event->planned().trial());
      script->Finish(event->planned().trial(), i == 1 ? Measured(100, 80) : Measured(100, 104));
    }
  }
  ASSERT_EQ(looks.state().iterations().size(), does_not.state().iterations().size());
  for (size_t i = 0; i < looks.state().iterations().size(); ++i) {
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(looks.state().iterations()[i],
                                                                   does_not.state().iterations()[i]));
  }
}

}  // namespace
}  // namespace pawl
