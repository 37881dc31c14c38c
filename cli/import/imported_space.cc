#include "cli/import/imported_space.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/expression/expression.h"
#include "cli/import/python_condition.h"
#include "kernels/plan.h"
#include "kernels/space.h"

namespace pawl {
namespace {

bool IsCorrect(const T4Result& result) { return result.invalidity == "correct"; }

std::string NamesText(const std::vector<ImportedSpace::Parameter>& parameters) {
  return absl::StrJoin(parameters, ", ", [](std::string* out, const ImportedSpace::Parameter& parameter) {
    absl::StrAppend(out, parameter.name);
  });
}

// Numbers in their order, texts in the order in which they came.
void Sort(std::vector<ParameterValue>* values) {
  std::stable_sort(values->begin(), values->end(), [](const ParameterValue& a, const ParameterValue& b) {
    if (a.number && b.number) return *a.number < *b.number;
    return a.number.has_value() && !b.number.has_value();
  });
}

constexpr const char* kExtents[] = {"problem_size_x", "problem_size_y", "problem_size_z"};

// What the variable of a parameter is called: block-size becomes block_size. Other tuners take any text.
std::string VariableName(const std::string& name, std::set<std::string>& taken) {
  const auto may = [](const std::string& made) {
    return IsName(made) && !absl::StartsWith(made, "SIZE_") && !GpuLimits(v1::GpuInfo()).contains(made) &&
           made != kImportedOutput && std::find(std::begin(kExtents), std::end(kExtents), made) == std::end(kExtents);
  };
  if (may(name)) return name;
  std::string made;
  for (const char c : name) made += absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  made.resize(std::min(made.size(), kMaxName - 16));
  if (!may(made)) made = absl::StrCat("p_", made);
  std::string free = made;
  for (int number = 2; !taken.insert(free).second; ++number) free = absl::StrCat(made, "_", number);
  return free;
}

void AddNew(const ParameterValue& value, std::vector<ParameterValue>* values) {
  if (std::find(values->begin(), values->end(), value) == values->end()) values->push_back(value);
}

}  // namespace

absl::StatusOr<ImportedSpace> ImportedSpace::Make(const T4File& results, const std::optional<T1Problem>& problem,
                                                  const std::vector<std::string>& start) {
  ImportedSpace space;
  if (absl::Status status = space.SetParameters(results, problem); !status.ok()) return status;
  if (absl::Status status = space.SetStart(results, problem, start); !status.ok()) return status;
  for (const Parameter& parameter : space.parameters_) {
    v1::Variable* variable = space.bundle_.add_variables();
    variable->set_name(parameter.variable);
    for (const ParameterValue& value : parameter.values) variable->add_values(space.ValueOf(parameter, value));
  }
  const v1::Variant first = space.VariantOf(results.results[space.start_]);
  for (v1::Variable& variable : *space.bundle_.mutable_variables()) {
    variable.set_start(first.values().at(variable.name()));
  }
  v1::Size* size = space.bundle_.add_sizes();
  size->set_name("recorded");
  const size_t extents = problem ? std::min(problem->problem_size.size(), std::size(kExtents)) : 0;
  for (size_t i = 0; i < extents; ++i) (*size->mutable_values())[kExtents[i]] = problem->problem_size[i];
  if (extents == 0) (*size->mutable_values())["problem_size_unknown"] = 1;
  if (problem) {
    for (const std::string& condition : problem->conditions) space.AddConstraint(condition, results);
  }
  return space;
}

absl::Status ImportedSpace::SetParameters(const T4File& results, const std::optional<T1Problem>& problem) {
  std::map<std::string, std::vector<ParameterValue>> seen;
  for (const T4Result& result : results.results) {
    for (const auto& [name, value] : result.configuration) AddNew(value, &seen[name]);
  }
  if (!problem) {
    for (auto& [name, values] : seen) {
      Sort(&values);
      parameters_.push_back({name, values});
    }
  } else {
    for (const T1Problem::Parameter& parameter : problem->parameters) {
      parameters_.push_back({parameter.name, {}});
      for (const ParameterValue& value : parameter.values) AddNew(value, &parameters_.back().values);
      const auto found = seen.find(parameter.name);
      if (found == seen.end()) {
        return absl::InvalidArgumentError(absl::StrCat("the problem has a parameter ", parameter.name,
                                                       " that the results do not have: are they of the same kernel?"));
      }
      for (const ParameterValue& value : found->second) {
        const std::vector<ParameterValue>& known = parameters_.back().values;
        if (std::find(known.begin(), known.end(), value) != known.end()) continue;
        return absl::InvalidArgumentError(
            absl::StrCat("the results have ", parameter.name, "=", value.text, ", which the problem does not have"));
      }
    }
    if (parameters_.size() != seen.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the results have parameters besides the problem's ",
                                                     NamesText(parameters_), ": are they of the same kernel?"));
    }
  }
  std::set<std::string> taken(std::begin(kExtents), std::end(kExtents));
  for (const Parameter& parameter : parameters_) taken.insert(parameter.name);
  for (Parameter& parameter : parameters_) {
    parameter.variable = VariableName(parameter.name, taken);
    parameter.indexed = std::any_of(parameter.values.begin(), parameter.values.end(),
                                    [](const ParameterValue& value) { return !value.whole.has_value(); });
  }
  return absl::OkStatus();
}

