#include "worker/process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "worker/process/process.h"

extern char** environ;

namespace pawl {
namespace {

// Everything the child needs, made before the fork: after it only async-signal-safe calls are allowed.
struct Prepared {
  const char* program;
  char* const* argv;
  char* const* envp;
  const char* directory;
  const std::pair<int, int>* fds;
  int* moved;
  size_t fd_count;
  int first_free_fd;  // above every number the child asked for
  int error_fd;
  bool own_group;
  pid_t parent;
};

void CloseOthersOnExec() {
  if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  for (int fd = 3; fd < 65536; ++fd) fcntl(fd, F_SETFD, FD_CLOEXEC);
}

[[noreturn]] void Fail(int error_fd) {
  const int error = errno;
  (void)!write(error_fd, &error, sizeof(error));
  _exit(127);
}

[[noreturn]] void RunChild(const Prepared& p) {
  if (p.own_group) setpgid(0, 0);
  const int error_fd = fcntl(p.error_fd, F_DUPFD_CLOEXEC, p.first_free_fd);
  if (error_fd < 0) Fail(p.error_fd);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != p.parent) _exit(127);  // the parent died before the line above

  for (int i = 1; i < NSIG; ++i) signal(i, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);

  // Two steps, because a source may carry a number that is another one's target.
  for (size_t i = 0; i < p.fd_count; ++i) {
    p.moved[i] = fcntl(p.fds[i].first, F_DUPFD_CLOEXEC, p.first_free_fd);
    if (p.moved[i] < 0) Fail(error_fd);
  }
  for (size_t i = 0; i < p.fd_count; ++i) {
    if (dup2(p.moved[i], p.fds[i].second) < 0) Fail(error_fd);
  }
  CloseOthersOnExec();
  for (size_t i = 0; i < p.fd_count; ++i) fcntl(p.fds[i].second, F_SETFD, 0);

  if (p.directory != nullptr && chdir(p.directory) != 0) Fail(error_fd);
  execve(p.program, p.argv, p.envp);
  Fail(error_fd);
}

// The children that Spawn started. A child is among them before anybody can ask, and until its id may be another's.
struct Spawned {
  absl::Mutex mutex;
  std::set<pid_t> pids ABSL_GUARDED_BY(mutex);
};

Spawned& TheSpawned() {
  static Spawned* const spawned = new Spawned;
  return *spawned;
}

pid_t ForkNoted(const Prepared& prepared) {
  Spawned& spawned = TheSpawned();
  absl::MutexLock lock(&spawned.mutex);
  const pid_t pid = fork();
  const int fork_error = errno;
  if (pid == 0) RunChild(prepared);
  if (pid > 0) spawned.pids.insert(pid);
  errno = fork_error;
  return pid;
}

std::vector<std::string> Environment(const SpawnOptions& options) {
  std::map<std::string, std::string> values;
  if (!options.clear_env) {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      std::pair<std::string, std::string> pair = absl::StrSplit(*entry, absl::MaxSplits('=', 1));
      values.insert(std::move(pair));
    }
  }
  for (const auto& [name, value] : options.env) values[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : values) entries.push_back(absl::StrCat(name, "=", value));
  return entries;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

absl::StatusOr<std::string> FindProgram(const std::string& name, const SpawnOptions& options) {
  if (name.find('/') != std::string::npos) return name;
  const auto own = options.env.find("PATH");
  const char* inherited = options.clear_env ? nullptr : getenv("PATH");
  const std::string path = own != options.env.end() ? own->second : inherited ? inherited : "/usr/bin:/bin";
  for (absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    std::string file = absl::StrCat(folder, "/", name);
    struct stat info;
    if (stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(file.c_str(), X_OK) == 0) return file;
  }
  return absl::NotFoundError(absl::StrCat("program '", name, "' was not found on PATH (", path, ")"));
}

}  // namespace

absl::StatusOr<pid_t> Spawn(const SpawnOptions& options) {
  if (options.argv.empty()) return absl::InvalidArgumentError("no program to start");
  absl::StatusOr<std::string> program = FindProgram(options.argv[0], options);
  if (!program.ok()) return program.status();
  std::vector<std::string> argv = options.argv;
  std::vector<std::string> env = Environment(options);
  std::vector<char*> argv_pointers = Pointers(argv);
  std::vector<char*> env_pointers = Pointers(env);
  std::vector<int> moved(options.fds.size());
  int highest = 2;
  for (const auto& [from, to] : options.fds) highest = std::max(highest, to);
  absl::StatusOr<Pipe> error_pipe = MakePipe();
  if (!error_pipe.ok()) return error_pipe.status();

  const Prepared prepared = {
      .program = program->c_str(),
      .argv = argv_pointers.data(),
      .envp = env_pointers.data(),
      .directory = options.directory.empty() ? nullptr : options.directory.c_str(),
      .fds = options.fds.data(),
      .moved = moved.data(),
      .fd_count = options.fds.size(),
      .first_free_fd = highest + 1,
      .error_fd = error_pipe->write.get(),
      .own_group = options.own_group,
      .parent = getpid(),
  };
  // No handler of the caller's may run in the child.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ForkNoted(prepared);
  const int fork_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return absl::ErrnoToStatus(fork_error, absl::StrCat("could not start ", *program));
  if (options.own_group) setpgid(pid, pid);  // also here: the caller may signal the group at once

  error_pipe->write.Reset();
  int error = 0;
  ssize_t got;
  while ((got = read(error_pipe->read.get(), &error, sizeof(error))) < 0 && errno == EINTR) {
  }
  if (got != sizeof(error)) return pid;
  Reap(pid);
  std::string what = absl::StrCat("could not start ", *program);
  if (!options.directory.empty()) absl::StrAppend(&what, " in ", options.directory);
  return absl::ErrnoToStatus(error, what);
}

std::string EndText(const ProcessEnd& end) {
  if (end.signal != 0) return absl::StrCat("died of signal ", end.signal, " (", strsignal(end.signal), ")");
  return absl::StrCat("exited with code ", end.exit_code);
}

bool HasEnded(pid_t pid) {
  siginfo_t info = {};
  return waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

ProcessEnd Reap(pid_t pid) {
  siginfo_t info = {};
  while (waitid(P_PID, pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  Spawned& spawned = TheSpawned();
  {
    absl::MutexLock lock(&spawned.mutex);
    while (waitid(P_PID, pid, &info, WEXITED | WNOHANG) != 0 && errno == EINTR) {
    }
    spawned.pids.erase(pid);
  }
  if (info.si_code == CLD_EXITED) return {.exit_code = info.si_status};
  return {.exit_code = -1, .signal = info.si_status};
}

bool WasSpawned(pid_t pid) {
  Spawned& spawned = TheSpawned();
  absl::MutexLock lock(&spawned.mutex);
  return spawned.pids.count(pid) != 0;
}

int OpenPidFd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

}  // namespace pawl
