#include "orchestrator/engine/search/ranking.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "kernels/variable_values.h"
#include "orchestrator/engine/search/hindsight.h"
#include "orchestrator/engine/search/seeded_random.h"

namespace pawl {
namespace {

constexpr double kTieBreak = 1e-6;        // far below any gain: orders changes about which nothing is known
constexpr int kMaxSecondChanges = 8;      // second changes whose constraints are checked
constexpr size_t kMaxForbidden = 4;       // forbidden changes that unlocking is considered for
constexpr size_t kChecksPerExamined = 8;  // changes of other parents whose constraints are checked

// A single change of one of the parents.
struct Candidate {
  size_t parent = 0;
  size_t variable = 0;
  uint16_t place = 0;
  double mean = 0;
  SpeedModel::Posterior posterior;
  RankedChange ranked;
};

class Ranker {
 public:
  Ranker(const CampaignState& campaign, const RuleScore& rules, const RankingSettings& settings)
      : campaign_(campaign),
        source_(campaign.SourceIdOf(campaign.best()->number())),
        bundle_(campaign.BundleOf(source_)),
        best_(*campaign.best()),
        rules_(rules),
        settings_(settings),
        hindsight_(campaign, settings),
        best_log_(std::log(best_.speedup_over_start())),
        random_(campaign.summary().name(), static_cast<uint64_t>(campaign.next_iteration())) {
    auto& values = *queried_.mutable_values();
    for (const v1::Variable& variable : bundle_.variables()) values[variable.name()] = 0;
    for (const v1::Variable& variable : bundle_.variables()) queried_values_.push_back(&values.at(variable.name()));
  }

  Ranking Rank() {
    ReadIterations();
    ClipSlowest();
    FindParents();
    model_.emplace(samples_, settings_.model, scales_);
    for (const v1::Iteration* parent : parents_) parent_points_.push_back(Extended(*parent));
    for (const Point& point : parent_points_) neighbourhoods_.emplace_back(*model_, point);
    for (size_t i = 0; i < parents_.size(); ++i) VisitChanges(i);
    Examine();
    DiscountUntilCauseIsTested();
    Unlock();
    LookAhead();
    return Collected();
  }

 private:
  // A variant's point, and its source as one more variable if the campaign has several.
  Point Extended(Point point, int source) const {
    if (sources_ > 1) point.push_back(static_cast<uint16_t>(source));
    return point;
  }
  Point Extended(const v1::Iteration& iteration) const {
    return Extended(PointOf(bundle_, iteration.variant()), campaign_.SourceIdOf(iteration.number()));
  }
  bool InSpace(int iteration) const {
    return campaign_.SpaceIdOf(campaign_.SourceIdOf(iteration)) == campaign_.SpaceIdOf(source_);
  }
  // The same of any iteration. Where an edit changed the variables, one that is new has its start, and a variant with a
  // value that is no more has no point.
  std::optional<Point> Placed(int iteration, const google::protobuf::Map<std::string, int32_t>& values) const {
    const int source = campaign_.SourceIdOf(iteration);
    if (InSpace(iteration)) return Extended(PointOf(bundle_, values), source);
    const v1::Bundle& other = campaign_.BundleOf(source);
    v1::Variant carried;
    for (const v1::Variable& variable : bundle_.variables()) {
      const v1::Variable* before = FindVariable(other, variable.name());
      const auto value = values.find(variable.name());
      int32_t& to = (*carried.mutable_values())[variable.name()];
      to = variable.start();
      if (before == nullptr || value == values.end()) continue;
      const std::string text = ValueText(*before, value->second);
      const auto same = std::find_if(variable.values().begin(), variable.values().end(),
                                     [&](int32_t each) { return ValueText(variable, each) == text; });
      if (same == variable.values().end()) return std::nullopt;
      to = *same;
    }
    return Extended(PointOf(bundle_, carried.values()), source);
  }
  // Unique for each point.
  uint64_t KeyOf(const Point& point) const {
    uint64_t key = 0;
    for (size_t i = 0; i < point.size(); ++i) key = key * (scales_[i].size() + 1) + point[i];
    return key;
  }
  double LogOf(const v1::Iteration& iteration) const { return std::log(iteration.speedup_over_start()); }

