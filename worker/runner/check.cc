#include "worker/runner/check.h"

#include "absl/strings/str_cat.h"
#include "kernels/plan.h"
#include "kernels/tolerance.h"
#include "worker/validate/checked_call.h"

namespace pawl {
namespace {

// Scaled by 1 - 1/16 and 1 + 1/16: an eighth of a sum that is left out is twice that.
constexpr double kScaledBy = 1.0 / 16;
// Fewer values may happen to be small: no proof that errors of their size are accepted.
constexpr int64_t kFewElements = 64;
constexpr int64_t kFewCorrupted = 8;

// Tries one output's tolerance on outputs that are wrong.
class SelfTest {
 public:
  SelfTest(GpuContext& gpu, const v1::Plan& plan, const v1::PlanTensor& tensor, CUdeviceptr expected, CUdeviceptr other,
           v1::CheckReply* reply)
      : gpu_(gpu), plan_(plan), tensor_(tensor), expected_(expected), other_(other), reply_(reply) {}

  absl::Status Run(const Arena& arena, CUdeviceptr base) {
    PAWL_RETURN_IF_ERROR(CheckAbsolute());
    PAWL_CUDA(MemsetD8Async(other_, 0, tensor_.elements() * ElementBytes(tensor_.type()), gpu_.stream));
    PAWL_RETURN_IF_ERROR(Try(other_, "all zeros"));
    if (tensor_.elements() > 1) {
      PAWL_RETURN_IF_ERROR(gpu_.support.Rotate(expected_, other_, tensor_));
      PAWL_RETURN_IF_ERROR(Try(other_, "the right values in the wrong places"));
    }
    const int64_t columns = tensor_.shape_size() > 1 ? tensor_.shape(tensor_.shape_size() - 1) : 1;
    const int64_t rows = tensor_.elements() / columns;
    if (tensor_.elements() >= 8 * kFewCorrupted) {
      PAWL_RETURN_IF_ERROR(TryCorrupted(kDropTail, "zeros in the last eighth"));
    }
    if (rows > 1 && columns >= kFewCorrupted) {
      PAWL_RETURN_IF_ERROR(TryCorrupted(kZeroFirstRow, "zeros in the first row"));
      PAWL_RETURN_IF_ERROR(TryCorrupted(kZeroLastRow, "zeros in the last row"));
      PAWL_RETURN_IF_ERROR(TryCorrupted(kSwapRows, "the first row and the last exchanged"));
    }
    if (columns > 1 && rows >= kFewCorrupted) {
      PAWL_RETURN_IF_ERROR(TryCorrupted(kZeroColumn, "zeros in the last column"));
    }
    if (!ToleranceOf(plan_, tensor_).exact()) {
      PAWL_RETURN_IF_ERROR(TryCorrupted(kScale, "all values 1/16 too small", 1 - kScaledBy));
      PAWL_RETURN_IF_ERROR(TryCorrupted(kScale, "all values 1/16 too large", 1 + kScaledBy));
    }
    for (int i = 0; i < plan_.tensors_size(); ++i) {
      const v1::PlanTensor& input = plan_.tensors(i);
      if (input.role() != v1::TENSOR_ROLE_INPUT || input.type() != tensor_.type() ||
          input.elements() != tensor_.elements())
        continue;
      PAWL_RETURN_IF_ERROR(Try(base + arena.Offset(i), absl::StrCat("the input ", input.name())));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status TryCorrupted(Corruption corruption, const std::string& what, double factor = 1) {
    PAWL_RETURN_IF_ERROR(gpu_.support.Corrupt(expected_, other_, tensor_, corruption, factor));
    return Try(other_, what);
  }

  absl::Status Try(CUdeviceptr out, const std::string& what) {
    const v1::Tolerance& tolerance = ToleranceOf(plan_, tensor_);
    absl::StatusOr<v1::OutputError> error =
        gpu_.support.Compare(out, expected_, tensor_, tolerance.exact() ? 0 : tolerance.absolute());
    if (!error.ok()) return error.status();
    if (!WithinTolerance(*error, tolerance)) return absl::OkStatus();
    // What is right by the type's own precision proves nothing: every shuffle of a softmax of one column is.
    const absl::StatusOr<uint64_t> differing =
        gpu_.support.Differing(out, expected_, tensor_, 4 * UnitRoundoff(tensor_.type()));
    if (!differing.ok()) return differing.status();
    if (*differing > 0) reply_->add_lenient(absl::StrCat(tensor_.name(), ": ", what));
    return absl::OkStatus();
  }

  absl::Status CheckAbsolute() {
    const absl::StatusOr<v1::ReferenceOutput> norm = gpu_.support.Norm(expected_, tensor_);
    if (!norm.ok()) return norm.status();
    const double rms = norm->rms();
    const v1::Tolerance& tolerance = ToleranceOf(plan_, tensor_);
    const double most = MostAbsolute(plan_, tensor_, rms);
    if (tensor_.elements() < kFewElements || tolerance.exact() || rms == 0 || tolerance.absolute() <= most) {
      return absl::OkStatus();
    }
    reply_->add_lenient(absl::StrCat(tensor_.name(), ": errors of ", tolerance.absolute(), " in values of about ",
                                     RoundedDown(rms), "; absolute = ", RoundedDown(most), " would do"));
    return absl::OkStatus();
  }

  GpuContext& gpu_;
  const v1::Plan& plan_;
  const v1::PlanTensor& tensor_;
  const CUdeviceptr expected_, other_;
  v1::CheckReply* const reply_;
};

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
  const std::vector<OutputSlot> slots = OutputSlots(plan);

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
    for (size_t i = 0; i < slots.size(); ++i) {
      const v1::PlanTensor& tensor = plan.tensors(slots[i].tensor);
      const v1::Tolerance& tolerance = ToleranceOf(plan, tensor);
      const CUdeviceptr expected = base + arena.Offset(slots[i].tensor);
      const double own_rms = static_cast<int>(i) < request.own_rms_size() ? request.own_rms(i) : 0;
      PAWL_CUDA(
          MemcpyHtoD(gpu.staging.address(), gpu.shared.data() + call * call_bytes + slots[i].offset, slots[i].bytes));
      absl::StatusOr<v1::OutputError> error = gpu.support.Compare(
          gpu.staging.address(), expected, tensor, tolerance.exact() ? 0 : tolerance.absolute(), own_rms);
      if (!error.ok()) return error.status();
      *check->add_errors() = *error;
      absl::StatusOr<v1::ReferenceOutput> norm = gpu.support.Norm(expected, tensor);
      if (!norm.ok()) return norm.status();
      *check->add_references() = *norm;
    }
  }
  if (!request.self_test()) return absl::OkStatus();
  for (const OutputSlot& slot : slots) {
    SelfTest test(gpu, plan, plan.tensors(slot.tensor), base + arena.Offset(slot.tensor), gpu.staging.address(), check);
    PAWL_RETURN_IF_ERROR(test.Run(arena, base));
  }
  return absl::OkStatus();
}

}  // namespace pawl
