#include "worker/runner/comparer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "worker/runner/call.h"

namespace pawl {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + middle)) / 2;
}

}  // namespace

Comparer::Comparer(GpuContext& gpu, const v1::CompareRequest& request)
    : gpu_(gpu), request_(request), random_(request.seed()) {}

Comparer::~Comparer() {
  for (Side* side : {&candidate_, &parent_}) {
    for (CUgraphExec graph : side->graphs) Cuda().GraphExecDestroy(graph);
  }
}

absl::Status Comparer::Run(v1::RunnerReply* reply) {
  reply_ = reply;
  PAWL_RETURN_IF_ERROR(Prepare());
  PAWL_RETURN_IF_ERROR(WarmUp());
  PAWL_RETURN_IF_ERROR(MeasurePairs());
  if (absl::StatusOr<bool> fine = CheckUntouched(); !fine.ok() || !*fine) return fine.status();
  if (absl::StatusOr<bool> fine = CheckWallClock(); !fine.ok() || !*fine) return fine.status();
  PAWL_RETURN_IF_ERROR(Deliver());
  *reply->mutable_compare() = result_;
  return absl::OkStatus();
}

absl::Status Comparer::Prepare() {
  absl::StatusOr<Module*> candidate = gpu_.FindModule(request_.candidate());
  if (!candidate.ok()) return candidate.status();
  absl::StatusOr<Module*> parent = gpu_.FindModule(request_.parent());
  if (!parent.ok()) return parent.status();
  candidate_.module = *candidate;
  candidate_.plan = &request_.candidate_plan();
  parent_.module = *parent;
  parent_.plan = &request_.parent_plan();
  if (candidate_.plan->tensors_size() != parent_.plan->tensors_size()) {
    return absl::FailedPreconditionError("candidate and parent have different tensors: they can't share buffers");
  }
  arena_ = Arena::For(*candidate_.plan, *parent_.plan);
  PAWL_RETURN_IF_ERROR(gpu_.ReserveEvents(std::max(request_.measurements(), 16)));
  PAWL_RETURN_IF_ERROR(gpu_.flush.Reserve(2 * gpu_.gpu.l2_bytes()));

  PAWL_RETURN_IF_ERROR(gpu_.arena.Reserve(arena_.bytes()));
  std::vector<Segment> first = arena_.Inputs(BaseOf(0), 0);
  Append(&first, arena_.Poisons(BaseOf(0), 0));
  PAWL_RETURN_IF_ERROR(refill_first_.Set(first));
  double fastest = INFINITY;
  for (Side* side : {&candidate_, &parent_}) {
    absl::StatusOr<double> us = RoughCallUs(*side);
    if (!us.ok()) return us.status();
    fastest = std::min(fastest, *us);
  }
  // Enough calls that a replay is long against the events' resolution, few enough to refill between replays.
  const int64_t room = std::max<int64_t>(1, (int64_t{4} << 30) / std::max<int64_t>(1, arena_.bytes()));
  calls_ = static_cast<int>(std::clamp<int64_t>(std::ceil(100 / fastest), 1, std::min<int64_t>(kMaxCalls, room)));
  result_.set_calls_per_graph(calls_);

  PAWL_RETURN_IF_ERROR(gpu_.arena.Reserve(arena_.bytes() * calls_));
  PAWL_RETURN_IF_ERROR(gpu_.staging.Reserve(OutputBytes(*candidate_.plan) * (calls_ + 1)));
  std::vector<Segment> all;
  for (int call = 0; call < calls_; ++call) {
    Append(&all, arena_.Inputs(BaseOf(call), call));
    Append(&all, arena_.Poisons(BaseOf(call), call));
  }
  PAWL_RETURN_IF_ERROR(refill_.Set(all));
  first = arena_.Inputs(BaseOf(0), 0);
  Append(&first, arena_.Poisons(BaseOf(0), 0));
  PAWL_RETURN_IF_ERROR(refill_first_.Set(first));

  std::vector<int> order(calls_);
  std::iota(order.begin(), order.end(), 0);
  for (int graph = 0; graph < (calls_ > 1 ? 2 : 1); ++graph) {
    std::shuffle(order.begin(), order.end(), random_);
    PAWL_RETURN_IF_ERROR(Capture(candidate_, order));
    PAWL_RETURN_IF_ERROR(Capture(parent_, order));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> Comparer::RoughCallUs(Side& side) {
  float best = INFINITY;
  for (int i = 0; i < 3; ++i) {
    PAWL_RETURN_IF_ERROR(gpu_.support.Fill(refill_first_, random_()));
    PAWL_RETURN_IF_ERROR(gpu_.support.Hold(20'000));
    PAWL_CUDA(EventRecord(gpu_.starts[0], gpu_.stream));
    PAWL_RETURN_IF_ERROR(side.module->Call(*side.plan, arena_, BaseOf(0), gpu_.stream));
    PAWL_CUDA(EventRecord(gpu_.stops[0], gpu_.stream));
    PAWL_CUDA(CtxSynchronize());
    float ms = 0;
    PAWL_CUDA(EventElapsedTime(&ms, gpu_.starts[0], gpu_.stops[0]));
    best = std::min(best, ms);
  }
  return std::max(0.5, best * 1e3);
}

absl::Status Comparer::Capture(Side& side, const std::vector<int>& order) {
  CUgraph graph;
  PAWL_CUDA(StreamBeginCapture(gpu_.stream, kCaptureRelaxed));
  absl::Status called;
  for (int call : order) {
    called = side.module->Call(*side.plan, arena_, BaseOf(call), gpu_.stream);
    if (!called.ok()) break;
  }
  PAWL_CUDA(StreamEndCapture(gpu_.stream, &graph));
  if (!called.ok()) return called;
  CUgraphExec executable;
  PAWL_CUDA(GraphInstantiate(&executable, graph, 0));
  side.graphs.push_back(executable);
  PAWL_CUDA(GraphDestroy(graph));
  PAWL_CUDA(GraphUpload(executable, gpu_.stream));
  return absl::OkStatus();
}

absl::Status Comparer::WarmUp() {
  // An idle GPU needs some tens of milliseconds of work to reach its clocks.
  const Clock::time_point start = Clock::now();
  while (SecondsSince(start) < 0.03) {
    for (Side* side : {&parent_, &candidate_}) {
      absl::StatusOr<std::vector<double>> times = Measure(*side, v1::TIMING_MODE_WARM, 4, -1);
      if (!times.ok()) return times.status();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> Comparer::Measure(Side& side, v1::TimingMode mode, int count, int check_at) {
  const bool cold = mode == v1::TIMING_MODE_COLD;
  PAWL_CUDA(CtxResetPersistingL2Cache());
  // The host queues ahead of the GPU while it holds: no measured call waits for a launch.
  PAWL_RETURN_IF_ERROR(gpu_.support.Hold(60'000));
  for (int i = 0; i < count; ++i) {
    const uint64_t seed = random_();
    PAWL_RETURN_IF_ERROR(gpu_.support.Fill(cold ? refill_first_ : refill_, seed));
    if (cold) PAWL_CUDA(MemsetD8Async(gpu_.flush.address(), i, gpu_.flush.bytes(), gpu_.stream));
    PAWL_CUDA(EventRecord(gpu_.starts[i], gpu_.stream));
    if (cold) {
      PAWL_RETURN_IF_ERROR(side.module->Call(*side.plan, arena_, BaseOf(0), gpu_.stream));
    } else {
      PAWL_CUDA(GraphLaunch(side.graphs[random_() % side.graphs.size()], gpu_.stream));
    }
    PAWL_CUDA(EventRecord(gpu_.stops[i], gpu_.stream));
    if (i != check_at) continue;
    const uint64_t call_bytes = OutputBytes(*side.plan);
    std::vector<uint64_t>& staged = cold ? staged_cold_ : staged_graph_;
    staged.clear();
    for (int call = 0; call < (cold ? 1 : calls_); ++call) {
      const uint64_t slot = cold ? calls_ : call;
      PAWL_RETURN_IF_ERROR(StageOutputs(gpu_, *side.plan, arena_, BaseOf(call), slot * call_bytes));
      staged.push_back(CallSeed(seed, call));
    }
  }
  // Of the whole device: work a candidate hid behind the stop event would show in the wall clock.
  PAWL_CUDA(CtxSynchronize());
  std::vector<double> us;
  for (int i = 0; i < count; ++i) {
    float ms = 0;
    PAWL_CUDA(EventElapsedTime(&ms, gpu_.starts[i], gpu_.stops[i]));
    us.push_back(ms * 1e3 / (cold ? 1 : calls_));
  }
  return us;
}

absl::StatusOr<v1::PairSample> Comparer::MeasurePair(v1::TimingMode mode, int count, bool check,
                                                     std::vector<double>* series) {
  const int half = (count + 1) / 2;
  const int check_at = check ? static_cast<int>(random_() % half) : -1;
  const bool check_first = random_() % 2 == 0;
  std::vector<double> parent, candidate;
  const struct {
    Side& side;
    std::vector<double>& times;
    int check_at;
  } segments[] = {{parent_, parent, -1},
                  {candidate_, candidate, check_first ? check_at : -1},
                  {candidate_, candidate, check_first ? -1 : check_at},
                  {parent_, parent, -1}};
  for (const auto& segment : segments) {
    absl::StatusOr<std::vector<double>> times = Measure(segment.side, mode, half, segment.check_at);
    if (!times.ok()) return times.status();
    segment.times.insert(segment.times.end(), times->begin(), times->end());
    if (series != nullptr) series->insert(series->end(), times->begin(), times->end());
  }
  v1::PairSample pair;
  pair.set_parent_us(Median(parent));
  pair.set_candidate_us(Median(candidate));
  pair.set_log_ratio(std::log(pair.parent_us() / pair.candidate_us()));
  return pair;
}

absl::Status Comparer::MeasurePairs() {
  const v1::TimingMode deciding =
      request_.deciding() == v1::TIMING_MODE_COLD ? v1::TIMING_MODE_COLD : v1::TIMING_MODE_WARM;
  const v1::TimingMode other = deciding == v1::TIMING_MODE_COLD ? v1::TIMING_MODE_WARM : v1::TIMING_MODE_COLD;
  // Early enough to be reached even when many pairs are thrown away.
  const int check_pair = static_cast<int>(random_() % std::clamp(request_.pairs(), 1, kMaxDiscarded));
  std::vector<double> parent, candidate;
  v1::GpuState before = gpu_.telemetry.Read();
  for (int attempt = 0; result_.pairs_size() < request_.pairs() && result_.discarded() < kMaxDiscarded; ++attempt) {
    std::vector<double> series;
    absl::StatusOr<v1::PairSample> pair = MeasurePair(deciding, request_.measurements(), attempt == check_pair,
                                                      request_.keep_series() ? &series : nullptr);
    if (!pair.ok()) return pair.status();
    *pair->mutable_before() = before;
    *pair->mutable_after() = before = gpu_.telemetry.Read();
    if (!SteadyBetween(pair->before(), pair->after())) {
      result_.set_discarded(result_.discarded() + 1);
      continue;
    }
    parent.push_back(pair->parent_us());
    candidate.push_back(pair->candidate_us());
    result_.mutable_series()->Add(series.begin(), series.end());
    *result_.add_pairs() = *pair;
  }
  absl::StatusOr<v1::PairSample> beside = MeasurePair(other, request_.measurements(), true, nullptr);
  if (!beside.ok()) return beside.status();
  const bool cold = deciding == v1::TIMING_MODE_COLD;
  result_.set_parent_warm_us(cold ? beside->parent_us() : Median(parent));
  result_.set_candidate_warm_us(cold ? beside->candidate_us() : Median(candidate));
  result_.set_parent_cold_us(cold ? Median(parent) : beside->parent_us());
  result_.set_candidate_cold_us(cold ? Median(candidate) : beside->candidate_us());
  return absl::OkStatus();
}

absl::StatusOr<bool> Comparer::CheckUntouched() {
  const uint64_t seed = random_();
  const int touched = static_cast<int>(random_() % calls_);
  std::vector<Segment> kept;
  for (int call = 0; call < calls_; ++call) {
    Append(&kept, arena_.Inputs(BaseOf(call), call));
    Append(&kept, arena_.Bands(BaseOf(call), call));
    if (call != touched) Append(&kept, arena_.Poisons(BaseOf(call), call));
  }
  SegmentTable table;
  PAWL_RETURN_IF_ERROR(table.Set(kept));
  PAWL_RETURN_IF_ERROR(gpu_.support.Fill(refill_, seed));
  PAWL_RETURN_IF_ERROR(gpu_.support.Fill(table, seed));
  PAWL_RETURN_IF_ERROR(candidate_.module->Call(*candidate_.plan, arena_, BaseOf(touched), gpu_.stream));
  PAWL_CUDA(CtxSynchronize());
  absl::StatusOr<std::vector<ChangedByte>> changed = gpu_.support.Verify(table, seed);
  if (!changed.ok()) return changed.status();
  if (changed->empty()) return true;
  const Segment& segment = table.segments()[changed->front().segment];
  v1::Failure* failure = reply_->mutable_failure();
  failure->set_stage(v1::STAGE_MEASURE);
  failure->set_check(v1::CHECK_UNTOUCHED);
  failure->set_size(candidate_.plan->size());
  failure->set_message(absl::StrCat(segment.call == static_cast<uint32_t>(touched)
                                        ? "a call after many changed what is not its output: "
                                        : "one call changed the buffers of another: ",
                                    arena_.Describe(BaseOf(segment.call), segment, changed->front().offset)));
  return false;
}

absl::StatusOr<bool> Comparer::CheckWallClock() {
  double wall_us = 0, gpu_us = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {  // a busy host can make one attempt look bad
    PAWL_RETURN_IF_ERROR(gpu_.support.Fill(refill_, random_()));
    PAWL_CUDA(CtxSynchronize());
    const Clock::time_point start = Clock::now();
    PAWL_CUDA(EventRecord(gpu_.starts[0], gpu_.stream));
    PAWL_CUDA(GraphLaunch(candidate_.graphs[0], gpu_.stream));
    PAWL_CUDA(EventRecord(gpu_.stops[0], gpu_.stream));
    PAWL_CUDA(CtxSynchronize());
    wall_us = SecondsSince(start) * 1e6;
    float ms = 0;
    PAWL_CUDA(EventElapsedTime(&ms, gpu_.starts[0], gpu_.stops[0]));
    gpu_us = ms * 1e3;
    if (gpu_us <= wall_us * 1.02 + 2 && wall_us <= gpu_us * 1.5 + 500) return true;
  }
  v1::Failure* failure = reply_->mutable_failure();
  failure->set_stage(v1::STAGE_MEASURE);
  failure->set_check(v1::CHECK_WALL_CLOCK);
  failure->set_size(candidate_.plan->size());
  failure->set_message(absl::StrCat("the GPU's events say ", gpu_us, " us, the wall clock ", wall_us,
                                    " us: work runs outside of what is timed, or the host is overloaded"));
  return false;
}

absl::Status Comparer::Deliver() {
  const uint64_t call_bytes = OutputBytes(*candidate_.plan);
  if (staged_graph_.empty() || staged_cold_.empty()) return absl::InternalError("no timed call was set aside to check");
  PAWL_RETURN_IF_ERROR(gpu_.shared.Reserve(call_bytes * (calls_ + 1)));
  PAWL_CUDA(MemcpyDtoH(gpu_.shared.data(), gpu_.staging.address(), call_bytes * (calls_ + 1)));
  result_.mutable_checked_seeds()->Add(staged_graph_.begin(), staged_graph_.end());
  result_.mutable_checked_seeds()->Add(staged_cold_.begin(), staged_cold_.end());
  return absl::OkStatus();
}

}  // namespace pawl
