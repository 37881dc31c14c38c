// Commands that explain and propose: explain, situation, propose, patterns, and who may choose.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/cli/fake_orchestrator.h"
#include "tests/cli/pawl_program.h"
#include "tests/cli/some_iterations.h"
#include "tests/kernels/bundle_folder.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

template <typename Message>
Message Parse(const std::string& json) {
  Message message;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &message).ok()) << json;
  return message;
}

class SteeringCommandsTest : public testing::Test {
 protected:
  SteeringCommandsTest() {
    fake_.iterations = SomeIterations();
    fake_.iterations[4] = ExplainedIteration();
    fake_.bundle = SomeBundle();
    fake_.campaign.set_state(v1::RUNNING);
    fake_.campaign.mutable_spec()->mutable_goal()->set_size("main");
    fake_.campaign.set_best(4);
  }

  ProcessResult Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--orchestrator", fake_.address()});
    return Pawl(arguments, {{"HOME", home_.path().string()}});
  }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(home_.path() / name) << text;
    return (home_.path() / name).string();
  }

  FakeOrchestrator fake_;
  const TemporaryFolder home_{"pawl-home-"};
};

TEST_F(SteeringCommandsTest, ExplainACampaignAndAnIteration) {
  const ProcessResult campaign = Run({"explain", "7"});
  EXPECT_EQ(campaign.exit_code, 0) << campaign.err;
  EXPECT_THAT(campaign.out, HasSubstr("*   4  TILE_M 64→128 from 1\n"));
  EXPECT_THAT(campaign.out, HasSubstr("grid-too-small            1     1          0       1          0\n"));
  EXPECT_THAT(campaign.out, Not(HasSubstr("\033"))) << "no colour into a pipe";
  const ProcessResult iteration = Run({"explain", "7", "4"});
  EXPECT_EQ(iteration.exit_code, 0) << iteration.err;
  EXPECT_THAT(iteration.out, HasSubstr("    values  waves 0.01515 < 1\n"));
  EXPECT_EQ(Parse<v1::Iteration>(Run({"explain", "7", "4", "--json"}).out).passed_over_size(), 3);
  EXPECT_THAT(Lines(Run({"explain", "7", "--json"}).out), SizeIs(5));
  EXPECT_EQ(Run({"explain", "7", "9"}).exit_code, 1);
  EXPECT_EQ(Run({"explain", "7", "nine"}).exit_code, 2);
}

