#include "cli/output/winner_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/revision/revision.h"
#include "cli/text/campaign_text.h"
#include "cli/text/json_line.h"
#include "cli/text/words.h"
#include "kernels/entry_name.h"
#include "kernels/plan.h"
#include "kernels/variable_values.h"
#include "report/sentences.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

std::string BaselineName(const v1::Campaign& campaign) {
  return campaign.baseline().empty() ? "the baseline" : campaign.baseline();
}

// Where the rule of a portfolio picks this variant, the bundle's sizes first. Empty: there is no portfolio.
std::vector<v1::Portfolio::Pick> PicksOf(const v1::BestVariant& best, const v1::Campaign& campaign) {
  std::vector<v1::Portfolio::Pick> picks;
  for (const v1::Portfolio::Pick& pick : campaign.portfolio().picks()) {
    if (pick.iteration() == best.iteration().number()) picks.push_back(pick);
  }
  std::stable_partition(picks.begin(), picks.end(), [](const v1::Portfolio::Pick& pick) { return !pick.hidden(); });
  return picks;
}

// What the files are made for: of a portfolio's variant the first of the bundle's sizes that it serves.
std::string SizeOf(const v1::BestVariant& best, const v1::Campaign& campaign) {
  for (const v1::Portfolio::Pick& pick : PicksOf(best, campaign)) {
    if (!pick.hidden()) return pick.size();
  }
  return campaign.spec().goal().size();
}

std::string PickClaim(const v1::Portfolio::Pick& pick, const v1::Campaign& campaign) {
  std::string text = absl::StrCat(TimeText(pick.time_us()), " at size ", pick.size());
  if (!(pick.time_us() > 0)) return text;
  absl::StrAppend(&text, ": ", SpeedupText(pick.start_us() / pick.time_us()), " over the start variant (",
                  TimeText(pick.start_us()), ")");
  if (pick.baseline_us() > 0) {
    absl::StrAppend(&text, ", ", SpeedupText(pick.baseline_us() / pick.time_us()), " over ", BaselineName(campaign),
                    " (", TimeText(pick.baseline_us()), ")");
  }
  return text;
}

std::string ClaimOfAllSizes(const v1::BestVariant& best, const v1::Campaign& campaign) {
  const v1::Iteration& iteration = best.iteration();
  std::string text = absl::StrFormat("%s at size %s on %s", TimeText(iteration.time_us()),
                                     campaign.spec().goal().size(), iteration.device());
  absl::StrAppend(&text, ": ", SpeedupText(campaign.speedup_over_start()), " over the start variant");
  if (campaign.baseline_us() > 0) {
    absl::StrAppend(&text, ", ", OverBaselineText(campaign), " over ", BaselineName(campaign));
  }
  if (campaign.spec().goal().sizes_size() > 1) {
    absl::StrAppend(&text, ", ", ObjectiveText(campaign.spec().goal()));
  }
  if (const std::string losses = LossesText(MeasuredSizes(campaign)); !losses.empty()) {
    absl::StrAppend(&text, ". Slower at ", losses);
  }
  return text;
}

// How fast it is: in one line, or in one for each size that a portfolio's variant serves.
std::vector<std::string> Claims(const v1::BestVariant& best, const v1::Campaign& campaign) {
  if (!campaign.has_portfolio()) return {ClaimOfAllSizes(best, campaign)};
  std::vector<std::string> claims;
  for (const v1::Portfolio::Pick& pick : PicksOf(best, campaign)) claims.push_back(PickClaim(pick, campaign));
  if (claims.empty()) claims.push_back("it serves no size that was timed");
  return claims;
}

std::string Title(const v1::BestVariant& best, const v1::Campaign& campaign) {
  const std::string claims = absl::StrJoin(Claims(best, campaign), "; ");
  return absl::StrCat(best.bundle().name(), campaign.has_portfolio() ? ", of a portfolio, on " : "",
                      campaign.has_portfolio() ? best.iteration().device() : "", ": ",
                      absl::StrReplaceAll(claims, {{"\n", " "}}));
}

