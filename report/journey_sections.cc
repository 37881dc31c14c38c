#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/cells.h"
#include "report/charts.h"
#include "report/sections.h"
#include "report/sentences.h"
#include "report/words.h"

namespace pawl {
namespace {

constexpr size_t kMostRows = 500;  // reverted or rejected; `pawl history` lists all

Tone OutcomeTone(v1::Prediction::Outcome outcome) {
  return outcome == v1::Prediction::CAME_TRUE ? Tone::kGood
         : outcome == v1::Prediction::FAILED  ? Tone::kPlain
                                              : Tone::kDim;
}

// "1.13x to 4.00x, waves rises"; shorter than a sentence has it.
Cell PredictedCell(const v1::Iteration& iteration) {
  const v1::Prediction& prediction = iteration.prediction();
  std::vector<std::string> parts;
  if (prediction.high() > 0) parts.push_back(absl::StrFormat("%.2fx to %.2fx", prediction.low(), prediction.high()));
  if (!prediction.metric().empty()) {
    const char* moves = prediction.direction() == v1::DIRECTION_MORE   ? " rises"
                        : prediction.direction() == v1::DIRECTION_LESS ? " falls"
                                                                       : " moves";
    parts.push_back(prediction.metric() + moves);
  }
  if (parts.empty()) return {"-", Tone::kDim};
  return {absl::StrJoin(parts, ", ")};
}

Cell OutcomeCell(const v1::Iteration& iteration) {
  if (!iteration.has_prediction()) return {"-", Tone::kDim};
  return {PredictionOutcomeText(iteration.prediction(), iteration.speedup_over_parent()),
          OutcomeTone(iteration.prediction().outcome())};
}

Cell BoundsCell(const v1::Comparison& interval) {
  if (interval.pairs() <= 0) return {"-", Tone::kDim};
  return {absl::StrCat(SpeedupText(std::exp(interval.lower())), " to ", SpeedupText(std::exp(interval.upper())))};
}

// "Best so far, over the baseline: 0.287x at 0, 0.488x at 1, ...".
std::string BestSoFarText(const v1::Report& report) {
  return absl::StrCat("Best so far, over the baseline, by iteration: ",
                      absl::StrJoin(BestSoFar(report), ", ", [](std::string* out, const std::pair<int, double>& step) {
                        absl::StrAppend(out, SpeedupText(step.second), " at ", step.first);
                      }));
}

// Who proposed what, where somebody did; no rows: Pawl chose everything.
Grid ProposersGrid(const v1::Report& report) {
  struct Tried {
    int changes = 0, kept = 0, reverted = 0, rejected = 0;
    double seconds = 0;
  };
  Grid grid{
      .columns = {
          {"chosen by"}, {"changes", true}, {"kept", true}, {"reverted", true}, {"rejected", true}, {"cost", true}}};
  std::map<std::string, Tried> by_author;
  bool proposed = false;
  for (const v1::Iteration& iteration : report.iterations()) {
    if (iteration.change().kind_case() == v1::Change::KIND_NOT_SET || iteration.untried()) continue;
    proposed = proposed || IsProposed(iteration);
    Tried& tried = by_author[iteration.author()];
    ++tried.changes;
    ++(iteration.verdict() == v1::KEPT       ? tried.kept
       : iteration.verdict() == v1::REVERTED ? tried.reverted
                                             : tried.rejected);
    tried.seconds += SecondsOf(iteration);
  }
  if (!proposed) return grid;
  for (const auto& [author, tried] : by_author) {
    grid.rows.push_back({{author.empty() ? "-" : author},
                         {absl::StrCat(tried.changes)},
                         {absl::StrCat(tried.kept)},
                         {absl::StrCat(tried.reverted)},
                         {absl::StrCat(tried.rejected)},
                         {SecondsText(tried.seconds)}});
  }
  return grid;
}

// " (expedition)", and what its end was compared with.
std::string ExpeditionText(const v1::Iteration& iteration) {
  if (!iteration.expedition()) return "";
  const bool compared = iteration.over_best().result() != v1::COMPARISON_RESULT_UNSPECIFIED;
  return compared ? absl::StrCat(" (expedition, compared with ", iteration.compared_with(), ")") : " (expedition)";
}

}  // namespace

Section JourneySection(const v1::Report& report) {
  Section section{"journey", "Journey", {}};
  Chart chart{JourneyChart(report, kWideChart), JourneyChart(report, kNarrowChart)};
  if (chart.wide.empty()) {
    section.blocks.push_back(Paragraph{"No variant was kept, so there is no chart.", Tone::kDim});
    return section;
  }
  chart.caption =
      "Each mark is one iteration; marks that would overlap are drawn once. Rejected iterations have no speedup and "
      "are "
      "drawn below the chart.";
  chart.words = BestSoFarText(report);
  section.blocks.push_back(std::move(chart));
  if (Grid proposers = ProposersGrid(report); !proposers.rows.empty()) section.blocks.push_back(std::move(proposers));
  return section;
}

Section PathSection(const v1::Report& report) {
  Section section{"path", "Kept changes", {}};
  if (report.path().empty()) {
    section.blocks.push_back(Paragraph{"No variant was kept.", Tone::kDim});
    return section;
  }
  Grid grid{.columns = {{"iteration", true},
                        {"change"},
                        {"finding"},
                        {"predicted"},
                        {"measured", true},
                        {"99 % prediction interval", true},
                        {"outcome of the prediction"},
                        {"over baseline", true},
                        {"time", true}}};
  std::map<int, const v1::Iteration*> by_number;
  for (const v1::Iteration& iteration : report.iterations()) by_number[iteration.number()] = &iteration;
  for (const int number : report.path()) {
    const auto found = by_number.find(number);
    if (found == by_number.end()) continue;
    const v1::Iteration& step = *found->second;
    const char* expedition = step.expedition() ? " (expedition)" : "";
    grid.rows.push_back({NumberCell(step),
                         ChangeCell(step, expedition),
                         {step.finding().rule().empty() ? "-" : step.finding().rule()},
                         PredictedCell(step),
                         {SpeedupText(step.speedup_over_parent())},
                         BoundsCell(step.interval()),
                         OutcomeCell(step),
                         {SpeedupText(step.speedup_over_baseline())},
                         {TimeText(step.time_us())}});
  }
  section.blocks.push_back(std::move(grid));
  section.blocks.push_back(
      Paragraph{"From the start to the best variant. Predicted and measured speedups are over the parent, the previous "
                "step. A step "
                "of an expedition started from a variant that was not the best; its end was compared with the best and "
                "was faster.",
                Tone::kDim});
  return section;
}

Section RevertedSection(const v1::Report& report) {
  Section section{"reverted", "Reverted changes", {}};
  Grid grid{.columns = {{"iteration", true},
                        {"from", true},
                        {"change"},
                        {"verdict"},
                        {"over parent", true},
                        {"predicted"},
                        {"reason"}}};
  bool more = false;
  const int untried = report.campaign().counts().untried();
  for (auto at = report.iterations().rbegin(); at != report.iterations().rend(); ++at) {
    if (at->verdict() == v1::KEPT || at->untried()) continue;
    more = grid.rows.size() >= kMostRows;
    if (more) break;
    grid.rows.push_back({NumberCell(*at),
                         FromCell(*at),
                         ChangeCell(*at, ExpeditionText(*at)),
                         {VerdictWord(at->verdict()), VerdictTone(at->verdict())},
                         {SpeedupText(at->speedup_over_parent())},
                         PredictedCell(*at),
                         {at->reason()}});
  }
  if (untried > 0) {
    section.blocks.push_back(
        Paragraph{absl::StrCat(untried, untried == 1 ? " change" : " changes", " that the recording lacks ",
                               untried == 1 ? "is" : "are", " left out: pawl history ", report.campaign().name(),
                               " --verdict rejected lists ", untried == 1 ? "it." : "them."),
                  Tone::kDim});
  }
  if (grid.rows.empty()) {
    section.blocks.push_back(Paragraph{"No change was reverted or rejected.", Tone::kDim});
    return section;
  }
  std::reverse(grid.rows.begin(), grid.rows.end());
  if (more) {
    section.blocks.push_back(Paragraph{
        absl::StrCat("Only the newest are listed. pawl history ", report.campaign().name(), " --all lists all."),
        Tone::kDim});
  }
  section.blocks.push_back(std::move(grid));
  return section;
}

}  // namespace pawl
