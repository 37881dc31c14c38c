#include "db/archive.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash/hash.h"
#include "base/names/resource_name.h"
#include "db/backup.h"
#include "db/schema.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/event.pb.h"

namespace pawl {
namespace {

constexpr int64_t kArchiveId = 0x50617741;  // "PawA"
constexpr int64_t kArchiveFormat = 1;
constexpr int kArchiveBusyMilliseconds = 5000;

constexpr char kTables[] =
    "CREATE TABLE archive.campaigns (number INTEGER PRIMARY KEY, state INTEGER NOT NULL, ended INTEGER NOT NULL,"
    " request_id TEXT, summary BLOB NOT NULL) STRICT;"
    "CREATE TABLE archive.events (sequence INTEGER PRIMARY KEY, campaign INTEGER NOT NULL, time_us INTEGER NOT NULL,"
    " kind INTEGER NOT NULL, payload BLOB NOT NULL) STRICT;"
    "CREATE TABLE archive.iterations (sequence INTEGER PRIMARY KEY, campaign INTEGER NOT NULL, number INTEGER NOT NULL,"
    " parent INTEGER, verdict INTEGER NOT NULL, comparison INTEGER NOT NULL, variable TEXT NOT NULL, finding TEXT NOT"
    " NULL, speedup REAL NOT NULL, time_us REAL NOT NULL, summary BLOB NOT NULL) STRICT;"
    "CREATE TABLE archive.blobs (hash TEXT PRIMARY KEY, kind INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " content BLOB NOT NULL) STRICT;"
    "CREATE TABLE archive.reports (campaign INTEGER PRIMARY KEY, page TEXT NOT NULL) STRICT;"
    "CREATE TABLE archive.meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;";

// What is copied and what the hash is of, in this order.
struct ArchivedTable {
  const char *name, *columns, *order;
};
constexpr ArchivedTable kArchivedTables[] = {
    {"campaigns", "number, state, ended, request_id, summary", "number"},
    {"events", "sequence, campaign, time_us, kind, payload", "sequence"},
    {"iterations",
     "sequence, campaign, number, parent, verdict, comparison, variable, finding, speedup, time_us, summary",
     "sequence"},
    {"blobs", "hash, kind, bytes, content", "hash"},
};

std::string List(const std::vector<int64_t>& campaigns) {
  return absl::StrCat("(", absl::StrJoin(campaigns, ", "), ")");
}

bool IsHexadecimal(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

// Every hash that stands in a serialized message. Something else that looks like one only keeps a blob that nobody
// needs.
void AddHashes(std::string_view bytes, std::set<std::string, std::less<>>* hashes) {
  constexpr size_t kLength = 64;
  for (size_t begin = 0; begin < bytes.size();) {
    size_t end = begin;
    while (end < bytes.size() && IsHexadecimal(bytes[end])) ++end;
    // It begins where the digits do: the byte before a string is its length, 64, which is '@'. A tag that looks like a
    // digit may follow.
    if (end - begin >= kLength) hashes->emplace(bytes.substr(begin, kLength));
    begin = end + 1;
  }
}

// A planned trial has a source in place of its hash.
void AddHashesOfEvent(int64_t kind, std::string_view payload, std::set<std::string, std::less<>>* hashes) {
  AddHashes(payload, hashes);
  if (kind != v1::Event::kPlanned) return;
  v1::Event event;
  if (!event.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) return;
  if (const std::string& source = event.planned().patched_source(); !source.empty()) hashes->insert(Sha256(source));
}

absl::StatusOr<std::set<std::string, std::less<>>> HashesOfEvents(SqliteConnection* database,
                                                                  const std::string& where) {
  std::set<std::string, std::less<>> hashes;
  Statement events = database->Use(absl::StrCat("SELECT kind, payload FROM main.events WHERE ", where));
  while (true) {
    const absl::StatusOr<bool> row = events.Step();
    if (!row.ok()) return row.status();
    if (!*row) return hashes;
    AddHashesOfEvent(events.Int(0), events.Bytes(1), &hashes);
  }
}

// Of all rows, each value with its type and length.
absl::StatusOr<std::string> ContentHash(SqliteConnection* connection, const std::string& schema) {
  std::string hash;
  for (const ArchivedTable& table : kArchivedTables) {
    Statement rows = connection->Use(
        absl::StrCat("SELECT ", table.columns, " FROM ", schema, ".", table.name, " ORDER BY ", table.order));
    const size_t columns = std::count(table.columns, table.columns + strlen(table.columns), ',') + 1;
    while (true) {
      const absl::StatusOr<bool> row = rows.Step();
      if (!row.ok()) return row.status();
      if (!*row) break;
      std::string text = absl::StrCat(hash, table.name);
      for (size_t column = 0; column < columns; ++column) {
        const std::string_view value = rows.Bytes(static_cast<int>(column));
        absl::StrAppend(&text, "\n", value.size(), " ", absl::string_view(value.data(), value.size()));
      }
      hash = Sha256(text);
    }
  }
  return hash;
}

absl::StatusOr<ArchiveSummary> Counted(SqliteConnection* connection, const std::string& schema) {
  ArchiveSummary summary;
  {
    Statement numbers = connection->Use(absl::StrCat("SELECT number FROM ", schema, ".campaigns ORDER BY number"));
    while (true) {
      const absl::StatusOr<bool> row = numbers.Step();
      if (!row.ok()) return row.status();
      if (!*row) break;
      summary.campaigns.push_back(numbers.Int(0));
    }
  }
  const auto count = [&](const char* table, int64_t* into) {
    const absl::StatusOr<int64_t> rows =
        connection->QueryInt(absl::StrCat("SELECT count(*) FROM ", schema, ".", table));
    if (rows.ok()) *into = *rows;
    return rows.status();
  };
  if (absl::Status status = count("events", &summary.events); !status.ok()) return status;
  if (absl::Status status = count("iterations", &summary.iterations); !status.ok()) return status;
  if (absl::Status status = count("blobs", &summary.blobs); !status.ok()) return status;
  absl::StatusOr<std::string> content = ContentHash(connection, schema);
  if (!content.ok()) return content.status();
  summary.content = *std::move(content);
  return summary;
}

absl::Status CheckEnded(SqliteConnection* database, const std::vector<int64_t>& campaigns) {
  for (const int64_t number : campaigns) {
    Statement select = database->Use("SELECT ended FROM campaigns WHERE number = ?");
    const absl::StatusOr<bool> row = select.Bind(number).Step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::NotFoundError(absl::StrCat(CampaignName(number), " is not in the database"));
    if (select.Int(0) == 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          CampaignName(number), " has not ended, or is being verified: wait for it, or pawl cancel ", number));
    }
  }
  return absl::OkStatus();
}

