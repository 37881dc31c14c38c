#include "profiles/pattern_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "google/protobuf/util/message_differencer.h"
#include "profiles/diagnosis.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kGood[] = R"({"version":1,"source":"my GPU","patterns":[
{"rule":"grid-too-small","effect":{"resource":"RESOURCE_PARALLELISM","direction":"DIRECTION_MORE"},
"architecture":"sm_90","bundle":"attention","tried":4,"kept":2,"medianGain":1.25,"timed":3,"predictions":2,"cameTrue":1},
{"rule":"tail-effect","effect":{"resource":"RESOURCE_REUSE","direction":"DIRECTION_LESS"},
"architecture":"sm_90","bundle":"attention","tried":1}]})";

std::string With(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

std::string ErrorOf(const std::string& json) {
  const auto file = ParsePatternFile(json, "mine.json");
  if (file.ok()) return "no error";
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(file.status().message());
}

TEST(PatternFile, ReadsWhatItWrites) {
  const auto file = ParsePatternFile(kGood, "mine.json");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->patterns_size(), 2);
  EXPECT_EQ(file->source(), "my GPU");
  EXPECT_EQ(file->patterns(0).effect().resource(), v1::RESOURCE_PARALLELISM);
  EXPECT_EQ(file->patterns(0).median_gain(), 1.25);
  EXPECT_EQ(file->patterns(1).kept(), 0);
  const auto again = ParsePatternFile(PatternFileText(*file), "again");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*again, *file));
  v1::PatternFile empty;
  empty.set_version(1);
  empty.set_source("\"quoted\"");
  EXPECT_EQ(ParsePatternFile(PatternFileText(empty), "empty")->source(), empty.source());
}

