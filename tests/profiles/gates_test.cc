#include "profiles/gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/str_replace.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Shipped() {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  std::ostringstream text;
  text << std::ifstream(std::filesystem::path(source ? source : ".") / "profiles" / "gates.toml").rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("[[gate]]"));
  return text.str();
}

// The shipped file with one thing changed; the error that comes of it.
std::string ErrorAfter(const std::string& was, const std::string& is) {
  std::string text = Shipped();
  EXPECT_NE(text.find(was), text.npos) << was;
  text.replace(text.find(was), was.size(), is);
  const absl::StatusOr<Gates> gates = Gates::Parse(text, "g.toml");
  return gates.ok() ? "no error" : std::string(gates.status().message());
}

// The same for one gate, which begins at its name.
std::string ErrorOf(const std::string& gate, const std::string& was, const std::string& is) {
  const std::string text = Shipped();
  const size_t begin = text.find("= \"" + gate + "\"\nstage");
  EXPECT_NE(begin, text.npos) << gate;
  const size_t end = std::min(text.find("[[gate]]", begin), text.size());
  std::string section = text.substr(begin, end - begin);
  EXPECT_NE(section.find(was), section.npos) << gate << " has no " << was;
  const absl::StatusOr<Gates> gates =
      Gates::Parse(text.substr(0, begin) + absl::StrReplaceAll(section, {{was, is}}) + text.substr(end), "g.toml");
  return gates.ok() ? "no error" : std::string(gates.status().message());
}

TEST(Gates, ShipWithTheThresholdsOfTheNotes) {
  const Gates& gates = Gates::Default();
  EXPECT_EQ(gates.Get(GateKind::kBaseline).threshold, 0.10);
  EXPECT_EQ(gates.Get(GateKind::kRooflineFloor).threshold, 1.0);
  EXPECT_EQ(gates.Get(GateKind::kProfileFirst).threshold, 0.5);
  EXPECT_EQ(gates.Get(GateKind::kProfile).threshold, 1.0);
  EXPECT_EQ(gates.Get(GateKind::kMinGain).threshold, 0.01);
  EXPECT_EQ(gates.Get(GateKind::kMinGain).action, v1::GATE_ACTION_REVERT);
  EXPECT_EQ(gates.Get(GateKind::kBaseline).action, v1::GATE_ACTION_PAUSE);
  EXPECT_EQ(gates.Get(GateKind::kPrediction).action, v1::GATE_ACTION_MARK);
  EXPECT_EQ(gates.total_every(), 5);
}

TEST(Gates, AreFoundByNameAndByKind) {
  ASSERT_EQ(Gates::Default().all().size(), 14u);
  for (const Gate& gate : Gates::Default().all()) {
    EXPECT_EQ(&Gates::Default().Get(gate.kind), &gate);
    EXPECT_EQ(Gates::Default().Find(gate.name), &gate);
    EXPECT_NE(gate.stage, v1::STAGE_UNSPECIFIED) << gate.name;
    EXPECT_FALSE(gate.meaning.empty()) << gate.name;
  }
  EXPECT_EQ(Gates::Default().Find("lunch"), nullptr);
}

TEST(Gates, OwnEveryCheckOnce) {
  std::map<v1::Check, int> owners;
  for (const Gate& gate : Gates::Default().all()) {
    for (const v1::Check check : gate.checks) {
      ++owners[check];
      EXPECT_EQ(&Gates::Default().For(check), &gate);
    }
  }
  for (int check = v1::Check_MIN + 1; check <= v1::Check_MAX; ++check) {
    EXPECT_EQ(owners[static_cast<v1::Check>(check)], 1) << v1::Check_Name(static_cast<v1::Check>(check));
  }
  EXPECT_EQ(Gates::Default().For(v1::CHECK_TOLERANCE).name, "correctness");
  EXPECT_EQ(Gates::Default().For(v1::CHECK_RACECHECK).name, "sanitizer");
  EXPECT_EQ(Gates::Default().For(v1::CHECK_LAUNCH_LIMITS).name, "static-check");
  EXPECT_EQ(Gates::Default().For(v1::CHECK_ROOFLINE).name, "roofline-floor");
  EXPECT_EQ(Gates::Default().For(v1::CHECK_UNSTEADY).name, "steady-timing") << "not a time that is too short";
  EXPECT_EQ(Gates::Default().For(v1::CHECK_SEAT).name, "seat");
}

TEST(Gates, LetNoFailurePassThatTheyDoNotKnow) {
  EXPECT_EQ(Gates::Default().For(v1::CHECK_UNSPECIFIED).name, "correctness");
  EXPECT_EQ(Gates::Default().For(static_cast<v1::Check>(4711)).name, "correctness");
}

