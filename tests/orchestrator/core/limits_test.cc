// Every stated limit of the services: what is at it is taken, what is one beyond it is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

constexpr absl::StatusCode kBad = absl::StatusCode::kInvalidArgument;

void ExpectRefused(const absl::Status& status, const std::string& field, absl::StatusCode code = kBad) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_EQ(DetailOf(status).field(), field) << status;
}

TEST(LimitsTest, OfAWorkersNameAndInstance) {
  World world;
  const auto enroll = [&](int name, int instance) {
    v1::RegisterWorkerRequest request;
    request.set_name("workers/" + std::string(name, 'n'));
    request.set_instance(std::string(instance, 'i'));
    request.set_protocol(v1::WorkerProtocol_MAX);
    *request.mutable_device() = MadeDevice();
    return world->Register(request).status();
  };
  EXPECT_TRUE(enroll(1, 1).ok());
  EXPECT_TRUE(enroll(100, 100).ok());
  ExpectRefused(enroll(0, 1), "name");
  ExpectRefused(enroll(101, 1), "name");
  ExpectRefused(enroll(2, 0), "instance");
  ExpectRefused(enroll(2, 101), "instance");
}

TEST(LimitsTest, OfWaitingForATrial) {
  World world;
  ScriptedWorker worker(world, "a");
  std::optional<absl::Status> answer;
  const auto wait = [&](double seconds) {
    answer.reset();
    const uint64_t waiting =
        worker.Wait(seconds, [&](const absl::StatusOr<v1::LeaseTrialResponse>& given) { answer = given.status(); });
    world->Forget(waiting);
    return answer.value_or(absl::OkStatus());
  };
  EXPECT_TRUE(wait(0).ok());
  EXPECT_TRUE(wait(60).ok());
  ExpectRefused(wait(60.001), "wait_seconds");
  ExpectRefused(wait(-0.001), "wait_seconds");
}

TEST(LimitsTest, OfAPage) {
  World world;
  const std::string campaign = world.Submit();
  for (const auto& [size, fits] : {std::pair{0, true}, {1000, true}, {1001, false}, {-1, false}}) {
    SCOPED_TRACE(size);
    v1::ListCampaignsRequest campaigns;
    campaigns.set_page_size(size);
    v1::ListIterationsRequest iterations;
    iterations.set_campaign(campaign);
    iterations.set_page_size(size);
    for (const absl::Status& status :
         {world.history().ListCampaigns(campaigns).status(), world.history().ListIterations(iterations).status()}) {
      EXPECT_EQ(status.ok(), fits);
      EXPECT_EQ(DetailOf(status).field(), fits ? "" : "page_size");
    }
  }
}

TEST(LimitsTest, OfASubmissionsTexts) {
  World world;
  const auto submit = [&](int id, int author) {
    v1::SubmitCampaignRequest request;
    *request.mutable_bundle() = TinyBundle();
    request.set_request_id(std::string(id, 'r'));
    request.set_author(std::string(author, 'a'));
    return world->Submit(request).status();
  };
  EXPECT_TRUE(submit(64, 1000).ok());
  ExpectRefused(submit(65, 1), "request_id");
  ExpectRefused(submit(1, 1001), "author");
}

TEST(LimitsTest, OfUnfinishedCampaigns) {
  OrchestratorOptions options;
  options.max_unfinished = 3;
  World world(options);
  for (int i = 0; i < 3; ++i) world.Submit();
  v1::SubmitCampaignRequest request;
  *request.mutable_bundle() = TinyBundle();
  EXPECT_EQ(world->Submit(request).status().code(), absl::StatusCode::kResourceExhausted);
  v1::CancelCampaignRequest cancel;
  cancel.set_name("campaigns/1");
  ASSERT_TRUE(world->Cancel(cancel).ok());
  EXPECT_TRUE(world->Submit(request).ok());
}

v1::SubmitCampaignRequest OfBytes(int64_t bytes, char letter, const std::string& author) {
  v1::SubmitCampaignRequest request;
  *request.mutable_bundle() = TinyBundle();
  std::string& text = *request.mutable_bundle()->mutable_source()->mutable_text();
  text += "//";
  text.append(bytes - request.bundle().ByteSizeLong(), letter);
  text.resize(text.size() - (request.bundle().ByteSizeLong() - bytes));  // lengths take more bytes in a longer bundle
  EXPECT_EQ(static_cast<int64_t>(request.bundle().ByteSizeLong()), bytes);
  request.set_author(author);
  return request;
}

