#include "worker/problem/baseline_answers.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace pawl {
namespace {

using Json = nlohmann::json;

constexpr size_t kMinRatios = 5;

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

}  // namespace pawl
