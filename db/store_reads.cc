// The reading half of Store: everything here uses the reading connection.
#include <algorithm>
#include <limits>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/names/resource_name.h"
#include "db/iteration_sql.h"
#include "db/pattern_rows.h"
#include "db/store.h"

namespace pawl {
namespace {

template <typename Message>
absl::Status Parse(std::string_view bytes, Message* message) {
  if (message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the database contains a value that is not a ", message->GetTypeName(),
                                          ": put the latest backup in its place"));
}

// The messages in the first column of all rows.
template <typename Message>
absl::StatusOr<std::vector<Message>> ReadAll(Statement& statement) {
  std::vector<Message> messages;
  while (true) {
    const absl::StatusOr<bool> row = statement.Step();
    if (!row.ok()) return row.status();
    if (!*row) return messages;
    if (absl::Status status = Parse(statement.Bytes(0), &messages.emplace_back()); !status.ok()) return status;
  }
}

template <typename Message>
absl::StatusOr<std::optional<Message>> ReadOne(Statement& statement) {
  absl::StatusOr<std::vector<Message>> all = ReadAll<Message>(statement);
  if (!all.ok()) return all.status();
  std::optional<Message> first;
  if (!all->empty()) first = std::move(all->front());
  return first;
}

// Version 0.1.0 wrote "cancelled: why" where there is only the reason now; it did not write served_us yet.
void TakeWordFromReason(v1::Event& event) {
  if (event.ended().state() != v1::CANCELLED || event.served_us() > 0) return;
  absl::string_view reason = event.ended().message();
  if (!absl::ConsumePrefix(&reason, "cancelled: ") && reason != "cancelled") return;
  event.mutable_ended()->set_message(reason == "cancelled" ? "" : std::string(reason));
}

int64_t Limit(int limit) { return std::max(limit, 0); }  // SQLite takes a negative one for none

// What GetIteration adds to what was judged.
void AddEvidence(v1::TrialResult* result, v1::Iteration* iteration) {
  if (result->has_evidence()) iteration->mutable_evidence()->Swap(result->mutable_evidence());
  iteration->mutable_pairs()->Swap(result->mutable_pairs());
  iteration->mutable_confirming_pairs()->Swap(result->mutable_confirming_pairs());
  iteration->mutable_errors()->Swap(result->mutable_errors());
  iteration->set_warm_us(result->warm_us());
  iteration->set_cold_us(result->cold_us());
  if (result->has_toolchain()) iteration->mutable_toolchain()->Swap(result->mutable_toolchain());
  if (result->has_gpu()) iteration->mutable_gpu()->Swap(result->mutable_gpu());
  iteration->mutable_blobs()->Swap(result->mutable_blobs());
  iteration->set_build(result->build());
  iteration->mutable_baselines()->Swap(result->mutable_baselines());
  iteration->set_cubin_hash(result->cubin_hash());
}

}  // namespace

absl::StatusOr<int64_t> Store::LastCampaign() {
  absl::MutexLock lock(&reader_mutex_);
  return reader_->QueryInt(
      "SELECT max(coalesce((SELECT max(number) FROM campaigns), 0), coalesce((SELECT max(campaign) FROM archived), "
      "0))");
}

absl::StatusOr<std::vector<int64_t>> Store::UnfinishedCampaigns() {
  absl::MutexLock lock(&reader_mutex_);
  Statement statement = reader_->Use("SELECT number FROM campaigns WHERE ended = 0 ORDER BY number");
  std::vector<int64_t> numbers;
  while (true) {
    const absl::StatusOr<bool> row = statement.Step();
    if (!row.ok()) return row.status();
    if (!*row) return numbers;
    numbers.push_back(statement.Int(0));
  }
}

absl::StatusOr<std::optional<v1::Campaign>> Store::GetCampaign(int64_t number) {
  absl::MutexLock lock(&reader_mutex_);
  Statement statement = reader_->Use("SELECT summary FROM campaigns WHERE number = ?");
  return ReadOne<v1::Campaign>(statement.Bind(number));
}

absl::StatusOr<std::optional<v1::Campaign>> Store::FindRequest(const std::string& request_id) {
  absl::MutexLock lock(&reader_mutex_);
  Statement statement = reader_->Use(
      "SELECT summary FROM campaigns WHERE request_id = ?1"
      " UNION ALL SELECT summary FROM archived WHERE request_id = ?1 AND summary IS NOT NULL LIMIT 1");
  return ReadOne<v1::Campaign>(statement.BindText(request_id));
}

