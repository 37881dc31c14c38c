#include "worker/validate/checked_call.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/data_type.h"
#include "kernels/plan.h"
#include "worker/validate/load_built.h"
#include "worker/validate/output_check.h"
#include "worker/validate/provided_inputs.h"

namespace pawl {
namespace {

constexpr absl::Duration kCallDeadline = absl::Seconds(10);

std::string IndexText(int64_t index, const v1::PlanTensor& tensor) {
  std::vector<std::string> parts(tensor.shape_size());
  for (int i = tensor.shape_size() - 1; i >= 0; --i) {
    parts[i] = absl::StrCat(index % tensor.shape(i));
    index /= tensor.shape(i);
  }
  return absl::StrCat("[", absl::StrJoin(parts, ","), "]");
}

// One try in the present runner.
class Attempt {
 public:
  Attempt(GpuDevice& device, const v1::Bundle& bundle, const BuiltSize& at, const v1::InputDraw& draw,
          const CheckedCallOptions& options)
      : device_(device), bundle_(bundle), at_(at), draw_(draw), options_(options) {}

  absl::StatusOr<CheckedCall> Run() {
    CheckedCall result;
    if (absl::Status status = Load(&result); !status.ok()) return status;
    if (result.failure) return result;
    absl::Status given = HandOver(device_, bundle_, draw_, options_.self_test);
    if (absl::IsResourceExhausted(given)) return OutOfMemory(given, std::move(result));
    if (!given.ok()) return given;
    v1::RunnerRequest request;
    v1::CallRequest& call = *request.mutable_call();
    call.set_module(at_.module);
    call.set_setup(at_.setup_module);
    *call.mutable_plan() = at_.plan;
    *call.mutable_draw() = draw_;
    call.set_repeats(options_.repeats);
    call.set_deterministic(!bundle_.nondeterministic());
    absl::StatusOr<v1::RunnerReply> called = device_.runner().Ask(request, kCallDeadline);
    if (!called.ok()) return called.status();
    if (called->has_failure()) {
      Fail(*called, &result);
      return result;
    }
    const std::vector<v1::InputDraw> draws(called->call().staged(), draw_);
    absl::StatusOr<v1::CheckReply> check =
        CheckOutputs(device_, bundle_, at_.plan, draws, options_.self_test, options_.own_rms);
    if (absl::IsResourceExhausted(check.status())) return OutOfMemory(check.status(), std::move(result));
    if (!check.ok()) return check.status();
    result.check = *std::move(check);
    for (const v1::ReferenceOutput& output : result.check.references()) {
      result.reference_finite = result.reference_finite && IsFinite(output);
    }
    result.scales = Scales(result.check);
    result.failure = JudgeCheck(at_.plan, result.check, result.scales);
    if (!result.failure && called->call().has_repeat_failure()) result.failure = called->call().repeat_failure();
    return result;
  }

  // What went wrong may be no fault of the candidate's: a fresh runner tells.
  bool doubtful() const { return doubtful_; }

 private:
  CheckedCall OutOfMemory(const absl::Status& status, CheckedCall result) {
    result.failure.emplace();
    result.failure->set_check(v1::CHECK_OUT_OF_MEMORY);
    result.failure->set_message(std::string(status.message()));
    doubtful_ = true;
    return result;
  }

  absl::Status Load(CheckedCall* result) {
    absl::StatusOr<v1::RunnerReply> loaded = LoadBuilt(device_.runner(), at_);
    if (!loaded.ok()) return loaded.status();
    if (loaded->has_failure()) {
      Fail(*loaded, result);
      return absl::OkStatus();
    }
    result->resources.assign(loaded->load().resources().begin(), loaded->load().resources().end());
    result->module_bytes = loaded->load().module_bytes();
    return absl::OkStatus();
  }

  void Fail(const v1::RunnerReply& reply, CheckedCall* result) {
    result->failure = reply.failure();
    doubtful_ = IsDoubtful(reply, served_others_);
  }

  std::vector<double> Scales(const v1::CheckReply& check) const {
    std::vector<double> scales;
    if (options_.own_rms.empty()) return scales;
    for (int i = 0; i < check.references_size(); ++i) {
      const double own = options_.own_rms[i % options_.own_rms.size()];
      scales.push_back(own > 0 ? std::max(1.0, check.references(i).rms() / own) : 1);
    }
    return scales;
  }

  GpuDevice& device_;
  const v1::Bundle& bundle_;
  const BuiltSize& at_;
  const v1::InputDraw& draw_;
  const CheckedCallOptions& options_;
  const bool served_others_ = device_.runner().served_others();
  bool doubtful_ = false;
};

}  // namespace

std::vector<double> CheckedCall::Rms(const v1::Plan& plan) const {
  std::vector<double> rms;
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    if (!IsCompared(tensor.role())) continue;
    const int i = static_cast<int>(rms.size());
    rms.push_back(i < check.references_size() ? check.references(i).rms() : 0);
  }
  return rms;
}

