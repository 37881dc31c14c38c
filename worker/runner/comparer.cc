#include "worker/runner/comparer.h"

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
#include "worker/runner/call.h"
#include "worker/runner/wall_clock.h"

namespace pawl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kRegionBytes = uint64_t{1} << 30;     // over which tensors are scattered, where there is room
constexpr uint64_t kMaxRegionBytes = uint64_t{4} << 30;  // for more than one set of tensors
constexpr uint64_t kMaxKeptBytes = uint64_t{4} << 30;    // of outputs, beside those that are kept as a whole
constexpr double kGraphUs = 100;                         // long against the events' resolution
constexpr double kLongGraphUs = 400;                     // the same for variants that are several times as fast
constexpr double kBlockUs = 6000;                        // of replays in a quarter of a block: fewer where one is long
constexpr double kMostUntimed = 20;                      // seconds of calls that are made to be checked only
constexpr int64_t kMaxNodes = 2000;                      // of a graph of more than one call
constexpr int64_t kQueuedLaunches = 8;                   // that the host queues while the GPU holds
constexpr double kBriefChecks = 0.1;                     // replays that end early and are checked, of checked calls
constexpr double kOtherChecks = 2;                       // such replays that are checked, for each of the other inputs
constexpr int kColdCalls = 8;                            // in a quarter of a block
constexpr size_t kGenerations = 4;                       // of loaded code that stay beside the one in use
constexpr int64_t kLargeModule = int64_t{64} << 20;      // one of these is not kept beside another
constexpr double kMinWarmUp = 0.02, kMaxWarmUp = 0.4;    // seconds
// By which the anchor's times at both ends of a block differ where others use the GPU; by chance, one block in 1000.
constexpr double kAloneOnGpu = 0.1;
constexpr double kSteady = 0.003;  // largest change of the anchor's time once the GPU is warm

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

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

struct OwnedGraph {
  ~OwnedGraph() {
    if (graph != nullptr) Cuda().GraphExecDestroy(graph);
  }
  CUgraphExec graph = nullptr;
};

}  // namespace

Comparer::Comparer(GpuContext& gpu, const v1::CompareRequest& request) : gpu_(gpu), request_(request) {}

Comparer::~Comparer() { DropGraphs(); }

void Comparer::DropGraphs() {
  for (Side* side : {&candidate_, &parent_, &witness_}) {
    for (CUgraphExec graph : side->graphs) Cuda().GraphExecDestroy(graph);
    side->graphs.clear();
    if (side->brief != nullptr) Cuda().GraphExecDestroy(side->brief);
    side->brief = nullptr;
  }
}

