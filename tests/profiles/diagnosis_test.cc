#include "profiles/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "profiles/gpus.h"
#include "profiles/ncu/ncu_csv.h"
#include "tests/profiles/golden.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

using Values = std::map<std::string, double>;

// Findings of one kernel of the zoo; `given` is what bundle and compiler add to the counters.
std::vector<v1::Finding> OfZoo(const std::string& file, const std::string& name, const Values& given = {}) {
  for (const NcuKernel& kernel : GoldenKernels(file)) {
    if (!kernel.name.starts_with(name + "(")) continue;
    v1::LaunchEvidence known;
    known.mutable_metrics()->insert(given.begin(), given.end());
    v1::Evidence evidence;
    v1::LaunchEvidence* launch = evidence.add_launches();
    launch->set_entry(name);
    const Values metrics = Metrics::Default().Derive(&kernel, known, GpuOf(kernel));
    launch->mutable_metrics()->insert(metrics.begin(), metrics.end());
    return DecisionTree::Default().Diagnose(evidence, GpuOf(kernel));
  }
  ADD_FAILURE() << "no kernel " << name;
  return {};
}

std::vector<v1::Finding> OfMetrics(const Values& metrics, const DecisionTree& tree = DecisionTree::Default(),
                                   const std::string& gpu_name = "") {
  v1::Evidence evidence;
  evidence.add_launches()->mutable_metrics()->insert(metrics.begin(), metrics.end());
  v1::GpuInfo gpu;
  gpu.set_name(gpu_name);
  return tree.Diagnose(evidence, gpu);
}

std::vector<std::string> Names(const std::vector<v1::Finding>& findings) {
  std::vector<std::string> names;
  for (const v1::Finding& finding : findings) names.push_back(finding.rule());
  return names;
}

std::string FirstOfPhase(const std::vector<v1::Finding>& findings, v1::Phase phase) {
  for (const v1::Finding& finding : findings) {
    if (finding.phase() == phase) return finding.rule();
  }
  return "none";
}

struct Planted {
  const char* kernel;
  v1::Phase phase;
  const char* rule;
  bool in_small;  // the 26 metrics of the small file can show it
};

// The table of golden/ncu-h200/README.md.
constexpr Planted kPlanted[] = {
    {"tiny_grid", v1::PHASE_PARALLELISM, "grid-too-small", true},
    {"transpose_conflict", v1::PHASE_MEMORY, "bank-conflicts", true},
    {"uncoalesced", v1::PHASE_MEMORY, "uncoalesced", true},
    {"low_occupancy", v1::PHASE_MEMORY, "low-occupancy-shared", true},
    {"copy_scalar", v1::PHASE_MEMORY, "narrow-loads", false},
    {"divergent", v1::PHASE_COMPUTE, "divergence", false},
    {"latency_chain", v1::PHASE_MEMORY, "latency-bound", false},
    {"spilling", v1::PHASE_MEMORY, "local-memory", false},
};

TEST(Diagnosis, FindsThePlantedFaultFirstInItsPhase) {
  for (const Planted& planted : kPlanted) {
    EXPECT_EQ(FirstOfPhase(OfZoo("zoo_raw_full.csv", planted.kernel), planted.phase), planted.rule) << planted.kernel;
    const auto small = OfZoo("zoo_raw_small.csv", planted.kernel);
    if (planted.in_small) {
      EXPECT_EQ(FirstOfPhase(small, planted.phase), planted.rule) << planted.kernel << ", small set";
    } else {
      EXPECT_THAT(Names(small), Not(Contains(planted.rule))) << "columns are missing: nothing may be claimed";
    }
  }
}

TEST(Diagnosis, FindsNoPlantedFaultInSoundKernels) {
  for (const char* file : {"zoo_raw_full.csv", "zoo_raw_small.csv"}) {
    for (const char* sound : {"transpose_padded", "compute_bound", "copy_vec4"}) {
      const auto names = Names(OfZoo(file, sound));
      for (const Planted& planted : kPlanted)
        EXPECT_THAT(names, Not(Contains(planted.rule))) << sound << " in " << file;
      EXPECT_THAT(names, Not(Contains("bank-conflicts-minor"))) << sound << " in " << file;
    }
  }
}

