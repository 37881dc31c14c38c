// `situation`: all that somebody needs who is to propose the next change, what matters most first.
#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "agent/tools/forms.h"
#include "agent/tools/source_text.h"
#include "agent/tools/tool.h"
#include "base/names/utf8.h"
#include "kernels/bundle_message.h"
#include "kernels/data_type.h"
#include "report/words.h"

namespace pawl {
namespace {

constexpr int kMostUntried = 10;
constexpr size_t kMostTried = 30;
constexpr size_t kMostLessons = 8;
constexpr size_t kReference = 12'000;  // bytes of it that are shown
constexpr char kNoStart[] =
    "there is no start yet: the campaign was submitted as a contract alone. The first proposal that builds and passes "
    "validation is the start, iteration 0; what failed before is in failed, with the reason";
constexpr char kHowToStart[] =
    "one named unified diff that adds the device code (--- /dev/null, +++ b/kernel.cu, @@ -0,0 +1,N @@) and adds lines "
    "to "
    "kernel.toml: source = \"kernel.cu\", files = [\"*.cuh\"] for headers that it adds too, options, [[variable]], "
    "[[constraint]], scratch [[tensor]] and at least one [[launch]]. Device code only, without host code. It need not "
    "be "
    "fast: it must be right at every size, and variables may be tuned later";
// Shares of the GPU's peaks, and what bounds a kernel that is far from all of them.
constexpr const char* kRoofMetrics[] = {
    "dram_throughput", "l2_throughput", "l1_throughput",       "sm_throughput",
    "tensor_use",      "issue_active",  "occupancy",           "waves",
    "registers",       "local_bytes",   "bank_conflict_share", "long_scoreboard_share"};

double MetricOf(const v1::LaunchEvidence& launch, const std::string& name) {
  const auto found = launch.metrics().find(name);
  return found == launch.metrics().end() ? 0 : found->second;
}

Json BestForm(const v1::Situation& situation) {
  const v1::Iteration& best = situation.best();
  Json form = {{"iteration", best.number()}};
  AddNumber("timeUs", best.time_us(), &form);
  AddNumber("speedupOverStart", best.speedup_over_start(), &form);
  AddNumber("speedupOverBaseline", best.speedup_over_baseline(), &form);
  AddNumber("goalSpeedup", situation.campaign().spec().goal().speedup(), &form);
  AddNumber("baselineUs", situation.campaign().baseline_us(), &form);
  AddText("baseline", situation.campaign().baseline(), &form);
  if (!best.variant().empty()) form["variant"] = ValuesText(best);
  return form;
}

// How near the best is to what the GPU can do, by its longest launch.
Json RoofForm(const v1::Situation& situation) {
  Json form = Json::object();
  std::vector<std::string> reached;
  for (const v1::Finding& finding : situation.findings()) {
    if (finding.roof()) reached.push_back(finding.rule());
  }
  form["reached"] = reached;
  const v1::LaunchEvidence* launch = LongestOf(situation.best().evidence());
  if (launch == nullptr) return form;
  form["launch"] = launch->entry();
  Json metrics = Json::object();
  for (const char* name : kRoofMetrics) {
    if (launch->metrics().contains(name)) metrics[name] = Rounded(MetricOf(*launch, name));
  }
  form["metrics"] = std::move(metrics);
  const double seconds = situation.best().time_us() * 1e-6;
  if (seconds > 0) {
    AddNumber("workGBs", MetricOf(*launch, "work_bytes") / seconds * 1e-9, &form);
    AddNumber("workTflops", MetricOf(*launch, "work_flops") / seconds * 1e-12, &form);
  }
  if (situation.best().evidence().partial()) AddText("missing", situation.best().evidence().partial_reason(), &form);
  return form;
}

// "64 128", "float half", "false true".
std::string ValuesForm(const v1::Variable& variable) {
  return absl::StrJoin(variable.values(), " ", [&](std::string* out, int32_t value) {
    if (value >= 0 && value < variable.words_size()) {
      absl::StrAppend(out, variable.words(value));
    } else if (variable.flag()) {
      absl::StrAppend(out, value == 1 ? "true" : "false");
    } else {
      absl::StrAppend(out, value);
    }
  });
}

Json EditForm(const v1::Situation& situation, const SourceFiles& editable) {
  const std::string& campaign = situation.campaign().name();
  Json files = Json::array();
  for (const auto& [path, text] : editable) {
    files.push_back(
        {{"path", path}, {"lines", LinesOf(text)}, {"uri", absl::StrCat("pawl://", campaign, "/files/", path)}});
  }
  Json variables = Json::array();
  for (const v1::Variable& variable : situation.variables()) {
    const auto now = situation.best().variant().find(variable.name());
    Json each = {{"name", variable.name()}, {"values", ValuesForm(variable)}};
    if (now != situation.best().variant().end()) each["now"] = now->second;
    if (situation.best().words().contains(variable.name())) each["now"] = ValueOf(situation.best(), variable.name());
    AddText("moreGives",
            absl::StrJoin(variable.affects(), " ",
                          [](std::string* out, const v1::Effect& effect) { absl::StrAppend(out, EffectText(effect)); }),
            &each);
    variables.push_back(std::move(each));
  }
  Json constraints = Json::array();
  for (const v1::Constraint& constraint : situation.constraints()) constraints.push_back(constraint.that());
  if (!situation.has_best()) {
    return {{"files", std::move(files)},
            {"how", kHowToStart},
            {"refused",
             "files and keys of the contract (sizes, tensors but scratch, scalars, reference, tolerance, baseline, "
             "goal), files that neither source nor files names, and what was proposed before"},
            {"variables", std::move(variables)},
            {"constraints", std::move(constraints)}};
  }
  return {
      {"files", std::move(files)},
      {"how",
       "one value of one variable, or one named unified diff of these files (the tool best has their texts). "
       "kernel.toml has variables, constraints, scratch, launches and compile options: start of a variable is its "
       "present value, variables may be added, and the engine tunes them afterwards. A patch against an earlier best "
       "is applied where its lines are still there"},
      {"refused",
       "other files, the contract (sizes, tensors but scratch, scalars, reference, tolerance, baseline, goal), a "
       "variant that was tried, also with other comments and blanks, and two ideas at once"},
      {"variables", std::move(variables)},
      {"constraints", std::move(constraints)}};
}

// What somebody needs who writes the first device code.
void AddWholeContract(const v1::Bundle& bundle, Json* form) {
  const auto list = [&](const char* key, const auto& entries, const auto& line) {
    Json lines = Json::array();
    for (const auto& entry : entries) lines.push_back(line(entry));
    if (!lines.empty()) (*form)[key] = std::move(lines);
  };
  list("scalars", bundle.scalars(), [](const v1::Scalar& scalar) {
    return absl::StrCat(scalar.name(), ": ", DataTypeName(scalar.type()), " = ", scalar.value());
  });
  list("structs", bundle.structs(), [](const v1::StructArgument& argument) {
    return absl::StrCat(argument.name(), ": ", absl::StrJoin(argument.fields(), ", "),
                        argument.in_memory() ? ", by a pointer" : "");
  });
  const std::map<std::string, v1::HiddenRange> hidden(bundle.hidden().begin(), bundle.hidden().end());
  list("hidden", hidden, [](const auto& range) {
    return absl::StrCat(range.first, ": ", range.second.low(), " to ", range.second.high(),
                        range.second.multiple() > 1 ? absl::StrCat(", multiples of ", range.second.multiple()) : "");
  });
  list("include", bundle.include(), [](const std::string& name) { return name; });
  (*form)["compiler"] = bundle.compiler() == v1::COMPILER_NVCC ? "nvcc" : "nvrtc";
  const v1::SourceFile& reference = bundle.has_problem() ? bundle.problem() : bundle.reference().source();
  (*form)["reference"] = {{"path", reference.path()},
                          {"text", ValidUtf8(PageOf(reference.text(), 1, LinesOf(reference.text()), kReference).text)}};
}

// What the kernel must compute: it can't be edited.
Json ContractForm(const v1::Bundle& bundle) {
  Json form = Json::object();
  AddText("summary", bundle.summary(), &form);
  Json sizes = Json::array(), tensors = Json::array(), launches = Json::array();
  for (const v1::Size& size : bundle.sizes())
    sizes.push_back(absl::StrCat(size.name(), ": ", ValuesText(size.values())));
  for (const v1::Tensor& tensor : bundle.tensors()) tensors.push_back(TensorLine(tensor));
  for (const v1::Launch& launch : bundle.launches()) launches.push_back(LaunchLine(launch));
  form["sizes"] = std::move(sizes);
  form["tensors"] = std::move(tensors);
  form["launches"] = std::move(launches);
  form["tolerance"] = bundle.tolerance().exact() ? "exact"
                                                 : absl::StrCat("absolute ", bundle.tolerance().absolute(),
                                                                ", relative ", bundle.tolerance().relative());
  if (bundle.nondeterministic()) form["deterministic"] = false;
  if (IsContractAlone(bundle)) AddWholeContract(bundle, &form);
  return form;
}

void AddTried(const v1::Situation& situation, Json* result) {
  Json kept = Json::array(), failed = Json::array();
  int left_out = situation.tried_left_out();
  for (auto at = situation.tried().rbegin(); at != situation.tried().rend(); ++at) {
    if (at->number() == 0 || at->untried() || at->verdict() == v1::VERDICT_UNSPECIFIED) continue;
    Json& list = at->verdict() == v1::KEPT ? kept : failed;
    if (list.size() >= kMostTried) {
      ++left_out;
    } else {
      list.push_back(IterationForm(*at));
    }
  }
  (*result)["failed"] = std::move(failed);
  (*result)["kept"] = std::move(kept);
  if (left_out > 0) (*result)["olderTried"] = left_out;
}

// What other campaigns on such GPUs made of the same findings.
Json LessonForms(const ToolContext& context, const v1::Situation& situation) {
  Json forms = Json::array();
  if (context.lessons == nullptr || situation.findings().empty()) return forms;
  LessonQuery query;
  for (const v1::Finding& finding : situation.findings()) query.any_of.push_back(finding.rule());
  // A replay is of a GPU; what was learned on the GPU itself counts as well. Old campaigns name the device only.
  const v1::Campaign& campaign = situation.campaign();
  query.gpu = campaign.gpu().empty() ? campaign.device() : campaign.gpu();
  query.not_of = situation.campaign().name();
  query.most = kMostLessons;
  absl::StatusOr<LessonAnswer> answer = context.lessons->Find(context.campaigns, query);
  if (!answer.ok()) return forms;  // a situation is worth having without them
  for (const Lesson& lesson : answer->lessons) forms.push_back(LessonForm(lesson));
  return forms;
}

}  // namespace

absl::StatusOr<Json> SituationTool(const ToolContext& context, const Json& arguments, const McpCall&) {
  absl::StatusOr<std::string> name = CampaignArgument(context, arguments);
  if (!name.ok()) return name.status();
  absl::StatusOr<v1::Situation> situation = context.campaigns.GetSituation(*name);
  if (!situation.ok()) return situation.status();
  const v1::Campaign& campaign = situation->campaign();
  Json result = Json::object();
  if (!situation->has_best()) result["start"] = kNoStart;
  result["campaign"] = campaign.name();
  result["bundle"] = campaign.bundle();
  result["size"] = campaign.spec().goal().size();
  result["state"] = StateWord(campaign.state());
  AddText("message", campaign.message(), &result);
  AddText("device", campaign.device(), &result);
  result["takesProposals"] = !campaign.has_end_time() && campaign.spec().chooser().kind() != v1::CHOOSER_KIND_TREE;
  result["waitsForProposal"] = situation->waits();
  if (situation->has_deadline()) {
    const absl::Duration left = absl::FromUnixSeconds(situation->deadline().seconds()) - absl::Now();
    result["secondsLeftToPropose"] = Rounded(std::max(0.0, absl::ToDoubleSeconds(left)));
  }
  if (situation->has_best()) {
    result["best"] = BestForm(*situation);
    result["roof"] = RoofForm(*situation);
  } else {
    AddNumber("goalSpeedup", campaign.spec().goal().speedup(), &result);
  }
  Json findings = Json::array();
  for (const v1::Finding& finding : situation->findings()) findings.push_back(FindingForm(finding));
  result["findings"] = std::move(findings);
  AddTried(*situation, &result);
  Json untried = Json::array();
  for (const v1::RankedChange& ranked : situation->untried()) {
    if (untried.size() < kMostUntried) untried.push_back(RankedForm(ranked, situation->best().number()));
  }
  result["engineWouldTry"] = std::move(untried);
  Json proposals = Json::array();
  for (const v1::ChangeProposed& proposal : situation->proposals()) {
    Json each = {{"change", ChangeText(proposal.change())}, {"author", proposal.author()}};
    AddText("why", proposal.why(), &each);
    proposals.push_back(std::move(each));
  }
  result["proposals"] = std::move(proposals);
  SourceFiles editable;
  if (absl::StatusOr<v1::Bundle> bundle = BundleOf(context.campaigns, campaign); bundle.ok()) {
    result["contract"] = ContractForm(*bundle);
    absl::StatusOr<SourceFiles> files = FilesOf(context.campaigns, *bundle, situation->best());
    if (files.ok()) editable = *std::move(files);
  }
  result["edit"] = EditForm(*situation, editable);
  result["lessons"] = LessonForms(context, *situation);
  const v1::Budget& budget = campaign.spec().budget();
  Json left = Json::object();
  if (budget.iterations() > 0) left["iterations"] = std::max(0, budget.iterations() - campaign.counts().tried());
  if (budget.minutes() > 0) left["minutes"] = Rounded(std::max(0.0, budget.minutes() - campaign.minutes()));
  if (budget.dollars() > 0) left["dollars"] = Rounded(std::max(0.0, budget.dollars() - campaign.dollars()));
  result["budgetLeft"] = std::move(left);
  FitResult({"lessons", "failed", "kept", "proposals", "findings", "engineWouldTry"}, kMostResult, &result);
  return result;
}

}  // namespace pawl
