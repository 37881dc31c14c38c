#include "worker/device/job_file.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "worker/problem/problem_server.h"
#include "worker/process/process.h"
#include "worker/validate/output_check.h"

namespace pawl {

JobFile::~JobFile() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

absl::Status JobFile::AddInputs(CudaDevice& device, const BuiltSize& size, uint32_t number, v1::Job::Item* item) const {
  EntryRequest request;
  request.pool = "job";
  request.entry = number;
  request.seed = SecretSeed();
  request.only = true;
  const absl::StatusOr<StagedEntry> staged = device.problem().Make(*size.problem, size.plan, request);
  if (!staged.ok()) return staged.status();
  item->set_data(absl::StrCat(folder_, "/inputs-", number));
  const Fd file(open(item->data().c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  off_t end = lseek(file.get(), 0, SEEK_END);
  for (const v1::ProvideRequest::Part& part : staged->inputs) {
    *item->add_parts() = part;
    item->mutable_parts()->rbegin()->set_offset(end);
    off_t from = part.offset();
    for (int64_t left = part.bytes(); left > 0;) {
      const ssize_t sent = sendfile(file.get(), device.shared_fd(), &from, static_cast<size_t>(left));
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) {
        return absl::ResourceExhaustedError(absl::StrCat("can't write ", item->data(), ": is the disk full?"));
      }
      left -= sent;
      end += sent;
    }
  }
  return absl::OkStatus();
}

absl::Status JobFile::AddFiles(const BuiltSize& size, uint32_t number, v1::Job::Item* item) const {
  if (size.files.empty()) return absl::OkStatus();
  item->set_data(absl::StrCat(folder_, "/inputs-", number));
  std::ofstream out(item->data(), std::ios::binary);
  int64_t end = 0;
  for (const v1::PlanTensor& tensor : size.plan.tensors()) {
    for (const TensorFile& file : size.files) {
      if (tensor.fill() != v1::FILL_FILE || tensor.file() != file.id) continue;
      v1::ProvideRequest::Part& part = *item->add_parts();
      part.set_tensor(tensor.name());
      part.set_offset(end);
      part.set_bytes(static_cast<int64_t>(file.content->size()));
      out << *file.content;
      end += part.bytes();
    }
  }
  if (!out.flush())
    return absl::ResourceExhaustedError(absl::StrCat("can't write ", item->data(), ": is the disk full?"));
  return absl::OkStatus();
}

absl::StatusOr<JobFile> JobFile::Write(CudaDevice& device, const std::vector<const BuiltSize*>& items, int calls,
                                       const std::filesystem::path& parent, bool shift) {
  std::error_code error;
  // A real path, at which a sandbox can show it.
  const std::filesystem::path temporary =
      std::filesystem::canonical(parent.empty() ? std::filesystem::temp_directory_path(error) : parent, error);
  std::string folder = ((error ? "/tmp" : temporary) / "pawl-job-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("can't make a folder like ", folder, ": set TMPDIR to one with room"));
  }
  JobFile file(folder, items.size());
  v1::Job job;
  job.set_device(device.ordinal());
  job.set_support_cubin(device.support_cubin());
  for (const BuiltSize* item : items) {
    v1::Job::Item* added = job.add_items();
    added->set_cubin(*item->cubin);
    *added->mutable_plan() = item->plan;
    added->set_calls(calls);
    added->set_shifted(shift);
    if (item->setup_cubin != nullptr) added->set_setup_cubin(*item->setup_cubin);
    const auto number = static_cast<uint32_t>(job.items_size());
    if (absl::Status status = file.AddFiles(*item, number, added); !status.ok()) return status;
    if (item->problem == nullptr) continue;
    if (absl::Status status = file.AddInputs(device, *item, number, added); !status.ok()) return status;
  }
  std::ofstream out(file.path(), std::ios::binary);
  if (!job.SerializeToOstream(&out) || !out.flush()) {
    return absl::ResourceExhaustedError(absl::StrCat("can't write ", file.path(), ": is the disk full?"));
  }
  // A sandbox that runs already has another user, to whom only what it was started with was given.
  if (!parent.empty()) {
    using std::filesystem::perms;
    std::filesystem::permissions(folder, perms::owner_all | perms::others_read | perms::others_exec, error);
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      std::filesystem::permissions(entry.path(), perms::owner_read | perms::owner_write | perms::others_read, error);
    }
  }
  return file;
}

}  // namespace pawl
