#include "profiles/gates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "profiles/embedded.h"
#include "profiles/enum_words.h"
#include "profiles/toml_file.h"

namespace pawl {
namespace {

constexpr v1::GateAction kReject = v1::GATE_ACTION_REJECT;
constexpr v1::GateAction kRevert = v1::GATE_ACTION_REVERT;
constexpr v1::GateAction kPause = v1::GATE_ACTION_PAUSE;
constexpr v1::GateAction kMark = v1::GATE_ACTION_MARK;

// What a file can't change about a gate.
struct Nature {
  const char* name;
  v1::Stage stage;
  bool of_checks;  // it stands for failures of a candidate
  std::vector<v1::GateAction> actions;
  const char* why;  // no other action makes sense
  struct Range {
    double low, high;
    const char* of;
  };
  std::optional<Range> threshold;
};

constexpr char kNeverKept[] = "a variant that failed it must never be kept";
constexpr char kNoVariant[] = "it is not about a variant that could be rejected or taken back";

// By GateKind.
const std::vector<Nature>& Natures() {
  using Range = Nature::Range;
  static const auto& natures = *new std::vector<Nature>{
      {"preflight",
       v1::STAGE_PREFLIGHT,
       false,
       {kPause},
       kNoVariant,
       Range{1, 100, "how often a trial may fail because of the machine"}},
      {"baseline",
       v1::STAGE_MEASURE,
       false,
       {kReject, kPause, kMark},
       "the start has no parent to go back to",
       Range{0.001, 1, "a share of the expected time"}},
      {"static-check", v1::STAGE_STATIC_CHECK, true, {kReject, kPause}, kNeverKept, {}},
      {"build", v1::STAGE_BUILD, true, {kReject, kPause}, kNeverKept, {}},
      {"correctness", v1::STAGE_VALIDATE, true, {kReject, kPause}, kNeverKept, {}},
      {"roofline-floor",
       v1::STAGE_MEASURE,
       true,
       {kReject, kPause},
       kNeverKept,
       Range{0.1, 1, "a share of the shortest possible time, and honest times are above it"}},
      {"steady-timing", v1::STAGE_MEASURE, true, {kRevert, kReject, kPause}, kNeverKept, {}},
      {"seat", v1::STAGE_MEASURE, true, {kReject, kPause}, kNeverKept, Range{1e-6, 0.05, "a share of honest variants"}},
      {"sanitizer", v1::STAGE_VALIDATE, true, {kReject, kPause}, kNeverKept, {}},
      {"profile-first",
       v1::STAGE_PROFILE,
       false,
       {kPause, kMark},
       kNoVariant,
       Range{0, 1000, "a speedup over the baseline"}},
      {"profile", v1::STAGE_PROFILE, false, {kPause, kMark}, kNoVariant, Range{0, 1000, "a speedup over the baseline"}},
      {"min-gain",
       v1::STAGE_MEASURE,
       false,
       {kRevert},
       "the variant is correct, so it is not rejected, and not faster, so it is not kept",
       Range{0.0001, 1, "a share of the parent's time"}},
      {"worst-size", v1::STAGE_MEASURE, false, {kRevert}, "the variant is correct, so it is not rejected", {}},
      {"prediction", v1::STAGE_MEASURE, false, {kRevert, kPause, kMark}, "the variant is correct and faster", {}},
  };
  return natures;
}

const std::map<std::string, v1::GateAction>& Actions() {
  static const auto& actions = *new auto(EnumWords<v1::GateAction>("GATE_ACTION_"));
  return actions;
}

std::string ActionWord(v1::GateAction action) { return WordOf("GATE_ACTION_", action); }

// Reads the tables of one file into `gates`.
class GatesReader {
 public:
  explicit GatesReader(TomlFile* file) : file_(file) {}

