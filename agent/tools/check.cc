// `check`: what can be said about a bundle before anything is measured.
#include "absl/strings/str_cat.h"
#include "agent/tools/forms.h"
#include "agent/tools/tool.h"
#include "report/words.h"

namespace pawl {
namespace {

std::string DimText(const v1::Dim3& dim) { return absl::StrCat(dim.x(), " x ", dim.y(), " x ", dim.z()); }

Json GpuForm(const v1::CheckGpu& gpu) {
  Json form = {{"name", gpu.name()}, {"canRun", gpu.can_run()}};
  form["build"] = EnumWords(v1::CheckBuild_Name(gpu.build()), "CHECK_BUILD_");
  Json failures = Json::array();
  for (const v1::Failure& failure : gpu.failures()) {
    failures.push_back(absl::StrCat(StageWord(failure.stage()), failure.size().empty() ? "" : " at ", failure.size(),
                                    ": ", failure.message().substr(0, 3000)));
  }
  if (!failures.empty()) form["failures"] = std::move(failures);
  if (gpu.too_large() > 0) form["variantsTooLarge"] = gpu.too_large();
  return form;
}

}  // namespace

absl::StatusOr<Json> CheckTool(const ToolContext& context, const Json& arguments, const McpCall&) {
  absl::StatusOr<BundleSource> source = BundleArgument(arguments);
  if (!source.ok()) return source.status();
  absl::StatusOr<v1::CheckReport> report = context.bundles.Check(*source, TextAt(arguments, "gpu"));
  if (!report.ok()) return report.status();
  Json problems = Json::array();
  for (const v1::CheckProblem& problem : report->problems()) {
    problems.push_back(absl::StrCat(problem.file(), problem.line() > 0 ? absl::StrCat(":", problem.line()) : "", ": ",
                                    problem.message()));
  }
  Json result = {{"ok", report->ok()}, {"problems", std::move(problems)}};
  Json warnings = Json::array();
  for (const std::string& warning : report->warnings()) warnings.push_back(warning);
  result["warnings"] = std::move(warnings);
  AddText("bundle", report->bundle(), &result);
  if (report->space() > 0) result["variants"] = {{"all", report->space()}, {"allowed", report->allowed()}};
  Json launches = Json::array();
  for (const v1::CheckSize& size : report->sizes()) {
    for (const v1::PlanLaunch& launch : size.launches()) {
      launches.push_back(absl::StrCat(size.name(), ": ", launch.entry(), " grid ", DimText(launch.grid()), ", block ",
                                      DimText(launch.block()), ", shared ", launch.shared_bytes(), " bytes"));
    }
  }
  if (!launches.empty()) result["launches"] = std::move(launches);
  Json gpus = Json::array();
  for (const v1::CheckGpu& gpu : report->gpus()) gpus.push_back(GpuForm(gpu));
  if (!gpus.empty()) result["gpus"] = std::move(gpus);
  AddText("compiler", report->compiler(), &result);
  if (report->has_run()) {
    result["run"] = {{"gpu", report->run().gpu()}, {"passed", !report->run().has_failure()}};
    AddText("failure", report->run().failure().message(), &result["run"]);
  }
  FitResult({"problems", "launches", "gpus", "warnings"}, kMostResult, &result);
  return result;
}

}  // namespace pawl
