#include "kernels/source/cpp_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace pawl {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Texts(std::string_view source) {
  std::vector<std::string> texts;
  for (const CppToken& token : CppTokens(source)) texts.emplace_back(token.text);
  return texts;
}

TEST(CppTokens, LeavesCommentsOutAndKeepsStringsWhole) {
  EXPECT_THAT(Texts("int a; // {\n/* } */ f(\"}\\\"\", '{');"),
              ElementsAre("int", "a", ";", "f", "(", "\"}\\\"\"", ",", "'{'", ")", ";"));
}

TEST(CppTokens, TakesARawStringToItsOwnEnd) {
  EXPECT_THAT(Texts("x = R\"py(a \" )\" b)py\";"), ElementsAre("x", "=", "R\"py(a \" )\" b)py\"", ";"));
}

TEST(CppTokens, TellsALaunchFromNestedTemplateArguments) {
  EXPECT_THAT(Texts("k<A<B>><<<g, b>>>(x)"),
              ElementsAre("k", "<", "A", "<", "B", ">", ">", "<<<", "g", ",", "b", ">", ">", ">", "(", "x", ")"));
}

TEST(CppTokens, MakesADirectiveOneTokenWithItsContinuations) {
  const std::vector<CppToken> tokens = CppTokens("#define A(x) \\\n  f(x)\nint b;");
  ASSERT_EQ(tokens.size(), 4u);
  EXPECT_EQ(tokens[0].kind, CppToken::Kind::kDirective);
  EXPECT_EQ(tokens[0].text, "#define A(x) \\\n  f(x)");
  EXPECT_EQ(tokens[1].line, 3);
}

TEST(CppTokens, ReadsNumbersWithSuffixesExponentsAndSeparators) {
  EXPECT_THAT(Texts("1e-5f+0x1fu 1'000 .5"), ElementsAre("1e-5f", "+", "0x1fu", "1'000", ".5"));
}

TEST(CppTokens, EndsAnUnfinishedStringWithItsLine) { EXPECT_THAT(Texts("\"abc\nint"), ElementsAre("\"abc", "int")); }

TEST(ClosingBracket, CountsOnlyTheFirstBranchOfAnIf) {
  const std::vector<CppToken> tokens = CppTokens("f() {\n#if A\nif (a) {\n#else\nif (b) {\n#endif\n}\n}\ng");
  EXPECT_EQ(ClosingBracket(tokens, 3), tokens.size() - 2);
}

TEST(ClosingBracket, AnswersTheEndWhereNothingCloses) {
  const std::vector<CppToken> tokens = CppTokens("f(a, [b");
  EXPECT_EQ(ClosingBracket(tokens, 1), tokens.size());
}

}  // namespace
}  // namespace pawl
