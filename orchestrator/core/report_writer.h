#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "orchestrator/core/report.h"

namespace pawl {

// Writes campaign-7.html for each campaign that ended, on a thread of its own: whatever goes wrong is a line in the
// log and harms no campaign. What can't be written, on a full disk say, is tried again every `pause`. The destructor
// tries all that is left once more before it returns. Thread-safe. `reports` must outlive it.
class ReportWriter {
 public:
  ReportWriter(const Reports& reports, std::filesystem::path folder,
               std::chrono::milliseconds pause = std::chrono::seconds(30));
  ~ReportWriter();

  void Write(int64_t campaign);
  // Of these campaigns, those that ended after this time and have no page: an earlier process could not write it, or
  // was killed before it did.
  void WriteMissing(const std::vector<v1::Campaign>& campaigns, absl::Time after);

 private:
  void WorkOff();
  std::vector<int64_t> WriteAll(const std::vector<int64_t>& campaigns, bool first);
  absl::Status WriteOne(int64_t campaign) const;

  const Reports& reports_;
  const std::filesystem::path folder_;
  const std::chrono::milliseconds pause_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int64_t> waiting_;
  bool ending_ = false;
  std::thread thread_;  // last: everything is there when it starts
};

// The file of a campaign's report in the folder.
std::filesystem::path ReportFile(const std::filesystem::path& folder, int64_t campaign);

// Beside the file and renamed, so that a reader sees the old one or the new one, whole. UNAVAILABLE: it can't be
// written; what was there stays.
absl::Status ReplaceFile(const std::filesystem::path& file, const std::string& content);

}  // namespace pawl
