#pragma once

#include <array>
#include <string>
#include <vector>

namespace pawl {

// Holds the GPU's events against the host's clock. The driver keeps an event's time in memory that a kernel can write
// to, so a candidate can make its start look later than it was, or its parent's earlier. The host's clock is out of its
// reach. What it says of a replay beyond the event's time (the way to the GPU and back) is the same for all sides and
// for Pawl's own kernel, but for a host that notices late, the more often the longer a replay is. So what counts are
// the replays that were noticed early, and nothing is held against one that is several times as short.
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

  // Medians over the blocks, of a replay: how much later than its parent, and than Pawl's own kernel, the candidate
  // ends by the host's clock than its events say, with the standard error of the first.
  double over_parent_us() const;
  double over_own_us() const;
  double error_us() const;

 private:
  struct Replay {
    double gpu_us, unseen_us;
  };
  // Of a source's replays in a block.
  struct Block {
    double gpu_us = 0;       // mean
    double early_us = 0;     // unseen, of those that were noticed early
    double shortest_us = 0;  // unseen, of the one whose events are the shortest
  };

  std::vector<double> Differences(double Block::*unseen, Source a, Source b) const;
  double MeanGpuUs(Source source) const;

  std::array<std::vector<Replay>, 3> replays_;  // of the block under way
  std::vector<std::array<Block, 3>> blocks_;    // by source
};

}  // namespace pawl
