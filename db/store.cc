#include "db/store.h"

#include <sqlite3.h>

#include <chrono>
#include <map>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/faults/fault_point.h"
#include "base/names/resource_name.h"
#include "base/revision/revision.h"
#include "db/backup.h"
#include "db/identity.h"
#include "db/iteration_sql.h"
#include "db/pattern_rows.h"
#include "db/schema.h"

namespace pawl {
namespace {

// 16 MB of WAL before the writer copies it into the file: the pages of the iterations' indexes are written over and
// over, and this way once a checkpoint. Memory-mapping stays off: a disk that fails under it would be a SIGBUS, not a
// status.
constexpr char kSettings[] =
    "PRAGMA synchronous = FULL;"
    "PRAGMA foreign_keys = ON;"
    "PRAGMA wal_autocheckpoint = 4096;"
    "PRAGMA journal_size_limit = 67108864;"
    "PRAGMA mmap_size = 0;"
    "PRAGMA cache_size = -32768;";

absl::Status MakeFolder(const std::filesystem::path& file) {
  if (!file.has_filename()) {
    return absl::FailedPreconditionError(absl::StrCat("\"", file.native(), "\" names no file for the database"));
  }
  std::error_code error;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("can't make folder ", file.parent_path().native(), ": ", error.message()));
  }
  if (std::filesystem::exists(file, error) && !std::filesystem::is_regular_file(file, error)) {
    return absl::FailedPreconditionError(absl::StrCat(
        file.native(), std::filesystem::is_directory(file, error) ? " is a folder" : " is not a regular file",
        ": name a file for the database"));
  }
  return absl::OkStatus();
}

absl::Status UseWal(SqliteConnection* connection) {
  Statement statement = connection->Use("PRAGMA journal_mode = WAL");
  const absl::StatusOr<bool> row = statement.Step();
  if (!row.ok()) return row.status();
  if (*row && statement.Bytes(0) == "wal") return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("database ", connection->file(), " can't have a write-ahead log: put it on a local disk"));
}

int64_t Microseconds(const google::protobuf::Timestamp& time) { return time.seconds() * 1000000 + time.nanos() / 1000; }

// Nothing is left to be done: a restart need not look at it.
bool Ended(const v1::Campaign& campaign) {
  const v1::CampaignState state = campaign.state();
  return (state == v1::FINISHED || state == v1::FAILED || state == v1::CANCELLED) && !campaign.verifying();
}

absl::StatusOr<int64_t> NumberOf(const std::string& campaign) {
  const std::optional<int64_t> number = ParseCampaignName(campaign);
  if (!number || *number == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", campaign, "\" is not the name of a campaign, as campaigns/7 is"));
  }
  return *number;
}

absl::Status WriteCampaign(SqliteConnection* writer, const v1::Campaign& campaign) {
  const absl::StatusOr<int64_t> number = NumberOf(campaign.name());
  if (!number.ok()) return number.status();
  const std::string summary = campaign.SerializeAsString();
  const int64_t ended = Ended(campaign);
  absl::Status status =
      writer
          ->Use(
              "INSERT INTO campaigns (number, state, ended, summary) VALUES (?, ?, ?, ?)"
              " ON CONFLICT (number) DO UPDATE SET state = excluded.state, summary = excluded.summary")
          .Bind(*number)
          .Bind(int64_t{campaign.state()})
          .Bind(ended)
          .BindBytes(summary)
          .Run();
  if (!status.ok()) return status;
  // Apart, since naming an indexed column rewrites its index even where the value stays.
  return writer->Use("UPDATE campaigns SET ended = ?1 WHERE number = ?2 AND ended <> ?1")
      .Bind(ended)
      .Bind(*number)
      .Run();
}

