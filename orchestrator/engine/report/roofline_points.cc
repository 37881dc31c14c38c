#include <algorithm>

#include "kernels/plan.h"
#include "orchestrator/engine/report/report_parts.h"
#include "orchestrator/engine/search/chooser.h"
#include "profiles/gpus.h"

namespace pawl {
namespace {

// Of all launches of a call, as the work is; 0: not known of one of them.
double DramBytes(const v1::Evidence* evidence) {
  double sum = 0;
  if (evidence == nullptr) return 0;
  for (const v1::LaunchEvidence& launch : evidence->launches()) {
    const auto bytes = launch.metrics().find("dram_bytes");
    if (bytes == launch.metrics().end()) return 0;
    sum += bytes->second;
  }
  return sum;
}

// A variant that was timed and whose work is known.
struct Timed {
  const v1::Iteration* iteration;
  double flops;
  double counted;    // bytes, by ncu at the DRAM; 0: not known
  double must_move;  // bytes, by the bundle's [work]; 0: not known
};

std::vector<Timed> TimedOf(const CampaignState& campaign, const std::vector<const v1::Iteration*>& iterations,
                           const v1::Size& size) {
  std::vector<Timed> timed;
  for (const v1::Iteration* iteration : iterations) {
    const absl::StatusOr<v1::Plan> plan =
        campaign.PlanOf(VariantOf(*iteration), campaign.SourceIdOf(iteration->number()), size, campaign.gpu());
    if (!plan.ok() || !(plan->flops() > 0) || !(iteration->time_us() > 0)) continue;
    timed.push_back({iteration, plan->flops(), DramBytes(campaign.EvidenceOf(iteration->number())), plan->bytes()});
  }
  return timed;
}

// Points of one chart count traffic the same way, or their places could not be compared: by ncu's count where every
// variant has one, otherwise by the bundle's [work]. Where a bundle does not say, those without a count are left out.
void AddPoints(const std::vector<Timed>& timed, v1::Roofline* roofline) {
  const bool all = std::all_of(timed.begin(), timed.end(), [](const Timed& one) { return one.counted > 0; });
  const bool declared = std::any_of(timed.begin(), timed.end(), [](const Timed& one) { return one.must_move > 0; });
  const bool counted = all || !declared;
  for (const Timed& one : timed) {
    const double bytes = counted ? one.counted : one.must_move;
    if (!(bytes > 0)) continue;
    v1::RooflinePoint& point = *roofline->add_points();
    point.set_iteration(one.iteration->number());
    point.set_intensity(one.flops / bytes);
    point.set_gflop_s(one.flops / one.iteration->time_us() / 1e3);
    point.set_counted(counted);
  }
}

}  // namespace

std::optional<v1::Roofline> RooflineOf(const CampaignState& campaign) {
  const v1::Bundle& bundle = campaign.bundle();
  const auto size = std::find_if(bundle.sizes().begin(), bundle.sizes().end(), [&](const v1::Size& one) {
    return one.name() == campaign.summary().spec().goal().size();
  });
  if (size == bundle.sizes().end()) return std::nullopt;
  v1::Roofline roofline;
  roofline.set_bandwidth_gb_s(campaign.copy_gb_s());
  if (const GpuSpec* gpu = FindGpu(campaign.gpu().name())) {
    roofline.set_peak_gflop_s(1e3 * (bundle.work_on_tensor_cores() ? gpu->fp16_tensor_tflops : gpu->fp32_tflops));
    roofline.set_peak(bundle.work_on_tensor_cores() ? "tensor fp16" : "fp32");
  }
  std::vector<const v1::Iteration*> kept;
  for (const v1::Iteration& iteration : campaign.iterations()) {
    if (iteration.verdict() == v1::KEPT && iteration.number() != campaign.best()->number()) kept.push_back(&iteration);
  }
  kept.push_back(campaign.best());
  AddPoints(TimedOf(campaign, kept, *size), &roofline);
  // Work without arithmetic has no points, and is held to the bandwidth alone.
  if (roofline.points().empty() && !(roofline.bandwidth_gb_s() > 0)) return std::nullopt;
  return roofline;
}

}  // namespace pawl
