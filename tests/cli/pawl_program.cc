#include "tests/cli/pawl_program.h"

#include <gtest/gtest.h>
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
