#include "worker/device/baseline.h"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "kernels/plan.h"
#include "worker/embedded.h"
#include "worker/problem/plan_json.h"
#include "worker/process/subprocess.h"
#include "worker/process/temporary_folder.h"
#include "worker/validate/output_check.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr absl::Duration kDeadline = absl::Minutes(3);
constexpr int kMeasurements = 30;
constexpr char kModule[] = "pawl_baseline.py";
constexpr char kCubin[] = "pawl_winner.cubin";

absl::Status WriteFile(const fs::path& path, std::string_view text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if ((std::ofstream(path, std::ios::binary) << text).flush()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("can't write ", path.string(), ": is the disk full?"));
}

// Of the bundle's baseline, by path. The files come from elsewhere: none may land outside of the folder.
absl::StatusOr<ProblemProcess::ScriptFiles> FilesOf(const v1::Bundle& bundle) {
  ProblemProcess::ScriptFiles files;
  for (const v1::SourceFile& file : bundle.baseline_files()) {
    const fs::path path = fs::path(file.path()).lexically_normal();
    if (path.empty() || path.is_absolute() || *path.begin() == "..") {
      return absl::InvalidArgumentError(
          absl::StrCat("the baseline's file ", file.path(), " lies outside of the bundle"));
    }
    files.emplace_back(path.string(), file.text());
  }
  return files;
}

}  // namespace

std::string BaselineRequests(const v1::Bundle& bundle, const std::vector<v1::Size>& sizes, const v1::GpuInfo& gpu,
                             uint64_t seed, int measurements) {
  std::string lines;
  for (const v1::Size& size : sizes) {
    Json request = SizeJson(size.name(), size.values(), seed);
    request["measurements"] = measurements;
    // The reference's tensors are those of every variant, without scratch.
    if (absl::StatusOr<v1::Plan> plan = MakeReferencePlan(bundle, size, gpu); plan.ok()) {
      request["tensors"] = TensorsJson(*plan);
    }
    absl::StrAppend(&lines, request.dump(), "\n");
  }
  return lines;
}

std::string BesideRequest(const v1::Plan& plan, const std::string& cubin, const std::string& cubin_file,
                          uint64_t seed) {
  Json request = SizeJson(plan.size(), plan.sizes(), seed);
  request["measurements"] = kMeasurements;  // a script that times itself only answers that
  request["winner"] = {
      {"cubin", cubin_file},
      {"plan",
       {{"tensors", TensorsJson(plan)}, {"launches", LaunchesJson(plan)}, {"symbols", SymbolsJson(plan, cubin)}}}};
  return absl::StrCat(request.dump(), "\n");
}

namespace {

// A folder of the worker's own with pawl_baseline in it.
class ModuleFolder {
 public:
  static absl::StatusOr<ModuleFolder> Make() {
    ModuleFolder made;
    if (made.folder_->path().empty()) {
      return absl::ResourceExhaustedError("can't make a temporary folder: set TMPDIR to one with room");
    }
    if (absl::Status status = WriteFile(made.path() / kModule, embedded::kDevicePawlBaselinePy); !status.ok()) {
      return status;
    }
    return made;
  }

  const fs::path& path() const { return folder_->path(); }