TEST(Diagnosis, BlamesNoKernelForAFaultOfAnother) {
  // What a kernel may earn beside its planted fault: true of it as well, or a consequence.
  const std::map<std::string, std::set<std::string>> also = {
      {"tiny_grid", {"few-warps", "exposed-latency", "narrow-loads"}},
      {"transpose_conflict", {"shared-queue-full", "narrow-loads-minor"}},
      {"transpose_padded", {"barrier-stalls", "narrow-loads-minor", "waiting-for-loads"}},  // 4 bytes a load
      {"uncoalesced", {"l2-bound", "l1-misses", "waiting-for-loads"}},
      {"copy_scalar", {"waiting-for-loads"}},
      {"spilling", {"narrow-loads-minor", "waiting-for-loads"}},
      {"low_occupancy", {"exposed-latency", "narrow-loads"}},
      {"compute_bound", {"compute-roof"}},
      {"copy_vec4", {"dram-roof"}},
      {"latency_chain", {"uncoalesced", "l2-bound", "l1-misses"}},
  };
  for (const NcuKernel& kernel : GoldenKernels("zoo_raw_full.csv")) {
    const std::string name = kernel.name.substr(0, kernel.name.find('('));
    std::set<std::string> allowed;
    if (const auto at = also.find(name); at != also.end()) allowed = at->second;
    for (const Planted& planted : kPlanted) {
      if (name == planted.kernel) allowed.insert(planted.rule);
    }
    for (const std::string& found : Names(OfZoo("zoo_raw_full.csv", name))) {
      EXPECT_TRUE(allowed.contains(found)) << name << ": " << found;
    }
  }
}

TEST(Diagnosis, SaysWhatItSaw) {
  const v1::Finding finding = OfZoo("zoo_raw_full.csv", "tiny_grid").at(0);
  EXPECT_EQ(finding.rule(), "grid-too-small");
  EXPECT_EQ(finding.text(), "The grid fills 0.00189 of a wave: 2 blocks for 132 SMs that hold 8 each");
  EXPECT_EQ(finding.entry(), "tiny_grid");
  ASSERT_EQ(finding.seen_size(), 1);
  EXPECT_EQ(finding.seen(0).metric(), "waves");
  EXPECT_EQ(finding.seen(0).operator_(), "<");
  EXPECT_EQ(finding.seen(0).threshold(), 1);
  EXPECT_NEAR(finding.seen(0).value(), 0.00189, 0.00001);
  ASSERT_EQ(finding.wants_size(), 1);
  EXPECT_EQ(finding.wants(0).resource(), v1::RESOURCE_PARALLELISM);
  EXPECT_EQ(finding.wants(0).direction(), v1::DIRECTION_MORE);
  EXPECT_NEAR(finding.deficit(), 2.0 / 1056, 1e-9);
  EXPECT_EQ(finding.predicts(), "waves");
  EXPECT_FALSE(finding.advice().empty());
  EXPECT_FALSE(finding.roof());
}

TEST(Diagnosis, CallsARoofARoofByTheGpusOwnThreshold) {
  const auto findings = OfZoo("zoo_raw_full.csv", "copy_vec4");
  ASSERT_EQ(Names(findings), std::vector<std::string>{"dram-roof"});
  EXPECT_TRUE(findings[0].roof());
  EXPECT_EQ(findings[0].seen(0).threshold(), 85);
  EXPECT_THAT(Names(OfMetrics({{"dram_throughput", 86.85}}, DecisionTree::Default(), "NVIDIA L4")),
              Not(Contains("dram-roof")));
  EXPECT_THAT(Names(OfMetrics({{"dram_throughput", 90}}, DecisionTree::Default(), "NVIDIA L4")), Contains("dram-roof"));
  EXPECT_TRUE(OfZoo("zoo_raw_small.csv", "compute_bound").at(0).roof());
}

