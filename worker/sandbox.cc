#include "worker/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "worker/fd.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

// What nvcc and the host compiler need, and nothing where users or services keep data: not the whole of /usr, which
// may hold home folders or sources on some systems.
constexpr const char* kSystem[] = {"/bin",
                                   "/lib",
                                   "/lib32",
                                   "/lib64",
                                   "/usr/bin",
                                   "/usr/lib",
                                   "/usr/lib32",
                                   "/usr/lib64",
                                   "/usr/libexec",
                                   "/usr/include",
                                   "/dev/null",
                                   "/dev/zero",
                                   "/dev/urandom",
                                   "/etc/alternatives",
                                   "/etc/ld.so.cache"};
constexpr char kNewRoot[] = "/tmp";  // covered in the new namespace only; what lies below it is opened beforehand

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

// Something to show in the new root: a symbolic link as it is, or an opened file or folder.
struct Shown {
  std::string path;
  std::string link;
  Fd opened;
};

absl::StatusOr<std::vector<Shown>> OpenAll(const SandboxOptions& options) {
  std::vector<std::string> paths(std::begin(kSystem), std::end(kSystem));
  for (const std::string& path : options.visible) paths.push_back(fs::path(path).lexically_normal().string());
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  std::vector<Shown> all;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::symlink_status(path, error);
    if (!fs::exists(status)) continue;
    const bool covered = std::any_of(all.begin(), all.end(), [&](const Shown& shown) {
      return shown.link.empty() && path.starts_with(absl::StrCat(shown.path, "/"));
    });
    if (covered) continue;
    Shown shown;
    shown.path = path;
    if (fs::is_symlink(status)) {
      shown.link = fs::read_symlink(path, error);
    } else {
      shown.opened.Reset(open(path.c_str(), O_PATH | O_CLOEXEC));
      if (!shown.opened.valid()) return Failed(absl::StrCat("open ", path));
    }
    all.push_back(std::move(shown));
  }
  return all;
}

absl::Status MakeReadOnly(const std::string& target) {
  mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID;
  if (mount_setattr(AT_FDCWD, target.c_str(), AT_RECURSIVE, &attributes, sizeof(attributes)) == 0) {
    return absl::OkStatus();
  }
  if (errno != ENOSYS) return Failed(absl::StrCat("make ", target, " read-only"));
  // Kernels before 5.12. Flags that the mount has may not be taken away in a user namespace.
  struct statvfs now;
  if (statvfs(target.c_str(), &now) != 0) return Failed(absl::StrCat("statvfs ", target));
  unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID;
  if (now.f_flag & ST_NODEV) flags |= MS_NODEV;
  if (now.f_flag & ST_NOEXEC) flags |= MS_NOEXEC;
  if (now.f_flag & ST_NOATIME) flags |= MS_NOATIME;
  if (now.f_flag & ST_NODIRATIME) flags |= MS_NODIRATIME;
  if (now.f_flag & ST_RELATIME) flags |= MS_RELATIME;
  if (mount(nullptr, target.c_str(), nullptr, flags, nullptr) != 0) return Failed(absl::StrCat("remount ", target));
  return absl::OkStatus();
}

absl::Status Show(const Shown& shown) {
  const std::string target = kNewRoot + shown.path;
  std::error_code error;
  fs::create_directories(fs::path(target).parent_path(), error);
  if (!shown.link.empty()) {
    if (symlink(shown.link.c_str(), target.c_str()) != 0) return Failed(absl::StrCat("symlink ", target));
    return absl::OkStatus();
  }
  const std::string source = absl::StrCat("/proc/self/fd/", shown.opened.get());
  if (fs::is_directory(source, error)) {
    fs::create_directory(target, error);
  } else {
    Fd(open(target.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  }
  if (mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    return Failed(absl::StrCat("show ", shown.path));
  }
  return MakeReadOnly(target);
}

absl::Status ChangeRoot(const SandboxOptions& options) {
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return Failed("make mounts private");
  absl::StatusOr<std::vector<Shown>> all = OpenAll(options);
  if (!all.ok()) return all.status();
  if (mount("tmpfs", kNewRoot, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m") != 0) return Failed("mount tmpfs");
  const std::string temporary = absl::StrCat(kNewRoot, "/tmp");
  const std::string size = absl::StrCat("mode=0700,size=", options.temporary_bytes);
  std::error_code error;
  fs::create_directory(temporary, error);
  if (mount("tmpfs", temporary.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, size.c_str()) != 0) {
    return Failed("mount the private /tmp");
  }
  for (const Shown& shown : *all) {
    if (absl::Status status = Show(shown); !status.ok()) return status;
  }
  all->clear();
  if (chdir(kNewRoot) != 0 || syscall(SYS_pivot_root, ".", ".") != 0) return Failed("pivot_root");
  if (umount2(".", MNT_DETACH) != 0) return Failed("leave the old root");
  if (chdir("/tmp") != 0) return Failed("chdir /tmp");
  if (mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) != 0) {
    return Failed("make the new root read-only");
  }
  return absl::OkStatus();
}

absl::Status GiveUpPrivileges() {
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return Failed("drop capabilities");
  }
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  if (syscall(SYS_capset, &header, none) != 0) return Failed("drop capabilities");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Failed("no_new_privs");
  const rlimit no_core = {0, 0}, file_size = {rlim_t{1} << 30, rlim_t{1} << 30};
  setrlimit(RLIMIT_CORE, &no_core);
  setrlimit(RLIMIT_FSIZE, &file_size);
  umask(077);
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
absl::Status Enter(const SandboxOptions& options, bool user_namespace) {
  absl::StatusOr<Pipe> report = MakePipe();
  if (!report.ok()) return report.status();
  const uid_t user = geteuid();
  const gid_t group = getegid();
  const unsigned long flags = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWPID | SIGCHLD |
                              (user_namespace ? CLONE_NEWUSER : 0);
  // Not unshare(), which a process with threads may not (a sanitizer's thread is one).
  const pid_t init = static_cast<pid_t>(syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr));
  if (init < 0) return Failed("clone");
  if (init == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    absl::Status status = user_namespace ? MapUser(user, group) : absl::OkStatus();
    if (status.ok()) status = ChangeRoot(options);
    if (status.ok()) status = GiveUpPrivileges();
    const pid_t worker = status.ok() ? fork() : -1;
    if (worker == 0) return absl::OkStatus();
    if (status.ok() && worker < 0) status = Failed("fork");
    const std::string text = status.ok() ? "ok" : std::string(status.message());
    (void)!write(report->write.get(), text.data(), text.size());
    if (!status.ok()) _exit(1);
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

absl::Status EnterSandbox(const SandboxOptions& options) {
  absl::Status status = Enter(options, true);
  if (!status.ok() && geteuid() == 0) status = Enter(options, false);
  if (status.ok()) return status;
  return absl::FailedPreconditionError(absl::StrCat(
      "a build sandbox can't be made (", status.message(),
      "): allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, on Ubuntu "
      "kernel.apparmor_restrict_unprivileged_userns=0; in a container: --security-opt seccomp=unconfined)"));
}

}  // namespace pawl
