#include "orchestrator/core/report.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/messages/finite.h"
#include "base/names/resource_name.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/stored_campaign.h"
#include "orchestrator/engine/report/report.h"
#include "report/pages.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

constexpr int kAtOnce = 1000;  // iterations: others read in between

absl::Status AddIterations(Store& store, int64_t number, const CampaignState& campaign, v1::Report* report) {
  IterationQuery query;
  query.campaign = number;
  query.limit = kAtOnce;
  while (true) {
    absl::StatusOr<std::vector<v1::Iteration>> page = store.ListIterations(query);
    if (!page.ok()) return page.status();
    if (page->empty()) return absl::OkStatus();
    query.after = IterationQuery::Place{page->back().number(), 0};
    for (v1::Iteration& iteration : *page) {
      // One that was judged since the events were read is not in the rest of the report.
      if (campaign.Find(iteration.number()) != nullptr) *report->add_iterations() = std::move(iteration);
    }
  }
}

// Where the iteration was measured, as its worker says; empty: the worker is not known any more.
absl::StatusOr<std::string> HostOf(Store& store, const v1::Iteration& iteration) {
  absl::StatusOr<std::vector<StoredWorker>> workers = store.Workers();
  if (!workers.ok()) return workers.status();
  for (const StoredWorker& worker : *workers) {
    const bool same =
        worker.worker.name() == iteration.worker() && worker.worker.device().label() == iteration.device();
    if (same) return worker.worker.device().host();
  }
  return "";
}

// 0, or errno.
int WriteBytes(int fd, const std::string& content) {
  size_t written = 0;
  while (written < content.size()) {
    const ssize_t now = write(fd, content.data() + written, content.size() - written);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) return errno;
    written += static_cast<size_t>(now);
  }
  return fsync(fd) == 0 ? 0 : errno;
}

}  // namespace

absl::StatusOr<v1::Report> Reports::Make(int64_t number) const {
  absl::StatusOr<StoredCampaign> campaign = ReadCampaign(store_, number);
  if (!campaign.ok()) return campaign.status();
  v1::Report report = ReportOf(*campaign->state, chooser_, profiles_, clock_());
  report.mutable_campaign()->set_last_sequence(campaign->last_sequence);
  report.set_version(PAWL_VERSION);
  if (absl::Status status = AddIterations(store_, number, *campaign->state, &report); !status.ok()) return status;
  absl::StatusOr<std::optional<v1::Iteration>> winner = store_.GetIteration(number, report.campaign().best());
  if (!winner.ok()) return winner.status();
  if (*winner) {  // else nothing was judged yet; without a best it is the start
    *report.mutable_toolchain() = std::move(*(*winner)->mutable_toolchain());
    if (report.campaign().has_best()) report.set_build((*winner)->build());
    absl::StatusOr<std::string> host = HostOf(store_, **winner);
    if (!host.ok()) return host.status();
    report.set_host(*std::move(host));
  }
  if (FirstNonFinite(report)) ClearNonFinite(&report);  // that an earlier version stored
  return report;
}

absl::StatusOr<v1::GetReportResponse> Reports::Get(const v1::GetReportRequest& request) const {
  const std::optional<int64_t> number = ParseCampaignName(request.campaign());
  if (!number) return BadField("campaign", "expected a campaign's name, like campaigns/7");
  if (!v1::ReportFormat_IsValid(request.format())) return BadField("format", "expected one of ReportFormat");
  absl::StatusOr<v1::Report> report = Make(*number);
  if (!report.ok()) return report.status();
  v1::GetReportResponse response;
  if (request.format() == v1::REPORT_FORMAT_HTML) response.set_page(HtmlPage(*report));
  if (request.format() == v1::REPORT_FORMAT_MARKDOWN) response.set_page(MarkdownPage(*report));
  *response.mutable_report() = *std::move(report);
  return response;
}

std::filesystem::path ReportFile(const std::filesystem::path& folder, int64_t campaign) {
  return folder / absl::StrCat("campaign-", campaign, ".html");
}

