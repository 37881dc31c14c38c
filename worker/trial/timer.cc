#include "worker/trial/timer.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/sync/steady_time.h"
#include "kernels/plan.h"
#include "worker/validate/checked_call.h"
#include "worker/validate/few_elements.h"
#include "worker/validate/load_built.h"
#include "worker/validate/output_check.h"
#include "worker/validate/output_pieces.h"
#include "worker/validate/provided_inputs.h"

namespace pawl {
namespace {

constexpr absl::Duration kCompareDeadline = absl::Seconds(150), kLongestCompareDeadline = absl::Minutes(15);
// Twice what a pair with a witness has: nine warm calls, and in a quarter of the pairs three times eight cold ones.
constexpr int kCallsOfPair = 30;
constexpr absl::Duration kBesidePairs = absl::Seconds(60);  // for calls that are only made to be checked, and the rest
constexpr int64_t kMostCheckedBytes = int64_t{4} << 30;
// Of outputs that are checked as a whole where others are in pieces, and the largest of which one is.
constexpr int64_t kWholeBytes = int64_t{512} << 20, kLargestWhole = int64_t{1} << 30;
constexpr int64_t kMostWhole = 8;

// By the limits of the bundle's own fill.
std::optional<v1::Failure> JudgeOwnFill(const v1::Plan& plan, const std::vector<v1::InputDraw>& draws,
                                        const v1::CheckReply& check) {
  v1::CheckReply own = check;
  own.clear_errors();
  const size_t outputs = draws.empty() ? 0 : static_cast<size_t>(check.errors_size()) / draws.size();
  for (size_t i = 0; i < outputs * draws.size(); ++i) {
    if (IsOfOwnFill(draws[i / outputs])) *own.add_errors() = check.errors(static_cast<int>(i));
  }
  return JudgeCheck(plan, own);
}

absl::Duration DeadlineOf(const TimingOptions& options) {
  const absl::Duration needed = kBesidePairs + options.pairs * kCallsOfPair * absl::Microseconds(options.call_us);
  return std::clamp(needed, kCompareDeadline, kLongestCompareDeadline);
}

// What is kept of the outputs of a call that is checked.
int64_t KeptBytesOf(const v1::Plan& plan, bool in_pieces) {
  std::vector<int64_t> outputs;
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    if (IsCompared(tensor.role())) outputs.push_back(TensorBytes(tensor));
  }
  const int64_t most = in_pieces ? static_cast<int64_t>(PieceShare(outputs.size())) : INT64_MAX;
  int64_t bytes = 0;
  for (const int64_t output : outputs) bytes += std::min(output, most);
  return bytes;
}

}  // namespace

