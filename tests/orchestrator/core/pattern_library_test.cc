#include "orchestrator/core/pattern_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "google/protobuf/util/message_differencer.h"
#include "tests/db/made_writes.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

v1::Effect MoreOf(v1::Resource resource) {
  v1::Effect effect;
  effect.set_resource(resource);
  effect.set_direction(v1::DIRECTION_MORE);
  return effect;
}

v1::Pattern PatternOf(const std::string& bundle, int tried, double median, const std::string& rule = "grid") {
  v1::Pattern pattern;
  pattern.set_rule(rule);
  *pattern.mutable_effect() = MoreOf(v1::RESOURCE_PARALLELISM);
  pattern.set_architecture("sm_90");
  pattern.set_bundle(bundle);
  pattern.set_tried(tried);
  pattern.set_timed(tried);
  pattern.set_median_gain(median);
  return pattern;
}

v1::PatternFile FileOf(const std::string& source, std::initializer_list<v1::Pattern> patterns) {
  v1::PatternFile file;
  file.set_version(1);
  file.set_source(source);
  for (const v1::Pattern& pattern : patterns) *file.add_patterns() = pattern;
  return file;
}

v1::Bundle BundleOf(const std::string& name) {
  v1::Bundle bundle;
  bundle.set_name(name);
  *bundle.add_variables()->add_affects() = MoreOf(v1::RESOURCE_PARALLELISM);
  return bundle;
}

class PatternLibraryTest : public ::testing::Test {
 protected:
  PatternLibraryTest()
      : folder_("pawl-library-"), store_(OpenStore({.file = folder_.path() / "pawl.db"})), library_({}) {}

  // Judges iterations as the orchestrator does.
  void Judge(const std::string& bundle, int number, v1::Verdict verdict, double speedup,
             const std::string& rule = "grid") {
    v1::Iteration iteration = MakeIteration(1, number, verdict);
    iteration.mutable_finding()->set_rule(rule);
    *iteration.mutable_effect() = MoreOf(number % 2 ? v1::RESOURCE_PARALLELISM : v1::RESOURCE_REUSE);
    iteration.set_speedup_over_parent(speedup);
    iteration.mutable_prediction()->set_outcome(speedup > 1 ? v1::Prediction::CAME_TRUE : v1::Prediction::FAILED);
    Writes writes = MakeWrites(MakeJudged(1, iteration));
    library_.Judged(iteration, bundle, "sm_90", &writes);
    ASSERT_EQ(store_->Commit(&writes), absl::OkStatus());
    last_ = iteration;
  }

  absl::Status Import(const v1::PatternFile& file) {
    v1::ImportPatternsRequest request;
    *request.mutable_file() = file;
    Writes writes;
    const auto imported = library_.Import(request, &writes);
    if (!imported.ok()) {
      EXPECT_TRUE(writes.pattern_files.empty());
      return imported.status();
    }
    EXPECT_EQ(imported->imported(), file.patterns_size());
    return store_->Commit(&writes);
  }

  static v1::ListPatternsResponse List(const PatternLibrary& library, bool by_bundle) {
    v1::ListPatternsRequest request;
    request.set_by_bundle(by_bundle);
    return library.List(request);
  }

