#include "worker/runner/input_pools.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/data_type.h"
#include "kernels/plan.h"

namespace pawl {
namespace {

constexpr int64_t kPieceBytes = int64_t{2} << 20;
constexpr int64_t kManyBytes = int64_t{64} << 20;  // below, threads and registered memory take longer than they save
constexpr unsigned kMostThreads = 8;               // one reads a seventh of what the bus carries

// Host memory from which large copies run at the bus's speed, while the next one is filled. Registered only as long as
// it is needed: a candidate could write to it. What passes through it is the candidate's to see anyway.
class Piece {
 public:
  Piece() = default;
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  ~Piece() {
    if (stream_ != nullptr) Cuda().StreamDestroy(stream_);
    if (registered_) Cuda().MemHostUnregister(memory_.data());
  }
  char* data() { return memory_.data(); }

  absl::Status Open() {
    memory_.resize(kPieceBytes);
    registered_ = Cuda().MemHostRegister(memory_.data(), memory_.size(), kHostRegisterPortable) == 0;
    PAWL_CUDA(StreamCreate(&stream_, kStreamNonBlocking));
    return absl::OkStatus();
  }
  absl::Status Send(CUdeviceptr to, int64_t bytes) {
    PAWL_CUDA(MemcpyHtoDAsync(to, memory_.data(), static_cast<size_t>(bytes), stream_));
    return absl::OkStatus();
  }
  absl::Status Wait() {
    PAWL_CUDA(StreamSynchronize(stream_));
    return absl::OkStatus();
  }

 private:
  std::vector<char> memory_;
  CUstream stream_ = nullptr;
  bool registered_ = false;
};

absl::Status Read(int fd, int64_t offset, int64_t bytes, char* to) {
  for (int64_t done = 0; done < bytes;) {
    const ssize_t count = pread(fd, to + done, static_cast<size_t>(bytes - done), offset + done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return absl::InternalError(absl::StrCat("inputs of ", bytes, " bytes could not be read: ",
                                              count == 0 ? "the file ends before them" : strerror(errno)));
    }
    done += count;
  }
  return absl::OkStatus();
}

absl::Status CheckLength(const v1::PlanTensor& tensor, const std::string& size, int64_t bytes) {
  if (bytes >= TensorBytes(tensor)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name(), " has ", TensorBytes(tensor),
                                                 " bytes at size ", size, ", but ", bytes, " were given for it"));
}

}  // namespace

absl::Status CopyFileToGpu(int fd, int64_t offset, int64_t bytes, CUdeviceptr to) {
  std::atomic<int64_t> next = 0;
  // The pieces that are left, until `send` has sent them all.
  const auto pieces = [&](const auto& send) -> absl::Status {
    for (int64_t at = next.fetch_add(kPieceBytes); at < bytes; at = next.fetch_add(kPieceBytes)) {
      PAWL_RETURN_IF_ERROR(send(at, std::min(bytes - at, kPieceBytes)));
    }
    return absl::OkStatus();
  };
  if (bytes < kManyBytes) {
    std::vector<char> memory(static_cast<size_t>(std::min(bytes, kPieceBytes)));
    return pieces([&](int64_t at, int64_t count) -> absl::Status {
      PAWL_RETURN_IF_ERROR(Read(fd, offset + at, count, memory.data()));
      return CopyToGpu(to + at, memory.data(), static_cast<size_t>(count));
    });
  }
  CUcontext context = nullptr;
  PAWL_CUDA(CtxGetCurrent(&context));
  const auto copy = [&]() -> absl::Status {
    PAWL_CUDA(CtxSetCurrent(context));
    std::array<Piece, 2> own;
    for (Piece& piece : own) PAWL_RETURN_IF_ERROR(piece.Open());
    size_t turn = 0;
    const absl::Status sent = pieces([&](int64_t at, int64_t count) -> absl::Status {
      Piece& piece = own[turn++ % own.size()];
      PAWL_RETURN_IF_ERROR(piece.Wait());
      PAWL_RETURN_IF_ERROR(Read(fd, offset + at, count, piece.data()));
      return piece.Send(to + at, count);
    });
    absl::Status waited;
    for (Piece& piece : own) waited.Update(piece.Wait());
    return sent.ok() ? waited : sent;
  };
  std::vector<absl::Status> statuses(std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads));
  std::vector<std::thread> others;
  for (size_t i = 1; i < statuses.size(); ++i) others.emplace_back([&, i] { statuses[i] = copy(); });
  statuses[0] = copy();
  for (std::thread& other : others) other.join();
  for (const absl::Status& status : statuses) PAWL_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status InputPools::Provide(const v1::ProvideRequest& request, int fd) {
  if (request.drop()) {
    std::erase_if(entries_, [&](const auto& entry) { return entry.first.first == request.pool(); });
    return absl::OkStatus();
  }
  Entry entry;
  for (const v1::ProvideRequest::Part& part : request.parts()) {
    if (part.offset() < 0 || part.bytes() < 0) {
      return absl::InternalError(absl::StrCat("tensor ", part.tensor(), " was provided with negative bytes"));
    }
    auto copied = std::make_unique<Part>();
    PAWL_RETURN_IF_ERROR(copied->memory.Reserve(std::max<int64_t>(1, part.bytes())));
    PAWL_RETURN_IF_ERROR(CopyFileToGpu(fd, part.offset(), part.bytes(), copied->memory.address()));
    copied->bytes = part.bytes();
    entry[part.tensor()] = std::move(copied);
  }
  entries_[{request.pool(), request.entry()}] = std::move(entry);
  return absl::OkStatus();
}