absl::Status Comparer::Run(v1::RunnerReply* reply) {
  reply_ = reply;
  leaves_state_ = request_.single();
  PAWL_RETURN_IF_ERROR(FindSides());
  if (!CanBeCleared()) return absl::OkStatus();
  for (bool again = true; again;) {
    result_.Clear();
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

absl::Status Comparer::LoadSides() {
  DropGraphs();
  const size_t kept = large_ ? 0 : kGenerations;
  for (Side* side : Shuffled()) {
    while (side->modules.size() > kept) side->modules.pop_front();
    side->modules.push_back(std::make_unique<Module>());
    PAWL_RETURN_IF_ERROR(side->modules.back()->Load(*side->cubin));
    PAWL_RETURN_IF_ERROR(side->modules.back()->FindGlobals());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Comparer::LeavesState() {
  for (const Side* side : sides_) {
    absl::StatusOr<bool> changed = side->modules.back()->GlobalsChanged();
    if (!changed.ok() || *changed) return changed;
  }
  return false;
}

absl::Status Comparer::ReserveRegion(int sets) {
  size_t free = 0, total = 0;
  PAWL_CUDA(MemGetInfo(&free, &total));
  const uint64_t room = (free + gpu_.arena.bytes()) / 2;
  const uint64_t needed = std::max(PlacementBytes(*candidate_.plan, others_, sets),
                                   Arena::For(*candidate_.plan, others_).bytes() * static_cast<uint64_t>(sets));
  return gpu_.arena.Reserve(std::max(needed, std::min(room, std::max(kRegionBytes, needed + needed / 4))));
}

absl::Status Comparer::Prepare() {
  const int tensors = request_.candidate_plan().tensors_size();
  if (tensors != request_.parent_plan().tensors_size() ||
      (has_witness() && tensors != request_.witness_plan().tensors_size())) {
    return absl::FailedPreconditionError("the variants have different tensors: they can't share buffers");
  }
  calls_ = sets_ = 1;
  PAWL_RETURN_IF_ERROR(gpu_.ReserveEvents(1));
  PAWL_RETURN_IF_ERROR(gpu_.flush.Reserve(2 * gpu_.gpu.l2_bytes()));
  PAWL_RETURN_IF_ERROR(ReserveRegion(1));
  PAWL_RETURN_IF_ERROR(Place());
  double fastest = INFINITY, slowest = 0;
  for (Side* side : Seated()) {
    absl::StatusOr<double> us = RoughCallUs(*side);
    if (!us.ok()) return us.status();
    fastest = std::min(fastest, *us);
    slowest = std::max(slowest, *us);
  }
  // Enough calls that a replay is long against the events' resolution, few enough to refill between replays.
  const uint64_t set_bytes = std::max<uint64_t>(1, PlacementBytes(*candidate_.plan, others_, 1));
  const int64_t room = std::min<int64_t>(
      most_sets_, static_cast<int64_t>(std::min(kMaxRegionBytes, gpu_.gpu.memory_bytes() / uint64_t{4}) / set_bytes));
  int64_t nodes = 1;
  for (const Side* side : sides_) nodes = std::max<int64_t>(nodes, CountLaunches(*side->plan));
  // Times with another number of calls do not compare: where the L2 holds the tensors of many, faster variants keep it.
  const double graph_us =
      set_bytes * kMaxCalls <= static_cast<uint64_t>(gpu_.gpu.l2_bytes()) / 4 ? kLongGraphUs : kGraphUs;
  const int64_t most_calls = leaves_state_ ? 1 : std::min<int64_t>(kMaxCalls, std::max<int64_t>(1, kMaxNodes / nodes));
  const int64_t most_here = std::clamp<int64_t>(room * 4 / 5, 1, most_calls);
  const double wanted = request_.calls() > 0 ? request_.calls() : std::ceil(graph_us / fastest);
  calls_ = static_cast<int>(std::clamp<double>(wanted, 1, static_cast<double>(most_here)));
  sets_ =
      static_cast<int>(std::clamp<int64_t>(calls_ + std::max(1, calls_ / 4), calls_, std::max<int64_t>(room, calls_)));
  PAWL_RETURN_IF_ERROR(ReserveRegion(sets_));
  const int most = std::max(1, (request_.measurements() + 1) / 2);
  replays_ = static_cast<int>(std::clamp<double>(kBlockUs / (slowest * calls_), 1, most));
  result_.set_most_calls(static_cast<int32_t>(most_here));

  const bool cold = request_.deciding() == v1::TIMING_MODE_COLD;
  const double timed = 2.0 * std::max(1, request_.pairs()) * (cold ? kColdCalls : replays_ * calls_);
  keep_share_ = std::min(1.0, std::max(1, request_.checked_calls()) / timed);
  // Where any are made, all calls are checked.
  untimed_ = static_cast<int>(std::ceil(std::max(0.0, request_.needed_calls() - timed) / (cold ? 1 : calls_)));
  const double brief_checks =
      std::max({1.0, kBriefChecks * request_.checked_calls(), kOtherChecks * request_.others_size()});
  brief_share_ = brief_checks / std::max(1, request_.pairs());
  whole_bytes_ = OutputBytes(*candidate_.plan);
  kept_bytes_ = request_.in_pieces() ? PieceBytes(*candidate_.plan) : whole_bytes_;
  kept_at_ = 0;
  whole_left_ = request_.whole_calls();
  whole_share_ = std::min(1.0, 2.0 * whole_left_ / std::max(1, request_.needed_calls()));
  max_kept_ = static_cast<int>(std::clamp<uint64_t>(kMaxKeptBytes / std::max<uint64_t>(1, kept_bytes_), 1, 4096));
  return Place();
}

absl::StatusOr<double> Comparer::RoughCallUs(Side& side) {
  float best = INFINITY;
  for (int i = 0; i < 3; ++i) {
    PAWL_RETURN_IF_ERROR(Refill(RandomKey()));
    PAWL_RETURN_IF_ERROR(gpu_.support.Hold(20'000));
    PAWL_CUDA(EventRecord(gpu_.starts[0], gpu_.stream));
    PAWL_RETURN_IF_ERROR(CallSet(side, 0));
    PAWL_CUDA(EventRecord(gpu_.stops[0], gpu_.stream));
    PAWL_CUDA(CtxSynchronize());
    float ms = 0;
    PAWL_CUDA(EventElapsedTime(&ms, gpu_.starts[0], gpu_.stops[0]));
    best = std::min(best, ms);
    // After each: what one call sets and the next one sets back shows after the first.
    const absl::StatusOr<bool> changed = side.modules.back()->GlobalsChanged();
    if (!changed.ok()) return changed.status();
    leaves_state_ |= *changed;
  }
  return std::max(0.5, best * 1e3);
}

absl::Status Comparer::Place() {
  PAWL_RETURN_IF_ERROR(LoadSides());
  if (styles_.empty()) {
    styles_ = {PlacementStyle::kPacked, PlacementStyle::kGaps, PlacementStyle::kScattered};
    std::shuffle(styles_.begin(), styles_.end(), random_);
  }
  const PlacementStyle style = styles_.back();
  styles_.pop_back();
  arenas_ = DrawPlacement(*candidate_.plan, others_, sets_, gpu_.arena.bytes(), style, random_);
  std::vector<int> order(sets_);
  std::iota(order.begin(), order.end(), 0);
  for (Use& use : uses_) {
    std::shuffle(order.begin(), order.end(), random_);
    use.order.assign(order.begin(), order.begin() + calls_);
    use.others.assign(order.begin() + calls_, order.end());
  }
  const std::vector<int>& whole = uses_[random_.Below(uses_.size())].order;
  const auto cut = whole.begin() + static_cast<ptrdiff_t>(1 + random_.Below(std::max(1, calls_ - 1)));
  brief_.order.assign(whole.begin(), cut);
  brief_.others.clear();
  for (int set = 0; set < sets_; ++set) {
    if (std::find(whole.begin(), cut, set) == cut) brief_.others.push_back(set);
  }
  for (Side* side : sides_) {
    side->structs.Clear();
    for (const Arena& arena : arenas_) side->structs.Add(*side->plan, arena.Addresses(region()));
    PAWL_RETURN_IF_ERROR(side->structs.Reserve());
  }
  draws_.assign(sets_, v1::InputDraw());
  entries_ = DrawEntries();
  PAWL_RETURN_IF_ERROR(SetTables(uses_[0].order));
  const std::vector<Side*> sides = Shuffled();
  for (const Use& use : uses_) {
    for (Side* side : sides) {
      absl::StatusOr<CUgraphExec> graph = Captured(*side, use.order);
      if (!graph.ok()) return graph.status();
      side->graphs.push_back(*graph);
    }
  }
  if (!has_brief()) return absl::OkStatus();
  for (Side* side : Shuffled()) {
    absl::StatusOr<CUgraphExec> graph = Captured(*side, brief_.order);
    if (!graph.ok()) return graph.status();
    side->brief = *graph;
  }
  return absl::OkStatus();
}

std::vector<uint32_t> Comparer::DrawEntries() {
  std::vector<uint32_t> entries(std::max<size_t>(1, request_.entries()));
  std::iota(entries.begin(), entries.end(), 0);
  std::shuffle(entries.begin(), entries.end(), random_);
  return entries;
}

std::vector<uint32_t> Comparer::DrawTimedEntries(v1::TimingMode mode) {
  std::vector<uint32_t> entries = DrawEntries();
  entry_uses_.resize(entries.size());
  std::stable_sort(entries.begin(), entries.end(),
                   [&](uint32_t a, uint32_t b) { return entry_uses_[a] < entry_uses_[b]; });
  const bool one = has_static_ || mode == v1::TIMING_MODE_COLD;
  const size_t used = std::min<size_t>(entries.size(), one ? 1 : calls_);
  for (size_t i = 0; i < used; ++i) ++entry_uses_[entries[i]];
  return entries;
}

absl::Status Comparer::SetTables(const std::vector<int>& order) {
  // As long as there are enough, no two sets have the same entry. Sets that share static tensors do.
  std::vector<uint32_t> entry_of(sets_, entries_[0]);
  if (!has_static_) {
    std::vector<int> sets = order;
    for (int set = 0; set < sets_; ++set) {
      if (std::find(order.begin(), order.end(), set) == order.end()) sets.push_back(set);
    }
    for (size_t i = 0; i < sets.size(); ++i) entry_of[sets[i]] = entries_[i % entries_.size()];
  }
  // Poison comes first, so that what a call finds in the L2 are its inputs, whatever scratch a variant asks for.
  std::vector<Segment> shared, poisons;  // shared: static inputs
  // Of each set: its inputs, what calls change in place, and all that calls change.
  std::vector<std::vector<Segment>> own(sets_), in_place(sets_), changed(sets_);
  for (int set = 0; set < sets_; ++set) {
    draws_[set].Clear();
    if (other_ != nullptr) {
      draws_[set].set_distribution(other_->distribution());
      draws_[set].set_magnitude(other_->magnitude());
    }
    if (!request_.pool().empty()) {
      draws_[set].set_pool(request_.pool());
      draws_[set].set_entry(entry_of[set]);
    }
    const absl::StatusOr<Sources> sources = gpu_.pools.SourcesOf(*candidate_.plan, draws_[set]);
    if (!sources.ok()) return sources.status();
    for (const Segment& segment : arenas_[set].Inputs(region(), set, draws_[set], *sources)) {
      if (segment.shared == 0) own[set].push_back(segment);
      if (segment.shared != 0 && set == 0) shared.push_back(segment);
    }
    in_place[set] = changed[set] = arenas_[set].InOuts(region(), set, draws_[set], *sources);
    for (const Segment& segment : arenas_[set].Poisons(region(), set)) {
      if (segment.shared == 0) changed[set].push_back(segment);
      if (segment.shared == 0 || set == 0) poisons.push_back(segment);  // shared: the setup launches write it
    }
  }
  std::vector<Segment> first = poisons, last;
  Append(&first, shared);
  for (int set = 0; set < sets_; ++set) {
    Append(&last, own[set]);
    Append(&last, in_place[set]);
  }
  if (!copies_static()) {  // one launch will do
    Append(&first, std::exchange(last, {}));
  }
  PAWL_RETURN_IF_ERROR(refill_.Set(first));
  PAWL_RETURN_IF_ERROR(refill_last_.Set(last));
  for (Use* use : {&uses_[0], &uses_[1], &brief_}) {
    std::vector<Segment> left_alone = shared;
    for (const int set : use->order) Append(&left_alone, own[set]);
    for (const int set : use->others) {
      Append(&left_alone, own[set]);
      Append(&left_alone, changed[set]);
    }
    PAWL_RETURN_IF_ERROR(use->left_alone.Set(left_alone));
  }
  return absl::OkStatus();
}

absl::Status Comparer::Renew(const std::vector<int>& order) {
  PAWL_CUDA(CtxSynchronize());  // warming up does not wait for what it launched
  // What a kernel remembers must not serve it again.
  if (inputs_repeat_) {
    PAWL_CUDA(MemsetD8Async(region(), static_cast<unsigned char>(random_.Below(256)), gpu_.arena.bytes(), gpu_.stream));
  }
  if (inputs_repeat_ || leaves_state_) {
    for (Side* side : sides_) PAWL_RETURN_IF_ERROR(side->modules.back()->ResetGlobals(gpu_.stream));
  }
  // Before every replay, whether or not its inputs are others: the time it takes says nothing.
  if (!request_.pool().empty() || request_.others_size() > 0) PAWL_RETURN_IF_ERROR(SetTables(order));
  for (const Side* side : sides_) PAWL_RETURN_IF_ERROR(side->structs.Upload());
  PAWL_CUDA(CtxSynchronize());
  return absl::OkStatus();
}

absl::Status Comparer::Fill(const Key& key) {
  PAWL_RETURN_IF_ERROR(gpu_.support.Fill(refill_, key));
  for (Side* side : sides_) {
    PAWL_RETURN_IF_ERROR(side->modules.back()->FillSymbols(*side->plan, arenas_[0].Addresses(region()), gpu_.stream));
  }
  if (setup_ != nullptr) {
    PAWL_RETURN_IF_ERROR(
        setup_->Launch(candidate_.plan->setup(), arenas_[0].Addresses(region()), candidate_.structs, gpu_.stream));
  }
  return refill_last_.segments().empty() ? absl::OkStatus() : gpu_.support.Fill(refill_last_, key);
}

absl::Status Comparer::Refill(const Key& key) {
  entries_ = DrawEntries();
  PAWL_RETURN_IF_ERROR(Renew(uses_[0].order));
  return Fill(key);
}

absl::Status Comparer::GetReady(const std::vector<int>& order, const Key& key, bool cold, uint64_t* set_up) {
  PAWL_RETURN_IF_ERROR(Renew(order));
  // Stacks before inputs: overwriting those takes the L2. Neither side finds what the other left.
  const auto fill = [&]() -> absl::Status {
    PAWL_RETURN_IF_ERROR(gpu_.support.Dirty(RandomKey(), local_bytes_));
    return Fill(key);
  };
  const bool early = copies_static() || set_up != nullptr;
  if (early) PAWL_RETURN_IF_ERROR(fill());  // queueing launches and copies may take longer than the GPU holds
  if (set_up != nullptr) {
    const absl::StatusOr<uint64_t> digest = DigestOfSetup();
    if (!digest.ok()) return digest.status();
    *set_up = *digest;
  }
  // The host queues what follows while the GPU holds: no measured call waits for a launch. Gaps are random.
  PAWL_RETURN_IF_ERROR(gpu_.support.Hold(25'000 + random_.Below(30'000)));
  if (!early) PAWL_RETURN_IF_ERROR(fill());
  if (cold) PAWL_CUDA(MemsetD8Async(gpu_.flush.address(), key.words[0] & 0xff, gpu_.flush.bytes(), gpu_.stream));
  return absl::OkStatus();
}

absl::Status Comparer::CallSet(Side& side, int set) {
  return side.modules.back()->Launch(side.plan->launches(), arenas_[set].Addresses(region()), side.structs,
                                     gpu_.stream);
}

absl::StatusOr<CUgraphExec> Comparer::Captured(Side& side, const std::vector<int>& order) {
  CUgraph graph;
  PAWL_CUDA(StreamBeginCapture(gpu_.stream, kCaptureRelaxed));
  absl::Status called;
  for (int set : order) {
    called = CallSet(side, set);
    if (!called.ok()) break;
  }
  const CUresult ended = Cuda().StreamEndCapture(gpu_.stream, &graph);
  if (!called.ok()) return called;
  if (ended != 0) return CudaStatus(ended, "StreamEndCapture");
  CUgraphExec executable;
  const CUresult made = Cuda().GraphInstantiate(&executable, graph, 0);
  Cuda().GraphDestroy(graph);
  if (made != 0) return CudaStatus(made, "GraphInstantiate");
  // No GraphUpload: what was uploaded ahead is launched 0.17 or 0.33 us faster a kernel, but not in every process, and
  // not before a second graph was launched (docs/verdicts.md).
  return executable;
}

absl::StatusOr<double> Comparer::AnchorUs() {
  PAWL_RETURN_IF_ERROR(gpu_.support.Hold(20'000));
  PAWL_CUDA(EventRecord(gpu_.starts[0], gpu_.stream));
  PAWL_RETURN_IF_ERROR(gpu_.support.Anchor());
  PAWL_CUDA(EventRecord(gpu_.stops[0], gpu_.stream));
  PAWL_CUDA(CtxSynchronize());
  float ms = 0;
  PAWL_CUDA(EventElapsedTime(&ms, gpu_.starts[0], gpu_.stops[0]));
  return ms * 1e3;
}

absl::Status Comparer::WarmUp() {
  const Clock::time_point start = Clock::now();
  std::vector<double> anchors;
  const auto steady = [&] {
    if (anchors.size() < 6) return false;
    const auto [low, high] = std::minmax_element(anchors.end() - 6, anchors.end());
    return *high <= *low * (1 + kSteady);
  };
  while (SecondsSince(start) < kMinWarmUp || (!steady() && SecondsSince(start) < kMaxWarmUp)) {
    for (Side* side : Seated()) {
      for (CUgraphExec graph : side->graphs) {
        PAWL_RETURN_IF_ERROR(Refill(RandomKey()));  // each call finds what it expects in tensors that it changes
        PAWL_CUDA(GraphLaunch(graph, gpu_.stream));
      }
    }
    absl::StatusOr<double> anchor = AnchorUs();
    if (!anchor.ok()) return anchor.status();
    anchors.push_back(*anchor);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Comparer::Measure(Side& side, v1::TimingMode mode, const std::vector<uint32_t>& entries,
                                       double* us) {
  const bool cold = mode == v1::TIMING_MODE_COLD;
  const size_t graph = random_.Below(uses_.size());
  Use& use = uses_[graph];
  const int set = use.order[random_.Below(calls_)];
  const std::vector<int> order = cold ? std::vector<int>{set} : use.order;
  const Key key = RandomKey();
  // More launches than the host can queue in the meantime are one graph.
  OwnedGraph single;
  if (cold && cold_by_graph_) {
    absl::StatusOr<CUgraphExec> captured = Captured(side, order);
    if (!captured.ok()) return captured.status();
    single.graph = *captured;
  }
  entries_ = entries;
  PAWL_RETURN_IF_ERROR(GetReady(order, key, cold));
  PAWL_CUDA(EventRecord(gpu_.starts[0], gpu_.stream));
  if (cold && single.graph == nullptr) {
    PAWL_RETURN_IF_ERROR(CallSet(side, set));
  } else {
    PAWL_CUDA(GraphLaunch(cold ? single.graph : side.graphs[graph], gpu_.stream));
  }
  PAWL_CUDA(EventRecord(gpu_.stops[0], gpu_.stream));
  // Of the whole device: work a candidate hid behind the stop event would show in the wall clock.
  PAWL_CUDA(CtxSynchronize());
  float ms = 0;
  PAWL_CUDA(EventElapsedTime(&ms, gpu_.starts[0], gpu_.stops[0]));
  *us = ms * 1e3 / (cold ? 1 : calls_);
  return SetAsideSome(side, order, use, key);
}

absl::Status Comparer::CallBriefly(Side& side, bool cold) {
  PAWL_CUDA(EventRecord(gpu_.starts[0], gpu_.stream));
  if (cold && !cold_by_graph_) {
    PAWL_RETURN_IF_ERROR(CallSet(side, brief_.order[0]));
  } else {
    PAWL_CUDA(GraphLaunch(side.brief, gpu_.stream));
  }
  PAWL_CUDA(EventRecord(gpu_.stops[0], gpu_.stream));
  PAWL_CUDA(CtxSynchronize());
  return absl::OkStatus();
}

absl::StatusOr<bool> Comparer::ReplayBriefly(Side& side, v1::TimingMode mode) {
  if (side.brief == nullptr) return true;
  const bool cold = mode == v1::TIMING_MODE_COLD;
  const Key key = RandomKey();
  if (others_left_.empty()) {
    others_left_.push_back(nullptr);
    for (const v1::OtherInputs& other : request_.others()) others_left_.push_back(&other);
    std::shuffle(others_left_.begin(), others_left_.end(), random_);
  }
  other_ = others_left_.back();
  entries_ = DrawEntries();
  uint64_t set_up = 0;
  PAWL_RETURN_IF_ERROR(GetReady(brief_.order, key, cold, setup_ == nullptr ? nullptr : &set_up));
  PAWL_RETURN_IF_ERROR(CallBriefly(side, cold));
  const absl::StatusOr<uint64_t> set_up_after = DigestOfSetup();
  if (!set_up_after.ok()) return set_up_after.status();
  if (set_up != *set_up_after && &side == &candidate_) {
    v1::Failure* failure = reply_->mutable_failure();
    failure->set_stage(v1::STAGE_MEASURE);
    failure->set_check(v1::CHECK_UNTOUCHED);
    failure->set_size(side.plan->size());
    failure->set_message("a call like those that are timed changed a static tensor that the setup launches made");
    other_ = nullptr;
    return false;
  }
  const bool checked = random_.Unit() < brief_share_;
  const int set = brief_.order[cold ? 0 : random_.Below(brief_.order.size())];
  if (checked) {
    PAWL_RETURN_IF_ERROR(SetAside(side, set, key, max_kept_ - 1));  // one at least is of a timed call
    if (&side == &candidate_) others_left_.pop_back();
  }
  absl::StatusOr<bool> fine = LeftAlone(side, brief_, key);
  // With other inputs, nobody knows whether the start gives the same bits: all terms of a sum may meet in one place.
  const bool repeated = checked && request_.deterministic() && other_ == nullptr;
  if (repeated && fine.ok() && *fine) fine = GivesSameBits(side, set, key, cold);
  other_ = nullptr;
  return fine;
}

absl::StatusOr<uint64_t> Comparer::DigestOf(const Side& side, int set) {
  uint64_t digest = 0;
  for (const OutputSlot& slot : OutputSlots(*side.plan)) {
    const absl::StatusOr<uint64_t> part =
        gpu_.support.Digest(region() + arenas_[set].Offset(slot.buffer), side.plan->tensors(slot.tensor));
    if (!part.ok()) return part.status();
    digest = digest * 31 + *part;
  }
  return digest;
}

absl::StatusOr<uint64_t> Comparer::DigestOfSetup() {
  uint64_t digest = 0;
  if (setup_ == nullptr) return digest;
  for (int i = 0; i < candidate_.plan->tensors_size(); ++i) {
    const v1::PlanTensor& tensor = candidate_.plan->tensors(i);
    if (!tensor.is_static() || tensor.role() == v1::TENSOR_ROLE_INPUT) continue;
    const absl::StatusOr<uint64_t> part = gpu_.support.Digest(arenas_[0].Addresses(region())[i], tensor);
    if (!part.ok()) return part.status();
    digest = digest * 31 + *part;
  }
  return digest;
}

absl::StatusOr<bool> Comparer::GivesSameBits(Side& side, int set, const Key& key, bool cold) {
  const absl::StatusOr<uint64_t> first = DigestOf(side, set);
  if (!first.ok()) return first.status();
  PAWL_RETURN_IF_ERROR(GetReady(brief_.order, key, cold));
  PAWL_RETURN_IF_ERROR(CallBriefly(side, cold));
  const absl::StatusOr<uint64_t> second = DigestOf(side, set);
  if (!second.ok()) return second.status();
  if (*first == *second || &side != &candidate_) return true;
  v1::Failure* failure = reply_->mutable_failure();
  failure->set_stage(v1::STAGE_MEASURE);
  failure->set_check(v1::CHECK_DETERMINISM);
  failure->set_size(side.plan->size());
  failure->set_message(
      "the same input gave other bits in a call like those that are timed: a race, or atomics on floats (then say "
      "deterministic = false)");
  return false;
}

absl::Status Comparer::SetAside(const Side& side, int set, const Key& key, int most) {
  const bool kept = &side == &candidate_ && result_.checked_size() < most;
  const bool whole = whole_left_ > 0 && random_.Unit() < whole_share_;
  // What is read of the others is overwritten by the candidate's next: all sides see the same pauses.
  const uint64_t pieces = random_();
  PAWL_RETURN_IF_ERROR(request_.in_pieces() && !whole
                           ? SetPiecesAside(gpu_, *side.plan, arenas_[set], region(), kept_at_, pieces)
                           : pawl::SetAside(gpu_, *side.plan, arenas_[set], region(), kept_at_));
  if (!kept) return absl::OkStatus();
  kept_at_ += whole ? whole_bytes_ : kept_bytes_;
  whole_left_ -= whole;
  v1::InputDraw& draw = *result_.add_checked();
  draw = draws_[set];
  if (request_.in_pieces() && !whole) draw.set_pieces(pieces);
  draw.set_key(KeyBytes(key));
  draw.set_call(set);
  return absl::OkStatus();
}

absl::StatusOr<bool> Comparer::SetAsideSome(const Side& side, const std::vector<int>& order, Use& use, const Key& key) {
  bool any = false;
  for (const int set : order) {
    if (random_.Unit() >= keep_share_) continue;
    any = true;
    PAWL_RETURN_IF_ERROR(SetAside(side, set, key, max_kept_));
    timed_checks_ += &side == &candidate_;
  }
  return any ? LeftAlone(side, use, key) : true;
}

absl::StatusOr<bool> Comparer::LeftAlone(const Side& side, Use& use, const Key& key) {
  absl::StatusOr<std::vector<ChangedByte>> changed = gpu_.support.Verify(use.left_alone, key);
  if (!changed.ok()) return changed.status();
  const absl::StatusOr<bool> structs_unchanged = side.structs.Unchanged();
  if (!structs_unchanged.ok()) return structs_unchanged.status();
  const absl::StatusOr<std::string> symbol =
      side.modules.back()->ChangedSymbol(*side.plan, arenas_[0].Addresses(region()));
  if (!symbol.ok()) return symbol.status();
  if ((changed->empty() && *structs_unchanged && symbol->empty()) || &side != &candidate_) return true;
  std::string what = "a struct that it was given a pointer to";
  if (!symbol->empty()) what = absl::StrCat("the variable ", *symbol, ", which holds an input");
  if (!changed->empty()) {
    const Segment& segment = use.left_alone.segments()[changed->front().segment];
    what = arenas_[segment.call].Describe(region(), segment, changed->front().offset);
  }
  v1::Failure* failure = reply_->mutable_failure();
  failure->set_stage(v1::STAGE_MEASURE);
  failure->set_check(v1::CHECK_UNTOUCHED);
  failure->set_size(side.plan->size());
  failure->set_message(absl::StrCat("a timed call changed an input, or a tensor that no call was given: ", what));
  return false;
}

absl::StatusOr<bool> Comparer::MeasurePair(v1::TimingMode mode, v1::PairSample* pair, std::string* disturbance) {
  PAWL_RETURN_IF_ERROR(Place());
  const int count = mode == v1::TIMING_MODE_COLD ? kColdCalls : replays_;
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
    // After the pair: before it, they would warm the candidate's code and not the parent's.
    const Clock::time_point start = Clock::now();
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
  keep_share_ = std::max(keep_share_, cold ? 1.0 / (2 * replays_) : 1.0 / kColdCalls);
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

absl::StatusOr<bool> Comparer::CheckUntouched() {
  const Key key = RandomKey();
  const Arena banded = Arena::For(*candidate_.plan, others_);
  const auto base = [&](int call) { return region() + call * banded.bytes(); };
  const int touched = static_cast<int>(random_.Below(calls_));
  entries_ = DrawEntries();
  PAWL_RETURN_IF_ERROR(Renew(uses_[0].order));
  std::vector<Segment> kept, own;
  for (int call = 0; call < calls_; ++call) {
    const absl::StatusOr<Sources> sources = gpu_.pools.SourcesOf(*candidate_.plan, draws_[call]);
    if (!sources.ok()) return sources.status();
    Append(&kept, banded.Inputs(base(call), call, draws_[call], *sources));
    Append(&kept, banded.Bands(base(call), call));
    Append(call == touched ? &own : &kept, banded.InOuts(base(call), call, draws_[call], *sources));
    Append(call == touched ? &own : &kept, banded.Poisons(base(call), call));
  }
  SegmentTable table, poison;
  PAWL_RETURN_IF_ERROR(table.Set(kept));
  PAWL_RETURN_IF_ERROR(poison.Set(own));
  PAWL_RETURN_IF_ERROR(gpu_.support.Fill(table, key));
  PAWL_RETURN_IF_ERROR(gpu_.support.Fill(poison, key));
  const std::vector<CUdeviceptr> tensors = banded.Addresses(base(touched));
  StructTable structs;
  structs.Add(*candidate_.plan, tensors);
  PAWL_RETURN_IF_ERROR(structs.Reserve());
  PAWL_RETURN_IF_ERROR(structs.Upload());
  if (setup_ != nullptr) {
    PAWL_RETURN_IF_ERROR(setup_->Launch(candidate_.plan->setup(), tensors, structs, gpu_.stream));
  }
  PAWL_RETURN_IF_ERROR(candidate_.modules.back()->FillSymbols(*candidate_.plan, tensors, gpu_.stream));
  PAWL_RETURN_IF_ERROR(candidate_.modules.back()->Launch(candidate_.plan->launches(), tensors, structs, gpu_.stream));
  PAWL_CUDA(CtxSynchronize());
  absl::StatusOr<std::vector<ChangedByte>> changed = gpu_.support.Verify(table, key);
  if (!changed.ok()) return changed.status();
  if (changed->empty()) return true;
  const Segment& segment = table.segments()[changed->front().segment];
  const int whose = static_cast<int>((segment.address - region()) / banded.bytes());
  v1::Failure* failure = reply_->mutable_failure();
  failure->set_stage(v1::STAGE_MEASURE);
  failure->set_check(v1::CHECK_UNTOUCHED);
  failure->set_size(candidate_.plan->size());
  failure->set_message(absl::StrCat(whose == touched ? "a call after many changed what is not its output: "
                                                     : "one call changed the buffers of another: ",
                                    banded.Describe(base(whose), segment, changed->front().offset)));
  return false;
}

absl::StatusOr<Comparer::TwoTimes> Comparer::TimeTwice(const std::function<absl::Status()>& launch) {
  PAWL_CUDA(CtxSynchronize());
  const Clock::time_point start = Clock::now();
  PAWL_CUDA(EventRecord(gpu_.starts[0], gpu_.stream));
  PAWL_RETURN_IF_ERROR(launch());
  PAWL_CUDA(EventRecord(gpu_.stops[0], gpu_.stream));
  PAWL_CUDA(CtxSynchronize());
  TwoTimes times{.wall_us = SecondsSince(start) * 1e6};
  float ms = 0;
  PAWL_CUDA(EventElapsedTime(&ms, gpu_.starts[0], gpu_.stops[0]));
  times.gpu_us = ms * 1e3;
  return times;
}

absl::StatusOr<bool> Comparer::CheckWallClock() {
  TwoTimes times;  // of the last call
  double own_us = 0;
  // In the same circumstances as a call: after the same fills, and for as long, so that other work on the GPU delays
  // one as often as the other.
  const auto own_agrees = [&]() -> absl::StatusOr<bool> {
    PAWL_RETURN_IF_ERROR(Refill(RandomKey()));
    const int runs = OwnRuns(times.gpu_us, own_us);
    const absl::StatusOr<TwoTimes> own = TimeTwice([&]() -> absl::Status {
      for (int i = 0; i < runs; ++i) PAWL_RETURN_IF_ERROR(gpu_.support.Anchor());
      return absl::OkStatus();
    });
    if (!own.ok()) return own.status();
    own_us = own->gpu_us / runs;
    return own->agree();
  };
  const auto call_agrees = [&]() -> absl::StatusOr<bool> {
    PAWL_RETURN_IF_ERROR(Refill(RandomKey()));
    const absl::StatusOr<TwoTimes> timed = TimeTwice([&]() -> absl::Status {
      PAWL_CUDA(GraphLaunch(candidate_.graphs[0], gpu_.stream));
      return absl::OkStatus();
    });
    if (!timed.ok()) return timed.status();
    times = *timed;
    return times.agree();
  };
  const absl::StatusOr<WallClock> judged = JudgeWallClock(own_agrees, call_agrees);
  if (!judged.ok()) return judged.status();
  if (*judged == WallClock::kAgrees) return true;
  if (*judged == WallClock::kUnsteady) {
    result_.clear_pairs();  // they prove nothing
    while (result_.discarded() < kMaxDiscarded) {
      Discard(
          "calls take longer by the wall clock than by the GPU's events, Pawl's own kernel's too: stop other work on "
          "the GPU and its host");
    }
    return true;
  }
  v1::Failure* failure = reply_->mutable_failure();
  failure->set_stage(v1::STAGE_MEASURE);
  failure->set_check(v1::CHECK_WALL_CLOCK);
  failure->set_size(candidate_.plan->size());
  failure->set_message(absl::StrCat("the GPU's events say ", times.gpu_us, " us, the wall clock ", times.wall_us,
                                    " us, and they agree about Pawl's own kernel: work runs outside of what is timed"));
  return false;
}

}  // namespace pawl
