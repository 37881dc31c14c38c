// Findings for ncu output that no campaign made.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/finding.pb.h"
#include "profiles/gpus.h"
#include "profiles/profile_set.h"

namespace pawl {

struct CsvDiagnosisRequest {
  std::string_view raw;          // ncu's raw page
  std::string_view details;      // ncu's details page of the same run, for its own advice; empty: none
  const GpuSpec* gpu = nullptr;  // where the file does not say
  std::string kernel;            // only kernels whose name contains this; empty: all
};

struct KernelDiagnosis {
  int id = 0;  // in the file
  std::string grid, block;
  v1::GpuInfo gpu;            // as far as it is known
  v1::LaunchEvidence launch;  // the kernel's name as `entry`, its metrics, ncu's advice
  std::vector<v1::Finding> findings;
  std::vector<RuleGap> gaps;
  std::vector<std::string> missing_columns;  // of ncu, that would fill the gaps as far as it can
  std::vector<std::string> beyond_ncu;  // metrics missing in the gaps that no column gives: a bundle or a compiler does
};

// One element a launch, in file order. NOT_FOUND and INVALID_ARGUMENT: `raw` is not ncu's raw page, has no kernel, or
// is damaged. FAILED_PRECONDITION: it has no such kernel, is of another GPU than `gpu`, or `details` is no details
// page.
absl::StatusOr<std::vector<KernelDiagnosis>> DiagnoseCsv(const CsvDiagnosisRequest& request,
                                                         const ProfileSet& profiles);

}  // namespace pawl