absl::Status ImportedSpace::SetStart(const T4File& results, const std::optional<T1Problem>& problem,
                                     const std::vector<std::string>& wanted) {
  std::map<std::string, std::string> texts;
  for (const std::string& one : wanted) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(one, absl::MaxSplits('=', 1));
    const bool known = std::any_of(parameters_.begin(), parameters_.end(),
                                   [&](const Parameter& parameter) { return parameter.name == parts.first; });
    if (known && !absl::StrContains(one, "=")) {
      return absl::InvalidArgumentError(absl::StrCat("--start ", one, ": expected VARIABLE=VALUE"));
    }
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("--start ", one, ": there is no ", parts.first, "; expected ", NamesText(parameters_)));
    }
    texts.insert(parts);
  }
  const auto is_wanted = [&](const T4Result& result) {
    return IsCorrect(result) && std::all_of(texts.begin(), texts.end(), [&](const auto& text) {
             return result.configuration.at(text.first).text == text.second;
           });
  };
  const auto is_preset = [&](const T4Result& result) {
    return IsCorrect(result) && std::all_of(problem->parameters.begin(), problem->parameters.end(),
                                            [&](const T1Problem::Parameter& parameter) {
                                              return parameter.preset &&
                                                     result.configuration.at(parameter.name) == *parameter.preset;
                                            });
  };
  auto found = results.results.end();
  if (problem && wanted.empty()) found = std::find_if(results.results.begin(), results.results.end(), is_preset);
  if (found == results.results.end()) found = std::find_if(results.results.begin(), results.results.end(), is_wanted);
  if (found == results.results.end()) {
    return absl::InvalidArgumentError(wanted.empty() ? "none of the results is correct: there is nothing to start from"
                                                     : "none of the correct results is the --start that was asked for");
  }
  start_ = static_cast<size_t>(found - results.results.begin());
  return absl::OkStatus();
}

void ImportedSpace::AddConstraint(const std::string& condition, const T4File& results) {
  std::map<std::string, std::string> names;
  for (const Parameter& parameter : parameters_) {
    if (!parameter.indexed) names[parameter.name] = parameter.variable;
  }
  absl::StatusOr<std::string> that = ConstraintOf(condition, names);
  if (!that.ok()) {
    left_out_.emplace_back(condition, that.status().message());
    return;
  }
  // What was measured was allowed: a constraint that says otherwise means something else than the condition.
  v1::Bundle alone = bundle_;
  alone.clear_constraints();
  alone.add_constraints()->set_that(*that);
  AllowedSpace space(alone);
  for (const T4Result& result : results.results) {
    if (!IsCorrect(result)) continue;
    const absl::StatusOr<bool> allowed = space.Has(VariantOf(result));
    if (allowed.ok() && *allowed) continue;
    left_out_.emplace_back(condition, allowed.ok() ? "it forbids configurations that were measured"
                                                   : std::string(allowed.status().message()));
    return;
  }
  bundle_.add_constraints()->set_that(*that);
}

int32_t ImportedSpace::ValueOf(const Parameter& parameter, const ParameterValue& value) const {
  if (!parameter.indexed) return *value.whole;
  const auto found = std::find(parameter.values.begin(), parameter.values.end(), value);
  return static_cast<int32_t>(found - parameter.values.begin());
}

v1::Variant ImportedSpace::VariantOf(const T4Result& result) const {
  v1::Variant variant;
  for (const Parameter& parameter : parameters_) {
    (*variant.mutable_values())[parameter.variable] = ValueOf(parameter, result.configuration.at(parameter.name));
  }
  return variant;
}

}  // namespace pawl
