#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/text/campaign_text.h"
#include "cli/text/explanation.h"
#include "cli/text/iteration_text.h"
#include "cli/text/layout.h"
#include "cli/text/words.h"
#include "report/sentences.h"

namespace pawl {
namespace {

std::string FindingLine(const v1::Iteration& iteration) {
  if (!iteration.has_finding()) return "";
  return absl::StrCat(iteration.finding().rule(), ": ", iteration.finding().text());
}

std::string MeasuredLine(const v1::Iteration& iteration) {
  if (iteration.time_us() <= 0) return "";
  std::string text = TimeText(iteration.time_us());
  if (iteration.has_parent() && iteration.speedup_over_parent() > 0) {
    absl::StrAppend(&text, ", ", SpeedupText(iteration.speedup_over_parent()), " over its parent", ", ",
                    SpeedupText(iteration.speedup_over_start()), " over the start");
  }
  return text;
}

std::string PredictedLine(const v1::Iteration& iteration) {
  if (!iteration.has_prediction()) return "";
  return absl::StrCat(PredictedText(iteration.prediction()), ": ",
                      PredictionOutcomeText(iteration.prediction(), iteration.speedup_over_parent()));
}

std::string IterationBlock(const v1::Iteration& iteration, bool on_path, int width) {
  const std::string from = iteration.has_parent() ? absl::StrCat(" from ", iteration.parent()) : "";
  std::string text = absl::StrFormat("%s %3d  %s%s\n", on_path ? "*" : " ", iteration.number(),
                                     OneLine(ChangeText(iteration.change())), from);
  const auto line = [&](const char* label, const std::string& value) {
    if (!value.empty()) text += Paragraph(absl::StrFormat("       %-9s  ", label), value, width);
  };
  if (!iteration.has_parent()) line("variant", ValuesText(iteration));
  line("finding", FindingLine(iteration));
  if (!iteration.has_finding() && iteration.has_parent()) line("chosen by", ChosenByText(iteration));
  line("predicted", PredictedLine(iteration));
  line("measured", MeasuredLine(iteration));
  line("verdict", VerdictText(iteration));
  for (const v1::FailedGate& gate : iteration.failed_gates()) line("gate", GateText(gate));
  return text;
}

// How often a rule was served, and was right.
struct Score {
  int tried = 0, kept = 0, came_true = 0, failed = 0, unchecked = 0;
};

std::string RulesTable(const std::vector<v1::Iteration>& iterations, int width) {
  constexpr char kModel[] = "(no rule: the model)";
  std::map<std::string, Score> scores;
  for (const v1::Iteration& iteration : iterations) {
    if (!iteration.has_parent() || iteration.untried()) continue;
    std::string who = iteration.finding().rule();
    if (who.empty()) {
      const bool ours = iteration.author() == "pawl" || iteration.author().empty();
      who = ours ? kModel : absl::StrCat("(proposed by ", iteration.author(), ")");
    }
    Score& score = scores[who];
    ++score.tried;
    if (iteration.verdict() == v1::KEPT) ++score.kept;
    if (!iteration.has_prediction()) continue;
    const v1::Prediction::Outcome outcome = iteration.prediction().outcome();
    ++(outcome == v1::Prediction::CAME_TRUE ? score.came_true
       : outcome == v1::Prediction::FAILED  ? score.failed
                                            : score.unchecked);
  }
  if (scores.empty()) return "";
  using Align = Table::Align;
  Table table({{"rule"},
               {"tried", Align::kRight},
               {"kept", Align::kRight},
               {"came true", Align::kRight},
               {"failed", Align::kRight},
               {"unchecked", Align::kRight}});
  for (const auto& [rule, score] : scores) {
    table.Add({rule, absl::StrCat(score.tried), absl::StrCat(score.kept), absl::StrCat(score.came_true),
               absl::StrCat(score.failed), absl::StrCat(score.unchecked)});
  }
  return absl::StrCat("\nRules: changes tried and kept, and how their predictions went\n", table.Text(width));
}

}  // namespace

std::string CampaignExplanation(const v1::Campaign& campaign, const std::vector<v1::Iteration>& iterations, int width) {
  std::string text = Paragraph(absl::StrCat(campaign.name(), ": "),
                               absl::StrCat(campaign.bundle(), " ", ObjectiveText(campaign.spec().goal()),
                                            campaign.device().empty() ? "" : " on ", campaign.device()),
                               width);
  const auto line = [&](const char* label, const std::string& value) {
    if (!value.empty()) text += Paragraph(absl::StrFormat("%-10s ", label), value, width);
  };
  line("state", absl::StrCat(StateWord(campaign.state()),
                             WhyText(campaign.state(), campaign.message(), campaign.stop_reason())));
  line("roof", absl::StrJoin(campaign.roof(), ", "));
  if (campaign.start_us() > 0) line("start", TimeText(campaign.start_us()));
  if (campaign.baseline_us() > 0) {
    line("baseline",
         absl::StrCat(TimeText(campaign.baseline_us()), campaign.baseline().empty() ? "" : ": ", campaign.baseline()));
  }
  if (campaign.has_best() && campaign.best() > 0) {
    line("best", absl::StrCat("iteration ", campaign.best(), ": ", TimeText(campaign.best_us()), ", ",
                              SpeedupText(campaign.speedup_over_start()), " over the start, ",
                              OverBaselineText(campaign), " over the baseline"));
  }
  if (campaign.has_portfolio()) line("portfolio", PortfolioClaim(campaign.portfolio()));
  line("measured", TotalGainText(campaign.total_gain()));
  line("tier", TierText(campaign.tier()));

  std::set<int> path;
  if (campaign.has_best()) {
    for (const v1::Iteration& step : KeptPathIn(iterations, campaign.best())) path.insert(step.number());
  }
  absl::StrAppend(&text, "\nIterations (* is on the path to the best variant)\n");
  for (const v1::Iteration& iteration : iterations) {
    if (iteration.untried()) continue;
    text += IterationBlock(iteration, path.contains(iteration.number()), width);
  }
  if (iterations.empty()) text += "  none yet\n";
  const int untried = campaign.counts().untried();
  if (untried > 0) absl::StrAppend(&text, "  ", LeftOutText(untried), "\n");
  return absl::StrCat(text, RulesTable(iterations, width));
}

}  // namespace pawl
