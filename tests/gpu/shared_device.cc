#include "tests/gpu/shared_device.h"

#include <cstdio>

#include "orchestrator/engine/verdict/seat.h"

namespace pawl {
namespace {

class Nobody : public TrialObserver {
 public:
  void Report(v1::Stage, int, int, const std::string&) override {}
  bool stopped() const override { return false; }
};

absl::StatusOr<v1::TrialResult> Run(const v1::Bundle& bundle, const v1::Trial& trial) {
  Nobody nobody;
  absl::StatusOr<std::unique_ptr<PreparedTrial>> prepared =
      SharedDevice()->Prepare(trial, std::make_shared<const v1::Bundle>(bundle), nobody);
  if (!prepared.ok()) return prepared.status();
  absl::StatusOr<TrialOutcome> outcome = SharedDevice()->Run(**prepared, nobody);
  if (!outcome.ok()) return outcome.status();
  return std::move(outcome->result);
}

}  // namespace

CudaTrialDevice* SharedDevice() {
  static const std::unique_ptr<CudaTrialDevice> device = [] {
    absl::StatusOr<std::unique_ptr<CudaTrialDevice>> opened = CudaTrialDevice::Open({.builders = 4});
    if (!opened.ok()) fprintf(stderr, "no GPU: %s\n", std::string(opened.status().message()).c_str());
    return opened.ok() ? *std::move(opened) : nullptr;
  }();
  return device.get();
}

absl::StatusOr<v1::TrialResult> RunAlone(const v1::Bundle& bundle, const v1::Variant& variant) {
  v1::Trial trial;
  *trial.mutable_variant() = variant;
  trial.set_size(bundle.goal().size());
  return Run(bundle, trial);
}

absl::StatusOr<v1::TrialResult> RunPlan(const v1::Bundle& bundle, const v1::TrialPlanned& planned,
                                        const CampaignState& campaign) {
  v1::Trial trial;
  trial.set_purpose(planned.purpose());
  *trial.mutable_variant() = planned.variant();
  if (campaign.SourceIdOf(planned.iteration()) > 0) trial.set_patched_source(campaign.SourceOf(planned.iteration()));
  if (planned.has_parent()) {
    *trial.mutable_parent() = VariantOf(*campaign.Find(planned.parent()));
    if (campaign.SourceIdOf(planned.parent()) > 0) trial.set_parent_patched_source(campaign.SourceOf(planned.parent()));
  }
  for (const int number : planned.unsanitized()) {
    v1::UnsanitizedVariant& kept = *trial.add_unsanitized();
    kept.set_iteration(number);
    *kept.mutable_variant() = VariantOf(*campaign.Find(number));
    if (campaign.SourceIdOf(number) > 0) kept.set_patched_source(campaign.SourceOf(number));
  }
  AddWitness(campaign, planned, &trial);
  *trial.mutable_noise() = planned.noise();
  trial.set_size(bundle.goal().size());
  return Run(bundle, trial);
}

absl::StatusOr<v1::TrialResult> RunSanitizer(const v1::Bundle& bundle, const std::vector<v1::Variant>& kept) {
  v1::Trial trial;
  trial.set_purpose(v1::TRIAL_PURPOSE_SANITIZE);
  *trial.mutable_variant() = kept.front();
  trial.set_size(bundle.goal().size());
  for (const v1::Variant& variant : kept) {
    v1::UnsanitizedVariant& one = *trial.add_unsanitized();
    one.set_iteration(trial.unsanitized_size() - 1);
    *one.mutable_variant() = variant;
  }
  return Run(bundle, trial);
}

absl::StatusOr<v1::TrialResult> RunAgainst(const v1::Bundle& bundle, const v1::Variant& variant,
                                           const v1::Variant& parent) {
  v1::Trial trial;
  trial.set_purpose(v1::TRIAL_PURPOSE_ITERATION);
  *trial.mutable_variant() = variant;
  *trial.mutable_parent() = parent;
  trial.set_size(bundle.goal().size());
  return Run(bundle, trial);
}

absl::StatusOr<v1::TrialResult> RunAgainst(const v1::Bundle& bundle, const ImplementationState& candidate,
                                           const ImplementationState& parent) {
  v1::Trial trial;
  *trial.mutable_variant() = candidate.variant;
  trial.set_patched_source(candidate.text);
  *trial.mutable_parent() = parent.variant;
  trial.set_parent_patched_source(parent.text);
  trial.set_size(bundle.goal().size());
  return Run(bundle, trial);
}

}  // namespace pawl
