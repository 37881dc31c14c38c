#include "orchestrator/core/orchestrator.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/faults/fault_point.h"
#include "base/hash/hash.h"
#include "base/names/resource_name.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/log_line.h"
#include "orchestrator/core/stored_campaign.h"
#include "orchestrator/engine/search/architecture.h"
#include "orchestrator/engine/search/decide.h"
#include "orchestrator/engine/verdict/verdict.h"
#include "orchestrator/security/tokens.h"
#include "profiles/gpus.h"
#include "profiles/pattern_file.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

constexpr absl::Duration kReconnect = absl::Seconds(30);
constexpr int kMaxSlots = 16;             // a round that is larger chooses blindly
constexpr int kBaselineCampaigns = 1000;  // the newest, from which it is known what a baseline takes

// What a baseline's time depends on.
std::string BaselineKey(const v1::Campaign& campaign, const std::string& what) {
  return absl::StrCat(campaign.bundle_hash(), "\n", campaign.device(), "\n", campaign.spec().goal().size(), "\n", what);
}

// Workers for which this is the same can run the same trials.
std::string KindOf(const v1::Device& device) {
  return absl::StrCat(device.kind(), " ", device.label(), "\n", absl::StrJoin(device.bundle_hashes(), " "));
}

// The iteration that a lease is about.
int IterationOf(const CampaignState& campaign, const v1::Event& event) {
  const auto open = campaign.open_trials().find(event.has_leased() ? event.leased().trial() : event.lost().trial());
  return open == campaign.open_trials().end() ? 0 : open->second.planned.iteration();
}

double PricePerHour(const v1::Device& device) {
  if (device.kind() != v1::DEVICE_KIND_CUDA) return 0;  // a replay costs nothing
  const GpuSpec* spec = FindGpu(device.gpu().name());
  return spec == nullptr ? 0 : spec->price_per_hour;
}

// The same trial of the same campaign has the same noise in a replay.
uint64_t SeedOf(const std::string& trial) { return std::stoull(Sha256(trial).substr(0, 16), nullptr, 16); }

}  // namespace

Orchestrator::Orchestrator(Store& store, const Chooser& chooser, WatchHub& hub, Clock clock,
                           OrchestratorOptions options)
    : store_(store),
      chooser_(chooser),
      hub_(hub),
      clock_(std::move(clock)),
      options_(options),
      workers_(options.lease),
      patterns_(ShippedPatterns()),
      completer_([this] { WorkOffCompletions(); }) {}

Orchestrator::~Orchestrator() {
  {
    std::lock_guard lock(completions_mutex_);
    ending_ = true;
  }
  completion_arrived_.notify_all();
  completer_.join();
}

absl::Status Orchestrator::Load() {
  std::lock_guard lock(mutex_);
  if (absl::Status status = BringRowsUpToDate(store_); !status.ok()) return status;
  if (absl::Status status = LoadAll(); !status.ok()) return status;
  const std::vector<std::string> old = workers_.RemoveOld(clock_() - options_.forget_workers);
  if (absl::Status status = store_.RemoveWorkers(old); !status.ok()) {
    spdlog::warn("{} workers of long ago stay in the database: {}", old.size(), std::string(status.message()));
  }
  return absl::OkStatus();
}

