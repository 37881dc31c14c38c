#include "profiles/metrics.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "profiles/embedded.h"
#include "profiles/toml_file.h"

namespace pawl {
namespace {

Metric ReadMetric(const toml::table& table, const std::set<std::string>& above, TomlFile* file) {
  file->AllowKeys(table, {"name", "unit", "meaning", "ncu", "ask", "known", "given", "derive"});
  Metric metric{.name = file->RequiredText(table, "name"),
                .unit = file->Text(table, "unit"),
                .meaning = file->RequiredText(table, "meaning"),
                .ncu = file->Text(table, "ncu"),
                .ask = file->Flag(table, "ask", true),
                .known = file->Text(table, "known"),
                .derive = {}};
  const auto note = [&](const std::string& key, const std::string& message) {
    file->Note(TomlFile::LineOf(table, key), absl::StrCat("metric ", metric.name, ": ", message));
  };
  if (!metric.name.empty() && !IsName(metric.name)) note("name", "not a name that an expression can use");
  if (above.contains(metric.name)) note("name", "defined twice");
  const std::vector<std::string> known = KnownNames();
  if (!metric.known.empty() && std::find(known.begin(), known.end(), metric.known) == known.end()) {
    note("known",
         absl::StrCat("\"", metric.known, "\" is not known without ncu; there are ", absl::StrJoin(known, ", ")));
  }
  for (const std::string& text : file->Texts(table, "derive")) {
    absl::StatusOr<Formula> formula = Formula::Parse(text);
    if (!formula.ok()) {
      note("derive", std::string(formula.status().message()));
      continue;
    }
    for (const std::string& name : formula->names()) {
      if (!above.contains(name)) note("derive", absl::StrCat("uses ", name, ", which is not defined above it"));
    }
    metric.derive.push_back(*std::move(formula));
  }
  const bool given = file->Flag(table, "given", false);
  if (!given && metric.ncu.empty() && metric.known.empty() && !table.contains("derive")) {
    note("name", "has no source: give ncu, known, derive or given = true");
  }
  return metric;
}

}  // namespace

absl::StatusOr<Metrics> Metrics::Parse(std::string_view toml, const std::string& file) {
  TomlFile source(toml, file);
  source.AllowKeys(source.root(), {"metric"});
  Metrics metrics;
  std::set<std::string> names;
  for (const toml::table* table : source.Tables("metric")) {
    metrics.all_.push_back(ReadMetric(*table, names, &source));
    names.insert(metrics.all_.back().name);
  }
  if (source.status().ok() && metrics.all_.empty()) source.Note(1, "no [[metric]] in the file");
  if (!source.status().ok()) return source.status();
  return metrics;
}

const Metrics& Metrics::Default() {
  static const auto& metrics = *new Metrics(Parse(embedded::kMetricsToml, "profiles/metrics.toml").value());
  return metrics;
}

const Metric* Metrics::Find(std::string_view name) const {
  const auto at = std::find_if(all_.begin(), all_.end(), [&](const Metric& metric) { return metric.name == name; });
  return at == all_.end() ? nullptr : &*at;
}

std::vector<std::string> Metrics::NcuNames() const {
  std::vector<std::string> names;
  for (const Metric& metric : all_) {
    if (!metric.ncu.empty() && metric.ask) names.push_back(metric.ncu);
  }
  return names;
}

std::set<std::string> Metrics::MissingColumns(const std::string& name,
                                              const std::map<std::string, double>& values) const {
  const Metric* metric = Find(name);
  if (metric == nullptr || values.contains(name)) return {};
  if (!metric->ncu.empty()) return {metric->ncu};
  std::set<std::string> columns;
  if (metric->derive.empty()) return columns;
  for (const std::string& input : metric->derive.front().names()) columns.merge(MissingColumns(input, values));
  return columns;
}

std::map<std::string, double> Metrics::Derive(const NcuKernel* kernel, const v1::LaunchEvidence& known,
                                              const v1::GpuInfo& gpu) const {
  std::map<std::string, double> values;
  const auto find = [&](const Metric& metric) -> std::optional<double> {
    if (kernel && !metric.ncu.empty()) {
      if (const auto at = kernel->values.find(metric.ncu); at != kernel->values.end()) return at->second;
    }
    const auto given = known.metrics().find(metric.name);
    if (given != known.metrics().end() && std::isfinite(given->second)) return given->second;
    if (const std::optional<double> value = KnownValue(metric.known, known, gpu)) return value;
    for (const Formula& formula : metric.derive) {
      if (const std::optional<double> value = formula.Evaluate(values)) return value;
    }
    return std::nullopt;
  };
  for (const Metric& metric : all_) {
    if (const std::optional<double> value = find(metric)) values.emplace(metric.name, *value);
  }
  return values;
}

}  // namespace pawl
