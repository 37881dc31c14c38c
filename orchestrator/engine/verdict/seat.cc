#include "orchestrator/engine/verdict/seat.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "orchestrator/engine/state/noise_pool.h"
#include "profiles/seat_rule.h"

namespace pawl {
namespace {

// Looks at one variant: by the last, 1024 processes have measured it as a parent.
constexpr int kMaxLooks = 10;

// Of the share of honest comparisons that may fail, where both the witness and the anchor tell.
constexpr double kWitnessPart = 0.5;

// Times of one variant, weighted by the processes that measured them.
struct PooledTime {
  double log_time = 0;
  int processes = 0;

  void Add(const v1::SeatTime& time) {
    const int all = processes + time.processes();
    log_time = (log_time * processes + time.log_time() * time.processes()) / all;
    processes = all;
  }
};

// By how much a time may exceed another by noise, but for this share.
double Limit(const v1::ProcessNoise& noise, int processes, int others, double share) {
  const bool known = noise.anchor_variance() > 0 && noise.anchor_degrees() > 0;
  const v1::ProcessNoise assumed = known ? noise : UnknownNoise();
  // Without arithmetic in long double, which some machines only emulate.
  using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
  const boost::math::students_t_distribution<double, Policy> distribution(assumed.anchor_degrees());
  const double t = boost::math::quantile(boost::math::complement(distribution, share));
  return t * std::sqrt(assumed.anchor_variance() * (1.0 / processes + 1.0 / others));
}

// Of the parent beside each of its children that were judged.
std::vector<v1::SeatTime> TimesAsParent(const CampaignState& campaign, int parent) {
  std::vector<v1::SeatTime> times;
  for (const v1::Iteration& iteration : campaign.iterations()) {
    if (iteration.has_parent() && iteration.parent() == parent && iteration.as_parent().processes() > 0) {
      times.push_back(iteration.as_parent());
    }
  }
  return times;
}

// 1 for the first look, when two processes have measured it; 0: not yet.
int LooksAt(int processes) { return static_cast<int>(std::log2(processes)); }

double PercentOf(double log_time) { return 100 * std::expm1(log_time); }

using Processes = std::vector<std::vector<v1::PairSample>>;
using TimeOf = double (v1::PairSample::*)() const;

// Of the processes all of whose pairs have both times.
v1::SeatTime SeatTimeOf(const Processes& processes, TimeOf time, TimeOf relative_to) {
  std::vector<std::vector<double>> all;
  for (const std::vector<v1::PairSample>& process : processes) {
    std::vector<double> logs;
    for (const v1::PairSample& pair : process) {
      const double of = (pair.*time)(), beside = (pair.*relative_to)();
      if (of > 0 && beside > 0) logs.push_back(std::log(of / beside));
    }
    if (logs.size() == process.size() && logs.size() > 1) all.push_back(std::move(logs));
  }
  return all.empty() ? v1::SeatTime() : pawl::SeatTimeOf(all);
}

void SetTimesBesideWitness(const v1::Iteration& parent, bool same_gpu, const Processes& processes,
                           v1::Iteration* iteration) {
  const std::optional<int> witness = WitnessOf(parent);
  v1::SeatTime candidate;
  if (witness) {
    v1::SeatTime time = SeatTimeOf(processes, &v1::PairSample::parent_us, &v1::PairSample::witness_us);
    time.set_witness(*witness);
    if (time.processes() > 0 && same_gpu) *iteration->mutable_parent_beside_witness() = time;
    candidate = SeatTimeOf(processes, &v1::PairSample::candidate_us, &v1::PairSample::witness_us);
    candidate.set_witness(*witness);
  }
  const bool near = candidate.processes() > 0 && -candidate.log_time() <= std::log(kNearWitness);
  if (!near) {
    candidate = SeatTimeOf(processes, &v1::PairSample::candidate_us, &v1::PairSample::parent_us);
    candidate.set_witness(parent.number());
  }
  if (candidate.processes() > 0) *iteration->mutable_candidate_beside_witness() = candidate;
}

// What the witness says of the parent beside one candidate; nothing: it was not there.
std::optional<SeatTest> TestBesideWitness(const v1::Iteration& parent, const v1::Iteration& child,
                                          const v1::ProcessNoise& noise, double share) {
  if (!ComparableSeats(parent.candidate_beside_witness(), child.parent_beside_witness())) return std::nullopt;
  return TestSeat(parent.candidate_beside_witness(), child.parent_beside_witness(), noise, share);
}

std::string BesideWitnessText(const SeatTest& test, int witness) {
  return absl::StrFormat(
      "%.1f %% longer than as a candidate, relative to iteration %d in the same processes (limit "
      "%.1f %%)",
      PercentOf(test.slower), witness, PercentOf(test.limit));
}

// The parent with everything that was built on it.
std::vector<v1::RevisedIteration> RejectedWith(const CampaignState& campaign, int parent, const std::string& why,
                                               double slower, const Gate& gate) {
  std::vector<v1::RevisedIteration> all;
  std::set<int> rejected = {parent};
  for (const v1::Iteration& other : campaign.iterations()) {  // parents are judged before their children
    const bool itself = other.number() == parent;
    const bool built = (other.has_parent() && rejected.contains(other.parent())) ||
                       (other.has_over_best() && rejected.contains(other.compared_with()));
    if (!itself && !built) continue;
    rejected.insert(other.number());
    if (other.verdict() != v1::KEPT) continue;
    const std::string text =
        itself ? why : absl::StrCat("it was built on iteration ", parent, ", which was rejected: ", why);
    v1::RevisedIteration& revised = all.emplace_back();
    revised.set_number(other.number());
    revised.set_verdict(v1::REJECTED);
    revised.set_reason(absl::StrCat(other.reason(), "; but ", text));
    revised.set_speedup_over_start(other.speedup_over_start());
    revised.set_speedup_over_baseline(other.speedup_over_baseline());
    revised.mutable_failure()->set_stage(v1::STAGE_MEASURE);
    revised.mutable_failure()->set_check(v1::CHECK_SEAT);
    revised.mutable_failure()->set_message(text);
    *revised.mutable_failed_gate() = gate.Failed(slower, text);
  }
  return all;
}

// Beside a candidate, this one or an earlier one, the witness excluded that the parent is slower in its seat.
bool ExcludedByWitness(const CampaignState& campaign, const v1::Iteration& parent, const v1::Iteration& iteration,
                       const v1::ProcessNoise& noise, double share) {
  const auto excludes = [&](const v1::Iteration& child) {
    const std::optional<SeatTest> test = TestBesideWitness(parent, child, noise, share);
    return test && test->excluded;
  };
  const auto& all = campaign.iterations();
  return excludes(iteration) || std::any_of(all.begin(), all.end(), [&](const v1::Iteration& other) {
           return other.has_parent() && other.parent() == parent.number() && excludes(other);
         });
}

// Two candidates showed it, and no fewer than showed the opposite.
std::optional<SeatTest> ShownByWitness(const CampaignState& campaign, const v1::Iteration& parent,
                                       const v1::Iteration& iteration, const v1::ProcessNoise& noise, double share) {
  const std::optional<SeatTest> now = TestBesideWitness(parent, iteration, noise, share);
  if (!now || !now->failed()) return std::nullopt;
  int failed = 1, passed = 0;
  for (const v1::Iteration& other : campaign.iterations()) {
    if (!other.has_parent() || other.parent() != parent.number()) continue;
    const std::optional<SeatTest> test = TestBesideWitness(parent, other, noise, share);
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
  if (planned.purpose() != v1::TRIAL_PURPOSE_ITERATION || !planned.has_parent()) return;
  const v1::Iteration& parent = *campaign.Find(planned.parent());
  const std::optional<int> witness = WitnessOf(parent);
  if (!witness) return;
  *trial->mutable_witness() = VariantOf(*campaign.Find(*witness));
  *trial->mutable_parent_as_candidate() = parent.candidate_beside_witness();
  if (campaign.SourceIdOf(*witness) > 0) trial->set_witness_patched_source(campaign.SourceOf(*witness));
}

void SetSeatTimes(const CampaignState& campaign, const v1::TrialResult& result, v1::Iteration* iteration) {
  const std::string& size = campaign.summary().spec().goal().size();
  const Processes processes = PairsByProcess(result, size, size);
  const v1::Iteration* parent = iteration->has_parent() ? campaign.Find(iteration->parent()) : nullptr;
  if (parent != nullptr) {
    const bool same_gpu = campaign.GpuOf(parent->number()) == result.gpu().uuid();
    SetTimesBesideWitness(*parent, same_gpu, processes, iteration);
  }
  const auto anchored = [](const std::vector<v1::PairSample>& process) {
    return std::all_of(process.begin(), process.end(), [](const auto& pair) { return pair.anchor_us() > 0; });
  };
  if (processes.empty() || !std::all_of(processes.begin(), processes.end(), anchored)) return;
  const auto set = [](const v1::SeatTime& from, v1::SeatTime* to) {
    to->set_log_time(from.log_time());
    to->set_processes(from.processes());
  };
  set(SeatTimeOf(processes, &v1::PairSample::candidate_us, &v1::PairSample::anchor_us),
      iteration->mutable_as_candidate());
  if (!iteration->has_parent()) return;
  set(SeatTimeOf(processes, &v1::PairSample::parent_us, &v1::PairSample::anchor_us), iteration->mutable_as_parent());
}

std::optional<std::string> SlowedParent(const CampaignState& campaign, const v1::Iteration& iteration,
                                        const v1::ProcessNoise& noise, double share) {
  const v1::Iteration* parent = iteration.has_parent() ? campaign.Find(iteration.parent()) : nullptr;
  if (parent == nullptr) return std::nullopt;
  const std::optional<SeatTest> beside = TestBesideWitness(*parent, iteration, noise, kWitnessPart * share);
  if (beside && beside->failed()) {
    return absl::StrCat("beside this candidate the parent took ",
                        BesideWitnessText(*beside, iteration.parent_beside_witness().witness()),
                        ": the comparison can't be believed");
  }
  // Times relative to the anchor differ by several percent from trial to trial where kernels are short: they decide only
  // where the witness can't.
  if (beside && beside->excluded) return std::nullopt;
  if (beside) share *= 1 - kWitnessPart;
  if (parent->as_candidate().processes() == 0 || iteration.as_parent().processes() == 0) return std::nullopt;
  PooledTime before;
  before.Add(parent->as_candidate());
  for (const v1::SeatTime& time : TimesAsParent(campaign, parent->number())) before.Add(time);
  const double slower = iteration.as_parent().log_time() - before.log_time;
  const double limit = Limit(noise, iteration.as_parent().processes(), before.processes, share);
  if (slower <= limit) return std::nullopt;
  return absl::StrFormat(
      "the parent took %.1f %% longer beside this candidate than before, relative to the anchor (limit %.1f %%): the "
      "comparison can't be believed",
      PercentOf(slower), PercentOf(limit));
}

std::vector<v1::RevisedIteration> RevisedBySeat(const CampaignState& campaign, const v1::Iteration& iteration,
                                                const v1::ProcessNoise& noise, const Gates& gates) {
  const v1::Iteration* parent = iteration.has_parent() ? campaign.Find(iteration.parent()) : nullptr;
  if (parent == nullptr || parent->number() == 0 || parent->verdict() != v1::KEPT) return {};
  const Gate& gate = gates.Get(GateKind::kSeat);
  if (const std::optional<SeatTest> shown =
          ShownByWitness(campaign, *parent, iteration, noise, kWitnessPart * gate.threshold)) {
    const std::string why =
        absl::StrCat("as a parent it takes ", BesideWitnessText(*shown, parent->candidate_beside_witness().witness()),
                     ", beside two candidates");
    return RejectedWith(campaign, parent->number(), why, shown->slower, gate);
  }
  if (ExcludedByWitness(campaign, *parent, iteration, noise, kWitnessPart * gate.threshold)) return {};
  if (parent->as_candidate().processes() == 0 || iteration.as_parent().processes() == 0) return {};
  std::vector<v1::SeatTime> times = TimesAsParent(campaign, parent->number());
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
  const double limit = Limit(noise, as_parent.processes, parent->as_candidate().processes(), share);
  if (slower <= limit) return {};

  const std::string why = absl::StrFormat(
      "as a parent it takes %.1f %% longer than as a candidate, relative to the anchor (limit %.1f %%, %d processes)",
      PercentOf(slower), PercentOf(limit), as_parent.processes);
  return RejectedWith(campaign, parent->number(), why, slower, gate);
}

}  // namespace pawl
