// Lists of iterations against a plain model of what they should hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "db/store.h"
#include "tests/db/made_writes.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

constexpr v1::Verdict kVerdicts[] = {v1::VERDICT_UNSPECIFIED, v1::KEPT, v1::REVERTED, v1::REJECTED};
constexpr v1::IterationOrder kOrders[] = {v1::ITERATION_ORDER_UNSPECIFIED, v1::ITERATION_ORDER_NUMBER,
                                          v1::ITERATION_ORDER_NUMBER_DESCENDING, v1::ITERATION_ORDER_SPEEDUP};
const std::string kVariables[] = {"", "A", "B", "WARPS"};
const std::string kFindings[] = {"", "grid-too-small", "bank-conflicts"};

// All that the query is to find, page after page, by the plainest means.
std::vector<int> Expected(const std::vector<v1::Iteration>& all, const IterationQuery& query) {
  std::vector<v1::Iteration> found;
  for (const v1::Iteration& iteration : all) {
    if (query.verdict != v1::VERDICT_UNSPECIFIED && iteration.verdict() != query.verdict) continue;
    if (!query.variable.empty() && iteration.change().variable() != query.variable) continue;
    if (!query.finding.empty() && iteration.finding().rule() != query.finding) continue;
    found.push_back(iteration);
  }
  std::sort(found.begin(), found.end(), [&](const v1::Iteration& a, const v1::Iteration& b) {
    if (query.order == v1::ITERATION_ORDER_SPEEDUP) {
      return std::make_tuple(a.speedup_over_start(), a.number()) > std::make_tuple(b.speedup_over_start(), b.number());
    }
    if (query.order == v1::ITERATION_ORDER_NUMBER_DESCENDING) return a.number() > b.number();
    return a.number() < b.number();
  });
  std::vector<int> numbers;
  for (const v1::Iteration& iteration : found) numbers.push_back(iteration.number());
  return numbers;
}

class IterationListTest : public ::testing::Test {
 protected:
  IterationListTest() : folder_("pawl-list-"), store_(OpenStore({.file = folder_.path() / "pawl.db"})) {}

  // So many iterations of campaign 2, in any order, between those of two others that no list may show.
  void Fill(int count) {
    std::vector<int> numbers(count);
    for (int i = 0; i < count; ++i) numbers[i] = i;
    std::shuffle(numbers.begin(), numbers.end(), random_);
    for (const int number : numbers) {
      Writes writes;
      for (const int64_t campaign : {1, 2, 3}) {
        v1::Iteration iteration = MakeIteration(campaign, number, kVerdicts[1 + random_() % 3]);
        if (number > 0) iteration.mutable_change()->set_variable(kVariables[1 + random_() % 3]);
        iteration.mutable_finding()->set_rule(kFindings[random_() % 3]);
        // Few values, so that many are equal.
        if (iteration.verdict() != v1::REJECTED) iteration.set_speedup_over_start(random_() % 12 * 0.1);
        if (campaign == 2) all_.push_back(iteration);
        writes.campaigns.push_back(MakeCampaign(campaign));
        writes.events.push_back(MakeJudged(campaign, iteration));
      }
      ASSERT_EQ(store_->Commit(&writes), absl::OkStatus());
    }
  }

  // Page after page to the end.
  std::vector<int> Listed(IterationQuery query) {
    std::vector<int> numbers;
    while (true) {
      const auto page = store_->ListIterations(query);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok() || page->empty() || numbers.size() > all_.size()) return numbers;
      EXPECT_LE(page->size(), static_cast<size_t>(query.limit));
      for (const v1::Iteration& iteration : *page) numbers.push_back(iteration.number());
      query.after = {page->back().number(), page->back().speedup_over_start()};
    }
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
  std::mt19937 random_{1};
  std::vector<v1::Iteration> all_;
};

TEST_F(IterationListTest, AgreesWithThePlainModelForEveryFilterAndOrder) {
  Fill(150);
  int checked = 0;
  for (const v1::Verdict verdict : kVerdicts) {
    for (const std::string& variable : kVariables) {
      for (const std::string& finding : kFindings) {
        for (const v1::IterationOrder order : kOrders) {
          IterationQuery query{
              .campaign = 2, .verdict = verdict, .variable = variable, .finding = finding, .order = order};
          for (const int limit : {1, 7, 1000}) {
            query.limit = limit;
            ASSERT_EQ(Listed(query), Expected(all_, query))
                << verdict << " " << variable << " " << finding << " " << order << " " << limit;
            ++checked;
          }
        }
      }
    }
  }
  EXPECT_EQ(checked, 4 * 4 * 3 * 4 * 3);
}

TEST_F(IterationListTest, AgreesWithThePlainModelFromAnyPlaceWhileItGrows) {
  for (int round = 0; round < 300; ++round) {
    v1::Iteration iteration = MakeIteration(2, round, kVerdicts[1 + random_() % 3]);
    iteration.mutable_change()->set_variable(kVariables[1 + random_() % 3]);
    iteration.mutable_finding()->set_rule(kFindings[random_() % 3]);
    iteration.set_speedup_over_start(random_() % 12 * 0.1);
    Writes writes = MakeWrites(MakeJudged(2, iteration));
    ASSERT_EQ(store_->Commit(&writes), absl::OkStatus());
    all_.push_back(iteration);

    IterationQuery query{.campaign = 2,
                         .verdict = kVerdicts[random_() % 4],
                         .variable = kVariables[random_() % 4],
                         .finding = kFindings[random_() % 3],
                         .order = kOrders[random_() % 4],
                         .limit = static_cast<int>(1 + random_() % 20)};
    std::vector<int> expected = Expected(all_, query);
    if (!expected.empty()) {
      const size_t place = random_() % expected.size();
      const v1::Iteration& last = all_[expected[place]];
      query.after = {last.number(), last.speedup_over_start()};
      expected.erase(expected.begin(), expected.begin() + place + 1);
    }
    ASSERT_EQ(Listed(query), expected) << round;
  }
}

TEST_F(IterationListTest, FindsNothingForNamesThatAreNotThere) {
  Fill(10);
  EXPECT_TRUE(Listed({.campaign = 9}).empty());
  EXPECT_TRUE(Listed({.campaign = 2, .variable = "a"}).empty());
  EXPECT_TRUE(Listed({.campaign = 2, .finding = "' OR 1 = 1 --"}).empty());
  EXPECT_TRUE(Listed({.campaign = 2, .verdict = static_cast<v1::Verdict>(9)}).empty());
  EXPECT_TRUE(store_->ListIterations({.campaign = 2, .limit = 0})->empty());
  EXPECT_TRUE(store_->ListIterations({.campaign = 2, .limit = -1})->empty());
}

}  // namespace
}  // namespace pawl
