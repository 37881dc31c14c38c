#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "pawl/v1/runner.pb.h"
#include "worker/runner/gpu_context.h"

namespace pawl {

// Times candidate against parent in one process on the same buffers, in ABBA blocks.
//
// Warm times come from CUDA graphs of several calls. Each call of a graph has its own inputs, outputs and scratch; all
// of them get fresh content between replays, and each replay takes one of two orders of the calls, so that nothing can
// be remembered from call to call. Cold times come from single calls after the L2 was flushed. The outputs of all calls
// of one randomly chosen replay, and of one cold call, are set aside for the reference process.
class Comparer {
 public:
  Comparer(GpuContext& gpu, const v1::CompareRequest& request);
  ~Comparer();
  Comparer(const Comparer&) = delete;
  Comparer& operator=(const Comparer&) = delete;

  absl::Status Run(v1::RunnerReply* reply);

 private:
  struct Side {
    Module* module = nullptr;
    const v1::Plan* plan = nullptr;
    std::vector<CUgraphExec> graphs;  // one for each order of the calls
  };
  static constexpr int kMaxCalls = 20;
  static constexpr int kMaxDiscarded = 10;

  absl::Status Prepare();
  absl::StatusOr<double> RoughCallUs(Side& side);
  absl::Status Capture(Side& side, const std::vector<int>& order);
  absl::Status WarmUp();
  // Times `count` replays or cold calls of a side, in us a call. The check_at-th one's outputs are set aside.
  absl::StatusOr<std::vector<double>> Measure(Side& side, v1::TimingMode mode, int count, int check_at);
  absl::StatusOr<v1::PairSample> MeasurePair(v1::TimingMode mode, int count, bool check, std::vector<double>* series);
  absl::Status MeasurePairs();
  // After all the timed calls, one more: it must leave its inputs, the bands, and the buffers of all other calls alone.
  // False, with the reply's failure set, if not.
  absl::StatusOr<bool> CheckUntouched();
  // GPU time and wall clock must tell the same story.
  absl::StatusOr<bool> CheckWallClock();
  absl::Status Deliver();

  CUdeviceptr BaseOf(int call) const { return gpu_.arena.address() + call * arena_.bytes(); }

  GpuContext& gpu_;
  const v1::CompareRequest& request_;
  v1::RunnerReply* reply_ = nullptr;
  v1::CompareReply result_;
  std::mt19937_64 random_;
  Side candidate_, parent_;
  Arena arena_;
  int calls_ = 1;  // of a graph
  SegmentTable refill_, refill_first_;
  std::vector<uint64_t> staged_graph_, staged_cold_;  // seeds of the calls set aside
};

}  // namespace pawl
