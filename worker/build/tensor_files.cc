#include "worker/build/tensor_files.h"

#include <map>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "kernels/data_file.h"

namespace pawl {
namespace {

// Contents that somebody holds, by id. Variants of one bundle, of which many are remembered, share them.
class HeldFiles {
 public:
  TensorFile Hold(std::string id, absl::string_view content) {
    absl::MutexLock lock(&mutex_);
    std::weak_ptr<const std::string>& held = files_[id];
    std::shared_ptr<const std::string> kept = held.lock();
    if (kept == nullptr) {
      std::erase_if(files_, [&](const auto& file) { return file.first != id && file.second.expired(); });
      kept = std::make_shared<const std::string>(content);
      files_[id] = kept;
    }
    return {std::move(id), std::move(kept)};
  }

 private:
  absl::Mutex mutex_;
  std::map<std::string, std::weak_ptr<const std::string>> files_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::vector<TensorFile>> TakeFiles(const v1::Bundle& bundle, v1::Plan* plan) {
  static HeldFiles& held = *new HeldFiles;
  std::vector<TensorFile> files;
  std::set<std::string> ids;
  for (v1::PlanTensor& tensor : *plan->mutable_tensors()) {
    if (tensor.fill() != v1::FILL_FILE) continue;
    const v1::DataFile* file = FindDataFile(bundle, tensor.file());
    if (file == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", tensor.name(), ": there is no data file ", tensor.file()));
    }
    const absl::StatusOr<absl::string_view> content = DataOf(*file, tensor);
    if (!content.ok()) return content.status();
    std::string id = absl::StrCat(tensor.file(), "@", content->size(), ":", absl::Hex(absl::HashOf(*content)));
    tensor.set_file(id);
    if (ids.insert(id).second) files.push_back(held.Hold(std::move(id), *content));
  }
  return files;
}

}  // namespace pawl
