#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "pawl/v1/runner.pb.h"
#include "worker/runner/gpu_context.h"
#include "worker/runner/placement.h"
#include "worker/runner/unseen_time.h"

namespace pawl {

// What is done around timed calls: the order of fills, what they leave in the caches. To be raised with every change
// of that: times before and after it differ by some percent, which is no bias of a candidate's (profiles/seat_rule.h).
inline constexpr int kTimingProtocol = 7;

// Times candidate against parent in one process on the same buffers, in blocks ABBA or BAAB; with a witness, in blocks
// such as AWBBWA, in any order.
//
// In each block every call has its tensors at random addresses, the same for all sides. Code moves as well: the
// modules are loaded again for each block, in any order, beside those of the last four. Warm times come from
// CUDA graphs of several calls, captured for each block. Each call has its own inputs, outputs and scratch, all filled
// before every replay; static tensors are shared by all calls, filled and set up before every replay as well. There are
// more sets of tensors than calls in a graph: those that a replay does not use must be untouched after it, and so must
// all inputs. Some replays, which are not timed, end early, at a random call, so that no call can do the work of later
// ones unseen, and have inputs of other distributions, so that none can rely on what timed calls are given. Cold times
// come from single calls after the L2 was flushed.
//
// Nothing tells the sides apart: all are loaded afresh, order and gaps are random, and their outputs are read alike.
// Which outputs are kept for the reference process is drawn after the calls that made them, and they leave the process
// before the next launch.
class Comparer {
 public:
  Comparer(GpuContext& gpu, const v1::CompareRequest& request);
  ~Comparer();
  Comparer(const Comparer&) = delete;
  Comparer& operator=(const Comparer&) = delete;

  absl::Status Run(v1::RunnerReply* reply);

 private:
  struct Side {
    const std::string* cubin = nullptr;
    const v1::Plan* plan = nullptr;
    int local_bytes = 0;  // of a thread
    bool hidden_globals = false;
    std::deque<std::unique_ptr<Module>> modules;  // the last is in use; the others keep it from their places
    std::vector<CUgraphExec> graphs;              // one for each of uses_
    CUgraphExec brief = nullptr;                  // of brief_
    StructTable structs;                          // of all sets of tensors
  };
  // The sets of tensors that a graph's calls use, in order, and the others.
  struct Use {
    std::vector<int> order;
    std::vector<int> others;
    SegmentTable left_alone;  // inputs, and all of the others
  };
  static constexpr int kMaxCalls = 20;
  static constexpr int kMaxDiscarded = 10;

  absl::Status Prepare();
  absl::Status FindSides();
  // False, with the reply's failure set: calls share inputs, and the candidate may leave what serves the next where it
  // can't be cleared.
  bool CanBeCleared();
  // In random order.
  std::vector<Side*> Shuffled();
  // All sides' code at other places than before.
  absl::Status LoadSides();
  // Whether a call of any side has left a global variable changed since its module was loaded.
  absl::StatusOr<bool> LeavesState();
  absl::Status ReserveRegion(int sets);
  absl::StatusOr<double> RoughCallUs(Side& side);
  // Draws places for all sets of tensors, and captures the graphs of all sides.
  absl::Status Place();
  // The entries of the pool in random order: calls of a replay get the first.
  std::vector<uint32_t> DrawEntries();
  // The same, with those first that timed calls were given less often.
  std::vector<uint32_t> DrawTimedEntries(v1::TimingMode mode);
  // What is filled before a replay of these sets of tensors, and what a replay must leave alone.
  absl::Status SetTables(const std::vector<int>& order);
  // Before a replay, nothing being queued: undoes what kernels did outside of their tensors.
  absl::Status Renew(const std::vector<int>& order);
  // Queues the fill of all sets of tensors, and the setup launches.
  absl::Status Fill(const Key& key);
  absl::Status Refill(const Key& key);  // both, for any sets
  // All that comes before the first launch of a replay that is timed, or looks as if it were. `set_up`, if given, gets
  // DigestOfSetup: it is read before what comes last, so that the calls find what they find in timed replays.
  absl::Status GetReady(const std::vector<int>& order, const Key& key, bool cold, uint64_t* set_up = nullptr);
  absl::Status CallSet(Side& side, int set);
  absl::StatusOr<CUgraphExec> Captured(Side& side, const std::vector<int>& order);
  void DropGraphs();
  // Until the anchor's time no longer changes: an idle GPU needs some tens of milliseconds to reach its clocks.
  absl::Status WarmUp();
  // Times one replay, or one cold call, in us a call. False: a call changed what it was not given; the reply says so.
  // Calls have inputs from `entries`, where there is a pool.
  absl::StatusOr<bool> Measure(Side& side, v1::TimingMode mode, const std::vector<uint32_t>& entries, double* us);
  // Reads the outputs of a call, and keeps them if they are the candidate's and fewer than `most` are kept.
  absl::Status SetAside(const Side& side, int set, const Key& key, int most);
  // After a replay, or a cold call, of these sets of `use`: draws which calls' outputs are kept and reads them. Where
  // any is, checks what it must leave alone.
  absl::StatusOr<bool> SetAsideSome(const Side& side, const std::vector<int>& order, Use& use, const Key& key);
  // False: a replay of `use` changed what it must leave alone; the reply says so. Only of the candidate.
  absl::StatusOr<bool> LeftAlone(const Side& side, Use& use, const Key& key);
  // A replay that begins as those that are timed, may have other inputs, and ends earlier: it must not have touched
  // what the calls would use that it lacks, and the outputs of some, drawn as those of timed calls are, are checked. A
  // kernel that does the work of later calls ahead, or leaves its work to them, can't know that they do not come.
  absl::StatusOr<bool> ReplayBriefly(Side& side, v1::TimingMode mode);
  // The calls of brief_ that are made, once everything is ready for them.
  absl::Status CallBriefly(Side& side, bool cold);
  // Of what the setup launches wrote, which calls must leave alone; 0: there are none.
  absl::StatusOr<uint64_t> DigestOfSetup();
  // Calls once more with the same inputs. False: it gave other bits; the reply says so. Only of the candidate.
  absl::StatusOr<bool> GivesSameBits(Side& side, int set, const Key& key, bool cold);
  absl::StatusOr<uint64_t> DigestOf(const Side& side, int set);
  // Keeps the stream busy while the host queues a replay, which nothing is queued before, and begins to time it by the
  // host's clock.
  absl::Status Hold(uint32_t nanoseconds);
  // Waits for that replay, and notes what both clocks say of it. Its time by the GPU's events.
  absl::StatusOr<double> ReplayUs(std::optional<UnseenTime::Source> source);
  std::optional<UnseenTime::Source> SourceOf(const Side& side) const;
  absl::StatusOr<double> AnchorUs();
  // `disturbance`: why the pair can't be trusted; empty: it can.
  absl::StatusOr<bool> MeasurePair(v1::TimingMode mode, v1::PairSample* pair, std::string* disturbance);
  absl::StatusOr<bool> MeasurePairs();
  void Discard(const std::string& why);
  // After all the timed calls, one more: it must leave its inputs, guard bands, and the buffers of all other calls
  // alone. False, with the reply's failure set, if not.
  absl::StatusOr<bool> CheckUntouched();
  // False, with the reply's failure set: the host's clock belies the GPU's events.
  bool EventsAreBelieved();
  // GPU time and wall clock must tell the same story; where they do not of Pawl's own kernel either, the GPU is
  // unsteady.
  absl::StatusOr<bool> CheckWallClock();
  struct TwoTimes {
    double gpu_us = 0, wall_us = 0;
    bool agree() const { return gpu_us <= wall_us * 1.02 + 2 && wall_us <= gpu_us * 1.5 + 500; }
  };
  absl::StatusOr<TwoTimes> TimeTwice(const std::function<absl::Status()>& launch);