TEST(Diagnosis, SpeaksOfTensorCoresOnlyWhereTheWorkCanUseThem) {
  EXPECT_THAT(Names(OfZoo("zoo_raw_full.csv", "compute_bound")), Not(Contains("tensor-cores-idle")));
  EXPECT_EQ(FirstOfPhase(OfZoo("zoo_raw_full.csv", "compute_bound", {{"matrix_work", 1}}), v1::PHASE_COMPUTE),
            "tensor-cores-idle");
}

TEST(Diagnosis, SeesPoorReuseOnlyWhereTheNeededBytesAreKnown) {
  const double copied = 2.0 * 8192 * 8192 * 4;
  EXPECT_THAT(Names(OfZoo("zoo_raw_small.csv", "copy_vec4", {{"work_bytes", copied}})), Not(Contains("poor-l2-reuse")));
  EXPECT_THAT(Names(OfZoo("zoo_raw_small.csv", "spilling")), Not(Contains("poor-l2-reuse")));
  EXPECT_THAT(Names(OfZoo("zoo_raw_small.csv", "spilling", {{"work_bytes", 2.0 * (1 << 22) * 4}})),
              Contains("poor-l2-reuse"));
}

TEST(Diagnosis, WorksWithoutCounters) {
  const v1::GpuInfo& gpu = FindGpu("l4")->info;
  v1::LaunchEvidence known;
  for (v1::Dim3* dim : {known.mutable_geometry()->mutable_grid(), known.mutable_geometry()->mutable_block()}) {
    dim->set_x(2);
    dim->set_y(1);
    dim->set_z(1);
  }
  known.mutable_geometry()->mutable_block()->set_x(128);
  known.mutable_resources()->set_registers(255);
  known.mutable_resources()->set_local_bytes(64);
  const Values metrics = Metrics::Default().Derive(nullptr, known, gpu);
  v1::Evidence evidence;
  evidence.set_partial(true);
  evidence.add_launches()->mutable_metrics()->insert(metrics.begin(), metrics.end());
  const auto findings = DecisionTree::Default().Diagnose(evidence, gpu);
  EXPECT_EQ(Names(findings),
            (std::vector<std::string>{"grid-too-small", "local-memory-compiled", "low-occupancy-registers"}));
}

TEST(Diagnosis, TellsWhatLimitsOccupancy) {
  const Values base = {{"limit_registers", 8}, {"limit_shared", 8}, {"limit_block_size", 8},
                       {"blocks_per_sm", 4},   {"waves", 2},        {"occupancy_limit", 25}};
  const auto with = [&](const char* name) {
    Values metrics = base;
    metrics[name] = 4;
    return Names(OfMetrics(metrics));
  };
  EXPECT_EQ(with("limit_registers"), std::vector<std::string>{"low-occupancy-registers"});
  EXPECT_EQ(with("limit_shared"), std::vector<std::string>{"low-occupancy-shared"});
  EXPECT_EQ(with("limit_block_size"), std::vector<std::string>{"low-occupancy-block"});
  Values busy = base;
  busy["limit_registers"] = 4;
  busy["sm_throughput"] = 85;
  EXPECT_THAT(Names(OfMetrics(busy)), Not(Contains("low-occupancy-registers"))) << "a busy SM needs no more warps";
}

TEST(Diagnosis, SeesATailThatIsMostlyEmptyAndNoOther) {
  const auto tail = [](double waves) {
    return Names(OfMetrics({{"waves", waves},
                            {"last_wave_fill", waves - std::ceil(waves) + 1},
                            {"tail_loss", 1 - waves / std::ceil(waves)}}));
  };
  EXPECT_THAT(tail(1.1), Contains("tail-effect"));
  EXPECT_THAT(tail(2.3), Contains("tail-effect"));
  EXPECT_THAT(tail(1.9), Not(Contains("tail-effect")));
  EXPECT_THAT(tail(2.0), Not(Contains("tail-effect")));
  EXPECT_THAT(tail(62.06), Not(Contains("tail-effect")));
  EXPECT_EQ(tail(0.5), std::vector<std::string>{"grid-too-small"});
}

