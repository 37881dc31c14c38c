#include "worker/runner/compare/comparer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/data_type.h"
#include "kernels/plan.h"
#include "worker/build/plan_arguments.h"
#include "worker/runner/wall_clock.h"

namespace pawl {
namespace {

constexpr double kMostUntimed = 20;                  // seconds of calls that are made to be checked only
constexpr int64_t kQueuedLaunches = 8;               // that the host queues while the GPU holds
constexpr int64_t kLargeModule = int64_t{64} << 20;  // one of these is not kept beside another
// By which the anchor's times at both ends of a block differ where others use the GPU; by chance, one block in 1000.
constexpr double kAloneOnGpu = 0.1;

double Mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + middle)) / 2;
}

}  // namespace

Comparer::Comparer(GpuContext& gpu, const v1::CompareRequest& request) : gpu_(gpu), request_(request) {}

Comparer::~Comparer() { DropGraphs(); }

absl::Status Comparer::Run(v1::RunnerReply* reply) {
  reply_ = reply;
  leaves_state_ = request_.single();
  PAWL_RETURN_IF_ERROR(FindSides());
  if (!CanBeCleared()) return absl::OkStatus();
  for (bool again = true; again;) {
    result_.Clear();
    unseen_ = UnseenTime();
    timed_checks_ = 0;
    PAWL_RETURN_IF_ERROR(Prepare());
    const bool knew = leaves_state_;
    PAWL_RETURN_IF_ERROR(WarmUp());
    if (absl::StatusOr<bool> leaves = LeavesState(); !leaves.ok() || (*leaves && !knew)) {
      if (!leaves.ok()) return leaves.status();
      leaves_state_ = true;
      continue;
    }
    if (absl::StatusOr<bool> fine = MeasurePairs(); !fine.ok() || !*fine) return fine.status();
    again = leaves_state_ && !knew;  // a later call left what the first ones did not
  }
  if (!EventsAreBelieved()) return absl::OkStatus();
  if (absl::StatusOr<bool> fine = CheckWallClock(); !fine.ok() || !*fine) return fine.status();
  if (absl::StatusOr<bool> fine = CheckUntouched(); !fine.ok() || !*fine) return fine.status();
  *reply->mutable_compare() = result_;
  return absl::OkStatus();
}

absl::Status Comparer::FindSides() {
  const auto add = [&](Side& side, const std::string& module, const v1::Plan& plan) {
    absl::StatusOr<Module*> loaded = gpu_.FindModule(module);
    if (!loaded.ok()) return loaded.status();
    side.plan = &plan;
    side.cubin = &(*loaded)->cubin();
    large_ |= (*loaded)->bytes() > kLargeModule;
    const absl::StatusOr<int> local_bytes = (*loaded)->LocalBytes(plan.launches());
    if (!local_bytes.ok()) return local_bytes.status();
    side.local_bytes = *local_bytes;
    const absl::StatusOr<bool> hidden = (*loaded)->HasHiddenGlobals();
    if (!hidden.ok()) return hidden.status();
    side.hidden_globals = *hidden;
    local_bytes_ = std::max(local_bytes_, *local_bytes);
    PAWL_RETURN_IF_ERROR(CheckPlan(*side.plan));
    // Both in the same way: a graph has a cost of its own.
    cold_by_graph_ |= CountLaunches(*side.plan) > kQueuedLaunches;
    sides_.push_back(&side);
    return absl::OkStatus();
  };
  PAWL_RETURN_IF_ERROR(add(candidate_, request_.candidate(), request_.candidate_plan()));
  PAWL_RETURN_IF_ERROR(add(parent_, request_.parent(), request_.parent_plan()));
  if (has_witness()) PAWL_RETURN_IF_ERROR(add(witness_, request_.witness(), request_.witness_plan()));
  others_ = request_.parent_plan();
  for (int i = 0; has_witness() && i < others_.tensors_size(); ++i) {
    const v1::PlanTensor& tensor = request_.witness_plan().tensors(i);
    if (TensorBytes(tensor) > TensorBytes(others_.tensors(i))) *others_.mutable_tensors(i) = tensor;
  }
  absl::StatusOr<Module*> setup = gpu_.FindSetup(*candidate_.plan, request_.setup());
  if (!setup.ok()) return setup.status();
  setup_ = *setup;
  for (const v1::PlanTensor& tensor : candidate_.plan->tensors()) has_static_ |= tensor.is_static();
  // What a call remembers, or makes of a part of its inputs, must not serve a later one of the same replay, which may
  // be told by shared memory where it lies: no two have the same. An entry of a pool has all of a call's inputs, those
  // that problem.py leaves to their fills included.
  inputs_repeat_ = CallsShareInputs(*candidate_.plan);
  if (inputs_repeat_) {
    most_sets_ = 1;
  } else if (!request_.pool().empty()) {
    most_sets_ = request_.entries();
  }
  inputs_repeat_ |= !request_.pool().empty();
  return absl::OkStatus();
}

