#include <cmath>
#include <optional>
#include <string>

#include "orchestrator/engine/verdict/verdict.h"
#include "profiles/diagnosis.h"

namespace pawl {
namespace {

constexpr double kMinMove = 0.01;  // of the metric; smaller changes count as none

std::optional<double> Value(const v1::Evidence& evidence, const std::string& metric) {
  const v1::LaunchEvidence* launch = LongestLaunch(evidence);
  if (launch == nullptr) return std::nullopt;
  const auto value = launch->metrics().find(metric);
  if (value == launch->metrics().end() || !std::isfinite(value->second)) return std::nullopt;
  return value->second;
}

v1::Prediction::Outcome OutcomeOf(double before, double after, v1::Direction direction) {
  const double moved = after - before, least = kMinMove * std::abs(before);
  if (direction == v1::DIRECTION_MORE) return moved > least ? v1::Prediction::CAME_TRUE : v1::Prediction::FAILED;
  if (direction == v1::DIRECTION_LESS) return moved < -least ? v1::Prediction::CAME_TRUE : v1::Prediction::FAILED;
  return std::abs(moved) > least ? v1::Prediction::CAME_TRUE : v1::Prediction::FAILED;
}

}  // namespace

void CheckPrediction(double speedup_over_parent, const v1::Evidence& parent, const v1::Evidence& candidate,
                     v1::Prediction* prediction) {
  const bool within = speedup_over_parent >= prediction->low() && speedup_over_parent <= prediction->high();
  prediction->set_time_outcome(within ? v1::Prediction::CAME_TRUE : v1::Prediction::FAILED);
  prediction->set_metric_outcome(v1::Prediction::UNCHECKED);
  const std::optional<double> before = Value(parent, prediction->metric());
  const std::optional<double> after = Value(candidate, prediction->metric());
  if (before) prediction->set_before(*before);
  if (after) prediction->set_after(*after);
  if (before && after) prediction->set_metric_outcome(OutcomeOf(*before, *after, prediction->direction()));
  const bool failed =
      prediction->time_outcome() == v1::Prediction::FAILED || prediction->metric_outcome() == v1::Prediction::FAILED;
  prediction->set_outcome(failed ? v1::Prediction::FAILED : v1::Prediction::CAME_TRUE);
}

}  // namespace pawl
