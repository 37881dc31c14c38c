#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "fleet/decision.h"

namespace pawl {

struct SlurmOptions {
  std::string name = "pawl-worker";  // of the jobs; other fleets of this user need other names
  std::string partition;
  std::string script;
  std::string logs;                             // folder of the jobs' logs, as the nodes see it
  std::vector<std::string> sbatch;              // further options of sbatch
  std::vector<std::string> worker;              // arguments of the script: the worker's flags
  absl::Duration deadline = absl::Seconds(20);  // of a command
};

// Slurm by its commands: squeue --json, sbatch --parsable, scancel, each with a deadline. A job of this fleet is one of
// this user with its name: NAME, or NAME:GPU. Nothing else is kept, so that a new process finds what an earlier one
// started. Errors say what the command printed.
class Slurm {
 public:
  explicit Slurm(SlurmOptions options) : options_(std::move(options)) {}

  // Those that have ended, too, as long as Slurm shows them (MinJobAge).
  absl::StatusOr<std::vector<FleetJob>> Jobs() const;
  // Its id. UNAVAILABLE: Slurm did not answer, and nobody knows whether the job is there; FAILED_PRECONDITION: Slurm
  // refused it.
  absl::StatusOr<int64_t> Submit(const GpuClass& gpu) const;
  // Those of them that still wait for a node; a job that has begun goes on.
  absl::Status CancelPending(const std::vector<int64_t>& jobs) const;

 private:
  const SlurmOptions options_;
};

// What squeue --json printed, of this name and user id. Slurm 22.05 and the other form of numbers and states that it
// has since 23.02.
absl::StatusOr<std::vector<FleetJob>> ReadJobs(std::string_view json, const std::string& name, int64_t user);

}  // namespace pawl
