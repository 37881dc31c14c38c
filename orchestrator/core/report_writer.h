#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "orchestrator/core/report.h"

namespace pawl {

// Writes campaign-7.html for each campaign that ended, on a thread of its own: whatever goes wrong is a line in the
// log and harms no campaign. The last ones are written before the destructor returns. Thread-safe. `reports` must
// outlive it.
class ReportWriter {
 public:
  ReportWriter(const Reports& reports, std::filesystem::path folder);
  ~ReportWriter();

  void Write(int64_t campaign);

 private:
  void WorkOff();
  absl::Status WriteOne(int64_t campaign) const;

  const Reports& reports_;
  const std::filesystem::path folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int64_t> waiting_;
  bool ending_ = false;
  std::thread thread_;  // last: everything is there when it starts
};

// The file of a campaign's report in the folder.
std::filesystem::path ReportFile(const std::filesystem::path& folder, int64_t campaign);

// Beside the file and renamed, so that a reader sees the old one or the new one, whole. UNAVAILABLE: it can't be
// written; what was there stays.
absl::Status ReplaceFile(const std::filesystem::path& file, const std::string& content);

}  // namespace pawl
