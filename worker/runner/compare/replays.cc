// The calls of a comparison: what is done before them, and how they are timed.
#include <algorithm>
#include <chrono>

#include "worker/runner/compare/comparer.h"
#include "worker/runner/wall_clock.h"

namespace pawl {
namespace {

constexpr double kMinWarmUp = 0.02, kMaxWarmUp = 0.4;  // seconds
constexpr double kSteady = 0.003;                      // largest change of the anchor's time once the GPU is warm

struct OwnedGraph {
  ~OwnedGraph() {
    if (graph != nullptr) Cuda().GraphExecDestroy(graph);
  }
  CUgraphExec graph = nullptr;
};

}  // namespace

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
  PAWL_RETURN_IF_ERROR(gpu_.support.Dirty(RandomKey(), local_bytes_));
  PAWL_RETURN_IF_ERROR(Fill(key));
  if (set_up != nullptr) {
    const absl::StatusOr<uint64_t> digest = DigestOfSetup();
    if (!digest.ok()) return digest.status();
    *set_up = *digest;
  }
  if (cold) PAWL_CUDA(MemsetD8Async(gpu_.flush.address(), key.words[0] & 0xff, gpu_.flush.bytes(), gpu_.stream));
  return Hold(25'000 + random_.Below(30'000));  // gaps are random
}

absl::Status Comparer::Hold(uint32_t nanoseconds) {
  // How long fills take depends on what the last replay left in the L2: the host's clock is to see none of it.
  PAWL_CUDA(CtxSynchronize());
  held_since_ = std::chrono::steady_clock::now();
  held_us_ = nanoseconds * 1e-3;
  return gpu_.support.Hold(nanoseconds);
}

absl::StatusOr<double> Comparer::ReplayUs(std::optional<UnseenTime::Source> source) {
  // Of the whole device: work a candidate hid behind the stop event would show in the wall clock.
  PAWL_CUDA(CtxSynchronize());
  PAWL_RETURN_IF_ERROR(gpu_.support.Ping());
  const double host_us = SecondsSince(held_since_) * 1e6 - held_us_;
  float ms = 0;
  PAWL_CUDA(EventElapsedTime(&ms, gpu_.starts[0], gpu_.stops[0]));
  if (source) unseen_.Add(*source, ms * 1e3, host_us);
  return ms * 1e3;
}

absl::Status Comparer::CallSet(Side& side, int set) {
  return side.modules.back()->Launch(side.plan->launches(), arenas_[set].Addresses(region()), side.structs,
                                     gpu_.stream);
}

absl::StatusOr<double> Comparer::AnchorUs() {
  PAWL_RETURN_IF_ERROR(Hold(20'000));
  PAWL_CUDA(EventRecord(gpu_.starts[0], gpu_.stream));
  PAWL_RETURN_IF_ERROR(gpu_.support.Anchor());
  PAWL_CUDA(EventRecord(gpu_.stops[0], gpu_.stream));
  return ReplayUs(UnseenTime::kOwn);
}

absl::Status Comparer::WarmUp() {
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
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

std::optional<UnseenTime::Source> Comparer::SourceOf(const Side& side) const {
  if (&side == &candidate_) return UnseenTime::kCandidate;
  if (&side == &parent_) return UnseenTime::kParent;
  return std::nullopt;
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
  const absl::StatusOr<double> replay_us = ReplayUs(SourceOf(side));
  if (!replay_us.ok()) return replay_us.status();
  *us = *replay_us / (cold ? 1 : calls_);
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
  return ReplayUs(std::nullopt).status();
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

}  // namespace pawl
