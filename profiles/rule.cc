#include "profiles/rule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "profiles/enum_words.h"

namespace pawl {
namespace {

constexpr const char* kOperators[] = {"<", "<=", ">", ">=", "==", "!="};

bool Holds(double value, const std::string& op, double threshold) {
  if (op == "<") return value < threshold;
  if (op == "<=") return value <= threshold;
  if (op == ">") return value > threshold;
  if (op == ">=") return value >= threshold;
  if (op == "==") return value == threshold;
  return value != threshold;
}

const std::map<std::string, v1::Phase>& Phases() {
  static const auto& phases = *new auto(EnumWords<v1::Phase>("PHASE_"));
  return phases;
}

const std::map<std::string, v1::Resource>& Resources() {
  static const auto& resources = *new auto(EnumWords<v1::Resource>("RESOURCE_"));
  return resources;
}

// Reads one rule's table; notes carry the rule's name and the line of the key.
class RuleReader {
 public:
  RuleReader(const toml::table& table, const Metrics& metrics, TomlFile* file)
      : table_(table), metrics_(metrics), file_(file) {}

  Rule Read() {
    file_->AllowKeys(table_, {"name", "phase", "when", "unless", "ncu", "supported_by", "finding", "wants", "deficit",
                              "severity", "predicts", "advice", "source", "roof"});
    Rule rule;
    name_ = rule.name = file_->RequiredText(table_, "name");
    rule.phase = ReadPhase();
    rule.when = Conditions("when");
    rule.unless = Conditions("unless");
    rule.ncu = NcuRules("ncu");
    rule.supported_by = NcuRules("supported_by");
    if (rule.when.empty() && rule.ncu.empty() && !table_.contains("when") && !table_.contains("ncu")) {
      Note("name", "\"when\" is missing: it would always fire");
    }
    if (table_.contains("when") && Empty("when")) Note("when", "\"when\" is empty: it would always fire");
    rule.finding = file_->RequiredText(table_, "finding");
    CheckPlaceholders(rule.finding);
    rule.wants = Wants();
    rule.deficit = Arithmetic("deficit", rule.when);
    rule.severity = Arithmetic("severity", rule.when);
    if (!table_.contains("deficit") && !table_.contains("severity") && !table_.contains("ncu")) {
      Note("name", "give a deficit or a severity");
    }
    rule.predicts = file_->Text(table_, "predicts");
    if (!rule.predicts.empty()) CheckMetric("predicts", rule.predicts);
    rule.advice = file_->RequiredText(table_, "advice");
    rule.source = file_->RequiredText(table_, "source");
    rule.roof = file_->Flag(table_, "roof", false);
    return rule;
  }

 private:
  void Note(const std::string& key, const std::string& message) {
    file_->Note(TomlFile::LineOf(table_, key), absl::StrCat("rule ", name_, ": ", message));
  }

  void CheckMetric(const std::string& key, const std::string& metric) {
    if (!metrics_.Find(metric)) Note(key, absl::StrCat("unknown metric \"", metric, "\"; see metrics.toml"));
  }

  v1::Phase ReadPhase() {
    const std::string text = file_->RequiredText(table_, "phase");
    const auto at = Phases().find(text);
    if (at != Phases().end()) return at->second;
    if (!text.empty()) Note("phase", absl::StrCat("unknown phase \"", text, "\"; there are ", Listed(Phases())));
    return v1::PHASE_UNSPECIFIED;
  }

  std::optional<Formula> Checked(const std::string& key, const std::string& text) {
    absl::StatusOr<Formula> formula = Formula::Parse(text);
    if (!formula.ok()) {
      Note(key, std::string(formula.status().message()));
      return std::nullopt;
    }
    for (const std::string& name : formula->names()) CheckMetric(key, name);
    return *std::move(formula);
  }

  // Over metrics that a condition of `when` reads: when the rule fires they are there.
  std::optional<Formula> Arithmetic(const std::string& key, const std::vector<Condition>& when) {
    const std::string text = file_->Text(table_, key);
    std::optional<Formula> formula = text.empty() ? std::nullopt : Checked(key, text);
    if (!formula) return formula;
    for (const std::string& name : formula->names()) {
      const auto reads = [&](const Condition& one) { return one.metric == name; };
      if (!metrics_.Find(name) || std::any_of(when.begin(), when.end(), reads)) continue;
      Note(key, absl::StrCat(key, " reads ", name, ", which \"when\" does not: it might be missing"));
    }
    return formula;
  }

  bool Empty(const std::string& key) {
    const toml::array* list = table_.get(key)->as_array();
    return list != nullptr && list->empty();
  }

