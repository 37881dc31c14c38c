#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/plan.pb.h"
#include "worker/build/compiler.h"
#include "worker/build/tensor_files.h"

namespace pawl {

// A variant at one size: what to launch, and the code. Sizes share a cubin unless the source fixes them.
struct BuiltSize {
  v1::Plan plan;
  std::shared_ptr<const std::string> cubin;
  std::string module;                                   // content hash of the cubin: what a runner knows it by
  std::shared_ptr<const v1::Bundle> problem = nullptr;  // whose problem.py makes the inputs; null: they are filled
  // Of the plan's setup launches; null: there are none.
  std::shared_ptr<const std::string> setup_cubin = nullptr;
  std::string setup_module = {};
  std::vector<TensorFile> files = {};  // of inputs
};

// A variant ready for a runner, or why it is none.
struct BuiltVariant {
  v1::Variant variant;
  std::optional<v1::Failure> failure;
  std::vector<BuiltSize> sizes;  // in the order asked for
  std::string log;               // what the compiler said, size by size where it differs
  double seconds = 0;
  double check_seconds = 0;    // of them before anything was compiled
  double compile_seconds = 0;  // of them the compiler's

  const BuiltSize* Find(const std::string& size) const;
};

// Evaluates the launches at each size, checks them against the GPU's limits, and only then compiles: once for each
// distinct source and options, side by side. Checks the launches' arguments.
// A status is the machine's fault, or CANCELLED: stopped. Thread-safe.
// Setup launches are built with the same compiler, from sources that no edit touches: that they do not build is a
// failure too. `start`: the bundle as submitted, whose start variant says in which buffers results lie after a call
// (CheckResultPlaces); null: the variant's own launches do.
absl::StatusOr<BuiltVariant> BuildVariant(Compiler& builder, const v1::Bundle& bundle, const v1::Variant& variant,
                                          const std::vector<v1::Size>& sizes, const v1::GpuInfo& gpu,
                                          const Stopped& stopped = nullptr, const v1::Bundle* start = nullptr);

// In the name of a kernel of ours that compute-sanitizer does not watch. No launch may name one like it.
inline constexpr char kOwnFillKernel[] = "pawl_fill";
// What `pawl-runner --job` prints after each item, before the number of items that it has called.
inline constexpr char kCalledItems[] = "pawl-runner called items: ";

// Whether every launch passes what its entry takes, by the cubin's parameter layout: a missing argument would make the
// driver read beyond the list; and whether the variables that hold inputs are there with their tensors' bytes. Nothing
// where they agree, or the cubin does not tell.
std::optional<v1::Failure> CheckArguments(const v1::Plan& plan, const std::string& cubin);

// Builds of references that succeeded, by source and compile options. Thread-safe.
class ReferenceCache {
 public:
  std::shared_ptr<const v1::BuildReply> Find(const std::string& key);  // null: not there
  void Put(const std::string& key, std::shared_ptr<const v1::BuildReply> built);

 private:
  absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<const v1::BuildReply>> built_ ABSL_GUARDED_BY(mutex_);
};

// The same for the bundle's reference; InvalidArgument: it does not build. Cubins that are in `cache` are not built
// again. Thread-safe.
absl::StatusOr<BuiltSize> BuildReference(Compiler& builder, const v1::Bundle& bundle, const v1::Size& size,
                                         const v1::GpuInfo& gpu, ReferenceCache* cache,
                                         const Stopped& stopped = nullptr);

std::string ArchitectureOf(const v1::GpuInfo& gpu);  // sm_90a

// A command line that builds a variant's cubin at one size from the bundle's folder, to paste into a shell. nvcc also
// stands for NVRTC, which has no command line and takes the same options.
std::string BuildCommand(const v1::Bundle& bundle, const v1::Variant& variant, const v1::Size& size,
                         const std::string& architecture);
std::string BuildCommand(const std::vector<std::string>& options, const std::string& source,
                         const std::string& architecture);

// The size of the ladder with this name; null: there is none.
const v1::Size* FindSize(const v1::Bundle& bundle, const std::string& name);

}  // namespace pawl
