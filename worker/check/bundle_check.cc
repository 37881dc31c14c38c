#include "worker/check/bundle_check.h"

#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/names/utf8.h"
#include "kernels/bundle_message.h"
#include "kernels/plan.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "kernels/tolerance.h"
#include "kernels/variable_values.h"
#include "worker/build/builder.h"
#include "worker/build/built_variant.h"
#include "worker/check/open_draft.h"
#include "worker/check/reference_check.h"
#include "worker/check/single_changes.h"
#include "worker/check/source_check.h"
#include "worker/check/start_variant.h"
#include "worker/device/cuda_device.h"
#include "worker/host/machine.h"
#include "worker/host/toolkit.h"
#include "worker/problem/problem_process.h"
#include "worker/process/process.h"
#include "worker/replay/recording.h"
#include "worker/sandbox/sandboxing.h"
#include "worker/trial/roofline_check.h"
#include "worker/validate/output_check.h"

namespace pawl {
namespace {

// Each variant is planned at the goal's size on each GPU; more than this many would take minutes.
constexpr int64_t kMaxPlanned = 20'000;
constexpr int kMostBuilders = 16;

bool IsStopped(const BundleCheckOptions& options) { return options.stopped != nullptr && options.stopped(); }

const v1::Size& GoalSize(const v1::Bundle& bundle) {
  for (const v1::Size& size : bundle.sizes()) {
    if (size.name() == bundle.goal().size()) return size;
  }
  return bundle.sizes(0);
}

v1::CheckSize DescribeSize(const v1::Plan& plan) {
  v1::CheckSize size;
  size.set_name(plan.size());
  *size.mutable_sizes() = plan.sizes();
  for (const v1::PlanLaunch& launch : plan.launches()) {
    *size.add_launches() = launch;
    size.mutable_launches()->rbegin()->clear_arguments();
  }
  size.set_tensor_bytes(PlanBytes(plan));
  return size;
}

void AddFailure(v1::Stage stage, v1::Check check, const std::string& size, const std::string& message,
                v1::CheckGpu& gpu) {
  v1::Failure& failure = *gpu.add_failures();
  failure.set_stage(stage);
  failure.set_check(check);
  failure.set_size(size);
  failure.set_message(message);
}

// The start variant's geometry at every size, against the limits of one GPU, and the tolerance against its types.
void CheckStart(const v1::Bundle& bundle, const v1::GpuInfo& info, v1::CheckGpu& gpu, v1::CheckReport& report) {
  Planner planner(bundle);
  const bool first = report.sizes().empty();
  std::vector<v1::Plan> plans;
  for (const v1::Size& size : bundle.sizes()) {
    absl::StatusOr<v1::Plan> plan = planner.MakePlan(StartVariant(bundle), size, info);
    if (!plan.ok()) {
      AddFailure(v1::STAGE_STATIC_CHECK, v1::CHECK_LAUNCH_LIMITS, size.name(), std::string(plan.status().message()),
                 gpu);
      continue;
    }
    if (first) *report.add_sizes() = DescribeSize(*plan);
    if (std::optional<v1::Failure> failure = CheckLaunchLimits(*plan, info)) *gpu.add_failures() = *failure;
    plans.push_back(*std::move(plan));
  }
  std::vector<const v1::Plan*> ladder;
  for (const v1::Plan& plan : plans) ladder.push_back(&plan);
  if (const std::optional<std::string> unjustified = UnjustifiedTolerance(ladder)) {
    AddFailure(v1::STAGE_VALIDATE, v1::CHECK_LENIENT, "", *unjustified, gpu);
  }
}

// What compiling for one architecture gave.
struct ArchitectureBuild {
  v1::GpuInfo gpu;
  absl::StatusOr<BuiltVariant> start = absl::UnknownError("not built");
  absl::Status reference;
};

// Where the tensors of symbols have other sizes at other sizes of the ladder: one cubin serves all of them.
void CheckSymbolsAtEverySize(const v1::Bundle& bundle, const ArchitectureBuild& build, v1::CheckGpu& gpu) {
  if (bundle.symbols().empty() || FixesSizes(bundle) || !build.start.ok() || build.start->failure) return;
  Planner planner(bundle);
  for (const v1::Size& size : bundle.sizes()) {
    absl::StatusOr<v1::Plan> plan = planner.MakePlan(StartVariant(bundle), size, build.gpu);
    if (!plan.ok()) continue;
    plan->clear_launches();
    const std::optional<v1::Failure> failure = CheckArguments(*plan, *build.start->sizes[0].cubin);
    if (!failure) continue;
    gpu.set_build(v1::CHECK_BUILD_FAILED);
    *gpu.add_failures() = *failure;
    return;
  }
}

// The start variant and the reference, for every architecture side by side.
void BuildForAll(Compiler& builder, const v1::Bundle& bundle, const Stopped& stopped,
                 std::map<std::string, ArchitectureBuild>& builds) {
  std::vector<std::thread> threads;
  for (auto& [architecture, build] : builds) {
    threads.emplace_back([&builder, &bundle, &stopped, &build = build] {
      const v1::Size& size = GoalSize(bundle);
      build.start = BuildVariant(builder, bundle, StartVariant(bundle), {size}, build.gpu, stopped);
      ReferenceCache cache;
      if (HasProblem(bundle)) return;
      build.reference = BuildReference(builder, bundle, size, build.gpu, &cache, stopped).status();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// What the builds say about one GPU. A warning: this machine can't build at all.
void DescribeBuild(const v1::Bundle& bundle, const ArchitectureBuild& build, v1::CheckGpu& gpu,
                   std::set<std::string>& warnings) {
  const absl::StatusOr<BuiltVariant>& built = build.start;
  if (!built.ok() && !absl::IsInvalidArgument(built.status())) {
    warnings.insert(absl::StrCat("not compiled for ", gpu.architecture(), ": ", built.status().message()));
    return;
  }
  const std::string& size = GoalSize(bundle).name();
  gpu.set_build(v1::CHECK_BUILD_DONE);
  if (built.ok()) gpu.set_build_seconds(built->seconds);
  if (!built.ok() || built->failure) {
    gpu.set_build(v1::CHECK_BUILD_FAILED);
    AddFailure(v1::STAGE_BUILD, built.ok() ? built->failure->check() : v1::CHECK_COMPILE, size,
               built.ok() ? built->failure->message() : std::string(built.status().message()), gpu);
  }
  if (!build.reference.ok()) {
    gpu.set_build(v1::CHECK_BUILD_FAILED);
    AddFailure(v1::STAGE_BUILD, v1::CHECK_COMPILE, size, std::string(build.reference.message()), gpu);
  }
  CheckSymbolsAtEverySize(bundle, build, gpu);
}

// The one that is compiled for where not all are: that of this machine's GPU, or the newest.
std::string ChosenArchitecture(const std::map<std::string, ArchitectureBuild>& builds) {
  const GpuSpec* here = FindGpu(FirstGpuName());
  if (here != nullptr && builds.contains(ArchitectureOf(here->info))) return ArchitectureOf(here->info);
  const auto newest = std::max_element(builds.begin(), builds.end(), [](const auto& a, const auto& b) {
    const auto capability = [](const v1::GpuInfo& gpu) { return std::pair(gpu.compute_major(), gpu.compute_minor()); };
    return capability(a.second.gpu) < capability(b.second.gpu);
  });
  return newest == builds.end() ? "" : newest->first;
}

// Every single change of the start variant, compiled for one GPU.
void CheckChanges(Compiler& builder, const v1::Bundle& bundle, const ArchitectureBuild& build, int threads,
                  const Stopped& stopped, v1::CheckReport& report) {
  if (!build.start.ok() || build.start->failure) return;
  const absl::StatusOr<std::vector<v1::CheckChange>> changes =
      BuildSingleChanges(builder, bundle, *build.start, GoalSize(bundle), build.gpu, threads, stopped);
  if (!changes.ok()) {
    report.add_warnings(absl::StrCat("the changes were not compiled: ", changes.status().message()));
    return;
  }
  for (const v1::CheckChange& change : *changes) *report.add_changes() = change;
  for (const std::string& variable : VariablesWithoutEffect(*changes)) {
    report.add_warnings(absl::StrCat("the variable ", variable, " changes neither the code nor the launches at ",
                                     GoalSize(bundle).name(), ": every value gives the start variant"));
  }
}

// Allowed variants that no GPU can launch, or that have no geometry at all.
void CheckVariants(const v1::Bundle& bundle, const std::vector<const GpuSpec*>& gpus, v1::CheckReport& report) {
  if (report.allowed() > kMaxPlanned) {
    report.add_warnings(absl::StrCat("the launches of ", report.allowed(), " variants were not evaluated; up to ",
                                     kMaxPlanned, " are"));
    return;
  }
  absl::StatusOr<std::vector<v1::Variant>> variants = AllowedVariants(bundle);
  if (!variants.ok()) return;
  Planner planner(bundle);
  int64_t nowhere = 0, broken = 0;
  std::string first_nowhere, first_broken;
  // What is kept must launch at every size of the ladder.
  const bool all_sizes = report.allowed() * bundle.sizes_size() <= kMaxPlanned;
  const auto broken_at = [&](const v1::Variant& variant) -> std::string {
    for (const v1::Size& size : bundle.sizes()) {
      if (!all_sizes || gpus.empty()) break;
      const absl::StatusOr<v1::Plan> plan = planner.MakePlan(variant, size, gpus[0]->info);
      if (!plan.ok()) return absl::StrCat("at ", size.name(), ": ", plan.status().message());
    }
    return "";
  };
  for (const v1::Variant& variant : *variants) {
    bool somewhere = false;
    std::string why;
    if (const std::string at = broken_at(variant); !at.empty()) {
      if (broken++ == 0) first_broken = absl::StrCat(VariantText(bundle, variant), " ", at);
      continue;
    }
    for (size_t i = 0; i < gpus.size(); ++i) {
      absl::StatusOr<v1::Plan> plan = planner.MakePlan(variant, GoalSize(bundle), gpus[i]->info);
      if (!plan.ok()) {
        if (broken++ == 0) first_broken = absl::StrCat(VariantText(bundle, variant), ": ", plan.status().message());
        somewhere = true;
        break;
      }
      std::optional<v1::Failure> failure = CheckLaunchLimits(*plan, gpus[i]->info);
      somewhere = somewhere || !failure;
      if (!failure) continue;
      why = failure->message();
      report.mutable_gpus(static_cast<int>(i))->set_too_large(report.gpus(static_cast<int>(i)).too_large() + 1);
    }
    if (!somewhere && nowhere++ == 0) first_nowhere = absl::StrCat(VariantText(bundle, variant), ": ", why);
  }
  if (nowhere > 0) {
    report.add_warnings(absl::StrCat(nowhere, " of ", report.allowed(), " variants exceed ",
                                     gpus.size() == 1 ? gpus[0]->info.name() : "every known GPU",
                                     "; a [[constraint]] would save trying them. The first: ", first_nowhere));
  }
  // A campaign rejects such a variant when it meets it: the bundle itself can be submitted.
  if (broken > 0) {
    report.add_warnings(
        absl::StrCat(broken, " of ", report.allowed(),
                     " variants have no valid geometry; forbid them by a [[constraint]]. The first: ", first_broken));
  }
}

// Whether the baseline runs, and is not faster than the GPU can be.
void CheckBaseline(GpuDevice& device, const v1::Bundle& bundle, const std::filesystem::path& folder,
                   const BuiltVariant& start, v1::CheckReport& report) {
  if (!HasBaseline(bundle)) return;
  const absl::StatusOr<std::vector<v1::BaselineTime>> times = device.TimeBaseline(bundle, folder);
  if (!times.ok()) {
    report.add_warnings(ValidUtf8(absl::StrCat("the baseline was not timed: ", times.status().message())));
    return;
  }
  for (const v1::BaselineTime& time : *times) {
    const BuiltSize* built = start.Find(time.size());
    if (built == nullptr) continue;
    const std::string below = BaselineBelowRoofline(device.gpu().name(), bundle, built->plan, time);
    if (!below.empty()) report.add_warnings(below);
  }
}

// What problem.py gives at the smallest size: names, shapes, types, ranges, the same data for the same seed. Answers
// false when it is wrong.
bool RunProblem(const v1::Bundle& bundle, const BundleCheckOptions& check, v1::CheckReport& report) {
  if (!HasProblem(bundle)) return true;
  const auto skip = [&](const absl::Status& status) {
    report.add_warnings(ValidUtf8(absl::StrCat(bundle.problem().path(), " was not run: ", status.message())));
    return true;
  };
  const absl::StatusOr<Sandboxing> sandboxing = Sandboxing::Make(FindToolkit(), "", check.allow_unsandboxed);
  if (!sandboxing.ok()) return skip(sandboxing.status());
  absl::StatusOr<v1::Plan> plan = MakeReferencePlan(bundle, bundle.sizes(0), check.gpus[0]->info);
  if (!plan.ok()) return skip(plan.status());
  const Fd shared(memfd_create("pawl-problem", MFD_CLOEXEC));
  ProblemProcess::Options options;
  options.shared_fd = shared.get();
  options.sandboxing = &*sandboxing;
  EntryRequest request;
  request.pool = "check";
  request.seed = SecretSeed();
  request.strict = true;
  ProblemProcess process(options);
  process.StopWhen(check.stopped);
  const absl::Status made = process.Make(bundle, *plan, request).status();
  if (made.ok()) return true;
  if (!absl::IsInvalidArgument(made)) return skip(made);
  // "problem.py:12 in inputs(): ...", or "problem.py: ..." where no line is to blame.
  v1::CheckProblem& problem = *report.add_problems();
  problem.set_file(bundle.problem().path());
  absl::string_view text = made.message();
  int line = 0;
  if (absl::ConsumePrefix(&text, absl::StrCat(bundle.problem().path(), ":"))) {
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    if (absl::SimpleAtoi(text.substr(0, digits), &line)) text.remove_prefix(digits);
    absl::ConsumePrefix(&text, ":");
  }
  problem.set_line(line);
  problem.set_message(ValidUtf8(std::string(absl::StripAsciiWhitespace(text))));
  report.set_ok(false);
  return false;
}

// Whether a recording of the bundle lies in its folder, or comes with Pawl.
bool IsRecorded(const v1::Bundle& bundle, const std::filesystem::path& folder) {
  const std::string hash = BundleHash(bundle);
  for (const std::filesystem::path& place : {folder, FindRecordingsFolder()}) {
    std::error_code error;
    for (std::filesystem::directory_iterator it(place, error), end; !error && it != end; it.increment(error)) {
      if (!absl::EndsWith(it->path().string(), ".jsonl.gz")) continue;
      const absl::StatusOr<v1::RecordingHeader> header = ReadRecordingHeader(it->path());
      if (header.ok() && header->bundle_hash() == hash) return true;
    }
  }
  return false;
}

// What pawl init left open in kernel.toml and problem.py. Answers false when there is no reference to run.
bool CheckDraft(const v1::Bundle& bundle, const std::filesystem::path& folder, v1::CheckReport& report) {
  std::ifstream toml(folder / "kernel.toml", std::ios::binary);
  std::vector<OpenFile> files = {{"kernel.toml", {std::istreambuf_iterator<char>(toml), {}}}};
  std::optional<Problem> open;
  if (HasProblem(bundle)) {
    files.push_back({bundle.problem().path(), bundle.problem().text()});
    open = OpenReference(files.back());
  }
  if (const std::string todos = OpenTodos(files); !todos.empty()) report.add_warnings(ValidUtf8(todos));
  if (!open) return true;
  v1::CheckProblem& problem = *report.add_problems();
  problem.set_file(ValidUtf8((folder / open->file).string()));
  problem.set_line(open->line);
  problem.set_message(open->message);
  report.set_ok(false);
  return false;
}

// Where this machine has a GPU: whether the start variant passes validation, the tolerance is tight, the reference
// reads its inputs, and the baseline is no faster than the GPU.
void CheckRun(const v1::Bundle& bundle, const std::filesystem::path& folder, const BundleCheckOptions& options,
              v1::CheckReport& report) {
  if (!HasGpu() || IsStopped(options)) return;
  absl::StatusOr<std::unique_ptr<CudaDevice>> device =
      CudaDevice::Open({.allow_unsandboxed = options.allow_unsandboxed});
  if (!device.ok()) {
    report.add_warnings(absl::StrCat("not run: ", device.status().message()));
    return;
  }
  (*device)->StopWhen(options.stopped);
  absl::StatusOr<StartVariantRun> run = RunStartVariant(**device, bundle);
  if (!run.ok()) {
    report.add_warnings(absl::StrCat("not run: ", run.status().message()));
    return;
  }
  report.mutable_run()->set_gpu((*device)->gpu().name());
  for (const std::string& warning : run->warnings) report.add_warnings(warning);
  CheckBaseline(**device, bundle, folder, run->built, report);
  if (!run->failure) {
    const absl::StatusOr<SlowestSize> slowest = TimeSlowestSize(**device, bundle, run->built);
    if (!slowest.ok()) report.add_warnings(absl::StrCat("not timed: ", slowest.status().message()));
    if (slowest.ok()) {
      if (!slowest->beyond.empty()) report.add_warnings(slowest->beyond);
      report.mutable_run()->set_slowest(slowest->size);
      report.mutable_run()->set_slowest_us(slowest->microseconds);
    }
    return;
  }
  *report.mutable_run()->mutable_failure() = *run->failure;
  report.set_ok(false);
}

// Of a contract alone: no proposal would pass if its reference did not compile.
void CompileReference(const v1::Bundle& bundle, const std::filesystem::path& folder, const BundleCheckOptions& options,
                      v1::CheckReport& report) {
  BuilderOptions builder_options;
  builder_options.allow_unsandboxed = options.allow_unsandboxed;
  absl::StatusOr<std::unique_ptr<Builder>> builder = Builder::Create(builder_options);
  if (!builder.ok()) {
    report.add_warnings(absl::StrCat("not compiled: ", builder.status().message()));
    return;
  }
  report.set_compiler((*builder)->description());
  ReferenceCache cache;
  const absl::Status built =
      BuildReference(**builder, bundle, GoalSize(bundle), options.gpus[0]->info, &cache, options.stopped).status();
  if (built.ok()) return;
  report.set_ok(false);
  v1::CheckProblem& entry = *report.add_problems();
  entry.set_file(ValidUtf8((folder / "kernel.toml").string()));
  entry.set_message(ValidUtf8(std::string(built.message())));
}

}  // namespace

v1::CheckReport CheckBundle(const std::filesystem::path& folder, const BundleCheckOptions& options) {
  v1::CheckReport report;
  const BundleReading reading = ReadBundle(folder);
  for (const Problem& warning : reading.warnings) report.add_warnings(ValidUtf8(FormatProblem(warning)));
  for (const Problem& problem : reading.problems) {
    v1::CheckProblem& entry = *report.add_problems();
    entry.set_file(ValidUtf8(problem.file));
    entry.set_line(problem.line);
    entry.set_message(ValidUtf8(problem.message));
  }
  const v1::Bundle& bundle = reading.bundle;
  report.set_bundle(bundle.name());
  if (!reading.problems.empty()) return report;
  if (IsContractAlone(bundle)) {
    report.set_ok(true);
    report.set_bundle_hash(BundleHash(bundle));
    report.add_warnings(kContractAlone);
    if (!HasBaseline(bundle)) {
      report.add_warnings(
          "there is no baseline: speed is measured against the first proposal that passes, however slow");
    }
    if (const std::string warning = RoundingOfReference(bundle); !warning.empty()) report.add_warnings(warning);
    if (CheckDraft(bundle, folder, report) && options.build) {
      RunProblem(bundle, options, report);
      if (!HasProblem(bundle)) CompileReference(bundle, folder, options, report);
    }
    return report;
  }
  std::vector<std::string> mistakes = UnusedVariables(bundle);
  for (std::string& launch : LaunchesWithoutCooperation(bundle)) mistakes.push_back(std::move(launch));
  for (const std::string& mistake : mistakes) {
    v1::CheckProblem& entry = *report.add_problems();
    entry.set_file(ValidUtf8((folder / "kernel.toml").string()));
    entry.set_message(ValidUtf8(mistake));
  }
  if (!mistakes.empty()) return report;

  report.set_ok(true);
  report.set_bundle_hash(BundleHash(bundle));
  report.set_space(SpaceSize(bundle));
  report.set_allowed(CountAllowed(bundle).value_or(0));
  *report.mutable_start() = StartVariant(bundle);

  const std::string no_code = WhyNoCode(bundle);
  const bool can_measure = no_code.empty() || IsRecorded(bundle, folder);
  if (!no_code.empty()) report.add_warnings(absl::StrCat(bundle.source().path(), " is not compiled: ", no_code));
  if (!can_measure) {
    v1::CheckProblem& entry = *report.add_problems();
    entry.set_file(ValidUtf8((folder / bundle.source().path()).string()));
    entry.set_message(
        "it has no code but #error, and there is no recording of this bundle: nothing can be measured; give it the "
        "kernel's code, or put the recording into the bundle's folder");
  }
  for (const std::string& warning : RedefinedVariables(bundle)) report.add_warnings(warning);
  for (const std::string& warning : LaunchesWithoutClusters(bundle)) report.add_warnings(warning);
  if (const std::string warning = RoundingOfReference(bundle); !warning.empty()) report.add_warnings(warning);
  const bool compiles = options.build && no_code.empty();

  const int cores = std::clamp<int>(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostBuilders);
  std::unique_ptr<Builder> builder;
  if (compiles) {
    BuilderOptions builder_options;
    builder_options.allow_unsandboxed = options.allow_unsandboxed;
    builder_options.processes = cores;
    absl::StatusOr<std::unique_ptr<Builder>> created = Builder::Create(builder_options);
    if (created.ok()) {
      builder = *std::move(created);
      report.set_compiler(builder->description());
    } else {
      report.add_warnings(absl::StrCat("not compiled: ", created.status().message()));
    }
  }
  // GPUs of one architecture share a build; one that can't launch it gets none.
  std::map<std::string, ArchitectureBuild> builds;
  for (const GpuSpec* spec : options.gpus) {
    v1::CheckGpu& gpu = *report.add_gpus();
    gpu.set_name(spec->info.name());
    gpu.set_architecture(ArchitectureOf(spec->info));
    gpu.set_build(v1::CHECK_BUILD_SKIPPED);
    CheckStart(bundle, spec->info, gpu, report);
    if (gpu.failures().empty() && builder != nullptr) builds[gpu.architecture()].gpu = spec->info;
  }
  if (!options.all_architectures && builds.size() > 1) {
    const std::string chosen = ChosenArchitecture(builds);
    for (v1::CheckGpu& gpu : *report.mutable_gpus()) {
      if (gpu.architecture() != chosen && builds.contains(gpu.architecture())) gpu.set_build(v1::CHECK_BUILD_NOT_ASKED);
    }
    std::erase_if(builds, [&](const auto& build) { return build.first != chosen; });
  }
  if (builder != nullptr) BuildForAll(*builder, bundle, options.stopped, builds);
  std::set<std::string> warnings;
  bool anywhere = false, failed = false;
  for (v1::CheckGpu& gpu : *report.mutable_gpus()) {
    const auto build = builds.find(gpu.architecture());
    if (gpu.failures().empty() && build != builds.end()) DescribeBuild(bundle, build->second, gpu, warnings);
    gpu.set_can_run(gpu.failures().empty() && can_measure);
    failed = failed || gpu.build() == v1::CHECK_BUILD_FAILED;
  }
  for (v1::CheckGpu& gpu : *report.mutable_gpus()) {
    // What does not compile for the one that was chosen is not known to run on the others.
    if (failed && gpu.build() == v1::CHECK_BUILD_NOT_ASKED) gpu.set_can_run(false);
    anywhere = anywhere || gpu.can_run();
  }
  for (const std::string& warning : warnings) report.add_warnings(warning);
  for (const auto& [architecture, build] : builds) {
    if (!report.entries().empty() || !build.start.ok() || build.start->sizes.empty()) continue;
    if (build.start->sizes[0].cubin == nullptr) continue;
    for (v1::CheckEntry& entry : EntriesOf(*build.start->sizes[0].cubin)) *report.add_entries() = std::move(entry);
    for (const std::string& warning : UnfilledConstants(bundle, *build.start->sizes[0].cubin)) {
      report.add_warnings(warning);
    }
  }
  if (options.builds && !builds.empty()) {
    CheckChanges(*builder, bundle, builds.begin()->second, cores, options.stopped, report);
  }
  if (!anywhere) report.set_ok(false);
  CheckVariants(bundle, options.gpus, report);
  if (!CheckDraft(bundle, folder, report)) return report;
  if (compiles && !IsStopped(options) && RunProblem(bundle, options, report)) {
    CheckRun(bundle, folder, options, report);
  }
  return report;
}

}  // namespace pawl
