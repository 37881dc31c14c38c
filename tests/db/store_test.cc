#include "db/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cmath>
#include <string>
#include <thread>

#include "base/names/resource_name.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/db/made_writes.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using google::protobuf::util::MessageDifferencer;

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() : folder_("pawl-store-"), file_(folder_.path() / "pawl.db"), store_(OpenStore({.file = file_})) {}

  void Reopen() {
    store_.reset();
    store_ = OpenStore({.file = file_});
  }
  absl::Status Commit(Writes writes) { return store_->Commit(&writes); }

  TemporaryFolder folder_;
  std::filesystem::path file_;
  std::unique_ptr<Store> store_;
};

TEST_F(StoreTest, StartsEmpty) {
  EXPECT_EQ(store_->LastCampaign().value(), 0);
  EXPECT_TRUE(store_->UnfinishedCampaigns()->empty());
  EXPECT_TRUE(store_->ListCampaigns(0, 10)->empty());
  EXPECT_FALSE(store_->GetCampaign(1)->has_value());
  EXPECT_FALSE(store_->FindRequest("")->has_value());
  EXPECT_TRUE(store_->Events(1, 0, 10)->empty());
  EXPECT_FALSE(store_->GetIteration(1, 0)->has_value());
  EXPECT_FALSE(store_->GetBlob("ab")->has_value());
  EXPECT_TRUE(store_->Workers()->empty());
}

