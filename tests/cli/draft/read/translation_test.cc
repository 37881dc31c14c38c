#include "cli/draft/read/translation.h"

#include <gtest/gtest.h>

#include "cli/draft/read/constants.h"
#include "cli/draft/read/cpp_expression.h"

namespace pawl {
namespace {

// Names are sizes but for those that begin with _.
std::string Translated(const std::string& cpp) {
  const std::vector<CppToken> tokens = CppTokens(cpp);
  const std::optional<CppExpression> expression = ParseCppExpression(tokens, 0, tokens.size());
  if (!expression) return "no expression";
  std::string missing;
  const SourceModel model;
  const std::optional<std::string> text = Translate(
      *expression, model,
      [](const CppExpression& leaf) -> std::optional<std::string> {
        if (leaf.kind != CppExpression::Kind::kName || leaf.text[0] == '_') return std::nullopt;
        return leaf.text;
      },
      &missing);
  return text.value_or("not " + missing);
}

TEST(Translate, KnowsTheIdiomsOfADivisionThatRoundsUp) {
  EXPECT_EQ(Translated("(n + 255) / 256"), "ceil_div(n, 256)");
  EXPECT_EQ(Translated("(n + b - 1) / b"), "ceil_div(n, b)");
  EXPECT_EQ(Translated("(n - 1 + b) / b"), "ceil_div(n, b)");
  EXPECT_EQ(Translated("(b - 1 + rows * cols) / b"), "ceil_div(rows * cols, b)");
  EXPECT_EQ(Translated("1 + (n - 1) / b"), "ceil_div(n, b)");
  EXPECT_EQ(Translated("ceil(n / 256.0)"), "ceil_div(n, 256)");
  EXPECT_EQ(Translated("std::ceil((float)n / b)"), "ceil_div(n, b)");
  EXPECT_EQ(Translated("div_up(n, b)"), "ceil_div(n, b)");
}

TEST(Translate, DividesIntegersAsCppDoes) {
  EXPECT_EQ(Translated("n / 2"), "floor(n / 2)");
  EXPECT_EQ(Translated("n >> 5"), "floor(n / 32)");
  EXPECT_EQ(Translated("n << 2"), "n * 4");
  EXPECT_EQ(Translated("1.0f / d"), "1 / d");
  EXPECT_EQ(Translated("16 / 3"), "5");
}

TEST(Translate, KeepsBracketsThatAreNeeded) {
  EXPECT_EQ(Translated("(a + b) * c"), "(a + b) * c");
  EXPECT_EQ(Translated("a - (b - c)"), "a - (b - c)");
  EXPECT_EQ(Translated("a * b + c"), "a * b + c");
  EXPECT_EQ(Translated("a < b ? a : b + 1"), "a < b ? a : b + 1");
}

TEST(Translate, SeesThroughCastsAndSizeof) {
  EXPECT_EQ(Translated("static_cast<int>(n) * sizeof(float)"), "n * 4");
  EXPECT_EQ(Translated("(size_t)n * 2 * sizeof(double)"), "n * 2 * 8");
  EXPECT_EQ(Translated("std::min<int>(n, 1024)"), "min(n, 1024)");
  EXPECT_EQ(Translated("rsqrtf(d)"), "1 / sqrt(d)");
}

TEST(Translate, NamesWhatHasNoMeaning) {
  EXPECT_EQ(Translated("n + _x"), "not _x");
  EXPECT_EQ(Translated("x.size(0) * n"), "not x.size(0)");
}

TEST(ParseCppExpression, TellsTemplateArgumentsFromComparisons) {
  EXPECT_EQ(Translated("a < b && c > d"), "a < b && c > d");
  EXPECT_EQ(Translated("max<long>(a, b)"), "max(a, b)");
}

TEST(ParseCppExpression, RefusesWhatIsNone) {
  for (const char* text :
       {"", "(", "a +", "a b", ")", "[", "a[", "f(", "? :", "a ? b", "{", "-", "<", "sizeof", "a.", "::"}) {
    const std::vector<CppToken> tokens = CppTokens(text);
    const std::optional<CppExpression> expression = ParseCppExpression(tokens, 0, tokens.size());
    if (expression) CppText(*expression);
  }
  std::string deep(5000, '(');
  const std::vector<CppToken> tokens = CppTokens(deep);
  EXPECT_FALSE(ParseCppExpression(tokens, 0, tokens.size()).has_value());
  const std::string minus = std::string(100'000, '-') + "a";
  const std::vector<CppToken> many = CppTokens(minus);
  EXPECT_FALSE(ParseCppExpression(many, 0, many.size()).has_value());
}

TEST(ConstantValue, ComputesWithoutOverflowAndDivisionByZero) {
  const auto value = [](const std::string& text) {
    const std::vector<CppToken> tokens = CppTokens(text);
    return ConstantValue(*ParseCppExpression(tokens, 0, tokens.size()), {{"A", 8}});
  };
  EXPECT_EQ(value("1 << 20"), 1 << 20);
  EXPECT_EQ(value("A * 32 - 1"), 255);
  EXPECT_EQ(value("A > 4 ? 1 : 2"), 1);
  EXPECT_EQ(value("1 / 0"), std::nullopt);
  EXPECT_EQ(value("9223372036854775807 + 1"), std::nullopt);
  EXPECT_EQ(value("B"), std::nullopt);
  EXPECT_EQ(value("1 << 70"), std::nullopt);
}

}  // namespace
}  // namespace pawl
