// `pawl import`: other people's measured spaces as a bundle and a recording.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/commands/commands.h"
#include "cli/connect/bundle_path.h"
#include "cli/import/imported_bundle.h"
#include "cli/output/files.h"
#include "cli/text/failure.h"
#include "kernels/bundle_message.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

struct ImportFlags {
  std::string file, problem, output, gpu;
  std::vector<std::string> start;
};

// "convolution-A100" as a bundle may be called.
std::string BundleName(const std::string& text) {
  std::string name;
  for (const unsigned char c : text) name += std::isalnum(c) ? static_cast<char>(c) : '_';
  if (name.empty() || !std::isalpha(static_cast<unsigned char>(name[0]))) name = "imported_" + name;
  return name.substr(0, 64);
}

// Bundle and recording in a new folder.
absl::Status WriteAll(const fs::path& folder, const Imported& imported, const T4File& results,
                      const ImportedSpace& space) {
  if (absl::Status status = WriteTextFile(folder / "kernel.toml", ImportedToml(imported, results, space));
      !status.ok()) {
    return status;
  }
  if (absl::Status status = WriteTextFile(folder / kImportedSource, ImportedSource(imported)); !status.ok())
    return status;
  absl::StatusOr<v1::Bundle> bundle = LoadBundle(folder.string());
  if (!bundle.ok()) return bundle.status();
  if (const std::vector<std::string> problems = BundleProblems(*bundle); !problems.empty()) {
    v1::ErrorDetail detail;
    for (const std::string& problem : problems) detail.add_problems(problem);
    return WithDetail(absl::InvalidArgumentError("this space is not a valid bundle"), detail);
  }
  return WriteRecording(folder / (imported.name + ".t4.jsonl.gz"),
                        ImportedRecording(imported, results, space, *bundle));
}

// The status of writing `written`, with the folder that was asked for in place of its path.
absl::Status Named(const absl::Status& status, const std::string& written, const std::string& asked) {
  const auto named = [&](const std::string& text) { return absl::StrReplaceAll(text, {{written, asked}}); };
  v1::ErrorDetail detail = DetailOf(status);
  for (std::string& problem : *detail.mutable_problems()) problem = named(problem);
  const absl::Status told(status.code(), named(std::string(status.message())));
  return detail.problems().empty() ? told : WithDetail(told, detail);
}

// Beside the output first: a folder that is there is whole.
absl::Status WriteFolder(const fs::path& output, const Imported& imported, const T4File& results,
                         const ImportedSpace& space) {
  std::error_code error;
  const fs::path beside = output.string() + ".new";
  fs::remove_all(beside, error);
  fs::create_directories(beside, error);
  if (error) return absl::PermissionDeniedError(absl::StrCat("can't make ", beside.string(), ": ", error.message()));
  absl::Status status = WriteAll(beside, imported, results, space);
  if (status.ok()) {
    fs::rename(beside, output, error);  // an empty folder gives way
    if (error)
      status = absl::PermissionDeniedError(absl::StrCat("can't make ", output.string(), ": ", error.message()));
  }
  if (status.ok()) return status;
  fs::remove_all(beside, error);
  return Named(status, beside.string(), output.string());
}

absl::Status Import(const ImportFlags& flags) {
  const fs::path output = fs::path(flags.output).lexically_normal();
  std::error_code error;
  if (fs::exists(output, error) && !(fs::is_directory(output, error) && fs::is_empty(output, error))) {
    return absl::AlreadyExistsError(absl::StrCat(output.string(), " exists already: name a new folder"));
  }
  absl::StatusOr<T4File> results = ReadT4(flags.file);
  if (!results.ok()) return results.status();
  std::optional<T1Problem> problem;
  if (!flags.problem.empty()) {
    absl::StatusOr<T1Problem> read = ReadT1(flags.problem);
    if (!read.ok()) return read.status();
    problem = *std::move(read);
  }
  absl::StatusOr<ImportedSpace> space = ImportedSpace::Make(*results, problem, flags.start);
  if (!space.ok()) return space.status();
  Imported imported;
  imported.file = fs::path(flags.file).filename().string();
  imported.name =
      BundleName(problem && !problem->name.empty() ? problem->name : imported.file.substr(0, imported.file.find('.')));
  imported.kernel = problem ? problem->kernel : "";
  imported.gpu = flags.gpu.empty() ? results->gpu : flags.gpu;
  for (const std::string& assumed : results->assumed) std::fprintf(stderr, "%s\n", assumed.c_str());
  for (const auto& [condition, why] : space->left_out()) {
    std::fprintf(stderr, "constraint left out of the bundle: %s (%s)\n", condition.c_str(), why.c_str());
  }
  const fs::path folder = output.has_filename() ? output : output.parent_path();
  if (absl::Status status = WriteFolder(folder, imported, *results, *space); !status.ok()) return status;
  const auto correct = std::count_if(results->results.begin(), results->results.end(),
                                     [](const T4Result& result) { return result.invalidity == "correct"; });
  std::fprintf(stderr, "%zu configurations, %zu of them failed; to run it:\n", results->results.size(),
               results->results.size() - static_cast<size_t>(correct));
  std::fprintf(stderr, "  pawl run %s --device replay --recordings %s\n", folder.c_str(), folder.c_str());
  std::printf("%s\n", folder.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddImport(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App* command = app.add_subcommand("import", "Make a bundle and a recording from an auto-tuner's results");
  command->group(kPreparing)
      ->footer(
          "Example: pawl import A100.t4.json.gz --problem t1.json --gpu A100 --output conv\n"
          "The bundle has the space but no code; the recording has times but no counters. Campaigns on it run on the "
          "replay device and choose by time only.");
  command
      ->add_option("FILE", flags->file,
                   "Results in T4 format or a cache file of Kernel Tuner, plain or gzip-compressed")
      ->required();
  command->add_option("--problem", flags->problem, "Problem in T1 format: values, constraints, start variant")
      ->type_name("FILE");
  command->add_option("--output", flags->output, "New folder to write")->type_name("FOLDER")->required();
  command
      ->add_option("--start", flags->start,
                   "Values of the start variant (default: the problem's, otherwise the first correct result)")
      ->type_name("VARIABLE=VALUE");
  command->add_option("--gpu", flags->gpu, "Name of the GPU of the measurements, if the file does not name it");
  command->callback([flags, exit_code] {
    const absl::Status status = Import(*flags);
    *exit_code = status.ok() ? kDone : Fail("import", status);
  });
}

}  // namespace pawl
