#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/sync/steady_condition.h"
#include "db/store.h"
#include "orchestrator/engine/search/chooser.h"
#include "pawl/v1/campaign_service.pb.h"
#include "profiles/profile_set.h"

namespace pawl {

// Makes reports from the store alone: a campaign's events are read again, so that nobody who decides has to wait for a
// report, however long the campaign is. Thread-safe. All that it is given must outlive it.
class Reports {
 public:
  using Clock = std::function<absl::Time()>;
  Reports(Store& store, const Chooser& chooser, const ProfileSet& profiles, Clock clock)
      : store_(store), chooser_(chooser), profiles_(profiles), clock_(std::move(clock)) {}

  // Errors as campaign_service.proto has them.
  absl::StatusOr<v1::GetReportResponse> Get(const v1::GetReportRequest& request) const;

 private:
  absl::StatusOr<v1::Report> Make(int64_t campaign) const;

  Store& store_;
  const Chooser& chooser_;
  const ProfileSet& profiles_;
  const Clock clock_;
};

// Writes campaign-7.html for each campaign that ended, on a thread of its own: whatever goes wrong is a line in the
// log and harms no campaign. What can't be written, for example on a full disk, is retried every `pause`. The
// destructor tries everything that is left once more before it returns. Thread-safe. `reports` must outlive it.
class ReportWriter {
 public:
  // Told of all campaigns whose page could not be written, when they are others than before: what the next start is to
  // write. Until it returns OK it is told again.
  using Remember = std::function<absl::Status(const std::vector<int64_t>&)>;
  ReportWriter(const Reports& reports, std::filesystem::path folder, absl::Duration pause = absl::Seconds(30),
               Remember remember = nullptr);
  ~ReportWriter();

  void Write(int64_t campaign);
  // What an earlier process remembered.
  void Resume(const std::vector<int64_t>& unwritten);
  // Of these campaigns, those that ended after this time and have no page: an earlier process could not write it, or
  // was killed before it did.
  void WriteMissing(const std::vector<v1::Campaign>& campaigns, absl::Time after);

 private:
  void WorkOff();
  std::vector<int64_t> WriteAll(const std::vector<int64_t>& campaigns, bool first);
  absl::Status WriteOne(int64_t campaign) const;
  void RememberAll(const std::vector<int64_t>& failed);

  const Remember remember_;
  const Reports& reports_;
  const std::filesystem::path folder_;
  const absl::Duration pause_;
  absl::Mutex mutex_;
  SteadyCondition changed_;
  std::vector<int64_t> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> remembered_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: everything is there when it starts
};

// The file of a campaign's report in the folder.
std::filesystem::path ReportFile(const std::filesystem::path& folder, int64_t campaign);

// Beside the file and renamed, so that a reader sees the old one or the new one, whole. UNAVAILABLE: it can't be
// written; what was there stays.
absl::Status ReplaceFile(const std::filesystem::path& file, const std::string& content);

}  // namespace pawl