  void ExpectTheSameAfterARestart(const std::vector<v1::PatternFile>& shipped = {}) {
    PatternLibrary again(shipped);
    ASSERT_EQ(again.Load(*store_), absl::OkStatus());
    for (const bool by_bundle : {false, true}) {
      const v1::ListPatternsResponse now = List(library_, by_bundle), then = List(again, by_bundle);
      EXPECT_GT(now.patterns_size(), 0);
      EXPECT_TRUE(MessageDifferencer::Equals(now, then)) << now.ShortDebugString() << "\n" << then.ShortDebugString();
    }
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
  PatternLibrary library_;
  v1::Iteration last_;  // that was judged
};

TEST_F(PatternLibraryTest, KnowsAfterARestartExactlyWhatItKnewBefore) {
  for (int i = 1; i < 200; ++i) {
    const v1::Verdict verdict = i % 5 == 0 ? v1::REJECTED : i % 3 == 0 ? v1::KEPT : v1::REVERTED;
    Judge(i % 4 ? "attention" : "softmax", i, verdict, 0.5 + 0.0123 * i, "rule-" + std::to_string(i % 3));
  }
  ExpectTheSameAfterARestart();
  ASSERT_EQ(Import(FileOf("ann's", {PatternOf("attention", 7, 1.1, "rule-0"), PatternOf("", 3, 1.3, "rule-1")})),
            absl::OkStatus());
  ExpectTheSameAfterARestart();
}

TEST_F(PatternLibraryTest, ForgetsWhatWasNotCommittedWhenItIsLoadedAgain) {
  Judge("attention", 1, v1::KEPT, 1.5);
  v1::Iteration lost = MakeIteration(1, 2, v1::KEPT);
  lost.mutable_finding()->set_rule("grid");
  *lost.mutable_effect() = MoreOf(v1::RESOURCE_PARALLELISM);
  Writes writes;
  library_.Judged(lost, "attention", "sm_90", &writes);
  EXPECT_EQ(List(library_, false).patterns(0).tried(), 2);
  ASSERT_EQ(library_.Load(*store_), absl::OkStatus());
  EXPECT_EQ(List(library_, false).patterns(0).tried(), 1);
}

TEST_F(PatternLibraryTest, UnlearnsThatAnIterationWasKeptWhenItIsTakenBack) {
  for (const int number : {1, 3}) Judge("attention", number, v1::KEPT, 1.5);
  Writes writes;
  library_.TakenBack(last_, "attention", "sm_90", &writes);
  ASSERT_EQ(store_->Commit(&writes), absl::OkStatus());
  ASSERT_EQ(List(library_, false).patterns_size(), 1);
  EXPECT_EQ(List(library_, false).patterns(0).tried(), 2);
  EXPECT_EQ(List(library_, false).patterns(0).kept(), 1);
  ExpectTheSameAfterARestart();
}

TEST_F(PatternLibraryTest, LearnsNothingFromAnIterationThatServedNoFinding) {
  Writes writes;
  library_.Judged(MakeIteration(1, 1, v1::KEPT), "attention", "sm_90", &writes);
  EXPECT_TRUE(writes.lessons.empty());
  EXPECT_EQ(List(library_, true).patterns_size(), 0);
}

TEST_F(PatternLibraryTest, AddsUpWhatItsCampaignsTaughtWhatWasImportedAndWhatShips) {
  const std::vector<v1::PatternFile> shipped = {
      FileOf("shipped", {PatternOf("softmax", 10, 2), PatternOf("gemm", 6, 1)})};
  library_ = PatternLibrary(shipped);
  for (int i = 1; i <= 5; i += 2) Judge("attention", i, v1::KEPT, 1.5);
  ASSERT_EQ(Import(FileOf("ann's", {PatternOf("attention", 4, 1.1)})), absl::OkStatus());
  const v1::ListPatternsResponse over_all = List(library_, false);
  ASSERT_EQ(over_all.patterns_size(), 1);
  EXPECT_EQ(over_all.patterns(0).tried(), 23);
  EXPECT_EQ(over_all.patterns(0).bundle(), "");
  const v1::ListPatternsResponse by_bundle = List(library_, true);
  ASSERT_EQ(by_bundle.patterns_size(), 4);
  EXPECT_EQ(by_bundle.patterns(0).tried(), 23) << "the most tried first";
  EXPECT_EQ(by_bundle.patterns(1).bundle(), "softmax");
  EXPECT_EQ(by_bundle.patterns(2).bundle(), "attention");
  EXPECT_EQ(by_bundle.patterns(2).tried(), 7);
  ExpectTheSameAfterARestart(shipped);
}

TEST_F(PatternLibraryTest, ReplacesWhatCameFromTheSameSource) {
  const std::vector<v1::PatternFile> shipped = {FileOf("shipped", {PatternOf("softmax", 10, 2)})};
  library_ = PatternLibrary(shipped);
  ASSERT_EQ(Import(FileOf("ann's", {PatternOf("attention", 4, 1.1)})), absl::OkStatus());
  ASSERT_EQ(Import(FileOf("ann's", {PatternOf("attention", 6, 1.1)})), absl::OkStatus());
  EXPECT_EQ(List(library_, false).patterns(0).tried(), 16);
  ASSERT_EQ(Import(FileOf("shipped", {PatternOf("softmax", 11, 2)})), absl::OkStatus());
  EXPECT_EQ(List(library_, false).patterns(0).tried(), 17) << "a newer one of what ships";
  ExpectTheSameAfterARestart(shipped);
}

TEST_F(PatternLibraryTest, CountsAnExportedListOnce) {
  Judge("attention", 1, v1::KEPT, 1.5);
  Judge("softmax", 3, v1::KEPT, 1.5);
  v1::PatternFile file = FileOf("exported", {});
  *file.mutable_patterns() = List(library_, true).patterns();
  ASSERT_EQ(file.patterns_size(), 3);
  library_ = PatternLibrary({});
  ASSERT_EQ(Import(file), absl::OkStatus());
  EXPECT_EQ(List(library_, false).patterns(0).tried(), 2);
}

TEST_F(PatternLibraryTest, ImportsNothingThatItHandedOutItself) {
  Judge("attention", 1, v1::KEPT, 1.5);
  v1::ListPatternsRequest request;
  request.set_own(true);
  v1::PatternFile mine = FileOf("mine", {});
  *mine.mutable_patterns() = library_.List(request).patterns();
  const auto tried = [&] { return List(library_, false).patterns(0).tried(); };
  const auto import = [&](const v1::PatternFile& file) {
    v1::ImportPatternsRequest import;
    *import.mutable_file() = file;
    Writes writes;
    const int imported = library_.Import(import, &writes)->imported();
    EXPECT_EQ(writes.pattern_files.size(), imported > 0 ? 1u : 0u);
    EXPECT_EQ(store_->Commit(&writes), absl::OkStatus());
    return imported;
  };
  EXPECT_EQ(import(mine), 0) << "it is what this database knows";
  EXPECT_EQ(tried(), 1);

  Writes writes;
  library_.HandOut(library_.List(request), &writes);
  ASSERT_EQ(writes.pattern_exports.size(), 1u);
  ASSERT_EQ(store_->Commit(&writes), absl::OkStatus());
  library_.HandOut(library_.List(request), &writes);
  EXPECT_EQ(writes.pattern_exports.size(), 1u) << "once is enough";
  Judge("attention", 3, v1::REVERTED, 0.9);
  library_ = PatternLibrary({});
  ASSERT_EQ(library_.Load(*store_), absl::OkStatus());
  EXPECT_EQ(import(mine), 0) << "it is what this database knew";
  EXPECT_EQ(tried(), 2);
  mine.mutable_patterns(0)->set_kept(0);
  EXPECT_EQ(import(mine), 1) << "somebody else's";
  EXPECT_EQ(tried(), 3);
}

TEST_F(PatternLibraryTest, ListsItsOwnWithoutWhatShipsOrWasImportedSoThatItCountsOnceElsewhere) {
  const std::vector<v1::PatternFile> shipped = {FileOf("shipped", {PatternOf("softmax", 10, 2)})};
  library_ = PatternLibrary(shipped);
  ASSERT_EQ(Import(FileOf("ann's", {PatternOf("attention", 4, 1.1)})), absl::OkStatus());
  v1::ListPatternsRequest request;
  request.set_own(true);
  EXPECT_EQ(library_.List(request).patterns_size(), 0);
  Judge("attention", 1, v1::KEPT, 1.5);
  ASSERT_EQ(library_.List(request).patterns_size(), 1);
  EXPECT_EQ(library_.List(request).patterns(0).tried(), 1);
  request.set_by_bundle(true);
  const v1::ListPatternsResponse own = library_.List(request);
  ASSERT_EQ(own.patterns_size(), 2);
  for (const v1::Pattern& pattern : own.patterns()) EXPECT_EQ(pattern.tried(), 1);
  v1::PatternFile exported = FileOf("exported", {});
  *exported.mutable_patterns() = own.patterns();
  library_ = PatternLibrary(shipped);  // another user's, who has the same that ships
  ASSERT_EQ(Import(exported), absl::OkStatus());
  EXPECT_EQ(List(library_, false).patterns(0).tried(), 11);
}

TEST_F(PatternLibraryTest, RefusesAFileThatCannotBeTrue) {
  v1::PatternFile newer = FileOf("ann's", {});
  newer.set_version(2);
  EXPECT_EQ(Import(newer).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Import(newer).message()), HasSubstr("version 2"));
  v1::Pattern pattern = PatternOf("attention", 4, 1.1);
  pattern.set_kept(5);
  EXPECT_THAT(std::string(Import(FileOf("ann's", {pattern})).message()), HasSubstr("patterns[0] (rule grid)"));
  pattern = PatternOf("attention", 4, 1.1);
  pattern.mutable_effect()->set_resource(static_cast<v1::Resource>(99));
  EXPECT_THAT(std::string(Import(FileOf("ann's", {pattern})).message()), HasSubstr("resource"));
  EXPECT_EQ(List(library_, true).patterns_size(), 0);
}

