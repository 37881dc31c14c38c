// A variant that runs slower in the parent's seat than in the candidate's makes its children look faster than they are.
// Its times in different processes are compared relative to a witness: an earlier variant that was timed in the same
// blocks. Times of two kernels drift together; their ratio varies between processes as those of the keep rule do.
#pragma once

#include <vector>

#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/evidence.pb.h"

namespace pawl {

// A bias that further processes look for, where those so far can't exclude it.
inline constexpr double kSeatBias = 0.02;

// A witness that takes more than this many times as long as a variant is no good one for it.
inline constexpr double kNearWitness = 1.25;

// Mean over processes of log(time / witness's time); each list is of one process's pairs. At least two pairs in each.
v1::SeatTime SeatTimeOf(const std::vector<std::vector<double>>& processes);

struct SeatTest {
  double slower = 0;      // as a parent than as a candidate: a difference of logarithms
  double limit = 0;       // that noise exceeds in `share` of the cases
  bool excluded = false;  // a bias of kSeatBias would have shown 99 times in 100

  bool failed() const { return slower > limit; }
};

// Both relative to the same witness, on the same GPU.
SeatTest TestSeat(const v1::SeatTime& as_candidate, const v1::SeatTime& as_parent, const v1::ProcessNoise& noise,
                  double share);

// Calls were timed in the same way: one by one, or so many in a graph. What is not known is taken to be the same.
bool TimedAlike(const v1::SeatTime& a, const v1::SeatTime& b);

// Whether the two can be compared: both were measured, alike, relative to the same witness.
bool ComparableSeats(const v1::SeatTime& as_candidate, const v1::SeatTime& as_parent);

}  // namespace pawl
