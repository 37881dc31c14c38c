#include "orchestrator/http/sent_bundles.h"

#include "absl/strings/str_cat.h"
#include "agent/campaigns/campaigns.h"
#include "base/names/utf8.h"
#include "kernels/bundle_message.h"
#include "kernels/plan.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "profiles/gpus.h"

namespace pawl {
namespace {

constexpr int64_t kMostSteps = 2'000'000;  // a second or so

absl::StatusOr<BundleReading> ReadSent(const BundleSource& source) {
  if (!source.folder.empty()) {
    return absl::InvalidArgumentError(
        "bundle: folders are read by `pawl mcp` only, on your machine; over HTTP send the bundle's files");
  }
  absl::StatusOr<std::unique_ptr<GivenBundle>> folder = GivenBundle::Write(source.files);
  if (!folder.ok()) return folder.status();
  return ReadBundle((*folder)->path());
}

// The start variant at every size, against the limits of one GPU.
void CheckLimits(const v1::Bundle& bundle, const GpuSpec& spec, v1::CheckReport* report) {
  v1::CheckGpu& gpu = *report->add_gpus();
  gpu.set_name(spec.info.name());
  gpu.set_build(v1::CHECK_BUILD_SKIPPED);
  Planner planner(bundle);
  for (const v1::Size& size : bundle.sizes()) {
    const absl::StatusOr<v1::Plan> plan = planner.MakePlan(StartVariant(bundle), size, spec.info);
    if (!plan.ok()) {
      v1::Failure& failure = *gpu.add_failures();
      failure.set_stage(v1::STAGE_STATIC_CHECK);
      failure.set_size(size.name());
      failure.set_message(std::string(plan.status().message()));
    } else if (const std::optional<v1::Failure> failure = CheckLaunchLimits(*plan, spec.info)) {
      *gpu.add_failures() = *failure;
    }
  }
  gpu.set_can_run(gpu.failures().empty());
}

}  // namespace

absl::StatusOr<v1::Bundle> SentBundles::Read(const BundleSource& source) const {
  absl::StatusOr<BundleReading> reading = ReadSent(source);
  if (!reading.ok()) return reading.status();
  if (reading->problems.empty()) return std::move(reading->bundle);
  v1::ErrorDetail detail;
  for (const Problem& problem : reading->problems) detail.add_problems(ValidUtf8(FormatProblem(problem)));
  detail.set_fix("correct kernel.toml; the tool check lists the mistakes");
  return WithErrorDetail(absl::InvalidArgumentError("the bundle has mistakes"), detail);
}

absl::StatusOr<v1::CheckReport> SentBundles::Check(const BundleSource& source, const std::string& gpu) const {
  absl::StatusOr<BundleReading> reading = ReadSent(source);
  if (!reading.ok()) return reading.status();
  v1::CheckReport report;
  for (const Problem& problem : reading->problems) {
    v1::CheckProblem& entry = *report.add_problems();
    entry.set_file(ValidUtf8(problem.file));
    entry.set_line(problem.line);
    entry.set_message(ValidUtf8(problem.message));
  }
  const v1::Bundle& bundle = reading->bundle;
  report.set_bundle(bundle.name());
  if (!reading->problems.empty()) return report;
  if (IsContractAlone(bundle)) {
    report.set_ok(true);
    report.add_warnings(kContractAlone);
    return report;
  }
  report.set_space(SpaceSize(bundle));
  // Others wait for this process.
  const absl::StatusOr<int64_t> allowed = CountAllowed(bundle, kMostSteps);
  report.set_allowed(allowed.value_or(0));
  if (!allowed.ok()) {
    report.add_warnings(absl::StrCat("allowed variants were not counted: ", std::string(allowed.status().message())));
  }
  report.add_warnings("not compiled: the orchestrator has no compiler; `pawl check` and `pawl mcp` compile it");
  const GpuSpec* named = gpu.empty() ? nullptr : FindGpu(gpu);
  if (!gpu.empty() && named == nullptr) return absl::InvalidArgumentError("gpu: there is no file on this GPU");
  bool anywhere = false;
  for (const GpuSpec& spec : KnownGpus()) {
    if (named != nullptr && named != &spec) continue;
    CheckLimits(bundle, spec, &report);
    anywhere = anywhere || report.gpus().rbegin()->can_run();
  }
  report.set_ok(anywhere);
  return report;
}

}  // namespace pawl
