#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/plan.pb.h"
#include "pawl/v1/runner.pb.h"
#include "worker/runner/driver/cuda_driver.h"
#include "worker/runner/driver/device_buffer.h"
#include "worker/runner/driver/pinned_memory.h"
#include "worker/runner/fills.h"

namespace pawl {

// From the operating system.
Key RandomKey();
std::string KeyBytes(const Key& key);
absl::StatusOr<Key> KeyOf(const std::string& bytes);

// What the tolerance's self-test does to right outputs. Mirrored in support.cu.
enum Corruption : uint32_t { kDropTail = 1, kZeroFirstRow, kZeroLastRow, kZeroColumn, kSwapRows, kScale };

inline void Append(std::vector<Segment>* segments, const std::vector<Segment>& more) {
  segments->insert(segments->end(), more.begin(), more.end());
}

// Segments in device memory, ready to be filled and verified with any key.
class SegmentTable {
 public:
  absl::Status Set(const std::vector<Segment>& segments);
  const std::vector<Segment>& segments() const { return segments_; }

 private:
  friend class Support;
  std::vector<Segment> segments_;
  unsigned blocks_ = 1;
  DeviceBuffer table_, first_;
};

// What verifying found: a segment whose content changed, and where.
struct ChangedByte {
  size_t segment;
  uint64_t offset;
};

// Pawl's own kernels (support.cu), loaded into the runner's context. Not thread-safe, as the runner is not.
class Support {
 public:
  // What calls of functions may take of a stack beside a kernel's own, and the most of both that Dirty fills.
  static constexpr int kCallStack = 1024, kDirtyStack = 32768;

  absl::Status Load(const std::string& cubin, CUstream stream, const v1::GpuInfo& gpu);

  // `call` is added to the segments' own.
  absl::Status Fill(const SegmentTable& table, const Key& key, uint32_t call = 0);
  // Waits for the stream. The first changed byte of every segment that changed.
  absl::StatusOr<std::vector<ChangedByte>> Verify(SegmentTable& table, const Key& key, uint32_t call = 0);
  // Of a tensor's elements; bits that belong to none do not count. Waits for the stream.
  absl::StatusOr<uint64_t> Digest(CUdeviceptr data, const v1::PlanTensor& tensor);
  // `own_rms` is the reference's root mean square at the bundle's own fill, 0: that is what is compared. Where the
  // reference is larger now, the absolute limit is so in proportion; the relative error is relative to the larger of
  // both norms. Whatever `absolute` is, an element may be off by this share of itself; the largest error is of others.
  absl::StatusOr<v1::OutputError> Compare(CUdeviceptr out, CUdeviceptr reference, const v1::PlanTensor& tensor,
                                          double absolute, double own_rms = 0, double share = 0);
  absl::StatusOr<v1::ReferenceOutput> Norm(CUdeviceptr values, const v1::PlanTensor& tensor);
  // Elements that differ from the reference's by more than this share of it.
  absl::StatusOr<uint64_t> Differing(CUdeviceptr out, CUdeviceptr reference, const v1::PlanTensor& tensor,
                                     double share);
  // A copy with one thing wrong. `factor` is kScale's.
  absl::Status Corrupt(CUdeviceptr from, CUdeviceptr to, const v1::PlanTensor& tensor, Corruption corruption,
                       double factor = 1);
  absl::Status Rotate(CUdeviceptr from, CUdeviceptr to, const v1::PlanTensor& tensor);
  // Queues what leaves garbage in shared memory, and in the local memory of the threads, for kernels that have this
  // much of it. Of more than 31 KB the rest stays as it is.
  absl::Status Dirty(const Key& key, int local_bytes);
  // Queues Pawl's own kernel of a fixed amount of arithmetic, about 100 us on a present GPU.
  absl::Status Anchor();
  absl::Status Hold(uint32_t nanoseconds);
  // Waits until the stream has really come to this: a kernel of Pawl's own has written a number to the host's memory
  // that was drawn just before. What the driver waits by lies in memory that a candidate can write to.
  absl::Status Ping();
  // Leaves room for a few blocks at a time to what is queued next, for some 0.1 ms. `together`: its blocks start
  // together; then some of them are slowed down.
  absl::Status Crowd(const Key& key, bool together);

 private:
  absl::Status Launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned block, unsigned shared,
                      void** arguments);

  CUmodule module_ = nullptr;
  CUstream stream_ = nullptr;
  CUstream beside_ = nullptr;  // what runs here runs at the same time as the stream's
  CUfunction fill_, digest_, compare_, rotate_, dirty_shared_, hold_, ping_, crowd_, slow_some_, anchor_, norm_,
      differ_, corrupt_;
  std::map<int, CUfunction> dirty_local_;  // by bytes; those that were needed
  int max_shared_bytes_ = 0;
  int sm_count_ = 0;
  int threads_per_sm_ = 0;
  DeviceBuffer result_;
  DeviceBuffer slowing_;  // what pawl_slow_some adds to
  PinnedMemory pinged_;   // what pawl_ping writes to
};

}  // namespace pawl
