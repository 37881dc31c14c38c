#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "worker/problem/problem_server.h"
#include "worker/process/child_process.h"
#include "worker/process/subprocess.h"
#include "worker/process/temporary_folder.h"
#include "worker/sandbox/sandboxing.h"

namespace pawl {

// Owns the Python process that runs problem.py (pawl_problem.py), in the baseline's sandbox, never in a candidate's. It
// stays: NumPy and PyTorch are imported once a worker. A problem that hangs, dies or takes too much memory is ended and
// is the bundle's fault; the process itself goes on. Other Python scripts of bundles can run in it too, with everything
// imported.
class ProblemProcess : public ProblemServer {
 public:
  struct Options {
    std::string python = DefaultPython();
    int shared_fd = -1;                      // through which tensors travel
    std::string gpu_uuid;                    // the only GPU that it sees
    const Sandboxing* sandboxing = nullptr;  // null: not locked in. Must outlive this
    int64_t memory_bytes = 0;  // of main memory that a problem may take; 0: three quarters of the machine's
    absl::Duration deadline = absl::Seconds(60);            // of inputs() and reference() together, or of check()
    absl::Duration grace = absl::Seconds(15);               // for the process to end a problem that hangs
    absl::Duration baseline_deadline = absl::Seconds(180);  // of timing at one size, torch.compile included
  };
  explicit ProblemProcess(Options options) : options_(std::move(options)) {}

  // PAWL_PYTHON, or python3.
  static std::string DefaultPython();

  // From now on: while it holds, a call that waits for the process kills it and returns CANCELLED.
  void StopWhen(Stopped stopped) { stopped_ = std::move(stopped); }

  // Begins to start the process and returns at once, long before its imports have ended. Without it, or where this
  // fails, the process is started at the first need.
  void Warm();
  // Waits while it starts. What goes wrong shows where the process is needed.
  void Settle();
  // When the imports of the last start began and how long they took; 0 seconds: no start has ended.
  std::chrono::steady_clock::time_point start_time() const { return start_time_; }
  double start_seconds() const { return start_seconds_; }

  using ScriptFiles = std::vector<std::pair<std::string, std::string>>;  // {path in the script's folder, content}
  // Whether a command is a script for this interpreter.
  bool CanRun(const std::vector<std::string>& command) const;
  // Runs a script of the bundle to its end, in a process of its own that is forked from the one with the imports and in
  // a fresh folder with these files. It never runs beside the problem of another bundle. As RunProcess.
  // FailedPrecondition: this machine can't start the interpreter.
  absl::StatusOr<ProcessResult> RunScript(const v1::Bundle& bundle, const std::vector<std::string>& command,
                                          const ScriptFiles& files, const std::string& input, absl::Duration deadline);

  absl::StatusOr<StagedEntry> Make(const v1::Bundle& bundle, const v1::Plan& plan,
                                   const EntryRequest& request) override;
  absl::StatusOr<StagedEntry> Stage(const v1::Bundle& bundle, const std::string& pool, uint32_t entry,
                                    int64_t offset) override;
  void MakeAhead(const v1::Bundle& bundle, const v1::Plan& plan, const EntryRequest& request) override;
  void StageAhead(const v1::Bundle& bundle, const std::string& pool, uint32_t entry, int64_t offset) override;
  void DropAhead() override;
  void Forget(const v1::Bundle& bundle, const std::string& pool) override;
  absl::StatusOr<bool> HasCheck(const v1::Bundle& bundle) override;
  absl::StatusOr<OwnCheck> Check(const v1::Bundle& bundle, const v1::Plan& plan,
                                 const std::vector<v1::InputDraw>& draws, bool self_test) override;
  absl::StatusOr<v1::BaselineTime> TimeBaseline(const v1::Bundle& bundle, const v1::Plan& plan) override;
  absl::StatusOr<v1::BesideBaseline> TimeBesideBaseline(const v1::Bundle& bundle, const BuiltSize& best) override;

  pid_t pid() const { return child_ ? child_->pid() : 0; }

 private:
  using Json = nlohmann::json;

  absl::Status Spawn();
  absl::Status Start();
  // Makes sure that the bundle's problem.py is the one that runs.
  absl::Status Open(const v1::Bundle& bundle);
  // Asks the bundle's problem, which is opened again once where it has ended.
  absl::StatusOr<Json> Ask(const v1::Bundle& bundle, Json request, absl::Duration deadline);
  // The same of an entry, and of one that is asked for later.
  absl::StatusOr<StagedEntry> AskEntry(const v1::Bundle& bundle, absl::StatusOr<Json> request);
  void AskAhead(const v1::Bundle& bundle, absl::StatusOr<Json> request);
  absl::StatusOr<Json> MakeRequest(const v1::Bundle& bundle, const v1::Plan& plan, const EntryRequest& request);
  absl::StatusOr<Json> Exchange(const Json& request, absl::Duration deadline);
  absl::Status Send(const Json& request, absl::Duration deadline);
  absl::StatusOr<Json> ReadReply(absl::Duration deadline);
  absl::StatusOr<Json> Receive(absl::Duration deadline);
  void Restart();

  const Options options_;
  std::unique_ptr<TemporaryFolder> folder_;  // with Pawl's modules
  std::unique_ptr<ChildProcess> child_;
  bool starting_ = false;  // it has not said yet that its imports have ended
  std::string open_;       // identity of the problem that runs; empty: none
  bool has_check_ = false;
  std::optional<Json> ahead_;  // a request that was sent, whose answer nobody has read
  std::chrono::steady_clock::time_point start_time_;
  double start_seconds_ = 0;
  Stopped stopped_;
};

}  // namespace pawl