bool Comparer::CanBeCleared() {
  const int most = Support::kDirtyStack - Support::kCallStack;
  const bool deep = candidate_.local_bytes > most;
  if (!inputs_repeat_ || (!deep && !candidate_.hidden_globals)) return true;
  v1::Failure* failure = reply_->mutable_failure();
  failure->set_stage(v1::STAGE_MEASURE);
  failure->set_check(v1::CHECK_LAUNCH_LIMITS);
  failure->set_size(candidate_.plan->size());
  failure->set_message(absl::StrCat(
      "calls share inputs here (problem.py, files, static tensors), so that what a call leaves behind is cleared "
      "before the "
      "next, which is not possible for ",
      deep ? absl::StrCat("a stack of ", candidate_.local_bytes, " bytes a thread: at most ", most, " will do")
           : "a global variable that the driver does not know by its name: declare it with __device__"));
  return false;
}

std::vector<Comparer::Side*> Comparer::Shuffled() {
  std::vector<Side*> sides = sides_;
  std::shuffle(sides.begin(), sides.end(), random_);
  return sides;
}

std::vector<Comparer::Side*> Comparer::Seated() {
  std::vector<Side*> sides = {&candidate_, &parent_};
  if (!request_.candidate_first()) std::swap(sides[0], sides[1]);
  if (has_witness()) sides.insert(sides.begin() + static_cast<ptrdiff_t>(random_.Below(3)), &witness_);
  return sides;
}

absl::StatusOr<bool> Comparer::MeasurePair(v1::TimingMode mode, v1::PairSample* pair, std::string* disturbance) {
  PAWL_RETURN_IF_ERROR(Place());
  unseen_.BeginBlock();
  const int count = mode == v1::TIMING_MODE_COLD ? cold_calls_ : replays_;
  std::vector<Side*> order = Shuffled();
  std::map<const Side*, std::vector<double>> times;
  std::vector<double> anchors;
  std::map<const Side*, uint64_t> brief;  // before which replay of a side one ends early
  for (const Side* side : sides_) brief[side] = random_.Below(2 * static_cast<uint64_t>(count));
  // Times may depend on the data: the replays of one side have the same entries of a pool as those of another.
  std::vector<std::vector<uint32_t>> entries;
  for (int i = 0; i < 2 * count; ++i) entries.push_back(DrawTimedEntries(mode));
  for (int half = 0; half < 2; ++half) {
    absl::StatusOr<double> anchor = AnchorUs();
    if (!anchor.ok()) return anchor.status();
    anchors.push_back(*anchor);
    for (Side* side : order) {
      for (int replay = 0; replay < count; ++replay) {
        if (const auto early = brief.find(side); early != brief.end() && early->second == times[side].size()) {
          brief.erase(early);
          if (absl::StatusOr<bool> fine = ReplayBriefly(*side, mode); !fine.ok() || !*fine) return fine;
        }
        double us = 0;
        absl::StatusOr<bool> fine = Measure(*side, mode, entries[times[side].size()], &us);
        if (!fine.ok() || !*fine) return fine;
        times[side].push_back(us);
      }
    }
    std::reverse(order.begin(), order.end());
  }
  // Inputs differ from replay to replay, and a kernel may be slow with some of them: none is left out, as the median
  // would. On an H200 no replay in 27,000 was off by more than 13 %, and means of six vary less than their medians.
  pair->set_parent_us(Mean(times[&parent_]));
  pair->set_candidate_us(Mean(times[&candidate_]));
  pair->set_witness_us(Mean(times[&witness_]));
  pair->set_anchor_us(Median(anchors));
  pair->set_single(leaves_state_);
  pair->set_calls(calls_);
  pair->set_protocol(kTimingProtocol);
  if (std::max(anchors[0], anchors[1]) > std::min(anchors[0], anchors[1]) * (1 + kAloneOnGpu)) {
    *disturbance = "Pawl's own kernel took longer at times: stop other work on the GPU";
  }
  pair->set_log_ratio(std::log(pair->parent_us() / pair->candidate_us()));
  return true;
}

