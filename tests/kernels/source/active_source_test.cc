#include "kernels/source/active_source.h"

#include <gtest/gtest.h>

namespace pawl {
namespace {

// What of a source with A = 1 and B = 0 is left, without white space.
std::string Left(const std::string& source) {
  std::string left;
  for (const char c : ActiveSource(source, {{"A", 1}, {"B", 0}})) {
    if (c != ' ' && c != '\n') left += c;
  }
  return left;
}

TEST(ActiveSourceTest, LeavesOutWhatConditionsLeaveOut) {
  EXPECT_EQ(Left("x\n#if A\ny\n#endif\nz\n"), "xyz");
  EXPECT_EQ(Left("x\n#if B\ny\n#endif\nz\n"), "xz");
  EXPECT_EQ(Left("#if B\na\n#else\nb\n#endif\n"), "b");
  EXPECT_EQ(Left("#if B\na\n#elif A\nb\n#else\nc\n#endif\n"), "b");
  EXPECT_EQ(Left("#if A\na\n#elif A\nb\n#else\nc\n#endif\n"), "a");
  EXPECT_EQ(Left("  #  if B\na\n#endif"), "");
  EXPECT_EQ(Left("#ifdef A\na\n#else\nb\n#endif\n#ifndef A\nc\n#endif"), "a");
  EXPECT_EQ(Left("#if A\n#if B\na\n#endif\nb\n#endif\n"), "b");
  EXPECT_EQ(Left("#if B\n#if A\na\n#else\nb\n#endif\nc\n#endif\nd"), "d");
}

TEST(ActiveSourceTest, EvaluatesAsTheCompilerDoes) {
  for (const char* yes : {"1", "!B", "A == 1", "A != B", "B < A && A <= 1", "B || A", "A + A == 2", "2 * A - 1 > B",
                          "(A && !B) || B", "-A < 0", "!(A == B)", "1 >= A"}) {
    EXPECT_EQ(Left(std::string("#if ") + yes + "\nx\n#endif\n"), "x") << yes;
    EXPECT_EQ(Left(std::string("#if !(") + yes + ")\nx\n#endif\n"), "") << yes;
  }
}

TEST(ActiveSourceTest, KeepsWhatItCannotDecide) {
  // The condition stays too: what it mentions may matter.
  for (const char* unknown : {"SIZE_N > 3", "defined(A)", "defined A", "A / 2", "A % 2", "0x1", "1u", "A ? 1 : 0",
                              "F(A)", "A & 1", "A ==", "", "(A", "999999999999"}) {
    const std::string left = Left(std::string("#if ") + unknown + "\nx\n#else\ny\n#endif\n");
    EXPECT_NE(left.find("x"), std::string::npos) << unknown;
    EXPECT_NE(left.find("y"), std::string::npos) << unknown;
  }
  EXPECT_EQ(Left("#if SIZE_N\nx\n#endif"), "#ifSIZE_Nx");
  EXPECT_EQ(Left("#ifdef SIZE_N\nx\n#endif"), "#ifdefSIZE_Nx");
  EXPECT_EQ(Left("#if B && SIZE_N > 3\nx\n#endif"), "") << "0 whatever the size is";
  EXPECT_EQ(Left("#if A || SIZE_N > 3\nx\n#endif"), "x");
  EXPECT_EQ(Left("#define A 0\n#if A\nx\n#else\ny\n#endif"), "#defineA0#ifAxy") << "the source's own macro";
  EXPECT_EQ(Left("#undef B\n#if B\nx\n#endif"), "#undefB#ifBx");
}

TEST(ActiveSourceTest, IsNotFooledByCommentsAndTexts) {
  EXPECT_EQ(Left("/*\n#if B\n*/ x // SIZE_N\n/*\n#endif\n*/"), "x");
  EXPECT_EQ(Left("// \\\n#if B\nx"), "x") << "the comment goes on in the next line";
  EXPECT_EQ(Left("#if \\\nB\nx\n#endif"), "");
  EXPECT_EQ(Left("char* s = \"/*\";\n#if B\nx\n#endif"), "char*s=\"/*\";");
  EXPECT_EQ(Left("char c = '\"';\n#if B\nx\n#endif"), "charc='\"';");
  EXPECT_EQ(Left("int n = 1'000; // '\n#if B\nx\n#endif"), "intn=1'000;");
  const std::string raw = "auto s = R\"(\n#if B\n)\";\nx\n";
  EXPECT_EQ(ActiveSource(raw, {{"B", 0}}), raw);
  EXPECT_EQ(ActiveSource("%:if B\nx\n", {{"B", 0}}), "%:if B\nx\n");
}

TEST(ActiveSourceTest, StandsBrokenSources) {
  for (const char* source : {"#endif\nx", "#else\nx", "#if B", "#", "/*", "\"", "#if ((((((", "\\"}) {
    (void)ActiveSource(source, {{"B", 0}});
  }
  EXPECT_EQ(Left("#endif\nx"), "#endifx");
  EXPECT_EQ(Left(std::string("#if ") + std::string(5000, '(') + "\nx\n#endif").back(), 'x');
}

}  // namespace
}  // namespace pawl
