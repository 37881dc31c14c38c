#include "worker/runner/call.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

constexpr uint64_t kStagingBytes = uint64_t{1} << 30;

v1::Failure MakeFailure(v1::Check check, const std::string& size, const std::string& message) {
  v1::Failure failure;
  failure.set_stage(v1::STAGE_VALIDATE);
  failure.set_check(check);
  failure.set_size(size);
  failure.set_message(message);
  return failure;
}

}  // namespace

absl::Status SetAside(GpuContext& gpu, const v1::Plan& plan, const Arena& arena, CUdeviceptr base, uint64_t offset) {
  for (const OutputSlot& slot : OutputSlots(plan)) {
    PAWL_RETURN_IF_ERROR(gpu.shared.Write(offset + slot.offset, base + arena.Offset(slot.tensor), slot.bytes));
  }
  return absl::OkStatus();
}

absl::Status Call(GpuContext& gpu, const v1::CallRequest& request, v1::RunnerReply* reply) {
  absl::StatusOr<Module*> module = gpu.FindModule(request.module());
  if (!module.ok()) return module.status();
  const v1::Plan& plan = request.plan();
  const Arena arena = Arena::For(plan);
  PAWL_RETURN_IF_ERROR(gpu.arena.Reserve(arena.bytes()));
  const CUdeviceptr base = gpu.arena.address();

  const absl::StatusOr<Key> key = KeyOf(request.draw().key());
  if (!key.ok()) return key.status();
  const uint32_t call = request.draw().call();

  SegmentTable kept, poisons;  // kept: must be unchanged after a call
  std::vector<Segment> segments = arena.Inputs(base, 0, request.draw());
  const size_t inputs = segments.size();
  Append(&segments, arena.Bands(base, 0));
  PAWL_RETURN_IF_ERROR(kept.Set(segments));
  PAWL_RETURN_IF_ERROR(poisons.Set(arena.Poisons(base, 0)));

  const int repeats = std::max(1, request.repeats());
  const uint64_t call_bytes = OutputBytes(plan);
  // Repeats that must have the same bits need no comparing of their own.
  const int room =
      static_cast<int>(std::clamp<uint64_t>(kStagingBytes / std::max<uint64_t>(1, call_bytes), 1, repeats));
  const int staged = request.deterministic() ? 1 : room;
  v1::CallReply outputs;
  outputs.set_staged(staged);
  for (const OutputSlot& slot : OutputSlots(plan)) outputs.add_outputs(plan.tensors(slot.tensor).name());
  uint64_t first_digest = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    PAWL_RETURN_IF_ERROR(gpu.support.Fill(kept, *key, call));
    PAWL_RETURN_IF_ERROR(gpu.support.Fill(poisons, RandomKey()));
    PAWL_RETURN_IF_ERROR(gpu.support.DirtyShared(RandomKey()));
    PAWL_RETURN_IF_ERROR((*module)->Call(plan, arena, base, gpu.stream));
    PAWL_CUDA(CtxSynchronize());

    absl::StatusOr<std::vector<ChangedByte>> changed = gpu.support.Verify(kept, *key, call);
    if (!changed.ok()) return changed.status();
    if (!changed->empty()) {
      const ChangedByte& byte = changed->front();
      const bool input = byte.segment < inputs;
      *reply->mutable_failure() =
          MakeFailure(input ? v1::CHECK_INPUT_CHANGED : v1::CHECK_GUARD_BAND, plan.size(),
                      absl::StrCat(input ? "the kernel changed its input: " : "the kernel wrote outside a tensor: ",
                                   arena.Describe(base, kept.segments()[byte.segment], byte.offset)));
      return absl::OkStatus();
    }
    uint64_t digest = 0;
    for (const OutputSlot& slot : OutputSlots(plan)) {
      absl::StatusOr<uint64_t> part = gpu.support.Digest(base + arena.Offset(slot.tensor), slot.bytes);
      if (!part.ok()) return part.status();
      digest = digest * 31 + *part;
    }
    if (repeat == 0) first_digest = digest;
    if (repeat < staged) {
      PAWL_RETURN_IF_ERROR(SetAside(gpu, plan, arena, base, repeat * call_bytes));
    }
    if (request.deterministic() && digest != first_digest) {
      *outputs.mutable_repeat_failure() = MakeFailure(
          v1::CHECK_DETERMINISM, plan.size(),
          absl::StrCat("the same input gave other bits at call ", repeat + 1,
                       ": a race, uninitialised memory, or atomics on floats (then say deterministic = false)"));
      break;
    }
  }
  *reply->mutable_call() = outputs;
  return absl::OkStatus();
}

}  // namespace pawl
