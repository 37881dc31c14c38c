// The real program: kill -9 at any moment loses nothing that was acknowledged, and it ends when it is told to.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sysexits.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "base/names/resource_name.h"
#include "db/store.h"
#include "grpcpp/grpcpp.h"
#include "pawl/v1/campaign_service.grpc.pb.h"
#include "pawl/v1/worker_service.grpc.pb.h"
#include "tests/instrumented.h"
#include "tests/orchestrator/engine/tiny_bundle.h"
#include "tests/orchestrator/orchestrator_process.h"
#include "tests/promises/soak.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using std::chrono::milliseconds;

milliseconds Limit(int of_release) { return milliseconds(static_cast<int>(of_release * kSlowdown)); }

class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() : folder_("pawl-kill-"), database_(folder_.path() / "pawl.db") {
    address_ = "unix:" + (folder_.path() / "socket").string();
    // A client finds a restarted orchestrator at once.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
    const auto channel = grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments);
    campaigns_ = v1::CampaignService::NewStub(channel);
    workers_ = v1::WorkerService::NewStub(channel);
  }

  std::unique_ptr<OrchestratorProcess> Start(const std::string& fault = "") {
    auto process = std::make_unique<OrchestratorProcess>(
        std::vector<std::string>{"--listen", address_, "--database", database_.string(), "--log-level", "error"},
        fault);
    if (fault.empty()) {  // with one it may have died by then
      EXPECT_TRUE(process->Listens()) << process->Output();
    }
    return process;
  }

  template <typename Stub, typename Request, typename Reply>
  grpc::Status Call(Stub& stub, grpc::Status (Stub::*rpc)(grpc::ClientContext*, const Request&, Reply*),
                    const Request& request, Reply* reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    context.set_wait_for_ready(true);  // a call that waits also drives the connection on; one that fails does not
    return (stub.*rpc)(&context, request, reply);
  }

  grpc::Status Submit(const std::string& request_id, v1::Campaign* reply) {
    v1::SubmitCampaignRequest request;
    *request.mutable_bundle() = TinyBundle();
    request.set_request_id(request_id);
    return Call(*campaigns_, &v1::CampaignService::Stub::SubmitCampaign, request, reply);
  }

  grpc::Status Register() {
    v1::RegisterWorkerRequest request;
    request.set_name("workers/a");
    request.set_instance("one");
    request.mutable_device()->set_kind(v1::DEVICE_KIND_CUDA);
    request.mutable_device()->set_label("NVIDIA H200");
    request.set_protocol(v1::WorkerProtocol_MAX);
    v1::RegisterWorkerResponse reply;
    return Call(*workers_, &v1::WorkerService::Stub::RegisterWorker, request, &reply);
  }

  grpc::Status Lease(v1::LeaseTrialResponse* leased, double wait_seconds = 0) {
    v1::LeaseTrialRequest request;
    request.set_worker("workers/a");
    request.set_instance("one");
    request.set_wait_seconds(wait_seconds);
    return Call(*workers_, &v1::WorkerService::Stub::LeaseTrial, request, leased);
  }

  // The worker's leases end, those too that it never heard of.
  grpc::Status StartAnew() {
    v1::DrainWorkerRequest request;
    request.set_worker("workers/a");
    request.set_instance("one");
    request.set_gone(true);
    v1::DrainWorkerResponse reply;
    (void)Call(*workers_, &v1::WorkerService::Stub::DrainWorker, request, &reply);
    return Register();
  }

  TemporaryFolder folder_;
  const std::filesystem::path database_;
  std::string address_;
  std::unique_ptr<v1::CampaignService::Stub> campaigns_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
};

class KillTest : public ProgramTest {
 protected:
  // Submits until it is told to stop; a submission that was not answered is asked for again.
  void SubmitAll() {
    for (int i = 0; !stop_submitting_; ++i) {
      v1::Campaign campaign;
      grpc::Status status;
      do {
        status = Submit("request " + std::to_string(i), &campaign);
      } while (MayBeThereAgain(status));
      ASSERT_TRUE(status.ok()) << status.error_message();
      EXPECT_EQ(submitted_.count(campaign.name()), 0u) << "two requests have one campaign";
      submitted_.insert(campaign.name());
      ++acknowledged_;
      // A few campaigns ahead of the worker, who has to bring them all to their end.
      while (5 * submitted_.size() > results_ + 20u && !stop_submitting_) std::this_thread::sleep_for(milliseconds(1));
    }
  }

