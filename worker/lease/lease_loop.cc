#include "worker/lease/lease_loop.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/faults/fault_point.h"
#include "worker/process/host_fault.h"

namespace pawl {
namespace {

constexpr int kMaxGpuFaults = 2;

std::string Text(const absl::Status& status) { return std::string(status.message()); }

// The result itself is at fault, not the lease.
bool Refused(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status) || absl::IsFailedPrecondition(status) ||
         absl::IsDataLoss(status);
}

// ": build 0.47, validate 0.70"; empty where nothing was done.
std::string StagesText(const v1::TrialResult& result) {
  std::map<v1::Stage, double> seconds;
  for (const v1::StageTime& time : result.stages()) seconds[time.stage()] += time.seconds();
  std::erase_if(seconds, [](const auto& stage) { return stage.second < 0.005; });
  const auto text = [](std::string* out, const auto& stage) {
    const std::string name = v1::Stage_Name(stage.first);
    absl::StrAppendFormat(out, "%s %.2f", absl::AsciiStrToLower(absl::StripPrefix(name, "STAGE_")), stage.second);
  };
  return seconds.empty() ? "" : absl::StrCat(": ", absl::StrJoin(seconds, ", ", text));
}

// What a finished trial is in a log.
std::string OutcomeText(const v1::CompleteTrialRequest& request) {
  if (request.has_host_fault()) return absl::StrCat("this machine could not run it: ", request.host_fault().message());
  const v1::TrialResult& result = request.result();
  if (!result.passed_over().empty()) return absl::StrCat("passed over: ", result.passed_over());
  if (result.has_failure()) {
    return absl::StrCat("failed (", v1::Check_Name(result.failure().check()), "): ", result.failure().message());
  }
  return absl::StrCat("measured, ", result.pairs_size() + result.confirming_pairs_size(), " pairs",
                      result.profiled() ? ", profiled" : "");
}

}  // namespace

LeaseLoop::LeaseLoop(TrialDevice& device, WorkerClient& client, LeaseLoopOptions options)
    : device_(device), options_(std::move(options)), session_(client, device.device(), options_.session) {}

LeaseLoop::~LeaseLoop() {
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

bool LeaseLoop::draining() {
  absl::MutexLock lock(&mutex_);
  return draining_;
}

// Whether results that can't be delivered are dropped: their leases have run out by then.
bool LeaseLoop::GivesUp() {
  absl::MutexLock lock(&mutex_);
  return stopped_ || (draining_ && HeldTrial::Clock::now() - drain_begin_ > options_.drain_patience);
}

void LeaseLoop::BeginDraining(absl::Status result) {
  {
    absl::MutexLock lock(&mutex_);
    if (draining_) return;
    draining_ = true;
    drain_begin_ = HeldTrial::Clock::now();
    result_ = std::move(result);
    changed_.SignalAll();
    place_free_.SignalAll();
  }
  session_.StopLeasing();
  session_.Wake();
  if (absl::Status left = session_.Leave(/*gone=*/false); !left.ok()) {
    spdlog::warn("could not tell the orchestrator that this worker drains: {}", Text(left));
  }
}

void LeaseLoop::Drain() { BeginDraining(absl::OkStatus()); }

void LeaseLoop::Stop() {
  const absl::Status result = absl::AbortedError("ended at once: the running trial was dropped");
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    result_ = result;
    for (const Held& held : held_) held->Stop();
  }
  session_.Wake();
  BeginDraining(result);
  (void)session_.Leave(/*gone=*/true);  // its trials need not wait for their leases to run out
}

absl::Status LeaseLoop::Run() {
  {
    absl::MutexLock lock(&mutex_);
    idle_since_ = HeldTrial::Clock::now();
  }
  std::thread limits;
  if (options_.limits.any()) limits = std::thread([this] { WatchLimits(); });
  const absl::Status result = Work();
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    closed_.SignalAll();
  }
  if (limits.joinable()) limits.join();
  return result;
}

absl::Status LeaseLoop::Work() {
  if (absl::Status registered = session_.Register([this] { return draining(); }); !registered.ok()) {
    return draining() ? absl::OkStatus() : registered;
  }
  std::thread leaser([this] { LeaseTrials(); });
  threads_.emplace_back([this] { RenewLeases(); });
  for (int i = 0; options_.ahead > 0 && i <= options_.ahead; ++i) threads_.emplace_back([this] { PrepareTrials(); });
  while (const Held held = NextToRun()) RunOne(held);
  leaser.join();
  GiveBackAll();
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    changed_.SignalAll();
    closed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
  if (absl::Status left = session_.Leave(/*gone=*/true); !left.ok()) {
    spdlog::warn("could not unregister from the orchestrator: {}", Text(left));
  }
  absl::MutexLock lock(&mutex_);
  return result_;
}