absl::StatusOr<std::vector<v1::Campaign>> Store::ListArchived(int limit) {
  absl::MutexLock lock(&reader_mutex_);
  Statement statement =
      reader_->Use("SELECT summary FROM archived WHERE summary IS NOT NULL ORDER BY campaign DESC LIMIT ?");
  return ReadAll<v1::Campaign>(statement.Bind(Limit(limit)));
}

absl::StatusOr<std::string> Store::ArchiveOf(int64_t number) {
  absl::MutexLock lock(&reader_mutex_);
  Statement statement = reader_->Use("SELECT file FROM archived WHERE campaign = ?");
  const absl::StatusOr<bool> row = statement.Bind(number).Step();
  if (!row.ok()) return row.status();
  return *row ? std::string(statement.Bytes(0)) : "";
}

absl::StatusOr<std::vector<SpentHour>> Store::Spending(int64_t since_hour) {
  absl::MutexLock lock(&reader_mutex_);
  Statement statement = reader_->Use("SELECT author, hour, gpu_seconds, dollars FROM spending WHERE hour >= ?");
  statement.Bind(since_hour);
  std::vector<SpentHour> hours;
  while (true) {
    const absl::StatusOr<bool> row = statement.Step();
    if (!row.ok()) return row.status();
    if (!*row) return hours;
    hours.push_back({std::string(statement.Bytes(0)), statement.Int(1), statement.Real(2), statement.Real(3)});
  }
}

absl::StatusOr<std::vector<v1::Campaign>> Store::ListCampaigns(int64_t before, int limit) {
  absl::MutexLock lock(&reader_mutex_);
  Statement statement = reader_->Use("SELECT summary FROM campaigns WHERE number < ? ORDER BY number DESC LIMIT ?");
  statement.Bind(before > 0 ? before : std::numeric_limits<int64_t>::max()).Bind(Limit(limit));
  return ReadAll<v1::Campaign>(statement);
}

absl::StatusOr<std::vector<v1::Event>> Store::Events(int64_t campaign, int64_t after, int limit) {
  absl::MutexLock lock(&reader_mutex_);
  Statement statement =
      reader_->Use("SELECT payload FROM events WHERE campaign = ? AND sequence > ? ORDER BY sequence LIMIT ?");
  absl::StatusOr<std::vector<v1::Event>> events =
      ReadAll<v1::Event>(statement.Bind(campaign).Bind(after).Bind(Limit(limit)));
  if (events.ok()) std::for_each(events->begin(), events->end(), TakeWordFromReason);
  return events;
}

absl::StatusOr<std::vector<v1::Iteration>> Store::ListIterations(const IterationQuery& query) {
  const bool rising =
      query.order != v1::ITERATION_ORDER_SPEEDUP && query.order != v1::ITERATION_ORDER_NUMBER_DESCENDING;
  const int64_t number = query.after ? query.after->number : rising ? -1 : std::numeric_limits<int64_t>::max();
  const double speedup = query.after ? query.after->speedup : std::numeric_limits<double>::infinity();
  const std::string sql = IterationSql(query);
  absl::MutexLock lock(&reader_mutex_);
  Statement statement = reader_->Use(sql);
  statement.Bind(query.campaign)
      .Bind(int64_t{query.verdict})
      .BindText(query.variable)
      .BindText(query.finding)
      .Bind(number)
      .Bind(SpeedupKey(speedup))
      .Bind(Limit(query.limit));
  return ReadAll<v1::Iteration>(statement);
}

absl::StatusOr<std::optional<v1::Iteration>> Store::GetIteration(int64_t campaign, int number) {
  absl::MutexLock lock(&reader_mutex_);
  Statement statement = reader_->Use(
      "SELECT payload, summary FROM iterations JOIN events USING (sequence) WHERE iterations.campaign = ? AND number = "
      "?");
  const absl::StatusOr<bool> found = statement.Bind(campaign).Bind(int64_t{number}).Step();
  if (!found.ok()) return found.status();
  if (!*found) return std::optional<v1::Iteration>();
  v1::Event event;
  v1::Iteration iteration;  // the row has what became of it after it was judged, the event what is long
  const std::string_view payload = statement.Bytes(0), summary = statement.Bytes(1);
  if (!event.ParseFromArray(payload.data(), static_cast<int>(payload.size())) ||
      !iteration.ParseFromArray(summary.data(), static_cast<int>(summary.size()))) {
    return absl::DataLossError(
        absl::StrCat(IterationName(campaign, number), " can't be read any more; restore from a backup"));
  }
  v1::TrialFinished* finished = event.mutable_finished();
  iteration.mutable_passed_over()->Swap(finished->mutable_iteration()->mutable_passed_over());
  iteration.mutable_findings()->Swap(finished->mutable_iteration()->mutable_findings());
  AddEvidence(finished->mutable_result(), &iteration);
  return std::optional<v1::Iteration>(std::move(iteration));
}