  // Runs trials until all campaigns have ended.
  void Work() {
    while (!finished_ && !TooLate()) {
      v1::LeaseTrialResponse leased;
      const grpc::Status status = Lease(&leased, 0.1);
      if (status.error_code() == grpc::StatusCode::NOT_FOUND) {
        (void)Register();
      } else if (leased.has_trial()) {
        Complete(leased);
      } else if (status.ok() && stop_submitting_ && StartAnew().ok()) {
        finished_ = AllEnded();
      } else {
        MayBeThereAgain(status);
      }
    }
  }

  void Complete(const v1::LeaseTrialResponse& leased) {
    v1::CompleteTrialRequest request;
    request.set_worker("workers/a");
    request.set_instance("one");
    request.set_lease(leased.lease());
    const v1::Trial& trial = leased.trial();
    *request.mutable_result() = trial.has_parent() ? Measured(100, 120) : MeasuredStart(100);
    SayWhatItIsOf(trial, &request);
    for (int asked = 1;; ++asked) {
      v1::CompleteTrialResponse reply;
      const grpc::Status status = Call(*workers_, &v1::WorkerService::Stub::CompleteTrial, request, &reply);
      if (MayBeThereAgain(status)) continue;
      // The answer to an earlier try may have been lost with the orchestrator.
      EXPECT_TRUE(status.ok() || (asked > 1 && status.error_code() == grpc::StatusCode::ALREADY_EXISTS))
          << status.error_code() << " " << status.error_message();
      EXPECT_TRUE(completed_.insert(trial.name()).second) << trial.name() << " was leased after its result";
      ++acknowledged_;
      ++results_;
      return;
    }
  }

  // After a moment, since who asks all the time keeps it from starting.
  bool MayBeThereAgain(const grpc::Status& status) const {
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE || TooLate()) return false;
    std::this_thread::sleep_for(milliseconds(5));
    return true;
  }
  bool TooLate() const { return std::chrono::steady_clock::now() > deadline_; }

  bool AllEnded() {
    for (const std::string& name : submitted_) {
      v1::GetCampaignRequest request;
      request.set_name(name);
      v1::Campaign campaign;
      if (!Call(*campaigns_, &v1::CampaignService::Stub::GetCampaign, request, &campaign).ok()) return false;
      if (!campaign.has_end_time()) return false;
    }
    return true;
  }

  void CheckDatabase() {
    const auto store = Store::Open({.file = database_}).value();
    std::set<int64_t> sequences;
    std::map<std::string, int> finished;
    const std::vector<v1::Campaign> campaigns = store->ListCampaigns(0, 1'000'000).value();
    std::set<std::string> names;
    for (const v1::Campaign& campaign : campaigns) {
      SCOPED_TRACE(campaign.name());
      names.insert(campaign.name());
      EXPECT_EQ(campaign.state(), v1::FINISHED) << campaign.message();
      EXPECT_EQ(campaign.counts().tried(), 5);
      const int64_t number = *ParseCampaignName(campaign.name());
      std::set<int> iterations;
      const std::vector<v1::Event> events = store->Events(number, 0, 1'000'000).value();
      for (const v1::Event& event : events) {
        EXPECT_TRUE(sequences.insert(event.sequence()).second);
        if (!event.has_finished()) continue;
        EXPECT_TRUE(iterations.insert(event.finished().iteration().number()).second);
        ++finished[TrialName(number, event.finished().trial())];
      }
      EXPECT_EQ(iterations.size(), 6u);
      IterationQuery query;
      query.campaign = number;
      EXPECT_EQ(store->ListIterations(query)->size(), 6u);
    }
    for (const std::string& name : submitted_) EXPECT_TRUE(names.contains(name)) << name << " was acknowledged";
    for (const std::string& trial : completed_) EXPECT_EQ(finished[trial], 1) << trial << " was acknowledged";
    EXPECT_EQ(finished.size(), completed_.size());
    ASSERT_FALSE(sequences.empty());
    EXPECT_EQ(static_cast<int64_t>(sequences.size()), *sequences.rbegin()) << "the events have no gaps";
  }

  const std::chrono::steady_clock::time_point deadline_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(SoakCount(90, 900));
  std::atomic<bool> stop_submitting_ = false, finished_ = false;
  std::atomic<int> acknowledged_ = 0, results_ = 0;
  std::set<std::string> submitted_, completed_;  // as acknowledged; each by one thread, then by the test
};

