// What every recording that ships with Pawl must hold.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "worker/replay/recording.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

fs::path Source() {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  return source == nullptr ? "." : source;
}

std::vector<fs::path> Files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(Source() / "profiles/recordings")) {
    if (absl::EndsWith(entry.path().string(), ".jsonl.gz")) files.push_back(entry.path());
  }
  return files;
}

fs::path BundleOf(const std::string& name) {
  const fs::path shipped = Source() / "kernels" / name;
  return fs::exists(shipped) ? shipped : Source() / "docs/tutorial" / name;
}

void ExpectHeader(const v1::RecordingHeader& header) {
  EXPECT_NE(header.gpu().name(), "");
  EXPECT_NE(header.gpu().driver_version(), "");
  EXPECT_NE(header.toolchain().nvrtc(), "");
  EXPECT_NE(header.toolchain().ncu(), "");
  absl::Time date;
  std::string error;
  EXPECT_TRUE(absl::ParseTime("%Y-%m-%dT%H:%M:%SZ", header.date(), &date, &error)) << header.date() << ": " << error;
}

void ExpectOfBundle(const Recording& recording, const v1::Bundle& bundle) {
  EXPECT_EQ(recording.header.bundle(), bundle.name());
  EXPECT_EQ(recording.header.bundle_hash(), BundleHash(bundle)) << "the bundle was changed after it was recorded";
  EXPECT_EQ(recording.header.size(), bundle.goal().size());
  EXPECT_EQ(VariantText(recording.header.start()), VariantText(StartVariant(bundle)));
  ASSERT_FALSE(recording.variants.empty());
  EXPECT_EQ(VariantText(recording.variants[0].variant()), VariantText(StartVariant(bundle)));
}

void ExpectWhole(const v1::RecordedVariant& record) {
  if (record.has_failure()) {
    EXPECT_NE(record.failure().check(), v1::CHECK_UNSPECIFIED);
    EXPECT_NE(record.failure().message(), "");
    return;
  }
  EXPECT_GE(record.pairs_size(), 7);
  EXPECT_GT(record.warm_us(), 0);
  EXPECT_GT(record.evidence().launches_size(), 0);
  if (record.evidence().partial()) {
    // A campaign profiles what is about to be kept.
    EXPECT_EQ(record.evidence().partial_reason(), "not profiled: only what is about to be kept is");
    double sum = 0;
    for (const v1::PairSample& pair : record.pairs()) sum += pair.log_ratio();
    EXPECT_LT(sum / record.pairs_size(), 0.015) << "it was faster, and has no counters";
    return;
  }
  for (const v1::LaunchEvidence& launch : record.evidence().launches()) {
    EXPECT_TRUE(launch.metrics().contains("duration_ns")) << launch.entry();
    EXPECT_GT(launch.metrics_size(), 30) << launch.entry();
    EXPECT_GT(launch.resources().registers(), 0) << launch.entry();
  }
}

class ShippedRecording : public testing::TestWithParam<fs::path> {};

TEST_P(ShippedRecording, IsWholeAndOfTheBundleThatShips) {
  const absl::StatusOr<Recording> recording = ReadRecording(GetParam());
  ASSERT_TRUE(recording.ok()) << recording.status();
  ExpectHeader(recording->header);
  const BundleReading reading = ReadBundle(BundleOf(recording->header.bundle()));
  ASSERT_TRUE(reading.problems.empty()) << FormatProblem(reading.problems[0]);
  ExpectOfBundle(*recording, reading.bundle);
  EXPECT_EQ(recording->header.planned(), recording->variants.size());
  for (const v1::RecordedVariant& record : recording->variants) {
    SCOPED_TRACE(VariantText(record.variant()));
    const absl::StatusOr<bool> allowed = IsAllowed(reading.bundle, record.variant());
    EXPECT_TRUE(allowed.ok() && *allowed) << allowed.status();
    ExpectWhole(record);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ShippedRecording, testing::ValuesIn(Files()), [](const auto& info) {
  const std::string name = info.param.filename().string();
  return name.substr(0, name.find('.'));
});

TEST(ShippedRecordings, AreThereForTheBundles) {
  std::set<std::string> names;
  for (const fs::path& file : Files()) names.insert(file.filename().string());
  for (const char* bundle : {"attention", "gemm", "reduce_sum", "rmsnorm", "softmax", "transpose"}) {
    EXPECT_TRUE(names.contains(std::string(bundle) + ".h200.jsonl.gz")) << bundle;
  }
}

TEST(ShippedRecordings, AreSmallTogether) {
  uintmax_t bytes = 0;
  for (const fs::path& file : Files()) bytes += fs::file_size(file);
  EXPECT_LT(bytes, 20'000'000);
}

}  // namespace
}  // namespace pawl
