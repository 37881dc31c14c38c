#include "kernels/source/source_patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <set>
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
  EXPECT_THAT(
      Patched(kSource, "@@ -2,2 +2,2 @@\n b\n-x\n+C\n"),
      HasSubstr("hunk 1 of the patch does not fit kernel.cu: at line 3 expected \"x\", found \"c\"; make the patch "
                "against the best variant's source, as pawl situation shows it"));
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

TEST(SourcePatchTest, ShowsBlanksAndLineEndsThatDiffer) {
  EXPECT_THAT(Patched("a\n  b;\r\nc\n", "@@ -1,3 +1,3 @@\n a\n-  b;\n+  B;\n c\n"),
              HasSubstr(R"(at line 2 expected "  b;\n", found "  b;\r\n")"));
  EXPECT_THAT(Patched("a\n\tb;\nc\n", "@@ -1,3 +1,3 @@\n a\n-    b;\n+    B;\n c\n"),
              HasSubstr(R"(at line 2 expected "    b;\n", found "\tb;\n")"));
  EXPECT_THAT(Patched("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n"), HasSubstr(R"(at line 2 expected "b\n", found "b")"));
  EXPECT_THAT(Patched("a\nb\n", "@@ -1,3 +1,3 @@\n a\n b\n-c\n+C\n"),
              HasSubstr("at line 3 expected \"c\", found the end of the file"));
}

TEST(SourcePatchTest, SaysWhatDiffersWhereMostOfTheHunkIs) {
  EXPECT_THAT(Patched("x\ny\nz\n" + std::string(kSource), "@@ -2,5 +2,5 @@\n b\n c\n-D\n+4\n e\n f\n"),
              HasSubstr("at line 7 expected \"D\", found \"d\""));
}

std::string Rebased(const std::string& base, const std::string& now, const std::string& patch) {
  SourceFiles files = {{"kernel.cu", now}};
  const absl::Status status = RebasePatch(patch, {{"kernel.cu", base}}, &files);
  return status.ok() ? files[0].second
                     : std::string(absl::StatusCodeToString(status.code())) + ": " + std::string(status.message());
}

TEST(SourcePatchTest, IsAppliedToALaterTextWhereTheLinesAreStillThere) {
  // The context of the hunk has changed, the lines that it touches have not.
  const std::string patch = "@@ -2,5 +2,5 @@\n b\n c\n-d\n+D\n e\n f\n";
  EXPECT_EQ(Rebased(kSource, "a\nB\nc\nd\ne\nF\ng\nh\n", patch), "a\nB\nc\nD\ne\nF\ng\nh\n");
  EXPECT_EQ(Rebased(kSource, "new\n1\n2\n" + std::string(kSource) + "end\n", patch),
            "new\n1\n2\na\nb\nc\nD\ne\nf\ng\nh\nend\n");
  // Several hunks, one of them at the end.
  EXPECT_EQ(Rebased(kSource, "a\nb\nc\nX\nd\ne\nf\ng\nh\n", "@@ -1,2 +1,3 @@\n a\n+A\n b\n@@ -8 +9,2 @@\n h\n+i\n"),
            "a\nA\nb\nc\nX\nd\ne\nf\ng\nh\ni\n");
  // Lines that are there more than once go by their neighbours.
  EXPECT_EQ(Rebased("{\n}\nx\n{\n}\ny\n{\n}\n", "{\n}\nnew\nx\n{\n}\ny\n{\n}\n", "@@ -4,2 +4,3 @@\n {\n+inner\n }\n"),
            "{\n}\nnew\nx\n{\ninner\n}\ny\n{\n}\n");
}

