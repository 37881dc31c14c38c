#include "worker/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <fstream>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker/process/process.h"
#include "worker/sandbox/sandbox_root.h"

namespace pawl {
namespace {

// Users from here on are nobody's: above all that distributions and containers hand out.
constexpr uid_t kFirstPrivateUser = 0x70000000;
constexpr uid_t kNobody = 65534;

absl::Status Failed(const std::string& what) { return absl::ErrnoToStatus(errno, what); }

absl::Status WriteFile(const char* path, const std::string& text) {
  const Fd fd(open(path, O_WRONLY | O_CLOEXEC));
  if (!fd.valid() || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return Failed(absl::StrCat("write ", path));
  }
  return absl::OkStatus();
}

absl::Status MapUser(uid_t user, gid_t group) {
  absl::Status status = WriteFile("/proc/self/setgroups", "deny");
  status.Update(WriteFile("/proc/self/uid_map", absl::StrCat(user, " ", user, " 1")));
  status.Update(WriteFile("/proc/self/gid_map", absl::StrCat(group, " ", group, " 1")));
  return status;
}

// Who the process inside is to be. Of zeros: who it is already.
struct Identity {
  uid_t user = 0;   // its own, so that processes can be counted
  gid_t group = 0;  // that of all sandboxes of one parent, which may share files
  std::vector<gid_t> device_groups;
};

bool CanBe(uid_t id, const char* map) {
  std::ifstream lines(map);
  for (uint64_t inside, outside, count; lines >> inside >> outside >> count;) {
    if (id >= inside && id - inside < count) return true;
  }
  return false;
}

Identity PrivateIdentity() {
  const auto choose = [](uid_t wanted, const char* map) -> uid_t {
    if (CanBe(wanted, map)) return wanted;
    return CanBe(kNobody, map) ? kNobody : 0;  // in a container that was lent few users
  };
  Identity identity;
  identity.user = choose(kFirstPrivateUser + getpid(), "/proc/self/uid_map");
  identity.group = choose(kFirstPrivateUser + getppid(), "/proc/self/gid_map");
  for (const std::string& device : GpuDevices()) {
    struct stat info;
    if (stat(device.c_str(), &info) == 0 && S_ISCHR(info.st_mode) && (info.st_mode & 06) != 06 && info.st_gid != 0) {
      identity.device_groups.push_back(info.st_gid);
    }
  }
  return identity;
}

absl::Status RaiseLoopback() {
  const Fd socket_fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (!socket_fd.valid() || ioctl(socket_fd.get(), SIOCSIFFLAGS, &request) != 0) return Failed("raise the loopback");
  return absl::OkStatus();
}

void Limit(__rlimit_resource resource, rlim_t most) {
  rlimit limit = {most, most};
  if (setrlimit(resource, &limit) == 0 || getrlimit(resource, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max = std::min(limit.rlim_max, most);  // nobody but root may raise one
  setrlimit(resource, &limit);
}

// Whether the kernel counts a user's processes by namespace (5.14); before, one would count those outside.
bool CountsByNamespace() {
  utsname name;
  int major = 0, minor = 0;
  return uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2 && major * 1000 + minor >= 5014;
}

// While it still may.
absl::Status ForswearCapabilities(bool counters) {
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    if (counters && capability == CAP_PERFMON) continue;
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return Failed("forswear capabilities");
  }
  return absl::OkStatus();
}

absl::Status DropCapabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  if (syscall(SYS_capset, &header, none) != 0) return Failed("drop capabilities");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Failed("no_new_privs");
  return absl::OkStatus();
}

// Kept across the change of the user and handed on to programs that are started. Without it ncu says what it lacks.
void KeepCountersOnly() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct kept[2] = {};
  const uint32_t bit = 1u << (CAP_PERFMON % 32);
  kept[CAP_PERFMON / 32] = {.effective = bit, .permitted = bit, .inheritable = bit};
  if (syscall(SYS_capset, &header, kept) == 0) {
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_PERFMON, 0, 0);
  } else {  // a root that has not got it either
    kept[CAP_PERFMON / 32] = {};
    syscall(SYS_capset, &header, kept);
  }
}

