#include "worker/trial/sanitizer.h"

#include <algorithm>
#include <future>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "worker/process/subprocess.h"
#include "worker/trial/cuda_device.h"
#include "worker/trial/job_file.h"
#include "worker/validate/output_check.h"

namespace pawl {
namespace {

constexpr absl::Duration kSanitizerDeadline = absl::Seconds(60);
constexpr absl::Duration kLargeSizeDeadline = absl::Seconds(120);
constexpr int kFoundErrors = 99;

struct Tool {
  const char* name;
  v1::Check check;
};
constexpr Tool kTools[] = {{"memcheck", v1::CHECK_MEMCHECK},
                           {"racecheck", v1::CHECK_RACECHECK},
                           {"initcheck", v1::CHECK_INITCHECK},
                           {"synccheck", v1::CHECK_SYNCCHECK}};

// How lines begin that say nothing about the kernel. That the runner failed is no finding by itself.
constexpr const char* kTalk[] = {"COMPUTE-SANITIZER",
                                 "Error: process didn't terminate successfully",
                                 "Error: couldn't find exit code",
                                 "Error: Target application terminated",
                                 "Target application returned an error",
                                 "Tracking kernels launched by child processes",
                                 "Internal Sanitizer Error"};

// Whether this compute-sanitizer can leave out kernels by their name. Asked once for each program.
bool CanLeaveOut(const std::string& program) {
  static absl::Mutex mutex(absl::kConstInit);
  static std::map<std::string, bool>& known = *new std::map<std::string, bool>;
  absl::MutexLock lock(&mutex);
  const auto [it, fresh] = known.try_emplace(program, false);
  if (fresh) {
    ProcessOptions options;
    options.argv = {program, "--help"};
    options.timeout = absl::Seconds(20);
    const absl::StatusOr<ProcessResult> help = RunProcess(options);
    it->second = help.ok() && absl::StrContains(help->out + help->err, "--kernel-name-exclude");
  }
  return it->second;
}

// Our own kernel that fills a job's inputs takes longer under the tools than many a candidate: it is not watched.
std::vector<std::string> SanitizerCommand(const std::string& program, const char* tool) {
  std::vector<std::string> command = {program,         "--tool", tool, "--error-exitcode", absl::StrCat(kFoundErrors),
                                      "--print-limit", "3"};
  if (CanLeaveOut(program)) {
    command.insert(command.end(), {"--kernel-name-exclude", absl::StrCat("kernel_substring=", kOwnFillKernel)});
  }
  return command;
}

}  // namespace

std::optional<std::string> FirstSanitizerError(const std::string& output) {
  std::optional<std::string> first;
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    if (!absl::ConsumePrefix(&line, "=========")) continue;
    line = absl::StripAsciiWhitespace(line);
    if (first) {  // where, and the other side of a race, stand on lines of their own
      if (!absl::StartsWith(line, "at ") && !absl::StartsWith(line, "and ")) break;
      absl::StrAppend(&*first, " ", std::string(line));
      continue;
    }
    if (line.empty() || absl::StrContains(line, "SUMMARY: 0 ")) continue;
    const bool talk = std::any_of(std::begin(kTalk), std::end(kTalk),
                                  [&](const char* start) { return absl::StartsWith(line, start); });
    if (!talk) first = std::string(line);
  }
  return first;
}

absl::StatusOr<Sanitizing> Sanitize(CudaDevice& device, const std::vector<const BuiltSize*>& sizes,
                                    SanitizerTools tools) {
  const absl::Time start = absl::Now();
  if (device.toolkit().compute_sanitizer.empty()) {
    return absl::UnavailableError("compute-sanitizer was not found: install the CUDA toolkit's cuda-sanitizer package");
  }
  // A kernel that counts its calls can't know which is the last.
  const int calls = 2 + static_cast<int>(SecretSeed() % 3);
  absl::StatusOr<JobFile> job = JobFile::Write(device, sizes, calls);
  if (!job.ok()) return job.status();
  const bool small = tools == SanitizerTools::kAll;
  std::vector<Tool> used;
  for (const Tool& tool : kTools) {
    const bool memcheck = tool.check == v1::CHECK_MEMCHECK;
    const bool between = tool.check == v1::CHECK_RACECHECK || tool.check == v1::CHECK_INITCHECK;
    if (small || (tools == SanitizerTools::kMemcheck ? memcheck : between)) used.push_back(tool);
  }
  std::vector<std::future<absl::StatusOr<ProcessResult>>> running;
  for (const Tool& tool : used) {
    ProcessOptions options;
    std::vector<std::string> command = SanitizerCommand(device.toolkit().compute_sanitizer, tool.name);
    command.insert(command.end(), {device.runner_program(), "--job", job->path()});
    options.argv = device.sandboxing().Tool(command, job->folder());
    options.timeout = small ? kSanitizerDeadline : kLargeSizeDeadline;
    options.stopped = device.stopped();
    running.push_back(std::async(std::launch::async, [options] { return RunProcess(options); }));
  }
  Sanitizing sanitizing;
  absl::Status trouble;
  for (size_t i = 0; i < running.size(); ++i) {
    absl::StatusOr<ProcessResult> result = running[i].get();
    if (!result.ok()) {
      trouble = result.status();
      continue;
    }
    if (result->ok() || sanitizing.failure) continue;
    if (result->timed_out && !small) {
      trouble = absl::DeadlineExceededError(absl::StrCat("compute-sanitizer ", used[i].name, " did not end in ",
                                                         absl::FormatDuration(kLargeSizeDeadline)));
      continue;
    }
    const std::optional<std::string> error = FirstSanitizerError(result->out + result->err);
    // Any other code is the tool's own trouble, never the candidate's.
    if (!result->timed_out && (result->exit_code != kFoundErrors || !error)) {
      trouble = absl::InternalError(absl::StrCat("compute-sanitizer --tool ", used[i].name, " ", EndText(*result), ": ",
                                                 result->err.substr(0, 500)));
      continue;
    }
    sanitizing.failure.emplace();
    sanitizing.failure->set_stage(v1::STAGE_VALIDATE);
    sanitizing.failure->set_check(result->timed_out ? v1::CHECK_TIMEOUT : used[i].check);
    sanitizing.failure->set_message(
        absl::StrCat("compute-sanitizer ", used[i].name, ": ", result->timed_out ? EndText(*result) : *error));
  }
  sanitizing.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  if (!sanitizing.failure && !trouble.ok()) return trouble;
  return sanitizing;
}

}  // namespace pawl
