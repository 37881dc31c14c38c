#include "worker/record/sample_walk.h"

#include <algorithm>
#include <set>

namespace pawl {
namespace {

constexpr int kSteps = 8;         // of one random walk
constexpr double kFaster = 0.01;  // in log time: a climb goes on with what is faster by more than noise

// Two of five rounds around the fastest, two along climbs, one at random.
enum class Way { kFastest, kClimb, kWander };
constexpr Way kWays[] = {Way::kWander, Way::kFastest, Way::kClimb, Way::kFastest, Way::kClimb};

}  // namespace

SampleWalk::SampleWalk(const v1::Bundle& bundle, int count) : bundle_(bundle), count_(count), space_(bundle) {
  const std::string hash = BundleHash(bundle);
  std::seed_seq seed(hash.begin(), hash.end());
  random_.seed(seed);
}

absl::StatusOr<std::vector<v1::Variant>> SampleWalk::Neighbours(const v1::Variant& variant) {
  std::vector<v1::Variant> neighbours;
  for (const v1::Variable& variable : bundle_.variables()) {
    const int32_t present = variant.values().at(variable.name());
    for (const int32_t value : variable.values()) {
      if (value == present) continue;
      v1::Variant neighbour = variant;
      (*neighbour.mutable_values())[variable.name()] = value;
      absl::StatusOr<bool> allowed = space_.Has(neighbour);
      if (!allowed.ok()) return allowed.status();
      if (*allowed) neighbours.push_back(std::move(neighbour));
    }
  }
  return neighbours;
}

absl::StatusOr<std::vector<v1::Variant>> SampleWalk::Expand(Known* known) {
  known->expanded = true;
  absl::StatusOr<std::vector<v1::Variant>> round = Neighbours(known->variant);
  if (!round.ok()) return round.status();
  round->erase(std::remove_if(round->begin(), round->end(),
                              [&](const v1::Variant& variant) { return known_.count(VariantText(variant)) > 0; }),
               round->end());
  return round;
}

absl::StatusOr<std::vector<v1::Variant>> SampleWalk::ExpandFastest() {
  for (;;) {
    Known* fastest = nullptr;
    for (const std::string& text : order_) {
      Known& known = known_.at(text);
      if (!known.measured || known.expanded) continue;
      // What failed comes last: something may lie behind it.
      const bool faster = fastest == nullptr || (known.log_speedup && !fastest->log_speedup) ||
                          (known.log_speedup && *known.log_speedup > *fastest->log_speedup);
      if (faster) fastest = &known;
    }
    if (fastest == nullptr) return std::vector<v1::Variant>();
    absl::StatusOr<std::vector<v1::Variant>> round = Expand(fastest);
    if (!round.ok() || !round->empty()) return round;
  }
}

absl::StatusOr<std::vector<v1::Variant>> SampleWalk::Climb() {
  // A climb that is over begins again at the start; one from there to a top is tried before the turn is given up.
  for (bool again = false;;) {
    Known& here = known_.at(climber_);
    if (!here.expanded) {
      absl::StatusOr<std::vector<v1::Variant>> round = Expand(&here);
      if (!round.ok() || !round->empty()) return round;
    }
    absl::StatusOr<std::vector<v1::Variant>> neighbours = Neighbours(here.variant);
    if (!neighbours.ok()) return neighbours.status();
    std::vector<std::string> faster;
    for (const v1::Variant& neighbour : *neighbours) {
      const auto found = known_.find(VariantText(neighbour));
      if (found == known_.end()) continue;
      if (!found->second.measured) return std::vector<v1::Variant>();  // it waits for those
      if (found->second.log_speedup && *found->second.log_speedup > here.log_speedup.value_or(0) + kFaster) {
        faster.push_back(found->first);
      }
    }
    if (!faster.empty()) {
      climber_ = faster[Draw(faster.size())];
      continue;
    }
    if (again) return std::vector<v1::Variant>();
    again = true;
    climber_ = order_.front();
  }
}

absl::StatusOr<std::vector<v1::Variant>> SampleWalk::Wander() {
  v1::Variant here = known_.at(order_[Draw(order_.size())]).variant;
  std::vector<v1::Variant> round;
  std::set<std::string> taken;
  for (int step = 0; step < kSteps; ++step) {
    absl::StatusOr<std::vector<v1::Variant>> neighbours = Neighbours(here);
    if (!neighbours.ok()) return neighbours.status();
    if (neighbours->empty()) break;
    here = (*neighbours)[Draw(neighbours->size())];
    const std::string text = VariantText(here);
    if (known_.count(text) == 0 && taken.insert(text).second) round.push_back(here);
  }
  return round;
}

absl::StatusOr<std::vector<v1::Variant>> SampleWalk::NextRound() {
  std::vector<v1::Variant> round;
  if (order_.size() >= count_) return round;
  if (order_.empty()) {
    round.push_back(StartVariant(bundle_));
    climber_ = VariantText(round[0]);
    Give(&round);
    return round;
  }
  if (order_.size() == 1) {  // nothing needs to be known for this: whatever the start's time is, its neighbours count
    absl::StatusOr<std::vector<v1::Variant>> first = Expand(&known_.at(order_[0]));
    if (!first.ok()) return first.status();
    round = *std::move(first);
  }
  for (size_t tried = 0; round.empty() && tried < std::size(kWays); ++tried) {
    const Way way = kWays[turn_++ % std::size(kWays)];
    absl::StatusOr<std::vector<v1::Variant>> next = way == Way::kFastest ? ExpandFastest()
                                                    : way == Way::kClimb ? Climb()
                                                                         : Wander();
    if (!next.ok()) return next.status();
    round = *std::move(next);
  }
  Give(&round);
  return round;
}

void SampleWalk::Give(std::vector<v1::Variant>* round) {
  if (round->size() > count_ - order_.size()) round->resize(count_ - order_.size());
  for (const v1::Variant& variant : *round) {
    order_.push_back(VariantText(variant));
    known_[order_.back()].variant = variant;
  }
}

void SampleWalk::Learn(const v1::Variant& variant, std::optional<double> log_speedup) {
  Known& known = known_.at(VariantText(variant));
  known.measured = true;
  known.log_speedup = log_speedup;
}

}  // namespace pawl
