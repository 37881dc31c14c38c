#include "worker/sandbox/sandbox_root.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "worker/process/process.h"

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
                                   "/dev/full",
                                   "/dev/random",
                                   "/dev/urandom",
                                   "/etc/alternatives",
                                   "/etc/ld.so.cache",
                                   "/sbin",  // ldconfig, which torch.compile asks where libcuda is
                                   "/usr/sbin"};
// Where drivers and toolkits are beside the above.
constexpr const char* kGpuSystem[] = {"/usr/local/nvidia", "/usr/local/lib", "/usr/local/cuda", "/etc/nvidia"};
constexpr char kNewRoot[] = "/tmp";  // covered in the new namespace only; what lies below it is opened beforehand

absl::Status RootFailed(const std::string& what) { return absl::ErrnoToStatus(errno, what); }

// Something to show in the new root: a symbolic link as it is, or an opened file or folder.
struct Shown {
  std::string path;
  std::string link{};
  Fd opened{};
  bool writable = false;
};

void AddAll(const char* pattern, std::vector<std::string>* paths) {
  glob_t found = {};
  if (glob(pattern, 0, nullptr, &found) == 0)
    paths->insert(paths->end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
}

// A link is shown as it is, and what it leads to as well.
void AddWithTarget(const std::string& path, std::vector<std::string>* paths) {
  std::error_code error;
  paths->push_back(fs::path(path).lexically_normal().string());
  if (const fs::path real = fs::canonical(path, error); !error) paths->push_back(real.string());
}

std::vector<std::string> PathsToShow(const SandboxOptions& options) {
  std::vector<std::string> paths(std::begin(kSystem), std::end(kSystem));
  for (const std::string& path : options.visible) AddWithTarget(path, &paths);
  paths.insert(paths.end(), options.writable.begin(), options.writable.end());
  if (options.gpu) {
    for (const char* path : kGpuSystem) AddWithTarget(path, &paths);
    AddAll("/usr/local/cuda-*", &paths);
    for (std::string& device : GpuDevices()) paths.push_back(std::move(device));
  }
  return paths;
}

absl::StatusOr<std::vector<Shown>> OpenAll(const SandboxOptions& options) {
  std::vector<std::string> paths = PathsToShow(options);
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  std::vector<Shown> all;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::symlink_status(path, error);
    if (!fs::exists(status)) continue;
    const bool writable = std::find(options.writable.begin(), options.writable.end(), path) != options.writable.end();
    const bool covered = !writable && std::any_of(all.begin(), all.end(), [&](const Shown& shown) {
      return shown.link.empty() && path.starts_with(absl::StrCat(shown.path, "/"));
    });
    if (covered) continue;
    Shown shown;
    shown.path = path;
    shown.writable = writable;
    if (fs::is_symlink(status)) {
      shown.link = fs::read_symlink(path, error);
    } else {
      shown.opened.Reset(open(path.c_str(), O_PATH | O_CLOEXEC));
      if (!shown.opened.valid()) return RootFailed(absl::StrCat("open ", path));
    }
    all.push_back(std::move(shown));
  }
  return all;
}

// The mounts at a path and below it.
std::vector<std::string> MountsIn(const std::string& target) {
  std::vector<std::string> mounts;
  std::ifstream lines("/proc/self/mountinfo");
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 5));
    std::string path, error;
    if (words.size() < 6 || !absl::CUnescape(words[4], &path, &error)) continue;  // a space is \040
    if (path == target || path.starts_with(absl::StrCat(target, "/"))) mounts.push_back(path);
  }
  return mounts;
}

