#include "orchestrator/engine/search/next_event.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/hash/hash.h"
#include "kernels/bundle_message.h"
#include "kernels/plan.h"
#include "kernels/read/implementation.h"
#include "kernels/space.h"
#include "kernels/variable_values.h"
#include "orchestrator/engine/search/portfolio.h"
#include "orchestrator/engine/search/single_change.h"
#include "profiles/gpus.h"
#include "profiles/roofline.h"

namespace pawl {
namespace {

// A recording may hold a sample of the space. After so many unrecorded variants in a row, the campaign ends.
constexpr int kMaxUntried = 150;
// A variant whose time is above the roofline's by no more than this share is at its roof.
constexpr double kRoofReach = 0.05;
constexpr double kDefaultTuningShare = 0.2;  // of the iterations,
constexpr int kIterationsToShare = 50;       // of so many where their number is not limited
// Expected improvement below which a campaign ends, where its budget does not say.
constexpr double kLeastGain = 0.001;
// compute-sanitizer takes about as long to start as for several variants, but what is built on a wrong one is lost.
constexpr size_t kMostUnsanitized = 4;
// Iterations before it runs over the start, however few were kept: all of them are lost with a wrong start.
constexpr size_t kMostBeforeStart = 6;
// In one trial: its request has the source of each.
constexpr int kMostAtOnce = 8;

v1::Event Ended(v1::CampaignState state, v1::StopReason reason, const std::string& message) {
  v1::Event event;
  event.mutable_ended()->set_state(state);
  event.mutable_ended()->set_reason(reason);
  event.mutable_ended()->set_message(message);
  return event;
}

v1::Event Paused(const std::string& reason) {
  v1::Event event;
  event.mutable_paused()->set_author("pawl");
  event.mutable_paused()->set_reason(reason);
  return event;
}

// The least time that the work of [work] takes on this GPU, by the best variant's launches; 0: unknown. A plan takes
// long to make, and this is asked before every choice.
double FloorUs(const CampaignState& campaign, const v1::Size& size, const GpuSpec& gpu) {
  const v1::Iteration& best = *campaign.best();
  const auto [known, is_new] = campaign.search_memo().floors_us.try_emplace({best.number(), size.name()});
  if (!is_new) return known->second;
  const v1::Bundle& bundle = campaign.bundle();
  const absl::StatusOr<v1::Plan> plan =
      campaign.PlanOf(VariantOf(best), campaign.SourceIdOf(best.number()), size, campaign.gpu());
  if (plan.ok()) known->second = RooflineFloorUs(*plan, gpu, bundle.work_on_tensor_cores(), bundle.timing());
  return known->second;
}

// The best variant's time at a size of the goal, and the least that the work of [work] takes on this GPU; 0: unknown.
struct RoofTime {
  std::string at;  // " at main"; empty: of the one size
  double best_us = 0, least_us = 0;

