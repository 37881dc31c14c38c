#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pawl {

// Which campaigns to archive: those that are named, or all that ended longer ago.
struct ArchiveChoice {
  std::vector<std::string> campaigns;  // 7 or campaigns/7
  std::string keep;                    // "90d": those that ended within this time stay
  bool keep_best = false;              // and of each bundle, GPU and size the fastest that has ended
};

// Moves ended campaigns out of a database that no orchestrator serves, into a new file, and back; then makes the
// database's file as small as its content. Says what was moved, in one line. ALREADY_EXISTS also: an orchestrator has
// the database.
absl::StatusOr<std::string> ArchiveCampaigns(const std::filesystem::path& database, const ArchiveChoice& choice,
                                             const std::filesystem::path& file);
absl::StatusOr<std::string> RestoreCampaigns(const std::filesystem::path& database, const std::filesystem::path& file);

}  // namespace pawl
