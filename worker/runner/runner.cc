#include "worker/runner/runner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/data_type.h"
#include "worker/runner/call.h"
#include "worker/runner/check.h"
#include "worker/runner/compare/comparer.h"
#include "worker/runner/profile.h"

namespace pawl {
namespace {

// All blocks of a cooperative launch must run at once.
absl::Status CheckCooperative(const v1::PlanLaunch& launch, const v1::ResourceUse& use, const v1::GpuInfo& gpu) {
  const int64_t blocks = int64_t{launch.grid().x()} * launch.grid().y() * launch.grid().z();
  const int64_t room = int64_t{use.blocks_per_sm()} * gpu.sm_count();
  if (!launch.cooperative() || blocks <= room) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the cooperative launch of ", launch.entry(), " has ", blocks,
                                                 " blocks, but only ", room, " run at once on this GPU (",
                                                 use.blocks_per_sm(), " on each of ", gpu.sm_count(),
                                                 " multiprocessors): a grid in terms of SM_COUNT fits"));
}

absl::Status Load(GpuContext& gpu, const v1::LoadRequest& request, v1::RunnerReply* reply) {
  if (!request.cubin().empty()) {
    auto fresh = std::make_unique<Module>();
    PAWL_RETURN_IF_ERROR(fresh->Load(request.cubin()));
    gpu.modules[request.module()] = std::move(fresh);
  }
  absl::StatusOr<Module*> module = gpu.FindModule(request.module());
  if (!module.ok()) return module.status();
  reply->mutable_load()->set_module_bytes((*module)->bytes());
  for (const v1::PlanLaunch& launch : request.launches()) {
    absl::StatusOr<v1::ResourceUse> use = (*module)->Resources(launch);
    if (!use.ok()) return use.status();
    PAWL_RETURN_IF_ERROR(CheckCooperative(launch, *use, gpu.gpu));
    *reply->mutable_load()->add_resources() = *use;
  }
  return absl::OkStatus();
}

absl::Status Copy(GpuContext& gpu, const v1::CopyRequest& request, v1::RunnerReply* reply) {
  PAWL_RETURN_IF_ERROR(gpu.arena.Reserve(2 * request.bytes()));
  PAWL_RETURN_IF_ERROR(gpu.ReserveEvents(1));
  const CUevent start = gpu.starts[0], stop = gpu.stops[0];
  double best = 0;
  for (int i = 0; i < 10; ++i) {
    PAWL_CUDA(EventRecord(start, gpu.stream));
    PAWL_CUDA(MemcpyDtoDAsync(gpu.arena.address(), gpu.arena.address() + request.bytes(), request.bytes(), gpu.stream));
    PAWL_CUDA(EventRecord(stop, gpu.stream));
    PAWL_CUDA(CtxSynchronize());
    float ms = 0;
    PAWL_CUDA(EventElapsedTime(&ms, start, stop));
    best = std::max(best, 2.0 * request.bytes() / (ms * 1e6));
  }
  reply->mutable_copy()->set_gb_s(best);
  return absl::OkStatus();
}

// The stage a request belongs to, and its size, for failures that come from the driver.
void Place(const v1::RunnerRequest& request, v1::Failure* failure) {
  switch (request.request_case()) {
    case v1::RunnerRequest::kCompare:
      failure->set_stage(v1::STAGE_MEASURE);
      failure->set_size(request.compare().candidate_plan().size());
      break;
    case v1::RunnerRequest::kCall:
      failure->set_stage(v1::STAGE_VALIDATE);
      failure->set_size(request.call().plan().size());
      break;
    default:
      failure->set_stage(v1::STAGE_VALIDATE);
  }
}

// What is free, and which tensor asks for most.
std::string MemoryText(const GpuContext& gpu, const v1::RunnerRequest& request) {
  std::string text;
  size_t free = 0, total = 0;
  if (Cuda().MemGetInfo(&free, &total) == 0) {
    absl::StrAppend(&text, "; ", free >> 20, " MiB of ", gpu.gpu.memory_bytes() >> 20, " MiB are free");
  }
  const v1::Plan& plan = request.has_compare() ? request.compare().candidate_plan()
                         : request.has_check() ? request.check().plan()
                                               : request.call().plan();
  const auto largest = std::max_element(plan.tensors().begin(), plan.tensors().end(),
                                        [](const auto& a, const auto& b) { return TensorBytes(a) < TensorBytes(b); });
  if (largest != plan.tensors().end()) {
    absl::StrAppend(&text, "; the largest tensor is ", largest->name(), " with ", TensorBytes(*largest) >> 20, " MiB");
  }
  return text;
}

}  // namespace

v1::RunnerReply FailedReply(const absl::Status& status, const v1::RunnerRequest& request) {
  v1::RunnerReply reply;
  v1::Check check = v1::CHECK_UNSPECIFIED;
  switch (status.code()) {
    case absl::StatusCode::kAborted:
      check = v1::CHECK_FAULT;
      reply.set_context_lost(true);
      break;
    case absl::StatusCode::kResourceExhausted:
      check = v1::CHECK_OUT_OF_MEMORY;
      break;
    case absl::StatusCode::kInvalidArgument:
      check = v1::CHECK_LAUNCH;
      break;
    default:
      reply.set_host_error(std::string(status.message()));
      reply.set_context_lost(true);  // whatever state the context is in, a fresh process is safer
      return reply;
  }
  Place(request, reply.mutable_failure());
  reply.mutable_failure()->set_check(check);
  reply.mutable_failure()->set_message(std::string(status.message()));
  return reply;
}

v1::RunnerReply Runner::Answer(const v1::RunnerRequest& request) {
  v1::RunnerReply reply;
  const absl::Status status = Dispatch(request, &reply);
  if (status.ok()) return reply;
  if (!absl::IsResourceExhausted(status)) return FailedReply(status, request);
  return FailedReply(absl::ResourceExhaustedError(absl::StrCat(status.message(), MemoryText(gpu_, request))), request);
}

absl::Status Runner::Dispatch(const v1::RunnerRequest& request, v1::RunnerReply* reply) {
  switch (request.request_case()) {
    case v1::RunnerRequest::kOpen:
      PAWL_RETURN_IF_ERROR(gpu_.Open(request.open().device(), request.open().support_cubin()));
      *reply->mutable_open()->mutable_gpu() = gpu_.gpu;
      return absl::OkStatus();
    case v1::RunnerRequest::kLoad:
      return Load(gpu_, request.load(), reply);
    case v1::RunnerRequest::kUnload:
      gpu_.modules.erase(request.unload().module());
      reply->mutable_load();
      return absl::OkStatus();
    case v1::RunnerRequest::kCall:
      return Call(gpu_, request.call(), reply);
    case v1::RunnerRequest::kCompare:
      return Comparer(gpu_, request.compare()).Run(reply);
    case v1::RunnerRequest::kCheck:
      return CheckOutputs(gpu_, request.check(), reply);
    case v1::RunnerRequest::kCopy:
      return Copy(gpu_, request.copy(), reply);
    case v1::RunnerRequest::kProvide:
      return gpu_.pools.Provide(request.provide(), gpu_.shared.fd());
    case v1::RunnerRequest::kProfile:
      return Profile(gpu_, profiler_, request.profile(), reply);
    default:
      return absl::UnimplementedError("this runner does not know the request: worker and runner differ in version");
  }
}

}  // namespace pawl
