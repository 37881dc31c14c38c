// Every cheat of tests/cheats is rejected by a check that is meant for it, every honest control accepted. With
// PAWL_CHEATS_TABLE=FILE the outcome is written there as a Markdown table.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/toml/toml.h"
#include "kernels/bundle_reader.h"
#include "kernels/space.h"
#include "tests/gpu/shared_device.h"
#include "worker/trial/timer.h"

namespace pawl {
namespace {

std::filesystem::path CheatsFolder() { return std::filesystem::path(getenv("PAWL_SOURCE_DIR")) / "tests/cheats"; }

std::string CheckName(v1::Check check) {
  std::string name = v1::Check_Name(check);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "CHECK_"));
}

// The check that fired, "accepted", or "refused by the reader"; the message in *why.
std::string Outcome(const std::string& name, std::string* why) {
  const BundleReading reading = ReadBundle(CheatsFolder() / name);
  if (!reading.problems.empty()) {
    *why = reading.problems[0].message;
    return "reader";
  }
  absl::StatusOr<v1::TrialResult> result = RunAlone(reading.bundle, StartVariant(reading.bundle));
  if (!result.ok()) {
    *why = std::string(result.status().message());
    return "error";
  }
  if (!result->has_failure()) return "accepted";
  *why = absl::StrCat(result->failure().size(), ": ", result->failure().message());
  return CheckName(result->failure().check());
}

// How much faster the start variant is than the same with `instead` (VARIABLE=VALUE), at the goal's size.
absl::StatusOr<double> GainOver(CudaDevice& device, const std::string& name, const std::string& instead) {
  const v1::Bundle bundle = ReadBundle(CheatsFolder() / name).bundle;
  v1::Variant honest = StartVariant(bundle);
  const std::pair<std::string, std::string> words = absl::StrSplit(instead, '=');
  (*honest.mutable_values())[words.first] = std::stoi(words.second);
  const std::vector<v1::Size> sizes(bundle.sizes().begin(), bundle.sizes().end());
  absl::StatusOr<BuiltVariant> cheat =
      BuildVariant(device.builder(), bundle, StartVariant(bundle), sizes, device.gpu());
  if (!cheat.ok()) return cheat.status();
  absl::StatusOr<BuiltVariant> parent = BuildVariant(device.builder(), bundle, honest, sizes, device.gpu());
  if (!parent.ok()) return parent.status();
  const std::string& goal = bundle.goal().size();
  absl::StatusOr<Timing> timing = TimeAgainst(device, bundle, *cheat->Find(goal), *parent->Find(goal), {.pairs = 15});
  if (!timing.ok()) return timing.status();
  if (timing->failure) return absl::InternalError(timing->failure->message());
  double sum = 0;
  for (const v1::PairSample& pair : timing->times.pairs()) sum += pair.log_ratio();
  return std::exp(sum / timing->times.pairs_size()) - 1;
}

std::string Cell(std::string text) {
  for (char& c : text) {
    if (c == '|' || c == '\n') c = ' ';
  }
  return text.substr(0, 240);
}

TEST(Cheats, AreRejectedByTheCheckMeantForThemAndControlsAreAccepted) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = SharedDevice()->cuda();
  const toml::parse_result parsed = toml::parse_file((CheatsFolder() / "cheats.toml").string());
  ASSERT_TRUE(parsed.succeeded()) << parsed.error().description();
  const toml::table& list = parsed.table();
  std::string table;
  int cheats = 0, caught = 0, controls = 0, accepted = 0, harmless = 0;
  for (const char* kind : {"cheat", "control"}) {
    for (const toml::node& node : *list[kind].as_array()) {
      const toml::table& entry = *node.as_table();
      const std::string name = entry["name"].value_or(std::string());
      std::vector<std::string> expected;
      if (const toml::array* given = entry["expect"].as_array()) {
        for (const toml::node& check : *given) expected.push_back(check.value_or(std::string()));
      } else {
        expected.push_back("accepted");
      }
      std::string why;
      const absl::Time start = absl::Now();
      std::string fired = Outcome(name, &why);
      const std::string harmless_as = entry["harmless_as"].value_or(std::string());
      if (fired == "accepted" && !harmless_as.empty()) {
        const absl::StatusOr<double> gain = GainOver(device, name, harmless_as);
        ASSERT_TRUE(gain.ok()) << gain.status();
        fired = *gain < 0.03 ? "no gain" : "accepted";
        why = absl::StrFormat("against itself with %s: %+.2f %% faster", harmless_as, 100 * *gain);
      }
      const bool fine = std::find(expected.begin(), expected.end(), fired) != expected.end() || fired == "no gain" ||
                        (fired == "reader" && entry["by"].value_or(std::string()) == "reader");
      fprintf(stderr, "%-22s %-14s %5.2f s  %s%s\n", name.c_str(), fired.c_str(),
              absl::ToDoubleSeconds(absl::Now() - start), fine ? "" : "UNEXPECTED ", why.substr(0, 160).c_str());
      EXPECT_TRUE(fine) << name << ": " << fired << ": " << why;
      (kind == std::string("cheat") ? cheats : controls) += 1;
      (kind == std::string("cheat") ? caught : accepted) += fine && fired != "no gain";
      harmless += fired == "no gain";
      absl::StrAppend(&table, "| `", name, "` | ", entry["what"].value_or(std::string()), " | ",
                      absl::StrJoin(expected, ", "), " | ", fired, " | ", Cell(why), " |\n");
    }
  }
  EXPECT_GE(cheats, 20);
  EXPECT_GE(controls, 8);
  if (const char* file = getenv("PAWL_CHEATS_TABLE")) {
    std::ofstream out(file);
    out << "# Kernels that try to fool the harness\n\nMade by `scripts/cheats` on an " << device.gpu().name()
        << ", driver " << device.gpu().driver_version() << ", on "
        << absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()) << ": " << caught << " of " << cheats
        << " cheats rejected by a check meant for them, " << harmless
        << " accepted and measured to gain nothing over the same kernel without the trick, " << accepted << " of "
        << controls << " honest controls accepted. The bundles are in `tests/cheats/`.\n\n"
        << "| bundle | what it does | check expected | check that fired | what it said |\n| --- | --- | --- | --- | "
           "--- |\n"
        << table;
  }
}

}  // namespace
}  // namespace pawl
