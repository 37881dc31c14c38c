#include "fleet/controller.h"

#include <algorithm>
#include <chrono>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pawl {
namespace {

constexpr int kSurplusBefore = 3;  // a queue that is empty for a moment fills again

bool HasWorker(const std::vector<std::string>& workers, int64_t job) {
  return std::any_of(workers.begin(), workers.end(),
                     [&](const std::string& worker) { return IsWorkerOfJob(worker, job); });
}

bool HasWorker(const Demand& demand, int64_t job) { return HasWorker(demand.workers, job); }

// " (job 17 waits: Resources)" of the oldest job that waits for a node or may not begin yet; empty: none does.
std::string WaitingText(const std::vector<FleetJob>& jobs) {
  const FleetJob* oldest = nullptr;
  for (const FleetJob& job : jobs) {
    if (job.state != FleetJob::State::kPending && job.state != FleetJob::State::kHeld) continue;
    if (oldest == nullptr || job.id < oldest->id) oldest = &job;
  }
  if (oldest == nullptr || oldest->reason.empty() || oldest->reason == "None") return "";
  return absl::StrCat(" (job ", oldest->id, " waits: ", oldest->reason, ")");
}

}  // namespace

void FleetController::Trouble(const std::string& kind, const std::string& text, const std::string& cause) {
  std::string& known = troubles_[kind];
  if (known == cause) return;
  known = cause;
  seams_.say(!text.empty(), text.empty() ? absl::StrCat(kind, ": works again") : text);
}

void FleetController::HoldBack(absl::Time since) {
  const absl::Duration wait =
      std::min(options_.longest_backoff, options_.shortest_backoff * (1 << std::min(setbacks_, 16)));
  ++setbacks_;
  hold_until_ = since + wait;
}

// A worker that can't reach the orchestrator ends as one does that has nothing to do: its job looks fine to Slurm.
std::set<int64_t> FleetController::UnseenJobs(const std::vector<FleetJob>& jobs, const Demand& demand) {
  std::set<int64_t> registered, doubtful, unseen;
  for (const FleetJob& job : jobs) {
    if (registered_.contains(job.id) || HasWorker(demand, job.id)) {
      registered.insert(job.id);
    } else if (job.completed) {
      (known_failed_.contains(job.id) ? unseen : doubtful).insert(job.id);
    }
  }
  registered_ = std::move(registered);
  if (doubtful.empty()) return unseen;
  // It may have come and gone between two decisions, or before this process was there.
  const absl::StatusOr<std::vector<std::string>> workers = seams_.all_workers();
  if (!workers.ok()) return unseen;
  for (const int64_t job : doubtful) (HasWorker(*workers, job) ? registered_ : unseen).insert(job);
  return unseen;
}

bool FleetController::WorkedSince(const std::vector<FleetJob>& jobs, const Demand& demand) {
  bool ended = false;
  for (const FleetJob& job : jobs) {
    if (job.id <= last_failed_) continue;
    if (HasWorker(demand, job.id) || registered_.contains(job.id)) return true;
    ended |= job.state == FleetJob::State::kEnded;
  }
  if (!ended) return false;
  const absl::StatusOr<std::vector<std::string>> workers = seams_.all_workers();
  return workers.ok() && std::any_of(jobs.begin(), jobs.end(), [&](const FleetJob& job) {
           return job.id > last_failed_ && HasWorker(*workers, job.id);
         });
}

void FleetController::NoteFailures(const std::vector<FleetJob>& jobs, const Demand& demand, absl::Time now) {
  const FleetJob* newest = nullptr;
  int fresh = 0;
  std::set<int64_t> failed, failed_at;
  const std::set<int64_t> unseen = UnseenJobs(jobs, demand);
  for (const FleetJob& job : jobs) {
    const bool at_once = job.state == FleetJob::State::kFailed && absl::Seconds(job.seconds) <= options_.quick;
    if (!at_once && !unseen.contains(job.id)) continue;
    failed.insert(job.id);
    fresh += !known_failed_.contains(job.id);
    failed_at.insert(job.ended);
    if (newest == nullptr || job.id > newest->id) newest = &job;
  }
  known_failed_ = std::move(failed);
  if (newest != nullptr) last_failed_ = std::max(last_failed_, newest->id);
  const bool in_trouble = fresh > 0 || setbacks_ > 0 || !troubles_["worker jobs"].empty();
  if (in_trouble && WorkedSince(jobs, demand)) {
    setbacks_ = 0;
    hold_until_ = absl::InfinitePast();
    Trouble("worker jobs", "");
  } else if (fresh > 0) {
    // A process that is new, as each is that cron starts, finds in Slurm's list how often it was tried, and since when
    // it waits.
    const auto seconds = absl::ToInt64Seconds(options_.shortest_backoff) / 2;
    int attempts = 0;
    for (int64_t last = -seconds; const int64_t at : failed_at) {
      attempts += at - last >= seconds;
      last = at;
    }
    setbacks_ = std::max(setbacks_, attempts - 1);
    const bool before_this = !looked_ && newest->ended > 0;  // otherwise now: Slurm's clock may be another
    HoldBack(before_this ? std::min(now, absl::FromUnixSeconds(newest->ended)) : now);
    const std::string reason = newest->completed ? "" : newest->reason;
    Trouble("worker jobs",
            absl::StrCat(newest->completed ? "worker jobs end without reaching the orchestrator, the last one was "
                                           : "worker jobs fail at once, the last one was ",
                         newest->id, reason.empty() ? "" : absl::StrCat(" (", reason, ")"), ": see ",
                         newest->log.empty() ? absl::StrCat("scontrol show job ", newest->id) : newest->log,
                         ". One is tried again ",
                         hold_until_ > now ? absl::StrCat("after ", absl::FormatDuration(hold_until_ - now)) : "now",
                         ", later after up to ", absl::FormatDuration(options_.longest_backoff)),
            absl::StrCat("jobs: ", reason));
  }
}

