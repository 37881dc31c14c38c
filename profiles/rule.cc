#include "profiles/rule.h"

#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

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

// The names of a proto enum without their prefix, in lower case, by number.
template <typename Parse>
std::map<std::string, int> Words(const std::string& prefix, int count, Parse name_of) {
  std::map<std::string, int> words;
  for (int i = 1; i <= count; ++i) words[absl::AsciiStrToLower(name_of(i).substr(prefix.size()))] = i;
  return words;
}

std::string Listed(const std::map<std::string, int>& words) {
  return absl::StrJoin(words, ", ", [](std::string* out, const auto& word) { out->append(word.first); });
}

const std::map<std::string, int>& Phases() {
  static const auto& phases = *new std::map<std::string, int>(
      Words("PHASE_", v1::Phase_MAX, [](int i) { return std::string(v1::Phase_Name(static_cast<v1::Phase>(i))); }));
  return phases;
}

const std::map<std::string, int>& Resources() {
  static const auto& resources = *new std::map<std::string, int>(Words("RESOURCE_", v1::Resource_MAX, [](int i) {
    return std::string(v1::Resource_Name(static_cast<v1::Resource>(i)));
  }));
  return resources;
}

// Reads one rule's table; notes carry the rule's name and the line of the key.
class RuleReader {
 public:
  RuleReader(const toml::table& table, const Metrics& metrics, TomlFile* file)
      : table_(table), metrics_(metrics), file_(file) {}

  Rule Read() {
    file_->AllowKeys(table_, {"name", "phase", "when", "unless", "finding", "wants", "deficit", "severity", "predicts",
                              "advice", "source", "roof"});
    Rule rule;
    name_ = rule.name = file_->RequiredText(table_, "name");
    rule.phase = ReadPhase();
    rule.when = Conditions("when");
    rule.unless = Conditions("unless");
    if (rule.when.empty() && !table_.contains("when")) Note("name", "\"when\" is missing: it would always fire");
    rule.finding = file_->RequiredText(table_, "finding");
    CheckPlaceholders(rule.finding);
    rule.wants = Wants();
    rule.deficit = Arithmetic("deficit");
    rule.severity = Arithmetic("severity");
    if (!table_.contains("deficit") && !table_.contains("severity")) Note("name", "give a deficit or a severity");
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
    if (at != Phases().end()) return static_cast<v1::Phase>(at->second);
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

  std::optional<Formula> Arithmetic(const std::string& key) {
    const std::string text = file_->Text(table_, key);
    return text.empty() ? std::nullopt : Checked(key, text);
  }

  std::vector<Condition> Conditions(const std::string& key) {
    std::vector<Condition> conditions;
    for (const std::string& text : file_->Texts(table_, key)) {
      const size_t begin = text.find_first_of("<>=!");
      const size_t end = begin == text.npos ? begin : text.find_first_not_of("<>=!", begin);
      if (end == text.npos) {
        Note(key, absl::StrCat("\"", text, "\" is no condition; write metric, operator, threshold: \"waves < 1\""));
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
        Note("wants", absl::StrCat("\"", text, "\" is no resource with + or -; there are ", Listed(Resources())));
        continue;
      }
      wants.emplace_back().set_resource(static_cast<v1::Resource>(resource->second));
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