absl::StatusOr<CheckedCall> CallAndCheck(GpuDevice& device, const v1::Bundle& bundle, const BuiltSize& at,
                                         const v1::InputDraw& draw, const CheckedCallOptions& options) {
  const absl::StatusOr<v1::InputDraw> given = MakeInputs(device, bundle, at.plan, draw);
  if (!given.ok()) return given.status();
  Attempt first(device, bundle, at, *given, options);
  absl::StatusOr<CheckedCall> result = first.Run();
  if (result.ok() && first.doubtful()) {
    device.runner().Restart();
    device.reference().Restart();
    result = Attempt(device, bundle, at, *given, options).Run();
  }
  if (!result.ok() || !result->failure) return result;
  v1::Failure& failure = *result->failure;
  if (failure.stage() == v1::STAGE_UNSPECIFIED) failure.set_stage(v1::STAGE_VALIDATE);
  if (failure.size().empty()) failure.set_size(at.plan.size());
  if (failure.check() == v1::CHECK_FAULT || failure.check() == v1::CHECK_GUARD_BAND) {
    failure.set_message(absl::StrCat(failure.message(), IndexAdvice(at.plan)));
  }
  return result;
}

bool IsDoubtful(const v1::RunnerReply& reply, bool served_others) {
  const v1::Check check = reply.failure().check();
  // A busy host may make clocks disagree.
  if (reply.runner_died() || check == v1::CHECK_OUT_OF_MEMORY || check == v1::CHECK_WALL_CLOCK) return true;
  return served_others && (check == v1::CHECK_FAULT || check == v1::CHECK_TIMEOUT);
}

std::string IndexAdvice(const v1::Plan& plan) {
  std::vector<std::string> drawn;
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    if (!IsFilled(tensor.role()) || !IsInteger(tensor.type()) || !tensor.has_low() || !tensor.has_high()) continue;
    drawn.push_back(absl::StrCat(tensor.name(), " (", tensor.low(), " to ", tensor.high(), ")"));
  }
  if (drawn.empty()) return "";
  return absl::StrCat(". Do all indices exist in what they point into? Check the range of ",
                      absl::StrJoin(drawn, ", "));
}

bool IsFinite(const v1::ReferenceOutput& output) { return output.non_finite() == 0 && std::isfinite(output.rms()); }

bool WithinTolerance(const v1::OutputError& error, const v1::Tolerance& tolerance) {
  return error.wrong() == 0 && (tolerance.exact() || error.relative() <= tolerance.relative());
}

double Strain(const v1::Plan& plan, const CheckedCall& call, int i) {
  const v1::OutputError& error = call.check.errors(i);
  v1::Tolerance tolerance = plan.tolerance();
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    if (tensor.name() == error.tensor()) tolerance = ToleranceOf(plan, tensor);
  }
  if (error.non_finite() > 0 || (tolerance.exact() && error.wrong() > 0)) return INFINITY;
  if (tolerance.exact()) return 0;
  const double scale = i < static_cast<int>(call.scales.size()) ? call.scales[static_cast<size_t>(i)] : 1;
  const double of_norm = error.relative() / tolerance.relative();
  if (std::isnan(of_norm)) return INFINITY;
  return std::max(error.max_absolute() / (tolerance.absolute() * scale), of_norm);
}

std::optional<v1::Failure> JudgeCheck(const v1::Plan& plan, const v1::CheckReply& check,
                                      const std::vector<double>& scales) {
  for (const std::string& verdict : check.verdicts()) {
    if (verdict.empty()) continue;
    v1::Failure failure;
    failure.set_stage(v1::STAGE_VALIDATE);
    failure.set_check(v1::CHECK_TOLERANCE);
    failure.set_size(plan.size());
    failure.set_message(absl::StrCat("check() of problem.py: ", verdict));
    return failure;
  }
  return JudgeErrors(plan, check.errors(), scales);
}

std::optional<v1::Failure> JudgeErrors(const v1::Plan& plan,
                                       const google::protobuf::RepeatedPtrField<v1::OutputError>& errors,
                                       const std::vector<double>& scales) {
  for (int i = 0; i < errors.size(); ++i) {
    const v1::OutputError& error = errors[i];
    const v1::PlanTensor* tensor = nullptr;
    for (const v1::PlanTensor& candidate : plan.tensors()) {
      if (candidate.name() == error.tensor()) tensor = &candidate;
    }
    const v1::Tolerance& tolerance = tensor == nullptr ? plan.tolerance() : ToleranceOf(plan, *tensor);
    if (WithinTolerance(error, tolerance)) continue;
    v1::Failure failure;
    failure.set_stage(v1::STAGE_VALIDATE);
    failure.set_check(error.non_finite() > 0 ? v1::CHECK_NON_FINITE : v1::CHECK_TOLERANCE);
    failure.set_size(plan.size());
    std::string first;
    if (error.first_wrong() >= 0 && tensor != nullptr) {
      first = absl::StrFormat("%s%s is %g, expected %g; ", error.tensor(), IndexText(error.first_wrong(), *tensor),
                              error.got(), error.expected());
    } else {
      first = absl::StrCat(error.tensor(), ": ");
    }
    const std::string share =
        absl::StrFormat("%s%d of %d elements are off (%.3g %%), max %.3g", first, error.wrong(), error.elements(),
                        100.0 * error.wrong() / std::max<int64_t>(1, error.elements()), error.max_absolute());
    if (tolerance.exact()) {
      failure.set_message(absl::StrCat(share, "; it must be exact"));
      return failure;
    }
    const double scale = i < static_cast<int>(scales.size()) ? scales[i] : 1;
    failure.set_message(absl::StrFormat("%s (limit %.3g), mean %.3g, relative %.3g (limit %.3g)", share,
                                        tolerance.absolute() * scale, error.mean_absolute(), error.relative(),
                                        tolerance.relative()));
    return failure;
  }
  return std::nullopt;
}

}  // namespace pawl
