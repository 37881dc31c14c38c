#include "worker/trial/validator.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "worker/trial/output_check.h"

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

std::optional<v1::Failure> LenientFailure(const v1::Plan& plan, const v1::CheckReply& check) {
  if (check.lenient().empty()) return std::nullopt;
  v1::Failure failure;
  failure.set_stage(v1::STAGE_VALIDATE);
  failure.set_check(v1::CHECK_LENIENT);
  failure.set_size(plan.size());
  failure.set_message(
      absl::StrCat("the tolerance (absolute ", plan.tolerance().absolute(), ", relative ", plan.tolerance().relative(),
                   ") accepts what is wrong: ", absl::StrJoin(check.lenient(), "; "), ". Tighten [tolerance]"));
  return failure;
}

// One size; the failure, if any, goes into `validation`.
absl::Status ValidateAt(GpuDevice& device, const v1::Bundle& bundle, const BuiltSize& at,
                        const ValidationOptions& options, Validation* validation) {
  auto failed = [&](v1::Failure failure) {
    if (failure.stage() == v1::STAGE_UNSPECIFIED) failure.set_stage(v1::STAGE_VALIDATE);
    if (failure.size().empty()) failure.set_size(at.plan.size());
    validation->failure = std::move(failure);
    return absl::OkStatus();
  };
  absl::StatusOr<v1::RunnerReply> loaded = device.runner().Load(at.module, *at.cubin, at.plan.launches());
  if (!loaded.ok()) return loaded.status();
  if (loaded->has_failure()) return failed(loaded->failure());
  validation->resources[at.plan.size()].assign(loaded->load().resources().begin(), loaded->load().resources().end());

  v1::RunnerRequest request;
  v1::CallRequest& call = *request.mutable_call();
  call.set_module(at.module);
  *call.mutable_plan() = at.plan;
  *call.mutable_draw() = FreshDraw();
  call.set_repeats(options.repeats);
  call.set_deterministic(!bundle.nondeterministic());
  absl::StatusOr<v1::RunnerReply> called = device.runner().Ask(request, kCallDeadline);
  if (!called.ok()) return called.status();
  if (called->has_failure()) return failed(called->failure());

  const std::vector<v1::InputDraw> draws(called->call().staged(), call.draw());
  absl::StatusOr<v1::CheckReply> check = CheckOutputs(device, bundle, at.plan, draws, options.self_test);
  if (absl::IsResourceExhausted(check.status())) {
    v1::Failure failure;
    failure.set_check(v1::CHECK_OUT_OF_MEMORY);
    failure.set_message(std::string(check.status().message()));
    return failed(std::move(failure));
  }
  if (!check.ok()) return check.status();
  validation->errors[at.plan.size()].assign(check->errors().begin(), check->errors().end());
  validation->failure = JudgeErrors(at.plan, check->errors());
  if (!validation->failure && called->call().has_repeat_failure()) {
    validation->failure = called->call().repeat_failure();
  }
  if (!validation->failure) validation->failure = LenientFailure(at.plan, *check);
  return absl::OkStatus();
}

}  // namespace

bool WithinTolerance(const v1::OutputError& error, const v1::Tolerance& tolerance) {
  return error.wrong() == 0 && error.relative() <= tolerance.relative();
}

std::optional<v1::Failure> JudgeErrors(const v1::Plan& plan,
                                       const google::protobuf::RepeatedPtrField<v1::OutputError>& errors) {
  for (const v1::OutputError& error : errors) {
    if (WithinTolerance(error, plan.tolerance())) continue;
    const v1::PlanTensor* tensor = nullptr;
    for (const v1::PlanTensor& candidate : plan.tensors()) {
      if (candidate.name() == error.tensor()) tensor = &candidate;
    }
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
    failure.set_message(absl::StrFormat(
        "%s%d of %d elements are off (%.3g %%), max %.3g (limit %.3g), mean %.3g, relative %.3g (limit %.3g)", first,
        error.wrong(), error.elements(), 100.0 * error.wrong() / std::max<int64_t>(1, error.elements()),
        error.max_absolute(), plan.tolerance().absolute(), error.mean_absolute(), error.relative(),
        plan.tolerance().relative()));
    return failure;
  }
  return std::nullopt;
}

absl::StatusOr<Validation> Validate(GpuDevice& device, const v1::Bundle& bundle, const BuiltVariant& built,
                                    const ValidationOptions& options) {
  const absl::Time start = absl::Now();
  Validation validation;
  for (const BuiltSize& at : built.sizes) {
    if (options.report) options.report(at.plan.size());
    if (absl::Status status = ValidateAt(device, bundle, at, options, &validation); !status.ok()) return status;
    if (validation.failure) break;
  }
  validation.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  return validation;
}

}  // namespace pawl
