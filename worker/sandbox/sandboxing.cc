#include "worker/sandbox/sandboxing.h"

#include <link.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "worker/process/spawn.h"
#include "worker/process/subprocess.h"
#include "worker/sandbox/sandbox_command.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kTry = absl::Seconds(20);
constexpr int kProcesses = 1024;  // threads count, and tools start one a core
constexpr uint64_t kRunnerTemporary = uint64_t{64} << 20;
constexpr uint64_t kToolFile = uint64_t{256} << 20;
constexpr int kToolCpuSeconds = 1800, kRunnerCpuSeconds = 7 * 24 * 3600;

struct PythonFolders {
  std::string program;               // the interpreter itself, where a name or a shim led to it; empty: it is no Python
  std::vector<std::string> folders;  // its library and packages, those of a virtual environment and the user's too
};

constexpr char kQuestion[] =
    "import sys\n"
    "print(sys.executable)\n"
    "for path in dict.fromkeys([sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path]): print(path)\n";

// A Python interpreter is asked for its folders. For any other program, the folder that it is in.
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
  question.directory = "/";  // no module of a user may come before Python's own
  question.timeout = absl::Seconds(20);
  const absl::StatusOr<ProcessResult> answer = RunProcess(question);
  if (!answer.ok() || !answer->ok()) return found;  // the run itself will report it
  std::vector<std::string> lines = absl::StrSplit(answer->out, '\n', absl::SkipEmpty());
  if (lines.empty()) return found;
  found.program = lines[0];
  found.folders.assign(lines.begin() + 1, lines.end());
  return found;
}

bool IsUnder(const std::string& path, const std::string& folder) {
  return absl::StartsWith(absl::StrCat(path, "/"), absl::StrCat(folder, "/"));
}

// A folder of programs or libraries that may be shown: not one that holds home folders, nor a whole tree such as /opt.
void AddFolder(const fs::path& folder, std::vector<std::string>* folders) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error || !real.relative_path().has_parent_path()) return;
  const char* home = getenv("HOME");
  const std::string real_home = home == nullptr ? "" : fs::weakly_canonical(home, error).string();
  if (!real_home.empty() && IsUnder(real_home, real.string())) return;
  folders->push_back(real.string());
}

// The shared libraries that this program has loaded and that are not the system's.
std::vector<std::string> LoadedLibraries() {
  std::vector<std::string> libraries;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        if (info->dlpi_name != nullptr && info->dlpi_name[0] == '/') {
          static_cast<std::vector<std::string>*>(data)->push_back(
              fs::path(info->dlpi_name).lexically_normal().string());
        }
        return 0;
      },
      &libraries);
  std::erase_if(libraries, [](const std::string& path) {
    return IsUnder(path, "/lib") || IsUnder(path, "/usr/lib") || IsUnder(path, "/lib64") || IsUnder(path, "/usr/lib64");
  });
  return libraries;
}

// After a boot the first program that opens the GPU has the driver's helper make the device files, which is not allowed
// inside.
void MakeDeviceFiles() {
  std::error_code error;
  if (!fs::exists("/proc/driver/nvidia/version", error) || fs::exists("/dev/nvidia-uvm", error)) return;
  ProcessOptions helper;
  helper.argv = {"nvidia-modprobe", "-u"};
  int number = 0;
  for ([[maybe_unused]] const fs::directory_entry& gpu : fs::directory_iterator("/proc/driver/nvidia/gpus", error)) {
    helper.argv.push_back(absl::StrCat("-c=", number++));
  }
  helper.timeout = kTry;
  (void)RunProcess(helper);  // without them the runner says what is missing
}

}  // namespace

absl::StatusOr<Sandboxing> Sandboxing::Make(const Toolkit& toolkit, const std::string& runner_program,
                                            bool allow_unsandboxed) {
  absl::StatusOr<std::string> program = FindPawlProgram("pawl-sandbox");
  if (!program.ok()) return program.status();
  MakeDeviceFiles();
  Sandboxing sandboxing;
  sandboxing.program_ = *std::move(program);
  sandboxing.libraries_ = LoadedLibraries();
  if (!runner_program.empty()) sandboxing.libraries_.push_back(runner_program);
  const fs::path package = fs::path(runner_program).parent_path().parent_path();
  std::error_code error;
  if (fs::is_directory(package / "share/pawl", error)) AddFolder(package / "lib", &sandboxing.libraries_);
  if (const char* path = getenv("LD_LIBRARY_PATH"); path != nullptr) {
    for (const absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
      AddFolder(std::string(folder), &sandboxing.libraries_);
    }
  }
  AddFolder(toolkit.root, &sandboxing.tools_);
  AddFolder("/opt/nvidia/nsight-compute", &sandboxing.tools_);
  for (const std::string& tool : {toolkit.ncu, toolkit.compute_sanitizer}) {
    if (!tool.empty()) AddFolder(fs::canonical(tool, error).parent_path(), &sandboxing.tools_);
    if (!tool.empty()) AddFolder(fs::canonical(tool, error).parent_path().parent_path(), &sandboxing.tools_);
  }

  std::ifstream parameters("/proc/driver/nvidia/params");
  for (std::string line; std::getline(parameters, line);) {
    if (line == "RmProfilingAdminOnly: 1") sandboxing.reserved_counters_ = true;
  }

  ProcessOptions question;
  question.argv = sandboxing.Wrap(sandboxing.RunnerOptions(), {}, {});
  question.timeout = kTry;
  const absl::StatusOr<ProcessResult> answer = RunProcess(question);
  if (!answer.ok()) return answer.status();
  if (answer->ok()) {
    sandboxing.description_ = absl::StrCat("sandboxed (", absl::StripSuffix(answer->out, "\n"), ")");
    return sandboxing;
  }
  const std::string why = std::string(absl::StripSuffix(answer->err, "\n"));
  if (!allow_unsandboxed) {
    return absl::FailedPreconditionError(
        absl::StrCat(why.empty() ? EndText(*answer) : why, "; --allow-unsandboxed runs candidates without one"));
  }
  Sandboxing none;
  none.description_ = absl::StrCat("not sandboxed: ", why);
  return none;
}

