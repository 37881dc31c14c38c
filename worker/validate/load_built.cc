#include "worker/validate/load_built.h"

namespace pawl {

absl::StatusOr<v1::RunnerReply> LoadBuilt(KernelProcess& process, const BuiltSize& built) {
  if (built.setup_cubin != nullptr) {
    absl::StatusOr<v1::RunnerReply> setup = process.Load(built.setup_module, *built.setup_cubin, built.plan.setup());
    if (!setup.ok() || setup->has_failure()) return setup;
  }
  for (const TensorFile& file : built.files) {
    absl::StatusOr<v1::RunnerReply> provided = process.ProvideFile(file.id, *file.content);
    if (!provided.ok() || provided->has_failure()) return provided;
  }
  return process.Load(built.module, *built.cubin, built.plan.launches());
}

}  // namespace pawl
