#include "kernels/source_patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <utility>

#include "tests/instrumented.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

const char kSource[] = "a\nb\nc\nd\ne\nf\ng\nh\n";

std::string Patched(const std::string& source, const std::string& patch) {
  const absl::StatusOr<std::string> patched = ApplyPatch(source, patch, "kernel.cu");
  return patched.ok() ? *patched : "error: " + std::string(patched.status().message());
}

TEST(SourcePatchTest, AppliesWhatDiffWrites) {
  EXPECT_EQ(Patched(kSource,
                    "--- a/kernel.cu\t2026-11-15\n+++ b/kernel.cu\n@@ -2,3 +2,3 @@ some function\n b\n-c\n+C\n d\n"
                    "@@ -7,2 +7,3 @@\n g\n+G\n h\n"),
            "a\nb\nC\nd\ne\nf\ng\nG\nh\n");
  EXPECT_EQ(Patched(kSource, "@@ -1 +1 @@\n-a\n+A\n"), "A\nb\nc\nd\ne\nf\ng\nh\n");
  EXPECT_EQ(Patched(kSource, "@@ -8,0 +9,1 @@\n+i\n"), std::string(kSource) + "i\n");
  EXPECT_EQ(Patched(kSource, "@@ -0,0 +1,1 @@\n+first\n"), "first\n" + std::string(kSource));
  EXPECT_EQ(Patched("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+B\n"), "a\n\nB\n") << "a blank line may lose its blank";
}

TEST(SourcePatchTest, FindsAHunkThatHasMoved) {
  EXPECT_EQ(Patched("new\nnew\n" + std::string(kSource), "@@ -4,2 +4,1 @@\n d\n-e\n"),
            "new\nnew\na\nb\nc\nd\nf\ng\nh\n");
  EXPECT_EQ(Patched("x\ny\nx\ny\nx\ny\n", "@@ -3,2 +3,2 @@\n x\n-y\n+Y\n"), "x\ny\nx\nY\nx\ny\n") << "the nearest one";
}

TEST(SourcePatchTest, MindsTheEndOfTheFile) {
  EXPECT_EQ(Patched("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+B\n"), "a\nB\n");
  EXPECT_EQ(Patched("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n\\ No newline at end of file\n"), "a\nB");
}

TEST(SourcePatchTest, SaysWhatDoesNotFit) {
  EXPECT_THAT(Patched(kSource, "@@ -2,2 +2,2 @@\n b\n-x\n+C\n"),
              AllOf(HasSubstr("hunk 1"), HasSubstr("kernel.cu"), HasSubstr("line 2"), HasSubstr("pawl situation")));
  EXPECT_THAT(Patched(kSource, "hello\n"), HasSubstr("no hunk"));
  EXPECT_THAT(Patched(kSource, ""), HasSubstr("no hunk"));
  EXPECT_THAT(Patched(kSource, "@@ nonsense\n"), HasSubstr("line 1 of the patch"));
  EXPECT_THAT(Patched(kSource, "@@ -1,5 +1,5 @@\n a\n"), HasSubstr("ends before"));
  EXPECT_THAT(Patched(kSource, "@@ -1,2 +1,2 @@\n a\n*b\n"), HasSubstr("line 3 of the patch"));
  EXPECT_THAT(Patched(kSource, "@@ -1,1 +1,2 @@\n-a\n-b\n+A\n+B\n"), HasSubstr("more lines than it counts"));
  EXPECT_THAT(Patched(std::string(60'000, '\n'), "@@ -1 +1 @@\n-\n+A\n"), HasSubstr("more than 50000 lines"));
  EXPECT_THAT(Patched(kSource, "@@ -1 +1 @@\n-a\n+A\nand so on\n"), HasSubstr("expected the next hunk"));
  EXPECT_THAT(Patched(kSource, "@@ -99999999999999999999 +1 @@\n-a\n+A\n"), HasSubstr("line 1"));
}

TEST(SourcePatchTest, EditsTheBundlesSourceOnly) {
  EXPECT_THAT(Patched(kSource, "--- a/reference.cu\n+++ b/reference.cu\n@@ -1 +1 @@\n-a\n+A\n"),
              HasSubstr("only kernel.cu can be edited"));
  EXPECT_THAT(Patched(kSource, "--- /dev/null\n+++ b/kernel.cu\n@@ -0,0 +1 @@\n+A\n"), HasSubstr("/dev/null"));
  EXPECT_THAT(Patched(kSource,
                      "--- a/kernel.cu\n+++ b/kernel.cu\n@@ -1 +1 @@\n-a\n+A\n--- a/kernel.cu\n+++ b/kernel.cu\n"
                      "@@ -2 +2 @@\n-b\n+B\n"),
              HasSubstr("more than one file"));
}

// 100 KB against 50,000 lines, made to be looked for as long as may be. In processor time: others may be at work.
TEST(SourcePatchTest, TakesMillisecondsForAnyPatchOfAnySource) {
  std::string marked, far;  // each hunk fits, but 1,999 lines before the place that it names
  for (int i = 0; i < 16'666; ++i) marked += "\n\nL" + std::to_string(i) + "\n";
  for (int i = 0; far.size() < 100'000 - 50; ++i) {
    const std::string place = std::to_string(3 * i + 2000), name = std::to_string(i);
    far += "@@ -" + place + ",3 +" + place + ",3 @@\n \n \n-L" + name + "\n+M" + name + "\n";
  }
  const std::string blank(50'000, '\n');  // a hunk fits nearly everywhere
  std::string deep = "@@ -25000,33001 +25000,33001 @@\n";
  for (int i = 0; i < 33'000; ++i) deep += " \n";
  deep += "-x\n+y\n";
  for (const auto& [source, patch] : {std::pair{marked, far}, std::pair{blank, deep}}) {
    const std::clock_t begin = std::clock();
    const std::string patched = Patched(source, patch);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    EXPECT_LT(seconds, 0.05 * kSlowdown) << patched.substr(0, 100);
  }
}

TEST(SourcePatchTest, FindsManyHunksThatHaveMoved) {
  std::string source, patch, expected;
  for (int i = 0; i < 10'000; ++i) {
    source += "line " + std::to_string(i) + "\n";
    expected += "line " + std::to_string(i) + (i % 100 == 50 ? " changed\n" : "\n");
    if (i % 100 != 50) continue;
    const std::string line = "line " + std::to_string(i);
    patch +=
        "@@ -" + std::to_string(i + 1) + " +" + std::to_string(i + 1) + " @@\n-" + line + "\n+" + line + " changed\n";
  }
  std::string before;
  for (int i = 0; i < 1'500; ++i) before += "new " + std::to_string(i) + "\n";
  EXPECT_EQ(Patched(before + source, patch), before + expected);
}

TEST(SourcePatchTest, AppliesHunksInTheirOrderOnly) {
  EXPECT_THAT(Patched(kSource, "@@ -7 +7 @@\n-g\n+G\n@@ -2 +2 @@\n-b\n+B\n"), HasSubstr("hunk 2"));
}

}  // namespace
}  // namespace pawl
