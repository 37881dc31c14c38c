#include "worker/trial/baseline.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/plan.h"
#include "worker/embedded.h"
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
constexpr size_t kMinRatios = 5;

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

const char* TypeWord(v1::DataType type) {
  switch (type) {
    case v1::DATA_TYPE_F16:
      return "f16";
    case v1::DATA_TYPE_BF16:
      return "bf16";
    case v1::DATA_TYPE_F64:
      return "f64";
    case v1::DATA_TYPE_I32:
      return "i32";
    default:
      return "f32";
  }
}

const char* RoleWord(v1::TensorRole role) {
  return role == v1::TENSOR_ROLE_OUTPUT ? "output" : role == v1::TENSOR_ROLE_SCRATCH ? "scratch" : "input";
}

Json TensorsOf(const v1::Plan& plan) {
  Json tensors = Json::array();
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    Json& added =
        tensors.emplace_back(Json{{"name", tensor.name()},
                                  {"type", TypeWord(tensor.type())},
                                  {"role", RoleWord(tensor.role())},
                                  {"shape", std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end())},
                                  {"fill", tensor.fill() == v1::FILL_UNIFORM ? "uniform" : "normal"}});
    if (tensor.has_low()) added["low"] = tensor.low();
    if (tensor.has_high()) added["high"] = tensor.high();
    if (tensor.align() > 0) added["align"] = tensor.align();
  }
  return tensors;
}

// As in memory: JSON has no infinity, and a float is not a double.
template <typename T>
std::string HexOf(T value) {
  char bytes[sizeof(T)];
  memcpy(bytes, &value, sizeof(T));
  return absl::BytesToHexString(absl::string_view(bytes, sizeof(T)));
}

Json ArgumentOf(const v1::PlanArgument& argument) {
  switch (argument.argument_case()) {
    case v1::PlanArgument::kTensor:
      return {{"tensor", argument.tensor()}};
    case v1::PlanArgument::kF32:
      return {{"bytes", HexOf(argument.f32())}};
    case v1::PlanArgument::kF64:
      return {{"bytes", HexOf(argument.f64())}};
    default:
      return {{"bytes", HexOf(argument.i32())}};
  }
}

Json LaunchesOf(const v1::Plan& plan) {
  Json launches = Json::array();
  for (const v1::PlanLaunch& launch : plan.launches()) {
    Json arguments = Json::array();
    for (const v1::PlanArgument& argument : launch.arguments()) arguments.push_back(ArgumentOf(argument));
    launches.push_back({{"entry", launch.entry()},
                        {"grid", {launch.grid().x(), launch.grid().y(), launch.grid().z()}},
                        {"block", {launch.block().x(), launch.block().y(), launch.block().z()}},
                        {"shared", launch.shared_bytes()},
                        {"arguments", std::move(arguments)}});
  }
  return launches;
}

// Small enough for every generator's seed.
Json RequestOf(const std::string& size, const google::protobuf::Map<std::string, int32_t>& sizes, uint64_t seed) {
  Json request = {{"size", size}, {"seed", seed >> 33}, {"sizes", Json::object()}};
  for (const auto& [name, value] : sizes) request["sizes"][name] = value;
  return request;
}

// The answer of a line. UNAVAILABLE: it is an error, of the baseline.
absl::StatusOr<Json> ReadAnswer(absl::string_view line, int number) {
  Json answer = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  const auto text = [&](const char* key) {
    return answer.contains(key) && answer[key].is_string() ? answer[key].get<std::string>() : std::string();
  };
  if (!answer.is_object() || text("size").empty()) {
    return absl::InvalidArgumentError(absl::StrCat("line ", number,
                                                   " of the baseline's output is no answer: ", line.substr(0, 200),
                                                   ". Expected {\"size\": ..., \"graph_us\": ...}"));
  }
  if (answer.contains("error")) {
    return absl::UnavailableError(absl::StrCat("the baseline failed at size ", text("size"), ": ", text("error")));
  }
  return answer;
}

// A positive number, or an error that names it.
absl::StatusOr<double> PositiveOf(const Json& answer, const char* key, int number) {
  if (!answer.contains(key) || !answer[key].is_number() || !(answer[key].get<double>() > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", number, " of the baseline's output lacks a positive ", key));
  }
  return answer[key].get<double>();
}

}  // namespace

