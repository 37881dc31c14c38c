#include "orchestrator/engine/search/patterns.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

namespace pawl {
namespace {

double Rounded(double gain) { return std::exp(std::round(1000 * std::log(gain)) / 1000); }

auto OrderOf(const v1::Pattern& pattern) {
  return std::tuple(std::string_view(pattern.bundle()), std::string_view(pattern.rule()),
                    std::string_view(pattern.architecture()), pattern.effect().resource(),
                    pattern.effect().direction());
}

int32_t Sum(int64_t a, int64_t b) {
  return static_cast<int32_t>(std::min<int64_t>(a + b, std::numeric_limits<int32_t>::max()));
}

void AddCounts(const v1::Pattern& pattern, v1::Pattern* sum) {
  sum->set_tried(Sum(sum->tried(), pattern.tried()));
  sum->set_kept(Sum(sum->kept(), pattern.kept()));
  sum->set_timed(Sum(sum->timed(), pattern.timed()));
  sum->set_predictions(Sum(sum->predictions(), pattern.predictions()));
  sum->set_came_true(Sum(sum->came_true(), pattern.came_true()));
}

// Of an even number: the geometric mean of the two in the middle.
double Median(const std::map<double, int>& gains) {
  int64_t count = 0;
  for (const auto& [gain, times] : gains) count += times;
  const auto at = [&](int64_t place) {
    for (const auto& [gain, times] : gains) {
      if ((place -= times) < 0) return gain;
    }
    return 0.0;
  };
  if (count == 0) return 0;
  const double low = at((count - 1) / 2), high = at(count / 2);
  return low == high ? low : std::sqrt(low * high);
}

v1::Pattern MergedOf(const std::vector<const v1::Pattern*>& together) {
  v1::Pattern sum = *together.front();
  if (together.size() == 1) return sum;
  for (size_t i = 1; i < together.size(); ++i) AddCounts(*together[i], &sum);
  double logs = 0, timed = 0;
  for (const v1::Pattern* pattern : together) {
    if (pattern->timed() == 0) continue;
    logs += pattern->timed() * std::log(pattern->median_gain());
    timed += pattern->timed();
  }
  sum.set_median_gain(timed > 0 ? std::exp(logs / timed) : 0);
  return sum;
}

}  // namespace

std::optional<v1::Pattern> LessonOf(const v1::Iteration& iteration, const std::string& bundle,
                                    const std::string& architecture) {
  if (architecture.empty() || bundle.empty() || iteration.finding().rule().empty()) return std::nullopt;
  if (iteration.effect().resource() == v1::RESOURCE_UNSPECIFIED) return std::nullopt;
  const bool rejected = iteration.verdict() == v1::REJECTED;
  if (iteration.verdict() == v1::VERDICT_UNSPECIFIED) return std::nullopt;
  if (iteration.untried()) return std::nullopt;
  v1::Pattern lesson;
  lesson.set_rule(iteration.finding().rule());
  *lesson.mutable_effect() = iteration.effect();
  lesson.set_architecture(architecture);
  lesson.set_bundle(bundle);
  lesson.set_tried(1);
  lesson.set_kept(iteration.verdict() == v1::KEPT);
  const double gain = iteration.speedup_over_parent();
  if (!rejected && gain > 0 && std::isfinite(gain)) {
    lesson.set_timed(1);
    lesson.set_median_gain(Rounded(gain));
  }
  const v1::Prediction::Outcome outcome = iteration.prediction().outcome();
  lesson.set_came_true(outcome == v1::Prediction::CAME_TRUE);
  lesson.set_predictions(outcome == v1::Prediction::CAME_TRUE || outcome == v1::Prediction::FAILED);
  return lesson;
}

std::optional<v1::Pattern> TakenBack(const v1::Iteration& kept, const std::string& bundle,
                                     const std::string& architecture) {
  std::optional<v1::Pattern> lesson = LessonOf(kept, bundle, architecture);
  if (!lesson || lesson->kept() == 0) return std::nullopt;
  lesson->set_tried(0);
  lesson->set_kept(-1);
  lesson->set_timed(0);
  lesson->set_predictions(0);
  lesson->set_came_true(0);
  return lesson;
}

PatternTable::Key PatternTable::KeyOf(const v1::Pattern& pattern, const std::string& bundle) {
  return {bundle, pattern.rule(), pattern.architecture(), pattern.effect().resource(), pattern.effect().direction()};
}

void PatternTable::Add(const v1::Pattern& lesson) {
  for (const std::string& bundle : {lesson.bundle(), std::string()}) {
    const auto [found, added] = lessons_.try_emplace(KeyOf(lesson, bundle));
    Lessons& lessons = found->second;
    if (added) {
      lessons.sum.set_bundle(bundle);
      lessons.sum.set_rule(lesson.rule());
      lessons.sum.set_architecture(lesson.architecture());
      *lessons.sum.mutable_effect() = lesson.effect();
    }
    AddCounts(lesson, &lessons.sum);
    if (lesson.timed() == 0) continue;
    lessons.gains[lesson.median_gain()] += lesson.timed();
    lessons.fresh = false;
  }
}

const v1::Pattern& PatternTable::PatternOf(Lessons* lessons) {
  if (!lessons->fresh) lessons->sum.set_median_gain(Median(lessons->gains));
  lessons->fresh = true;
  return lessons->sum;
}

std::vector<v1::Pattern> PatternTable::Of(const std::string& bundle) const {
  std::vector<v1::Pattern> patterns;
  for (auto it = lessons_.lower_bound({bundle, "", "", 0, 0}); it != lessons_.end(); ++it) {
    if (std::get<0>(it->first) != bundle) break;
    patterns.push_back(PatternOf(&it->second));
  }
  return patterns;
}

std::vector<v1::Pattern> PatternTable::List() const {
  std::vector<v1::Pattern> patterns;
  for (auto& [key, lessons] : lessons_) patterns.push_back(PatternOf(&lessons));
  return patterns;
}

bool PatternOrder(const v1::Pattern& a, const v1::Pattern& b) { return OrderOf(a) < OrderOf(b); }

void SortByTried(std::vector<v1::Pattern>* patterns) {
  std::sort(patterns->begin(), patterns->end(), [](const v1::Pattern& a, const v1::Pattern& b) {
    return a.tried() != b.tried() ? a.tried() > b.tried() : PatternOrder(a, b);
  });
}

std::vector<v1::Pattern> Merged(const std::vector<v1::Pattern>& patterns) {
  std::map<decltype(OrderOf(patterns.front())), std::vector<const v1::Pattern*>> together;
  for (const v1::Pattern& pattern : patterns) together[OrderOf(pattern)].push_back(&pattern);
  std::vector<v1::Pattern> merged;
  for (const auto& [order, same] : together) merged.push_back(MergedOf(same));
  return merged;
}

std::vector<v1::Pattern> OverAll(const std::vector<v1::Pattern>& patterns) {
  std::vector<v1::Pattern> nameless = patterns;
  for (v1::Pattern& pattern : nameless) pattern.clear_bundle();
  return Merged(nameless);
}

std::vector<v1::Pattern> ByBundle(const std::vector<v1::Pattern>& patterns) {
  const auto nameless = [](v1::Pattern pattern) {
    pattern.clear_bundle();
    return pattern;
  };
  std::set<v1::Pattern, decltype(&PatternOrder)> split(&PatternOrder);
  for (const v1::Pattern& pattern : patterns) {
    if (!pattern.bundle().empty()) split.insert(nameless(pattern));
  }
  std::vector<v1::Pattern> by_bundle;
  for (const v1::Pattern& pattern : patterns) {
    if (!pattern.bundle().empty() || !split.contains(pattern)) by_bundle.push_back(pattern);
  }
  return by_bundle;
}

std::vector<v1::Pattern> WithoutBundle(const std::vector<v1::Pattern>& patterns, const std::string& bundle) {
  std::vector<v1::Pattern> others;
  for (const v1::Pattern& pattern : patterns) {
    if (!pattern.bundle().empty() && pattern.bundle() != bundle) others.push_back(pattern);
  }
  return others;
}

}  // namespace pawl
