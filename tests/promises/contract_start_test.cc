// A campaign that is submitted without device code, on a worker with a GPU: proposals that fail, the one that becomes
// the start, a kept edit; and an orchestrator that is killed at each step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "kernels/bundle_message.h"
#include "kernels/read/bundle_reader.h"
#include "tests/kernels/bundle_folder.h"
#include "tests/kernels/contract_alone.h"
#include "tests/orchestrator/engine/tiny_bundle.h"
#include "tests/promises/client.h"
#include "tests/promises/daemon.h"
#include "tests/promises/fake_gpu_worker.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

constexpr char kKernel[] =
    "extern \"C\" __global__ void copy(const float* in, float* out, int n) { int tile = TILE; }\n";
constexpr char kToml[] =
    "source = \"src/copy.cu\"\nfiles = [\"src/*.cuh\"]\n"
    "[[variable]]\nname = \"TILE\"\nvalues = [64, 128]\nstart = 64\n"
    "[[launch]]\nentry = \"copy\"\ngrid = [\"ceil_div(N, TILE)\"]\nblock = [\"TILE\"]\n"
    "arguments = [\"in\", \"out\", \"N\"]\n";

class ContractStartTest : public testing::Test {
 protected:
  ContractStartTest() {
    contract_ = WithoutImplementation(TinyBundle());
    contract_.set_compiler(v1::COMPILER_NVCC);
    Start();
    worker_ = FakeGpuWorker(address_, "gpu-0");
  }

  void Start() {
    orchestrator_ = std::make_unique<Daemon>(
        "pawl-orchestrator",
        std::vector<std::string>{"--listen", address_, "--database", (folder_.path() / "pawl.db").string()});
  }
  void KillAndStart() {
    orchestrator_->Signal(SIGKILL);
    (void)orchestrator_->WaitForEnd(std::chrono::seconds(10));
    Start();
  }

  grpc::Status Propose(const std::string& campaign, const std::string& patch, const std::string& name) {
    v1::ProposeChangeRequest request;
    request.set_campaign(campaign);
    request.set_author("ann");
    request.mutable_change()->mutable_source()->set_name(name);
    request.mutable_change()->mutable_source()->set_patch(patch);
    v1::ProposeChangeResponse response;
    grpc::Status status;
    // The first call may still meet the connection that the kill broke.
    (void)Client::Until(std::chrono::seconds(10), [&] {
      status = Client::Call(client_.campaigns(), &Client::Campaigns::ProposeChange, request, &response);
      return status.error_code() != grpc::StatusCode::UNAVAILABLE;
    });
    return status;
  }
  std::string StartPatch(const std::string& first_line) const {
    return absl::StrCat(AddingFile("src/copy.cu", first_line + "\n" + kKernel),
                        AddingFile("src/tile.cuh", "#pragma once\n"), AddingToml(contract_, kToml));
  }

  v1::ListIterationsResponse History(const std::string& campaign) {
    v1::ListIterationsRequest request;
    request.set_campaign(campaign);
    return Client::Ask<Client::Campaigns, v1::ListIterationsRequest, v1::ListIterationsResponse>(
        client_.campaigns(), &Client::Campaigns::ListIterations, request);
  }
  testing::AssertionResult HasIterations(const std::string& campaign, int count) {
    if (Client::Until(std::chrono::seconds(60), [&] { return History(campaign).iterations_size() >= count; })) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << worker_->Output() << orchestrator_->Output();
  }

  const TemporaryFolder folder_{"pawl-contract-"};
  const std::string address_ = "unix:" + (folder_.path() / "socket").string();
  v1::Bundle contract_;
  std::unique_ptr<Daemon> orchestrator_, worker_;
  Client client_{address_};
};

TEST_F(ContractStartTest, GivesAnAgentTheContractToStartFrom) {
  const std::string campaign = client_.Submit(contract_);
  const std::filesystem::path folder = folder_.path() / "agents";
  Daemon agent("pawl", {"agent", campaign, "--command", "cat contract/reference.cu contract/contract.json", "--folder",
                        folder.string(), "--orchestrator", address_});
  EXPECT_NE(agent.WaitForEnd(std::chrono::seconds(60)), -1) << agent.Output();
  EXPECT_TRUE(std::filesystem::exists(folder / "agent-1/implementation/kernel.toml")) << agent.Output();
  std::ifstream printed(folder / "agent-1.out");
  const std::string text{std::istreambuf_iterator<char>(printed), {}};
  EXPECT_THAT(text, HasSubstr("__global__ void copy_reference()"));
  EXPECT_THAT(text, HasSubstr("\"summary\": \"Copies a vector\""));
}