 private:
  std::unique_ptr<TemporaryFolder> folder_ = std::make_unique<TemporaryFolder>("pawl-baseline-");
};

std::vector<std::string> CommandOf(const v1::Bundle& bundle) {
  return {bundle.baseline_command().begin(), bundle.baseline_command().end()};
}

// What a command printed that ended well.
absl::StatusOr<std::string> AnswersOf(absl::StatusOr<ProcessResult> result) {
  if (!result.ok()) return result.status();
  if (!result->ok()) {
    return absl::UnavailableError(
        absl::StrCat("the baseline command ", EndText(*result), ": ",
                     result->err.substr(result->err.size() > 500 ? result->err.size() - 500 : 0)));
  }
  return std::move(result->out);
}

// Runs the command in `folder`, which may be the module's, and answers what it printed.
absl::StatusOr<std::string> RunIn(const fs::path& folder, const ModuleFolder& module, const v1::Bundle& bundle,
                                  const std::string& requests, const BaselineHost& host) {
  ProcessOptions options;
  options.argv = host.sandboxing.Baseline(CommandOf(bundle), folder.string(), module.path().string());
  options.directory = folder.string();
  std::error_code error;
  const char* python_path = getenv("PYTHONPATH");
  options.env = {{"CUDA_VISIBLE_DEVICES", host.gpu.uuid()},
                 {"PYTHONPATH", absl::StrCat(fs::canonical(module.path(), error).string(),
                                             python_path == nullptr ? "" : absl::StrCat(":", python_path))}};
  options.input = requests;
  options.timeout = kDeadline;
  options.stopped = host.stopped;
  return AnswersOf(RunProcess(options));
}

// Runs the command in a fresh folder with these files.
absl::StatusOr<std::string> RunWith(const ProblemProcess::ScriptFiles& files, const v1::Bundle& bundle,
                                    const std::string& requests, const BaselineHost& host) {
  if (host.python != nullptr && host.python->CanRun(CommandOf(bundle))) {
    absl::StatusOr<ProcessResult> result =
        host.python->RunScript(bundle, CommandOf(bundle), files, requests, kDeadline);
    if (!absl::IsFailedPrecondition(result.status())) return AnswersOf(std::move(result));
  }
  const absl::StatusOr<ModuleFolder> module = ModuleFolder::Make();
  if (!module.ok()) return module.status();
  for (const auto& [path, content] : files) {
    if (absl::Status status = WriteFile(module->path() / path, content); !status.ok()) return status;
  }
  return RunIn(module->path(), *module, bundle, requests, host);
}

std::string RequestsFor(const v1::Bundle& bundle, const std::vector<v1::Size>& sizes, const BaselineHost& host) {
  return BaselineRequests(bundle, sizes, host.gpu, SecretSeed(), kMeasurements);
}

absl::StatusOr<std::vector<v1::BaselineTime>> TimesOf(const absl::StatusOr<std::string>& answers,
                                                      const std::vector<v1::Size>& sizes) {
  if (!answers.ok()) return answers.status();
  absl::StatusOr<std::vector<v1::BaselineTime>> times = ReadBaselineAnswers(*answers);
  if (!times.ok()) return times;
  if (times->size() != sizes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the baseline answered ", times->size(), " of ", sizes.size(), " sizes"));
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if ((*times)[i].size() != sizes[i].name()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the baseline answered ", (*times)[i].size(), " where ", sizes[i].name(), " was asked for"));
    }
  }
  return times;
}

}  // namespace

absl::StatusOr<std::vector<v1::BaselineTime>> RunBaseline(const v1::Bundle& bundle, const fs::path& folder,
                                                          const std::vector<v1::Size>& sizes,
                                                          const BaselineHost& host) {
  const absl::StatusOr<ModuleFolder> module = ModuleFolder::Make();
  if (!module.ok()) return module.status();
  return TimesOf(RunIn(folder, *module, bundle, RequestsFor(bundle, sizes, host), host), sizes);
}

absl::StatusOr<std::vector<v1::BaselineTime>> RunBaseline(const v1::Bundle& bundle, const BaselineHost& host) {
  const std::vector<v1::Size> sizes(bundle.sizes().begin(), bundle.sizes().end());
  const absl::StatusOr<ProblemProcess::ScriptFiles> files = FilesOf(bundle);
  if (!files.ok()) return files.status();
  return TimesOf(RunWith(*files, bundle, RequestsFor(bundle, sizes, host), host), sizes);
}

absl::StatusOr<v1::BesideBaseline> RunBaselineBeside(const v1::Bundle& bundle, const BuiltSize& best,
                                                     const BaselineHost& host) {
  absl::StatusOr<ProblemProcess::ScriptFiles> files = FilesOf(bundle);
  if (!files.ok()) return files.status();
  files->emplace_back(kCubin, *best.cubin);
  const absl::StatusOr<std::string> answer =
      RunWith(*files, bundle, BesideRequest(best.plan, *best.cubin, kCubin, SecretSeed()), host);
  if (!answer.ok()) return answer.status();
  return ReadBesideAnswer(*answer, best.plan.size());
}

}  // namespace pawl