std::vector<int64_t> FleetController::StaleJobs(const std::vector<FleetJob>& jobs, const Demand& demand,
                                                absl::Time now) {
  std::map<int64_t, absl::Time> without;
  std::vector<int64_t> stale;
  for (const FleetJob& job : jobs) {
    if (job.state != FleetJob::State::kRunning || HasWorker(demand, job.id)) continue;
    const auto before = without_worker_.find(job.id);
    const absl::Time since = before == without_worker_.end() ? now : before->second;
    without[job.id] = since;
    if (now - since > options_.start_patience) stale.push_back(job.id);
  }
  without_worker_ = std::move(without);
  Trouble("registration", stale.empty()
                              ? ""
                              : absl::StrCat("job ", stale[0], " runs, and its worker did not register within ",
                                             absl::FormatDuration(options_.start_patience), ": see the job's log"));
  return stale;
}

void FleetController::Submit(const Decision& decision, absl::Time now) {
  if (now < hold_until_) return;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<int64_t> submitted;
  const absl::Cleanup say = [&] {
    if (!submitted.empty()) seams_.say(false, absl::StrCat("submitted: job ", absl::StrJoin(submitted, ", ")));
  };
  for (const GpuClass& gpu : options_.classes) {
    const auto wanted = decision.submit.find(gpu.gpu);
    if (wanted == decision.submit.end()) continue;
    // After a setback, one shows whether the reason is gone.
    const int count = setbacks_ > 0 ? 1 : wanted->second;
    for (int i = 0; i < count; ++i) {
      if (absl::FromChrono(std::chrono::steady_clock::now() - begin) > options_.submitting) return;
      const absl::StatusOr<int64_t> job = seams_.submit(gpu);
      if (!job.ok()) {
        HoldBack(now);
        last_failed_ = std::max(last_failed_, newest_);  // what was accepted before says nothing
        Trouble(absl::IsUnavailable(job.status()) ? "Slurm" : "sbatch", std::string(job.status().message()));
        return;
      }
      submitted.push_back(*job);
      Trouble("sbatch", "");
    }
    if (setbacks_ > 0) {
      HoldBack(now);  // until it is known what becomes of it
      return;
    }
  }
}

void FleetController::Cancel(const Decision& decision) {
  surplus_ = decision.cancel.empty() ? 0 : surplus_ + 1;
  if (surplus_ < kSurplusBefore) return;
  surplus_ = 0;
  if (const absl::Status status = seams_.cancel(decision.cancel); !status.ok()) {
    Trouble("scancel", std::string(status.message()));
  } else {
    Trouble("scancel", "");
  }
}

bool FleetController::Step(absl::Time now) {
  const absl::StatusOr<Demand> demand = seams_.ask();
  Trouble("orchestrator", demand.ok() ? "" : std::string(demand.status().message()));
  if (!demand.ok()) return false;
  const absl::StatusOr<std::vector<FleetJob>> jobs = seams_.jobs();
  Trouble("Slurm", jobs.ok() ? "" : std::string(jobs.status().message()));
  if (!jobs.ok()) return false;

  for (const FleetJob& job : *jobs) newest_ = std::max(newest_, job.id);
  NoteFailures(*jobs, *demand, now);
  looked_ = true;
  const Decision decision = Decide(options_.classes, *demand, *jobs, options_.limits, StaleJobs(*jobs, *demand, now));
  int submit = 0;
  for (const auto& [gpu, count] : decision.submit) submit += count;
  const std::string said = absl::StrCat(decision.wanted, " trials queued, ", decision.registered, " workers here, ",
                                        decision.starting, " on their way", WaitingText(*jobs), ", ", submit,
                                        " more to be started", decision.at_ceiling ? "; --max is reached" : "");
  if (said != last_said_) seams_.say(false, said);
  last_said_ = said;
  Submit(decision, now);
  Cancel(decision);
  const auto blocked = std::find_if(jobs->begin(), jobs->end(), [](const FleetJob& job) {
    return job.state == FleetJob::State::kPending &&
           (job.reason == "BadConstraints" || job.reason == "PartitionDown" || job.reason == "PartitionInactive" ||
            job.reason == "PartitionNodeLimit" || job.reason == "PartitionTimeLimit" ||
            job.reason == "AccountNotAllowed" || job.reason == "QOSNotAllowed" || job.reason == "InvalidAccount" ||
            job.reason == "InvalidQOS");
  });
  Trouble("partition", blocked == jobs->end()
                           ? ""
                           : absl::StrCat("job ", blocked->id, " can't begin (", blocked->reason,
                                          "): has the partition such GPUs? scontrol show job ", blocked->id));
  return std::all_of(troubles_.begin(), troubles_.end(), [](const auto& trouble) { return trouble.second.empty(); });
}

}  // namespace pawl