absl::StatusOr<Timing> TimeAgainst(GpuDevice& device, const v1::Bundle& bundle, const BuiltSize& candidate,
                                   const BuiltSize& parent, const TimingOptions& options) {
  device.Settle();
  const SteadyTime start = SteadyNow();
  Timing timing;
  const bool witnessed = options.witness != nullptr, served_others = device.runner().served_others();
  std::vector<const BuiltSize*> sides = {&parent, &candidate};
  if (witnessed) sides.push_back(options.witness);
  for (const BuiltSize* side : sides) {
    absl::StatusOr<v1::RunnerReply> loaded = LoadBuilt(device.runner(), *side);
    if (!loaded.ok()) return loaded.status();
    if (loaded->has_failure()) {
      timing.failure = loaded->failure();
      timing.doubtful = IsDoubtful(*loaded, served_others);
      return timing;
    }
  }
  const absl::StatusOr<TimedPool> pool = ProvideTimedPool(device, bundle, candidate.plan, options.data);
  if (!pool.ok()) return pool.status();
  v1::RunnerRequest request;
  v1::CompareRequest& compare = *request.mutable_compare();
  compare.set_candidate(candidate.module);
  compare.set_parent(parent.module);
  compare.set_setup(candidate.setup_module);
  *compare.mutable_candidate_plan() = candidate.plan;
  *compare.mutable_parent_plan() = parent.plan;
  std::vector<v1::Plan*> plans = {compare.mutable_candidate_plan(), compare.mutable_parent_plan()};
  if (witnessed) {
    compare.set_witness(options.witness->module);
    *compare.mutable_witness_plan() = options.witness->plan;
    plans.push_back(compare.mutable_witness_plan());
  }
  MatchTensors(plans);
  compare.set_pairs(options.pairs);
  compare.set_measurements(options.measurements);
  compare.set_deciding(bundle.timing());
  compare.set_in_pieces(!HasProblem(bundle));  // its own check() wants all of them
  const int64_t bytes = std::max<int64_t>(1, KeptBytesOf(candidate.plan, compare.in_pieces()));
  const int64_t least = std::clamp<int64_t>(kMostCheckedBytes / bytes, 1, options.least_checked);
  const int checked =
      static_cast<int>(std::clamp<int64_t>(options.checked_bytes / bytes, least, options.checked_calls));
  compare.set_checked_calls(checked);
  compare.set_needed_calls(std::min(checked, options.needed_calls));
  const int64_t whole = std::max<int64_t>(1, KeptBytesOf(candidate.plan, false));
  if (options.needed_calls > 0 && whole > bytes && whole <= kLargestWhole) {
    compare.set_whole_calls(static_cast<int32_t>(std::clamp<int64_t>(kWholeBytes / whole, 1, kMostWhole)));
  }
  compare.set_candidate_first(options.candidate_first);
  compare.set_single(options.single);
  compare.set_calls(options.calls);
  compare.set_sure_pairs(options.sure_pairs);
  compare.set_sure_below(options.sure_below);
  compare.set_deterministic(!bundle.nondeterministic());
  if (options.inputs != nullptr && !HasProblem(bundle)) {
    for (const auto& [distribution, magnitude] : *options.inputs) {
      v1::OtherInputs& other = *compare.add_others();
      other.set_distribution(distribution);
      other.set_magnitude(magnitude);
    }
  }
  compare.set_pool(pool->pool);
  compare.set_entries(pool->entries);
  absl::StatusOr<v1::RunnerReply> reply = device.runner().Ask(request, DeadlineOf(options));
  if (!reply.ok()) return reply.status();
  timing.seconds = absl::ToDoubleSeconds(SteadyNow() - start);
  if (reply->has_failure()) {
    timing.failure = reply->failure();
    timing.failure->set_stage(v1::STAGE_MEASURE);
    timing.failure->set_size(candidate.plan.size());
    timing.doubtful = IsDoubtful(*reply, served_others);
    return timing;
  }
  timing.times = std::move(*reply->mutable_compare());
  for (v1::PairSample& pair : *timing.times.mutable_pairs()) pair.set_data(pool->data);
  const SteadyTime timed = SteadyNow();
  const std::vector<v1::InputDraw> draws(timing.times.checked().begin(), timing.times.checked().end());
  absl::StatusOr<v1::CheckReply> check = CheckOutputs(device, bundle, candidate.plan, draws, false);
  if (!check.ok()) return check.status();
  timing.check_seconds = absl::ToDoubleSeconds(SteadyNow() - timed);  // of the reference, not of the start variant
  RelateToTypical(candidate.plan, draws, &*check);
  absl::StatusOr<std::optional<v1::Failure>> judged = JudgeOwnFill(candidate.plan, draws, *check);
  if (judged.ok() && !*judged) judged = JudgeOtherInputs(device, bundle, candidate, draws, *check, options.start);
  if (!judged.ok()) return judged.status();
  if (std::optional<v1::Failure> wrong = *std::move(judged)) {
    wrong->set_stage(v1::STAGE_MEASURE);
    wrong->set_check(v1::CHECK_TIMED_OUTPUT);
    wrong->set_message(absl::StrCat("right when validated, wrong when timed: ", wrong->message()));
    timing.failure = wrong;
  }
  timing.seconds = absl::ToDoubleSeconds(SteadyNow() - start);
  return timing;
}

}  // namespace pawl
