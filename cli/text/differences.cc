#include "cli/text/differences.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/text/layout.h"
#include "cli/text/words.h"

namespace pawl {
namespace {

// Metrics that are said of the generated code.
constexpr char kInstructions[] = "instructions";
constexpr char kRegisters[] = "registers";

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

std::vector<std::string> Entries(const v1::Evidence& first, const v1::Evidence& second) {
  std::vector<std::string> entries;
  for (const v1::Evidence* evidence : {&first, &second}) {
    for (const v1::LaunchEvidence& launch : evidence->launches()) {
      if (std::find(entries.begin(), entries.end(), launch.entry()) == entries.end()) entries.push_back(launch.entry());
    }
  }
  return entries;
}

// 0: it was not stored.
int64_t CubinBytes(const v1::Iteration& iteration) {
  for (const v1::Blob& blob : iteration.blobs()) {
    if (blob.kind() == v1::Blob::CUBIN && blob.hash() == iteration.cubin_hash()) return blob.bytes();
  }
  return 0;
}

}  // namespace

void Differences::Group(const std::string& title) { group_ = title; }

void Differences::Add(const std::string& what, const std::string& first, const std::string& second,
                      const std::string& factor) {
  if (!group_.empty()) rows_.push_back({std::exchange(group_, "")});
  rows_.push_back({absl::StrCat("  ", what), first, second, factor});
}

void Differences::Text(const std::string& what, const std::string& first, const std::string& second) {
  if (first != second) Add(what, first.empty() ? "-" : first, second.empty() ? "-" : second, "");
}

void Differences::Time(const std::string& what, double first_us, double second_us) {
  const std::string first = TimeText(first_us), second = TimeText(second_us);
  if (first != second) Add(what, first, second, Factor(first_us, second_us));
}

void Differences::Speedup(const std::string& what, double first, double second) {
  Text(what, SpeedupText(first), SpeedupText(second));
}

void Differences::Number(const std::string& what, double first, double second) {
  const std::string one = NumberText(first), other = NumberText(second);
  if (one != other) Add(what, one, other, Factor(first, second));
}

void Differences::Iterations(const v1::Iteration& first, const v1::Iteration& second) {
  Group("outcome");
  Text("verdict", VerdictWord(first.verdict()), VerdictWord(second.verdict()));
  Time("time", first.time_us(), second.time_us());
  Speedup("speedup over the baseline", first.speedup_over_baseline(), second.speedup_over_baseline());
  Speedup("speedup over the start", first.speedup_over_start(), second.speedup_over_start());
  Time("time, warm", first.warm_us(), second.warm_us());
  Time("time, cold", first.cold_us(), second.cold_us());
  Group("variables");
  std::set<std::string> variables;
  for (const auto& [name, value] : first.variant()) variables.insert(name);
  for (const auto& [name, value] : second.variant()) variables.insert(name);
  for (const std::string& name : variables) Text(name, ValueOf(first, name), ValueOf(second, name));
  Text("source edits", first.patched_source_hash().substr(0, 12), second.patched_source_hash().substr(0, 12));
  Group("environment");
  Text("device", first.device(), second.device());
  Text("driver", first.gpu().driver_version(), second.gpu().driver_version());
  Text("NVRTC", first.toolchain().nvrtc(), second.toolchain().nvrtc());
  Text("nvcc", first.toolchain().nvcc(), second.toolchain().nvcc());
  Group("generated code");
  GeneratedCode(first, second);
  Evidence(first.evidence(), second.evidence());
}

void Differences::GeneratedCode(const v1::Iteration& first, const v1::Iteration& second) {
  Text("cubin", first.cubin_hash().substr(0, 12), second.cubin_hash().substr(0, 12));
  const int64_t one = CubinBytes(first), other = CubinBytes(second);
  if (one > 0 && other > 0) Number("cubin bytes", static_cast<double>(one), static_cast<double>(other));
  for (const std::string& entry : Entries(first.evidence(), second.evidence())) {
    const v1::LaunchEvidence &a = Find(first.evidence(), entry), &b = Find(second.evidence(), entry);
    if (a.entry().empty() || b.entry().empty()) continue;  // said of the launches
    const std::string prefix = absl::StrCat(entry, ": ");
    Number(prefix + "registers", a.resources().registers(), b.resources().registers());
    Number(prefix + "local bytes (spills)", a.resources().local_bytes(), b.resources().local_bytes());
    Number(prefix + "static shared bytes", a.resources().static_shared_bytes(), b.resources().static_shared_bytes());
    const auto before = a.metrics().find(kInstructions), after = b.metrics().find(kInstructions);
    if (before != a.metrics().end() && after != b.metrics().end()) {
      Number(prefix + "instructions executed", before->second, after->second);
    }
  }
}

void Differences::MachineCode(const std::map<std::string, InstructionMix>& first,
                              const std::map<std::string, InstructionMix>& second) {
  constexpr size_t kMostOpcodes = 16;  // of a kernel
  std::set<std::string> functions;
  for (const auto* mixes : {&first, &second}) {
    for (const auto& [function, mix] : *mixes) functions.insert(function);
  }
  const auto count = [](const InstructionMix& mix, const std::string& opcode) {
    const auto at = mix.find(opcode);
    return at == mix.end() ? 0 : at->second;
  };
  for (const std::string& function : functions) {
    Group(absl::StrCat("machine code of ", function));
    const auto a = first.find(function), b = second.find(function);
    if (a == first.end() || b == second.end()) {
      Text("there", a == first.end() ? "no" : "yes", b == second.end() ? "no" : "yes");
      continue;
    }
    int all_a = 0, all_b = 0;
    std::set<std::string> opcodes;
    for (const auto& [opcode, times] : a->second) all_a += times, opcodes.insert(opcode);
    for (const auto& [opcode, times] : b->second) all_b += times, opcodes.insert(opcode);
    Number("instructions", all_a, all_b);
    Number("to and from local memory (spills)", count(a->second, "LDL") + count(a->second, "STL"),
           count(b->second, "LDL") + count(b->second, "STL"));
    std::vector<std::string> sorted(opcodes.begin(), opcodes.end());
    const auto off = [&](const std::string& opcode) {
      return std::abs(count(a->second, opcode) - count(b->second, opcode));
    };
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](const std::string& x, const std::string& y) { return off(x) > off(y); });
    if (sorted.size() > kMostOpcodes) sorted.resize(kMostOpcodes);
    for (const std::string& opcode : sorted) Number(opcode, count(a->second, opcode), count(b->second, opcode));
  }
}