TEST(SourcePatchTest, IsNotAppliedToALaterTextThatChangedTheSameLines) {
  const std::string patch = "@@ -2,5 +2,5 @@\n b\n c\n-d\n+D\n e\n f\n";
  EXPECT_EQ(Rebased(kSource, "a\nb\nc\n4\ne\nf\ng\nh\n", patch),
            "ABORTED: hunk 1 of the patch does not fit kernel.cu: at line 4 expected \"d\", found \"4\"");
  EXPECT_THAT(Rebased(kSource, "a\nb\nc\nd\nmore\ne\nf\ng\nh\n", patch), HasSubstr("ABORTED: hunk 1"));
  EXPECT_THAT(Rebased(kSource, "", patch), HasSubstr("ABORTED: hunk 1"));
  EXPECT_THAT(Rebased("other\n", kSource, patch), HasSubstr("INVALID_ARGUMENT: hunk 1 of the patch does not fit"));
}

TEST(SourcePatchTest, WritesTheDiffThatItApplies) {
  EXPECT_EQ(UnifiedDiff("kernel.cu", kSource, "a\nb\nC\nd\ne\nf\ng\nh\n"),
            "--- a/kernel.cu\n+++ b/kernel.cu\n@@ -1,6 +1,6 @@\n a\n b\n-c\n+C\n d\n e\n f\n");
  EXPECT_EQ(UnifiedDiff("kernel.cu", kSource, kSource), "");
  const std::string braces = "{\n}\nx\n{\n}\ny\n{\n}\n";
  std::string many;
  for (int i = 0; i < 40; ++i) many += "line " + std::to_string(i) + "\n";
  std::string other = many;
  other.replace(other.find("line 3\n"), 7, "");
  other.replace(other.find("line 20\n"), 8, "twenty\nand more\n");
  const std::string texts[] = {kSource, "",   "a\nb", "x\n" + std::string(kSource) + "y", braces, "{\nz\n}\n" + braces,
                               many,    other};
  for (const std::string& from : texts) {
    for (const std::string& to : texts) {
      if (from != to)
        EXPECT_EQ(Patched(from, UnifiedDiff("kernel.cu", from, to)), to) << UnifiedDiff("kernel.cu", from, to);
    }
  }
}

