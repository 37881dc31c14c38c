// What a block of a comparison begins with: code, places, sets of tensors, graphs.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "kernels/plan.h"
#include "worker/runner/compare/comparer.h"

namespace pawl {
namespace {

constexpr uint64_t kRegionBytes = uint64_t{1} << 30;     // over which tensors are scattered, where there is room
constexpr uint64_t kMaxRegionBytes = uint64_t{4} << 30;  // for more than one set of tensors
constexpr uint64_t kMaxKeptBytes = uint64_t{4} << 30;    // of outputs, beside those that are kept as a whole
constexpr double kGraphUs = 100;                         // long against the events' resolution
constexpr double kLongGraphUs = 400;                     // the same for variants that are several times as fast
constexpr double kBlockUs = 6000;                        // of replays in a quarter of a block: fewer where one is long
constexpr int kColdCalls = 8;                            // the same of single calls: fewer where one is very long
constexpr double kColdBlockUs = 60000;
constexpr int64_t kMaxNodes = 2000;   // of a graph of more than one call
constexpr double kBriefChecks = 0.1;  // replays that end early and are checked, of checked calls
constexpr double kOtherChecks = 2;    // such replays that are checked, for each of the other inputs
constexpr size_t kGenerations = 4;    // of loaded code that stay beside the one in use

}  // namespace

void Comparer::DropGraphs() {
  for (Side* side : {&candidate_, &parent_, &witness_}) {
    for (CUgraphExec graph : side->graphs) Cuda().GraphExecDestroy(graph);
    side->graphs.clear();
    if (side->brief != nullptr) Cuda().GraphExecDestroy(side->brief);
    side->brief = nullptr;
  }
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
  cold_calls_ = static_cast<int>(std::clamp<double>(kColdBlockUs / slowest, 1, kColdCalls));
  result_.set_most_calls(static_cast<int32_t>(most_here));

  const bool cold = request_.deciding() == v1::TIMING_MODE_COLD;
  const double timed = 2.0 * std::max(1, request_.pairs()) * (cold ? cold_calls_ : replays_ * calls_);
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

}  // namespace pawl
