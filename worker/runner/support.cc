#include "worker/runner/support.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "kernels/data_type.h"

namespace pawl {
namespace {

constexpr uint32_t kShortestCrowdNs = 40'000;  // the longest: 8 times that
// Bytes of local memory that pawl_dirty_local_... fill; and what calls of functions may take beside a kernel's own.
constexpr int kDirtyLocal[] = {2048, 8192, 16384, Support::kDirtyStack};
constexpr int kDirtyThreads = 512;      // a block: divides what SMs of all GPUs hold
constexpr uint64_t kMostBlocks = 2048;  // of a segment: each makes its own beginning
// A round takes an SM with 1024 threads 512 cycles.
constexpr uint32_t kAnchorRounds = 370;
constexpr size_t kPingBytes = 4096;
constexpr std::chrono::seconds kPingDeadline(10);

// Mirrored in support.cu.
struct Difference {
  double sum_absolute;
  double sum_squares;
  double sum_squares_reference;
  uint64_t max_absolute;
  uint64_t wrong;
  uint64_t non_finite;
  uint64_t first_wrong;
};

// Mirrored in support.cu, as Norm.
struct NormSum {
  double sum_squares;
  uint64_t non_finite;
};

// Element i of those that begin at `values`.
absl::StatusOr<double> ReadElement(CUdeviceptr values, v1::DataType type, uint64_t i) {
  char bytes[8] = {};
  const int bits = ElementBits(type);
  if (bits >= 8) {
    PAWL_CUDA(MemcpyDtoH(bytes, values + i * (bits / 8), bits / 8));
    return DecodedScalar(type, bytes);
  }
  PAWL_CUDA(MemcpyDtoH(bytes, values + i / 2, 1));
  const int half = (static_cast<unsigned char>(bytes[0]) >> (i % 2 * 4)) & 15;
  return type == v1::DATA_TYPE_I4 && half > 7 ? half - 16 : half;
}

}  // namespace

Key RandomKey() {
  Key key;
  const std::string bytes = RandomBytes(sizeof(key.words));
  memcpy(key.words, bytes.data(), bytes.size());
  return key;
}

std::string KeyBytes(const Key& key) {
  return std::string(reinterpret_cast<const char*>(key.words), sizeof(key.words));
}

absl::StatusOr<Key> KeyOf(const std::string& bytes) {
  Key key;
  if (bytes.size() != sizeof(key.words)) return absl::InternalError("a draw has no key of 32 bytes");
  memcpy(key.words, bytes.data(), bytes.size());
  return key;
}

absl::Status SegmentTable::Set(const std::vector<Segment>& segments) {
  segments_ = segments;
  if (segments.empty()) return absl::OkStatus();
  uint64_t largest = 0;
  for (const Segment& segment : segments) largest = std::max(largest, segment.bytes);
  blocks_ = static_cast<unsigned>(std::clamp<uint64_t>(largest / (256 * 64), 1, kMostBlocks));
  PAWL_RETURN_IF_ERROR(table_.Reserve(segments.size() * sizeof(Segment)));
  PAWL_RETURN_IF_ERROR(first_.Reserve(segments.size() * sizeof(uint64_t)));
  return CopyToGpu(table_.address(), segments.data(), segments.size() * sizeof(Segment));
}

absl::Status Support::Load(const std::string& cubin, CUstream stream, const v1::GpuInfo& gpu) {
  stream_ = stream;
  if (beside_ == nullptr) PAWL_CUDA(StreamCreate(&beside_, kStreamNonBlocking));
  max_shared_bytes_ = gpu.shared_per_block_optin();
  sm_count_ = gpu.sm_count();
  threads_per_sm_ = gpu.max_threads_per_sm();
  dirty_local_.clear();
  PAWL_CUDA(ModuleLoadData(&module_, cubin.data()));
  PAWL_CUDA(ModuleGetFunction(&fill_, module_, "pawl_fill"));
  PAWL_CUDA(ModuleGetFunction(&digest_, module_, "pawl_digest"));
  PAWL_CUDA(ModuleGetFunction(&compare_, module_, "pawl_compare"));
  PAWL_CUDA(ModuleGetFunction(&rotate_, module_, "pawl_rotate"));
  PAWL_CUDA(ModuleGetFunction(&dirty_shared_, module_, "pawl_dirty_shared"));
  PAWL_CUDA(ModuleGetFunction(&hold_, module_, "pawl_hold"));
  PAWL_CUDA(ModuleGetFunction(&ping_, module_, "pawl_ping"));
  PAWL_CUDA(ModuleGetFunction(&crowd_, module_, "pawl_crowd"));
  PAWL_CUDA(ModuleGetFunction(&slow_some_, module_, "pawl_slow_some"));
  PAWL_CUDA(ModuleGetFunction(&anchor_, module_, "pawl_anchor"));
  PAWL_CUDA(ModuleGetFunction(&norm_, module_, "pawl_norm"));
  PAWL_CUDA(ModuleGetFunction(&differ_, module_, "pawl_differ"));
  PAWL_CUDA(ModuleGetFunction(&corrupt_, module_, "pawl_corrupt"));
  PAWL_CUDA(FuncSetAttribute(dirty_shared_, kFunctionMaxDynamicShared, max_shared_bytes_));
  if (pinged_.data() == nullptr) PAWL_RETURN_IF_ERROR(pinged_.Reserve(kPingBytes));
  return result_.Reserve(sizeof(Difference));
}

absl::Status Support::Launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned block, unsigned shared,
                             void** arguments) {
  PAWL_CUDA(LaunchKernel(function, grid_x, grid_y, 1, block, 1, 1, shared, stream_, arguments, nullptr));
  return absl::OkStatus();
}