TEST_F(SteeringCommandsTest, ExplainWhyNot) {
  const ProcessResult latest = Run({"explain", "7", "--why-not", "WARPS=8"});
  EXPECT_EQ(latest.exit_code, 0) << latest.err;
  EXPECT_THAT(latest.out, HasSubstr("Iteration 4 chose TILE_M 64→128 from iteration 1, not WARPS=8.\n"));
  EXPECT_THAT(Run({"explain", "7", "2", "--why-not", "WARPS=8"}).out, HasSubstr("Iteration 2 chose TILE_M 64→16"));
  const ProcessResult unknown = Run({"explain", "7", "--why-not", "TILE_Q=8"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("expected TILE_M, WARPS; did you mean TILE_M?"));
  EXPECT_EQ(Run({"explain", "7", "0", "--why-not", "WARPS=8"}).exit_code, 2) << "nothing was chosen";
  EXPECT_EQ(Run({"explain", "7", "--why-not", "WARPS"}).exit_code, 2);
  EXPECT_EQ(Run({"explain", "7", "--why-not", "WARPS=8", "--json"}).exit_code, 2);
}

TEST_F(SteeringCommandsTest, ShowTheSituationAndWhatIsWaitedFor) {
  *fake_.situation.mutable_campaign() = fake_.campaign;
  *fake_.situation.mutable_best() = fake_.iterations[4];
  *fake_.situation.mutable_variables() = SomeBundle().variables();
  fake_.situation.set_source("__global__ void k() {}\n");
  fake_.situation.set_source_path("attention.cu");
  fake_.situation.set_waits(true);
  fake_.situation.mutable_deadline()->set_seconds(4102444800);
  const ProcessResult text = Run({"situation", "7"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("waits      for a proposal until "));
  EXPECT_THAT(text.out, HasSubstr("pawl propose 7 VARIABLE=VALUE --why \"...\" --orchestrator " + fake_.address()));
  EXPECT_EQ(Parse<v1::Situation>(Run({"situation", "7", "--json"}).out).source(), "__global__ void k() {}\n");
  EXPECT_THAT(Run({"show", "7"}).out, Not(HasSubstr("waits"))) << "a campaign that waits for nobody";
  fake_.campaign.mutable_spec()->mutable_chooser()->set_kind(v1::CHOOSER_KIND_OUTSIDE);
  EXPECT_THAT(Run({"show", "7"}).out, HasSubstr("waits      for a proposal until "));
}

TEST_F(SteeringCommandsTest, WriteTheFilesThatAnEditMayChange) {
  fake_.bundle.mutable_source()->set_path("attention.cu");
  const std::filesystem::path folder = home_.path() / "edit";
  const ProcessResult result = Run({"situation", "7", "--checkout", folder.string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto text = [&](const std::string& name) {
    std::stringstream read;
    read << std::ifstream(folder / name).rdbuf();
    return read.str();
  };
  EXPECT_EQ(text(fake_.bundle.source().path()), fake_.bundle.source().text());
  EXPECT_THAT(text("kernel.toml"), HasSubstr("name = \"TILE_M\""));
  EXPECT_THAT(text("kernel.toml"), HasSubstr("start = 128\n")) << "the best variant's value";
}

TEST_F(SteeringCommandsTest, SearchLessons) {
  fake_.campaign.mutable_counts()->set_tried(4);
  fake_.campaign.set_device("NVIDIA H200");
  const ProcessResult found = Run({"lessons", "grid too small", "--gpu", "h200"});
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("TILE_M 64→128"));
  EXPECT_THAT(found.out, HasSubstr("grid-too-small"));
  EXPECT_THAT(found.out, Not(HasSubstr("TILE_M 64→16"))) << "for no finding that was recorded";
  EXPECT_THAT(Run({"lessons", "undefined", "identifier", "--json"}).out, HasSubstr("\"verdict\":\"rejected\""));
  const ProcessResult none = Run({"lessons", "grid", "--gpu", "L4"});
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, HasSubstr("No matching lessons"));
  EXPECT_THAT(Run({"lessons", "--limit", "1"}).err, HasSubstr("1 of 4; --limit shows more"));
}

TEST_F(SteeringCommandsTest, SearchLessonsWithALongReason) {
  fake_.campaign.mutable_counts()->set_tried(4);
  for (v1::Iteration& iteration : fake_.iterations) {
    if (iteration.number() != 2) continue;
    iteration.clear_finding();
    iteration.set_why(std::string(1000, 'w'));
  }
  size_t long_rows = 0;
  for (const std::string& line : Lines(Run({"lessons"}).out)) long_rows += line.size() > 400;
  EXPECT_EQ(long_rows, 0u) << "off a terminal, too";
}

TEST_F(SteeringCommandsTest, SearchLessonsMakesNoDatabase) {
  const std::string database = (home_.path() / "new" / "pawl.db").string();
  const ProcessResult result = Pawl({"lessons", "--database", database});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no campaigns yet"));
  EXPECT_FALSE(std::filesystem::exists(home_.path() / "new"));
}

TEST_F(SteeringCommandsTest, ProposeAPatch) {
  const std::string patch = "--- a/attention.cu\n+++ b/attention.cu\n@@ -1 +1 @@\n-a\n+b\n";
  fake_.situation.set_waits(true);
  const ProcessResult proposed =
      Run({"propose", "7", "--patch", Write("x.patch", patch), "--name", "unroll-inner", "--why", "fewer branches"});
  EXPECT_EQ(proposed.exit_code, 0) << proposed.err;
  EXPECT_EQ(proposed.out, "edit unroll-inner will be tried next\n");
  ASSERT_THAT(fake_.asked().proposals, SizeIs(1));
  EXPECT_EQ(fake_.asked().proposals[0].change().source().patch(), patch);
  EXPECT_EQ(fake_.asked().proposals[0].change().source().name(), "unroll-inner");
  EXPECT_EQ(fake_.asked().proposals[0].why(), "fewer branches");
  EXPECT_FALSE(fake_.asked().proposals[0].author().empty());
}

TEST_F(SteeringCommandsTest, NameTheVariableThatWasMeant) {
  *fake_.situation.mutable_variables() = SomeBundle().variables();
  const ProcessResult variable = Run({"propose", "7", "TILE_N=16"});
  EXPECT_EQ(variable.exit_code, 2);
  EXPECT_THAT(variable.err,
              HasSubstr("campaigns/7 has no variable TILE_N; expected TILE_M, WARPS; did you mean TILE_M?"));
  EXPECT_THAT(Run({"propose", "7", "WARPS=3"}).err, HasSubstr("\"3\" is not a value of WARPS; expected 1, 2, 4, 8"));
  EXPECT_THAT(fake_.asked().proposals, IsEmpty());
}

TEST_F(SteeringCommandsTest, TakeAndShowValuesThatAreWords) {
  v1::Variable& type = *fake_.situation.add_variables();
  type.set_name("ACC");
  type.add_words("float");
  type.add_words("half");
  v1::Variable& staged = *fake_.situation.add_variables();
  staged.set_name("STAGED");
  staged.set_flag(true);
  for (v1::Variable* variable : {&type, &staged}) {
    variable->add_values(0);
    variable->add_values(1);
  }
  *fake_.situation.mutable_campaign() = fake_.campaign;
  fake_.situation.mutable_campaign()->clear_end_time();
  (*fake_.situation.mutable_best()->mutable_variant())["ACC"] = 0;
  v1::Change& untried = *fake_.situation.add_untried()->mutable_change();
  untried.set_variable("ACC");
  untried.set_from(0);
  untried.set_to(1);
  const std::string situation = Run({"situation", "7"}).out;
  EXPECT_THAT(situation, HasSubstr("[float] half"));
  EXPECT_THAT(situation, HasSubstr("false true"));
  EXPECT_THAT(situation, HasSubstr("pawl propose 7 ACC=half"));

  EXPECT_EQ(Run({"propose", "7", "ACC=half"}).exit_code, 0);
  EXPECT_EQ(Run({"propose", "7", "STAGED=true"}).exit_code, 0);
  ASSERT_THAT(fake_.asked().proposals, SizeIs(2));
  EXPECT_EQ(fake_.asked().proposals[0].change().to(), 1);
  EXPECT_EQ(fake_.asked().proposals[1].change().to(), 1);
  EXPECT_THAT(Run({"propose", "7", "ACC=hlaf"}).err,
              HasSubstr("\"hlaf\" is not a value of ACC; expected float, half; did you mean half?"));
}

TEST_F(SteeringCommandsTest, ProposeNothingThatIsNoPatch) {
  const std::string good = Write("x.patch", "--- a\n+++ b\n");
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"propose", "7"},
                                             {"propose", "7", "--patch", good},
                                             {"propose", "7", "--name", "x"},
                                             {"propose", "7", "TILE_M=16", "--name", "x"},
                                             {"propose", "7", "TILE_M=16", "--patch", good, "--name", "x"}}) {
    EXPECT_EQ(Run(wrong).exit_code, 2) << wrong.back();
  }
  const auto error = [&](const std::string& file) {
    const ProcessResult result = Run({"propose", "7", "--patch", file, "--name", "x"});
    EXPECT_EQ(result.exit_code, 1);
    return result.err;
  };
  EXPECT_THAT(error("/nonexistent"), HasSubstr("/nonexistent: No such file"));
  EXPECT_THAT(error(Write("empty", "")), HasSubstr("is empty; expected a unified diff"));
  EXPECT_THAT(error(Write("large", std::string((1 << 20) + 1, 'x'))), HasSubstr("is larger than 1 MB"));
  EXPECT_THAT(error(Write("bytes", "\xff\xfe")), HasSubstr("is not UTF-8 text"));
  const ProcessResult named = Run({"propose", "7", "--patch", good, "--name", "\xff"});
  EXPECT_EQ(named.exit_code, 2);
  EXPECT_THAT(named.err, HasSubstr("--name: \"?\" is not UTF-8; only names of files may have other bytes"));
  EXPECT_THAT(fake_.asked().proposals, IsEmpty());
}

