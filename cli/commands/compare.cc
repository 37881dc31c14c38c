// `pawl compare`: one verdict without a campaign.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/commands/commands.h"
#include "cli/compare/sides.h"
#include "cli/compare/verdict_text.h"
#include "cli/connect/flags.h"
#include "cli/connect/interrupt.h"
#include "cli/connect/local_worker.h"
#include "cli/output/files.h"
#include "cli/text/failure.h"
#include "cli/text/layout.h"
#include "worker/device/cuda_device.h"
#include "worker/host/machine.h"
#include "worker/replay/recorded_sides.h"
#include "worker/replay/recording.h"
#include "worker/trial/side_by_side.h"

namespace pawl {
namespace {

struct CompareFlags {
  SidesAsked asked;
  std::string patch;
  std::vector<std::string> sizes;
  bool all_sizes = false;
  std::string device = "auto";
  std::string recordings;
  bool allow_unsandboxed = false;
  bool json = false;
};

// On a terminal, one line that is rewritten; elsewhere nothing.
class ProgressLine : public TrialObserver {
 public:
  ~ProgressLine() override {
    if (terminal_) std::fputs("\r\033[K", stderr);
  }
  void Report(v1::Stage, int, int, const std::string& text) override {
    if (terminal_) std::fprintf(stderr, "\r\033[K%s", Cut(text, TerminalWidth(STDERR_FILENO)).c_str());
  }
  bool stopped() const override { return Interrupted(); }

 private:
  const bool terminal_ = isatty(STDERR_FILENO);
};

absl::Status NothingToMeasureOn(const std::string& message) {
  v1::ErrorDetail detail;
  detail.set_fix(
      "run this on a machine with an NVIDIA GPU (pawl doctor says what is missing), or name a recording of the bundle "
      "with --recordings (pawl record makes one on a GPU)");
  return WithDetail(absl::FailedPreconditionError(message), detail);
}

absl::StatusOr<SideBySide> CompareByReplay(const CompareFlags& flags, const NamedSides& sides,
                                           const std::vector<std::string>& sizes, const std::string& why) {
  ReplayOptions options;
  const std::filesystem::path named =
      flags.recordings.empty() ? FindRecordingsFolder() : std::filesystem::path(flags.recordings);
  if (!named.empty()) options.recordings.push_back(named);
  absl::StatusOr<std::unique_ptr<ReplayDevice>> device = ReplayDevice::Open(options);
  if (!device.ok()) return NothingToMeasureOn(absl::StrCat(why, device.status().message()));
  ProgressLine progress;
  absl::StatusOr<SideBySide> compared =
      CompareRecorded(**device, sides.base.side, sides.candidate.side, sizes, progress);
  if (absl::IsFailedPrecondition(compared.status())) {
    return NothingToMeasureOn(absl::StrCat(why, compared.status().message()));
  }
  return compared;
}

absl::StatusOr<SideBySide> CompareOnGpu(const CompareFlags& flags, const NamedSides& sides,
                                        const std::vector<std::string>& sizes) {
  CudaDevice::Options options;
  if (flags.device != "auto" && !absl::SimpleAtoi(flags.device.substr(sizeof("cuda:") - 1), &options.device)) {
    return absl::InvalidArgumentError(absl::StrCat("there is no GPU ", flags.device));
  }
  options.builders = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 8u));
  options.allow_unsandboxed = flags.allow_unsandboxed;
  absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Open(options);
  if (!device.ok()) return NothingToMeasureOn(std::string(device.status().message()));
  ProgressLine progress;
  return CompareSides(**device, sides.base.side, sides.candidate.side, sizes, progress);
}

