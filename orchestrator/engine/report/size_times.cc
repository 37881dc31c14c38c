#include "orchestrator/engine/report/size_times.h"

#include "kernels/plan.h"
#include "kernels/space.h"
#include "orchestrator/engine/search/chooser.h"

namespace pawl {
namespace {

// 0: it can't be planned.
int64_t MemoryOf(const v1::Variant& variant, const v1::Size& size, const v1::GpuInfo& gpu, Planner* planner) {
  const absl::StatusOr<v1::Plan> plan = planner->MakePlan(variant, size, gpu);
  if (!plan.ok()) return 0;
  int64_t bytes = 0;
  for (const v1::PlanTensor& tensor : plan->tensors()) bytes += tensor.elements() * ElementBytes(tensor.type());
  return bytes;
}

// What a worker measured at this size, of the variant that is the best now.
const v1::SizeTime* MeasuredAt(const v1::Campaign& summary, const std::string& size) {
  if (!summary.has_best() || summary.total_gain().iteration() != summary.best()) return nullptr;
  for (const v1::SizeTime& measured : summary.total_gain().sizes()) {
    if (measured.size() == size) return &measured;
  }
  return nullptr;
}

}  // namespace

std::vector<v1::SizeTime> SizeTimes(const CampaignState& campaign) {
  const v1::Campaign& summary = campaign.summary();
  const bool warm = campaign.bundle().timing() != v1::TIMING_MODE_COLD;  // as baselines are timed
  Planner planner(campaign.bundle());
  std::vector<v1::SizeTime> times;
  for (const v1::Size& size : campaign.bundle().sizes()) {
    v1::SizeTime& time = times.emplace_back();
    if (const v1::SizeTime* measured = MeasuredAt(summary, size.name())) {
      time = *measured;
    } else if (size.name() == summary.spec().goal().size()) {
      time.set_start_us(summary.start_us());
      time.set_best_us(summary.best_us());
    }
    time.set_size(size.name());
    for (const v1::BaselineTime& baseline : campaign.baselines()) {
      if (warm && baseline.size() == size.name()) time.set_baseline_us(baseline.graph_us());
    }
    if (time.start_bytes() == 0) {
      time.set_start_bytes(MemoryOf(StartVariant(campaign.bundle()), size, campaign.gpu(), &planner));
    }
    if (time.best_bytes() == 0 && campaign.best() != nullptr) {
      time.set_best_bytes(MemoryOf(VariantOf(*campaign.best()), size, campaign.gpu(), &planner));
    }
  }
  return times;
}

}  // namespace pawl
