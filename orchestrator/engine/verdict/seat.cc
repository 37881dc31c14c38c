#include "orchestrator/engine/verdict/seat.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "orchestrator/engine/state/noise_pool.h"
#include "orchestrator/engine/verdict/rejected.h"
#include "profiles/seat_rule.h"

namespace pawl {
namespace {

// Looks at one variant: by the last, 1024 processes have measured it as a parent.
constexpr int kMaxLooks = 10;

// Of the scatter of times relative to the anchor from trial to trial: as much as is believed of a campaign's own, and
// how many degrees of freedom it takes to say anything.
constexpr double kMostScatter = 0.04;
constexpr int kFewDegrees = 12;

// What the witness says overrules the anchor up to this difference; beyond it, parent and witness may both be slowed.
constexpr double kMostDrift = 0.1;

// Of the share of honest comparisons that may fail, where both the witness and the anchor tell.
constexpr double kWitnessPart = 0.5;

// Times of one variant, weighted by the processes that measured them.
struct PooledTime {
  double log_time = 0;
  int processes = 0, trials = 0;

  void Add(const v1::SeatTime& time) {
    const int all = processes + time.processes();
    log_time = (log_time * processes + time.log_time() * time.processes()) / all;
    processes = all;
    ++trials;
  }
};

// Times of short kernels relative to the anchor differ by more from trial to trial than between the processes of one.
// What this campaign's parents show of it, as a variance with its degrees of freedom; none: they show nothing yet.
struct Scatter {
  double variance = 0;
  int degrees = 0;
};

Scatter ScatterOfTrials(const CampaignState& campaign) {
  std::map<std::tuple<int, TimedWay, int>, std::vector<double>> times;  // of a parent, timed in one way, of a leg
  for (const v1::Iteration& iteration : campaign.iterations()) {
    if (!iteration.has_parent() || iteration.as_parent().processes() == 0) continue;
    const v1::SeatTime& time = iteration.as_parent();
    times[{iteration.parent(), WayOf(time), iteration.leg()}].push_back(time.log_time());
  }
  Scatter scatter;
  for (const auto& [parent, of] : times) {
    double mean = 0;
    for (const double time : of) mean += time / static_cast<double>(of.size());
    for (const double time : of) scatter.variance += (time - mean) * (time - mean);
    scatter.degrees += static_cast<int>(of.size()) - 1;
  }
  if (scatter.degrees == 0) return scatter;
  // A variant can make its own times scatter: this much is believed.
  scatter.variance = std::min(scatter.variance / scatter.degrees, kMostScatter * kMostScatter);
  return scatter;
}

// By how much a time may exceed another by noise, but for this share: each of so many processes in so many trials.
struct Measured {
  int processes = 0, trials = 0;
};

double Limit(const v1::ProcessNoise& noise, const Scatter& scatter, const Measured& of, const Measured& other,
             double share) {
  const bool known = noise.anchor_variance() > 0 && noise.anchor_degrees() > 0;
  const v1::ProcessNoise assumed = known ? noise : UnknownNoise();
  // Without arithmetic in long double, which some machines only emulate.
  using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
  const auto limit = [share](double variance, double degrees) {
    const boost::math::students_t_distribution<double, Policy> distribution(degrees);
    return boost::math::quantile(boost::math::complement(distribution, share)) * std::sqrt(variance);
  };
  double most =
      limit(assumed.anchor_variance() * (1.0 / of.processes + 1.0 / other.processes), assumed.anchor_degrees());
  if (scatter.degrees >= kFewDegrees) {
    most = std::max(most, limit(scatter.variance * (1.0 / of.trials + 1.0 / other.trials), scatter.degrees));
  }
  return most;
}

// Of the parent beside each of its children that were judged, timed as `like` was.
std::vector<v1::SeatTime> TimesAsParent(const CampaignState& campaign, const v1::Iteration& parent, int leg,
                                        const v1::SeatTime& like,
                                        const std::function<bool(const v1::Iteration&)>& without = nullptr) {
  std::vector<v1::SeatTime> times;
  for (const v1::Iteration& child : campaign.iterations()) {
    const bool timed = child.has_parent() && child.parent() == parent.number() && child.leg() == leg &&
                       child.as_parent().processes() > 0;
    if (!timed || !TimedAlike(child.as_parent(), like) || (without && without(child))) continue;
    times.push_back(child.as_parent());
  }
  return times;
}

// Of the parent, timed as beside this candidate but without it.
PooledTime TimesWithout(const CampaignState& campaign, const v1::Iteration& parent, const v1::Iteration& iteration) {
  PooledTime times;
  if (iteration.has_parent_alone_beside_anchor()) {
    times.Add(iteration.parent_alone_beside_anchor());
    return times;
  }
  const v1::SeatTime& now = iteration.as_parent();
  if (parent.as_candidate().processes() == 0) return times;
  // Legs are timed at different sizes.
  const bool as_now = parent.leg() == iteration.leg() && TimedAlike(parent.as_candidate(), now);
  if (as_now) times.Add(parent.as_candidate());
  for (const v1::SeatTime& time : TimesAsParent(campaign, parent, iteration.leg(), now)) times.Add(time);
  return times;
}

// 1 for the first look, when two processes have measured it; 0: not yet.
int LooksAt(int processes) { return static_cast<int>(std::log2(processes)); }

double PercentOf(double log_time) { return 100 * std::expm1(log_time); }

void SetTimesBesideWitness(const v1::Iteration& parent, bool same_gpu, const SeatPairs& pairs,
                           const v1::TrialResult& result, v1::Iteration* iteration) {
  const v1::SeatTime& alone = result.parent_alone();
  const std::optional<int> witness = WitnessOf(parent);
  v1::SeatTime candidate;
  if (witness && parent.leg() == iteration->leg()) {
    v1::SeatTime time = pairs.Time(&v1::PairSample::parent_us, &v1::PairSample::witness_us);
    time.set_witness(*witness);
    const bool has_alone = alone.processes() > 0 && TimedAlike(alone, time);
    if (has_alone) {
      *iteration->mutable_parent_alone() = alone;
      iteration->mutable_parent_alone()->set_witness(*witness);
    }
    if (time.processes() > 0 && (same_gpu || has_alone)) *iteration->mutable_parent_beside_witness() = time;
    if (result.parent_again().processes() > 0 && same_gpu) {
      *iteration->mutable_parent_again() = result.parent_again();
      iteration->mutable_parent_again()->set_witness(*witness);
    }
    candidate = pairs.Time(&v1::PairSample::candidate_us, &v1::PairSample::witness_us);
    candidate.set_witness(*witness);
  }
  const bool near = candidate.processes() > 0 && -candidate.log_time() <= std::log(kNearWitness);
  if (!near) {
    candidate = pairs.Time(&v1::PairSample::candidate_us, &v1::PairSample::parent_us);
    candidate.set_witness(parent.number());
  }
  if (candidate.processes() > 0) *iteration->mutable_candidate_beside_witness() = candidate;
}

struct WitnessTest : SeatTest {
  const char* when = "beside this candidate";
  const char* than = "as a candidate";  // what it is slower than
};

// What the witness says of the parent beside one candidate; nothing: it was not there.
std::optional<WitnessTest> TestBesideWitness(const v1::Iteration& parent, const v1::Iteration& child,
                                             const v1::ProcessNoise& noise, double share) {
  if (parent.leg() != child.leg()) return std::nullopt;
  const v1::SeatTime& before = child.has_parent_alone() ? child.parent_alone() : parent.candidate_beside_witness();
  if (!ComparableSeats(before, child.parent_beside_witness())) return std::nullopt;
  const bool twice = ComparableSeats(parent.candidate_beside_witness(), child.parent_again());
  if (twice) share /= 2;
  WitnessTest test{TestSeat(before, child.parent_beside_witness(), noise, share)};
  if (child.has_parent_alone()) test.than = "without it";
  if (!twice || test.failed()) return test;
  // Whether it takes as long as it did, with the same inputs.
  WitnessTest again{TestSeat(parent.candidate_beside_witness(), child.parent_again(), noise, share)};
  again.when = "timed again without this candidate,";
  if (again.failed()) return again;
  test.slower += again.slower;
  test.limit += again.limit;
  test.excluded = test.excluded && again.excluded;
  return test;
}

std::string BesideWitnessText(const WitnessTest& test, int witness) {
  return absl::StrFormat("%.1f %% longer than %s, relative to iteration %d in the same processes (limit %.1f %%)",
                         PercentOf(test.slower), test.than, witness, PercentOf(test.limit));
}

std::vector<v1::RevisedIteration> RejectedForSeat(const CampaignState& campaign, int parent, const std::string& why,
                                                  double slower, const Gate& gate) {
  v1::Failure failure;
  failure.set_stage(v1::STAGE_MEASURE);
  failure.set_check(v1::CHECK_SEAT);
  failure.set_message(why);
  return RejectedWith(campaign, parent, failure, slower, gate, campaign.BuiltOn(parent), {v1::KEPT});
}

// Whether the parent could not be timed without this candidate; nothing: that was not tried. An end of an expedition
// was compared with the best variant.
std::optional<bool> NotTimedWithout(const v1::Iteration& child) {
  if (child.has_over_best()) return std::nullopt;
  if (child.failure().check() == v1::CHECK_SEAT && absl::StartsWith(child.failure().message(), kParentNotTimed)) {
    return true;
  }
  if (child.has_parent_alone() || child.has_parent_alone_beside_anchor()) return false;
  return std::nullopt;
}

// Two candidates showed it, and no fewer than showed the opposite.
bool NeverTimedAlone(const CampaignState& campaign, const v1::Iteration& parent, const v1::Iteration& iteration) {
  if (!NotTimedWithout(iteration).value_or(false)) return false;
  int failed = 1, passed = 0;
  for (const v1::Iteration& other : campaign.iterations()) {
    if (!other.has_parent() || other.parent() != parent.number()) continue;
    if (const std::optional<bool> not_timed = NotTimedWithout(other)) (*not_timed ? failed : passed) += 1;
  }
  return failed >= 2 && failed >= passed;
}

// Two candidates showed it, and no fewer than showed the opposite.
std::optional<WitnessTest> ShownByWitness(const CampaignState& campaign, const v1::Iteration& parent,
                                          const v1::Iteration& iteration, const v1::ProcessNoise& noise, double share) {
  const std::optional<WitnessTest> now = TestBesideWitness(parent, iteration, noise, share);
  if (!now || !now->failed()) return std::nullopt;
  int failed = 1, passed = 0;
  for (const v1::Iteration& other : campaign.iterations()) {
    if (!other.has_parent() || other.parent() != parent.number()) continue;
    const std::optional<WitnessTest> test = TestBesideWitness(parent, other, noise, share);
    if (test) (test->failed() ? failed : passed) += 1;
  }
  if (failed < 2 || failed < passed) return std::nullopt;
  return now;
}

}  // namespace

std::optional<int> WitnessOf(const v1::Iteration& parent) {
  if (parent.number() == 0 || parent.candidate_beside_witness().processes() == 0) return std::nullopt;
  return parent.candidate_beside_witness().witness();
}

void AddWitness(const CampaignState& campaign, const v1::TrialPlanned& planned, v1::Trial* trial) {
  const bool kept_by_it = planned.purpose() == v1::TRIAL_PURPOSE_END ||
                          (planned.purpose() == v1::TRIAL_PURPOSE_ITERATION && !planned.expedition());
  if (!kept_by_it || !planned.has_parent()) return;
  const v1::Iteration& parent = *campaign.Find(planned.parent());
  if (parent.leg() != campaign.leg()) return;
  const std::optional<int> witness = WitnessOf(parent);
  if (!witness) {  // it is still timed as it was, so that its times compare
    SetWay(parent.as_candidate(), trial->mutable_parent_as_candidate());
    return;
  }
  *trial->mutable_witness() = VariantOf(*campaign.Find(*witness));
  *trial->mutable_parent_as_candidate() = parent.candidate_beside_witness();
  if (campaign.SourceIdOf(*witness) > 0) trial->set_witness_patched_source(campaign.SourceOf(*witness));
}

void SetSeatTimes(const CampaignState& campaign, const v1::TrialResult& result, v1::Iteration* iteration) {
  // Few pairs tell that a candidate is much slower, but would count as much as all of another process.
  if (result.pairs_size() < KeepRule().first_pairs && result.confirming_pairs().empty()) return;
  const SeatPairs pairs(PairsByProcess(result), campaign.goal_sizes(), campaign.goal().size());
  const v1::Iteration* parent = iteration->has_parent() ? campaign.Find(iteration->parent()) : nullptr;
  if (parent != nullptr) {
    const bool same_gpu = campaign.GpuOf(parent->number()) == result.gpu().uuid();
    SetTimesBesideWitness(*parent, same_gpu, pairs, result, iteration);
  }
  if (pairs.empty() || !pairs.Have(&v1::PairSample::anchor_us)) return;
  const auto set = [](const v1::SeatTime& from, v1::SeatTime* to) {
    to->set_log_time(from.log_time());
    to->set_processes(from.processes());
    SetWay(from, to);
  };
  set(pairs.Time(&v1::PairSample::candidate_us, &v1::PairSample::anchor_us), iteration->mutable_as_candidate());
  if (!iteration->has_parent()) return;
  set(pairs.Time(&v1::PairSample::parent_us, &v1::PairSample::anchor_us), iteration->mutable_as_parent());
  const v1::SeatTime& alone = result.parent_alone_beside_anchor();
  if (alone.processes() > 0 && TimedAlike(alone, iteration->as_parent())) {
    *iteration->mutable_parent_alone_beside_anchor() = alone;
  }
}

std::optional<std::string> SlowedParent(const CampaignState& campaign, const v1::Iteration& iteration,
                                        const v1::ProcessNoise& noise, double share) {
  const v1::Iteration* parent = iteration.has_parent() ? campaign.Find(iteration.parent()) : nullptr;
  if (parent == nullptr) return std::nullopt;
  const std::optional<WitnessTest> beside = TestBesideWitness(*parent, iteration, noise, kWitnessPart * share);
  if (beside && beside->failed()) {
    return absl::StrCat(beside->when, " the parent took ",
                        BesideWitnessText(*beside, iteration.parent_beside_witness().witness()),
                        ": the comparison can't be believed");
  }
  if (beside) share *= 1 - kWitnessPart;
  const v1::SeatTime& now = iteration.as_parent();
  if (now.processes() == 0) return std::nullopt;
  const PooledTime before = TimesWithout(campaign, *parent, iteration);
  if (before.processes == 0) return std::nullopt;  // never timed like this
  const double slower = now.log_time() - before.log_time;
  // Times of one trial do not scatter from trial to trial.
  const Scatter scatter = iteration.has_parent_alone_beside_anchor() ? Scatter() : ScatterOfTrials(campaign);
  const double limit = Limit(noise, scatter, {now.processes(), 1}, {before.processes, before.trials}, share);
  if (slower <= limit || (beside && beside->excluded && slower <= std::log1p(kMostDrift))) return std::nullopt;
  return absl::StrFormat(
      "the parent took %.1f %% longer beside this candidate than %s, relative to the anchor (limit %.1f %%): the "
      "comparison can't be believed",
      PercentOf(slower), iteration.has_parent_alone_beside_anchor() ? "without it" : "before", PercentOf(limit));
}

double SlowdownBesideWitness(const CampaignState& campaign, const v1::Iteration& iteration,
                             const v1::ProcessNoise& noise) {
  const v1::Iteration* parent = iteration.has_parent() ? campaign.Find(iteration.parent()) : nullptr;
  if (parent == nullptr) return 0;
  const std::optional<WitnessTest> test = TestBesideWitness(*parent, iteration, noise, kWitnessPart);
  return test ? std::max(0.0, test->slower) : 0;
}

std::vector<v1::RevisedIteration> RevisedBySeat(const CampaignState& campaign, const v1::Iteration& iteration,
                                                const v1::ProcessNoise& noise, const Gates& gates) {
  const v1::Iteration* parent = iteration.has_parent() ? campaign.Find(iteration.parent()) : nullptr;
  if (parent == nullptr || parent->number() == 0 || parent->verdict() != v1::KEPT) return {};
  const Gate& gate = gates.Get(GateKind::kSeat);
  if (NeverTimedAlone(campaign, *parent, iteration)) {
    const std::string why = "it could not be timed without its candidates, in the trials of two of them";
    return RejectedForSeat(campaign, parent->number(), why, 0, gate);
  }
  if (std::optional<WitnessTest> shown =
          ShownByWitness(campaign, *parent, iteration, noise, kWitnessPart * gate.threshold)) {
    shown->than = "as a candidate";  // alone, it has a candidate's seat
    const std::string why =
        absl::StrCat("as a parent it takes ", BesideWitnessText(*shown, parent->candidate_beside_witness().witness()),
                     ", beside two candidates");
    return RejectedForSeat(campaign, parent->number(), why, shown->slower, gate);
  }
  if (parent->as_candidate().processes() == 0 || iteration.as_parent().processes() == 0 ||
      !TimedAlike(parent->as_candidate(), iteration.as_parent()) || parent->leg() != iteration.leg()) {
    return {};
  }
  // Beside these the witness says that it is not slower, and explains what the anchor says.
  const auto explained = [&](const v1::Iteration& child) {
    const std::optional<WitnessTest> test = TestBesideWitness(*parent, child, noise, kWitnessPart * gate.threshold);
    return test && test->excluded &&
           child.as_parent().log_time() - parent->as_candidate().log_time() <= std::log1p(kMostDrift);
  };
  if (explained(iteration)) return {};
  std::vector<v1::SeatTime> times = TimesAsParent(campaign, *parent, iteration.leg(), iteration.as_parent(), explained);
  int before = 0;
  for (const v1::SeatTime& time : times) before += time.processes();
  const int look = LooksAt(before + iteration.as_parent().processes());
  if (times.empty() || look > kMaxLooks || (times.size() > 1 && look == LooksAt(before))) return {};
  times.push_back(iteration.as_parent());
  // Beside the slowest it may have been the candidate's doing.
  std::iter_swap(std::max_element(times.begin(), times.end(),
                                  [](const auto& a, const auto& b) { return a.log_time() < b.log_time(); }),
                 times.end() - 1);
  times.pop_back();
  PooledTime as_parent;
  for (const v1::SeatTime& time : times) as_parent.Add(time);
  const double share = gate.threshold / kMaxLooks;
  const double slower = as_parent.log_time - parent->as_candidate().log_time();
  const double limit = Limit(noise, ScatterOfTrials(campaign), {as_parent.processes, as_parent.trials},
                             {parent->as_candidate().processes(), 1}, share);
  if (slower <= limit) return {};

  const std::string why = absl::StrFormat(
      "as a parent it takes %.1f %% longer than as a candidate, relative to the anchor (limit %.1f %%, %d processes)",
      PercentOf(slower), PercentOf(limit), as_parent.processes);
  return RejectedForSeat(campaign, parent->number(), why, slower, gate);
}

}  // namespace pawl