absl::StatusOr<SideBySide> CompareThem(const CompareFlags& flags, const NamedSides& sides,
                                       const std::vector<std::string>& sizes) {
  if (flags.device == "replay" || !flags.recordings.empty()) return CompareByReplay(flags, sides, sizes, "");
  if (flags.device == "auto" && !HasGpu()) {
    return CompareByReplay(flags, sides, sizes, "there is no NVIDIA GPU here, and ");
  }
  return CompareOnGpu(flags, sides, sizes);
}

int Compare(CompareFlags& flags) {
  const auto wrong_usage = [](const absl::Status& status) {
    Fail("compare", status);
    return kWrongUsage;
  };
  if (!flags.patch.empty()) {
    absl::StatusOr<std::string> patch = ReadPatch(flags.patch);
    if (!patch.ok()) return wrong_usage(patch.status());
    flags.asked.patch = *std::move(patch);
    flags.asked.patch_name = flags.patch == "-" ? "the patch" : flags.patch;
  }
  const absl::StatusOr<NamedSides> sides = ReadSides(flags.asked);
  if (!sides.ok()) return wrong_usage(sides.status());
  const absl::StatusOr<std::vector<std::string>> sizes =
      ReadSizes(*sides->base.side.bundle, flags.sizes, flags.all_sizes);
  if (!sizes.ok()) return wrong_usage(sizes.status());
  NoteInterrupts();
  const absl::StatusOr<SideBySide> compared = CompareThem(flags, *sides, *sizes);
  if (absl::IsCancelled(compared.status()) && Interrupted()) return kInterrupted;
  if (!compared.ok()) {
    Fail("compare", compared.status());
    return absl::IsFailedPrecondition(compared.status()) ? kNoWorker : kFailed;
  }
  if (flags.json) {
    std::printf("%s\n", ComparisonJson(*sides, *compared).c_str());
  } else {
    std::fputs(ComparisonText(*sides, *compared, TerminalWidth(STDOUT_FILENO), TakesColor(STDOUT_FILENO)).c_str(),
               stdout);
  }
  return ExitCodeOf(*compared);
}

}  // namespace

void AddCompare(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* command =
      app.add_subcommand("compare", "Compare two variants or two bundles: one verdict without a campaign");
  command->group(kRunning)->footer(
      "Examples: pawl compare my_kernel --patch faster.patch\n"
      "          pawl compare attention TILE_M=16                with the start variant\n"
      "          pawl compare attention TILE_M=16 TILE_M=16,KV_SPLITS=4\n"
      "          pawl compare old/ new/ --all-sizes\n"
      "Both sides are validated as in a campaign, and a side that fails a check is not timed. Faster means what it "
      "means for a change that is kept.\n"
      "Exit code: 0 faster, 10 slower, 11 same, 12 unclear, 13 wrong (a side failed a check); 1 failed, 2 wrong usage, "
      "4 no GPU here and no recording, 130 interrupted. Of several sizes: slower where any is slower, else unclear "
      "where "
      "any is, else faster where any is.");
  command
      ->add_option("BUNDLE", flags->asked.bundle,
                   "Folder of the kernel bundle, or the name of a bundle that ships with Pawl")
      ->required();
  command
      ->add_option("OTHER", flags->asked.others,
                   "VARIABLE=VALUE[,VARIABLE=VALUE...], once or twice, or the folder of another bundle with the same "
                   "contract")
      ->expected(0, 2);
  command
      ->add_option("--patch", flags->patch,
                   "Unified diff of the bundle's implementation: what is compared with it; - reads standard input")
      ->type_name("FILE");
  CLI::Option* size = command
                          ->add_option("--size", flags->sizes,
                                       "Time at this size; can be given several times (default: the goal's sizes)")
                          ->expected(1)
                          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--all-sizes", flags->all_sizes, "Time at every size of the bundle")->excludes(size);
  AddDeviceFlags(*command, &flags->device, &flags->recordings, &flags->allow_unsandboxed);
  AddJsonFlag(*command, &flags->json);
  command->callback([flags, exit_code] { *exit_code = Compare(*flags); });
}

}  // namespace pawl
