#include "cli/text/kept_path.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "cli/connect/all_iterations.h"
#include "cli/text/table.h"
#include "cli/text/words.h"

namespace pawl {

absl::StatusOr<std::vector<v1::Iteration>> KeptPath(Connection& connection, const std::string& campaign, int number) {
  v1::ListIterationsRequest request;
  request.set_campaign(campaign);
  request.set_verdict(v1::KEPT);
  absl::StatusOr<std::vector<v1::Iteration>> kept = AllIterations(connection, request);
  if (!kept.ok()) return kept.status();
  return KeptPathIn(*kept, number);
}

std::vector<v1::Iteration> KeptPathIn(const std::vector<v1::Iteration>& iterations, int number) {
  std::map<int, const v1::Iteration*> kept;
  for (const v1::Iteration& iteration : iterations) {
    if (iteration.verdict() == v1::KEPT) kept.emplace(iteration.number(), &iteration);
  }
  std::vector<v1::Iteration> path;
  for (auto at = kept.find(number); at != kept.end(); at = kept.find(number)) {
    path.push_back(*at->second);
    if (!at->second->has_parent() || at->second->parent() >= number) break;
    number = at->second->parent();
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::string PathText(const std::vector<v1::Iteration>& path) {
  using Align = Table::Align;
  Table table({{"", Align::kRight}, {""}, {"", Align::kRight}, {"", Align::kRight}});
  for (const v1::Iteration& step : path) {
    table.Add({absl::StrCat("  ", step.number()), ChangeText(step.change()), SpeedupText(step.speedup_over_parent()),
               TimeText(step.time_us())});
  }
  return table.Text(0);
}

}  // namespace pawl