// For kernels before 5.12. Flags that a mount has may not be taken away in a user namespace.
absl::Status RestrictOneByOne(const std::string& target, bool writable) {
  const std::vector<std::string> mounts = MountsIn(target);
  if (std::find(mounts.begin(), mounts.end(), target) == mounts.end()) {
    return absl::InternalError(absl::StrCat("/proc/self/mountinfo does not have ", target, ", which was just mounted"));
  }
  for (const std::string& path : mounts) {
    struct statvfs now;
    if (statvfs(path.c_str(), &now) != 0) return RootFailed(absl::StrCat("statvfs ", path));
    unsigned long flags = MS_REMOUNT | MS_BIND | MS_NOSUID;
    if (!writable || now.f_flag & ST_RDONLY) flags |= MS_RDONLY;
    if (now.f_flag & ST_NODEV) flags |= MS_NODEV;
    if (now.f_flag & ST_NOEXEC) flags |= MS_NOEXEC;
    if (now.f_flag & ST_NOATIME) flags |= MS_NOATIME;
    if (now.f_flag & ST_NODIRATIME) flags |= MS_NODIRATIME;
    if (now.f_flag & ST_RELATIME) flags |= MS_RELATIME;
    if (mount(nullptr, path.c_str(), nullptr, flags, nullptr) != 0) return RootFailed(absl::StrCat("remount ", path));
  }
  return absl::OkStatus();
}

// Also keeps programs in it from giving anybody else's rights.
absl::Status Restrict(const std::string& target, bool writable) {
  mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_NOSUID | (writable ? 0 : MOUNT_ATTR_RDONLY);
  if (mount_setattr(AT_FDCWD, target.c_str(), AT_RECURSIVE, &attributes, sizeof(attributes)) == 0) {
    return absl::OkStatus();
  }
  if (errno == ENOSYS) return RestrictOneByOne(target, writable);
  return RootFailed(absl::StrCat("restrict the mount ", target));
}

absl::Status Show(const Shown& shown) {
  const std::string target = kNewRoot + shown.path;
  std::error_code error;
  fs::create_directories(fs::path(target).parent_path(), error);
  if (!shown.link.empty()) {
    if (symlink(shown.link.c_str(), target.c_str()) != 0) return RootFailed(absl::StrCat("symlink ", target));
    return absl::OkStatus();
  }
  const std::string source = absl::StrCat("/proc/self/fd/", shown.opened.get());
  if (fs::is_directory(source, error)) {
    fs::create_directory(target, error);
  } else {
    Fd(open(target.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  }
  if (mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    return RootFailed(absl::StrCat("show ", shown.path));
  }
  return Restrict(target, shown.writable);
}

// Opens the folder and what is in it to a group. Links are left alone.
absl::Status GiveToGroup(const std::string& folder, gid_t group) {
  std::vector<std::string> all = {folder};
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, error)) all.push_back(entry.path());
  for (const std::string& path : all) {
    const Fd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info;
    if (!fd.valid() || fstat(fd.get(), &info) != 0 || !(S_ISDIR(info.st_mode) || S_ISREG(info.st_mode))) continue;
    const mode_t mode = (info.st_mode & 0777) | (S_ISDIR(info.st_mode) ? 0070 : 0060);
    if (fchown(fd.get(), -1, group) != 0 || fchmod(fd.get(), mode) != 0) return RootFailed(absl::StrCat("open ", path));
  }
  return absl::OkStatus();
}

absl::Status MountTmpfs(const std::string& path, const SandboxOptions& options, uid_t user, unsigned long flags) {
  std::error_code error;
  fs::create_directories(path, error);
  std::string data = absl::StrCat("mode=0700,size=", options.temporary_bytes);
  if (user != 0) absl::StrAppend(&data, ",uid=", user);
  if (mount("tmpfs", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | flags, data.c_str()) != 0) {
    return RootFailed(absl::StrCat("mount ", path));
  }
  return absl::OkStatus();
}

