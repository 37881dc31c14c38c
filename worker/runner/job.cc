#include "worker/runner/job.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/sync/steady_time.h"
#include "kernels/data_type.h"
#include "pawl/v1/runner.pb.h"
#include "worker/build/built_variant.h"
#include "worker/build/plan_arguments.h"
#include "worker/runner/driver/pinned_memory.h"
#include "worker/runner/gpu_context.h"
#include "worker/runner/input_pools.h"
#include "worker/runner/placement.h"

namespace pawl {
namespace {

constexpr uint64_t kMostOnHost = uint64_t{1} << 30;
constexpr uint64_t kDriverAlign = 256;  // of every allocation

// Without scratch, which a candidate may make as large as it likes.
double BytesOf(const v1::Job::Item& item) {
  double bytes = 1;
  for (const v1::PlanTensor& tensor : item.plan().tensors()) {
    if (tensor.role() != v1::TENSOR_ROLE_SCRATCH) bytes += static_cast<double>(TensorBytes(tensor));
  }
  return bytes;
}

// Allocations begin at multiples of 512, large ones of 2 MiB. Up to 256 KiB of any magnitude on top of that leave no
// bit of an address that tells; an odd multiple of a smaller alignment on top of those is what needs more.
uint64_t DrawShift(uint64_t align, SecretRandom& random) {
  constexpr uint64_t kMost = uint64_t{256} << 10, kMagnitudes = 11;
  const uint64_t unit = std::max(align, kDriverAlign);
  const uint64_t most = std::max<uint64_t>(1, kMost / unit >> random.Below(kMagnitudes));
  const uint64_t within = align < kDriverAlign ? (2 * random.Below(kDriverAlign / align / 2) + 1) * align : 0;
  return (1 + random.Below(most)) * unit + within;
}

absl::Status RunItem(GpuContext& gpu, const v1::Job::Item& item) {
  JobItem loaded(gpu, item);
  PAWL_RETURN_IF_ERROR(loaded.Load());
  // Of a launch that is repeated, a profiler sees the one in the middle.
  const auto around = [&loaded](int launch, int32_t index, bool before) -> absl::Status {
    if (index != RepeatsOf(loaded.plan().launches(launch)) / 2) return absl::OkStatus();
    if (before) {
      PAWL_CUDA(ProfilerStart());
    } else {
      PAWL_CUDA(ProfilerStop());
    }
    return absl::OkStatus();
  };
  for (int call = 0; call < std::max(1, item.calls()); ++call) {
    PAWL_RETURN_IF_ERROR(loaded.Fill(call, /*through_host=*/true));
    PAWL_RETURN_IF_ERROR(loaded.Call(around));
    PAWL_CUDA(CtxSynchronize());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status JobItem::Load() {
  PAWL_RETURN_IF_ERROR(CheckPlan(plan_));
  PAWL_RETURN_IF_ERROR(module_.Load(item_.cubin()));
  if (!plan_.setup().empty()) PAWL_RETURN_IF_ERROR(setup_.Load(item_.setup_cubin()));
  PAWL_RETURN_IF_ERROR(Allocate(/*shifted=*/false));
  return ReadParts();
}

absl::Status JobItem::Allocate(bool shifted) {
  memory_.clear();
  structs_.Clear();
  std::vector<CUdeviceptr> addresses;
  for (const v1::PlanTensor& tensor : plan_.tensors()) {
    const uint64_t bytes = std::max<int64_t>(1, TensorBytes(tensor)), align = AlignOf(tensor);
    // It ends where the allocation ends: compute-sanitizer sees what is read or written behind it.
    const uint64_t shift = shifted ? DrawShift(align, random_) : 0;
    memory_.push_back(std::make_unique<DeviceBuffer>());
    PAWL_RETURN_IF_ERROR(memory_.back()->Reserve(shift + bytes));
    if ((memory_.back()->address() + shift) % align != 0) {  // more than the driver's
      memory_.back() = std::make_unique<DeviceBuffer>(align);
      PAWL_RETURN_IF_ERROR(memory_.back()->Reserve(shift + bytes));
    }
    addresses.push_back(memory_.back()->address() + shift);
  }
  arena_ = Arena::At(plan_, plan_, addresses);
  structs_.Add(plan_, addresses);
  return structs_.Reserve();
}

absl::Status JobItem::ReadParts() {
  if (item_.parts().empty()) return absl::OkStatus();
  const int fd = open(item_.data().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::InvalidArgumentError(absl::StrCat(item_.data(), ": ", strerror(errno)));
  absl::Status status;
  for (const v1::ProvideRequest::Part& part : item_.parts()) {
    parts_.push_back(std::make_unique<DeviceBuffer>());
    status = parts_.back()->Reserve(std::max<int64_t>(1, part.bytes()));
    if (status.ok()) status = CopyFileToGpu(fd, part.offset(), part.bytes(), parts_.back()->address());
    if (!status.ok()) break;
    sources_[part.tensor()] = parts_.back()->address();
  }
  close(fd);
  return status;
}

absl::Status JobItem::FillHere(const std::vector<Segment>& segments) {
  SegmentTable table;
  PAWL_RETURN_IF_ERROR(table.Set(segments));
  PAWL_RETURN_IF_ERROR(gpu_.support.Fill(table, RandomKey()));
  PAWL_CUDA(StreamSynchronize(gpu_.stream));  // it reads the table
  return absl::OkStatus();
}

absl::Status JobItem::FillThroughHost(std::vector<Segment> segments) {
  const auto aligned = [](uint64_t bytes) { return (bytes + 255) / 256 * 256; };
  uint64_t bytes = 0;
  for (const Segment& segment : segments) bytes += aligned(segment.bytes);
  if (bytes == 0) return absl::OkStatus();
  if (bytes > kMostOnHost) {
    for (const Segment& segment : segments) {
      PAWL_CUDA(MemsetD8Async(segment.address, 0, segment.bytes, gpu_.stream));
    }
    return FillHere(segments);
  }
  PinnedMemory host;
  PAWL_RETURN_IF_ERROR(host.Reserve(bytes));
  std::vector<std::pair<CUdeviceptr, char*>> copies;  // where to, from where
  uint64_t offset = 0;
  for (Segment& segment : segments) {
    copies.emplace_back(segment.address, host.data() + offset);
    segment.address = reinterpret_cast<uint64_t>(host.data() + offset);
    offset += aligned(segment.bytes);
  }
  PAWL_RETURN_IF_ERROR(FillHere(segments));
  PAWL_CUDA(CtxSynchronize());
  for (size_t i = 0; i < copies.size(); ++i) {
    PAWL_RETURN_IF_ERROR(CopyToGpu(copies[i].first, copies[i].second, segments[i].bytes));
  }
  return absl::OkStatus();
}

absl::Status JobItem::Fill(int call, bool through_host) {
  if (item_.shifted()) PAWL_RETURN_IF_ERROR(Allocate((call % 2 == 1) != first_shifted_));
  // A fault may show at a later call, or with values at the ends of their range only.
  v1::InputDraw draw;
  draw.set_distribution(call % 2 == 1 ? v1::DISTRIBUTION_EXTREMES : v1::DISTRIBUTION_UNSPECIFIED);
  std::vector<Segment> segments = arena_.Inputs(0, 0, draw, sources_);
  Append(&segments, arena_.InOuts(0, 0, draw, sources_));
  PAWL_RETURN_IF_ERROR(through_host ? FillThroughHost(std::move(segments)) : FillHere(segments));
  PAWL_RETURN_IF_ERROR(structs_.Upload());
  PAWL_RETURN_IF_ERROR(module_.FillSymbols(plan_, arena_.Addresses(0), gpu_.stream));
  if (plan_.setup().empty()) return absl::OkStatus();
  return setup_.Launch(plan_.setup(), arena_.Addresses(0), structs_, gpu_.stream);
}

absl::Status JobItem::Call(const Module::Around& around) {
  return module_.Launch(plan_.launches(), arena_.Addresses(0), structs_, gpu_.stream, around);
}

absl::Status JobItem::CallOnceEach() {
  Module::Launches launches = plan_.launches();
  for (v1::PlanLaunch& launch : launches) {
    // Later launches find each name where the whole call would leave it.
    if (RepeatsOf(launch) % 2 == 0) launch.clear_swap();
    launch.clear_repeat();
  }
  return module_.Launch(launches, arena_.Addresses(0), structs_, gpu_.stream);
}

absl::StatusOr<v1::Job> ReadJob(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  v1::Job job;
  if (!in || !job.ParseFromIstream(&in)) return absl::InvalidArgumentError(absl::StrCat(file, " is not a job"));
  return job;
}

absl::Status RunJob(const std::string& file, absl::Duration limit) {
  absl::StatusOr<v1::Job> job = ReadJob(file);
  if (!job.ok()) return job.status();
  GpuContext gpu(-1);
  PAWL_RETURN_IF_ERROR(gpu.Open(job->device(), job->support_cubin()));
  const SteadyTime start = SteadyNow();
  int called = 0;
  absl::Duration last = absl::ZeroDuration();
  for (const v1::Job::Item& item : job->items()) {
    const SteadyTime begin = SteadyNow();
    const double growth = called == 0 ? 1 : BytesOf(item) / BytesOf(job->items(called - 1));
    if (begin + last * std::max(1.0, growth) > start + limit) break;
    PAWL_RETURN_IF_ERROR(RunItem(gpu, item));
    last = SteadyNow() - begin;
    printf("%s%d\n", kCalledItems, ++called);
    fflush(stdout);
  }
  return absl::OkStatus();
}

}  // namespace pawl