  std::vector<Gate> ReadGates() {
    std::map<GateKind, Gate> read;
    for (const toml::table* table : file_->Tables("gate")) {
      if (std::optional<Gate> gate = ReadGate(*table)) {
        const GateKind kind = gate->kind;
        if (!read.emplace(kind, *std::move(gate)).second) Note(*table, "name", "defined twice");
      }
    }
    std::vector<Gate> gates;
    for (size_t i = 0; i < Natures().size(); ++i) {
      const auto at = read.find(static_cast<GateKind>(i));
      if (at == read.end()) {
        file_->Note(1,
                    absl::StrCat("no [[gate]] with the name \"", Natures()[i].name, "\": every gate must be defined"));
      } else {
        gates.push_back(std::move(at->second));
      }
    }
    for (const auto& [word, check] : EnumWords<v1::Check>("CHECK_")) {
      if (!gate_of_.contains(check)) file_->Note(1, absl::StrCat("the check \"", word, "\" belongs to no gate"));
    }
    return gates;
  }

  Tiers ReadTiers() {
    Tiers tiers;
    const toml::table* table = Table("tiers");
    if (table == nullptr) return tiers;
    file_->AllowKeys(*table, {"minimum", "target", "stretch"});
    name_ = "[tiers]";
    tiers.minimum = Within(*table, "minimum", 0.001, 1000, "a speedup over the baseline");
    tiers.target = Within(*table, "target", tiers.minimum, 1000, "a speedup of at least the minimum");
    tiers.stretch = Within(*table, "stretch", 1, 1000, "times the target");
    return tiers;
  }

  int ReadTotal() {
    const toml::table* table = Table("total");
    if (table == nullptr) return 0;
    file_->AllowKeys(*table, {"every"});
    name_ = "[total]";
    const double every = Within(*table, "every", 1, 1000, "a number of kept iterations");
    if (every != std::floor(every)) Note(*table, "every", "\"every\" must be a whole number");
    return static_cast<int>(every);
  }

 private:
  void Note(const toml::table& table, const std::string& key, const std::string& message) {
    file_->Note(TomlFile::LineOf(table, key), absl::StrCat(name_, ": ", message));
  }

  const toml::table* Table(const std::string& key) {
    const toml::node* node = file_->root().get(key);
    if (node != nullptr && node->is_table()) return node->as_table();
    file_->Note(node ? TomlFile::LineOf(*node) : 1, absl::StrCat("a table [", key, "] is missing"));
    return nullptr;
  }

  double Within(const toml::table& table, const std::string& key, double low, double high, const std::string& of) {
    if (!table.contains(key)) Note(table, key, absl::StrCat("\"", key, "\" is missing"));
    const std::optional<double> value = file_->Number(table, key);
    if (value && !(*value >= low && *value <= high)) {
      Note(table, key, absl::StrCat("\"", key, "\" = ", *value, " is impossible: ", of, ", ", low, " to ", high));
    }
    return value.value_or(low);
  }

  std::optional<Gate> ReadGate(const toml::table& table) {
    file_->AllowKeys(table, {"name", "stage", "checks", "threshold", "action", "meaning"});
    Gate gate;
    gate.name = file_->RequiredText(table, "name");
    name_ = absl::StrCat("gate ", gate.name);
    const auto nature =
        std::find_if(Natures().begin(), Natures().end(), [&](const Nature& one) { return gate.name == one.name; });
    if (nature == Natures().end()) {
      const std::string all =
          absl::StrJoin(Natures(), ", ", [](std::string* out, const Nature& one) { out->append(one.name); });
      if (!gate.name.empty()) Note(table, "name", absl::StrCat("there is no such gate; there are ", all));
      return std::nullopt;
    }
    gate.kind = static_cast<GateKind>(nature - Natures().begin());
    gate.stage = ReadStage(table, *nature);
    gate.checks = ReadChecks(table, *nature);
    gate.threshold = ReadThreshold(table, *nature);
    gate.action = ReadAction(table, *nature);
    gate.meaning = file_->RequiredText(table, "meaning");
    return gate;
  }

  v1::Stage ReadStage(const toml::table& table, const Nature& nature) {
    const std::string text = file_->RequiredText(table, "stage");
    const std::string expected = WordOf("STAGE_", nature.stage);
    if (!text.empty() && text != expected) {
      Note(table, "stage", absl::StrCat("belongs to the stage \"", expected, "\", not \"", text, "\""));
    }
    return nature.stage;
  }

