// What makes a submission a campaign: its bundle is sound, its spec complete.
#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash/hash.h"
#include "base/names/resource_name.h"
#include "base/names/utf8.h"
#include "kernels/bundle_message.h"
#include "kernels/limits.h"
#include "kernels/space.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/orchestrator.h"

namespace pawl {
namespace {

constexpr int kDefaultIterations = 50;
constexpr double kDefaultMinutes = 60;
constexpr double kDefaultWait = 300;  // s, for a proposal

// The sizes that a submission asks for instead of the bundle's, and their weights.
absl::Status CheckGoalSizes(const v1::Bundle& bundle, const v1::Goal& goal) {
  double sum = 0;
  for (const auto& entry : goal.sizes()) {
    const std::string& name = entry.first;
    const double weight = entry.second;
    const bool known = std::any_of(bundle.sizes().begin(), bundle.sizes().end(),
                                   [&](const v1::Size& size) { return size.name() == name; });
    if (!known) return BadField("spec.goal.sizes", absl::StrCat(bundle.name(), " has no size ", Shortened(name, 80)));
    if (!(weight > 0) || !std::isfinite(weight)) {
      return BadField("spec.goal.sizes", absl::StrCat("the weight of ", name, " is ", weight, "; expected above 0"));
    }
    sum += weight;
  }
  if (goal.portfolio() < 0 || goal.portfolio() > kMaxPortfolio) {
    return BadField("spec.goal.portfolio", absl::StrCat("expected 0 to ", kMaxPortfolio));
  }
  if (goal.portfolio() > 1 && goal.sizes_size() < 2) {
    return BadField("spec.goal.portfolio", "expected with several spec.goal.sizes only: one size needs one variant");
  }
  if (goal.sizes_size() < 2 && goal.worst() != 0) {
    return BadField("spec.goal.worst", "expected with several spec.goal.sizes only: one size can't lose");
  }
  if (goal.sizes().empty()) return absl::OkStatus();
  if (!(std::fabs(sum - 1) <= kGoalWeights)) {
    return BadField("spec.goal.sizes", absl::StrCat("the weights have the sum ", sum, "; expected 1"));
  }
  if (!goal.sizes().contains(goal.size())) return BadField("spec.goal.size", "expected one of spec.goal.sizes");
  if (!(goal.worst() >= 0 && goal.worst() <= 1)) return BadField("spec.goal.worst", "expected 0 to 1");
  return absl::OkStatus();
}

// The bundle's goal, where the submission leaves it open.
void CompleteGoal(const v1::Bundle& bundle, v1::Goal* goal) {
  if (goal->size().empty() && goal->sizes().empty()) {
    *goal->mutable_sizes() = bundle.goal().sizes();
    if (goal->worst() == 0) goal->set_worst(bundle.goal().worst());
    if (goal->portfolio() == 0) goal->set_portfolio(bundle.goal().portfolio());
    goal->set_size(bundle.goal().size());
  }
  if (goal->size().empty()) {  // the heaviest stands for all; of equal ones the first of the ladder
    double most = 0;
    for (const v1::Size& size : bundle.sizes()) {
      const auto found = goal->sizes().find(size.name());
      if (found == goal->sizes().end() || !(found->second > most)) continue;
      most = found->second;
      goal->set_size(size.name());
    }
  }
  if (goal->speedup() == 0) goal->set_speedup(bundle.goal().speedup());
}

absl::StatusOr<v1::CampaignSpec> CompleteSpec(const v1::Bundle& bundle, v1::CampaignSpec spec, const Gates& gates) {
  spec.DiscardUnknownFields();  // which every list of campaigns would carry
  v1::Goal& goal = *spec.mutable_goal();
  CompleteGoal(bundle, &goal);
  if (goal.speedup() == 0) goal.set_speedup(gates.tiers().target);
  std::vector<std::string> sizes;
  for (const v1::Size& size : bundle.sizes()) sizes.push_back(size.name());
  if (std::find(sizes.begin(), sizes.end(), goal.size()) == sizes.end()) {
    return BadField("spec.goal.size",
                    absl::StrCat(bundle.name(), " has no size ", goal.size(), "; it has ", absl::StrJoin(sizes, ", ")));
  }
  if (absl::Status status = CheckGoalSizes(bundle, goal); !status.ok()) return status;
  if (absl::Status status = CheckText("spec.gpu", spec.gpu()); !status.ok()) return status;
  auto sensible = [](double value) { return std::isfinite(value) && value >= 0; };
  if (!(goal.speedup() > 0) || !std::isfinite(goal.speedup())) return BadField("spec.goal.speedup", "expected above 0");
  v1::Budget& budget = *spec.mutable_budget();
  if (budget.iterations() < 0) return BadField("spec.budget.iterations", "expected 0 or more");
  if (!sensible(budget.minutes())) return BadField("spec.budget.minutes", "expected 0 or more");
  if (!sensible(budget.dollars())) return BadField("spec.budget.dollars", "expected 0 or more");
  if (!sensible(budget.least_gain()) || budget.least_gain() >= 1) {
    return BadField("spec.budget.least_gain", "expected 0 or more, and less than 1");
  }
  if (budget.reverts_in_a_row() < 0) return BadField("spec.budget.reverts_in_a_row", "expected 0 or more");
  if (!sensible(spec.keep().min_gain()) || spec.keep().min_gain() > 1) {
    return BadField("spec.keep.min_gain", "expected 0 to 1");
  }
  if (spec.keep().min_gain() == 0) spec.mutable_keep()->set_min_gain(gates.Get(GateKind::kMinGain).threshold);
  if (!sensible(spec.keep().floor()) || spec.keep().floor() > 1) return BadField("spec.keep.floor", "expected 0 to 1");
  if (spec.keep().floor() == 0) spec.mutable_keep()->set_floor(gates.Get(GateKind::kRooflineFloor).threshold);
  if (!sensible(spec.expected_baseline_us())) return BadField("spec.expected_baseline_us", "expected 0 or more");
  if (spec.priority() < -kMaxPriority || spec.priority() > kMaxPriority) {
    return BadField("spec.priority", absl::StrCat("expected ", -kMaxPriority, " to ", kMaxPriority));
  }
  v1::ChooserSettings& chooser = *spec.mutable_chooser();
  if (!v1::ChooserKind_IsValid(chooser.kind())) return BadField("spec.chooser.kind", "expected one of ChooserKind");
  if (!v1::NoProposal_IsValid(chooser.no_proposal())) {
    return BadField("spec.chooser.no_proposal", "expected one of NoProposal");
  }
  if (!sensible(chooser.tuning_share()) || chooser.tuning_share() > 1) {
    return BadField("spec.chooser.tuning_share", "expected 0 to 1");
  }
  if (!sensible(chooser.wait_seconds())) return BadField("spec.chooser.wait_seconds", "expected 0 or more");
  if (bundle.variables().empty()) {
    // There is nothing that Pawl could choose.
    if (chooser.kind() == v1::CHOOSER_KIND_TREE) {
      return BadField("spec.chooser.kind", absl::StrCat(bundle.name(),
                                                        " has no variables, so that only proposals can change it; "
                                                        "expected outside or both"));
    }
    if (chooser.kind() != v1::CHOOSER_KIND_MIXED) chooser.set_kind(v1::CHOOSER_KIND_OUTSIDE);
    if (chooser.no_proposal() == v1::NO_PROPOSAL_UNSPECIFIED) chooser.set_no_proposal(v1::NO_PROPOSAL_PAUSE);
  }
  if (chooser.kind() == v1::CHOOSER_KIND_UNSPECIFIED) chooser.set_kind(v1::CHOOSER_KIND_BOTH);
  if (chooser.no_proposal() == v1::NO_PROPOSAL_UNSPECIFIED) chooser.set_no_proposal(v1::NO_PROPOSAL_TREE);
  if (chooser.wait_seconds() == 0) chooser.set_wait_seconds(kDefaultWait);
  // Who gives a time or a cost wants all of it used. A cost alone ends nothing where the GPU has no price, the minutes
  // do.
  const bool limited = budget.minutes() > 0 || budget.dollars() > 0;
  if (budget.iterations() == 0 && !limited) budget.set_iterations(kDefaultIterations);
  if (budget.minutes() == 0) budget.set_minutes(kDefaultMinutes);
  return spec;
}

// Both have one size, whichever, or the same several.
bool SameObjective(const v1::Goal& a, const v1::Goal& b) {
  const std::map<std::string, double> left(a.sizes().begin(), a.sizes().end());
  return left == std::map<std::string, double>(b.sizes().begin(), b.sizes().end()) && a.worst() == b.worst();
}

}  // namespace

absl::StatusOr<v1::Campaign> Orchestrator::Submit(const v1::SubmitCampaignRequest& request) {
  if (request.request_id().size() > 64) return BadField("request_id", "expected at most 64 characters");
  if (absl::Status status = CheckText("author", request.author()); !status.ok()) return status;
  std::string bytes = BundleBytes(request.bundle());
  std::string hash = Sha256(bytes);
  // What an unfinished campaign has was sound when it was submitted, and looking for mistakes takes long.
  const std::vector<std::string> problems =
      bundles_.Find(hash) != nullptr ? std::vector<std::string>() : BundleProblems(request.bundle());
  if (!problems.empty()) {
    v1::ErrorDetail detail;
    detail.set_field("bundle");
    detail.set_fix("pawl check BUNDLE shows where");
    for (const std::string& problem : problems) detail.add_problems(problem);
    return Error(absl::StatusCode::kInvalidArgument,
                 absl::StrCat("the bundle has ", problems.size(), " mistakes: ", absl::StrJoin(problems, "; ")),
                 detail);
  }
  absl::StatusOr<v1::CampaignSpec> spec = CompleteSpec(request.bundle(), request.spec(), options_.profiles->gates);
  if (!spec.ok()) return spec.status();
  // Workers read the objective in the bundle.
  v1::Bundle bundle = request.bundle();
  if (!SameObjective(bundle.goal(), spec->goal())) {
    *bundle.mutable_goal()->mutable_sizes() = spec->goal().sizes();
    bundle.mutable_goal()->set_size(spec->goal().size());
    bundle.mutable_goal()->set_worst(spec->goal().worst());
    bytes = BundleBytes(bundle);
    hash = Sha256(bytes);
  }
  v1::Event event;
  v1::CampaignSubmitted& submitted = *event.mutable_submitted();
  *submitted.mutable_spec() = *std::move(spec);
  submitted.set_bundle(request.bundle().name());
  submitted.set_bundle_hash(hash);
  submitted.set_space_hash(BundleHash(request.bundle()));
  submitted.set_author(request.author());
  submitted.set_request_id(request.request_id());

  int64_t number = 0;
  {
    Turn turn(&mutex_);
    if (absl::Status status = Serving(); !status.ok()) return status;
    if (!state_.leasing) return TryLater("the orchestrator shuts down", 1);
    if (!request.request_id().empty()) {
      absl::StatusOr<std::optional<v1::Campaign>> before = store_.FindRequest(request.request_id());
      if (!before.ok()) return before.status();
      if (*before) return **before;
    }
    if (static_cast<int>(state_.campaigns.size()) >= options_.max_unfinished) {
      v1::ErrorDetail detail;
      detail.set_retry_after_seconds(30);
      detail.set_fix("wait for campaigns to end, cancel some, or start more workers");
      return Error(absl::StatusCode::kResourceExhausted,
                   absl::StrCat("there are ", state_.campaigns.size(), " unfinished campaigns, and no more are taken"),
                   detail);
    }
    if (absl::Status status = CheckHeldBytes(state_, options_, request.author(), static_cast<int64_t>(bytes.size()),
                                             submitted.bundle_hash());
        !status.ok()) {
      return status;
    }
    *submitted.mutable_patterns() = state_.patterns.Snapshot(request.bundle());
    Step step = Begin();
    number = state_.next_campaign++;
    step.writes.blobs.push_back({v1::Blob::BUNDLE, submitted.bundle_hash(), bytes});
    state_.campaigns[number] =
        std::make_shared<CampaignState>(CampaignName(number), bundles_.Put(submitted.bundle_hash(), bundle));
    committer_.Add(&step, state_.campaigns[number].get(), std::move(event));
    if (absl::Status status = Commit(&step, turn.deferred()); !status.ok()) return status;
  }
  absl::StatusOr<v1::Campaign> stored = Stored(number);
  absl::MutexLock lock(&mutex_);
  const auto made = state_.campaigns.find(number);
  if (stored.ok() && made != state_.campaigns.end()) scheduler_.SayWhatHoldsIt(*made->second, clock_(), &*stored);
  return stored;
}

}  // namespace pawl
