#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/build/compilation.h"
#include "worker/build/compiler_log.h"
#include "worker/process/subprocess.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

// A plain file name, so that messages name the source as the caller does and nothing is written elsewhere.
std::string FileName(const std::string& name) {
  std::string file = fs::path(name).filename().string();
  if (file.empty() || file[0] == '-' || file[0] == '.') file = "kernel.cu";
  return file;
}

// Only nvcc's own messages are believed about the machine: a candidate can word its #error as it likes.
Compilation::Result Meaning(const ProcessResult& run, const CompilerError& first) {
  using Result = Compilation::Result;
  if (run.timed_out) return Result::kTimedOut;
  if (run.signal == SIGKILL) return Result::kOutOfMemory;
  if (!first.text.starts_with("nvcc: ")) return Result::kSourceRefused;
  if (absl::StrContains(first.text, "died due to signal 9 ")) return Result::kOutOfMemory;
  if (absl::StrContains(first.text, "died due to signal")) return Result::kSourceRefused;
  for (const char* text : {"compiler", "gpu architecture", "gpu-architecture", "not found", "No such file"}) {
    if (absl::StrContains(first.text, text)) return Result::kBroken;
  }
  return Result::kOptionRefused;
}

}  // namespace

Compilation CompileWithNvcc(const std::string& nvcc, const std::string& source, const std::string& name,
                            const std::vector<std::string>& options, absl::Duration timeout) {
  const TemporaryFolder folder("pawl-nvcc-");
  const std::string file = FileName(name);
  if (folder.path().empty() || !(std::ofstream(folder.path() / file) << source).flush()) {
    return Broken("could not write to the temporary folder: is the disk full?");
  }
  ProcessOptions process;
  process.argv = {nvcc, "-cubin"};
  process.env = {{"TMPDIR", folder.path().string()},
                 {"SOURCE_DATE_EPOCH", "0"}};  // of __DATE__ and __TIME__: the same source gives the same cubin
  process.directory = folder.path().string();
  process.timeout = timeout;
  process.output_cap = 1 << 20;
  process.own_group = false;
  process.argv.insert(process.argv.end(), options.begin(), options.end());
  for (const char* last : {"-o", "out.cubin", "-x", "cu"}) process.argv.push_back(last);
  process.argv.push_back(file);
  absl::StatusOr<ProcessResult> run = RunProcess(process);
  if (!run.ok()) return Broken(std::string(run.status().message()));
  Compilation compilation;
  compilation.log = absl::StrCat(run->err, run->out);
  if (!run->ok()) {
    const CompilerError first = FirstError(compilation.log).value_or(CompilerError{"", 0, "nvcc " + EndText(*run)});
    compilation.result = Meaning(*run, first);
    compilation.error = first.text;
    return compilation;
  }
  std::ifstream out(folder.path() / "out.cubin", std::ios::binary);
  compilation.cubin.assign(std::istreambuf_iterator<char>(out), {});
  return compilation;
}

}  // namespace pawl
