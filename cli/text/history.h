// What `pawl history` prints.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/text/layout.h"
#include "pawl/v1/campaign.pb.h"

namespace pawl {

// What a list of iterations can show of each, and be sorted by.
struct IterationColumn {
  std::string name;  // as --columns and --sort have it
  Table::Column head;
  std::function<std::string(const v1::Iteration&)> cell;
  std::function<double(const v1::Iteration&)> key = nullptr;  // orders it; NaN: there is none. Null: it has no order
  bool metric = false;                                        // must be asked for by its name
};

// number, verdict, change and the like.
const std::vector<IterationColumn>& IterationColumnList();
// "number, verdict, ...": those names.
std::string IterationColumnNames();

// The columns of these names: one of the list, a variable of the campaign (`variables`), or else a metric. An
// orchestrator knows which metrics there are. INVALID_ARGUMENT: an empty name, or one twice.
absl::StatusOr<std::vector<IterationColumn>> ReadIterationColumns(const std::vector<std::string>& names,
                                                                  const std::vector<std::string>& variables);

// Those that it shows where --columns names none.
inline constexpr char kHistoryColumns[] = "number,verdict,time,over-baseline,over-parent,over-start,change,reason";

// "campaigns/7: softmax at main, running; on NVIDIA H200".
std::string HistoryHead(const std::string& name, const v1::Campaign& campaign);
// A row for each.
Table HistoryTable(const std::vector<v1::Iteration>& iterations, const std::vector<IterationColumn>& columns);
// The line of --json.
std::string HistoryJson(const v1::Iteration& iteration);
// What the table does not show: iterations that could not be tried, and columns that the terminal has no room for.
// Empty: nothing.
std::string HistoryFoot(int left_out, const std::vector<std::string>& no_room);

// Those without a key come last, and equal ones keep their order.
void SortIterations(const IterationColumn& column, bool descending, std::vector<v1::Iteration>* iterations);

}  // namespace pawl
