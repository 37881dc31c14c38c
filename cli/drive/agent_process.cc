#include "cli/drive/agent_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/drive/transcript.h"
#include "base/sync/steady_time.h"
#include "cli/drive/keeper.h"
#include "worker/process/spawn.h"

extern char** environ;

namespace pawl {
namespace {

constexpr size_t kLongestUsageLine = 1 << 20;
constexpr size_t kMostLastBytes = 1 << 20;  // that a reader takes once it is told to end
constexpr absl::Duration kEndPatience = absl::Seconds(5);
constexpr int kEndLookMs = 20;

// Without PAWL_...: where the database is and the tokens for orchestrators are this program's, not its agents'.
std::map<std::string, std::string> EnvironmentFor(const AgentProcessOptions& options) {
  std::map<std::string, std::string> values = options.env;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t end = text.find('=');
    if (end == std::string_view::npos || text.starts_with("PAWL_")) continue;
    values.emplace(text.substr(0, end), text.substr(end + 1));
  }
  return values;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AgentProcess>> AgentProcess::Start(const AgentProcessOptions& options) {
  absl::StatusOr<Pipe> out = MakePipe(), err = MakePipe(), driver = MakePipe(), listening = MakePipe();
  for (const absl::Status& status : {out.status(), err.status(), driver.status(), listening.status()}) {
    if (!status.ok()) return status;
  }
  const Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  SpawnOptions spawn;
  spawn.argv = {"/proc/self/exe", kKeepAgent};
  spawn.argv.insert(spawn.argv.end(), options.argv.begin(), options.argv.end());
  spawn.env = EnvironmentFor(options);
  spawn.clear_env = true;
  spawn.directory = options.folder.string();
  spawn.fds = {{nothing.get(), 0}, {out->write.get(), 1}, {err->write.get(), 2}, {driver->read.get(), 3}};
  absl::StatusOr<pid_t> pid = Spawn(spawn);
  if (!pid.ok()) return pid.status();
  std::unique_ptr<AgentProcess> process(new AgentProcess(*pid, std::move(driver->write), std::move(listening->write)));
  struct Ends {
    Fd out, err, listening;
  };
  auto ends = std::make_shared<Ends>(Ends{std::move(out->read), std::move(err->read), std::move(listening->read)});
  process->reader_ = std::thread([agent = process.get(), options, ends] {
    agent->Read(std::move(ends->out), std::move(ends->err), std::move(ends->listening), options);
  });
  return process;
}

AgentProcess::~AgentProcess() { Finish(SteadyNow() + kEndPatience); }

bool AgentProcess::alive() const { return !finished_ && !HasEnded(keeper_); }

AgentUsage AgentProcess::usage() const {
  absl::MutexLock lock(&mutex_);
  return usage_;
}

void AgentProcess::Read(Fd out, Fd err, Fd listening, const AgentProcessOptions& options) {
  Transcript transcripts[] = {Transcript(options.out), Transcript(options.err)};
  pollfd ready[] = {{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}, {listening.get(), POLLIN, 0}};
  std::string line;
  std::vector<char> block(1 << 16);
  size_t last = 0;  // bytes since it was told to end
  while ((ready[0].fd >= 0 || ready[1].fd >= 0) && last <= kMostLastBytes) {
    const bool told = ready[2].fd < 0;
    const int count = poll(ready, 3, told ? 0 : -1);
    if (count < 0) continue;  // a signal
    if (count == 0) return;   // told, and there is nothing more
    if (ready[2].revents != 0) ready[2].fd = -1;
    for (int i = 0; i < 2; ++i) {
      if (ready[i].fd < 0 || ready[i].revents == 0) continue;
      const ssize_t size = read(ready[i].fd, block.data(), block.size());
      if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (size <= 0) {
        ready[i].fd = -1;
        continue;
      }
      const std::string_view text(block.data(), static_cast<size_t>(size));
      if (told) last += text.size();
      transcripts[i].Add(text);
      if (i == 0) TakeLines(text, &line);
    }
  }
}

void AgentProcess::TakeLines(std::string_view text, std::string* line) {
  for (const char c : text) {
    if (c != '\n') {
      if (line->size() <= kLongestUsageLine) *line += c;
      continue;
    }
    absl::MutexLock lock(&mutex_);
    if (line->size() <= kLongestUsageLine) usage_.Take(*line);
    line->clear();
  }
}

void AgentProcess::AskToEnd() {
  if (!alive()) return;
  told_ = true;
  kill(keeper_, SIGTERM);
}

void AgentProcess::Kill() {
  told_ = told_ || alive();
  driver_.Reset();
}

void AgentProcess::Finish(SteadyTime deadline) {
  if (finished_) return;
  Kill();
  const Fd process(OpenPidFd(keeper_));
  while (!HasEnded(keeper_) && SteadyNow() < deadline) {
    pollfd ready = {process.get(), POLLIN, 0};  // a negative descriptor is ignored: then it polls
    poll(&ready, 1, process.valid() ? PollTimeout(deadline) : kEndLookMs);
  }
  if (!HasEnded(keeper_)) kill(keeper_, SIGKILL);  // its agent may have stopped it
  const ProcessEnd end = Reap(keeper_);
  finished_ = true;
  succeeded_ = !told_ && end.signal == 0 && end.exit_code == 0;
  // The keeper says 128 and the signal for the agent's.
  const bool signalled = end.signal == 0 && end.exit_code > 128;
  end_ = told_             ? "ended by pawl agent"
         : end.signal != 0 ? absl::StrCat("its keeper ", EndText(end))
                           : EndText(signalled ? ProcessEnd{.exit_code = -1, .signal = end.exit_code - 128} : end);
  listening_.Reset();
  reader_.join();
}

}  // namespace pawl