// In the process that does the work.
absl::Status GiveUpPrivileges(const SandboxOptions& options, const Identity& identity, SandboxParts* parts) {
  Limit(RLIMIT_CORE, 0);
  if (options.file_bytes > 0) Limit(RLIMIT_FSIZE, options.file_bytes);
  if (options.cpu_seconds > 0) Limit(RLIMIT_CPU, options.cpu_seconds);
  if (options.gpu) Limit(RLIMIT_MEMLOCK, RLIM_INFINITY);  // root's; drivers pin memory
  // The kernel does not hold root to it, whatever root's capabilities are.
  const bool counted = identity.user != 0 || (geteuid() != 0 && CountsByNamespace());
  if (options.processes > 0 && counted) Limit(RLIMIT_NPROC, options.processes);
  parts->processes = counted ? options.processes : 0;
  syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);  // the caller's may hold secrets
  umask(077);
  if (identity.user != 0) {
    if (options.counters) prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    const gid_t group = identity.group != 0 ? identity.group : identity.user;
    if (syscall(SYS_setgroups, identity.device_groups.size(), identity.device_groups.data()) != 0 ||
        syscall(SYS_setresgid, group, group, group) != 0 ||
        syscall(SYS_setresuid, identity.user, identity.user, identity.user) != 0) {
      return Failed("become a user of its own");
    }
    umask(007);  // the group is the sandboxes' own
  }
  parts->user = identity.user;
  if (options.counters && identity.user != 0) {
    KeepCountersOnly();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Failed("no_new_privs");
  } else if (absl::Status status = DropCapabilities(); !status.ok()) {
    return status;
  }
  std::vector<std::string> writable = {"/tmp", "/dev", "/proc"};
  writable.insert(writable.end(), options.writable.begin(), options.writable.end());
  parts->landlock = RestrictWrites(writable);
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  if (chdir(options.directory.c_str()) != 0) return Failed(absl::StrCat("stand in ", options.directory));
  return absl::OkStatus();
}

int WaitFor(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Process 1 of the namespace: removes orphans, and ends with the one process that does the work.
[[noreturn]] void BeInit(pid_t worker) {
  close_range(0, ~0U, 0);
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended < 0 && errno != EINTR) _exit(1);
    if (ended == worker) _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
  }
}

// The process that stays outside: ends as the one inside did, by the same signal.
[[noreturn]] void StayBehind(pid_t init) {
  close(0);
  close(1);
  const int status = WaitFor(init);
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (code > 128) {
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(code - 128, SIG_DFL);
    kill(getpid(), code - 128);
  }
  _exit(code);
}

// OK only in the process inside. An error: nothing has changed.
absl::Status Enter(const SandboxOptions& options, bool user_namespace, SandboxParts* parts) {
  absl::StatusOr<Pipe> report = MakePipe();
  if (!report.ok()) return report.status();
  const uid_t user = geteuid();
  const gid_t group = getegid();
  const Identity identity = user_namespace ? Identity() : PrivateIdentity();
  *parts = {.user_namespace = user_namespace};
  const unsigned long flags = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWPID | SIGCHLD |
                              (user_namespace ? CLONE_NEWUSER : 0);
  // Not unshare(), which a process with threads may not (a sanitizer's thread is one).
  const pid_t init = static_cast<pid_t>(syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr));
  if (init < 0) return Failed("clone");
  if (init == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    absl::Status status = user_namespace ? MapUser(user, group) : absl::OkStatus();
    if (status.ok() && options.loopback) status = RaiseLoopback();
    if (status.ok()) status = ChangeRoot(options, identity.user, identity.group);
    if (status.ok()) status = ForswearCapabilities(options.counters);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // before there is anybody who could look into this process
    const pid_t worker = status.ok() ? fork() : -1;
    const auto tell = [&report](const std::string& text) {
      (void)!write(report->write.get(), text.data(), text.size());
    };
    if (worker == 0) {
      status = GiveUpPrivileges(options, identity, parts);
      tell(status.ok() ? "ok" : std::string(status.message()));
      if (!status.ok()) _exit(1);
      return status;
    }
    if (status.ok() && worker < 0) status = Failed("fork");
    if (status.ok()) status = DropCapabilities();
    if (!status.ok()) {
      tell(std::string(status.message()));
      _exit(1);
    }
    BeInit(worker);
  }
  report->write.Reset();
  std::string text(PIPE_BUF, '\0');
  ssize_t got;
  while ((got = read(report->read.get(), text.data(), text.size())) < 0 && errno == EINTR) {
  }
  text.resize(std::max<ssize_t>(got, 0));
  if (text == "ok") StayBehind(init);
  WaitFor(init);
  return absl::FailedPreconditionError(text.empty() ? "the sandbox's first process died" : text);
}

}  // namespace

std::string PartsText(const SandboxParts& parts) {
  std::vector<std::string> texts;
  texts.push_back(parts.user_namespace ? "a user namespace" : parts.user != 0 ? "a user of its own" : "as root");
  texts.push_back(parts.landlock > 0 ? absl::StrCat("Landlock ", parts.landlock) : "no Landlock");
  texts.push_back(parts.processes > 0 ? absl::StrCat("at most ", parts.processes, " processes")
                                      : "no limit on processes");
  return absl::StrJoin(texts, ", ");
}

absl::Status EnterSandbox(const SandboxOptions& options, SandboxParts* parts) {
  SandboxParts unasked;
  if (parts == nullptr) parts = &unasked;
  absl::Status status = absl::FailedPreconditionError("not root");
  if (geteuid() == 0) status = Enter(options, false, parts);
  if (!status.ok()) status = Enter(options, true, parts);
  if (status.ok()) return status;
  return absl::FailedPreconditionError(
      absl::StrCat("a sandbox can't be made (", status.message(),
                   "): allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, on Ubuntu "
                   "kernel.apparmor_restrict_unprivileged_userns=0; in a container: --security-opt seccomp=unconfined "
                   "--security-opt systempaths=unconfined), or run as root"));
}

}  // namespace pawl
