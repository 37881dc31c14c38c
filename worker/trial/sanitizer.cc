#include "worker/trial/sanitizer.h"

#include <algorithm>
#include <future>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
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
    options.argv = device.sandboxing().Tool(
        {device.toolkit().compute_sanitizer, "--tool", tool.name, "--error-exitcode", absl::StrCat(kFoundErrors),
         "--print-limit", "3", device.runner_program(), "--job", job->path()},
        job->folder());
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