std::string BaselineRequests(const v1::Bundle& bundle, const std::vector<v1::Size>& sizes, const v1::GpuInfo& gpu,
                             uint64_t seed, int measurements) {
  std::string lines;
  for (const v1::Size& size : sizes) {
    Json request = RequestOf(size.name(), size.values(), seed);
    request["measurements"] = measurements;
    // The reference's tensors are those of every variant, without scratch.
    if (absl::StatusOr<v1::Plan> plan = MakeReferencePlan(bundle, size, gpu); plan.ok()) {
      request["tensors"] = TensorsOf(*plan);
    }
    absl::StrAppend(&lines, request.dump(), "\n");
  }
  return lines;
}

std::string BesideRequest(const v1::Plan& plan, const std::string& cubin_file, uint64_t seed) {
  Json request = RequestOf(plan.size(), plan.sizes(), seed);
  request["measurements"] = kMeasurements;  // a script that times itself only answers that
  request["winner"] = {{"cubin", cubin_file}, {"plan", {{"tensors", TensorsOf(plan)}, {"launches", LaunchesOf(plan)}}}};
  return absl::StrCat(request.dump(), "\n");
}

absl::StatusOr<std::vector<v1::BaselineTime>> ReadBaselineAnswers(std::string_view lines) {
  std::vector<v1::BaselineTime> times;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(absl::string_view(lines.data(), lines.size()), '\n')) {
    ++number;
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const absl::StatusOr<Json> answer = ReadAnswer(line, number);
    if (!answer.ok()) return answer.status();
    v1::BaselineTime time;
    time.set_size((*answer)["size"].get<std::string>());
    if (answer->contains("what") && (*answer)["what"].is_string()) time.set_what((*answer)["what"].get<std::string>());
    for (const auto& [key, set] : {std::pair{"graph_us", &v1::BaselineTime::set_graph_us},
                                   std::pair{"event_us", &v1::BaselineTime::set_event_us}}) {
      const absl::StatusOr<double> us = PositiveOf(*answer, key, number);
      if (!us.ok()) return us.status();
      (time.*set)(*us);
    }
    times.push_back(time);
  }
  return times;
}

absl::StatusOr<v1::BesideBaseline> ReadBesideAnswer(std::string_view lines, const std::string& size) {
  const absl::string_view text = absl::StripAsciiWhitespace(absl::string_view(lines.data(), lines.size()));
  const absl::StatusOr<Json> answer = ReadAnswer(text.substr(0, text.find('\n')), 1);
  if (!answer.ok()) return answer.status();
  if ((*answer)["size"] != size) {
    return absl::InvalidArgumentError(absl::StrCat("the baseline answered ", (*answer)["size"].get<std::string>(),
                                                   " where ", size, " was asked for"));
  }
  if (!answer->contains("log_ratios")) {
    return absl::UnimplementedError(
        "the baseline script times itself: to have it timed beside the winner, let it call pawl_baseline.main "
        "(docs/kernel-toml.md, [baseline])");
  }
  v1::BesideBaseline beside;
  beside.set_size(size);
  const Json& ratios = (*answer)["log_ratios"];
  bool good = ratios.is_array() && ratios.size() >= kMinRatios;
  for (size_t i = 0; good && i < ratios.size(); ++i) {
    good = ratios[i].is_number() && std::isfinite(ratios[i].get<double>());
    if (good) beside.add_log_ratios(ratios[i].get<double>());
  }
  if (!good) {
    return absl::InvalidArgumentError(
        absl::StrCat("log_ratios of the baseline's answer are not ", kMinRatios, " numbers or more"));
  }
  for (const auto& [key, set] : {std::pair{"baseline_us", &v1::BesideBaseline::set_baseline_us},
                                 std::pair{"best_us", &v1::BesideBaseline::set_best_us}}) {
    const absl::StatusOr<double> us = PositiveOf(*answer, key, 1);
    if (!us.ok()) return us.status();
    (beside.*set)(*us);
  }
  return beside;
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
