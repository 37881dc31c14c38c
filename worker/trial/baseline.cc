#include "worker/trial/baseline.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "worker/process/subprocess.h"
#include "worker/process/temporary_folder.h"
#include "worker/trial/output_check.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kDeadline = absl::Minutes(3);
constexpr int kMeasurements = 30;

// The files come from elsewhere: none may land outside of the folder.
absl::Status WriteFiles(const v1::Bundle& bundle, const fs::path& folder) {
  for (const v1::SourceFile& file : bundle.baseline_files()) {
    const fs::path path = fs::path(file.path()).lexically_normal();
    if (path.empty() || path.is_absolute() || *path.begin() == "..") {
      return absl::InvalidArgumentError(
          absl::StrCat("the baseline's file ", file.path(), " lies outside of the bundle"));
    }
    std::error_code error;
    fs::create_directories((folder / path).parent_path(), error);
    if (!(std::ofstream(folder / path, std::ios::binary) << file.text()).flush()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("can't write ", (folder / path).string(), ": is the disk full?"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string BaselineRequests(const std::vector<v1::Size>& sizes, uint64_t seed, int measurements) {
  std::string lines;
  for (const v1::Size& size : sizes) {
    nlohmann::json request = {{"size", size.name()}, {"seed", seed >> 33}, {"measurements", measurements}};
    for (const auto& [name, value] : size.values()) request["sizes"][name] = value;
    absl::StrAppend(&lines, request.dump(), "\n");
  }
  return lines;
}

absl::StatusOr<std::vector<v1::BaselineTime>> ReadBaselineAnswers(std::string_view lines) {
  std::vector<v1::BaselineTime> times;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(absl::string_view(lines.data(), lines.size()), '\n')) {
    ++number;
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const nlohmann::json answer = nlohmann::json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    auto text = [&](const char* key) {
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
    v1::BaselineTime time;
    time.set_size(text("size"));
    time.set_what(text("what"));
    for (const auto& [key, set] : {std::pair{"graph_us", &v1::BaselineTime::set_graph_us},
                                   std::pair{"event_us", &v1::BaselineTime::set_event_us}}) {
      if (!answer.contains(key) || !answer[key].is_number() || !(answer[key].get<double>() > 0)) {
        return absl::InvalidArgumentError(
            absl::StrCat("line ", number, " of the baseline's output lacks a positive ", key));
      }
      (time.*set)(answer[key].get<double>());
    }
    times.push_back(time);
  }
  return times;
}

namespace {

absl::StatusOr<std::vector<v1::BaselineTime>> RunIn(const fs::path& folder, bool own_folder, const v1::Bundle& bundle,
                                                    const std::vector<v1::Size>& sizes, const std::string& gpu_uuid,
                                                    const Sandboxing& sandboxing, const Stopped& stopped) {
  ProcessOptions options;
  options.argv = sandboxing.Baseline({bundle.baseline_command().begin(), bundle.baseline_command().end()},
                                     folder.string(), own_folder);
  options.directory = folder.string();
  options.env = {{"CUDA_VISIBLE_DEVICES", gpu_uuid}};
  options.input = BaselineRequests(sizes, SecretSeed(), kMeasurements);
  options.timeout = kDeadline;
  options.stopped = stopped;
  absl::StatusOr<ProcessResult> result = RunProcess(options);
  if (!result.ok()) return result.status();
  if (!result->ok()) {
    return absl::UnavailableError(
        absl::StrCat("the baseline command ", EndText(*result), ": ",
                     result->err.substr(result->err.size() > 500 ? result->err.size() - 500 : 0)));
  }
  absl::StatusOr<std::vector<v1::BaselineTime>> times = ReadBaselineAnswers(result->out);
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
                                                          const std::string& gpu_uuid, const Sandboxing& sandboxing,
                                                          const Stopped& stopped) {
  return RunIn(folder, /*own_folder=*/false, bundle, sizes, gpu_uuid, sandboxing, stopped);
}

absl::StatusOr<std::vector<v1::BaselineTime>> RunBaseline(const v1::Bundle& bundle, const std::string& gpu_uuid,
                                                          const Sandboxing& sandboxing, const Stopped& stopped) {
  const TemporaryFolder folder("pawl-baseline-");
  if (folder.path().empty()) {
    return absl::ResourceExhaustedError("can't make a temporary folder: set TMPDIR to one with room");
  }
  if (absl::Status status = WriteFiles(bundle, folder.path()); !status.ok()) return status;
  return RunIn(folder.path(), /*own_folder=*/true, bundle, {bundle.sizes().begin(), bundle.sizes().end()}, gpu_uuid,
               sandboxing, stopped);
}

}  // namespace pawl
