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

absl::Status NotPawl() {
  return absl::FailedPreconditionError("it does not answer as an orchestrator of Pawl does: is the address right?");
}

// The list in what /api/workers answers; empty: there are none.
absl::StatusOr<nlohmann::json> ReadWorkers(std::string_view text) {
  const nlohmann::json answer = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return NotPawl();
  const auto all = answer.find("workers");
  return all == answer.end() || !all->is_array() ? nlohmann::json::array() : *all;
}

// Empty: it is none.
std::string TextIn(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

std::vector<std::string> NamesIn(const nlohmann::json& workers) {
  std::vector<std::string> names;
  for (const nlohmann::json& worker : workers) {
    if (const std::string name = TextIn(worker, "name"); !name.empty()) {
      names.emplace_back(absl::StripPrefix(name, "workers/"));
    }
  }
  return names;
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
  const absl::StatusOr<nlohmann::json> list = ReadWorkers(workers);
  if (!ours || !list.ok()) return NotPawl();
  demand.workers = NamesIn(*list);
  for (const nlohmann::json& worker : *list) {
    const auto device = worker.find("device");
    if (device == worker.end() || !device->is_object()) continue;
    if (TextIn(*device, "kind") == "DEVICE_KIND_REPLAY") demand.replays.insert(TextIn(*device, "label"));
  }
  return demand;
}

absl::StatusOr<std::vector<std::string>> ReadWorkerNames(std::string_view workers) {
  const absl::StatusOr<nlohmann::json> list = ReadWorkers(workers);
  if (!list.ok()) return list.status();
  return NamesIn(*list);
}

}  // namespace pawl
