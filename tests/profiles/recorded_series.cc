#include "tests/profiles/recorded_series.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tests/profiles/median.h"

namespace pawl {
namespace {

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

absl::StatusOr<RecordedSeries> RecordedSeries::Load(const std::string& path) {
  absl::StatusOr<std::string> text = ReadGzip(path);
  if (!text.ok()) return text.status();
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("comparisons")) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected a JSON object with \"comparisons\""));
  }
  const size_t per_segment = json.value("measurements", 30) / 2;
  RecordedSeries series;
  for (const nlohmann::json& list : json["comparisons"]) {
    const std::vector<double> times = list.get<std::vector<double>>();
    std::vector<Pair> pairs;
    for (size_t at = 0; at + 4 * per_segment <= times.size(); at += 4 * per_segment) {
      Pair pair;
      for (size_t s = 0; s < 4; ++s) {
        pair.emplace_back(times.begin() + at + s * per_segment, times.begin() + at + (s + 1) * per_segment);
      }
      pairs.push_back(std::move(pair));
    }
    if (!pairs.empty()) series.comparisons_.push_back(std::move(pairs));
  }
  if (series.comparisons_.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": holds no whole pair"));
  return series;
}

PairSource RecordedSeries::Process(double gain, std::mt19937_64& random) const {
  const std::vector<Pair>& pairs = comparisons_[random() % comparisons_.size()];
  const bool swapped = random() % 2 == 1;
  return [&pairs, swapped, gain, &random, next = random() % pairs.size()](int count) mutable {
    PairBatch batch;
    for (int i = 0; i < count; ++i, ++next) {
      const Pair& pair = pairs[next % pairs.size()];
      std::vector<double> sides[2];
      for (int segment = 0; segment < 4; ++segment) {
        const Segment& times = pair[segment];
        const bool outer = segment == 0 || segment == 3;
        for (size_t k = 0; k < times.size(); ++k) sides[outer != swapped].push_back(times[random() % times.size()]);
      }
      batch.log_ratios.push_back(std::log(Median(sides[1]) / (Median(sides[0]) / (1 + gain))));
    }
    return batch;
  };
}

}  // namespace pawl
