#include "orchestrator/engine/search/portfolio.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/limits.h"
#include "profiles/goal_sizes.h"

namespace pawl {
namespace {

// A variant that is faster by less is not worth a leg, and a rule that loses no more is right.
constexpr double kWorthwhile = 0.03;
constexpr double kLeastGainOfPick = 0.01;  // log speedup where another member is picked
constexpr size_t kMostBetween = 4;
// Of the sizes that a rule looks at: a submission may have hundreds, and their products would take minutes.
constexpr size_t kMostVariables = 8;

// log(start's time / its time) of what the legs found, at one of the goal's sizes.
struct Covered {
  std::string size;
  double weight = 0;
  double speed = 0;
  double over_baseline = 0;  // log; 0 where there is none
  double measured = 0;       // of the fastest variant there, kept or not
};

const v1::SizeTime* TimeAt(const v1::TotalGain& total, const std::string& size) {
  for (const v1::SizeTime& time : total.sizes()) {
    if (time.size() == size && time.start_us() > 0 && time.best_us() > 0) return &time;
  }
  return nullptr;
}

// The best of a leg, as measured beside the start, unless a later leg found it wrong.
bool HasWinner(const CampaignState& campaign, const v1::Leg& leg) {
  const v1::Iteration* winner = leg.has_total() ? campaign.Find(leg.total().iteration()) : nullptr;
  return winner != nullptr && winner->verdict() == v1::KEPT && leg.total().speedup_over_start() > 0;
}

std::vector<Covered> CoveredBy(const CampaignState& campaign) {
  const v1::Campaign& summary = campaign.summary();
  std::vector<Covered> all;
  for (const SizeWeight& size : GoalSizes(campaign.bundle(), summary.spec().goal())) {
    Covered& at = all.emplace_back(Covered{size.size, size.weight});
    for (const v1::Leg& leg : summary.legs()) {
      const v1::SizeTime* time = HasWinner(campaign, leg) ? TimeAt(leg.total(), size.size) : nullptr;
      if (time != nullptr) at.speed = std::max(at.speed, std::log(time->start_us() / time->best_us()));
    }
    for (const v1::Iteration& iteration : campaign.iterations()) {
      if (iteration.verdict() == v1::REJECTED || iteration.untried()) continue;
      at.measured = std::max(at.measured, campaign.LogSpeedAt(iteration.number(), size.size).value_or(0));
    }
    if (!(summary.baseline_us() > 0)) continue;
    const std::optional<double> start = LogBaselineOverStart({{size.size, 1}}, *campaign.Find(0), campaign.baselines());
    if (start) at.over_baseline = *start + at.speed;
  }
  return all;
}

std::set<std::string> NamesOf(const std::vector<Covered>& sizes) {
  std::set<std::string> names;
  for (const Covered& size : sizes) names.insert(size.size);
  return names;
}

std::set<std::string> SizesOfLeg(const CampaignState& campaign, const v1::Leg& leg) {
  std::set<std::string> names;
  for (const SizeWeight& size : GoalSizes(campaign.bundle(), leg.goal())) names.insert(size.size);
  return names;
}

// How far behind what it is held to a size is: the baseline, or the fastest variant that was measured there.
using Behind = double (*)(const Covered&);  // log
double BehindBaseline(const Covered& at) { return -at.over_baseline; }
double BehindMeasured(const Covered& at) { return at.measured - at.speed; }

// Those that are behind. If an earlier leg was over the same ones, those of them that are further behind than the mean.
std::vector<Covered> Left(const CampaignState& campaign, const std::vector<Covered>& all, Behind behind, double least) {
  std::vector<Covered> left;
  std::copy_if(all.begin(), all.end(), std::back_inserter(left), [&](const auto& at) { return behind(at) > least; });
  while (!left.empty()) {
    const std::set<std::string> names = NamesOf(left);
    const auto& legs = campaign.summary().legs();
    const bool fresh =
        std::none_of(legs.begin(), legs.end(), [&](const v1::Leg& leg) { return SizesOfLeg(campaign, leg) == names; });
    if (fresh) return left;
    double mean = 0;
    for (const Covered& at : left) mean += behind(at) / static_cast<double>(left.size());
    const size_t before = left.size();
    std::erase_if(left, [&](const Covered& at) { return behind(at) <= mean; });
    if (left.size() == before) break;
  }
  return {};
}

// Those that no leg but the first was over; none while there is no other leg.
std::vector<Covered> WithoutOwnLeg(const CampaignState& campaign, std::vector<Covered> all) {
  const auto& legs = campaign.summary().legs();
  std::set<std::string> own;
  for (int leg = 1; leg < legs.size(); ++leg) own.merge(SizesOfLeg(campaign, legs[leg]));
  std::erase_if(all, [&](const Covered& at) { return own.empty() || own.contains(at.size); });
  return all;
}

double ProductOf(const v1::Size& size) {
  double product = 1;
  for (const auto& value : size.values()) product *= value.second;
  return product;
}

// A number that grows with the sizes: a variable, or a product of several.
struct Feature {
  std::vector<std::string> variables;

