#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/revision/revision.h"
#include "cli/text/explanation.h"
#include "cli/text/iteration_text.h"
#include "cli/text/layout.h"
#include "cli/text/ranking_table.h"
#include "cli/text/words.h"
#include "report/sentences.h"

namespace pawl {
namespace {

constexpr int kShown = 12;  // changes that were passed over, unless all are asked for

class Explanation {
 public:
  Explanation(const v1::Iteration& iteration, bool all, int width) : of_(iteration), all_(all), width_(width) {}

  std::string Text() {
    Head();
    if (of_.has_parent()) {
      Findings();
      Considered();
      Predicted();
    }
    Happened();
    return std::move(text_);
  }

 private:
  void Title(const std::string& title) { absl::StrAppend(&text_, "\n", title, "\n"); }
  void Say(const std::string& sentence) { text_ += Paragraph("  ", sentence, width_); }
  void Line(const char* label, const std::string& value) {
    if (!value.empty()) text_ += Paragraph(absl::StrFormat("  %-10s ", label), value, width_);
  }

  void Head() {
    const std::string from = of_.has_parent() ? absl::StrCat(" from iteration ", of_.parent()) : "";
    text_ += Paragraph(absl::StrCat(of_.name(), ": "),
                       absl::StrCat(ChangeText(of_.change()), from, ", ", VerdictWord(of_.verdict())), width_);
    Line("variant", ValuesText(of_));
    Line("device", of_.device());
    Line("chosen by", ChosenByText(of_));
  }

  void Findings() {
    Title(absl::StrCat("Findings in the evidence of iteration ", of_.parent()));
    if (of_.findings().empty() && !of_.has_finding()) Say("No findings.");
    bool served = false;
    for (const v1::Finding& finding : of_.findings()) {
      const bool this_one =
          !served && finding.rule() == of_.finding().rule() && finding.entry() == of_.finding().entry();
      served = served || this_one;
      text_ += FindingText(finding, this_one ? ServedText() : "", width_);
    }
    if (!served && of_.has_finding()) text_ += FindingText(of_.finding(), ServedText(), width_);
    if (!of_.has_finding() && !of_.findings().empty()) Say("The change addresses none of them.");
  }

  std::string ServedText() const {
    if (of_.effect().resource() == v1::RESOURCE_UNSPECIFIED) return "addressed by this change";
    return absl::StrCat("addressed by this change, which gives ", EffectText(of_.effect()));
  }

  void Considered() {
    Title("Ranking of the changes, by what they can add to the best variant (log speedup)");
    std::vector<RankedRow> rows;
    std::vector<std::pair<std::string, std::vector<std::string>>> refused;  // by reason, in the order they came
    for (const v1::PassedOver& passed : of_.passed_over()) {
      if (passed.has_score()) {
        rows.push_back({ChangeText(passed.change()), passed.score(), passed.reason()});
        continue;
      }
      const auto same =
          std::find_if(refused.begin(), refused.end(), [&](const auto& one) { return one.first == passed.reason(); });
      std::vector<std::string>& changes =
          same != refused.end() ? same->second
                                : refused.emplace_back(passed.reason(), std::vector<std::string>()).second;
      changes.push_back(ChangeText(passed.change()));
    }
    // Campaigns of earlier versions have no expected improvement.
    const auto promise = [](const v1::Score& score) {
      return std::pair(score.gain(), score.rules() + score.model() + score.patterns());
    };
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const RankedRow& a, const RankedRow& b) { return promise(a.score) > promise(b.score); });
    if (of_.has_score()) rows.insert(rows.begin(), {ChangeText(of_.change()), of_.score(), "chosen"});
    if (rows.empty() && refused.empty()) Say("The change was not ranked.");
    text_ += RankingTable(rows, "", all_ ? 0 : kShown, width_);
    for (const auto& [reason, changes] : refused) {
      text_ += Paragraph("  - ", absl::StrCat(reason, ": ", absl::StrJoin(changes, ", ")), width_);
    }
  }

  void Predicted() {
    Title("Prediction");
    if (!of_.has_prediction()) {
      Say("None: the change was not chosen by a rule.");
      return;
    }
    Line("expected", PredictedText(of_.prediction()));
    Line("outcome", PredictionOutcomeText(of_.prediction(), of_.speedup_over_parent()));
  }

  void Happened() {
    Title("Outcome");
    Line("verdict", VerdictText(of_));
    Line("time", TimeLine());
    const std::string interval = IntervalText(of_.interval());
    if (of_.comparison() != v1::COMPARISON_RESULT_UNSPECIFIED) {
      Line("compared", absl::StrCat(ComparisonWord(of_.comparison()), ", ", SpeedupText(of_.speedup_over_parent()),
                                    " over its parent", interval.empty() ? "" : ": ", interval));
    }
    for (const v1::FailedGate& gate : of_.failed_gates()) Line("gate", GateText(gate));
    if (of_.has_failure()) {
      Line("failed", absl::StrCat(CheckWord(of_.failure().check()), " at ", StageWord(of_.failure().stage()),
                                  of_.failure().size().empty() ? "" : ", size ", of_.failure().size(), ": ",
                                  of_.failure().message()));
    }
    Line("stages", StagesText(of_));
    Line("notes", NotesOf(of_));
  }

  std::string TimeLine() const {
    if (of_.time_us() <= 0) return "";
    std::string text = TimeText(of_.time_us());
    if (of_.has_parent() && of_.parent_time_us() > 0) {
      absl::StrAppend(&text, " (parent ", TimeText(of_.parent_time_us()), " in the same run)");
    }
    if (of_.speedup_over_start() > 0) {
      absl::StrAppend(&text, "; ", SpeedupText(of_.speedup_over_start()), " over the start");
    }
    return text;
  }

  const v1::Iteration& of_;
  const bool all_;
  const int width_;
  std::string text_;
};

}  // namespace

std::string IterationExplanation(const v1::Iteration& iteration, bool all, int width) {
  return Explanation(iteration, all, width).Text();
}

std::string ChosenByText(const v1::Iteration& iteration) {
  return absl::StrCat(iteration.author(), iteration.author().empty() || iteration.why().empty() ? "" : ": ",
                      iteration.why());
}

std::string VerdictText(const v1::Iteration& iteration) {
  std::string text = VerdictWord(iteration.verdict());
  if (!iteration.reason().empty()) absl::StrAppend(&text, ": ", iteration.reason());
  return text;
}

}  // namespace pawl
