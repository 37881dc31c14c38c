#include "fleet/demand.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"

namespace pawl {
namespace {

// The value of a label: "queued{gpu=\"a \\\"b\\\"\"}".
std::string LabelIn(std::string_view line, std::string_view label) {
  const std::string begin = absl::StrCat(std::string(label), "=\"");
  size_t at = line.find(begin);
  if (at == std::string_view::npos) return "";
  std::string value;
  for (at += begin.size(); at < line.size() && line[at] != '"'; ++at) {
    if (line[at] == '\\' && at + 1 < line.size()) ++at;
    value += line[at];
  }
  return value;
}

int ValueIn(std::string_view line) {
  double value = 0;
  const std::string text(line.substr(line.rfind(' ') + 1));
  return absl::SimpleAtod(text, &value) ? static_cast<int>(value) : 0;
}

}  // namespace

absl::StatusOr<Demand> ReadDemand(std::string_view metrics, std::string_view workers) {
  Demand demand;
  bool ours = false;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(std::string(metrics), '\n'))) {
    ours |= absl::StartsWith(line, "pawl_serving ");
    if (line == "pawl_serving 0") {
      return absl::UnavailableError("the orchestrator can't write its database; its log says why");
    }
    if (absl::StartsWith(line, "pawl_trials_queued{")) demand.queued[LabelIn(line, "gpu")] += ValueIn(line);
    if (absl::StartsWith(line, "pawl_workers{") && LabelIn(line, "state") == "idle") {
      demand.idle[LabelIn(line, "gpu")] += ValueIn(line);
    }
  }
  const nlohmann::json list = nlohmann::json::parse(workers, nullptr, /*allow_exceptions=*/false);
  if (!ours || !list.is_object()) {
    return absl::FailedPreconditionError("it does not answer as an orchestrator of Pawl does: is the address right?");
  }
  const auto all = list.find("workers");
  if (all == list.end() || !all->is_array()) return demand;
  for (const nlohmann::json& worker : *all) {
    const auto name = worker.find("name");
    if (name == worker.end() || !name->is_string()) continue;
    demand.workers.emplace_back(absl::StripPrefix(name->get<std::string>(), "workers/"));
  }
  return demand;
}

}  // namespace pawl
