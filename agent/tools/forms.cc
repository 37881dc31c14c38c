#include "agent/tools/forms.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/names/utf8.h"
#include "report/sentences.h"
#include "report/words.h"

namespace pawl {
namespace {

constexpr size_t kLongText = 600;

std::string EnumForm(const std::string& name, absl::string_view prefix) {
  return absl::StrContains(name, "UNSPECIFIED") ? "" : EnumWords(name, prefix);
}

}  // namespace

Json Rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  const double rounded = std::strtod(absl::StrFormat("%.4g", value).c_str(), nullptr);
  if (std::abs(rounded) < 1e15 && std::trunc(rounded) == rounded) return static_cast<int64_t>(rounded);
  return rounded;
}

void AddText(const char* key, const std::string& text, Json* object) {
  if (text.empty()) return;
  (*object)[key] = text.size() > kLongText ? absl::StrCat(Shortened(text, kLongText), " …") : ValidUtf8(text);
}

void AddNumber(const char* key, double value, Json* object) {
  if (value != 0 && std::isfinite(value)) (*object)[key] = Rounded(value);
}

Json CampaignForm(const v1::Campaign& campaign) {
  Json form = {{"campaign", campaign.name()},
               {"bundle", campaign.bundle()},
               {"size", campaign.spec().goal().size()},
               {"state", StateWord(campaign.state())}};
  if (campaign.spec().goal().sizes_size() > 1) {
    for (const auto& [size, weight] : campaign.spec().goal().sizes()) form["sizes"][size] = weight;
    AddNumber("worst", campaign.spec().goal().worst(), &form);
  }
  AddText("slowerAt", LossesText(MeasuredSizes(campaign)), &form);
  AddText("stopReason", EnumForm(v1::StopReason_Name(campaign.stop_reason()), "STOP_REASON_"), &form);
  AddText("waitingFor", EnumForm(v1::WaitingFor_Name(campaign.waiting_for()), "WAITING_FOR_"), &form);
  AddText("message", campaign.message(), &form);
  AddText("device", campaign.device(), &form);
  if (campaign.replay()) form["replay"] = true;
  if (campaign.has_best()) form["best"] = campaign.best();
  AddNumber("startUs", campaign.start_us(), &form);
  AddNumber("bestUs", campaign.best_us(), &form);
  AddNumber("baselineUs", campaign.baseline_us(), &form);
  AddNumber("speedupOverStart", campaign.speedup_over_start(), &form);
  AddNumber("speedupOverBaseline", campaign.speedup_over_baseline(), &form);
  AddNumber("goalSpeedup", campaign.spec().goal().speedup(), &form);
  const v1::Counts& counts = campaign.counts();
  form["counts"] = {{"tried", counts.tried()},       {"kept", counts.kept()},       {"reverted", counts.reverted()},
                    {"rejected", counts.rejected()}, {"running", counts.running()}, {"untried", counts.untried()}};
  AddNumber("gpuSeconds", campaign.gpu_seconds(), &form);
  AddNumber("minutes", campaign.minutes(), &form);
  AddNumber("dollars", campaign.dollars(), &form);
  return form;
}

Json IterationForm(const v1::Iteration& iteration) {
  Json form = {{"iteration", iteration.number()}};
  if (iteration.has_parent()) form["parent"] = iteration.parent();
  form["change"] = ChangeText(iteration.change());
  AddText("verdict", iteration.verdict() == v1::VERDICT_UNSPECIFIED ? "" : VerdictWord(iteration.verdict()), &form);
  if (iteration.untried()) form["untried"] = true;
  AddText("reason", iteration.reason(), &form);
  if (iteration.has_failure()) {
    AddText("failedStage", EnumForm(v1::Stage_Name(iteration.failure().stage()), "STAGE_"), &form);
    AddText("failedCheck", EnumForm(v1::Check_Name(iteration.failure().check()), "CHECK_"), &form);
    AddText("failedAtSize", iteration.failure().size(), &form);
    if (iteration.failure().message() != iteration.reason()) AddText("failure", iteration.failure().message(), &form);
  }
  AddText("comparison", EnumForm(v1::ComparisonResult_Name(iteration.comparison()), ""), &form);
  AddNumber("timeUs", iteration.time_us(), &form);
  AddNumber("speedupOverParent", iteration.speedup_over_parent(), &form);
  AddNumber("speedupOverStart", iteration.speedup_over_start(), &form);
  AddNumber("speedupOverBaseline", iteration.speedup_over_baseline(), &form);
  AddText("finding", iteration.finding().rule(), &form);
  AddText("author", iteration.author(), &form);
  AddText("why", iteration.why(), &form);
  return form;
}