TEST_F(KillTest, LosesNothingThatWasAcknowledged) {
  const int kills = SoakCount(10, 200);
  std::mt19937 random(std::random_device{}());
  std::unique_ptr<OrchestratorProcess> process = Start();
  std::thread client([&] { SubmitAll(); });
  std::thread worker([&] { Work(); });
  for (int i = 0; i < kills && !HasFailure(); ++i) {
    // In the midst of things: somewhere in what follows the next few acknowledgements.
    const int enough = acknowledged_ + 1 + static_cast<int>(random() % 20);
    while (acknowledged_ < enough && !TooLate()) std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    process->Signal(SIGKILL);
    EXPECT_EQ(process->WaitForEnd(Limit(5000)), -2);
    process = Start();
  }
  stop_submitting_ = true;
  client.join();
  worker.join();
  EXPECT_FALSE(TooLate());
  EXPECT_GT(acknowledged_, kills);
  process->Signal(SIGTERM);
  EXPECT_EQ(process->WaitForEnd(Limit(5000)), 0);
  CheckDatabase();
  if (HasFailure()) return;
  ReportPromise(1, std::to_string(kills) + " kills under load, " + std::to_string(acknowledged_) +
                       " acknowledged writes: 0 lost, 0 doubled");
}

// Not at random but between two steps, wherever there are two.
TEST_F(KillTest, LosesNothingAtAnyFaultPoint) {
  std::unique_ptr<OrchestratorProcess> process = Start("after-commit:3");
  std::thread client([&] { SubmitAll(); });
  std::thread worker([&] { Work(); });
  int deaths = 0;
  for (int round = 0; round < SoakCount(2, 20); ++round) {
    for (const char* point : {"before-commit", "after-commit", "after-result"}) {
      EXPECT_EQ(process->WaitForEnd(Limit(20'000)), -2) << "it did not get to its fault point";
      ++deaths;
      process = Start(point + (":" + std::to_string(1 + 7 * round % 10)));
    }
  }
  EXPECT_EQ(process->WaitForEnd(Limit(20'000)), -2);
  process = Start();
  stop_submitting_ = true;
  client.join();
  worker.join();
  EXPECT_FALSE(TooLate());
  process->Signal(SIGTERM);
  EXPECT_EQ(process->WaitForEnd(Limit(5000)), 0);
  CheckDatabase();
  if (HasFailure()) return;
  ReportPromise(1, "fault points before commit, after commit and after a result: " + std::to_string(deaths + 1) +
                       " deaths, " + std::to_string(acknowledged_) + " acknowledged writes: 0 lost, 0 doubled");
}

TEST_F(ProgramTest, EndsAtOnceWhenNothingIsLeased) {
  const auto process = Start();
  v1::Campaign campaign;
  ASSERT_TRUE(Submit("mine", &campaign).ok());
  // Somebody follows it, which is no reason to stay.
  grpc::ClientContext context;
  v1::WatchCampaignRequest watch;
  watch.set_campaign(campaign.name());
  const auto reader = campaigns_->WatchCampaign(&context, watch);
  v1::WatchCampaignResponse message;
  ASSERT_TRUE(reader->Read(&message));
  process->Signal(SIGTERM);
  EXPECT_EQ(process->WaitForEnd(Limit(2000)), 0);
  while (reader->Read(&message)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ProgramTest, WaitsForLeasesUntilASecondSignal) {
  const auto process = Start();
  v1::Campaign campaign;
  ASSERT_TRUE(Submit("mine", &campaign).ok());
  ASSERT_TRUE(Register().ok());
  v1::LeaseTrialResponse leased;
  ASSERT_TRUE(Lease(&leased).ok());
  ASSERT_TRUE(leased.has_trial());
  process->Signal(SIGTERM);
  EXPECT_EQ(process->WaitForEnd(milliseconds(700)), -1) << "the worker may still deliver";
  process->Signal(SIGTERM);
  EXPECT_EQ(process->WaitForEnd(Limit(3000)), 0);
}

TEST_F(ProgramTest, EndsWhenTheLastLeaseIsDelivered) {
  const auto process = Start();
  v1::Campaign campaign;
  ASSERT_TRUE(Submit("mine", &campaign).ok());
  ASSERT_TRUE(Register().ok());
  v1::LeaseTrialResponse leased;
  ASSERT_TRUE(Lease(&leased).ok());
  process->Signal(SIGINT);
  v1::LeaseTrialResponse more;
  grpc::Status status;
  do {
    status = Lease(&more);
  } while (status.ok());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  v1::CompleteTrialRequest request;
  request.set_worker("workers/a");
  request.set_instance("one");
  request.set_lease(leased.lease());
  *request.mutable_result() = MeasuredStart(100);
  SayWhatItIsOf(leased.trial(), &request);
  v1::CompleteTrialResponse reply;
  ASSERT_TRUE(Call(*workers_, &v1::WorkerService::Stub::CompleteTrial, request, &reply).ok());
  EXPECT_EQ(process->WaitForEnd(Limit(2000)), 0);
}

TEST_F(ProgramTest, ListensAgainAfterConnectionsHadUsedUpItsFiles) {
  const auto process = Start();
  const rlimit few = {64, 64};
  ASSERT_EQ(prlimit(std::stoi(process->pid()), RLIMIT_NOFILE, &few, nullptr), 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  address_.copy(address.sun_path, sizeof address.sun_path - 1, 5);
  std::vector<int> idle;
  for (int i = 0; i < 80; ++i) {
    idle.push_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(idle.back(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  // The last one was accepted, or refused.
  pollfd last = {idle.back(), POLLIN, 0};
  EXPECT_EQ(poll(&last, 1, static_cast<int>(Limit(5000).count())), 1);
  for (const int connection : idle) close(connection);
  v1::Campaign campaign;
  const grpc::Status status = Submit("mine", &campaign);
  EXPECT_TRUE(status.ok()) << status.error_message();
  process->Signal(SIGKILL);
  process->WaitForEnd(Limit(2000));
}

TEST_F(ProgramTest, RefusesADatabaseThatAnotherHasAndNamesIt) {
  const auto process = Start();
  OrchestratorProcess second({"--listen", "127.0.0.1:0", "--database", database_.string()});
  EXPECT_EQ(second.WaitForEnd(Limit(5000)), EX_TEMPFAIL);
  const std::string said = second.Output();
  EXPECT_NE(said.find("process " + process->pid()), std::string::npos) << said;
  EXPECT_NE(said.find(address_), std::string::npos) << said;
  v1::Campaign campaign;
  EXPECT_TRUE(Submit("mine", &campaign).ok()) << "the first goes on";
}

TEST_F(ProgramTest, BacksUpWhileItRuns) {
  const auto process = Start();
  v1::Campaign campaign;
  ASSERT_TRUE(Submit("mine", &campaign).ok());
  const std::filesystem::path copy = folder_.path() / "copy.db";
  const std::vector<std::string> arguments = {"--database", database_.string(), "--backup", copy.string()};
  OrchestratorProcess backup(arguments);
  EXPECT_EQ(backup.WaitForEnd(Limit(10000)), 0) << backup.Output();
  const auto store = Store::Open({.file = copy}).value();
  EXPECT_EQ(store->GetCampaign(1)->value().name(), campaign.name());
  OrchestratorProcess again(arguments);
  EXPECT_EQ(again.WaitForEnd(Limit(10000)), 1);
  EXPECT_NE(again.Output().find("exists"), std::string::npos);
  EXPECT_TRUE(Submit("another", &campaign).ok());
}

TEST_F(ProgramTest, SaysWhatIsWrongWithItsArguments) {
  OrchestratorProcess exposed({"--listen", "0.0.0.0:7465", "--database", database_.string()});
  EXPECT_EQ(exposed.WaitForEnd(Limit(5000)), 2);
  EXPECT_NE(exposed.Output().find("ssh -L"), std::string::npos);
  OrchestratorProcess unknown({"--lisen", "x"});
  EXPECT_EQ(unknown.WaitForEnd(Limit(5000)), 2);
}

}  // namespace
}  // namespace pawl
