#include "worker/trial/baseline.h"

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

// The files come from elsewhere: none may land outside of the folder.
absl::Status WriteFiles(const v1::Bundle& bundle, const fs::path& folder) {
  for (const v1::SourceFile& file : bundle.baseline_files()) {
    const fs::path path = fs::path(file.path()).lexically_normal();
    if (path.empty() || path.is_absolute() || *path.begin() == "..") {
      return absl::InvalidArgumentError(
          absl::StrCat("the baseline's file ", file.path(), " lies outside of the bundle"));
    }
    if (absl::Status status = WriteFile(folder / path, file.text()); !status.ok()) return status;
  }
  return absl::OkStatus();
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

std::string BesideRequest(const v1::Plan& plan, const std::string& cubin_file, uint64_t seed) {
  Json request = SizeJson(plan.size(), plan.sizes(), seed);
  request["measurements"] = kMeasurements;  // a script that times itself only answers that
  request["winner"] = {{"cubin", cubin_file},
                       {"plan", {{"tensors", TensorsJson(plan)}, {"launches", LaunchesJson(plan)}}}};
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
    if (absl::Status status = WriteFile(made.path() / kModule, embedded::kTrialPawlBaselinePy); !status.ok()) {
      return status;
    }
    return made;
  }

  const fs::path& path() const { return folder_->path(); }

 private:
  std::unique_ptr<TemporaryFolder> folder_ = std::make_unique<TemporaryFolder>("pawl-baseline-");
};

// Runs the command in `folder`, which may be the module's, and answers what it printed.
absl::StatusOr<std::string> RunIn(const fs::path& folder, const ModuleFolder& module, const v1::Bundle& bundle,
                                  const std::string& requests, const BaselineHost& host) {
  ProcessOptions options;
  options.argv = host.sandboxing.Baseline({bundle.baseline_command().begin(), bundle.baseline_command().end()},
                                          folder.string(), module.path().string());
  options.directory = folder.string();
  std::error_code error;
  const char* python_path = getenv("PYTHONPATH");
  options.env = {{"CUDA_VISIBLE_DEVICES", host.gpu.uuid()},
                 {"PYTHONPATH", absl::StrCat(fs::canonical(module.path(), error).string(),
                                             python_path == nullptr ? "" : absl::StrCat(":", python_path))}};
  options.input = requests;
  options.timeout = kDeadline;
  options.stopped = host.stopped;
  absl::StatusOr<ProcessResult> result = RunProcess(options);
  if (!result.ok()) return result.status();
  if (!result->ok()) {
    return absl::UnavailableError(
        absl::StrCat("the baseline command ", EndText(*result), ": ",
                     result->err.substr(result->err.size() > 500 ? result->err.size() - 500 : 0)));
  }
  return std::move(result->out);
}

absl::StatusOr<std::vector<v1::BaselineTime>> TimesIn(const fs::path& folder, const ModuleFolder& module,
                                                      const v1::Bundle& bundle, const std::vector<v1::Size>& sizes,
                                                      const BaselineHost& host) {
  absl::StatusOr<std::string> answers =
      RunIn(folder, module, bundle, BaselineRequests(bundle, sizes, host.gpu, SecretSeed(), kMeasurements), host);
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
  return TimesIn(folder, *module, bundle, sizes, host);
}

absl::StatusOr<std::vector<v1::BaselineTime>> RunBaseline(const v1::Bundle& bundle, const BaselineHost& host) {
  const absl::StatusOr<ModuleFolder> module = ModuleFolder::Make();
  if (!module.ok()) return module.status();
  if (absl::Status status = WriteFiles(bundle, module->path()); !status.ok()) return status;
  return TimesIn(module->path(), *module, bundle, {bundle.sizes().begin(), bundle.sizes().end()}, host);
}

absl::StatusOr<v1::BesideBaseline> RunBaselineBeside(const v1::Bundle& bundle, const BuiltSize& best,
                                                     const BaselineHost& host) {
  const absl::StatusOr<ModuleFolder> module = ModuleFolder::Make();
  if (!module.ok()) return module.status();
  if (absl::Status status = WriteFiles(bundle, module->path()); !status.ok()) return status;
  if (absl::Status status = WriteFile(module->path() / kCubin, *best.cubin); !status.ok()) return status;
  const absl::StatusOr<std::string> answer =
      RunIn(module->path(), *module, bundle, BesideRequest(best.plan, kCubin, SecretSeed()), host);
  if (!answer.ok()) return answer.status();
  return ReadBesideAnswer(*answer, best.plan.size());
}

}  // namespace pawl
