#include "worker/trial/further_build.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "kernels/hidden_sizes.h"

namespace pawl {
namespace {

// Builds side by side while calls are timed: the host must be quick enough to queue these.
int BesideTimedCalls() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 4, 2, 4); }

}  // namespace

FurtherBuild::FurtherBuild(GpuDevice& device, const v1::Bundle& bundle, const v1::Bundle* start,
                           const BuiltVariant& candidate, const std::vector<SizeWeight>& timed)
    : hidden_(MoreHiddenSizes(bundle, SecretSeed())),
      again_(AllSizes(bundle)),
      few_(std::make_shared<FewAtATime>(device.builder(), BesideTimedCalls())) {
  const auto add = [this](v1::Size size) {
    const auto same = [&](const v1::Size& other) { return other.name() == size.name(); };
    if (std::none_of(beside_.begin(), beside_.end(), same)) beside_.push_back(std::move(size));
  };
  std::vector<v1::Size> goals;
  for (const SizeWeight& each : timed) {
    v1::Size& goal = goals.emplace_back();
    goal.set_name(each.size);
    *goal.mutable_values() = candidate.Find(each.size)->plan.sizes();
  }
  for (v1::Size& mixed : MixedSizes(bundle, goals, SecretSeed())) add(std::move(mixed));
  for (const v1::Size& goal : goals) {
    for (const auto draw : {SizeBeside, SizeBetween}) {
      if (std::optional<v1::Size> size = draw(bundle, goal, SecretSeed())) add(*std::move(size));
    }
  }
  const auto build = [&](std::vector<v1::Size> sizes) {
    const Stopped stopped = [stopped = device.stopped(), abandoned = abandoned_] {
      return *abandoned || (stopped && stopped());
    };
    return std::async(std::launch::async,
                      [&device, &bundle, start, &candidate, few = few_, stopped, sizes = std::move(sizes)] {
                        absl::StatusOr<BuiltVariant> built =
                            BuildVariant(*few, bundle, candidate.variant, sizes, device.gpu(), stopped, start);
                        if (!built.ok() || built->failure) return built;
                        // One that does not build is for those to judge that need it.
                        for (const BuiltSize& at : built->sizes)
                          BuildReferenceAhead(device, bundle, at.plan, stopped).IgnoreError();
                        return built;
                      });
  };
  std::vector<v1::Size> sizes = hidden_;
  sizes.insert(sizes.end(), again_.all.begin(), again_.all.end());
  built_ = build(std::move(sizes));
  if (!beside_.empty()) built_beside_ = build(beside_);
}

}  // namespace pawl
