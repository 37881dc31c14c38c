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

const v1::LaunchEvidence* Longest(const v1::Evidence& evidence) {
  const v1::LaunchEvidence* longest = nullptr;
  double longest_ns = 0;
  for (const v1::LaunchEvidence& launch : evidence.launches()) {
    const auto duration = launch.metrics().find("duration_ns");
    if (duration == launch.metrics().end()) return &evidence.launches(0);
    if (longest && !(duration->second > longest_ns)) continue;
    longest = &launch;
    longest_ns = duration->second;
  }
  return longest;
}

double Share(const std::optional<Formula>& formula, const Values& values, double otherwise) {
  const std::optional<double> value = formula ? formula->Evaluate(values) : std::nullopt;
  return std::clamp(value.value_or(otherwise), 0.0, 1.0);
}

std::optional<v1::Finding> Apply(const Rule& rule, const Values& values, const std::map<std::string, double>* own) {
  const auto check = [&](const Condition& condition, bool may_differ) {
    const double* instead = nullptr;
    if (own && may_differ) {
      const auto at = own->find(condition.metric);
      if (at != own->end()) instead = &at->second;
    }
    return condition.Check(values, instead);
  };
  v1::Finding finding;
  for (const Condition& condition : rule.when) {
    std::optional<v1::SeenValue> seen = check(condition, true);
    if (!seen) return std::nullopt;
    *finding.add_seen() = *std::move(seen);
  }
  for (const Condition& condition : rule.unless) {
    if (check(condition, false)) return std::nullopt;
  }
  finding.set_rule(rule.name);
  finding.set_phase(rule.phase);
  finding.set_text(FillIn(rule.finding, values));
  for (const v1::Effect& effect : rule.wants) *finding.add_wants() = effect;
  finding.set_advice(rule.advice);
  finding.set_deficit(Share(rule.deficit, values, 0));
  finding.set_severity(rule.severity ? Share(rule.severity, values, 0) : 1 - Share(rule.deficit, values, 1));
  finding.set_predicts(rule.predicts);
  finding.set_roof(rule.roof);
  return finding;
}

}  // namespace

absl::StatusOr<DecisionTree> DecisionTree::Parse(std::string_view toml, const std::string& file,
                                                 const Metrics& metrics) {
  TomlFile source(toml, file);
  source.AllowKeys(source.root(), {"rule"});
  DecisionTree tree;
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
  const v1::LaunchEvidence* launch = Longest(evidence);
  if (!launch) return findings;
  const Values values(launch->metrics().begin(), launch->metrics().end());
  const GpuSpec* spec = FindGpu(gpu.name());
  for (const Rule& rule : rules_) {
    const std::map<std::string, double>* own = nullptr;
    if (spec) {
      const auto at = spec->thresholds.find(rule.name);
      if (at != spec->thresholds.end()) own = &at->second;
    }
    std::optional<v1::Finding> finding = Apply(rule, values, own);
    if (!finding) continue;
    finding->set_entry(launch->entry());
    findings.push_back(*std::move(finding));
  }
  std::stable_sort(findings.begin(), findings.end(), [](const v1::Finding& a, const v1::Finding& b) {
    return a.phase() != b.phase() ? a.phase() < b.phase() : a.severity() > b.severity();
  });
  return findings;
}

}  // namespace pawl
