// Every rpc through a real socket: that it answers, and each error that its comment promises.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "base/channel/channel.h"
#include "base/hash/hash.h"
#include "tests/db/faulty_disk.h"
#include "tests/orchestrator/engine/tiny_bundle.h"
#include "tests/orchestrator/running_service.h"

namespace pawl {
namespace {

using Campaigns = v1::CampaignService::Stub;
using Workers = v1::WorkerService::Stub;
using enum grpc::StatusCode;

class CampaignServiceTest : public ::testing::Test {
 protected:
  // Of every rpc that takes a campaign's name.
  template <typename Request, typename Reply>
  void RefusesOtherNames(grpc::Status (Campaigns::*rpc)(grpc::ClientContext*, const Request&, Reply*),
                         const std::string& field, const std::string& rest = "") {
    service_.Refuse(service_.campaigns(), rpc, Made<Request>(field + ": 'seven' " + rest), INVALID_ARGUMENT, field);
    service_.Refuse(service_.campaigns(), rpc, Made<Request>(field + ": 'campaigns/77' " + rest), NOT_FOUND,
                    "campaigns/77");
  }
  // A campaign that has come to its end.
  std::string Finished() {
    const std::string campaign = service_.Submit();
    service_.Register("workers/a");
    service_.RunAll("workers/a");
    return campaign;
  }
  template <typename Request>
  Request Of(const std::string& field, const std::string& name, const std::string& rest = "") {
    return Made<Request>(field + ": '" + name + "' " + rest);
  }
  Campaigns& stub() { return service_.campaigns(); }

