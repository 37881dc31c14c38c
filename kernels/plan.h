// What one variant means at one size on one GPU: every expression of the bundle evaluated.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/data_type.h"
#include "kernels/hidden_sizes.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/plan.pb.h"

namespace pawl {

// Makes many plans of one bundle: parses each expression once. One thread at a time. The bundle must outlive it.
class Planner {
 public:
  explicit Planner(const v1::Bundle& bundle);
  ~Planner();

  absl::StatusOr<v1::Plan> MakePlan(const v1::Variant& variant, const v1::Size& size, const v1::GpuInfo& gpu);
  // The launches of [reference] over the inputs and outputs of the bundle, in its order, no scratch. Of a bundle whose
  // reference is in problem.py: no launches.
  absl::StatusOr<v1::Plan> MakeReferencePlan(const v1::Size& size, const v1::GpuInfo& gpu);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

absl::StatusOr<v1::Plan> MakePlan(const v1::Bundle& bundle, const v1::Variant& variant, const v1::Size& size,
                                  const v1::GpuInfo& gpu);
absl::StatusOr<v1::Plan> MakeReferencePlan(const v1::Bundle& bundle, const v1::Size& size, const v1::GpuInfo& gpu);

// Whether the GPU can launch it at all, before anything is compiled. Limits that the GPU does not tell are not checked.
std::optional<v1::Failure> CheckLaunchLimits(const v1::Plan& plan, const v1::GpuInfo& gpu);

// -DNAME=value or the filled-in option of each variable, the bundle's options, and -DSIZE_S=128 for each size that the
// source or one of its files mentions outside of what #if leaves out for this variant (active_source.h): builds that
// give the same code have the same options. What another compiler made (.ptx, .cubin) sees no macros.
std::vector<std::string> CompileOptions(const v1::Bundle& bundle, const v1::Variant& variant, const v1::Size& size);
// Whether a source is compiled from CUDA C++: the others end in .ptx and .cubin.
bool IsCudaSource(const std::string& path);
// Of the reference's source and its files, or the setup's.
std::vector<std::string> ContractCompileOptions(const v1::SourceFile& source, const v1::Size& size,
                                                const google::protobuf::RepeatedPtrField<v1::SourceFile>& files = {});
// The source, one of its files or an entry mentions SIZE_<name>: one cubin for each size.
bool FixesSizes(const v1::Bundle& bundle);

// SM_COUNT and such, by the names expressions use.
std::map<std::string, double> GpuLimits(const v1::GpuInfo& gpu);

// The limits of a common GPU, for judging expressions where there is none; `pawl check` and the worker judge again by a
// GPU's own.
v1::GpuInfo TypicalGpu();

// Filled before a call; compared with the reference after it.
bool IsFilled(v1::TensorRole role);
bool IsCompared(v1::TensorRole role);
// Inputs, or a part of them, are the same in every call: static tensors, what a file holds, or none that is drawn.
// pawl_baseline.py has the same rule.
bool CallsShareInputs(const v1::Plan& plan);

// The name of a launch's kernel in the cubin.
const std::string& SymbolOf(const v1::PlanLaunch& launch);

// Launches of a call, with their repetitions.
int64_t CountLaunches(const v1::Plan& plan);

// What an output is held against: its own tolerance, or the plan's.
const v1::Tolerance& ToleranceOf(const v1::Plan& plan, const v1::PlanTensor& tensor);

// Gives plans of one contract the same tensors in the same order, matched by name, so that they can share buffers: each
// gets the others' scratch as well, which it does not use. The first one's tensors come first, as they were. Scratch of
// one name has the strictest alignment of all.
void MatchTensors(const std::vector<v1::Plan*>& plans);

// Its inputs and expected outputs come from problem.py.
inline bool HasProblem(const v1::Bundle& bundle) { return !bundle.problem().text().empty(); }
// There is a peer that is timed: a command, or what problem.py has.
inline bool HasBaseline(const v1::Bundle& bundle) { return !bundle.baseline_command().empty() || HasProblem(bundle); }

}  // namespace pawl
