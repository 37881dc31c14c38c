#include "worker/runner/call.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "kernels/plan.h"
#include "worker/build/plan_arguments.h"
#include "worker/runner/placement.h"
#include "worker/runner/tensor_fill.h"
#include "worker/validate/output_pieces.h"

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

// One for all repeats of a request: the order of a sum may depend on addresses, and its bits with it.
Arena DrawArena(const v1::Plan& plan) {
  SecretRandom random;
  return Arena::For(plan, DrawShifts(plan, random));
}

// What one request calls, repeat after repeat.
class ValidatedCall {
 public:
  ValidatedCall(GpuContext& gpu, const v1::CallRequest& request, v1::RunnerReply* reply)
      : gpu_(gpu), request_(request), plan_(request.plan()), arena_(DrawArena(plan_)), reply_(reply) {}

  absl::Status Run() {
    PAWL_RETURN_IF_ERROR(Prepare());
    const int repeats = std::max(1, request_.repeats());
    const uint64_t call_bytes = OutputBytes(plan_);
    // Repeats that must have the same bits need no comparing of their own.
    const int room =
        static_cast<int>(std::clamp<uint64_t>(kStagingBytes / std::max<uint64_t>(1, call_bytes), 1, repeats));
    const int staged = request_.deterministic() ? 1 : room;
    v1::CallReply outputs;
    outputs.set_staged(staged);
    for (const OutputSlot& slot : OutputSlots(plan_)) outputs.add_outputs(plan_.tensors(slot.tensor).name());
    uint64_t first_digest = 0;
    // Every other call finds the GPU crowded: with the same bits, or within the tolerance, all the same.
    const bool first_crowded = RandomKey().words[0] % 2 == 1;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      PAWL_RETURN_IF_ERROR(CallOnce(first_crowded == (repeat % 2 == 0), poisons_[repeat % 2]));
      if (absl::StatusOr<bool> fine = CheckUnchanged(); !fine.ok() || !*fine) return fine.status();
      const absl::StatusOr<uint64_t> digest = DigestOfOutputs();
      if (!digest.ok()) return digest.status();
      if (repeat == 0) first_digest = *digest;
      if (repeat < staged) PAWL_RETURN_IF_ERROR(SetAside(gpu_, plan_, arena_, base(), repeat * call_bytes));
      if (request_.deterministic() && *digest != first_digest) {
        *outputs.mutable_repeat_failure() = MakeFailure(
            v1::CHECK_DETERMINISM, plan_.size(),
            absl::StrCat("the same input gave other bits at call ", repeat + 1,
                         ": a race, uninitialised memory, or atomics on floats (then say deterministic = false)"));
        break;
      }
    }
    *reply_->mutable_call() = outputs;
    return absl::OkStatus();
  }

 private:
  CUdeviceptr base() const { return gpu_.arena.address(); }

  absl::Status Prepare() {
    absl::StatusOr<Module*> module = gpu_.FindModule(request_.module());
    if (!module.ok()) return module.status();
    module_ = *module;
    const absl::StatusOr<int> local_bytes = module_->LocalBytes(plan_.launches());
    if (!local_bytes.ok()) return local_bytes.status();
    local_bytes_ = *local_bytes;
    absl::StatusOr<Module*> setup = gpu_.FindSetup(plan_, request_.setup());
    if (!setup.ok()) return setup.status();
    setup_ = *setup;
    absl::StatusOr<Key> key = KeyOf(request_.draw().key());
    if (!key.ok()) return key.status();
    key_ = *key;
    const absl::StatusOr<Sources> sources = gpu_.pools.SourcesOf(plan_, request_.draw());
    if (!sources.ok()) return sources.status();

    PAWL_RETURN_IF_ERROR(gpu_.arena.Reserve(arena_.bytes()));
    tensors_ = arena_.Addresses(base());
    std::vector<Segment> kept = arena_.Inputs(base(), 0, request_.draw(), *sources);
    inputs_ = kept.size();
    Append(&kept, arena_.Bands(base(), 0));
    PAWL_RETURN_IF_ERROR(kept_.Set(kept));
    PAWL_RETURN_IF_ERROR(changed_in_place_.Set(arena_.InOuts(base(), 0, request_.draw(), *sources)));
    SecretRandom random;
    const std::array<std::vector<Segment>, 2> poisons = PoisonsInTurn(arena_.Poisons(base(), 0), random);
    for (size_t turn = 0; turn < poisons.size(); ++turn) PAWL_RETURN_IF_ERROR(poisons_[turn].Set(poisons[turn]));
    together_ = std::all_of(plan_.launches().begin(), plan_.launches().end(),
                            [](const v1::PlanLaunch& launch) { return launch.cooperative(); });
    structs_.Add(plan_, tensors_);
    return structs_.Reserve();
  }

  absl::Status CallOnce(bool crowded, const SegmentTable& poison) {
    const uint32_t call = request_.draw().call();
    PAWL_RETURN_IF_ERROR(gpu_.support.Fill(kept_, key_, call));
    PAWL_RETURN_IF_ERROR(gpu_.support.Fill(changed_in_place_, key_, call));
    PAWL_RETURN_IF_ERROR(gpu_.support.Fill(poison, RandomKey()));
    PAWL_RETURN_IF_ERROR(structs_.Upload());
    if (setup_ != nullptr) {
      PAWL_RETURN_IF_ERROR(setup_->Launch(plan_.setup(), tensors_, structs_, gpu_.stream));
      absl::StatusOr<std::vector<uint64_t>> digests = DigestsOfSetup();
      if (!digests.ok()) return digests.status();
      set_up_ = *std::move(digests);
    }
    PAWL_RETURN_IF_ERROR(module_->FillSymbols(plan_, tensors_, gpu_.stream));
    PAWL_RETURN_IF_ERROR(gpu_.support.Dirty(RandomKey(), local_bytes_));
    if (crowded) PAWL_RETURN_IF_ERROR(gpu_.support.Crowd(RandomKey(), together_));
    PAWL_RETURN_IF_ERROR(module_->Launch(plan_.launches(), tensors_, structs_, gpu_.stream));
    PAWL_CUDA(CtxSynchronize());
    return absl::OkStatus();
  }

  // What the setup wrote.
  absl::StatusOr<std::vector<uint64_t>> DigestsOfSetup() {
    std::vector<uint64_t> digests;
    for (int i = 0; i < plan_.tensors_size(); ++i) {
      const v1::PlanTensor& tensor = plan_.tensors(i);
      if (!tensor.is_static() || tensor.role() == v1::TENSOR_ROLE_INPUT) continue;
      const absl::StatusOr<uint64_t> digest = gpu_.support.Digest(tensors_[i], tensor);
      if (!digest.ok()) return digest.status();
      digests.push_back(*digest);
    }
    return digests;
  }

  // False: the reply says what the call changed and should not have.
  absl::StatusOr<bool> CheckUnchanged() {
    absl::StatusOr<std::vector<ChangedByte>> changed = gpu_.support.Verify(kept_, key_, request_.draw().call());
    if (!changed.ok()) return changed.status();
    if (!changed->empty()) {
      const ChangedByte& byte = changed->front();
      const bool input = byte.segment < inputs_;
      const std::string where = arena_.Describe(base(), kept_.segments()[byte.segment], byte.offset);
      *reply_->mutable_failure() =
          MakeFailure(input ? v1::CHECK_INPUT_CHANGED : v1::CHECK_GUARD_BAND, plan_.size(),
                      input ? absl::StrCat("the kernel changed its input: ", where,
                                           ". A tensor that is changed in place has role = \"inout\"")
                            : absl::StrCat("the kernel wrote outside a tensor: ", where));
      return false;
    }
    const absl::StatusOr<bool> structs_unchanged = structs_.Unchanged();
    if (!structs_unchanged.ok()) return structs_unchanged.status();
    if (!*structs_unchanged) {
      *reply_->mutable_failure() = MakeFailure(v1::CHECK_INPUT_CHANGED, plan_.size(),
                                               "the kernel changed a struct that it was given a pointer to");
      return false;
    }
    const absl::StatusOr<std::string> symbol = module_->ChangedSymbol(plan_, tensors_);
    if (!symbol.ok()) return symbol.status();
    if (!symbol->empty()) {
      *reply_->mutable_failure() =
          MakeFailure(v1::CHECK_INPUT_CHANGED, plan_.size(),
                      absl::StrCat("the kernel changed the variable ", *symbol, ", which holds an input"));
      return false;
    }
    if (setup_ == nullptr) return true;
    const absl::StatusOr<std::vector<uint64_t>> digests = DigestsOfSetup();
    if (!digests.ok()) return digests.status();
    if (*digests == set_up_) return true;
    *reply_->mutable_failure() = MakeFailure(v1::CHECK_INPUT_CHANGED, plan_.size(),
                                             "the kernel changed a static tensor that the setup launches made");
    return false;
  }

  absl::StatusOr<uint64_t> DigestOfOutputs() {
    uint64_t digest = 0;
    for (const OutputSlot& slot : OutputSlots(plan_)) {
      const absl::StatusOr<uint64_t> part = gpu_.support.Digest(tensors_[slot.buffer], plan_.tensors(slot.tensor));
      if (!part.ok()) return part.status();
      digest = digest * 31 + *part;
    }
    return digest;
  }

  GpuContext& gpu_;
  const v1::CallRequest& request_;
  const v1::Plan& plan_;
  const Arena arena_;
  v1::RunnerReply* const reply_;
  Module* module_ = nullptr;
  int local_bytes_ = 0;  // of a thread
  Module* setup_ = nullptr;
  Key key_ = {};
  std::vector<CUdeviceptr> tensors_;
  StructTable structs_;
  SegmentTable kept_, changed_in_place_;  // kept: must be unchanged after a call
  std::array<SegmentTable, 2> poisons_;   // in turn
  bool together_ = false;                 // all blocks of every launch start at once
  size_t inputs_ = 0;                     // of kept
  std::vector<uint64_t> set_up_;          // digests of what the setup wrote
};

}  // namespace