absl::Status Support::Fill(const SegmentTable& table, const Key& key, uint32_t call) {
  if (table.segments_.empty()) return absl::OkStatus();
  CUdeviceptr segments = table.table_.address();
  Key copy = key;
  CUdeviceptr writes = 0;
  void* arguments[] = {&segments, &copy, &call, &writes};
  return Launch(fill_, table.blocks_, table.segments_.size(), 256, 0, arguments);
}

absl::StatusOr<std::vector<ChangedByte>> Support::Verify(SegmentTable& table, const Key& key, uint32_t call) {
  std::vector<ChangedByte> changed;
  if (table.segments_.empty()) return changed;
  CUdeviceptr segments = table.table_.address(), first = table.first_.address();
  std::vector<uint64_t> offsets(table.segments_.size());
  PAWL_CUDA(MemsetD8Async(first, 0xff, offsets.size() * sizeof(uint64_t), stream_));
  Key copy = key;
  void* arguments[] = {&segments, &copy, &call, &first};
  PAWL_RETURN_IF_ERROR(Launch(fill_, table.blocks_, table.segments_.size(), 256, 0, arguments));
  PAWL_CUDA(StreamSynchronize(stream_));
  PAWL_CUDA(MemcpyDtoH(offsets.data(), first, offsets.size() * sizeof(uint64_t)));
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] != ~uint64_t{0}) changed.push_back({i, offsets[i]});
  }
  return changed;
}

absl::StatusOr<uint64_t> Support::Digest(CUdeviceptr data, const v1::PlanTensor& tensor) {
  uint64_t digest = 0, bytes = TensorBytes(tensor);
  uint32_t half = ElementBits(tensor.type()) * tensor.elements() % 8 != 0;
  CUdeviceptr result = result_.address();
  PAWL_CUDA(MemsetD8Async(result, 0, sizeof(digest), stream_));
  void* arguments[] = {&data, &bytes, &half, &result};
  PAWL_RETURN_IF_ERROR(Launch(digest_, sm_count_ * 4, 1, 256, 0, arguments));
  PAWL_CUDA(StreamSynchronize(stream_));
  PAWL_CUDA(MemcpyDtoH(&digest, result, sizeof(digest)));
  return digest;
}

