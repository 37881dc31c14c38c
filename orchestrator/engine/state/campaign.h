#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/read/implementation.h"
#include "orchestrator/engine/state/bundle_space.h"
#include "orchestrator/engine/state/noise_pool.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/event.pb.h"
#include "profiles/goal_sizes.h"

namespace pawl {

class RulePrior;

// A point in time. Durations come from `served`, the time for which orchestrators have served, where both ends have
// it: a clock that is set and an outage count for nothing. Version 0.1.0 wrote events without it.
struct Moment {
  Moment(absl::Time time, std::optional<absl::Duration> served = std::nullopt) : time(time), served(served) {}
  absl::Time time;
  std::optional<absl::Duration> served;
};

// From one to the other; by the clock where one of them has no served time.
absl::Duration Between(const Moment& before, const Moment& after);

// A trial that has been planned and has no result yet.
struct OpenTrial {
  v1::TrialPlanned planned;
  absl::Time planned_at;
  Moment free_since{absl::InfinitePast()};  // nobody holds it
  int attempt = 0;                          // of the current or last lease; 0: never leased
  int killed = 0;            // leases that ran out after a renewal: the trial may have killed their workers
  int best = 0;              // the campaign's best variant when it was planned
  int kept_since_total = 0;  // when it was planned
  int host_faults = 0;
  std::string worker;                       // that holds it; empty: nobody
  std::string nonce;                        // of the current or last lease; empty: its result is not taken
  std::optional<absl::Duration> leased_at;  // in served time
};

// What an edit makes of the best variant.
struct PatchedBest {
  static constexpr int kContract = -1, kNotApplied = -2;
  int best = kNotApplied;  // the iteration; kContract: there is no start yet
  absl::StatusOr<ImplementationState> patched = absl::UnknownError("it was not applied");
  // NormalizedHash of that and of the bundle's own source: for a large source they take long.
  std::string normalized, own_normalized;
};

// What the search computed before. It follows from the campaign, and would take long to compute for every choice.
struct SearchMemo {
  using Places = std::vector<uint16_t>;  // a variant as the places of its values in their variables' lists
  struct Hash {
    size_t operator()(const Places& places) const {
      uint64_t hash = 0xcbf29ce484222325;
      for (const uint16_t place : places) hash = (hash ^ place) * 0x100000001b3;
      return static_cast<size_t>(hash ^ hash >> 29);
    }
  };

  SearchMemo() = default;
  SearchMemo(const SearchMemo&) : SearchMemo() {}  // a copy begins empty: another thread may be using the original
  SearchMemo& operator=(SearchMemo&&) = default;

  struct Step {
    int parent = 0;  // an iteration, or the one that is being measured
    v1::Change change;
  };
  // What would be tried after a trial, the first choice first.
  struct Following {
    int trial = 0;
    std::vector<Step> reverted, kept;  // by its outcome; of one without a verdict both are `reverted`
  };

  Following following;
  int space = 0, sources = 1;  // of which it is: what is known of one space says nothing of another's points
  size_t observations = 0;     // to which `parameters` of the model were fitted; 0: none yet
  std::vector<double> parameters;
  std::vector<std::optional<Places>> iterations;          // of their variants; nothing: it is none of this space
  std::unordered_map<Places, std::string, Hash> refused;  // why it can't be tried; empty: it can
  std::unordered_map<Places, int64_t, Hash> blocks;       // of a variant, with its source's number behind it
  std::unordered_map<Places, std::string, Hash> plans;    // of a variant at the leg's sizes, serialized; empty: none
  const void* tree = nullptr;                             // the decision tree of `findings` and `rules`
  std::map<int, std::vector<v1::Finding>> findings;       // by iteration, whose evidence does not change any more
  int rules_of = -1;                                      // the iteration whose findings `rules` are of
  std::shared_ptr<const RulePrior> rules;
  std::map<std::pair<int, std::string>, double> floors_us;  // by iteration and size: RooflineFloorUs; 0: unknown
};

// One campaign, as its events made it. Apply is the only way it changes, so the same events give the same campaign.
// Pure; one thread at a time. Exception: while one thread decides (Decide, SituationOf) others may read what needs no
// memo: the summary, iterations, open trials, sources, proposals and times.
class CampaignState {
 public:
  CampaignState(std::string name, std::shared_ptr<const BundleSpace> space);
  CampaignState(std::string name, v1::Bundle bundle);  // of its own
  CampaignState& operator=(const CampaignState&) = delete;

