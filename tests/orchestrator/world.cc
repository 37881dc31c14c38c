#include "tests/orchestrator/world.h"

#include <gtest/gtest.h>

#include <future>

#include "base/names/resource_name.h"
#include "orchestrator/core/errors.h"
#include "spdlog/spdlog.h"
#include "tests/orchestrator/in_memory.h"

namespace pawl {

World::World(OrchestratorOptions options, int64_t max_pages, const Chooser* chooser)
    : options_(options), folder_(InMemory("pawl-world-")), chooser_(chooser == nullptr ? neighbours_ : *chooser) {
  spdlog::set_level(spdlog::level::off);
  options_.monotonic = [this] { return absl::Microseconds(monotonic_.load()); };
  Start(max_pages);
}

void World::Pass(absl::Duration time) {
  Advance(time);
  orchestrator_->Tick();
}

void World::Restart(int64_t max_pages) {
  Stop();
  Start(max_pages);
}

void World::RestartAfter(absl::Duration down) {
  Stop();
  Advance(down);
  Start(0);
}

void World::RestartWithLimits(std::map<std::string, SpendingLimit> limits) {
  options_.limits = std::move(limits);
  Restart();
}

void World::RestartAfter(const std::function<void()>& act) {
  Stop();
  act();
  Start(0);
}

void World::Restore(const std::filesystem::path& backup) {
  Stop();
  std::filesystem::rename(backup, file());
  Start(0);
}

void World::Stop() {
  orchestrator_.reset();
  history_.reset();
  store_.reset();
}

void World::Start(int64_t max_pages) {
  StoreOptions options;
  options.file = file();
  options.max_pages = max_pages;
  absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(options);
  if (!store.ok()) GTEST_FAIL() << store.status();
  store_ = *std::move(store);
  history_ = std::make_unique<History>(*store_);
  orchestrator_ = std::make_unique<Orchestrator>(
      *store_, chooser_, hub_, [this] { return now(); }, options_);
  const absl::Status loaded = orchestrator_->Load();
  ASSERT_TRUE(loaded.ok()) << loaded;
}

std::string World::Submit(const v1::CampaignSpec& spec, const v1::Bundle& bundle) {
  v1::SubmitCampaignRequest request;
  *request.mutable_bundle() = bundle;
  *request.mutable_spec() = spec;
  const absl::StatusOr<v1::Campaign> campaign = orchestrator_->Submit(request);
  EXPECT_TRUE(campaign.ok()) << campaign.status();
  return campaign.ok() ? campaign->name() : "";
}

v1::Campaign World::Get(const std::string& campaign) {
  v1::GetCampaignRequest request;
  request.set_name(campaign);
  const absl::StatusOr<v1::Campaign> found = orchestrator_->Get(request);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? *found : v1::Campaign();
}

absl::StatusOr<v1::CompleteTrialResponse> World::Complete(const v1::CompleteTrialRequest& request) {
  std::promise<absl::StatusOr<v1::CompleteTrialResponse>> answered;
  orchestrator_->Complete(
      request, [&](absl::StatusOr<v1::CompleteTrialResponse> answer) { answered.set_value(std::move(answer)); });
  return answered.get_future().get();
}

std::vector<absl::Status> World::CompleteTogether(const std::vector<v1::CompleteTrialRequest>& requests) {
  std::vector<std::promise<absl::Status>> answered(requests.size());  // throw when they are answered twice
  const v1::CompleteTrialRequest of_nobody;
  orchestrator_->Complete(of_nobody, [&](const absl::StatusOr<v1::CompleteTrialResponse>&) {
    for (size_t i = 0; i < requests.size(); ++i) {
      orchestrator_->Complete(requests[i], [&answered, i](const absl::StatusOr<v1::CompleteTrialResponse>& answer) {
        answered[i].set_value(answer.status());
      });
    }
  });
  std::vector<absl::Status> answers;
  for (std::promise<absl::Status>& one : answered) answers.push_back(one.get_future().get());
  return answers;
}

std::vector<v1::Event> World::Events(const std::string& campaign) {
  return store_->Events(ParseCampaignName(campaign).value_or(0), 0, 1'000'000).value();
}

std::vector<v1::Event> World::Events(const std::string& campaign, v1::Event::EventCase kind) {
  std::vector<v1::Event> events = Events(campaign);
  std::erase_if(events, [&](const v1::Event& event) { return event.event_case() != kind; });
  return events;
}

std::vector<v1::Iteration> World::Iterations(const std::string& campaign) {
  IterationQuery query;
  query.campaign = ParseCampaignName(campaign).value_or(0);
  query.limit = 1'000'000;
  return store_->ListIterations(query).value();
}

v1::ErrorDetail DetailOf(const absl::Status& status) {
  v1::ErrorDetail detail;
  EXPECT_TRUE(detail.ParseFromString(DetailsOf(status))) << status;
  return detail;
}

void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& message) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_NE(std::string(status.message()).find(message), std::string::npos) << status << " lacks " << message;
  EXPECT_NE(DetailOf(status).fix(), "") << status;
}

}  // namespace pawl
