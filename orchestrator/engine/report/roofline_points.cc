#include "orchestrator/engine/report/roofline_points.h"

#include <algorithm>

#include "kernels/plan.h"
#include "orchestrator/engine/search/chooser.h"
#include "profiles/diagnosis.h"
#include "profiles/gpus.h"

namespace pawl {
namespace {

double DramBytes(const v1::Evidence* evidence) {
  const v1::LaunchEvidence* launch = evidence == nullptr ? nullptr : LongestLaunch(*evidence);
  if (launch == nullptr) return 0;
  const auto bytes = launch->metrics().find("dram_bytes");
  return bytes == launch->metrics().end() ? 0 : bytes->second;
}

// Nothing: no time, no work, or no traffic that is known.
std::optional<v1::RooflinePoint> PointOf(const CampaignState& campaign, const v1::Iteration& iteration,
                                         const v1::Size& size, Planner* planner) {
  const absl::StatusOr<v1::Plan> plan = planner->MakePlan(VariantOf(iteration), size, campaign.gpu());
  if (!plan.ok() || !(plan->flops() > 0) || !(iteration.time_us() > 0)) return std::nullopt;
  const double counted = DramBytes(campaign.EvidenceOf(iteration.number()));
  const double bytes = counted > 0 ? counted : plan->bytes();
  if (!(bytes > 0)) return std::nullopt;
  v1::RooflinePoint point;
  point.set_iteration(iteration.number());
  point.set_intensity(plan->flops() / bytes);
  point.set_gflop_s(plan->flops() / iteration.time_us() / 1e3);
  point.set_counted(counted > 0);
  return point;
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
  Planner planner(bundle);
  std::vector<const v1::Iteration*> kept;
  for (const v1::Iteration& iteration : campaign.iterations()) {
    if (iteration.verdict() == v1::KEPT && iteration.number() != campaign.best()->number()) kept.push_back(&iteration);
  }
  kept.push_back(campaign.best());
  for (const v1::Iteration* iteration : kept) {
    if (std::optional<v1::RooflinePoint> point = PointOf(campaign, *iteration, *size, &planner)) {
      *roofline.add_points() = *std::move(point);
    }
  }
  // Work without arithmetic has no points, and is held to the bandwidth alone.
  if (roofline.points().empty() && !(roofline.bandwidth_gb_s() > 0)) return std::nullopt;
  return roofline;
}

}  // namespace pawl