void Differences::Evidence(const v1::Evidence& first, const v1::Evidence& second) {
  for (const std::string& entry : Entries(first, second)) {
    const v1::LaunchEvidence &a = Find(first, entry), &b = Find(second, entry);
    Group(absl::StrCat("launch ", entry));
    if (a.entry().empty() || b.entry().empty()) {
      Text("launched", a.entry().empty() ? "no" : "yes", b.entry().empty() ? "no" : "yes");
      continue;
    }
    Text("grid", ExtentText(a.geometry().grid()), ExtentText(b.geometry().grid()));
    Text("block", ExtentText(a.geometry().block()), ExtentText(b.geometry().block()));
    Number("shared bytes", a.geometry().shared_bytes() + a.resources().static_shared_bytes(),
           b.geometry().shared_bytes() + b.resources().static_shared_bytes());
    Number("blocks per SM", a.resources().blocks_per_sm(), b.resources().blocks_per_sm());
    // What only one of them has says that the other was not profiled, not that it differs.
    const std::map<std::string, double> sorted(a.metrics().begin(), a.metrics().end());
    for (const auto& [name, value] : sorted) {
      const auto at = b.metrics().find(name);
      const bool said = name == kInstructions || name == kRegisters;
      if (at != b.metrics().end() && !said) Number(name, value, at->second);
    }
  }
}

void Differences::Campaigns(const v1::Campaign& first, const v1::Campaign& second) {
  Group("campaign");
  Text("kernel", first.bundle(), second.bundle());
  Text("bundle hash", first.bundle_hash().substr(0, 12), second.bundle_hash().substr(0, 12));
  Text("size", ObjectiveText(first.spec().goal()), ObjectiveText(second.spec().goal()));
  Speedup("goal", first.spec().goal().speedup(), second.spec().goal().speedup());
  Number("budget, iterations", first.spec().budget().iterations(), second.spec().budget().iterations());
  Number("budget, minutes", first.spec().budget().minutes(), second.spec().budget().minutes());
  Number("budget, dollars", first.spec().budget().dollars(), second.spec().budget().dollars());
  Text("only on", first.spec().gpu(), second.spec().gpu());
  Text("device", first.device(), second.device());
  Text("state", StateWord(first.state()), StateWord(second.state()));
  Text("ended by", StopText(first.stop_reason()), StopText(second.stop_reason()));
  Number("tried", first.counts().tried(), second.counts().tried());
  Number("kept", first.counts().kept(), second.counts().kept());
  Number("reverted", first.counts().reverted(), second.counts().reverted());
  Number("rejected", first.counts().rejected(), second.counts().rejected());
  Number("not in the recording", first.counts().untried(), second.counts().untried());
  Text("best iteration", first.has_best() ? absl::StrCat(first.best()) : "",
       second.has_best() ? absl::StrCat(second.best()) : "");
  Time("start", first.start_us(), second.start_us());
  Time("baseline", first.baseline_us(), second.baseline_us());
  Number("GPU seconds", first.gpu_seconds(), second.gpu_seconds());
}

std::string Differences::TableText(const std::string& first, const std::string& second, int width, bool color) const {
  using Align = Table::Align;
  Table table({{"", Align::kLeft, 0, /*shrinks_to=*/27},
               {first, Align::kRight, 0, /*shrinks_to=*/12},
               {second, Align::kRight, 0, /*shrinks_to=*/12},
               {"ratio", Align::kRight}});
  for (const std::vector<std::string>& row : rows_) table.Add(row);
  return table.Text(width, color);
}

}  // namespace pawl
