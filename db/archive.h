#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/sqlite.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/event.pb.h"

namespace pawl {

// An archive is a SQLite file with whole campaigns: their rows of campaigns, events and iterations as they are, the
// blobs that they refer to, and a report of each as a page. It names its format and has a hash of its content, so that
// a truncated or changed file is recognised.

struct ArchiveSummary {
  std::vector<int64_t> campaigns;
  int64_t events = 0, iterations = 0, blobs = 0;
  std::string content;  // hash
};

using PageOf = std::function<absl::StatusOr<std::string>(int64_t campaign)>;

// Copies ended campaigns into a new file, which has its name only once it is complete and on disk. Changes nothing in
// the database. NOT_FOUND, FAILED_PRECONDITION: a campaign that is not there, or has not ended. ALREADY_EXISTS: the
// file.
absl::StatusOr<ArchiveSummary> WriteArchive(SqliteConnection* database, const std::vector<int64_t>& campaigns,
                                            const std::filesystem::path& file, const PageOf& page_of);

// Reads all of it. FAILED_PRECONDITION: no archive, or one of a newer Pawl. DATA_LOSS: it is damaged or truncated, or a
// blob is not what its hash says.
absl::StatusOr<ArchiveSummary> CheckArchive(const std::filesystem::path& file);

// Of the rows of an archive that is open: what its meta table must say.
absl::StatusOr<std::string> ArchiveContentHash(SqliteConnection* archive);

// One campaign of an archive that CheckArchive has passed, as it is stored there.
struct ArchivedCampaign {
  v1::Campaign summary;
  std::vector<v1::Iteration> iterations;  // as the rows have them, by number
  std::vector<v1::Event> events;          // in order
  std::string bundle;                     // the blob that the first event names; empty: the archive lacks it
};
// DATA_LOSS: a row can't be read.
absl::StatusOr<ArchivedCampaign> ReadArchived(const std::filesystem::path& file, int64_t campaign);

// In the transaction that is open: takes out what an archive holds, with the blobs that no other campaign refers to,
// and notes where it went; and the other way round. ALREADY_EXISTS: a campaign of it is there.
absl::Status RemoveArchived(SqliteConnection* database, const ArchiveSummary& archive,
                            const std::filesystem::path& file, int64_t time_us);
absl::Status AddArchived(SqliteConnection* database, const ArchiveSummary& archive);

// While `file` is attached as `archive`; a transaction must not be open.
absl::Status AttachArchive(SqliteConnection* database, const std::filesystem::path& file);
absl::Status DetachArchive(SqliteConnection* database);

}  // namespace pawl
