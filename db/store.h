#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/archive.h"
#include "db/damage_check.h"
#include "db/lock_file.h"
#include "db/open_files.h"
#include "db/sqlite.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/campaign_service.pb.h"
#include "pawl/v1/event.pb.h"
#include "pawl/v1/pattern.pb.h"
#include "pawl/v1/trial.pb.h"

namespace pawl {

struct StoreOptions {
  std::filesystem::path file;  // made if it is not there, with its folder
  bool check = true;           // for damage, where the last owner did not close the database
  // Open waits so long for the check. A longer one goes on while reads are served; writes are refused until it ends.
  std::chrono::milliseconds check_patience{2000};
  std::function<void()> check_begins = nullptr;  // a test's way to a check that takes long; on the check's thread
  int64_t max_pages = 0;                         // 0: no limit. A test's way to a full disk
  int busy_milliseconds = 2000;                  // to wait for another process's lock, a sqlite3 shell's say
};

struct NewBlob {
  v1::Blob::Kind kind;
  std::string hash;  // Sha256Hex of content
  std::string content;
};

struct StoredBlob {
  v1::Blob blob;
  std::string content;
};

// A worker as it must be known after a restart.
struct StoredWorker {
  std::string instance;
  v1::Worker worker;
};

struct StoreSizes {
  int64_t database = 0, wal = 0, blobs = 0, blob_count = 0;  // bytes, bytes, bytes, blobs
  int64_t free = 0, disk = 0;                                // bytes of the file system that it is on
};

// What the trials of one author's campaigns took that ended within one hour.
struct SpentHour {
  std::string author;
  int64_t hour = 0;  // since 1970
  double gpu_seconds = 0, dollars = 0;
};

// What is written together or not at all.
struct Writes {
  std::vector<v1::Event> events = {};        // their sequence numbers are given by Commit
  std::vector<v1::Campaign> campaigns = {};  // as they are after the events; made or replaced
  std::vector<NewBlob> blobs = {};           // one that is there already is left as it is
  std::vector<StoredWorker> workers = {};    // made or replaced
  // What judged iterations taught: counts of one bundle, whose median is the gain of each of them. Those of the same
  // gain are added up.
  std::vector<v1::Pattern> lessons = {};
  std::vector<v1::PatternFile> pattern_files = {};  // imported; by their source made or replaced
  std::vector<std::string> pattern_exports = {};    // hashes of what was handed out of the lessons
  std::vector<SpentHour> spending = {};             // added to what the hour has
  std::optional<v1::MaintenanceNote> maintenance = {};
  bool leases_ended = false;  // of the original of a copy: Copied is false from then on
};

struct IterationQuery {
  int64_t campaign = 0;
  v1::Verdict verdict = v1::VERDICT_UNSPECIFIED;          // all
  std::string variable = {};                              // empty: all
  std::string finding = {};                               // empty: all
  v1::IterationOrder order = v1::ITERATION_ORDER_NUMBER;  // by speedup: equal ones newest first
  int limit = 100;
  // Those after this one in the order; absent: from the beginning.
  struct Place {
    int number = 0;
    double speedup = 0;  // over the start; of ITERATION_ORDER_SPEEDUP
  };
  std::optional<Place> after = {};
};

// The orchestrator's one SQLite file: an append-only event log, and tables for queries that are updated in the same
// transaction. A write that returned OK survives a crash of the process and of the machine (WAL, synchronous=FULL).
//
// Thread-safe: writing and reading have a connection each, so that a query does not wait for a commit.
//
// Errors of writing: UNAVAILABLE (locked, read-only, full, I/O; the message says which and what to do; nothing was
// written, and a later try may succeed). With `uncertain` set after an I/O error the write may or may not be there:
// read the state again before going on. Of opening also: ALREADY_EXISTS (in use by another orchestrator),
// FAILED_PRECONDITION (a newer schema, not a Pawl database, missing beside its -wal), DATA_LOSS (the check found
// damage).
//
// Nothing is written, and nothing acknowledged, once the files were removed, replaced or cut (FAILED_PRECONDITION) or
// damage was found (DATA_LOSS): ask Check() a few times a second and end the process when it fails.
class Store {
 public:
  static absl::StatusOr<std::unique_ptr<Store>> Open(const StoreOptions& options);
  ~Store();
  Store(const Store&) = delete;