bool LeaseLoop::MayTakeMore() const {
  return !options_.limits.trials || taken_ + leasing_ < static_cast<size_t>(*options_.limits.trials);
}

std::string LeaseLoop::ReachedLimit() {
  const WorkLimits& limits = options_.limits;
  if (limits.until && absl::Now() >= *limits.until) return "its time is up (--until)";
  if (!held_.empty()) return "";
  if (leasing_ == 0 && !MayTakeMore()) return absl::StrCat("it had ", taken_, " trials (--max-trials)");
  const auto idle = HeldTrial::Clock::now() - idle_since_;
  if (limits.idle && idle >= *limits.idle) {
    return absl::StrFormat("no trial for %.4g s (--exit-when-idle)", Backoff::Duration(idle).count());
  }
  return "";
}

void LeaseLoop::WatchLimits() {
  // Often enough for what is counted in seconds.
  Backoff::Duration look(1);
  if (options_.limits.idle) look = std::min(look, *options_.limits.idle / 4);
  if (options_.limits.trials) look = std::min(look, Backoff::Duration(0.1));
  std::string why;
  {
    absl::MutexLock lock(&mutex_);
    while (!closing_ && !draining_ && why.empty()) {
      const auto until = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(absl::Seconds(look.count()));
      while (!closing_ && closed_.WaitUntil(&mutex_, until)) {
      }
      why = ReachedLimit();
    }
    if (closing_ || draining_) return;
  }
  spdlog::info("ending: {}", why);
  BeginDraining(absl::OkStatus());
}

void LeaseLoop::Add(v1::LeaseTrialResponse leased, HeldTrial::Clock::time_point confirmed_until) {
  ++taken_;
  auto held = std::make_shared<HeldTrial>(std::move(leased), times_);
  held->confirmed_until = confirmed_until;
  held->next_renewal = HeldTrial::Clock::now() + std::chrono::duration_cast<HeldTrial::Clock::duration>(
                                                     Backoff::Duration(session_.renew_seconds()));
  spdlog::debug("{}: leased, attempt {}", held->what(), held->trial().attempt());
  if (stopped_) held->Stop();
  held_.push_back(std::move(held));
  changed_.SignalAll();
}

void LeaseLoop::Remove(const Held& held) {
  std::erase(held_, held);
  if (held_.empty()) idle_since_ = HeldTrial::Clock::now();
  place_free_.SignalAll();
}

void LeaseLoop::RemoveStopped() {
  const size_t removed = std::erase_if(held_, [](const Held& held) {
    return held->stopped() && (held->state == State::kWaiting || held->state == State::kPrepared);
  });
  if (removed == 0) return;
  if (held_.empty()) idle_since_ = HeldTrial::Clock::now();
  place_free_.SignalAll();
}

void LeaseLoop::LeaseTrials() {
  Backoff backoff(options_.session.shortest_backoff, options_.session.longest_backoff);
  const auto until_draining = [this] { return draining(); };
  bool said = false;  // logged once per outage
  for (;;) {
    int faults = 0;
    {
      absl::MutexLock lock(&mutex_);
      while (!draining_ && (held_.size() + leasing_ >= capacity() || !MayTakeMore())) place_free_.Wait(&mutex_);
      if (draining_) return;
      ++leasing_;
      faults = faults_;
    }
    // A machine that can't run trials must not use up their attempts.
    if (faults > 0) {
      Backoff slow = backoff;
      while (--faults > 0) slow.Next();
      session_.Wait(slow.Next(), until_draining);
    }
    absl::StatusOr<v1::LeaseTrialResponse> leased = session_.Lease(options_.lease_wait_seconds);
    {
      absl::MutexLock lock(&mutex_);
      --leasing_;
      if (leased.ok() && leased->has_trial()) Add(*std::move(leased));
      if (draining_) return;
    }
    if (leased.ok()) {
      if (!leased->has_trial() && !leased->foreseen().empty()) Foresee(*leased);
      if (said) spdlog::info("the orchestrator answers again");
      said = false;
      backoff.Reset();
      continue;
    }
    if (!said) spdlog::warn("no lease: {}; retrying", Text(leased.status()));
    said = true;
    // The worker was drained from elsewhere, or its name was taken over: it registers as a new one.
    if (!absl::IsUnavailable(leased.status())) {
      if (absl::Status again = session_.Register(until_draining); !again.ok() && !draining())
        return BeginDraining(again);
    }
    session_.Wait(backoff.Next(), until_draining);
  }
}

