#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/sections.h"
#include "report/sentences.h"
#include "report/words.h"

namespace pawl {
namespace {

constexpr char kNotKnown[] = "-";

std::string OrNotKnown(const std::string& text) { return text.empty() ? kNotKnown : text; }

// "13.0" of 13000.
std::string CudaText(int version) {
  return version <= 0 ? kNotKnown : absl::StrFormat("%d.%d", version / 1000, version % 1000 / 10);
}

std::string MinutesText(double minutes) { return absl::StrCat(NumberText(minutes), " min"); }

// How many times as fast the final variant is; "-" where one of the two was not timed.
Cell RatioCell(double us, double best_us) {
  if (!(us > 0) || !(best_us > 0)) return {kNotKnown};
  return {SpeedupText(us / best_us), us < best_us ? Tone::kBad : Tone::kPlain};
}

// The variants that serve the sizes, where there are several.
void AddPortfolio(const v1::Campaign& campaign, Section* section) {
  if (!campaign.has_portfolio()) return;
  const v1::Portfolio& portfolio = campaign.portfolio();
  std::string text = absl::StrCat("Portfolio: ", RuleText(portfolio), ". Over the goal's sizes it is ",
                                  SpeedupText(portfolio.speedup_over_start()), " as fast as the start");
  if (portfolio.speedup_over_baseline() > 0) {
    absl::StrAppend(&text, " and ", SpeedupText(portfolio.speedup_over_baseline()), " as fast as the baseline");
  }
  section->blocks.push_back(Paragraph{absl::StrCat(text, ".")});
  Grid grid{.columns = {{"size"},
                        {"iteration", true},
                        {"start", true},
                        {"time", true},
                        {"baseline", true},
                        {"over the start", true},
                        {"over the baseline", true},
                        {"coverage", true}}};
  for (const v1::Portfolio::Pick& pick : portfolio.picks()) {
    grid.rows.push_back({{absl::StrCat(pick.size(), pick.hidden() ? " (check)" : "")},
                         {absl::StrCat(pick.iteration())},
                         {TimeText(pick.start_us())},
                         {TimeText(pick.time_us())},
                         {TimeText(pick.baseline_us())},
                         RatioCell(pick.start_us(), pick.time_us()),
                         RatioCell(pick.baseline_us(), pick.time_us()),
                         {absl::StrFormat("%.0f %%", 100 * pick.coverage())}});
  }
  section->blocks.push_back(std::move(grid));
  section->blocks.push_back(Paragraph{
      absl::StrCat("Coverage is the share of the fastest variant's speed at the size. At sizes marked as check "
                   "the rule was checked: no variant was chosen for them. ",
                   portfolio.note()),
      Tone::kDim});
}

// How well builds hid behind measurements; empty: nothing is known.
std::string OverlapText(const v1::Report& report) {
  std::vector<std::string> sentences;
  if (report.campaign().gpu_busy() > 0) {
    sentences.push_back(absl::StrCat("The GPU was busy for ", ShareText(report.campaign().gpu_busy()),
                                     " of the time (validate, measure, profile)."));
  }
  int built = 0, used = 0;
  for (const v1::Iteration& iteration : report.iterations()) {
    used += iteration.built_ahead();
    for (const v1::BesideTime& beside : iteration.beside()) built += beside.kind() == v1::BesideTime::BUILD_AHEAD;
  }
  if (built > 0) {
    sentences.push_back(absl::StrCat("Beside other trials ", built, built == 1 ? " variant was" : " variants were",
                                     " built ahead, of which ", used, used == 1 ? " was tried." : " were tried."));
  }
  return absl::StrJoin(sentences, " ");
}

}  // namespace

Section SizesSection(const v1::Report& report) {
  Section section{"sizes", "All sizes", {}};
  Grid grid{.columns = {{"size"},
                        {"start", true},
                        {"final", true},
                        {"baseline", true},
                        {"over the start", true},
                        {"over the baseline", true},
                        {"memory, start", true},
                        {"memory, final", true}}};
  const v1::Goal& goal = report.campaign().spec().goal();
  for (const v1::SizeTime& size : report.sizes()) {
    const auto weight = goal.sizes().find(size.size());
    const std::string part =
        goal.sizes_size() > 1 ? weight == goal.sizes().end() ? "" : absl::StrCat(" (", NumberText(weight->second), ")")
        : size.size() == goal.size() ? " (goal)"
                                     : "";
    grid.rows.push_back({{absl::StrCat(size.size(), part)},
                         {TimeText(size.start_us())},
                         {TimeText(size.best_us())},
                         {TimeText(size.baseline_us())},
                         RatioCell(size.start_us(), size.best_us()),
                         RatioCell(size.baseline_us(), size.best_us()),
                         {BytesText(size.start_bytes())},
                         {BytesText(size.best_bytes())}});
  }
  if (grid.rows.empty()) {
    section.blocks.push_back(Paragraph{"The bundle defines no sizes.", Tone::kDim});
    return section;
  }
  if (const std::string losses = LossesText(report.sizes()); !losses.empty()) {
    section.blocks.push_back(Paragraph{absl::StrCat("The final variant is slower at ", losses, "."), Tone::kBad});
  }
  section.blocks.push_back(std::move(grid));
  AddPortfolio(report.campaign(), &section);
  section.blocks.push_back(Paragraph{
      "A dash means that the size was not timed. Memory counts inputs, outputs and scratch buffers.", Tone::kDim});
  return section;
}

Section StagesSection(const v1::Report& report) {
  Section section{"stages", "Time by stage", {}};
  if (report.stages().empty()) {
    section.blocks.push_back(Paragraph{"No stage has run.", Tone::kDim});
    return section;
  }
  Grid grid{
      .columns = {
          {"stage"}, {"times", true}, {"planned", true}, {"actual", true}, {"actual, including the first", true}}};
  for (const v1::StagePlan& plan : report.stages()) {
    const bool planned = plan.times() > 1;
    grid.rows.push_back({{StageWord(plan.stage())},
                         {absl::StrCat(plan.times())},
                         {planned ? SecondsText(plan.planned_seconds()) : kNotKnown},
                         {planned ? SecondsText(plan.actual_seconds()) : kNotKnown},
                         {SecondsText(plan.total_seconds())}});
  }
  section.blocks.push_back(std::move(grid));
  if (const std::string text = OverlapText(report); !text.empty()) section.blocks.push_back(Paragraph{text});
  section.blocks.push_back(Paragraph{
      "The planned time of a stage is its average over the iterations before. The first has no plan.", Tone::kDim});
  return section;
}

Section CostSection(const v1::Report& report) {
  const v1::Campaign& campaign = report.campaign();
  const v1::Budget& budget = campaign.spec().budget();
  Section section{"cost", "Cost", {}};
  const auto of = [](const std::string& used, bool limited, const std::string& limit) {
    return limited ? absl::StrCat(used, " of ", limit) : used;
  };
  section.blocks.push_back(
      Facts{{{"money",
              {campaign.dollars() > 0 || budget.dollars() > 0
                   ? of(DollarsText(campaign.dollars()), budget.dollars() > 0, DollarsText(budget.dollars()))
                   : "none: this is a replay, or the GPU's price is unknown"}},
             {"GPU time of trials", {SecondsText(campaign.gpu_seconds())}},
             {"time", {of(MinutesText(campaign.minutes()), budget.minutes() > 0, MinutesText(budget.minutes()))}},
             {"iterations after the start",
              {budget.iterations() > 0 ? absl::StrCat("at most ", budget.iterations()) : "no limit"}}}});
  return section;
}

Section EnvironmentSection(const v1::Report& report) {
  const v1::Campaign& campaign = report.campaign();
  const v1::GpuInfo& gpu = report.gpu();
  const v1::Toolchain& tools = report.toolchain();
  Section section{"environment", "Environment", {}};
  Facts facts;
  const auto fact = [&](const char* name, const std::string& value) {
    facts.facts.push_back({name, {OrNotKnown(value)}});
  };
  fact("device", campaign.device());
  fact("GPU", gpu.name());
  if (gpu.compute_major() > 0) {
    fact("compute capability", absl::StrCat(gpu.compute_major(), ".", gpu.compute_minor()));
    fact("SMs", absl::StrCat(gpu.sm_count()));
    fact("GPU memory", BytesText(gpu.memory_bytes()));
    fact("driver", gpu.driver_version());
    fact("CUDA version of the driver", CudaText(gpu.driver_cuda_version()));
  }
  fact("NVRTC", tools.nvrtc());
  fact("nvcc", tools.nvcc());
  fact("ncu", tools.ncu());
  fact("compute-sanitizer", tools.compute_sanitizer());
  fact("PyTorch", tools.pytorch());
  fact("host", report.host());
  fact("bundle", campaign.bundle());
  fact("bundle hash", campaign.bundle_hash());
  fact("submitted", UtcText(campaign.create_time()));
  fact("ended", UtcText(campaign.end_time()));
  fact("Pawl", report.version());
  section.blocks.push_back(std::move(facts));
  return section;
}

}  // namespace pawl