absl::StatusOr<const InputPools::Entry*> InputPools::Find(const std::string& pool, uint32_t entry) const {
  const auto found = entries_.find({pool, entry});
  if (found != entries_.end()) return &found->second;
  return absl::FailedPreconditionError(absl::StrCat("pool ", pool, " entry ", entry, " was not provided"));
}

absl::StatusOr<Sources> InputPools::SourcesOf(const v1::Plan& plan, const v1::InputDraw& draw) const {
  Sources sources;
  const Entry* drawn = nullptr;
  if (!draw.pool().empty()) {
    absl::StatusOr<const Entry*> found = Find(draw.pool(), draw.entry());
    if (!found.ok()) return found.status();
    drawn = *found;
  }
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    if (!IsFilled(tensor.role())) continue;
    const Part* part = nullptr;
    if (drawn != nullptr && drawn->contains(tensor.name())) {
      part = drawn->at(tensor.name()).get();
    } else if (tensor.fill() == v1::FILL_FILE) {
      absl::StatusOr<const Entry*> file = Find(tensor.file(), 0);
      if (!file.ok()) return file.status();
      if (!(*file)->empty()) part = (*file)->begin()->second.get();
    }
    if (part == nullptr) {
      if (tensor.fill() != v1::FILL_FILE && tensor.fill() != v1::FILL_PROBLEM) continue;
      return absl::FailedPreconditionError(absl::StrCat("no content of ", tensor.name(), " was provided"));
    }
    PAWL_RETURN_IF_ERROR(CheckLength(tensor, plan.size(), part->bytes));
    sources[tensor.name()] = part->memory.address();
  }
  return sources;
}

absl::StatusOr<Sources> InputPools::ExpectedOf(const v1::Plan& plan, const std::string& pool, uint32_t entry) const {
  const absl::StatusOr<const Entry*> found = Find(pool, entry);
  if (!found.ok()) return found.status();
  Sources sources;
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    if (!IsCompared(tensor.role())) continue;
    const auto part = (*found)->find(tensor.name());
    if (part == (*found)->end()) {
      return absl::FailedPreconditionError(
          absl::StrCat("pool ", pool, " entry ", entry, " has no expected ", tensor.name()));
    }
    PAWL_RETURN_IF_ERROR(CheckLength(tensor, plan.size(), part->second->bytes));
    sources[tensor.name()] = part->second->memory.address();
  }
  return sources;
}

}  // namespace pawl