  // The same campaign without what the search computed before. Other threads may be deciding for this one.
  std::shared_ptr<CampaignState> Copy() const;

  void Apply(const v1::Event& event);

  // DATA_LOSS: the events do not make what they say they do, and nothing may be asked of the campaign.
  const absl::Status& damage() const { return damage_; }

  // What people see of it; last_sequence is the store's to fill in. Its minutes are those of the last event.
  const v1::Campaign& summary() const { return summary_; }
  // As submitted; of a contract alone, once a proposal is the start, with what that proposal added.
  const v1::Bundle& bundle() const { return *bundle_; }
  const std::shared_ptr<const v1::Bundle>& shared_bundle() const { return bundle_; }
  const std::string& space_hash() const { return space_hash_; }

  // It was submitted as a contract alone, and no proposal is the start yet.
  bool awaits_start() const;
  // What the patch of a proposal must be against: the number of the best iteration, or PatchedBest::kContract.
  int PatchBase() const { return summary_.has_best() ? summary_.best() : PatchedBest::kContract; }

  bool ended() const;
  // A trial of it may be leased now.
  bool leasable() const;

  const std::map<int, OpenTrial>& open_trials() const { return open_; }
  // Of judged iterations, in order; what GetIteration adds is not here.
  const std::vector<v1::Iteration>& iterations() const { return iterations_; }
  const v1::Iteration* Find(int number) const;
  const v1::Iteration* best() const;
  // Of the best kept variant, as profiled; empty before iteration 0 is kept.
  const v1::Evidence& best_evidence() const;
  // Of any kept variant, and of an expedition's that was faster than its parent; null: of others.
  const v1::Evidence* EvidenceOf(int iteration) const;
  // It passed every check and was timed, so that its variant can be a parent.
  bool IsMeasured(const v1::Iteration& iteration) const {
    return !WasRejected(iteration) && SpeedupOf(iteration) > 0 && !iteration.untried();
  }
  // It passed every check in another leg, and was not timed at all sizes of this one.
  bool IsUnknown(const v1::Iteration& iteration) const {
    return iteration.leg() != leg_ && !WasRejected(iteration) && !iteration.untried() && !(SpeedupOf(iteration) > 0);
  }
  // The iteration whose machine code and launches it has at all sizes of this leg, as a worker found that built both.
  // What was measured of that one counts for it. Itself: none is known.
  const v1::Iteration& CodeOf(const v1::Iteration& iteration) const;
  // Some iteration has the code of another, at the sizes of its leg.
  bool HasTwins() const { return !same_code_.empty(); }
  // An expedition that seems to be faster than the best variant, and neither was nor is compared with it; null: none.
  const v1::Iteration* UncomparedEnd() const;
  // The iteration and all that descend from it.
  std::set<int> DescendedFrom(int iteration) const;
  // The same, and what was judged by a comparison with one of these.
  std::set<int> BuiltOn(int iteration) const;
  // Variants that were measured beside the start with all checks, as a campaign ends with them.
  int final_totals() const { return final_totals_; }
  // Kept, and compute-sanitizer has not run over them yet.
  const std::set<int>& unsanitized() const { return unsanitized_; }
  // A worker that has it ran an iteration.
  bool had_sanitizer() const { return had_sanitizer_; }
  // Workers were lost while it ran over several of them: each is tried by itself.
  bool sanitizes_alone() const { return sanitizes_alone_; }
  // At once, or later by compute-sanitizer: there is nothing to go on from.
  bool start_rejected() const;
  SearchMemo& search_memo() const { return memo_; }
  // That trials of it are measured on; empty before iteration 0 has its result.
  const v1::GpuInfo& gpu() const { return gpu_; }
  // The uuid of the one that a judged iteration was measured on; empty: its worker did not say.
  const std::string& GpuOf(int iteration) const;
  // Of every size, and the copy's speed, as iteration 0 measured them; empty and 0 before, or where it could not.
  const google::protobuf::RepeatedPtrField<v1::BaselineTime>& baselines() const { return baselines_; }
  double copy_gb_s() const { return copy_gb_s_; }
  // Of a comparison with this parent: what is known of the GPU and what the campaign's comparisons showed.
  v1::ProcessNoise NoiseFor(int parent) const;
  // The objective: of the campaign, or of a portfolio's leg. After the end it is the campaign's again.
  const v1::Goal& goal() const { return GoalOf(leg_); }
  const v1::Goal& GoalOf(int leg) const;
  int leg() const { return leg_; }
  // Changes that were judged, and the time that was used, before this leg.
  int tried_before_leg() const { return tried_before_leg_; }
  absl::Duration ran_before_leg() const { return ran_before_leg_; }
  double dollars_before_leg() const { return dollars_before_leg_; }
  // What the objective is over, in the order of the ladder.
  const std::vector<SizeWeight>& goal_sizes() const { return goal_sizes_; }
  // The speedup over the start, by the objective. 0: it was never timed, or not at all its sizes.
  double SpeedupOf(const v1::Iteration& iteration) const;
  // The baseline's time over the start's, by the objective; 1 where there is no baseline.
  double BaselineOverStart() const;
  // log(start time / its time) of a judged iteration at a size of the objective: the product of the ratios from the
  // start to it. Nothing: one of them was not timed there.
  std::optional<double> LogSpeedAt(int iteration, const std::string& size) const;
  // The largest of these of all kept iterations; 0 before the first.
  double BestLogSpeedAt(const std::string& size) const;
  // Who submitted it; empty: they did not say.
  const std::string& author() const { return author_; }
  // What other campaigns had taught when it was submitted.
  const google::protobuf::RepeatedPtrField<v1::Pattern>& patterns() const { return patterns_; }