std::string ClaimsText(const v1::BestVariant& best, const v1::Campaign& campaign) {
  const std::vector<std::string> claims = Claims(best, campaign);
  if (!campaign.has_portfolio()) return absl::StrCat(claims[0], ".\n\n");
  return absl::StrCat("One variant of a portfolio (the page in the folder above has its rule). At the sizes that the ",
                      "rule gives it, each time beside the start's, on ", best.iteration().device(), ":\n\n- ",
                      absl::StrJoin(claims, "\n- "), "\n\n");
}

v1::Variant VariantOfBest(const v1::BestVariant& best) {
  v1::Variant variant;
  *variant.mutable_values() = best.iteration().variant();
  return variant;
}

std::string Joined(const google::protobuf::RepeatedPtrField<std::string>& texts) { return absl::StrJoin(texts, ", "); }

// How the winner is launched, for users who merge the source alone.
std::string LaunchesText(const v1::BestVariant& best) {
  std::string text;
  for (const v1::Launch& launch : best.bundle().launches()) {
    absl::StrAppend(&text, "- `", EntryOf(best.bundle(), launch.entry(), VariantOfBest(best), v1::Size()), "`: grid `",
                    Joined(launch.grid()), "`, block `", Joined(launch.block()), "`");
    if (!launch.shared().empty()) absl::StrAppend(&text, ", shared `", launch.shared(), "`");
    if (!launch.when().empty()) absl::StrAppend(&text, ", when `", launch.when(), "`");
    if (!launch.repeat().empty()) absl::StrAppend(&text, ", repeated `", launch.repeat(), "`");
    if (!launch.loop().empty()) absl::StrAppend(&text, ", in turn with the others of the loop `", launch.loop(), "`");
    absl::StrAppend(&text, launch.cooperative() ? ", cooperative" : "", "\n");
  }
  return text;
}

// For programs in C++.
std::string LibraryText(const HandOff& hand_off, bool portfolio) {
  if (hand_off.library_build.empty()) return "";
  std::string text =
      absl::StrCat("## C++\n\n```\n", hand_off.library_build, "```\n\n`", hand_off.library, "` has `",
                   hand_off.name_space, "::Launch()` of `", hand_off.id, ".h`, for programs of your own.");
  if (portfolio) {
    absl::StrAppend(&text, " Kernels of several variants may have the same names: they can't be linked into one ",
                    "file, so each variant becomes a shared library of its own. `../", hand_off.id,
                    "_dispatch.h` says which of them serves a size.");
  }
  return absl::StrCat(text, "\n\n");
}

// What to do for other values of dimensions that are compiled into the code; empty: none are.
std::string FixedSizesText(const HandOff& hand_off) {
  if (hand_off.fixed_sizes.empty()) return "";
  std::vector<std::string> defines;
  for (const auto& size : hand_off.fixed_sizes) defines.push_back(absl::StrCat("-DSIZE_", size.first, "=VALUE"));
  const std::string options = absl::StrJoin(defines, " ");
  return absl::StrCat(
      "## Other sizes\n\nThe code is compiled for ", FixedText(hand_off.fixed_sizes),
      " (`SIZE_` macros); a program or a library that is called at another value says so. The PyTorch extension "
      "builds ",
      "itself for other values, once for each, at the first call with it. `NVCC_APPEND_FLAGS=\"", options,
      "\" sh build.sh` builds the program for other values. For a library, add `", options,
      "` to the commands above. A program that needs several values links a library for each, with a name and a ",
      "namespace of its own: add `-D", hand_off.namespace_macro, "=NAME`, and define the same before `", hand_off.id,
      ".h` is included.\n\n");
}

