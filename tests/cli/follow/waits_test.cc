#include "cli/follow/waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/fake_orchestrator.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

constexpr absl::Duration kLater = absl::Seconds(3);

class ProposalWaitTest : public testing::Test {
 protected:
  ProposalWaitTest() {
    fake_.campaign.mutable_spec()->mutable_chooser()->set_kind(v1::CHOOSER_KIND_OUTSIDE);
    fake_.situation.mutable_best()->set_number(0);
  }

  std::optional<std::string> Look() { return wait_.Look(client_, now_ = now_ + kLater); }
  void WaitUntil(int64_t seconds) {
    fake_.situation.set_waits(true);
    fake_.situation.mutable_deadline()->set_seconds(seconds);
  }

  FakeOrchestrator fake_;
  CampaignClient client_{fake_.address()};
  ProposalWait wait_{"campaigns/7", " --database x.db"};
  SteadyTime now_ = SteadyNow();
};

TEST_F(ProposalWaitTest, TellsOfEachWaitOnce) {
  EXPECT_EQ(Look(), std::nullopt) << "it does not wait yet";
  WaitUntil(1100);
  EXPECT_THAT(Look(), Optional(HasSubstr(": pawl propose 7 VARIABLE=VALUE --database x.db; pawl situation 7")));
  EXPECT_EQ(Look(), std::nullopt) << "it was told";
  WaitUntil(1200);
  EXPECT_EQ(wait_.Look(client_, now_ + absl::Milliseconds(100)), std::nullopt) << "it looked just now";
  EXPECT_THAT(Look(), Optional(HasSubstr("waits for a proposal until ")));
}

TEST_F(ProposalWaitTest, AsksForTheDeviceCodeOfAContractAlone) {
  fake_.situation.clear_best();
  fake_.situation.set_waits(true);  // without a limit
  EXPECT_THAT(Look(),
              Optional(HasSubstr("waits for a proposal, without device code yet: pawl propose 7 --patch FILE")));
  EXPECT_EQ(Look(), std::nullopt) << "it was told";
}

TEST_F(ProposalWaitTest, AsksNoMoreWhereACampaignWaitsForNobody) {
  fake_.campaign.mutable_spec()->mutable_chooser()->set_kind(v1::CHOOSER_KIND_BOTH);
  WaitUntil(1100);
  EXPECT_EQ(Look(), std::nullopt);
  fake_.Stop();
  EXPECT_EQ(Look(), std::nullopt);
}

TEST_F(ProposalWaitTest, LooksAgainAfterAnOrchestratorWasAway) {
  WaitUntil(1100);
  fake_.FailNext(absl::UnavailableError("starting"));
  EXPECT_EQ(Look(), std::nullopt);
  EXPECT_TRUE(Look().has_value());
}

}  // namespace
}  // namespace pawl
