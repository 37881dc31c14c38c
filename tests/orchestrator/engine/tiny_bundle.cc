#include "tests/orchestrator/engine/tiny_bundle.h"

#include <cmath>
#include <initializer_list>

namespace pawl {
namespace {

void AddVariable(v1::Bundle* bundle, const std::string& name, std::initializer_list<int> values, int start) {
  v1::Variable& variable = *bundle->add_variables();
  variable.set_name(name);
  for (int value : values) variable.add_values(value);
  variable.set_start(start);
}

void AddTensor(v1::Bundle* bundle, const std::string& name, v1::TensorRole role) {
  v1::Tensor& tensor = *bundle->add_tensors();
  tensor.set_name(name);
  tensor.set_type(v1::DATA_TYPE_F32);
  tensor.add_shape("N");
  tensor.set_role(role);
  if (role == v1::TENSOR_ROLE_INPUT) tensor.set_fill(v1::FILL_NORMAL);
}

void AddSize(v1::Bundle* bundle, const std::string& name, int n) {
  v1::Size& size = *bundle->add_sizes();
  size.set_name(name);
  (*size.mutable_values())["N"] = n;
}

void FillLaunch(v1::Launch* launch, const std::string& entry, const std::string& grid) {
  launch->set_entry(entry);
  launch->add_grid(grid);
  launch->add_block("128");
  for (const char* argument : {"in", "out", "N"}) launch->add_arguments(argument);
}

}  // namespace

v1::Bundle TinyBundle() {
  v1::Bundle bundle;
  bundle.set_name("tiny");
  bundle.set_summary("Copies a vector");
  bundle.mutable_source()->set_path("tiny.cu");
  bundle.mutable_source()->set_text("extern \"C\" __global__ void copy(const float* in, float* out, int n) {}\n");
  bundle.set_compiler(v1::COMPILER_NVRTC);
  bundle.mutable_goal()->set_size("main");
  bundle.mutable_goal()->set_speedup(100);
  AddSize(&bundle, "small", 100);
  AddSize(&bundle, "main", 4096);
  AddTensor(&bundle, "in", v1::TENSOR_ROLE_INPUT);
  AddTensor(&bundle, "out", v1::TENSOR_ROLE_OUTPUT);
  AddVariable(&bundle, "TILE", {16, 32, 64}, 32);
  AddVariable(&bundle, "SPLIT", {1, 2, 4}, 1);
  bundle.add_constraints()->set_that("TILE * SPLIT <= 128");
  FillLaunch(bundle.add_launches(), "copy", "ceil_div(N, TILE) * SPLIT");
  bundle.mutable_reference()->mutable_source()->set_path("reference.cu");
  bundle.mutable_reference()->mutable_source()->set_text("extern \"C\" __global__ void copy_reference() {}\n");
  FillLaunch(bundle.mutable_reference()->add_launches(), "copy_reference", "ceil_div(N, 128)");
  bundle.mutable_tolerance()->set_absolute(0.01);
  bundle.mutable_tolerance()->set_relative(0.001);
  bundle.set_timing(v1::TIMING_MODE_WARM);
  return bundle;
}

v1::Bundle WideBundle() {
  v1::Bundle bundle = TinyBundle();
  AddVariable(&bundle, "UNROLL", {1, 2, 4, 8}, 1);
  return bundle;
}

void AddPairs(google::protobuf::RepeatedPtrField<v1::PairSample>* pairs, double parent_us, double candidate_us,
              int count, int process) {
  for (int i = 0; i < count; ++i) {
    const double noise = 0.0004 * (i % 3 - 1);
    v1::PairSample& pair = *pairs->Add();
    pair.set_parent_us(parent_us * std::exp(noise));
    pair.set_candidate_us(candidate_us);
    pair.set_log_ratio(std::log(pair.parent_us() / pair.candidate_us()));
    pair.set_process(process);
  }
}

v1::TrialResult MeasuredStart(double us) {
  v1::TrialResult result;
  result.set_warm_us(us);
  result.set_cold_us(2 * us);
  result.set_device("NVIDIA H200");
  result.mutable_gpu()->set_name("NVIDIA H200");
  v1::StageTime& stage = *result.add_stages();
  stage.set_stage(v1::STAGE_MEASURE);
  stage.set_seconds(2);
  return result;
}

v1::TrialResult Measured(double parent_us, double candidate_us) {
  v1::TrialResult result = MeasuredStart(candidate_us);
  result.set_parent_warm_us(parent_us);
  result.set_parent_cold_us(2 * parent_us);
  AddPairs(result.mutable_pairs(), parent_us, candidate_us, 12);
  if (candidate_us < parent_us) AddPairs(result.mutable_confirming_pairs(), parent_us, candidate_us, 12, 1);
  result.set_checked_to_keep(candidate_us < parent_us);
  return result;
}

v1::TrialResult FailedCheck(v1::Check check, const std::string& message) {
  v1::TrialResult result;
  result.mutable_failure()->set_stage(v1::STAGE_VALIDATE);
  result.mutable_failure()->set_check(check);
  result.mutable_failure()->set_message(message);
  result.set_device("NVIDIA H200");
  return result;
}

void SayWhatItIsOf(const v1::Trial& trial, v1::CompleteTrialRequest* request) {
  request->set_bundle_hash(trial.bundle_hash());
  *request->mutable_variant() = trial.variant();
  if (trial.has_parent()) *request->mutable_parent() = trial.parent();
}

}  // namespace pawl