absl::Status Orchestrator::LoadAll() {
  campaigns_.clear();
  deadlines_.clear();
  queue_.clear();
  queued_.clear();
  baselines_.clear();
  const absl::Time now = clock_();
  loaded_at_ = now;
  absl::StatusOr<std::vector<StoredWorker>> workers = store_.Workers();
  if (!workers.ok()) return workers.status();
  workers_.Load(*workers, now);
  if (absl::Status status = patterns_.Load(store_); !status.ok()) return status;
  absl::StatusOr<std::vector<v1::Campaign>> newest =
      store_.ListCampaigns(std::numeric_limits<int64_t>::max(), kBaselineCampaigns);
  if (!newest.ok()) return newest.status();
  for (auto campaign = newest->rbegin(); campaign != newest->rend(); ++campaign) NoteBaseline(*campaign);
  absl::StatusOr<int64_t> last = store_.LastCampaign();
  if (!last.ok()) return last.status();
  next_campaign_ = *last + 1;
  absl::StatusOr<std::vector<int64_t>> unfinished = store_.UnfinishedCampaigns();
  if (!unfinished.ok()) return unfinished.status();
  for (int64_t number : *unfinished) {
    absl::StatusOr<std::unique_ptr<CampaignState>> campaign = LoadCampaign(number);
    if (!campaign.ok()) return campaign.status();
    for (const auto& [trial, open] : (*campaign)->open_trials()) {
      if (open.worker.empty()) continue;
      deadlines_[{number, trial}] = now + options_.lease;
      if (v1::Worker* worker = workers_.Mutable(open.worker)) worker->add_trials(TrialName(number, trial));
    }
    Requeue(number, **campaign);
    campaigns_[number] = *std::move(campaign);
  }
  broken_ = absl::OkStatus();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CampaignState>> Orchestrator::LoadCampaign(int64_t number) {
  absl::StatusOr<StoredCampaign> campaign = ReadCampaign(store_, number, &bundles_);
  if (!campaign.ok()) return campaign.status();
  return std::move(campaign->state);
}

void Orchestrator::Add(Step* step, CampaignState* campaign, v1::Event event) {
  event.set_campaign(campaign->summary().name());
  SetTime(step->now, event.mutable_time());
  step->lines.push_back(LogLine(event, IterationOf(*campaign, event)));
  if (const std::string& source = event.planned().patched_source(); !source.empty()) {
    step->writes.blobs.push_back({v1::Blob::SOURCE, Sha256(source), source});
  }
  for (const int taken_back : event.finished().total_gain().taken_back()) {
    const v1::Iteration* kept = campaign->Find(taken_back);
    if (kept == nullptr) continue;
    patterns_.TakenBack(*kept, campaign->summary().bundle(),
                        ArchitectureOf(campaign->gpu(), campaign->summary().device()), &step->writes);
  }
  campaign->Apply(event);
  if (event.finished().has_iteration()) {
    patterns_.Judged(event.finished().iteration(), campaign->summary().bundle(),
                     ArchitectureOf(campaign->gpu(), campaign->summary().device()), &step->writes);
  }
  const int64_t number = *ParseCampaignName(campaign->summary().name());
  step->touched.insert(number);
  Requeue(number, *campaign);
  step->writes.events.push_back(std::move(event));
}

// Of a campaign that finished: nobody stopped it for its baseline.
void Orchestrator::NoteBaseline(const v1::Campaign& summary) {
  if (summary.state() != v1::FINISHED || !(summary.baseline_us() > 0)) return;
  baselines_[BaselineKey(summary, summary.baseline())] = summary.baseline_us();
}

double Orchestrator::ExpectedBaseline(const CampaignState& campaign, const v1::TrialResult& result) const {
  const v1::CampaignSpec& spec = campaign.summary().spec();
  if (spec.expected_baseline_us() > 0) return spec.expected_baseline_us();
  for (const v1::BaselineTime& baseline : result.baselines()) {
    if (baseline.size() != spec.goal().size()) continue;
    const auto known = baselines_.find(BaselineKey(campaign.summary(), baseline.what()));
    if (known != baselines_.end()) return known->second;
  }
  return 0;
}

void Orchestrator::Requeue(int64_t number, const CampaignState& campaign) {
  std::vector<QueueKey>& keys = queued_[number];
  for (const QueueKey& key : keys) queue_.erase(key);
  keys.clear();
  if (!campaign.leasable()) return;
  for (const auto& [trial, open] : campaign.open_trials()) {
    if (!open.worker.empty()) continue;
    keys.push_back({open.planned_at, number, trial});
    queue_.insert(keys.back());
  }
}

void Orchestrator::Plan(Step* step) {
  const std::set<int64_t> touched = step->touched;
  std::map<std::string, int> slots;  // by bundle and device: counting takes long where there are hundreds of workers
  for (int64_t number : touched) {
    CampaignState& campaign = *campaigns_.at(number);
    const auto [known, fresh] = slots.try_emplace(absl::StrCat(campaign.space_hash(), campaign.summary().device()));
    if (fresh) known->second = SlotsOf(campaign, step->now);
    while (std::optional<v1::Event> event = Decide(campaign, chooser_, step->now, *options_.profiles, known->second)) {
      Add(step, &campaign, *std::move(event));
    }
  }
}

// How many of its trials could run at once: workers of its device, shared with the other campaigns there.
int Orchestrator::SlotsOf(const CampaignState& campaign, absl::Time now) const {
  const std::string& device = campaign.summary().device();
  if (device.empty()) return 1;
  const std::vector<const v1::Worker*> present = workers_.Present(now);
  if (present.size() <= 1) return 1;
  const auto workers = std::count_if(present.begin(), present.end(), [&](const v1::Worker* worker) {
    return CanRun(worker->device(), campaign.summary(), campaign.space_hash()).ok();
  });
  const auto campaigns = std::count_if(campaigns_.begin(), campaigns_.end(), [&](const auto& other) {
    const v1::Campaign& summary = other.second->summary();
    const bool goes_on = summary.state() == v1::WAITING || summary.state() == v1::RUNNING;
    return goes_on && (summary.device().empty() || summary.device() == device);
  });
  return std::clamp(static_cast<int>(workers / std::max<int64_t>(1, campaigns)), 1, kMaxSlots);
}

v1::Trial Orchestrator::TrialOf(const CampaignState& campaign, const OpenTrial& open) const {
  v1::Trial trial;
  const v1::TrialPlanned& planned = open.planned;
  const std::string& name = campaign.summary().name();
  trial.set_name(absl::StrCat(name, "/trials/", planned.trial()));
  trial.set_purpose(planned.purpose());
  trial.set_iteration(absl::StrCat(name, "/iterations/", planned.iteration()));
  trial.set_bundle_hash(campaign.summary().bundle_hash());
  *trial.mutable_variant() = planned.variant();
  if (planned.has_parent()) {
    const v1::Iteration& parent = *campaign.Find(planned.parent());
    *trial.mutable_parent() = VariantOf(parent);
    trial.set_parent_us(parent.time_us());
    if (campaign.SourceIdOf(planned.parent()) > 0) trial.set_parent_patched_source(campaign.SourceOf(planned.parent()));
  }
  if (campaign.SourceIdOf(planned.iteration()) > 0) trial.set_patched_source(campaign.SourceOf(planned.iteration()));
  trial.set_size(campaign.summary().spec().goal().size());
  *trial.mutable_keep() = campaign.summary().spec().keep();
  trial.set_seed(SeedOf(trial.name()));
  trial.set_attempt(open.attempt);
  return trial;
}

bool Orchestrator::TakeTrial(Step* step, const std::string& name, v1::LeaseTrialResponse* response) {
  v1::Worker* worker = workers_.Mutable(name);
  if (!leasing_ || worker == nullptr || worker->state() != v1::WORKER_STATE_IDLE) return false;
  for (const QueueKey& key : queue_) {
    const auto [planned_at, number, trial] = key;
    CampaignState& campaign = *campaigns_.at(number);
    if (!CanRun(worker->device(), campaign.summary(), campaign.space_hash()).ok()) continue;
    v1::Event event;
    v1::TrialLeased& leased = *event.mutable_leased();
    leased.set_trial(trial);
    leased.set_attempt(campaign.open_trials().at(trial).attempt + 1);
    leased.set_worker(name);
    leased.set_device(worker->device().label());
    leased.set_replay(worker->device().kind() == v1::DEVICE_KIND_REPLAY);
    leased.set_price_per_hour(PricePerHour(worker->device()));
    const LeaseName lease{number, trial, leased.attempt()};
    Add(step, &campaign, std::move(event));
    deadlines_[{number, trial}] = step->now + options_.lease;
    worker->add_trials(TrialName(number, trial));
    *response->mutable_trial() = TrialOf(campaign, campaign.open_trials().at(trial));
    response->set_lease(LeaseToken(store_.secret(), lease, name));
    return true;
  }
  return false;
}

void Orchestrator::OfferTrials(Step* step) {
  std::set<std::string> hopeless;  // kinds of workers for which the queue has nothing
  for (auto it = waiting_.begin(); it != waiting_.end() && !queue_.empty();) {
    const v1::Worker* worker = workers_.Find(it->second.worker);
    const std::string kind = worker == nullptr ? "" : KindOf(worker->device());
    Offer offer;
    if (worker == nullptr || hopeless.contains(kind) || !TakeTrial(step, it->second.worker, &offer.response)) {
      if (worker != nullptr && worker->state() == v1::WORKER_STATE_IDLE) hopeless.insert(kind);
      ++it;
      continue;
    }
    offer.answer = std::move(it->second.answer);
    step->offers.push_back(std::move(offer));
    it = waiting_.erase(it);
  }
}

absl::Status Orchestrator::Commit(Step* step, After* after) {
  Plan(step);
  OfferTrials(step);
  for (int64_t number : step->touched) step->writes.campaigns.push_back(campaigns_.at(number)->summary());
  absl::Status status = absl::OkStatus();
  const Writes& writes = step->writes;
  if (!writes.events.empty() || !writes.workers.empty() || !writes.blobs.empty() || !writes.pattern_files.empty() ||
      !writes.pattern_exports.empty()) {
    status = store_.Commit(&step->writes);
  }
  if (!status.ok()) {
    spdlog::error("nothing is served until the database can be written again: {}", std::string(status.message()));
    broken_ = TryLater(std::string(status.message()), 1);
    for (auto& [id, waiting] : waiting_) {
      after->push_back([answer = std::move(waiting.answer), broken = broken_] { answer(broken); });
    }
    waiting_.clear();
    for (Offer& offer : step->offers) {
      after->push_back([answer = std::move(offer.answer), broken = broken_] { answer(broken); });
    }
    return broken_;
  }
  Pass(FaultPoint::kAfterCommit);
  for (const std::string& line : step->lines) spdlog::info("{}", line);
  for (const v1::Event& event : writes.events) {
    if (!event.has_ended() || !options_.ended) continue;
    after->push_back([this, number = *ParseCampaignName(event.campaign())] { options_.ended(number); });
  }
  for (Offer& offer : step->offers) {
    after->push_back([answer = std::move(offer.answer), response = std::move(offer.response)] { answer(response); });
  }
  for (int64_t number : step->touched) {
    after->push_back([this, number] { hub_.Wake(number); });
    const CampaignState& campaign = *campaigns_.at(number);
    if (campaign.ended()) NoteBaseline(campaign.summary());
    if (campaign.ended() && campaign.open_trials().empty()) Drop(number);
  }
  return absl::OkStatus();
}

void Orchestrator::Drop(int64_t number) {
  for (const QueueKey& key : queued_[number]) queue_.erase(key);
  queued_.erase(number);
  // Leases of an ended campaign are of no use any more; a renewal is told to stop.
  std::erase_if(deadlines_, [&](const auto& lease) { return lease.first.first == number; });
  campaigns_.erase(number);
}

void Orchestrator::Lose(Step* step, TrialKey key, v1::LeaseLost::Reason reason, const std::string& message) {
  deadlines_.erase(key);
  CampaignState& campaign = *campaigns_.at(key.first);
  const OpenTrial open = campaign.open_trials().at(key.second);
  if (v1::Worker* worker = workers_.Mutable(open.worker)) {
    auto* trials = worker->mutable_trials();
    trials->erase(std::remove(trials->begin(), trials->end(), TrialName(key.first, key.second)), trials->end());
  }
  v1::Event event;
  event.mutable_lost()->set_trial(key.second);
  event.mutable_lost()->set_attempt(open.attempt);
  event.mutable_lost()->set_worker(open.worker);
  event.mutable_lost()->set_reason(reason);
  event.mutable_lost()->set_message(message);
  Add(step, &campaign, std::move(event));

  const OpenTrial& now = campaign.open_trials().at(key.second);
  const bool too_many_faults = reason == v1::LeaseLost::HOST_FAULT &&
                               now.host_faults >= options_.profiles->gates.Get(GateKind::kPreflight).threshold;
  const bool verifies = now.planned.purpose() == v1::TRIAL_PURPOSE_VERIFY;
  const bool totals = now.planned.purpose() == v1::TRIAL_PURPOSE_TOTAL;
  if (now.killed >= options_.max_killed || (verifies && too_many_faults)) {
    v1::Event aside;
    v1::TrialFinished& finished = *aside.mutable_finished();
    finished.set_trial(key.second);
    finished.set_attempt(now.attempt);
    if (totals) {
      v1::TotalGain& total = *finished.mutable_total_gain();
      total.set_iteration(now.planned.iteration());
      total.mutable_interval()->set_result(v1::UNCLEAR);
      total.mutable_interval()->set_reason(absl::StrCat("put aside: ", now.killed, " workers were lost to it"));
    } else if (!verifies) {
      *finished.mutable_iteration() = PutAside(campaign, now.planned, now.killed);
      SetTime(now.planned_at, finished.mutable_iteration()->mutable_create_time());
      SetTime(step->now, finished.mutable_iteration()->mutable_end_time());
    } else {
      finished.mutable_verification()->set_iteration(now.planned.iteration());
      finished.mutable_verification()->set_text(
          too_many_faults ? absl::StrCat("put aside: it failed ", now.host_faults, " times, the last time on ",
                                         open.worker, ": ", message)
                          : absl::StrCat("put aside: ", now.killed, " workers were lost to it"));
    }
    Add(step, &campaign, std::move(aside));
  } else if (too_many_faults && campaign.summary().state() != v1::PAUSED) {
    v1::Event paused;
    paused.mutable_paused()->set_author("pawl");
    paused.mutable_paused()->set_reason(absl::StrCat("trial ", key.second, " failed ", now.host_faults,
                                                     " times through no fault of its own, the last time on ",
                                                     open.worker, ": ", message, ". pawl resume goes on"));
    Add(step, &campaign, std::move(paused));
  }
}

absl::Status Orchestrator::Serving() const { return broken_.ok() ? absl::OkStatus() : broken_; }

bool Orchestrator::serving() const {
  std::lock_guard lock(mutex_);
  return broken_.ok();
}

int Orchestrator::leases_out() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(deadlines_.size());
}

