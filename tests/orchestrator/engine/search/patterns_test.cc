#include "orchestrator/engine/search/patterns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "google/protobuf/util/message_differencer.h"

namespace pawl {
namespace {

using google::protobuf::util::MessageDifferencer;

v1::Iteration Served(const std::string& rule, v1::Verdict verdict, double speedup,
                     v1::Resource resource = v1::RESOURCE_PARALLELISM) {
  v1::Iteration iteration;
  iteration.set_number(1);
  iteration.mutable_finding()->set_rule(rule);
  iteration.mutable_effect()->set_resource(resource);
  iteration.mutable_effect()->set_direction(v1::DIRECTION_MORE);
  iteration.set_verdict(verdict);
  iteration.set_speedup_over_parent(speedup);
  return iteration;
}

v1::Pattern Lesson(const std::string& bundle, const std::string& rule, v1::Verdict verdict, double speedup) {
  return LessonOf(Served(rule, verdict, speedup), bundle, "sm_90").value();
}

v1::Pattern Of(const std::string& bundle, int tried, int timed, double median, const std::string& rule = "grid") {
  v1::Pattern pattern = Lesson("x", rule, v1::REVERTED, 1);
  pattern.set_bundle(bundle);
  pattern.set_tried(tried);
  pattern.set_timed(timed);
  pattern.set_median_gain(median);
  return pattern;
}

bool Equal(const std::vector<v1::Pattern>& a, const std::vector<v1::Pattern>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), MessageDifferencer::Equals);
}

TEST(Lesson, HoldsWhatBecameOfTheChange) {
  v1::Iteration iteration = Served("grid", v1::KEPT, 1.25);
  iteration.mutable_prediction()->set_outcome(v1::Prediction::CAME_TRUE);
  const v1::Pattern lesson = LessonOf(iteration, "attention", "sm_90").value();
  EXPECT_EQ(lesson.rule(), "grid");
  EXPECT_EQ(lesson.effect().resource(), v1::RESOURCE_PARALLELISM);
  EXPECT_EQ(lesson.effect().direction(), v1::DIRECTION_MORE);
  EXPECT_EQ(lesson.architecture(), "sm_90");
  EXPECT_EQ(lesson.bundle(), "attention");
  EXPECT_EQ(lesson.tried(), 1);
  EXPECT_EQ(lesson.kept(), 1);
  EXPECT_EQ(lesson.timed(), 1);
  EXPECT_NEAR(lesson.median_gain(), 1.25, 0.00125);
  EXPECT_EQ(lesson.predictions(), 1);
  EXPECT_EQ(lesson.came_true(), 1);
}

TEST(Lesson, OfARejectedChangeIsThatItWasTriedInVain) {
  v1::Iteration iteration = Served("grid", v1::REJECTED, 3);
  iteration.mutable_failure()->set_message("passed over: no, it failed");
  iteration.set_reason(iteration.failure().message());
  iteration.mutable_prediction()->set_outcome(v1::Prediction::UNCHECKED);
  const v1::Pattern lesson = LessonOf(iteration, "attention", "sm_90").value();
  EXPECT_EQ(lesson.tried(), 1);
  EXPECT_EQ(lesson.kept(), 0);
  EXPECT_EQ(lesson.timed(), 0);
  EXPECT_EQ(lesson.median_gain(), 0);
  EXPECT_EQ(lesson.predictions(), 0);
}

TEST(Lesson, CountsAPredictionThatFailed) {
  v1::Iteration iteration = Served("grid", v1::REVERTED, 0.9);
  iteration.mutable_prediction()->set_outcome(v1::Prediction::FAILED);
  const v1::Pattern lesson = LessonOf(iteration, "attention", "sm_90").value();
  EXPECT_EQ(lesson.predictions(), 1);
  EXPECT_EQ(lesson.came_true(), 0);
}

TEST(Lesson, IsNoneWhereNothingWasTriedForAFinding) {
  EXPECT_FALSE(LessonOf(Served("", v1::KEPT, 1.1), "attention", "sm_90"));
  EXPECT_FALSE(LessonOf(Served("grid", v1::KEPT, 1.1, v1::RESOURCE_UNSPECIFIED), "attention", "sm_90"));
  EXPECT_FALSE(LessonOf(Served("grid", v1::KEPT, 1.1), "attention", "")) << "the GPU is not known";
  EXPECT_FALSE(LessonOf(Served("grid", v1::KEPT, 1.1), "", "sm_90"));
  v1::Iteration passed_over = Served("grid", v1::REJECTED, 0);
  passed_over.set_untried(true);
  EXPECT_FALSE(LessonOf(passed_over, "attention", "sm_90"));
  passed_over.set_untried(false);
  EXPECT_TRUE(LessonOf(passed_over, "attention", "sm_90"));
}

