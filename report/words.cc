#include "report/words.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

namespace pawl {

std::string EnumWords(const std::string& name, absl::string_view prefix) {
  return absl::AsciiStrToLower(absl::StrReplaceAll(absl::StripPrefix(name, prefix), {{"_", " "}}));
}

std::string VerdictWord(v1::Verdict verdict) {
  return verdict == v1::VERDICT_UNSPECIFIED ? "-" : EnumWords(v1::Verdict_Name(verdict), "");
}

std::string StateWord(v1::CampaignState state) { return EnumWords(v1::CampaignState_Name(state), "CAMPAIGN_STATE_"); }

std::string StageWord(v1::Stage stage) { return EnumWords(v1::Stage_Name(stage), "STAGE_"); }

std::string PhaseWord(v1::Phase phase) { return EnumWords(v1::Phase_Name(phase), "PHASE_"); }

std::string TierWord(v1::SuccessTier tier) {
  return tier == v1::SUCCESS_TIER_UNSPECIFIED ? "-" : EnumWords(v1::SuccessTier_Name(tier), "SUCCESS_TIER_");
}

std::string OutcomeText(v1::Prediction::Outcome outcome) {
  return outcome == v1::Prediction::OUTCOME_UNSPECIFIED ? "open" : EnumWords(v1::Prediction::Outcome_Name(outcome), "");
}

std::string StopText(v1::StopReason reason) {
  switch (reason) {
    case v1::STOP_REASON_GOAL:
      return "the goal is reached";
    case v1::STOP_REASON_ITERATIONS:
      return "the iterations are used up";
    case v1::STOP_REASON_MINUTES:
      return "the minutes are used up";
    case v1::STOP_REASON_DOLLARS:
      return "the dollars are spent";
    case v1::STOP_REASON_SPACE:
      return "no change is left to try";
    case v1::STOP_REASON_REVERTS:
      return "too many reverts in a row";
    case v1::STOP_REASON_START:
      return "the start variant did not pass";
    case v1::STOP_REASON_CANCELLED:
      return "cancelled";
    case v1::STOP_REASON_ROOF:
      return "the best variant is at a limit of the GPU";
    case v1::STOP_REASON_GAIN:
      return "no change is expected to gain enough";
    default:
      return "";
  }
}

std::string WhyText(v1::CampaignState state, const std::string& message, v1::StopReason reason) {
  if (!message.empty()) return absl::StrCat(": ", message);
  const std::string stop = state == v1::CANCELLED ? "" : StopText(reason);  // the state's own word says it
  return stop.empty() ? "" : absl::StrCat(": ", stop);
}

std::string CountsText(const v1::Counts& counts) {
  return absl::StrCat(counts.tried(), ": ", counts.kept(), " kept, ", counts.reverted(), " reverted, ",
                      counts.rejected(), " rejected",
                      counts.untried() > 0 ? absl::StrCat("; the recording lacks ", counts.untried(), " others") : "");
}

std::string ChangedValuesText(const v1::Change& change) {
  if (!change.has_to()) return "";
  const std::string to = change.to_word().empty() ? absl::StrCat(change.to()) : change.to_word();
  const std::string from = change.from_word().empty() ? absl::StrCat(change.from()) : change.from_word();
  return change.has_from() ? absl::StrCat(" ", from, "→", to) : absl::StrCat(" →", to);
}

std::string ChangeText(const v1::Change& change) {
  switch (change.kind_case()) {
    case v1::Change::kVariable:
      return absl::StrCat(change.variable(), ChangedValuesText(change));
    case v1::Change::kSource:
      return absl::StrCat("edit ", change.source().name());
    default:
      return "start";
  }
}

std::string EffectText(const v1::Effect& effect) {
  return absl::StrCat(absl::AsciiStrToLower(absl::StripPrefix(v1::Resource_Name(effect.resource()), "RESOURCE_")),
                      effect.direction() == v1::DIRECTION_LESS ? "-" : "+");
}

std::string ValueOf(const v1::Iteration& iteration, const std::string& variable) {
  const auto word = iteration.words().find(variable);
  if (word != iteration.words().end()) return word->second;
  const auto value = iteration.variant().find(variable);
  return value == iteration.variant().end() ? "" : absl::StrCat(value->second);
}

std::string ValuesText(const v1::Iteration& iteration) {
  std::map<std::string, std::string> sorted;
  for (const auto& [name, value] : iteration.variant()) sorted[name] = ValueOf(iteration, name);
  return absl::StrJoin(sorted, " ", absl::PairFormatter("="));
}

std::string ValuesText(const google::protobuf::Map<std::string, int32_t>& values) {
  const std::map<std::string, int32_t> sorted(values.begin(), values.end());
  return absl::StrJoin(sorted, " ", absl::PairFormatter("="));
}

std::string TimeText(double us) {
  if (us <= 0) return "-";
  if (us < 10) return absl::StrFormat("%.3f us", us);
  if (us < 100) return absl::StrFormat("%.2f us", us);
  if (us < 1000) return absl::StrFormat("%.1f us", us);
  return absl::StrFormat("%.0f us", us);
}

std::string ObjectiveText(const v1::Goal& goal) {
  if (goal.sizes_size() < 2) return absl::StrCat("at ", goal.size());
  std::vector<std::pair<double, std::string>> sizes;
  for (const auto& [name, weight] : goal.sizes()) sizes.emplace_back(-weight, name);
  std::sort(sizes.begin(), sizes.end());
  return absl::StrCat("over ", absl::StrJoin(sizes, ", ", [](std::string* out, const auto& size) {
                        absl::StrAppend(out, size.second, " (", NumberText(-size.first), ")");
                      }));
}

std::string SpeedupText(double speedup) { return speedup <= 0 ? "-" : absl::StrFormat("%.3fx", speedup); }

std::string NumberText(double value) {
  const double size = std::abs(value);
  return size >= 1000 && size < 1e8 ? absl::StrFormat("%.0f", value) : absl::StrFormat("%.4g", value);
}

std::string SecondsText(double seconds) {
  if (seconds < 10) return absl::StrFormat("%.2f s", seconds);
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return absl::StrCat(whole, " s");
  return absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
}

std::string StagesText(const v1::Iteration& iteration) {
  std::vector<std::pair<v1::Stage, double>> took;
  for (const v1::StageTime& stage : iteration.stages()) {
    const auto known =
        std::find_if(took.begin(), took.end(), [&](const auto& each) { return each.first == stage.stage(); });
    if (known == took.end()) {
      took.emplace_back(stage.stage(), stage.seconds());
    } else {
      known->second += stage.seconds();
    }
  }
  return absl::StrJoin(took, ", ", [](std::string* out, const auto& stage) {
    absl::StrAppend(out, StageWord(stage.first), " ", SecondsText(stage.second));
  });
}

std::string ShareText(double share) { return absl::StrFormat("%.0f %%", 100 * share); }

std::string BytesText(int64_t bytes) {
  if (bytes <= 0) return "-";
  double value = static_cast<double>(bytes);
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  if (unit == 0) return absl::StrCat(bytes, " B");
  return absl::StrFormat("%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, units[unit]);
}

std::string DollarsText(double dollars) {
  return dollars >= 0.01 ? absl::StrFormat("$%.2f", dollars) : absl::StrFormat("$%.2g", dollars);
}

std::string UtcText(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixSeconds(time.seconds()), absl::UTCTimeZone());
}

}  // namespace pawl