void Comparer::Discard(const std::string& why) {
  result_.set_discarded(result_.discarded() + 1);
  const auto& known = result_.disturbances();
  if (std::find(known.begin(), known.end(), why) == known.end()) result_.add_disturbances(why);
}

absl::StatusOr<bool> Comparer::MeasurePairs() {
  const bool cold = request_.deciding() == v1::TIMING_MODE_COLD;
  const v1::TimingMode deciding = cold ? v1::TIMING_MODE_COLD : v1::TIMING_MODE_WARM;
  std::vector<double> parent, candidate;
  const auto sure = [&] {
    const auto& pairs = result_.pairs();
    return request_.sure_pairs() > 0 && pairs.size() >= request_.sure_pairs() &&
           std::all_of(pairs.begin(), pairs.end(),
                       [&](const v1::PairSample& pair) { return pair.log_ratio() < request_.sure_below(); });
  };
  int untimed = 0;
  double untimed_seconds = 0;
  v1::GpuState before = gpu_.telemetry.Read();
  while (result_.pairs_size() < request_.pairs() && result_.discarded() < kMaxDiscarded && !sure()) {
    v1::PairSample pair;
    std::string disturbance;
    const auto entry_uses = entry_uses_;
    if (absl::StatusOr<bool> fine = MeasurePair(deciding, &pair, &disturbance); !fine.ok() || !*fine) return fine;
    if (absl::StatusOr<bool> leaves = LeavesState(); !leaves.ok() || (*leaves && !leaves_state_)) {
      leaves_state_ = leaves.ok();
      return leaves;
    }
    *pair.mutable_before() = before;
    *pair.mutable_after() = before = gpu_.telemetry.Read();
    if (const std::string changed = DisturbanceBetween(pair.before(), pair.after()); !changed.empty()) {
      disturbance = changed;
    }
    if (!disturbance.empty()) {
      entry_uses_ = entry_uses;  // what is thrown away does not count
      Discard(disturbance);
      continue;
    }
    parent.push_back(pair.parent_us());
    candidate.push_back(pair.candidate_us());
    *result_.add_pairs() = pair;
    unseen_.EndBlock();
    // After the pair: before it, they would warm the candidate's code and not the parent's.
    const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    const int due = untimed_ * result_.pairs_size() / request_.pairs();
    for (; untimed < due && untimed_seconds + SecondsSince(start) < kMostUntimed; ++untimed) {
      double us = 0;
      if (absl::StatusOr<bool> fine = Measure(candidate_, deciding, DrawEntries(), &us); !fine.ok() || !*fine) {
        return fine;
      }
    }
    untimed_seconds += SecondsSince(start);
    if (untimed_ > 0) before = gpu_.telemetry.Read();
  }
  // The other time, for the record. Some of its calls are checked as well.
  keep_share_ = std::max(keep_share_, cold ? 1.0 / (2 * replays_) : 1.0 / cold_calls_);
  v1::PairSample beside;
  std::string ignored;  // it decides nothing
  absl::StatusOr<bool> fine = MeasurePair(cold ? v1::TIMING_MODE_WARM : v1::TIMING_MODE_COLD, &beside, &ignored);
  if (!fine.ok() || !*fine) return fine;
  result_.set_parent_warm_us(cold ? beside.parent_us() : Median(parent));
  result_.set_candidate_warm_us(cold ? beside.candidate_us() : Median(candidate));
  result_.set_parent_cold_us(cold ? Median(parent) : beside.parent_us());
  result_.set_candidate_cold_us(cold ? Median(candidate) : beside.candidate_us());
  // A draw that kept nothing must not pass for a check.
  keep_share_ = 1;
  while (timed_checks_ == 0) {
    double us = 0;
    if (fine = Measure(candidate_, deciding, DrawEntries(), &us); !fine.ok() || !*fine) return fine;
  }
  return true;
}

}  // namespace pawl
