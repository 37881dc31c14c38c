#include "db/pattern_rows.h"

#include <gtest/gtest.h>

#include <string>

#include "google/protobuf/util/message_differencer.h"
#include "tests/db/made_writes.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using google::protobuf::util::MessageDifferencer;

v1::Pattern MakeLesson(const std::string& bundle, double gain) {
  v1::Pattern lesson;
  lesson.set_bundle(bundle);
  lesson.set_rule("grid-too-small");
  lesson.set_architecture("sm_90");
  lesson.mutable_effect()->set_resource(v1::RESOURCE_REUSE);
  lesson.mutable_effect()->set_direction(v1::DIRECTION_LESS);
  lesson.set_tried(1);
  lesson.set_kept(gain > 1);
  lesson.set_timed(gain > 0);
  lesson.set_median_gain(gain);
  lesson.set_predictions(1);
  lesson.set_came_true(gain > 1);
  return lesson;
}

class PatternRowsTest : public ::testing::Test {
 protected:
  PatternRowsTest()
      : folder_("pawl-patterns-"), file_(folder_.path() / "pawl.db"), store_(OpenStore({.file = file_})) {}

  void Reopen() {
    store_.reset();
    store_ = OpenStore({.file = file_});
  }
  absl::Status Commit(Writes writes) { return store_->Commit(&writes); }

  TemporaryFolder folder_;
  std::filesystem::path file_;
  std::unique_ptr<Store> store_;
};

TEST_F(PatternRowsTest, AddsUpLessonsOfTheSameGainOnly) {
  EXPECT_TRUE(store_->Lessons()->empty());
  const double odd = 1.0 + 1.0 / 3;
  ASSERT_EQ(Commit({.lessons = {MakeLesson("b", odd), MakeLesson("b", 0.9), MakeLesson("a", 0)}}), absl::OkStatus());
  ASSERT_EQ(Commit({.lessons = {MakeLesson("b", odd)}}), absl::OkStatus());
  Reopen();
  ASSERT_EQ(Commit({.lessons = {MakeLesson("b", odd), MakeLesson("b", 1.25)}}), absl::OkStatus());
  const auto lessons = store_->Lessons().value();
  ASSERT_EQ(lessons.size(), 4u);
  EXPECT_TRUE(MessageDifferencer::Equals(lessons[0], MakeLesson("a", 0)));
  EXPECT_TRUE(MessageDifferencer::Equals(lessons[1], MakeLesson("b", 0.9)));
  EXPECT_TRUE(MessageDifferencer::Equals(lessons[2], MakeLesson("b", 1.25)));
  v1::Pattern thrice = MakeLesson("b", odd);
  thrice.set_tried(3);
  thrice.set_kept(3);
  thrice.set_timed(3);
  thrice.set_predictions(3);
  thrice.set_came_true(3);
  EXPECT_TRUE(MessageDifferencer::Equals(lessons[3], thrice)) << lessons[3].ShortDebugString();
}

TEST_F(PatternRowsTest, TeachesNothingInATransactionThatFails) {
  ASSERT_EQ(Commit(MakeWrites(MakeJudged(1, MakeIteration(1, 3, v1::KEPT)))), absl::OkStatus());
  Writes again = MakeWrites(MakeJudged(1, MakeIteration(1, 3, v1::KEPT)));
  again.lessons = {MakeLesson("a", 2)};
  EXPECT_EQ(store_->Commit(&again).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(store_->Lessons()->empty());
}

TEST_F(PatternRowsTest, ReplacesAFileOfTheSameSource) {
  v1::PatternFile ann, bob;
  ann.set_version(1);
  ann.set_source("ann's");
  *ann.add_patterns() = MakeLesson("a", 2);
  bob.set_source("bob's");
  ASSERT_EQ(Commit({.pattern_files = {bob, ann}}), absl::OkStatus());
  ann.mutable_patterns(0)->set_median_gain(3);
  ASSERT_EQ(Commit({.pattern_files = {ann}}), absl::OkStatus());
  Reopen();
  const auto files = store_->PatternFiles().value();
  ASSERT_EQ(files.size(), 2u);
  EXPECT_TRUE(MessageDifferencer::Equals(files[0], ann));
  EXPECT_TRUE(MessageDifferencer::Equals(files[1], bob));
}

}  // namespace
}  // namespace pawl