// What is asked of a campaign that is not there any more: little, since there may be many.
absl::StatusOr<std::string> ShortSummary(SqliteConnection* database, int64_t number) {
  Statement select = database->Use("SELECT summary FROM main.campaigns WHERE number = ?");
  const absl::StatusOr<bool> row = select.Bind(number).Step();
  if (!row.ok()) return row.status();
  v1::Campaign campaign;
  const std::string_view bytes = *row ? select.Bytes(0) : std::string_view();
  if (!campaign.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError(absl::StrCat("the row of ", CampaignName(number), " can't be read"));
  }
  campaign.clear_total_gain();
  campaign.clear_roof();
  return campaign.SerializeAsString();
}

absl::Status CopyBlobs(SqliteConnection* database, const std::vector<int64_t>& campaigns) {
  auto hashes = HashesOfEvents(database, absl::StrCat("campaign IN ", List(campaigns)));
  if (!hashes.ok()) return hashes.status();
  for (const std::string& hash : *hashes) {
    absl::Status status =
        database->Use("INSERT INTO archive.blobs SELECT hash, kind, bytes, content FROM main.blobs WHERE hash = ?")
            .BindText(hash)
            .Run();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<ArchiveSummary> Fill(SqliteConnection* database, const std::vector<int64_t>& campaigns,
                                    const PageOf& page_of) {
  Transaction transaction(database);
  if (absl::Status status = transaction.Begin(); !status.ok()) return status;
  absl::Status status = database->Execute(absl::StrCat(kTables, "PRAGMA archive.application_id = ", kArchiveId,
                                                       ";PRAGMA archive.user_version = ", kArchiveFormat));
  if (!status.ok()) return status;
  for (const ArchivedTable& table : kArchivedTables) {
    if (absl::string_view(table.name) == "blobs") continue;
    const bool own = absl::string_view(table.name) == "campaigns";
    status =
        database->Execute(absl::StrCat("INSERT INTO archive.", table.name, " SELECT ", table.columns, " FROM main.",
                                       table.name, " WHERE ", own ? "number" : "campaign", " IN ", List(campaigns)));
    if (!status.ok()) return status;
  }
  if (status = CopyBlobs(database, campaigns); !status.ok()) return status;
  for (const int64_t number : campaigns) {
    const absl::StatusOr<std::string> page = page_of(number);
    if (!page.ok()) return page.status();
    status = database->Use("INSERT INTO archive.reports VALUES (?, ?)").Bind(number).BindText(*page).Run();
    if (!status.ok()) return status;
  }
  absl::StatusOr<ArchiveSummary> summary = Counted(database, "archive");
  if (!summary.ok()) return summary.status();
  status = database->Use("INSERT INTO archive.meta VALUES ('content', ?)").BindText(summary->content).Run();
  if (!status.ok()) return status;
  if (status = transaction.Commit(); !status.ok()) return status;
  return summary;
}

// Blobs are found by the hash of their content: a wrong one would be taken for another's.
absl::Status CheckBlobs(SqliteConnection* archive) {
  Statement blobs = archive->Use("SELECT hash, bytes, content FROM blobs");
  while (true) {
    const absl::StatusOr<bool> row = blobs.Step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::OkStatus();
    const std::string_view content = blobs.Bytes(2);
    if (Sha256(content) != blobs.Bytes(0) || blobs.Int(1) != static_cast<int64_t>(content.size())) {
      return absl::DataLossError(absl::StrCat("the blob ", std::string(blobs.Bytes(0)).substr(0, 64),
                                              " has another content than its hash says"));
    }
  }
}

// Runs what the triggers of the event log forbid. In a transaction: nobody ever sees the table without them.
absl::Status WithoutTriggers(SqliteConnection* database, const std::function<absl::Status()>& act) {
  std::vector<std::string> names, texts;
  {
    Statement triggers =
        database->Use("SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger' AND tbl_name = 'events'");
    while (true) {
      const absl::StatusOr<bool> row = triggers.Step();
      if (!row.ok()) return row.status();
      if (!*row) break;
      names.emplace_back(triggers.Bytes(0));
      texts.emplace_back(triggers.Bytes(1));
    }
  }
  for (const std::string& name : names) {
    if (absl::Status status = database->Execute(absl::StrCat("DROP TRIGGER main.", name)); !status.ok()) return status;
  }
  if (absl::Status status = act(); !status.ok()) return status;
  for (const std::string& text : texts) {
    if (absl::Status status = database->Execute(text); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<ArchiveSummary> WritePart(SqliteConnection* database, const std::vector<int64_t>& campaigns,
                                         const std::filesystem::path& part, const PageOf& page_of) {
  if (absl::Status status = AttachArchive(database, part); !status.ok()) return status;
  database->NoteWritten(std::filesystem::path(part).replace_extension().native());  // as the user named it
  absl::StatusOr<ArchiveSummary> summary = Fill(database, campaigns, page_of);
  database->NoteWritten("");
  const absl::Status detached = DetachArchive(database);
  if (summary.ok() && !detached.ok()) return detached;
  return summary;
}

absl::Status NoArchive(const std::filesystem::path& file) {
  return absl::FailedPreconditionError(absl::StrCat(
      file.native(), " is no archive of Pawl: pawl archive writes one; a backup is restored by copying it"));
}

// By its first bytes, which a truncated file has, too.
bool SaysItIsAnArchive(const std::filesystem::path& file) {
  constexpr size_t kIdAt = 68;  // SQLite's header: application_id, big-endian
  char head[kIdAt + 4] = {};
  std::ifstream(file, std::ios::binary).read(head, sizeof head);
  int64_t id = 0;
  for (size_t i = kIdAt; i < sizeof head; ++i) id = id << 8 | static_cast<unsigned char>(head[i]);
  return std::string_view(head, 15) == "SQLite format 3" && id == kArchiveId;
}

// Without what to do about a database that is like that.
std::string CauseOf(const absl::Status& status) {
  const std::string text(status.message());
  return text.substr(0, std::min<size_t>(text.find(": "), 200));
}

absl::Status DamagedArchive(const std::filesystem::path& file, const std::string& what) {
  return absl::DataLossError(absl::StrCat(file.native(), " is damaged or truncated (", what,
                                          "): use another copy of it; nothing was changed"));
}

}  // namespace

absl::Status AttachArchive(SqliteConnection* database, const std::filesystem::path& file) {
  if (absl::Status status = database->Use("ATTACH ? AS archive").BindText(file.native()).Run(); !status.ok())
    return status;
  // SQLite's default, unless it was built with another: an archive is on the disk before its campaigns leave the
  // database.
  return database->Execute("PRAGMA archive.synchronous = FULL");
}

absl::Status DetachArchive(SqliteConnection* database) { return database->Execute("DETACH archive"); }

absl::StatusOr<ArchiveSummary> WriteArchive(SqliteConnection* database, const std::vector<int64_t>& campaigns,
                                            const std::filesystem::path& file, const PageOf& page_of) {
  if (absl::Status status = CheckEnded(database, campaigns); !status.ok()) return status;
  absl::StatusOr<std::filesystem::path> part = BeginFile(file);
  if (!part.ok()) return part.status();
  absl::StatusOr<ArchiveSummary> summary = WritePart(database, campaigns, *part, page_of);
  absl::Status status = summary.status();
  if (status.ok()) status = PublishFile(*part, file);
  if (status.ok()) return summary;
  std::error_code error;
  std::filesystem::remove(*part, error);
  return status;
}

absl::StatusOr<ArchiveSummary> CheckArchive(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    return absl::NotFoundError(absl::StrCat("there is no file ", file.native()));
  }
  if (!SaysItIsAnArchive(file)) return NoArchive(file);
  auto archive = SqliteConnection::Open(file, SqliteConnection::Mode::kRead, kArchiveBusyMilliseconds);
  if (!archive.ok()) return DamagedArchive(file, CauseOf(archive.status()));
  const absl::StatusOr<int64_t> format = (*archive)->QueryInt("PRAGMA user_version");
  if (!format.ok()) return DamagedArchive(file, CauseOf(format.status()));
  if (*format > kArchiveFormat) {
    return absl::FailedPreconditionError(absl::StrCat(file.native(), " is an archive of format ", *format,
                                                      ", this Pawl knows up to ", kArchiveFormat,
                                                      ": restore it with the newer Pawl that wrote it"));
  }
  if (absl::Status status = CheckIsUndamaged(archive->get()); !status.ok()) {
    return DamagedArchive(file, CauseOf(status));
  }
  // It may come from anywhere: nothing in it may overflow, name what is not in it, or run.
  const absl::StatusOr<int64_t> odd = (*archive)->QueryInt(
      "SELECT (SELECT count(*) FROM sqlite_schema WHERE type NOT IN ('table', 'index')) +"
      " (SELECT count(*) FROM campaigns WHERE number NOT BETWEEN 1 AND (1 << 40) OR ended <> 1) +"
      " (SELECT count(*) FROM events WHERE sequence NOT BETWEEN 1 AND (1 << 52) OR campaign NOT IN (SELECT number FROM"
      " campaigns)) + (SELECT count(*) FROM iterations WHERE campaign NOT IN (SELECT number FROM campaigns))");
  if (!odd.ok()) return DamagedArchive(file, CauseOf(odd.status()));
  if (*format < 1 || *odd > 0) return DamagedArchive(file, "it has rows or tables that no archive has");
  if (absl::Status status = CheckBlobs(archive->get()); !status.ok()) {
    return DamagedArchive(file, CauseOf(status));
  }
  absl::StatusOr<ArchiveSummary> summary = Counted(archive->get(), "main");
  if (!summary.ok()) return DamagedArchive(file, CauseOf(summary.status()));
  Statement noted = (*archive)->Use("SELECT value FROM meta WHERE key = 'content'");
  const absl::StatusOr<bool> row = noted.Step();
  if (!row.ok() || !*row || noted.Bytes(0) != summary->content || summary->campaigns.empty()) {
    return DamagedArchive(file, "its content is not what its hash says");
  }
  return summary;
}

absl::StatusOr<std::string> ArchiveContentHash(SqliteConnection* archive) { return ContentHash(archive, "main"); }

absl::StatusOr<ArchivedCampaign> ReadArchived(const std::filesystem::path& file, int64_t campaign) {
  auto archive = SqliteConnection::Open(file, SqliteConnection::Mode::kRead, kArchiveBusyMilliseconds);
  if (!archive.ok()) return archive.status();
  const auto read = [&](const char* sql, const auto& take) -> absl::Status {
    Statement rows = (*archive)->Use(sql);
    rows.Bind(campaign);
    while (true) {
      const absl::StatusOr<bool> row = rows.Step();
      if (!row.ok()) return row.status();
      if (!*row) return absl::OkStatus();
      const std::string_view bytes = rows.Bytes(0);
      if (!take()->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
        return DamagedArchive(file, absl::StrCat("a row of ", CampaignName(campaign), " can't be read"));
      }
    }
  };
  ArchivedCampaign read_campaign;
  absl::Status status = read("SELECT summary FROM campaigns WHERE number = ?", [&] { return &read_campaign.summary; });
  if (status.ok()) {
    status = read("SELECT summary FROM iterations WHERE campaign = ? ORDER BY number",
                  [&] { return &read_campaign.iterations.emplace_back(); });
  }
  if (status.ok()) {
    status = read("SELECT payload FROM events WHERE campaign = ? ORDER BY sequence",
                  [&] { return &read_campaign.events.emplace_back(); });
  }
  if (!status.ok()) return status;
  if (read_campaign.events.empty()) return read_campaign;
  Statement bundle = (*archive)->Use("SELECT content FROM blobs WHERE hash = ?");
  const absl::StatusOr<bool> row = bundle.BindText(read_campaign.events.front().submitted().bundle_hash()).Step();
  if (!row.ok()) return row.status();
  if (*row) read_campaign.bundle = std::string(bundle.Bytes(0));
  return read_campaign;
}

absl::Status RemoveArchived(SqliteConnection* database, const ArchiveSummary& archive,
                            const std::filesystem::path& file, int64_t time_us) {
  if (absl::Status status = CheckEnded(database, archive.campaigns); !status.ok()) return status;
  const std::string list = List(archive.campaigns);
  auto own = HashesOfEvents(database, absl::StrCat("campaign IN ", list));
  if (!own.ok()) return own.status();
  auto others = HashesOfEvents(database, absl::StrCat("campaign NOT IN ", list));
  if (!others.ok()) return others.status();
  for (const int64_t number : archive.campaigns) {
    const absl::StatusOr<std::string> summary = ShortSummary(database, number);
    if (!summary.ok()) return summary.status();
    absl::Status status = database
                              ->Use(
                                  "INSERT OR REPLACE INTO archived SELECT ?1, (SELECT coalesce(max(sequence), 0) FROM"
                                  " main.events WHERE campaign = ?1), ?2, ?3, ?4, request_id, ?5 FROM main.campaigns"
                                  " WHERE number = ?1")
                              .Bind(number)
                              .BindText(archive.content)
                              .BindText(file.native())
                              .Bind(time_us)
                              .BindBytes(*summary)
                              .Run();
    if (!status.ok()) return status;
  }
  absl::Status status = WithoutTriggers(database, [&] {
    return database->Execute(absl::StrCat("DELETE FROM main.iterations WHERE campaign IN ", list,
                                          "; DELETE FROM main.events WHERE campaign IN ", list,
                                          "; DELETE FROM main.campaigns WHERE number IN ", list));
  });
  if (!status.ok()) return status;
  // A worker may have uploaded a blob for an unfinished campaign that no event of that campaign names yet.
  const absl::StatusOr<int64_t> unfinished = database->QueryInt(
      absl::StrCat("SELECT count(*) FROM main.events WHERE kind = ", static_cast<int>(v1::Event::kLeased),
                   " AND campaign IN (SELECT number FROM main.campaigns WHERE ended = 0)"));
  if (!unfinished.ok()) return unfinished.status();
  for (const std::string& hash : *own) {
    if (*unfinished > 0 || others->contains(hash)) continue;
    status = database->Use("DELETE FROM main.blobs WHERE hash = ?").BindText(hash).Run();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status AddArchived(SqliteConnection* database, const ArchiveSummary& archive) {
  const absl::StatusOr<int64_t> there = database->QueryInt(
      "SELECT coalesce((SELECT number FROM main.campaigns WHERE number IN (SELECT number FROM archive.campaigns) LIMIT "
      "1), 0)");
  if (!there.ok()) return there.status();
  if (*there > 0) {
    return absl::AlreadyExistsError(
        absl::StrCat(CampaignName(*there), " is in the database already; nothing was changed"));
  }
  const absl::StatusOr<int64_t> taken = database->QueryInt(
      "SELECT (SELECT count(*) FROM main.events WHERE sequence IN (SELECT sequence FROM archive.events)) +"
      " (SELECT count(*) FROM main.campaigns WHERE request_id IN (SELECT request_id FROM archive.campaigns))");
  if (!taken.ok()) return taken.status();
  if (*taken > 0) {
    return absl::FailedPreconditionError(
        "the archive is of another database, whose events have numbers that are taken here: restore it there, or into "
        "a "
        "new database");
  }
  Statement newer =
      database->Use(absl::StrCat("SELECT campaign, file FROM main.archived WHERE content <> ? AND campaign IN ",
                                 List(archive.campaigns), " LIMIT 1"));
  newer.BindText(archive.content);
  const absl::StatusOr<bool> other = newer.Step();
  if (!other.ok()) return other.status();
  if (*other) {
    return absl::FailedPreconditionError(absl::StrCat(CampaignName(newer.Int(0)), " was archived last to ",
                                                      std::string(newer.Bytes(1)),
                                                      ", with what happened since: restore that file"));
  }
  // What is not recorded as archived here must not take numbers of events that are.
  const absl::StatusOr<int64_t> low = database->QueryInt(
      "SELECT EXISTS (SELECT 1 FROM archive.campaigns WHERE number NOT IN (SELECT campaign FROM main.archived)) AND"
      " (SELECT coalesce(min(sequence), 0) FROM archive.events) <= (SELECT coalesce(max(last_sequence), 0) FROM"
      " main.archived)");
  if (!low.ok()) return low.status();
  if (*low != 0) {
    return absl::FailedPreconditionError(
        "the archive is of another database, and events of this one that are archived may have its numbers: restore it "
        "into a new database");
  }
  absl::Status status = WithoutTriggers(database, [&]() -> absl::Status {
    for (const ArchivedTable& table : kArchivedTables) {
      const bool blobs = absl::string_view(table.name) == "blobs";
      absl::Status copied = database->Execute(absl::StrCat("INSERT ", blobs ? "OR IGNORE " : "", "INTO main.",
                                                           table.name, " (", table.columns, ") SELECT ", table.columns,
                                                           " FROM archive.", table.name, " ORDER BY ", table.order));
      if (!copied.ok()) return copied;
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return database->Execute(absl::StrCat("DELETE FROM archived WHERE campaign IN ", List(archive.campaigns)));
}

}  // namespace pawl
