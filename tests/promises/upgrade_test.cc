// Every version opens what earlier versions wrote, and continues it. tests/fixtures/VERSION/README.md says what is
// there.
#include <gmock/gmock.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "db/store.h"
#include "orchestrator/core/stored_campaign.h"
#include "orchestrator/engine/state/campaign.h"
#include "tests/promises/client.h"
#include "tests/promises/daemon.h"
#include "worker/replay/recording.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string Unpacked(const fs::path& file) {
  gzFile in = gzopen(file.c_str(), "rb");
  EXPECT_NE(in, nullptr) << file;
  std::string content, part(1 << 16, '\0');
  for (int read = 0; in != nullptr && (read = gzread(in, part.data(), part.size())) > 0;) content.append(part, 0, read);
  if (in != nullptr) gzclose(in);
  return content;
}

std::vector<fs::path> Versions() {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  std::vector<fs::path> versions;
  for (const auto& entry : fs::directory_iterator(fs::path(source == nullptr ? "." : source) / "tests/fixtures")) {
    versions.push_back(entry.path());
  }
  return versions;
}

// Each test runs once for each earlier version.
class UpgradeTest : public testing::TestWithParam<fs::path> {
 protected:
  // The database as the earlier version left it, its write-ahead log included.
  std::string Database(const std::string& name) {
    const fs::path target = folder_.path() / (name + ".db");
    for (const char* suffix : {".db", ".db-wal"}) {
      const fs::path packed = GetParam() / absl::StrCat(name, suffix, ".gz");
      if (!fs::exists(packed)) continue;
      std::ofstream(folder_.path() / (name + suffix), std::ios::binary) << Unpacked(packed);
    }
    return target.string();
  }

  void Serve(const std::string& database) {
    orchestrator_ = std::make_unique<Daemon>(
        "pawl-orchestrator",
        std::vector<std::string>{"--listen", address_, "--database", database, "--reports", "none"});
    ASSERT_TRUE(orchestrator_->Says("listening on")) << orchestrator_->Output();
  }

  // A line an iteration, as the .tsv files of the fixtures have them.
  std::string History(const std::string& campaign) {
    v1::ListIterationsRequest request;
    request.set_campaign(campaign);
    request.set_page_size(1000);
    const v1::ListIterationsResponse list =
        Client::Ask(client_.campaigns(), &Client::Campaigns::ListIterations, request);
    std::string text;
    for (const v1::Iteration& iteration : list.iterations()) {
      const v1::Change& change = iteration.change();
      const bool start = change.kind_case() == v1::Change::KIND_NOT_SET;
      absl::StrAppendFormat(&text, "%d\t%s\t%s\t%s\t%s\t%s\t%.6g\n", iteration.number(),
                            iteration.has_parent() ? absl::StrCat(iteration.parent()) : "-",
                            v1::Verdict_Name(iteration.verdict()), start ? "start" : change.variable(),
                            start ? "-" : absl::StrCat(change.from()), start ? "-" : absl::StrCat(change.to()),
                            iteration.time_us());
    }
    return text;
  }

  TemporaryFolder folder_{"pawl-upgrade-"};
  const std::string address_ = "unix:" + (folder_.path() / "socket").string();
  Client client_{address_};
  std::unique_ptr<Daemon> orchestrator_;
};

TEST_P(UpgradeTest, FinishedCampaignsReadAsTheyDid) {
  ASSERT_NO_FATAL_FAILURE(Serve(Database("finished")));
  int compared = 0;
  for (int number = 1; fs::exists(GetParam() / absl::StrCat("finished.", number, ".tsv")); ++number, ++compared) {
    std::ifstream file(GetParam() / absl::StrCat("finished.", number, ".tsv"));
    std::stringstream expected;
    expected << file.rdbuf();
    EXPECT_EQ(History(absl::StrCat("campaigns/", number)), expected.str()) << "campaigns/" << number;
    const v1::Campaign campaign = client_.Get(absl::StrCat("campaigns/", number));
    EXPECT_EQ(campaign.state(), v1::FINISHED);
    EXPECT_GT(campaign.speedup_over_start(), 1);
  }
  EXPECT_GT(compared, 0);
}