  bool known() const { return best_us > 0 && least_us > 0; }
  bool near() const { return known() && best_us >= least_us && best_us <= (1 + kRoofReach) * least_us; }
  // Within what is printed.
  bool below() const { return known() && best_us < least_us - 0.0005; }
};

std::vector<RoofTime> RoofTimes(const CampaignState& campaign) {
  const v1::Bundle& bundle = campaign.bundle();
  const v1::Iteration& best = *campaign.best();
  const GpuSpec* gpu = FindGpu(campaign.gpu().name());
  const bool several = HasSeveralSizes(campaign.summary().spec().goal());
  std::vector<RoofTime> times;
  for (const SizeWeight& at : campaign.goal_sizes()) {
    RoofTime& time = times.emplace_back(RoofTime{several ? absl::StrCat(" at ", at.size) : ""});
    const auto size = std::find_if(bundle.sizes().begin(), bundle.sizes().end(),
                                   [&](const v1::Size& one) { return one.name() == at.size; });
    const auto timed = std::find_if(best.sizes().begin(), best.sizes().end(),
                                    [&](const v1::SizeComparison& one) { return one.size() == at.size; });
    if (gpu == nullptr || size == bundle.sizes().end() || (several && timed == best.sizes().end())) continue;
    time.least_us = FloorUs(campaign, *size, *gpu);
    time.best_us = several ? timed->time_us() : campaign.summary().best_us();
  }
  return times;
}

// "2.100 us, within 5 % of the least that the work of [work] takes on this GPU (2.050 us)", of every size of the goal;
// empty: the best variant is not that near at one of them, or the work or the GPU is unknown. A busy unit proves
// nothing: it may do more than the work needs.
std::string AtRoof(const CampaignState& campaign) {
  const std::vector<RoofTime> times = RoofTimes(campaign);
  if (!std::all_of(times.begin(), times.end(), [](const RoofTime& time) { return time.near(); })) return "";
  return absl::StrJoin(times, "; ", [](std::string* out, const RoofTime& time) {
    absl::StrAppendFormat(out,
                          "%.3f us%s, within %g %% of the least that the work of [work] takes on this GPU (%.3f us)",
                          time.best_us, time.at, 100 * kRoofReach, time.least_us);
  });
}

// "2.100 us is below the least that ...": what no kernel can do. Empty: it is nowhere.
std::string BelowRoof(const CampaignState& campaign) {
  std::vector<std::string> texts;
  for (const RoofTime& time : RoofTimes(campaign)) {
    if (!time.below()) continue;
    texts.push_back(absl::StrFormat("%.3f us%s is below the least that the work of [work] takes on this GPU (%.3f us)",
                                    time.best_us, time.at, time.least_us));
  }
  if (texts.empty()) return "";
  return absl::StrCat(absl::StrJoin(texts, ", "), ": [work] counts more than is done, or the measurement is wrong");
}

// Limits of the GPU that the best variant has reached.
std::vector<std::string> Roofs(const CampaignState& campaign, const DecisionTree& tree) {
  std::vector<std::string> roofs;
  const std::string at_roof = AtRoof(campaign);
  if (at_roof.empty()) return roofs;
  roofs.push_back(at_roof);
  for (const v1::Finding& finding : tree.Diagnose(campaign.best_evidence(), campaign.gpu())) {
    if (finding.roof()) roofs.push_back(finding.text());
  }
  return roofs;
}

// Before the campaign ends with its best variant, that has to run under compute-sanitizer at large sizes, and to be
// measured against the start and beside the baseline.
bool Unproven(const CampaignState& campaign) {
  const v1::Campaign& summary = campaign.summary();
  const v1::TotalGain& total = summary.total_gain();
  const bool goes_on = campaign.final_totals() <= static_cast<int>(campaign.iterations().size());  // whatever they say
  return summary.best() > 0 && goes_on && (total.iteration() != summary.best() || total.interim());
}

// What a campaign may use of its budget until the end of this leg: of what was left at its beginning an equal share for
// it and each that may follow.
v1::Budget BudgetUntilLegEnds(const CampaignState& campaign) {
  v1::Budget budget = campaign.summary().spec().budget();
  const int legs = MostLegs(campaign.summary().spec().goal()) - campaign.leg();
  const auto share = [legs](double all, double used) { return used + (all - used) / legs; };
  if (legs < 2) return budget;
  // Where no leg would follow, this one has all of it. A leg whose best is the start or that of a leg before measures
  // no total of its own.
  const bool measured = campaign.summary().legs(campaign.leg()).has_total() || !Unproven(campaign);
  if (measured && !NextLeg(campaign)) return budget;
  if (budget.iterations() > 0) {
    budget.set_iterations(static_cast<int>(std::ceil(share(budget.iterations(), campaign.tried_before_leg()))));
  }
  if (budget.minutes() > 0) {
    budget.set_minutes(share(budget.minutes(), absl::ToDoubleMinutes(campaign.ran_before_leg())));
  }
  if (budget.dollars() > 0) budget.set_dollars(share(budget.dollars(), campaign.dollars_before_leg()));
  return budget;
}

std::optional<v1::Event> Stop(const CampaignState& campaign, const v1::Budget& budget, const Moment& now) {
  const v1::Campaign& summary = campaign.summary();
  auto finished = [](v1::StopReason reason, const std::string& message) {
    return Ended(v1::FINISHED, reason, message);
  };
  const double goal = summary.spec().goal().speedup();
  if (summary.speedup_over_baseline() >= goal) {
    return finished(v1::STOP_REASON_GOAL,
                    absl::StrFormat("goal reached: %.2fx %s speed (goal %gx)", summary.speedup_over_baseline(),
                                    summary.baseline_us() > 0 ? "the baseline's" : "the start's", goal));
  }
  if (budget.iterations() > 0 && summary.counts().tried() >= budget.iterations()) {
    return finished(v1::STOP_REASON_ITERATIONS, absl::StrCat("all ", budget.iterations(), " iterations are used up"));
  }
  if (budget.minutes() > 0 && campaign.Running(now) >= absl::Minutes(budget.minutes())) {
    return finished(v1::STOP_REASON_MINUTES, absl::StrFormat("all %g minutes are used up", budget.minutes()));
  }
  if (budget.dollars() > 0 && summary.dollars() >= budget.dollars()) {
    return finished(v1::STOP_REASON_DOLLARS, absl::StrFormat("all %.2f dollars are used up", budget.dollars()));
  }
  if (campaign.untried_in_a_row() >= kMaxUntried) {
    return finished(v1::STOP_REASON_SPACE, absl::StrCat("the recording has none of the last ", kMaxUntried,
                                                        " chosen changes: it has no more changes to try"));
  }
  if (budget.reverts_in_a_row() > 0 && campaign.reverts_in_a_row() >= budget.reverts_in_a_row()) {
    return finished(v1::STOP_REASON_REVERTS,
                    absl::StrCat("the last ", campaign.reverts_in_a_row(), " changes were not kept"));
  }
  return std::nullopt;
}

v1::ChooserKind KindOf(const CampaignState& campaign) {
  const v1::ChooserKind kind = campaign.summary().spec().chooser().kind();
  return kind == v1::CHOOSER_KIND_UNSPECIFIED ? v1::CHOOSER_KIND_BOTH : kind;
}

bool WaitsForProposals(const CampaignState& campaign) {
  const v1::ChooserKind kind = KindOf(campaign);
  return kind == v1::CHOOSER_KIND_OUTSIDE || kind == v1::CHOOSER_KIND_MIXED;
}

// The first proposal of a start is waited for without a limit: nothing runs, and no clock.
absl::Duration WaitLeft(const CampaignState& campaign, const Moment& now) {
  if (campaign.awaits_start() && campaign.iterations().empty()) return absl::InfiniteDuration();
  return absl::Seconds(campaign.summary().spec().chooser().wait_seconds()) - Between(campaign.idle_since(), now);
}

// Of a campaign whose edits come from others: whether Pawl has iterations left for the variables after the last edit
// that was kept.
bool HasTuningLeft(const CampaignState& campaign) {
  if (KindOf(campaign) != v1::CHOOSER_KIND_MIXED) return false;
  const v1::CampaignSpec& spec = campaign.summary().spec();
  const double share = spec.chooser().tuning_share() > 0 ? spec.chooser().tuning_share() : kDefaultTuningShare;
  const int iterations = spec.budget().iterations() > 0 ? spec.budget().iterations() : kIterationsToShare;
  const double allowed = std::ceil(share * iterations);
  // The number of the last kept edit. Before a start that was proposed, others may have been rejected.
  std::optional<int> since;
  int rejected_starts = 0;
  for (const v1::Iteration& iteration : campaign.iterations()) {
    if (!iteration.has_parent() && iteration.number() > 0) ++rejected_starts;
    if (iteration.verdict() != v1::KEPT || !iteration.change().has_source()) continue;
    since = iteration.number() > 0 ? iteration.number() : rejected_starts;
  }
  return since && campaign.next_iteration() - 1 - *since < allowed;
}

// One variable, or one edit, of a measured parent.
bool IsSingleChange(const CampaignState& campaign, const Choice& choice) {
  const v1::Iteration* parent = campaign.Find(choice.parent);
  if (parent == nullptr || !campaign.IsMeasured(*parent)) return false;
  // An edit is one named change, whatever it does to variables.
  if (!choice.patched_source.empty()) return choice.patched_source != campaign.SourceOf(choice.parent);
  return Differences(VariantOf(*parent), choice.variant) == 1;
}

// The oldest proposal; *dropped is set instead if it can't be tried from the best variant any more.
std::optional<Choice> FromProposals(const CampaignState& campaign, std::optional<v1::Event>* dropped) {
  if (campaign.proposals().empty()) return std::nullopt;
  const v1::ChangeProposed& proposed = campaign.proposals().front().proposed;
  ProposalRefusal refusal;
  v1::Change change = proposed.change();
  std::optional<Choice> choice;
  // An edit that was kept meanwhile may have put the word at another place.
  if (!change.to_word().empty()) change.clear_to();
  if (const absl::Status status = ReadWord(campaign.BundleAt(campaign.PatchBase()).variables(), &change); status.ok()) {
    choice = Proposed(campaign, change, &refusal, &campaign.proposals().front().patched);
  } else {
    refusal.why = std::string(status.message());
  }
  if (choice && !campaign.awaits_start() && !IsSingleChange(campaign, *choice)) {
    choice.reset();
    refusal.why = "it would not be a single change of the best variant";
  }
  if (!choice) {
    v1::ProposalDropped& event = *dropped->emplace().mutable_dropped();
    event.set_author(proposed.author());
    *event.mutable_change() = proposed.change();
    event.set_proposal(proposed.number());
    event.set_reason(refusal.why.empty()
                         ? absl::StrCat("this variant was already tried: iteration ", refusal.tried_before)
                         : refusal.why);
    return std::nullopt;
  }
  choice->author = proposed.author();
  choice->why = proposed.why();
  choice->proposal = proposed.number();
  return choice;
}

v1::Event Planned(const CampaignState& campaign, v1::TrialPurpose purpose, int iteration) {
  v1::Event event;
  event.mutable_planned()->set_trial(campaign.next_trial());
  event.mutable_planned()->set_purpose(purpose);
  event.mutable_planned()->set_iteration(iteration);
  return event;
}

v1::Event PlannedStart(const CampaignState& campaign) {
  v1::Event event = Planned(campaign, v1::TRIAL_PURPOSE_ITERATION, campaign.next_iteration());
  *event.mutable_planned()->mutable_variant() = StartVariant(campaign.bundle());
  event.mutable_planned()->set_author("pawl");
  event.mutable_planned()->set_why("the start variant is measured first");
  return event;
}

// The same of a contract alone, with the implementation that was proposed.
v1::Event PlannedStart(const CampaignState& campaign, Choice choice) {
  v1::Event event = Planned(campaign, v1::TRIAL_PURPOSE_ITERATION, 0);
  v1::TrialPlanned& planned = *event.mutable_planned();
  v1::Bundle bundle = campaign.bundle();
  // The choice was made of a text that could be read.
  SetImplementation(choice.patched_source, &bundle).IgnoreError();
  planned.set_bundle_hash(Sha256(BundleBytes(bundle)));
  *planned.mutable_variant() = std::move(choice.variant);
  *planned.mutable_change() = std::move(choice.change);
  planned.set_patched_source(std::move(choice.patched_source));
  planned.set_author(choice.author);
  planned.set_why(choice.why);
  planned.set_proposal(choice.proposal);
  return event;
}

// The best variant's speedup over the start is a product of steps.
bool Multiplied(const CampaignState& campaign) {
  const v1::Iteration& best = *campaign.best();
  return best.number() > 0 && IsProduct(best) && campaign.summary().total_gain().iteration() != best.number();
}

v1::Event PlannedTotal(const CampaignState& campaign, bool interim) {
  const v1::Iteration& best = *campaign.best();
  v1::Event event = Planned(campaign, v1::TRIAL_PURPOSE_TOTAL, best.number());
  event.mutable_planned()->set_parent(0);
  *event.mutable_planned()->mutable_noise() = campaign.NoiseFor(0);
  *event.mutable_planned()->mutable_variant() = VariantOf(best);
  event.mutable_planned()->set_author("pawl");
  event.mutable_planned()->set_why("the total speedup is measured against the start");
  event.mutable_planned()->set_interim(interim);
  const v1::Goal& goal = campaign.summary().spec().goal();
  if (interim || goal.portfolio() < 2) return event;
  for (v1::Size& size : SizesBetween(campaign.bundle(), goal)) *event.mutable_planned()->add_also() = std::move(size);
  return event;
}

// The oldest first: others were built on it.
v1::Event PlannedSanitizing(const CampaignState& campaign) {
  v1::Event event;
  for (const int number : campaign.unsanitized()) {
    const bool first = !event.has_planned();
    if (first) event = Planned(campaign, v1::TRIAL_PURPOSE_SANITIZE, number);
    v1::TrialPlanned& planned = *event.mutable_planned();
    if (first) *planned.mutable_variant() = VariantOf(*campaign.Find(number));
    planned.add_unsanitized(number);
    planned.set_author("pawl");
    planned.set_why("compute-sanitizer runs over what was kept without it");
    if (planned.unsanitized_size() == kMostAtOnce || campaign.sanitizes_alone()) break;
  }
  return event;
}

// The end of an expedition beside the best variant.
v1::Event PlannedEnd(const CampaignState& campaign, const v1::Iteration& end) {
  const v1::Iteration& best = *campaign.best();
  v1::Event event = Planned(campaign, v1::TRIAL_PURPOSE_END, end.number());
  event.mutable_planned()->set_parent(best.number());
  *event.mutable_planned()->mutable_noise() = campaign.NoiseFor(best.number());
  *event.mutable_planned()->mutable_variant() = VariantOf(end);
  event.mutable_planned()->set_expedition(true);
  event.mutable_planned()->set_author("pawl");
  event.mutable_planned()->set_why("the end of an expedition is compared with the best variant");
  return event;
}

// The proposal of the same change that waits; 0: there is none.
int WaitingProposal(const CampaignState& campaign, const v1::Change& change) {
  for (const CampaignState::Proposal& waiting : campaign.proposals()) {
    const v1::Change& proposed = waiting.proposed.change();
    const bool same = change.kind_case() == v1::Change::kVariable && proposed.kind_case() == change.kind_case() &&
                      proposed.variable() == change.variable() && proposed.to() == change.to();
    if (same) return waiting.proposed.number();
  }
  return 0;
}

v1::Event PlannedChoice(const CampaignState& campaign, Choice choice) {
  v1::Event event = Planned(campaign, v1::TRIAL_PURPOSE_ITERATION, campaign.next_iteration());
  v1::TrialPlanned& planned = *event.mutable_planned();
  planned.set_parent(choice.parent);
  planned.set_expedition(choice.parent != campaign.best()->number());
  *planned.mutable_noise() = campaign.NoiseFor(choice.parent);
  *planned.mutable_variant() = std::move(choice.variant);
  *planned.mutable_change() = std::move(choice.change);
  if (choice.finding) *planned.mutable_finding() = *std::move(choice.finding);
  if (choice.effect) *planned.mutable_effect() = *std::move(choice.effect);
  for (v1::Finding& finding : choice.findings) *planned.add_findings() = std::move(finding);
  if (choice.prediction) *planned.mutable_prediction() = *std::move(choice.prediction);
  if (choice.score) *planned.mutable_score() = *std::move(choice.score);
  NameWords(campaign.BundleAt(choice.parent), planned.mutable_change());
  for (v1::PassedOver& passed : choice.passed_over) {
    NameWords(campaign.BundleAt(choice.parent), passed.mutable_change());
    *planned.add_passed_over() = std::move(passed);
  }
  planned.set_patched_source(std::move(choice.patched_source));
  planned.set_author(choice.author);
  planned.set_why(choice.why);
  planned.set_proposal(choice.proposal > 0 ? choice.proposal : WaitingProposal(campaign, planned.change()));
  return event;
}

double LeastGain(const CampaignState& campaign) {
  const double asked = campaign.summary().spec().budget().least_gain();
  return asked > 0 ? asked : kLeastGain;
}

// The largest expected improvement of any change that is left; nothing: the choice was not ranked.
std::optional<Choice::Expected> MostExpected(const Choice& choice) {
  if (choice.most || !choice.score) return choice.most;
  return Choice::Expected{choice.change, choice.parent, choice.score->gain()};
}

v1::Event ExpectsTooLittle(const CampaignState& campaign, const Choice::Expected& most) {
  v1::Change change = most.change;
  NameWords(campaign.BundleAt(most.parent), &change);
  return Ended(
      v1::FINISHED, v1::STOP_REASON_GAIN,
      absl::StrFormat("no change is expected to gain %.3g %%: the most, %.2g %%, is expected of %s from %s to %s "
                      "(iteration %d)",
                      100 * LeastGain(campaign), 100 * std::expm1(most.gain), change.variable(), FromText(change),
                      ToText(change), most.parent));
}

// Once for all iterations that failed a gate whose action is to pause, and that no pause was for.
std::optional<v1::Event> PauseAtGate(const CampaignState& campaign) {
  const v1::Iteration* first = nullptr;
  std::vector<int> others;
  for (const v1::Iteration& iteration : campaign.iterations()) {
    if (PausingGate(iteration) == nullptr || campaign.PausedFor(iteration.number())) continue;
    if (first == nullptr) first = &iteration;
    if (first != &iteration) others.push_back(iteration.number());
  }
  if (first == nullptr) return std::nullopt;
  const v1::FailedGate& gate = *PausingGate(*first);
  const std::string more =
      others.empty() ? "" : absl::StrCat("; neither did iterations ", absl::StrJoin(others, ", "), " pass such a gate");
  v1::Event event = Paused(absl::StrCat("iteration ", first->number(), " did not pass the gate ", gate.gate(), ": ",
                                        gate.text(), more, "; pawl resume continues anyway"));
  event.mutable_paused()->set_iteration(first->number());
  return event;
}

// The next leg of a campaign for a portfolio, while its budget lasts.
std::optional<v1::Event> NextLegOf(const CampaignState& campaign, const v1::Event& end, const Moment& now) {
  const std::optional<v1::Event> stop = Stop(campaign, campaign.summary().spec().budget(), now);
  const bool used_up =
      stop && stop->ended().reason() != v1::STOP_REASON_GOAL && stop->ended().reason() != v1::STOP_REASON_REVERTS;
  std::optional<v1::Leg> leg = used_up ? std::nullopt : NextLeg(campaign);
  if (!leg) return std::nullopt;
  leg->set_why(absl::StrCat(leg->why(), "; the leg before ended: ", end.ended().message()));
  v1::Event event;
  *event.mutable_leg()->mutable_leg() = *std::move(leg);
  return event;
}

// Of the portfolio; where there is none, of the first leg's best variant.
double OverBaselineOfAllSizes(const CampaignState& campaign, const v1::Portfolio& portfolio) {
  const v1::Campaign& summary = campaign.summary();
  const bool baseline = summary.baseline_us() > 0;
  if (!portfolio.members().empty()) {
    return baseline ? portfolio.speedup_over_baseline() : portfolio.speedup_over_start();
  }
  const v1::TotalGain& first = summary.legs(0).total();
  const v1::Iteration* winner = campaign.Find(first.iteration());
  if (winner == nullptr || winner->verdict() != v1::KEPT) return 0;  // a later leg found it wrong: nothing is claimed
  const double over_start = winner->number() == 0 ? 1 : first.speedup_over_start();
  if (!baseline) return over_start;
  const v1::Comparison& beside = first.beside_baseline().interval();
  if (beside.pairs() > 1) return std::exp(beside.mean_log_ratio());
  const std::vector<SizeWeight> sizes = GoalSizes(campaign.bundle(), summary.spec().goal());
  return over_start * std::exp(LogBaselineOverStart(sizes, *campaign.Find(0), campaign.baselines()).value_or(0));
}

// The end, or that of a leg, after the total speedup was measured.
v1::Event Finish(const CampaignState& campaign, v1::Event end, const ProfileSet& profiles, const Moment& now) {
  if (!campaign.unsanitized().empty()) return PlannedSanitizing(campaign);
  if (Unproven(campaign)) return PlannedTotal(campaign, /*interim=*/false);
  if (std::optional<v1::Event> leg = NextLegOf(campaign, end, now)) return *std::move(leg);
  if (std::optional<v1::Portfolio> portfolio = PortfolioOf(campaign)) {
    *end.mutable_ended()->mutable_portfolio() = *std::move(portfolio);
  }
  const v1::TotalGain& total = campaign.summary().total_gain();
  const v1::Iteration& best = *campaign.best();
  if (IsProduct(best) && total.iteration() == best.number() && !(total.speedup_over_start() > 0)) {
    end.mutable_ended()->set_message(
        absl::StrCat(end.ended().message(),
                     "; the total speedup is estimated from the steps, not measured: ", total.interval().reason()));
  }
  if (const std::string below = BelowRoof(campaign); !below.empty()) {
    end.mutable_ended()->set_message(absl::StrCat(end.ended().message(), "; ", below));
  }
  const double goal = campaign.summary().spec().goal().speedup();
  if (campaign.leg() > 0) {
    v1::Campaign whole = campaign.summary();
    whole.set_speedup_over_baseline(OverBaselineOfAllSizes(campaign, end.ended().portfolio()));
    if (whole.speedup_over_baseline() >= goal) end.mutable_ended()->set_reason(v1::STOP_REASON_GOAL);
    end.mutable_ended()->set_message(absl::StrFormat(
        "leg %d, the last: %s; over all sizes %.2fx %s speed (goal %gx)", campaign.leg() + 1, end.ended().message(),
        whole.speedup_over_baseline(), whole.baseline_us() > 0 ? "the baseline's" : "the start's", goal));
    end.mutable_ended()->set_tier(TierOf(whole, profiles.gates));
    return end;
  }
  const v1::Campaign& summary = campaign.summary();
  // The goal seemed reached by the times of iteration 0.
  const bool claimed = campaign.SpeedupOf(best) * summary.baseline_us() >= goal * summary.start_us();
  if (BesideBaselineOf(summary) != nullptr && claimed && summary.speedup_over_baseline() < goal) {
    end.mutable_ended()->set_message(
        absl::StrFormat("%s; goal not reached: %.2fx the baseline's speed, measured beside it (goal %gx)",
                        end.ended().message(), summary.speedup_over_baseline(), goal));
  }
  end.mutable_ended()->set_tier(TierOf(campaign.summary(), profiles.gates));
  for (const std::string& roof : Roofs(campaign, profiles.tree)) end.mutable_ended()->add_roof(roof);
  return end;
}

}  // namespace

v1::SuccessTier TierOf(const v1::Campaign& summary, const Gates& gates) {
  if (!summary.has_best()) return v1::SUCCESS_TIER_UNSPECIFIED;
  return gates.TierOf(summary.speedup_over_baseline(), summary.spec().goal().speedup());
}

const CampaignState::Proposal* UnappliedEdit(const CampaignState& campaign) {
  if (campaign.ended() || campaign.summary().state() == v1::PAUSED) return nullptr;
  if ((campaign.best() == nullptr && !campaign.awaits_start()) || campaign.proposals().empty()) return nullptr;
  const CampaignState::Proposal& oldest = campaign.proposals().front();
  const bool applied = oldest.patched.best == campaign.PatchBase();
  return applied || !oldest.proposed.change().has_source() ? nullptr : &oldest;
}

std::optional<absl::Duration> WaitsForProposal(const CampaignState& campaign, const Moment& now) {
  const bool waits = WaitsForProposals(campaign) && !campaign.ended() && campaign.summary().state() != v1::PAUSED &&
                     (campaign.best() != nullptr || campaign.awaits_start()) && campaign.open_iterations() == 0 &&
                     campaign.proposals().empty();
  if (!waits) return std::nullopt;
  return WaitLeft(campaign, now);
}

std::optional<absl::Time> ProposalDeadline(const CampaignState& campaign) {
  const Moment now = campaign.idle_since();
  const std::optional<absl::Duration> left = WaitsForProposal(campaign, now);
  return left ? std::optional(now.time + *left) : std::nullopt;
}

namespace {

// Of the campaign itself.
int OpenTrialsOf(const CampaignState& campaign) {
  return static_cast<int>(
      std::count_if(campaign.open_trials().begin(), campaign.open_trials().end(),
                    [](const auto& trial) { return trial.second.planned.purpose() != v1::TRIAL_PURPOSE_VERIFY; }));
}

// Of a contract alone, while nothing is open: the oldest proposal is tried as the start.
std::optional<v1::Event> DecideStart(const CampaignState& campaign, const Moment& now) {
  if (std::optional<v1::Event> pause = PauseAtGate(campaign)) return pause;
  const v1::CampaignSpec& spec = campaign.summary().spec();
  if (const std::optional<v1::Event> stop = Stop(campaign, spec.budget(), now)) {
    return Ended(v1::FAILED, v1::STOP_REASON_START,
                 absl::StrCat("no proposal passed validation, so that there is no start: ", stop->ended().message()));
  }
  std::optional<v1::Event> dropped;
  std::optional<Choice> choice = FromProposals(campaign, &dropped);
  if (dropped) return dropped;
  if (choice) return PlannedStart(campaign, *std::move(choice));
  if (WaitLeft(campaign, now) > absl::ZeroDuration()) return std::nullopt;
  return Paused(absl::StrFormat("no start was proposed within %g s; continue with pawl propose and pawl resume",
                                spec.chooser().wait_seconds()));
}

}  // namespace

bool MayDecide(const CampaignState& campaign, int slots) {
  if (campaign.ended() || campaign.summary().state() == v1::PAUSED) return false;
  const int open = OpenTrialsOf(campaign);
  return open == 0 || campaign.start_rejected() || (open < slots && campaign.best() != nullptr);
}

std::optional<v1::Event> Decide(const CampaignState& campaign, const Chooser& chooser, const Moment& now,
                                const ProfileSet& profiles, int slots) {
  if (!MayDecide(campaign, slots)) return std::nullopt;
  const int open = OpenTrialsOf(campaign);
  const auto has_open = [&](v1::TrialPurpose purpose) {
    return std::any_of(campaign.open_trials().begin(), campaign.open_trials().end(),
                       [&](const auto& trial) { return trial.second.planned.purpose() == purpose; });
  };
  if (campaign.awaits_start()) return DecideStart(campaign, now);
  if (campaign.iterations().empty()) return PlannedStart(campaign);
  // What ends or holds a campaign waits for what is open, but for trials that nobody needs without the start.
  const auto when_idle = [&](v1::Event event) {
    return open == 0 || campaign.start_rejected() ? std::optional(std::move(event)) : std::nullopt;
  };
  if (std::optional<v1::Event> pause = PauseAtGate(campaign)) return when_idle(*std::move(pause));
  if (campaign.best() == nullptr) {
    const v1::Iteration* start = campaign.Find(0);
    const std::string& why = start != nullptr ? start->reason() : campaign.iterations()[0].reason();
    return when_idle(Ended(v1::FAILED, v1::STOP_REASON_START, absl::StrCat("the start variant was rejected: ", why)));
  }
  const v1::CampaignSpec& spec = campaign.summary().spec();
  const v1::Budget budget = BudgetUntilLegEnds(campaign);
  const auto finish = [&](v1::Event end) {
    return open == 0 ? std::optional(Finish(campaign, std::move(end), profiles, now)) : std::nullopt;
  };
  if (const v1::Iteration* end = campaign.UncomparedEnd()) return PlannedEnd(campaign, *end);
  if (std::optional<v1::Event> stop = Stop(campaign, budget, now)) return finish(*std::move(stop));
  const bool late = campaign.unsanitized().contains(0) && campaign.iterations().size() > kMostBeforeStart;
  const bool sanitizes = campaign.unsanitized().size() >= kMostUnsanitized || late || campaign.sanitizes_alone();
  if (sanitizes && !has_open(v1::TRIAL_PURPOSE_SANITIZE)) return PlannedSanitizing(campaign);
  // What is built on these may have to be taken back with them.
  if (campaign.unsanitized().size() >= 2 * kMostUnsanitized) return std::nullopt;
  if (!has_open(v1::TRIAL_PURPOSE_TOTAL) && Multiplied(campaign) &&
      campaign.kept_since_total() >= profiles.gates.total_every()) {
    return PlannedTotal(campaign, /*interim=*/true);
  }
  const int planned = campaign.next_iteration() - campaign.summary().counts().untried();
  if (open > 0 && budget.iterations() > 0 && planned > budget.iterations()) return std::nullopt;

  std::optional<Choice> choice;
  if (HasTuningLeft(campaign)) {
    choice = chooser.Next(campaign);
    const std::optional<Choice::Expected> most = choice ? MostExpected(*choice) : std::nullopt;
    if (most && most->gain < LeastGain(campaign)) choice.reset();
  }
  const bool tunes = choice.has_value();
  std::optional<v1::Event> dropped;
  if (!tunes && KindOf(campaign) != v1::CHOOSER_KIND_TREE) choice = FromProposals(campaign, &dropped);
  if (dropped) return dropped;
  const bool proposed = choice.has_value() && !tunes;
  if (proposed) choice->findings = profiles.tree.Diagnose(campaign.best_evidence(), campaign.gpu());
  if (!choice && WaitsForProposals(campaign)) {
    if (open == 0 && !campaign.unsanitized().empty()) return PlannedSanitizing(campaign);
    if (open > 0 || WaitLeft(campaign, now) > absl::ZeroDuration()) return std::nullopt;
    if (spec.chooser().no_proposal() == v1::NO_PROPOSAL_PAUSE) {
      return Paused(absl::StrFormat("no change was proposed within %g s; %scontinue with pawl propose and pawl resume",
                                    spec.chooser().wait_seconds(),
                                    campaign.BundleAt(campaign.best()->number()).variables().empty()
                                        ? "there are no variables that Pawl could change by itself: "
                                        : ""));
    }
  }
  if (!proposed) {
    const std::vector<std::string> roofs = Roofs(campaign, profiles.tree);
    const std::string message = absl::StrCat("at its roof: ", absl::StrJoin(roofs, "; "));
    if (!roofs.empty()) return finish(Ended(v1::FINISHED, v1::STOP_REASON_ROOF, message));
  }
  if (!choice) choice = chooser.Next(campaign);
  if (!choice) return finish(Ended(v1::FINISHED, v1::STOP_REASON_SPACE, "no change is left to try"));
  const std::optional<Choice::Expected> most = proposed ? std::nullopt : MostExpected(*choice);
  if (most && most->gain < LeastGain(campaign)) return finish(ExpectsTooLittle(campaign, *most));
  if (!IsSingleChange(campaign, *choice)) {
    return Ended(v1::FAILED, v1::STOP_REASON_UNSPECIFIED,
                 absl::StrCat("refused: iteration ", campaign.next_iteration(),
                              " would not differ in exactly one variable from a measured parent"));
  }
  return PlannedChoice(campaign, *std::move(choice));
}

}  // namespace pawl