  // The implementation of an iteration: all its files, and what edits made of kernel.toml
  // (kernels/read/implementation.h).
  const std::string& SourceOf(int iteration) const;
  // It has a source beside the bundle's own.
  bool HasEdits() const { return !sources_.empty(); }
  // Which of the campaign's sources that is: 0 is the bundle's own, each edit makes the next.
  int SourceIdOf(int iteration) const;
  // The bundle with that source's variables, constraints, scratch, launches and options; its files are those of the
  // first source that has them.
  const v1::Bundle& BundleOf(int source_id) const { return SpaceOf(source_id).bundle(); }
  const v1::Bundle& BundleAt(int iteration) const { return BundleOf(SourceIdOf(iteration)); }
  // Sources with the same number have the same of all that. 0: the bundle's own.
  int SpaceIdOf(int source_id) const;

  // The constraints of the source allow it. An error: it is no variant of the source.
  absl::StatusOr<bool> Allows(const v1::Variant& variant, int source_id) const {
    return SpaceOf(source_id).Allows(variant);
  }
  // The constraint that does not; empty: none.
  absl::StatusOr<std::string> Forbidding(const v1::Variant& variant, int source_id) const {
    return SpaceOf(source_id).Forbidding(variant);
  }
  // Why the GPU could not launch it at a size of the goal, from its geometry and shared memory alone; empty: it could,
  // or nobody knows the GPU yet.
  std::string BeyondLimits(const v1::Variant& variant, int source_id) const;
  // Its launches at one of the bundle's sizes.
  absl::StatusOr<v1::Plan> PlanOf(const v1::Variant& variant, int source_id, const v1::Size& size,
                                  const v1::GpuInfo& gpu) const {
    return SpaceOf(source_id).PlanOf(variant, size, gpu);
  }
  // Tried before, or being tried, with this source: whatever the parent was, the variant is the same.
  bool Tried(const v1::Variant& variant, int source_id) const;
  // The implementation as the bundle has it.
  const std::string& OwnSource() const;
  // Of a source that the campaign has; -1: it has none such.
  int FindSource(const std::string& source) const;
  // The iteration, planned or judged, of the same variant and a source that differs from the patched one in comments
  // and blanks at most; -1: there is none.
  int FindAlike(const PatchedBest& patched, const v1::Variant& variant) const;
  // The same with exactly this source.
  int FindSame(int source_id, const v1::Variant& variant) const;

