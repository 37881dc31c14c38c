#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/sync/steady_condition.h"
#include "base/sync/steady_time.h"
#include "google/protobuf/message_lite.h"
#include "worker/process/process.h"
#include "worker/process/spawn.h"

namespace pawl {

struct ChildOptions {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  // added to the caller's
  bool clear_env = false;                  // the child sees `env` only
  std::string directory;
  std::vector<std::pair<int, int>> fds;  // {descriptor here, number in the child}, beside 0, 1 and 2
};

// A long-lived child that is spoken to in messages: requests on its descriptor 0, replies on its descriptor 1. It has a
// process group of its own, which is killed with this object, and it dies with this process. Its standard error is
// read all the time by a thread of this object, which keeps the end of it for error messages.
//
// One conversation at a time: Send and Receive are for one thread. Kill and alive may be called from any.
class ChildProcess {
 public:
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const ChildOptions& options);
  ~ChildProcess();

  // DeadlineExceeded: it still runs, but the conversation is out of step: Kill it. Any other error (CANCELLED: it was
  // stopped before its reply began): it is over, killed and reaped; the message says how it ended and the end of what
  // it wrote to standard error.
  absl::Status Send(const google::protobuf::MessageLite& message, SteadyTime deadline);
  absl::Status Receive(google::protobuf::MessageLite* message, SteadyTime deadline, const Stopped& stopped = nullptr);

  bool alive();
  void Kill();  // the whole group, then waits for the child's end

  pid_t pid() const { return pid_; }
  std::optional<ProcessEnd> end();  // none while it runs
  std::string stderr_tail();        // the last 8 KB

 private:
  ChildProcess(std::string name, pid_t pid, Fd requests, Fd replies, Fd errors, Pipe stop);
  void KeepErrors();
  absl::Status Explain(absl::Status status);

  const std::string name_;
  const pid_t pid_;
  Fd requests_, replies_, errors_;
  Pipe stop_;  // closing the write end ends the thread, also when a process outside the group holds standard error

  absl::Mutex mutex_;
  std::optional<ProcessEnd> end_ ABSL_GUARDED_BY(mutex_);  // set when reaped
  std::string tail_ ABSL_GUARDED_BY(mutex_);
  bool errors_ended_ ABSL_GUARDED_BY(mutex_) = false;
  SteadyCondition ended_;  // errors_ended_

  std::thread keeper_;
};

}  // namespace pawl
