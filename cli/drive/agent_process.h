#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "agent/drive/agent_usage.h"
#include "base/sync/steady_time.h"
#include "worker/process/process.h"

namespace pawl {

struct AgentProcessOptions {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  // added to this program's, of which PAWL_... are not handed on
  std::filesystem::path folder;            // where it runs
  std::filesystem::path out;               // transcripts of what it prints
  std::filesystem::path err;
};

// An agent and everything that it starts, under a keeper. Ends with its destructor, and with this program, however that
// ends. To be started by a thread that outlives it.
class AgentProcess {
 public:
  static absl::StatusOr<std::unique_ptr<AgentProcess>> Start(const AgentProcessOptions& options);
  ~AgentProcess();  // Finish

  bool alive() const;
  void AskToEnd();  // TERM
  void Kill();      // everything that it started; does not wait
  // Kills what is left and waits for the end. A keeper that has not managed by the deadline is killed itself: what it
  // kept is then its parent's to kill, which must be a Subreaper.
  void Finish(SteadyTime deadline);
  bool finished() const { return finished_; }
  // "exited with code 0", once it is finished.
  std::string end() const { return end_; }
  bool succeeded() const { return succeeded_; }
  AgentUsage usage() const;

 private:
  AgentProcess(pid_t keeper, Fd driver, Fd listening)
      : keeper_(keeper), driver_(std::move(driver)), listening_(std::move(listening)) {}
  void Read(Fd out, Fd err, Fd listening, const AgentProcessOptions& options);
  void TakeLines(std::string_view text, std::string* line);

  const pid_t keeper_;
  Fd driver_;     // closed: the keeper kills everything
  Fd listening_;  // closed: the reader ends, though a process that nobody knows of may have the agent's output still
  std::thread reader_;
  bool told_ = false;  // to end
  mutable absl::Mutex mutex_;
  AgentUsage usage_ ABSL_GUARDED_BY(mutex_);
  bool finished_ = false;
  bool succeeded_ = false;
  std::string end_;
};

}  // namespace pawl
