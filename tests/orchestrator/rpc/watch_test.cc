// Following a campaign: nothing is missed, nothing comes twice, and the stream ends when there is nothing more to come.
#include <gtest/gtest.h>

#include <thread>

#include "tests/orchestrator/running_service.h"

namespace pawl {
namespace {

using Campaigns = v1::CampaignService::Stub;
using Workers = v1::WorkerService::Stub;

class Watch {
 public:
  Watch(RunningService& service, const std::string& campaign, int64_t after = 0) {
    v1::WatchCampaignRequest request;
    request.set_campaign(campaign);
    request.set_after_sequence(after);
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    reader_ = service.campaigns().WatchCampaign(&context_, request);
  }
  // The next event; progress is kept aside. Nothing: the stream has ended.
  std::optional<v1::Event> Next() {
    v1::WatchCampaignResponse message;
    while (reader_->Read(&message)) {
      if (message.has_event()) return message.event();
      progress.push_back(message.progress());
    }
    return std::nullopt;
  }
  v1::WatchCampaignResponse NextMessage() {
    v1::WatchCampaignResponse message;
    EXPECT_TRUE(reader_->Read(&message));
    return message;
  }
  std::vector<v1::Event> All() {
    std::vector<v1::Event> events;
    while (std::optional<v1::Event> event = Next()) events.push_back(*std::move(event));
    return events;
  }
  grpc::Status Finish() { return reader_->Finish(); }
  void Cancel() { context_.TryCancel(); }

  std::vector<v1::Progress> progress;

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchCampaignResponse>> reader_;
};

std::vector<std::string> Texts(const std::vector<v1::Event>& events) {
  std::vector<std::string> texts;
  for (const v1::Event& event : events) texts.push_back(event.ShortDebugString());
  return texts;
}

TEST(WatchTest, ShowsTwoWatchersTheSameFromTheStartToTheEnd) {
  RunningService service;
  const std::string campaign = service.Submit();
  Watch first(service, campaign), second(service, campaign);
  std::vector<v1::Event> one, other;
  std::thread reader([&] { one = first.All(); });
  std::thread late([&] { other = second.All(); });
  service.Register("workers/a");
  service.RunAll("workers/a");
  reader.join();
  late.join();
  ASSERT_EQ(one.size(), 20u);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].sequence(), static_cast<int64_t>(i) + 1);
  EXPECT_TRUE(one.front().has_submitted());
  EXPECT_TRUE(one.back().has_ended());
  EXPECT_EQ(Texts(one), Texts(other));
  EXPECT_TRUE(first.Finish().ok());
  EXPECT_TRUE(second.Finish().ok());
  for (const v1::Event& event : one) {
    if (event.has_finished()) {
      EXPECT_EQ(event.finished().result().pairs_size(), 0) << "samples are GetIteration's";
      EXPECT_EQ(event.finished().result().confirming_pairs_size(), 0);
      EXPECT_FALSE(event.finished().result().has_evidence());
      EXPECT_NE(event.finished().iteration().verdict(), v1::VERDICT_UNSPECIFIED);
    }
  }
  Watch afterwards(service, campaign);
  EXPECT_EQ(Texts(afterwards.All()), Texts(one)) << "and a watcher that comes too late";
}

TEST(WatchTest, ResumesAfterAnySequenceWithoutGapOrDouble) {
  RunningService service;
  service.Submit();
  const std::string campaign = service.Submit();  // sequences of two campaigns interleave
  service.Register("workers/a");
  service.RunAll("workers/a");
  const std::vector<v1::Event> all = Watch(service, campaign).All();
  ASSERT_EQ(all.size(), 20u);
  for (size_t received = 0; received <= all.size(); ++received) {
    const int64_t after = received == 0 ? 0 : all[received - 1].sequence();
    const std::vector<v1::Event> rest = Watch(service, campaign, after).All();
    EXPECT_EQ(Texts(rest), Texts({all.begin() + received, all.end()})) << after;
  }
}

TEST(WatchTest, StreamsALongHistory) {
  RunningService service;
  const std::string campaign = service.Submit();
  service.Register("workers/a");
  for (int i = 0; i < 120; ++i) {
    auto back = Made<v1::CompleteTrialRequest>("worker: 'workers/a' instance: 'one' given_back: true");
    back.set_lease(service.Lease("workers/a").lease());
    service.Ask(service.workers(), &Workers::CompleteTrial, back);
  }
  service.RunAll("workers/a");
  const std::vector<v1::Event> all = Watch(service, campaign).All();
  ASSERT_EQ(all.size(), 260u);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].sequence(), static_cast<int64_t>(i) + 1);
}

