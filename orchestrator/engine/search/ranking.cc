#include "orchestrator/engine/search/ranking.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "orchestrator/engine/search/hindsight.h"
#include "orchestrator/engine/search/seeded_random.h"

namespace pawl {
namespace {

constexpr double kTie = 1e-6;        // far below any gain: decides between changes of which nothing is known
constexpr int kBeyondChecked = 8;    // variants beyond a change that constraints are asked about
constexpr size_t kUnlocked = 4;      // changes that constraints forbid, of those that rules ask for most
constexpr size_t kAskedAMember = 8;  // changes elsewhere that constraints are asked about, for each that is examined

// A single change of one of the parents.
struct Found {
  size_t parent = 0;
  size_t variable = 0;
  uint16_t place = 0;
  double mean = 0;
  SpeedModel::Guess guess;
  RankedChange ranked;
};

class Ranker {
 public:
  Ranker(const CampaignState& campaign, const RuleVoice& rules, const RankingSettings& settings)
      : campaign_(campaign),
        bundle_(campaign.bundle()),
        best_(*campaign.best()),
        rules_(rules),
        settings_(settings),
        hindsight_(campaign, settings),
        best_log_(std::log(best_.speedup_over_start())),
        random_(campaign.summary().name(), static_cast<uint64_t>(campaign.next_iteration())) {
    auto& values = *asked_.mutable_values();
    for (const v1::Variable& variable : bundle_.variables()) values[variable.name()] = 0;
    for (const v1::Variable& variable : bundle_.variables()) asked_values_.push_back(&values.at(variable.name()));
  }

  Ranking Rank() {
    ReadIterations();
    LiftSlowest();
    FindParents();
    model_.emplace(samples_, settings_.model, scales_);
    for (const v1::Iteration* parent : parents_) parent_points_.push_back(Extended(*parent));
    for (const Point& point : parent_points_) arounds_.emplace_back(*model_, point);
    for (size_t i = 0; i < parents_.size(); ++i) VisitChanges(i);
    Examine();
    AskTheCauseFirst();
    Unlock();
    Foresee();
    return Collected();
  }

 private:
  // A variant's point, with its source where the campaign has several.
  Point Extended(Point point, int source) const {
    if (sources_ > 1) point.push_back(static_cast<uint16_t>(source));
    return point;
  }
  Point Extended(const v1::Iteration& iteration) const {
    return Extended(PointOf(bundle_, iteration.variant()), campaign_.SourceIdOf(iteration.number()));
  }
  // No two points have the same.
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
      Point point = Extended(iteration);
      tried_[KeyOf(point)] = iteration.number();
      if (iteration.speedup_over_start() > 0) {
        samples_.push_back({std::move(point), LogOf(iteration)});
      } else if (iteration.has_failure()) {  // what a replay passed over was not tried: it says nothing
        failed_.push_back(std::move(point));
      }
    }
    // What is under way counts as fast as its parent, so that a round does not ask the same thing twice.
    for (const auto& [trial, open] : campaign_.open_trials()) {
      const v1::TrialPlanned& planned = open.planned;
      if (planned.purpose() != v1::TRIAL_PURPOSE_ITERATION || !planned.has_parent()) continue;
      Point point = Extended(PointOf(bundle_, planned.variant().values()), campaign_.SourceIdOf(planned.iteration()));
      tried_[KeyOf(point)] = planned.iteration();
      samples_.push_back({std::move(point), LogOf(*campaign_.Find(planned.parent()))});
      round_parent_ = campaign_.Find(planned.parent());
    }
  }

  void LiftSlowest() {
    double fastest = best_log_;
    for (const SpeedModel::Sample& sample : samples_) fastest = std::max(fastest, sample.log_speed);
    for (SpeedModel::Sample& sample : samples_) {
      sample.log_speed = std::max(sample.log_speed, fastest - settings_.depth);
    }
  }