void LeaseLoop::Foresee(const v1::LeaseTrialResponse& foretold) {
  Held held;
  bool prepared = false;
  {
    absl::MutexLock lock(&mutex_);
    const auto found =
        std::find_if(held_.begin(), held_.end(), [&](const Held& each) { return each->lease() == foretold.lease(); });
    if (found == held_.end()) return;
    held = *found;
    prepared = held->state == State::kPrepared || held->state == State::kRunning;
  }
  held->Foresee({foretold.foreseen().begin(), foretold.foreseen().end()});
  // Otherwise after it was built, which comes first.
  if (!prepared || options_.ahead == 0) return;
  absl::StatusOr<std::shared_ptr<const v1::Bundle>> bundle =
      session_.GetBundle(held->trial().bundle_hash(), [&] { return held->stopped() || GivesUp(); });
  if (bundle.ok()) device_.Expect(held->trial(), *bundle, held->foreseen());
}

LeaseLoop::Held LeaseLoop::NextToPrepare() {
  absl::MutexLock lock(&mutex_);
  while (!closing_) {
    const auto found = std::find_if(held_.begin(), held_.end(), [](const Held& held) {
      return held->state == State::kWaiting && !held->stopped();
    });
    if (found != held_.end() && !draining_) {
      (*found)->state = State::kPreparing;
      return *found;
    }
    changed_.Wait(&mutex_);
  }
  return nullptr;
}

void LeaseLoop::PrepareTrials() {
  while (const Held next = NextToPrepare()) {
    Prepare(next);
    absl::MutexLock lock(&mutex_);
    next->state = State::kPrepared;
    RemoveStopped();
    changed_.SignalAll();
  }
}

void LeaseLoop::Prepare(const Held& held) {
  // Confirms the lease: from now on the trial is blamed if this worker is lost, and one that is another's is not begun.
  if (HeldTrial::Clock::now() >= held->confirmed_until) Renew(held);
  Pass(FaultPoint::kAfterLease);
  if (held->stopped()) {
    held->fault = absl::AbortedError("the trial is no longer wanted");
    return;
  }
  absl::StatusOr<std::shared_ptr<const v1::Bundle>> bundle =
      session_.GetBundle(held->trial().bundle_hash(), [&] { return held->stopped() || GivesUp(); });
  if (!bundle.ok()) {
    held->fault = bundle.status();
    return;
  }
  absl::StatusOr<std::unique_ptr<PreparedTrial>> prepared = device_.Prepare(held->trial(), *bundle, *held);
  held->fault = prepared.status();
  if (prepared.ok()) held->prepared = *std::move(prepared);
  if (!held->foreseen().empty()) device_.Expect(held->trial(), *bundle, held->foreseen());
}

LeaseLoop::Held LeaseLoop::NextToRun() {
  const State ready = options_.ahead > 0 ? State::kPrepared : State::kWaiting;
  absl::MutexLock lock(&mutex_);
  for (;;) {
    RemoveStopped();
    if (draining_) return nullptr;
    const auto found = std::find_if(held_.begin(), held_.end(), [&](const Held& held) { return held->state == ready; });
    if (found != held_.end()) {
      (*found)->state = State::kRunning;
      return *found;
    }
    changed_.Wait(&mutex_);
  }
}

void LeaseLoop::RunOne(const Held& held) {
  if (options_.ahead == 0) Prepare(held);
  absl::StatusOr<TrialOutcome> outcome =
      held->fault.ok() ? device_.Run(*held->prepared, *held) : absl::StatusOr<TrialOutcome>(held->fault);
  held->prepared.reset();
  if (held->stopped()) {
    {
      absl::MutexLock lock(&mutex_);
      if (held->give_back) return;  // with the others
      Remove(held);
    }
    spdlog::info("{}: dropped after {:.1f} s: the result is no longer wanted", held->what(), held->seconds());
    return;
  }
  v1::CompleteTrialRequest request;
  if (outcome.ok()) {
    times_.Add(held->campaign(), outcome->result);
    *request.mutable_result() = std::move(outcome->result);
    session_.PutArtifacts(std::move(outcome->artifacts), request.mutable_result(), [this] { return GivesUp(); });
  } else {
    *request.mutable_host_fault() = HostFaultOf(outcome.status());
  }
  spdlog::info("{}: {} ({:.2f} s{})", held->what(), OutcomeText(request), held->seconds(),
               StagesText(request.result()));
  // What the bundle's problem.py does wrong says nothing of this machine.
  if (!absl::IsInvalidArgument(outcome.status())) CountFault(request);
  Deliver(held, std::move(request));
}

void LeaseLoop::CountFault(const v1::CompleteTrialRequest& request) {
  {
    absl::MutexLock lock(&mutex_);
    faults_ = request.has_host_fault() ? faults_ + 1 : 0;
    gpu_faults_ += request.host_fault().gpu();
    if (gpu_faults_ < kMaxGpuFaults) return;
  }
  BeginDraining(absl::InternalError(absl::StrCat("the GPU failed ", kMaxGpuFaults, " times: take it out of service. ",
                                                 request.host_fault().message())));
}

