// `explain`: why a change was tried, and what came of it.
#include <map>

#include "absl/strings/str_cat.h"
#include "agent/tools/forms.h"
#include "agent/tools/metric_pairs.h"
#include "agent/tools/tool.h"
#include "base/names/resource_name.h"
#include "base/names/utf8.h"
#include "base/revision/revision.h"
#include "report/words.h"

namespace pawl {
namespace {

constexpr size_t kMostPatch = 12'000;
constexpr size_t kMostPassedOver = 10;

Json PredictionForm(const v1::Prediction& prediction) {
  Json form = {{"outcome", OutcomeText(prediction.outcome())}};
  AddText("text", prediction.text(), &form);
  AddText("metric", prediction.metric(), &form);
  AddNumber("low", prediction.low(), &form);
  AddNumber("high", prediction.high(), &form);
  if (prediction.has_before()) form["before"] = Rounded(prediction.before());
  if (prediction.has_after()) form["after"] = Rounded(prediction.after());
  return form;
}

void AddMeasurement(const v1::Iteration& iteration, Json* result) {
  if (iteration.has_interval()) {
    const v1::Comparison& interval = iteration.interval();
    (*result)["interval"] = {{"speedupLow", Rounded(std::exp(interval.lower()))},
                             {"speedupHigh", Rounded(std::exp(interval.upper()))},
                             {"pairs", interval.pairs()},
                             {"processes", interval.processes()}};
    AddText("comparisonReason", interval.reason(), result);
  }
  Json errors = Json::array();
  for (const v1::OutputError& error : iteration.errors()) {
    errors.push_back({{"tensor", error.tensor()},
                      {"maxAbsolute", Rounded(error.max_absolute())},
                      {"relative", Rounded(error.relative())},
                      {"wrong", error.wrong()},
                      {"elements", error.elements()}});
  }
  if (!errors.empty()) (*result)["outputErrors"] = std::move(errors);
  Json gates = Json::array();
  for (const v1::FailedGate& gate : iteration.failed_gates())
    gates.push_back(absl::StrCat(gate.gate(), ": ", gate.text()));
  if (!gates.empty()) (*result)["failedGates"] = std::move(gates);
  std::map<v1::Stage, double> took;  // a stage may come in parts
  for (const v1::StageTime& stage : iteration.stages()) took[stage.stage()] += stage.seconds();
  Json stages = Json::object();
  for (const auto& [stage, seconds] : took) stages[StageWord(stage)] = Rounded(seconds);
  if (!stages.empty()) (*result)["stageSeconds"] = std::move(stages);
  AddText("notes", NotesOf(iteration), result);
}

}  // namespace

absl::StatusOr<Json> ExplainTool(const ToolContext& context, const Json& arguments, const McpCall&) {
  absl::StatusOr<std::string> campaign = CampaignArgument(context, arguments);
  if (!campaign.ok()) return campaign.status();
  absl::StatusOr<std::string> name = IterationArgument(*campaign, arguments, "iteration");
  if (!name.ok()) return name.status();
  absl::StatusOr<v1::Iteration> iteration = context.campaigns.GetIteration(*name);
  if (!iteration.ok()) return iteration.status();
  Json result = IterationForm(*iteration);
  result["campaign"] = *campaign;
  if (!iteration->variant().empty()) result["variant"] = ValuesText(*iteration);
  if (iteration->has_finding()) result["addressedFinding"] = FindingForm(iteration->finding());
  if (iteration->has_prediction()) result["prediction"] = PredictionForm(iteration->prediction());
  AddMeasurement(*iteration, &result);
  if (iteration->change().has_source()) {
    const std::string& patch = iteration->change().source().patch();
    result["patch"] = patch.size() <= kMostPatch ? patch : absl::StrCat(Shortened(patch, kMostPatch), "\n…");
  }
  if (iteration->has_parent()) {
    const std::optional<NameInCampaign> whole = ParseIterationName(*name);
    absl::StatusOr<v1::Iteration> parent =
        context.campaigns.GetIteration(IterationName(whole->campaign, iteration->parent()));
    if (parent.ok()) result["metrics"] = MetricPairs(parent->evidence(), iteration->evidence());
  }
  Json findings = Json::array();
  for (const v1::Finding& finding : iteration->findings()) findings.push_back(FindingForm(finding));
  if (!findings.empty()) result["findingsOfParent"] = std::move(findings);
  Json passed = Json::array();
  for (const v1::PassedOver& each : iteration->passed_over()) {
    if (passed.size() >= kMostPassedOver) break;
    passed.push_back(absl::StrCat(ChangeText(each.change()), ": ", Shortened(each.reason(), 200)));
  }
  if (!passed.empty()) result["passedOver"] = std::move(passed);
  result["uri"] = absl::StrCat("pawl://", *name);
  FitResult({"metrics", "passedOver", "findingsOfParent", "outputErrors"}, kMostResult, &result);
  return result;
}

}  // namespace pawl
