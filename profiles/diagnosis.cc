#include "profiles/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "profiles/embedded.h"
#include "profiles/gpus.h"
#include "profiles/toml_file.h"

namespace pawl {
namespace {

using Values = std::map<std::string, double>;

double Share(const std::optional<Formula>& formula, const Values& values, double otherwise) {
  const std::optional<double> value = formula ? formula->Evaluate(values) : std::nullopt;
  return std::clamp(value.value_or(otherwise), 0.0, 1.0);
}

// What a rule reads of one launch.
struct Facts {
  Values values;
  const v1::LaunchEvidence& launch;
  const GpuSpec* gpu;  // null: not a known one
};

// The GPU's own threshold; null: the rule's.
const double* Instead(const Rule& rule, const Condition& condition, const Facts& facts) {
  if (facts.gpu == nullptr) return nullptr;
  const auto own = facts.gpu->thresholds.find(rule.name);
  if (own == facts.gpu->thresholds.end()) return nullptr;
  const auto at = own->second.find(condition.metric);
  return at == own->second.end() ? nullptr : &at->second;
}

// An estimate for a part of the GPU ("local") says nothing about the time of the launch.
double Estimate(const v1::Advice& advice) {
  const double percent = advice.estimated_speedup_percent();
  return advice.estimate_scope() == "global" && std::isfinite(percent) && percent > 0 ? percent : 0;
}

// The advice of one of the rules that estimates most; null: there is none.
const v1::Advice* AdviceOf(const std::vector<std::string>& rules, const v1::LaunchEvidence& launch) {
  const v1::Advice* best = nullptr;
  for (const v1::Advice& advice : launch.advice()) {
    if (std::find(rules.begin(), rules.end(), advice.rule()) == rules.end()) continue;
    if (best == nullptr || Estimate(advice) > Estimate(*best)) best = &advice;
  }
  return best;
}

std::optional<v1::Finding> Apply(const Rule& rule, const Facts& facts) {
  v1::Finding finding;
  for (const Condition& condition : rule.when) {
    std::optional<v1::SeenValue> seen = condition.Check(facts.values, Instead(rule, condition, facts));
    if (!seen) return std::nullopt;
    *finding.add_seen() = *std::move(seen);
  }
  for (const Condition& condition : rule.unless) {
    if (condition.Check(facts.values, nullptr)) return std::nullopt;
  }
  const v1::Advice* matched = AdviceOf(rule.ncu, facts.launch);
  if (!rule.ncu.empty() && matched == nullptr) return std::nullopt;
  finding.set_rule(rule.name);
  finding.set_phase(rule.phase);
  finding.set_text(FillIn(rule.finding, facts.values));
  for (const v1::Effect& effect : rule.wants) *finding.add_wants() = effect;
  finding.set_advice(rule.advice);
  finding.set_deficit(Share(rule.deficit, facts.values, 0));
  finding.set_severity(rule.severity ? Share(rule.severity, facts.values, 0)
                                     : 1 - Share(rule.deficit, facts.values, 1));
  finding.set_predicts(rule.predicts);
  finding.set_roof(rule.roof);
  finding.set_entry(facts.launch.entry());
  if (matched == nullptr) matched = AdviceOf(rule.supported_by, facts.launch);
  if (matched != nullptr) {
    finding.set_ncu_rule(matched->rule());
    finding.set_ncu_estimate_percent(Estimate(*matched));
    finding.set_severity(std::clamp(Estimate(*matched) / 100, finding.severity(), 1.0));
  }
  return finding;
}

// Nothing where the rule's answer is sure.
std::optional<RuleGap> GapOf(const Rule& rule, const Facts& facts) {
  RuleGap gap{.rule = rule.name, .missing = {}, .found = false};
  const auto sure = [&](const Condition& condition, const double* instead) {
    const std::vector<std::string> missing = condition.Missing(facts.values, instead);
    gap.missing.insert(gap.missing.end(), missing.begin(), missing.end());
    return missing.empty();
  };
  for (const Condition& condition : rule.when) {
    const double* instead = Instead(rule, condition, facts);
    if (sure(condition, instead) && !condition.Check(facts.values, instead)) return std::nullopt;
  }
  if (!rule.ncu.empty() && AdviceOf(rule.ncu, facts.launch) == nullptr) {
    if (!facts.launch.advice().empty()) return std::nullopt;
    gap.missing.push_back("ncu's advice");
  }
  gap.found = gap.missing.empty();
  for (const Condition& condition : rule.unless) {
    if (sure(condition, nullptr) && condition.Check(facts.values, nullptr)) return std::nullopt;
  }
  if (gap.missing.empty()) return std::nullopt;
  return gap;
}

// Nothing where a launch has no duration.
std::optional<double> OtherLaunchesShare(const v1::Evidence& evidence, const v1::LaunchEvidence& longest) {
  double total = 0;
  for (const v1::LaunchEvidence& launch : evidence.launches()) {
    const auto duration = launch.metrics().find("duration_ns");
    if (duration == launch.metrics().end() || !(duration->second > 0)) return std::nullopt;
    total += duration->second;
  }
  return 100 * (1 - longest.metrics().at("duration_ns") / total);
}

Facts FactsOf(const v1::Evidence& evidence, const v1::LaunchEvidence& launch, const v1::GpuInfo& gpu,
              const Metrics& metrics) {
  Facts facts{metrics.Derive(nullptr, launch, gpu), launch, FindGpu(gpu.name())};
  if (const std::optional<double> share = OtherLaunchesShare(evidence, launch)) {
    facts.values["other_launches_share"] = *share;
  }
  return facts;
}

}  // namespace

const v1::LaunchEvidence* LongestLaunch(const v1::Evidence& evidence) {
  const v1::LaunchEvidence* longest = nullptr;
  double longest_ns = 0;
  for (const v1::LaunchEvidence& launch : evidence.launches()) {
    const auto duration = launch.metrics().find("duration_ns");
    if (duration == launch.metrics().end() || !std::isfinite(duration->second)) return &evidence.launches(0);
    if (longest && !(duration->second > longest_ns)) continue;
    longest = &launch;
    longest_ns = duration->second;
  }
  return longest;
}

absl::StatusOr<DecisionTree> DecisionTree::Parse(std::string_view toml, const std::string& file,
                                                 const Metrics& metrics) {
  TomlFile source(toml, file);
  source.AllowKeys(source.root(), {"rule"});
  DecisionTree tree(metrics);
  std::set<std::string> names;
  for (const toml::table* table : source.Tables("rule")) {
    tree.rules_.push_back(ReadRule(*table, metrics, &source));
    const std::string& name = tree.rules_.back().name;
    if (!names.insert(name).second) {
      source.Note(TomlFile::LineOf(*table, "name"), absl::StrCat("rule ", name, ": defined twice"));
    }
  }
  if (source.status().ok() && tree.rules_.empty())
    source.Note(1, "no [[rule]] in the file: a tree without rules finds nothing");
  if (!source.status().ok()) return source.status();
  return tree;
}

const DecisionTree& DecisionTree::Default() {
  static const auto& tree =
      *new DecisionTree(Parse(embedded::kDecisionTreeToml, "profiles/decision_tree.toml", Metrics::Default()).value());
  return tree;
}

std::vector<v1::Finding> DecisionTree::Diagnose(const v1::Evidence& evidence, const v1::GpuInfo& gpu) const {
  std::vector<v1::Finding> findings;
  const v1::LaunchEvidence* launch = LongestLaunch(evidence);
  if (!launch) return findings;
  const Facts facts = FactsOf(evidence, *launch, gpu, metrics_);
  for (const Rule& rule : rules_) {
    if (std::optional<v1::Finding> finding = Apply(rule, facts)) findings.push_back(*std::move(finding));
  }
  std::stable_sort(findings.begin(), findings.end(), [](const v1::Finding& a, const v1::Finding& b) {
    return a.phase() != b.phase() ? a.phase() < b.phase() : a.severity() > b.severity();
  });
  return findings;
}

std::vector<RuleGap> DecisionTree::Gaps(const v1::Evidence& evidence, const v1::GpuInfo& gpu) const {
  std::vector<RuleGap> gaps;
  const v1::LaunchEvidence* launch = LongestLaunch(evidence);
  if (!launch) return gaps;
  const Facts facts = FactsOf(evidence, *launch, gpu, metrics_);
  for (const Rule& rule : rules_) {
    if (std::optional<RuleGap> gap = GapOf(rule, facts)) gaps.push_back(*std::move(gap));
  }
  return gaps;
}

}  // namespace pawl