TEST_P(UpgradeTest, AnEventLogMakesTheSameCampaign) {
  const std::string log = Unpacked(GetParam() / "attention.events.gz");
  const auto store = Store::Open({.file = Database("finished")}).value();
  const v1::Campaign stored = store->GetCampaign(3).value().value();
  v1::Bundle bundle;
  ASSERT_TRUE(bundle.ParseFromString(store->GetBlob(stored.bundle_hash()).value()->content));
  CampaignState state("campaigns/3", bundle);
  google::protobuf::io::ArrayInputStream array(log.data(), static_cast<int>(log.size()));
  google::protobuf::io::CodedInputStream stream(&array);
  v1::Event event;
  bool end = false;
  for (; google::protobuf::util::ParseDelimitedFromCodedStream(&event, &stream, &end); event.Clear()) {
    state.Apply(event);
  }
  EXPECT_TRUE(end) << "every event was read";
  EXPECT_EQ(state.summary().state(), v1::FINISHED);
  EXPECT_EQ(state.summary().best(), stored.best());
  EXPECT_EQ(state.summary().best_us(), stored.best_us());
  EXPECT_EQ(state.summary().speedup_over_start(), stored.speedup_over_start());
  EXPECT_EQ(state.summary().speedup_over_baseline(), stored.speedup_over_baseline());
}

TEST_P(UpgradeTest, RowsBecomeWhatTheEventsMakeOfTheCampaigns) {
  for (const char* name : {"finished", "killed"}) {
    const auto store = Store::Open({.file = Database(name)}).value();
    ASSERT_TRUE(BringRowsUpToDate(*store).ok());
    const int64_t last = store->LastCampaign().value();
    EXPECT_GT(last, 2);
    for (int64_t number = 1; number <= last; ++number) {
      const StoredCampaign replayed = ReadCampaign(*store, number).value();
      const std::vector<v1::Iteration> rows = store->ListIterations({.campaign = number, .limit = 1000}).value();
      ASSERT_EQ(rows.size(), replayed.state->iterations().size());
      for (const v1::Iteration& row : rows) {
        EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*replayed.state->Find(row.number()), row))
            << name << ": " << row.name();
      }
      const v1::Counts counts = store->GetCampaign(number).value()->counts();
      EXPECT_EQ(static_cast<int>(rows.size()), rows.empty() ? 0 : 1 + counts.tried() + counts.untried());
    }
  }
}

TEST_P(UpgradeTest, RecordingsAreRead) {
  for (const char* name : {"transpose", "softmax"}) {
    const absl::StatusOr<Recording> recording = ReadRecording(GetParam() / absl::StrCat(name, ".h200.jsonl.gz"));
    ASSERT_TRUE(recording.ok()) << recording.status();
    EXPECT_EQ(recording->header.bundle(), name);
    EXPECT_GT(recording->variants.size(), 100u);
  }
}

TEST_P(UpgradeTest, AKilledServiceContinues) {
  ASSERT_NO_FATAL_FAILURE(Serve(Database("killed")));
  const std::string before = History("campaigns/1");
  EXPECT_THAT(before, HasSubstr("0\t-\tKEPT\tstart"));
  const v1::Campaign paused = client_.Get("campaigns/3");
  EXPECT_EQ(paused.state(), v1::PAUSED);
  EXPECT_THAT(paused.message(), HasSubstr("the GPU is needed"));

  Daemon worker("pawl-worker", {"--orchestrator", address_, "--device", "replay", "--recordings", GetParam().string()});
  v1::ResumeCampaignRequest resume;
  resume.set_name("campaigns/3");
  (void)Client::Ask(client_.campaigns(), &Client::Campaigns::ResumeCampaign, resume);
  // The trial that the lost worker holds is free again when its lease ends.
  for (const char* name : {"campaigns/1", "campaigns/2", "campaigns/3"}) {
    EXPECT_TRUE(Client::Until(std::chrono::seconds(60), [&] { return client_.Get(name).state() == v1::FINISHED; }))
        << name << " is " << client_.Get(name).ShortDebugString() << "\n"
        << worker.Output();
    EXPECT_GT(client_.Get(name).speedup_over_baseline(), 1) << name;
  }
  EXPECT_EQ(History("campaigns/1").substr(0, before.size()), before);
  // The proposal that was waiting was judged.
  EXPECT_THAT(History("campaigns/1"), HasSubstr("VECTOR\t4\t2\t"));

  // A campaign that waits for proposals still takes them.
  v1::ProposeChangeRequest propose;
  propose.set_campaign("campaigns/4");
  propose.set_author("ada");
  propose.mutable_change()->set_variable("VECTOR");
  propose.mutable_change()->set_to(4);
  (void)Client::Ask(client_.campaigns(), &Client::Campaigns::ProposeChange, propose);
  EXPECT_TRUE(Client::Until(std::chrono::seconds(30), [&] {
    return absl::StrContains(History("campaigns/4"), "KEPT\tVECTOR\t1\t4");
  })) << History("campaigns/4");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, UpgradeTest, testing::ValuesIn(Versions()), [](const auto& version) {
  std::string name = "Version_" + version.param.filename().string();
  for (char& c : name) c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

}  // namespace
}  // namespace pawl
