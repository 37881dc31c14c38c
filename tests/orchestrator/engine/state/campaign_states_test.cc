#include "orchestrator/engine/state/campaign_states.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "tests/orchestrator/engine/campaign_script.h"

namespace pawl {
namespace {

constexpr v1::CampaignState kStates[] = {
    v1::CAMPAIGN_STATE_UNSPECIFIED, v1::WAITING, v1::RUNNING, v1::PAUSED, v1::FINISHED, v1::FAILED, v1::CANCELLED};
constexpr CampaignAction kActions[] = {CampaignAction::kLease,  CampaignAction::kPause,  CampaignAction::kResume,
                                       CampaignAction::kCancel, CampaignAction::kFinish, CampaignAction::kFail};

TEST(CampaignStatesTest, AllowsTheseTransitionsAndNoOthers) {
  using A = CampaignAction;
  const std::map<std::pair<v1::CampaignState, A>, v1::CampaignState> allowed = {
      {{v1::WAITING, A::kLease}, v1::RUNNING},    {{v1::WAITING, A::kPause}, v1::PAUSED},
      {{v1::WAITING, A::kCancel}, v1::CANCELLED}, {{v1::RUNNING, A::kPause}, v1::PAUSED},
      {{v1::RUNNING, A::kCancel}, v1::CANCELLED}, {{v1::RUNNING, A::kFinish}, v1::FINISHED},
      {{v1::RUNNING, A::kFail}, v1::FAILED},      {{v1::PAUSED, A::kResume}, v1::RUNNING},
      {{v1::PAUSED, A::kCancel}, v1::CANCELLED},
  };
  for (v1::CampaignState state : kStates) {
    for (CampaignAction action : kActions) {
      const auto found = allowed.find({state, action});
      const v1::CampaignState expected = found == allowed.end() ? v1::CAMPAIGN_STATE_UNSPECIFIED : found->second;
      EXPECT_EQ(After(state, action, /*leased_before=*/true), expected)
          << v1::CampaignState_Name(state) << " " << static_cast<int>(action);
      if (state == v1::PAUSED && action == A::kResume) {
        EXPECT_EQ(After(state, action, /*leased_before=*/false), v1::WAITING);
      } else {
        EXPECT_EQ(After(state, action, /*leased_before=*/false), expected);
      }
    }
  }
}

TEST(CampaignStatesTest, NamesEveryTransitionOnceAndSaysWhoMakesIt) {
  std::map<std::tuple<int, int, int>, int> seen;
  for (const CampaignTransition& transition : CampaignTransitions()) {
    const bool leased_before = transition.to != v1::WAITING;
    EXPECT_EQ(After(transition.from, transition.action, leased_before), transition.to);
    EXPECT_EQ(++seen[std::make_tuple(transition.from, static_cast<int>(transition.action), transition.to)], 1);
    EXPECT_NE(std::string(transition.who), "");
    EXPECT_NE(std::string(transition.when), "");
  }
  EXPECT_EQ(seen.size(), 10u);
}

TEST(CampaignStatesTest, LetsNothingHappenToWhatHasEnded) {
  for (v1::CampaignState state : kStates) {
    bool leaves = false;
    for (CampaignAction action : kActions) {
      leaves = leaves || After(state, action, true) != v1::CAMPAIGN_STATE_UNSPECIFIED;
    }
    EXPECT_EQ(IsFinal(state), !leaves && state != v1::CAMPAIGN_STATE_UNSPECIFIED) << v1::CampaignState_Name(state);
  }
}

// Brings a campaign into the state, then does the action to it.
v1::CampaignState Done(v1::CampaignState from, CampaignAction action, bool leased_before) {
  CampaignScript script;
  script.Decide();
  if (leased_before) script.Lease(1);
  if (from == v1::PAUSED) script.Pause();
  EXPECT_EQ(script.summary().state(), from);
  switch (action) {
    case CampaignAction::kLease:
      script.Lease(1);
      break;
    case CampaignAction::kPause:
      script.Pause();
      break;
    case CampaignAction::kResume:
      script.Resume();
      break;
    case CampaignAction::kCancel:
      script.End(v1::CANCELLED, v1::STOP_REASON_CANCELLED);
      break;
    case CampaignAction::kFinish:
      script.End(v1::FINISHED, v1::STOP_REASON_GOAL);
      break;
    case CampaignAction::kFail:
      script.End(v1::FAILED, v1::STOP_REASON_START);
      break;
  }
  return script.summary().state();
}

TEST(CampaignStatesTest, IsTheTableThatEventsFollow) {
  for (const CampaignTransition& transition : CampaignTransitions()) {
    const bool leased_before = transition.from == v1::RUNNING || transition.to == v1::RUNNING;
    const bool first_lease = transition.action == CampaignAction::kLease;
    EXPECT_EQ(Done(transition.from, transition.action, leased_before && !first_lease), transition.to)
        << v1::CampaignState_Name(transition.from) << " to " << v1::CampaignState_Name(transition.to);
  }
}

TEST(CampaignStatesTest, StandsInTheDocs) {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  const std::filesystem::path file = std::filesystem::path(source) / "docs" / "campaign-states.md";
  if (const char* write = std::getenv("PAWL_WRITE_DOCS"); write != nullptr && std::string(write) == "1") {
    std::ofstream(file) << CampaignStatesPage();
  }
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_EQ(text.str(), CampaignStatesPage()) << "run this test with PAWL_WRITE_DOCS=1 to write " << file;
}

}  // namespace
}  // namespace pawl
