#include "orchestrator/core/history.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"

namespace pawl {
namespace {

class HistoryTest : public ::testing::Test {
 protected:
  HistoryTest() {
    world_.Submit();
    ScriptedWorker(world_, "a").RunAll(EverythingHelps);
    for (int i = 0; i < 6; ++i) world_.Submit();
  }

  // All iterations of campaigns/1 by this request, page by page.
  std::vector<int> Numbers(v1::ListIterationsRequest request, int page) {
    request.set_campaign("campaigns/1");
    request.set_page_size(page);
    std::vector<int> numbers;
    do {
      const absl::StatusOr<v1::ListIterationsResponse> response = world_.history().ListIterations(request);
      EXPECT_TRUE(response.ok()) << response.status();
      if (!response.ok()) break;
      EXPECT_LE(response->iterations_size(), page);
      for (const v1::Iteration& iteration : response->iterations()) numbers.push_back(iteration.number());
      request.set_page_token(response->next_page_token());
    } while (!request.page_token().empty());
    return numbers;
  }
  std::string SecondPage(v1::ListIterationsRequest request) {
    request.set_page_size(1);
    const absl::StatusOr<v1::ListIterationsResponse> response = world_.history().ListIterations(request);
    EXPECT_TRUE(response.ok() && !response->next_page_token().empty());
    return response->next_page_token();
  }
  World world_;
};

TEST_F(HistoryTest, WalksThroughAllCampaignsNewestFirst) {
  for (int page : {1, 2, 3, 7, 100}) {
    v1::ListCampaignsRequest request;
    request.set_page_size(page);
    std::vector<std::string> names;
    do {
      const absl::StatusOr<v1::ListCampaignsResponse> response = world_.history().ListCampaigns(request);
      ASSERT_TRUE(response.ok()) << response.status();
      for (const v1::Campaign& campaign : response->campaigns()) names.push_back(campaign.name());
      request.set_page_token(response->next_page_token());
    } while (!request.page_token().empty());
    ASSERT_EQ(names.size(), 7u) << page;
    EXPECT_EQ(names.front(), "campaigns/7");
    EXPECT_EQ(names.back(), "campaigns/1");
  }
}

TEST_F(HistoryTest, WalksThroughAllIterationsInEveryOrder) {
  const int count = static_cast<int>(world_.Iterations("campaigns/1").size());
  ASSERT_GT(count, 4);
  std::vector<int> rising, falling;
  for (int i = 0; i < count; ++i) {
    rising.push_back(i);
    falling.insert(falling.begin(), i);
  }
  for (int page : {1, 2, count - 1, count, 1000}) {
    v1::ListIterationsRequest request;
    EXPECT_EQ(Numbers(request, page), rising);
    request.set_order(v1::ITERATION_ORDER_NUMBER_DESCENDING);
    EXPECT_EQ(Numbers(request, page), falling);
    request.set_order(v1::ITERATION_ORDER_SPEEDUP);
    std::vector<int> by_speedup = Numbers(request, page);
    EXPECT_EQ(by_speedup, Numbers(request, 1000));
    std::sort(by_speedup.begin(), by_speedup.end());
    EXPECT_EQ(by_speedup, rising) << "each once, in pages of " << page;
  }
}

TEST_F(HistoryTest, FiltersByVerdictAndVariable) {
  v1::ListIterationsRequest request;
  request.set_verdict(v1::KEPT);
  request.set_variable("TILE");
  for (int number : Numbers(request, 1)) {
    const v1::Iteration iteration = world_.Iterations("campaigns/1")[number];
    EXPECT_EQ(iteration.verdict(), v1::KEPT);
    EXPECT_EQ(iteration.change().variable(), "TILE");
  }
  EXPECT_FALSE(Numbers(request, 1).empty());
  request.set_variable("WARPS");
  EXPECT_TRUE(Numbers(request, 1).empty());
}

TEST_F(HistoryTest, RefusesPageTokensFromElsewhere) {
  const auto bad = absl::StatusCode::kInvalidArgument;
  v1::ListIterationsRequest request;
  request.set_campaign("campaigns/1");
  const std::string token = SecondPage(request);
  request.set_page_token(token);
  EXPECT_TRUE(world_.history().ListIterations(request).ok());

  v1::ListIterationsRequest other = request;
  other.set_campaign("campaigns/2");
  ExpectError(world_.history().ListIterations(other).status(), bad, "page_token");
  other = request;
  other.set_order(v1::ITERATION_ORDER_SPEEDUP);
  ExpectError(world_.history().ListIterations(other).status(), bad, "page_token");
  other = request;
  other.set_verdict(v1::KEPT);
  ExpectError(world_.history().ListIterations(other).status(), bad, "page_token");
  other = request;
  other.set_variable("TILE");
  ExpectError(world_.history().ListIterations(other).status(), bad, "page_token");
  v1::ListCampaignsRequest campaigns;
  campaigns.set_page_token(token);
  ExpectError(world_.history().ListCampaigns(campaigns).status(), bad, "page_token");
  for (const std::string& forged : {std::string("7"), std::string("!!!"), std::string(100, 'A'), token + "A",
                                    token.substr(1), std::string(1'000'000, 'A')}) {
    request.set_page_token(forged);
    ExpectError(world_.history().ListIterations(request).status(), bad, "page_token");
  }
  World elsewhere;
  elsewhere.Submit();
  ScriptedWorker(elsewhere, "a").RunAll();
  request.set_page_token(token);
  ExpectError(elsewhere.history().ListIterations(request).status(), bad, "page_token");
}

TEST_F(HistoryTest, GoesOnWithATokenAfterARestart) {
  v1::ListIterationsRequest request;
  request.set_campaign("campaigns/1");
  request.set_page_token(SecondPage(request));
  world_.Restart();
  const absl::StatusOr<v1::ListIterationsResponse> response = world_.history().ListIterations(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->iterations(0).number(), 1);
}

TEST_F(HistoryTest, RefusesWhatIsMalformed) {
  const auto bad = absl::StatusCode::kInvalidArgument;
  v1::ListIterationsRequest request;
  ExpectError(world_.history().ListIterations(request).status(), bad, "campaign");
  request.set_campaign("campaigns/99");
  ExpectError(world_.history().ListIterations(request).status(), absl::StatusCode::kNotFound, "campaigns/99");
  request.set_campaign("campaigns/1");
  for (int size : {-1, 1001}) {
    request.set_page_size(size);
    ExpectError(world_.history().ListIterations(request).status(), bad, "page_size");
    v1::ListCampaignsRequest campaigns;
    campaigns.set_page_size(size);
    ExpectError(world_.history().ListCampaigns(campaigns).status(), bad, "page_size");
  }
  request.set_page_size(0);
  request.set_order(static_cast<v1::IterationOrder>(9));
  ExpectError(world_.history().ListIterations(request).status(), bad, "order");
  request.clear_order();
  request.set_verdict(static_cast<v1::Verdict>(9));
  ExpectError(world_.history().ListIterations(request).status(), bad, "verdict");
}

TEST_F(HistoryTest, ShowsAnIterationWithItsSamples) {
  v1::GetIterationRequest request;
  request.set_name("campaigns/1/iterations/1");
  const absl::StatusOr<v1::Iteration> iteration = world_.history().GetIteration(request);
  ASSERT_TRUE(iteration.ok()) << iteration.status();
  EXPECT_EQ(iteration->pairs_size(), 12);
  EXPECT_EQ(iteration->confirming_pairs_size(), 12);
  EXPECT_EQ(iteration->passed_over_size(), 0);
  request.set_name("campaigns/1/iterations/99");
  ExpectError(world_.history().GetIteration(request).status(), absl::StatusCode::kNotFound, "iterations/99");
  request.set_name("campaigns/1/iterations/x");
  ExpectError(world_.history().GetIteration(request).status(), absl::StatusCode::kInvalidArgument, "name");
}

TEST_F(HistoryTest, HasNoBestBeforeAnythingWasKept) {
  v1::GetBestVariantRequest request;
  request.set_campaign(world_.Submit());
  ExpectError(world_.history().GetBestVariant(request).status(), absl::StatusCode::kFailedPrecondition,
              "has no kept variant yet");
}

TEST_F(HistoryTest, KnowsNoOtherBlobs) {
  for (const std::string& hash : {std::string(), std::string("x"), std::string(100'000, 'x')}) {
    v1::GetBlobRequest blob;
    *blob.mutable_hash() = hash;
    ExpectError(world_.history().GetBlob(blob).status(), absl::StatusCode::kNotFound, "blob");
    v1::GetBundleRequest bundle;
    *bundle.mutable_hash() = hash;
    ExpectError(world_.history().GetBundle(bundle).status(), absl::StatusCode::kNotFound, "bundle");
  }
}

TEST_F(HistoryTest, GivesTheMetricsThatAreAskedFor) {
  const std::string campaign = world_.Submit();
  for (int i = 2; i < 8; ++i) {
    v1::CancelCampaignRequest cancel;
    cancel.set_name(absl::StrCat("campaigns/", i));
    ASSERT_TRUE((*world_).Cancel(cancel).ok());
  }
  ScriptedWorker(world_, "b").RunAll([](const v1::Trial& trial) {
    v1::TrialResult result = EverythingHelps(trial);
    for (const double duration : {10.0, 20.0}) {
      v1::LaunchEvidence& launch = *result.mutable_evidence()->add_launches();
      (*launch.mutable_metrics())["duration_ns"] = duration;
      (*launch.mutable_metrics())["waves"] = trial.has_parent() ? 2 * duration : duration;
    }
    return result;
  });
  v1::ListIterationsRequest request;
  request.set_campaign(campaign);
  absl::StatusOr<v1::ListIterationsResponse> response = world_.history().ListIterations(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_TRUE(response->iterations(0).metrics().empty()) << "nobody asked";
  for (const char* name : {"waves", "occupancy", "waves"}) request.add_metrics(name);
  response = world_.history().ListIterations(request);
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->iterations(0).metrics().size(), 1u) << "what was not measured is missing, never 0";
  EXPECT_EQ(response->iterations(0).metrics().at("waves"), 20) << "of the longest launch";
  EXPECT_EQ(response->iterations(1).metrics().at("waves"), 40);
  request.add_metrics("colour");
  ExpectError(world_.history().ListIterations(request).status(), absl::StatusCode::kInvalidArgument, "colour");
}

}  // namespace
}  // namespace pawl
