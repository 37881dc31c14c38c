#include "worker/runner/shared_region.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "worker/runner/cuda_driver.h"

namespace pawl {

SharedRegion::~SharedRegion() { Unmap(); }

void SharedRegion::Unmap() {
  if (data_ == nullptr) return;
  Cuda().MemHostUnregister(data_);
  munmap(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
}

absl::Status SharedRegion::Reserve(size_t bytes) {
  if (bytes <= bytes_) return absl::OkStatus();
  Unmap();
  struct stat file;
  if (fstat(fd_, &file) != 0) {
    return absl::InternalError(absl::StrCat("the shared region (fd ", fd_, ") is not there: ", strerror(errno)));
  }
  // Registering pages is slow: grow in large steps.
  const size_t wanted = std::max<size_t>({bytes, static_cast<size_t>(file.st_size), size_t{16} << 20});
  if (static_cast<size_t>(file.st_size) < wanted && ftruncate(fd_, wanted) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no room for ", wanted, " bytes of outputs in shared memory: ", strerror(errno)));
  }
  void* mapped = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (mapped == MAP_FAILED)
    return absl::ResourceExhaustedError(absl::StrCat("mmap of ", wanted, " bytes: ", strerror(errno)));
  data_ = static_cast<char*>(mapped);
  bytes_ = wanted;
  PAWL_CUDA(MemHostRegister(data_, bytes_, kHostRegisterPortable));
  return absl::OkStatus();
}

}  // namespace pawl
