#include "worker/build/built_variant.h"

#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash/hash.h"
#include "kernels/plan.h"

namespace pawl {
namespace {

constexpr double kBuildDeadlineSeconds = 60;
constexpr size_t kMaxReferences = 256;  // where sizes are fixed at compile time, every hidden size makes one

v1::BuildRequest RequestFor(const v1::Bundle& bundle, const v1::SourceFile& source, const v1::GpuInfo& gpu,
                            std::vector<std::string> options, const v1::Plan& plan) {
  v1::BuildRequest request;
  request.set_compiler(bundle.compiler());
  request.set_source(source.text());
  request.set_name(source.path());
  request.set_architecture(ArchitectureOf(gpu));
  for (std::string& option : options) request.add_options(std::move(option));
  std::set<std::string> entries;
  for (const v1::PlanLaunch& launch : plan.launches()) entries.insert(launch.entry());
  for (const std::string& entry : entries) request.add_entries(entry);
  request.set_deadline_seconds(kBuildDeadlineSeconds);
  return request;
}

}  // namespace

const BuiltSize* BuiltVariant::Find(const std::string& size) const {
  for (const BuiltSize& built : sizes) {
    if (built.plan.size() == size) return &built;
  }
  return nullptr;
}

std::string ArchitectureOf(const v1::GpuInfo& gpu) {
  // From Hopper on, the instructions of one architecture only (wgmma) need its own target.
  return absl::StrCat("sm_", gpu.compute_major(), gpu.compute_minor(), gpu.compute_major() >= 9 ? "a" : "");
}

std::shared_ptr<const std::string> ReferenceCache::Find(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  const auto found = cubins_.find(key);
  return found == cubins_.end() ? nullptr : found->second;
}

void ReferenceCache::Put(const std::string& key, std::shared_ptr<const std::string> cubin) {
  absl::MutexLock lock(&mutex_);
  if (cubins_.size() >= kMaxReferences) cubins_.clear();
  cubins_[key] = std::move(cubin);
}

absl::StatusOr<BuiltVariant> BuildVariant(Compiler& builder, const v1::Bundle& bundle, const v1::Variant& variant,
                                          const std::vector<v1::Size>& sizes, const v1::GpuInfo& gpu,
                                          const Stopped& stopped) {
  const absl::Time start = absl::Now();
  BuiltVariant built;
  built.variant = variant;
  Planner planner(bundle);
  for (const v1::Size& size : sizes) {
    absl::StatusOr<v1::Plan> plan = planner.MakePlan(variant, size, gpu);
    if (!plan.ok()) {
      built.failure.emplace();
      built.failure->set_stage(v1::STAGE_STATIC_CHECK);
      built.failure->set_check(v1::CHECK_LAUNCH_LIMITS);
      built.failure->set_size(size.name());
      built.failure->set_message(std::string(plan.status().message()));
    } else {
      built.failure = CheckLaunchLimits(*plan, gpu);
    }
    built.seconds = built.check_seconds = absl::ToDoubleSeconds(absl::Now() - start);
    if (built.failure) return built;
    built.sizes.push_back({*std::move(plan), nullptr, ""});
  }
  std::map<std::string, const BuiltSize*> done;  // by compile options and entries
  for (size_t i = 0; i < sizes.size(); ++i) {
    BuiltSize& at = built.sizes[i];
    const v1::BuildRequest request =
        RequestFor(bundle, bundle.source(), gpu, CompileOptions(bundle, variant, sizes[i]), at.plan);
    const std::string key =
        absl::StrCat(absl::StrJoin(request.options(), "\n"), "\n\n", absl::StrJoin(request.entries(), "\n"));
    if (auto found = done.find(key); found != done.end()) {
      at.cubin = found->second->cubin;
      at.module = found->second->module;
      continue;
    }
    absl::StatusOr<v1::BuildReply> reply = builder.Build(request, stopped);
    if (!reply.ok()) return reply.status();
    if (!absl::StrContains(built.log, reply->log())) absl::StrAppend(&built.log, reply->log());
    if (reply->has_failure()) {
      built.failure = reply->failure();
      built.failure->set_size(sizes[i].name());
      break;
    }
    built.compile_seconds += reply->seconds();
    at.module = Sha256(reply->cubin());
    at.cubin = std::make_shared<const std::string>(std::move(*reply->mutable_cubin()));
    done[key] = &at;
  }
  built.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  return built;
}

absl::StatusOr<BuiltSize> BuildReference(Compiler& builder, const v1::Bundle& bundle, const v1::Size& size,
                                         const v1::GpuInfo& gpu, ReferenceCache* cache, const Stopped& stopped) {
  absl::StatusOr<v1::Plan> plan = MakeReferencePlan(bundle, size, gpu);
  if (!plan.ok()) return plan.status();
  const v1::BuildRequest request =
      RequestFor(bundle, bundle.reference().source(), gpu, ReferenceCompileOptions(bundle, size), *plan);
  const std::string key = Sha256(request.SerializeAsString());
  std::shared_ptr<const std::string> cubin = cache->Find(key);
  if (cubin == nullptr) {
    absl::StatusOr<v1::BuildReply> reply = builder.Build(request, stopped);
    if (!reply.ok()) return reply.status();
    if (reply->has_failure()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the reference of ", bundle.name(), " does not build: ", reply->failure().message()));
    }
    cubin = std::make_shared<const std::string>(std::move(*reply->mutable_cubin()));
    cache->Put(key, cubin);
  }
  return BuiltSize{*std::move(plan), cubin, Sha256(*cubin)};
}

}  // namespace pawl
