#include "fleet/slurm.h"

#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "worker/process/subprocess.h"

namespace pawl {
namespace {

using Json = nlohmann::json;

constexpr size_t kLongestOutput = 64 << 20;  // squeue shows all jobs of a cluster

// 7, or {"set": true, "number": 7}; 0 where it is neither.
int64_t NumberAt(const Json& job, const char* key) {
  const auto found = job.find(key);
  if (found == job.end()) return 0;
  if (found->is_number()) return found->get<int64_t>();
  return found->is_object() ? NumberAt(*found, "number") : 0;
}

// "RUNNING", or ["RUNNING", "COMPLETING"]: the first.
std::string TextAt(const Json& job, const char* key) {
  const auto found = job.find(key);
  if (found == job.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  return found->is_array() && !found->empty() && found->front().is_string() ? found->front().get<std::string>() : "";
}

bool Completes(const Json& job) {
  const auto state = job.find("job_state");
  return state != job.end() && absl::StrContains(state->dump(), "COMPLETING");
}

FleetJob::State StateOf(const Json& job) {
  const std::string state = TextAt(job, "job_state");
  if (Completes(job)) return FleetJob::State::kEnding;
  const std::string reason = TextAt(job, "state_reason");
  if (state == "PENDING" && (reason == "BeginTime" || reason == "JobHeldUser" || reason == "JobHeldAdmin")) {
    return FleetJob::State::kHeld;
  }
  if (state == "PENDING" || state == "REQUEUED" || state == "REQUEUE_HOLD" || state == "SPECIAL_EXIT") {
    return FleetJob::State::kPending;
  }
  if (state == "RUNNING" || state == "CONFIGURING" || state == "SUSPENDED" || state == "STOPPED" ||
      state == "RESIZING" || state == "SIGNALING" || state == "STAGE_OUT") {
    return FleetJob::State::kRunning;
  }
  // A worker that was preempted, cancelled or ran out of time did nothing wrong.
  if (state == "FAILED" || state == "BOOT_FAIL" || state == "NODE_FAIL" || state == "OUT_OF_MEMORY" ||
      state == "LAUNCH_FAILED") {
    return FleetJob::State::kFailed;
  }
  return FleetJob::State::kEnded;
}

std::string FirstLine(const std::string& text) {
  const std::string stripped(absl::StripAsciiWhitespace(text));
  return stripped.substr(0, stripped.find('\n')).substr(0, 300);
}

// What a command printed. UNAVAILABLE: it did not end in time, or could not be started. ABORTED: it failed.
absl::StatusOr<std::string> Run(std::vector<std::string> argv, absl::Duration deadline) {
  ProcessOptions process;
  const std::string command = argv[0];
  process.argv = std::move(argv);
  process.timeout = deadline;
  process.output_cap = kLongestOutput;
  const absl::StatusOr<ProcessResult> result = RunProcess(process);
  if (!result.ok()) {
    return absl::UnavailableError(absl::StrCat(command, " can't be started: ", std::string(result.status().message()),
                                               ": install Slurm's commands on this machine (Debian: slurm-client)"));
  }
  if (result->ok()) return result->out;
  if (result->timed_out) return absl::UnavailableError(absl::StrCat(command, " ", EndText(*result)));
  const std::string said = FirstLine(result->err);
  return absl::AbortedError(absl::StrCat(command, " failed: ", said.empty() ? EndText(*result) : said));
}

// Slurm itself did not answer; anything else is a refusal.
bool IsOutage(const absl::Status& status) {
  if (absl::IsUnavailable(status)) return true;
  for (const char* words : {"Unable to contact slurm controller", "Socket timed out", "Connection refused",
                            "Zero Bytes were transmitted", "Slurm temporarily unable to accept job"}) {
    if (absl::StrContains(status.message(), words)) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::vector<FleetJob>> ReadJobs(std::string_view text, const std::string& name, int64_t user) {
  const Json all = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto list = all.is_object() ? all.find("jobs") : all.end();
  if (!all.is_object() || list == all.end() || !list->is_array()) {
    return absl::FailedPreconditionError(
        "squeue --json did not print a list of jobs: Slurm 21.08 or newer with its JSON plugin is needed");
  }
  std::vector<FleetJob> jobs;
  for (const Json& entry : *list) {
    if (!entry.is_object()) continue;
    std::string job_name = TextAt(entry, "name");
    absl::string_view rest = job_name;
    if (NumberAt(entry, "user_id") != user || !absl::ConsumePrefix(&rest, name)) continue;
    if (!rest.empty() && !absl::ConsumePrefix(&rest, ":")) continue;
    FleetJob job;
    job.id = NumberAt(entry, "job_id");
    job.gpu = std::string(rest);
    job.state = StateOf(entry);
    job.completed = job.state == FleetJob::State::kEnded && TextAt(entry, "job_state") == "COMPLETED";
    job.seconds = static_cast<double>(NumberAt(entry, "end_time") - NumberAt(entry, "start_time"));  // of one clock
    job.ended = NumberAt(entry, "end_time");
    job.reason = TextAt(entry, "state_reason");
    job.log = absl::StrReplaceAll(TextAt(entry, "standard_output"), {{"%j", absl::StrCat(job.id)}});
    jobs.push_back(std::move(job));
  }
  return jobs;
}

absl::StatusOr<std::vector<FleetJob>> Slurm::Jobs() const {
  const absl::StatusOr<std::string> printed = Run({"squeue", "--me", "--states=all", "--json"}, options_.deadline);
  if (!printed.ok()) return absl::UnavailableError(printed.status().message());
  return ReadJobs(*printed, options_.name, geteuid());
}

absl::StatusOr<int64_t> Slurm::Submit(const GpuClass& gpu) const {
  std::vector<std::string> argv = {
      "sbatch", "--parsable",
      absl::StrCat("--job-name=", options_.name, gpu.gpu.empty() ? "" : absl::StrCat(":", gpu.gpu)),
      absl::StrCat("--partition=", options_.partition),
      absl::StrCat("--output=", options_.logs, "/pawl-worker-%j.log")};
  if (!gpu.gres.empty()) argv.push_back(absl::StrCat("--gres=", gpu.gres));
  argv.insert(argv.end(), options_.sbatch.begin(), options_.sbatch.end());
  argv.push_back(options_.script);
  argv.insert(argv.end(), options_.worker.begin(), options_.worker.end());
  const absl::StatusOr<std::string> printed = Run(std::move(argv), options_.deadline);
  if (!printed.ok()) {
    if (IsOutage(printed.status())) return absl::UnavailableError(printed.status().message());
    return absl::FailedPreconditionError(printed.status().message());
  }
  int64_t id = 0;  // "4711", or "4711;cluster"
  const std::string first = FirstLine(*printed);
  if (!absl::SimpleAtoi(first.substr(0, first.find(';')), &id)) {
    return absl::FailedPreconditionError(absl::StrCat("sbatch printed no job id: ", first));
  }
  return id;
}

absl::Status Slurm::CancelPending(const std::vector<int64_t>& jobs) const {
  if (jobs.empty()) return absl::OkStatus();
  std::vector<std::string> argv = {"scancel", "--state=PENDING"};
  for (const int64_t job : jobs) argv.push_back(absl::StrCat(job));
  return Run(std::move(argv), options_.deadline).status();
}

}  // namespace pawl