TEST(WatchTest, ShowsProgressBetweenEvents) {
  RunningService service;
  const std::string campaign = service.Submit();
  service.Register("workers/a");
  const v1::LeaseTrialResponse leased = service.Lease("workers/a");
  Watch watch(service, campaign);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(watch.Next());
  auto renew = Made<v1::RenewLeaseRequest>(
      "worker: 'workers/a' instance: 'one' progress { stage: STAGE_VALIDATE step: 4 steps: 7 text: 'validate at main' "
      "}");
  renew.set_lease(leased.lease());
  service.Ask(service.workers(), &Workers::RenewLease, renew);
  const v1::WatchCampaignResponse message = watch.NextMessage();
  ASSERT_TRUE(message.has_progress()) << message.ShortDebugString();
  EXPECT_EQ(message.progress().step(), 4);
  EXPECT_EQ(message.progress().text(), "validate at main");
  EXPECT_EQ(message.progress().worker(), "workers/a");
  EXPECT_EQ(message.progress().trial(), leased.trial().name());
  EXPECT_EQ(message.progress().iteration(), leased.trial().iteration());
  service.RunAll("workers/a");
  service.Ask(service.workers(), &Workers::CompleteTrial, RunningService::Result("workers/a", leased));
  EXPECT_TRUE(watch.Next()->has_finished());
  watch.Cancel();
}

TEST(WatchTest, WaitsForAVerificationOfACampaignThatHasEnded) {
  RunningService service;
  const std::string campaign = service.Submit();
  service.Register("workers/a");
  service.RunAll("workers/a");
  v1::VerifyIterationRequest verify;
  verify.set_name(campaign + "/iterations/0");
  const auto planned = service.Ask(service.campaigns(), &Campaigns::VerifyIteration, verify);
  Watch watch(service, campaign, planned.after_sequence());
  const std::optional<v1::Event> first = watch.Next();
  ASSERT_TRUE(first && first->has_planned());
  Watch resumed(service, campaign, first->sequence());  // by one whose connection broke
  std::vector<v1::Event> rest, again;
  std::thread one([&] { rest = watch.All(); });
  std::thread other([&] { again = resumed.All(); });
  service.RunAll("workers/a");
  one.join();
  other.join();
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_TRUE(rest[1].finished().has_verification());
  EXPECT_EQ(Texts(again), Texts(rest));
  EXPECT_TRUE(watch.Finish().ok());
}

TEST(WatchTest, RefusesWhatItDoesNotKnow) {
  RunningService service;
  const std::string campaign = service.Submit();
  const auto refused = [&](const std::string& name, int64_t after, grpc::StatusCode code, const std::string& part) {
    Watch watch(service, name, after);
    EXPECT_FALSE(watch.Next());
    ExpectRefusal(watch.Finish(), code, part);
  };
  refused("seven", 0, grpc::StatusCode::INVALID_ARGUMENT, "campaign");
  refused("campaigns/77", 0, grpc::StatusCode::NOT_FOUND, "campaigns/77");
  refused(campaign, -1, grpc::StatusCode::INVALID_ARGUMENT, "after_sequence");
}

TEST(WatchTest, ForgetsWhoLeavesAndTellsTheOthersWhenItStops) {
  RunningService service;
  const std::string campaign = service.Submit();
  Watch leaves(service, campaign), stays(service, campaign);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(leaves.Next() && stays.Next());
  leaves.Cancel();
  EXPECT_FALSE(leaves.Next());
  service.Register("workers/a");
  service.Lease("workers/a");
  EXPECT_TRUE(stays.Next()->has_leased());
  service.Stop();
  EXPECT_FALSE(stays.Next());
  ExpectRefusal(stays.Finish(), grpc::StatusCode::UNAVAILABLE, "watch again from the last sequence");
}

TEST(WatchTest, LetsOnlySoManyWatch) {
  RunningService service;
  const std::string campaign = service.Submit();
  std::vector<std::unique_ptr<Watch>> watches;
  for (int i = 0; i < 500; ++i) {
    watches.push_back(std::make_unique<Watch>(service, campaign));
    ASSERT_TRUE(watches.back()->NextMessage().has_event());
  }
  Watch one_more(service, campaign);
  EXPECT_FALSE(one_more.Next().has_value());
  ExpectRefusal(one_more.Finish(), grpc::StatusCode::RESOURCE_EXHAUSTED, "500 watches are open already");
  watches.back()->Cancel();
  watches.back()->Finish();
  for (int i = 0; i < 500; ++i) {  // the orchestrator notices in its own time
    Watch instead(service, campaign);
    if (instead.Next().has_value()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL() << "nobody was let in for one that has gone";
}

}  // namespace
}  // namespace pawl
