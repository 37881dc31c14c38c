#include "worker/process/children.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace pawl {

void KillChildren() {
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream children(task.path() / "children");
    for (pid_t pid = 0; children >> pid;) kill(getpgid(pid) == pid ? -pid : pid, SIGKILL);
  }
}

}  // namespace pawl
