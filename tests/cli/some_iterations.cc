#include "tests/cli/some_iterations.h"

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

v1::Iteration Make(int number, int parent, int tile, v1::Verdict verdict, double over_parent, double over_start) {
  v1::Iteration iteration;
  iteration.set_name(absl::StrCat("campaigns/7/iterations/", number));
  iteration.set_number(number);
  iteration.set_verdict(verdict);
  (*iteration.mutable_variant())["TILE_M"] = tile;
  (*iteration.mutable_variant())["WARPS"] = 4;
  iteration.set_device("NVIDIA H200");
  if (parent >= 0) {
    iteration.set_parent(parent);
    iteration.mutable_change()->set_variable("TILE_M");
    iteration.mutable_change()->set_from(64);
    iteration.mutable_change()->set_to(tile);
  }
  iteration.set_speedup_over_parent(over_parent);
  iteration.set_speedup_over_start(over_start);
  iteration.set_speedup_over_baseline(over_start * 0.3);
  if (over_start > 0) iteration.set_time_us(20.12 / over_start);
  return iteration;
}

}  // namespace

std::vector<v1::Iteration> SomeIterations() {
  std::vector<v1::Iteration> all = {
      Make(0, -1, 64, v1::KEPT, 0, 1),   Make(1, 0, 32, v1::KEPT, 1.5, 1.5),  Make(2, 1, 16, v1::REVERTED, 0.98, 1.47),
      Make(3, 1, 8, v1::REJECTED, 0, 0), Make(4, 1, 128, v1::KEPT, 1.2, 1.8),
  };
  all[0].set_reason("the start");
  all[1].set_reason("faster: 1.45 to 1.55");
  all[2].set_reason("slower");
  all[3].set_reason("compile: error:\nundefined identifier");
  all[4].set_reason("faster: 1.15 to 1.25");
  return all;
}

v1::Iteration ExplainedIteration() {
  v1::Iteration iteration = SomeIterations()[4];
  iteration.set_author("pawl");
  iteration.set_why("grid-too-small: TILE_M from 64 to 128 gives less parallelism");
  v1::Finding grid;
  grid.set_rule("grid-too-small");
  grid.set_phase(v1::PHASE_PARALLELISM);
  grid.set_text("The grid fills 0.015 of a wave: 2 blocks for 132 SMs");
  v1::SeenValue* seen = grid.add_seen();
  seen->set_metric("waves");
  seen->set_operator_("<");
  seen->set_threshold(1);
  seen->set_value(0.0151515);
  v1::Effect* wants = grid.add_wants();
  wants->set_resource(v1::RESOURCE_PARALLELISM);
  wants->set_direction(v1::DIRECTION_MORE);
  grid.set_deficit(0.0151515);
  grid.set_ncu_rule("LaunchConfiguration");
  grid.set_ncu_estimate_percent(97);
  v1::Finding stalls;
  stalls.set_rule("barrier-stalls");
  stalls.set_phase(v1::PHASE_COMPUTE);
  stalls.set_text("Warps wait at barriers");
  *iteration.mutable_finding() = grid;
  *iteration.add_findings() = grid;
  *iteration.add_findings() = stalls;
  *iteration.mutable_effect() = *wants;
  iteration.mutable_score()->set_rules(0.497);
  iteration.mutable_score()->set_model(0.023);
  iteration.mutable_score()->set_sd(0.1);
  iteration.mutable_score()->set_gain(0.52);
  iteration.mutable_score()->set_seconds(2);

  v1::PassedOver* lower = iteration.add_passed_over();
  lower->mutable_change()->set_variable("WARPS");
  lower->mutable_change()->set_from(4);
  lower->mutable_change()->set_to(8);
  lower->set_reason("ranks lower");
  lower->mutable_score()->set_rules(0.1);
  lower->mutable_score()->set_model(-0.08);
  lower->mutable_score()->set_sd(0.15);
  lower->mutable_score()->set_gain(0.12);
  lower->mutable_score()->set_seconds(2);
  lower->mutable_score()->set_patterns(0.1);
  for (const int value : {1, 2}) {
    v1::PassedOver* refused = iteration.add_passed_over();
    refused->mutable_change()->set_variable("WARPS");
    refused->mutable_change()->set_from(4);
    refused->mutable_change()->set_to(value);
    refused->set_reason("a constraint forbids it");
  }
  v1::Prediction* prediction = iteration.mutable_prediction();
  prediction->set_metric("waves");
  prediction->set_direction(v1::DIRECTION_MORE);
  prediction->set_low(1.1);
  prediction->set_high(4);
  prediction->set_outcome(v1::Prediction::FAILED);
  prediction->set_time_outcome(v1::Prediction::CAME_TRUE);
  prediction->set_metric_outcome(v1::Prediction::FAILED);
  prediction->set_before(0.0151515);
  prediction->set_after(0.0075757);
  iteration.set_comparison(v1::FASTER);
  iteration.mutable_interval()->set_lower(0.1397619);
  iteration.mutable_interval()->set_upper(0.2231436);
  iteration.mutable_interval()->set_pairs(7);
  iteration.set_parent_time_us(13.42);
  v1::StageTime* build = iteration.add_stages();
  build->set_stage(v1::STAGE_BUILD);
  build->set_seconds(0.374);
  v1::FailedGate* gate = iteration.add_failed_gates();
  gate->set_gate("prediction");
  gate->set_action(v1::GATE_ACTION_MARK);
  gate->set_text("waves fell");
  return iteration;
}

v1::Bundle SomeBundle() {
  v1::Bundle bundle;
  bundle.set_name("attention");
  v1::Variable* tile = bundle.add_variables();
  tile->set_name("TILE_M");
  for (const int value : {8, 16, 32, 64, 128, 256}) tile->add_values(value);
  tile->set_start(64);
  v1::Effect* affects = tile->add_affects();
  affects->set_resource(v1::RESOURCE_PARALLELISM);
  affects->set_direction(v1::DIRECTION_LESS);
  v1::Variable* warps = bundle.add_variables();
  warps->set_name("WARPS");
  for (const int value : {1, 2, 4, 8}) warps->add_values(value);
  warps->set_start(4);
  bundle.add_constraints()->set_that("WARPS >= 4");
  bundle.add_constraints()->set_that("TILE_M <= 64 * WARPS / 2");
  v1::Size* size = bundle.add_sizes();
  size->set_name("main");
  (*size->mutable_values())["S"] = 128;
  return bundle;
}

}  // namespace pawl