absl::Status Orchestrator::Recover() {
  if (absl::Status status = store_.Probe(); !status.ok()) return status;
  if (absl::Status status = LoadAll(); !status.ok()) {
    broken_ = TryLater(std::string(status.message()), 1);
    return status;
  }
  store_.ClearUncertain();
  spdlog::info("the database can be written again: serving");
  return absl::OkStatus();
}

void Orchestrator::Tick() {
  (void)Locked([&](After* after) -> absl::Status {
    if (!broken_.ok()) {
      if (absl::Status status = Recover(); !status.ok()) return status;
    }
    Step step = Begin();
    ForgiveStall();
    std::vector<TrialKey> expired;
    for (const auto& [key, deadline] : deadlines_) {
      if (deadline <= step.now) expired.push_back(key);
    }
    for (const TrialKey& key : expired) {
      // A worker that is there and does not renew never got the lease: its answer was lost. The trial did it no harm.
      const bool gone = workers_.Gone(campaigns_.at(key.first)->open_trials().at(key.second).worker, step.now);
      Lose(&step, key, gone ? v1::LeaseLost::EXPIRED : v1::LeaseLost::GIVEN_BACK,
           gone ? "the worker was not heard of for a whole lease" : "the worker does not know of its lease");
    }
    GiveUpVerifications(&step);
    for (const auto& [number, campaign] : campaigns_) {
      const std::optional<absl::Time> deadline = ProposalDeadline(*campaign);
      // Who proposes could not while this process was not there.
      const bool interrupted = campaign->idle_since() < loaded_at_;
      if (!deadline || *deadline > step.now || (interrupted && loaded_at_ + kReconnect > step.now)) continue;
      step.touched.insert(number);
    }
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      // Waiting is being there.
      const bool known = workers_.Hear(it->second.worker, it->second.instance, step.now).ok();
      if (known && it->second.deadline > step.now) {
        ++it;
        continue;
      }
      after->push_back([answer = std::move(it->second.answer)] { answer(v1::LeaseTrialResponse()); });
      it = waiting_.erase(it);
    }
    return Commit(&step, after);  // a failure is kept in broken_
  });
}

