// What the decision tree makes of evidence that was measured on a real GPU, from recording to finding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "kernels/space.h"
#include "profiles/diagnosis.h"
#include "worker/replay/recording.h"

namespace pawl {
namespace {

// The rules that fire on the start variant of a shipped recording, in their order.
std::vector<std::string> FindingsOfStart(const std::string& bundle) {
  const std::filesystem::path folder = std::filesystem::path(getenv("PAWL_SOURCE_DIR")) / "profiles/recordings";
  absl::StatusOr<Recording> recording = ReadRecording(folder / (bundle + ".h200.jsonl.gz"));
  if (!recording.ok()) return {std::string(recording.status().message())};
  std::vector<std::string> rules;
  for (const v1::RecordedVariant& variant : recording->variants) {
    if (VariantText(variant.variant()) != VariantText(recording->header.start())) continue;
    for (const v1::Finding& finding : DecisionTree::Default().Diagnose(variant.evidence(), recording->header.gpu())) {
      rules.push_back(finding.rule());
    }
  }
  return rules;
}

TEST(RecordedFindings, SeeThatAttentionStartsWithTwoBlocks) {
  const std::vector<std::string> rules = FindingsOfStart("attention");
  ASSERT_FALSE(rules.empty());
  EXPECT_EQ(rules[0], "grid-too-small");
}

TEST(RecordedFindings, SeeTheBankConflictsOfATransposeWithoutPadding) {
  EXPECT_THAT(FindingsOfStart("transpose"), testing::Contains("bank-conflicts"));
}

TEST(RecordedFindings, SeeTheNarrowLoadsOfScalarFirstDrafts) {
  for (const char* bundle : {"reduce_sum", "softmax", "rmsnorm"}) {
    EXPECT_THAT(FindingsOfStart(bundle), testing::Contains("narrow-loads")) << bundle;
  }
}

}  // namespace
}  // namespace pawl
