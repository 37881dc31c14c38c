#include "worker/device/cupti_profiler.h"

#include <stdlib.h>

#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/sync/steady_time.h"
#include "worker/device/cuda_device.h"
#include "worker/device/job_file.h"

namespace pawl {
namespace {

constexpr absl::Duration kCountersDeadline = absl::Seconds(60);

std::string DimText(const v1::Dim3& dim) { return absl::StrCat("(", dim.x(), ", ", dim.y(), ", ", dim.z(), ")"); }

// Of a candidate, not of the machine.
absl::Status CandidateFault(const v1::RunnerReply& reply) {
  return absl::AbortedError(absl::StrCat("the variant failed under the profiler: ",
                                         reply.has_failure() ? reply.failure().message() : reply.host_error()));
}

}  // namespace

CuptiProfiler::CuptiProfiler(CudaDevice& device, const Metrics& metrics)
    : device_(device), metrics_(metrics), folder_("pawl-counters-") {
  for (const std::string& name : metrics.NcuNames()) {
    // What ncu takes from the launch or from the driver has no suffix, and is known without a profiler.
    if (absl::StrContains(name, '.')) names_.push_back(name);
  }
  const std::string libraries = std::filesystem::path(device.toolkit().cupti).parent_path();
  const char* const own = getenv("LD_LIBRARY_PATH");
  RunnerProcess::Options options;
  options.program = device.runner_program();
  options.device = device.ordinal();
  options.support_cubin = device.support_cubin();
  options.sandboxing = &device.sandboxing();
  options.counters_folder = folder_.path();
  // CUPTI loads a library that lies beside it.
  options.env = {{"LD_LIBRARY_PATH", own == nullptr ? libraries : absl::StrCat(libraries, ":", own)},
                 {"TMPDIR", folder_.path().string()}};
  runner_ = std::make_unique<RunnerProcess>(std::move(options));
}

absl::StatusOr<std::vector<NcuKernel>> CuptiProfiler::Measure(const ProfileItem& item) {
  const v1::Plan& plan = item.built->plan;
  absl::StatusOr<JobFile> job = JobFile::Write(device_, {item.built}, 1, folder_.path());
  if (!job.ok()) return job.status();
  v1::RunnerRequest request;
  request.mutable_profile()->set_job(job->path());
  request.mutable_profile()->mutable_metrics()->Assign(names_.begin(), names_.end());
  request.mutable_profile()->set_cupti(device_.toolkit().cupti);
  absl::StatusOr<v1::RunnerReply> reply = runner_->Ask(request, kCountersDeadline);
  if (!reply.ok()) return reply.status();
  if (!reply->has_profile()) return CandidateFault(*reply);
  if (!reply->profile().unavailable().empty()) return absl::UnavailableError(reply->profile().unavailable());
  if (reply->profile().launches_size() != plan.launches_size()) {
    return absl::UnavailableError(
        absl::StrCat("CUPTI reported ", reply->profile().launches_size(), " launches, ", plan.launches_size(), " ran"));
  }
  missing_.assign(reply->profile().missing().begin(), reply->profile().missing().end());
  std::vector<NcuKernel> kernels;
  for (int i = 0; i < plan.launches_size(); ++i) {
    NcuKernel& kernel = kernels.emplace_back();
    kernel.id = i;
    kernel.name = plan.launches(i).entry();
    kernel.block = DimText(plan.launches(i).block());
    kernel.grid = DimText(plan.launches(i).grid());
    const auto& values = reply->profile().launches(i).values();
    kernel.values.insert(values.begin(), values.end());
  }
  return kernels;
}

absl::StatusOr<Profiling> CuptiProfiler::Profile(const std::vector<ProfileItem>& items) {
  const SteadyTime start = SteadyNow();
  if (device_.toolkit().cupti.empty()) return absl::UnavailableError("libcupti was not found in the toolkit");
  if (folder_.path().empty()) return absl::UnavailableError("no folder can be made below TMPDIR");
  Profiling profiling;
  std::vector<NcuKernel> all;
  for (const ProfileItem& item : items) {
    absl::StatusOr<std::vector<NcuKernel>> kernels = Measure(item);
    if (!kernels.ok() && !absl::IsAborted(kernels.status())) return kernels.status();
    absl::StatusOr<std::vector<v1::Evidence>> evidence = EvidenceOf(device_.gpu(), metrics_, {item}, kernels);
    if (!evidence.ok()) return evidence.status();
    profiling.evidence.push_back(std::move(evidence->front()));
    if (!kernels.ok()) continue;
    for (NcuKernel& kernel : *kernels) {
      kernel.id = static_cast<int>(all.size());
      all.push_back(std::move(kernel));
    }
  }
  profiling.raw = RawPage(all);
  profiling.missing = missing_;
  profiling.seconds = absl::ToDoubleSeconds(SteadyNow() - start);
  return profiling;
}

absl::StatusOr<Profiling> FastestProfiler::Profile(const std::vector<ProfileItem>& items) {
  if (why_ncu_.empty()) {
    absl::StatusOr<Profiling> profiling = cupti_.Profile(items);
    if (!absl::IsUnavailable(profiling.status())) return profiling;
    why_ncu_ = std::string(profiling.status().message());
    absl::StatusOr<Profiling> slower = ncu_.Profile(items);
    if (slower.ok()) slower->note = absl::StrCat("counters come from ncu, which takes seconds: ", why_ncu_);
    return slower;
  }
  return ncu_.Profile(items);
}

std::string RawPage(const std::vector<NcuKernel>& kernels) {
  if (kernels.empty()) return "";
  std::set<std::string> names;
  for (const NcuKernel& kernel : kernels) {
    for (const auto& [name, value] : kernel.values) names.insert(name);
  }
  std::string page = "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\"";
  std::string units = "\"\",\"\",\"\",\"\"";
  for (const std::string& name : names) {
    absl::StrAppend(&page, ",\"", name, "\"");
    absl::StrAppend(&units, ",\"\"");
  }
  absl::StrAppend(&page, "\n", units, "\n");
  for (const NcuKernel& kernel : kernels) {
    absl::StrAppend(&page, "\"", kernel.id, "\",\"", kernel.name, "\",\"", kernel.block, "\",\"", kernel.grid, "\"");
    for (const std::string& name : names) {
      const auto value = kernel.values.find(name);
      absl::StrAppend(&page, ",\"", value == kernel.values.end() ? "" : absl::StrCat(value->second), "\"");
    }
    absl::StrAppend(&page, "\n");
  }
  return page;
}

}  // namespace pawl
