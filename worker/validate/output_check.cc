#include "worker/validate/output_check.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "kernels/hidden_sizes.h"
#include "kernels/plan.h"
#include "worker/validate/load_built.h"
#include "worker/validate/provided_inputs.h"

namespace pawl {
namespace {

constexpr absl::Duration kCheckDeadline = absl::Seconds(60);
constexpr size_t kFirstHiddenSizes = kHiddenSizes / 2;

absl::StatusOr<BuiltSize> Reference(GpuDevice& device, const v1::Bundle& bundle, const v1::Plan& plan,
                                    const Stopped& stopped) {
  v1::Size size;
  size.set_name(plan.size());
  *size.mutable_values() = plan.sizes();
  return BuildReference(device.builder(), bundle, size, device.gpu(), &device.references(), stopped);
}

// Both processes must make the same inputs.
v1::Plan WithRangesOf(const v1::Plan& plan, v1::Plan reference) {
  for (v1::PlanTensor& tensor : *reference.mutable_tensors()) {
    for (const v1::PlanTensor& given : plan.tensors()) {
      if (given.name() != tensor.name() || !given.has_low()) continue;
      tensor.set_low(given.low());
      tensor.set_high(given.high());
    }
  }
  return reference;
}

// Tensors alone: nothing is launched where expected outputs are given.
v1::Plan WithoutScratch(const v1::Plan& plan) {
  v1::Plan without = plan;
  without.clear_launches();
  without.clear_setup();
  without.clear_symbols();
  without.clear_tensors();
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    if (tensor.role() != v1::TENSOR_ROLE_SCRATCH) *without.add_tensors() = tensor;
  }
  return without;
}

// By check(got, expected) of problem.py, in its process.
absl::StatusOr<v1::CheckReply> CheckByProblem(GpuDevice& device, const v1::Bundle& bundle, const v1::Plan& plan,
                                              const std::vector<v1::InputDraw>& draws, bool self_test) {
  absl::StatusOr<OwnCheck> check = device.problem().Check(bundle, plan, draws, self_test);
  if (!check.ok()) return check.status();
  v1::CheckReply reply;
  reply.mutable_verdicts()->Assign(check->verdicts.begin(), check->verdicts.end());
  reply.mutable_lenient()->Assign(check->lenient.begin(), check->lenient.end());
  if (reply.verdicts().empty()) return absl::InternalError("check() of problem.py compared nothing");
  return reply;
}

}  // namespace

uint64_t SecretSeed() {
  uint64_t seed = 0;
  memcpy(&seed, RandomBytes(sizeof(seed)).data(), sizeof(seed));
  return seed;
}

v1::InputDraw FreshDraw() {
  v1::InputDraw draw;
  draw.set_key(RandomBytes(32));
  return draw;
}

SizesToValidate AllSizes(const v1::Bundle& bundle) {
  SizesToValidate sizes;
  sizes.all = HiddenSizes(bundle, SecretSeed());
  sizes.small = sizes.all.size() + 1;
  sizes.all.insert(sizes.all.end(), bundle.sizes().begin(), bundle.sizes().end());
  return sizes;
}

SizesToValidate FirstSizes(const v1::Bundle& bundle, const v1::Variant& variant, const std::vector<SizeWeight>& timed) {
  SizesToValidate sizes;
  sizes.all = HiddenSizes(bundle, SecretSeed());
  const auto fixes_size = [&] {
    return CompileOptions(bundle, variant, sizes.all.front()) != CompileOptions(bundle, variant, sizes.all.back());
  };
  if (sizes.all.size() > kFirstHiddenSizes && fixes_size()) {
    while (sizes.all.size() > kFirstHiddenSizes) sizes.all.erase(sizes.all.begin() + SecretSeed() % sizes.all.size());
  }
  sizes.small = sizes.all.size() + 1;
  for (const v1::Size& size : bundle.sizes()) {
    const bool smallest = &size == &bundle.sizes(0);
    const bool is_timed =
        std::any_of(timed.begin(), timed.end(), [&](const SizeWeight& each) { return each.size == size.name(); });
    if (smallest || is_timed) sizes.all.push_back(size);
  }
  return sizes;
}

absl::Status BuildReferenceAhead(GpuDevice& device, const v1::Bundle& bundle, const v1::Plan& plan,
                                 const Stopped& stopped) {
  if (HasProblem(bundle)) return absl::OkStatus();
  return Reference(device, bundle, plan, stopped).status();
}

absl::StatusOr<v1::CheckReply> CheckOutputs(GpuDevice& device, const v1::Bundle& bundle, const v1::Plan& plan,
                                            const std::vector<v1::InputDraw>& draws, bool self_test,
                                            const std::vector<double>& own_rms) {
  if (HasProblem(bundle)) {
    const absl::StatusOr<bool> own = device.problem().HasCheck(bundle);
    if (!own.ok()) return own.status();
    if (*own) return CheckByProblem(device, bundle, plan, draws, self_test);
  }
  auto fail = [&](const v1::Failure& failure) {
    const std::string message =
        absl::StrCat("the reference of ", bundle.name(), " failed at size ", plan.size(), ": ", failure.message());
    const bool memory = failure.check() == v1::CHECK_OUT_OF_MEMORY;
    return memory ? absl::ResourceExhaustedError(message) : absl::InvalidArgumentError(message);
  };
  v1::RunnerRequest request;
  if (HasProblem(bundle)) {
    for (const v1::InputDraw& draw : draws) {
      // They can't be handed over now: shared memory holds the outputs. A fresh runner gets all of it again.
      if (device.reference().HasEntry(ExpectedPool(draw.pool()), draw.entry())) continue;
      return absl::ResourceExhaustedError("the reference process no longer has the outputs that problem.py expects");
    }
    *request.mutable_check()->mutable_plan() = WithoutScratch(plan);
    if (!draws.empty()) request.mutable_check()->set_expected(ExpectedPool(draws[0].pool()));
  } else {
    absl::StatusOr<BuiltSize> reference = Reference(device, bundle, plan, device.stopped());
    if (!reference.ok()) return reference.status();
    absl::StatusOr<v1::RunnerReply> loaded = LoadBuilt(device.reference(), *reference);
    if (!loaded.ok()) return loaded.status();
    if (loaded->has_failure()) return fail(loaded->failure());
    request.mutable_check()->set_module(reference->module);
    *request.mutable_check()->mutable_plan() = WithRangesOf(plan, reference->plan);
  }
  request.mutable_check()->mutable_draws()->Assign(draws.begin(), draws.end());
  request.mutable_check()->set_self_test(self_test);
  request.mutable_check()->mutable_own_rms()->Assign(own_rms.begin(), own_rms.end());
  absl::StatusOr<v1::RunnerReply> reply = device.reference().Ask(request, kCheckDeadline);
  if (!reply.ok()) return reply.status();
  if (reply->has_failure()) return fail(reply->failure());
  // Outputs that were not compared must not count as right.
  size_t outputs = 0;
  for (const v1::PlanTensor& tensor : plan.tensors()) {
    outputs += IsCompared(tensor.role());
  }
  if (static_cast<size_t>(reply->check().errors_size()) != outputs * draws.size() || outputs * draws.size() == 0) {
    return absl::InternalError(
        absl::StrCat("the reference compared ", reply->check().errors_size(), " outputs of ", outputs * draws.size()));
  }
  return reply->check();
}

}  // namespace pawl
