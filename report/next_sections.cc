#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/sections.h"
#include "report/words.h"

namespace pawl {
namespace {

constexpr int kMostChanges = 15;

std::string TermText(double term) { return term == 0 ? "0" : absl::StrFormat("%+.3f", term); }

std::string WantsText(const v1::Finding& finding) {
  if (finding.roof()) return "nothing: hardware limit";
  if (finding.wants().empty()) return "-";
  return absl::StrJoin(finding.wants(), ", ",
                       [](std::string* out, const v1::Effect& effect) { *out += EffectText(effect); });
}

Grid FindingsGrid(const v1::Report& report) {
  Grid grid{.columns = {{"finding"}, {"phase"}, {"message"}, {"asks for"}, {"advice"}}};
  for (const v1::Finding& finding : report.findings()) {
    grid.rows.push_back({{finding.rule(), Tone::kCode},
                         {PhaseWord(finding.phase())},
                         {finding.text()},
                         {WantsText(finding)},
                         {finding.advice()}});
  }
  return grid;
}

Grid ChangesGrid(const v1::Report& report) {
  Grid grid{.columns = {{"change"},
                        {"from iteration", true},
                        {"finding"},
                        {"expected improvement", true},
                        {"mean", true},
                        {"sd", true},
                        {"rules", true},
                        {"model", true},
                        {"patterns", true}}};
  for (const v1::RankedChange& change : report.next()) {
    if (static_cast<int>(grid.rows.size()) >= kMostChanges) break;
    const v1::Score& score = change.score();
    grid.rows.push_back({{ChangeText(change.change()), Tone::kCode},
                         {absl::StrCat(change.parent())},
                         {change.finding().empty() ? "-" : change.finding()},
                         {absl::StrFormat("%.4f", score.gain())},
                         {TermText(score.rules() + score.model() + score.patterns())},
                         {absl::StrFormat("%.3f", score.sd())},
                         {TermText(score.rules())},
                         {TermText(score.model())},
                         {TermText(score.patterns())}});
  }
  return grid;
}

}  // namespace

Section NextSection(const v1::Report& report) {
  Section section{"next", "What to try next", {}};
  if (!report.campaign().has_best()) {
    const bool rejected = std::any_of(report.iterations().begin(), report.iterations().end(),
                                      [](const v1::Iteration& iteration) { return iteration.number() == 0; });
    section.blocks.push_back(Paragraph{
        rejected ? "Fix the start variant first: `pawl check` checks the bundle and `pawl doctor` the machine."
                 : "There was no start: `pawl show` says what the campaign waits for, or why it ended."});
    return section;
  }
  if (report.findings().empty()) {
    section.blocks.push_back(Paragraph{"No rule matched the evidence of the best variant.", Tone::kDim});
  } else {
    section.blocks.push_back(Paragraph{"Findings for the best variant:"});
    section.blocks.push_back(FindingsGrid(report));
  }
  if (report.next().empty()) {
    section.blocks.push_back(Paragraph{
        "Every single change of a variable has been tried. Edit the source or add a variable to go further."});
  } else {
    section.blocks.push_back(Paragraph{
        "Untried changes, the most promising first, and what is expected of each in log speedup over the best variant. "
        "The expected improvement counts a loss as zero, and allows for failing a check. Mean and standard deviation "
        "are "
        "those of the posterior; rules and patterns are the prior's part of the mean, and the model's part is what the "
        "campaign's measurements add to it. A change from another iteration than the best begins an expedition."});
    section.blocks.push_back(ChangesGrid(report));
  }
  return section;
}

Section PatternsSection(const v1::Report& report) {
  Section section{"patterns", "New patterns", {}};
  if (report.patterns().empty()) {
    section.blocks.push_back(Paragraph{"No change was made for a finding, so there are no patterns.", Tone::kDim});
    return section;
  }
  section.blocks.push_back(
      Paragraph{"What this campaign learned: how often changes with an effect, made for a finding, were kept, and "
                "their median gain."});
  Grid grid{.columns = {{"finding"},
                        {"effect"},
                        {"architecture"},
                        {"tried", true},
                        {"kept", true},
                        {"median gain", true},
                        {"predictions", true},
                        {"came true", true}}};
  for (const v1::Pattern& pattern : report.patterns()) {
    grid.rows.push_back({{pattern.rule(), Tone::kCode},
                         {EffectText(pattern.effect())},
                         {pattern.architecture()},
                         {absl::StrCat(pattern.tried())},
                         {absl::StrCat(pattern.kept())},
                         {SpeedupText(pattern.median_gain())},
                         {absl::StrCat(pattern.predictions())},
                         {absl::StrCat(pattern.came_true())}});
  }
  section.blocks.push_back(std::move(grid));
  return section;
}

Section RebuildSection(const v1::Report& report) {
  Section section{"rebuild", "Rebuild the best variant", {}};
  const v1::Campaign& campaign = report.campaign();
  if (!campaign.has_best()) {
    section.blocks.push_back(Paragraph{"No variant was kept.", Tone::kDim});
    return section;
  }
  for (const v1::Iteration& iteration : report.iterations()) {
    if (iteration.number() != campaign.best()) continue;
    Facts facts{{{"iteration", {absl::StrCat(iteration.number())}}, {"variant", {ValuesText(iteration), Tone::kCode}}}};
    if (!iteration.patched_source_hash().empty()) {
      facts.facts.push_back({"edited source", {absl::StrCat("blob ", iteration.patched_source_hash()), Tone::kCode}});
    }
    section.blocks.push_back(std::move(facts));
    break;
  }
  if (!report.rebuild().empty()) {
    section.blocks.push_back(
        Paragraph{"With the database: export the best variant to a folder, and measure it again:"});
    section.blocks.push_back(Code{{report.rebuild().begin(), report.rebuild().end()}});
  }
  if (!report.build().empty()) {
    section.blocks.push_back(Paragraph{"By hand, in the bundle's folder:"});
    section.blocks.push_back(Code{{report.build()}});
  }
  return section;
}

}  // namespace pawl
