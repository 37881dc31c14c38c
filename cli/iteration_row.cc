#include "cli/iteration_row.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/table.h"
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

bool IsUntried(const v1::Iteration& iteration) {
  return iteration.verdict() == v1::REJECTED && !iteration.has_failure() &&
         absl::StartsWith(iteration.reason(), "passed over: ");
}

std::string ChangeCell(const v1::Iteration& iteration) {
  std::string change = ChangeText(iteration.change());
  if (iteration.has_parent() && iteration.number() != iteration.parent() + 1) {
    absl::StrAppend(&change, " (from ", iteration.parent(), ")");
  }
  return change;
}

std::string ReasonCell(const v1::Iteration& iteration) {
  return absl::StrCat(iteration.reason(), MarksText(iteration));
}

std::vector<std::string> IterationCells(const v1::Iteration& iteration) {
  return {absl::StrCat(iteration.number()),
          VerdictWord(iteration.verdict()),
          ChangeCell(iteration),
          SpeedupText(iteration.speedup_over_parent()),
          SpeedupText(iteration.speedup_over_start()),
          SpeedupText(iteration.speedup_over_baseline()),
          TimeText(iteration.time_us()),
          ReasonCell(iteration)};
}

std::string IterationLine(const v1::Iteration& iteration) {
  static constexpr int kWidths[] = {4, -8, -24, 8, 8, 8, 9, 0};
  std::vector<std::string> cells = IterationCells(iteration);
  std::string expected = iteration.finding().rule();
  if (iteration.prediction().high() > 0) {
    absl::StrAppend(&expected, expected.empty() ? "" : ", ", "predicted ", SpeedupText(iteration.prediction().low()),
                    " to ", SpeedupText(iteration.prediction().high()));
  }
  if (!expected.empty()) cells.back() = absl::StrCat(expected, ": ", cells.back());
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