  // The best first.
  void FindParents() {
    if (round_parent_ != nullptr) {
      parents_ = {round_parent_};
      return;
    }
    for (const v1::Iteration& iteration : campaign_.iterations()) {
      if (iteration.verdict() == v1::KEPT && &iteration != &best_) parents_.push_back(&iteration);
    }
    std::stable_sort(parents_.begin(), parents_.end(), [](const v1::Iteration* a, const v1::Iteration* b) {
      return a->speedup_over_start() > b->speedup_over_start();
    });
    parents_.insert(parents_.begin(), &best_);
    parents_.resize(std::min(parents_.size(), static_cast<size_t>(settings_.parents)));
  }

  // Every untried single change of the parent, with what the model makes of it on average.
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
          TakeDetour(found_[seen->second], parent, i, point[i]);
          continue;
        }
        seen_[key] = found_.size();
        Found& found = found_.emplace_back();
        found.parent = parent;
        found.variable = i;
        found.place = point[i];
        found.mean = arounds_[parent].Mean(i, point[i]);
        if (parents_[parent] == &best_) AskRules(found);
      }
      point[i] = own;
    }
  }

  // What is expected to be slower than a parent would be taken back there. From a slower parent the same variant is
  // kept, and leads on.
  void TakeDetour(Found& found, size_t parent, size_t variable, uint16_t place) const {
    if (SinceBest() < settings_.detours_after) return;
    if (found.ranked.opinion.served != nullptr || found.mean >= LogOf(*parents_[found.parent])) return;
    found.ranked.detour = found.ranked.detour || found.parent == 0;
    found.parent = parent;
    found.variable = variable;
    found.place = place;
  }

  v1::Change ChangeOf(size_t parent, size_t variable, uint16_t place) const {
    const v1::Variable& turned = bundle_.variables(static_cast<int>(variable));
    v1::Change change;
    change.set_variable(turned.name());
    change.set_from(parents_[parent]->variant().at(turned.name()));
    change.set_to(turned.values(place));
    return change;
  }

  void AskRules(Found& found) const {
    const v1::Variable& variable = bundle_.variables(static_cast<int>(found.variable));
    found.ranked.opinion = rules_.Of(variable, best_.variant().at(variable.name()), variable.values(found.place));
    // What measurements spoke against is worth less.
    const int32_t to = variable.values(found.place);
    found.ranked.takes_back = found.ranked.opinion.served != nullptr &&
                              hindsight_.TakesBack(variable.name(), to, found.ranked.opinion.effect);
    found.ranked.left = hindsight_.Left(variable, to, found.ranked.takes_back);
    found.ranked.opinion.log_gain *= found.ranked.left;
    found.ranked.voices.set_rules(found.ranked.opinion.log_gain);
    found.ranked.voices.set_patterns(found.ranked.opinion.pattern_gain);
  }

  // Where a kept change brought along what a rule now wants less of, the first question is whether it still pays: until
  // that is answered, other changes that serve the rule speak more softly.
  void AskTheCauseFirst() {
    for (Found* found : promising_) {
      RankedChange& ranked = found->ranked;
      if (ranked.opinion.served == nullptr || ranked.takes_back) continue;
      for (const Found* cause : promising_) {
        const RankedChange& first = cause->ranked;
        if (!first.takes_back || first.left < 1 || first.opinion.served != ranked.opinion.served ||
            first.opinion.effect.resource() != ranked.opinion.effect.resource()) {
          continue;
        }
        ranked.after = ChangeOf(cause->parent, cause->variable, cause->place);
        ranked.voices.set_rules(settings_.after_cause * ranked.voices.rules());
        break;
      }
    }
  }

  Point PointAt(const Found& found) const {
    Point point = parent_points_[found.parent];
    point[found.variable] = found.place;
    return point;
  }

  bool Allowed(const Point& point) {
    for (size_t i = 0; i < asked_values_.size(); ++i) {
      *asked_values_[i] = bundle_.variables(static_cast<int>(i)).values(point[i]);
    }
    const absl::StatusOr<bool> allowed = campaign_.Allows(asked_);
    return allowed.ok() && *allowed;
  }

  // How sure the model is: of every change of the best variant, and elsewhere of those that promise most.
  void Examine() {
    std::vector<Found*> elsewhere;
    for (Found& found : found_) {
      if (parents_[found.parent] != &best_ && round_parent_ == nullptr) {
        elsewhere.push_back(&found);
      } else if (Allowed(PointAt(found))) {
        Guess(found);
      } else if (found.ranked.opinion.log_gain > 0) {
        forbidden_.push_back(&found);
      }
    }
    std::stable_sort(elsewhere.begin(), elsewhere.end(),
                     [](const Found* a, const Found* b) { return a->mean > b->mean; });
    const size_t examined = static_cast<size_t>(settings_.examined);
    elsewhere.resize(std::min(elsewhere.size(), kAskedAMember * examined));
    size_t left = examined;
    for (Found* found : elsewhere) {
      if (left == 0) break;
      if (!Allowed(PointAt(*found))) continue;
      Guess(*found);
      --left;
    }
  }

  // What rules ask for and constraints forbid speaks for the changes of the best variant after which it is allowed.
  void Unlock() {
    std::stable_sort(forbidden_.begin(), forbidden_.end(), [](const Found* a, const Found* b) {
      return a->ranked.opinion.log_gain > b->ranked.opinion.log_gain;
    });
    if (forbidden_.size() > kUnlocked) forbidden_.resize(kUnlocked);
    for (Found* found : promising_) {
      if (parents_[found->parent] != &best_) continue;
      for (const Found* wish : forbidden_) {
        if (wish->variable == found->variable) continue;
        Point both = PointAt(*found);
        both[wish->variable] = wish->place;
        if (tried_.contains(KeyOf(both)) || !Allowed(both)) continue;
        found->ranked.unlocks = ChangeOf(wish->parent, wish->variable, wish->place);
        found->ranked.voices.set_rules(found->ranked.voices.rules() +
                                       settings_.unlocked * wish->ranked.opinion.log_gain);
        break;
      }
    }
  }

  void Guess(Found& found) {
    found.guess = Doubted(arounds_[found.parent].Predict(found.variable, found.place));
    double voice = ExpectedImprovement(found.guess, best_log_) * ChanceToWork(PointAt(found));
    if (hindsight_.WasLeft(found.variable, found.place)) voice *= settings_.returning;
    if (GoesOn(found)) voice += settings_.momentum;
    found.ranked.voices.set_model(voice + kTie * random_.Uniform());
    promising_.push_back(&found);
  }

  // Iterations judged since the best variant was.
  ptrdiff_t SinceBest() const { return &campaign_.iterations().back() - &best_; }

  // A model that has promised more for long without getting it is less sure than it says.
  SpeedModel::Guess Doubted(SpeedModel::Guess guess) const {
    guess.sd *= 1 + std::min(settings_.most_doubt, settings_.doubt * static_cast<double>(SinceBest()));
    return guess;
  }

  // By what became of the variants that differ in one variable.
  double ChanceToWork(const Point& point) const {
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

  // The change goes on where the last iteration, which made the best variant, went.
  bool GoesOn(const Found& found) const {
    const v1::Iteration& last = campaign_.iterations().back();
    if (&last != &best_ || parents_[found.parent] != &best_) return false;
    const v1::Variable& variable = bundle_.variables(static_cast<int>(found.variable));
    const v1::Change& kept = last.change();
    return kept.variable() == variable.name() &&
           (kept.to() > kept.from()) == (variable.values(found.place) > kept.to());
  }

  // What lies beyond a change counts as far as the change is likely to be kept.
  void Foresee() {
    std::stable_sort(promising_.begin(), promising_.end(), [](const Found* a, const Found* b) {
      return a->ranked.voices.model() > b->ranked.voices.model();
    });
    const size_t foreseen = std::min(promising_.size(), static_cast<size_t>(settings_.foreseen));
    for (size_t i = 0; i < foreseen; ++i) {
      Found& found = *promising_[i];
      const double kept = ChanceAbove(found.guess, LogOf(*parents_[found.parent]));
      found.ranked.voices.set_model(found.ranked.voices.model() + kept * GainBeyond(PointAt(found)));
    }
  }

  double GainBeyond(const Point& centre) {
    const SpeedModel::Around around(*model_, centre);
    struct Beyond {
      double mean;
      size_t variable;
      uint16_t place;
    };
    std::vector<Beyond> beyond;
    Point point = centre;
    for (size_t i = 0; i < static_cast<size_t>(bundle_.variables_size()); ++i) {
      for (point[i] = 0; point[i] < bundle_.variables(static_cast<int>(i)).values_size(); ++point[i]) {
        const uint64_t key = KeyOf(point);
        if (point[i] == centre[i] || tried_.contains(key) || seen_.contains(key)) continue;
        beyond.push_back({around.Mean(i, point[i]), i, point[i]});
      }
      point[i] = centre[i];
    }
    std::stable_sort(beyond.begin(), beyond.end(), [](const auto& a, const auto& b) { return a.mean > b.mean; });
    if (beyond.size() > kBeyondChecked) beyond.resize(kBeyondChecked);
    for (const Beyond& next : beyond) {
      point = centre;
      point[next.variable] = next.place;
      if (Allowed(point)) return ExpectedImprovement(Doubted(around.Predict(next.variable, next.place)), best_log_);
    }
    return 0;
  }

  Ranking Collected() {
    Ranking ranking;
    ranking.tried_around = std::move(tried_around_);
    for (Found& found : found_) {
      found.ranked.parent = parents_[found.parent]->number();
      found.ranked.change = ChangeOf(found.parent, found.variable, found.place);
      ranking.changes.push_back(std::move(found.ranked));
    }
    std::stable_sort(ranking.changes.begin(), ranking.changes.end(),
                     [](const RankedChange& a, const RankedChange& b) { return SumOf(a.voices) > SumOf(b.voices); });
    return ranking;
  }

  const CampaignState& campaign_;
  const v1::Bundle& bundle_;
  const v1::Iteration& best_;
  const RuleVoice& rules_;
  const RankingSettings& settings_;
  const Hindsight hindsight_;
  const double best_log_;
  SeededRandom random_;

  v1::Variant asked_;                   // what constraints are asked about, ...
  std::vector<int32_t*> asked_values_;  // ... made once: a map is slow to fill, and its values stay where they are
  Scales scales_;
  int sources_ = 1;
  std::vector<SpeedModel::Sample> samples_;
  std::vector<Point> failed_;
  std::unordered_map<uint64_t, int> tried_;  // iteration by KeyOf
  const v1::Iteration* round_parent_ = nullptr;
  std::vector<const v1::Iteration*> parents_;
  std::vector<Point> parent_points_;
  std::optional<SpeedModel> model_;
  std::vector<SpeedModel::Around> arounds_;  // of the parents
  std::vector<Found> found_;
  std::unordered_map<uint64_t, size_t> seen_;  // place in found_ by KeyOf
  std::vector<Found*> forbidden_;              // that rules ask for
  std::vector<Found*> promising_;              // those that the model was asked about in full
  std::vector<TriedChange> tried_around_;
};

}  // namespace

double SumOf(const v1::Voices& voices) { return voices.rules() + voices.model() + voices.patterns(); }

Ranking RankChanges(const CampaignState& campaign, const RuleVoice& rules, const RankingSettings& settings) {
  return Ranker(campaign, rules, settings).Rank();
}

}  // namespace pawl