void LeaseLoop::Deliver(const Held& held, v1::CompleteTrialRequest request) {
  bool next = false;
  {
    absl::MutexLock lock(&mutex_);
    next = request.has_result() && !draining_ && MayTakeMore();
    leasing_ += next && options_.limits.trials;  // so that no other takes the last one
  }
  request.set_lease_next(next);
  // Who asks while it delivers is there: the orchestrator takes such a lease for confirmed.
  const HeldTrial::Clock::time_point asked = HeldTrial::Clock::now();
  absl::StatusOr<v1::CompleteTrialResponse> response =
      session_.Complete(*held, std::move(request), [this] { return GivesUp(); });
  if (next && options_.limits.trials) {
    absl::MutexLock lock(&mutex_);
    --leasing_;
  }
  if (!response.ok()) {
    spdlog::warn("{}: the result is dropped: {}", held->what(), Text(response.status()));
    if (Refused(response.status())) {
      // Left alone, the lease would run out and be taken for a worker that the trial killed.
      v1::CompleteTrialRequest fault;
      fault.mutable_host_fault()->set_message(
          absl::StrCat("the orchestrator refused the result: ", Text(response.status())));
      (void)session_.Complete(*held, std::move(fault), [this] { return GivesUp(); });
    }
  }
  absl::MutexLock lock(&mutex_);
  if (response.ok() && response->next().has_trial()) {
    std::erase(held_, held);  // its place goes to the next
    Add(std::move(*response->mutable_next()),
        asked + std::chrono::duration_cast<HeldTrial::Clock::duration>(Backoff::Duration(session_.renew_seconds())));
  } else {
    Remove(held);
  }
}

void LeaseLoop::GiveBackAll() {
  std::vector<Held> waiting;
  {
    absl::MutexLock lock(&mutex_);
    RemoveStopped();
    waiting = held_;
  }
  for (const Held& held : waiting) {
    if (!held->stopped() || held->give_back) {
      held->Stop();
      v1::CompleteTrialRequest request;
      request.set_given_back(true);
      const absl::Status given = session_.Complete(*held, std::move(request), [this] { return GivesUp(); }).status();
      spdlog::info("{}: {}", held->what(), given.ok() ? "given back" : "not given back: " + Text(given));
    }
    absl::MutexLock lock(&mutex_);
    Remove(held);
  }
}

void LeaseLoop::HurryDraining() {
  if (!draining_ || stopped_ || HeldTrial::Clock::now() - drain_begin_ <= options_.drain_patience) return;
  for (const Held& held : held_) {
    if (held->state != State::kRunning || held->stopped()) continue;
    spdlog::info("{}: not done {:.0f} s after the signal: given back", held->what(), options_.drain_patience.count());
    held->give_back = true;
    held->Stop();
  }
}

std::optional<std::vector<LeaseLoop::Held>> LeaseLoop::NextToRenew() {
  absl::MutexLock lock(&mutex_);
  const auto until =
      std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(absl::Seconds(session_.renew_seconds() / 4));
  while (!closing_ && closed_.WaitUntil(&mutex_, until)) {
  }
  if (closing_) return std::nullopt;
  HurryDraining();
  std::vector<Held> due = held_;
  const HeldTrial::Clock::time_point now = HeldTrial::Clock::now();
  std::erase_if(due, [&](const Held& held) { return held->stopped() || held->next_renewal > now; });
  return due;
}

void LeaseLoop::Renew(const Held& held) {
  const HeldTrial::Clock::time_point now = HeldTrial::Clock::now();
  const absl::StatusOr<v1::RenewLeaseResponse> renewed = session_.Renew(*held);
  absl::MutexLock lock(&mutex_);
  const bool done = std::find(held_.begin(), held_.end(), held) == held_.end();
  if (done) return;
  if (renewed.ok() ? renewed->stop() : !absl::IsUnavailable(renewed.status())) {
    spdlog::info("{}: {}", held->what(), renewed.ok() ? "the campaign was cancelled" : Text(renewed.status()));
    held->Stop();
    changed_.SignalAll();
  }
  const double wait = renewed.ok() ? session_.renew_seconds() : session_.renew_seconds() / 4;
  held->next_renewal = now + std::chrono::duration_cast<HeldTrial::Clock::duration>(Backoff::Duration(wait));
}

void LeaseLoop::RenewLeases() {
  while (const std::optional<std::vector<Held>> due = NextToRenew()) {
    for (const Held& held : *due) Renew(held);
  }
}

}  // namespace pawl