// Of /proc only what belongs to processes may be written to: in a user namespace that root made, root inside is root to
// the kernel's settings as well, with no capability at all. What only root may read is covered.
absl::Status RestrictProc(const std::string& proc) {
  std::error_code error;
  fs::directory_iterator entries(proc, error);
  if (error) return absl::InternalError(absl::StrCat("list /proc: ", error.message()));
  std::vector<fs::path> all;
  for (const fs::directory_entry& entry : entries) {
    const bool process = std::isdigit(static_cast<unsigned char>(entry.path().filename().native()[0])) != 0;
    if (!process && !entry.is_symlink(error)) all.push_back(entry.path());
  }
  const std::string nothing = absl::StrCat(kNewRoot, "/dev/null");
  for (const fs::path& path : all) {
    const fs::file_status status = fs::status(path, error);
    const bool folder = fs::is_directory(status);
    const auto may = [&](fs::perms who) { return (status.permissions() & who) != fs::perms::none; };
    constexpr fs::perms kWriting = fs::perms::owner_write | fs::perms::group_write | fs::perms::others_write;
    const bool covered = !folder && !may(fs::perms::others_read);
    if (!folder && !covered && !may(kWriting)) continue;
    if (mount((covered ? nothing : path.native()).c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0) {
      if (errno == ENOENT) continue;  // a module that has gone
      return RootFailed(absl::StrCat("restrict ", path.native()));
    }
    if (absl::Status restricted = Restrict(path, false); !restricted.ok()) return restricted;
  }
  return absl::OkStatus();
}

// The kernel gives a new /proc only to who sees a whole one already, which in some containers nobody does.
absl::Status MountKernelFolders() {
  const std::string proc = absl::StrCat(kNewRoot, "/proc"), sys = absl::StrCat(kNewRoot, "/sys");
  std::error_code error;
  fs::create_directory(proc, error);
  fs::create_directory(sys, error);
  if (mount("proc", proc.c_str(), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return RootFailed("mount /proc");
  if (absl::Status status = RestrictProc(proc); !status.ok()) return status;
  if (mount("sysfs", sys.c_str(), "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, nullptr) != 0) {
    if (mount("/sys", sys.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) return RootFailed("show /sys");
    if (absl::Status status = Restrict(sys, false); !status.ok()) return status;
  }
  for (const auto& [link, target] :
       {std::pair{"/dev/fd", "/proc/self/fd"}, std::pair{"/dev/stdin", "/proc/self/fd/0"},
        std::pair{"/dev/stdout", "/proc/self/fd/1"}, std::pair{"/dev/stderr", "/proc/self/fd/2"}}) {
    if (symlink(target, absl::StrCat(kNewRoot, link).c_str()) != 0) return RootFailed(absl::StrCat("symlink ", link));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> GpuDevices() {
  std::vector<std::string> devices;
  AddAll("/dev/nvidia*", &devices);
  AddAll("/dev/dxg", &devices);  // WSL's
  return devices;
}

absl::Status ChangeRoot(const SandboxOptions& options, uid_t user, gid_t group) {
  umask(022);
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return RootFailed("make mounts private");
  for (const std::string& folder : options.writable) {
    if (group == 0) break;
    if (absl::Status status = GiveToGroup(folder, group); !status.ok()) return status;
  }
  absl::StatusOr<std::vector<Shown>> all = OpenAll(options);
  if (!all.ok()) return all.status();
  if (mount("tmpfs", kNewRoot, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m") != 0)
    return RootFailed("mount tmpfs");
  absl::Status status = MountTmpfs(absl::StrCat(kNewRoot, "/tmp"), options, user, options.executables ? 0 : MS_NOEXEC);
  if (status.ok() && options.gpu) status = MountTmpfs(absl::StrCat(kNewRoot, "/dev/shm"), options, user, MS_NOEXEC);
  for (const Shown& shown : *all) {
    if (status.ok()) status = Show(shown);
  }
  if (status.ok() && options.gpu) status = MountKernelFolders();
  if (!status.ok()) return status;
  all->clear();
  if (chdir(kNewRoot) != 0 || syscall(SYS_pivot_root, ".", ".") != 0) return RootFailed("pivot_root");
  if (umount2(".", MNT_DETACH) != 0) return RootFailed("leave the old root");
  if (chdir("/") != 0) return RootFailed("chdir /");
  if (mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) != 0) {
    return RootFailed("make the new root read-only");
  }
  return absl::OkStatus();
}

}  // namespace pawl