  void ReadIterations() {
    scales_ = ScalesOf(bundle_);
    for (const v1::Iteration& iteration : campaign_.iterations()) {
      sources_ = std::max(sources_, campaign_.SourceIdOf(iteration.number()) + 1);
    }
    for (const auto& [trial, open] : campaign_.open_trials()) {
      if (open.planned.purpose() != v1::TRIAL_PURPOSE_ITERATION) continue;
      sources_ = std::max(sources_, campaign_.SourceIdOf(open.planned.iteration()) + 1);
    }
    if (sources_ > 1) {
      std::vector<double>& scale = scales_.emplace_back();
      for (int i = 0; i < sources_; ++i) scale.push_back(i);
    }
    for (const v1::Iteration& iteration : campaign_.iterations()) {
      std::optional<Point> point = Placed(iteration.number(), iteration.variant());
      if (!point) continue;
      tried_[KeyOf(*point)] = iteration.number();
      if (iteration.speedup_over_start() > 0) {
        samples_.push_back({*std::move(point), LogOf(iteration)});
      } else if (iteration.has_failure()) {  // a variant that a replay passed over was not tried
        failed_.push_back(*std::move(point));
      }
    }
    // Open trials count as measured with their parent's speed, so that a round does not test the same thing twice.
    for (const auto& [trial, open] : campaign_.open_trials()) {
      const v1::TrialPlanned& planned = open.planned;
      if (planned.purpose() != v1::TRIAL_PURPOSE_ITERATION || !planned.has_parent()) continue;
      if (InSpace(planned.parent())) round_parent_ = campaign_.Find(planned.parent());
      std::optional<Point> point = Placed(planned.iteration(), planned.variant().values());
      if (!point) continue;
      tried_[KeyOf(*point)] = planned.iteration();
      samples_.push_back({*std::move(point), LogOf(*campaign_.Find(planned.parent()))});
    }
  }

  void ClipSlowest() {
    double fastest = best_log_;
    for (const SpeedModel::Sample& sample : samples_) fastest = std::max(fastest, sample.log_speed);
    for (SpeedModel::Sample& sample : samples_) {
      sample.log_speed = std::max(sample.log_speed, fastest - settings_.clip_depth);
    }
  }

  // The best first.
  void FindParents() {
    if (round_parent_ != nullptr) {
      parents_ = {round_parent_};
      return;
    }
    for (const v1::Iteration& iteration : campaign_.iterations()) {
      const bool parent = iteration.verdict() == v1::KEPT && &iteration != &best_ && InSpace(iteration.number());
      if (parent) parents_.push_back(&iteration);
    }
    std::stable_sort(parents_.begin(), parents_.end(), [](const v1::Iteration* a, const v1::Iteration* b) {
      return a->speedup_over_start() > b->speedup_over_start();
    });
    parents_.insert(parents_.begin(), &best_);
    parents_.resize(std::min(parents_.size(), static_cast<size_t>(settings_.parents)));
  }

  // Adds every untried single change of the parent, with the model's mean.
  void VisitChanges(size_t parent) {
    Point point = parent_points_[parent];
    for (size_t i = 0; i < static_cast<size_t>(bundle_.variables_size()); ++i) {
      const uint16_t own = point[i];
      for (point[i] = 0; point[i] < bundle_.variables(static_cast<int>(i)).values_size(); ++point[i]) {
        if (point[i] == own) continue;
        const uint64_t key = KeyOf(point);
        if (const auto tried = tried_.find(key); tried != tried_.end()) {
          if (parents_[parent] == &best_) tried_around_.push_back({ChangeOf(parent, i, point[i]), tried->second});
          continue;
        }
        if (const auto seen = seen_.find(key); seen != seen_.end()) {
          TakeDetour(candidates_[seen->second], parent, i, point[i]);
          continue;
        }
        seen_[key] = candidates_.size();
        Candidate& candidate = candidates_.emplace_back();
        candidate.parent = parent;
        candidate.variable = i;
        candidate.place = point[i];
        candidate.mean = neighbourhoods_[parent].Mean(i, point[i]);
        if (parents_[parent] == &best_) ScoreByRules(candidate);
      }
      point[i] = own;
    }
  }