TEST(Diagnosis, HoldsBankConflictsToBothThresholds) {
  EXPECT_EQ(Names(OfMetrics({{"bank_conflict_share", 31}})), std::vector<std::string>{"bank-conflicts"});
  EXPECT_EQ(Names(OfMetrics({{"bank_conflict_share", 30}})), std::vector<std::string>{"bank-conflicts-minor"});
  EXPECT_TRUE(OfMetrics({{"bank_conflict_share", 5}}).empty());
}

TEST(Diagnosis, AdvisesOnShortLaunchesLast) {
  const auto findings =
      OfMetrics({{"duration_ns", 5600}, {"waves", 0.1}, {"barrier_share", 40}, {"bank_conflict_share", 50}});
  EXPECT_EQ(Names(findings),
            (std::vector<std::string>{"grid-too-small", "bank-conflicts", "barrier-stalls", "launch-overhead"}));
}

TEST(Diagnosis, ReadsTheLongestLaunch) {
  v1::Evidence evidence;
  for (const auto& [entry, duration, share] :
       {std::tuple("first", 20000.0, 10.0), std::tuple("second", 90000.0, 80.0)}) {
    v1::LaunchEvidence* launch = evidence.add_launches();
    launch->set_entry(entry);
    (*launch->mutable_metrics())["duration_ns"] = duration;
    (*launch->mutable_metrics())["bank_conflict_share"] = share;
  }
  EXPECT_EQ(DecisionTree::Default().Diagnose(evidence, {}).at(0).entry(), "second");
  (*evidence.mutable_launches(1)->mutable_metrics()).erase("duration_ns");
  EXPECT_EQ(DecisionTree::Default().Diagnose(evidence, {}).at(0).entry(), "first");
  EXPECT_TRUE(DecisionTree::Default().Diagnose({}, {}).empty());
}

TEST(Diagnosis, TakesMissingAndNotANumberForNoEvidence) {
  EXPECT_TRUE(OfMetrics({}).empty());
  EXPECT_TRUE(OfMetrics({{"waves", std::nan("")}, {"bank_conflict_share", std::nan("")}}).empty());
}

TEST(Diagnosis, TakesAMetricThatIsNotFiniteForAMissingOne) {
  const Values sound = {{"long_scoreboard_share", 90}, {"occupancy", 20}, {"dram_throughput", 10}, {"issue_active", 5}};
  EXPECT_THAT(Names(OfMetrics(sound)), Contains("exposed-latency"));
  for (const double odd : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    for (const auto& [metric, value] : sound) {
      if (metric == "issue_active") continue;
      Values damaged = sound;
      damaged[metric] = odd;
      EXPECT_THAT(Names(OfMetrics(damaged)), Not(Contains("exposed-latency"))) << metric << " " << odd;
    }
    // A value in a text or an `unless`.
    EXPECT_THAT(OfMetrics({{"waves", 0.5}, {"grid_size", odd}}).at(0).text(), HasSubstr("unknown blocks"));
    EXPECT_THAT(Names(OfMetrics({{"threads_per_instruction", 10}, {"dram_throughput", odd}})), Contains("divergence"));
  }
}

TEST(Diagnosis, ReadsTheFirstLaunchWhereADurationIsNotFinite) {
  v1::Evidence evidence;
  for (const double duration : {20000.0, std::nan(""), 90000.0}) {
    v1::LaunchEvidence* launch = evidence.add_launches();
    launch->set_entry("launch" + std::to_string(evidence.launches_size()));
    (*launch->mutable_metrics())["duration_ns"] = duration;
    (*launch->mutable_metrics())["bank_conflict_share"] = 80;
  }
  EXPECT_EQ(DecisionTree::Default().Diagnose(evidence, {}).at(0).entry(), "launch1");
}

TEST(Diagnosis, SeesStridedStoresOfAKernelThatLoadsNothing) {
  Values stores = {{"sector_use", 12.5}, {"sector_use_load", 0}, {"sectors_load", 0}};
  EXPECT_EQ(Names(OfMetrics(stores)), std::vector<std::string>{"uncoalesced"});
  stores["sectors_load"] = 2560;  // by cp.async, whose use of them is not counted
  EXPECT_TRUE(OfMetrics(stores).empty());
}