// What `pawl best --output` writes and the contract's folder are a bundle, with what was kept as its start.
TEST_F(ContractStartTest, HandsOverTheWholeImplementation) {
  const BundleFolder contract;
  contract.Write("kernel.toml", absl::StrCat("compiler = \"nvcc\"\n", kContractToml));
  const auto pawl = [&](std::vector<std::string> arguments) {
    if (arguments[0] != "check") arguments.insert(arguments.end(), {"--orchestrator", address_});
    Daemon command("pawl", arguments, FakeGpuEnvironment());
    EXPECT_EQ(command.WaitForEnd(std::chrono::seconds(60)), 0) << command.Output();
    return command.Output();
  };
  contract_ = ReadBundle(contract.path()).bundle;
  pawl({"submit", contract.path().string()});
  ASSERT_TRUE(Propose("campaigns/1", StartPatch("#pragma fake time 90"), "a start").ok());
  ASSERT_TRUE(HasIterations("campaigns/1", 1));
  const std::filesystem::path winner = folder_.path() / "winner";
  const std::string said = pawl({"best", "1", "--output", winner.string(), "--no-verify"});
  EXPECT_THAT(said, HasSubstr("winner.patch"));
  std::filesystem::copy(winner / "implementation", contract.path(), std::filesystem::copy_options::recursive);
  pawl({"check", contract.path().string(), "--no-build"});
  const v1::Bundle bundle = ReadBundle(contract.path()).bundle;
  v1::GetBestVariantRequest best;
  best.set_campaign("campaigns/1");
  const auto variant = Client::Ask<Client::Campaigns, v1::GetBestVariantRequest, v1::BestVariant>(
      client_.campaigns(), &Client::Campaigns::GetBestVariant, best);
  EXPECT_EQ(BundleBytes(bundle), BundleBytes(variant.bundle()));
  // It can be submitted as it is now.
  pawl({"submit", contract.path().string()});
  EXPECT_TRUE(HasIterations("campaigns/2", 1));
}

TEST_F(ContractStartTest, SurvivesKillsBeforeAndAfterTheStart) {
  const std::string campaign = client_.Submit(contract_);
  EXPECT_EQ(client_.Get(campaign).waiting_for(), v1::WAITING_FOR_PROPOSAL);
  KillAndStart();
  ASSERT_TRUE(Propose(campaign, StartPatch("#error not yet"), "does not compile").ok());
  ASSERT_TRUE(HasIterations(campaign, 1));
  KillAndStart();
  ASSERT_TRUE(Propose(campaign, StartPatch("#pragma fake cuda 700"), "faults").ok());
  KillAndStart();  // what was acknowledged is tried
  ASSERT_TRUE(HasIterations(campaign, 2));
  v1::Campaign now = client_.Get(campaign);
  EXPECT_FALSE(now.has_best());
  EXPECT_EQ(now.state(), v1::RUNNING);
  EXPECT_EQ(now.counts().rejected(), 2);

  ASSERT_TRUE(Propose(campaign, StartPatch("#pragma fake time 90"), "a start").ok());
  KillAndStart();
  ASSERT_TRUE(HasIterations(campaign, 3));
  now = client_.Get(campaign);
  ASSERT_TRUE(now.has_best()) << worker_->Output();
  EXPECT_EQ(now.best(), 0);
  EXPECT_EQ(now.start_us(), 90);
  const std::string with_start = now.bundle_hash();
  KillAndStart();
  EXPECT_EQ(client_.Get(campaign).bundle_hash(), with_start);

  const std::string edit =
      absl::StrCat("--- a/src/copy.cu\n+++ b/src/copy.cu\n@@ -1,2 +1,2 @@\n-#pragma fake time 90\n",
                   "+#pragma fake time 40\n ", kKernel);
  const grpc::Status proposed = Propose(campaign, edit, "faster");
  ASSERT_TRUE(proposed.ok()) << proposed.error_message();
  KillAndStart();
  ASSERT_TRUE(HasIterations(campaign, 4));
  const v1::ListIterationsResponse history = History(campaign);
  ASSERT_EQ(history.iterations_size(), 4);
  EXPECT_EQ(history.iterations(0).number(), 0);
  EXPECT_EQ(history.iterations(0).verdict(), v1::KEPT);
  EXPECT_EQ(history.iterations(0).change().source().name(), "a start");
  EXPECT_EQ(history.iterations(1).verdict(), v1::REJECTED);
  EXPECT_THAT(history.iterations(1).reason(), HasSubstr("#error directive: not yet"));
  EXPECT_EQ(history.iterations(2).verdict(), v1::REJECTED);
  EXPECT_EQ(history.iterations(2).failure().check(), v1::CHECK_FAULT) << history.iterations(2).reason();
  EXPECT_EQ(history.iterations(3).verdict(), v1::KEPT) << history.iterations(3).reason();
  EXPECT_EQ(history.iterations(3).parent(), 0);
  EXPECT_NEAR(history.iterations(3).speedup_over_start(), 2.25, 0.01);
  now = client_.Get(campaign);
  EXPECT_EQ(now.best(), 3);
  EXPECT_EQ(now.counts().tried(), 3);
  v1::GetBestVariantRequest best;
  best.set_campaign(campaign);
  const auto variant = Client::Ask<Client::Campaigns, v1::GetBestVariantRequest, v1::BestVariant>(
      client_.campaigns(), &Client::Campaigns::GetBestVariant, best);
  EXPECT_THAT(BundleProblems(variant.bundle()), testing::IsEmpty());
  EXPECT_EQ(variant.bundle().source().path(), "src/copy.cu");
  ASSERT_EQ(variant.bundle().files_size(), 1);
  EXPECT_EQ(variant.bundle().files(0).path(), "src/tile.cuh");
}

}  // namespace
}  // namespace pawl
