#include "worker/runner/module.h"

#include <deque>
#include <vector>

#include "absl/strings/str_cat.h"

namespace pawl {

Module::~Module() {
  if (module_ != nullptr) Cuda().ModuleUnload(module_);
}

absl::Status Module::Load(const std::string& cubin) {
  size_t before = 0, after = 0, total = 0;
  Cuda().MemGetInfo(&before, &total);
  PAWL_CUDA(ModuleLoadData(&module_, cubin.data()));
  Cuda().MemGetInfo(&after, &total);
  bytes_ = before > after ? static_cast<int64_t>(before - after) : 0;
  cubin_ = cubin;
  return absl::OkStatus();
}

absl::StatusOr<CUfunction> Module::Function(const std::string& entry) {
  if (auto found = functions_.find(entry); found != functions_.end()) return found->second;
  CUfunction function;
  if (CUresult result = Cuda().ModuleGetFunction(&function, module_, entry.c_str())) {
    return CudaStatus(result, absl::StrCat("ModuleGetFunction(", entry, ")").c_str());
  }
  functions_[entry] = function;
  return function;
}

absl::StatusOr<v1::ResourceUse> Module::Resources(const v1::PlanLaunch& launch) {
  absl::StatusOr<CUfunction> function = Function(launch.entry());
  if (!function.ok()) return function.status();
  int registers, static_shared, local, max_threads, blocks = 0;
  PAWL_CUDA(FuncGetAttribute(&registers, kFunctionRegisters, *function));
  PAWL_CUDA(FuncGetAttribute(&static_shared, kFunctionSharedBytes, *function));
  PAWL_CUDA(FuncGetAttribute(&local, kFunctionLocalBytes, *function));
  PAWL_CUDA(FuncGetAttribute(&max_threads, kFunctionMaxThreads, *function));
  const int threads = launch.block().x() * launch.block().y() * launch.block().z();
  if (launch.shared_bytes() > 0) {
    PAWL_CUDA(FuncSetAttribute(*function, kFunctionMaxDynamicShared, launch.shared_bytes()));
    dynamic_shared_[launch.entry()] = launch.shared_bytes();
  }
  PAWL_CUDA(OccupancyMaxActiveBlocks(&blocks, *function, threads, launch.shared_bytes()));
  v1::ResourceUse use;
  use.set_entry(launch.entry());
  use.set_registers(registers);
  use.set_static_shared_bytes(static_shared);
  use.set_local_bytes(local);
  use.set_max_threads(max_threads);
  use.set_blocks_per_sm(blocks);
  return use;
}

absl::Status Module::Call(const v1::Plan& plan, const Arena& arena, CUdeviceptr base, CUstream stream) {
  std::vector<CUdeviceptr> tensors;
  for (int i = 0; i < plan.tensors_size(); ++i) tensors.push_back(base + arena.Offset(i));
  return Call(plan, tensors, stream);
}

absl::Status Module::Call(const v1::Plan& plan, const std::vector<CUdeviceptr>& tensors, CUstream stream) {
  for (const v1::PlanLaunch& launch : plan.launches()) {
    absl::StatusOr<CUfunction> function = Function(launch.entry());
    if (!function.ok()) return function.status();
    if (launch.shared_bytes() > dynamic_shared_[launch.entry()]) {
      PAWL_CUDA(FuncSetAttribute(*function, kFunctionMaxDynamicShared, launch.shared_bytes()));
      dynamic_shared_[launch.entry()] = launch.shared_bytes();
    }
    std::deque<uint64_t> values;  // stable addresses for the driver
    std::vector<void*> arguments;
    for (const v1::PlanArgument& argument : launch.arguments()) {
      uint64_t& value = values.emplace_back(0);
      switch (argument.argument_case()) {
        case v1::PlanArgument::kTensor:
          value = tensors[argument.tensor()];
          break;
        case v1::PlanArgument::kI32:
          *reinterpret_cast<int32_t*>(&value) = argument.i32();
          break;
        case v1::PlanArgument::kF32:
          *reinterpret_cast<float*>(&value) = argument.f32();
          break;
        case v1::PlanArgument::kF64:
          *reinterpret_cast<double*>(&value) = argument.f64();
          break;
        default:
          return absl::InvalidArgumentError(absl::StrCat("an argument of ", launch.entry(), " has no value"));
      }
      arguments.push_back(&value);
    }
    const v1::Dim3& grid = launch.grid();
    const v1::Dim3& block = launch.block();
    if (CUresult result = Cuda().LaunchKernel(*function, grid.x(), grid.y(), grid.z(), block.x(), block.y(), block.z(),
                                              launch.shared_bytes(), stream, arguments.data(), nullptr)) {
      return CudaStatus(result, absl::StrCat("LaunchKernel of ", launch.entry(), ", grid ", grid.x(), "x", grid.y(),
                                             "x", grid.z(), ", block ", block.x(), "x", block.y(), "x", block.z(), ", ",
                                             launch.shared_bytes(), " bytes of dynamic shared memory")
                                    .c_str());
    }
  }
  return absl::OkStatus();
}

}  // namespace pawl
