#include "kernels/implementation.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "kernels/bundle_reader.h"
#include "tests/kernels/bundle_folder.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

v1::Bundle Graph() { return ReadBundle(BundleFolder::Golden("graph_steps")).bundle; }

TEST(ImplementationTest, IsTheSourceItselfWithoutFiles) {
  v1::Bundle bundle = ReadBundle(BundleFolder::Golden()).bundle;
  EXPECT_EQ(ImplementationText(bundle), bundle.source().text());
  ASSERT_TRUE(SetImplementation("other\n", &bundle).ok());
  EXPECT_EQ(bundle.source().text(), "other\n");
}

TEST(ImplementationTest, HoldsEveryFileWhateverIsInIt) {
  v1::Bundle bundle = Graph();
  bundle.mutable_files(0)->set_text("==== steps.cu, 1 lines ====\nno line end");
  bundle.mutable_files(1)->set_text("");
  const std::string text = ImplementationText(bundle);
  EXPECT_THAT(text, HasSubstr("==== include/detail/load.cuh, 2 lines, no line end ====\n"));
  v1::Bundle other = Graph();
  ASSERT_TRUE(SetImplementation(text, &other).ok());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(other, bundle));
  for (const std::string& bad : {std::string(), std::string("x"), text + "x", text.substr(0, text.size() - 1)}) {
    EXPECT_FALSE(SetImplementation(bad, &other).ok());
  }
}

TEST(ImplementationTest, IsPatchedInSeveralFilesAtOnce) {
  v1::Bundle bundle = Graph();
  const absl::StatusOr<std::string> patched = PatchImplementation(
      bundle, ImplementationText(bundle),
      "diff --git a/steps.cu b/steps.cu\n--- a/steps.cu\n+++ b/steps.cu\n@@ -1,1 +1,2 @@\n+// first\n"
      " #include <cooperative_groups.h>\n"
      "diff --git a/include/detail/load.cuh b/include/detail/load.cuh\n--- a/include/detail/load.cuh\n"
      "+++ b/include/detail/load.cuh\n@@ -1,1 +1,2 @@\n #pragma once\n+// second\n");
  ASSERT_TRUE(patched.ok()) << patched.status();
  ASSERT_TRUE(SetImplementation(*patched, &bundle).ok());
  EXPECT_TRUE(bundle.source().text().starts_with("// first\n"));
  EXPECT_TRUE(bundle.files(0).text().starts_with("#pragma once\n// second\n"));
  EXPECT_EQ(bundle.files(1).text(), Graph().files(1).text());
}

TEST(ImplementationTest, SaysWhatCanNotBeEdited) {
  const v1::Bundle bundle = Graph();
  const auto complaint = [&](const std::string& patch) {
    return std::string(PatchImplementation(bundle, ImplementationText(bundle), patch).status().message());
  };
  EXPECT_THAT(
      complaint("--- a/problem.py\n+++ b/problem.py\n@@ -1 +1 @@\n-a\n+b\n"),
      HasSubstr("it edits problem.py; only steps.cu, include/detail/load.cuh, include/graph.cuh can be edited"));
  EXPECT_THAT(complaint("--- a/steps.cu\n+++ b/include/graph.cuh\n@@ -1 +1 @@\n-a\n+b\n"), HasSubstr("renames"));
  EXPECT_THAT(complaint("--- a/include/graph.cuh\n+++ b/include/graph.cuh\n@@ -1 +1 @@\n-nothing\n+b\n"),
              HasSubstr("hunk 1 of the patch does not fit include/graph.cuh"));
  v1::Bundle cubin = bundle;
  cubin.mutable_source()->set_binary("x");
  EXPECT_THAT(std::string(PatchImplementation(cubin, "", "x").status().message()), HasSubstr("it can't be edited"));
}

}  // namespace
}  // namespace pawl