TEST(SourcePatchTest, ComparesFilesByTheirPaths) {
  const SourceFiles from = {{"a.cu", "1\n"}, {"same.cuh", "s\n"}, {"kernel.toml", "k\n"}};
  const SourceFiles to = {{"b.cu", "2\n"}, {"kernel.toml", "K\n"}, {"same.cuh", "s\n"}};
  EXPECT_EQ(DiffOfFiles(from, to),
            "diff --git a/a.cu b/a.cu\ndeleted file mode 100644\n--- a/a.cu\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-1\n"
            "--- a/kernel.toml\n+++ b/kernel.toml\n@@ -1,1 +1,1 @@\n-k\n+K\n"
            "diff --git a/b.cu b/b.cu\nnew file mode 100644\n--- /dev/null\n+++ b/b.cu\n@@ -0,0 +1,1 @@\n+2\n");
  EXPECT_EQ(DiffOfFiles(from, from), "");
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

// The path of the file that the patch edits, of those with the same text.
std::string EditedOf(const std::vector<std::string>& paths, const std::string& before, const std::string& after,
                     const std::set<std::string>& taken = {}) {
  SourceFiles files;
  for (const std::string& path : paths) files.emplace_back(path, kSource);
  const std::string patch = "--- " + before + "\n+++ " + after + "\n@@ -1 +1 @@\n-a\n+A\n";
  if (const absl::Status status = ApplyPatch(patch, &files, taken); !status.ok()) return std::string(status.message());
  for (const auto& [path, text] : files) {
    if (text != kSource) return path;
  }
  return "";
}

TEST(SourcePatchTest, EditsTheFileWhosePathAgreesMost) {
  const std::vector<std::string> two = {"util.cuh", "v2/util.cuh"};
  EXPECT_EQ(EditedOf(two, "old/v2/util.cuh", "new/v2/util.cuh"), "v2/util.cuh");
  EXPECT_EQ(EditedOf(two, "old/util.cuh", "new/util.cuh"), "util.cuh");
  EXPECT_EQ(EditedOf(two, "a/v2/util.cuh", "b/v2/util.cuh"), "v2/util.cuh");
  EXPECT_EQ(EditedOf(two, "a/util.cuh", "b/util.cuh"), "util.cuh");
  EXPECT_EQ(EditedOf({"v2/util.cuh"}, "util.cuh", "util.cuh"), "v2/util.cuh");
  EXPECT_EQ(EditedOf({"v1/util.cuh", "v2/util.cuh"}, "a/util.cuh", "b/util.cuh"),
            "line 1 of the patch: it edits util.cuh, which may be v1/util.cuh or v2/util.cuh: write the whole path");
  // Folders may be called as git's prefixes are.
  EXPECT_EQ(EditedOf({"util.cuh", "b/util.cuh"}, "a/b/util.cuh", "b/b/util.cuh"), "b/util.cuh");
  EXPECT_EQ(EditedOf({"util.cuh", "a/util.cuh"}, "a/util.cuh", "a/util.cuh"), "a/util.cuh");
  EXPECT_THAT(EditedOf(two, "old/util.cuh", "new/v2/util.cuh"), HasSubstr("renames a file"));
  EXPECT_EQ(EditedOf(two, "a/reference/util.cuh", "b/reference/util.cuh", {"reference/util.cuh"}),
            "line 1 of the patch: reference/util.cuh belongs to the contract, which no edit may change");
  EXPECT_EQ(EditedOf(two, "a/util.cuh", "b/util.cuh", {"reference/util.cuh", "util.cuh"}), "util.cuh");
}

// Each beside a part that fits: what is not applied is not left out without a word.
TEST(SourcePatchTest, RefusesPartsThatAreNoEditWithTheLine) {
  const std::string edit = "--- a/kernel.cu\n+++ b/kernel.cu\n@@ -1 +1 @@\n-a\n+A\n";
  const auto refused = [&](const std::string& part, bool first = true) {
    SourceFiles files = {{"kernel.cu", kSource}, {"other.cuh", "x\n"}};
    const absl::Status status = ApplyPatch(first ? part + edit : edit + part, &files);
    return status.ok() ? "applied: " + files[0].second : std::string(status.message());
  };
  const std::string git = "diff --git a/other.cuh b/other.cuh\n";
  EXPECT_THAT(refused(git + "index 1..2 100644\nGIT binary patch\nliteral 1\nIcm\n\n", false),
              HasSubstr("line 8 of the patch: it has a binary part"));
  EXPECT_THAT(refused(git + "Binary files a/other.cuh and b/other.cuh differ\n"), HasSubstr("line 2 of the patch"));
  EXPECT_THAT(refused("Only in new: more.cuh\n"), HasSubstr("line 1 of the patch: it lacks the text of a file"));
  EXPECT_THAT(refused(git + "deleted file mode 100644\nindex 1..0\n", false),
              HasSubstr("line 7 of the patch: it removes a file"));
  EXPECT_THAT(refused(git + "similarity index 100%\nrename from other.cuh\nrename to another.cuh\n", false),
              HasSubstr("line 8 of the patch: it renames a file"));
  EXPECT_THAT(refused(git + "similarity index 100%\ncopy from other.cuh\ncopy to another.cuh\n", false),
              HasSubstr("line 8 of the patch: it copies a file"));
  EXPECT_THAT(refused("diff --git a/kernel.cu b/kernel.cu\nold mode 100644\nnew mode 100755\n"),
              HasSubstr("line 2 of the patch: it changes the mode of a file"));
  EXPECT_THAT(refused(git + "new file mode 100644\nindex 0..1\n", false),
              HasSubstr("line 7 of the patch: it makes an empty file"));
  EXPECT_THAT(refused(git + "new file mode 100644\n" + "diff --git a/kernel.cu b/kernel.cu\n"),
              HasSubstr("line 2 of the patch: it makes an empty file"));
  EXPECT_THAT(refused("--- a/other.cuh\n+++ b/other.cuh\n"), HasSubstr("line 1 of the patch: it has no hunk of other"));
  EXPECT_EQ(refused("Only what the finding asks for.\nrename from there to here\n"),
            "applied: A\nb\nc\nd\ne\nf\ng\nh\n")
      << "a message before the patch";
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