// While this process stood still nobody could renew: that is not the workers' silence.
void Orchestrator::ForgiveStall() {
  const auto now = std::chrono::steady_clock::now();
  const absl::Duration gap = last_tick_ ? absl::FromChrono(now - *last_tick_) : absl::ZeroDuration();
  last_tick_ = now;
  if (gap < options_.renew) return;
  for (auto& [key, deadline] : deadlines_) deadline += gap;
}

// Nobody may be waiting for them any more, and each keeps the next one out.
void Orchestrator::GiveUpVerifications(Step* step) {
  for (auto& [number, campaign] : campaigns_) {
    if (!campaign->summary().verifying()) continue;
    const std::map<int, OpenTrial> open_trials = campaign->open_trials();
    for (const auto& [trial, open] : open_trials) {
      if (open.planned.purpose() != v1::TRIAL_PURPOSE_VERIFY || !open.worker.empty() ||
          step->now - open.free_since < options_.verification) {
        continue;
      }
      v1::Event event;
      event.mutable_finished()->set_trial(trial);
      event.mutable_finished()->mutable_verification()->set_iteration(open.planned.iteration());
      event.mutable_finished()->mutable_verification()->set_text("given up: no worker took it");
      Add(step, campaign.get(), std::move(event));
    }
  }
}

void Orchestrator::StopLeasing() {
  (void)Locked([&](After* after) {
    leasing_ = false;
    for (auto& [id, waiting] : waiting_) {
      after->push_back([answer = std::move(waiting.answer)] { answer(TryLater("the orchestrator shuts down", 1)); });
    }
    waiting_.clear();
    return absl::OkStatus();
  });
}

}  // namespace pawl
