#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/runner.pb.h"
#include "worker/build/built_variant.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

struct CheckedCallOptions {
  int repeats = 1;
  bool self_test = false;
  std::vector<double> own_rms;  // as v1::CheckRequest.own_rms
};

struct CheckedCall {
  std::optional<v1::Failure> failure;      // of the call, or outputs that are wrong
  v1::CheckReply check;                    // empty where the call failed
  std::vector<v1::ResourceUse> resources;  // of the launches
  int64_t module_bytes = 0;                // of GPU memory that its code and globals take
  bool reference_finite = true;
  std::vector<double> scales;  // of the absolute limits, output by output; empty: 1
  // Values were compared, and it is they that are wrong where there is a failure.
  bool compared() const { return check.errors_size() > 0 || check.verdicts_size() > 0; }

  // The reference's root mean square of each output of the first call.
  std::vector<double> Rms(const v1::Plan& plan) const;
};

// Calls a built size with these inputs in the runner and has the reference process check the outputs. A runner whose
// failure is doubtful is replaced once, and the call made again: what others left behind does not count against a
// candidate. A status is the machine's fault, or, InvalidArgument, the reference's.
absl::StatusOr<CheckedCall> CallAndCheck(GpuDevice& device, const v1::Bundle& bundle, const BuiltSize& at,
                                         const v1::InputDraw& draw, const CheckedCallOptions& options);

// A failed reply that may be no fault of the candidate's: out of memory, a runner that died, or clocks that disagree.
// Where the process had served others before it was asked, a fault or a timeout as well.
bool IsDoubtful(const v1::RunnerReply& reply, bool served_others);

// Whether errors can be held against what is right: neither that nor its squares, as those of large doubles, overflow.
bool IsFinite(const v1::ReferenceOutput& output);

// Whether an output is within its limits. A NaN is not.
bool WithinTolerance(const v1::OutputError& error, const v1::Tolerance& tolerance);

// The error of output i in shares of its limits, the larger of both: more than 1 is off. Infinite where values are not
// finite that should be, an output that must be exact is not, or the error is as infinite as what is right.
double Strain(const v1::Plan& plan, const CheckedCall& call, int i);

// Asks whether the indices that the bundle draws exist, where it draws some: what reads or writes outside of its
// tensors often does so because they do not. Empty where it draws none.
std::string IndexAdvice(const v1::Plan& plan);

// What outputs that are off are called, in one line with the first wrong element; nothing when they are within the
// tolerance. `scales` multiply the absolute limits of the outputs, call after call; empty: 1.
std::optional<v1::Failure> JudgeErrors(const v1::Plan& plan,
                                       const google::protobuf::RepeatedPtrField<v1::OutputError>& errors,
                                       const std::vector<double>& scales = {});

// The same of a whole check, whose outputs problem.py's own check() may have judged.
std::optional<v1::Failure> JudgeCheck(const v1::Plan& plan, const v1::CheckReply& check,
                                      const std::vector<double>& scales = {});

}  // namespace pawl