TEST_F(PatternLibraryTest, ListsWhatIsAskedForOnly) {
  v1::Pattern older = PatternOf("attention", 2, 1.1);
  older.set_architecture("sm_80");
  ASSERT_EQ(Import(FileOf("ann's", {PatternOf("attention", 4, 1.1), PatternOf("attention", 5, 1, "tail"), older})),
            absl::OkStatus());
  v1::ListPatternsRequest request;
  EXPECT_EQ(library_.List(request).patterns_size(), 3);
  request.set_rule("grid");
  EXPECT_EQ(library_.List(request).patterns_size(), 2);
  request.set_architecture("sm_80");
  ASSERT_EQ(library_.List(request).patterns_size(), 1);
  EXPECT_EQ(library_.List(request).patterns(0).tried(), 2);
  request.set_architecture("sm_75");
  EXPECT_EQ(library_.List(request).patterns_size(), 0);
}

TEST_F(PatternLibraryTest, GivesACampaignWhatConcernsItsBundleAndWasTriedOftenEnough) {
  v1::Pattern reuse = PatternOf("attention", 9, 1.2, "reuse");
  *reuse.mutable_effect() = MoreOf(v1::RESOURCE_REUSE);
  ASSERT_EQ(Import(FileOf("ann's", {PatternOf("attention", 4, 1.1), PatternOf("softmax", 5, 1),
                                    PatternOf("softmax", 2, 1, "seldom"), reuse})),
            absl::OkStatus());
  const auto snapshot = library_.Snapshot(BundleOf("attention"));
  ASSERT_EQ(snapshot.size(), 2);
  EXPECT_EQ(snapshot[0].bundle(), "");
  EXPECT_EQ(snapshot[0].tried(), 9);
  EXPECT_EQ(snapshot[1].bundle(), "attention");
  EXPECT_EQ(snapshot[1].tried(), 4);
  EXPECT_EQ(library_.Snapshot(BundleOf("new")).size(), 1);
}