  // OK, also while the database is being checked for damage. An error stays.
  absl::Status Check();

  // Tells those who find the database where its orchestrator listens (db/lock_file.h).
  absl::Status SetAddress(const std::string& address);

  // Gives the events their sequence numbers and their campaigns' last_sequence, in `writes` too. An event that judges
  // an iteration also makes its row, one that revises iterations changes theirs; a CampaignSubmitted gives its campaign
  // the request id. Besides the errors above: ALREADY_EXISTS (an iteration was judged before, a request id was used
  // before), FAILED_PRECONDITION (no such campaign), INVALID_ARGUMENT (a malformed name, an event without content, an
  // iteration without number or verdict).
  absl::Status Commit(Writes* writes);
  bool uncertain() const { return uncertain_; }
  void ClearUncertain() { uncertain_ = false; }
  // Whether a transaction can be written now. Commits one that changes nothing but a count of such tries: this also
  // settles an uncertain write, by overwriting what is left of it, so that what is read afterwards stays true.
  absl::Status Probe();

  // An older Pawl wrote rows that are not always what the events make of the campaigns (0004_outdated_rows.sql): each
  // must be replaced by what replaying its events gives, then SetRowsUpToDate says that all were.
  absl::StatusOr<bool> RowsOutdated();
  absl::Status ReplaceRows(const v1::Campaign& campaign, const std::vector<v1::Iteration>& iterations);
  absl::Status SetRowsUpToDate();

  // The file is not the one that the last owner under this name had (restored, copied, moved), or nobody knows: leases
  // in it are those of another database. Until a commit with `leases_ended`.
  bool Copied();

  // What the orchestrator wrote down last; empty: nothing yet.
  absl::StatusOr<v1::ServiceNotes> Notes();
  absl::Status WriteNotes(const v1::ServiceNotes& notes);
  // As it began or ended last; empty: it never did.
  absl::StatusOr<v1::MaintenanceNote> Maintenance();
  // Campaigns whose reports could not be written yet.
  absl::StatusOr<std::vector<int64_t>> UnwrittenReports();
  absl::Status NoteUnwrittenReports(const std::vector<int64_t>& campaigns);

  absl::StatusOr<int64_t> LastCampaign();                      // 0: none
  absl::StatusOr<std::vector<int64_t>> UnfinishedCampaigns();  // or being verified; by number
  absl::StatusOr<std::optional<v1::Campaign>> GetCampaign(int64_t number);
  absl::StatusOr<std::optional<v1::Campaign>> FindRequest(const std::string& request_id);
  absl::StatusOr<std::vector<v1::Campaign>> ListCampaigns(int64_t before, int limit);  // newest first
  // Newest first, without what is long. FindRequest finds these, too.
  absl::StatusOr<std::vector<v1::Campaign>> ListArchived(int limit);
  // The file that the campaign was archived to; empty: it was not.
  absl::StatusOr<std::string> ArchiveOf(int64_t number);

  // What trials took since this hour, of campaigns that were archived, too.
  absl::StatusOr<std::vector<SpentHour>> Spending(int64_t since_hour);
  // An older Pawl did not write it (0006_spending.sql): SetSpending has it from the campaigns.
  absl::StatusOr<bool> SpendingUncounted();
  absl::Status SetSpending(const std::vector<SpentHour>& hours);

  absl::StatusOr<std::vector<v1::Event>> Events(int64_t campaign, int64_t after, int limit);

  absl::StatusOr<std::vector<v1::Iteration>> ListIterations(const IterationQuery& query);
  // With evidence, samples and blobs from the event that ended it.
  absl::StatusOr<std::optional<v1::Iteration>> GetIteration(int64_t campaign, int number);