TEST(Diagnosis, DerivesWhatStoredEvidenceLacks) {
  EXPECT_EQ(Names(OfMetrics({{"bank_conflicts", 40}, {"shared_wavefronts", 50}})),
            std::vector<std::string>{"bank-conflicts"});
}

std::vector<RuleGap> GapsOf(const Values& metrics) {
  v1::Evidence evidence;
  evidence.add_launches()->mutable_metrics()->insert(metrics.begin(), metrics.end());
  return DecisionTree::Default().Gaps(evidence, {});
}

const RuleGap* Find(const std::vector<RuleGap>& gaps, const std::string& rule) {
  for (const RuleGap& gap : gaps) {
    if (gap.rule == rule) return &gap;
  }
  return nullptr;
}

TEST(DiagnosisGaps, NameTheRulesThatCouldNotSpeakAndWhatTheyLack) {
  const auto gaps = GapsOf({{"occupancy_limit", 25}, {"limit_registers", 4}, {"waves", std::nan("")}});
  ASSERT_NE(Find(gaps, "grid-too-small"), nullptr);
  EXPECT_EQ(Find(gaps, "grid-too-small")->missing, (std::vector<std::string>{"waves", "grid_size", "sm_count"}));
  EXPECT_FALSE(Find(gaps, "grid-too-small")->found);
  ASSERT_NE(Find(gaps, "low-occupancy-registers"), nullptr);
  EXPECT_EQ(Find(gaps, "low-occupancy-registers")->missing,
            (std::vector<std::string>{"blocks_per_sm", "waves", "sm_throughput", "dram_throughput", "tensor_use"}));
  ASSERT_NE(Find(gaps, "unfused-arithmetic"), nullptr);
  EXPECT_EQ(Find(gaps, "unfused-arithmetic")->missing, std::vector<std::string>{"ncu's advice"});
}

TEST(DiagnosisGaps, LeaveOutRulesWhoseAnswerIsSure) {
  EXPECT_EQ(Find(GapsOf({{"occupancy_limit", 80}}), "low-occupancy-registers"), nullptr) << "a condition fails";
  EXPECT_EQ(Find(GapsOf({{"sm_throughput", 90}}), "uncoalesced"), nullptr) << "an `unless` holds";
  EXPECT_EQ(Find(GapsOf({{"waves", 0.5}, {"grid_size", 100}, {"sm_count", 132}}), "grid-too-small"), nullptr)
      << "it fired";
}

TEST(DiagnosisGaps, SayWhatCouldSpeakAgainstAFinding) {
  const auto gaps = GapsOf({{"threads_per_instruction", 10}});
  ASSERT_NE(Find(gaps, "divergence"), nullptr);
  EXPECT_TRUE(Find(gaps, "divergence")->found);
  EXPECT_EQ(Find(gaps, "divergence")->missing, std::vector<std::string>{"dram_throughput"});
  EXPECT_TRUE(DecisionTree::Default().Gaps({}, {}).empty());
}

absl::StatusOr<DecisionTree> NcuTree(const std::string& keys) {
  return DecisionTree::Parse(
      "[[rule]]\nname = \"n\"\nphase = \"memory\"\nfinding = \"f\"\nadvice = \"a\"\nsource = \"s\"\n" + keys, "t.toml",
      Metrics::Default());
}

std::vector<v1::Finding> OfAdvice(const DecisionTree& tree, double waves) {
  v1::Evidence evidence;
  v1::LaunchEvidence* launch = evidence.add_launches();
  (*launch->mutable_metrics())["waves"] = waves;
  for (const auto& [rule, percent, scope] :
       {std::tuple("Compression", 20.0, "global"), std::tuple("Compression", 60.0, "global"),
        std::tuple("Occupancy", 90.0, "local"), std::tuple("Comment", 0.0, "")}) {
    v1::Advice* advice = launch->add_advice();
    advice->set_rule(rule);
    advice->set_estimated_speedup_percent(percent);
    advice->set_estimate_scope(scope);
  }
  return tree.Diagnose(evidence, {});
}

