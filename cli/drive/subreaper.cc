#include "cli/drive/subreaper.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "worker/process/spawn.h"

namespace pawl {
namespace {

constexpr int kMostRounds = 1000;
constexpr int kRoundUs = 2000;

// Of /proc/PID/stat, whose second field may hold anything in its parentheses.
pid_t ParentOf(const std::filesystem::path& process) {
  std::ifstream in(process / "stat");
  std::string stat;
  std::getline(in, stat);
  const size_t end = stat.rfind(") ");
  return end == std::string::npos || end + 4 > stat.size() ? 0 : atoi(stat.c_str() + end + 4);
}

std::multimap<pid_t, pid_t> ChildrenByParent() {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (isdigit(static_cast<unsigned char>(name[0]))) children.emplace(ParentOf(entry.path()), atoi(name.c_str()));
  }
  return children;
}

}  // namespace

std::set<pid_t> Descendants(const std::set<pid_t>& of) {
  const std::multimap<pid_t, pid_t> children = ChildrenByParent();
  std::set<pid_t> found;
  std::vector<pid_t> open(of.begin(), of.end());
  while (!open.empty()) {
    const auto [begin, end] = children.equal_range(open.back());
    open.pop_back();
    for (auto at = begin; at != end; ++at) {
      if (found.insert(at->second).second) open.push_back(at->second);
    }
  }
  return found;
}

Subreaper::Subreaper() {
  before_ = Adopted();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

std::set<pid_t> Subreaper::Adopted() const {
  std::set<pid_t> adopted;
  const std::multimap<pid_t, pid_t> children = ChildrenByParent();
  const auto [begin, end] = children.equal_range(getpid());
  for (auto at = begin; at != end; ++at) {
    if (before_.count(at->second) == 0 && !WasSpawned(at->second)) adopted.insert(at->second);
  }
  return adopted;
}

// What starts while others are killed, and what the killed leave behind, is found in the next round.
void Subreaper::KillAdopted() const {
  for (int round = 0; round < kMostRounds; ++round) {
    const std::set<pid_t> adopted = Adopted();
    if (adopted.empty()) return;
    for (const pid_t pid : Descendants(adopted)) kill(pid, SIGKILL);
    for (const pid_t pid : adopted) kill(pid, SIGKILL);
    for (const pid_t pid : adopted) waitpid(pid, nullptr, WNOHANG);
    usleep(kRoundUs);
  }
}

}  // namespace pawl
