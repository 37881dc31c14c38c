#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/text/iteration_text.h"
#include "cli/text/layout.h"
#include "cli/text/words.h"

namespace pawl {

namespace {

std::string WantsText(const v1::Finding& finding) {
  std::string text = absl::StrJoin(finding.wants(), ", ", [](std::string* out, const v1::Effect& effect) {
    absl::StrAppend(out, EffectText(effect));
  });
  if (finding.deficit() > 0 && finding.deficit() < 1) {
    absl::StrAppendFormat(&text, "; %.3g %% of it is reached", finding.deficit() * 100);
  }
  return text;
}

std::string NcuText(const v1::Finding& finding) {
  if (finding.ncu_estimate_percent() <= 0) return finding.ncu_rule();
  return absl::StrFormat("%s estimates a speedup of %.3g %%", finding.ncu_rule().empty() ? "ncu" : finding.ncu_rule(),
                         finding.ncu_estimate_percent());
}

}  // namespace

std::string SeenText(const v1::Finding& finding) {
  return absl::StrJoin(finding.seen(), ", ", [](std::string* out, const v1::SeenValue& seen) {
    absl::StrAppend(out, seen.metric(), " ", NumberText(seen.value()), " ", seen.operator_(), " ",
                    NumberText(seen.threshold()));
  });
}

std::string FindingText(const v1::Finding& finding, const std::string& note, int width) {
  std::string head = finding.rule();
  if (finding.phase() != v1::PHASE_UNSPECIFIED) absl::StrAppend(&head, " (", PhaseWord(finding.phase()), ")");
  if (!note.empty()) absl::StrAppend(&head, ": ", note);
  if (finding.roof()) absl::StrAppend(&head, "; at a limit of the GPU");
  std::string text = Paragraph("  ", head, width);
  const auto add = [&](const char* label, const std::string& value) {
    if (!value.empty()) text += Paragraph(absl::StrFormat("    %-7s ", label), value, width);
  };
  add("finding", finding.text());
  add("values", SeenText(finding));
  add("wants", WantsText(finding));
  add("ncu", NcuText(finding));
  add("launch", finding.entry());
  add("advice", finding.advice());
  return text;
}

std::string GateText(const v1::FailedGate& gate) {
  std::string text = absl::StrCat(gate.gate(), " (", GateActionWord(gate.action()), "): ", gate.text());
  if (gate.value() != 0) absl::StrAppend(&text, "; value ", NumberText(gate.value()));
  if (gate.threshold() != 0) absl::StrAppend(&text, ", threshold ", NumberText(gate.threshold()));
  return text;
}

}  // namespace pawl
