#pragma once

#include <array>
#include <string>
#include <vector>

namespace pawl {

// Holds the GPU's events against the host's clock. The driver keeps an event's time in memory that a kernel can write
// to, so a candidate can make its start look later than it was, or its parent's earlier. The host's clock is out of its
// reach. What it says of a replay beyond the event's time (the way to the GPU and back) is the same for all sides and
// for Pawl's own kernel, but for noise: where it is not, the events can't be believed.
class UnseenTime {
 public:
  enum Source { kCandidate, kParent, kOwn };

  // What was added since the last BeginBlock counts once its block ends, and never if another begins before.
  void BeginBlock();
  // One replay, in microseconds.
  void Add(Source source, double gpu_us, double host_us);
  void EndBlock();

  // Why the times can't be believed; empty: they can, or there are too few blocks to say so.
  std::string Judge() const;

  // Means over the blocks, of a replay: how much later than its parent, and than Pawl's own kernel, the candidate ends
  // by the host's clock than its events say, with the standard error of the first.
  double over_parent_us() const;
  double over_own_us() const;
  double error_us() const;

 private:
  struct Replay {
    double gpu_us, unseen_us;
  };
  struct Block {
    std::array<double, 3> gpu_us{}, unseen_us{};  // by source
  };

  std::array<std::vector<Replay>, 3> replays_;  // of the block under way
  std::vector<Block> blocks_;
};

}  // namespace pawl
