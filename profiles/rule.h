// One rule of decision_tree.toml.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pawl/v1/finding.pb.h"
#include "profiles/formula.h"
#include "profiles/metrics.h"
#include "profiles/toml_file.h"

namespace pawl {

// "metric operator threshold"; the threshold is a number or arithmetic over metrics.
struct Condition {
  std::string metric;
  std::string op;
  Formula threshold;

  // What it saw when it holds; no value when it does not hold or an input is missing. `instead` replaces the threshold.
  std::optional<v1::SeenValue> Check(const std::map<std::string, double>& metrics, const double* instead) const;
  // The inputs that are not there.
  std::vector<std::string> Missing(const std::map<std::string, double>& metrics, const double* instead) const;
};

struct Rule {
  std::string name;
  v1::Phase phase = v1::PHASE_UNSPECIFIED;
  std::vector<Condition> when;            // all must hold; a missing metric does not
  std::vector<Condition> unless;          // none may hold; a missing metric does not
  std::vector<std::string> ncu;           // not empty: ncu's own advice must have one of these rules
  std::vector<std::string> supported_by;  // rules of ncu that say the same, where it was asked
  std::string finding;                    // with {metric} for values
  std::vector<v1::Effect> wants;          // none: advice only, it leads to no change
  std::optional<Formula> deficit;         // share of what is wanted that is there
  std::optional<Formula> severity;        // absent: 1 - deficit, or what ncu estimates
  std::string predicts;
  std::string advice;
  std::string source;
  bool roof = false;
};

// Notes mistakes in `file`; the rule is then of no use.
Rule ReadRule(const toml::table& table, const Metrics& metrics, TomlFile* file);

// `text` with each {metric} replaced by its value, or by "unknown".
std::string FillIn(const std::string& text, const std::map<std::string, double>& metrics);

}  // namespace pawl
