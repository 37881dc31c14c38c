#include "cli/text/situation_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/names/resource_name.h"
#include "cli/text/iteration_text.h"
#include "cli/text/layout.h"
#include "cli/text/ranking_table.h"
#include "cli/text/words.h"
#include "kernels/data_type.h"
#include "kernels/plan.h"
#include "kernels/variable_values.h"

namespace pawl {
namespace {

constexpr int kChangesShown = 10;  // untried changes, unless all are asked for

// "16 32 [64] 128": the value of the best variant in brackets.
std::string ValuesOf(const v1::Variable& variable, const v1::Iteration& best) {
  const auto now = best.variant().find(variable.name());
  return absl::StrJoin(variable.values(), " ", [&](std::string* out, int32_t value) {
    const bool is = now != best.variant().end() && now->second == value;
    absl::StrAppend(out, is ? "[" : "", ValueText(variable, value), is ? "]" : "");
  });
}

std::string VariablesTable(const v1::Situation& situation, int width) {
  if (situation.variables().empty()) return "  none: only edits of the source can be proposed\n";
  Table table({{"  variable"}, {"values (best variant's in brackets)"}, {"a larger value gives"}});
  for (const v1::Variable& variable : situation.variables()) {
    table.Add({absl::StrCat("  ", variable.name()), ValuesOf(variable, situation.best()),
               absl::StrJoin(variable.affects(), " ", [](std::string* out, const v1::Effect& effect) {
                 absl::StrAppend(out, EffectText(effect));
               })});
  }
  return table.Text(width);
}

std::string ProposalLine(const v1::ChangeProposed& proposal) {
  return absl::StrCat(ChangeText(proposal.change()), proposal.author().empty() ? "" : " by ", proposal.author(),
                      proposal.why().empty() ? "" : ": ", proposal.why());
}

std::string UntriedTable(const v1::Situation& situation, bool all, int width) {
  std::vector<RankedRow> rows;
  for (const v1::RankedChange& untried : situation.untried()) {
    const std::string from =
        untried.parent() == situation.best().number() ? "" : absl::StrCat(" (from ", untried.parent(), ")");
    rows.push_back({absl::StrCat(ChangeText(untried.change()), from), untried.score(), untried.finding()});
  }
  return RankingTable(rows, "finding", all ? 0 : kChangesShown, width);
}

std::string HowToPropose(const v1::Situation& situation, const std::string& flags) {
  const std::string name = ShortName(situation.campaign().name());
  std::string example = "VARIABLE=VALUE";
  for (const v1::RankedChange& untried : situation.untried()) {
    if (!untried.change().has_to()) continue;
    example = absl::StrCat(untried.change().variable(), "=", untried.change().to());
    for (const v1::Variable& variable : situation.variables()) {
      if (variable.name() != untried.change().variable()) continue;
      example = absl::StrCat(variable.name(), "=", ValueText(variable, untried.change().to()));
    }
    break;
  }
  const std::string value = absl::StrCat("  pawl propose ", name, " ", example, " --why \"...\"", flags, "\n");
  return absl::StrCat(situation.variables().empty() ? "" : value, "  pawl propose ", name,
                      " --patch FILE --name NAME --why \"...\"", flags, "\n");
}

// What the first device code must compute, and what may be proposed.
std::string ContractText(const v1::Campaign& campaign, const v1::Bundle& bundle, int width) {
  std::string text = "\nContract, which no edit may change\n";
  const auto line = [&](const char* label, const std::string& value) {
    if (!value.empty()) text += Paragraph(absl::StrFormat("  %-10s ", label), value, width);
  };
  line("computes", bundle.summary());
  line("goal", absl::StrFormat("%gx the baseline's speed, %s", campaign.spec().goal().speedup(),
                               ObjectiveText(campaign.spec().goal())));
  for (const v1::Size& size : bundle.sizes()) line("size", absl::StrCat(size.name(), ": ", ValuesText(size.values())));
  for (const v1::Tensor& tensor : bundle.tensors()) {
    line("tensor",
         absl::StrCat(tensor.name(), ": ", DataTypeName(tensor.type()), " [", absl::StrJoin(tensor.shape(), ", "), "]",
                      IsFilled(tensor.role()) ? ", input" : "", IsCompared(tensor.role()) ? ", output" : ""));
  }
  for (const v1::Scalar& scalar : bundle.scalars()) line("scalar", absl::StrCat(scalar.name(), " = ", scalar.value()));
  line("reference", bundle.has_problem() ? absl::StrCat(bundle.problem().path(), ": inputs, reference and baseline")
                                         : bundle.reference().source().path());
  line("tolerance",
       absl::StrCat("absolute ", bundle.tolerance().absolute(), ", relative ", bundle.tolerance().relative()));
  absl::StrAppend(&text, "\nWhat the first proposal adds\n");
  line("files",
       "the device code and its headers; --checkout FOLDER writes kernel.toml without anything, and diff -ruN of "
       "it and an edited copy is the patch");
  line("toml", "source, files, options, [[launch]], [[variable]], [[constraint]] and scratch [[tensor]]");
  return text;
}

std::string ProposalsText(const v1::Situation& situation, int width) {
  std::string text = situation.proposals().empty() ? "" : "\nProposed changes that wait\n";
  for (const v1::ChangeProposed& proposal : situation.proposals()) {
    text += Paragraph("  ", ProposalLine(proposal), width);
  }
  return text;
}

std::string HowTo(const v1::Situation& situation, const std::string& flags) {
  if (situation.campaign().has_end_time()) return "";
  return absl::StrCat("\nTo propose the next change (a patch is a unified diff of what --checkout writes)\n",
                      HowToPropose(situation, flags));
}

}  // namespace

bool WaitsForProposals(const v1::ChooserSettings& chooser) {
  return chooser.kind() == v1::CHOOSER_KIND_OUTSIDE || chooser.kind() == v1::CHOOSER_KIND_MIXED;
}

std::string WaitsText(const v1::Situation& situation, absl::Time now) {
  if (!situation.waits()) return "";
  std::string text = "for a proposal";
  if (situation.has_deadline()) {
    const absl::Time deadline = absl::FromUnixSeconds(situation.deadline().seconds());
    absl::StrAppend(&text, " until ", ClockText(deadline), " (",
                    SecondsText(std::max(0.0, absl::ToDoubleSeconds(deadline - now))), " left)");
  }
  return text;
}

std::string SituationText(const v1::Situation& situation, const v1::Bundle& bundle, const std::string& flags, bool all,
                          absl::Time now, int width) {
  const v1::Campaign& campaign = situation.campaign();
  const v1::Iteration& best = situation.best();
  std::string text = Paragraph(
      absl::StrCat(campaign.name(), ": "),
      absl::StrCat(campaign.bundle(), " ", ObjectiveText(campaign.spec().goal()), ", ", StateWord(campaign.state()),
                   WhyText(campaign.state(), campaign.message(), campaign.stop_reason())),
      width);
  const auto line = [&](const char* label, const std::string& value) {
    if (!value.empty()) text += Paragraph(absl::StrFormat("%-10s ", label), value, width);
  };
  if (!situation.has_best()) {
    line("start", "none yet: it is a contract alone. The first proposal that passes validation is the start");
  }
  line("device", campaign.device());
  line("waits", WaitsText(situation, now));
  line("tried", CountsText(situation.campaign().counts()));
  if (!situation.has_best()) {
    for (const v1::Iteration& tried : situation.tried()) {
      line("rejected",
           absl::StrCat("iteration ", tried.number(), ", ", ChangeText(tried.change()), ": ", tried.reason()));
    }
    return absl::StrCat(text, ContractText(campaign, bundle, width), ProposalsText(situation, width),
                        HowTo(situation, flags));
  }
  line("best", absl::StrCat("iteration ", best.number(), ": ", TimeText(best.time_us()), ", ",
                            SpeedupText(best.speedup_over_start()), " over the start, ",
                            SpeedupText(best.speedup_over_baseline()), " over the baseline",
                            campaign.spec().goal().speedup() > 0
                                ? absl::StrFormat(" (goal %.2fx)", campaign.spec().goal().speedup())
                                : ""));
  line("source", absl::StrCat(situation.source_path(), ", ",
                              std::count(situation.source().begin(), situation.source().end(), '\n'),
                              " lines; --checkout FOLDER writes it, with kernel.toml, to be edited"));
  absl::StrAppend(&text, "\nFindings in the best variant's evidence\n");
  for (const v1::Finding& finding : situation.findings()) text += FindingText(finding, "", width);
  if (situation.findings().empty()) text += "  none\n";
  absl::StrAppend(&text, "\nVariables\n", VariablesTable(situation, width));
  for (const v1::Constraint& constraint : situation.constraints()) {
    text += Paragraph("  constraint ", constraint.that(), width);
  }
  if (!situation.untried().empty()) {
    absl::StrAppend(&text, "\nUntried changes, ranked by what they can add to the best variant (log speedup)\n",
                    UntriedTable(situation, all, width));
  }
  return absl::StrCat(text, ProposalsText(situation, width), HowTo(situation, flags));
}

}  // namespace pawl
