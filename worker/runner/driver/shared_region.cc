#include "worker/runner/driver/shared_region.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "worker/runner/driver/cuda_driver.h"

namespace pawl {
namespace {

constexpr size_t kMostPitch = (size_t{1} << 31) - 1;

// How many pieces from i on are of the same length and equally far apart, as the rows of one copy are.
size_t AlikeFrom(const std::vector<SharedRegion::Piece>& pieces, size_t i) {
  if (i + 1 == pieces.size() || pieces[i + 1].from < pieces[i].from + pieces[i].bytes) return 1;
  const size_t distance = pieces[i + 1].from - pieces[i].from;
  if (distance > kMostPitch) return 1;
  size_t count = 1;
  while (i + count < pieces.size() && pieces[i + count].bytes == pieces[i].bytes &&
         pieces[i + count].from == pieces[i].from + count * distance) {
    ++count;
  }
  return count;
}

}  // namespace

SharedRegion::~SharedRegion() { Unmap(); }

void SharedRegion::Unmap() {
  if (data_ == nullptr) return;
  Cuda().MemHostUnregister(data_);
  munmap(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
}

absl::Status SharedRegion::Write(size_t offset, CUdeviceptr from, size_t bytes) {
  if (bounce_.data() == nullptr) PAWL_RETURN_IF_ERROR(bounce_.Reserve(kBounceBytes));
  for (size_t done = 0; done < bytes;) {
    const size_t part = std::min(bytes - done, kBounceBytes);
    PAWL_CUDA(MemcpyDtoH(bounce_.data(), from + done, part));
    PAWL_RETURN_IF_ERROR(Store(offset + done, part));
    done += part;
  }
  return absl::OkStatus();
}

absl::Status SharedRegion::WritePieces(size_t offset, const std::vector<Piece>& pieces, CUstream stream) {
  if (bounce_.data() == nullptr) PAWL_RETURN_IF_ERROR(bounce_.Reserve(kBounceBytes));
  size_t bytes = 0;
  for (size_t i = 0; i < pieces.size();) {
    const size_t count = AlikeFrom(pieces, i);
    const Piece& piece = pieces[i];
    if (bytes + count * piece.bytes > kBounceBytes) return absl::InternalError("pieces of outputs are too large");
    const CudaCopy2D copy = {.from_type = kDeviceMemory,
                             .from_device = piece.from,
                             .from_pitch = count > 1 ? pieces[i + 1].from - piece.from : piece.bytes,
                             .to_type = kHostMemory,
                             .to_host = bounce_.data() + bytes,
                             .to_pitch = piece.bytes,
                             .width = piece.bytes,
                             .height = count};
    PAWL_CUDA(Memcpy2DAsync(&copy, stream));
    bytes += count * piece.bytes;
    i += count;
  }
  PAWL_CUDA(StreamSynchronize(stream));
  return Store(offset, bytes);
}

absl::Status SharedRegion::Store(size_t offset, size_t bytes) {
  for (size_t written = 0; written < bytes;) {
    const ssize_t count = pwrite(fd_, bounce_.data() + written, bytes - written, offset + written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no room for ", bytes, " bytes of outputs in shared memory: ", strerror(errno)));
    }
    written += count;
  }
  std::memset(bounce_.data(), 0, bytes);
  return absl::OkStatus();
}

absl::Status SharedRegion::Reserve(size_t bytes) {
  if (bytes <= bytes_) return absl::OkStatus();
  Unmap();
  struct stat file;
  if (fstat(fd_, &file) != 0) {
    return absl::InternalError(absl::StrCat("the shared region (fd ", fd_, ") is not there: ", strerror(errno)));
  }
  // Registering pages is slow: grow in large steps.
  const size_t wanted =
      std::max<size_t>({bytes, std::min(2 * bytes, static_cast<size_t>(file.st_size)), size_t{16} << 20});
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
