#include "cli/output/winner_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/text/campaign_text.h"
#include "cli/text/json_line.h"
#include "cli/text/words.h"
#include "kernels/plan.h"
#include "report/sentences.h"
#include "worker/build/built_variant.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

// `-DNAME=value` as the line that does the same in the source; nothing for other options.
std::string DefineOf(const std::string& option) {
  if (!absl::StartsWith(option, "-D")) return "";
  const std::pair<std::string, std::string> parts = absl::StrSplit(option.substr(2), absl::MaxSplits('=', 1));
  return absl::StrCat("#define ", parts.first, " ", parts.second.empty() ? "1" : parts.second, "\n");
}

std::string Claims(const v1::BestVariant& best, const v1::Campaign& campaign) {
  const v1::Iteration& iteration = best.iteration();
  std::string text = absl::StrFormat("%s at size %s on %s", TimeText(iteration.time_us()),
                                     campaign.spec().goal().size(), iteration.device());
  absl::StrAppend(&text, ": ", SpeedupText(campaign.speedup_over_start()), " over the start variant");
  if (campaign.baseline_us() > 0) {
    absl::StrAppend(&text, ", ", OverBaselineText(campaign), " over ",
                    campaign.baseline().empty() ? "the baseline" : campaign.baseline());
  }
  return text;
}

std::string Page(const v1::BestVariant& best, const v1::Campaign& campaign, const v1::Plan& plan,
                 const std::string& source, const std::string& build, bool fixes_sizes,
                 const std::vector<v1::Iteration>& path) {
  const v1::Iteration& iteration = best.iteration();
  std::string text = absl::StrCat("# ", best.bundle().name(), ", optimised by Pawl\n\n", best.bundle().summary(), ". ",
                                  iteration.name(), ".\n\n", Claims(best, campaign), ".\n\n");
  absl::StrAppend(
      &text, "| file | content |\n| --- | --- |\n| `", source,
      "` | device code, every variable fixed |\n| `build.sh` | builds the cubin |\n| `launch.cc` | an example "
      "of launching it, by the CUDA driver API |\n| `evidence.json` | its measurements: samples, "
      "counters, compiler, GPU |\n\n");
  absl::StrAppend(&text, "```\n", build,
                  "\ng++ -I/usr/local/cuda/include launch.cc -o launch -lcuda && ./launch\n```\n\n");
  absl::StrAppend(&text, "Variables: ", ValuesText(iteration), ".\n\n");
  std::vector<std::string> sizes;
  for (const auto& [name, value] : plan.sizes()) sizes.push_back(absl::StrCat(name, "=", value));
  std::sort(sizes.begin(), sizes.end());
  if (fixes_sizes) {
    absl::StrAppend(&text, "The source was compiled with the sizes ", absl::StrJoin(sizes, ", "),
                    " as macros (SIZE_*): it is valid for these sizes only.\n\n");
  }
  absl::StrAppend(&text, "Kept changes, one variable at a time:\n\n```\n", PathText(path), "```\n\n");
  if (!iteration.notes().empty()) absl::StrAppend(&text, "Checks that were left out: ", iteration.notes(), ".\n\n");
  absl::StrAppend(&text, "GPU ", iteration.gpu().name(), ", driver ", iteration.gpu().driver_version(), ", NVRTC ",
                  iteration.toolchain().nvrtc(), ".\n");
  return text;
}

}  // namespace

absl::StatusOr<std::vector<WinnerFile>> WinnerFiles(const v1::BestVariant& best, const v1::Campaign& campaign,
                                                    const std::string& source, const std::vector<v1::Iteration>& path) {
  v1::Bundle bundle = best.bundle();
  bundle.mutable_source()->set_text(source);
  const v1::Size* size = FindSize(bundle, campaign.spec().goal().size());
  if (size == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(bundle.name(), " has no size \"", campaign.spec().goal().size(), "\""));
  }
  v1::Variant variant;
  *variant.mutable_values() = best.iteration().variant();
  absl::StatusOr<v1::Plan> plan = MakePlan(bundle, variant, *size, best.iteration().gpu());
  if (!plan.ok()) return plan.status();

  std::string defines;
  std::vector<std::string> options;
  for (const std::string& option : CompileOptions(bundle, variant, *size)) {
    const std::string define = DefineOf(option);
    absl::StrAppend(&defines, define);
    if (define.empty()) options.push_back(option);
  }
  const fs::path name = fs::path(bundle.source().path()).filename();
  const std::string cubin = name.stem().string() + ".cubin";
  const std::string build = BuildCommand(options, name.string(), ArchitectureOf(best.iteration().gpu()));
  const std::string head =
      absl::StrCat("// ", absl::StrReplaceAll(Claims(best, campaign), {{"\n", " "}}), ".\n// ", best.iteration().name(),
                   "; built by: ", build, "\n", defines, "#line 1 \"", name.string(), "\"\n");
  return std::vector<WinnerFile>{
      {name.string(), head + source},
      {"build.sh", absl::StrCat("#!/bin/sh\nset -e\ncd \"$(dirname \"$0\")\"\n", build, "\n"), true},
      {"launch.cc", LaunchExample(bundle, *plan, cubin)},
      {"evidence.json", absl::StrCat(JsonLine(best.iteration()), "\n")},
      {"README.md", Page(best, campaign, *plan, name.string(), build, FixesSizes(bundle), path)},
  };
}

absl::Status WriteWinner(const std::vector<WinnerFile>& files, const std::string& folder) {
  std::error_code error;
  for (const WinnerFile& file : files) {
    if (fs::exists(fs::path(folder) / file.name, error)) {
      return absl::AlreadyExistsError(
          absl::StrCat(folder, " contains ", file.name, " already; name a new or empty folder"));
    }
  }
  fs::create_directories(folder, error);
  if (error) return absl::UnavailableError(absl::StrCat(folder, " can't be made: ", error.message()));
  for (const WinnerFile& file : files) {
    const fs::path path = fs::path(folder) / file.name;
    std::ofstream out(path, std::ios::binary);
    out << file.text << std::flush;
    if (!out) return absl::UnavailableError(absl::StrCat(path.string(), " can't be written"));
    if (file.executable) fs::permissions(path, fs::perms::owner_exec, fs::perm_options::add, error);
  }
  return absl::OkStatus();
}

}  // namespace pawl
