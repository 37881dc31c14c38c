#include "orchestrator/core/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "orchestrator/engine/search/tree_chooser.h"
#include "profiles/metrics.h"
#include "tests/instrumented.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string Slurp(const fs::path& path) {
  std::stringstream buffer;
  buffer << std::ifstream(path).rdbuf();
  return buffer.str();
}

class ReportTest : public ::testing::Test {
 protected:
  Reports MakeReports() {
    return Reports(world_.store(), chooser_, ProfileSet::Default(), [this] { return world_.now(); });
  }
  absl::StatusOr<v1::GetReportResponse> Get(const std::string& campaign,
                                            v1::ReportFormat format = v1::REPORT_FORMAT_UNSPECIFIED) {
    v1::GetReportRequest request;
    request.set_campaign(campaign);
    request.set_format(format);
    return MakeReports().Get(request);
  }

  World world_;
  const NeighbourChooser chooser_;
};

TEST_F(ReportTest, HasTheCampaignAndItsIterationsAsTheyAreListed) {
  const std::string campaign = world_.Submit();
  ScriptedWorker(world_, "a").RunAll(EverythingHelps);
  const absl::StatusOr<v1::GetReportResponse> response = Get(campaign);
  ASSERT_TRUE(response.ok()) << response.status();
  const v1::Report& report = response->report();
  EXPECT_EQ(response->page(), "");
  EXPECT_EQ(report.campaign().SerializeAsString().size(), world_.Get(campaign).SerializeAsString().size());
  EXPECT_EQ(report.campaign().last_sequence(), world_.Get(campaign).last_sequence());
  EXPECT_EQ(report.campaign().best(), world_.Get(campaign).best());
  const std::vector<v1::Iteration> listed = world_.Iterations(campaign);
  ASSERT_EQ(report.iterations_size(), static_cast<int>(listed.size()));
  for (size_t i = 0; i < listed.size(); ++i) {
    EXPECT_EQ(report.iterations(static_cast<int>(i)).ShortDebugString(), listed[i].ShortDebugString());
  }
  EXPECT_NE(report.version(), "");
  EXPECT_EQ(report.path(report.path_size() - 1), report.campaign().best());
}

TEST_F(ReportTest, IsThereWhateverStateACampaignIsIn) {
  const std::string waiting = world_.Submit();
  EXPECT_TRUE(Get(waiting, v1::REPORT_FORMAT_HTML).ok()) << "nothing was measured yet";
  v1::CancelCampaignRequest cancel;
  cancel.set_name(waiting);
  cancel.set_reason("<b>wrong</b> size");
  ASSERT_TRUE((*world_).Cancel(cancel).ok());
  const absl::StatusOr<v1::GetReportResponse> cancelled = Get(waiting, v1::REPORT_FORMAT_HTML);
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_THAT(cancelled->page(), HasSubstr("cancelled: &lt;b&gt;wrong&lt;/b&gt; size"));

  const std::string failed = world_.Submit();
  ScriptedWorker(world_, "a").RunAll([](const v1::Trial&) { return FailedCheck(v1::CHECK_TOLERANCE, "out differs"); });
  const absl::StatusOr<v1::GetReportResponse> page = Get(failed, v1::REPORT_FORMAT_MARKDOWN);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->report().campaign().state(), v1::FAILED);
  EXPECT_THAT(page->page(), HasSubstr("out differs"));
}

TEST_F(ReportTest, RefusesWhatIsNotThere) {
  ExpectError(Get("campaigns/8").status(), absl::StatusCode::kNotFound, "campaigns/8");
  ExpectError(Get("eight").status(), absl::StatusCode::kInvalidArgument, "campaign");
  ExpectError(Get("campaigns/1", static_cast<v1::ReportFormat>(9)).status(), absl::StatusCode::kInvalidArgument,
              "format");
}

TEST_F(ReportTest, IsToldOfEachCampaignThatEnds) {
  std::vector<int64_t> ended;
  OrchestratorOptions options;
  options.ended = [&](int64_t campaign) { ended.push_back(campaign); };
  World world(options);
  const std::string first = world.Submit();
  ScriptedWorker(world, "a").RunAll(NothingHelps);
  EXPECT_THAT(ended, testing::ElementsAre(1));
  v1::CancelCampaignRequest cancel;
  cancel.set_name(world.Submit());
  ASSERT_TRUE((*world).Cancel(cancel).ok());
  EXPECT_THAT(ended, testing::ElementsAre(1, 2));
}

