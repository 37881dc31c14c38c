#include "cli/iteration_row.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/words.h"

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

}  // namespace

std::vector<Table::Column> IterationColumns() {
  using Align = Table::Align;
  return {{"number", Align::kRight},
          {"verdict"},
          {"change"},
          {"over parent", Align::kRight},
          {"start", Align::kRight},
          {"baseline", Align::kRight},
          {"time", Align::kRight},
          {"reason"}};
}

std::vector<std::string> IterationCells(const v1::Iteration& iteration) {
  std::string change = ChangeText(iteration.change());
  // Where a change starts from matters when it is not the one before.
  if (iteration.has_parent() && iteration.number() != iteration.parent() + 1) {
    absl::StrAppend(&change, " (from ", iteration.parent(), ")");
  }
  return {absl::StrCat(iteration.number()),
          VerdictWord(iteration.verdict()),
          change,
          SpeedupText(iteration.speedup_over_parent()),
          SpeedupText(iteration.speedup_over_start()),
          SpeedupText(iteration.speedup_over_baseline()),
          TimeText(iteration.time_us()),
          absl::StrCat(iteration.reason(), MarksText(iteration))};
}

std::string IterationLine(const v1::Iteration& iteration) {
  static constexpr int kWidths[] = {4, -8, -24, 8, 8, 8, 9, 0};
  const std::vector<std::string> cells = IterationCells(iteration);
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string cell = OneLine(cells[i]);
    const int width = std::abs(kWidths[i]);
    const std::string space(static_cast<size_t>(std::max(0, width - DisplayWidth(cell))), ' ');
    absl::StrAppend(&line, i > 0 ? "  " : "", kWidths[i] > 0 ? space : "", cell, kWidths[i] < 0 ? space : "");
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace pawl
