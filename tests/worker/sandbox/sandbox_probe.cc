// Tries one forbidden thing. Ends with 0 when it was denied, 1 when it succeeded (what it got is on standard output), 2
// when it could not be tried. Outside of a sandbox every probe must succeed, or it would prove nothing.
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace {

constexpr int kDenied = 0, kSucceeded = 1, kNotTried = 2;

int Denied(const char* what) {
  printf("%s: %s\n", what, strerror(errno));
  return kDenied;
}

int Succeeded(const std::string& what) {
  printf("%s\n", what.c_str());
  return kSucceeded;
}

// Connects to a listener on this machine's loopback.
int Socket(const std::string& port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return Denied("socket");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(atoi(port.c_str()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return Denied("connect");
  return Succeeded("connected");
}

int Read(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY);
  char byte;
  if (fd < 0 || read(fd, &byte, 1) < 0) return Denied(path.c_str());
  return Succeeded("read " + path);
}

// Asks for every file in a folder whether it could be written to: that does no harm outside. Processes' own folders in
// /proc are theirs.
int Writable(const std::string& folder) {
  static std::string found;
  static size_t looked_at;
  const auto look = [](const char* path, const struct stat* info, int type, FTW* place) -> int {
    if (type == FTW_D && place->level == 1 && isdigit(path[place->base])) return FTW_SKIP_SUBTREE;
    if (type != FTW_F || !S_ISREG(info->st_mode)) return FTW_CONTINUE;
    ++looked_at;
    if (access(path, W_OK) == 0 && found.size() < 500) found += std::string(" ") + path;
    return FTW_CONTINUE;
  };
  if (nftw(folder.c_str(), look, 16, FTW_PHYS | FTW_ACTIONRETVAL) != 0 || looked_at == 0) return kNotTried;
  printf("%zu files\n", looked_at);
  errno = EROFS;
  return found.empty() ? Denied(folder.c_str()) : Succeeded("could write to" + found);
}

// What only root may read of the kernel.
int KernelPages() {
  char word[8];
  const int fd = open("/proc/kpageflags", O_RDONLY);
  if (fd < 0 || read(fd, word, sizeof word) <= 0) return Denied("/proc/kpageflags");
  return Succeeded("read /proc/kpageflags");
}

int Ptrace(const std::string& pid) {
  const pid_t target = atoi(pid.c_str());
  if (ptrace(PTRACE_SEIZE, target, nullptr, nullptr) == 0) return Succeeded("traces " + pid);
  if (getpid() != 1 && ptrace(PTRACE_SEIZE, 1, nullptr, nullptr) == 0 && getppid() == 1) return Succeeded("traces 1");
  return Denied("ptrace");
}

int Processes(int wanted) {
  std::vector<pid_t> children;
  bool denied = false;
  for (int i = 0; i < wanted && !denied; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    denied = child < 0;
    if (child > 0) children.push_back(child);
  }
  const int error = errno;
  for (const pid_t child : children) kill(child, SIGKILL);
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  errno = error;
  printf("%zu processes\n", children.size());
  return denied ? Denied("fork") : Succeeded("forked");
}

// Writes so much and takes it away again. In the folder that it may write in, if there is one.
int WriteFile(const std::string& folder, double gigabytes) {
  signal(SIGXFSZ, SIG_IGN);
  const std::string path = folder + "/large";
  const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  if (fd < 0) return Denied(path.c_str());
  const std::string block(1 << 20, 'x');
  double written = 0;
  while (written < gigabytes * (1 << 30)) {
    const ssize_t size = write(fd, block.data(), block.size());
    if (size <= 0) break;
    written += size;
  }
  const int error = errno;
  unlink(path.c_str());
  errno = error;
  printf("%.0f MB\n", written / (1 << 20));
  return written >= gigabytes * (1 << 30) ? Succeeded("written") : Denied("write");
}

int Setuid() {
  if (setuid(0) == 0 || setresuid(0, 0, 0) == 0) return Succeeded("root");
  return Denied("setuid");
}

int Kill(const std::string& pid) {
  if (kill(atoi(pid.c_str()), SIGUSR1) == 0) return Succeeded("signalled " + pid);
  return Denied("kill");
}

// Every descriptor beside the standard ones.
int Descriptors() {
  std::string found;
  for (int fd = 3; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) found += " " + std::to_string(fd);
  }
  errno = EBADF;
  return found.empty() ? Denied("descriptors") : Succeeded("open:" + found);
}

int Try(const std::string& name, const std::string& argument) {
  if (name == "socket") return Socket(argument);
  if (name == "read") return Read(argument);
  if (name == "writable") return Writable(argument);
  if (name == "kernel pages") return KernelPages();
  if (name == "ptrace") return Ptrace(argument);
  if (name == "fork") return Processes(atoi(argument.c_str()));
  if (name == "write") return WriteFile(argument, 10);
  if (name == "write a little") return WriteFile(argument, 0.01);
  if (name == "setuid") return Setuid();
  if (name == "kill") return Kill(argument);
  if (name == "descriptors") return Descriptors();
  return kNotTried;
}

}  // namespace

int main(int argc, char** argv) {
  const int code = argc == 3 ? Try(argv[1], argv[2]) : kNotTried;
  fflush(nullptr);
  _exit(code);  // a leak checker would want to trace
}
