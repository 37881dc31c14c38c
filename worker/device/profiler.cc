#include "worker/device/profiler.h"

#include <algorithm>
#include <future>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/sync/steady_time.h"
#include "profiles/metrics.h"
#include "profiles/ncu/ncu_csv.h"
#include "worker/device/cuda_device.h"
#include "worker/device/job_file.h"
#include "worker/process/subprocess.h"

namespace pawl {
namespace {

// What each launch is known to be without any counter.
v1::Evidence KnownEvidence(const ProfileItem& item) {
  v1::Evidence evidence;
  for (int i = 0; i < item.built->plan.launches_size(); ++i) {
    v1::LaunchEvidence* launch = evidence.add_launches();
    launch->set_entry(item.built->plan.launches(i).entry());
    *launch->mutable_geometry() = item.built->plan.launches(i);
    launch->mutable_geometry()->clear_arguments();
    // What the bundle says of its work, for rules that need it. It is the whole call's, so of a single launch only.
    if (item.built->plan.launches_size() == 1 && item.built->plan.bytes() > 0) {
      (*launch->mutable_metrics())["work_bytes"] = item.built->plan.bytes();
      (*launch->mutable_metrics())["work_flops"] = item.built->plan.flops();
    }
    if (item.matrix_work) (*launch->mutable_metrics())["matrix_work"] = 1;
    if (i < static_cast<int>(item.resources.size())) *launch->mutable_resources() = item.resources[i];
  }
  return evidence;
}

void SetMetrics(const Metrics& metrics, const v1::GpuInfo& gpu, const NcuKernel* kernel, v1::LaunchEvidence* launch) {
  for (const auto& [name, value] : metrics.Derive(kernel, *launch, gpu)) {
    (*launch->mutable_metrics())[name] = value;
  }
}

ProcessOptions NcuOptions(const CudaDevice& device, const JobFile& job, std::vector<std::string> arguments,
                          absl::Duration timeout) {
  ProcessOptions options;
  arguments.insert(arguments.begin(), device.toolkit().ncu);
  options.argv = device.sandboxing().Tool(arguments, job.folder());
  options.env = {{"LC_ALL", "C"}, {"TMPDIR", job.folder()}};  // ncu's lock file may belong to another user in /tmp
  options.timeout = timeout;
  options.output_cap = 256 << 20;
  options.stopped = device.stopped();
  return options;
}

// The end of what was said, without ncu's progress: with many kernels that is all one would see.
std::string LastWords(const std::string& output) {
  constexpr size_t kMost = 500;
  std::vector<absl::string_view> lines = absl::StrSplit(output, '\n');
  std::erase_if(lines, [](absl::string_view line) { return absl::StartsWith(line, "==PROF=="); });
  const std::string text = absl::StrJoin(lines, "\n");
  return text.size() > kMost ? text.substr(text.size() - kMost) : text;
}

}  // namespace

std::string ExplainNcuFailure(const std::string& output) {
  if (absl::StrContains(output, "ERR_NVGPUCTRPERM")) {
    return "counters are forbidden (ERR_NVGPUCTRPERM): put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into "
           "a file in /etc/modprobe.d and reboot, or run the worker as root, in a container with CAP_SYS_ADMIN";
  }
  if (absl::StrContains(output, "driver resource was unavailable")) {
    return "another profiler holds the counters: `dcgmi profile --pause`, or stop the DCGM exporter while profiling";
  }
  if (absl::StrContains(output, "nsight-compute-lock")) {
    return "ncu can't use its lock file: set TMPDIR to a folder of your own, and run one ncu at a time";
  }
  if (absl::StrContains(output, "No kernels were profiled")) {
    return "no kernels were profiled: none of the launches' entries ran";
  }
  if (absl::StrContains(output, "returned an error code")) {
    return absl::StrCat("the runner failed under ncu: ", LastWords(output));
  }
  return absl::StrCat("ncu failed: ", LastWords(output));
}

v1::Evidence EvidenceWithoutCounters(const v1::GpuInfo& gpu, const ProfileItem& item, const std::string& reason,
                                     const Metrics& metrics) {
  v1::Evidence evidence = KnownEvidence(item);
  evidence.set_partial(true);
  evidence.set_partial_reason(reason);
  for (v1::LaunchEvidence& launch : *evidence.mutable_launches()) SetMetrics(metrics, gpu, nullptr, &launch);
  return evidence;
}

absl::Status TryCounters(const CudaDevice& device, Profiler& profiler) {
  BuiltSize hold;
  v1::PlanLaunch* launch = hold.plan.add_launches();
  launch->set_entry("pawl_hold");
  for (v1::Dim3* dim : {launch->mutable_grid(), launch->mutable_block()}) {
    dim->set_x(1);
    dim->set_y(1);
    dim->set_z(1);
  }
  launch->add_arguments()->set_i32(1000);
  hold.cubin = std::make_shared<const std::string>(device.support_cubin());
  absl::StatusOr<Profiling> profiling = profiler.Profile({{&hold, {}}});
  if (!profiling.ok()) return profiling.status();
  const v1::Evidence& evidence = profiling->evidence[0];
  return evidence.partial() ? absl::UnavailableError(evidence.partial_reason()) : absl::OkStatus();
}

struct NcuProfiler::Pages {
  std::string raw;
  std::vector<NcuKernel> kernels;
  std::map<int, std::vector<v1::Advice>> advice;
};

// Not every ncu and GPU has every metric, and one that is unknown fails the whole run.
void NcuProfiler::FindNames() {
  names_ = metrics_.NcuNames();
  ProcessOptions options;
  options.argv = {device_.toolkit().ncu, "--query-metrics"};
  options.env = {{"LC_ALL", "C"}};
  options.timeout = absl::Seconds(60);
  options.stopped = device_.stopped();
  absl::StatusOr<ProcessResult> query = RunProcess(options);
  if (!query.ok() || !query->ok()) return;  // the run itself will tell
  absl::StatusOr<std::vector<std::string>> missing = MissingNcuMetrics(names_, query->out);
  if (!missing.ok()) return;
  missing_ = *std::move(missing);
  std::erase_if(names_, [&](const std::string& name) {
    return std::find(missing_.begin(), missing_.end(), name) != missing_.end();
  });
}

absl::StatusOr<NcuProfiler::Pages> NcuProfiler::Run(const std::vector<ProfileItem>& items) {
  if (device_.toolkit().ncu.empty()) {
    return absl::UnavailableError("ncu was not found: install Nsight Compute, or set PAWL_NCU");
  }
  if (names_.empty()) FindNames();
  std::vector<const BuiltSize*> built;
  std::set<std::string> entries;
  for (const ProfileItem& item : items) {
    built.push_back(item.built);
    for (const v1::PlanLaunch& launch : item.built->plan.launches()) entries.insert(launch.entry());
  }
  absl::StatusOr<JobFile> job = JobFile::Write(device_, built);
  if (!job.ok()) return job.status();
  auto failed = [&](const std::string& output) {
    std::string why = ExplainNcuFailure(output);
    if (absl::StartsWith(why, "no kernels were profiled")) absl::StrAppend(&why, ": ", absl::StrJoin(entries, ", "));
    return absl::UnavailableError(why);
  };
  const std::string report = job->folder() + "/report.ncu-rep";
  absl::StatusOr<ProcessResult> run = RunProcess(
      NcuOptions(device_, *job,
                 {"--export", report, "--force-overwrite", "--clock-control", "none", "--cache-control", "none",
                  // The sections whose rules need hardly more passes than the metrics do.
                  "--section", "SpeedOfLight", "--section", "LaunchStats", "--section", "Occupancy", "--metrics",
                  // The job says which launches count: neither fills nor setup, and one of those that are repeated.
                  absl::StrJoin(names_, ","), "--kernel-name-base", "function", "--profile-from-start", "off",
                  device_.runner_program(), "--job", job->path()},
                 absl::Seconds(60 + 5 * items.size())));
  if (!run.ok()) return run.status();
  if (!run->ok()) return failed(absl::StrCat(run->out, run->err, "\n", EndText(*run)));

  auto page = [&](const char* name) {
    return std::async(std::launch::async, [&, name] {
      return RunProcess(NcuOptions(
          device_, *job, {"--import", report, "--csv", "--page", name, "--print-units", "base"}, absl::Seconds(120)));
    });
  };
  auto raw_running = page("raw"), details_running = page("details");
  absl::StatusOr<ProcessResult> raw = raw_running.get(), details = details_running.get();
  if (!raw.ok()) return raw.status();
  if (!raw->ok()) return failed(absl::StrCat(run->out, raw->out, raw->err));
  Pages pages;
  absl::StatusOr<std::vector<NcuKernel>> kernels = ReadNcuRaw(raw->out);
  if (!kernels.ok()) {
    return absl::UnavailableError(
        absl::StrCat(kernels.status().message(), ". ", ExplainNcuFailure(run->out + run->err)));
  }
  pages.kernels = *std::move(kernels);
  pages.raw = std::move(raw->out);
  if (details.ok() && details->ok()) {
    absl::StatusOr<std::map<int, std::vector<v1::Advice>>> advice = ReadNcuDetails(details->out);
    if (advice.ok()) pages.advice = *std::move(advice);  // ncu's own rules are a bonus
  }
  return pages;
}

absl::StatusOr<std::vector<v1::Evidence>> EvidenceOf(const v1::GpuInfo& gpu, const Metrics& metrics,
                                                     const std::vector<ProfileItem>& items,
                                                     const absl::StatusOr<std::vector<NcuKernel>>& kernels) {
  std::vector<v1::Evidence> all;
  size_t row = 0;  // profilers list launches in the order in which they ran
  for (const ProfileItem& item : items) {
    v1::Evidence& evidence = all.emplace_back(KnownEvidence(item));
    if (!kernels.ok()) {
      evidence.set_partial(true);
      evidence.set_partial_reason(std::string(kernels.status().message()));
    }
    for (v1::LaunchEvidence& launch : *evidence.mutable_launches()) {
      const NcuKernel* kernel = kernels.ok() ? &kernels->at(row++) : nullptr;
      // A C++ name is written in another way than the bundle does.
      const bool plain =
          !absl::StartsWith(launch.entry(), "_Z") && launch.entry().find_first_of("<:") == std::string::npos;
      if (kernel != nullptr && plain && kernel->name.find(launch.entry()) == std::string::npos) {
        return absl::InternalError(absl::StrCat("ncu lists ", kernel->name, " where ", launch.entry(), " ran"));
      }
      SetMetrics(metrics, gpu, kernel, &launch);
    }
  }
  return all;
}

absl::StatusOr<Profiling> NcuProfiler::Profile(const std::vector<ProfileItem>& items) {
  const SteadyTime start = SteadyNow();
  Profiling profiling;
  absl::StatusOr<Pages> pages = Run(items);
  if (absl::IsCancelled(pages.status())) return pages.status();
  profiling.missing = missing_;
  size_t expected = 0;
  for (const ProfileItem& item : items) expected += static_cast<size_t>(item.built->plan.launches_size());
  if (pages.ok() && pages->kernels.size() != expected) {
    pages =
        absl::UnavailableError(absl::StrCat("ncu reported ", pages->kernels.size(), " launches, ", expected, " ran"));
  }
  absl::StatusOr<std::vector<NcuKernel>> kernels = absl::UnavailableError("");
  if (pages.ok()) {
    kernels = std::move(pages->kernels);
  } else {
    kernels = pages.status();
  }
  absl::StatusOr<std::vector<v1::Evidence>> evidence = EvidenceOf(device_.gpu(), metrics_, items, kernels);
  if (!evidence.ok()) return evidence.status();
  profiling.evidence = *std::move(evidence);
  if (pages.ok()) {
    profiling.raw = std::move(pages->raw);
    size_t row = 0;
    for (v1::Evidence& each : profiling.evidence) {
      for (v1::LaunchEvidence& launch : *each.mutable_launches()) {
        for (const v1::Advice& advice : pages->advice[kernels->at(row).id]) *launch.add_advice() = advice;
        ++row;
      }
    }
  }
  profiling.seconds = absl::ToDoubleSeconds(SteadyNow() - start);
  return profiling;
}

}  // namespace pawl
