#include "worker/build/source_paths.h"

#include <gtest/gtest.h>

namespace pawl {
namespace {

// The only outside path of a source, as "line directive path".
std::string Only(const std::string& source) {
  const std::vector<OutsidePath> found = OutsidePaths(source);
  if (found.size() != 1) return std::to_string(found.size()) + " found";
  return std::to_string(found[0].line) + " " + found[0].directive + " " + found[0].path;
}

TEST(SourcePaths, LeavesHonestSourcesAlone) {
  EXPECT_TRUE(OutsidePaths("#include <cuda_fp16.h>\n#include \"mma.h\"\n#if __has_include(<cuda/std/array>)\n#endif\n"
                           "// #include \"/etc/passwd\"\n/* #include \"/etc/passwd\"\n*/ int include = 3 / 2;\n"
                           "const char* url = \"http://host/../x\"; // ..\n")
                  .empty());
}

TEST(SourcePaths, FindsAbsoluteAndParentPaths) {
  EXPECT_EQ(Only("int x;\n#include \"/etc/passwd\"\n"), "2 include /etc/passwd");
  EXPECT_EQ(Only("#include </etc/passwd>"), "1 include /etc/passwd");
  EXPECT_EQ(Only("#include \"../../secret.h\""), "1 include ../../secret.h");
  EXPECT_EQ(Only("  #  include_next \"/etc/passwd\""), "1 include_next /etc/passwd");
  EXPECT_EQ(Only("#embed \"/etc/passwd\""), "1 embed /etc/passwd");
  EXPECT_EQ(Only("#if __has_include ( \"/etc/shadow\" )"), "1 __has_include /etc/shadow");
}

TEST(SourcePaths, SeesThroughDisguises) {
  EXPECT_EQ(Only("#inc\\\nlude \"/etc/passwd\""), "1 include /etc/passwd");
  EXPECT_EQ(Only("/* a\n b */ # /* c */ include /* d */ \"/etc/passwd\""), "1 include /etc/passwd");
  EXPECT_EQ(Only("%: include \"/etc/passwd\""), "1 include /etc/passwd");
  EXPECT_EQ(Only("#define P \"/etc/passwd\"\n#include P"), "2 include ");
}

TEST(SourcePaths, FindsFilesThatAssemblyTakesIn) {
  EXPECT_EQ(Only("__global__ void k() {\n  asm(\".incbin \\\"/etc/hostname\\\";\");\n}"), "2 .incbin /etc/hostname");
  EXPECT_EQ(Only("asm(\".incbin \\\"local\\\"\");"), "1 .incbin local");
}

TEST(SourcePathsTest, ListsWhatIsIncluded) {
  const std::vector<Include> includes = QuotedIncludes(
      "// #include \"no.h\"\n#include \"a.h\"\n  # include <b/c.h> // why\n#define X \"d.h\"\n#include X\n/*\n"
      "#include \"no.h\" */\n#inc\\\nlude \"e.h\"\n");
  ASSERT_EQ(includes.size(), 3u);
  EXPECT_EQ(includes[0].path, "a.h");
  EXPECT_EQ(includes[0].line, 2);
  EXPECT_EQ(includes[1].path, "b/c.h");
  EXPECT_EQ(includes[2].path, "e.h");
}

TEST(SourcePathsTest, KnowsAFileThatMayBeIncludedTwice) {
  EXPECT_TRUE(IsGuarded("// words\n#pragma once\n"));
  EXPECT_TRUE(IsGuarded("/* words */ #pragma once"));
  EXPECT_TRUE(IsGuarded("\n#ifndef A_H\n#define A_H\n#endif\n"));
  EXPECT_FALSE(IsGuarded("#include \"a.h\"\n"));
  EXPECT_FALSE(IsGuarded("// #pragma once\n"));
  EXPECT_FALSE(IsGuarded(""));
}

}  // namespace
}  // namespace pawl
