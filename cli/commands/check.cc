// `pawl check`: what can be said about a bundle before anything is measured.
#include <google/protobuf/util/json_util.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/names/spelling.h"
#include "cli/commands/commands.h"
#include "cli/connect/bundle_path.h"
#include "cli/connect/interrupt.h"
#include "kernels/problem.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "kernels/variable_values.h"
#include "worker/check/bundle_check.h"

namespace pawl {
namespace {

struct CheckFlags {
  std::string bundle;
  std::string gpu;
  bool json = false;
  bool no_build = false;
  bool builds = false;
  bool all_gpus = false;
  bool allow_unsandboxed = false;
};

std::string Extent(const v1::Dim3& dim) { return absl::StrCat(dim.x(), " x ", dim.y(), " x ", dim.z()); }

std::string BytesText(int64_t bytes) {
  if (bytes < 10'000) return absl::StrCat(bytes, " bytes");
  if (bytes < 10'000'000) return absl::StrFormat("%.1f KB", bytes / 1e3);
  if (bytes < 10'000'000'000) return absl::StrFormat("%.1f MB", bytes / 1e6);
  return absl::StrFormat("%.1f GB", bytes / 1e9);
}

void PrintGpu(const v1::CheckGpu& gpu) {
  std::string build = "not compiled";
  if (gpu.build() == v1::CHECK_BUILD_DONE) build = absl::StrFormat("compiled in %.2f s", gpu.build_seconds());
  if (gpu.build() == v1::CHECK_BUILD_FAILED) build = "does not compile";
  if (gpu.build() == v1::CHECK_BUILD_NOT_ASKED) build = "launch limits only";
  std::printf("  %-24s %-6s %s%s\n", gpu.name().c_str(), gpu.architecture().c_str(),
              gpu.can_run()                              ? absl::StrCat("ok, ", build).c_str()
              : gpu.build() == v1::CHECK_BUILD_NOT_ASKED ? "not compiled"
                                                         : "can't run this bundle",
              gpu.too_large() > 0 ? absl::StrCat("; ", gpu.too_large(), " variants exceed its limits").c_str() : "");
  for (const v1::Failure& failure : gpu.failures()) {
    std::printf("      at %s: %s\n", failure.size().c_str(), failure.message().c_str());
  }
}

void PrintEntries(const v1::CheckReport& report) {
  if (report.entries().empty()) return;
  std::printf("kernels in the cubin:\n");
  for (const v1::CheckEntry& entry : report.entries()) {
    const std::string bytes =
        entry.parameter_bytes().empty()
            ? ""
            : absl::StrCat("  parameters of ", absl::StrJoin(entry.parameter_bytes(), ","), " bytes");
    std::printf("  %s%s\n", entry.name().c_str(), bytes.c_str());
  }
}

void PrintChanges(const v1::CheckReport& report, const v1::Bundle& bundle) {
  if (report.changes().empty()) return;
  const auto failed = std::count_if(report.changes().begin(), report.changes().end(),
                                    [](const v1::CheckChange& change) { return change.has_failure(); });
  std::printf("single changes of the start variant: %d, %d of them can't be built\n", report.changes_size(),
              static_cast<int>(failed));
  for (const v1::CheckChange& made : report.changes()) {
    const v1::Change& change = made.change();
    const std::string text = made.has_failure() ? made.failure().message()
                             : made.same_code() ? "the same as the start variant"
                                                : absl::StrFormat("compiled in %.2f s", made.seconds());
    std::printf("  %s %s -> %s: %s\n", change.variable().c_str(),
                ValueText(bundle, change.variable(), change.from()).c_str(),
                ValueText(bundle, change.variable(), change.to()).c_str(), text.c_str());
  }
}

void Print(const v1::CheckReport& report, const v1::Bundle& bundle) {
  std::printf("%s: %lld variants, %lld allowed by the constraints\n", report.bundle().c_str(),
              static_cast<long long>(report.space()), static_cast<long long>(report.allowed()));
  const std::string start = VariantText(bundle, report.start());
  std::printf("start: %s\n", start.empty() ? "no variables; campaigns wait for proposed edits" : start.c_str());
  std::printf("launches of the start variant on %s:\n", report.gpus(0).name().c_str());
  for (const v1::CheckSize& size : report.sizes()) {
    for (const v1::PlanLaunch& launch : size.launches()) {
      std::printf("  %-10s %s: grid %s, block %s, shared %d bytes\n", size.name().c_str(), launch.entry().c_str(),
                  Extent(launch.grid()).c_str(), Extent(launch.block()).c_str(), launch.shared_bytes());
    }
    std::printf("  %-10s tensors %s\n", size.name().c_str(), BytesText(size.tensor_bytes()).c_str());
  }
  std::printf("GPUs%s:\n", report.compiler().empty() ? "" : absl::StrCat(" (", report.compiler(), ")").c_str());
  std::string compiled;
  bool others = false;
  for (const v1::CheckGpu& gpu : report.gpus()) {
    others = others || gpu.build() == v1::CHECK_BUILD_NOT_ASKED;
    if (gpu.build() == v1::CHECK_BUILD_DONE || gpu.build() == v1::CHECK_BUILD_FAILED) compiled = gpu.architecture();
  }
  if (others) std::printf("  compiled for %s; --all-gpus compiles for the others too\n", compiled.c_str());
  for (const v1::CheckGpu& gpu : report.gpus()) PrintGpu(gpu);
  PrintEntries(report);
  PrintChanges(report, bundle);
  if (!report.has_run()) return;
  const v1::Failure& failure = report.run().failure();
  std::printf("run on this %s: %s\n", report.run().gpu().c_str(),
              report.run().has_failure()
                  ? absl::StrCat("failed validation at ", failure.size(), ": ", failure.message()).c_str()
                  : "passed validation at every size");
  if (!report.run().slowest().empty()) {
    std::printf("slowest size: %s, %.4g us a call\n", report.run().slowest().c_str(), report.run().slowest_us());
  }
}

int Check(const CheckFlags& flags) {
  BundleCheckOptions options;
  options.build = !flags.no_build;
  options.builds = flags.builds;
  options.all_architectures = flags.all_gpus;
  options.allow_unsandboxed = flags.allow_unsandboxed;
  if (!flags.gpu.empty()) {
    const GpuSpec* spec = FindGpu(flags.gpu);
    if (spec == nullptr) {
      std::vector<std::string> known;
      for (const GpuSpec& gpu : KnownGpus()) known.push_back(gpu.file);
      std::fprintf(stderr, "pawl check: unknown GPU %s%s\n", flags.gpu.c_str(), Expected(flags.gpu, known).c_str());
      return kWrongUsage;
    }
    options.gpus.push_back(spec);
  } else {
    for (const GpuSpec& spec : KnownGpus()) options.gpus.push_back(&spec);
  }
  NoteInterrupts();
  options.stopped = Interrupted;
  const v1::CheckReport report = CheckBundle(BundlePath(flags.bundle), options);
  if (Interrupted()) return kInterrupted;
  if (flags.json) {
    std::string json;
    google::protobuf::util::JsonPrintOptions print;
    print.always_print_primitive_fields = true;
    if (!google::protobuf::util::MessageToJsonString(report, &json, print).ok()) return kFailed;
    std::printf("%s\n", json.c_str());
  } else if (!report.gpus().empty()) {  // it got beyond reading
    Print(report, ReadBundle(BundlePath(flags.bundle)).bundle);
  }
  for (const v1::CheckProblem& problem : report.problems()) {
    std::fprintf(stderr, "%s\n", FormatProblem({problem.file(), problem.line(), problem.message()}).c_str());
  }
  for (const std::string& warning : report.warnings()) std::fprintf(stderr, "warning: %s\n", warning.c_str());
  if (!report.problems().empty()) {
    std::fprintf(stderr, "%d problem%s in %s\n", report.problems_size(), report.problems_size() == 1 ? "" : "s",
                 flags.bundle.c_str());
    if (const std::string meant = BundleMeant(flags.bundle); !meant.empty()) {
      std::fprintf(stderr, "  fix: %s\n", meant.c_str());
    }
  }
  return report.ok() ? kDone : kFailed;
}

}  // namespace

void AddCheck(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* command = app.add_subcommand("check", "Check a bundle: syntax, launch limits on known GPUs, compilation");
  command->group(kPreparing)->footer("Example: pawl check kernels/attention --gpu h200");
  command
      ->add_option("BUNDLE", flags->bundle, "Folder of the kernel bundle, or the name of a bundle that ships with Pawl")
      ->required();
  command->add_option("--gpu", flags->gpu, "Check for this GPU only: a name such as h200 or \"NVIDIA H200\"");
  command
      ->add_flag("--all-gpus", flags->all_gpus,
                 "Compile for every known GPU; otherwise for this machine's, or for the newest")
      ->excludes("--gpu");
  command->add_flag("--json", flags->json, "Print JSON for programs: one object");
  command->add_flag("--no-build", flags->no_build, "Do not compile");
  command->add_flag("--builds", flags->builds, "Compile every single change of the start variant as well")
      ->excludes("--no-build");
  command->add_flag("--allow-unsandboxed", flags->allow_unsandboxed, "Build and run even if no sandbox is available");
  command->callback([flags, exit_code] { *exit_code = Check(*flags); });
}

}  // namespace pawl
