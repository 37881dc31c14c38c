#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/runner.pb.h"
#include "worker/build/built_variant.h"
#include "worker/device/cuda_device.h"

namespace pawl {

// A folder of its own with a v1::Job in it, for `pawl-runner --job` under ncu or compute-sanitizer. Removed with it.
class JobFile {
 public:
  // Each item is called so many times. The folder is made in `parent`; where that is empty, in the temporary one.
  // `shift`: in every other call, tensors lie somewhere behind their allocations' beginnings (worker/runner/job.h).
  static absl::StatusOr<JobFile> Write(CudaDevice& device, const std::vector<const BuiltSize*>& items, int calls = 1,
                                       const std::filesystem::path& parent = {}, bool shift = false);
  JobFile(JobFile&& other) noexcept : folder_(std::move(other.folder_)), items_(other.items_) { other.folder_.clear(); }
  ~JobFile();

  const std::string& folder() const { return folder_; }
  std::string path() const { return folder_ + "/job"; }
  size_t items() const { return items_; }

 private:
  JobFile(std::string folder, size_t items) : folder_(std::move(folder)), items_(items) {}
  // Inputs that files of the bundle hold, in a file beside the job.
  absl::Status AddFiles(const BuiltSize& size, uint32_t number, v1::Job::Item* item) const;
  // Inputs that problem.py makes, at the end of the same file.
  absl::Status AddInputs(CudaDevice& device, const BuiltSize& size, uint32_t number, v1::Job::Item* item) const;

  std::string folder_;
  size_t items_;
};

}  // namespace pawl
