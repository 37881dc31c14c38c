#include "worker/process/child_process.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <future>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/sync/steady_time.h"
#include "worker/process/message_pipe.h"

namespace pawl {
namespace {

constexpr size_t kTailBytes = 8192;

// A child dies with the thread that forked it, so long-lived ones are forked by a thread that ends only with the
// process. It is never destroyed.
class LastingThread {
 public:
  static LastingThread& Get() {
    static LastingThread* const thread = new LastingThread;
    return *thread;
  }

  absl::StatusOr<pid_t> Spawn(const SpawnOptions& options) {
    std::packaged_task<absl::StatusOr<pid_t>()> task([&options] { return pawl::Spawn(options); });
    std::future<absl::StatusOr<pid_t>> result = task.get_future();
    {
      absl::MutexLock lock(&mutex_);
      tasks_.push_back(std::move(task));
    }
    return result.get();
  }

 private:
  LastingThread() {
    std::thread([this] { Loop(); }).detach();
  }

  [[noreturn]] void Loop() {
    while (true) NextTask()();
  }

  std::packaged_task<absl::StatusOr<pid_t>()> NextTask() {
    const auto there = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !tasks_.empty(); };
    absl::MutexLock lock(&mutex_, absl::Condition(&there));
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  absl::Mutex mutex_;
  std::deque<std::packaged_task<absl::StatusOr<pid_t>()>> tasks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const ChildOptions& options) {
  absl::StatusOr<Pipe> requests = MakePipe(), replies = MakePipe(), errors = MakePipe(), stop = MakePipe();
  for (const auto* pipe : {&requests, &replies, &errors, &stop}) {
    if (!pipe->ok()) return pipe->status();
  }
  SpawnOptions spawn = {.argv = options.argv,
                        .env = options.env,
                        .clear_env = options.clear_env,
                        .directory = options.directory,
                        .fds = {{requests->read.get(), 0}, {replies->write.get(), 1}, {errors->write.get(), 2}}};
  spawn.fds.insert(spawn.fds.end(), options.fds.begin(), options.fds.end());
  absl::StatusOr<pid_t> pid = LastingThread::Get().Spawn(spawn);
  if (!pid.ok()) return pid.status();
  const std::string& program = options.argv[0];
  return std::unique_ptr<ChildProcess>(new ChildProcess(program.substr(program.rfind('/') + 1), *pid,
                                                        std::move(requests->write), std::move(replies->read),
                                                        std::move(errors->read), *std::move(stop)));
}

ChildProcess::ChildProcess(std::string name, pid_t pid, Fd requests, Fd replies, Fd errors, Pipe stop)
    : name_(std::move(name)),
      pid_(pid),
      requests_(std::move(requests)),
      replies_(std::move(replies)),
      errors_(std::move(errors)),
      stop_(std::move(stop)),
      keeper_([this] { KeepErrors(); }) {}

ChildProcess::~ChildProcess() {
  Kill();
  stop_.write.Reset();
  keeper_.join();
}

void ChildProcess::KeepErrors() {
  SetNonBlocking(errors_.get());
  while (true) {
    pollfd fds[] = {{errors_.get(), POLLIN, 0}, {stop_.read.get(), POLLIN, 0}};
    poll(fds, 2, -1);
    if (fds[0].revents != 0) {
      char buffer[4096];
      const ssize_t got = read(errors_.get(), buffer, sizeof(buffer));
      if (got == 0) {
        absl::MutexLock lock(&mutex_);
        errors_ended_ = true;
        ended_.SignalAll();
        return;
      }
      if (got > 0) {
        absl::MutexLock lock(&mutex_);
        tail_.append(buffer, got);
        if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
      }
    }
    if (fds[1].revents != 0) return;
  }
}

absl::Status ChildProcess::Send(const google::protobuf::MessageLite& message, SteadyTime deadline) {
  return Explain(WriteMessage(requests_.get(), message, deadline));
}

absl::Status ChildProcess::Receive(google::protobuf::MessageLite* message, SteadyTime deadline,
                                   const Stopped& stopped) {
  while (stopped && SteadyNow() < deadline) {
    if (stopped()) return Explain(absl::CancelledError("its answer is no longer needed"));
    pollfd reply = {replies_.get(), POLLIN, 0};
    if (poll(&reply, 1, PollTimeout(std::min(deadline, SteadyNow() + kStopLook))) > 0) break;
  }
  return Explain(ReadMessage(replies_.get(), message, deadline));
}

absl::Status ChildProcess::Explain(absl::Status status) {
  if (status.ok()) return status;
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError(absl::StrCat(name_, " did not answer in time"));
  }
  // A closed pipe comes just before the end that explains it; one that goes on without its pipe is ended.
  if (absl::IsUnavailable(status)) {
    const SteadyTime patience = SteadyNow() + absl::Seconds(2);
    const Fd pid_fd(OpenPidFd(pid_));
    while (alive() && SteadyNow() < patience) {
      pollfd fd = {pid_fd.get(), POLLIN, 0};
      poll(&fd, 1, pid_fd.valid() ? PollTimeout(patience) : 10);
    }
  }
  const bool ended_itself = !alive();
  Kill();
  std::string text =
      ended_itself ? absl::StrCat(name_, " ", EndText(*end())) : absl::StrCat(name_, " was ended: ", status.message());
  absl::MutexLock lock(&mutex_);
  const auto patience = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  while (!errors_ended_ && ended_.WaitUntil(&mutex_, patience)) {
  }
  const absl::string_view last = absl::StripSuffix(tail_, "\n");
  if (!last.empty()) absl::StrAppend(&text, "; it wrote: ", last);
  return absl::Status(status.code(), text);
}

bool ChildProcess::alive() {
  absl::MutexLock lock(&mutex_);
  return !end_.has_value() && !HasEnded(pid_);
}

void ChildProcess::Kill() {
  absl::MutexLock lock(&mutex_);
  if (end_.has_value()) return;
  kill(-pid_, SIGKILL);
  end_ = Reap(pid_);
}

std::optional<ProcessEnd> ChildProcess::end() {
  if (alive()) return std::nullopt;
  Kill();  // reaps, and takes what it left in its group along
  absl::MutexLock lock(&mutex_);
  return end_;
}

std::string ChildProcess::stderr_tail() {
  absl::MutexLock lock(&mutex_);
  return tail_;
}

}  // namespace pawl