std::vector<std::string> Sandboxing::Wrap(const SandboxOptions& options, const std::vector<int>& kept_fds,
                                          const std::vector<std::string>& argv) const {
  if (!on()) return argv;
  std::vector<std::string> words = SandboxArguments({.options = options, .kept_fds = kept_fds, .argv = argv});
  words.insert(words.begin(), program_);
  return words;
}

SandboxOptions Sandboxing::RunnerOptions() const {
  SandboxOptions options;
  options.visible = libraries_;
  options.gpu = true;
  options.processes = kProcesses;
  options.temporary_bytes = kRunnerTemporary;
  options.file_bytes = 0;  // outputs travel in shared memory of any size; there is no other file than in /tmp
  options.cpu_seconds = kRunnerCpuSeconds;
  return options;
}

std::vector<std::string> Sandboxing::Runner(const std::vector<std::string>& argv, int kept_fd) const {
  return Wrap(RunnerOptions(), {kept_fd}, argv);
}

std::vector<std::string> Sandboxing::Tool(const std::vector<std::string>& argv, const std::string& folder) const {
  SandboxOptions options;
  options.visible = libraries_;
  options.visible.insert(options.visible.end(), tools_.begin(), tools_.end());
  options.writable = {folder};
  options.gpu = options.loopback = options.executables = true;
  options.counters = reserved_counters_;
  options.processes = kProcesses;
  options.file_bytes = kToolFile;
  options.cpu_seconds = kToolCpuSeconds;
  return Wrap(options, {}, argv);
}

SandboxOptions Sandboxing::PythonOptions(std::vector<std::string>* argv, const std::string& folder,
                                         const std::string& own) const {
  SandboxOptions options;
  options.visible = tools_;  // a framework may want the toolkit
  std::error_code error;
  options.directory = fs::canonical(folder, error).string();
  options.visible.push_back(options.directory);
  options.writable.push_back(fs::canonical(own, error).string());
  options.gpu = options.executables = options.loopback = true;
  options.processes = kProcesses;
  options.file_bytes = kToolFile;
  options.cpu_seconds = kToolCpuSeconds;
  const PythonFolders python = FindPythonFolders(argv->at(0));
  for (const std::string& path : python.folders) AddFolder(path, &options.visible);
  if (!python.program.empty()) argv->at(0) = python.program;
  return options;
}

std::vector<std::string> Sandboxing::Baseline(const std::vector<std::string>& argv, const std::string& folder,
                                              const std::string& own) const {
  if (!on() || argv.empty()) return argv;
  std::vector<std::string> words = argv;
  const SandboxOptions options = PythonOptions(&words, folder, own);
  return Wrap(options, {}, words);
}

std::vector<std::string> Sandboxing::Problem(const std::vector<std::string>& argv, const std::string& own,
                                             int kept_fd) const {
  if (!on() || argv.empty()) return argv;
  std::vector<std::string> words = argv;
  SandboxOptions options = PythonOptions(&words, own, own);
  options.file_bytes = 0;
  options.cpu_seconds = kRunnerCpuSeconds;  // it stays as long as the worker; its problems have deadlines
  return Wrap(options, {kept_fd}, words);
}

std::vector<std::string> Sandboxing::HandOff(
    const std::string& own, const std::string& python, const std::vector<std::string>& visible,
    const std::function<std::vector<std::string>(const std::string& python)>& argv_with) const {
  if (!on()) return argv_with(python);
  std::vector<std::string> words = {python};
  SandboxOptions options = PythonOptions(&words, own, own);
  options.visible.insert(options.visible.end(), visible.begin(), visible.end());
  return Wrap(options, {}, argv_with(words[0]));
}

}  // namespace pawl