// Proposals bring the variables, and which resources these affect is not known yet.
TEST_F(PatternLibraryTest, GivesACampaignWithoutVariablesPatternsOfEveryResource) {
  v1::PatternFile file = FileOf("ann's", {PatternOf("attention", 4, 1.1)});
  for (int i = 0; i < 1500; ++i) {
    v1::Pattern& reuse = *file.add_patterns() = PatternOf("softmax", 9, 1.2, "reuse-" + std::to_string(i));
    *reuse.mutable_effect() = MoreOf(v1::RESOURCE_REUSE);
  }
  ASSERT_EQ(Import(file), absl::OkStatus());
  v1::Bundle bundle;
  bundle.set_name("attention");
  const auto snapshot = library_.Snapshot(bundle);
  const auto of = [&](v1::Resource resource) {
    return std::count_if(snapshot.begin(), snapshot.end(),
                         [&](const v1::Pattern& pattern) { return pattern.effect().resource() == resource; });
  };
  EXPECT_EQ(of(v1::RESOURCE_REUSE), 50) << "they leave room for others";
  EXPECT_EQ(of(v1::RESOURCE_PARALLELISM), 2) << "over all bundles, and of this one";
}

TEST_F(PatternLibraryTest, GivesACampaignABoundedNumber) {
  v1::PatternFile file = FileOf("ann's", {});
  for (int i = 0; i < 1000; ++i) *file.add_patterns() = PatternOf("attention", 3 + i, 1.1, "rule-" + std::to_string(i));
  ASSERT_EQ(Import(file), absl::OkStatus());
  const auto snapshot = library_.Snapshot(BundleOf("attention"));
  EXPECT_EQ(snapshot.size(), 200);
  EXPECT_EQ(snapshot[0].tried(), 1002);
}

}  // namespace
}  // namespace pawl