std::string Page(const v1::BestVariant& best, const v1::Campaign& campaign, const HandOff& hand_off,
                 const std::vector<FormState>& forms, const std::vector<v1::Iteration>& path) {
  const v1::Iteration& iteration = best.iteration();
  const v1::Bundle& bundle = best.bundle();
  const std::string& id = hand_off.id;
  std::string text = absl::StrCat("# ", bundle.name(), ", optimised by Pawl\n\n", bundle.summary(), ". ",
                                  iteration.name(), ".\n\n", ClaimsText(best, campaign));
  absl::StrAppend(&text, "| form | files | state |\n| --- | --- | --- |\n");
  if (!hand_off.implementation.empty()) {
    absl::StrAppend(
        &text, "| your contract | `winner.patch`, `implementation/` | `patch -p1 < winner.patch` in the ",
        "contract's folder, or copy the files of `implementation/` there: `pawl check` takes the folder as ",
        "a bundle, with the winner as its start |\n",
        "| source | `source/` | the same files with the values of variables written in |\n");
  } else {
    const std::string patch = hand_off.patch.empty() ? "no patch: your files stay as they are" : "`winner.patch`";
    absl::StrAppend(&text, "| your source | ", patch,
                    ", `source/` | `patch -p1 < winner.patch` in the bundle's folder |\n");
  }
  if (!hand_off.toml.empty()) {
    absl::StrAppend(&text, "| your kernel.toml | `implementation.toml` | put it in place of your variables, ",
                    "constraints, scratch, launches and options, which edits changed |\n");
  }
  for (const FormState& state : forms) {
    const std::string files = state.form == "program" ? absl::StrCat("`", id, ".cu`, `", id, ".h`, `build.sh`")
                              : state.form == "extension"
                                  ? absl::StrCat("`", id, "_winner.py`, `", id, "_binding.cpp`, `test_", id, ".py`")
                                  : absl::StrCat("`", id, ".cubin`");
    absl::StrAppend(&text, "| ", state.form, " | ", files, " | ", absl::StrReplaceAll(state.text, {{"|", "\\|"}}),
                    " |\n");
  }
  absl::StrAppend(&text,
                  "\n`check_FORM.sh` builds a form and runs it, as a worker does in its sandbox for `pawl best`. ",
                  "`evidence.json` has the measurements: samples, counters, compiler, GPU.\n\n");
  absl::StrAppend(&text, "## Program\n\n```\n", hand_off.program_build, "./", id, " ", SizeOf(best, campaign),
                  "\n```\n\nIt takes a size of the bundle, or dimensions (`NAME=VALUE`), and ",
                  bundle.reference().source().text().empty()
                      ? "runs the kernel; the reference is in `contract/problem.py`.\n\n"
                      : "compares the result with the reference in `contract/`.\n\n");
  absl::StrAppend(
      &text, "## PyTorch\n\n```python\nfrom ", id, "_winner import ", id, "\n```\n\n`python3 test_", id,
      ".py` compares it with the reference of the bundle. Outputs are returned in a dict, by name.",
      bundle.setup().launches().empty() ? "" : " The setup launches run before every call; Pawl does not time them.",
      "\n\n");
  absl::StrAppend(&text, LibraryText(hand_off, campaign.has_portfolio()), FixedSizesText(hand_off));
  absl::StrAppend(&text, "## Launches\n\n", LaunchesText(best),
                  "\nVariables: ", VariantText(bundle, VariantOfBest(best)), ".\n\n");
  absl::StrAppend(&text, "Kept changes, one at a time",
                  campaign.has_portfolio() ? ", each timed at the heaviest size that its leg was over" : "",
                  ":\n\n```\n", PathText(path), "```\n\n");
  if (const std::string left_out = NotesOf(iteration); !left_out.empty()) {
    absl::StrAppend(&text, "Checks that were left out: ", left_out, ".\n\n");
  }
  absl::StrAppend(&text, "GPU ", iteration.gpu().name(), ", driver ", iteration.gpu().driver_version(), ", NVRTC ",
                  iteration.toolchain().nvrtc(), ".\n");
  return text;
}

}  // namespace

