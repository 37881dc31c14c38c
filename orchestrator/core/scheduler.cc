#include "orchestrator/core/scheduler.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash/hash.h"
#include "base/names/resource_name.h"
#include "orchestrator/engine/ahead/foresee.h"
#include "orchestrator/engine/search/next_event.h"
#include "orchestrator/engine/verdict/seat.h"
#include "orchestrator/security/tokens.h"
#include "profiles/gpus.h"

namespace pawl {
namespace {

constexpr absl::Duration kReconnect = absl::Seconds(30);

// Workers for which this is the same can run the same trials.
std::string KindOf(const v1::Device& device) {
  return absl::StrCat(device.kind(), " ", device.sanitizer(), " ", device.label(), "\n",
                      absl::StrJoin(device.bundle_hashes(), " "));
}

double PricePerHour(const v1::Device& device) {
  if (device.kind() != v1::DEVICE_KIND_CUDA) return 0;  // a replay costs nothing
  const GpuSpec* spec = FindGpu(device.gpu().name());
  return spec == nullptr ? 0 : spec->price_per_hour;
}

// The same trial of the same campaign has the same noise in a replay.
uint64_t SeedOf(const std::string& trial) { return std::stoull(Sha256(trial).substr(0, 16), nullptr, 16); }

v1::Trial TrialOf(const CampaignState& campaign, const OpenTrial& open) {
  v1::Trial trial;
  const v1::TrialPlanned& planned = open.planned;
  const std::string& name = campaign.summary().name();
  trial.set_name(absl::StrCat(name, "/trials/", planned.trial()));
  trial.set_purpose(planned.purpose());
  trial.set_iteration(absl::StrCat(name, "/iterations/", planned.iteration()));
  const bool starts = !planned.bundle_hash().empty();  // its bundle has the source
  trial.set_bundle_hash(starts ? planned.bundle_hash() : campaign.summary().bundle_hash());
  *trial.mutable_variant() = planned.variant();
  if (planned.has_parent()) {
    const v1::Iteration& parent = *campaign.Find(planned.parent());
    *trial.mutable_parent() = VariantOf(parent);
    trial.set_parent_us(parent.time_us());
    if (campaign.SourceIdOf(planned.parent()) > 0) trial.set_parent_patched_source(campaign.SourceOf(planned.parent()));
  }
  if (campaign.SourceIdOf(planned.iteration()) > 0 && !starts) {
    trial.set_patched_source(campaign.SourceOf(planned.iteration()));
  }
  const v1::Iteration* again = campaign.Find(planned.iteration());
  const int leg = planned.purpose() == v1::TRIAL_PURPOSE_VERIFY && again != nullptr ? again->leg() : campaign.leg();
  trial.set_size(campaign.GoalOf(leg).size());
  if (leg > 0) *trial.mutable_goal() = campaign.GoalOf(leg);
  *trial.mutable_also() = planned.also();
  *trial.mutable_keep() = campaign.summary().spec().keep();
  trial.set_seed(SeedOf(trial.name()));
  trial.set_attempt(open.attempt);
  if (planned.has_noise()) *trial.mutable_noise() = planned.noise();
  *trial.mutable_hand_off() = planned.hand_off();
  trial.set_interim(planned.interim());
  trial.set_sanitize_start(starts);
  for (const int number : planned.unsanitized()) {
    v1::UnsanitizedVariant& kept = *trial.add_unsanitized();
    kept.set_iteration(number);
    *kept.mutable_variant() = VariantOf(*campaign.Find(number));
    if (campaign.SourceIdOf(number) > 0) kept.set_patched_source(campaign.SourceOf(number));
  }
  trial.set_step(planned.purpose() == v1::TRIAL_PURPOSE_ITERATION && planned.expedition());
  AddWitness(campaign, planned, &trial);
  return trial;
}

// Nothing is claimed that was not sanitized: what compute-sanitizer is to run over waits for a device with it; the
// winner, at large sizes, where any worker of the campaign had it.
bool NeedsSanitizer(const CampaignState& campaign, const v1::TrialPlanned& planned) {
  const bool last = planned.purpose() == v1::TRIAL_PURPOSE_TOTAL && !planned.interim();
  return planned.purpose() == v1::TRIAL_PURPOSE_SANITIZE || (last && campaign.had_sanitizer());
}

// One of its open trials.
absl::Status CanTake(const v1::Device& device, const CampaignState& campaign, int trial) {
  if (absl::Status can = CanRun(device, campaign.summary(), campaign.space_hash()); !can.ok()) return can;
  if (device.sanitizer() || !NeedsSanitizer(campaign, campaign.open_trials().at(trial).planned)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError("it has no compute-sanitizer, which has to run over kept variants");
}

// A trial that needs it has no worker.
bool WaitsForSanitizer(const CampaignState& campaign) {
  const auto& trials = campaign.open_trials();
  return std::any_of(trials.begin(), trials.end(), [&](const auto& trial) {
    return trial.second.worker.empty() && NeedsSanitizer(campaign, trial.second.planned);
  });
}

}  // namespace

absl::Status CanTakeSome(const v1::Device& device, const CampaignState& campaign) {
  absl::Status can_not = absl::OkStatus();
  for (const auto& [trial, open] : campaign.open_trials()) {
    if (!open.worker.empty()) continue;
    const absl::Status can = CanTake(device, campaign, trial);
    if (can.ok()) return can;
    can_not.Update(can);
  }
  return can_not.ok() ? CanRun(device, campaign.summary(), campaign.space_hash()) : can_not;
}

double Scheduler::WeightOf(const std::string& author) const {
  const auto found = options_.shares.find(author);
  return found == options_.shares.end() ? 1 : found->second;
}

int Scheduler::SlotsOf(const CampaignState& campaign, absl::Time now) const {
  const std::string& device = campaign.summary().device();
  if (device.empty()) return 1;
  const std::vector<const v1::Worker*> present = state_.workers.Present(now);
  if (present.size() <= 1) return 1;
  const auto workers = std::count_if(present.begin(), present.end(), [&](const v1::Worker* worker) {
    return CanRun(worker->device(), campaign.summary(), campaign.space_hash()).ok();
  });
  const int priority = campaign.summary().spec().priority();
  std::map<std::string, int> campaigns;  // by author; of its own only those of its priority
  bool behind = false;
  for (const auto& [number, other] : state_.campaigns) {
    const v1::Campaign& summary = other->summary();
    const bool goes_on = summary.state() == v1::WAITING || summary.state() == v1::RUNNING;
    if (!goes_on || (!summary.device().empty() && summary.device() != device)) continue;
    const bool own = other->author() == campaign.author();
    behind |=
        own && summary.spec().priority() > priority && !other->open_trials().empty() &&
        std::any_of(present.begin(), present.end(), [&](const v1::Worker* worker) {
          return worker->device().label() == device && CanRun(worker->device(), summary, other->space_hash()).ok();
        });
    if (own && summary.spec().priority() != priority) continue;
    const int of_author = ++campaigns[other->author()];
    // With so many of its own it has one, whatever the others are.
    if (own && 2 * of_author > workers) return 1;
  }
  if (behind) return 1;
  double weights = 0;
  for (const auto& [author, count] : campaigns) weights += WeightOf(author);
  const auto own = campaigns.find(campaign.author());
  const double share = own == campaigns.end() || weights <= 0 ? 1 : WeightOf(campaign.author()) / weights / own->second;
  return std::clamp(static_cast<int>(static_cast<double>(workers) * share + 1e-9), 1, kMaxSlots);
}

bool Scheduler::LeavesToOthers(const v1::Worker& worker, const TrialQueue::Key& key, absl::Time now) const {
  const CampaignState& campaign = *state_.campaigns.at(key.campaign);
  const auto failed = state_.failed_by.find({key.campaign, key.trial});
  if (failed == state_.failed_by.end() || !failed->second.contains(worker.name())) return false;
  const std::vector<const v1::Worker*> present = state_.workers.Present(now);
  return std::any_of(present.begin(), present.end(), [&](const v1::Worker* other) {
    return other->state() == v1::WORKER_STATE_IDLE && !failed->second.contains(other->name()) &&
           CanTake(other->device(), campaign, key.trial).ok();
  });
}

std::optional<TrialQueue::Key> Scheduler::NextFor(const v1::Worker& worker, absl::Time now) const {
  const v1::Device& device = worker.device();
  const auto& queued = state_.queue.by_author();
  std::map<std::string, int> held;  // leases on devices like this one
  if (queued.size() > 1) {
    for (const auto& [key, lease] : state_.leases) {
      const CampaignState& campaign = *state_.campaigns.at(key.first);
      if (campaign.summary().device() == device.label()) ++held[campaign.author()];
    }
  }
  std::vector<std::pair<double, const std::set<TrialQueue::Key>*>> authors;
  for (const auto& [author, keys] : queued) {
    const auto limited = state_.limited.find(author);
    if (limited != state_.limited.end() && !limited->second.until) continue;
    authors.emplace_back(held[author] / WeightOf(author), &keys);
  }
  // Among authors who hold as much, the one who waits longest: a priority counts among one's own campaigns only.
  const auto place = [](const auto& author) {
    const TrialQueue::Key& first = *author.second->begin();
    return std::tuple(author.first, first.planned_at, first.campaign);
  };
  std::sort(authors.begin(), authors.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  for (const auto& [used, keys] : authors) {
    for (const TrialQueue::Key& key : *keys) {
      if (state_.InUse(key.campaign)) continue;  // it is offered after the decision
      const CampaignState& campaign = *state_.campaigns.at(key.campaign);
      if (CanTake(device, campaign, key.trial).ok() && !LeavesToOthers(worker, key, now)) return key;
    }
  }
  return std::nullopt;
}

void Scheduler::EndWaitsForProposals(Step* step) {
  for (const auto& [number, campaign] : state_.campaigns) {
    if (state_.InUse(number)) continue;
    const std::optional<absl::Duration> left = WaitsForProposal(*campaign, {step->now, step->served});
    // Nobody could propose while this process was not there.
    const bool interrupted = Between(campaign->idle_since(), state_.loaded_at) >= absl::ZeroDuration();
    const bool reconnecting = interrupted && Between(state_.loaded_at, {step->now, step->served}) < kReconnect;
    if (!left || *left > absl::ZeroDuration() || reconnecting) continue;
    step->touched.insert(number);
  }
}

void Scheduler::NoteLimits(Step* step) {
  if (options_.limits.empty() && state_.limited.empty()) return;
  std::set<std::string> authors;
  for (const auto& [author, keys] : state_.queue.by_author()) authors.insert(author);
  for (const auto& [author, span] : state_.limited) authors.insert(author);
  for (const std::string& author : authors) {
    const bool reached = state_.limits.Find(author, step->now).has_value();
    const auto known = state_.limited.find(author);
    if (reached && (known == state_.limited.end() || known->second.until)) {
      state_.limited[author] = {.since = step->served, .until = {}};
    } else if (!reached && known != state_.limited.end() && !known->second.until) {
      known->second.until = step->served;
    }
  }
}

absl::Duration Scheduler::HeldBack(const CampaignState& campaign, absl::Duration now) const {
  const auto limited = state_.limited.find(campaign.author());
  if (limited == state_.limited.end()) return absl::ZeroDuration();
  absl::Duration begin = std::max(limited->second.since, campaign.idle_since().served.value_or(absl::ZeroDuration()));
  for (const auto& [trial, open] : campaign.open_trials()) {
    if (!open.worker.empty()) return absl::ZeroDuration();  // it works
    if (open.attempt > 0) begin = std::max(begin, open.free_since.served.value_or(begin));
  }
  return std::max(limited->second.until.value_or(now) - begin, absl::ZeroDuration());
}

bool Scheduler::TakeTrial(Step* step, const std::string& name, v1::LeaseTrialResponse* response) {
  v1::Worker* worker = state_.workers.Mutable(name);
  if (!state_.leasing || state_.maintenance.on() || worker == nullptr || worker->state() != v1::WORKER_STATE_IDLE)
    return false;
  const std::optional<TrialQueue::Key> next = NextFor(*worker, step->now);
  if (!next) return false;
  const int64_t number = next->campaign;
  const int trial = next->trial;
  CampaignState& campaign = *state_.campaigns.at(number);
  v1::Event event;
  v1::TrialLeased& leased = *event.mutable_leased();
  leased.set_trial(trial);
  leased.set_attempt(campaign.open_trials().at(trial).attempt + 1);
  leased.set_worker(name);
  leased.set_device(worker->device().label());
  leased.set_replay(worker->device().kind() == v1::DEVICE_KIND_REPLAY);
  leased.set_price_per_hour(PricePerHour(worker->device()));
  leased.set_nonce(RandomBytes(kLeaseNonce));
  leased.set_held_us(absl::ToInt64Microseconds(HeldBack(campaign, step->served)));
  const LeaseName lease{number, trial, leased.attempt(), leased.nonce()};
  committer_.Add(step, &campaign, std::move(event));
  leases_.Grant({number, trial}, worker);
  *response->mutable_trial() = TrialOf(campaign, campaign.open_trials().at(trial));
  response->set_lease(LeaseToken(secret_, lease, name));
  if (worker->device().kind() == v1::DEVICE_KIND_CUDA) {
    for (v1::ForeseenVariant& next : Foresee(campaign, campaign.open_trials().at(trial).planned)) {
      *response->add_foreseen() = std::move(next);
    }
  }
  return true;
}

void Scheduler::OfferTrials(Step* step) {
  NoteLimits(step);
  std::set<std::string> hopeless;  // kinds of workers for which the queue has nothing
  OfferTrials(step, /*unconfirmed=*/false, &hopeless);
  OfferTrials(step, /*unconfirmed=*/true, &hopeless);
}

// To those that confirmed their last lease, or to the others, in the order in which they came.
void Scheduler::OfferTrials(Step* step, bool unconfirmed, std::set<std::string>* hopeless) {
  for (auto it = state_.waiting.begin(); it != state_.waiting.end() && !state_.queue.empty();) {
    if (state_.unconfirmed.contains(it->second.worker) != unconfirmed) {
      ++it;
      continue;
    }
    const v1::Worker* worker = state_.workers.Find(it->second.worker);
    const std::string kind = worker == nullptr ? "" : KindOf(worker->device());
    Step::Offer offer;
    if (worker == nullptr || hopeless->contains(kind) || !TakeTrial(step, it->second.worker, &offer.response)) {
      const bool failed = std::any_of(state_.failed_by.begin(), state_.failed_by.end(),
                                      [&](const auto& trial) { return trial.second.contains(it->second.worker); });
      if (worker != nullptr && worker->state() == v1::WORKER_STATE_IDLE && !failed) hopeless->insert(kind);
      ++it;
      continue;
    }
    offer.answer = std::move(it->second.answer);
    step->offers.push_back(std::move(offer));
    it = state_.waiting.erase(it);
  }
}

void Scheduler::Foretell(Step* step, const CampaignState& campaign) {
  for (const auto& [trial, open] : campaign.open_trials()) {
    const v1::Worker* worker = open.worker.empty() ? nullptr : state_.workers.Find(open.worker);
    if (worker == nullptr || worker->device().kind() != v1::DEVICE_KIND_CUDA) continue;
    const auto waiting = std::find_if(state_.waiting.begin(), state_.waiting.end(),
                                      [&name = open.worker](const auto& waits) { return waits.second.worker == name; });
    if (waiting == state_.waiting.end()) continue;
    Step::Offer offer;
    for (v1::ForeseenVariant& next : Foresee(campaign, open.planned)) {
      *offer.response.add_foreseen() = std::move(next);
    }
    if (offer.response.foreseen().empty()) continue;
    const int64_t number = *ParseCampaignName(campaign.summary().name());
    offer.response.set_lease(LeaseToken(secret_, {number, trial, open.attempt, open.nonce}, open.worker));
    offer.answer = std::move(waiting->second.answer);
    step->offers.push_back(std::move(offer));
    state_.waiting.erase(waiting);
  }
}

void Scheduler::EndWaits(absl::Time now, Deferred* deferred) {
  for (auto it = state_.waiting.begin(); it != state_.waiting.end();) {
    // A pending LeaseTrial call counts as a heartbeat.
    const bool known = state_.workers.Hear(it->second.worker, it->second.instance, now).ok();
    if (known && it->second.deadline > now) {
      ++it;
      continue;
    }
    deferred->push_back([answer = std::move(it->second.answer)] { answer(v1::LeaseTrialResponse()); });
    it = state_.waiting.erase(it);
  }
}

void Scheduler::EndWaitsOf(const std::string& worker, Deferred* deferred) {
  for (auto it = state_.waiting.begin(); it != state_.waiting.end();) {
    if (it->second.worker != worker) {
      ++it;
      continue;
    }
    deferred->push_back([answer = std::move(it->second.answer)] { answer(v1::LeaseTrialResponse()); });
    it = state_.waiting.erase(it);
  }
}

bool Scheduler::SayWhatHoldsIt(const CampaignState& campaign, absl::Time now, v1::Campaign* said) const {
  const std::string kMinute = "%Y-%m-%d %H:%M UTC";
  if (const v1::MaintenanceNote& note = state_.maintenance; note.on()) {
    said->set_waiting_for(v1::WAITING_FOR_MAINTENANCE);
    said->set_message(absl::StrCat("maintenance since ",
                                   absl::FormatTime(kMinute, TimeOf(note.since()), absl::UTCTimeZone()),
                                   note.reason().empty() ? "" : absl::StrCat(" (", note.reason(), ")"),
                                   ": no trial is leased until pawl maintenance off"));
    return true;
  }
  const std::optional<AuthorLimits::Reached> reached = state_.limits.Find(campaign.author(), now);
  if (!reached) return false;
  said->set_waiting_for(v1::WAITING_FOR_LIMIT);
  said->set_message(absl::StrCat(reached->text, ": no trial is leased until ",
                                 absl::FormatTime(kMinute, reached->until, absl::UTCTimeZone()),
                                 ", or until the orchestrator has a higher ", reached->flag));
  return true;
}

void Scheduler::SayWhatItWaitsFor(const CampaignState& campaign, absl::Time now, v1::Campaign* said) const {
  const auto say = [&](v1::WaitingFor what, const std::string& message) {
    said->set_waiting_for(what);
    said->set_message(message);
  };
  if (state_.maintenance.on()) {
    SayWhatHoldsIt(campaign, now, said);
    return;
  }
  const std::optional<absl::Duration> left = WaitsForProposal(campaign, {now, state_.CampaignTime()});
  if (left && !WaitsForSanitizer(campaign)) {
    const std::string what =
        campaign.awaits_start() ? "has no device code yet, and waits for a proposal of it" : "waits for a proposal";
    const std::string until =
        *left == absl::InfiniteDuration()
            ? ""
            : absl::StrCat(" until ", absl::FormatTime("%H:%M:%S", now + *left, absl::UTCTimeZone()), " UTC");
    return say(v1::WAITING_FOR_PROPOSAL, absl::StrCat(what, until, ": pawl propose"));
  }
  if (SayWhatHoldsIt(campaign, now, said)) return;
  const std::vector<const v1::Worker*> present = state_.workers.Present(now);
  if (present.empty()) return say(v1::WAITING_FOR_WORKER, "no worker is registered: start pawl-worker");
  std::string why;
  for (const v1::Worker* worker : present) {
    const absl::Status can = CanTakeSome(worker->device(), campaign);
    if (can.ok()) return say(v1::WAITING_FOR_UNSPECIFIED, "");
    absl::StrAppend(&why, why.empty() ? "" : "; ", worker->name(), " (", worker->device().label(),
                    "): ", std::string(can.message()));
  }
  say(v1::WAITING_FOR_DEVICE, absl::StrCat("no worker can take it: ", why));
}

}  // namespace pawl