TEST(LimitsTest, OfTheBytesOfUnfinishedCampaignsBundles) {
  OrchestratorOptions options;
  options.max_author_bytes = 100'000;
  options.max_bundle_bytes = 150'000;
  World world(options);
  int refused = 0, taken = 0;
  const auto submit = [&](int64_t bytes, char letter, const std::string& author) {
    const absl::Status status = world->Submit(OfBytes(bytes, letter, author)).status();
    refused += absl::IsResourceExhausted(status);
    taken += status.ok();
    return status;
  };
  const auto full = absl::StatusCode::kResourceExhausted;
  ASSERT_TRUE(submit(60'000, 'a', "ann").ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(submit(60'000, 'a', "ann").ok()) << "a shared bundle counts once";
  ExpectError(submit(40'001, 'b', "ann"), full, "of ann would be 0.1 MB with this one, and at most 0.1 MB");
  ASSERT_TRUE(submit(40'000, 'b', "ann").ok());
  ExpectError(submit(50'001, 'c', "bob"), full, "the bundles and proposals of unfinished campaigns would be");
  ASSERT_TRUE(submit(50'000, 'c', "bob").ok());
  EXPECT_EQ(submit(60'000, 'a', "bob").code(), full) << "it would be bob's as well: 110,000 bytes";
  ExpectError(submit(10'000, 'd', ""), full, "the bundles and proposals of unfinished campaigns would be");
  v1::CancelCampaignRequest cancel;
  for (int number = 1; number <= 6; ++number) {
    EXPECT_EQ(submit(10'000, 'd', "").code(), full) << "another campaign still has it";
    cancel.set_name("campaigns/" + std::to_string(number));
    ASSERT_TRUE(world->Cancel(cancel).ok());
  }
  EXPECT_TRUE(submit(10'000, 'd', "").ok());
  world.Restart();
  ExpectError(submit(60'001, 'e', "ann"), full, "of ann");
  ReportPromise(20, absl::StrCat("bundles around the limits of all and of one author: ", taken,
                                 " up to them were taken, ", refused, " from one byte above were refused"));
}

TEST(LimitsTest, OfTheBytesOfAnAuthorsProposals) {
  OrchestratorOptions options;
  options.max_author_bytes = 20'000;
  World world(options);
  v1::CampaignSpec spec;
  spec.mutable_chooser()->set_kind(v1::CHOOSER_KIND_OUTSIDE);
  v1::Bundle bundle = TinyBundle();
  bundle.mutable_source()->set_text("#define WORD one\n" + bundle.source().text());
  const std::string campaign = world.Submit(spec, bundle);
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  int refused = 0;
  const auto propose = [&](int bytes, char letter, const std::string& author) {
    v1::ProposeChangeRequest request;
    request.set_campaign(campaign);
    request.set_author(author);
    request.mutable_change()->mutable_source()->set_name("an edit");
    const std::string head = "@@ -1 +1 @@\n-#define WORD one\n+#define WORD ";
    request.mutable_change()->mutable_source()->set_patch(head + std::string(bytes, letter) + "\n");
    const absl::Status status = world->Propose(request).status();
    refused += absl::IsResourceExhausted(status);
    return status;
  };
  ASSERT_TRUE(propose(2'000, 'a', "ann").ok());  // is planned at once
  ASSERT_TRUE(propose(8'000, 'b', "ann").ok());
  ExpectError(propose(8'000, 'c', "ann"), absl::StatusCode::kResourceExhausted,
              "proposals of unfinished campaigns of ann");
  EXPECT_TRUE(propose(8'000, 'c', "bob").ok());
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());  // ann's first
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());  // and second, which made a source
  EXPECT_EQ(propose(5'000, 'd', "ann").code(), absl::StatusCode::kResourceExhausted) << "the sources are still there";
  ReportPromise(20,
                absl::StrCat(refused, " source edits above their author's limit were refused, those of another taken"));
}

// What an edit makes is the whole source, held from the proposal to the campaign's end.
TEST(LimitsTest, OfTheBytesOfEditsThatWaitOrAreBeingTried) {
  OrchestratorOptions options;
  options.max_author_bytes = 12'000;
  World world(options);
  v1::CampaignSpec spec;
  spec.mutable_chooser()->set_kind(v1::CHOOSER_KIND_OUTSIDE);
  v1::Bundle bundle = TinyBundle();
  bundle.mutable_source()->set_text("#define WORD one\n" + bundle.source().text() + "//" + std::string(4'000, 'x') +
                                    "\n");
  const std::string campaign = world.Submit(spec, bundle);
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  const auto propose = [&](const std::string& word, const std::string& author) {
    v1::ProposeChangeRequest request;
    request.set_campaign(campaign);
    request.set_author(author);
    request.mutable_change()->mutable_source()->set_name("an edit");
    request.mutable_change()->mutable_source()->set_patch("@@ -1 +1 @@\n-#define WORD one\n+#define WORD " + word +
                                                          "\n");
    return world->Propose(request).status();
  };
  ASSERT_TRUE(propose("two", "ann").ok());  // is planned at once
  ASSERT_TRUE(propose("three", "ann").ok());
  for (int restarts = 0; restarts < 2; ++restarts) {
    ExpectError(propose("four", "ann"), absl::StatusCode::kResourceExhausted,
                "proposals of unfinished campaigns of ann");
    world.Restart();
  }
  EXPECT_TRUE(propose("four", "bob").ok());
}

TEST(LimitsTest, OfTheBytesOfAHandOffThatIsVerified) {
  OrchestratorOptions options;
  options.max_author_bytes = static_cast<int64_t>(TinyBundle().ByteSizeLong()) + 10'000;
  World world(options);
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  EXPECT_EQ(worker.RunAll(), 5);
  ASSERT_EQ(world.Get(campaign).state(), v1::FINISHED);
  const auto verify = [&](size_t bytes) {
    v1::VerifyIterationRequest request;
    request.set_name(campaign + "/iterations/0");
    v1::SourceFile& file = *request.add_hand_off();
    file.set_path("check_program.sh");
    file.set_text(std::string(bytes, 'x'));
    return world->Verify(request).status();
  };
  const auto full = absl::StatusCode::kResourceExhausted;
  ExpectError(verify(10'001), full, "without an author");
  ASSERT_TRUE(verify(9'900).ok());
  EXPECT_EQ(world->Submit(OfBytes(TinyBundle().ByteSizeLong() + 100, 'b', "")).status().code(), full)
      << "what is verified is in memory as well";
  worker.RunAll();
  EXPECT_TRUE(world->Submit(OfBytes(TinyBundle().ByteSizeLong() + 100, 'b', "")).ok());
}

TEST(LimitsTest, OfAProposal) {
  World world;
  const std::string campaign = world.Submit();
  const auto propose = [&](int name, int patch, int author) {
    v1::ProposeChangeRequest request;
    request.set_campaign(campaign);
    request.set_author(std::string(author, 'a'));
    request.mutable_change()->mutable_source()->set_name(std::string(name, 'n'));
    request.mutable_change()->mutable_source()->set_patch(std::string(patch, 'p'));
    return DetailOf(world->Propose(request).status()).field();
  };
  // Refused as well, since nothing was kept yet, but for none of its fields.
  EXPECT_EQ(propose(1, 1, 1), "");
  EXPECT_EQ(propose(100, 100'000, 1000), "");
  EXPECT_EQ(propose(0, 1, 1), "change.source.name");
  EXPECT_EQ(propose(101, 1, 1), "change.source.name");
  EXPECT_EQ(propose(1, 100'001, 1), "change.source.patch");
  EXPECT_EQ(propose(1, 1, 0), "author");
  EXPECT_EQ(propose(1, 1, 1001), "author");
}

TEST(LimitsTest, OfWaitingProposalsAndOfTheSourceThatAnEditMakes) {
  World world;
  v1::CampaignSpec spec;
  spec.mutable_chooser()->set_kind(v1::CHOOSER_KIND_OUTSIDE);
  v1::Bundle bundle = TinyBundle();
  bundle.mutable_source()->set_text("#define WORD one\n" + std::string("//") + std::string(200'000, 'x') + "\n");
  const std::string campaign = world.Submit(spec, bundle);
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  const auto propose = [&](const std::string& word) {
    v1::ProposeChangeRequest request;
    request.set_campaign(campaign);
    request.set_author("ann");
    request.mutable_change()->mutable_source()->set_name("an edit");
    request.mutable_change()->mutable_source()->set_patch("@@ -1 +1 @@\n-#define WORD one\n+#define WORD " + word +
                                                          "\n");
    return world->Propose(request).status();
  };
  const size_t room = (256 << 10) - (bundle.source().text().size() - 3);  // for the word
  ExpectRefused(propose(std::string(room + 1, 'w')), "change");
  EXPECT_TRUE(propose(std::string(room, 'w')).ok());  // is planned at once
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(propose("w" + std::to_string(i)).ok()) << i;
  ExpectError(propose("one_more"), absl::StatusCode::kResourceExhausted, "100 proposals waiting");
}

TEST(LimitsTest, OfAHandOff) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  worker.RunAll();
  const auto verify = [&](int files, size_t bytes, const std::string& path = "a/check.sh") {
    v1::VerifyIterationRequest request;
    request.set_name(campaign + "/iterations/0");
    for (int i = 1; i < files; ++i) request.add_hand_off()->set_path("f" + std::to_string(i));
    for (const v1::SourceFile& file : request.hand_off()) bytes -= std::min(bytes, file.ByteSizeLong());
    v1::SourceFile& last = *request.add_hand_off();
    last.set_path(path);
    last.set_text(std::string(bytes, 'x'));
    while (last.ByteSizeLong() > bytes && bytes > 100) last.mutable_text()->pop_back();  // with its path and lengths
    return world->Verify(request).status();
  };
  const size_t most = 3 << 20;
  ExpectRefused(verify(1, most + 1), "hand_off");
  ExpectRefused(verify(1025, 0), "hand_off");
  for (const std::string& path : {std::string(), std::string("/a"), std::string("../a"), std::string("a\nb"),
                                  std::string("a\0b", 3), std::string(257, 'a')}) {
    ExpectRefused(verify(1, 0, path), "hand_off");
  }
  EXPECT_TRUE(verify(1, most).ok());
  worker.RunAll();
  EXPECT_TRUE(verify(1024, 0, std::string(256, 'a')).ok());
}

TEST(LimitsTest, OfABlob) {
  World world;
  const auto put = [&](size_t bytes) {
    v1::PutBlobRequest request;
    request.set_kind(v1::Blob::LOG);
    request.set_content(std::string(bytes, 'x'));
    request.set_hash(Sha256(request.content()));
    return world->PutBlob(request).status();
  };
  EXPECT_TRUE(put(4 << 20).ok());
  ExpectRefused(put((4 << 20) + 1), "content", absl::StatusCode::kResourceExhausted);
}

TEST(LimitsTest, OfAResultsSamples) {
  World world;
  world.Submit();
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());  // the start
  const v1::LeaseTrialResponse leased = worker.MustLease();
  const auto with = [&](int pairs, int confirming) {
    return worker
        .Complete(leased,
                  [&](const v1::Trial& trial) {
                    v1::TrialResult result = NothingHelps(trial);
                    const v1::PairSample pair = result.pairs(0);
                    result.clear_pairs();
                    result.clear_confirming_pairs();
                    for (int i = 0; i < pairs; ++i) *result.add_pairs() = pair;
                    for (int i = 0; i < confirming; ++i) *result.add_confirming_pairs() = pair;
                    return result;
                  })
        .status();
  };
  ExpectRefused(with(1001, 0), "result.pairs");
  ExpectRefused(with(1, 1001), "result.pairs");
  EXPECT_TRUE(with(1000, 1000).ok());
}

// Not the first, and not the third: the second.
TEST(LimitsTest, OfTheFaultsOfAWorkersGpu) {
  World world;
  world.Submit();
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.HostFault(worker.MustLease().lease(), "CUDA_ERROR_ECC_UNCORRECTABLE", /*gpu=*/true).ok());
  EXPECT_EQ(worker.Shown().state(), v1::WORKER_STATE_IDLE);
  const absl::StatusOr<v1::LeaseTrialResponse> again = worker.Lease();
  ASSERT_TRUE(again.ok() && again->has_trial()) << "one fault may be chance";
  ASSERT_TRUE(worker.HostFault(again->lease(), "CUDA_ERROR_ECC_UNCORRECTABLE", /*gpu=*/true).ok());
  EXPECT_EQ(worker.Shown().state(), v1::WORKER_STATE_SICK);
  EXPECT_EQ(worker.Shown().host_faults(), 2);
  EXPECT_EQ(worker.Lease().status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace pawl
