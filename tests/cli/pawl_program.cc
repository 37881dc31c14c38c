#include "tests/cli/pawl_program.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_split.h"

namespace pawl {

std::string BuiltProgram(const std::string& name) {
  const char* bin = std::getenv("PAWL_BIN_DIR");
  return std::string(bin == nullptr ? "build/dev/bin" : bin) + "/" + name;
}

ProcessResult Pawl(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& env) {
  ProcessOptions options;
  options.argv = {BuiltProgram("pawl")};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.env = env;
  absl::StatusOr<ProcessResult> result = RunProcess(options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : ProcessResult();
}

ProcessResult PawlOnTerminal(const std::vector<std::string>& arguments, int columns,
                             const std::map<std::string, std::string>& env) {
  winsize size = {};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  ProcessResult result;
  int terminal = -1;
  const std::string program = BuiltProgram("pawl");
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, &size);
  if (pid == 0) {
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    for (const auto& [name, value] : env) setenv(name.c_str(), value.c_str(), 1);
    execv(argv[0], argv.data());
    _exit(127);
  }
  EXPECT_GT(pid, 0);
  char block[4096];
  for (ssize_t got = 0; (got = read(terminal, block, sizeof block)) > 0;) result.out.append(block, got);
  close(terminal);
  int status = 0;
  waitpid(pid, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  std::erase(result.out, '\r');
  return result;
}

std::vector<std::string> Lines(const std::string& text) { return absl::StrSplit(text, '\n', absl::SkipEmpty()); }

std::vector<pid_t> ChildrenOf(pid_t pid) {
  const std::string id = std::to_string(pid);
  std::ifstream children("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> pids;
  for (pid_t child; children >> child;) pids.push_back(child);
  return pids;
}

bool IsGone(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string id, name, state;
  return !(stat >> id >> name >> state) || state == "Z";
}

bool EndsSoon(pid_t pid) {
  for (int i = 0; i < 1000 && !IsGone(pid); ++i) usleep(10'000);
  return IsGone(pid);
}

}  // namespace pawl