  double Of(const google::protobuf::Map<std::string, int32_t>& values) const {
    double product = 1;
    for (const std::string& variable : variables) product *= values.at(variable);
    return product;
  }
};

struct SizeBound {
  Feature feature;
  double threshold = 0;
  bool above = false;

  bool Holds(const google::protobuf::Map<std::string, int32_t>& values) const {
    return (feature.Of(values) > threshold) == above;
  }
};

// A size with the speed of every member there.
struct SizePoint {
  v1::Portfolio::Pick pick;
  double weight = 0;           // in the objective
  std::vector<double> speeds;  // log(start's time / its time), by member
  std::vector<double> times, starts;
  std::vector<double> baselines;  // by member: see BaselineUs
  double Fastest() const { return *std::max_element(speeds.begin(), speeds.end()); }
};

// A part of the sizes, and the member that serves it.
struct Leaf {
  std::vector<const SizePoint*> points;
  std::vector<SizeBound> conditions;  // all hold
  size_t member = 0;
  double loss = 0;  // against the fastest member at each size
};

double LossOf(const std::vector<const SizePoint*>& points, size_t member) {
  double loss = 0;
  for (const SizePoint* point : points) {
    loss += point->weight * (point->Fastest() - point->speeds[member]);
  }
  return loss;
}

using Candidates = std::set<size_t>;  // members that a rule may pick; never empty

void SetMember(const Candidates& members, Leaf* leaf) {
  leaf->member = *members.begin();
  leaf->loss = LossOf(leaf->points, leaf->member);
  for (const size_t member : members) {
    const double loss = LossOf(leaf->points, member);
    if (loss >= leaf->loss) continue;
    leaf->loss = loss;
    leaf->member = member;
  }
}

// One variable before a product of two, and that before one of all.
std::vector<Feature> FeaturesOf(const std::vector<SizePoint>& points) {
  std::vector<std::string> varying;
  for (const auto& entry : points.front().pick.values()) {
    const std::string& name = entry.first;
    const bool varies = std::any_of(points.begin(), points.end(), [&](const SizePoint& point) {
      return point.pick.values().at(name) != entry.second;
    });
    if (varies) varying.push_back(name);
  }
  std::sort(varying.begin(), varying.end());
  if (varying.size() > kMostVariables) varying.resize(kMostVariables);
  std::vector<Feature> features;
  for (const std::string& name : varying) features.push_back({{name}});
  for (size_t i = 0; i < varying.size(); ++i) {
    for (size_t j = i + 1; j < varying.size(); ++j) features.push_back({{varying[i], varying[j]}});
  }
  if (varying.size() > 2) features.push_back({varying});
  return features;
}

// Of the sizes for which it has another member than before.
double WeightThatChanges(const Leaf& leaf, size_t before) {
  double weight = 0;
  for (const SizePoint* point : leaf.points) weight += leaf.member == before ? 0 : point->weight;
  return weight;
}

// The threshold that splits the leaf with the least loss; nothing: none is better than no split. Times of a few pairs
// differ by chance: where another member is picked it must be faster by more than that.
std::optional<std::pair<Leaf, Leaf>> Split(const Leaf& leaf, const std::vector<Feature>& features,
                                           const Candidates& members) {
  std::optional<std::pair<Leaf, Leaf>> best;
  double least = leaf.loss - 1e-6;
  for (const Feature& feature : features) {
    std::set<double> values;
    for (const SizePoint* point : leaf.points) values.insert(feature.Of(point->pick.values()));
    for (auto value = values.begin(); value != values.end() && std::next(value) != values.end(); ++value) {
      const double threshold = std::max(*value, std::floor(std::sqrt(*value * *std::next(value))));
      Leaf low, high;
      low.conditions = high.conditions = leaf.conditions;
      for (const SizePoint* point : leaf.points) {
        (feature.Of(point->pick.values()) <= threshold ? low : high).points.push_back(point);
      }
      SetMember(members, &low);
      SetMember(members, &high);
      if (low.loss + high.loss >= least) continue;
      const double changed = WeightThatChanges(low, leaf.member) + WeightThatChanges(high, leaf.member);
      if (leaf.loss - low.loss - high.loss <= kLeastGainOfPick * changed) continue;
      least = low.loss + high.loss;
      low.conditions.push_back({feature, threshold, false});
      high.conditions.push_back({feature, threshold, true});
      best = {std::move(low), std::move(high)};
    }
  }
  return best;
}

// Splits where that gains most, until every size has its fastest member.
std::vector<Leaf> FindRuleOf(const std::vector<SizePoint>& points, const std::vector<Feature>& features,
                             const Candidates& members) {
  Leaf all;
  for (const SizePoint& point : points) {
    if (point.weight > 0) all.points.push_back(&point);
  }
  SetMember(members, &all);
  std::vector<Leaf> rule = {std::move(all)};
  while (rule.size() < 2 * kMaxPortfolio) {
    size_t at = 0;
    double most = 0;
    std::optional<std::pair<Leaf, Leaf>> best;
    for (size_t i = 0; i < rule.size(); ++i) {
      std::optional<std::pair<Leaf, Leaf>> split = Split(rule[i], features, members);
      if (!split || rule[i].loss - split->first.loss - split->second.loss <= most) continue;
      most = rule[i].loss - split->first.loss - split->second.loss;
      at = i;
      best = std::move(split);
    }
    if (!best) break;
    rule[at] = std::move(best->first);
    rule.insert(rule.begin() + static_cast<ptrdiff_t>(at) + 1, std::move(best->second));
  }
  return rule;
}

size_t MemberAt(const std::vector<Leaf>& rule, const SizePoint& point) {
  for (const Leaf& leaf : rule) {
    const bool holds = std::all_of(leaf.conditions.begin(), leaf.conditions.end(),
                                   [&](const SizeBound& each) { return each.Holds(point.pick.values()); });
    if (holds) return leaf.member;
  }
  return rule.back().member;
}

double CoverageOf(const SizePoint& point, size_t member) { return std::exp(point.speeds[member] - point.Fastest()); }

// From the goal's sizes; where that is wrong between them, from all sizes.
std::vector<Leaf> FindRule(const std::vector<SizePoint>& points, const std::vector<Feature>& features,
                           const Candidates& members) {
  std::vector<Leaf> rule = FindRuleOf(points, features, members);
  const bool wrong = std::any_of(points.begin(), points.end(), [&](const SizePoint& point) {
    double fastest = point.speeds[*members.begin()];
    for (const size_t member : members) fastest = std::max(fastest, point.speeds[member]);
    return std::exp(point.speeds[MemberAt(rule, point)] - fastest) < 1 - kWorthwhile;
  });
  if (wrong) {
    std::vector<SizePoint> all = points;
    for (SizePoint& point : all) point.weight = std::max(point.weight, 1e-3);
    rule = FindRuleOf(all, features, members);
  }
  for (Leaf& leaf : rule) leaf.points.clear();  // they may lie in `all`
  return rule;
}

Candidates UsedBy(const std::vector<Leaf>& rule) {
  Candidates used;
  for (const Leaf& leaf : rule) used.insert(leaf.member);
  return used;
}

// What a rule costs: sizes of the goal at which it is slower than the start, then speed.
struct RuleCost {
  int losing = 0;
  double loss = 0;
  bool operator<(const RuleCost& other) const {
    return losing != other.losing ? losing < other.losing : loss < other.loss;
  }
};

// Slower by more than chance.
bool LosesToTheStart(const SizePoint& point, size_t member) { return point.speeds[member] < -kLeastGainOfPick; }

RuleCost CostOf(const std::vector<SizePoint>& points, const std::vector<Leaf>& rule) {
  RuleCost cost;
  for (const SizePoint& point : points) {
    const size_t member = MemberAt(rule, point);
    cost.losing += point.weight > 0 && LosesToTheStart(point, member);
    cost.loss += point.weight * (point.Fastest() - point.speeds[member]);
  }
  return cost;
}

// The rule that uses at most so many members: while there are more, the one goes whose loss costs least.
std::vector<Leaf> FindRuleOfAtMost(size_t most, const std::vector<SizePoint>& points,
                                   const std::vector<Feature>& features, const Candidates& members) {
  std::vector<Leaf> rule = FindRule(points, features, members);
  while (UsedBy(rule).size() > most) {
    const Candidates used = UsedBy(rule);
    std::optional<RuleCost> least;
    for (const size_t dropped : used) {
      Candidates left = used;
      left.erase(dropped);
      std::vector<Leaf> without = FindRule(points, features, left);
      const RuleCost cost = CostOf(points, without);
      if (least && !(cost < *least)) continue;
      least = cost;
      rule = std::move(without);
    }
  }
  return rule;
}

// The best of each leg, each once, in the order of the legs; and the start, which nothing may lose to.
struct Members {
  std::vector<int> iterations;
  std::vector<const v1::Leg*> legs;  // null: the start
};

Members MembersOf(const CampaignState& campaign) {
  Members members;
  for (const v1::Leg& leg : campaign.summary().legs()) {
    const int winner = leg.total().iteration();
    const bool known = std::count(members.iterations.begin(), members.iterations.end(), winner) > 0;
    if (!HasWinner(campaign, leg) || known) continue;
    members.iterations.push_back(winner);
    members.legs.push_back(&leg);
  }
  members.iterations.push_back(0);
  members.legs.push_back(nullptr);
  return members;
}

// The baseline's time at a size, for what a leg found; 0: unknown. That of the ratio that was measured interleaved with
// it, if the leg was over that size; otherwise of the last leg that was, and at last that of iteration 0.
double BaselineUs(const CampaignState& campaign, const v1::Leg* of, const v1::SizeTime& time) {
  const auto over = [&](const v1::Leg& leg) {
    const v1::TotalGain& total = leg.total();
    return SizesOfLeg(campaign, leg).contains(time.size()) && total.beside_baseline().interval().pairs() > 1;
  };
  if (of == nullptr || !over(*of)) {
    const auto& legs = campaign.summary().legs();
    const auto last = std::find_if(legs.rbegin(), legs.rend(), over);
    if (last == legs.rend()) return time.baseline_us();
    of = &*last;
  }
  const v1::SizeTime* there = TimeAt(of->total(), time.size());
  if (there == nullptr) return time.baseline_us();
  // Of several sizes, the worker did this at each.
  const bool one_size = SizesOfLeg(campaign, *of).size() == 1;
  const double log_ratio = of->total().beside_baseline().interval().mean_log_ratio();
  return one_size ? there->best_us() * std::exp(log_ratio) : there->baseline_us();
}

// Every size at which all members were timed beside the start.
std::vector<SizePoint> PointsOf(const CampaignState& campaign, const Members& members) {
  std::vector<SizePoint> points;
  const std::vector<SizeWeight> weights = GoalSizes(campaign.bundle(), campaign.summary().spec().goal());
  for (const v1::SizeTime& first : members.legs.front()->total().sizes()) {
    SizePoint point;
    point.pick.set_size(first.size());
    point.pick.set_hidden(!first.values().empty());
    *point.pick.mutable_values() = first.values();
    for (const v1::Size& size : campaign.bundle().sizes()) {
      if (size.name() == first.size()) *point.pick.mutable_values() = size.values();
    }
    if (point.pick.values().empty()) continue;  // nobody asked for it
    for (const SizeWeight& weight : weights) {
      if (weight.size == first.size()) point.weight = weight.weight;
    }
    for (const v1::Leg* leg : members.legs) {
      const v1::SizeTime* time = TimeAt((leg == nullptr ? members.legs.front() : leg)->total(), first.size());
      if (time == nullptr) break;
      point.starts.push_back(time->start_us());
      point.times.push_back(leg == nullptr ? time->start_us() : time->best_us());
      point.speeds.push_back(std::log(point.starts.back() / point.times.back()));
      point.baselines.push_back(BaselineUs(campaign, leg, *time));
    }
    if (point.speeds.size() == members.legs.size()) points.push_back(std::move(point));
  }
  return points;
}

// Weighted over the goal's sizes.
void SetSpeedups(const std::vector<SizePoint>& points, v1::Portfolio* portfolio) {
  double over_start = 0, over_baseline = 0;
  bool has_baseline = true;
  for (size_t i = 0; i < points.size(); ++i) {
    const v1::Portfolio::Pick& pick = portfolio->picks(static_cast<int>(i));
    if (points[i].weight == 0) continue;
    over_start += points[i].weight * std::log(pick.start_us() / pick.time_us());
    has_baseline = has_baseline && pick.baseline_us() > 0;
    if (has_baseline) over_baseline += points[i].weight * std::log(pick.baseline_us() / pick.time_us());
  }
  portfolio->set_speedup_over_start(std::exp(over_start));
  if (has_baseline) portfolio->set_speedup_over_baseline(std::exp(over_baseline));
}

v1::Portfolio WithRule(const std::vector<Leaf>& rule, const Members& members) {
  v1::Portfolio portfolio;
  for (const Leaf& leaf : rule) {
    v1::Portfolio::Member& member = *portfolio.add_members();
    member.set_iteration(members.iterations[leaf.member]);
    if (&leaf == &rule.back()) break;  // the others are asked first
    for (const SizeBound& condition : leaf.conditions) {
      v1::Portfolio::Bound& bound = *member.add_bounds();
      bound.mutable_sizes()->Assign(condition.feature.variables.begin(), condition.feature.variables.end());
      bound.set_limit(static_cast<int64_t>(condition.threshold));
      bound.set_above(condition.above);
    }
  }
  return portfolio;
}

// What is lost, and what could not be measured.
std::string NoteOf(const std::vector<std::string>& losing, const std::string& limit, bool checked_between) {
  std::vector<std::string> notes;
  if (!losing.empty()) {
    notes.push_back(absl::StrCat("slower than the start at ", absl::StrJoin(losing, ", "), limit));
  }
  if (!checked_between) {
    notes.push_back("the rule was not checked between the goal's sizes: nothing was timed there");
  }
  return absl::StrJoin(notes, "; ");
}

}  // namespace

int MostLegs(const v1::Goal& goal) { return goal.portfolio() > 1 ? 1 + goal.portfolio() : 1; }

std::optional<v1::Leg> NextLeg(const CampaignState& campaign) {
  const v1::Campaign& summary = campaign.summary();
  if (summary.legs_size() >= MostLegs(summary.spec().goal())) return std::nullopt;
  const std::vector<Covered> all = CoveredBy(campaign);
  std::string why = "no leg was over these sizes alone";
  Behind behind = nullptr;
  std::vector<Covered> left = WithoutOwnLeg(campaign, all);
  if (left.empty()) {
    left = Left(campaign, all, BehindBaseline, 0);
    why = "slower than the baseline";
    behind = BehindBaseline;
  }
  if (left.empty()) {
    left = Left(campaign, all, BehindMeasured, kWorthwhile);
    why = "slower than another variant";
    behind = BehindMeasured;
  }
  if (left.empty()) return std::nullopt;
  v1::Leg leg;
  v1::Goal& goal = *leg.mutable_goal();
  goal = summary.spec().goal();
  goal.clear_sizes();
  goal.clear_portfolio();
  double sum = 0, most = 0;
  for (const Covered& at : left) sum += at.weight;
  std::vector<std::string> texts;
  for (const Covered& at : left) {
    if (at.weight > most) goal.set_size(at.size);
    most = std::max(most, at.weight);
    if (left.size() > 1) (*goal.mutable_sizes())[at.size] = at.weight / sum;
    texts.push_back(at.size);
    if (behind != nullptr) absl::StrAppendFormat(&texts.back(), " (%.2fx)", std::exp(-behind(at)));
  }
  if (left.size() == 1) goal.clear_worst();
  leg.set_why(absl::StrCat(why, behind != nullptr ? " at " : ": ", absl::StrJoin(texts, ", ")));
  return leg;
}

std::vector<v1::Size> SizesBetween(const v1::Bundle& bundle, const v1::Goal& goal) {
  std::vector<v1::Size> goal_sizes, between;
  for (const v1::Size& size : bundle.sizes()) {
    if (goal.sizes().contains(size.name())) goal_sizes.push_back(size);
  }
  for (size_t i = 1; i < goal_sizes.size() && between.size() < kMostBetween; ++i) {
    v1::Size size = goal_sizes[i - i % 2];  // the larger neighbour's other dimensions, and the smaller one's, in turn
    std::vector<std::string> values;
    for (const auto& [name, range] : bundle.hidden()) {
      const int32_t low = goal_sizes[i - 1].values().at(name), high = goal_sizes[i].values().at(name);
      const int32_t multiple = std::max(1, range.multiple());
      const auto middle = static_cast<int32_t>(std::sqrt(static_cast<double>(low) * high)) / multiple * multiple;
      if (middle <= std::min(low, high) || middle >= std::max(low, high)) continue;
      if (middle < range.low() || middle > range.high()) continue;
      (*size.mutable_values())[name] = middle;
      values.push_back(absl::StrCat(name, "=", middle));
    }
    std::sort(values.begin(), values.end());
    const double larger = std::max(ProductOf(goal_sizes[i - 1]), ProductOf(goal_sizes[i]));
    if (values.empty() || ProductOf(size) > larger) continue;
    size.set_name(absl::StrCat(size.name(), " with ", absl::StrJoin(values, " ")));
    between.push_back(std::move(size));
  }
  return between;
}

std::optional<v1::Portfolio> PortfolioOf(const CampaignState& campaign) {
  const Members members = MembersOf(campaign);
  if (members.iterations.size() < 2) return std::nullopt;
  std::vector<SizePoint> points = PointsOf(campaign, members);
  if (points.empty()) return std::nullopt;
  const std::vector<Feature> features = FeaturesOf(points);
  Candidates all;
  for (size_t member = 0; member < members.iterations.size(); ++member) all.insert(member);
  const auto most = static_cast<size_t>(std::max(1, campaign.summary().spec().goal().portfolio()));
  const std::vector<Leaf> rule = FindRuleOfAtMost(most, points, features, all);
  const Candidates used = UsedBy(rule);
  v1::Portfolio portfolio = WithRule(rule, members);
  if (used.size() < 2) {
    // That of the first leg is the campaign's best anyway; a later leg may have found one that serves all sizes better.
    const int only = members.iterations[*used.begin()];
    const v1::Leg& first = campaign.summary().legs(0);
    if ((HasWinner(campaign, first) ? first.total().iteration() : 0) == only) return std::nullopt;
    portfolio.clear_members();
    portfolio.add_members()->set_iteration(only);
  }
  int between = 0;
  std::vector<std::string> losing;
  for (const SizePoint& point : points) {
    const size_t member = MemberAt(rule, point);
    if (LosesToTheStart(point, member)) {
      losing.push_back(absl::StrFormat("%s (%.3fx)", point.pick.size(), std::exp(point.speeds[member])));
    }
    v1::Portfolio::Pick& pick = *portfolio.add_picks();
    pick = point.pick;
    pick.set_iteration(members.iterations[member]);
    pick.set_start_us(point.starts[member]);
    pick.set_time_us(point.times[member]);
    if (point.baselines[member] > 0) pick.set_baseline_us(point.baselines[member]);
    pick.set_coverage(CoverageOf(point, member));
    between += pick.hidden();
  }
  SetSpeedups(points, &portfolio);
  const bool limited = UsedBy(FindRule(points, features, all)).size() > most;
  portfolio.set_note(NoteOf(losing, limited ? absl::StrCat(", with at most ", most, " variants") : "", between > 0));
  return portfolio;
}

}  // namespace pawl
