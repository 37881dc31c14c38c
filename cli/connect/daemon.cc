#include "cli/connect/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/sync/steady_time.h"
#include "worker/process/spawn.h"

namespace pawl {
namespace {

// For a daemon that was told not to finish anything.
constexpr absl::Duration kForced = absl::Seconds(2);
constexpr off_t kTail = 4096;
constexpr size_t kTailLines = 4;

// A logged line is "2026-11-15T07:21:49.934Z error what went wrong".
bool IsError(const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
  return words.size() == 3 && (words[1] == "error" || words[1] == "critical");
}

// The last error that was logged, otherwise the last lines.
std::string Tail(const std::filesystem::path& log, off_t start) {
  const Fd file(open(log.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return "";
  const off_t end = lseek(file.get(), 0, SEEK_END);
  char text[kTail];
  const off_t from = std::max(start, end - kTail);
  const ssize_t size = pread(file.get(), text, sizeof(text), from);
  if (size <= 0) return "";
  std::vector<std::string> lines =
      absl::StrSplit(absl::string_view(text, static_cast<size_t>(size)), '\n', absl::SkipWhitespace());
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (IsError(*line)) return *line;
  }
  if (lines.size() > kTailLines) lines.erase(lines.begin(), lines.end() - kTailLines);
  return absl::StrJoin(lines, "\n");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const DaemonOptions& options) {
  absl::StatusOr<std::string> program = FindPawlProgram(options.program);
  if (!program.ok()) return program.status();
  const Fd log(open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("can't write the log ", options.log.string()));
  const Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  absl::StatusOr<Pipe> out = MakePipe();
  if (!out.ok()) return out.status();
  SpawnOptions spawn;
  spawn.argv = {*program};
  spawn.argv.insert(spawn.argv.end(), options.arguments.begin(), options.arguments.end());
  spawn.fds = {{nothing.get(), 0}, {options.announces ? out->write.get() : log.get(), 1}, {log.get(), 2}};
  spawn.env = options.env;
  const off_t log_start = lseek(log.get(), 0, SEEK_END);
  absl::StatusOr<pid_t> pid = Spawn(spawn);
  if (!pid.ok()) return pid.status();
  return std::unique_ptr<Daemon>(new Daemon(options, *pid, std::move(out->read), log_start));
}

Daemon::~Daemon() { Stop(absl::Milliseconds(500)); }

absl::StatusOr<std::string> Daemon::FirstLine(absl::Duration wait) {
  const SteadyTime deadline = SteadyNow() + wait;
  std::string line;
  while (true) {
    pollfd ready = {out_.get(), POLLIN, 0};
    const int polled = poll(&ready, 1, PollTimeout(deadline));
    if (polled < 0) continue;  // a signal
    if (polled == 0) {
      return absl::DeadlineExceededError(absl::StrCat(options_.program, " did not start within ",
                                                      absl::FormatDuration(wait),
                                                      "; its log: ", options_.log.string()));
    }
    char c;
    const ssize_t got = read(out_.get(), &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      WaitForEnd(absl::Seconds(5));
      return absl::UnavailableError(Obituary());
    }
    if (c == '\n') return line;
    line += c;
  }
}

bool Daemon::alive() { return !end_ && !HasEnded(pid_); }

bool Daemon::WaitForEnd(absl::Duration wait) {
  const SteadyTime deadline = SteadyNow() + wait;
  const Fd process(OpenPidFd(pid_));
  while (!HasEnded(pid_) && SteadyNow() < deadline) {
    pollfd ready = {process.get(), POLLIN, 0};  // a negative descriptor is ignored: then it polls
    poll(&ready, 1, process.valid() ? PollTimeout(deadline) : 20);
  }
  return HasEnded(pid_);
}

void Daemon::Stop(absl::Duration grace) {
  if (end_) return;
  for (absl::Duration wait : {grace, kForced}) {
    kill(pid_, SIGTERM);
    if (WaitForEnd(wait)) break;
  }
  kill(-pid_, SIGKILL);  // also what it left behind in its group, before its id is free again
  end_ = Reap(pid_);
}

std::string Daemon::Obituary() {
  if (!end_ && HasEnded(pid_)) Stop(absl::ZeroDuration());
  const std::string end = end_ ? EndText(*end_) : "is running";
  const std::string said = Tail(options_.log, log_start_);
  const std::string silent = absl::StrCat("; its log says nothing, is that disk full? ", options_.log.string());
  return absl::StrCat(options_.program, " ", end, !said.empty() ? ":\n" : end_ ? silent : "", said);
}

}  // namespace pawl
