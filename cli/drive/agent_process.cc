#include "cli/drive/agent_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/drive/transcript.h"
#include "cli/drive/keeper.h"
#include "worker/process/spawn.h"

namespace pawl {
namespace {

constexpr size_t kLongestUsageLine = 1 << 20;
constexpr absl::Duration kEndLook = absl::Milliseconds(20);

}  // namespace

absl::StatusOr<std::unique_ptr<AgentProcess>> AgentProcess::Start(const AgentProcessOptions& options) {
  absl::StatusOr<Pipe> out = MakePipe(), err = MakePipe(), driver = MakePipe();
  for (const absl::Status& status : {out.status(), err.status(), driver.status()}) {
    if (!status.ok()) return status;
  }
  const Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  SpawnOptions spawn;
  spawn.argv = {"/proc/self/exe", kKeepAgent};
  spawn.argv.insert(spawn.argv.end(), options.argv.begin(), options.argv.end());
  spawn.env = options.env;
  spawn.directory = options.folder.string();
  spawn.fds = {{nothing.get(), 0}, {out->write.get(), 1}, {err->write.get(), 2}, {driver->read.get(), 3}};
  absl::StatusOr<pid_t> pid = Spawn(spawn);
  if (!pid.ok()) return pid.status();
  std::unique_ptr<AgentProcess> process(new AgentProcess(*pid, std::move(driver->write)));
  process->reader_ =
      std::thread([agent = process.get(), options,
                   from = std::make_shared<std::pair<Fd, Fd>>(std::move(out->read), std::move(err->read))] {
        agent->Read(std::move(from->first), std::move(from->second), options);
      });
  return process;
}

AgentProcess::~AgentProcess() { Stop(absl::ZeroDuration()); }

bool AgentProcess::alive() const { return !finished_ && !HasEnded(keeper_); }

AgentUsage AgentProcess::usage() const {
  absl::MutexLock lock(&mutex_);
  return usage_;
}

void AgentProcess::Read(Fd out, Fd err, const AgentProcessOptions& options) {
  Transcript transcripts[] = {Transcript(options.out), Transcript(options.err)};
  int fds[] = {out.get(), err.get()};
  std::string line;
  std::vector<char> block(1 << 16);
  while (fds[0] >= 0 || fds[1] >= 0) {
    pollfd ready[] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
    if (poll(ready, 2, -1) < 0) continue;  // a signal
    for (int i = 0; i < 2; ++i) {
      if (ready[i].revents == 0) continue;
      const ssize_t count = read(fds[i], block.data(), block.size());
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) {
        fds[i] = -1;
        continue;
      }
      transcripts[i].Add({block.data(), static_cast<size_t>(count)});
      if (i == 1) continue;
      for (ssize_t at = 0; at < count; ++at) {
        if (block[static_cast<size_t>(at)] != '\n') {
          if (line.size() <= kLongestUsageLine) line += block[static_cast<size_t>(at)];
          continue;
        }
        absl::MutexLock lock(&mutex_);
        if (line.size() <= kLongestUsageLine) usage_.Take(line);
        line.clear();
      }
    }
  }
}

void AgentProcess::Stop(absl::Duration grace) {
  if (finished_) return;
  if (grace > absl::ZeroDuration() && alive()) {
    kill(keeper_, SIGTERM);
    for (const absl::Time deadline = absl::Now() + grace; alive() && absl::Now() < deadline;) absl::SleepFor(kEndLook);
  }
  driver_.Reset();  // whatever is left is killed
  Finish();
}

void AgentProcess::Finish() {
  finished_ = true;
  const ProcessEnd end = Reap(keeper_);
  succeeded_ = end.signal == 0 && end.exit_code == 0;
  // The keeper says 128 and the signal for the agent's.
  const bool signalled = end.signal == 0 && end.exit_code > 128;
  end_ = EndText(signalled ? ProcessEnd{.exit_code = -1, .signal = end.exit_code - 128} : end);
  reader_.join();
}

}  // namespace pawl