TEST(Lesson, TakesNoGainThatIsNoNumber) {
  for (const double speedup : {0.0, -1.0, HUGE_VAL, std::nan("")}) {
    const v1::Pattern lesson = Lesson("attention", "grid", v1::REVERTED, speedup);
    EXPECT_EQ(lesson.tried(), 1);
    EXPECT_EQ(lesson.timed(), 0) << speedup;
    EXPECT_EQ(lesson.median_gain(), 0) << speedup;
  }
}

TEST(PatternTable, CountsByBundleAndOverAll) {
  PatternTable table;
  table.Add(Lesson("attention", "grid", v1::KEPT, 2));
  table.Add(Lesson("attention", "grid", v1::REVERTED, 0.5));
  table.Add(Lesson("attention", "grid", v1::REJECTED, 0));
  table.Add(Lesson("softmax", "grid", v1::KEPT, 1.5));
  const auto over_all = table.Of("");
  ASSERT_EQ(over_all.size(), 1u);
  EXPECT_EQ(over_all[0].bundle(), "");
  EXPECT_EQ(over_all[0].tried(), 4);
  EXPECT_EQ(over_all[0].kept(), 2);
  EXPECT_EQ(over_all[0].timed(), 3);
  EXPECT_NEAR(over_all[0].median_gain(), 1.5, 0.002) << "of 0.5, 1.5 and 2";
  const auto attention = table.Of("attention");
  ASSERT_EQ(attention.size(), 1u);
  EXPECT_EQ(attention[0].tried(), 3);
  EXPECT_NEAR(attention[0].median_gain(), 1, 0.002) << "the middle of 0.5 and 2, in log";
  EXPECT_TRUE(table.Of("att").empty());
  table.Add(Lesson("attention", "grid", v1::KEPT, 2));
  EXPECT_NEAR(table.Of("attention")[0].median_gain(), 2, 0.002) << "a median that was asked for moves on";
}

TEST(PatternTable, CountsWhatIsTakenBackAsTriedButNotAsKept) {
  PatternTable table;
  const v1::Iteration kept = Served("grid", v1::KEPT, 2);
  table.Add(Lesson("attention", "grid", v1::KEPT, 1.5));
  table.Add(LessonOf(kept, "attention", "sm_90").value());
  table.Add(TakenBack(kept, "attention", "sm_90").value());
  PatternTable reverted;
  reverted.Add(Lesson("attention", "grid", v1::KEPT, 1.5));
  reverted.Add(Lesson("attention", "grid", v1::REVERTED, 2));
  EXPECT_TRUE(Equal(table.List(), reverted.List()));
  EXPECT_FALSE(TakenBack(Served("grid", v1::REVERTED, 2), "attention", "sm_90")) << "it is no longer kept";
}

TEST(PatternTable, KeepsWhatDiffersApart) {
  PatternTable table;
  table.Add(Lesson("attention", "grid", v1::KEPT, 2));
  table.Add(Lesson("attention", "tail", v1::KEPT, 2));
  table.Add(LessonOf(Served("grid", v1::KEPT, 2), "attention", "sm_80").value());
  table.Add(LessonOf(Served("grid", v1::KEPT, 2, v1::RESOURCE_REUSE), "attention", "sm_90").value());
  v1::Iteration less = Served("grid", v1::KEPT, 2);
  less.mutable_effect()->set_direction(v1::DIRECTION_LESS);
  table.Add(LessonOf(less, "attention", "sm_90").value());
  EXPECT_EQ(table.Of("attention").size(), 5u);
  EXPECT_EQ(table.List().size(), 10u);
}

TEST(PatternTable, ListsTheSameInWhateverOrderLessonsCame) {
  std::vector<v1::Pattern> lessons;
  for (int i = 0; i < 300; ++i) {
    const v1::Verdict verdict = i % 3 == 0 ? v1::KEPT : i % 3 == 1 ? v1::REVERTED : v1::REJECTED;
    lessons.push_back(Lesson(i % 2 ? "b" : "a", "rule-" + std::to_string(i % 7), verdict, 0.5 + i * 0.01));
  }
  PatternTable table;
  for (const v1::Pattern& lesson : lessons) table.Add(lesson);
  const auto list = table.List();
  EXPECT_EQ(list.size(), 21u);
  EXPECT_TRUE(std::is_sorted(list.begin(), list.end(), PatternOrder));
  std::mt19937 random(1);
  for (int i = 0; i < 5; ++i) {
    std::shuffle(lessons.begin(), lessons.end(), random);
    PatternTable other;
    for (size_t j = 0; j < lessons.size(); ++j) {
      other.Add(lessons[j]);
      if (j % 50 == 0) other.List();  // asking in between changes nothing
    }
    EXPECT_TRUE(Equal(other.List(), list));
  }
}

