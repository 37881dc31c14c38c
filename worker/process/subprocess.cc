#include "worker/process/subprocess.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/sync/steady_time.h"
#include "worker/process/process.h"
#include "worker/process/spawn.h"

namespace pawl {
namespace {

// One process from its start to its end; lives for one RunProcess.
class Run {
 public:
  explicit Run(const ProcessOptions& options) : options_(options), input_left_(options.input) {}

  absl::Status Start();
  void Loop();
  ProcessResult Finish();
  bool stopped() const { return stopped_; }

 private:
  void Signal(int signal) { kill(options_.own_group ? -pid_ : pid_, signal); }
  void Feed();
  void Drain(Fd& fd, std::string& text);
  void CheckTime();
  void CheckStopped();
  void CheckEnd();
  SteadyTime NextEvent() const;

  const ProcessOptions& options_;
  std::string_view input_left_;
  pid_t pid_ = -1;
  Fd pid_fd_, in_, out_, err_;
  bool ended_ = false;
  bool termed_ = false;
  bool killed_ = false;
  bool stopped_ = false;
  SteadyTime started_, next_, give_up_ = SteadyTime::InfiniteFuture();
  ProcessResult result_;
};

absl::Status Run::Start() {
  absl::StatusOr<Pipe> in = MakePipe(), out = MakePipe(), err = MakePipe();
  for (const auto* pipe : {&in, &out, &err}) {
    if (!pipe->ok()) return pipe->status();
  }
  started_ = SteadyNow();
  absl::StatusOr<pid_t> pid = Spawn({.argv = options_.argv,
                                     .env = options_.env,
                                     .directory = options_.directory,
                                     .fds = {{in->read.get(), 0}, {out->write.get(), 1}, {err->write.get(), 2}},
                                     .own_group = options_.own_group});
  if (!pid.ok()) return pid.status();
  pid_ = *pid;
  pid_fd_.Reset(OpenPidFd(pid_));
  in_ = std::move(in->write);
  out_ = std::move(out->read);
  err_ = std::move(err->read);
  for (Fd* fd : {&in_, &out_, &err_}) SetNonBlocking(fd->get());
  next_ = started_ + options_.timeout;
  return absl::OkStatus();
}

void Run::Feed() {
  while (!input_left_.empty()) {
    const ssize_t written = QuietWrite(in_.get(), input_left_.data(), input_left_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return;
    if (written < 0) break;  // it does not read its input: its own business
    input_left_.remove_prefix(written);
  }
  in_.Reset();
}

void Run::Drain(Fd& fd, std::string& text) {
  char buffer[65536];
  // An endless writer is left for a look at the clock now and then.
  for (int i = 0; fd.valid() && i < 32; ++i) {
    const ssize_t got = read(fd.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return fd.Reset();
    const size_t kept = std::min<size_t>(got, options_.output_cap - text.size());
    text.append(buffer, kept);
    if (kept < static_cast<size_t>(got)) result_.truncated = true;
  }
}

void Run::CheckTime() {
  if (ended_ || stopped_ || SteadyNow() < next_) return;
  result_.timed_out = true;
  if (!termed_) {
    termed_ = true;
    Signal(SIGTERM);
    next_ = SteadyNow() + options_.grace;
  } else if (!killed_) {
    killed_ = true;
    Signal(SIGKILL);
    next_ = SteadyTime::InfiniteFuture();
  }
}

void Run::CheckStopped() {
  if (ended_ || stopped_ || !options_.stopped || !options_.stopped()) return;
  stopped_ = killed_ = true;
  Signal(SIGKILL);
  next_ = SteadyTime::InfiniteFuture();
}

void Run::CheckEnd() {
  if (ended_ || !HasEnded(pid_)) return;
  ended_ = true;
  // It is not reaped yet, so the group's number can't belong to anyone else.
  if (options_.own_group) Signal(SIGKILL);
  // A process that still holds the pipes has left the group; its output is not waited for.
  give_up_ = SteadyNow() + absl::Milliseconds(200);
}

SteadyTime Run::NextEvent() const {
  SteadyTime next = ended_ ? give_up_ : next_;
  if (!ended_ && !pid_fd_.valid()) next = std::min(next, SteadyNow() + absl::Milliseconds(10));
  if (!ended_ && !stopped_ && options_.stopped) next = std::min(next, SteadyNow() + kStopLook);
  return next;
}

void Run::Loop() {
  while (!(ended_ && !out_.valid() && !err_.valid()) && SteadyNow() < give_up_) {
    pollfd fds[] = {{ended_ ? -1 : pid_fd_.get(), POLLIN, 0},
                    {in_.get(), POLLOUT, 0},
                    {out_.get(), POLLIN, 0},
                    {err_.get(), POLLIN, 0}};
    poll(fds, 4, PollTimeout(NextEvent()));
    if (fds[1].revents != 0) Feed();
    if (fds[2].revents != 0) Drain(out_, result_.out);
    if (fds[3].revents != 0) Drain(err_, result_.err);
    CheckEnd();
    CheckTime();
    CheckStopped();
  }
}

ProcessResult Run::Finish() {
  Drain(out_, result_.out);  // what lay in the pipes when the wait was given up
  Drain(err_, result_.err);
  const ProcessEnd end = Reap(pid_);
  result_.exit_code = end.exit_code;
  result_.signal = end.signal;
  result_.seconds = absl::ToDoubleSeconds(SteadyNow() - started_);
  return std::move(result_);
}

}  // namespace

std::string EndText(const ProcessResult& result) {
  if (result.timed_out) {
    return absl::StrCat("was killed after ", absl::FormatDuration(absl::Seconds(result.seconds)),
                        ": it had not ended by its deadline");
  }
  return EndText(ProcessEnd{.exit_code = result.exit_code, .signal = result.signal});
}

absl::StatusOr<ProcessResult> RunProcess(const ProcessOptions& options) {
  Run run(options);
  if (absl::Status started = run.Start(); !started.ok()) return started;
  run.Loop();
  ProcessResult result = run.Finish();
  if (run.stopped()) return absl::CancelledError(absl::StrCat(options.argv[0], " was stopped"));
  return result;
}

}  // namespace pawl
