#include "orchestrator/engine/verdict/seat.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "orchestrator/engine/state/noise_pool.h"

namespace pawl {
namespace {

// Looks at one variant: by the last, 1024 processes have measured it as a parent.
constexpr int kMaxLooks = 10;

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

v1::SeatTime SeatTimeOf(const std::vector<std::vector<v1::PairSample>>& processes, bool parent) {
  v1::SeatTime time;
  for (const std::vector<v1::PairSample>& process : processes) {
    double sum = 0;
    for (const v1::PairSample& pair : process) {
      sum += std::log((parent ? pair.parent_us() : pair.candidate_us()) / pair.anchor_us());
    }
    time.set_log_time(time.log_time() + sum / static_cast<double>(process.size()));
  }
  time.set_log_time(time.log_time() / static_cast<double>(processes.size()));
  time.set_processes(static_cast<int>(processes.size()));
  return time;
}

}  // namespace

void SetSeatTimes(const v1::TrialResult& result, v1::Iteration* iteration) {
  const std::vector<std::vector<v1::PairSample>> processes = PairsByProcess(result);
  for (const std::vector<v1::PairSample>& process : processes) {
    if (std::any_of(process.begin(), process.end(), [](const auto& pair) { return !(pair.anchor_us() > 0); })) return;
  }
  if (processes.empty()) return;
  *iteration->mutable_as_candidate() = SeatTimeOf(processes, false);
  if (iteration->has_parent()) *iteration->mutable_as_parent() = SeatTimeOf(processes, true);
}

std::optional<std::string> SlowedParent(const CampaignState& campaign, const v1::Iteration& iteration,
                                        const v1::ProcessNoise& noise, double share) {
  const v1::Iteration* parent = iteration.has_parent() ? campaign.Find(iteration.parent()) : nullptr;
  if (parent == nullptr || parent->as_candidate().processes() == 0 || iteration.as_parent().processes() == 0) {
    return std::nullopt;
  }
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
  if (parent == nullptr || parent->number() == 0 || parent->verdict() != v1::KEPT ||
      parent->as_candidate().processes() == 0 || iteration.as_parent().processes() == 0) {
    return {};
  }
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
  const Gate& gate = gates.Get(GateKind::kSeat);
  const double share = gate.threshold / kMaxLooks;
  const double slower = as_parent.log_time - parent->as_candidate().log_time();
  const double limit = Limit(noise, as_parent.processes, parent->as_candidate().processes(), share);
  if (slower <= limit) return {};

  const std::string why = absl::StrFormat(
      "as a parent it takes %.1f %% longer than as a candidate, relative to the anchor (limit %.1f %%, %d processes)",
      PercentOf(slower), PercentOf(limit), as_parent.processes);
  std::vector<v1::RevisedIteration> all;
  std::set<int> rejected = {parent->number()};
  for (const v1::Iteration& other : campaign.iterations()) {  // parents are judged before their children
    const bool itself = other.number() == parent->number();
    const bool built = (other.has_parent() && rejected.contains(other.parent())) ||
                       (other.has_over_best() && rejected.contains(other.compared_with()));
    if (!itself && !built) continue;
    rejected.insert(other.number());
    if (other.verdict() != v1::KEPT) continue;
    const std::string text =
        itself ? why : absl::StrCat("it was built on iteration ", parent->number(), ", which was rejected: ", why);
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

}  // namespace pawl