  // Of an iteration; empty where it has none.
  absl::StatusOr<v1::Evidence> GetEvidence(int64_t campaign, int number);

  absl::StatusOr<std::optional<StoredBlob>> GetBlob(const std::string& hash);
  absl::StatusOr<bool> HasBlob(const std::string& hash);
  // The first call adds up all blobs, later ones those that came since.
  absl::StatusOr<StoreSizes> Sizes();
  absl::StatusOr<std::vector<StoredWorker>> Workers();
  absl::Status RemoveWorkers(const std::vector<std::string>& names);  // one that is not there is no error
  // That those workers speak; 0: not noted.
  absl::StatusOr<int64_t> WorkerProtocol();
  absl::Status NoteWorkerProtocol(int64_t protocol);

  absl::StatusOr<std::vector<v1::Pattern>> Lessons();           // as they were written, those of the same gain as one
  absl::StatusOr<std::vector<v1::PatternFile>> PatternFiles();  // by source
  absl::StatusOr<std::vector<std::string>> PatternExports();    // hashes

  // Moves ended campaigns into a new file (db/archive.h), and back. Killed at any moment, each campaign is whole in the
  // database, in the file, or in both. For a process that does nothing else with the store. The database's file keeps
  // its size until Shrink, which needs as much free space as the database has content.
  absl::StatusOr<ArchiveSummary> MoveOut(const std::vector<int64_t>& campaigns, const std::filesystem::path& file,
                                         int64_t time_us, const PageOf& page_of);
  // `check` looks at each campaign before any is taken; its error is the answer.
  using CheckCampaign = std::function<absl::Status(int64_t number, const ArchivedCampaign& campaign)>;
  absl::StatusOr<ArchiveSummary> BringBack(const std::filesystem::path& file, const CheckCampaign& check = nullptr);
  absl::Status Shrink();

  // 32 random bytes that were made with the file: lease tokens are derived from them.
  const std::string& secret() const { return secret_; }

  // That commits took since the store was opened.
  double commit_seconds() const { return 1e-9 * static_cast<double>(commit_nanos_); }
  int64_t commits() const { return commits_; }

  // A copy that is consistent while writing goes on. The file must not exist.
  absl::Status Backup(const std::filesystem::path& file);

 private:
  explicit Store(StoreOptions options) : options_(std::move(options)) {}

  absl::Status Start();
  absl::Status WriteMeta(const std::string& key, const std::string& value);
  template <typename Message>
  absl::StatusOr<Message> ReadMeta(const std::string& key);
  absl::Status CheckForDamage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status Write(Writes* writes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status Begin(Transaction* transaction) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status CommitTransaction(Transaction* transaction) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  absl::Status NewIdentity(std::string* identity) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);
  void NoteIdentity() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mutex_);

  const StoreOptions options_;
  std::unique_ptr<DatabaseLock> lock_;  // outlives the connections
  std::unique_ptr<OpenFiles> files_;
  std::unique_ptr<DamageCheck> check_;  // null: none was needed
  absl::Mutex writer_mutex_;
  std::unique_ptr<SqliteConnection> writer_ ABSL_GUARDED_BY(writer_mutex_);
  std::string identity_ ABSL_GUARDED_BY(writer_mutex_);  // empty: the first commit makes one
  absl::Mutex reader_mutex_;
  std::unique_ptr<SqliteConnection> reader_ ABSL_GUARDED_BY(reader_mutex_);
  StoreSizes counted_ ABSL_GUARDED_BY(reader_mutex_);  // its blobs, up to this row
  int64_t counted_row_ ABSL_GUARDED_BY(reader_mutex_) = 0;
  std::atomic<bool> uncertain_ = false;
  std::atomic<int64_t> commit_nanos_ = 0;
  std::atomic<int64_t> commits_ = 0;
  std::string secret_;
};

}  // namespace pawl
