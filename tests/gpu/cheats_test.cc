// Every cheat of tests/cheats is rejected by a check that is meant for it, every honest control accepted. With
// PAWL_CHEATS_TABLE=FILE the outcome is written there as a Markdown table.
#include <gtest/gtest.h>
#include <toml++/toml.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "kernels/bundle_reader.h"
#include "kernels/space.h"
#include "tests/gpu/examine.h"

namespace pawl {
namespace {

std::filesystem::path CheatsFolder() { return std::filesystem::path(getenv("PAWL_SOURCE_DIR")) / "tests/cheats"; }

std::string CheckName(v1::Check check) {
  std::string name = v1::Check_Name(check);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "CHECK_"));
}

// The check that fired, "accepted", or "refused by the reader"; the message in *why.
std::string Outcome(CudaDevice& device, const std::string& name, std::string* why) {
  const BundleReading reading = ReadBundle(CheatsFolder() / name);
  if (!reading.problems.empty()) {
    *why = reading.problems[0].message;
    return "reader";
  }
  absl::StatusOr<Examination> examination = Examine(device, reading.bundle, StartVariant(reading.bundle));
  if (!examination.ok()) {
    *why = std::string(examination.status().message());
    return "error";
  }
  if (!examination->failure) return "accepted";
  *why = absl::StrCat(examination->failure->size(), ": ", examination->failure->message());
  return CheckName(examination->failure->check());
}

std::string Cell(std::string text) {
  for (char& c : text) {
    if (c == '|' || c == '\n') c = ' ';
  }
  return text.substr(0, 240);
}

TEST(Cheats, AreRejectedByTheCheckMeantForThemAndControlsAreAccepted) {
  PAWL_NEEDS_GPU();
  CudaDevice& device = *SharedDevice();
  const toml::parse_result parsed = toml::parse_file((CheatsFolder() / "cheats.toml").string());
  ASSERT_TRUE(parsed.succeeded()) << parsed.error().description();
  const toml::table& list = parsed.table();
  std::string table;
  int cheats = 0, caught = 0, controls = 0, accepted = 0;
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
      const std::string fired = Outcome(device, name, &why);
      const bool fine = std::find(expected.begin(), expected.end(), fired) != expected.end() ||
                        (fired == "reader" && entry["by"].value_or(std::string()) == "reader");
      fprintf(stderr, "%-22s %-14s %5.2f s  %s%s\n", name.c_str(), fired.c_str(),
              absl::ToDoubleSeconds(absl::Now() - start), fine ? "" : "UNEXPECTED ", why.substr(0, 160).c_str());
      const bool optional = entry["optional"].value_or(false);
      if (optional && fired == "accepted") why = "no check fired; whether its hint gained anything was not measured";
      EXPECT_TRUE(fine || optional) << name << ": " << fired << ": " << why;
      (kind == std::string("cheat") ? cheats : controls) += 1;
      (kind == std::string("cheat") ? caught : accepted) += fine;
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
        << " cheats rejected by a check meant for them, " << accepted << " of " << controls
        << " honest controls accepted. The bundles are in `tests/cheats/`.\n\n"
        << "| bundle | what it does | check expected | check that fired | what it said |\n| --- | --- | --- | --- | "
           "--- |\n"
        << table;
  }
}

}  // namespace
}  // namespace pawl