absl::Status SetAside(GpuContext& gpu, const v1::Plan& plan, const Arena& arena, CUdeviceptr base, uint64_t offset) {
  for (const OutputSlot& slot : OutputSlots(plan)) {
    PAWL_RETURN_IF_ERROR(gpu.shared.Write(offset + slot.offset, base + arena.Offset(slot.buffer), slot.bytes));
  }
  return absl::OkStatus();
}

absl::Status SetPiecesAside(GpuContext& gpu, const v1::Plan& plan, const Arena& arena, CUdeviceptr base,
                            uint64_t offset, uint64_t drawn) {
  const std::vector<OutputSlot> slots = PieceSlots(plan);
  for (const OutputSlot& slot : slots) {
    std::vector<SharedRegion::Piece> pieces;
    const uint64_t bytes = TensorBytes(plan.tensors(slot.tensor));
    for (const OutputPiece& piece : PiecesOf(bytes, PieceShare(slots.size()), drawn)) {
      pieces.push_back({base + arena.Offset(slot.buffer) + piece.offset, piece.bytes});
    }
    PAWL_RETURN_IF_ERROR(gpu.shared.WritePieces(offset + slot.offset, pieces, gpu.stream));
  }
  return absl::OkStatus();
}

absl::Status Call(GpuContext& gpu, const v1::CallRequest& request, v1::RunnerReply* reply) {
  PAWL_RETURN_IF_ERROR(CheckPlan(request.plan()));
  return ValidatedCall(gpu, request, reply).Run();
}

}  // namespace pawl
