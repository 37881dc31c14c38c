// A result counts once, and only from who was asked for it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

class CompletionTest : public ::testing::Test {
 protected:
  CompletionTest() : campaign_(world_.Submit()), worker_(world_, "a"), other_(world_, "b") {}

  // Sends this result for a fresh lease of the start.
  absl::Status Sent(const v1::TrialResult& result) {
    return worker_.Complete(worker_.MustLease(), [&](const v1::Trial&) { return result; }).status();
  }
  void ExpectIterations(int count) {
    EXPECT_EQ(static_cast<int>(world_.Iterations(campaign_).size()), count);
    EXPECT_EQ(static_cast<int>(world_.Iterations(campaign_).size()), count);
    EXPECT_EQ(static_cast<int>(world_.Events(campaign_, v1::Event::kFinished).size()), count);
  }

  static v1::CompleteTrialRequest Request(const ScriptedWorker& worker, const v1::LeaseTrialResponse& leased) {
    v1::CompleteTrialRequest request;
    request.set_worker(worker.name());
    request.set_instance("one");
    request.set_lease(leased.lease());
    *request.mutable_result() = NothingHelps(leased.trial());
    SayWhatItIsOf(leased.trial(), &request);
    return request;
  }
  std::vector<absl::Status> Together(const std::vector<v1::CompleteTrialRequest>& requests) {
    return world_.CompleteTogether(requests);
  }

  World world_{{.result_threads = 1}};  // so that what arrives together is looked at together
  const std::string campaign_;
  ScriptedWorker worker_, other_;
};

TEST_F(CompletionTest, CountsAResultOnce) {
  const v1::LeaseTrialResponse leased = worker_.MustLease();
  EXPECT_TRUE(worker_.Complete(leased).ok());
  ExpectError(worker_.Complete(leased).status(), absl::StatusCode::kAlreadyExists, "has its result already");
  world_.Restart();
  ExpectError(worker_.Complete(leased).status(), absl::StatusCode::kAlreadyExists, "has its result already");
  EXPECT_TRUE(worker_.Renew(leased.lease())->stop());
  ExpectIterations(1);
}

TEST_F(CompletionTest, TakesALateResultWhenNobodyElseHasTheTrial) {
  const v1::LeaseTrialResponse leased = worker_.MustLease();
  world_.Pass(absl::Seconds(20));
  EXPECT_EQ(world_.Events(campaign_, v1::Event::kLost).size(), 1u);
  EXPECT_TRUE(worker_.Complete(leased).ok());
  ExpectIterations(1);
  EXPECT_EQ(other_.MustLease().trial().iteration(), campaign_ + "/iterations/1") << "it is not run again";
}

TEST_F(CompletionTest, RefusesALateResultWhenTheTrialWasLeasedAgain) {
  const v1::LeaseTrialResponse leased = worker_.MustLease();
  world_.Pass(absl::Seconds(20));
  const v1::LeaseTrialResponse again = other_.MustLease();
  ExpectError(worker_.Complete(leased).status(), absl::StatusCode::kAborted, "leased again");
  ExpectIterations(0);
  EXPECT_TRUE(other_.Complete(again).ok());
  ExpectError(worker_.Complete(leased).status(), absl::StatusCode::kAlreadyExists, "has its result already");
  ExpectIterations(1);
  EXPECT_EQ(world_.Iterations(campaign_)[0].worker(), "workers/b");
}

TEST_F(CompletionTest, RefusesTheOldAttemptOfTheSameWorkerToo) {
  const v1::LeaseTrialResponse first = worker_.MustLease();
  ASSERT_TRUE(worker_.GiveBack(first.lease()).ok());
  const v1::LeaseTrialResponse second = worker_.MustLease();
  ExpectError(worker_.Complete(first).status(), absl::StatusCode::kAborted, "leased again");
  ExpectError(worker_.Renew(first.lease()).status(), absl::StatusCode::kAborted, "ran out");
  ExpectError(worker_.HostFault(first.lease(), "late"), absl::StatusCode::kAborted, "leased again");
  EXPECT_TRUE(worker_.Complete(second).ok());
}