absl::StatusOr<v1::ReferenceOutput> Support::Norm(CUdeviceptr values, const v1::PlanTensor& tensor) {
  NormSum sum = {};
  CUdeviceptr result = result_.address();
  PAWL_CUDA(MemsetD8Async(result, 0, sizeof(sum), stream_));
  uint32_t type = tensor.type();
  uint64_t count = tensor.elements();
  void* arguments[] = {&values, &type, &count, &result};
  PAWL_RETURN_IF_ERROR(Launch(norm_, sm_count_ * 8, 1, 256, 0, arguments));
  PAWL_CUDA(StreamSynchronize(stream_));
  PAWL_CUDA(MemcpyDtoH(&sum, result, sizeof(sum)));
  v1::ReferenceOutput output;
  output.set_rms(std::sqrt(sum.sum_squares / std::max<double>(1, count)));
  output.set_non_finite(sum.non_finite);
  return output;
}

absl::StatusOr<uint64_t> Support::Differing(CUdeviceptr out, CUdeviceptr reference, const v1::PlanTensor& tensor,
                                            double share) {
  uint64_t differing = 0;
  CUdeviceptr result = result_.address();
  PAWL_CUDA(MemsetD8Async(result, 0, sizeof(differing), stream_));
  uint32_t type = tensor.type();
  uint64_t count = tensor.elements();
  void* arguments[] = {&out, &reference, &type, &count, &share, &result};
  PAWL_RETURN_IF_ERROR(Launch(differ_, sm_count_ * 8, 1, 256, 0, arguments));
  PAWL_CUDA(StreamSynchronize(stream_));
  PAWL_CUDA(MemcpyDtoH(&differing, result, sizeof(differing)));
  return differing;
}

absl::Status Support::Corrupt(CUdeviceptr from, CUdeviceptr to, const v1::PlanTensor& tensor, Corruption corruption,
                              double factor) {
  uint32_t type = tensor.type(), what = corruption;
  uint64_t count = tensor.elements();
  uint64_t columns = tensor.shape_size() > 1 ? tensor.shape(tensor.shape_size() - 1) : 1;
  uint64_t tail = std::max<uint64_t>(1, count / 8);
  void* arguments[] = {&from, &to, &type, &count, &columns, &what, &tail, &factor};
  return Launch(corrupt_, sm_count_ * 8, 1, 256, 0, arguments);
}

absl::StatusOr<v1::OutputError> Support::Compare(CUdeviceptr out, CUdeviceptr reference, const v1::PlanTensor& tensor,
                                                 double absolute, double own_rms, double share) {
  if (own_rms > 0) {
    const absl::StatusOr<v1::ReferenceOutput> norm = Norm(reference, tensor);
    if (!norm.ok()) return norm.status();
    absolute *= std::max(1.0, norm->rms() / own_rms);
  }
  Difference total = {};
  total.first_wrong = ~uint64_t{0};
  CUdeviceptr result = result_.address();
  PAWL_RETURN_IF_ERROR(CopyToGpu(result, &total, sizeof(total)));
  uint32_t type = tensor.type();
  uint64_t count = tensor.elements();
  void* arguments[] = {&out, &reference, &type, &count, &absolute, &share, &result};
  PAWL_RETURN_IF_ERROR(Launch(compare_, sm_count_ * 8, 1, 256, 0, arguments));
  PAWL_CUDA(StreamSynchronize(stream_));
  PAWL_CUDA(MemcpyDtoH(&total, result, sizeof(total)));

  v1::OutputError error;
  error.set_tensor(tensor.name());
  error.set_elements(tensor.elements());
  error.set_max_absolute(std::bit_cast<double>(total.max_absolute));
  error.set_mean_absolute(tensor.elements() > 0 ? total.sum_absolute / tensor.elements() : 0);
  const double norm = std::max(total.sum_squares_reference, own_rms * own_rms * tensor.elements());
  error.set_relative(total.sum_squares == 0 ? 0 : std::sqrt(total.sum_squares / norm));
  error.set_wrong(total.wrong);
  error.set_non_finite(total.non_finite);
  error.set_first_wrong(-1);
  if (total.wrong > 0) {
    const absl::StatusOr<double> got = ReadElement(out, tensor.type(), total.first_wrong);
    if (!got.ok()) return got.status();
    const absl::StatusOr<double> expected = ReadElement(reference, tensor.type(), total.first_wrong);
    if (!expected.ok()) return expected.status();
    error.set_first_wrong(total.first_wrong);
    error.set_got(*got);
    error.set_expected(*expected);
  }
  return error;
}