  // A variant that is expected to be slower than its parent would be reverted. As a change of a slower parent the same
  // variant can be kept, and further changes can start from it.
  void TakeDetour(Candidate& candidate, size_t parent, size_t variable, uint16_t place) const {
    if (SinceBest() < settings_.detours_after) return;
    if (candidate.ranked.rule.served != nullptr || candidate.mean >= LogOf(*parents_[candidate.parent])) return;
    candidate.ranked.detour = candidate.ranked.detour || candidate.parent == 0;
    candidate.parent = parent;
    candidate.variable = variable;
    candidate.place = place;
  }

  v1::Change ChangeOf(size_t parent, size_t variable, uint16_t place) const {
    const v1::Variable& changed = bundle_.variables(static_cast<int>(variable));
    v1::Change change;
    change.set_variable(changed.name());
    change.set_from(parents_[parent]->variant().at(changed.name()));
    change.set_to(changed.values(place));
    return change;
  }

  void ScoreByRules(Candidate& candidate) const {
    const v1::Variable& variable = bundle_.variables(static_cast<int>(candidate.variable));
    candidate.ranked.rule = rules_.Of(variable, best_.variant().at(variable.name()), variable.values(candidate.place));
    const int32_t to = variable.values(candidate.place);
    candidate.ranked.takes_back = candidate.ranked.rule.served != nullptr &&
                                  hindsight_.TakesBack(variable.name(), to, candidate.ranked.rule.effect);
    candidate.ranked.discount = hindsight_.Discount(variable, to, candidate.ranked.takes_back);
    candidate.ranked.rule.log_gain *= candidate.ranked.discount;
    candidate.ranked.score.set_rules(candidate.ranked.rule.log_gain);
    candidate.ranked.score.set_patterns(candidate.ranked.rule.pattern_gain);
  }

  // If a kept change caused a finding, undoing that change is tested first. Until then, other changes for the finding
  // are down-weighted.
  void DiscountUntilCauseIsTested() {
    for (Candidate* candidate : examined_) {
      RankedChange& ranked = candidate->ranked;
      if (ranked.rule.served == nullptr || ranked.takes_back) continue;
      for (const Candidate* cause : examined_) {
        const RankedChange& first = cause->ranked;
        if (!first.takes_back || first.discount < 1 || first.rule.served != ranked.rule.served ||
            first.rule.effect.resource() != ranked.rule.effect.resource()) {
          continue;
        }
        ranked.after = ChangeOf(cause->parent, cause->variable, cause->place);
        ranked.score.set_rules(settings_.after_cause * ranked.score.rules());
        break;
      }
    }
  }

  Point PointAt(const Candidate& candidate) const {
    Point point = parent_points_[candidate.parent];
    point[candidate.variable] = candidate.place;
    return point;
  }

  bool Allowed(const Point& point) {
    for (size_t i = 0; i < queried_values_.size(); ++i) {
      *queried_values_[i] = bundle_.variables(static_cast<int>(i)).values(point[i]);
    }
    const absl::StatusOr<bool> allowed = campaign_.Allows(queried_, source_);
    return allowed.ok() && *allowed;
  }

  // Computes the model's term for every allowed change of the best variant, and for the changes of other parents with
  // the highest means.
  void Examine() {
    std::vector<Candidate*> elsewhere;
    for (Candidate& candidate : candidates_) {
      if (parents_[candidate.parent] != &best_ && round_parent_ == nullptr) {
        elsewhere.push_back(&candidate);
      } else if (Allowed(PointAt(candidate))) {
        ScoreByModel(candidate);
      } else if (candidate.ranked.rule.log_gain > 0) {
        forbidden_.push_back(&candidate);
      }
    }
    std::stable_sort(elsewhere.begin(), elsewhere.end(),
                     [](const Candidate* a, const Candidate* b) { return a->mean > b->mean; });
    const size_t examined = static_cast<size_t>(settings_.examined);
    elsewhere.resize(std::min(elsewhere.size(), kChecksPerExamined * examined));
    size_t left = examined;
    for (Candidate* candidate : elsewhere) {
      if (left == 0) break;
      if (!Allowed(PointAt(*candidate))) continue;
      ScoreByModel(*candidate);
      --left;
    }
  }

