#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/build/compilation.h"
#include "worker/build/compiler_log.h"
#include "worker/build/cubin.h"
#include "worker/build/entry_markers.h"
#include "worker/process/subprocess.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

// Only nvcc's own messages are believed about the machine: a candidate can word its #error as it likes.
Compilation::Result Meaning(const ProcessResult& run, const CompilerError& first) {
  using Result = Compilation::Result;
  if (run.timed_out) return Result::kTimedOut;
  if (run.signal == SIGKILL) return Result::kOutOfMemory;
  if (absl::StrContains(first.text, "ptxas: Unknown option")) return Result::kOptionRefused;
  if (!first.text.starts_with("nvcc: ")) return Result::kSourceRefused;
  if (absl::StrContains(first.text, "died due to signal 9 ")) return Result::kOutOfMemory;
  if (absl::StrContains(first.text, "died due to signal")) return Result::kSourceRefused;
  for (const char* text : {"compiler", "gpu architecture", "gpu-architecture", "not found", "No such file"}) {
    if (absl::StrContains(first.text, text)) return Result::kBroken;
  }
  return Result::kOptionRefused;
}

// A name that no program takes for an option.
std::string FileArgument(const std::string& name) { return name.starts_with("-") ? "./" + name : name; }

// Runs a compiler in the folder with the files. What it makes besides goes to a private folder that is removed.
Compilation RunCompiler(const std::vector<std::string>& argv, const std::string& folder, absl::Duration timeout) {
  const TemporaryFolder own("pawl-nvcc-");
  if (own.path().empty()) return Broken("could not write to the temporary folder: is the disk full?");
  const std::string cubin = own.path() / "out.cubin";
  ProcessOptions process;
  process.argv = argv;
  process.argv.insert(process.argv.end(), {"-o", cubin});
  process.env = {{"TMPDIR", own.path().string()},
                 {"SOURCE_DATE_EPOCH", "0"}};  // of __DATE__ and __TIME__: the same source gives the same cubin
  process.directory = folder;
  process.timeout = timeout;
  process.output_cap = 1 << 20;
  process.own_group = false;
  absl::StatusOr<ProcessResult> run = RunProcess(process);
  if (!run.ok()) return Broken(std::string(run.status().message()));
  Compilation compilation;
  compilation.log = absl::StrCat(run->err, run->out);
  if (!run->ok()) {
    const std::string program = fs::path(argv[0]).filename().string();
    const CompilerError first =
        FirstError(compilation.log).value_or(CompilerError{"", 0, absl::StrCat(program, " ", EndText(*run))});
    compilation.result = Meaning(*run, first);
    compilation.error = first.text;
    return compilation;
  }
  std::ifstream out(cubin, std::ios::binary);
  compilation.cubin.assign(std::istreambuf_iterator<char>(out), {});
  return compilation;
}

}  // namespace

Compilation CompileWithNvcc(const std::string& nvcc, const CompileJob& job, const std::string& folder,
                            absl::Duration timeout) {
  if (!job.entries.empty()) {
    // A source that does not end its last line must not run into what is appended.
    std::ofstream source(fs::path(folder) / job.name, std::ios::binary | std::ios::app);
    if (!(source << MarkersFor(job.entries)).flush()) return Broken("could not write to the temporary folder");
  }
  std::vector<std::string> argv = {nvcc, "-cubin"};
  argv.insert(argv.end(), job.options.begin(), job.options.end());
  argv.insert(argv.end(), {"-x", "cu", FileArgument(job.name)});
  Compilation compilation = RunCompiler(argv, folder, timeout);
  if (compilation.result != Compilation::Result::kOk || job.entries.empty()) return compilation;
  const absl::StatusOr<std::vector<std::string>> symbols = EntrySymbols(compilation.cubin);
  if (symbols.ok()) compilation.lowered = MarkedNames(job.entries, *symbols);
  return compilation;
}

Compilation AssemblePtx(const std::string& nvcc, const CompileJob& job, const std::string& folder,
                        absl::Duration timeout) {
  const std::string ptxas = fs::path(nvcc).parent_path() / "ptxas";
  std::vector<std::string> argv = {ptxas};
  argv.insert(argv.end(), job.options.begin(), job.options.end());
  argv.push_back(FileArgument(job.name));
  return RunCompiler(argv, folder, timeout);
}

}  // namespace pawl
