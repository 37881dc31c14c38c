#include "tests/profiles/recorded_series.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace pawl {
namespace {

// Reads plain files too.
absl::StatusOr<std::string> ReadGzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  std::string text;
  std::vector<char> buffer(1 << 16);
  int count;
  while ((count = gzread(file, buffer.data(), buffer.size())) > 0) text.append(buffer.data(), count);
  gzclose(file);
  if (count < 0) return absl::DataLossError(absl::StrCat(path, ": is broken off or no gzip"));
  return text;
}

}  // namespace

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::vector<double> ProcessEffects(const std::vector<std::vector<double>>& processes) {
  std::vector<double> effects;
  for (const std::vector<double>& process : processes) effects.push_back(Mean(process));
  const double all = Mean(effects), n = static_cast<double>(effects.size());
  for (double& effect : effects) effect = (effect - all) * std::sqrt(n / (n - 1));
  return effects;
}

absl::StatusOr<RecordedSeries> RecordedSeries::Load(const std::string& folder, size_t processes) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().string();
    if (name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")) files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  std::map<std::string, Comparison> by_name;
  for (const std::string& file : files) {
    absl::StatusOr<std::string> text = ReadGzip(file);
    if (!text.ok()) return text.status();
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(*text, '\n', absl::SkipEmpty()))) {
      const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (!json.is_object() || !json.contains("log_ratios")) {
        return absl::InvalidArgumentError(absl::StrCat(file, ": expected JSON objects with \"log_ratios\""));
      }
      Comparison& comparison = by_name[json.value("pair", "")];
      Process& process = comparison.processes.emplace_back();
      process.log_ratios = json["log_ratios"].get<std::vector<double>>();
      process.parent = json["parent"].get<std::vector<double>>();
      process.candidate = json["candidate"].get<std::vector<double>>();
      process.anchor = json["anchor"].get<std::vector<double>>();
    }
  }
  RecordedSeries series;
  for (auto& [name, comparison] : by_name) {
    comparison.name = name;
    if (comparison.processes.size() >= processes) series.comparisons_.push_back(std::move(comparison));
  }
  if (series.comparisons_.empty()) {
    return absl::NotFoundError(absl::StrCat(folder, " has no series of ", processes,
                                            " processes: record them on a GPU with pawl-verdict-study"));
  }
  return series;
}

PairSource RecordedSeries::Draw(const Comparison& comparison, double gain, std::mt19937_64& random) const {
  std::vector<std::vector<double>> all;
  for (const Process& process : comparison.processes) all.push_back(process.log_ratios);
  const size_t drawn = random() % all.size();
  const std::vector<double>& ratios = comparison.processes[drawn].log_ratios;
  const double shift = std::log1p(gain) + ProcessEffects(all)[drawn] - Mean(ratios);
  return [&ratios, shift, next = random() % ratios.size()](int count) mutable {
    PairBatch batch;
    for (int i = 0; i < count; ++i, ++next) batch.log_ratios.push_back(ratios[next % ratios.size()] + shift);
    return batch;
  };
}

}  // namespace pawl
