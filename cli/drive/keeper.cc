#include "cli/drive/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <set>

#include "cli/drive/subreaper.h"
#include "worker/process/spawn.h"

namespace pawl {
namespace {

constexpr int kDriver = 3;
constexpr size_t kMostProcesses = 1000;
constexpr int kTooManyProcesses = 125;
constexpr int kKeeperLookMs = 100;
constexpr int kCountEvery = 10;  // looks

volatile sig_atomic_t told_to_end = 0;

// Removes children that have ended, but for this one.
void ReapOthers(pid_t command) {
  while (true) {
    siginfo_t info = {};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (info.si_pid == command) return;  // it comes first until somebody reaps it
    Reap(info.si_pid);
  }
}

// A process that starts while others are killed is found in the next round.
void KillAll() {
  for (int round = 0; round < 1000; ++round) {
    const std::set<pid_t> left = Descendants({getpid()});
    if (left.empty()) return;
    for (const pid_t pid : left) kill(pid, SIGKILL);
    for (siginfo_t info = {}; waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0; info = {}) {
    }
    usleep(2000);
  }
}

bool DriverIsGone() {
  pollfd driver = {kDriver, POLLIN, 0};
  return poll(&driver, 1, kKeeperLookMs) > 0 && (driver.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

}  // namespace

int KeepAgent(const std::vector<std::string>& command) {
  prctl(PR_SET_PDEATHSIG, 0);  // the driver's end is seen at descriptor 3, in time to clean up
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  signal(SIGTERM, [](int) { told_to_end = 1; });
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  SpawnOptions options;
  options.argv = command;
  options.fds = {{0, 0}, {1, 1}, {2, 2}};
  const absl::StatusOr<pid_t> pid = Spawn(options);
  if (!pid.ok()) {
    std::fprintf(stderr, "%s\n", std::string(pid.status().message()).c_str());
    return 127;
  }
  bool passed_on = false, too_many = false;
  for (int look = 1; !HasEnded(*pid) && !DriverIsGone() && !too_many; ++look) {
    if (told_to_end != 0 && !passed_on) {
      passed_on = true;
      kill(-*pid, SIGTERM);
    }
    ReapOthers(*pid);
    too_many = look % kCountEvery == 0 && Descendants({getpid()}).size() > kMostProcesses;
  }
  int code = kTooManyProcesses;
  if (too_many) {
    std::fprintf(stderr, "killed: more than %zu processes\n", kMostProcesses);
  } else if (HasEnded(*pid)) {
    const ProcessEnd end = Reap(*pid);
    code = end.signal != 0 ? 128 + end.signal : end.exit_code;
  }
  KillAll();
  return code;
}

}  // namespace pawl
