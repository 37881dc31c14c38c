#include "cli/output/report_file.h"

#include <chrono>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/names/resource_name.h"

namespace pawl {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(20);

// A page of the same number that a database before this one left there is not it.
bool IsOf(const std::filesystem::path& file, const v1::Campaign& campaign) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(file, error);
  if (error) return false;
  const auto since_1970 = std::chrono::file_clock::to_sys(written).time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since_1970).count() >= campaign.create_time().seconds();
}

}  // namespace

std::optional<std::filesystem::path> AwaitReport(const Settings& settings, const v1::Campaign& campaign,
                                                 absl::Duration patience, const Environment& environment) {
  const std::optional<std::string> folder = environment("PAWL_REPORTS");
  if (!settings.orchestrator.empty() || folder == "none") return std::nullopt;
  const std::filesystem::path file =
      (folder ? std::filesystem::path(*folder) : settings.database.parent_path() / "reports") /
      absl::StrCat("campaign-", ShortName(campaign.name()), ".html");
  for (const absl::Time deadline = absl::Now() + patience;; absl::SleepFor(kLook)) {
    if (IsOf(file, campaign)) return file;
    if (absl::Now() >= deadline) return std::nullopt;
  }
}

}  // namespace pawl
