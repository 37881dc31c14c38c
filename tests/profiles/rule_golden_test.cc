// Every rule of the shipped tree against real evidence in which it fires, and a control in which it must not.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>

#include "pawl/v1/recording.pb.h"
#include "profiles/diagnosis.h"
#include "profiles/gpus.h"
#include "tests/profiles/golden.h"

namespace pawl {
namespace {

using ::testing::Contains;
using ::testing::Not;

using Values = std::map<std::string, double>;

const v1::GpuInfo& H200() { return FindGpu("h200")->info; }

const NcuKernel* ZooKernel(const std::string& name) {
  for (const char* file : {"zoo_raw_full.csv", "faults_raw.csv"}) {
    for (const NcuKernel& kernel : GoldenKernels(file)) {
      if (kernel.name == name || kernel.name.starts_with(name + "(")) return &kernel;
    }
  }
  ADD_FAILURE() << "no kernel " << name;
  return nullptr;
}

// Counters and, of those in zoo.cu, ncu's advice of a planted kernel; `given` is what its bundle would say.
v1::Evidence Zoo(const std::string& name, const Values& given = {}) {
  const NcuKernel* kernel = ZooKernel(name);
  v1::Evidence evidence;
  if (kernel == nullptr) return evidence;
  v1::LaunchEvidence* launch = evidence.add_launches();
  launch->set_entry(name);
  launch->mutable_metrics()->insert(given.begin(), given.end());
  const Values metrics = Metrics::Default().Derive(kernel, *launch, H200());
  launch->mutable_metrics()->clear();
  launch->mutable_metrics()->insert(metrics.begin(), metrics.end());
  static const auto& advice =
      *new std::map<int, std::vector<v1::Advice>>(ReadNcuDetails(Golden("zoo_details_full.csv")).value());
  if (kernel->name.find('(') != std::string::npos) {
    for (const v1::Advice& one : advice.at(kernel->id)) *launch->add_advice() = one;
  }
  return evidence;
}

// A variant of a shipped bundle.
v1::Evidence Recorded(const std::string& name) {
  v1::RecordedVariant variant;
  const std::string text = Golden("../recorded-h200/" + name + ".json");
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(text, &variant).ok()) << name;
  EXPECT_GT(variant.evidence().launches_size(), 0) << name;
  return variant.evidence();
}

// What compiler and geometry say of a planted kernel that was not profiled.
v1::Evidence Compiled(const std::string& name) {
  const std::string log = Golden("zoo_ptxas.txt");
  const size_t at = log.find("Compiling entry function '_Z" + std::to_string(name.size()) + name);
  const NcuKernel* kernel = ZooKernel(name);
  v1::Evidence evidence;
  evidence.set_partial(true);
  int local = -1, registers = -1;
  if (at == log.npos || kernel == nullptr ||
      std::sscanf(log.c_str() + log.find('\n', log.find("Function properties", at)), " %d bytes stack frame", &local) !=
          1 ||
      std::sscanf(log.c_str() + log.find("Used ", at), "Used %d registers", &registers) != 1) {
    ADD_FAILURE() << "no word of the compiler about " << name;
    return evidence;
  }
  v1::LaunchEvidence* launch = evidence.add_launches();
  launch->set_entry(name);
  launch->mutable_resources()->set_registers(registers);
  launch->mutable_resources()->set_local_bytes(local);
  for (const auto& [dim, column] : {std::pair(launch->mutable_geometry()->mutable_grid(), "launch__grid_size"),
                                    std::pair(launch->mutable_geometry()->mutable_block(), "launch__block_size")}) {
    dim->set_x(static_cast<int>(kernel->values.at(column)));
    dim->set_y(1);
    dim->set_z(1);
  }
  const Values metrics = Metrics::Default().Derive(nullptr, *launch, H200());
  launch->mutable_metrics()->insert(metrics.begin(), metrics.end());
  return evidence;
}

struct RuleEvidence {
  const char* rule;
  v1::Evidence shows, control;
  Values seen;  // the values that the rule's conditions must have seen
};

const std::vector<RuleEvidence>& Goldens() {
  const double copied = 2.0 * 8192 * 8192 * 4;  // of the zoo's copies
  static const auto& goldens = *new std::vector<RuleEvidence>{
      // Planted.
      {"grid-too-small", Zoo("tiny_grid"), Zoo("copy_vec4"), {{"waves", 2.0 / 1056}}},
      {"bank-conflicts", Zoo("transpose_conflict"), Zoo("transpose_padded"), {{"bank_conflict_share", 92.57}}},
      {"uncoalesced", Zoo("uncoalesced"), Zoo("copy_scalar"), {{"sector_use", 22.22}}},
      {"low-occupancy-shared",
       Zoo("low_occupancy"),
       Zoo("copy_vec4"),
       {{"occupancy_limit", 3.12}, {"limit_shared", 1}}},
      {"local-memory", Zoo("spilling"), Zoo("copy_vec4"), {{"local_share", 70.76}}},
      {"local-memory-compiled", Compiled("spilling"), Compiled("copy_vec4"), {{"local_bytes", 384}}},
      {"latency-bound", Zoo("latency_chain"), Zoo("copy_vec4"), {{"issue_active", 0.71}}},
      {"poor-l2-reuse",
       Zoo("spilling", {{"work_bytes", 2.0 * (1 << 22) * 4}}),
       Zoo("copy_vec4", {{"work_bytes", copied}}),
       {{"dram_excess", 116.1}}},
      {"l2-bound", Zoo("uncoalesced"), Zoo("copy_vec4"), {{"l2_throughput", 95.52}, {"dram_throughput", 23.98}}},
      {"divergence", Zoo("divergent"), Zoo("compute_bound"), {{"threads_per_instruction", 15.99}}},
      {"unfused-arithmetic", Zoo("divergent"), Zoo("compute_bound"), {}},
      {"compute-roof", Zoo("compute_bound"), Zoo("copy_vec4"), {{"sm_throughput", 97.73}}},
      {"l1-misses", Zoo("gather_far"), Zoo("gather_near"), {{"l1_hit_rate", 0.34}, {"l2_throughput", 95.9}}},
      {"atomics-contended",
       Zoo("hist_global_few"),
       Zoo("hist_global_many"),
       {{"atomics_busiest", 83.4}, {"atomics_spread", 0.0107}}},
      {"atomics-bound", Zoo("hist_global_many"), Zoo("hist_shared_many"), {{"atomics_busy", 60.8}}},
      {"integer-bound", Zoo("integer_work"), Zoo("float_work"), {{"alu_busy", 95.9}}},
      {"special-functions", Zoo("special_work"), Zoo("float_work"), {{"special_busy", 96.5}}},
      {"double-precision", Zoo("double_work"), Zoo("float_work"), {{"double_busy", 73.2}}},
      // Met in the shipped bundles; the control is the same variant with one variable turned.
      {"tail-effect",
       Recorded("tail-effect"),
       Recorded("tail-effect.control"),
       {{"waves", 3.4478}, {"last_wave_fill", 0.4478}, {"tail_loss", 0.13805}}},
      {"few-warps",
       Recorded("few-warps"),
       Recorded("few-warps.control"),
       {{"warps_per_scheduler", 1}, {"warps_per_scheduler_limit", 5}}},
      {"bank-conflicts-minor",
       Recorded("bank-conflicts-minor"),
       Recorded("bank-conflicts-minor.control"),
       {{"bank_conflict_share", 5.179}}},
      {"narrow-loads",
       Recorded("narrow-loads"),
       Recorded("narrow-loads.control"),
       {{"load_width", 4}, {"sector_use_load", 100}, {"dram_throughput", 50.18}, {"long_scoreboard_share", 90.48}}},
      {"narrow-loads-minor",
       Recorded("narrow-loads-minor"),
       Recorded("narrow-loads-minor.control"),
       {{"load_width", 2}, {"sector_use_load", 100}, {"long_scoreboard_share", 20.63}}},
      {"second-launch",
       Recorded("second-launch"),
       Recorded("second-launch.control"),
       {{"other_launches_share", 30.69}}},
      {"short-call",
       Recorded("short-call"),
       Recorded("short-call.control"),
       {{"long_scoreboard_share", 39.12}, {"duration_ns", 3744}, {"grid_size", 8}}},
      {"tensor-cores-wait",
       Recorded("tensor-cores-wait"),
       Recorded("tensor-cores-wait.control"),
       {{"sm_throughput", 2.33}, {"matrix_work", 1}, {"tensor_use", 1.14}}},
      {"tensor-cores-by-warp",
       Recorded("tensor-cores-by-warp"),
       Recorded("tensor-cores-by-warp.control"),
       {{"matrix_work", 1}, {"tensor_hmma", 11.02}, {"tensor_gmma", 0}, {"grid_size", 1024}}},
      {"waiting-for-loads",
       Recorded("waiting-for-loads"),
       Recorded("waiting-for-loads.control"),
       {{"long_scoreboard_share", 65.9}, {"issue_active", 48.26}, {"occupancy", 95.06}, {"dram_throughput", 66.2}}},
      {"low-occupancy-registers",
       Recorded("low-occupancy-registers"),
       Recorded("low-occupancy-registers.control"),
       {{"occupancy_limit", 37.5}, {"limit_registers", 12}}},
      {"low-occupancy-block",
       Recorded("low-occupancy-block"),
       Recorded("low-occupancy-block.control"),
       {{"occupancy_limit", 50}, {"limit_block_size", 32}}},
      {"exposed-latency",
       Recorded("exposed-latency"),
       Recorded("exposed-latency.control"),
       {{"long_scoreboard_share", 42.2}, {"occupancy", 47.4}, {"dram_throughput", 66.94}}},
      {"shared-queue-full",
       Recorded("shared-queue-full"),
       Recorded("shared-queue-full.control"),
       {{"mio_throttle_share", 55.53}}},
      {"dram-roof", Recorded("dram-roof"), Recorded("dram-roof.control"), {{"dram_throughput", 89.93}}},
      {"tensor-cores-idle",
       Recorded("tensor-cores-idle"),
       Recorded("tensor-cores-idle.control"),
       {{"matrix_work", 1}, {"tensor_use", 0.4}}},
      {"barrier-stalls", Recorded("barrier-stalls"), Recorded("barrier-stalls.control"), {{"barrier_share", 20.23}}},
      {"launch-overhead", Recorded("launch-overhead"), Recorded("launch-overhead.control"), {{"duration_ns", 5792}}},
  };
  return goldens;
}

std::vector<v1::Finding> FindingsOf(const v1::Evidence& evidence) {
  return DecisionTree::Default().Diagnose(evidence, H200());
}

std::vector<std::string> Names(const std::vector<v1::Finding>& findings) {
  std::vector<std::string> names;
  for (const v1::Finding& finding : findings) names.push_back(finding.rule());
  return names;
}

const v1::Finding* Find(const std::vector<v1::Finding>& findings, const std::string& rule) {
  for (const v1::Finding& finding : findings) {
    if (finding.rule() == rule) return &finding;
  }
  return nullptr;
}

TEST(RuleGolden, CoversEveryRule) {
  std::set<std::string> covered, rules;
  for (const RuleEvidence& golden : Goldens()) covered.insert(golden.rule);
  for (const Rule& rule : DecisionTree::Default().rules()) rules.insert(rule.name);
  EXPECT_EQ(covered, rules);
}

TEST(RuleGolden, FiresOnRealEvidenceWithTheValuesOfThatEvidence) {
  for (const RuleEvidence& golden : Goldens()) {
    const std::vector<v1::Finding> findings = FindingsOf(golden.shows);
    const v1::Finding* finding = Find(findings, golden.rule);
    ASSERT_NE(finding, nullptr) << golden.rule;
    Values seen;
    for (const v1::SeenValue& value : finding->seen()) seen[value.metric()] = value.value();
    for (const auto& [metric, value] : golden.seen) {
      ASSERT_TRUE(seen.contains(metric)) << golden.rule << " " << metric;
      EXPECT_NEAR(seen[metric], value, 0.01 * value) << golden.rule << " " << metric;
    }
    EXPECT_EQ(finding->text().find("unknown"), std::string::npos) << finding->text();
    EXPECT_GT(finding->severity(), 0) << golden.rule;
  }
}

TEST(RuleGolden, IsSilentOnTheControl) {
  for (const RuleEvidence& golden : Goldens()) {
    EXPECT_THAT(Names(FindingsOf(golden.control)), Not(Contains(golden.rule)));
  }
}

TEST(RuleGolden, IsSureWhereTheEvidenceIsWhole) {
  for (const RuleEvidence& golden : Goldens()) {
    if (golden.shows.partial()) continue;
    for (const RuleGap& gap : DecisionTree::Default().Gaps(golden.shows, H200())) {
      EXPECT_NE(gap.rule, golden.rule);
    }
  }
}

TEST(RuleGolden, TakesLoadsByCpAsyncForNoUncoalescedAccess) {
  const v1::Evidence evidence = Recorded("cp-async");
  EXPECT_EQ(evidence.launches(0).metrics().at("sector_use_load"), 0);
  EXPECT_GT(evidence.launches(0).metrics().at("sectors_load"), 0);
  EXPECT_THAT(Names(FindingsOf(evidence)), Not(Contains("uncoalesced")));
}

TEST(RuleGolden, AdvisesOnLaunchOverheadAndDivergenceWithoutWantingAChange) {
  for (const char* rule : {"launch-overhead", "divergence", "unfused-arithmetic"}) {
    for (const RuleEvidence& golden : Goldens()) {
      if (std::string(rule) != golden.rule) continue;
      const std::vector<v1::Finding> findings = FindingsOf(golden.shows);
      EXPECT_EQ(Find(findings, rule)->wants_size(), 0) << rule;
      EXPECT_FALSE(Find(findings, rule)->advice().empty()) << rule;
    }
  }
}

TEST(RuleGolden, CarriesWhatNcuEstimates) {
  struct {
    const char *kernel, *rule, *ncu;
    double estimate;
  } const supported[] = {{"tiny_grid", "grid-too-small", "LaunchConfiguration", 98.48},
                         {"transpose_conflict", "bank-conflicts", "UncoalescedSharedAccess", 93.13},
                         {"uncoalesced", "uncoalesced", "MemoryCacheAccessPattern", 81.96},
                         {"low_occupancy", "low-occupancy-shared", "TheoreticalOccupancy", 93.75},
                         {"divergent", "divergence", "ThreadDivergence", 46.39},
                         {"divergent", "unfused-arithmetic", "FPInstructions", 6.336}};
  for (const auto& one : supported) {
    const std::vector<v1::Finding> findings = FindingsOf(Zoo(one.kernel));
    const v1::Finding* finding = Find(findings, one.rule);
    ASSERT_NE(finding, nullptr) << one.rule;
    EXPECT_EQ(finding->ncu_rule(), one.ncu) << one.rule;
    EXPECT_NEAR(finding->ncu_estimate_percent(), one.estimate, 0.01) << one.rule;
    EXPECT_GE(finding->severity(), one.estimate / 100 - 1e-9) << one.rule;
  }
}

TEST(RuleGolden, TakesNoEstimateForAPartOfTheGpuForASpeedup) {
  // ncu gives 81 % here, for the warps of a multiprocessor: it says so ("local").
  const v1::Evidence evidence = Recorded("tensor-cores-idle");
  const std::vector<v1::Finding> findings = FindingsOf(evidence);
  const v1::Finding* finding = Find(findings, "low-occupancy-registers");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->ncu_rule(), "TheoreticalOccupancy");
  EXPECT_EQ(finding->ncu_estimate_percent(), 0);
}

}  // namespace
}  // namespace pawl