// As a worker would have them, profiled and with all samples.
v1::Event Finished(const std::string& campaign, int number) {
  v1::Event event;
  event.set_campaign(campaign);
  v1::TrialFinished& finished = *event.mutable_finished();
  finished.set_trial(number + 2);
  *finished.mutable_result() = number == 0 ? MeasuredStart(100) : Measured(100, 99);
  v1::LaunchEvidence& launch = *finished.mutable_result()->mutable_evidence()->add_launches();
  for (const Metric& metric : Metrics::Default().all()) (*launch.mutable_metrics())[metric.name] = number + 1;
  v1::Iteration& iteration = *finished.mutable_iteration();
  iteration.set_number(number);
  iteration.set_verdict(number % 100 == 0 ? v1::KEPT : v1::REVERTED);
  iteration.set_reason("Slower: speed -2.00 % (99 % bounds -2.10 % to -1.90 %, 7 pairs)");
  iteration.set_speedup_over_start(1 + 1e-4 * number);
  iteration.set_speedup_over_baseline(1 + 1e-4 * number);
  iteration.set_time_us(100 / iteration.speedup_over_start());
  (*iteration.mutable_variant())["TILE"] = 16 << number % 3;
  (*iteration.mutable_variant())["SPLIT"] = 1 << number % 2;
  if (number > 0) {
    iteration.set_parent(number / 100 * 100 - (number % 100 == 0 ? 100 : 0));
    iteration.mutable_change()->set_variable("TILE");
    iteration.set_speedup_over_parent(0.98);
  }
  *iteration.mutable_stages() = finished.result().stages();
  return event;
}

