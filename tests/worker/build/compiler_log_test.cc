#include "worker/build/compiler_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/names/utf8.h"
#include "kernels/space.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

// Texts are what the tools of CUDA 13.0 and gcc 12 print.
TEST(CompilerLog, FindsTheFirstErrorBehindWarningsAndQuotesTheLine) {
  const std::string source = "#define N 4\nint unused;\nx[0] = nope;\n";
  const auto error = FirstError(
      "k.cu(2): warning #177-D: variable \"unused\" was declared but never referenced\n\n"
      "k.cu(3): error: identifier \"nope\" is undefined\n    x[0] = nope;\n           ^\n\n"
      "k.cu(9): error: expected a \";\"\n\n2 errors detected in the compilation of \"k.cu\".\n");
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->file, "k.cu");
  EXPECT_EQ(error->line, 3);
  EXPECT_EQ(ErrorText(*error, "k.cu", source), "k.cu(3): error: identifier \"nope\" is undefined\n  3 | x[0] = nope;");
}

TEST(CompilerLog, ReadsThePreprocessorsErrors) {
  const auto error = FirstError("k.cu:1:10: fatal error: /etc/nothere: No such file or directory\n    1 | #include\n");
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->file, "k.cu");
  EXPECT_EQ(error->line, 1);
  EXPECT_EQ(UnopenedFile(*error), "/etc/nothere");
}

TEST(CompilerLog, ReadsTheFrontEndsCatastrophes) {
  const auto error = FirstError("k.cu(7): catastrophic error: cannot open source file \"/etc/passwd\"\n");
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->line, 7);
  EXPECT_EQ(UnopenedFile(*error), "/etc/passwd");
}

TEST(CompilerLog, ReadsErrorsOfToolsThatKnowNoSource) {
  EXPECT_EQ(
      FirstError("ptxas error   : Entry function 'k' uses too much shared data (0x61a80 bytes, 0xc000 max)\n")->text,
      "ptxas: Entry function 'k' uses too much shared data (0x61a80 bytes, 0xc000 max)");
  EXPECT_EQ(FirstError("nvcc error   : 'cicc' died due to signal 9 (Kill signal)\n")->text,
            "nvcc: 'cicc' died due to signal 9 (Kill signal)");
  EXPECT_EQ(
      FirstError("ptxas /tmp/tmpxft_1.ptx, line 21; fatal   : Parsing error near '.incbin': syntax error\n")->text,
      "ptxas: Parsing error near '.incbin': syntax error");
}

TEST(CompilerLog, SaysWhatToDoWhereNvrtcMeetsHostCode) {
  const auto error = FirstError(
      "cub/device/device_reduce.cuh(12): error: A function without execution space annotations "
      "(__host__/__device__/__global__) is considered a host function, and host functions are not allowed in JIT mode. "
      "Consider using -default-device flag to process unannotated functions as __device__ functions in JIT mode\n");
  ASSERT_TRUE(error.has_value());
  EXPECT_NE(NvrtcHint(*error).find("`compiler = \"nvcc\"` in kernel.toml"), std::string::npos);
  EXPECT_NE(NvrtcHint({"k.cu", 3, "namespace \"std\" has no member \"valarray\""}).find("`compiler = \"nvcc\"`"),
            std::string::npos);
  EXPECT_EQ(NvrtcHint({"k.cu", 3, "identifier \"nope\" is undefined"}), "");
}

TEST(CompilerLog, FindsNoErrorWhereThereIsNone) {
  EXPECT_FALSE(FirstError("").has_value());
  EXPECT_FALSE(FirstError("k.cu(2): warning #177-D: variable \"x\" was declared but never referenced\n").has_value());
}

TEST(CompilerLog, QuotesNoLineOfAnotherFile) {
  EXPECT_EQ(ErrorText({"mma.hpp", 1, "bad"}, "k.cu", "int x;\n"), "mma.hpp(1): error: bad");
  EXPECT_EQ(ErrorText({"k.cu", 99, "bad"}, "k.cu", "int x;\n"), "k.cu(99): error: bad");
}

TEST(Utf8, ReplacesOnlyWhatIsInvalid) {
  EXPECT_EQ(ValidUtf8("plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(ValidUtf8("a\xe9z"), "a?z");
  EXPECT_EQ(ValidUtf8("cut \xe2\x82"), "cut ??");
  EXPECT_EQ(ValidUtf8("\xed\xa0\x80\xc0\xaf"), "?????");
}

std::string Hint(const std::string& source, int line, const std::string& option = "",
                 const std::string& name = "TILE") {
  v1::Bundle bundle;
  v1::Variable& variable = *bundle.add_variables();
  variable.set_name(name);
  variable.add_values(16);
  variable.set_start(16);
  variable.set_option(option);
  return MacroHint(bundle, StartVariant(bundle), {{"k.cu", &source}}, {"k.cu", line, "expected an identifier"});
}

TEST(MacroHint, NamesADeclarationInTheLineOfTheError) {
  EXPECT_EQ(Hint("void k() {\n  const int TILE = 4;\n}\n", 2),
            "; TILE is a variable of kernel.toml, so the compiler reads 16 for it, and line 2 declares another TILE: "
            "give the variable a name of its own, and use that in the entry and the launches");
  EXPECT_THAT(Hint("void k(int TILE) {}\n", 1), HasSubstr("line 1"));
  EXPECT_EQ(Hint("int TILE;\nvoid k() { x = TILE + nope; }\n", 2), "") << "the error is about something else";
  EXPECT_EQ(Hint("int f() { return TILE; }\n", 1), "");
  EXPECT_EQ(Hint("int x = a TILE b;\n", 1), "");
  EXPECT_EQ(Hint("const int TILE = 4;\n", 7), "");
}

TEST(MacroHint, NamesAParameterOfATemplate) {
  const std::string source = "template <typename T, int TILE = 4>\nstruct S { T x[TILE]; };\n";
  EXPECT_THAT(Hint(source, 1), HasSubstr("line 1 declares"));
  EXPECT_THAT(Hint(source, 2), HasSubstr("line 1 declares"));
  EXPECT_THAT(Hint("template <typename TILE> struct S { TILE x; };\n", 1), HasSubstr("line 1 declares"));
}

TEST(MacroHint, IsOnlyOfVariablesThatAreMacros) {
  EXPECT_EQ(Hint("int TILE = 4;\n", 1, "-maxrregcount={}"), "");
  EXPECT_EQ(Hint("int SIZE_N = 4;\n", 1), "");
}

TEST(NamespaceHint, LooksAtTheFirstBranchOnly) {
  const auto hint = [](const std::string& source, const std::string& entry) {
    return NamespaceHint({{"k.cu", &source}}, entry);
  };
  const std::string kernel = "template <typename T> __global__ void norm(T* x) {}\n";
  EXPECT_EQ(hint("namespace a {\n" + kernel + "}\n", "norm<float>"),
            "; k.cu has it in a namespace: entry = \"a::norm<float>\"");
  EXPECT_EQ(hint("namespace a {\n" + kernel + "}\n", "a::norm<float>"), "");
  EXPECT_EQ(hint("#ifdef B\nnamespace b {\n#else\nnamespace c {\n#endif\n" + kernel + "}\n", "norm<float>"),
            "; k.cu has it in a namespace: entry = \"b::norm<float>\"");
  EXPECT_EQ(hint(kernel, "norm<float>"), "");
}

}  // namespace
}  // namespace pawl