absl::Status Support::Rotate(CUdeviceptr from, CUdeviceptr to, const v1::PlanTensor& tensor) {
  uint32_t type = tensor.type();
  uint64_t count = tensor.elements();
  void* arguments[] = {&from, &to, &type, &count};
  return Launch(rotate_, sm_count_ * 8, 1, 256, 0, arguments);
}

absl::Status Support::Dirty(const Key& key, int local_bytes) {
  uint32_t words = max_shared_bytes_ / 4;
  Key copy = key;
  if (local_bytes > 0) {
    const auto bytes =
        std::lower_bound(std::begin(kDirtyLocal), std::end(kDirtyLocal) - 1, local_bytes + Support::kCallStack);
    CUfunction& function = dirty_local_[*bytes];
    if (function == nullptr) {
      PAWL_CUDA(ModuleGetFunction(&function, module_, absl::StrCat("pawl_dirty_local_", *bytes).c_str()));
    }
    void* key_only[] = {&copy};
    const unsigned blocks = static_cast<unsigned>(sm_count_ * (threads_per_sm_ / kDirtyThreads));
    PAWL_RETURN_IF_ERROR(Launch(function, blocks, 1, kDirtyThreads, 0, key_only));
  }
  void* arguments[] = {&words, &copy};
  return Launch(dirty_shared_, sm_count_, 1, 1024, max_shared_bytes_, arguments);
}

absl::Status Support::Anchor() {
  uint32_t rounds = kAnchorRounds;
  CUdeviceptr sink = result_.address();
  void* arguments[] = {&rounds, &sink};
  return Launch(anchor_, sm_count_ * 4, 1, 256, 0, arguments);
}

absl::Status Support::Crowd(const Key& key, bool together) {
  PAWL_CUDA(StreamSynchronize(stream_));  // the crowd is there before what is queued next
  Key copy = key;
  uint32_t most = kShortestCrowdNs << (key.words[0] % 4);
  uint32_t late = 1u << (key.words[1] % 6);
  if (together)
    PAWL_RETURN_IF_ERROR(slowing_.Reserve(static_cast<uint64_t>(sm_count_) * kSlowingWords * sizeof(uint32_t)));
  CUdeviceptr memory = slowing_.address();
  void* leaving[] = {&copy, &most, &late};
  void* slowing[] = {&copy, &most, &memory};
  const unsigned blocks = together ? sm_count_ : sm_count_ * 2;
  PAWL_CUDA(LaunchKernel(together ? slow_some_ : crowd_, blocks, 1, 1, 1024, 1, 1, 0, beside_,
                         together ? slowing : leaving, nullptr));
  return absl::OkStatus();
}

absl::Status Support::Hold(uint32_t nanoseconds) {
  void* arguments[] = {&nanoseconds};
  return Launch(hold_, 1, 1, 1, 0, arguments);
}

absl::Status Support::Ping() {
  auto* const word = reinterpret_cast<volatile uint32_t*>(pinged_.data());
  uint32_t drawn = RandomKey().words[0];
  *word = ~drawn;
  CUdeviceptr to = reinterpret_cast<CUdeviceptr>(pinged_.data());
  void* arguments[] = {&to, &drawn};
  PAWL_RETURN_IF_ERROR(Launch(ping_, 1, 1, 1, 0, arguments));
  PAWL_CUDA(StreamSynchronize(stream_));
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  while (*word != drawn) {
    if (std::chrono::steady_clock::now() - start > kPingDeadline) {
      return absl::InternalError("the GPU does not write to the host's memory");
    }
  }
  return absl::OkStatus();
}

}  // namespace pawl