TEST(PatternFile, WritesAPatternALine) {
  const std::string text = PatternFileText(*ParsePatternFile(kGood, "mine.json"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
}

TEST(PatternFile, OfAnotherVersionIsRefusedBeforeItsContentIsLookedAt) {
  EXPECT_THAT(ErrorOf(With("\"version\":1", "\"version\":2,\"new\":{}")),
              AllOf(HasSubstr("mine.json: has version 2"), HasSubstr("reads version 1")));
  EXPECT_THAT(ErrorOf(With("\"version\":1,", "")), HasSubstr("mine.json: has no \"version\""));
  EXPECT_THAT(ErrorOf(With("\"version\":1", "\"version\":\"one\"")),
              AllOf(HasSubstr("mine.json: "), HasSubstr("version"), HasSubstr("one")));
}

TEST(PatternFile, ThatIsNoneIsRefusedByName) {
  for (const char* text : {"", "{", "[]", "null", "7", "version = 1", "\xff\xfe"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("mine.json: ")) << text;
  }
  EXPECT_THAT(ErrorOf(With("\"kept\"", "\"kpet\"")), AllOf(HasSubstr("mine.json: "), HasSubstr("kpet")));
  EXPECT_THAT(ErrorOf(With("\"my GPU\"", "\"\"")), HasSubstr("mine.json: \"source\""));
}

TEST(PatternFile, WithAnUnknownResourceOrDirectionIsRefusedWithItsEntry) {
  EXPECT_THAT(ErrorOf(With("RESOURCE_REUSE", "RESOURCE_LUCK")),
              AllOf(HasSubstr("mine.json: "), HasSubstr("patterns[1].effect.resource"), HasSubstr("RESOURCE_LUCK")));
  EXPECT_THAT(ErrorOf(With("DIRECTION_LESS", "SIDEWAYS")),
              AllOf(HasSubstr("patterns[1].effect.direction"), HasSubstr("SIDEWAYS")));
  EXPECT_THAT(ErrorOf(With("\"RESOURCE_REUSE\"", "77")),
              HasSubstr("mine.json: patterns[1] (rule tail-effect): \"effect\" has no known \"resource\""));
  EXPECT_THAT(ErrorOf(With("DIRECTION_LESS", "DIRECTION_UNSPECIFIED")), HasSubstr("no known \"direction\""));
}

TEST(PatternFile, WithFiguresThatCannotBeIsRefusedWithItsEntry) {
  const std::string entry = "mine.json: patterns[0] (rule grid-too-small): ";
  EXPECT_THAT(ErrorOf(With("\"kept\":2", "\"kept\":5")), HasSubstr(entry + "\"kept\" is 5, which can't be of 4 tried"));
  EXPECT_THAT(ErrorOf(With("\"kept\":2", "\"kept\":-1")), HasSubstr(entry + "\"kept\" is -1"));
  EXPECT_THAT(ErrorOf(With("\"timed\":3", "\"timed\":5")), HasSubstr(entry + "\"timed\" is 5"));
  EXPECT_THAT(ErrorOf(With("\"predictions\":2", "\"predictions\":7")), HasSubstr(entry + "\"predictions\" is 7"));
  EXPECT_THAT(ErrorOf(With("\"cameTrue\":1", "\"cameTrue\":3")), HasSubstr(entry + "\"cameTrue\" is 3"));
  EXPECT_THAT(ErrorOf(With("\"tried\":4", "\"tried\":0")), HasSubstr(entry + "\"tried\""));
  EXPECT_THAT(ErrorOf(With("1.25", "\"NaN\"")), HasSubstr(entry + "\"medianGain\" is nan"));
  EXPECT_THAT(ErrorOf(With("1.25", "\"Infinity\"")), HasSubstr(entry + "\"medianGain\" is inf"));
  EXPECT_THAT(ErrorOf(With("1.25", "-1")), HasSubstr(entry + "\"medianGain\" is -1"));
  EXPECT_THAT(ErrorOf(With("\"timed\":3,", "")),
              HasSubstr(entry + "\"medianGain\" is 1.25, which can't be of 0 timed"));
  EXPECT_THAT(ErrorOf(With("sm_90", "Hopper")), HasSubstr(entry + "\"architecture\""));
  EXPECT_THAT(ErrorOf(With("grid-too-small", "")), HasSubstr("mine.json: patterns[0] (rule ): \"rule\""));
  EXPECT_THAT(ErrorOf(With("1.25", "1e999")), HasSubstr("mine.json: "));
}

TEST(PatternFile, TellsEveryMistakeUpToALimit) {
  v1::PatternFile file = *ParsePatternFile(kGood, "mine.json");
  file.mutable_patterns(0)->set_kept(9);
  file.mutable_patterns(1)->clear_rule();
  const std::string both(CheckPatternFile(file, "x").message());
  EXPECT_THAT(both, AllOf(HasSubstr("x: patterns[0]"), HasSubstr("\nx: patterns[1]")));
  for (int i = 0; i < 100; ++i) file.add_patterns();
  const std::string many(CheckPatternFile(file, "x").message());
  EXPECT_THAT(many, AllOf(HasSubstr("and more"), Not(HasSubstr("patterns[50]"))));
}

TEST(PatternFile, WithTheSamePatternTwiceIsRefused) {
  v1::PatternFile file = *ParsePatternFile(kGood, "mine.json");
  *file.add_patterns() = file.patterns(0);
  EXPECT_THAT(std::string(CheckPatternFile(file, "x").message()),
              HasSubstr("patterns[2] (rule grid-too-small): appears twice"));
}

TEST(ShippedPatterns, AreOfSingleBundlesAndOfRulesThatThereAre) {
  ASSERT_FALSE(ShippedPatterns().empty());
  for (const v1::PatternFile& file : ShippedPatterns()) {
    EXPECT_THAT(file.source(), HasSubstr("record"));
    EXPECT_GT(file.patterns_size(), 0);
    for (const v1::Pattern& pattern : file.patterns()) {
      EXPECT_NE(pattern.bundle(), "") << "so that one can be left out";
      const auto& rules = DecisionTree::Default().rules();
      EXPECT_TRUE(std::any_of(rules.begin(), rules.end(), [&](const auto& rule) {
        return rule.name == pattern.rule();
      })) << pattern.rule();
    }
  }
}

}  // namespace
}  // namespace pawl
