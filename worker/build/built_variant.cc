#include "worker/build/built_variant.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/hash/hash.h"
#include "base/sync/steady_time.h"
#include "kernels/data_type.h"
#include "kernels/plan.h"
#include "kernels/space.h"
#include "kernels/substitution.h"
#include "worker/build/build_reply.h"
#include "worker/build/compiler_log.h"
#include "worker/build/cubin.h"
#include "worker/build/plan_arguments.h"

namespace pawl {
namespace {

constexpr double kBuildDeadlineSeconds = 60;
constexpr size_t kMaxReferences = 256;  // where sizes are fixed at compile time, every hidden size makes one

// Of a source by itself: the reference's.
v1::BuildRequest RequestFor(const v1::Bundle& bundle, const v1::SourceFile& source, const v1::GpuInfo& gpu,
                            std::vector<std::string> options, const v1::Plan& plan) {
  v1::BuildRequest request;
  request.set_compiler(bundle.compiler());
  request.set_source(source.text());
  request.set_name(source.path());
  *request.mutable_include() = bundle.include();
  request.set_architecture(ArchitectureOf(gpu));
  for (std::string& option : options) request.add_options(std::move(option));
  std::set<std::string> entries;
  for (const v1::PlanLaunch& launch : plan.launches()) entries.insert(launch.entry());
  for (const std::string& entry : entries) request.add_entries(entry);
  request.set_deadline_seconds(kBuildDeadlineSeconds);
  return request;
}

// Of the implementation: its source with its files.
v1::BuildRequest VariantRequest(const v1::Bundle& bundle, const CompiledFiles& files, const v1::Variant& variant,
                                const v1::Size& size, const v1::GpuInfo& gpu, const v1::Plan& plan) {
  std::vector<std::string> options = CompileOptions(bundle, variant, size);
  options.insert(options.end(), files.options.begin(), files.options.end());
  v1::BuildRequest request = RequestFor(bundle, files.source, gpu, std::move(options), plan);
  request.set_binary(bundle.source().binary());
  request.mutable_files()->Assign(files.files.begin(), files.files.end());
  return request;
}

// The names that the plan's entries have in the cubin.
void NameSymbols(const google::protobuf::Map<std::string, std::string>& lowered,
                 google::protobuf::RepeatedPtrField<v1::PlanLaunch>* launches) {
  for (v1::PlanLaunch& launch : *launches) {
    const auto found = lowered.find(launch.entry());
    if (found != lowered.end()) launch.set_symbol(found->second);
  }
}

absl::StatusOr<std::vector<v1::BuildReply>> BuildAll(Compiler& builder, const std::vector<v1::BuildRequest>& requests,
                                                     const Stopped& stopped) {
  std::vector<v1::BuildReply> replies;
  for (absl::StatusOr<v1::BuildReply>& reply : builder.BuildBeside(requests, stopped)) {
    if (!reply.ok()) return reply.status();
    replies.push_back(*std::move(reply));
  }
  return replies;
}

std::string CountText(const std::vector<int>& sizes) {
  if (sizes.empty()) return "none";
  return absl::StrCat(sizes.size(), " of ", absl::StrJoin(sizes, ","), " bytes");
}

using PlanLaunches = google::protobuf::RepeatedPtrField<v1::PlanLaunch>;

std::optional<v1::Failure> CheckLaunchArguments(const PlanLaunches& launches, const std::string& size,
                                                const std::string& cubin) {
  const absl::StatusOr<std::map<std::string, std::vector<int>>> known = EntryParameters(cubin);
  if (!known.ok()) return std::nullopt;  // loading it says what is wrong
  for (const v1::PlanLaunch& launch : launches) {
    const auto entry = known->find(SymbolOf(launch));
    if (entry == known->end()) continue;
    std::vector<int> passed;
    for (const v1::PlanArgument& argument : launch.arguments()) passed.push_back(ArgumentBytes(argument));
    if (passed == entry->second) continue;
    v1::Failure failure;
    failure.set_stage(v1::STAGE_BUILD);
    failure.set_check(v1::CHECK_ARGUMENTS);
    failure.set_size(size);
    failure.set_message(absl::StrCat("the parameters of ", launch.entry(), " are ", CountText(entry->second),
                                     "; the launch passes ", CountText(passed),
                                     ". Compare `arguments` of the launch with the kernel's parameters"));
    return failure;
  }
  return std::nullopt;
}

// Whether the cubin has the variables that are to be filled, each with the bytes of its tensor.
std::optional<v1::Failure> CheckSymbols(const v1::Plan& plan, const std::string& cubin) {
  if (plan.symbols().empty()) return std::nullopt;
  const absl::StatusOr<std::vector<GlobalVariable>> variables = GlobalVariables(cubin);
  if (!variables.ok()) return std::nullopt;  // loading it says what is wrong
  const auto failure = [&](std::string message) {
    v1::Failure result;
    result.set_stage(v1::STAGE_BUILD);
    result.set_check(v1::CHECK_ARGUMENTS);
    result.set_size(plan.size());
    result.set_message(std::move(message));
    return result;
  };
  for (const v1::PlanSymbol& symbol : plan.symbols()) {
    const GlobalVariable* variable = FindVariable(*variables, symbol.name());
    const v1::PlanTensor& tensor = plan.tensors(symbol.tensor());
    if (variable == nullptr) {
      std::vector<std::string> names;
      for (const GlobalVariable& each : *variables) names.push_back(Demangled(each.name));
      return failure(absl::StrCat("[[symbol]] ", symbol.name(), ": the code has no such variable; it has ",
                                  names.empty() ? "none" : absl::StrJoin(names, ", "),
                                  ". One that no kernel uses may be left out by the compiler"));
    }
    if (variable->bytes == static_cast<uint64_t>(TensorBytes(tensor))) continue;
    return failure(absl::StrCat("[[symbol]] ", symbol.name(), ": the variable has ", variable->bytes,
                                " bytes, the tensor ", tensor.name(), " ", TensorBytes(tensor), " at size ",
                                plan.size(), ". Give them the same type and shape"));
  }
  return std::nullopt;
}

std::optional<v1::Failure> CheckNames(const v1::Plan& plan) {
  for (const v1::PlanLaunch& launch : plan.launches()) {
    if (!absl::StrContains(SymbolOf(launch), kOwnFillKernel)) continue;
    v1::Failure failure;
    failure.set_stage(v1::STAGE_BUILD);
    failure.set_check(v1::CHECK_COMPILE);
    failure.set_size(plan.size());
    failure.set_message(absl::StrCat("the entry ", launch.entry(), " has ", kOwnFillKernel,
                                     " in its name, as a kernel of Pawl's own: give it another one"));
    return failure;
  }
  return std::nullopt;
}

// Any of its launches exchanges tensors.
bool Exchanges(const v1::Bundle& bundle) {
  return std::any_of(bundle.launches().begin(), bundle.launches().end(),
                     [](const v1::Launch& launch) { return !launch.swap().empty(); });
}

// What a compiler's message says about `files` at the top of kernel.toml, for a source of the contract: it does not see
// those, because they may be edited.
std::string WithFilesHint(const std::string& message, const std::string& instead) {
  return absl::StrReplaceAll(message, {{"`files` in kernel.toml must name", instead}});
}

// To the message of a compiler, which knows macros and no variables.
void AddMacroHint(const v1::Bundle& bundle, const v1::Variant& variant, const v1::BuildRequest& request,
                  const std::string& log, v1::Failure& failure) {
  const std::optional<CompilerError> error = FirstError(log);
  if (failure.check() != v1::CHECK_COMPILE || !error) return;
  failure.set_message(absl::StrCat(failure.message(), MacroHint(bundle, variant, TextsOf(request), *error)));
}

// The code of each size's setup launches.
absl::Status BuildSetup(Compiler& builder, const v1::Bundle& bundle, const std::vector<v1::Size>& sizes,
                        const v1::GpuInfo& gpu, const Stopped& stopped, BuiltVariant* built) {
  std::map<std::string, std::shared_ptr<const v1::BuildReply>> replies;  // by request
  for (size_t i = 0; i < sizes.size(); ++i) {
    BuiltSize& at = built->sizes[i];
    if (at.plan.setup().empty()) continue;
    const v1::SourceFile& source = bundle.setup().source();
    v1::Plan launched;
    *launched.mutable_launches() = at.plan.setup();
    const v1::BuildRequest request =
        RequestFor(bundle, source, gpu, ContractCompileOptions(source, sizes[i]), launched);
    std::shared_ptr<const v1::BuildReply>& known = replies[request.SerializeAsString()];
    if (known == nullptr) {
      absl::StatusOr<v1::BuildReply> reply = builder.Build(request, stopped);
      if (!reply.ok()) return reply.status();
      if (reply->has_failure()) {
        built->failure = reply->failure();
        built->failure->set_size(at.plan.size());
        built->failure->set_message(
            absl::StrCat("the setup does not build: ",
                         WithFilesHint(reply->failure().message(), "a setup has no `files`: its source must hold")));
        return absl::OkStatus();
      }
      known = std::make_shared<const v1::BuildReply>(*std::move(reply));
    }
    at.setup_cubin = std::shared_ptr<const std::string>(known, &known->cubin());
    at.setup_module = Sha256(known->cubin());
    NameSymbols(known->lowered(), at.plan.mutable_setup());
    built->failure = CheckLaunchArguments(at.plan.setup(), at.plan.size(), known->cubin());
    if (built->failure) return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<v1::Failure> CheckArguments(const v1::Plan& plan, const std::string& cubin) {
  if (std::optional<v1::Failure> failure = CheckLaunchArguments(plan.launches(), plan.size(), cubin)) return failure;
  return CheckSymbols(plan, cubin);
}

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

std::shared_ptr<const v1::BuildReply> ReferenceCache::Find(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  const auto found = built_.find(key);
  return found == built_.end() ? nullptr : found->second;
}

void ReferenceCache::Put(const std::string& key, std::shared_ptr<const v1::BuildReply> built) {
  absl::MutexLock lock(&mutex_);
  if (built_.size() >= kMaxReferences) built_.clear();
  built_[key] = std::move(built);
}

absl::StatusOr<BuiltVariant> BuildVariant(Compiler& builder, const v1::Bundle& bundle, const v1::Variant& variant,
                                          const std::vector<v1::Size>& sizes, const v1::GpuInfo& gpu,
                                          const Stopped& stopped, const v1::Bundle* start) {
  const SteadyTime begin = SteadyNow();
  BuiltVariant built;
  built.variant = variant;
  Planner planner(bundle);
  std::optional<Planner> start_planner;
  if (start != nullptr && (Exchanges(bundle) || Exchanges(*start))) start_planner.emplace(*start);
  const std::shared_ptr<const v1::Bundle> problem =
      HasProblem(bundle) ? std::make_shared<const v1::Bundle>(bundle) : nullptr;
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
    if (!built.failure && start_planner) {
      // A size that the start can't take, which no ladder has, asks nothing of the variant.
      const absl::StatusOr<v1::Plan> of_start = start_planner->MakePlan(StartVariant(*start), size, gpu);
      if (of_start.ok()) built.failure = CheckResultPlaces(*plan, *of_start);
    }
    built.seconds = built.check_seconds = absl::ToDoubleSeconds(SteadyNow() - begin);
    if (built.failure) return built;
    absl::StatusOr<std::vector<TensorFile>> files = TakeFiles(bundle, &*plan);
    if (!files.ok()) return files.status();
    built.sizes.push_back({*std::move(plan), nullptr, ""});
    built.sizes.back().files = *std::move(files);
    built.sizes.back().problem = problem;
  }
  // What differs in nothing that the compiler sees is compiled once.
  std::vector<v1::BuildRequest> requests;
  std::vector<size_t> request_of;      // of each size
  std::map<std::string, size_t> seen;  // compile options and entries, to their request
  const absl::StatusOr<CompiledFiles> files = FilesToCompile(bundle, variant);
  if (!files.ok()) {
    built.failure = BuildFailure(v1::CHECK_COMPILE, std::string(files.status().message()));
    return built;
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    v1::BuildRequest request = VariantRequest(bundle, *files, variant, sizes[i], gpu, built.sizes[i].plan);
    const std::string key =
        absl::StrCat(absl::StrJoin(request.options(), "\n"), "\n\n", absl::StrJoin(request.entries(), "\n"));
    const auto [it, fresh] = seen.try_emplace(key, requests.size());
    request_of.push_back(it->second);
    if (fresh) requests.push_back(std::move(request));
  }
  absl::StatusOr<std::vector<v1::BuildReply>> replies = BuildAll(builder, requests, stopped);
  if (!replies.ok()) return replies.status();
  for (const v1::BuildReply& reply : *replies) {
    if (!absl::StrContains(built.log, reply.log())) absl::StrAppend(&built.log, reply.log());
    if (!reply.has_failure()) built.compile_seconds += reply.seconds();
  }
  std::vector<std::pair<std::string, std::shared_ptr<const std::string>>> cubins(replies->size());
  for (size_t i = 0; i < sizes.size() && !built.failure; ++i) {
    v1::BuildReply& reply = (*replies)[request_of[i]];
    if (reply.has_failure()) {
      built.failure = reply.failure();
      built.failure->set_size(sizes[i].name());
      AddMacroHint(bundle, variant, requests[request_of[i]], reply.log(), *built.failure);
      break;
    }
    auto& [module, cubin] = cubins[request_of[i]];
    if (cubin == nullptr) {
      module = Sha256(reply.cubin());
      cubin = std::make_shared<const std::string>(std::move(*reply.mutable_cubin()));
    }
    built.sizes[i].module = module;
    built.sizes[i].cubin = cubin;
    NameSymbols(reply.lowered(), built.sizes[i].plan.mutable_launches());
    built.failure = CheckNames(built.sizes[i].plan);
    if (!built.failure) built.failure = CheckArguments(built.sizes[i].plan, *cubin);
  }
  if (!built.failure) {
    if (absl::Status status = BuildSetup(builder, bundle, sizes, gpu, stopped, &built); !status.ok()) return status;
  }
  built.seconds = absl::ToDoubleSeconds(SteadyNow() - begin);
  return built;
}

absl::StatusOr<BuiltSize> BuildReference(Compiler& builder, const v1::Bundle& bundle, const v1::Size& size,
                                         const v1::GpuInfo& gpu, ReferenceCache* cache, const Stopped& stopped) {
  absl::StatusOr<v1::Plan> plan = MakeReferencePlan(bundle, size, gpu);
  if (!plan.ok()) return plan.status();
  const v1::Reference& reference = bundle.reference();
  v1::BuildRequest request = RequestFor(bundle, reference.source(), gpu,
                                        ContractCompileOptions(reference.source(), size, reference.files()), *plan);
  *request.mutable_files() = reference.files();
  const std::string key = Sha256(request.SerializeAsString());
  std::shared_ptr<const v1::BuildReply> built = cache->Find(key);
  if (built == nullptr) {
    absl::StatusOr<v1::BuildReply> reply = builder.Build(request, stopped);
    if (!reply.ok()) return reply.status();
    if (reply->has_failure()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the reference of ", bundle.name(),
          " does not build: ", WithFilesHint(reply->failure().message(), "`files` of [reference] must name")));
    }
    built = std::make_shared<const v1::BuildReply>(*std::move(reply));
    cache->Put(key, built);
  }
  NameSymbols(built->lowered(), plan->mutable_launches());
  if (const std::optional<v1::Failure> failure = CheckArguments(*plan, built->cubin())) {
    return absl::InvalidArgumentError(absl::StrCat("the reference of ", bundle.name(), ": ", failure->message()));
  }
  absl::StatusOr<std::vector<TensorFile>> files = TakeFiles(bundle, &*plan);
  if (!files.ok()) return files.status();
  BuiltSize size_built;
  size_built.plan = *std::move(plan);
  size_built.cubin = std::shared_ptr<const std::string>(built, &built->cubin());  // shares the reply's bytes
  size_built.module = Sha256(built->cubin());
  size_built.files = *std::move(files);
  return size_built;
}

}  // namespace pawl
