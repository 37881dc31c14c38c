#include "orchestrator/engine/report/stage_plans.h"

#include <map>

namespace pawl {

std::vector<v1::StagePlan> StagePlans(const std::vector<v1::Iteration>& iterations) {
  std::map<v1::Stage, v1::StagePlan> by_stage;
  for (const v1::Iteration& iteration : iterations) {
    std::map<v1::Stage, double> took;  // a stage may come in parts
    for (const v1::StageTime& stage : iteration.stages()) took[stage.stage()] += stage.seconds();
    for (const auto& [stage, seconds] : took) {
      v1::StagePlan& plan = by_stage[stage];
      if (plan.times() > 0) {
        plan.set_planned_seconds(plan.planned_seconds() + plan.total_seconds() / plan.times());
        plan.set_actual_seconds(plan.actual_seconds() + seconds);
      }
      plan.set_stage(stage);
      plan.set_total_seconds(plan.total_seconds() + seconds);
      plan.set_times(plan.times() + 1);
    }
  }
  std::vector<v1::StagePlan> plans;
  for (auto& [stage, plan] : by_stage) plans.push_back(std::move(plan));
  return plans;
}

}  // namespace pawl
