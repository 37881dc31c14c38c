// `pawl init`: drafts a bundle from a source file as it is.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/draft/draft_process.h"
#include "kernels/read/bundle_reader.h"
#include "worker/check/source_check.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

struct InitFlags {
  std::string source;
  std::string entry;
  std::string output;
  std::string reference;
};

// Nothing that is there is overwritten but the files that a bundle shares with the source's own folder.
absl::Status WriteBundle(const fs::path& folder, const DraftedBundle& bundle) {
  std::error_code error;
  for (const char* own : {"kernel.toml", "problem.py"}) {
    if (fs::exists(folder / own, error)) {
      return absl::AlreadyExistsError(
          absl::StrCat((folder / own).string(), " is there already; name another --output"));
    }
  }
  for (const auto& [path, text] : bundle.files) {
    const fs::path file = folder / path;
    if (fs::exists(file, error)) {
      std::ifstream stream(file, std::ios::binary);
      const std::string there(std::istreambuf_iterator<char>(stream), {});
      if (there == text) continue;
      return absl::AlreadyExistsError(
          absl::StrCat(file.string(), " is there already, with another content; name another --output"));
    }
    fs::create_directories(file.parent_path(), error);
    std::ofstream stream(file, std::ios::binary);
    stream << text;
    if (!stream.flush()) {
      return absl::UnavailableError(
          absl::StrCat(file.string(), " can't be written; is the disk full, the folder yours?"));
    }
  }
  return absl::OkStatus();
}

// What `pawl check` would refuse of the draft, as TODOs at its top: guesses may contradict each other in ways that the
// draft does not know.
void MarkRefused(DraftedBundle* bundle) {
  const TemporaryFolder scratch("pawl-init-");
  if (!WriteBundle(scratch.path(), *bundle).ok()) return;
  const BundleReading reading = ReadBundle(scratch.path());
  std::vector<std::string> refused;
  for (const Problem& problem : reading.problems) refused.push_back(problem.message);
  if (refused.empty()) refused = UnusedVariables(reading.bundle);
  if (refused.empty()) return;
  std::string marks;
  for (const std::string& message : refused)
    absl::StrAppend(&marks, "# TODO: `pawl check` refuses this: ", message, "\n");
  std::string& toml = bundle->files["kernel.toml"];
  toml.insert(toml.find('\n') + 1, marks);
  bundle->todos += static_cast<int>(refused.size());
  bundle->notes.push_back(absl::StrCat(refused.size(), refused.size() == 1 ? " guess does" : " guesses do",
                                       " not fit the rest: see the first TODO", refused.size() == 1 ? "" : "s",
                                       " in kernel.toml"));
}

absl::Status Init(const InitFlags& flags) {
  DraftRequest request;
  request.source = flags.source;
  request.entry = flags.entry;
  request.reference = flags.reference;
  absl::StatusOr<DraftedBundle> bundle = DraftBundle(request);
  if (!bundle.ok()) return bundle.status();
  MarkRefused(&*bundle);
  const fs::path folder = flags.output.empty() ? fs::path(bundle->name) : fs::path(flags.output);
  if (absl::Status status = WriteBundle(folder, *bundle); !status.ok()) return status;
  for (const std::string& note : bundle->notes) std::fprintf(stderr, "%s\n", note.c_str());
  std::fprintf(stderr, "%d TODOs in kernel.toml and problem.py; when they are done:\n  pawl check %s\n  pawl run %s\n",
               bundle->todos, folder.c_str(), folder.c_str());
  std::printf("%s\n", folder.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddInit(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<InitFlags>();
  CLI::App* command = app.add_subcommand("init", "Draft a bundle from a CUDA source file");
  command->group(kPreparing)
      ->footer(
          "Example: pawl init my_kernel.cu --output my_kernel\n"
          "The source stays as it is. Its kernel's parameters, its launches, constants and template arguments become "
          "kernel.toml, every guess with a TODO and the reason; problem.py gets a skeleton. A PyTorch extension's "
          "source "
          "is taken with its host functions and bindings, which the build skips.");
  command->add_option("SOURCE", flags->source, "The .cu file")->required();
  command
      ->add_option("--entry", flags->entry, "Kernel to draft, or host function whose launches to draft; several: A,B")
      ->type_name("NAME");
  command->add_option("--output", flags->output, "Folder to write (default: named after the kernel)")
      ->type_name("FOLDER");
  command->add_option("--reference", flags->reference, "Python file that computes the same: becomes problem.py")
      ->type_name("FILE");
  command->callback([flags, exit_code] {
    const absl::Status status = Init(*flags);
    *exit_code = status.ok() ? kDone : Fail("init", status);
  });
}

}  // namespace pawl
