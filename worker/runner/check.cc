#include "worker/runner/check.h"

#include "absl/strings/str_cat.h"
#include "worker/trial/validator.h"

namespace pawl {
namespace {

// What should fail the tolerance: zeros, the right values in the wrong places, each input of the same type and length.
absl::Status SelfTest(GpuContext& gpu, const v1::Plan& plan, const Arena& arena, CUdeviceptr base, CUdeviceptr other,
                      v1::CheckReply* reply) {
  for (const OutputSlot& slot : OutputSlots(plan)) {
    const v1::PlanTensor& tensor = plan.tensors(slot.tensor);
    const CUdeviceptr expected = base + arena.Offset(slot.tensor);
    auto try_as = [&](CUdeviceptr out, const std::string& what) -> absl::Status {
      absl::StatusOr<v1::OutputError> error = gpu.support.Compare(out, expected, tensor, plan.tolerance().absolute());
      if (!error.ok()) return error.status();
      if (WithinTolerance(*error, plan.tolerance())) reply->add_lenient(absl::StrCat(tensor.name(), ": ", what));
      return absl::OkStatus();
    };
    PAWL_CUDA(MemsetD8Async(other, 0, slot.bytes, gpu.stream));
    PAWL_RETURN_IF_ERROR(try_as(other, "all zeros"));
    if (tensor.elements() > 1) {
      PAWL_RETURN_IF_ERROR(gpu.support.Rotate(expected, other, tensor));
      PAWL_RETURN_IF_ERROR(try_as(other, "the right values in the wrong places"));
    }
    for (int i = 0; i < plan.tensors_size(); ++i) {
      const v1::PlanTensor& input = plan.tensors(i);
      if (input.role() != v1::TENSOR_ROLE_INPUT || input.type() != tensor.type() ||
          input.elements() != tensor.elements())
        continue;
      PAWL_RETURN_IF_ERROR(try_as(base + arena.Offset(i), absl::StrCat("the input ", input.name())));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOutputs(GpuContext& gpu, const v1::CheckRequest& request, v1::RunnerReply* reply) {
  absl::StatusOr<Module*> module = gpu.FindModule(request.module());
  if (!module.ok()) return module.status();
  const v1::Plan& plan = request.plan();
  const Arena arena = Arena::For(plan);
  const uint64_t call_bytes = OutputBytes(plan);
  PAWL_RETURN_IF_ERROR(gpu.arena.Reserve(arena.bytes()));
  PAWL_RETURN_IF_ERROR(gpu.staging.Reserve(call_bytes));
  PAWL_RETURN_IF_ERROR(gpu.shared.Reserve(call_bytes * request.draws_size()));
  const CUdeviceptr base = gpu.arena.address();

  v1::CheckReply* check = reply->mutable_check();
  for (int call = 0; call < request.draws_size(); ++call) {
    const v1::InputDraw& draw = request.draws(call);
    const absl::StatusOr<Key> key = KeyOf(draw.key());
    if (!key.ok()) return key.status();
    SegmentTable inputs;
    PAWL_RETURN_IF_ERROR(inputs.Set(arena.Inputs(base, 0, draw)));
    PAWL_RETURN_IF_ERROR(gpu.support.Fill(inputs, *key, draw.call()));
    PAWL_RETURN_IF_ERROR((*module)->Call(plan, arena, base, gpu.stream));
    PAWL_CUDA(CtxSynchronize());
    for (const OutputSlot& slot : OutputSlots(plan)) {
      PAWL_CUDA(MemcpyHtoD(gpu.staging.address(), gpu.shared.data() + call * call_bytes + slot.offset, slot.bytes));
      absl::StatusOr<v1::OutputError> error =
          gpu.support.Compare(gpu.staging.address(), base + arena.Offset(slot.tensor), plan.tensors(slot.tensor),
                              plan.tolerance().absolute());
      if (!error.ok()) return error.status();
      *check->add_errors() = *error;
    }
  }
  if (request.self_test()) return SelfTest(gpu, plan, arena, base, gpu.staging.address(), check);
  return absl::OkStatus();
}

}  // namespace pawl