TEST_F(StoreTest, MakesTheFolderAndAFileThatOnlyItsOwnerReads) {
  const std::filesystem::path file = folder_.path() / "some" / "where" / "pawl.db";
  ASSERT_NE(OpenStore({.file = file}), nullptr);
  struct stat info;
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(StoreTest, NumbersEventsByOneOverAllCampaigns) {
  Writes writes;
  writes.campaigns = {MakeCampaign(1), MakeCampaign(2)};
  writes.events = {MakeProposal(1, "a"), MakeProposal(2, "b"), MakeProposal(1, "c")};
  writes.events[0].set_sequence(99);  // not the caller's to say
  ASSERT_EQ(store_->Commit(&writes), absl::OkStatus());
  EXPECT_EQ(writes.events[0].sequence(), 1);
  EXPECT_EQ(writes.events[1].sequence(), 2);
  EXPECT_EQ(writes.events[2].sequence(), 3);
  EXPECT_EQ(writes.campaigns[0].last_sequence(), 3);
  EXPECT_EQ(store_->GetCampaign(2)->value().last_sequence(), 2);

  Reopen();
  Writes more = MakeWrites(MakeProposal(2, "d"));
  ASSERT_EQ(store_->Commit(&more), absl::OkStatus());
  EXPECT_EQ(more.events[0].sequence(), 4);

  const auto events = store_->Events(1, 0, 10).value();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_TRUE(MessageDifferencer::Equals(events[0], writes.events[0]));
  EXPECT_TRUE(MessageDifferencer::Equals(events[1], writes.events[2]));
  EXPECT_EQ(store_->Events(1, 1, 10)->front().sequence(), 3);
  EXPECT_EQ(store_->Events(1, 0, 1)->size(), 1u);
  EXPECT_TRUE(store_->Events(1, 3, 10)->empty());
}

TEST_F(StoreTest, UsesUpNoNumberInACommitThatFails) {
  ASSERT_EQ(Commit(MakeWrites(MakeProposal(1, "a"))), absl::OkStatus());
  Writes wrong = MakeWrites(MakeProposal(1, "b"));
  wrong.events.push_back(MakeProposal(7, "there is no campaign 7"));
  wrong.blobs = {{v1::Blob::LOG, "ab", "text"}};
  EXPECT_EQ(store_->Commit(&wrong).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(wrong.events[0].sequence(), 0);
  EXPECT_FALSE(store_->HasBlob("ab").value());
  EXPECT_FALSE(store_->uncertain());

  Writes right = MakeWrites(MakeProposal(1, "c"));
  ASSERT_EQ(store_->Commit(&right), absl::OkStatus());
  EXPECT_EQ(right.events[0].sequence(), 2);
  EXPECT_EQ(store_->Events(1, 0, 10)->size(), 2u);
}

TEST_F(StoreTest, GivesRevisedIterationsTheValuesOfTheEvent) {
  v1::Iteration first = MakeIteration(1, 1, v1::KEPT), second = MakeIteration(1, 2, v1::KEPT);
  second.set_speedup_over_start(2);
  second.set_speedup_over_baseline(1);
  second.add_passed_over()->set_reason("ranks lower");
  ASSERT_EQ(Commit(MakeWrites(MakeJudged(1, first))), absl::OkStatus());
  ASSERT_EQ(Commit(MakeWrites(MakeJudged(1, second))), absl::OkStatus());
  v1::Event total = MakeProposal(1, "");
  total.mutable_finished()->mutable_total_gain()->set_iteration(2);
  v1::RevisedIteration& revised = *total.mutable_finished()->add_revised();
  revised.set_number(2);
  revised.set_verdict(v1::KEPT);
  revised.set_reason("faster");
  revised.set_speedup_over_start(1.8);
  revised.set_speedup_over_baseline(0.9);
  ASSERT_EQ(Commit(MakeWrites(total)), absl::OkStatus());
  v1::Iteration shown = store_->GetIteration(1, 2)->value();
  EXPECT_DOUBLE_EQ(shown.speedup_over_start(), 1.8);
  EXPECT_DOUBLE_EQ(shown.speedup_over_baseline(), 0.9);
  EXPECT_EQ(shown.verdict(), v1::KEPT);
  EXPECT_EQ(shown.passed_over_size(), 1);

  revised.set_verdict(v1::REVERTED);
  revised.set_reason("faster; taken back: a race");
  ASSERT_EQ(Commit(MakeWrites(total)), absl::OkStatus());
  shown = store_->GetIteration(1, 2)->value();
  EXPECT_EQ(shown.verdict(), v1::REVERTED);
  EXPECT_EQ(shown.reason(), "faster; taken back: a race");
  IterationQuery kept;
  kept.campaign = 1;
  kept.verdict = v1::KEPT;
  EXPECT_EQ(store_->ListIterations(kept)->size(), 1u);
  revised.set_number(9);
  EXPECT_EQ(Commit(MakeWrites(total)).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StoreTest, RejectsIterationsThatTheNextOneTakesBack) {
  ASSERT_EQ(Commit(MakeWrites(MakeJudged(1, MakeIteration(1, 1, v1::KEPT)))), absl::OkStatus());
  v1::Event judged = MakeJudged(1, MakeIteration(1, 2, v1::REVERTED));
  v1::RevisedIteration& revised = *judged.mutable_finished()->add_revised();
  revised.set_number(1);
  revised.set_verdict(v1::REJECTED);
  revised.set_reason("faster; but slower as a parent");
  revised.mutable_failure()->set_check(v1::CHECK_SEAT);
  revised.mutable_failed_gate()->set_gate("seat");
  ASSERT_EQ(Commit(MakeWrites(judged)), absl::OkStatus());
  EXPECT_EQ(store_->GetIteration(1, 2)->value().verdict(), v1::REVERTED);
  const v1::Iteration shown = store_->GetIteration(1, 1)->value();
  EXPECT_EQ(shown.verdict(), v1::REJECTED);
  EXPECT_EQ(shown.reason(), "faster; but slower as a parent");
  EXPECT_EQ(shown.failure().check(), v1::CHECK_SEAT);
  ASSERT_EQ(shown.failed_gates_size(), 1);
  EXPECT_EQ(shown.failed_gates(0).gate(), "seat");
}

TEST_F(StoreTest, RefusesWhatItCouldNotReadBack) {
  Writes nameless = MakeWrites(MakeProposal(1, "a"));
  nameless.events[0].set_campaign("campaigns/x");
  EXPECT_EQ(store_->Commit(&nameless).code(), absl::StatusCode::kInvalidArgument);
  Writes zero = MakeWrites(MakeProposal(1, "a"));
  zero.campaigns[0].set_name("campaigns/0");
  EXPECT_EQ(store_->Commit(&zero).code(), absl::StatusCode::kInvalidArgument);
  Writes empty = MakeWrites(MakeProposal(1, "a"));
  empty.events[0].clear_event();
  EXPECT_EQ(store_->Commit(&empty).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Commit(MakeWrites(MakeJudged(1, MakeIteration(1, 0, v1::VERDICT_UNSPECIFIED)))).code(),
            absl::StatusCode::kInvalidArgument);
  v1::Iteration unnumbered = MakeIteration(1, 0, v1::KEPT);
  unnumbered.clear_number();
  EXPECT_EQ(Commit(MakeWrites(MakeJudged(1, unnumbered))).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->LastCampaign().value(), 0);
}

TEST_F(StoreTest, ReplacesACampaignAndKnowsWhichHaveNotEnded) {
  Writes writes;
  writes.campaigns = {MakeCampaign(1, v1::WAITING), MakeCampaign(2, v1::RUNNING), MakeCampaign(3, v1::PAUSED),
                      MakeCampaign(4, v1::FAILED), MakeCampaign(5, v1::CANCELLED)};
  ASSERT_EQ(store_->Commit(&writes), absl::OkStatus());
  EXPECT_EQ(store_->UnfinishedCampaigns().value(), (std::vector<int64_t>{1, 2, 3}));
  Writes ended;
  ended.campaigns = {MakeCampaign(2, v1::FINISHED)};
  ended.campaigns[0].set_message("nothing is left to try");
  ASSERT_EQ(store_->Commit(&ended), absl::OkStatus());
  EXPECT_EQ(store_->UnfinishedCampaigns().value(), (std::vector<int64_t>{1, 3}));
  EXPECT_TRUE(MessageDifferencer::Equals(store_->GetCampaign(2)->value(), ended.campaigns[0]));
  EXPECT_EQ(store_->LastCampaign().value(), 5);
}

TEST_F(StoreTest, ReadsTheReasonOfACancellationByVersion010) {
  const auto reason = [&](const std::string& written, int64_t served_us) {
    v1::Event event;
    event.set_campaign("campaigns/1");
    event.set_served_us(served_us);
    event.mutable_ended()->set_state(v1::CANCELLED);
    event.mutable_ended()->set_message(written);
    Writes writes = MakeWrites(event);
    EXPECT_EQ(store_->Commit(&writes), absl::OkStatus());
    return store_->Events(1, 0, 100)->back().ended().message();
  };
  EXPECT_EQ(reason("cancelled: wrong size", 0), "wrong size");
  EXPECT_EQ(reason("cancelled", 0), "");
  EXPECT_EQ(reason("wrong size", 0), "wrong size");
  EXPECT_EQ(reason("cancelled: twice", 5), "cancelled: twice") << "a user's own words";
}

TEST_F(StoreTest, ListsCampaignsNewestFirst) {
  for (int i = 1; i <= 5; ++i) ASSERT_EQ(Commit({.campaigns = {MakeCampaign(i)}}), absl::OkStatus());
  const auto names = [&](int64_t before, int limit) {
    std::string text;
    const auto campaigns = store_->ListCampaigns(before, limit).value();
    for (const v1::Campaign& campaign : campaigns) text += campaign.name() + " ";
    return text;
  };
  EXPECT_EQ(names(0, 2), "campaigns/5 campaigns/4 ");
  EXPECT_EQ(names(4, 2), "campaigns/3 campaigns/2 ");
  EXPECT_EQ(names(2, 2), "campaigns/1 ");
  EXPECT_EQ(names(1, 2), "");
  EXPECT_EQ(names(0, 0), "");
  EXPECT_EQ(names(0, -1), "");
}

TEST_F(StoreTest, FindsACampaignByTheRequestThatSubmittedIt) {
  const auto submitted = [](int64_t campaign, const std::string& request) {
    v1::Event event;
    event.set_campaign(CampaignName(campaign));
    event.mutable_submitted()->set_request_id(request);
    return MakeWrites(event);
  };
  ASSERT_EQ(Commit(submitted(1, "first")), absl::OkStatus());
  ASSERT_EQ(Commit(submitted(2, "")), absl::OkStatus());
  ASSERT_EQ(Commit(submitted(3, "")), absl::OkStatus());
  EXPECT_EQ(Commit(submitted(4, "first")).code(), absl::StatusCode::kAlreadyExists);
  ASSERT_EQ(Commit({.campaigns = {MakeCampaign(1, v1::FINISHED)}}), absl::OkStatus());
  EXPECT_EQ(store_->FindRequest("first")->value().name(), "campaigns/1");
  EXPECT_EQ(store_->FindRequest("first")->value().state(), v1::FINISHED);
  EXPECT_FALSE(store_->FindRequest("")->has_value());
  EXPECT_EQ(store_->LastCampaign().value(), 3);
}

TEST_F(StoreTest, GivesAnIterationWithTheEvidenceOfItsTrial) {
  v1::Event event = MakeJudged(1, MakeIteration(1, 3, v1::KEPT));
  v1::TrialResult* result = event.mutable_finished()->mutable_result();
  (*result->mutable_evidence()->add_launches()->mutable_metrics())["waves"] = 0.06;
  result->add_pairs()->set_parent_us(10);
  result->add_confirming_pairs()->set_candidate_us(9);
  result->add_errors()->set_tensor("out");
  result->set_warm_us(8.5);
  result->set_cold_us(9.5);
  result->mutable_toolchain()->set_nvrtc("12.4");
  result->mutable_gpu()->set_name("NVIDIA H200");
  result->add_blobs()->set_hash("ab");
  result->set_build("nvrtc -arch=sm_90");
  result->add_baselines()->set_size("main");
  result->set_cubin_hash("cd");
  ASSERT_EQ(Commit(MakeWrites(event)), absl::OkStatus());

  const v1::Iteration full = store_->GetIteration(1, 3)->value();
  EXPECT_EQ(full.name(), "campaigns/1/iterations/3");
  EXPECT_EQ(full.verdict(), v1::KEPT);
  EXPECT_TRUE(MessageDifferencer::Equals(full.evidence(), result->evidence()));
  ASSERT_EQ(full.pairs_size(), 1);
  EXPECT_EQ(full.pairs(0).parent_us(), 10);
  ASSERT_EQ(full.confirming_pairs_size(), 1);
  EXPECT_EQ(full.confirming_pairs(0).candidate_us(), 9);
  ASSERT_EQ(full.errors_size(), 1);
  EXPECT_EQ(full.errors(0).tensor(), "out");
  EXPECT_EQ(full.warm_us(), 8.5);
  EXPECT_EQ(full.cold_us(), 9.5);
  EXPECT_EQ(full.toolchain().nvrtc(), "12.4");
  EXPECT_EQ(full.gpu().name(), "NVIDIA H200");
  ASSERT_EQ(full.blobs_size(), 1);
  EXPECT_EQ(full.build(), "nvrtc -arch=sm_90");
  ASSERT_EQ(full.baselines_size(), 1);
  EXPECT_EQ(full.cubin_hash(), "cd");

  // A list does without.
  const auto list = store_->ListIterations({.campaign = 1}).value();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_TRUE(MessageDifferencer::Equals(list[0], event.finished().iteration()));
  EXPECT_FALSE(store_->GetIteration(1, 2)->has_value());
  EXPECT_FALSE(store_->GetIteration(2, 3)->has_value());
}

TEST_F(StoreTest, CountsAnIterationOnce) {
  ASSERT_EQ(Commit(MakeWrites(MakeJudged(1, MakeIteration(1, 3, v1::KEPT)))), absl::OkStatus());
  EXPECT_EQ(Commit(MakeWrites(MakeJudged(1, MakeIteration(1, 3, v1::REVERTED)))).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(store_->Events(1, 0, 10)->size(), 1u);
  EXPECT_EQ(store_->GetIteration(1, 3)->value().verdict(), v1::KEPT);
}

TEST_F(StoreTest, MakesNoIterationOfATrialThatVerifies) {
  v1::Event event = MakeProposal(1, "");
  event.mutable_finished()->mutable_verification()->set_iteration(0);
  ASSERT_EQ(Commit(MakeWrites(event)), absl::OkStatus());
  EXPECT_TRUE(store_->ListIterations({.campaign = 1})->empty());
}

TEST_F(StoreTest, KeepsABlobAsItWasFirst) {
  const std::string content("\0binary\xff", 8);
  ASSERT_EQ(Commit({.blobs = {{v1::Blob::CUBIN, "ab", content}, {v1::Blob::LOG, "empty", ""}}}), absl::OkStatus());
  ASSERT_EQ(Commit({.blobs = {{v1::Blob::LOG, "ab", "other"}}}), absl::OkStatus());
  const StoredBlob stored = store_->GetBlob("ab")->value();
  EXPECT_EQ(stored.content, content);
  EXPECT_EQ(stored.blob.kind(), v1::Blob::CUBIN);
  EXPECT_EQ(stored.blob.hash(), "ab");
  EXPECT_EQ(stored.blob.bytes(), 8);
  EXPECT_EQ(store_->GetBlob("empty")->value().content, "");
  EXPECT_TRUE(store_->HasBlob("ab").value());
  EXPECT_FALSE(store_->HasBlob("abc").value());
}

TEST_F(StoreTest, RemembersWorkers) {
  StoredWorker worker{.instance = "one", .worker = {}};
  worker.worker.set_name("workers/h200-0");
  ASSERT_EQ(Commit({.workers = {worker}}), absl::OkStatus());
  worker.instance = "two";
  worker.worker.set_state(v1::WORKER_STATE_GONE);
  ASSERT_EQ(Commit({.workers = {worker}}), absl::OkStatus());
  Reopen();
  const auto workers = store_->Workers().value();
  ASSERT_EQ(workers.size(), 1u);
  EXPECT_EQ(workers[0].instance, "two");
  EXPECT_EQ(workers[0].worker.state(), v1::WORKER_STATE_GONE);
}

TEST_F(StoreTest, RemovesWorkersByTheirNames) {
  Writes writes;
  for (const char* name : {"workers/a", "workers/b", "workers/c"}) {
    writes.workers.push_back({.instance = "one", .worker = {}});
    writes.workers.back().worker.set_name(name);
  }
  ASSERT_EQ(Commit(writes), absl::OkStatus());
  EXPECT_EQ(store_->RemoveWorkers({}), absl::OkStatus());
  EXPECT_EQ(store_->RemoveWorkers({"workers/a", "workers/never", "workers/c"}), absl::OkStatus());
  Reopen();
  const auto workers = store_->Workers().value();
  ASSERT_EQ(workers.size(), 1u);
  EXPECT_EQ(workers[0].worker.name(), "workers/b");
}

TEST_F(StoreTest, KeepsItsSecret) {
  const std::string secret = store_->secret();
  EXPECT_EQ(secret.size(), 32u);
  Reopen();
  EXPECT_EQ(store_->secret(), secret);
  EXPECT_NE(OpenStore({.file = folder_.path() / "other.db"})->secret(), secret);
}

TEST_F(StoreTest, OrdersIterationsThatHaveNoSpeedupAtTheEnd) {
  const double speedups[] = {1, std::nan(""), 2, INFINITY, 0};
  for (int i = 0; i < 5; ++i) {
    v1::Iteration iteration = MakeIteration(1, i, v1::REVERTED);
    iteration.set_speedup_over_start(speedups[i]);
    ASSERT_EQ(Commit(MakeWrites(MakeJudged(1, iteration))), absl::OkStatus());
  }
  IterationQuery query{.campaign = 1, .order = v1::ITERATION_ORDER_SPEEDUP, .limit = 1};
  std::vector<int> numbers;
  while (true) {  // page by page, so that every place is one that a client could come back with
    const auto page = store_->ListIterations(query).value();
    if (page.empty()) break;
    numbers.push_back(page[0].number());
    query.after = {page[0].number(), page[0].speedup_over_start()};
    ASSERT_LE(numbers.size(), 5u);
  }
  EXPECT_EQ(numbers, (std::vector<int>{3, 2, 0, 4, 1}));
}

TEST_F(StoreTest, ProbesWithoutChangingAnything) {
  ASSERT_EQ(Commit(MakeWrites(MakeProposal(1, "a"))), absl::OkStatus());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(store_->Probe(), absl::OkStatus());
  EXPECT_EQ(store_->Events(1, 0, 10)->size(), 1u);
  Reopen();
  EXPECT_EQ(store_->Events(1, 0, 10)->size(), 1u);
}

TEST_F(StoreTest, ReadsWhileItWrites) {
  ASSERT_EQ(Commit(MakeWrites(MakeJudged(1, MakeIteration(1, 0, v1::KEPT)))), absl::OkStatus());
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        // Events and iterations are written together: a reader that sees an event sees its iteration afterwards.
        const size_t events = store_->Events(1, 0, 10000)->size();
        EXPECT_GE(store_->ListIterations({.campaign = 1, .limit = 10000})->size(), events);
      }
    });
  }
  std::vector<std::thread> writers;
  std::atomic<int> number = 1;
  for (int i = 0; i < 2; ++i) {
    writers.emplace_back([&] {
      for (int j = 0; j < 100; ++j) {
        EXPECT_EQ(Commit(MakeWrites(MakeJudged(1, MakeIteration(1, number++, v1::KEPT)))), absl::OkStatus());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  done = true;
  for (std::thread& reader : readers) reader.join();
  const auto events = store_->Events(1, 0, 10000).value();
  ASSERT_EQ(events.size(), 201u);
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].sequence(), static_cast<int64_t>(i + 1));
}

}  // namespace
}  // namespace pawl