TEST(Gates, SayWhatFailed) {
  const v1::FailedGate failed = Gates::Default().Get(GateKind::kMinGain).Failed(0.002, "0.2 % faster");
  EXPECT_EQ(failed.gate(), "min-gain");
  EXPECT_EQ(failed.action(), v1::GATE_ACTION_REVERT);
  EXPECT_EQ(failed.value(), 0.002);
  EXPECT_EQ(failed.threshold(), 0.01);
  EXPECT_EQ(failed.text(), "0.2 % faster");
}

TEST(Gates, TellTiersByTheGoal) {
  const Gates& gates = Gates::Default();
  EXPECT_EQ(gates.TierOf(0.99, 1.5), v1::SUCCESS_TIER_BELOW);
  EXPECT_EQ(gates.TierOf(1.0, 1.5), v1::SUCCESS_TIER_MINIMUM);
  EXPECT_EQ(gates.TierOf(1.49, 1.5), v1::SUCCESS_TIER_MINIMUM);
  EXPECT_EQ(gates.TierOf(1.5, 1.5), v1::SUCCESS_TIER_TARGET);
  EXPECT_EQ(gates.TierOf(1.875, 1.5), v1::SUCCESS_TIER_STRETCH);
  EXPECT_EQ(gates.TierOf(1.2, 0), v1::SUCCESS_TIER_TARGET) << "no goal: the file's target";
  EXPECT_EQ(gates.TierOf(1.5, 0), v1::SUCCESS_TIER_STRETCH);
}

TEST(GatesFile, MayChangeThresholdsAndWhatAFailedGateDoes) {
  const absl::StatusOr<Gates> gates = Gates::Parse(
      absl::StrReplaceAll(Shipped(), {{"threshold = 0.01 ", "threshold = 0.05 "}, {"\"mark\"", "\"pause\""}}),
      "g.toml");
  ASSERT_TRUE(gates.ok()) << gates.status();
  EXPECT_EQ(gates->Get(GateKind::kMinGain).threshold, 0.05);
  EXPECT_EQ(gates->Get(GateKind::kPrediction).action, v1::GATE_ACTION_PAUSE);
}

TEST(GatesFile, RefusesImpossibleThresholds) {
  EXPECT_THAT(ErrorOf("min-gain", "0.01", "-0.01"),
              AllOf(HasSubstr("g.toml:"), HasSubstr("gate min-gain"), HasSubstr("-0.01 is impossible: a share")));
  EXPECT_THAT(ErrorOf("min-gain", "0.01", "1.5"), HasSubstr("1.5 is impossible"));
  EXPECT_THAT(ErrorOf("min-gain", "0.01", "nan"), HasSubstr("\"threshold\" must be a number"));
  EXPECT_THAT(ErrorOf("min-gain", "0.01", "inf"), HasSubstr("\"threshold\" must be a number"));
  EXPECT_THAT(ErrorOf("min-gain", "0.01", "\"much\""), HasSubstr("\"threshold\" must be a number"));
  EXPECT_THAT(ErrorOf("min-gain", "threshold = 0.01", ""), HasSubstr("gate min-gain: \"threshold\" is missing"));
  EXPECT_THAT(ErrorOf("baseline", "0.10", "0"), HasSubstr("0 is impossible"));
  EXPECT_THAT(ErrorOf("roofline-floor", "1.0", "1.1"), HasSubstr("honest times are above it"));
  EXPECT_THAT(ErrorOf("profile-first", "0.5", "-1"), HasSubstr("a speedup over the baseline"));
  EXPECT_THAT(ErrorOf("profile", "1.0", "-1"), HasSubstr("a speedup over the baseline"));
  EXPECT_THAT(ErrorOf("build", "action  =", "threshold = 1\naction ="), HasSubstr("gate build: has no threshold"));
}

