#include "worker/trial/job_file.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "pawl/v1/runner.pb.h"

namespace pawl {

JobFile::~JobFile() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<JobFile> JobFile::Write(const CudaDevice& device, const std::vector<const BuiltSize*>& items,
                                       int calls) {
  std::error_code error;
  // A real path, at which a sandbox can show it.
  const std::filesystem::path temporary =
      std::filesystem::canonical(std::filesystem::temp_directory_path(error), error);
  std::string folder = ((error ? "/tmp" : temporary) / "pawl-job-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("can't make a folder like ", folder, ": set TMPDIR to one with room"));
  }
  JobFile file(folder);
  v1::Job job;
  job.set_device(device.ordinal());
  job.set_support_cubin(device.support_cubin());
  for (const BuiltSize* item : items) {
    v1::Job::Item* added = job.add_items();
    added->set_cubin(*item->cubin);
    *added->mutable_plan() = item->plan;
    added->set_calls(calls);
  }
  std::ofstream out(file.path(), std::ios::binary);
  if (!job.SerializeToOstream(&out) || !out.flush()) {
    return absl::ResourceExhaustedError(absl::StrCat("can't write ", file.path(), ": is the disk full?"));
  }
  return file;
}

}  // namespace pawl
