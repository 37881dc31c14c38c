#include "orchestrator/engine/search/ranking.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "kernels/variable_values.h"
#include "orchestrator/engine/search/inertness.h"
#include "orchestrator/engine/search/seeded_random.h"
#include "orchestrator/engine/search/single_change.h"

namespace pawl {
namespace {

constexpr double kTieBreak = 1e-9;        // far below any gain: orders changes about which nothing is known
constexpr size_t kBlock = 32;             // changes whose posteriors are computed together
constexpr size_t kFirstRefit = 8;         // observations: with fewer, the parameters are fitted for every choice,
constexpr double kRefitGrowth = 1.25;     // then whenever their number has grown by this factor
constexpr size_t kMostRefused = 100'000;  // variants of which it is remembered whether they can be tried
constexpr int kMostFlips = 3;             // variables in which variants with the same code may differ
constexpr size_t kMostPlans = 4'000;      // variants whose plans are remembered
constexpr size_t kMostOutcomes = 160;     // the newest ones, by which failures and costs are judged
// The standard normal distribution's quantile at 0.995, as far as earlier campaigns were ranked with it: more digits
// could change a replayed choice.
constexpr double kNormalQuantile995 = 2.576;

// A single change of one of the parents, of which only bounds are known. There are many.
struct Prospect {
  uint32_t parent = 0;
  uint16_t variable = 0, place = 0;
  Posterior::Normal bound;  // of log speed: see Posterior::Neighbourhood
  double most = 0;          // upper bound of the expected improvement over the aim
};

// A change that was looked at.
struct Candidate {
  size_t parent = 0, variable = 0;
  Point point;
  double most = 0;   // as of the prospect
  double aimed = 0;  // that improvement, with the probability of passing and what a second change may add
  Posterior::Normal log_speed;
  v1::Score score;
  bool examined = false;
  std::string refused;
  std::optional<v1::Change> unlocks;
  double same_code = 0;  // see RankedChange
  int twin = -1;
};

// Of a trial.
struct Outcome {
  const Point* point;  // of the memo's
  double valid = 1;    // 0: it was rejected, or a recording lacks it
  double seconds = 0;
};

// Points by what they are, not by where they lie: most are the memo's.
struct PointHash {
  size_t operator()(const Point* point) const { return SearchMemo::Hash()(*point); }
};
struct SamePoint {
  bool operator()(const Point* a, const Point* b) const { return *a == *b; }
};

// The number of observations to which the parameters are fitted when there are this many.
size_t FittedOf(size_t observations) {
  size_t fitted = std::min(observations, kFirstRefit);
  while (true) {
    const size_t next = std::max(fitted + 1, static_cast<size_t>(kRefitGrowth * static_cast<double>(fitted)));
    if (fitted < kFirstRefit || next > observations) return fitted;
    fitted = next;
  }
}

double VarianceOf(const v1::Comparison& comparison) {
  const double sd = (comparison.upper() - comparison.lower()) / 2 / kNormalQuantile995;
  return std::isfinite(sd) ? sd * sd : 0;
}

int DifferencesOf(const Point& a, const Point& b) {
  int differences = 0;
  for (size_t v = 0; v < a.size(); ++v) differences += a[v] != b[v];
  return differences;
}

void AppendBytes(const v1::Plan& plan, std::string* bytes) {
  google::protobuf::io::StringOutputStream stream(bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  plan.SerializeToCodedStream(&out);
}

class Ranker {
 public:
  Ranker(const CampaignState& campaign, const RulePrior& rules, const RankingSettings& settings)
      : campaign_(campaign),
        source_(campaign.SourceIdOf(campaign.best()->number())),
        bundle_(campaign.BundleOf(source_)),
        best_(*campaign.best()),
        rules_(rules),
        settings_(settings),
        best_log_(LogOf(best_)),
        random_(campaign.summary().name(), static_cast<uint64_t>(campaign.next_iteration())) {
    auto& values = *queried_.mutable_values();
    for (const v1::Variable& variable : bundle_.variables()) values[variable.name()] = 0;
    for (const v1::Variable& variable : bundle_.variables()) queried_values_.push_back(&values.at(variable.name()));
  }

  Ranking Rank() {
    if (bundle_.variables().empty()) return {};  // only edits can be tried
    ReadIterations();
    ReadInertness();
    FindParents();
    const Posterior::Parameters& parameters = Parameters();
    posterior_.emplace(rules_.shared_causes(), std::move(observations_), scales_, parameters, settings_.posterior);
    for (uint32_t parent = 0; parent < parents_.size(); ++parent) AddProspects(parent);
    SetAim();
    ExamineFirstParent();
    ExamineOthers();
    LookAhead();
    return Collected();
  }

 private:
  double LogOf(const v1::Iteration& iteration) const { return std::log(campaign_.SpeedupOf(iteration)); }

  // A variant's point, and its source as one more variable if the campaign has several.
  Point Extended(Point point, int source) const {
    if (sources_ > 1) point.push_back(static_cast<uint16_t>(source));
    return point;
  }
  // The iteration's variant has the same variables and constraints as the best one.
  bool InSpace(int iteration) const {
    return campaign_.SpaceIdOf(campaign_.SourceIdOf(iteration)) == campaign_.SpaceIdOf(source_);
  }
  // The point of any iteration. Where an edit changed the variables, one that is new has its start, and a variant with
  // a value that is no more has no point.
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
    std::vector<std::optional<Point>>& known = Memo().iterations;
    while (known.size() < campaign_.iterations().size()) {
      const v1::Iteration& next = campaign_.iterations()[known.size()];
      known.push_back(Placed(next.number(), next.variant()));
    }
    tried_.reserve(known.size() + campaign_.open_trials().size());
    for (const v1::Iteration& iteration : campaign_.iterations()) {
      const std::optional<Point>& point = known[static_cast<size_t>(&iteration - campaign_.iterations().data())];
      if (!point || campaign_.IsUnknown(iteration)) continue;
      tried_[&*point] = iteration.number();
      const bool valid = campaign_.IsMeasured(iteration);
      if (!valid && iteration.verdict() == v1::REVERTED) continue;  // an unsteady GPU left no time of it
      double seconds = 0;
      for (const v1::StageTime& stage : iteration.stages()) seconds += stage.seconds();
      // One with its parent's code was built and not measured: it does not say what a trial costs.
      if (&campaign_.CodeOf(iteration) != &iteration && iteration.interval().pairs() == 0) seconds = 0;
      outcomes_.push_back({&*point, valid ? 1.0 : 0.0, seconds});
      if (valid) observations_.push_back({*point, LogOf(iteration), VarianceOf(iteration.interval())});
    }
    if (outcomes_.size() > kMostOutcomes) outcomes_.erase(outcomes_.begin(), outcomes_.end() - kMostOutcomes);
    std::vector<const Point*> points;
    for (const Outcome& outcome : outcomes_) points.push_back(outcome.point);
    outcome_places_ = Posterior::PlacesOf(points, scales_.size());
    double seconds = 0, timed = 0;
    for (const Outcome& outcome : outcomes_) {
      seconds += outcome.seconds;
      timed += outcome.seconds > 0;
    }
    if (timed > 0) average_seconds_ = seconds / timed;
    measured_ = observations_.size();
    // Open trials count as measured with their parent's speed, so that several workers do not test the same thing.
    for (const auto& [trial, open] : campaign_.open_trials()) {
      const v1::TrialPlanned& planned = open.planned;
      if (planned.purpose() != v1::TRIAL_PURPOSE_ITERATION || !planned.has_parent()) continue;
      const std::optional<Point> point = Placed(planned.iteration(), planned.variant().values());
      if (!point) continue;
      tried_[&open_points_.emplace_back(*point)] = planned.iteration();
      observations_.push_back({*point, LogOf(*campaign_.Find(planned.parent())), 0});
    }
  }

  // What changes of one variable did to the code.
  void ReadInertness() {
    if (!campaign_.HasTwins()) return;
    const std::vector<std::optional<Point>>& known = Memo().iterations;
    std::unordered_map<int, const Point*> points;  // by iteration
    for (size_t i = 0; i < known.size(); ++i) {
      const v1::Iteration& iteration = campaign_.iterations()[i];
      if (!known[i] || !campaign_.IsMeasured(iteration)) continue;
      points[iteration.number()] = &*known[i];
      const auto parent = iteration.has_parent() ? points.find(iteration.parent()) : points.end();
      if (parent == points.end() || DifferencesOf(*known[i], *parent->second) != 1) continue;
      size_t variable = 0;
      while ((*known[i])[variable] == (*parent->second)[variable]) ++variable;
      if (variable >= queried_values_.size()) continue;  // an edit
      const v1::Iteration& other = *campaign_.Find(iteration.parent());
      inertness_.Add(variable, *known[i], *parent->second, &campaign_.CodeOf(iteration) == &campaign_.CodeOf(other));
    }
  }

  // Empty where the best variant was in another space when it was last used, or there were fewer sources.
  SearchMemo& Memo() const {
    SearchMemo& memo = campaign_.search_memo();
    const int space = campaign_.SpaceIdOf(source_);
    if (memo.space != space || memo.sources != sources_) {
      memo = SearchMemo();
      memo.space = space;
      memo.sources = sources_;
    }
    return memo;
  }

  const Posterior::Parameters& Parameters() const {
    SearchMemo& memo = Memo();
    const size_t count = FittedOf(measured_);
    if (memo.observations != count) {
      const auto end = observations_.begin() + static_cast<ptrdiff_t>(count);
      memo.parameters = Posterior::Fit({observations_.begin(), end}, scales_, {}, settings_.posterior);
      memo.observations = count;
    }
    return memo.parameters;
  }

  // The best first. Where there are too many: the fastest half of the number, and a half that is spread evenly over the
  // others, because the fastest may all lie in one valley. Variants with the same code count as one.
  void FindParents() {
    for (const v1::Iteration& iteration : campaign_.iterations()) {
      const bool parent = &iteration != &best_ && campaign_.IsMeasured(iteration) && InSpace(iteration.number());
      if (parent) parents_.push_back(&iteration);
    }
    std::vector<std::pair<double, const v1::Iteration*>> by_speed;
    by_speed.reserve(parents_.size());
    for (const v1::Iteration* parent : parents_) by_speed.emplace_back(campaign_.SpeedupOf(*parent), parent);
    std::stable_sort(by_speed.begin(), by_speed.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (size_t i = 0; i < parents_.size(); ++i) parents_[i] = by_speed[i].second;
    parents_.insert(parents_.begin(), &best_);
    std::unordered_map<const v1::Iteration*, std::vector<const v1::Iteration*>> twins;  // by what has their code
    if (campaign_.HasTwins()) {
      std::erase_if(parents_, [&](const v1::Iteration* parent) {
        const auto [with_code, is_new] = twins.try_emplace(&campaign_.CodeOf(*parent));
        if (!is_new) with_code->second.push_back(parent);
        return !is_new;
      });
    }
    LimitParents();
    const size_t limited = parents_.size();
    for (size_t i = 0; i < limited && !twins.empty(); ++i) {
      for (const v1::Iteration* twin : twins.at(&campaign_.CodeOf(*parents_[i]))) {
        if (parents_.size() >= 2 * settings_.parents) return;
        originals_[parents_.size()] = i;
        parents_.push_back(twin);
      }
    }
  }

  void LimitParents() {
    const size_t fastest = settings_.parents / 2, spread = settings_.parents - fastest;
    if (parents_.size() <= settings_.parents) return;
    const std::vector<const v1::Iteration*> others(parents_.begin() + static_cast<ptrdiff_t>(fastest), parents_.end());
    parents_.resize(fastest);
    for (size_t i = 0; i < spread; ++i) parents_.push_back(others[i * others.size() / spread]);
  }

  size_t PlacesOf(size_t variable) const {
    return static_cast<size_t>(bundle_.variables(static_cast<int>(variable)).values_size());
  }

  void AddProspects(uint32_t parent) {
    const auto at = static_cast<size_t>(parents_[parent] - campaign_.iterations().data());
    const Point& centre = points_.emplace_back(*Memo().iterations[at]);  // parents are of this space
    const Posterior::Neighbourhood neighbourhood(*posterior_, centre);
    for (uint16_t v = 0; v < bundle_.variables_size(); ++v) {
      for (uint16_t place = 0; place < PlacesOf(v); ++place) {
        if (place != centre[v]) prospects_.push_back({parent, v, place, neighbourhood.Bound(v, place)});
      }
    }
  }

  void SetAim() {
    aim_ = best_log_;
    if (prospects_.empty()) return;
    std::vector<double> sds;
    for (const Prospect& prospect : prospects_) sds.push_back(prospect.bound.sd);
    const auto middle = sds.begin() + static_cast<ptrdiff_t>(sds.size() / 2);
    std::nth_element(sds.begin(), middle, sds.end());
    aim_ += settings_.aim * *middle;
    for (Prospect& prospect : prospects_) prospect.most = ExpectedImprovement(prospect.bound, aim_);
  }

  Point PointOfProspect(const Prospect& prospect) const {
    Point point = points_[prospect.parent];
    point[prospect.variable] = prospect.place;
    return point;
  }

  Candidate& AddCandidate(const Prospect& prospect, Point point) {
    Candidate& candidate = candidates_.emplace_back();
    candidate.parent = prospect.parent;
    candidate.variable = prospect.variable;
    candidate.point = std::move(point);
    candidate.most = prospect.most;
    return candidate;
  }

  // Every untried change of the best variant is looked at, because people ask about them.
  void ExamineFirstParent() {
    std::vector<Candidate*> block;
    for (const Prospect& prospect : prospects_) {
      if (prospect.parent != 0) break;
      Point point = PointOfProspect(prospect);
      if (const auto tried = tried_.find(&point); tried != tried_.end()) {
        if (parents_[0] == &best_) {
          tried_around_.push_back({ChangeOf(0, prospect.variable, prospect.place), tried->second});
        }
        continue;
      }
      seen_.insert(point);
      Candidate& candidate = AddCandidate(prospect, std::move(point));
      candidate.refused = Refusal(candidate.point);
      if (candidate.refused.empty()) block.push_back(&candidate);
    }
    Score(block);
  }

  // Changes of other parents, as long as one may rank first: those with the largest upper bounds first.
  void ExamineOthers() {
    std::erase_if(prospects_, [&](const Prospect& one) { return one.parent == 0 || one.most <= most_aimed_; });
    std::stable_sort(prospects_.begin(), prospects_.end(),
                     [](const Prospect& a, const Prospect& b) { return a.most > b.most; });
    std::vector<Candidate*> block;
    size_t examined = 0;
    for (const Prospect& prospect : prospects_) {
      if (examined == settings_.examined || prospect.most <= most_aimed_) break;
      Point point = PointOfProspect(prospect);
      // Several parents may lead to a variant. It is the change of the first one.
      if (tried_.contains(&point) || !seen_.insert(point).second || !Refusal(point).empty()) continue;
      block.push_back(&AddCandidate(prospect, std::move(point)));
      ++examined;
      if (block.size() < kBlock) continue;
      Score(block);
      block.clear();
    }
    Score(block);
  }

  // Whether two variants have the same launches, without which their trials would not find the same code.
  bool HaveSamePlan(const Point& a, const Point& b) {
    const std::string plan = PlanAt(a);
    return !plan.empty() && plan == PlanAt(b);
  }

  const std::string& PlanAt(const Point& point) {
    auto& known = Memo().plans;
    if (known.size() > kMostPlans) known.clear();
    const auto [entry, is_new] = known.try_emplace(point);
    if (!is_new) return entry->second;
    for (size_t v = 0; v < queried_values_.size(); ++v) {
      if (point[v] >= PlacesOf(v)) return entry->second;
    }
    SetQueried(point);
    for (const SizeWeight& at : campaign_.goal_sizes()) {
      const std::string& name = at.size.empty() ? bundle_.goal().size() : at.size;
      const auto size = std::find_if(bundle_.sizes().begin(), bundle_.sizes().end(),
                                     [&](const v1::Size& one) { return one.name() == name; });
      if (size == bundle_.sizes().end()) continue;
      const absl::StatusOr<v1::Plan> plan = campaign_.PlanOf(queried_, source_, *size, campaign_.gpu());
      if (!plan.ok()) {
        entry->second.clear();
        break;
      }
      AppendBytes(*plan, &entry->second);
    }
    return entry->second;
  }

  // How likely the variant has code that is known: that of one that was tried and differs from it in variables that did
  // nothing elsewhere. A change of a twin is also behind the same change of the variant that it is a twin of.
  void FindTwin(Candidate* candidate) {
    if (inertness_.empty()) return;
    const auto consider = [&](const Point& other, int iteration) {
      const double same = SameCode(candidate->point, other);
      const bool more = same > candidate->same_code || (same == candidate->same_code && iteration < candidate->twin);
      if (!(same > 0) || !more || !HaveSamePlan(candidate->point, other)) return;
      candidate->same_code = same;
      candidate->twin = iteration;
    };
    for (const auto& [point, iteration] : tried_) consider(*point, iteration);
    const auto original = originals_.find(candidate->parent);
    if (original == originals_.end()) return;
    Point first = points_[original->second];
    first[candidate->variable] = candidate->point[candidate->variable];
    if (Refusal(first).empty() && !tried_.contains(&first)) consider(first, -1);
  }

  // Probability that both have the same code; 0 where they differ in a variable that was not seen to do nothing.
  double SameCode(const Point& a, const Point& b) const {
    int differences = 0;
    for (size_t v = 0; v < a.size(); ++v) {
      if (a[v] != b[v] && (++differences > kMostFlips || !inertness_.Knows(v))) return 0;
    }
    double same = 1;
    Point at = a;
    for (size_t v = 0; v < a.size(); ++v) {
      if (a[v] == b[v]) continue;
      same *= inertness_.Same(v, at, b[v]);
      at[v] = b[v];
    }
    return same;
  }

  // A single change of a parent leads there.
  bool IsNear(const Point& point) const {
    return std::any_of(points_.begin(), points_.end(),
                       [&](const Point& parent) { return DifferencesOf(parent, point) < 2; });
  }

  v1::Change ChangeOf(size_t parent, size_t variable, uint16_t place) const {
    const v1::Variable& changed = bundle_.variables(static_cast<int>(variable));
    v1::Change change;
    change.set_variable(changed.name());
    change.set_from(parents_[parent]->variant().at(changed.name()));
    change.set_to(changed.values(place));
    return change;
  }

  void SetQueried(const Point& point) {
    for (size_t v = 0; v < queried_values_.size(); ++v) {
      *queried_values_[v] = bundle_.variables(static_cast<int>(v)).values(point[v]);
    }
  }

  // Why the variant can't be tried; empty: it can.
  const std::string& Refusal(const Point& point) {
    auto& known = Memo().refused;
    if (known.size() > kMostRefused) known.clear();
    const auto [entry, is_new] = known.try_emplace(point);
    if (!is_new) return entry->second;
    SetQueried(point);
    entry->second = WhyForbidden(campaign_, queried_, source_);
    if (entry->second.empty() && settings_.exists && !settings_.exists(queried_))
      entry->second = "there is no such variant";
    return entry->second;
  }

  void Score(const std::vector<Candidate*>& block) {
    if (block.empty()) return;
    std::vector<Point> points;
    for (const Candidate* candidate : block) points.push_back(candidate->point);
    const std::vector<Posterior::Normal> posteriors = posterior_->Predict(points);
    for (size_t i = 0; i < block.size(); ++i) {
      Candidate& candidate = *block[i];
      candidate.examined = true;
      candidate.log_speed = {.mean = posteriors[i].mean - best_log_, .sd = posteriors[i].sd};
      v1::Score& score = candidate.score;
      score.set_rules(rules_.Rules(points[i]));
      score.set_patterns(rules_.Patterns(points[i]));
      score.set_model(candidate.log_speed.mean - score.rules() - score.patterns());
      score.set_sd(candidate.log_speed.sd);
      SetValidAndSeconds(points[i], &score);
      FindTwin(&candidate);
      const double useful = score.valid() * (1 - candidate.same_code);  // known code improves nothing
      score.set_gain(useful * ExpectedImprovement(posteriors[i], best_log_));
      candidate.aimed = useful * ExpectedImprovement(posteriors[i], aim_) + kTieBreak * random_.Uniform();
      most_aimed_ = std::max(most_aimed_, candidate.aimed);
      examined_.push_back(&candidate);
    }
  }

  // Averages over what was tried, by similarity. A success, and the average over everything, count as one more trial.
  void SetValidAndSeconds(const Point& point, v1::Score* score) const {
    double valid = 1, seconds = average_seconds_;
    double weights = 1, time_weights = 1;
    const Eigen::VectorXd similarities = posterior_->Similarities(point, outcome_places_);
    for (size_t i = 0; i < outcomes_.size(); ++i) {
      const Outcome& outcome = outcomes_[i];
      const double similarity = similarities[static_cast<Eigen::Index>(i)], weight = similarity * similarity;
      weights += weight;
      valid += weight * outcome.valid;
      if (!(outcome.seconds > 0) || outcome.valid == 0) continue;
      time_weights += weight;
      seconds += weight * outcome.seconds;
    }
    score->set_valid(valid / weights);
    score->set_seconds(seconds / time_weights);
  }

  // A change may be worth trying for what it allows: a second change that constraints forbid now. Both together take
  // two trials, so half of the sum of their expected improvements counts where that is more.
  void LookAhead() {
    std::stable_sort(examined_.begin(), examined_.end(),
                     [](const Candidate* a, const Candidate* b) { return a->aimed > b->aimed; });
    const std::vector<const Candidate*> forbidden = Forbidden();
    if (forbidden.empty()) return;
    for (Candidate* candidate : examined_) {
      if (candidate->parent != 0) continue;
      std::vector<Point> points;
      std::vector<const Candidate*> unlocked;
      for (const Candidate* wanted : forbidden) {
        if (wanted->variable == candidate->variable) continue;
        Point both = candidate->point;
        both[wanted->variable] = wanted->point[wanted->variable];
        if (tried_.contains(&both) || IsNear(both) || !Refusal(both).empty()) continue;
        points.push_back(both);
        unlocked.push_back(wanted);
      }
      if (points.empty()) continue;
      const std::vector<Posterior::Normal> posteriors = posterior_->Predict(points);
      for (size_t i = 0; i < points.size(); ++i) {
        v1::Score second;
        SetValidAndSeconds(points[i], &second);
        const double valid = candidate->score.valid() * second.valid();
        const double aimed = (candidate->aimed + valid * ExpectedImprovement(posteriors[i], aim_)) / 2;
        if (aimed <= candidate->aimed) continue;
        candidate->aimed = aimed;
        const double gain = valid * ExpectedImprovement(posteriors[i], best_log_);
        candidate->score.set_gain(std::max(candidate->score.gain(), (candidate->score.gain() + gain) / 2));
        const Candidate& wanted = *unlocked[i];
        candidate->unlocks = ChangeOf(0, wanted.variable, wanted.point[wanted.variable]);
      }
    }
  }

  // Changes of the best variant that constraints forbid, and of which more may be expected than of any that they allow:
  // others can't make a first change rank first. Those with the largest expected improvement.
  std::vector<const Candidate*> Forbidden() {
    const double most = examined_.empty() ? 0 : examined_.front()->aimed;
    std::vector<const Candidate*> forbidden;
    for (const Candidate& candidate : candidates_) {
      if (candidate.parent == 0 && !candidate.examined && candidate.most > most) forbidden.push_back(&candidate);
    }
    std::stable_sort(forbidden.begin(), forbidden.end(),
                     [](const Candidate* a, const Candidate* b) { return a->most > b->most; });
    forbidden.resize(std::min(forbidden.size(), settings_.lookahead));
    return forbidden;
  }

  Ranking Collected() {
    Ranking ranking;
    ranking.tried_around = std::move(tried_around_);
    const auto rate_of = [](const Candidate& candidate) {
      return candidate.score.seconds() > 0 ? candidate.aimed / candidate.score.seconds() : RankedChange().rate;
    };
    std::vector<std::pair<double, Candidate*>> by_rate;
    for (Candidate& candidate : candidates_) {
      if (candidate.examined || candidate.parent == 0) by_rate.emplace_back(rate_of(candidate), &candidate);
    }
    std::stable_sort(by_rate.begin(), by_rate.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    ranking.changes.reserve(by_rate.size());
    for (const auto& [rate, each] : by_rate) {
      Candidate& candidate = *each;
      RankedChange& ranked = ranking.changes.emplace_back();
      const uint16_t place = candidate.point[candidate.variable];
      ranked.parent = parents_[candidate.parent]->number();
      ranked.change = ChangeOf(candidate.parent, candidate.variable, place);
      ranked.score = std::move(candidate.score);
      ranked.log_speed = candidate.log_speed;
      ranked.rate = rate;
      ranked.examined = candidate.examined;
      ranked.refused = std::move(candidate.refused);
      if (ranked.parent == best_.number()) ranked.served = rules_.ServedBy(candidate.variable, place);
      ranked.unlocks = std::move(candidate.unlocks);
      ranked.same_code = candidate.same_code;
      ranked.twin = candidate.twin;
    }
    return ranking;
  }

  const CampaignState& campaign_;
  const int source_;          // of the best variant
  const v1::Bundle& bundle_;  // with that source's variables
  const v1::Iteration& best_;
  const RulePrior& rules_;
  const RankingSettings& settings_;
  const double best_log_;
  SeededRandom random_;

  v1::Variant queried_;                   // for Allowed; made once because a map is slow to fill
  std::vector<int32_t*> queried_values_;  // of its map, which does not move them
  Scales scales_;
  int sources_ = 1;
  std::vector<Posterior::Observation> observations_;
  std::vector<Outcome> outcomes_;
  Posterior::Places outcome_places_;
  double average_seconds_ = 1;
  std::deque<Point> open_points_;                                      // of trials
  std::unordered_map<const Point*, int, PointHash, SamePoint> tried_;  // iteration
  size_t measured_ = 0;  // of the observations: those that follow are supposed of open trials
  std::vector<const v1::Iteration*> parents_;
  std::vector<Point> points_;                     // of the parents
  std::unordered_map<size_t, size_t> originals_;  // of parents that are twins, the parent with the same code
  Inertness inertness_;
  std::optional<Posterior> posterior_;
  double aim_ = 0;  // log speed
  std::vector<Prospect> prospects_;
  std::deque<Candidate> candidates_;  // some are pointed to
  std::unordered_set<Point, SearchMemo::Hash> seen_;
  std::vector<Candidate*> examined_;
  double most_aimed_ = 0;  // of the examined ones
  std::vector<TriedChange> tried_around_;
};

}  // namespace

Ranking RankChanges(const CampaignState& campaign, const RulePrior& rules, const RankingSettings& settings) {
  return Ranker(campaign, rules, settings).Rank();
}

}  // namespace pawl
