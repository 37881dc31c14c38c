#include "cli/text/iteration_text.h"

#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/text/layout.h"
#include "cli/text/ranking_table.h"
#include "cli/text/words.h"
#include "profiles/metrics.h"
#include "report/sentences.h"

namespace pawl {
namespace {

void FieldLine(std::string* text, const char* label, const std::string& value) {
  if (!value.empty()) absl::StrAppendFormat(text, "%-12s %s\n", label, OneLine(value));
}

std::string FindingAndRule(const v1::Finding& finding) { return absl::StrCat(finding.rule(), ": ", finding.text()); }

std::string PredictionLine(const v1::Prediction& prediction) {
  std::string text = prediction.text();
  if (text.empty() && prediction.high() > 0) {
    text = absl::StrCat(SpeedupText(prediction.low()), " to ", SpeedupText(prediction.high()), " over the parent");
  }
  if (prediction.outcome() == v1::Prediction::CAME_TRUE) absl::StrAppend(&text, " (came true)");
  if (prediction.outcome() == v1::Prediction::FAILED) absl::StrAppend(&text, " (failed)");
  if (prediction.outcome() == v1::Prediction::UNCHECKED) absl::StrAppend(&text, " (unchecked)");
  return text;
}

std::string FailureLine(const v1::Failure& failure) {
  std::string text = absl::StrCat(CheckWord(failure.check()), " at ", StageWord(failure.stage()));
  if (!failure.size().empty()) absl::StrAppend(&text, ", size ", failure.size());
  return absl::StrCat(text, ": ", failure.message());
}

std::string ComparisonLine(const v1::Iteration& iteration) {
  if (iteration.comparison() == v1::COMPARISON_RESULT_UNSPECIFIED) return "";
  const v1::Comparison& interval = iteration.interval();
  std::string text = absl::StrCat(ComparisonWord(iteration.comparison()),
                                  " than its parent: ", SpeedupText(iteration.speedup_over_parent()));
  if (iteration.comparison() == v1::SAME)
    text = absl::StrCat("the same: ", SpeedupText(iteration.speedup_over_parent()));
  if (iteration.comparison() == v1::UNCLEAR) {
    const bool timed = iteration.speedup_over_parent() > 0;
    text =
        timed ? absl::StrCat("unclear: ", SpeedupText(iteration.speedup_over_parent())) : "unclear: no pair was left";
  }
  if (interval.pairs() > 0) {
    absl::StrAppendFormat(&text, ", between %s and %s in %d pairs", SpeedupText(std::exp(interval.lower())),
                          SpeedupText(std::exp(interval.upper())), interval.pairs());
  }
  if (interval.discarded() > 0) absl::StrAppend(&text, " (", interval.discarded(), " discarded)");
  return text;
}

std::string TimesLine(const v1::Iteration& iteration) {
  if (iteration.time_us() <= 0) return "";
  std::string text = TimeText(iteration.time_us());
  if (iteration.parent_time_us() > 0) {
    absl::StrAppend(&text, " (parent ", TimeText(iteration.parent_time_us()), " in the same run)");
  }
  if (iteration.warm_us() > 0) absl::StrAppend(&text, "; warm ", TimeText(iteration.warm_us()));
  if (iteration.cold_us() > 0) absl::StrAppend(&text, ", cold ", TimeText(iteration.cold_us()));
  return text;
}

// "large, weight 0.4: 12.10 us (parent 13.00 us); 1.074x (1.060x to 1.089x in 48 pairs)".
std::string SizeLine(const v1::SizeComparison& size) {
  std::string text = absl::StrCat(size.size(), ", weight ", NumberText(size.weight()), ": ", TimeText(size.time_us()));
  if (size.parent_time_us() > 0) absl::StrAppend(&text, " (parent ", TimeText(size.parent_time_us()), ")");
  if (size.interval().pairs() > 0) {
    absl::StrAppend(&text, "; ", SpeedupText(std::exp(size.interval().mean_log_ratio())), " (",
                    IntervalText(size.interval()), ")");
  }
  return text;
}

std::string ToolsLine(const v1::Toolchain& tools) {
  std::vector<std::string> parts;
  auto add = [&](const char* name, const std::string& version) {
    if (!version.empty()) parts.push_back(absl::StrCat(name, " ", version));
  };
  add("NVRTC", tools.nvrtc());
  add("nvcc", tools.nvcc());
  add("ncu", tools.ncu());
  add("compute-sanitizer", tools.compute_sanitizer());
  add("PyTorch", tools.pytorch());
  return absl::StrJoin(parts, ", ");
}

}  // namespace

std::string EvidenceText(const v1::Evidence& evidence) {
  std::string text;
  for (const v1::LaunchEvidence& launch : evidence.launches()) {
    const v1::ResourceUse& use = launch.resources();
    absl::StrAppendFormat(&text,
                          "%s: grid %s, block %s, shared %d bytes, %d registers, %d bytes local, %d blocks per SM\n",
                          launch.entry(), ExtentText(launch.geometry().grid()), ExtentText(launch.geometry().block()),
                          launch.geometry().shared_bytes() + use.static_shared_bytes(), use.registers(),
                          use.local_bytes(), use.blocks_per_sm());
    Table metrics({{""}, {"", Table::Align::kRight}, {""}});
    const std::map<std::string, double> sorted(launch.metrics().begin(), launch.metrics().end());
    for (const auto& [name, value] : sorted) {
      const Metric* metric = Metrics::Default().Find(name);
      metrics.Add({absl::StrCat("  ", name), NumberText(value), metric == nullptr ? "" : metric->unit});
    }
    text += metrics.Text(0);
    for (const v1::Advice& advice : launch.advice()) {
      absl::StrAppend(&text, "  ncu ", advice.rule(), ": ", OneLine(advice.text()), "\n");
    }
  }
  if (evidence.partial()) absl::StrAppend(&text, "missing counters: ", OneLine(evidence.partial_reason()), "\n");
  return text;
}

std::string IterationText(const v1::Iteration& iteration) {
  std::string text =
      absl::StrCat(iteration.name(), " ", VerdictWord(iteration.verdict()), ": ", OneLine(iteration.reason()), "\n");
  FieldLine(&text, "device", iteration.device());
  if (iteration.has_parent()) {
    FieldLine(&text, "change", absl::StrCat(ChangeText(iteration.change()), " from iteration ", iteration.parent()));
  }
  FieldLine(&text, "variant", ValuesText(iteration));
  FieldLine(&text, "chosen",
            absl::StrCat(iteration.author().empty() ? "" : absl::StrCat("by ", iteration.author()),
                         iteration.author().empty() || iteration.why().empty() ? "" : ": ", iteration.why()));
  if (iteration.has_finding()) FieldLine(&text, "finding", FindingAndRule(iteration.finding()));
  if (iteration.has_prediction()) FieldLine(&text, "prediction", PredictionLine(iteration.prediction()));
  if (iteration.has_score()) FieldLine(&text, "score", ScoreText(iteration.score()));
  if (iteration.has_failure()) FieldLine(&text, "failed", FailureLine(iteration.failure()));
  for (const v1::FailedGate& gate : iteration.failed_gates()) FieldLine(&text, "gate", GateText(gate));
  FieldLine(&text, "time", TimesLine(iteration));
  FieldLine(&text, "comparison", ComparisonLine(iteration));
  for (const v1::SizeComparison& size : iteration.sizes()) FieldLine(&text, "at size", SizeLine(size));
  if (iteration.speedup_over_start() > 0) {
    FieldLine(&text, "speedup",
              absl::StrCat(SpeedupText(iteration.speedup_over_start()), " over the start, ",
                           SpeedupText(iteration.speedup_over_baseline()), " over the baseline"));
  }
  for (const v1::BaselineTime& baseline : iteration.baselines()) {
    FieldLine(&text, "baseline",
              absl::StrCat(TimeText(baseline.graph_us()), " at ", baseline.size(), ": ", baseline.what()));
  }
  for (const v1::OutputError& error : iteration.errors()) {
    FieldLine(&text, "error",
              absl::StrFormat("%s: at most %.3g, mean %.3g, relative %.3g; %d of %d wrong", error.tensor(),
                              error.max_absolute(), error.mean_absolute(), error.relative(), error.wrong(),
                              error.elements()));
  }
  FieldLine(&text, "stages", StagesText(iteration));
  FieldLine(&text, "worker", iteration.worker());
  FieldLine(&text, "tools", ToolsLine(iteration.toolchain()));
  FieldLine(&text, "driver", iteration.gpu().driver_version());
  FieldLine(&text, "build", iteration.build());
  FieldLine(&text, "ended", iteration.has_end_time() ? UtcText(iteration.end_time()) : "");
  for (const v1::PassedOver& passed : iteration.passed_over()) {
    FieldLine(&text, "passed over",
              absl::StrCat(ChangeText(passed.change()), ": ", passed.reason(), passed.has_score() ? ": " : "",
                           passed.has_score() ? ScoreText(passed.score()) : ""));
  }
  return absl::StrCat(text, EvidenceText(iteration.evidence()));
}

}  // namespace pawl
