#include "worker/trial/trial_run.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/names/utf8.h"

namespace pawl {
namespace {

constexpr double kAtOnce = 0.01;  // seconds between two parts of a stage that are shown as one

}  // namespace

TrialRun::TrialRun(GpuDevice& device, const TrialBuild& build, TrialObserver& observer)
    : device(device),
      build(build),
      bundle(*build.bundle),
      observer(observer),
      steps_(CountSteps(build.trial, *build.bundle)) {}

void TrialRun::Fail(v1::Failure failure) {
  if (failure.stage() == v1::STAGE_MEASURE && failure.size().empty()) failure.set_size(build.size);
  failure.set_message(ValidUtf8(failure.message()));
  *result().mutable_failure() = std::move(failure);
}

void TrialRun::Report(v1::Stage stage, const std::string& text) {
  step_ = std::min(step_ + 1, steps_);
  observer.Report(stage, step_, steps_, absl::StrCat(text, " (", step_, " of ", steps_, ")"));
}

void TrialRun::AddStage(v1::Stage stage, double begin) {
  const double end = observer.seconds();
  v1::StageTime* last = stages.empty() ? nullptr : &stages.back();
  if (last != nullptr && last->stage() == stage && begin - (last->begin() + last->seconds()) < kAtOnce) {
    last->set_seconds(end - last->begin());
    return;
  }
  v1::StageTime& added = stages.emplace_back();
  added.set_stage(stage);
  added.set_begin(begin);
  added.set_seconds(end - begin);
}

void TrialRun::Note(const std::string& text) {
  if (text.empty()) return;
  const std::string valid = ValidUtf8(text);  // it may quote a tool
  result().set_notes(result().notes().empty() ? valid : absl::StrCat(result().notes(), "; ", valid));
}

std::optional<v1::Failure> TrialRun::ReferenceFailure(const absl::Status& status, v1::Stage stage) const {
  if (!reference_fails_candidate) return std::nullopt;
  if (!absl::IsInvalidArgument(status) && !absl::IsResourceExhausted(status)) return std::nullopt;
  v1::Failure failure;
  failure.set_stage(stage);
  failure.set_check(absl::IsResourceExhausted(status) ? v1::CHECK_OUT_OF_MEMORY : v1::CHECK_FAULT);
  failure.set_message(std::string(status.message()));
  return failure;
}

}  // namespace pawl
