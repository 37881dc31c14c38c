#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "agent/drive/agent_usage.h"
#include "worker/process/process.h"

namespace pawl {

struct AgentProcessOptions {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;
  std::filesystem::path folder;  // where it runs
  std::filesystem::path out;     // transcripts of what it prints
  std::filesystem::path err;
};

// An agent and everything that it starts, under a keeper. Ends with its destructor, and with this program, however that
// ends. To be started by a thread that outlives it.
class AgentProcess {
 public:
  static absl::StatusOr<std::unique_ptr<AgentProcess>> Start(const AgentProcessOptions& options);
  ~AgentProcess();  // Stop(0)

  bool alive() const;
  // TERM, and after the grace everything is killed. Waits for its end.
  void Stop(absl::Duration grace);
  // "exited with code 0", once it has ended.
  std::string end() const { return end_; }
  bool succeeded() const { return succeeded_; }
  AgentUsage usage() const;

 private:
  AgentProcess(pid_t keeper, Fd driver) : keeper_(keeper), driver_(std::move(driver)) {}
  void Read(Fd out, Fd err, const AgentProcessOptions& options);
  void Finish();

  const pid_t keeper_;
  Fd driver_;  // closed: the keeper kills everything
  std::thread reader_;
  mutable absl::Mutex mutex_;
  AgentUsage usage_ ABSL_GUARDED_BY(mutex_);
  bool finished_ = false;
  bool succeeded_ = false;
  std::string end_;
};

}  // namespace pawl