TEST_F(ReportTest, TakesTenThousandIterations) {
  const std::string campaign = world_.Submit();
  v1::CancelCampaignRequest cancel;
  cancel.set_name(campaign);
  ASSERT_TRUE((*world_).Cancel(cancel).ok());
  Writes writes;
  for (int i = 0; i < 10'000; ++i) writes.events.push_back(Finished(campaign, i));
  ASSERT_TRUE(world_.store().Commit(&writes).ok());
  const TreeChooser chooser;
  const Reports reports(world_.store(), chooser, ProfileSet::Default(), [this] { return world_.now(); });
  v1::GetReportRequest request;
  request.set_campaign(campaign);
  request.set_format(v1::REPORT_FORMAT_HTML);
  const std::clock_t begin = std::clock();
  const absl::StatusOr<v1::GetReportResponse> response = reports.Get(request);
  RecordProperty("cpu_ms", static_cast<int>((std::clock() - begin) * 1000 / CLOCKS_PER_SEC));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 5 * kSlowdown) << "s of CPU";
  EXPECT_EQ(response->report().iterations_size(), 10'000);

  v1::ListIterationsRequest list;
  list.set_campaign(campaign);
  list.set_page_size(1000);
  for (const char* name : {"waves", "occupancy", "registers"}) list.add_metrics(name);
  int with_metrics = 0;
  do {
    const absl::StatusOr<v1::ListIterationsResponse> page = world_.history().ListIterations(list);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const v1::Iteration& iteration : page->iterations()) with_metrics += iteration.metrics().size() == 3;
    list.set_page_token(page->next_page_token());
  } while (!list.page_token().empty());
  EXPECT_EQ(with_metrics, 10'000);
}

TEST_F(ReportTest, IsWrittenWholeOrNotAtAll) {
  world_.Submit();
  ScriptedWorker(world_, "a").RunAll(EverythingHelps);
  const fs::path folder = world_.file().parent_path() / "pages/of";
  const Reports reports = MakeReports();
  {
    ReportWriter writer(reports, folder);
    writer.Write(1);
    writer.Write(99);  // there is none: a line in the log
  }
  EXPECT_THAT(Slurp(folder / "campaign-1.html"), HasSubstr("</html>"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1) << "nothing is left beside it";
}

TEST_F(ReportTest, IsWrittenLaterWhereItCouldNotBeWrittenAtOnce) {
  world_.Submit();
  ScriptedWorker(world_, "a").RunAll(EverythingHelps);
  const Reports reports = MakeReports();
  const fs::path folder = world_.file().parent_path() / "pages", blocked = folder / "campaign-1.html.new";
  fs::create_directories(blocked);  // as a full disk would: the page can't be made
  ReportWriter writer(reports, folder, absl::Milliseconds(5));
  writer.Write(1);
  writer.Write(99);  // there is none, and will be none
  const fs::path other = folder / "campaign-2.html";
  world_.Submit();
  writer.Write(2);
  while (!fs::exists(other)) std::this_thread::yield();
  EXPECT_FALSE(fs::exists(folder / "campaign-1.html"));
  fs::remove(blocked);
  while (!fs::exists(folder / "campaign-1.html")) std::this_thread::yield();
  EXPECT_THAT(Slurp(folder / "campaign-1.html"), HasSubstr("</html>"));
  const auto written = std::count_if(fs::directory_iterator(folder), fs::directory_iterator(),
                                     [](const auto& entry) { return entry.path().extension() == ".html"; });
  ReportPromise(22, absl::StrCat(written, " of 2 reports were written, one of them once it could be"));
}

TEST_F(ReportTest, IsWrittenAtTheNextStartWhereItIsMissing) {
  world_.Submit();
  ScriptedWorker(world_, "a").RunAll(EverythingHelps);
  world_.Submit();  // has not ended
  const Reports reports = MakeReports();
  const fs::path folder = world_.file().parent_path() / "pages";
  const std::vector<v1::Campaign> campaigns =
      world_.store().ListCampaigns(std::numeric_limits<int64_t>::max(), 10).value();
  ASSERT_EQ(campaigns.size(), 2u);
  { ReportWriter(reports, folder).WriteMissing(campaigns, world_.now() + absl::Hours(1)); }
  EXPECT_FALSE(fs::exists(folder / "campaign-1.html")) << "one of long ago is left alone";
  { ReportWriter(reports, folder).WriteMissing(campaigns, world_.now() - absl::Hours(1)); }
  EXPECT_TRUE(fs::exists(folder / "campaign-1.html"));
  EXPECT_FALSE(fs::exists(folder / "campaign-2.html"));
  std::ofstream(folder / "campaign-1.html") << "as it is";
  { ReportWriter(reports, folder).WriteMissing(campaigns, world_.now() - absl::Hours(1)); }
  EXPECT_EQ(Slurp(folder / "campaign-1.html"), "as it is");
}

// However many there are, and however long ago they ended.
TEST_F(ReportTest, IsRememberedUntilItIsWritten) {
  world_.Submit();
  ScriptedWorker(world_, "a").RunAll(EverythingHelps);
  const fs::path folder = world_.file().parent_path() / "pages", blocked = folder / "campaign-1.html.new";
  fs::create_directories(blocked);
  const auto remember = [&](const std::vector<int64_t>& unwritten) {
    return world_.store().NoteUnwrittenReports(unwritten);
  };
  {
    const Reports reports = MakeReports();
    ReportWriter(reports, folder, absl::Hours(1), remember).Write(1);
  }
  EXPECT_THAT(*world_.store().UnwrittenReports(), testing::ElementsAre(1));
  world_.Restart();
  fs::remove(blocked);
  {
    const Reports reports = MakeReports();
    ReportWriter(reports, folder, absl::Hours(1), remember).Resume(*world_.store().UnwrittenReports());
  }
  EXPECT_THAT(Slurp(folder / "campaign-1.html"), HasSubstr("</html>"));
  EXPECT_THAT(*world_.store().UnwrittenReports(), testing::IsEmpty());
}

TEST_F(ReportTest, HarmsNobodyWhereItCannotBeWritten) {
  world_.Submit();
  const Reports reports = MakeReports();
  const fs::path file = world_.file().parent_path() / "a_file";
  std::ofstream(file) << "in the way";
  { ReportWriter(reports, file / "reports").Write(1); }
  EXPECT_EQ(Slurp(file), "in the way");
  const fs::path page = world_.file().parent_path() / "page.html";
  ASSERT_TRUE(ReplaceFile(page, "old").ok());
  fs::create_directory(page.string() + ".new");
  const absl::Status status = ReplaceFile(page, "new");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Slurp(page), "old");
  EXPECT_TRUE(absl::IsUnavailable(ReplaceFile("/dev/full/x", "new")));
}

}  // namespace
}  // namespace pawl
