#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/builder.pb.h"
#include "worker/process/process.h"

namespace pawl {

struct BuildCounts {
  int cached = 0, compiled = 0;
};

// Turns sources into cubins: pawl-builder processes (builder.h), or a script in tests. Thread-safe.
class Compiler {
 public:
  virtual ~Compiler() = default;

  // A candidate's failure is in the reply: what the compiler says, a missing entry, the sandbox, the deadline
  // (request.deadline_seconds, 30 s where it is 0). An error status is a fault of this machine, or CANCELLED: stopped.
  virtual absl::StatusOr<v1::BuildReply> Build(const v1::BuildRequest& request, const Stopped& stopped = nullptr) = 0;

  // Builds several requests, in parallel where the compiler can. One reply for each request, in the same order.
  virtual std::vector<absl::StatusOr<v1::BuildReply>> BuildBeside(const std::vector<v1::BuildRequest>& requests,
                                                                  const Stopped& stopped) {
    std::vector<absl::StatusOr<v1::BuildReply>> replies;
    for (const v1::BuildRequest& request : requests) replies.push_back(Build(request, stopped));
    return replies;
  }

  // Since the last call; of a compiler without a cache nothing.
  virtual BuildCounts TakeCounts() { return {}; }
};

}  // namespace pawl
