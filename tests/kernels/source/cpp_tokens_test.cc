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

TEST(ClosingBrackets, SaysOfAllWhatClosingBracketSaysOfOne) {
  const std::string both =
      "f(a[1], (2)) { g(); }\nvoid k(\n#if A\nint x) {\n#else\nfloat x) { h();\n#endif\n ({ }) }\n"
      "#ifdef B\nint m() { return 1; }\n#elif C\nint m() { return (2); }\n#endif\nvoid last() {} ] ) open( {";
  const std::vector<CppToken> tokens = CppTokens(both);
  const std::vector<size_t> closing = ClosingBrackets(tokens);
  ASSERT_EQ(closing.size(), tokens.size());
  const std::vector<bool> first = InFirstBranch(tokens);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool opens = tokens[i].Is("(") || tokens[i].Is("[") || tokens[i].Is("{");
    if (!first[i] || tokens[i].line == 4) continue;  // ClosingBracket begins within the #if and sees its #else, too
    EXPECT_EQ(closing[i], opens ? ClosingBracket(tokens, i) : tokens.size()) << i << " " << tokens[i].text;
  }
}

TEST(ClosingBrackets, KnowsTheBracketsOfLaterBranches) {
  const std::vector<CppToken> tokens = CppTokens("#if A\nf(\n#else\ng() { }\n#endif\n)");
  // #if f ( #else g ( ) { } #endif )
  EXPECT_EQ(ClosingBrackets(tokens)[2], 10u);
  EXPECT_EQ(ClosingBrackets(tokens)[5], 6u);
  EXPECT_EQ(ClosingBrackets(tokens)[7], 8u);
  // #if void k ( ) { #else void k ( ) { #endif }
  const std::vector<CppToken> twice = CppTokens("#if A\nvoid k() {\n#else\nvoid k() {\n#endif\n}");
  EXPECT_EQ(ClosingBrackets(twice)[5], 13u);
  EXPECT_EQ(ClosingBrackets(twice)[11], twice.size());
}

}  // namespace
}  // namespace pawl
