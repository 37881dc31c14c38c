#include "tests/promises/daemon.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <thread>

#include "worker/process/process.h"
#include "worker/process/spawn.h"

namespace pawl {
namespace {

std::string FileText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();  // catches what a process that ends meanwhile makes the buffer throw
  return text.str();
}

// Behind the command's name, which may hold anything: state, parent, ... start time.
std::vector<std::string> StatFields(pid_t pid) {
  const std::string text = FileText("/proc/" + std::to_string(pid) + "/stat");
  std::istringstream rest(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  return {std::istream_iterator<std::string>(rest), {}};
}

}  // namespace

Daemon::Daemon(const std::string& program, const std::vector<std::string>& arguments,
               const std::map<std::string, std::string>& env) {
  const char* bin = std::getenv("PAWL_BIN_DIR");
  SpawnOptions options;
  options.argv = {std::string(bin == nullptr ? "." : bin) + "/" + program};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.env = env;
  const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Fd out(open((folder_.path() / "out").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  options.fds = {{null.get(), 0}, {out.get(), 1}, {out.get(), 2}};
  const absl::StatusOr<pid_t> pid = Spawn(options);
  EXPECT_TRUE(pid.ok()) << pid.status();
  pid_ = pid.value_or(0);
  ended_ = pid_ == 0;
}

Daemon::~Daemon() {
  Signal(SIGKILL);
  Signal(SIGCONT);
  if (!ended_) Reap(pid_);
}

bool Daemon::Says(const std::string& text) {
  for (int i = 0; i < 4000; ++i) {
    if (Output().find(text) != std::string::npos) return true;
    if (!ended_ && HasEnded(pid_)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return Output().find(text) != std::string::npos;
}

// kill() takes -1 and 0 for whole crowds: only a child that is there is signalled.
void Daemon::Signal(int signal) {
  if (!ended_) kill(pid_, signal);
}

int Daemon::WaitForEnd(std::chrono::milliseconds patience) {
  if (ended_) return -1;
  const Fd fd(OpenPidFd(pid_));
  pollfd ready = {fd.get(), POLLIN, 0};
  if (poll(&ready, 1, static_cast<int>(patience.count())) != 1) return -1;
  const ProcessEnd end = Reap(pid_);
  ended_ = true;
  return end.signal != 0 ? -2 : end.exit_code;
}

std::string Daemon::Output() const { return FileText(folder_.path() / "out"); }

double PeakMegabytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes / 1024;
  }
  return 0;
}

std::vector<ProcessId> DescendantsOf(pid_t root) {
  std::map<pid_t, std::vector<pid_t>> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    const std::vector<std::string> fields = pid > 0 ? StatFields(pid) : std::vector<std::string>();
    if (fields.size() > 1) children[std::atoi(fields[1].c_str())].push_back(pid);
  }
  std::vector<ProcessId> found;
  std::vector<pid_t> left = {root};
  while (!left.empty()) {
    const pid_t parent = left.back();
    left.pop_back();
    for (const pid_t pid : children[parent]) {
      const std::vector<std::string> fields = StatFields(pid);
      if (fields.size() < 20) continue;
      std::string command = FileText("/proc/" + std::to_string(pid) + "/cmdline");
      for (char& c : command) c = c == '\0' ? ' ' : c;
      found.push_back({pid, fields[19], command});
      left.push_back(pid);
    }
  }
  return found;
}

bool IsAlive(const ProcessId& process) {
  const std::vector<std::string> fields = StatFields(process.pid);
  return fields.size() >= 20 && fields[0] != "Z" && fields[0] != "X" && fields[19] == process.started;
}

}  // namespace pawl
