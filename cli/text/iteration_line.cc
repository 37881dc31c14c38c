#include "cli/text/iteration_line.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/text/history.h"
#include "cli/text/layout.h"
#include "cli/text/words.h"

namespace pawl {
namespace {

// " [prediction: mark]": gates that it did not pass. What a reason says already, a rejection's, is not said again.
std::string MarksText(const v1::Iteration& iteration) {
  std::string marks;
  for (const v1::FailedGate& gate : iteration.failed_gates()) {
    if (gate.action() == v1::GATE_ACTION_REJECT) continue;
    absl::StrAppend(&marks, marks.empty() ? "" : ", ", gate.gate(), ": ", GateActionWord(gate.action()));
  }
  return marks.empty() ? "" : absl::StrCat(" [", marks, "]");
}

std::string FromText(const v1::Iteration& iteration) {
  std::vector<std::string> parts;
  if (iteration.has_parent() && iteration.number() != iteration.parent() + 1) {
    parts.push_back(absl::StrCat("from ", iteration.parent()));
  }
  if (iteration.leg() > 0) parts.push_back(absl::StrCat("leg ", iteration.leg() + 1));
  return parts.empty() ? "" : absl::StrCat(" (", absl::StrJoin(parts, ", "), ")");
}

// Of a line.
enum Column { kNumber, kVerdict, kTime, kOverBaseline, kOverParent, kOverStart, kChange, kReason, kColumns };
constexpr const char* kNames[kColumns] = {"number",      "verdict",    "time",   "over-baseline",
                                          "over-parent", "over-start", "change", "reason"};
constexpr int kWidths[kColumns] = {4, 8, 9, 8, 7, 7, 24, 0};
constexpr int kRowGap = 2;

// As IterationColumnList has them: titles, alignment, cells.
const std::vector<IterationColumn>& RowColumns() {
  static const auto* const kRow =
      new std::vector<IterationColumn>(*ReadIterationColumns({std::begin(kNames), std::end(kNames)}, {}));
  return *kRow;
}

// Fits into its column. A name is cut, its values and where it starts from are not.
std::string ShortChange(const v1::Iteration& iteration) {
  const v1::Change& change = iteration.change();
  const std::string name = OneLine(change.has_variable() ? change.variable() : ChangeText(change));
  const std::string rest = absl::StrCat(ChangedValuesText(change), FromText(iteration));
  return absl::StrCat(Cut(name, std::max(1, kWidths[kChange] - DisplayWidth(rest))), rest);
}

// Which columns there are, from those that say least: the start's is known from the others. Verdict, time and the ratio
// to the baseline are never left out.
std::vector<bool> Shown(int width) {
  std::vector<bool> shown(kColumns, true);
  if (width <= 0) return shown;
  const auto used = [&] {
    int cells = -kRowGap;
    for (int i = 0; i < kColumns; ++i) {
      if (shown[i]) cells += kRowGap + (i == kReason ? kReadableReason : kWidths[i]);
    }
    return cells;
  };
  for (const Column least : {kOverStart, kReason, kOverParent}) {
    if (used() > width) shown[least] = false;
  }
  return shown;
}

std::string Laid(const std::vector<std::string>& cells, int width) {
  const std::vector<bool> shown = Shown(width);
  std::string line;
  for (size_t i = 0; i < kColumns; ++i) {
    if (!shown[i]) continue;
    const std::string cell = OneLine(cells[i]);
    const std::string space(static_cast<size_t>(std::max(0, kWidths[i] - DisplayWidth(cell))), ' ');
    const bool right = RowColumns()[i].head.align == Table::Align::kRight;
    absl::StrAppend(&line, i > 0 ? std::string(kRowGap, ' ') : "", right ? space : "", cell, right ? "" : space);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return Cut(line, width);
}

}  // namespace

std::string ChangeCell(const v1::Iteration& iteration) {
  return absl::StrCat(ChangeText(iteration.change()), FromText(iteration));
}

std::string ReasonCell(const v1::Iteration& iteration) {
  return absl::StrCat(iteration.reason(), MarksText(iteration));
}

std::string IterationLine(const v1::Iteration& iteration, int width) {
  std::vector<std::string> cells;
  for (const IterationColumn& column : RowColumns()) cells.push_back(column.cell(iteration));
  std::string expected = iteration.finding().rule();
  if (iteration.prediction().high() > 0) {
    absl::StrAppend(&expected, expected.empty() ? "" : ", ", "predicted ", SpeedupText(iteration.prediction().low()),
                    " to ", SpeedupText(iteration.prediction().high()));
  }
  if (!expected.empty()) cells.back() = absl::StrCat(expected, ": ", cells.back());
  if (width > 0) cells[kChange] = ShortChange(iteration);
  return Laid(cells, width);
}

std::string IterationLineTitle(int width) {
  std::vector<std::string> titles;
  for (const IterationColumn& column : RowColumns()) titles.push_back(column.head.title);
  titles[kReason] = absl::StrCat("finding, prediction: ", titles[kReason]);
  return Laid(titles, width);
}

}  // namespace pawl