  struct Proposal {
    v1::ChangeProposed proposed;
    absl::Time at;
    // Of an edit, computed before: it follows from the campaign, and takes long where the source is large.
    mutable PatchedBest patched;
  };
  const std::deque<Proposal>& proposals() const { return proposals_; }
  int next_proposal() const { return next_proposal_; }

  int next_trial() const { return next_trial_; }
  int next_iteration() const { return next_iteration_; }
  int reverts_in_a_row() const { return reverts_in_a_row_; }
  // No worker could try it, because a recording lacks the variant: it uses up no budget.
  bool IsUntried(int iteration) const;
  int untried_in_a_row() const { return untried_in_a_row_; }
  // Iterations planned and not judged.
  int open_iterations() const;
  // Iterations of one parent that are tried at once begin with this one; more may join until the first of them is
  // judged.
  // Kept since the best variant was last measured beside the start, that is, in a product of steps.
  int kept_since_total() const { return kept_since_total_; }
  // The campaign was paused for a gate that this iteration did not pass.
  bool PausedFor(int iteration) const { return paused_for_.contains(iteration); }
  // Since when it could have planned its next iteration.
  const Moment& idle_since() const { return idle_since_; }
  // Time since the first lease without the pauses, the waits for a limit of its author, and the time in which no
  // orchestrator served or one was in maintenance, up to `now`.
  absl::Duration Running(const Moment& now) const;
  // Of the newest event, in served time; absent before the first that has it.
  std::optional<absl::Duration> served() const { return served_; }

 private:
  struct Source {
    std::string text;
    std::string normalized;  // NormalizedHash
    int space = 0;
  };

  // The same machine code and launches as another iteration, at the sizes of a leg.
  struct SameCode {
    int as = 0;
    int leg = 0;
  };

  CampaignState(const CampaignState&) = default;

  bool WasRejected(const v1::Iteration& iteration) const {
    return iteration.verdict() == v1::REJECTED || CodeOf(iteration).verdict() == v1::REJECTED;
  }
  // All sizes of this leg are sizes of that one.
  bool Covers(int leg) const;
  const BundleSpace& SpaceOf(int source_id) const { return *spaces_[static_cast<size_t>(SpaceIdOf(source_id))]; }
  int AddSource(const std::string& text);
  int FindIteration(const std::set<int>& source_ids, const v1::Variant& variant) const;
  void ApplyPlanned(const v1::TrialPlanned& planned, const Moment& at);
  void ApplyLeased(const v1::TrialLeased& leased, const Moment& at);
  void ApplyLost(const v1::LeaseLost& lost, const Moment& at);
  void ApplyFinished(const v1::TrialFinished& finished);
  void NoteSameCode(const v1::TrialFinished& finished);
  // The proposal of a start was judged: its implementation is the bundle's own, or it was rejected with a number of its
  // own.
  void ApplyStart(const v1::TrialPlanned& planned, const v1::Iteration& judged);
  void ApplyTotal(const v1::TrialFinished& finished, int kept_before);
  void BeginLeg(int leg);
  void ApplyEnd(const v1::TrialFinished& finished);
  void ApplySanitized(const v1::TrialFinished& finished);
  void NoteUnsanitized(const v1::Iteration& iteration);
  void Revise(const v1::RevisedIteration& revision);
  // Adds the iteration to the summary's counts, or takes it out of them (-1).
  void Count(const v1::Iteration& iteration, int by);
  void CountRunning();
  void ElectBest();
  // The one with the number; also others of the same change.
  void DropProposal(const v1::Change& change, int number);
  void NoteVerifications();
  bool IsComparedWithBest(int iteration) const;

