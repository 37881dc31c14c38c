// What ncu printed: the input is a raw page, and behind a zero byte a details page.
#include <cmath>
#include <cstdlib>
#include <string>

#include "fuzz/fuzz_target.h"
#include "profiles/ncu/csv_diagnosis.h"
#include "profiles/ncu/ncu_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t zero = text.find('\0');
  const std::string_view raw = text.substr(0, zero);
  const std::string_view details = zero == std::string_view::npos ? std::string_view() : text.substr(zero + 1);
  const absl::StatusOr<std::vector<pawl::NcuKernel>> kernels = pawl::ReadNcuRaw(raw);
  if (kernels.ok()) {
    for (const pawl::NcuKernel& kernel : *kernels) {
      for (const auto& [name, value] : kernel.values) {
        if (!std::isfinite(value)) std::abort();  // such a cell is missing
      }
      (void)pawl::GpuOf(kernel);
    }
  }
  (void)pawl::ReadNcuDetails(details);
  (void)pawl::MissingNcuMetrics({"dram__bytes.sum", "launch__grid_size"}, raw);
  const pawl::CsvDiagnosisRequest request = {
      .raw = raw, .details = details, .gpu = pawl::FindGpu("h200"), .kernel = ""};
  (void)pawl::DiagnoseCsv(request, pawl::ProfileSet::Default());
  return 0;
}
