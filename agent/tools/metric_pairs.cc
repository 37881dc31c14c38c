#include "agent/tools/metric_pairs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "agent/tools/forms.h"

namespace pawl {
namespace {

struct MetricPair {
  std::string launch, metric;
  double before = 0, after = 0;

  // How far apart, whichever is larger.
  double distance() const {
    if (before <= 0 || after <= 0) return std::abs(before - after) > 0 ? 1e3 : 0;
    return std::abs(std::log(after / before));
  }
};

void AddPairs(const v1::LaunchEvidence& before, const v1::LaunchEvidence& after, std::vector<MetricPair>* pairs) {
  const auto add = [&](const std::string& name, double a, double b) {
    MetricPair pair = {before.entry(), name, a, b};
    if (pair.distance() > 0.01) pairs->push_back(std::move(pair));
  };
  add("registers", before.resources().registers(), after.resources().registers());
  add("local_bytes", before.resources().local_bytes(), after.resources().local_bytes());
  add("static_shared_bytes", before.resources().static_shared_bytes(), after.resources().static_shared_bytes());
  add("blocks_per_sm", before.resources().blocks_per_sm(), after.resources().blocks_per_sm());
  const std::map<std::string, double> sorted(before.metrics().begin(), before.metrics().end());
  for (const auto& [name, value] : sorted) {
    const auto other = after.metrics().find(name);
    const bool said = name == "registers" || name == "local_bytes" || name == "blocks_per_sm";
    if (other != after.metrics().end() && !said) add(name, value, other->second);
  }
}

}  // namespace

Json MetricPairs(const v1::Evidence& before, const v1::Evidence& after) {
  std::vector<MetricPair> pairs;
  for (const v1::LaunchEvidence& a : before.launches()) {
    for (const v1::LaunchEvidence& b : after.launches()) {
      if (a.entry() == b.entry()) AddPairs(a, b, &pairs);
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const MetricPair& a, const MetricPair& b) { return a.distance() > b.distance(); });
  Json list = Json::array();
  for (const MetricPair& pair : pairs) {
    Json each = {{"launch", pair.launch},
                 {"metric", pair.metric},
                 {"before", Rounded(pair.before)},
                 {"after", Rounded(pair.after)}};
    if (pair.before > 0 && pair.after > 0) each["ratio"] = Rounded(pair.after / pair.before);
    list.push_back(std::move(each));
  }
  return list;
}

}  // namespace pawl
