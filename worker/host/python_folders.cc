#include "worker/host/python_folders.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "worker/process/subprocess.h"

namespace pawl {
namespace {

constexpr char kQuestion[] =
    "import sys\n"
    "print(sys.executable)\n"
    "for path in dict.fromkeys([sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path]): print(path)\n";

}  // namespace

PythonFolders FindPythonFolders(const std::string& program) {
  PythonFolders found;
  const std::filesystem::path path = program;
  if (!absl::StartsWith(path.filename().string(), "python")) {
    if (path.has_parent_path()) found.folders.push_back(path.parent_path());
    return found;
  }
  // It is asked outside of the sandbox, so nothing is run that a candidate could have put there.
  std::error_code error;
  const std::string real = std::filesystem::weakly_canonical(path, error).string();
  if (path.has_parent_path() && (absl::StartsWith(program, "/proc/") || absl::StartsWith(real, "/proc/") ||
                                 absl::StartsWith(real, "/tmp/") || absl::StartsWith(real, "/dev/"))) {
    return found;
  }
  ProcessOptions question;
  question.argv = {program, "-c", kQuestion};
  question.directory = "/";  // no module of anybody's must come before Python's own
  question.timeout = absl::Seconds(20);
  const absl::StatusOr<ProcessResult> answer = RunProcess(question);
  if (!answer.ok() || !answer->ok()) return found;  // the run itself will tell
  std::vector<std::string> lines = absl::StrSplit(answer->out, '\n', absl::SkipEmpty());
  if (lines.empty()) return found;
  found.program = lines[0];
  found.folders.assign(lines.begin() + 1, lines.end());
  return found;
}

}  // namespace pawl
