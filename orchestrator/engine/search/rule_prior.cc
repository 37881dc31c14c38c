#include "orchestrator/engine/search/rule_prior.h"

#include <algorithm>
#include <cmath>

namespace pawl {
namespace {

// The resource is about proportional to the value.
bool IsProportional(v1::Resource resource) {
  switch (resource) {
    case v1::RESOURCE_PARALLELISM:
    case v1::RESOURCE_VECTOR_WIDTH:
    case v1::RESOURCE_UNROLLING:
    case v1::RESOURCE_COALESCING:
    case v1::RESOURCE_REGISTERS:
    case v1::RESOURCE_SHARED_MEMORY:
      return true;
    default:
      return false;
  }
}

// Share of the finding's deficit that the step closes, from 0 to 1. A step that goes beyond the deficit closes less,
// and so does one beyond the neighbouring value if the size of the step that is needed is not known.
double ShareClosed(const v1::Finding& finding, const v1::Effect& effect, const v1::Variable& variable, size_t from,
                   size_t to) {
  const double a = variable.values(static_cast<int>(from)), b = variable.values(static_cast<int>(to));
  if (effect.resource() == v1::RESOURCE_LAUNCHES) return 1;  // a launch less closes it, whatever the values are
  const bool sized = IsProportional(effect.resource()) && a > 0 && b > 0 && finding.deficit() > 0;
  if (!sized) return 1 / std::abs(static_cast<double>(to) - static_cast<double>(from));
  const double asked = std::max(1.0, std::abs(std::log2(finding.deficit()))), step = std::abs(std::log2(b / a));
  return std::max(0.0, 1 - std::abs(step - asked) / std::max(step, asked));
}

bool IsZero(const std::vector<double>& places) {
  return std::all_of(places.begin(), places.end(), [](double place) { return place == 0; });
}

// A finding says what to add. Going the other way may serve another finding, so it counts as nothing and not as a loss:
// what it costs is measured.
PlaceTable TableOf(const v1::Finding& finding, const v1::Effect& effect, const v1::Bundle& bundle, const Point& best) {
  PlaceTable table;
  for (int v = 0; v < bundle.variables_size(); ++v) {
    const v1::Variable& variable = bundle.variables(v);
    const size_t from = best[static_cast<size_t>(v)];
    std::vector<double>& places = table.emplace_back(static_cast<size_t>(variable.values_size()));
    if (from >= places.size()) continue;
    for (size_t to = 0; to < places.size(); ++to) {
      const int32_t before = variable.values(static_cast<int>(from)), after = variable.values(static_cast<int>(to));
      if (!Gives(variable, before, after, effect)) continue;
      places[to] = finding.severity() * ShareClosed(finding, effect, variable, from, to);
    }
    if (IsZero(places)) places.clear();  // sums are asked for a thousand times in a choice
  }
  return table;
}

// No variable has the effect.
bool IsEmpty(const PlaceTable& table) { return std::all_of(table.begin(), table.end(), IsZero); }

}  // namespace

RulePrior::RulePrior(std::vector<v1::Finding> findings, const v1::Bundle& bundle, const Point& best,
                     const google::protobuf::RepeatedPtrField<v1::Pattern>& patterns, const std::string& architecture,
                     const RulePriorSettings& settings)
    : settings_(settings), findings_(std::move(findings)) {
  std::vector<KnownCause> causes;
  for (const v1::Finding& finding : findings_) {
    // The first effect that a rule lists is the one that its author would try first.
    double order = 1;
    for (const v1::Effect& effect : finding.wants()) {
      const double prior = settings.worth / order++;
      PlaceTable serves = TableOf(finding, effect, bundle, best);
      if (IsEmpty(serves)) continue;
      const Worth worth = WorthOf(patterns, finding.rule(), effect, architecture, bundle.name(), prior, settings);
      const double sd = settings.sd * std::sqrt(settings.trials / (settings.trials + worth.trials));
      causes.push_back({.serves = std::move(serves), .worth = worth.mean, .sd = sd});
      sources_.push_back({&finding, effect});
      worths_.push_back(prior);
    }
  }
  if (settings.launch > 0) AddLaunches(bundle, best, settings.launch, &causes);
  causes_ = std::make_shared<const std::vector<KnownCause>>(std::move(causes));
}

// The one cause that counts in both directions.
void RulePrior::AddLaunches(const v1::Bundle& bundle, const Point& best, double worth,
                            std::vector<KnownCause>* causes) {
  v1::Finding any;
  any.set_severity(1);
  v1::Effect fewer, more;
  fewer.set_resource(v1::RESOURCE_LAUNCHES);
  fewer.set_direction(v1::DIRECTION_LESS);
  more = fewer;
  more.set_direction(v1::DIRECTION_MORE);
  PlaceTable table = TableOf(any, fewer, bundle, best);
  const PlaceTable against = TableOf(any, more, bundle, best);
  for (size_t v = 0; v < table.size(); ++v) {
    table[v].resize(std::max(table[v].size(), against[v].size()));
    for (size_t place = 0; place < against[v].size(); ++place) table[v][place] -= against[v][place];
  }
  if (IsEmpty(table)) return;
  causes->push_back({.serves = std::move(table), .worth = worth, .sd = worth});
  sources_.push_back({nullptr, fewer});
  worths_.push_back(worth);
}

double RulePrior::Rules(const Point& point) const {
  double mean = 0;
  for (size_t c = 0; c < causes().size(); ++c) mean += worths_[c] * SumAt(causes()[c].serves, point);
  return mean;
}

double RulePrior::Patterns(const Point& point) const {
  double mean = 0;
  for (const KnownCause& cause : causes()) mean += cause.worth * SumAt(cause.serves, point);
  return mean - Rules(point);
}

RulePrior::Served RulePrior::ServedBy(size_t variable, uint16_t place) const {
  Served served;
  double most = 0;
  for (size_t c = 0; c < causes().size(); ++c) {
    const std::vector<double>& places = causes()[c].serves[variable];
    const double gain = place < places.size() ? std::max(causes()[c].worth, 1e-3) * places[place] : 0;
    if (sources_[c].finding == nullptr || gain <= most) continue;
    most = gain;
    served = sources_[c];
  }
  return served;
}

const v1::Finding* RulePrior::GridTooSmall() const {
  for (const v1::Finding& finding : findings_) {
    if (finding.phase() != v1::PHASE_PARALLELISM) continue;
    for (const v1::SeenValue& seen : finding.seen()) {
      if (seen.metric() == "waves" && seen.value() < 1) return &finding;
    }
  }
  return nullptr;
}

bool Gives(const v1::Variable& variable, int32_t from, int32_t to, const v1::Effect& effect) {
  if (from == to) return false;
  return std::any_of(variable.affects().begin(), variable.affects().end(), [&](const v1::Effect& own) {
    return own.resource() == effect.resource() && (own.direction() == effect.direction()) == (to > from);
  });
}

bool Serves(const v1::Bundle& bundle, const v1::Change& change, const v1::Finding& finding) {
  for (const v1::Variable& variable : bundle.variables()) {
    if (variable.name() != change.variable()) continue;
    return std::any_of(finding.wants().begin(), finding.wants().end(),
                       [&](const v1::Effect& wanted) { return Gives(variable, change.from(), change.to(), wanted); });
  }
  return false;
}

Worth WorthOf(const google::protobuf::RepeatedPtrField<v1::Pattern>& patterns, const std::string& rule,
              const v1::Effect& effect, const std::string& architecture, const std::string& bundle, double prior,
              const RulePriorSettings& settings) {
  Worth worth = {.mean = prior};
  // Each group corrects the estimate of the wider one. A trial that was not timed failed, and gained nothing.
  enum { kAll, kArchitecture, kBundle, kGroups };
  for (int group = kAll; group < kGroups; ++group) {
    double tried = 0, gained = 0;
    for (const v1::Pattern& pattern : patterns) {
      const bool counts = pattern.rule() == rule && pattern.effect().resource() == effect.resource() &&
                          pattern.effect().direction() == effect.direction() &&
                          (group == kAll || pattern.architecture() == architecture) &&
                          pattern.bundle() == (group == kBundle ? bundle : "");
      if (!counts || pattern.tried() <= 0) continue;
      tried += pattern.tried();
      if (pattern.timed() > 0 && pattern.median_gain() > 0) {
        gained +=
            pattern.timed() * std::clamp(std::log(pattern.median_gain()), -settings.most_gain, settings.most_gain);
      }
    }
    worth.mean = (settings.trials * worth.mean + gained) / (settings.trials + tried);
    worth.trials = std::max(worth.trials, tried);
  }
  return worth;
}

}  // namespace pawl
