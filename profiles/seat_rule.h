// A variant that runs slower in the parent's seat than in the candidate's makes its children look faster than they are.
// Its times in different processes are compared relative to a witness: an earlier variant that was timed in the same
// blocks. Times of two kernels drift together; their ratio varies between processes as those of the keep rule do.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "profiles/goal_sizes.h"

namespace pawl {

// A bias that further processes look for, where those so far can't exclude it.
inline constexpr double kSeatBias = 0.02;

// A witness that takes more than this many times as long as a variant is no good one for it.
inline constexpr double kNearWitness = 1.25;

// Calls of a graph.
inline constexpr int kMostCalls = 20;

// How the message of a trial begins that failed because of its parent (CHECK_SEAT).
inline constexpr char kParentNotTimed[] = "the parent could not be timed without this candidate";

// Mean over processes of log(time / witness's time); each list is of one process's pairs. At least two pairs in each.
v1::SeatTime SeatTimeOf(const std::vector<std::vector<double>>& processes);

// The same at one of a goal's sizes; every size has the same processes.
struct SizeLogs {
  double weight = 1;
  std::vector<std::vector<double>> processes;
};

// Over several sizes: the weighted mean, as of the log ratios that a candidate is judged by.
v1::SeatTime SeatTimeOf(std::span<const SizeLogs> sizes);

// One of the times of a pair.
using PairTime = double (v1::PairSample::*)() const;

// Timed in the same way, with the same inputs where problem.py made them.
bool SameWay(const v1::PairSample& a, const v1::PairSample& b);

// What the processes of a comparison timed at the sizes of a goal: of those processes only that timed every size, and
// in the same way as the last of them, since a candidate may have calls timed in other ways in some. In the last, the
// pairs that were timed as its last at their size count, so that no candidate goes without a seat test by changing the
// way within every process.
class SeatPairs {
 public:
  // Each of `processes` has its pairs of all sizes; those that name no size are of `trial_size`. The sizes come in the
  // order of the ladder.
  SeatPairs(const std::vector<std::vector<v1::PairSample>>& processes, std::vector<SizeWeight> sizes,
            const std::string& trial_size);

  bool empty() const { return processes_.empty(); }
  // Whether every pair has this time.
  bool Have(PairTime time) const;
  // Of the processes all of whose pairs have both times; of none where there are no such processes.
  v1::SeatTime Time(PairTime time, PairTime relative_to) const;
  // A pair that was timed as all of them were at this place of the sizes; not where it is empty.
  const v1::PairSample& LikeAll(size_t size) const { return processes_.back()[size].back(); }

 private:
  std::vector<SizeWeight> sizes_;
  std::vector<std::vector<std::vector<v1::PairSample>>> processes_;  // by process and size
};

struct SeatTest {
  double slower = 0;      // as a parent than as a candidate: a difference of logarithms
  double limit = 0;       // that noise exceeds in `share` of the cases
  bool excluded = false;  // a bias of kSeatBias would have shown 99 times in 100

  bool failed() const { return slower > limit; }
};

// Both relative to the same witness, on the same GPU. Of a time over several sizes the noise between processes counts
// as that of one size: what differs between processes may differ at all sizes alike.
SeatTest TestSeat(const v1::SeatTime& as_candidate, const v1::SeatTime& as_parent, const v1::ProcessNoise& noise,
                  double share);

// How calls were timed: single, calls, protocol and data.
using TimedWay = std::tuple<bool, int, int, uint32_t>;
TimedWay WayOf(const v1::SeatTime& time);
void SetWay(const v1::SeatTime& from, v1::SeatTime* to);

// Sets how calls were timed at each of the sizes in their places of `ways`, as `time` says; false: it does not say.
bool SetCallsOfSizes(const v1::SeatTime& time, std::span<v1::PairSample> ways);

// Calls were timed in the same way, at every size: by one protocol, one by one, or so many in a graph, with the same
// inputs where problem.py made them. A number of calls that is not known is taken to be the same at one size; no time
// over several sizes is like such a time.
bool TimedAlike(const v1::SeatTime& a, const v1::SeatTime& b);

// Whether the two can be compared: both were measured, alike, relative to the same witness.
bool ComparableSeats(const v1::SeatTime& as_candidate, const v1::SeatTime& as_parent);

}  // namespace pawl