TEST(PatternTable, TakesLessonsThatWereCountedTogether) {
  PatternTable one_by_one, together;
  v1::Pattern lesson = Lesson("a", "grid", v1::KEPT, 1.3);
  for (int i = 0; i < 3; ++i) one_by_one.Add(lesson);
  lesson.set_tried(3);
  lesson.set_kept(3);
  lesson.set_timed(3);
  together.Add(lesson);
  for (PatternTable* table : {&one_by_one, &together}) table->Add(Lesson("a", "grid", v1::REVERTED, 0.7));
  EXPECT_TRUE(Equal(one_by_one.List(), together.List()));
  EXPECT_NEAR(together.Of("a")[0].median_gain(), 1.3, 0.002);
}

TEST(Merged, WeighsMediansByWhatWasTimed) {
  const auto merged = Merged({Of("a", 4, 3, 2), Of("b", 1, 0, 0), Of("a", 2, 1, 0.5), Of("a", 5, 0, 0)});
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged[0].bundle(), "a");
  EXPECT_EQ(merged[0].tried(), 11);
  EXPECT_EQ(merged[0].timed(), 4);
  EXPECT_NEAR(merged[0].median_gain(), std::exp((3 * std::log(2) + std::log(0.5)) / 4), 1e-12);
  EXPECT_EQ(merged[1].median_gain(), 0) << "none was timed";
  EXPECT_TRUE(Equal(Merged({Of("a", 4, 3, 1.7)}), {Of("a", 4, 3, 1.7)})) << "one alone stays what it is";
  EXPECT_TRUE(Merged({}).empty());
}

TEST(Merged, DoesNotOverflow) {
  EXPECT_EQ(Merged({Of("a", 2000000000, 0, 0), Of("a", 2000000000, 0, 0)})[0].tried(), 2147483647);
}

TEST(OverAll, LeavesOutABundleByAFilter) {
  const std::vector<v1::Pattern> shipped = {Of("a", 4, 2, 2), Of("b", 6, 2, 0.5), Of("c", 1, 1, 1.5, "tail")};
  const auto all = OverAll(shipped);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].bundle(), "");
  EXPECT_EQ(all[0].tried(), 10);
  EXPECT_NEAR(all[0].median_gain(), 1, 1e-12);
  const auto without = OverAll(WithoutBundle(shipped, "b"));
  ASSERT_EQ(without.size(), 2u);
  EXPECT_EQ(without[0].tried(), 4);
  EXPECT_EQ(without[0].median_gain(), 2);
  EXPECT_TRUE(WithoutBundle({Of("", 4, 2, 2)}, "b").empty()) << "it may have b in it";
}

TEST(ByBundle, LeavesOutWhatWouldBeCountedTwice) {
  const auto kept = ByBundle({Of("", 10, 4, 1), Of("a", 4, 2, 2), Of("b", 6, 2, 0.5), Of("", 3, 1, 1, "tail")});
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[2].rule(), "tail") << "nothing else is known of it";
  EXPECT_EQ(OverAll(kept)[0].tried(), 10);
}

TEST(SortByTried, PutsTheMostTriedFirst) {
  std::vector<v1::Pattern> patterns = {Of("b", 2, 0, 0), Of("a", 2, 0, 0), Of("c", 3, 0, 0)};
  SortByTried(&patterns);
  EXPECT_EQ(patterns[0].bundle(), "c");
  EXPECT_EQ(patterns[1].bundle(), "a");
  EXPECT_EQ(patterns[2].bundle(), "b");
}

TEST(Architecture, IsWhatTheGpuSaysOrItsNameTells) {
  v1::GpuInfo gpu;
  EXPECT_EQ(SmArchitecture(gpu), "");
  gpu.set_name("some GPU of the future");
  EXPECT_EQ(SmArchitecture(gpu), "");
  gpu.set_name("NVIDIA L4");
  EXPECT_EQ(SmArchitecture(gpu), "sm_89");
  gpu.set_name("NVIDIA H200");
  EXPECT_EQ(SmArchitecture(gpu), "sm_90");
  gpu.set_compute_major(12);
  EXPECT_EQ(SmArchitecture(gpu), "sm_120");
}

}  // namespace
}  // namespace pawl
