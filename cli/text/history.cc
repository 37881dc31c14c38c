#include "cli/text/history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/text/iteration_line.h"
#include "cli/text/json_line.h"
#include "cli/text/words.h"
#include "report/sentences.h"

namespace pawl {
namespace {

constexpr auto kLeft = Table::Align::kLeft;
constexpr auto kRight = Table::Align::kRight;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double Positive(double value) { return value > 0 ? value : kNone; }

double SecondsOf(const v1::Iteration& iteration) {
  double seconds = 0;
  for (const v1::StageTime& stage : iteration.stages()) seconds += stage.seconds();
  return seconds;
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

IterationColumn VariableColumn(const std::string& name) {
  const auto value = [name](const v1::Iteration& iteration) {
    const auto at = iteration.variant().find(name);
    return at == iteration.variant().end() ? kNone : at->second;
  };
  return {
      name, {name, kRight}, [name](const v1::Iteration& iteration) { return OrDash(ValueOf(iteration, name)); }, value};
}

IterationColumn MetricColumn(const std::string& name) {
  const auto value = [name](const v1::Iteration& iteration) {
    const auto at = iteration.metrics().find(name);
    return at == iteration.metrics().end() ? kNone : at->second;
  };
  return {name,
          {name, kRight},
          [value](const v1::Iteration& iteration) {
            return std::isnan(value(iteration)) ? "-" : NumberText(value(iteration));
          },
          value,
          true};
}

}  // namespace

const std::vector<IterationColumn>& IterationColumnList() {
  using Iteration = v1::Iteration;
  static const auto* const kColumns = new std::vector<IterationColumn>{
      {"number",
       {"#", kRight},
       [](const Iteration& i) { return absl::StrCat(i.number()); },
       [](const Iteration& i) { return static_cast<double>(i.number()); }},
      {"parent",
       {"from", kRight},
       [](const Iteration& i) { return i.has_parent() ? absl::StrCat(i.parent()) : "-"; },
       [](const Iteration& i) { return i.has_parent() ? i.parent() : kNone; }},
      {"verdict", {"verdict"}, [](const Iteration& i) { return VerdictWord(i.verdict()); }},
      {"change", {"change"}, ChangeCell},
      {"variant", {"variant"}, [](const Iteration& i) { return ValuesText(i); }},
      {"finding", {"finding"}, [](const Iteration& i) { return OrDash(i.finding().rule()); }},
      {"predicted",
       {"predicted"},
       [](const Iteration& i) { return i.has_prediction() ? PredictedText(i.prediction()) : "-"; }},
      {"prediction",
       {"prediction"},
       [](const Iteration& i) { return i.has_prediction() ? OutcomeText(i.prediction().outcome()) : "-"; }},
      {"over-parent",
       {"parent", kRight, /*dispensable=*/2},
       [](const Iteration& i) { return SpeedupText(i.speedup_over_parent()); },
       [](const Iteration& i) { return Positive(i.speedup_over_parent()); }},
      {"over-start",
       {"start", kRight, /*dispensable=*/3},
       [](const Iteration& i) { return SpeedupText(i.speedup_over_start()); },
       [](const Iteration& i) { return Positive(i.speedup_over_start()); }},
      {"over-baseline",
       {"baseline", kRight},
       [](const Iteration& i) { return SpeedupText(i.speedup_over_baseline()); },
       [](const Iteration& i) { return Positive(i.speedup_over_baseline()); }},
      {"time",
       {"time", kRight},
       [](const Iteration& i) { return TimeText(i.time_us()); },
       [](const Iteration& i) { return Positive(i.time_us()); }},
      {"seconds", {"took", kRight}, [](const Iteration& i) { return SecondsText(SecondsOf(i)); }, SecondsOf},
      {"author", {"author"}, [](const Iteration& i) { return OrDash(i.author()); }},
      {"worker", {"worker"}, [](const Iteration& i) { return OrDash(i.worker()); }},
      {"reason", {"reason", kLeft, /*dispensable=*/4, /*shrinks_to=*/kReadableReason}, ReasonCell},
  };
  return *kColumns;
}

std::string IterationColumnNames() {
  return absl::StrJoin(IterationColumnList(), ", ",
                       [](std::string* out, const IterationColumn& column) { *out += column.name; });
}

absl::StatusOr<std::vector<IterationColumn>> ReadIterationColumns(const std::vector<std::string>& names,
                                                                  const std::vector<std::string>& variables) {
  std::vector<IterationColumn> columns;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty() || !seen.insert(name).second) {
      return absl::InvalidArgumentError(name.empty() ? "a column name is empty"
                                                     : absl::StrCat("column ", name, " is named twice"));
    }
    const auto& list = IterationColumnList();
    const auto known =
        std::find_if(list.begin(), list.end(), [&](const IterationColumn& column) { return column.name == name; });
    const bool variable = std::find(variables.begin(), variables.end(), name) != variables.end();
    columns.push_back(known != list.end() ? *known : variable ? VariableColumn(name) : MetricColumn(name));
  }
  return columns;
}

void SortIterations(const IterationColumn& column, bool descending, std::vector<v1::Iteration>* iterations) {
  std::stable_sort(iterations->begin(), iterations->end(), [&](const v1::Iteration& a, const v1::Iteration& b) {
    const double one = column.key(a), other = column.key(b);
    if (std::isnan(one) || std::isnan(other)) return !std::isnan(one) && std::isnan(other);
    return descending ? one > other : one < other;
  });
}

std::string HistoryHead(const std::string& name, const v1::Campaign& campaign) {
  return absl::StrCat(name, ": ", campaign.bundle(), " ", ObjectiveText(campaign.spec().goal()), ", ",
                      StateWord(campaign.state()), "; ",
                      campaign.device().empty() ? "no device yet" : absl::StrCat("on ", campaign.device()));
}

Table HistoryTable(const std::vector<v1::Iteration>& iterations, const std::vector<IterationColumn>& columns) {
  std::vector<Table::Column> heads;
  for (const IterationColumn& column : columns) heads.push_back(column.head);
  Table table(std::move(heads));
  for (const v1::Iteration& iteration : iterations) {
    std::vector<std::string> cells;
    for (const IterationColumn& column : columns) cells.push_back(column.cell(iteration));
    table.Add(std::move(cells));
  }
  return table;
}

std::string HistoryJson(const v1::Iteration& iteration) {
  return JsonRow(iteration, {"variant", "reason", "comparison", "time_us", "speedup_over_parent", "speedup_over_start",
                             "speedup_over_baseline", "stages", "device"});
}

std::string HistoryFoot(int left_out, const std::vector<std::string>& no_room) {
  std::string foot;
  if (left_out > 0) {
    absl::StrAppend(&foot, LeftOutText(left_out), " (--verdict rejected shows ", left_out == 1 ? "it" : "them", ")\n");
  }
  if (!no_room.empty()) {
    absl::StrAppend(&foot, "columns that do not fit this terminal: ", absl::StrJoin(no_room, ", "),
                    " (a pipe or --columns shows them)\n");
  }
  return foot;
}

}  // namespace pawl