TEST(NcuRules, MatchNcusAdviceByName) {
  const auto findings = OfAdvice(NcuTree("ncu = \"Compression\"").value(), 2);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].ncu_rule(), "Compression");
  EXPECT_EQ(findings[0].ncu_estimate_percent(), 60) << "the advice that estimates most";
  EXPECT_EQ(findings[0].severity(), 0.6);
  EXPECT_TRUE(OfAdvice(NcuTree("ncu = \"Compressions\"").value(), 2).empty());
  EXPECT_EQ(OfAdvice(NcuTree("ncu = [\"Nothing\", \"Comment\"]").value(), 2).at(0).ncu_rule(), "Comment");
}

TEST(NcuRules, NeedTheirConditionsAsWell) {
  const DecisionTree tree = NcuTree("ncu = \"Compression\"\nwhen = [\"waves < 1\"]").value();
  EXPECT_TRUE(OfAdvice(tree, 2).empty());
  EXPECT_EQ(OfAdvice(tree, 0.5).size(), 1u);
}

TEST(NcuRules, SupportAFindingWithoutBeingNeeded) {
  const DecisionTree tree =
      NcuTree("supported_by = [\"Compression\", \"Occupancy\"]\nwhen = [\"waves < 1\"]\nseverity = \"0.1\"").value();
  EXPECT_TRUE(OfAdvice(tree, 2).empty()) << "ncu alone is not enough";
  const auto findings = OfAdvice(tree, 0.5);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].ncu_rule(), "Compression");
  EXPECT_EQ(findings[0].severity(), 0.6);
  const auto alone =
      OfAdvice(NcuTree("supported_by = \"Nothing\"\nwhen = [\"waves < 1\"]\nseverity = \"0.1\"").value(), 0.5);
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].ncu_rule(), "");
  EXPECT_EQ(alone[0].severity(), 0.1);
  // Never less severe than by itself.
  const auto severe =
      OfAdvice(NcuTree("supported_by = \"Compression\"\nwhen = [\"waves < 1\"]\nseverity = \"0.9\"").value(), 0.5);
  EXPECT_EQ(severe.at(0).severity(), 0.9);
}

TEST(NcuRules, TakeAnEstimateThatIsNoNumberForNone) {
  const DecisionTree tree = NcuTree("ncu = \"Odd\"").value();
  for (const double odd : {std::nan(""), HUGE_VAL, -40.0}) {
    v1::Evidence evidence;
    v1::Advice* advice = evidence.add_launches()->add_advice();
    advice->set_rule("Odd");
    advice->set_estimated_speedup_percent(odd);
    advice->set_estimate_scope("global");
    const auto findings = tree.Diagnose(evidence, {});
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].severity(), 0);
    EXPECT_EQ(findings[0].ncu_estimate_percent(), 0);
  }
}

std::string TreeError(const std::string& keys) {
  const absl::StatusOr<DecisionTree> tree = NcuTree(keys);
  return tree.ok() ? "no error" : std::string(tree.status().message());
}

TEST(DecisionTreeFile, RefusesEachKindOfMistake) {
  const std::string good = "when = [\"waves < 1\"]\nseverity = \"1\"\n";
  EXPECT_EQ(TreeError(good), "no error");
  EXPECT_THAT(TreeError("when = [\"wavs < 1\"]\nseverity = \"1\""),
              HasSubstr("t.toml:7: rule n: unknown metric \"wavs\""));
  EXPECT_THAT(TreeError("when = [\"waves <> 1\"]\nseverity = \"1\""),
              HasSubstr("t.toml:7: rule n: unknown operator \"<>\""));
  EXPECT_THAT(TreeError(good + "wants = [\"speed+\"]"), HasSubstr("t.toml:9: rule n: \"speed+\" is not a resource"));
  EXPECT_THAT(TreeError("when = []\nseverity = \"1\""), HasSubstr("it would always fire"));
  EXPECT_THAT(TreeError("when = [\"waves < 1\"]\nseverity = \"occupancy / 100\""),
              HasSubstr("severity reads occupancy, which \"when\" does not: it might be missing"));
  EXPECT_THAT(TreeError("when = [\"waves < 1\"]\ndeficit = \"occupancy / 100\""), HasSubstr("deficit reads occupancy"));
  EXPECT_THAT(TreeError(good + "ncu = \"two words\""), HasSubstr("\"two words\" is not the name of an ncu rule"));
  EXPECT_THAT(TreeError(good + "supported_by = []"), HasSubstr("\"supported_by\" is empty"));
  EXPECT_THAT(TreeError(good + "ncu = 3"), HasSubstr("\"ncu\" must be a text"));
}