absl::Status ReplaceFile(const std::filesystem::path& file, const std::string& content) {
  const std::filesystem::path beside = file.string() + ".new";
  const auto failed = [&](int code) {
    unlink(beside.c_str());
    return absl::UnavailableError(absl::StrCat("can't write ", file.string(), ": ", strerror(code)));
  };
  const int fd = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return failed(errno);
  const int wrong = WriteBytes(fd, content);
  if (close(fd) != 0 && wrong == 0) return failed(errno);
  if (wrong != 0) return failed(wrong);
  if (rename(beside.c_str(), file.c_str()) != 0) return failed(errno);
  return absl::OkStatus();
}

ReportWriter::ReportWriter(const Reports& reports, std::filesystem::path folder, absl::Duration pause,
                           Remember remember)
    : remember_(std::move(remember)), reports_(reports), folder_(std::move(folder)), pause_(pause), thread_([this] {
        WorkOff();
      }) {}

ReportWriter::~ReportWriter() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  changed_.SignalAll();
  thread_.join();
}

void ReportWriter::Write(int64_t campaign) {
  {
    absl::MutexLock lock(&mutex_);
    waiting_.push_back(campaign);
  }
  changed_.SignalAll();
}

void ReportWriter::Resume(const std::vector<int64_t>& unwritten) {
  if (unwritten.empty()) return;
  {
    absl::MutexLock lock(&mutex_);
    remembered_ = unwritten;
    waiting_.insert(waiting_.end(), unwritten.begin(), unwritten.end());
  }
  changed_.SignalAll();
}

void ReportWriter::WriteMissing(const std::vector<v1::Campaign>& campaigns, absl::Time after) {
  for (const v1::Campaign& campaign : campaigns) {
    const std::optional<int64_t> number = ParseCampaignName(campaign.name());
    std::error_code error;
    if (!number || !campaign.has_end_time() || TimeOf(campaign.end_time()) <= after) continue;
    if (!std::filesystem::exists(ReportFile(folder_, *number), error)) Write(*number);
  }
}

void ReportWriter::WorkOff() {
  std::vector<int64_t> failed;
  while (true) {
    std::vector<int64_t> fresh;
    bool ending = false;
    {
      absl::MutexLock lock(&mutex_);
      const auto retry = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(pause_);
      bool in_time = true;
      while (!ending_ && waiting_.empty() && in_time) {
        if (failed.empty()) {
          changed_.Wait(&mutex_);
        } else {
          in_time = changed_.WaitUntil(&mutex_, retry);
        }
      }
      fresh = std::exchange(waiting_, {});
      ending = ending_;
    }
    failed = WriteAll(failed, /*first=*/false);
    for (const int64_t campaign : WriteAll(fresh, /*first=*/true)) failed.push_back(campaign);
    RememberAll(failed);
    absl::MutexLock lock(&mutex_);
    if (ending && waiting_.empty()) return;
  }
}

void ReportWriter::RememberAll(const std::vector<int64_t>& failed) {
  {
    absl::MutexLock lock(&mutex_);
    if (remember_ == nullptr || failed == remembered_) return;
  }
  const absl::Status status = remember_(failed);
  absl::MutexLock lock(&mutex_);
  if (status.ok()) remembered_ = failed;
}

// Those that a later try may succeed with.
std::vector<int64_t> ReportWriter::WriteAll(const std::vector<int64_t>& campaigns, bool first) {
  std::vector<int64_t> failed;
  for (const int64_t campaign : campaigns) {
    const absl::Status status = WriteOne(campaign);
    if (absl::IsUnavailable(status)) failed.push_back(campaign);
    if (status.ok() || !first) continue;  // logged once
    spdlog::warn("no report of {} was written{}; pawl report {} makes it: {}", CampaignName(campaign),
                 absl::IsUnavailable(status) ? ", retrying" : "", campaign, std::string(status.message()));
  }
  return failed;
}

absl::Status ReportWriter::WriteOne(int64_t campaign) const {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return absl::UnavailableError(absl::StrCat("can't make ", folder_.string(), ": ", error.message()));
  v1::GetReportRequest request;
  request.set_campaign(CampaignName(campaign));
  request.set_format(v1::REPORT_FORMAT_HTML);
  const absl::StatusOr<v1::GetReportResponse> report = reports_.Get(request);
  if (!report.ok()) return report.status();
  const std::filesystem::path file = ReportFile(folder_, campaign);
  if (absl::Status status = ReplaceFile(file, report->page()); !status.ok()) return status;
  spdlog::info("{}: report in {}", CampaignName(campaign), file.string());
  return absl::OkStatus();
}

}  // namespace pawl