absl::StatusOr<HandOff> HandOffOf(const v1::BestVariant& best, const v1::Campaign& campaign, const WinnerBlobs& blobs,
                                  const std::vector<v1::Iteration>& path) {
  Winner winner;
  // The start is a proposal.
  winner.from_contract = !path.empty() && path[0].number() == 0 && path[0].change().has_source();
  winner.bundle = best.bundle();
  winner.implementation = blobs.implementation;
  winner.variant = VariantOfBest(best);
  winner.gpu = best.iteration().gpu();
  winner.size = SizeOf(best, campaign);
  if (campaign.has_portfolio()) winner.member = best.iteration().number();
  winner.name = best.iteration().name();
  winner.title = Title(best, campaign);
  winner.cubin = blobs.cubin;
  return MakeHandOff(winner);
}

std::vector<WinnerFile> WinnerFiles(const v1::BestVariant& best, const v1::Campaign& campaign, const HandOff& hand_off,
                                    const std::vector<FormState>& forms, const std::vector<v1::Iteration>& path) {
  std::vector<WinnerFile> files = {{"README.md", Page(best, campaign, hand_off, forms, path)},
                                   {"evidence.json", absl::StrCat(JsonLine(best.iteration()), "\n")}};
  if (!hand_off.patch.empty()) files.push_back({"winner.patch", hand_off.patch});
  if (!hand_off.toml.empty()) files.push_back({"implementation.toml", hand_off.toml});
  for (const v1::SourceFile& file : hand_off.implementation) {
    files.push_back({absl::StrCat("implementation/", file.path()), file.text()});
  }
  for (const v1::SourceFile& file : hand_off.files) {
    files.push_back(
        {file.path(), file.binary().empty() ? file.text() : file.binary(), absl::EndsWith(file.path(), ".sh")});
  }
  return files;
}

std::vector<WinnerFile> PortfolioFiles(const v1::Bundle& bundle, const v1::Campaign& campaign) {
  std::vector<WinnerFile> files;
  for (const v1::SourceFile& file : MakeDispatcher(bundle, campaign.portfolio(), RuleText(campaign.portfolio()))) {
    files.push_back({file.path(), file.text()});
  }
  files.push_back(
      {"README.md",
       absl::StrCat("# ", bundle.name(), ", optimised by Pawl\n\nEach folder has one variant. `", files[1].name,
                    "` calls the right one from Python. In C or C++, `", files[0].name,
                    "` says which one serves a size; each variant becomes a shared library of its own, as the page in ",
                    "its folder says: kernels of several variants may have the same names.\n\n```\n",
                    PortfolioText(campaign), "```\n")});
  return files;
}

absl::Status CheckEmpty(const std::string& folder) {
  std::error_code error;
  const fs::directory_iterator entries(folder, error);
  if (error || entries == fs::directory_iterator()) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(folder, " contains ", entries->path().filename().string(), " already; name a new or empty folder"));
}

absl::Status WriteWinner(const std::vector<WinnerFile>& files, const std::string& folder) {
  std::error_code error;
  for (const WinnerFile& file : files) {
    const fs::path name = fs::path(file.name).lexically_normal();
    if (name.is_absolute() || *name.begin() == "..") {
      return absl::InvalidArgumentError(absl::StrCat("the file ", file.name, " is outside the bundle"));
    }
    if (fs::exists(fs::path(folder) / file.name, error)) {
      return absl::AlreadyExistsError(
          absl::StrCat(folder, " contains ", file.name, " already; name a new or empty folder"));
    }
  }
  for (const WinnerFile& file : files) {
    const fs::path path = fs::path(folder) / file.name;
    fs::create_directories(path.parent_path(), error);
    if (error)
      return absl::UnavailableError(absl::StrCat(path.parent_path().string(), " can't be made: ", error.message()));
    std::ofstream out(path, std::ios::binary);
    out << file.text << std::flush;
    if (!out) return absl::UnavailableError(absl::StrCat(path.string(), " can't be written"));
    if (file.executable) fs::permissions(path, fs::perms::owner_exec, fs::perm_options::add, error);
  }
  return absl::OkStatus();
}

}  // namespace pawl