TEST(GatesFile, RefusesActionsThatWouldKeepAWrongKernel) {
  for (const char* gate : {"correctness", "sanitizer", "roofline-floor", "seat", "build", "static-check"}) {
    for (const char* action : {"\"mark\"", "\"revert\""}) {
      EXPECT_THAT(ErrorOf(gate, "\"reject\"", action),
                  HasSubstr("a variant that failed it must never be kept; it may reject or pause"))
          << gate;
    }
    EXPECT_EQ(ErrorOf(gate, "\"reject\"", "\"pause\""), "no error") << gate;
  }
  EXPECT_THAT(ErrorOf("steady-timing", "\"revert\"", "\"mark\""), HasSubstr("it may revert or reject or pause"));
  EXPECT_EQ(ErrorOf("steady-timing", "\"revert\"", "\"reject\""), "no error");
  EXPECT_THAT(ErrorOf("min-gain", "\"revert\"", "\"mark\""), HasSubstr("not faster, so it is not kept"));
  EXPECT_THAT(ErrorOf("profile", "\"mark\"", "\"reject\""), HasSubstr("not about a variant"));
  EXPECT_THAT(ErrorOf("preflight", "\"pause\"", "\"revert\""), HasSubstr("not about a variant"));
  EXPECT_THAT(ErrorOf("baseline", "\"pause\"", "\"revert\""), HasSubstr("no parent to go back to"));
  EXPECT_THAT(ErrorOf("prediction", "\"mark\"", "\"reject\""), HasSubstr("correct and faster"));
  EXPECT_THAT(ErrorOf("build", "\"reject\"", "\"explode\""),
              HasSubstr("unknown action \"explode\"; there are mark, pause, reject, revert"));
}

TEST(GatesFile, RefusesGatesThatAreMissingDoubledOrUnknown) {
  EXPECT_THAT(ErrorAfter("\"sanitizer\"", "\"sanitiser\""),
              AllOf(HasSubstr("gate sanitiser: there is no such gate; there are preflight, baseline"),
                    HasSubstr("no [[gate]] with the name \"sanitizer\""),
                    HasSubstr("the check \"memcheck\" belongs to no gate")));
  EXPECT_THAT(ErrorAfter("\"preflight\"\nstage     = \"preflight\"", "\"build\"\nstage     = \"build\""),
              AllOf(HasSubstr("gate build: defined twice"), HasSubstr("\"preflight\": every gate must be defined")));
  EXPECT_THAT(ErrorAfter("[[gate]]", "[[gates]]"), HasSubstr("unknown key \"gates\""));
  EXPECT_THAT(std::string(Gates::Parse("", "g.toml").status().message()),
              AllOf(HasSubstr("\"correctness\": every gate must be defined"), HasSubstr("[tiers] is missing"),
                    HasSubstr("[total] is missing")));
  EXPECT_THAT(std::string(Gates::Parse("[[gate", "g.toml").status().message()), HasSubstr("g.toml:1: "));
}

TEST(GatesFile, RefusesUnknownKeysChecksAndStages) {
  EXPECT_THAT(ErrorOf("build", "meaning", "meening"),
              AllOf(HasSubstr("unknown key \"meening\""), HasSubstr("\"meaning\" is missing")));
  EXPECT_THAT(ErrorOf("build", "\"compile\"", "\"compiled\""), HasSubstr("unknown check \"compiled\"; there are "));
  EXPECT_THAT(ErrorOf("build", "\"compile\"", "\"tolerance\""),
              AllOf(HasSubstr("\"tolerance\" belongs to the gate build already"),
                    HasSubstr("the check \"compile\" belongs to no gate")));
  EXPECT_THAT(ErrorOf("min-gain", "action ", "checks = [\"fault\"]\naction "),
              HasSubstr("\"fault\" is a failure of a candidate, which this gate is not about"));
  EXPECT_THAT(ErrorOf("build", "stage   = \"build\"", "stage = \"lunch\""),
              HasSubstr("belongs to the stage \"build\", not \"lunch\""));
}

TEST(GatesFile, RefusesImpossibleTiersAndTotals) {
  EXPECT_THAT(ErrorAfter("minimum = 1.0", "minimum = 0"), HasSubstr("[tiers]: \"minimum\" = 0 is impossible"));
  EXPECT_THAT(ErrorAfter("target  = 1.2", "target = 0.9"), HasSubstr("a speedup of at least the minimum"));
  EXPECT_THAT(ErrorAfter("stretch = 1.25", "stretch = 0.5"), HasSubstr("times the target"));
  EXPECT_THAT(ErrorAfter("every = 5", "every = 0"), HasSubstr("[total]: \"every\" = 0 is impossible"));
  EXPECT_THAT(ErrorAfter("every = 5", "every = 2.5"), HasSubstr("must be a whole number"));
  EXPECT_THAT(ErrorAfter("every = 5", "evry = 5"), HasSubstr("unknown key \"evry\""));
}

TEST(GatesFile, NamesTheLine) {
  const std::string text = Shipped();
  const size_t at = text.find("action", text.find("\"correctness\""));
  const auto line = std::count(text.begin(), text.begin() + static_cast<long>(at), '\n') + 1;
  EXPECT_THAT(ErrorOf("correctness", "\"reject\"", "\"mark\""),
              HasSubstr("g.toml:" + std::to_string(line) + ": gate correctness: may not mark"));
}

}  // namespace
}  // namespace pawl
