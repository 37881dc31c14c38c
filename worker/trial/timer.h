#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/runner.pb.h"
#include "worker/build/built_variant.h"
#include "worker/validate/gpu_device.h"
#include "worker/validate/input_draws.h"
#include "worker/validate/other_inputs.h"

namespace pawl {

struct TimingOptions {
  int pairs = 12;
  int measurements = 6;  // of each side in a pair
  // About so many timed calls are compared with the reference; fewer where their outputs take more than checked_bytes.
  int checked_calls = 20;
  int needed_calls = 0;  // of these: where fewer are timed, further calls are made to be checked
  int64_t checked_bytes = int64_t{64} << 20;
  int least_checked = 1;               // all the same, up to 4 GiB
  bool candidate_first = true;         // its seat (runner.proto)
  const BuiltSize* witness = nullptr;  // timed beside both
  bool single = false;                 // each call by itself
  int sure_pairs = 0;                  // with sure_below: when fewer pairs are enough (runner.proto)
  double sure_below = 0;
  int calls = 0;       // of a graph; 0: as the fastest side needs
  double call_us = 0;  // about what the slowest side takes, as far as it is known: slow calls get more time
  uint32_t data = 0;   // the number of the inputs of problem.py; 0: those that all have
  // Other inputs than the bundle's own fill, which calls that look like timed ones are given and checked with; none:
  // null, or a bundle whose inputs problem.py makes.
  const InputMagnitudes* inputs = nullptr;
  StartAtSize start = nullptr;  // asked for where the candidate is off with those
};

struct Timing {
  std::optional<v1::Failure> failure;
  bool doubtful = false;  // as IsDoubtful: a fresh runner tells whose fault that was
  v1::CompareReply times;
  double seconds = 0;
  double check_seconds = 0;  // of `seconds`: the reference's, for times.checked()
};

// Times a validated candidate against its parent at one size, and checks the outputs of timed calls against the
// reference. A status is the machine's fault.
absl::StatusOr<Timing> TimeAgainst(GpuDevice& device, const v1::Bundle& bundle, const BuiltSize& candidate,
                                   const BuiltSize& parent, const TimingOptions& options);

}  // namespace pawl