  std::vector<v1::Check> ReadChecks(const toml::table& table, const Nature& nature) {
    static const auto& words = *new auto(EnumWords<v1::Check>("CHECK_"));
    std::vector<v1::Check> checks;
    for (const std::string& text : file_->Texts(table, "checks")) {
      const auto at = words.find(text);
      if (at == words.end()) {
        Note(table, "checks", absl::StrCat("unknown check \"", text, "\"; there are ", Listed(words)));
      } else if (!nature.of_checks) {
        Note(table, "checks", absl::StrCat("\"", text, "\" is a failure of a candidate, which this gate is not about"));
      } else if (const auto [other, first] = gate_of_.emplace(at->second, nature.name); !first) {
        Note(table, "checks", absl::StrCat("\"", text, "\" belongs to the gate ", other->second, " already"));
      } else {
        checks.push_back(at->second);
      }
    }
    if (nature.of_checks && !table.contains("checks")) Note(table, "name", "\"checks\" is missing");
    return checks;
  }

  double ReadThreshold(const toml::table& table, const Nature& nature) {
    if (nature.threshold) {
      return Within(table, "threshold", nature.threshold->low, nature.threshold->high, nature.threshold->of);
    }
    if (table.contains("threshold")) Note(table, "threshold", "has no threshold");
    return 0;
  }

  v1::GateAction ReadAction(const toml::table& table, const Nature& nature) {
    const std::string text = file_->RequiredText(table, "action");
    const auto at = Actions().find(text);
    if (at == Actions().end()) {
      if (!text.empty()) {
        Note(table, "action", absl::StrCat("unknown action \"", text, "\"; there are ", Listed(Actions())));
      }
      return v1::GATE_ACTION_UNSPECIFIED;
    }
    if (std::find(nature.actions.begin(), nature.actions.end(), at->second) == nature.actions.end()) {
      const std::string possible = absl::StrJoin(nature.actions, " or ", [](std::string* out, v1::GateAction action) {
        absl::StrAppend(out, ActionWord(action));
      });
      Note(table, "action", absl::StrCat("may not ", text, ": ", nature.why, "; it may ", possible));
    }
    return at->second;
  }

  TomlFile* file_;
  std::string name_;  // what notes are about
  std::map<v1::Check, std::string> gate_of_;
};

}  // namespace

v1::FailedGate Gate::Failed(double value, const std::string& text) const {
  v1::FailedGate failed;
  failed.set_gate(name);
  failed.set_action(action);
  failed.set_value(value);
  failed.set_threshold(threshold);
  failed.set_text(text);
  return failed;
}

absl::StatusOr<Gates> Gates::Parse(std::string_view toml, const std::string& file) {
  TomlFile source(toml, file);
  if (!source.status().ok()) return source.status();
  source.AllowKeys(source.root(), {"gate", "tiers", "total"});
  GatesReader reader(&source);
  Gates gates;
  gates.all_ = reader.ReadGates();
  gates.tiers_ = reader.ReadTiers();
  gates.total_every_ = reader.ReadTotal();
  if (!source.status().ok()) return source.status();
  return gates;
}

const Gates& Gates::Default() {
  static const auto& gates = *new Gates(Parse(embedded::kGatesToml, "profiles/gates.toml").value());
  return gates;
}

const Gate* Gates::Find(std::string_view name) const {
  const auto at = std::find_if(all_.begin(), all_.end(), [&](const Gate& gate) { return gate.name == name; });
  return at == all_.end() ? nullptr : &*at;
}

const Gate& Gates::For(v1::Check check) const {
  const auto at = std::find_if(all_.begin(), all_.end(), [&](const Gate& gate) {
    return std::find(gate.checks.begin(), gate.checks.end(), check) != gate.checks.end();
  });
  return at == all_.end() ? Get(GateKind::kCorrectness) : *at;
}

v1::SuccessTier Gates::TierOf(double speedup_over_baseline, double goal) const {
  const double target = goal > 0 ? goal : tiers_.target;
  if (speedup_over_baseline >= target * tiers_.stretch) return v1::SUCCESS_TIER_STRETCH;
  if (speedup_over_baseline >= target) return v1::SUCCESS_TIER_TARGET;
  if (speedup_over_baseline >= tiers_.minimum) return v1::SUCCESS_TIER_MINIMUM;
  return v1::SUCCESS_TIER_BELOW;
}

}  // namespace pawl
