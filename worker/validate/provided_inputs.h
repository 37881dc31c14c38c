#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/hash/hash.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/plan.pb.h"
#include "pawl/v1/runner.pb.h"

namespace pawl {

class GpuDevice;

// The inputs that problem.py makes, on their way to the runner, and its expected outputs, on theirs to the reference
// process. Nothing here does anything for a bundle without problem.py.

struct TimedPool {
  std::string pool;  // empty: fills alone
  uint32_t entries = 0;
  uint32_t data = 0;  // PairSample
  bool slow = false;  // it took long to make
};

// A device's memory of pools. One thread at a time.
struct ProvidedPools {
  std::set<std::string> checked;            // bundles whose problem.py gave the same data for the same seed
  uint32_t next_entry = 0;                  // of fresh inputs
  std::string timed;                        // the pool of timed calls that the processes have
  std::map<std::string, TimedPool> made;    // pools of timed calls, as they were made last
  std::map<std::string, uint32_t> entries;  // of each, however often it is made
  std::map<std::string, uint32_t> numbers;  // of inputs that are used again, by what for
  std::map<std::string, std::string> seen;  // the last module that was timed with the seat's inputs, by problem
  uint32_t next_data = 0;
  std::string key = RandomBytes(32);  // of the seeds of timed pools
};

// A number for inputs that nobody has seen, but for 65,535 that came before. Inputs of the same number are the same as
// long as the device is there.
uint32_t NewData(ProvidedPools& pools);

// Whether a number is one of this device's; of others', one in 65,536 is taken for one.
bool IsOwnData(const ProvidedPools& pools, uint32_t data);

// The pool that has the expected outputs of a pool's entries.
std::string ExpectedPool(const std::string& pool);

// Makes inputs of a validated call and hands them over: the draw names them in the answer. The first time, also checks
// problem.py at the bundle's smallest size. Statuses are ProblemServer's; ResourceExhausted also: the GPU's memory does
// not hold them.
absl::StatusOr<v1::InputDraw> MakeInputs(GpuDevice& device, const v1::Bundle& bundle, const v1::Plan& plan,
                                         v1::InputDraw draw);

// Hands over what MakeInputs made to processes that do not have it: fresh ones. `with_inputs`: the reference process
// gets the inputs too, which a self-test compares.
absl::Status HandOver(GpuDevice& device, const v1::Bundle& bundle, const v1::InputDraw& draw, bool with_inputs);

// The number of the seat's inputs, with which a variant's times are compared between trials. Candidates are timed with
// them only when they are about to be kept: what is learned of them does not spread.
uint32_t SeatData(ProvidedPools& pools, const v1::Bundle& bundle);

// This module is about to be timed with them.
void SeeSeatData(ProvidedPools& pools, const v1::Bundle& bundle, const std::string& module);

// They are others from now on if the last module that saw them is none of these: it was not kept.
void RenewSeatData(ProvidedPools& pools, const v1::Bundle& bundle, const std::set<std::string>& modules);

// Hands over a pool of inputs for timed calls: as many as can be made in a few seconds and take no more than a few GB.
// They are those of the number `data`; 0: those that every candidate has.
absl::StatusOr<TimedPool> ProvideTimedPool(GpuDevice& device, const v1::Bundle& bundle, const v1::Plan& plan,
                                           uint32_t data);

// Whether inputs of timed calls are known to take little time to make at this size.
bool IsQuickToMake(GpuDevice& device, const v1::Bundle& bundle, const v1::Plan& plan);

}  // namespace pawl