TEST_F(SteeringCommandsTest, SubmitWithAChooserAndAnExpectedBaseline) {
  BundleFolder folder;
  const std::string bundle = folder.path().string();
  ASSERT_EQ(Run({"submit", bundle}).exit_code, 0);
  EXPECT_EQ(fake_.asked().submits[0].spec().chooser().kind(), v1::CHOOSER_KIND_UNSPECIFIED);
  ASSERT_EQ(Run({"submit", bundle, "--chooser", "outside", "--wait-for-proposal", "90", "--no-proposal", "pause",
                 "--expect-baseline-us", "5.8"})
                .exit_code,
            0);
  const v1::CampaignSpec spec = fake_.asked().submits[1].spec();
  EXPECT_EQ(spec.chooser().kind(), v1::CHOOSER_KIND_OUTSIDE);
  EXPECT_EQ(spec.chooser().wait_seconds(), 90);
  EXPECT_EQ(spec.chooser().no_proposal(), v1::NO_PROPOSAL_PAUSE);
  EXPECT_EQ(spec.expected_baseline_us(), 5.8);
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"--chooser", "agent"},
                                             {"--wait-for-proposal", "90"},
                                             {"--chooser", "tree", "--wait-for-proposal", "90"},
                                             {"--chooser", "both", "--no-proposal", "pause"},
                                             {"--chooser", "outside", "--no-proposal", "wait"},
                                             {"--chooser", "outside", "--wait-for-proposal", "-1"},
                                             {"--expect-baseline-us", "0"}}) {
    for (const char* command : {"submit", "run"}) {
      std::vector<std::string> arguments = {command, bundle};
      arguments.insert(arguments.end(), wrong.begin(), wrong.end());
      EXPECT_EQ(Run(arguments).exit_code, 2) << command << " " << wrong[0] << " " << wrong[1];
    }
  }
  EXPECT_THAT(fake_.asked().submits, SizeIs(2));
  const ProcessResult profiles = Run({"run", bundle, "--profiles", home_.path().string()});
  EXPECT_EQ(profiles.exit_code, 2);
  EXPECT_THAT(profiles.err, HasSubstr("--profiles is for the orchestrator that this command starts"));
  EXPECT_EQ(Run({"run", bundle, "--profiles", "/nonexistent"}).exit_code, 2);
}