Json FindingForm(const v1::Finding& finding) {
  Json form = {{"rule", finding.rule()}, {"finding", finding.text()}};
  AddText("advice", finding.advice(), &form);
  if (!finding.wants().empty()) {
    form["wants"] = absl::StrJoin(finding.wants(), " ", [](std::string* out, const v1::Effect& effect) {
      absl::StrAppend(out, EffectText(effect));
    });
  }
  if (!finding.seen().empty()) {
    form["seen"] = absl::StrJoin(finding.seen(), ", ", [](std::string* out, const v1::SeenValue& seen) {
      absl::StrAppend(out, seen.metric(), " ", NumberText(seen.value()), " (", seen.operator_(), " ",
                      NumberText(seen.threshold()), ")");
    });
  }
  AddText("phase", EnumForm(v1::Phase_Name(finding.phase()), "PHASE_"), &form);
  AddText("launch", finding.entry(), &form);
  AddText("ncuRule", finding.ncu_rule(), &form);
  AddNumber("ncuEstimatePercent", finding.ncu_estimate_percent(), &form);
  if (finding.roof()) form["roof"] = true;
  return form;
}

Json RankedForm(const v1::RankedChange& ranked, int best) {
  Json form = {{"change", ChangeText(ranked.change())}};
  if (ranked.parent() != best) form["fromIteration"] = ranked.parent();
  const v1::Score& score = ranked.score();
  const double gain = score.gain() > 0 ? score.gain() : score.rules() + score.model() + score.patterns();
  form["expectedGain"] = Rounded(gain);
  AddText("finding", ranked.finding(), &form);
  return form;
}

const v1::LaunchEvidence* LongestOf(const v1::Evidence& evidence) {
  const v1::LaunchEvidence* longest = nullptr;
  double most = -1;
  for (const v1::LaunchEvidence& launch : evidence.launches()) {
    const auto duration = launch.metrics().find("duration_ns");
    const double time = duration == launch.metrics().end() ? 0 : duration->second;
    if (time <= most) continue;
    most = time;
    longest = &launch;
  }
  return longest;
}

std::string TensorLine(const v1::Tensor& tensor) {
  return absl::StrCat(tensor.name(), ": ", EnumForm(v1::DataType_Name(tensor.type()), "DATA_TYPE_"), " [",
                      absl::StrJoin(tensor.shape(), ", "), "], ",
                      EnumForm(v1::TensorRole_Name(tensor.role()), "TENSOR_ROLE_"));
}

std::string LaunchLine(const v1::Launch& launch) {
  std::string line =
      absl::StrCat(launch.entry(), "(", absl::StrJoin(launch.arguments(), ", "), ") grid (",
                   absl::StrJoin(launch.grid(), ", "), ") block (", absl::StrJoin(launch.block(), ", "), ")");
  if (!launch.shared().empty()) absl::StrAppend(&line, " shared ", launch.shared());
  if (!launch.when().empty()) absl::StrAppend(&line, " when ", launch.when());
  return line;
}

void FitResult(std::initializer_list<const char*> lists, size_t characters, Json* result) {
  std::map<std::string, int> lost;
  const auto size_of = [&](const char* key) {
    const Json* list = JsonAt(*result, key);
    return list == nullptr || list->empty() ? size_t{0} : JsonText(*list).size();
  };
  size_t size = JsonText(*result).size();
  while (size > characters) {
    const char* longest = nullptr;
    size_t most = 0;
    for (const char* key : lists) {
      if (const size_t here = size_of(key); here > most) {
        most = here;
        longest = key;
      }
    }
    if (longest == nullptr) break;
    Json& list = (*result)[longest];
    // A quarter at a time: a list of thousands is not measured thousands of times.
    const size_t drop = std::max<size_t>(1, list.size() / 4);
    for (size_t i = 0; i < drop; ++i) list.erase(list.size() - 1);
    lost[longest] += static_cast<int>(drop);
    size = JsonText(*result).size() + 40 * lost.size();
  }
  for (const auto& [key, count] : lost) (*result)["leftOut"][key] = count;
}

}  // namespace pawl