TEST_F(CompletionTest, RefusesAnotherWorkersLeaseAndForgedOnes) {
  v1::LeaseTrialResponse leased = worker_.MustLease();
  const auto denied = absl::StatusCode::kPermissionDenied;
  ExpectError(other_.Complete(leased).status(), denied, "not this worker's");
  ExpectError(other_.Renew(leased.lease()).status(), denied, "not this worker's");
  const std::string good = leased.lease();
  for (size_t at = 0; at < good.size(); ++at) {
    leased.set_lease(good);
    (*leased.mutable_lease())[at] ^= 1;
    ExpectError(worker_.Complete(leased).status(), denied, "not this worker's");
  }
  for (const std::string& forged :
       {std::string(), std::string("1.1.1"), std::string("1.1.1."), good + " ", good + ".1", " " + good, "+" + good,
        "0" + good, std::string("1.1.1.") + std::string(64, '0'), std::string(1'000'000, '.')}) {
    leased.set_lease(forged);
    ExpectError(worker_.Complete(leased).status(), denied, "not this worker's");
    ExpectError(worker_.Renew(forged).status(), denied, "not this worker's");
  }
  ExpectIterations(0);
  leased.set_lease(good);
  EXPECT_TRUE(worker_.Complete(leased).ok());
}

TEST_F(CompletionTest, RefusesTheLeaseOfAnotherDatabase) {
  World elsewhere;
  elsewhere.Submit();
  ScriptedWorker same_name(elsewhere, "a");
  worker_.MustLease();
  ExpectError(worker_.Complete(same_name.MustLease()).status(), absl::StatusCode::kPermissionDenied,
              "not this worker's");
}

TEST_F(CompletionTest, RefusesAnOutcomeThatIsNone) {
  const v1::LeaseTrialResponse leased = worker_.MustLease();
  v1::CompleteTrialRequest request;
  request.set_worker("workers/a");
  request.set_instance("one");
  request.set_lease(leased.lease());
  ExpectError(world_.Complete(request).status(), absl::StatusCode::kInvalidArgument, "outcome");
}

TEST_F(CompletionTest, RefusesAResultWhoseBlobsWereNotUploaded) {
  const std::string content = "the log";
  v1::TrialResult result = MeasuredStart(100);
  v1::Blob& blob = *result.add_blobs();
  blob.set_kind(v1::Blob::LOG);
  blob.set_hash(Sha256(content));
  const v1::LeaseTrialResponse leased = worker_.MustLease();
  const auto measure = [&](const v1::Trial&) { return result; };
  ExpectError(worker_.Complete(leased, measure).status(), absl::StatusCode::kFailedPrecondition, blob.hash());
  v1::PutBlobRequest put;
  put.set_kind(v1::Blob::LOG);
  put.set_hash(blob.hash());
  put.set_content(content);
  ASSERT_TRUE(world_->PutBlob(put).ok());
  EXPECT_TRUE(worker_.Complete(leased, measure).ok());
  v1::GetBlobRequest get;
  get.set_hash(blob.hash());
  EXPECT_EQ(world_.history().GetBlob(get)->content(), content);
}

TEST_F(CompletionTest, RefusesBlobsThatAreNotWhatTheySay) {
  v1::PutBlobRequest put;
  put.set_kind(v1::Blob::CUBIN);
  put.set_content("code");
  put.set_hash(Sha256("other code"));
  ExpectError(world_->PutBlob(put).status(), absl::StatusCode::kInvalidArgument, "hash");
  put.set_hash(Sha256("code"));
  for (const int kind : {0, 5, 77}) {
    put.set_kind(static_cast<v1::Blob::Kind>(kind));
    ExpectError(world_->PutBlob(put).status(), absl::StatusCode::kInvalidArgument, "kind");
  }
  put.set_kind(v1::Blob::CUBIN);
  EXPECT_TRUE(world_->PutBlob(put).ok());
  EXPECT_TRUE(world_->PutBlob(put).ok()) << "again changes nothing";
  put.set_content(std::string((4 << 20) + 1, 'x'));
  ExpectError(world_->PutBlob(put).status(), absl::StatusCode::kResourceExhausted, "4 MB");
}