v1::Pattern SomePattern() {
  v1::Pattern pattern;
  pattern.set_rule("grid-too-small");
  pattern.mutable_effect()->set_resource(v1::RESOURCE_PARALLELISM);
  pattern.mutable_effect()->set_direction(v1::DIRECTION_MORE);
  pattern.set_architecture("sm_90");
  pattern.set_tried(20);
  pattern.set_kept(14);
  pattern.set_timed(18);
  pattern.set_median_gain(1.31);
  pattern.set_predictions(18);
  pattern.set_came_true(12);
  return pattern;
}

TEST_F(SteeringCommandsTest, ShowPatterns) {
  fake_.patterns = {SomePattern()};
  const ProcessResult patterns =
      Run({"patterns", "--architecture", "sm_90", "--rule", "grid-too-small", "--by-bundle"});
  EXPECT_EQ(patterns.exit_code, 0) << patterns.err;
  EXPECT_EQ(patterns.out,
            "rule            effect        architecture  bundle  tried  kept  median gain  came true\n"
            "grid-too-small  parallelism+  sm_90         all        20    14       1.310x   12 of 18\n");
  ASSERT_THAT(fake_.asked().pattern_lists, SizeIs(1));
  EXPECT_EQ(fake_.asked().pattern_lists[0].architecture(), "sm_90");
  EXPECT_EQ(fake_.asked().pattern_lists[0].rule(), "grid-too-small");
  EXPECT_TRUE(fake_.asked().pattern_lists[0].by_bundle());
  EXPECT_FALSE(fake_.asked().pattern_lists[0].own());
  EXPECT_EQ(Parse<v1::Pattern>(Run({"patterns", "--json"}).out).kept(), 14);
  fake_.patterns.clear();
  EXPECT_THAT(Run({"patterns"}).err, HasSubstr("No patterns"));
  EXPECT_THAT(Run({"patterns", "--own"}).err, HasSubstr("No patterns from this database's campaigns"));
  EXPECT_TRUE(fake_.asked().pattern_lists.back().own());
}

TEST_F(SteeringCommandsTest, HandPatternsOnAndTakeThemIn) {
  fake_.patterns = {SomePattern()};
  const std::string file = (home_.path() / "patterns.json").string();
  const ProcessResult exported = Run({"patterns", "--export", file, "--source", "our H200s"});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_EQ(exported.out, "");
  EXPECT_TRUE(fake_.asked().pattern_lists.back().own());
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  const v1::PatternFile written = Parse<v1::PatternFile>(text.str());
  EXPECT_EQ(written.version(), 1);
  EXPECT_EQ(written.source(), "our H200s");
  EXPECT_EQ(written.patterns_size(), 1);
  ASSERT_EQ(Run({"patterns", "--export", file}).exit_code, 0);
  const ProcessResult imported = Run({"patterns", "--import", file});
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr("imported 1 patterns of \"campaigns on "));
  ASSERT_THAT(fake_.asked().imports, SizeIs(1));
  EXPECT_EQ(fake_.asked().imports[0].patterns(0).rule(), "grid-too-small");
}

TEST_F(SteeringCommandsTest, TakeInNoPatternsOfAnotherVersion) {
  const ProcessResult newer = Run({"patterns", "--import", Write("newer", R"({"version": 2, "shape": "new"})")});
  EXPECT_EQ(newer.exit_code, 1);
  EXPECT_THAT(newer.err, HasSubstr("has version 2, this Pawl reads version 1"));
  EXPECT_EQ(Run({"patterns", "--import", Write("none", "{}")}).exit_code, 1);
  EXPECT_EQ(Run({"patterns", "--import", "/nonexistent"}).exit_code, 1);
  EXPECT_EQ(Run({"patterns", "--import", "x", "--export", "y"}).exit_code, 2);
  EXPECT_EQ(Run({"patterns", "--source", "x"}).exit_code, 2);
  EXPECT_EQ(Run({"patterns", "--export", "/nonexistent/file"}).exit_code, 1);
  EXPECT_THAT(fake_.asked().imports, IsEmpty());
}

}  // namespace
}  // namespace pawl