  // Changes that rules ask for and constraints forbid add to the score of the changes of the best variant after which
  // they are allowed.
  void Unlock() {
    std::stable_sort(forbidden_.begin(), forbidden_.end(), [](const Candidate* a, const Candidate* b) {
      return a->ranked.rule.log_gain > b->ranked.rule.log_gain;
    });
    if (forbidden_.size() > kMaxForbidden) forbidden_.resize(kMaxForbidden);
    for (Candidate* candidate : examined_) {
      if (parents_[candidate->parent] != &best_) continue;
      for (const Candidate* wanted : forbidden_) {
        if (wanted->variable == candidate->variable) continue;
        Point both = PointAt(*candidate);
        both[wanted->variable] = wanted->place;
        if (tried_.contains(KeyOf(both)) || !Allowed(both)) continue;
        candidate->ranked.unlocks = ChangeOf(wanted->parent, wanted->variable, wanted->place);
        candidate->ranked.score.set_rules(candidate->ranked.score.rules() +
                                          settings_.unlocked * wanted->ranked.rule.log_gain);
        break;
      }
    }
  }

  void ScoreByModel(Candidate& candidate) {
    candidate.posterior = Widened(neighbourhoods_[candidate.parent].Predict(candidate.variable, candidate.place));
    double gain = ExpectedImprovement(candidate.posterior, best_log_) * ProbabilityValid(PointAt(candidate));
    if (hindsight_.WasLeft(candidate.variable, candidate.place)) gain *= settings_.returning;
    if (ContinuesLastChange(candidate)) gain += settings_.momentum;
    candidate.ranked.score.set_model(gain + kTieBreak * random_.Uniform());
    examined_.push_back(&candidate);
  }

  // Iterations judged since the best variant was.
  ptrdiff_t SinceBest() const { return &campaign_.iterations().back() - &best_; }

  // The model is overconfident if it has predicted gains for many iterations and none was measured.
  SpeedModel::Posterior Widened(SpeedModel::Posterior posterior) const {
    posterior.sd *= 1 + std::min(settings_.max_sd_growth, settings_.sd_growth * static_cast<double>(SinceBest()));
    return posterior;
  }

  // The share of variants differing in one variable that passed validation, with one success added as a prior.
  double ProbabilityValid(const Point& point) const {
    if (failed_.empty()) return 1;
    const auto next_to = [&](const Point& other) {
      int differences = 0;
      for (size_t i = 0; i < point.size() && differences < 2; ++i) differences += point[i] != other[i];
      return differences == 1;
    };
    const auto worked =
        std::count_if(samples_.begin(), samples_.end(), [&](const auto& s) { return next_to(s.point); });
    const auto failed = std::count_if(failed_.begin(), failed_.end(), next_to);
    return (1.0 + static_cast<double>(worked)) / static_cast<double>(1 + worked + failed);
  }

  // The last iteration made the best variant, and the change moves its variable further in the same direction.
  bool ContinuesLastChange(const Candidate& candidate) const {
    const v1::Iteration& last = campaign_.iterations().back();
    if (&last != &best_ || parents_[candidate.parent] != &best_) return false;
    const v1::Variable& variable = bundle_.variables(static_cast<int>(candidate.variable));
    const v1::Change& kept = last.change();
    return kept.variable() == variable.name() &&
           (kept.to() > kept.from()) == (variable.values(candidate.place) > kept.to());
  }