TEST_F(CompletionTest, RefusesFiguresThatNoHonestWorkerSends) {
  const double bad[] = {-1, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()};
  const auto refused = absl::StatusCode::kInvalidArgument;
  ScriptedWorker* worker = &worker_;
  const v1::LeaseTrialResponse leased = worker->MustLease();
  int results = 0, refusals = 0;
  const auto sent = [&](const std::function<void(v1::TrialResult*)>& spoil) {
    v1::TrialResult result = Measured(100, 80);
    spoil(&result);
    const absl::Status status = worker->Complete(leased, [&](const v1::Trial&) { return result; }).status();
    ++results;
    refusals += absl::IsInvalidArgument(status);
    return status;
  };
  for (double value : bad) {
    ExpectError(sent([&](v1::TrialResult* r) { r->set_warm_us(value); }), refused, "result");
    ExpectError(sent([&](v1::TrialResult* r) { r->set_parent_cold_us(value); }), refused, "result");
    ExpectError(sent([&](v1::TrialResult* r) { r->mutable_stages(0)->set_seconds(value); }), refused, "stages");
    ExpectError(sent([&](v1::TrialResult* r) { r->add_baselines()->set_graph_us(value); }), refused, "baselines");
    ExpectError(sent([&](v1::TrialResult* r) { r->add_stages()->set_begin(value); }), refused, "stages");
    ExpectError(sent([&](v1::TrialResult* r) { r->add_beside()->set_seconds(value); }), refused, "beside");
    ExpectError(sent([&](v1::TrialResult* r) { r->mutable_pairs(2)->set_candidate_us(value); }), refused, "pairs");
    ExpectError(sent([&](v1::TrialResult* r) { r->mutable_confirming_pairs(2)->set_parent_us(value); }), refused,
                "pairs");
    ExpectError(sent([&](v1::TrialResult* r) { r->mutable_pairs(2)->set_log_ratio(value); }), refused, "pairs");
  }
  ExpectError(sent([&](v1::TrialResult* r) { r->mutable_pairs(0)->set_log_ratio(1); }), refused, "pairs");
  ExpectError(sent([&](v1::TrialResult* r) { AddPairs(r->mutable_pairs(), 100, 80, 1000); }), refused, "pairs");
  ExpectIterations(0);
  EXPECT_TRUE(sent([](v1::TrialResult*) {}).ok());
  ReportPromise(
      21, absl::StrCat(results, " results of one trial, all but the last with NaN, infinity or an impossible number: ",
                       refusals, " were refused, and ", world_.Iterations(campaign_).size(), " counted"));
}

TEST_F(CompletionTest, GivesTheNextTrialWithTheAnswerToAResult) {
  v1::LeaseTrialResponse leased = worker_.MustLease();
  int trials = 1;
  while (leased.has_trial()) {
    absl::StatusOr<v1::CompleteTrialResponse> completed = worker_.Complete(leased, NothingHelps, true);
    ASSERT_TRUE(completed.ok()) << completed.status();
    leased = completed->next();
    trials += leased.has_trial();
  }
  EXPECT_EQ(trials, 5);
  ExpectIterations(5);
  EXPECT_EQ(world_->leases_out(), 0);
}

TEST_F(CompletionTest, CommitsTogetherWhatArrivesTogether) {
  const std::string second = world_.Submit();
  const v1::LeaseTrialResponse first_trial = worker_.MustLease(), second_trial = other_.MustLease();
  const std::vector<absl::Status> answers = Together({Request(worker_, first_trial), Request(other_, second_trial)});
  EXPECT_TRUE(answers[0].ok()) << answers[0];
  EXPECT_TRUE(answers[1].ok()) << answers[1];
  const int64_t first_sequence = world_.Events(campaign_, v1::Event::kFinished).at(0).sequence();
  const int64_t second_sequence = world_.Events(second, v1::Event::kFinished).at(0).sequence();
  EXPECT_EQ(second_sequence, first_sequence + 1) << "what the first leads to would be planned between them";
  EXPECT_EQ(worker_.MustLease().trial().iteration(), campaign_ + "/iterations/1");
  EXPECT_EQ(other_.MustLease().trial().iteration(), second + "/iterations/1");
  world_.Restart();
  ExpectIterations(1);
  EXPECT_EQ(world_->leases_out(), 2);
}

TEST_F(CompletionTest, CountsAResultOnceHoweverOftenItIsSentAtATime) {
  constexpr size_t kTimes = 100;
  const v1::LeaseTrialResponse leased = worker_.MustLease();
  const std::vector<absl::Status> answers =
      Together(std::vector<v1::CompleteTrialRequest>(kTimes, Request(worker_, leased)));
  EXPECT_TRUE(answers[0].ok()) << answers[0];
  for (size_t i = 1; i < kTimes; ++i) {
    ExpectError(answers[i], absl::StatusCode::kAlreadyExists, "has its result already");
  }
  ExpectIterations(1);
}

TEST_F(CompletionTest, RefusesOneOfManyAlone) {
  world_.Submit();
  const v1::LeaseTrialResponse good = worker_.MustLease();
  v1::CompleteTrialRequest stolen = Request(other_, good);
  const std::vector<absl::Status> answers = Together({stolen, Request(worker_, good)});
  ExpectError(answers[0], absl::StatusCode::kPermissionDenied, "not this worker's");
  EXPECT_TRUE(answers[1].ok()) << answers[1];
  ExpectIterations(1);
}

}  // namespace
}  // namespace pawl
