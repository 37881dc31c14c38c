#include "report/cells.h"

#include "absl/strings/str_cat.h"
#include "report/words.h"

namespace pawl {

Tone VerdictTone(v1::Verdict verdict) {
  return verdict == v1::KEPT ? Tone::kGood : verdict == v1::REVERTED ? Tone::kReverted : Tone::kBad;
}

Cell NumberCell(const v1::Iteration& iteration) { return {absl::StrCat(iteration.number())}; }

Cell FromCell(const v1::Iteration& iteration) {
  return iteration.has_parent() ? Cell{absl::StrCat(iteration.parent())} : Cell{"-", Tone::kDim};
}

Cell ChangeCell(const v1::Iteration& iteration, const std::string& more) {
  Cell cell = {absl::StrCat(ChangeText(iteration.change()), more), Tone::kCode};
  if (!IsProposed(iteration)) return cell;
  cell.under = absl::StrCat("proposed by ", iteration.author(), iteration.why().empty() ? "" : ": ", iteration.why());
  return cell;
}

bool IsProposed(const v1::Iteration& iteration) { return !iteration.author().empty() && iteration.author() != "pawl"; }

double SecondsOf(const v1::Iteration& iteration) {
  double seconds = 0;
  for (const v1::StageTime& stage : iteration.stages()) seconds += stage.seconds();
  return seconds;
}

}  // namespace pawl