TEST(DecisionTreeFile, ReportsEveryMistakeAtOnceWithItsLine) {
  const auto tree = DecisionTree::Parse(R"([[rule]]
name = "a"
phase = "lunch"
when = ["wavs < 1"]
finding = "{speed} of {waves}"
wants = ["parallelism"]
deficit = "waves / nothing"
predicts = "mood"
advice = "x"
source = "y"

[[rule]]
name = "a"
phase = "memory"
when = ["waves =< 1", "waves", "waves < 1 +"]
finding = "{waves"
wants = ["money+"]
advice = "x"
source = "y"
prio = 1

[[rule]]
name = "b"
phase = "compute"
finding = "always"
severity = "1"
)",
                                        "t.toml", Metrics::Default());
  ASSERT_FALSE(tree.ok());
  const std::string error(tree.status().message());
  for (const char* expected :
       {"t.toml:3: rule a: unknown phase \"lunch\"; there are compute, memory, parallelism, tuning",
        "t.toml:4: rule a: unknown metric \"wavs\"", "t.toml:5: rule a: unknown metric \"speed\"",
        "t.toml:6: rule a: \"parallelism\" is not a resource with + or -",
        "t.toml:7: rule a: unknown metric \"nothing\"", "t.toml:8: rule a: unknown metric \"mood\"",
        "t.toml:13: rule a: defined twice", "t.toml:15: rule a: unknown operator \"=<\"",
        "t.toml:15: rule a: \"waves\" is not a condition", "t.toml:16: rule a: a { is never closed",
        "t.toml:17: rule a: \"money+\" is not a resource", "give a deficit or a severity",
        "t.toml:20: unknown key \"prio\"", "\"when\" is missing", "\"advice\" is missing", "\"source\" is missing"}) {
    EXPECT_THAT(error, HasSubstr(expected));
  }
}

TEST(DecisionTreeFile, RefusesATreeWithoutRules) {
  const auto tree = DecisionTree::Parse("# nothing\n", "t.toml", Metrics::Default());
  ASSERT_FALSE(tree.ok());
  EXPECT_THAT(std::string(tree.status().message()), AllOf(HasSubstr("t.toml:1:"), HasSubstr("no [[rule]]")));
}

TEST(DecisionTreeFile, CanBeAnotherOneThanTheOneThatShips) {
  const auto tree = DecisionTree::Parse(R"([[rule]]
name = "cold"
phase = "tuning"
when = ["l1_hit_rate < l2_hit_rate / 2"]
unless = ["occupancy > 90"]
finding = "L1 {l1_hit_rate}, {occupancy}"
severity = "7"
advice = "x"
source = "y"
)",
                                        "t.toml", Metrics::Default());
  ASSERT_TRUE(tree.ok()) << tree.status();
  const auto findings = OfMetrics({{"l1_hit_rate", 12.345}, {"l2_hit_rate", 50}}, *tree);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].text(), "L1 12.3, unknown");
  EXPECT_EQ(findings[0].severity(), 1);
  EXPECT_EQ(findings[0].seen(0).threshold(), 25);
  EXPECT_TRUE(OfMetrics({{"l1_hit_rate", 30}, {"l2_hit_rate", 50}}, *tree).empty());
  EXPECT_TRUE(OfMetrics({{"l1_hit_rate", 1}, {"l2_hit_rate", 50}, {"occupancy", 95}}, *tree).empty());
}

}  // namespace
}  // namespace pawl
