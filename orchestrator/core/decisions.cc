// What follows from the events of a campaign: new trials, a pause, or its end. The engine takes milliseconds to decide,
// so that the thread that committed the events decides without the lock; others don't change the campaign meanwhile
// (LiveState::InUse). Who can't wait for that puts a copy in its place (LiveState::Own): the decision is dropped, and
// the same thread makes it again for the copy. Results are written together with what is decided from them, or before
// by who can't wait.
#include <chrono>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "orchestrator/core/orchestrator.h"
#include "orchestrator/engine/ahead/look_ahead.h"
#include "orchestrator/engine/search/next_event.h"

namespace pawl {
namespace {

// People who steer a campaign wait no longer than this for a decision about it, or, so that one is ever made, where the
// last one was dropped.
constexpr std::chrono::milliseconds kPatience(20), kPatienceAgain(1000);
constexpr size_t kOpenAtStart = 64;  // decisions at a time, so that trials are leased before the last is made

constexpr size_t kFewDecisions = 4;

// Its variants are compiled, and not only when somebody else proposes them.
bool BuildsAhead(const CampaignState& campaign) {
  return !campaign.summary().replay() && campaign.summary().spec().chooser().kind() != v1::CHOOSER_KIND_OUTSIDE;
}

TrialKey KeyOfNext(const v1::CompleteTrialResponse& response) {
  const NameInCampaign trial = *ParseTrialName(response.next().trial().name());
  return {trial.campaign, trial.number};
}

}  // namespace

std::vector<OpenDecision> Orchestrator::Open(const std::set<int64_t>& numbers) {
  const Moment now{clock_(), state_.CampaignTime()};
  // By bundle, device and author: counting takes long where there are hundreds of workers.
  std::map<std::string, int> counted;
  std::vector<OpenDecision> opened;
  for (int64_t number : numbers) {
    const auto found = state_.campaigns.find(number);
    // A thread that decides for it will see what has changed.
    if (found == state_.campaigns.end() || state_.deciding.contains(number)) continue;
    const CampaignState& campaign = *found->second;
    OpenDecision open{.number = number, .campaign = found->second, .now = now};
    if (const CampaignState::Proposal* edit = UnappliedEdit(campaign)) {
      open.patch = edit->proposed.change().source().patch();
      open.bases = BasesOf(campaign);
    } else if (!MayDecide(campaign, open.slots)) {
      if (!MayDecide(campaign, Scheduler::kMaxSlots)) continue;
      const auto [slots, is_new] = counted.try_emplace(
          absl::StrCat(campaign.space_hash(), campaign.summary().device(), "\n", campaign.author()));
      if (is_new) slots->second = scheduler_.SlotsOf(campaign, now.time);
      open.slots = slots->second;
      if (!MayDecide(campaign, open.slots)) continue;
    }
    state_.deciding[number] = found->second.get();
    opened.push_back(std::move(open));
  }
  return opened;
}

void Orchestrator::Decide(std::vector<OpenDecision> open, std::vector<NextLease> next,
                          const std::shared_ptr<AppliedResults>& results) {
  while (!open.empty() || !next.empty()) {  // Close leaves nobody in `next` where nothing is left to decide
    for (OpenDecision& one : open) {
      if (one.bases) {
        one.patched = Patched(*one.bases, one.patch);
      } else {
        one.event = pawl::Decide(*one.campaign, chooser_, one.now, *options_.profiles, one.slots);
        // It takes some choices more, for which the others of this batch wait: not where there are many.
        const bool few = open.size() <= kFewDecisions;
        if (few && one.event && one.event->has_planned() && BuildsAhead(*one.campaign)) {
          LookAhead(*one.campaign, *one.event, chooser_);
        }
      }
    }
    open = Close(std::move(open), &next, results);
  }
}

std::vector<OpenDecision> Orchestrator::Close(std::vector<OpenDecision> open, std::vector<NextLease>* next,
                                              const std::shared_ptr<AppliedResults>& results) {
  std::vector<NextLease> asking = std::exchange(*next, {}), leased;
  Turn turn(&mutex_);
  const bool serving = Serving().ok();
  Step step = Begin();
  const bool unwritten = results != nullptr && !results->written;
  if (unwritten) {
    std::erase(unwritten_, results);
    step.writes = std::move(results->step.writes);
    step.touched = std::move(results->step.touched);
    step.lines = std::move(results->step.lines);
    if (!serving) results->written = Serving();
  } else if (results != nullptr && !results->written->ok()) {
    asking.clear();  // they are told that their results were not written
  }
  std::set<int64_t> again;
  for (OpenDecision& one : open) {
    state_.deciding.erase(one.number);
    if (const auto held = held_.find(one.number); held != held_.end()) {
      for (Completion& completion : held->second) completions_.Add(std::move(completion));
      held_.erase(held);
    }
    again.insert(one.number);
    const auto found = state_.campaigns.find(one.number);
    if (!serving || found == state_.campaigns.end() || found->second != one.campaign) continue;  // overtaken
    if (one.event) {
      if (one.event->has_ended()) leases_.ReleaseAllOf(one.number, *found->second);
      committer_.Add(&step, found->second.get(), *std::move(one.event));
    } else if (one.bases) {
      UnappliedEdit(*found->second)->patched = std::move(one.patched);
    } else {
      again.erase(one.number);
    }
    state_.overtaken.erase(one.number);
  }
  decided_.SignalAll();
  if (!serving) return {};
  scheduler_.NoteLimits(&step);
  for (NextLease& each : asking) {
    const bool took = scheduler_.TakeTrial(&step, each.worker, each.response->mutable_next());
    if (!took) each.response->clear_next();
    // It asked while it delivered, so that it is there, and begins without another call.
    if (took) leases_.Renew(KeyOfNext(*each.response), each.worker);
    (took ? leased : *next).push_back(std::move(each));
  }
  again.insert(step.touched.begin(), step.touched.end());
  scheduler_.OfferTrials(&step);
  open.clear();
  const absl::Status written = committer_.Commit(&step, turn.deferred());
  if (unwritten) results->written = written;
  if (written.ok()) {
    open = Open(again);
  } else {  // which is kept in state_.broken
    for (const NextLease& each : leased) each.response->clear_next();
  }
  if (open.empty()) next->clear();
  return open;
}

absl::Status Orchestrator::WriteResults(Deferred* deferred) {
  for (const std::shared_ptr<AppliedResults>& results : std::exchange(unwritten_, {})) {
    results->written = Serving().ok() ? committer_.Commit(&results->step, deferred) : Serving();
  }
  return Serving();
}

void Orchestrator::DecideAfterLoad() {
  std::set<int64_t> numbers;
  {
    absl::MutexLock lock(&mutex_);
    const Moment now{clock_(), state_.CampaignTime()};
    for (const auto& [number, campaign] : state_.campaigns) {
      // A wait for a proposal that is over is ended by Tick, once those who propose could connect again.
      const bool waited = WaitsForProposal(*campaign, now).value_or(absl::InfiniteDuration()) <= absl::ZeroDuration();
      if (UnappliedEdit(*campaign) != nullptr || (MayDecide(*campaign, /*slots=*/1) && !waited)) numbers.insert(number);
    }
  }
  while (!numbers.empty()) {
    std::set<int64_t> some;
    while (!numbers.empty() && some.size() < kOpenAtStart) some.insert(numbers.extract(numbers.begin()));
    std::vector<OpenDecision> open;
    {
      absl::MutexLock lock(&mutex_);
      if (!Serving().ok()) return;
      open = Open(some);
    }
    Decide(std::move(open));
  }
}

void Orchestrator::AwaitDecision(const std::string& campaign) {
  const int64_t number = ParseCampaignName(campaign).value_or(0);
  const auto deadline =
      std::chrono::steady_clock::now() + (state_.overtaken.contains(number) ? kPatienceAgain : kPatience);
  while (state_.InUse(number) && decided_.WaitUntil(&mutex_, deadline)) {
  }
}

}  // namespace pawl