  // Candidate and parent in the order of their seats, the witness anywhere.
  std::vector<Side*> Seated();
  bool has_brief() const { return calls_ > 1 || request_.others_size() > 0 || setup_ != nullptr; }
  bool has_witness() const { return !request_.witness().empty(); }
  // Setup launches and copies of symbols are made between two fills: of static tensors, and of what each call has of
  // its own, which comes last so that the L2 holds it.
  bool copies_static() const {
    return setup_ != nullptr ||
           std::any_of(sides_.begin(), sides_.end(), [](const Side* side) { return !side->plan->symbols().empty(); });
  }
  CUdeviceptr region() const { return gpu_.arena.address(); }

  GpuContext& gpu_;
  const v1::CompareRequest& request_;
  v1::RunnerReply* reply_ = nullptr;
  v1::CompareReply result_;
  SecretRandom random_;
  Side candidate_, parent_, witness_;
  std::vector<Side*> sides_;            // those that are timed
  v1::Plan others_;                     // the parent's plan, each tensor as large as that of parent or witness
  std::vector<PlacementStyle> styles_;  // that come next, so that all come equally often
  bool large_ = false;                  // a module takes much memory
  bool cold_by_graph_ = false;          // a call has more launches than the host can queue: single ones are graphs
  int local_bytes_ = 0;                 // of a thread, the most of all sides
  bool inputs_repeat_ = false;          // some are the same in several calls: of a pool, a file, static, or no chance
  bool has_static_ = false;             // tensors that all calls share
  // A call leaves global variables changed, which the next one would find: each is timed by itself, and finds them as
  // the first one does.
  bool leaves_state_ = false;
  int64_t most_sets_ = INT64_MAX;     // of tensors: where inputs repeat, as many as there are different ones
  Module* setup_ = nullptr;           // null: no setup launches
  int calls_ = 1;                     // of a graph
  int sets_ = 1;                      // of tensors
  int replays_ = 1;                   // in a quarter of a block
  int cold_calls_ = 1;                // the same
  int untimed_ = 0;                   // of the candidate, after pairs: what is timed is too little to be checked
  std::vector<Arena> arenas_;         // of the sets
  std::vector<v1::InputDraw> draws_;  // of the sets: pool and entry, or another distribution
  std::vector<uint32_t> entries_;     // of the pool, in the order in which the sets of a replay get them
  std::vector<int> entry_uses_;       // of each entry, by timed calls
  std::vector<const v1::OtherInputs*> others_left_;  // that come next, so that all come equally often; null: own fill
  const v1::OtherInputs* other_ = nullptr;  // what the next replay's inputs are drawn from; null: their own fill
  UnseenTime unseen_;                       // of the blocks that count
  std::chrono::steady_clock::time_point held_since_;
  double held_us_ = 0;
  std::array<Use, 2> uses_;
  Use brief_;  // the first calls of one of them
  SegmentTable refill_, refill_last_;
  double keep_share_ = 1;     // of calls whose outputs are kept
  double brief_share_ = 1;    // of replays that end early, of which one call's are
  uint64_t kept_bytes_ = 0;   // of the outputs of one call
  uint64_t whole_bytes_ = 0;  // of one whose outputs are kept as a whole where others' are in pieces
  uint64_t kept_at_ = 0;      // where the next is kept
  int whole_left_ = 0;        // of such calls
  double whole_share_ = 0;    // of the calls that are kept, until there are as many
  int max_kept_ = 1;
  int timed_checks_ = 0;  // of calls of the candidate that were timed, or looked so
};

}  // namespace pawl
