#include "worker/device/sanitizer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "worker/device/cuda_device.h"
#include "worker/device/job_file.h"
#include "worker/process/subprocess.h"
#include "worker/validate/output_check.h"

namespace pawl {
namespace {

constexpr absl::Duration kSanitizerDeadline = absl::Seconds(60);  // and no less than
constexpr absl::Duration kSizeDeadline = absl::Seconds(20);       // for each size
constexpr absl::Duration kLargeSizeDeadline = absl::Seconds(120);
// racecheck and initcheck slow a kernel down up to a thousand times: they go on to the next size while it is likely to
// fit into this time, and are killed where one of them did not.
constexpr absl::Duration kBetweenSizes = absl::Seconds(5);
constexpr absl::Duration kBetweenDeadline = absl::Seconds(15);
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

std::vector<Tool> ToolsOf(SanitizerTools tools) {
  std::vector<Tool> used;
  for (const Tool& tool : kTools) {
    const bool memcheck = tool.check == v1::CHECK_MEMCHECK;
    const bool between = tool.check == v1::CHECK_RACECHECK || tool.check == v1::CHECK_INITCHECK;
    if (tools == SanitizerTools::kAll || (tools == SanitizerTools::kMemcheck ? memcheck : between)) {
      used.push_back(tool);
    }
  }
  return used;
}

absl::Duration DeadlineOf(SanitizerTools tools, size_t sizes) {
  switch (tools) {
    case SanitizerTools::kAll:
      return std::max(kSanitizerDeadline, kSizeDeadline * static_cast<int64_t>(sizes));
    case SanitizerTools::kMemcheck:
      return kLargeSizeDeadline;
    case SanitizerTools::kRaceAndInit:
      return kBetweenDeadline;
  }
  return kSanitizerDeadline;
}

class ToolsAtWork : public SanitizerRun {
 public:
  ToolsAtWork(CudaDevice& device, JobFile job, SanitizerTools tools) : job_(std::move(job)), tools_(tools) {
    for (const Tool& tool : ToolsOf(tools)) {
      ProcessOptions options;
      std::vector<std::string> command = SanitizerCommand(device.toolkit().compute_sanitizer, tool.name);
      command.insert(command.end(), {device.runner_program(), "--job", job_.path()});
      if (tools == SanitizerTools::kRaceAndInit) {
        command.push_back(absl::StrCat(absl::ToDoubleSeconds(kBetweenSizes)));
      }
      options.argv = device.sandboxing().Tool(command, job_.folder());
      options.timeout = DeadlineOf(tools, job_.items());
      options.stopped = [stopped = device.stopped(), abandoned = abandoned_] {
        return *abandoned || (stopped && stopped());
      };
      running_.emplace_back(tool, std::async(std::launch::async, [options] { return RunProcess(options); }));
    }
  }

  ~ToolsAtWork() override { *abandoned_ = true; }  // futures of std::async wait

  absl::StatusOr<Sanitizing> Wait() override {
    Sanitizing sanitizing;
    sanitizing.called = job_.items();
    absl::Status trouble;
    for (auto& [tool, end] : running_) {
      absl::StatusOr<ProcessResult> result = end.get();
      if (!result.ok()) {
        trouble = result.status();
        continue;
      }
      sanitizing.seconds = std::max(sanitizing.seconds, result->seconds);
      if (sanitizing.failure && sanitizing.failure->check() != v1::CHECK_TIMEOUT) continue;
      sanitizing.called = std::min(sanitizing.called, CalledItems(result->out));
      if (result->ok()) continue;
      const std::optional<std::string> error = FirstSanitizerError(result->out + result->err);
      if (result->timed_out && tools_ == SanitizerTools::kRaceAndInit && !error) continue;  // `called` says it
      if (result->timed_out && tools_ == SanitizerTools::kMemcheck && !error) {
        trouble = absl::DeadlineExceededError(absl::StrCat("compute-sanitizer ", tool.name, " did not end in ",
                                                           absl::FormatDuration(DeadlineOf(tools_, job_.items()))));
        continue;
      }
      // Any other code is the tool's own trouble, never the candidate's.
      if (!result->timed_out && (result->exit_code != kFoundErrors || !error)) {
        trouble = absl::InternalError(absl::StrCat("compute-sanitizer --tool ", tool.name, " ", EndText(*result), ": ",
                                                   result->err.substr(0, 500)));
        continue;
      }
      if (sanitizing.failure && !error) continue;  // an error says more than a timeout
      sanitizing.failure.emplace();
      sanitizing.failure->set_stage(v1::STAGE_VALIDATE);
      // The tools need more memory than the kernel.
      const bool memory = error && absl::StrContains(*error, "OUT_OF_MEMORY");
      sanitizing.failure->set_check(memory ? v1::CHECK_OUT_OF_MEMORY : error ? tool.check : v1::CHECK_TIMEOUT);
      sanitizing.failure->set_message(
          absl::StrCat("compute-sanitizer ", tool.name, ": ", error ? *error : EndText(*result)));
    }
    if (!sanitizing.failure && !trouble.ok()) return trouble;
    return sanitizing;
  }

 private:
  const JobFile job_;
  const SanitizerTools tools_;
  const std::shared_ptr<std::atomic<bool>> abandoned_ = std::make_shared<std::atomic<bool>>(false);
  std::vector<std::pair<Tool, std::future<absl::StatusOr<ProcessResult>>>> running_;
};

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

size_t CalledItems(const std::string& output) {
  // What a kernel prints comes before it; only one that is killed can print the last. It is for the notes.
  const size_t last = output.rfind(kCalledItems);
  size_t items = 0;
  if (last == std::string::npos) return 0;
  const std::string rest = output.substr(last + strlen(kCalledItems));
  return absl::SimpleAtoi(rest.substr(0, rest.find_first_not_of("0123456789")), &items) ? items : 0;
}

absl::StatusOr<std::unique_ptr<SanitizerRun>> StartSanitizing(CudaDevice& device,
                                                              const std::vector<const BuiltSize*>& sizes,
                                                              SanitizerTools tools) {
  if (device.toolkit().compute_sanitizer.empty()) {
    return absl::UnavailableError("compute-sanitizer was not found: install the CUDA toolkit's cuda-sanitizer package");
  }
  // A kernel that counts its calls can't know which is the last.
  const int calls = 2 + static_cast<int>(SecretSeed() % 3);
  absl::StatusOr<JobFile> job = JobFile::Write(device, sizes, calls, {}, /*shift=*/true);
  if (!job.ok()) return job.status();
  return std::make_unique<ToolsAtWork>(device, *std::move(job), tools);
}

}  // namespace pawl
