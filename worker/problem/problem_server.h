#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/plan.pb.h"
#include "pawl/v1/recording.pb.h"
#include "pawl/v1/runner.pb.h"
#include "worker/build/built_variant.h"

namespace pawl {

// An entry of a pool to make: inputs of one call, and what the outputs should be.
struct EntryRequest {
  std::string pool;
  uint32_t entry = 0;
  uint64_t seed = 0;    // secret
  bool only = false;    // the pool's other entries are forgotten
  bool strict = false;  // also: does the same seed give the same data?
  // Of tensors that problem.py leaves to their fills; DISTRIBUTION_SCALED: of those that it makes.
  v1::Distribution distribution = v1::DISTRIBUTION_UNSPECIFIED;
  double magnitude = 0;
  int64_t offset = 0;  // where in shared memory it is put
};

// Where an entry lies in shared memory, until something else is written there.
struct StagedEntry {
  std::vector<v1::ProvideRequest::Part> inputs, expected;
  double make_seconds = 0;   // inputs() and reference(); 0: it was made before
  double stage_seconds = 0;  // copying it into shared memory

  int64_t bytes() const;
  int64_t end() const;  // of what lies there
};

// What problem.py's own check() says.
struct OwnCheck {
  std::vector<std::string> verdicts;  // one a call: what is wrong; empty: nothing
  std::vector<std::string> lenient;   // wrong outputs that it lets pass
};

// The same for the same problem.py and files beside it.
std::string ProblemIdentity(const v1::Bundle& bundle);

// Runs the problem.py of bundles: ProblemProcess, or a script in tests. InvalidArgument is problem.py's fault, in one
// line for its author; ResourceExhausted: memory; any other status is the machine's fault, or CANCELLED. One thread at
// a time.
class ProblemServer {
 public:
  virtual ~ProblemServer() = default;

  virtual absl::StatusOr<StagedEntry> Make(const v1::Bundle& bundle, const v1::Plan& plan,
                                           const EntryRequest& request) = 0;
  // Puts an entry that was made before into shared memory. NotFound: it is gone.
  virtual absl::StatusOr<StagedEntry> Stage(const v1::Bundle& bundle, const std::string& pool, uint32_t entry,
                                            int64_t offset) = 0;
  // Begin what Make or Stage with the same arguments, as the next question, answers the sooner.
  virtual void MakeAhead(const v1::Bundle& bundle, const v1::Plan& plan, const EntryRequest& request) = 0;
  virtual void StageAhead(const v1::Bundle& bundle, const std::string& pool, uint32_t entry, int64_t offset) = 0;
  // Nobody wants what was begun any more: when this returns, nothing of it goes on.
  virtual void DropAhead() = 0;
  // Frees the memory of a pool's entries.
  virtual void Forget(const v1::Bundle& bundle, const std::string& pool) = 0;
  // It has check(got, expected), which takes the place of the tolerance.
  virtual absl::StatusOr<bool> HasCheck(const v1::Bundle& bundle) = 0;
  // Checks the outputs of calls that lie in shared memory one after another, each made from the entry of its draw.
  // NotFound: an entry is gone.
  virtual absl::StatusOr<OwnCheck> Check(const v1::Bundle& bundle, const v1::Plan& plan,
                                         const std::vector<v1::InputDraw>& draws, bool self_test) = 0;
  // baseline(), or reference() where there is none, eager and compiled. Unimplemented: this machine has no PyTorch for
  // it, and the problem has no baseline of its own.
  virtual absl::StatusOr<v1::BaselineTime> TimeBaseline(const v1::Bundle& bundle, const v1::Plan& plan) = 0;
  // The faster of both interleaved with a variant.
  virtual absl::StatusOr<v1::BesideBaseline> TimeBesideBaseline(const v1::Bundle& bundle, const BuiltSize& best) = 0;
};

}  // namespace pawl
