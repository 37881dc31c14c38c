// pawl-sandbox: runs a program in a sandbox, for pawl. What it may see and use stands in its arguments.
#include <linux/close_range.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "worker/sandbox/sandbox.h"
#include "worker/sandbox/sandbox_command.h"

extern char** environ;

namespace pawl {
namespace {

// Nothing of the user's environment is handed on that could be a secret: only what says how to run.
constexpr const char* kKept[] = {
    "PATH=",        "LANG=",  "LC_",  "TZ=",  "TERM=", "LD_LIBRARY_PATH=", "CUDA",           "NVIDIA_",      "PYTHON",
    "VIRTUAL_ENV=", "CONDA_", "OMP_", "MKL_", "TORCH", "ASAN_OPTIONS=",    "UBSAN_OPTIONS=", "TSAN_OPTIONS="};

std::vector<std::string> Environment() {
  std::vector<std::string> kept = {"HOME=/tmp", "TMPDIR=/tmp", "USER=pawl", "LOGNAME=pawl"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool keep = std::any_of(std::begin(kKept), std::end(kKept),
                                  [&](const char* start) { return absl::StartsWith(*entry, start); });
    if (keep) kept.push_back(*entry);
  }
  return kept;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

void CloseAllBut(const std::vector<int>& kept) {
  unsigned first = 3;
  for (const int fd : kept) {  // in order
    if (static_cast<unsigned>(fd) > first) close_range(first, fd - 1, 0);
    first = fd + 1;
  }
  close_range(first, ~0U, 0);
}

int Main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    std::puts("pawl-sandbox " PAWL_VERSION);
    return 0;
  }
  SandboxCommand command;
  const std::string wrong = ReadSandboxCommand({argv + 1, argv + argc}, &command);
  if (!wrong.empty()) {
    std::fprintf(stderr, "pawl-sandbox: %s\nStarted by a worker to run candidates in isolation.\n", wrong.c_str());
    return kSandboxFailed;
  }
  std::sort(command.kept_fds.begin(), command.kept_fds.end());
  CloseAllBut(command.kept_fds);
  SandboxParts parts;
  if (const absl::Status status = EnterSandbox(command.options, &parts); !status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return kSandboxFailed;
  }
  if (command.argv.empty()) {  // only asked whether it can
    std::printf("%s\n", PartsText(parts).c_str());
    return 0;
  }
  std::vector<std::string> environment = Environment();
  execvpe(command.argv[0].c_str(), Pointers(command.argv).data(), Pointers(environment).data());
  std::fprintf(stderr, "pawl-sandbox: %s can't be run in the sandbox: %s%s\n", command.argv[0].c_str(), strerror(errno),
               errno == EACCES ? "; everybody must be allowed to read and run it (chmod o+rx)" : "");
  return kSandboxFailed;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) {
  const int code = pawl::Main(argc, argv);
  std::fflush(nullptr);
  _exit(code);
}
