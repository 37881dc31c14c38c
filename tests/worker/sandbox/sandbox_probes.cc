#include "tests/worker/sandbox/sandbox_probes.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "worker/process/subprocess.h"

namespace pawl {
namespace {

constexpr int kManyProcesses = 1200;  // more than any sandbox of Pawl's has

}  // namespace

bool CanBeWrittenTo(const std::string& folder) {
  struct statvfs info;
  return geteuid() == 0 && statvfs(folder.c_str(), &info) == 0 && (info.f_flag & ST_RDONLY) == 0;
}

SandboxProbes::SandboxProbes(const std::filesystem::path& folder, std::string program)
    : program_(std::move(program)), folder_(folder) {
  for (const char* file : {"home/.ssh/id_ed25519", "sibling/kernel.cubin", "pawl.db"}) {
    std::filesystem::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << "secret";
    EXPECT_TRUE(std::filesystem::exists(folder_ / file));
  }
  shared_memory_ = absl::StrCat("/dev/shm/pawl-probe-", getpid());
  std::ofstream(shared_memory_) << "secret";
  std::filesystem::permissions(shared_memory_, std::filesystem::perms(0644));

  listener_.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener_.get(), 16), 0);
  EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  port_ = ntohs(address.sin_port);

  victim_ = fork();
  if (victim_ == 0) {
    signal(SIGUSR1, SIG_IGN);
    while (true) pause();
  }
}

SandboxProbes::~SandboxProbes() {
  kill(victim_, SIGKILL);
  waitpid(victim_, nullptr, 0);
  std::error_code error;
  std::filesystem::remove(shared_memory_, error);
}

std::vector<SandboxProbes::Probe> SandboxProbes::Probes(const std::string& writable) const {
  const std::string victim = absl::StrCat(victim_), self = absl::StrCat(getpid());
  return {
      {"a socket", {"socket", absl::StrCat(port_)}, true},
      {"/etc/shadow", {"read", "/etc/shadow"}, geteuid() == 0},
      {"~/.ssh", {"read", folder_ / "home/.ssh/id_ed25519"}, true},
      {"another trial's files", {"read", folder_ / "sibling/kernel.cubin"}, true},
      {"the database", {"read", folder_ / "pawl.db"}, true},
      {"ptrace", {"ptrace", victim}, geteuid() == 0},
      {"another's shared memory", {"read", shared_memory_}, true},
      {"a fork bomb", {"fork", absl::StrCat(kManyProcesses)}, geteuid() == 0},
      {"a file of 10 GB", {"write", writable}, false},
      {"becoming root", {"setuid", ""}, geteuid() == 0},
      {"killing its parent", {"kill", victim}, true},
      {"killing the test", {"kill", self}, false},
      {"an inherited descriptor", {"descriptors", ""}, false},
      {"the kernel's settings", {"writable", "/proc"}, CanBeWrittenTo("/proc/sys")},
      {"the devices' settings", {"writable", "/sys"}, CanBeWrittenTo("/sys")},
  };
}

void SandboxProbes::ExpectAllDenied(const LockIn& lock_in, const std::string& writable) const {
  for (const Probe& probe : Probes(writable)) {
    ProcessOptions options;
    options.argv = {program_};
    options.argv.insert(options.argv.end(), probe.arguments.begin(), probe.arguments.end());
    options.argv = lock_in(options.argv);
    const absl::StatusOr<ProcessResult> result = RunProcess(options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->ok()) << probe.what << ": " << EndText(*result) << "; " << result->out << result->err;
  }
}

void SandboxProbes::ExpectSuccessOutside() const {
  for (const Probe& probe : Probes("")) {
    if (!probe.harmless) continue;
    ProcessOptions options;
    options.argv = {program_};
    options.argv.insert(options.argv.end(), probe.arguments.begin(), probe.arguments.end());
    const absl::StatusOr<ProcessResult> result = RunProcess(options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->exit_code, 1) << probe.what << ": " << EndText(*result) << "; " << result->out << result->err;
  }
}

}  // namespace pawl