// Leaves the iteration as it was.
absl::Status WriteIteration(SqliteConnection* writer, int64_t campaign, int64_t sequence, v1::Iteration& iteration) {
  if (!iteration.has_number() || iteration.verdict() == v1::VERDICT_UNSPECIFIED) {
    return absl::InvalidArgumentError(absl::StrCat("event ", sequence, " of ", CampaignName(campaign),
                                                   " judges an iteration without a number or a verdict"));
  }
  // What was found and passed over is long, and only GetIteration's.
  auto passed_over = std::move(*iteration.mutable_passed_over());
  auto findings = std::move(*iteration.mutable_findings());
  const std::string summary = iteration.SerializeAsString();
  *iteration.mutable_passed_over() = std::move(passed_over);
  *iteration.mutable_findings() = std::move(findings);
  Statement insert = writer->Use(
      "INSERT INTO iterations (sequence, campaign, number, parent, verdict, comparison, variable, finding, speedup,"
      " time_us, summary) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.Bind(sequence).Bind(campaign).Bind(int64_t{iteration.number()});
  iteration.has_parent() ? insert.Bind(int64_t{iteration.parent()}) : insert.BindNull();
  return insert.Bind(int64_t{iteration.verdict()})
      .Bind(int64_t{iteration.comparison()})
      .BindText(iteration.change().variable())
      .BindText(iteration.finding().rule())
      .Bind(SpeedupKey(iteration.speedup_over_start()))
      .Bind(SpeedupKey(iteration.time_us()))
      .BindBytes(summary)
      .Run();
}

absl::Status UpdateIteration(SqliteConnection* writer, int64_t campaign, const v1::Iteration& row) {
  const std::string summary = row.SerializeAsString();
  return writer
      ->Use(
          "UPDATE iterations SET verdict = ?, speedup = ?, time_us = ?, summary = ? WHERE campaign = ? AND number = ?")
      .Bind(int64_t{row.verdict()})
      .Bind(SpeedupKey(row.speedup_over_start()))
      .Bind(SpeedupKey(row.time_us()))
      .BindBytes(summary)
      .Bind(campaign)
      .Bind(int64_t{row.number()})
      .Run();
}

// Gives an iteration that was judged before the values that the event has for it.
absl::Status Revise(SqliteConnection* writer, int64_t campaign, const v1::RevisedIteration& revised) {
  v1::Iteration row;
  {
    Statement select = writer->Use("SELECT summary FROM iterations WHERE campaign = ? AND number = ?");
    const absl::StatusOr<bool> found = select.Bind(campaign).Bind(int64_t{revised.number()}).Step();
    if (!found.ok()) return found.status();
    const std::string_view before = *found ? select.Bytes(0) : std::string_view();
    if (!*found || !row.ParseFromArray(before.data(), static_cast<int>(before.size()))) {
      return absl::FailedPreconditionError(
          absl::StrCat(CampaignName(campaign), " has no iteration ", revised.number(), " that could be revised"));
    }
  }
  ReviseIteration(revised, &row);
  return UpdateIteration(writer, campaign, row);
}

// Leaves the event as it was.
absl::Status WriteEvent(SqliteConnection* writer, v1::Event& event) {
  const absl::StatusOr<int64_t> campaign = NumberOf(event.campaign());
  if (!campaign.ok()) return campaign.status();
  if (event.event_case() == v1::Event::EVENT_NOT_SET) {
    return absl::InvalidArgumentError(absl::StrCat("an event of ", event.campaign(), " has no content"));
  }
  const std::string payload = event.SerializeAsString();
  absl::Status status =
      writer->Use("INSERT INTO events (sequence, campaign, time_us, kind, payload) VALUES (?, ?, ?, ?, ?)")
          .Bind(event.sequence())
          .Bind(*campaign)
          .Bind(Microseconds(event.time()))
          .Bind(int64_t{event.event_case()})
          .BindBytes(payload)
          .Run();
  if (!status.ok()) return status;
  if (event.has_submitted() && !event.submitted().request_id().empty()) {
    return writer->Use("UPDATE campaigns SET request_id = ? WHERE number = ?")
        .BindText(event.submitted().request_id())
        .Bind(*campaign)
        .Run();
  }
  if (event.has_finished() && event.finished().has_iteration()) {
    status = WriteIteration(writer, *campaign, event.sequence(), *event.mutable_finished()->mutable_iteration());
    if (!status.ok()) return status;
  }
  for (const v1::RevisedIteration& revised : event.finished().revised()) {
    if (absl::Status revision = Revise(writer, *campaign, revised); !revision.ok()) return revision;
  }
  return absl::OkStatus();
}

absl::Status WriteBlob(SqliteConnection* writer, const NewBlob& blob) {
  return writer->Use("INSERT INTO blobs (hash, kind, bytes, content) VALUES (?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING")
      .BindText(blob.hash)
      .Bind(int64_t{blob.kind})
      .Bind(static_cast<int64_t>(blob.content.size()))
      .BindBytes(blob.content)
      .Run();
}

absl::Status WriteWorker(SqliteConnection* writer, const StoredWorker& worker) {
  const std::string summary = worker.worker.SerializeAsString();
  return writer
      ->Use(
          "INSERT INTO workers (name, instance, summary) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
          " instance = excluded.instance, summary = excluded.summary")
      .BindText(worker.worker.name())
      .BindText(worker.instance)
      .BindBytes(summary)
      .Run();
}

absl::Status WriteSpending(SqliteConnection* writer, const SpentHour& spent) {
  return writer
      ->Use(
          "INSERT INTO spending (author, hour, gpu_seconds, dollars) VALUES (?, ?, ?, ?) ON CONFLICT (author, hour) DO"
          " UPDATE SET gpu_seconds = gpu_seconds + excluded.gpu_seconds, dollars = dollars + excluded.dollars")
      .BindText(spent.author)
      .Bind(spent.hour)
      .Bind(SpeedupKey(spent.gpu_seconds))
      .Bind(SpeedupKey(spent.dollars))
      .Run();
}

absl::Status WriteMetaRow(SqliteConnection* writer, const std::string& key, const std::string& value) {
  return writer->Use("INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value")
      .BindText(key)
      .BindBytes(value)
      .Run();
}

template <typename Rows, typename Row>
absl::Status WriteAll(SqliteConnection* writer, Rows& rows, absl::Status write(SqliteConnection*, Row&)) {
  for (Row& row : rows) {
    if (absl::Status status = write(writer, row); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const StoreOptions& options) {
  std::unique_ptr<Store> store(new Store(options));
  if (absl::Status status = store->Start(); !status.ok()) return status;
  return store;
}

Store::~Store() {
  const bool undamaged =
      lock_ != nullptr && (check_ != nullptr ? check_->Found() == absl::OkStatus() : lock_->closed_before());
  check_.reset();
  const bool lost = files_ == nullptr || !files_->Check().ok();
  // What the -wal holds may be all that is left: SQLite would remove it with the last connection.
  for (SqliteConnection* connection : {writer_.get(), reader_.get()}) {
    if (lost && connection != nullptr) connection->KeepWalOnClose();
  }
  reader_.reset();
  writer_.reset();
  if (undamaged && !lost && !uncertain_) (void)lock_->NoteClosed();  // without it the next start checks
}

absl::Status Store::Start() {
  if (absl::Status status = MakeFolder(options_.file); !status.ok()) return status;
  const std::filesystem::path& file = options_.file;
  absl::MutexLock writing(&writer_mutex_);
  absl::MutexLock reading(&reader_mutex_);
  auto lock = DatabaseLock::Acquire(file);
  if (!lock.ok()) return lock.status();
  lock_ = *std::move(lock);
  auto writer = SqliteConnection::Open(file, SqliteConnection::Mode::kWrite, options_.busy_milliseconds);
  if (!writer.ok()) return writer.status();
  writer_ = *std::move(writer);
  if (writer_->read_only()) return writer_->Error(SQLITE_READONLY);
  if (absl::Status status = CheckIsPawlDatabase(writer_.get()); !status.ok()) return status;
  if (absl::Status status = UseWal(writer_.get()); !status.ok()) return status;
  if (absl::Status status = writer_->Execute(kSettings); !status.ok()) return status;
  // Opens the -wal. From here on the files must stay what they are: a swap during the check is not adopted.
  if (absl::Status status = writer_->QueryInt("PRAGMA schema_version").status(); !status.ok()) return status;
  files_ = std::make_unique<OpenFiles>(file, lock_->database_descriptor());
  if (absl::Status status = files_->Check(); !status.ok()) return status;
  if (absl::Status status = CheckForDamage(); !status.ok()) return status;
  if (absl::Status status = Migrate(writer_.get()); !status.ok()) return status;
  if (options_.max_pages > 0) {
    absl::Status status = writer_->Execute(absl::StrCat("PRAGMA max_page_count = ", options_.max_pages));
    if (!status.ok()) return status;
  }

  auto reader = SqliteConnection::Open(file, SqliteConnection::Mode::kRead, options_.busy_milliseconds);
  if (!reader.ok()) return reader.status();
  reader_ = *std::move(reader);
  if (absl::Status status = reader_->Execute(kSettings); !status.ok()) return status;
  Statement secret = reader_->Use("SELECT value FROM meta WHERE key = 'secret'");
  const absl::StatusOr<bool> row = secret.Step();
  if (!row.ok()) return row.status();
  if (!*row) return writer_->Error(SQLITE_CORRUPT);
  secret_ = secret.Bytes(0);
  auto identity = IdentityOf(writer_.get());
  if (!identity.ok()) return identity.status();
  identity_ = *std::move(identity);
  if (absl::Status status = files_->Check(); !status.ok()) return status;
  return lock_->NoteWal();
}

// A process that closes the database has finished its last write: a closed database need not be checked again.
absl::Status Store::CheckForDamage() {
  if (!options_.check || lock_->closed_before()) return absl::OkStatus();
  auto check = DamageCheck::Start(options_.file, options_.busy_milliseconds, options_.check_begins);
  if (!check.ok()) return check.status();
  check_ = *std::move(check);
  const absl::StatusOr<int64_t> version = writer_->QueryInt("PRAGMA user_version");
  if (!version.ok()) return version.status();
  bool upgrades = *version < kSchemaVersion;
  if (!upgrades) {
    const absl::StatusOr<int64_t> outdated = writer_->QueryInt("SELECT count(*) FROM meta WHERE key = 'outdated rows'");
    if (!outdated.ok()) return outdated.status();
    upgrades = *outdated > 0;
  }
  // An upgrade writes, and must not spread damage.
  std::optional<absl::Status> found = check_->Wait(options_.check_patience);
  while (!found && upgrades) found = check_->Wait(std::chrono::hours(1));
  return found.value_or(absl::OkStatus());
}

absl::Status Store::Check() {
  const std::optional<absl::Status> damage = check_ == nullptr ? absl::OkStatus() : check_->Found();
  return damage && !damage->ok() ? *damage : files_->Check();
}

// Nothing is begun that could not be acknowledged.
absl::Status Store::Begin(Transaction* transaction) {
  if (absl::Status status = Check(); !status.ok()) return status;
  if (check_ != nullptr && !check_->Found()) {
    return absl::UnavailableError(
        absl::StrCat("database ", options_.file.native(),
                     " is being checked for damage, since it was not closed: reads are served, writes wait for the end "
                     "of the check; try again"));
  }
  return transaction->Begin();
}

absl::Status Store::SetAddress(const std::string& address) {
  absl::MutexLock lock(&writer_mutex_);
  return lock_->SetAddress(address);
}

absl::Status Store::Commit(Writes* writes) {
  absl::MutexLock lock(&writer_mutex_);
  const auto begin = std::chrono::steady_clock::now();
  absl::Status status = Write(writes);
  ++commits_;
  commit_nanos_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  if (!status.ok()) {
    for (v1::Event& event : writes->events) event.clear_sequence();
  }
  return status;
}

absl::Status Store::Write(Writes* writes) {
  Transaction transaction(writer_.get());
  if (absl::Status status = Begin(&transaction); !status.ok()) return status;
  // Asked each time, so that a failed commit uses up nothing and nothing can be out of step with the file.
  const absl::StatusOr<int64_t> last = writer_->QueryInt(
      "SELECT max(coalesce((SELECT max(sequence) FROM events), 0), coalesce((SELECT max(last_sequence) FROM archived), "
      "0))");
  if (!last.ok()) return last.status();
  int64_t sequence = *last;
  std::map<std::string, int64_t> latest;
  for (v1::Event& event : writes->events) {
    event.set_sequence(++sequence);
    latest[event.campaign()] = sequence;
  }
  for (v1::Campaign& campaign : writes->campaigns) {
    if (const auto found = latest.find(campaign.name()); found != latest.end()) {
      campaign.set_last_sequence(found->second);
    }
  }
  // Campaigns first: events refer to them.
  absl::Status status = WriteAll(writer_.get(), writes->campaigns, WriteCampaign);
  if (status.ok()) status = WriteAll(writer_.get(), writes->events, WriteEvent);
  if (status.ok()) status = WriteAll(writer_.get(), writes->blobs, WriteBlob);
  if (status.ok()) status = WriteAll(writer_.get(), writes->workers, WriteWorker);
  if (status.ok()) status = WriteAll(writer_.get(), writes->lessons, WriteLesson);
  if (status.ok()) status = WriteAll(writer_.get(), writes->pattern_files, WritePatternFile);
  if (status.ok()) status = WriteAll(writer_.get(), writes->pattern_exports, WritePatternExport);
  if (status.ok()) status = WriteAll(writer_.get(), writes->spending, WriteSpending);
  if (status.ok() && writes->maintenance) {
    status = WriteMetaRow(writer_.get(), "maintenance", writes->maintenance->SerializeAsString());
  }
  const bool identify = writes->leases_ended || identity_.empty();
  std::string identity;
  if (status.ok() && identify) status = NewIdentity(&identity);
  if (!status.ok()) return status;
  Pass(FaultPoint::kBeforeCommit);
  status = CommitTransaction(&transaction);
  if (!status.ok() || !identify) return status;
  identity_ = identity;
  // Where this fails, the next start ends the leases that are out then once more.
  if (writes->leases_ended) (void)lock_->NoteSame();
  NoteIdentity();
  return status;
}

// Noted before it is committed: the file may have either of them when this process ends.
absl::Status Store::NewIdentity(std::string* identity) {
  absl::StatusOr<std::string> made = MakeIdentity(writer_.get());
  if (!made.ok()) return made.status();
  *identity = *std::move(made);
  return lock_->NoteIdentities(identity_.empty() ? *identity : absl::StrCat(identity_, " ", *identity));
}

// Once the file itself has it. Where a reader is in the way, both stay noted.
void Store::NoteIdentity() {
  Statement checkpoint = writer_->Use("PRAGMA wal_checkpoint(PASSIVE)");
  const absl::StatusOr<bool> row = checkpoint.Step();  // busy, frames, frames that are in the file now
  if (row.ok() && *row && checkpoint.Int(0) == 0 && checkpoint.Int(1) == checkpoint.Int(2)) {
    (void)lock_->NoteIdentities(identity_);
  }
}

absl::Status Store::CommitTransaction(Transaction* transaction) {
  absl::Status status = transaction->Commit();
  // Written to the log, but did it reach the disk? This process no longer sees it; one that recovers the log might.
  if (!status.ok() && writer_->last_code() == SQLITE_IOERR) uncertain_ = true;
  return status.ok() ? files_->Check() : status;
}

absl::Status Store::Probe() {
  absl::MutexLock lock(&writer_mutex_);
  Transaction transaction(writer_.get());
  if (absl::Status status = Begin(&transaction); !status.ok()) return status;
  // Space for a typical commit, given back.
  absl::Status status = writer_->Execute(
      "SAVEPOINT space; INSERT INTO meta VALUES ('space', zeroblob(65536)); ROLLBACK TO space; RELEASE space;"
      "INSERT INTO meta VALUES ('probe', CAST(1 AS BLOB)) ON CONFLICT (key) DO UPDATE SET"
      " value = CAST(CAST(value AS INTEGER) + 1 AS BLOB)");
  return status.ok() ? CommitTransaction(&transaction) : status;
}

absl::StatusOr<ArchiveSummary> Store::MoveOut(const std::vector<int64_t>& campaigns, const std::filesystem::path& file,
                                              int64_t time_us, const PageOf& page_of) {
  absl::MutexLock lock(&writer_mutex_);
  const std::filesystem::path whole = std::filesystem::absolute(file);
  absl::StatusOr<ArchiveSummary> written = WriteArchive(writer_.get(), campaigns, whole, page_of);
  if (!written.ok()) return written.status();
  // What can't be read again must not be the only copy.
  const absl::StatusOr<ArchiveSummary> read = CheckArchive(whole);
  absl::Status status = read.status();
  if (status.ok() && read->content != written->content) {
    status = absl::DataLossError("the archive is not what was written into it");
  }
  Transaction transaction(writer_.get());
  if (status.ok()) status = Begin(&transaction);
  if (status.ok()) status = RemoveArchived(writer_.get(), *written, whole, time_us);
  if (!status.ok()) {  // the database has everything
    std::error_code error;
    std::filesystem::remove(whole, error);
    return status;
  }
  Pass(FaultPoint::kBeforeCommit);
  // Where this fails the campaigns may have left the database all the same: the file stays.
  if (status = CommitTransaction(&transaction); !status.ok()) return status;
  Pass(FaultPoint::kAfterCommit);
  return written;
}

absl::StatusOr<ArchiveSummary> Store::BringBack(const std::filesystem::path& file, const CheckCampaign& check) {
  absl::MutexLock lock(&writer_mutex_);
  const absl::StatusOr<ArchiveSummary> archive = CheckArchive(file);
  if (!archive.ok()) return archive.status();
  for (const int64_t number : archive->campaigns) {
    if (check == nullptr) break;
    const absl::StatusOr<ArchivedCampaign> campaign = ReadArchived(file, number);
    if (!campaign.ok()) return campaign.status();
    if (absl::Status status = check(number, *campaign); !status.ok()) return status;
  }
  if (absl::Status status = AttachArchive(writer_.get(), file); !status.ok()) return status;
  absl::Status status;
  {
    Transaction transaction(writer_.get());
    status = Begin(&transaction);
    if (status.ok()) status = AddArchived(writer_.get(), *archive);
    if (status.ok()) {
      Pass(FaultPoint::kBeforeCommit);
      status = CommitTransaction(&transaction);
    }
  }
  const absl::Status detached = DetachArchive(writer_.get());
  if (!status.ok()) return status;
  Pass(FaultPoint::kAfterCommit);
  if (!detached.ok()) return detached;
  return archive;
}

absl::Status Store::Shrink() {
  absl::MutexLock lock(&writer_mutex_);
  if (absl::Status status = writer_->Execute("VACUUM"); !status.ok()) return status;
  return writer_->Execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

absl::Status Store::RemoveWorkers(const std::vector<std::string>& names) {
  if (names.empty()) return absl::OkStatus();
  absl::MutexLock lock(&writer_mutex_);
  Transaction transaction(writer_.get());
  if (absl::Status status = Begin(&transaction); !status.ok()) return status;
  for (const std::string& name : names) {
    absl::Status status = writer_->Use("DELETE FROM workers WHERE name = ?").BindText(name).Run();
    if (!status.ok()) return status;
  }
  return CommitTransaction(&transaction);
}

absl::StatusOr<bool> Store::RowsOutdated() {
  absl::MutexLock lock(&writer_mutex_);
  const absl::StatusOr<int64_t> found = writer_->QueryInt("SELECT count(*) FROM meta WHERE key = 'outdated rows'");
  if (!found.ok()) return found.status();
  return *found > 0;
}

absl::Status Store::ReplaceRows(const v1::Campaign& campaign, const std::vector<v1::Iteration>& iterations) {
  const absl::StatusOr<int64_t> number = NumberOf(campaign.name());
  if (!number.ok()) return number.status();
  absl::MutexLock lock(&writer_mutex_);
  Transaction transaction(writer_.get());
  if (absl::Status status = transaction.Begin(); !status.ok()) return status;
  if (absl::Status status = WriteCampaign(writer_.get(), campaign); !status.ok()) return status;
  for (const v1::Iteration& iteration : iterations) {
    if (absl::Status status = UpdateIteration(writer_.get(), *number, iteration); !status.ok()) return status;
  }
  return CommitTransaction(&transaction);
}

absl::Status Store::SetRowsUpToDate() {
  absl::MutexLock lock(&writer_mutex_);
  return writer_->Execute("DELETE FROM meta WHERE key = 'outdated rows'");
}

absl::StatusOr<bool> Store::SpendingUncounted() {
  absl::MutexLock lock(&writer_mutex_);
  const absl::StatusOr<int64_t> found = writer_->QueryInt("SELECT count(*) FROM meta WHERE key = 'uncounted spending'");
  if (!found.ok()) return found.status();
  return *found > 0;
}

absl::Status Store::SetSpending(const std::vector<SpentHour>& hours) {
  absl::MutexLock lock(&writer_mutex_);
  Transaction transaction(writer_.get());
  if (absl::Status status = Begin(&transaction); !status.ok()) return status;
  absl::Status status = writer_->Execute("DELETE FROM spending; DELETE FROM meta WHERE key = 'uncounted spending'");
  if (status.ok()) status = WriteAll(writer_.get(), hours, WriteSpending);
  return status.ok() ? CommitTransaction(&transaction) : status;
}

bool Store::Copied() {
  absl::MutexLock lock(&writer_mutex_);
  return !lock_->same_file();
}

template <typename Message>
absl::StatusOr<Message> Store::ReadMeta(const std::string& key) {
  absl::MutexLock lock(&reader_mutex_);
  Message message;
  Statement select = reader_->Use("SELECT value FROM meta WHERE key = ?");
  const absl::StatusOr<bool> row = select.BindText(key).Step();
  if (!row.ok()) return row.status();
  const std::string_view bytes = *row ? select.Bytes(0) : std::string_view();
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return Message();
  return message;
}

absl::StatusOr<v1::ServiceNotes> Store::Notes() { return ReadMeta<v1::ServiceNotes>("notes"); }

absl::StatusOr<v1::MaintenanceNote> Store::Maintenance() { return ReadMeta<v1::MaintenanceNote>("maintenance"); }

absl::Status Store::WriteNotes(const v1::ServiceNotes& notes) { return WriteMeta("notes", notes.SerializeAsString()); }

absl::StatusOr<int64_t> Store::WorkerProtocol() {
  absl::MutexLock lock(&reader_mutex_);
  return reader_->QueryInt("SELECT CAST(CAST(value AS TEXT) AS INTEGER) FROM meta WHERE key = 'worker protocol'");
}

absl::Status Store::NoteWorkerProtocol(int64_t protocol) {
  return WriteMeta("worker protocol", absl::StrCat(protocol));
}

absl::StatusOr<std::vector<int64_t>> Store::UnwrittenReports() {
  absl::MutexLock lock(&reader_mutex_);
  Statement select = reader_->Use("SELECT value FROM meta WHERE key = 'unwritten reports'");
  const absl::StatusOr<bool> row = select.Step();
  if (!row.ok()) return row.status();
  std::vector<int64_t> campaigns;
  const std::string text(*row ? select.Bytes(0) : std::string_view());
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    int64_t campaign = 0;
    if (absl::SimpleAtoi(word, &campaign)) campaigns.push_back(campaign);
  }
  return campaigns;
}

absl::Status Store::NoteUnwrittenReports(const std::vector<int64_t>& campaigns) {
  return WriteMeta("unwritten reports", absl::StrJoin(campaigns, " "));
}

absl::Status Store::WriteMeta(const std::string& key, const std::string& value) {
  absl::MutexLock lock(&writer_mutex_);
  Transaction transaction(writer_.get());
  if (absl::Status status = Begin(&transaction); !status.ok()) return status;
  absl::Status status = WriteMetaRow(writer_.get(), key, value);
  return status.ok() ? CommitTransaction(&transaction) : status;
}

absl::Status Store::Backup(const std::filesystem::path& file) { return BackUp(options_.file, file); }

}  // namespace pawl
