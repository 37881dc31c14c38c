#include "orchestrator/core/report_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

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

ReportWriter::ReportWriter(const Reports& reports, std::filesystem::path folder, std::chrono::milliseconds pause)
    : reports_(reports), folder_(std::move(folder)), pause_(pause), thread_([this] { WorkOff(); }) {}

ReportWriter::~ReportWriter() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ReportWriter::Write(int64_t campaign) {
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back(campaign);
  }
  changed_.notify_all();
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
  std::unique_lock lock(mutex_);
  while (true) {
    const auto woken = [this] { return ending_ || !waiting_.empty(); };
    if (failed.empty()) {
      changed_.wait(lock, woken);
    } else {
      changed_.wait_for(lock, pause_, woken);
    }
    const std::vector<int64_t> fresh = std::exchange(waiting_, {});
    const bool ending = ending_;
    lock.unlock();
    failed = WriteAll(failed, /*first=*/false);
    for (const int64_t campaign : WriteAll(fresh, /*first=*/true)) failed.push_back(campaign);
    lock.lock();
    if (ending && waiting_.empty()) return;
  }
}

// Those that a later try may succeed with.
std::vector<int64_t> ReportWriter::WriteAll(const std::vector<int64_t>& campaigns, bool first) {
  std::vector<int64_t> failed;
  for (const int64_t campaign : campaigns) {
    const absl::Status status = WriteOne(campaign);
    if (absl::IsUnavailable(status)) failed.push_back(campaign);
    if (status.ok() || !first) continue;  // said once
    spdlog::warn("no report of {} was written{}; pawl report {} makes it: {}", CampaignName(campaign),
                 absl::IsUnavailable(status) ? ", trying again" : "", campaign, std::string(status.message()));
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