  // What ncu's rules are called can't be known here, only that they are names.
  std::vector<std::string> NcuRules(const std::string& key) {
    std::vector<std::string> names;
    for (std::string& name : file_->Texts(table_, key)) {
      const bool good =
          std::all_of(name.begin(), name.end(), [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
      if (!good) {
        Note(key, absl::StrCat("\"", name,
                               "\" is not the name of an ncu rule; write it as ncu does: \"LaunchConfiguration\""));
      } else {
        names.push_back(std::move(name));
      }
    }
    if (table_.contains(key) && Empty(key)) Note(key, absl::StrCat("\"", key, "\" is empty"));
    return names;
  }

  std::vector<Condition> Conditions(const std::string& key) {
    std::vector<Condition> conditions;
    for (const std::string& text : file_->Texts(table_, key)) {
      const size_t begin = text.find_first_of("<>=!");
      const size_t end = begin == text.npos ? begin : text.find_first_not_of("<>=!", begin);
      if (end == text.npos) {
        Note(key, absl::StrCat("\"", text, "\" is not a condition; write metric, operator, threshold: \"waves < 1\""));
        continue;
      }
      const std::string metric(absl::StripAsciiWhitespace(text.substr(0, begin)));
      const std::string op = text.substr(begin, end - begin);
      CheckMetric(key, metric);
      if (std::find(std::begin(kOperators), std::end(kOperators), op) == std::end(kOperators)) {
        Note(key, absl::StrCat("unknown operator \"", op, "\" in \"", text, "\"; there are ",
                               absl::StrJoin(kOperators, " ")));
      }
      const std::optional<Formula> threshold = Checked(key, std::string(absl::StripAsciiWhitespace(text.substr(end))));
      if (threshold) conditions.push_back({metric, op, *threshold});
    }
    return conditions;
  }

  std::vector<v1::Effect> Wants() {
    std::vector<v1::Effect> wants;
    for (const std::string& text : file_->Texts(table_, "wants")) {
      const auto resource = Resources().find(text.substr(0, text.size() - 1));
      const char sign = text.back();
      if (resource == Resources().end() || (sign != '+' && sign != '-')) {
        Note("wants", absl::StrCat("\"", text, "\" is not a resource with + or -; there are ", Listed(Resources())));
        continue;
      }
      wants.emplace_back().set_resource(resource->second);
      wants.back().set_direction(sign == '+' ? v1::DIRECTION_MORE : v1::DIRECTION_LESS);
    }
    return wants;
  }

  void CheckPlaceholders(const std::string& text) {
    for (size_t open = text.find('{'); open != text.npos; open = text.find('{', open + 1)) {
      const size_t close = text.find('}', open);
      if (close == text.npos) return Note("finding", "a { is never closed");
      CheckMetric("finding", text.substr(open + 1, close - open - 1));
    }
  }

  const toml::table& table_;
  const Metrics& metrics_;
  TomlFile* file_;
  std::string name_;
};

std::string Readable(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15) return absl::StrFormat("%.0f", value);
  return std::fabs(value) >= 1000 ? absl::StrFormat("%.0f", value) : absl::StrFormat("%.3g", value);
}

}  // namespace

std::optional<v1::SeenValue> Condition::Check(const std::map<std::string, double>& metrics,
                                              const double* instead) const {
  const auto value = metrics.find(metric);
  const std::optional<double> limit = instead ? std::optional<double>(*instead) : threshold.Evaluate(metrics);
  if (value == metrics.end() || !std::isfinite(value->second) || !limit) return std::nullopt;
  if (!Holds(value->second, op, *limit)) return std::nullopt;
  v1::SeenValue seen;
  seen.set_metric(metric);
  seen.set_operator_(op);
  seen.set_threshold(*limit);
  seen.set_value(value->second);
  return seen;
}

std::vector<std::string> Condition::Missing(const std::map<std::string, double>& metrics, const double* instead) const {
  std::vector<std::string> missing;
  const auto add = [&](const std::string& name) {
    const auto at = metrics.find(name);
    if (at == metrics.end() || !std::isfinite(at->second)) missing.push_back(name);
  };
  add(metric);
  if (instead == nullptr) {
    for (const std::string& name : threshold.names()) add(name);
  }
  return missing;
}

Rule ReadRule(const toml::table& table, const Metrics& metrics, TomlFile* file) {
  return RuleReader(table, metrics, file).Read();
}

std::string FillIn(const std::string& text, const std::map<std::string, double>& metrics) {
  std::string filled;
  size_t at = 0;
  for (size_t open = text.find('{'); open != text.npos; open = text.find('{', at)) {
    const size_t close = text.find('}', open);
    if (close == text.npos) break;
    const auto value = metrics.find(text.substr(open + 1, close - open - 1));
    absl::StrAppend(&filled, text.substr(at, open - at), value == metrics.end() ? "unknown" : Readable(value->second));
    at = close + 1;
  }
  return absl::StrCat(filled, text.substr(at));
}

}  // namespace pawl