  v1::Campaign summary_;
  absl::Status damage_;
  std::shared_ptr<const v1::Bundle> bundle_;
  std::vector<std::shared_ptr<const BundleSpace>> spaces_;  // of sources; the bundle's own first
  std::string space_hash_;
  std::map<int, OpenTrial> open_;
  std::vector<v1::Iteration> iterations_;
  std::map<int, size_t> places_;                 // of iterations by number: several workers may end out of order
  std::map<int, SameCode> same_code_;            // by iteration
  std::set<std::pair<int, std::string>> tried_;  // source and VariantText
  std::string own_source_;                       // the bundle's, where it has several files
  std::vector<Source> sources_;                  // of edits; what is before the first is the bundle's own
  std::map<int, int> source_ids_;                // by iteration, planned or judged
  std::map<int, v1::Evidence> evidence_;         // see EvidenceOf
  mutable SearchMemo memo_;
  v1::GpuInfo gpu_;
  std::string gpu_model_;                 // BundleSpace::ModelOf
  std::map<int, std::string> gpu_uuids_;  // by iteration
  google::protobuf::RepeatedPtrField<v1::BaselineTime> baselines_;
  double copy_gb_s_ = 0;
  double busy_seconds_ = 0;        // of stages that use the GPU
  std::set<std::string> workers_;  // that delivered results of it
  NoisePool noise_;
  std::vector<SizeWeight> goal_sizes_;
  int leg_ = 0, tried_before_leg_ = 0;
  absl::Duration ran_before_leg_;
  double dollars_before_leg_ = 0;
  double leg_correction_ = 1;  // of products of steps, by the totals of this leg: RevisedBy corrects its own iterations
  google::protobuf::RepeatedPtrField<v1::Pattern> patterns_;
  std::deque<Proposal> proposals_;
  int next_proposal_ = 1;
  int next_trial_ = 1;
  int next_iteration_ = 0;
  int reverts_in_a_row_ = 0;
  int untried_in_a_row_ = 0;
  int kept_since_total_ = 0, final_totals_ = 0;
  std::set<int> paused_for_;
  std::set<int> unsanitized_;
  bool sanitizes_alone_ = false;
  bool had_sanitizer_ = false;
  Moment idle_since_{absl::Time()};
  bool leased_before_ = false;
  double price_per_hour_ = 0;
  std::string author_;
  std::optional<absl::Duration> served_;
  absl::Duration ran_;                 // up to the last event
  std::optional<Moment> clock_since_;  // of the last event; absent: the clock stands
};

// Sets the fields that version 0.1.0 did not write and that follow from the event's others: Iteration.untried,
// TrialLeased.replay. CampaignState needs no such help.
void AddMissingFields(v1::Event* event);

// What a total gain makes of the iterations that were judged before it: those that change, in their order. A product of
// steps is corrected by what was measured; what is taken back is reverted; the variant that was timed interleaved with
// the baseline has that ratio from then on. The engine puts this into the event.
std::vector<v1::RevisedIteration> RevisedBy(const v1::TotalGain& total, const std::vector<v1::Iteration>& iterations);

// log(baseline's time / start's time), weighted over the sizes; nothing: a size has no baseline.
std::optional<double> LogBaselineOverStart(const std::vector<SizeWeight>& sizes, const v1::Iteration& start,
                                           const google::protobuf::RepeatedPtrField<v1::BaselineTime>& baselines);

// The best variant's speed over the baseline where both were timed interleaved; null: they were not, and what the
// campaign says is a product of ratios measured at different times.
const v1::Comparison* BesideBaselineOf(const v1::Campaign& campaign);

// The gate it failed whose action is to pause; null: none.
const v1::FailedGate* PausingGate(const v1::Iteration& iteration);

v1::Variant VariantOf(const v1::Iteration& iteration);

// Its speed over the start is a product of steps, not measured beside the start.
bool IsProduct(const v1::Iteration& iteration);

absl::Time TimeOf(const google::protobuf::Timestamp& timestamp);
void SetTime(absl::Time time, google::protobuf::Timestamp* timestamp);

}  // namespace pawl
