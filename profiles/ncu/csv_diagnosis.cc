#include "profiles/ncu/csv_diagnosis.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "profiles/ncu/ncu_csv.h"

namespace pawl {
namespace {

using AdviceById = std::map<int, std::vector<v1::Advice>>;

absl::StatusOr<std::vector<NcuKernel>> ReadRaw(std::string_view csv) {
  absl::StatusOr<std::vector<NcuKernel>> kernels = ReadNcuRaw(csv);
  if (!kernels.ok() && ReadNcuDetails(csv).ok()) {
    return absl::InvalidArgumentError("this is ncu's details page; its counters are on the raw page (--page raw)");
  }
  return kernels;
}

// What the file says of the GPU, completed with what is known of that model.
absl::StatusOr<v1::GpuInfo> CompleteGpu(const NcuKernel& kernel, const GpuSpec* asked) {
  const v1::GpuInfo own = GpuOf(kernel);
  const GpuSpec* spec = own.name().empty() ? asked : FindGpu(own.name());
  if (asked != nullptr && !own.name().empty() && asked != spec) {
    return absl::FailedPreconditionError(
        absl::StrCat("the file was made on a ", own.name(), ", not on a ", asked->info.name()));
  }
  v1::GpuInfo gpu = spec == nullptr ? v1::GpuInfo() : spec->info;
  gpu.MergeFrom(own);
  return gpu;
}

KernelDiagnosis Diagnose(const NcuKernel& kernel, const v1::GpuInfo& gpu, const AdviceById& advice,
                         const ProfileSet& profiles) {
  KernelDiagnosis diagnosis;
  diagnosis.id = kernel.id;
  diagnosis.grid = kernel.grid;
  diagnosis.block = kernel.block;
  diagnosis.gpu = gpu;
  v1::LaunchEvidence& launch = diagnosis.launch;
  launch.set_entry(kernel.name);
  if (const auto own = advice.find(kernel.id); own != advice.end()) {
    launch.mutable_advice()->Add(own->second.begin(), own->second.end());
  }
  const std::map<std::string, double> values = profiles.metrics.Derive(&kernel, v1::LaunchEvidence(), gpu);
  launch.mutable_metrics()->insert(values.begin(), values.end());
  v1::Evidence evidence;
  *evidence.add_launches() = launch;
  diagnosis.findings = profiles.tree.Diagnose(evidence, gpu);
  diagnosis.gaps = profiles.tree.Gaps(evidence, gpu);
  std::set<std::string> columns, beyond;
  for (const RuleGap& gap : diagnosis.gaps) {
    for (const std::string& metric : gap.missing) {
      std::set<std::string> needed = profiles.metrics.MissingColumns(metric, values);
      if (needed.empty() && profiles.metrics.Find(metric) != nullptr) beyond.insert(metric);
      columns.merge(needed);
    }
  }
  diagnosis.missing_columns.assign(columns.begin(), columns.end());
  diagnosis.beyond_ncu.assign(beyond.begin(), beyond.end());
  return diagnosis;
}

}  // namespace

absl::StatusOr<std::vector<KernelDiagnosis>> DiagnoseCsv(const CsvDiagnosisRequest& request,
                                                         const ProfileSet& profiles) {
  const absl::StatusOr<std::vector<NcuKernel>> kernels = ReadRaw(request.raw);
  if (!kernels.ok()) return kernels.status();
  AdviceById advice;
  if (!request.details.empty()) {
    absl::StatusOr<AdviceById> read = ReadNcuDetails(request.details);
    if (!read.ok()) {
      return absl::FailedPreconditionError(absl::StrCat("the details page: ", std::string(read.status().message())));
    }
    advice = *std::move(read);
  }
  std::vector<KernelDiagnosis> diagnoses;
  std::set<std::string> names;
  for (const NcuKernel& kernel : *kernels) {
    names.insert(kernel.name);
    if (kernel.name.find(request.kernel) == kernel.name.npos) continue;
    absl::StatusOr<v1::GpuInfo> gpu = CompleteGpu(kernel, request.gpu);
    if (!gpu.ok()) return gpu.status();
    diagnoses.push_back(Diagnose(kernel, *gpu, advice, profiles));
  }
  if (diagnoses.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no kernel's name contains \"", request.kernel, "\"; there are ", absl::StrJoin(names, ", ")));
  }
  return diagnoses;
}

}  // namespace pawl