  RunningService service_;
};

TEST_F(CampaignServiceTest, SubmitsAndGets) {
  v1::SubmitCampaignRequest request;
  *request.mutable_bundle() = TinyBundle();
  request.set_request_id("mine");
  const v1::Campaign campaign = service_.Ask(stub(), &Campaigns::SubmitCampaign, request);
  EXPECT_EQ(campaign.name(), "campaigns/1");
  EXPECT_EQ(campaign.state(), v1::WAITING);
  EXPECT_EQ(service_.Ask(stub(), &Campaigns::SubmitCampaign, request).name(), "campaigns/1");
  EXPECT_EQ(service_.Ask(stub(), &Campaigns::GetCampaign, Of<v1::GetCampaignRequest>("name", "campaigns/1")).message(),
            "no worker is registered: start pawl-worker");
  RefusesOtherNames(&Campaigns::GetCampaign, "name");
}

TEST_F(CampaignServiceTest, RefusesABundleWithItsMistakes) {
  v1::SubmitCampaignRequest request;
  *request.mutable_bundle() = TinyBundle();
  request.mutable_bundle()->clear_source();
  request.mutable_bundle()->clear_tolerance();
  v1::Campaign reply;
  const grpc::Status status = service_.Call(stub(), &Campaigns::SubmitCampaign, request, &reply);
  ExpectRefusal(status, INVALID_ARGUMENT, "2 mistakes");
  v1::ErrorDetail detail;
  ASSERT_TRUE(detail.ParseFromString(status.error_details()));
  EXPECT_EQ(detail.problems_size(), 2);
  // As many as there may be still fit into what a client reads of a status.
  *request.mutable_bundle() = TinyBundle();
  for (int i = 0; i < 250; ++i) request.mutable_bundle()->add_variables()->set_name("V" + std::string(60, 'x'));
  service_.Refuse(stub(), &Campaigns::SubmitCampaign, request, INVALID_ARGUMENT, "mistakes");
}

TEST(CampaignServiceLimitsTest, TakesSoManyCampaigns) {
  OrchestratorOptions options;
  options.max_unfinished = 1;
  RunningService service(options);
  service.Submit();
  v1::SubmitCampaignRequest request;
  *request.mutable_bundle() = TinyBundle();
  service.Refuse(service.campaigns(), &Campaigns::SubmitCampaign, request, RESOURCE_EXHAUSTED, "unfinished");
}

TEST_F(CampaignServiceTest, RefusesAMessageThatIsLargerThanAnyBundle) {
  v1::SubmitCampaignRequest request;
  *request.mutable_bundle() = TinyBundle();
  request.mutable_bundle()->mutable_source()->set_text(std::string(kMaxRpcBytes, ' '));
  v1::Campaign reply;
  const grpc::Status status = service_.Call(stub(), &Campaigns::SubmitCampaign, request, &reply);
  EXPECT_EQ(status.error_code(), RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_NE(status.error_message(), "") << "of gRPC itself, hence without details";
  EXPECT_EQ(service_.Submit(), "campaigns/1") << "and goes on";
}

TEST_F(CampaignServiceTest, Lists) {
  const std::string campaign = Finished();
  service_.Submit();
  auto page = service_.Ask(stub(), &Campaigns::ListCampaigns, Made<v1::ListCampaignsRequest>("page_size: 1"));
  ASSERT_EQ(page.campaigns_size(), 1);
  EXPECT_EQ(page.campaigns(0).name(), "campaigns/2");
  v1::ListCampaignsRequest next;
  next.set_page_token(page.next_page_token());
  page = service_.Ask(stub(), &Campaigns::ListCampaigns, next);
  ASSERT_EQ(page.campaigns_size(), 1);
  EXPECT_EQ(page.campaigns(0).name(), campaign);
  EXPECT_EQ(page.next_page_token(), "");
  service_.Refuse(stub(), &Campaigns::ListCampaigns, Made<v1::ListCampaignsRequest>("page_token: 'x'"),
                  INVALID_ARGUMENT, "page_token");
  service_.Refuse(stub(), &Campaigns::ListCampaigns, Made<v1::ListCampaignsRequest>("page_size: -1"), INVALID_ARGUMENT,
                  "page_size");

  const auto iterations =
      service_.Ask(stub(), &Campaigns::ListIterations, Of<v1::ListIterationsRequest>("campaign", campaign));
  EXPECT_EQ(iterations.iterations_size(), 6);
  EXPECT_EQ(iterations.iterations(1).pairs_size(), 0) << "those are GetIteration's";
  service_.Refuse(stub(), &Campaigns::ListIterations,
                  Of<v1::ListIterationsRequest>("campaign", campaign, "page_token: 'x'"), INVALID_ARGUMENT,
                  "page_token");
  RefusesOtherNames(&Campaigns::ListIterations, "campaign");

  const auto iteration =
      service_.Ask(stub(), &Campaigns::GetIteration, Of<v1::GetIterationRequest>("name", campaign + "/iterations/1"));
  EXPECT_EQ(iteration.pairs_size(), 12);
  service_.Refuse(stub(), &Campaigns::GetIteration, Of<v1::GetIterationRequest>("name", campaign + "/iterations/99"),
                  NOT_FOUND, "iterations/99");
  service_.Refuse(stub(), &Campaigns::GetIteration, Of<v1::GetIterationRequest>("name", campaign), INVALID_ARGUMENT,
                  "name");
}

TEST_F(CampaignServiceTest, PausesResumesAndCancels) {
  const std::string campaign = service_.Submit();
  const auto pause = Of<v1::PauseCampaignRequest>("name", campaign, "reason: 'lunch'");
  const auto resume = Of<v1::ResumeCampaignRequest>("name", campaign);
  const auto cancel = Of<v1::CancelCampaignRequest>("name", campaign);
  service_.Refuse(stub(), &Campaigns::ResumeCampaign, resume, FAILED_PRECONDITION, "not paused");
  EXPECT_EQ(service_.Ask(stub(), &Campaigns::PauseCampaign, pause).state(), v1::PAUSED);
  EXPECT_EQ(service_.Ask(stub(), &Campaigns::PauseCampaign, pause).state(), v1::PAUSED);
  EXPECT_EQ(service_.Ask(stub(), &Campaigns::ResumeCampaign, resume).state(), v1::WAITING);
  EXPECT_EQ(service_.Ask(stub(), &Campaigns::CancelCampaign, cancel).state(), v1::CANCELLED);
  EXPECT_EQ(service_.Ask(stub(), &Campaigns::CancelCampaign, cancel).state(), v1::CANCELLED);
  service_.Refuse(stub(), &Campaigns::PauseCampaign, pause, FAILED_PRECONDITION, "has ended");
  service_.Refuse(stub(), &Campaigns::ResumeCampaign, resume, FAILED_PRECONDITION, "has ended");
  const std::string finished = Finished();
  service_.Refuse(stub(), &Campaigns::CancelCampaign, Of<v1::CancelCampaignRequest>("name", finished),
                  FAILED_PRECONDITION, "FINISHED");
  RefusesOtherNames(&Campaigns::PauseCampaign, "name");
  RefusesOtherNames(&Campaigns::ResumeCampaign, "name");
  RefusesOtherNames(&Campaigns::CancelCampaign, "name");
}

TEST_F(CampaignServiceTest, GivesTheBestVariantWithItsBundle) {
  const std::string waiting = service_.Submit();
  service_.Refuse(stub(), &Campaigns::GetBestVariant, Of<v1::GetBestVariantRequest>("campaign", waiting),
                  FAILED_PRECONDITION, "has no kept variant yet");
  const auto best =
      service_.Ask(stub(), &Campaigns::GetBestVariant, Of<v1::GetBestVariantRequest>("campaign", Finished()));
  EXPECT_EQ(best.iteration().number(), 0);
  EXPECT_EQ(best.bundle().SerializeAsString().size(), TinyBundle().SerializeAsString().size());
  RefusesOtherNames(&Campaigns::GetBestVariant, "campaign");
}

TEST_F(CampaignServiceTest, Verifies) {
  const std::string campaign = Finished();
  const auto verify = Of<v1::VerifyIterationRequest>("name", campaign + "/iterations/0");
  EXPECT_EQ(service_.Ask(stub(), &Campaigns::VerifyIteration, verify).trial(), campaign + "/trials/7");
  EXPECT_EQ(service_.Ask(stub(), &Campaigns::VerifyIteration, verify).trial(), campaign + "/trials/7") << "the same";
  service_.Refuse(stub(), &Campaigns::VerifyIteration,
                  Of<v1::VerifyIterationRequest>("name", campaign + "/iterations/1"), FAILED_PRECONDITION,
                  "being verified");
  service_.RunAll("workers/a");
  service_.Refuse(stub(), &Campaigns::VerifyIteration,
                  Of<v1::VerifyIterationRequest>("name", campaign + "/iterations/99"), NOT_FOUND, "iterations/99");
  service_.Refuse(stub(), &Campaigns::VerifyIteration, Of<v1::VerifyIterationRequest>("name", campaign),
                  INVALID_ARGUMENT, "name");
  const std::string failed = service_.Submit();
  v1::CompleteTrialRequest result = RunningService::Result("workers/a", service_.Lease("workers/a"));
  *result.mutable_result() = FailedCheck(v1::CHECK_COMPILE, "no");
  service_.Ask(service_.workers(), &Workers::CompleteTrial, result);
  service_.Refuse(stub(), &Campaigns::VerifyIteration, Of<v1::VerifyIterationRequest>("name", failed + "/iterations/0"),
                  FAILED_PRECONDITION, "never measured");
}

TEST_F(CampaignServiceTest, TakesProposals) {
  const std::string campaign = service_.Submit();
  const auto propose = [&](const std::string& name, const std::string& variable, int to) {
    auto request = Of<v1::ProposeChangeRequest>("campaign", name, "author: 'ann'");
    request.mutable_change()->set_variable(variable);
    request.mutable_change()->set_to(to);
    return request;
  };
  service_.Refuse(stub(), &Campaigns::ProposeChange, propose(campaign, "SPLIT", 2), FAILED_PRECONDITION, "no kept");
  service_.Register("workers/a");
  service_.Ask(service_.workers(), &Workers::CompleteTrial,
               RunningService::Result("workers/a", service_.Lease("workers/a")));
  EXPECT_EQ(service_.Ask(stub(), &Campaigns::ProposeChange, propose(campaign, "SPLIT", 2)).waiting(), 0);
  const v1::LeaseTrialResponse next = service_.Lease("workers/a");
  for (const auto& [variable, value] : next.trial().variant().values()) {
    if (value == next.trial().parent().values().at(variable)) continue;
    service_.Refuse(stub(), &Campaigns::ProposeChange, propose(campaign, variable, value), ALREADY_EXISTS, "tried");
  }
  service_.Ask(service_.workers(), &Workers::CompleteTrial, RunningService::Result("workers/a", next));
  service_.Refuse(stub(), &Campaigns::ProposeChange, propose(campaign, "TILE", 65), INVALID_ARGUMENT, "no value 65");
  service_.Refuse(stub(), &Campaigns::ProposeChange, propose("campaigns/77", "TILE", 65), NOT_FOUND, "campaigns/77");
  service_.RunAll("workers/a");
  service_.Refuse(stub(), &Campaigns::ProposeChange, propose(campaign, "SPLIT", 2), FAILED_PRECONDITION, "has ended");
}

TEST_F(CampaignServiceTest, GivesBlobsAndListsWorkers) {
  auto put = Made<v1::PutBlobRequest>("kind: LOG content: 'it went well'");
  put.set_hash(Sha256(put.content()));
  service_.Ask(service_.workers(), &Workers::PutBlob, put);
  const auto blob = service_.Ask(stub(), &Campaigns::GetBlob, Of<v1::GetBlobRequest>("hash", put.hash()));
  EXPECT_EQ(blob.content(), "it went well");
  EXPECT_EQ(blob.blob().kind(), v1::Blob::LOG);
  service_.Refuse(stub(), &Campaigns::GetBlob, Of<v1::GetBlobRequest>("hash", "x"), NOT_FOUND, "blob x");
  EXPECT_EQ(service_.Ask(stub(), &Campaigns::ListWorkers, {}).workers_size(), 0);
  service_.Register("workers/a");
  EXPECT_EQ(service_.Ask(stub(), &Campaigns::ListWorkers, {}).workers(0).name(), "workers/a");
}

class WorkerServiceTest : public CampaignServiceTest {
 protected:
  WorkerServiceTest() : campaign_(service_.Submit()) { service_.Register("workers/a"); }
  template <typename Request>
  Request As(const std::string& worker, const std::string& rest = "") {
    return Of<Request>("worker", worker, "instance: 'one' " + rest);
  }
  // Every rpc of a worker but RegisterWorker.
  template <typename Request, typename Reply>
  void RefusesStrangers(grpc::Status (Workers::*rpc)(grpc::ClientContext*, const Request&, Reply*)) {
    service_.Refuse(service_.workers(), rpc, As<Request>("workers/stranger"), NOT_FOUND, "workers/stranger");
    service_.Refuse(service_.workers(), rpc, Made<Request>("worker: 'workers/a' instance: 'two'"), NOT_FOUND,
                    "workers/a");
    service_.Refuse(service_.workers(), rpc, As<Request>("workers/" + std::string(100'000, 'x')), NOT_FOUND, "no");
  }
  Workers& stub() { return service_.workers(); }

  const std::string campaign_;
};

TEST_F(WorkerServiceTest, Registers) {
  service_.Register("workers/a");
  auto request = Made<v1::RegisterWorkerRequest>(
      "name: 'workers/a' instance: 'two' protocol: WORKER_PROTOCOL_4 device { kind: DEVICE_KIND_CUDA label: 'NVIDIA "
      "H200' }");
  service_.Refuse(stub(), &Workers::RegisterWorker, request, ALREADY_EXISTS, "workers/a");
  request.set_name("a");
  service_.Refuse(stub(), &Workers::RegisterWorker, request, INVALID_ARGUMENT, "name");
}

TEST_F(WorkerServiceTest, LeasesRenewsAndCompletes) {
  RefusesStrangers(&Workers::LeaseTrial);
  RefusesStrangers(&Workers::RenewLease);
  RefusesStrangers(&Workers::CompleteTrial);
  RefusesStrangers(&Workers::DrainWorker);
  service_.Refuse(stub(), &Workers::LeaseTrial, As<v1::LeaseTrialRequest>("workers/a", "wait_seconds: 1000"),
                  INVALID_ARGUMENT, "wait_seconds");
  const v1::LeaseTrialResponse leased = service_.Lease("workers/a");
  ASSERT_TRUE(leased.has_trial());
  EXPECT_EQ(
      service_.Ask(stub(), &Workers::GetBundle, Of<v1::GetBundleRequest>("hash", leased.trial().bundle_hash())).name(),
      "tiny");
  service_.Refuse(stub(), &Workers::GetBundle, Of<v1::GetBundleRequest>("hash", "x"), NOT_FOUND, "bundle x");

  auto renew = As<v1::RenewLeaseRequest>("workers/a");
  service_.Refuse(stub(), &Workers::RenewLease, renew, PERMISSION_DENIED, "not this worker's");
  renew.set_lease(leased.lease());
  EXPECT_EQ(service_.Ask(stub(), &Workers::RenewLease, renew).lease_seconds(), 15);

  v1::CompleteTrialRequest result = RunningService::Result("workers/a", leased);
  result.clear_outcome();
  service_.Refuse(stub(), &Workers::CompleteTrial, result, INVALID_ARGUMENT, "outcome");
  result = RunningService::Result("workers/a", leased);
  result.set_lease("1.1.1.forged");
  service_.Refuse(stub(), &Workers::CompleteTrial, result, PERMISSION_DENIED, "not this worker's");
  result.set_lease(leased.lease());
  result.mutable_result()->add_blobs()->set_hash("never uploaded");
  service_.Refuse(stub(), &Workers::CompleteTrial, result, FAILED_PRECONDITION, "never uploaded");
  result.mutable_result()->clear_blobs();
  service_.Ask(stub(), &Workers::CompleteTrial, result);
  service_.Refuse(stub(), &Workers::CompleteTrial, result, ALREADY_EXISTS, "result already");
}

TEST_F(WorkerServiceTest, RefusesNumbersThatAreNotFiniteWhereverTheyAre) {
  const v1::LeaseTrialResponse leased = service_.Lease("workers/a");
  const v1::CompleteTrialRequest good = RunningService::Result("workers/a", leased);
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    v1::CompleteTrialRequest result = good;
    result.mutable_result()->add_errors()->set_relative(bad);
    service_.Refuse(stub(), &Workers::CompleteTrial, result, INVALID_ARGUMENT, "result.errors[0].relative");
    result = good;
    (*result.mutable_result()->mutable_evidence()->add_launches()->mutable_metrics())["waves"] = bad;
    service_.Refuse(stub(), &Workers::CompleteTrial, result, INVALID_ARGUMENT, "metrics");
    result = good;
    result.mutable_result()->set_copy_gb_s(bad);
    service_.Refuse(stub(), &Workers::CompleteTrial, result, INVALID_ARGUMENT, "result.copy_gb_s");
    auto renew = As<v1::RenewLeaseRequest>("workers/a");
    renew.set_lease(leased.lease());
    renew.mutable_progress()->set_seconds_left(bad);
    service_.Refuse(stub(), &Workers::RenewLease, renew, INVALID_ARGUMENT, "progress.seconds_left");
    v1::SubmitCampaignRequest submit;
    *submit.mutable_bundle() = TinyBundle();
    submit.mutable_spec()->mutable_goal()->set_speedup(bad);
    service_.Refuse(service_.campaigns(), &Campaigns::SubmitCampaign, submit, INVALID_ARGUMENT, "spec.goal.speedup");
  }
  service_.Ask(stub(), &Workers::CompleteTrial, good);
}

TEST_F(WorkerServiceTest, RefusesOldAttemptsAndCancelledCampaigns) {
  const v1::LeaseTrialResponse first = service_.Lease("workers/a");
  auto back = As<v1::CompleteTrialRequest>("workers/a", "given_back: true");
  back.set_lease(first.lease());
  service_.Ask(stub(), &Workers::CompleteTrial, back);
  const v1::LeaseTrialResponse second = service_.Lease("workers/a");
  service_.Refuse(stub(), &Workers::CompleteTrial, RunningService::Result("workers/a", first), ABORTED, "leased again");
  auto renew = As<v1::RenewLeaseRequest>("workers/a");
  renew.set_lease(first.lease());
  service_.Refuse(stub(), &Workers::RenewLease, renew, ABORTED, "ran out");
  service_.Ask(service_.campaigns(), &Campaigns::CancelCampaign, Of<v1::CancelCampaignRequest>("name", campaign_));
  renew.set_lease(second.lease());
  EXPECT_TRUE(service_.Ask(stub(), &Workers::RenewLease, renew).stop());
  service_.Refuse(stub(), &Workers::CompleteTrial, RunningService::Result("workers/a", second), FAILED_PRECONDITION,
                  "was cancelled");
}

TEST_F(WorkerServiceTest, TakesBlobs) {
  auto put = Made<v1::PutBlobRequest>("kind: CUBIN content: 'code' hash: 'x'");
  service_.Refuse(stub(), &Workers::PutBlob, put, INVALID_ARGUMENT, "hash");
  put.set_content(std::string(5 << 20, 'x'));
  v1::PutBlobResponse reply;
  EXPECT_EQ(service_.Call(stub(), &Workers::PutBlob, put, &reply).error_code(), RESOURCE_EXHAUSTED);
}

TEST_F(WorkerServiceTest, Drains) {
  service_.Ask(stub(), &Workers::DrainWorker, As<v1::DrainWorkerRequest>("workers/a"));
  service_.Refuse(stub(), &Workers::LeaseTrial, As<v1::LeaseTrialRequest>("workers/a"), FAILED_PRECONDITION,
                  "draining");
  service_.Ask(stub(), &Workers::DrainWorker, As<v1::DrainWorkerRequest>("workers/a", "gone: true"));
  service_.Refuse(stub(), &Workers::LeaseTrial, As<v1::LeaseTrialRequest>("workers/a"), NOT_FOUND, "workers/a");
}

TEST_F(WorkerServiceTest, AnswersALongPollWhenThereIsSomething) {
  service_.RunAll("workers/a");
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(40));
  grpc::CompletionQueue queue;
  const auto call =
      service_.workers().AsyncLeaseTrial(&context, As<v1::LeaseTrialRequest>("workers/a", "wait_seconds: 30"), &queue);
  v1::LeaseTrialResponse reply;
  grpc::Status status;
  call->Finish(&reply, &status, &reply);
  const std::string campaign = service_.Submit();
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.trial().name(), campaign + "/trials/1");
}

TEST_F(WorkerServiceTest, IsUnavailableWhileItShutsDown) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(40));
  grpc::CompletionQueue queue;
  service_.RunAll("workers/a");
  const auto call =
      service_.workers().AsyncLeaseTrial(&context, As<v1::LeaseTrialRequest>("workers/a", "wait_seconds: 30"), &queue);
  v1::LeaseTrialResponse reply;
  grpc::Status status;
  call->Finish(&reply, &status, &reply);
  service_.server().Drain(absl::Seconds(1), [] { return false; });
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  ExpectRefusal(status, UNAVAILABLE, "shuts down");
  service_.Refuse(stub(), &Workers::LeaseTrial, As<v1::LeaseTrialRequest>("workers/a"), UNAVAILABLE, "shuts down");
  v1::SubmitCampaignRequest submit;
  *submit.mutable_bundle() = TinyBundle();
  service_.Refuse(service_.campaigns(), &Campaigns::SubmitCampaign, submit, UNAVAILABLE, "shuts down");
}

TEST(UnwritableTest, MakesEveryChangeUnavailableUntilTheDiskIsThereAgain) {
  FaultyDisk disk;
  RunningService service;
  const std::string campaign = service.Submit();
  service.Register("workers/a");
  const v1::LeaseTrialResponse leased = service.Lease("workers/a");
  disk.FailWrites(SQLITE_FULL);
  auto& campaigns = service.campaigns();
  auto& workers = service.workers();
  const std::string name = "name: '" + campaign + "'", worker = "worker: 'workers/a' instance: 'one'";
  const std::string why = "no space is left";
  v1::SubmitCampaignRequest submit;
  *submit.mutable_bundle() = TinyBundle();
  service.Refuse(campaigns, &Campaigns::SubmitCampaign, submit, UNAVAILABLE, why);
  service.Refuse(campaigns, &Campaigns::PauseCampaign, Made<v1::PauseCampaignRequest>(name), UNAVAILABLE, why);
  service.Refuse(campaigns, &Campaigns::ResumeCampaign, Made<v1::ResumeCampaignRequest>(name), UNAVAILABLE, why);
  service.Refuse(campaigns, &Campaigns::CancelCampaign, Made<v1::CancelCampaignRequest>(name), UNAVAILABLE, why);
  service.Refuse(campaigns, &Campaigns::VerifyIteration,
                 Made<v1::VerifyIterationRequest>("name: '" + campaign + "/iterations/0'"), UNAVAILABLE, why);
  auto propose = Made<v1::ProposeChangeRequest>("author: 'ann' change { variable: 'SPLIT' to: 2 }");
  propose.set_campaign(campaign);
  service.Refuse(campaigns, &Campaigns::ProposeChange, propose, UNAVAILABLE, why);
  auto enroll = Made<v1::RegisterWorkerRequest>("name: 'workers/b' instance: 'b'");
  *enroll.mutable_device() = Made<v1::Device>("kind: DEVICE_KIND_CUDA label: 'L4'");
  service.Refuse(workers, &Workers::RegisterWorker, enroll, UNAVAILABLE, why);
  service.Refuse(workers, &Workers::LeaseTrial, Made<v1::LeaseTrialRequest>(worker), UNAVAILABLE, why);
  service.Refuse(workers, &Workers::CompleteTrial, RunningService::Result("workers/a", leased), UNAVAILABLE, why);
  service.Refuse(workers, &Workers::DrainWorker, Made<v1::DrainWorkerRequest>(worker), UNAVAILABLE, why);
  auto renew = Made<v1::RenewLeaseRequest>(worker);
  renew.set_lease(leased.lease());
  service.Refuse(workers, &Workers::RenewLease, renew, UNAVAILABLE, why);
  auto put = Made<v1::PutBlobRequest>("kind: LOG content: 'log'");
  put.set_hash(Sha256("log"));
  service.Refuse(workers, &Workers::PutBlob, put, UNAVAILABLE, why);
  EXPECT_EQ(service.Ask(campaigns, &Campaigns::GetCampaign, Made<v1::GetCampaignRequest>(name)).state(), v1::RUNNING)
      << "what is there can be read";
  disk.Heal();
  v1::CompleteTrialResponse reply;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (service.Call(workers, &Workers::CompleteTrial, RunningService::Result("workers/a", leased), &reply)
                 .error_code() == UNAVAILABLE &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  v1::ListIterationsRequest judged;
  judged.set_campaign(campaign);
  EXPECT_EQ(service.Ask(campaigns, &Campaigns::ListIterations, judged).iterations_size(), 1);
}

}  // namespace
}  // namespace pawl
