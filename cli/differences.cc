#include "cli/differences.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/table.h"
#include "cli/words.h"

namespace pawl {
namespace {

std::string Factor(double first, double second) {
  return first > 0 && second > 0 ? absl::StrFormat("%.3gx", second / first) : "";
}

// Of an iteration where there is no such launch, an empty one.
const v1::LaunchEvidence& Find(const v1::Evidence& evidence, const std::string& entry) {
  for (const v1::LaunchEvidence& launch : evidence.launches()) {
    if (launch.entry() == entry) return launch;
  }
  return v1::LaunchEvidence::default_instance();
}

}  // namespace

void Differences::Text(const std::string& what, const std::string& first, const std::string& second) {
  if (first != second) rows_.push_back({what, first.empty() ? "-" : first, second.empty() ? "-" : second, ""});
}

void Differences::Time(const std::string& what, double first_us, double second_us) {
  const std::string first = TimeText(first_us), second = TimeText(second_us);
  if (first != second) rows_.push_back({what, first, second, Factor(first_us, second_us)});
}

void Differences::Speedup(const std::string& what, double first, double second) {
  Text(what, SpeedupText(first), SpeedupText(second));
}

void Differences::Number(const std::string& what, double first, double second) {
  const std::string one = NumberText(first), other = NumberText(second);
  if (one != other) rows_.push_back({what, one, other, Factor(first, second)});
}

void Differences::Iterations(const v1::Iteration& first, const v1::Iteration& second) {
  std::set<std::string> variables;
  for (const auto& [name, value] : first.variant()) variables.insert(name);
  for (const auto& [name, value] : second.variant()) variables.insert(name);
  auto value = [](const v1::Iteration& iteration, const std::string& name) {
    const auto at = iteration.variant().find(name);
    return at == iteration.variant().end() ? "" : absl::StrCat(at->second);
  };
  for (const std::string& name : variables) Text(name, value(first, name), value(second, name));
  Text("source edits", first.patched_source_hash().substr(0, 12), second.patched_source_hash().substr(0, 12));
  Text("verdict", VerdictWord(first.verdict()), VerdictWord(second.verdict()));
  Text("device", first.device(), second.device());
  Time("time", first.time_us(), second.time_us());
  Time("time, warm", first.warm_us(), second.warm_us());
  Time("time, cold", first.cold_us(), second.cold_us());
  Speedup("speedup over the start", first.speedup_over_start(), second.speedup_over_start());
  Speedup("speedup over the baseline", first.speedup_over_baseline(), second.speedup_over_baseline());
  Text("driver", first.gpu().driver_version(), second.gpu().driver_version());
  Text("NVRTC", first.toolchain().nvrtc(), second.toolchain().nvrtc());
  Text("nvcc", first.toolchain().nvcc(), second.toolchain().nvcc());
  Evidence(first.evidence(), second.evidence());
}

void Differences::Evidence(const v1::Evidence& first, const v1::Evidence& second) {
  std::vector<std::string> entries;
  for (const v1::Evidence* evidence : {&first, &second}) {
    for (const v1::LaunchEvidence& launch : evidence->launches()) {
      if (std::find(entries.begin(), entries.end(), launch.entry()) == entries.end()) entries.push_back(launch.entry());
    }
  }
  for (const std::string& entry : entries) Launch(entry, Find(first, entry), Find(second, entry));
}

void Differences::Launch(const std::string& entry, const v1::LaunchEvidence& first, const v1::LaunchEvidence& second) {
  const std::string prefix = absl::StrCat(entry, ": ");
  if (first.entry().empty() || second.entry().empty()) {
    Text(absl::StrCat(entry), first.entry().empty() ? "not launched" : "launched",
         second.entry().empty() ? "not launched" : "launched");
    return;
  }
  Text(prefix + "grid", ExtentText(first.geometry().grid()), ExtentText(second.geometry().grid()));
  Text(prefix + "block", ExtentText(first.geometry().block()), ExtentText(second.geometry().block()));
  const v1::ResourceUse &one = first.resources(), &other = second.resources();
  Number(prefix + "shared bytes", first.geometry().shared_bytes() + one.static_shared_bytes(),
         second.geometry().shared_bytes() + other.static_shared_bytes());
  Number(prefix + "registers", one.registers(), other.registers());
  Number(prefix + "local bytes (spills)", one.local_bytes(), other.local_bytes());
  Number(prefix + "blocks an SM", one.blocks_per_sm(), other.blocks_per_sm());
  // What only one of them has says that the other was not profiled, not that it differs.
  const std::map<std::string, double> sorted(first.metrics().begin(), first.metrics().end());
  for (const auto& [name, value] : sorted) {
    const auto at = second.metrics().find(name);
    if (at != second.metrics().end()) Number(prefix + name, value, at->second);
  }
}

void Differences::Campaigns(const v1::Campaign& first, const v1::Campaign& second) {
  Text("kernel", first.bundle(), second.bundle());
  Text("bundle hash", first.bundle_hash().substr(0, 12), second.bundle_hash().substr(0, 12));
  Text("size", first.spec().goal().size(), second.spec().goal().size());
  Speedup("goal", first.spec().goal().speedup(), second.spec().goal().speedup());
  Number("budget, iterations", first.spec().budget().iterations(), second.spec().budget().iterations());
  Number("budget, minutes", first.spec().budget().minutes(), second.spec().budget().minutes());
  Number("budget, dollars", first.spec().budget().dollars(), second.spec().budget().dollars());
  Text("device", first.device(), second.device());
  Text("state", StateWord(first.state()), StateWord(second.state()));
  Text("ended by", StopText(first.stop_reason()), StopText(second.stop_reason()));
  Number("iterations", first.iterations(), second.iterations());
  Number("kept", first.kept(), second.kept());
  Number("reverted", first.reverted(), second.reverted());
  Number("rejected", first.rejected(), second.rejected());
  Text("best iteration", first.has_best() ? absl::StrCat(first.best()) : "",
       second.has_best() ? absl::StrCat(second.best()) : "");
  Time("start", first.start_us(), second.start_us());
  Time("baseline", first.baseline_us(), second.baseline_us());
  Number("GPU seconds", first.gpu_seconds(), second.gpu_seconds());
}

std::string Differences::TableText(const std::string& first, const std::string& second, int width) const {
  using Align = Table::Align;
  Table table({{""}, {first, Align::kRight}, {second, Align::kRight}, {"", Align::kRight}});
  for (const std::vector<std::string>& row : rows_) table.Add(row);
  return table.Text(width);
}

}  // namespace pawl
