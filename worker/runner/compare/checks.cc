// What is checked of the calls of a comparison.
#include <chrono>

#include "absl/strings/str_cat.h"
#include "kernels/plan.h"
#include "worker/runner/call.h"
#include "worker/runner/compare/comparer.h"
#include "worker/runner/wall_clock.h"

namespace pawl {
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

bool Comparer::EventsAreBelieved() {
  result_.set_unseen_over_parent_us(unseen_.over_parent_us());
  result_.set_unseen_over_own_us(unseen_.over_own_us());
  result_.set_unseen_error_us(unseen_.error_us());
  const std::string wrong = unseen_.Judge();
  if (wrong.empty()) return true;
  v1::Failure* failure = reply_->mutable_failure();
  failure->set_stage(v1::STAGE_MEASURE);
  failure->set_check(v1::CHECK_WALL_CLOCK);
  failure->set_size(candidate_.plan->size());
  failure->set_message(wrong);
  return false;
}

absl::StatusOr<Comparer::TwoTimes> Comparer::TimeTwice(const std::function<absl::Status()>& launch) {
  PAWL_CUDA(CtxSynchronize());
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
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
