#include "worker/runner/job.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "kernels/data_type.h"
#include "pawl/v1/runner.pb.h"
#include "worker/runner/gpu_context.h"

namespace pawl {
namespace {

absl::Status CallOnce(GpuContext& gpu, const v1::Job::Item& item) {
  Module module;
  PAWL_RETURN_IF_ERROR(module.Load(item.cubin()));
  std::vector<CUdeviceptr> tensors;
  for (const v1::PlanTensor& tensor : item.plan().tensors()) {
    CUdeviceptr address = 0;
    PAWL_CUDA(MemAlloc(&address, std::max<int64_t>(1, TensorBytes(tensor))));
    tensors.push_back(address);
  }
  // A fault may show at a later call, or with values at the ends of their range only.
  const Arena arena = Arena::At(item.plan(), item.plan(), tensors);
  v1::InputDraw draw;
  for (int call = 0; call < std::max(1, item.calls()); ++call) {
    draw.set_distribution(call % 2 == 1 ? v1::DISTRIBUTION_EXTREMES : v1::DISTRIBUTION_UNSPECIFIED);
    SegmentTable table;
    PAWL_RETURN_IF_ERROR(table.Set(arena.Inputs(0, 0, draw)));
    PAWL_RETURN_IF_ERROR(gpu.support.Fill(table, RandomKey()));
    PAWL_RETURN_IF_ERROR(module.Call(item.plan(), tensors, gpu.stream));
    PAWL_CUDA(CtxSynchronize());
  }
  for (CUdeviceptr address : tensors) PAWL_CUDA(MemFree(address));
  return absl::OkStatus();
}

}  // namespace

absl::Status RunJob(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  v1::Job job;
  if (!in || !job.ParseFromIstream(&in)) return absl::InvalidArgumentError(absl::StrCat(file, " is not a job"));
  GpuContext gpu(-1);
  PAWL_RETURN_IF_ERROR(gpu.Open(job.device(), job.support_cubin()));
  for (const v1::Job::Item& item : job.items()) PAWL_RETURN_IF_ERROR(CallOnce(gpu, item));
  return absl::OkStatus();
}

}  // namespace pawl
