#include "orchestrator/archive/retention.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/names/resource_name.h"
#include "db/store.h"
#include "orchestrator/core/report.h"
#include "orchestrator/core/stored_campaign.h"
#include "orchestrator/engine/search/tree_chooser.h"
#include "profiles/profile_set.h"
#include "spdlog/spdlog.h"

namespace pawl {
namespace {

absl::StatusOr<std::unique_ptr<Store>> OpenUnserved(const std::filesystem::path& database) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(database, error)) {
    return absl::NotFoundError(absl::StrCat("there is no database ", database.native()));
  }
  absl::StatusOr<std::unique_ptr<Store>> store =
      Store::Open({.file = database, .check_patience = std::chrono::hours(24)});
  if (absl::IsAlreadyExists(store.status())) {
    return absl::AlreadyExistsError(absl::StrCat("an orchestrator serves database ", database.native(),
                                                 ". Stop it first: campaigns can be moved only while none does"));
  }
  if (!store.ok()) return store.status();
  const absl::StatusOr<bool> outdated = (*store)->RowsOutdated();
  if (!outdated.ok()) return outdated.status();
  if (*outdated) {
    return absl::FailedPreconditionError(
        "an older Pawl wrote the database: start pawl-orchestrator on it once, then try again");
  }
  return store;
}

// 7 or campaigns/7.
absl::StatusOr<std::vector<int64_t>> NumbersOf(const std::vector<std::string>& campaigns) {
  std::vector<int64_t> numbers;
  for (const std::string& campaign : campaigns) {
    int64_t number = 0;
    const std::optional<int64_t> named = ParseCampaignName(campaign);
    if (named) {
      number = *named;
    } else if (!absl::SimpleAtoi(campaign, &number) || number <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", campaign, "\" is not a campaign; expected 7 or campaigns/7"));
    }
    if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) numbers.push_back(number);
  }
  return numbers;
}

// "90d", "36h".
absl::StatusOr<absl::Duration> KeptFor(const std::string& word) {
  double number = 0;
  const char unit = word.empty() ? ' ' : word.back();
  const bool right = absl::SimpleAtod(word.substr(0, word.empty() ? 0 : word.size() - 1), &number) && number >= 0;
  if (!right || (unit != 'd' && unit != 'h')) {
    return absl::InvalidArgumentError(absl::StrCat("--keep: \"", word, "\"; expected days or hours, as in 90d or 36h"));
  }
  return (unit == 'd' ? 24 : 1) * absl::Hours(number);
}

bool HasEnded(const v1::Campaign& campaign) {
  const v1::CampaignState state = campaign.state();
  return (state == v1::FINISHED || state == v1::FAILED || state == v1::CANCELLED) && !campaign.verifying();
}

// All that ended before this time.
absl::StatusOr<std::vector<int64_t>> OldCampaigns(Store& store, absl::Time before, bool keep_best) {
  constexpr int kPage = 1000;
  std::vector<int64_t> old;
  std::map<std::string, std::pair<double, int64_t>> best;  // the shortest time, and whose it is
  int64_t next = std::numeric_limits<int64_t>::max();
  while (true) {
    const absl::StatusOr<std::vector<v1::Campaign>> page = store.ListCampaigns(next, kPage);
    if (!page.ok()) return page.status();
    for (const v1::Campaign& campaign : *page) {
      next = ParseCampaignName(campaign.name()).value_or(1);
      if (!HasEnded(campaign)) continue;
      if (campaign.best_us() > 0) {
        auto& [us, number] =
            best[absl::StrCat(campaign.bundle(), "\n", campaign.device(), "\n", campaign.spec().goal().size())];
        if (number == 0 || campaign.best_us() < us) {
          us = campaign.best_us();
          number = next;
        }
      }
      if (absl::FromUnixSeconds(campaign.end_time().seconds()) < before) old.push_back(next);
    }
    if (page->size() < kPage) break;
  }
  std::erase_if(old, [&](int64_t number) {
    return keep_best &&
           std::any_of(best.begin(), best.end(), [&](const auto& of) { return of.second.second == number; });
  });
  std::sort(old.begin(), old.end());
  return old;
}

std::string MovedText(const ArchiveSummary& moved) {
  return absl::StrCat("campaigns ", absl::StrJoin(moved.campaigns, ", "), " with ", moved.events, " events, ",
                      moved.iterations, " iterations and ", moved.blobs, " blobs");
}

// The campaigns are where they belong by now: what goes wrong here costs space only.
void MakeSmall(Store& store) {
  if (const absl::Status status = store.Shrink(); !status.ok()) {
    spdlog::warn("the database keeps its size: {}", std::string(status.message()));
  }
}

}  // namespace

absl::StatusOr<std::string> ArchiveCampaigns(const std::filesystem::path& database, const ArchiveChoice& choice,
                                             const std::filesystem::path& file) {
  if (file.empty()) return absl::InvalidArgumentError("name the file to write: --output FILE");
  if (choice.keep.empty() == choice.campaigns.empty()) {
    return absl::InvalidArgumentError("name the campaigns to archive, or --keep 90d for all that ended earlier");
  }
  absl::StatusOr<std::vector<int64_t>> numbers = NumbersOf(choice.campaigns);
  if (!numbers.ok()) return numbers.status();
  const absl::StatusOr<absl::Duration> keep = choice.keep.empty() ? absl::ZeroDuration() : KeptFor(choice.keep);
  if (!keep.ok()) return keep.status();
  absl::StatusOr<std::unique_ptr<Store>> store = OpenUnserved(database);
  if (!store.ok()) return store.status();
  if (!choice.keep.empty()) {
    numbers = OldCampaigns(**store, absl::Now() - *keep, choice.keep_best);
    if (!numbers.ok()) return numbers.status();
    if (numbers->empty()) return absl::StrCat("no campaign ended more than ", choice.keep, " ago: nothing was moved");
  }
  const ProfileSet& profiles = ProfileSet::Default();
  const TreeChooser chooser(profiles.tree);
  const Reports reports(**store, chooser, profiles, [] { return absl::Now(); });
  const auto page_of = [&](int64_t number) -> absl::StatusOr<std::string> {
    v1::GetReportRequest request;
    request.set_campaign(CampaignName(number));
    request.set_format(v1::REPORT_FORMAT_HTML);
    absl::StatusOr<v1::GetReportResponse> report = reports.Get(request);
    if (!report.ok()) return report.status();
    return std::move(*report->mutable_page());
  };
  const absl::StatusOr<ArchiveSummary> moved =
      (*store)->MoveOut(*numbers, file, absl::ToUnixMicros(absl::Now()), page_of);
  if (!moved.ok()) return moved.status();
  MakeSmall(**store);
  return absl::StrCat("moved ", MovedText(*moved), " to ", file.native());
}

absl::StatusOr<std::string> RestoreCampaigns(const std::filesystem::path& database, const std::filesystem::path& file) {
  absl::StatusOr<std::unique_ptr<Store>> store = OpenUnserved(database);
  if (!store.ok()) return store.status();
  const absl::StatusOr<ArchiveSummary> moved = (*store)->BringBack(
      file,
      [&](int64_t number, const ArchivedCampaign& campaign) { return CheckReplay(number, campaign, file.native()); });
  if (!moved.ok()) return moved.status();
  return absl::StrCat("restored ", MovedText(*moved), " from ", file.native(), ", which may be removed");
}

}  // namespace pawl
