// Speaks pawl-runner's language without a GPU, as a healthy GPU would answer: every output is right, every call takes
// 100 us, or 80 where a module's code says `fake: time 80`, and 5 more for each `fake: adds 5`. With `fake: takes 0.2`,
// a process that times it takes 0.2 s, and each call to validate it a tenth of that. One that says `fake: hang-call`
// never returns from a call; `fake: cuda 214` has the driver's result 214 in every call, and answers as the real runner
// answers that.

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "base/sync/steady_time.h"
#include "pawl/v1/runner.pb.h"
#include "worker/process/message_pipe.h"
#include "worker/runner/driver/cuda_driver.h"
#include "worker/runner/runner.h"

namespace pawl {
namespace {

constexpr double kMicroseconds = 100;

std::map<std::string, std::string> modules;  // what the code of each says

void Open(v1::RunnerReply* reply) {
  v1::GpuInfo& gpu = *reply->mutable_open()->mutable_gpu();
  gpu.set_name("NVIDIA H200");
  gpu.set_uuid("GPU-fake");
  gpu.set_compute_major(9);
  gpu.set_sm_count(132);
  gpu.set_memory_bytes(int64_t{1} << 37);
  gpu.set_max_threads_per_sm(2048);
  gpu.set_max_threads_per_block(1024);
  gpu.set_max_blocks_per_sm(32);
  gpu.set_registers_per_sm(65536);
  gpu.set_shared_per_sm(233472);
  gpu.set_shared_per_block_optin(232448);
  gpu.set_l2_bytes(50 << 20);
}

void Load(const v1::LoadRequest& request, v1::RunnerReply* reply) {
  if (!request.cubin().empty()) modules[request.module()] = request.cubin();
  reply->mutable_load();
  for (const v1::PlanLaunch& launch : request.launches()) {
    v1::ResourceUse& use = *reply->mutable_load()->add_resources();
    use.set_entry(launch.entry());
    use.set_registers(32);
    use.set_blocks_per_sm(8);
  }
}

// False: it goes wrong, and the reply says how.
bool Run(const std::string& module, const v1::RunnerRequest& request, v1::RunnerReply* reply) {
  const std::string& code = modules[module];
  if (code.find("fake: hang-call") != std::string::npos) {
    prctl(PR_SET_NAME, "pawl-hangs");
    signal(SIGTERM, SIG_IGN);
    while (true) pause();
  }
  const size_t at = code.find("fake: cuda ");
  if (at == std::string::npos) return true;
  *reply = FailedReply(CudaStatus(std::atoi(code.c_str() + at + 11), "StreamSynchronize"), request);
  return false;
}

// What the module's code says of a word, added up; nothing where it says none.
std::optional<double> Told(const std::string& module, const std::string& word) {
  const std::string& code = modules[module];
  const std::string what = "fake: " + word + " ";
  std::optional<double> sum;
  for (size_t at = code.find(what); at != std::string::npos; at = code.find(what, at + 1)) {
    sum = sum.value_or(0) + std::atof(code.c_str() + at + what.size());
  }
  return sum;
}

double TimeOf(const std::string& module) {
  return Told(module, "time").value_or(kMicroseconds) + Told(module, "adds").value_or(0);
}

void Spend(const std::string& module, double share) {
  std::this_thread::sleep_for(std::chrono::duration<double>(share * Told(module, "takes").value_or(0)));
}

void Compare(const v1::CompareRequest& request, v1::CompareReply* reply) {
  const double candidate = TimeOf(request.candidate());
  const double parent = request.parent().empty() ? candidate : TimeOf(request.parent());
  for (int i = 0; i < request.pairs(); ++i) {
    v1::PairSample& pair = *reply->add_pairs();
    pair.set_parent_us(parent * (1 + 0.0001 * (i % 3)));
    pair.set_candidate_us(candidate);
    pair.set_log_ratio(std::log(pair.parent_us() / pair.candidate_us()));
    pair.set_anchor_us(kMicroseconds);
    if (!request.witness().empty()) pair.set_witness_us(TimeOf(request.witness()));
    pair.set_single(request.single());
    pair.set_calls(std::max(1, request.calls()));
  }
  reply->set_most_calls(1);
  reply->set_candidate_warm_us(candidate);
  reply->set_parent_warm_us(parent);
  reply->set_candidate_cold_us(2 * candidate);
  reply->set_parent_cold_us(2 * parent);
  reply->add_checked()->set_pool(request.pool());
}

void Check(const v1::CheckRequest& request, v1::CheckReply* reply) {
  for (int i = 0; i < request.draws_size(); ++i) {
    for (const v1::PlanTensor& tensor : request.plan().tensors()) {
      if (tensor.role() != v1::TENSOR_ROLE_OUTPUT) continue;
      v1::OutputError& error = *reply->add_errors();
      error.set_tensor(tensor.name());
      error.set_elements(tensor.elements());
      error.set_first_wrong(-1);
    }
  }
}

v1::RunnerReply Answer(const v1::RunnerRequest& request) {
  v1::RunnerReply reply;
  if (request.has_open()) Open(&reply);
  if (request.has_load()) Load(request.load(), &reply);
  if (request.has_unload()) reply.mutable_load();
  if (request.has_call() && Run(request.call().module(), request, &reply)) {
    reply.mutable_call()->set_staged(1);
    Spend(request.call().module(), 0.1);
  }
  if (request.has_compare()) {
    Compare(request.compare(), reply.mutable_compare());
    Spend(request.compare().candidate(), 1);
  }
  if (request.has_check()) Check(request.check(), reply.mutable_check());
  if (request.has_copy()) reply.mutable_copy()->set_gb_s(4000);
  if (request.has_profile()) reply.mutable_profile()->set_unavailable("this GPU has no counters");
  return reply;
}

}  // namespace
}  // namespace pawl

int main() {
  pawl::v1::RunnerRequest request;
  while (pawl::ReadMessage(0, &request, pawl::SteadyTime::InfiniteFuture()).ok()) {
    const pawl::v1::RunnerReply reply = pawl::Answer(request);
    if (!pawl::WriteMessage(1, reply, pawl::SteadyTime::InfiniteFuture()).ok() || reply.context_lost()) _exit(1);
  }
  _exit(0);
}