absl::StatusOr<v1::Evidence> Store::GetEvidence(int64_t campaign, int number) {
  absl::MutexLock lock(&reader_mutex_);
  Statement statement = reader_->Use(
      "SELECT payload FROM iterations JOIN events USING (sequence) WHERE iterations.campaign = ? AND number = ?");
  absl::StatusOr<std::optional<v1::Event>> event = ReadOne<v1::Event>(statement.Bind(campaign).Bind(int64_t{number}));
  if (!event.ok()) return event.status();
  return *event ? std::move(*(*event)->mutable_finished()->mutable_result()->mutable_evidence()) : v1::Evidence();
}

absl::StatusOr<std::optional<StoredBlob>> Store::GetBlob(const std::string& hash) {
  absl::MutexLock lock(&reader_mutex_);
  Statement statement = reader_->Use("SELECT kind, bytes, content FROM blobs WHERE hash = ?");
  const absl::StatusOr<bool> row = statement.BindText(hash).Step();
  if (!row.ok()) return row.status();
  std::optional<StoredBlob> stored;
  if (*row) {
    stored.emplace();
    stored->blob.set_kind(static_cast<v1::Blob::Kind>(statement.Int(0)));
    stored->blob.set_hash(hash);
    stored->blob.set_bytes(statement.Int(1));
    stored->content = statement.Bytes(2);
  }
  return stored;
}

absl::StatusOr<bool> Store::HasBlob(const std::string& hash) {
  absl::MutexLock lock(&reader_mutex_);
  Statement statement = reader_->Use("SELECT 1 FROM blobs WHERE hash = ?");
  return statement.BindText(hash).Step();
}

absl::StatusOr<StoreSizes> Store::Sizes() {
  constexpr int64_t kAtOnce = 10000;  // rows; then others may read
  StoreSizes sizes;
  for (int64_t rows = kAtOnce; rows == kAtOnce;) {
    absl::MutexLock lock(&reader_mutex_);
    // Rows of blobs are only added while a store is open, so that each is counted once.
    Statement added = reader_->Use(
        "SELECT count(*), coalesce(sum(bytes), 0), coalesce(max(row), 0) FROM"
        " (SELECT rowid AS row, bytes FROM blobs WHERE rowid > ? ORDER BY rowid LIMIT ?)");
    const absl::StatusOr<bool> row = added.Bind(counted_row_).Bind(kAtOnce).Step();
    if (!row.ok()) return row.status();
    rows = added.Int(0);
    counted_.blob_count += rows;
    counted_.blobs += added.Int(1);
    if (rows > 0) counted_row_ = added.Int(2);
    sizes = counted_;
  }
  const auto bytes_of = [](const std::filesystem::path& file) {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(file, error);
    return error ? 0 : static_cast<int64_t>(bytes);
  };
  sizes.database = bytes_of(options_.file);
  sizes.wal = bytes_of(options_.file.native() + "-wal");
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(options_.file, error);
  if (!error) {
    sizes.free = static_cast<int64_t>(space.available);
    sizes.disk = static_cast<int64_t>(space.capacity);
  }
  return sizes;
}

absl::StatusOr<std::vector<StoredWorker>> Store::Workers() {
  absl::MutexLock lock(&reader_mutex_);
  Statement statement = reader_->Use("SELECT summary, instance FROM workers ORDER BY name");
  std::vector<StoredWorker> workers;
  while (true) {
    const absl::StatusOr<bool> row = statement.Step();
    if (!row.ok()) return row.status();
    if (!*row) return workers;
    StoredWorker& worker = workers.emplace_back();
    if (absl::Status status = Parse(statement.Bytes(0), &worker.worker); !status.ok()) return status;
    worker.instance = statement.Bytes(1);
  }
}

absl::StatusOr<std::vector<v1::Pattern>> Store::Lessons() {
  absl::MutexLock lock(&reader_mutex_);
  return ReadLessons(reader_.get());
}

absl::StatusOr<std::vector<v1::PatternFile>> Store::PatternFiles() {
  absl::MutexLock lock(&reader_mutex_);
  Statement statement = reader_->Use("SELECT content FROM pattern_files ORDER BY source");
  return ReadAll<v1::PatternFile>(statement);
}

absl::StatusOr<std::vector<std::string>> Store::PatternExports() {
  absl::MutexLock lock(&reader_mutex_);
  return ReadPatternExports(reader_.get());
}

}  // namespace pawl
