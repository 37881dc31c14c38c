#include "base/expression/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace pawl {
namespace {

using ::testing::HasSubstr;

double Value(const std::string& text, const std::map<std::string, double>& values = {}) {
  absl::StatusOr<double> result = Evaluate(text, values);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.value_or(std::numeric_limits<double>::quiet_NaN());
}

std::string Complaint(const std::string& text, const std::map<std::string, double>& values = {}) {
  return std::string(Evaluate(text, values).status().message());
}

TEST(ExpressionTest, ComputesWhatBundlesWrite) {
  const std::map<std::string, double> values = {{"S", 130}, {"TILE_M", 64}, {"D", 64}, {"MMA", 0}, {"W", 4}};
  EXPECT_EQ(Value("ceil_div(S, TILE_M)", values), 3);
  EXPECT_EQ(Value("ceil_div(128, TILE_M)", values), 2);
  EXPECT_EQ(Value("1 / sqrt(D)", values), 0.125);
  EXPECT_EQ(Value("S % TILE_M", values), 2);
  EXPECT_EQ(Value("2 * S % 7", values), 1);
  EXPECT_EQ(Value("min(S, TILE_M, 3) + max(1, 2) + log2(8)", values), 8);
  EXPECT_EQ(Value("MMA == 0 || TILE_M >= 16 * W", values), 1);
  EXPECT_EQ(Value("MMA != 0 && TILE_M >= 16 * W", values), 0);
  EXPECT_EQ(Value("MMA ? 7 : W", values), 4);
  EXPECT_EQ(Value("  -S + 1 ", values), -129);
}

TEST(ExpressionTest, RaisesToAPower) {
  EXPECT_EQ(Value("2 ^ 10"), 1024);
  EXPECT_EQ(Value("2 ^ (L - 1) * 3", {{"L", 4}}), 24);
  EXPECT_EQ(Value("0 - 2 ^ 2"), -4);
  EXPECT_EQ(Value("pow(2, log2(N))", {{"N", 64}}), 64);
  EXPECT_THAT(Complaint("10 ^ 1000"), HasSubstr("infinite"));
  EXPECT_THAT(Complaint("pow(2)"), HasSubstr("is not an expression"));
  EXPECT_FALSE(IsName("pow"));
}

TEST(ExpressionTest, NotBindsTighterThanComparisonsAndAndTighterThanOr) {
  EXPECT_EQ(Value("!0"), 1);
  EXPECT_EQ(Value("!2"), 0);
  EXPECT_EQ(Value("!(1 > 2)"), 1);
  EXPECT_EQ(Value("!0 == 1"), 1);
  EXPECT_EQ(Value("1 || 0 && 0"), 1);
}

TEST(ExpressionTest, NamesEveryUnknownNameAndWhatThereIs) {
  EXPECT_EQ(Complaint("TILE_N * S + X", {{"S", 1}, {"TILE_M", 2}}),
            "unknown names TILE_N, X in \"TILE_N * S + X\"; there are S, TILE_M");
  EXPECT_THAT(Complaint("Q"), HasSubstr("unknown name Q"));
}

TEST(ExpressionTest, RefusesWhatIsNoExpression) {
  EXPECT_THAT(Complaint(""), HasSubstr("empty"));
  EXPECT_THAT(Complaint("  "), HasSubstr("empty"));
  EXPECT_THAT(Complaint("1 +"), HasSubstr("is not an expression"));
  EXPECT_THAT(Complaint("(1"), HasSubstr("is not an expression"));
  EXPECT_THAT(Complaint("min()"), HasSubstr("is not an expression"));
  EXPECT_THAT(Complaint("1, 2"), HasSubstr("more than one"));
  EXPECT_THAT(Complaint("S = 4", {{"S", 1}}), HasSubstr("write =="));
  EXPECT_THAT(Complaint("\"text\""), HasSubstr("unexpected"));
  EXPECT_THAT(Complaint("caca(1)"), HasSubstr("unknown function caca"));
  EXPECT_THAT(Complaint("1 \xc3\xa9"),
              HasSubstr("unexpected '\xc3\xa9' at position 3 of \"1 \xc3\xa9\"; names and operators are ASCII"));
  EXPECT_THAT(Complaint("\u00d7 2"), HasSubstr("unexpected '\u00d7' at position 1 of \"\u00d7 2\"; write *"));
  EXPECT_THAT(Complaint("n \u00d7 2"), HasSubstr("unexpected '\u00d7' at position 3"));
  EXPECT_THAT(Complaint("n\u2264 2"), HasSubstr("write <="));
  EXPECT_THAT(Complaint("\u00d7\xff"), HasSubstr("of \"\u00d7?\"")) << "messages are UTF-8";
  EXPECT_THAT(Complaint("1\xff"), HasSubstr("unexpected byte 0xff at position 2"));
  EXPECT_THAT(Complaint("1\xc3"), HasSubstr("unexpected byte 0xc3"));
  EXPECT_THAT(Complaint("1\xed\xa0\x80"), HasSubstr("unexpected byte 0xed")) << "half a surrogate";
  EXPECT_THAT(Complaint(std::string("1\0+1", 4)), HasSubstr("unexpected character"));
  EXPECT_THAT(Complaint(std::string(100000, '(')), HasSubstr("100000 characters"));
}

TEST(ExpressionTest, RefusesResultsThatAreNotFinite) {
  EXPECT_THAT(Complaint("1 / (S - 1)", {{"S", 1}}), HasSubstr("infinite"));
  EXPECT_THAT(Complaint("S % 0", {{"S", 1}}), HasSubstr("not a number"));
  EXPECT_THAT(Complaint("sqrt(0 - 1)"), HasSubstr("not a number"));
}

TEST(ExpressionTest, CountsOnlyInWholeNumbers) {
  EXPECT_EQ(*EvaluateInteger("6 / 2", {}), 3);
  EXPECT_EQ(*EvaluateInteger("0 - 6 / 2", {}), -3);
  EXPECT_THAT(std::string(EvaluateInteger("5 / 2", {}).status().message()), HasSubstr("2.5, not a whole number"));
  EXPECT_EQ(EvaluateInteger("1e30", {}).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(*EvaluateInteger("9007199254740992", {}), 9007199254740992);
  EXPECT_FALSE(EvaluateInteger("9007199254740992 * 2", {}).ok());
  EXPECT_FALSE(EvaluateInteger("0 / 0", {}).ok());
}

TEST(ExpressionTest, ListsItsNames) {
  EXPECT_EQ(*NamesIn("a * b + min(a, c_1)"), (std::set<std::string>{"a", "b", "c_1"}));
  EXPECT_EQ(*NamesIn("1 / 0 + 1"), std::set<std::string>{});
  EXPECT_FALSE(NamesIn("a +").ok());
}

TEST(ExpressionTest, IsParsedOnceAndEvaluatedOften) {
  absl::StatusOr<Expression> expression = Expression::Parse("b - a");
  ASSERT_TRUE(expression.ok());
  Expression moved = std::move(*expression);
  EXPECT_EQ(moved.names(), (std::vector<std::string>{"a", "b"}));
  for (double a : {1.0, 2.0, 3.0}) EXPECT_EQ(*moved.Evaluate(std::vector<double>{a, 10}), 10 - a);
  EXPECT_FALSE(moved.Evaluate(std::vector<double>{1}).ok());
}

TEST(ExpressionTest, KnowsWhatCanBeAName) {
  EXPECT_TRUE(IsName("TILE_M"));
  EXPECT_TRUE(IsName("_x1"));
  EXPECT_FALSE(IsName(""));
  EXPECT_FALSE(IsName("1x"));
  EXPECT_FALSE(IsName("a-b"));
  EXPECT_FALSE(IsName("min"));
  EXPECT_FALSE(IsName(std::string(65, 'a')));
}

TEST(ExpressionTest, SurvivesRandomText) {
  const std::vector<std::string> pieces = {
      "1", "a",  "b",  "(",         ")",    "+", "-", "*",  "/",   "%", "<", "<=", "==", "!=", "!", "?",   ":",
      ",", "&&", "||", "ceil_div(", "min(", ".", "e", "0x", "1e9", "_", " ", "&",  "|",  "=",  ">", "max", "sqrt("};
  std::mt19937 random(7);
  int good = 0;
  for (int i = 0; i < 50000; ++i) {
    std::string text;
    for (int n = random() % 12; n >= 0; --n) text += pieces[random() % pieces.size()];
    good += Evaluate(text, {{"a", 3}, {"b", 0}}).ok();
  }
  EXPECT_GT(good, 300);
}

}  // namespace
}  // namespace pawl