  // Adds the expected gain of the best second change, times the probability that the first change is kept.
  void LookAhead() {
    std::stable_sort(examined_.begin(), examined_.end(), [](const Candidate* a, const Candidate* b) {
      return a->ranked.score.model() > b->ranked.score.model();
    });
    const size_t count = std::min(examined_.size(), static_cast<size_t>(settings_.lookahead));
    for (size_t i = 0; i < count; ++i) {
      Candidate& candidate = *examined_[i];
      const double kept = ProbabilityAbove(candidate.posterior, LogOf(*parents_[candidate.parent]));
      candidate.ranked.score.set_model(candidate.ranked.score.model() + kept * GainOfSecondChange(PointAt(candidate)));
    }
  }

  double GainOfSecondChange(const Point& centre) {
    const SpeedModel::Neighbourhood neighbourhood(*model_, centre);
    struct Second {
      double mean;
      size_t variable;
      uint16_t place;
    };
    std::vector<Second> seconds;
    Point point = centre;
    for (size_t i = 0; i < static_cast<size_t>(bundle_.variables_size()); ++i) {
      for (point[i] = 0; point[i] < bundle_.variables(static_cast<int>(i)).values_size(); ++point[i]) {
        const uint64_t key = KeyOf(point);
        if (point[i] == centre[i] || tried_.contains(key) || seen_.contains(key)) continue;
        seconds.push_back({neighbourhood.Mean(i, point[i]), i, point[i]});
      }
      point[i] = centre[i];
    }
    std::stable_sort(seconds.begin(), seconds.end(), [](const auto& a, const auto& b) { return a.mean > b.mean; });
    if (seconds.size() > kMaxSecondChanges) seconds.resize(kMaxSecondChanges);
    for (const Second& second : seconds) {
      point = centre;
      point[second.variable] = second.place;
      if (Allowed(point))
        return ExpectedImprovement(Widened(neighbourhood.Predict(second.variable, second.place)), best_log_);
    }
    return 0;
  }

  Ranking Collected() {
    Ranking ranking;
    ranking.tried_around = std::move(tried_around_);
    for (Candidate& candidate : candidates_) {
      candidate.ranked.parent = parents_[candidate.parent]->number();
      candidate.ranked.change = ChangeOf(candidate.parent, candidate.variable, candidate.place);
      ranking.changes.push_back(std::move(candidate.ranked));
    }
    std::stable_sort(ranking.changes.begin(), ranking.changes.end(),
                     [](const RankedChange& a, const RankedChange& b) { return SumOf(a.score) > SumOf(b.score); });
    return ranking;
  }

  const CampaignState& campaign_;
  const int source_;          // of the best variant
  const v1::Bundle& bundle_;  // with that source's variables
  const v1::Iteration& best_;
  const RuleScore& rules_;
  const RankingSettings& settings_;
  const Hindsight hindsight_;
  const double best_log_;
  SeededRandom random_;

  v1::Variant queried_;                   // for Allowed; made once because a map is slow to fill
  std::vector<int32_t*> queried_values_;  // of its map, which does not move them
  Scales scales_;
  int sources_ = 1;
  std::vector<SpeedModel::Sample> samples_;
  std::vector<Point> failed_;
  std::unordered_map<uint64_t, int> tried_;  // iteration by KeyOf
  const v1::Iteration* round_parent_ = nullptr;
  std::vector<const v1::Iteration*> parents_;
  std::vector<Point> parent_points_;
  std::optional<SpeedModel> model_;
  std::vector<SpeedModel::Neighbourhood> neighbourhoods_;  // of the parents
  std::vector<Candidate> candidates_;
  std::unordered_map<uint64_t, size_t> seen_;  // place in candidates_ by KeyOf
  std::vector<Candidate*> forbidden_;          // by constraints, and asked for by rules
  std::vector<Candidate*> examined_;           // with the model's full posterior
  std::vector<TriedChange> tried_around_;
};

}  // namespace

double SumOf(const v1::Score& score) { return score.rules() + score.model() + score.patterns(); }

Ranking RankChanges(const CampaignState& campaign, const RuleScore& rules, const RankingSettings& settings) {
  return Ranker(campaign, rules, settings).Rank();
}

}  // namespace pawl
