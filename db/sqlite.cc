#include "db/sqlite.h"

#include <sqlite3.h>
#include <string.h>

#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace pawl {

Statement::Statement(SqliteConnection* connection, sqlite3_stmt* statement, int code)
    : connection_(connection), statement_(statement), code_(code) {}

Statement::~Statement() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Statement& Statement::Bind(int64_t value) {
  if (code_ == SQLITE_OK) code_ = sqlite3_bind_int64(statement_, ++bound_, value);
  return *this;
}

Statement& Statement::Bind(double value) {
  if (code_ == SQLITE_OK) code_ = sqlite3_bind_double(statement_, ++bound_, value);
  return *this;
}

Statement& Statement::BindText(std::string_view value) {
  // A null pointer would bind NULL.
  const char* data = value.data() == nullptr ? "" : value.data();
  if (code_ == SQLITE_OK) {
    code_ = sqlite3_bind_text64(statement_, ++bound_, data, value.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  return *this;
}

Statement& Statement::BindBytes(std::string_view value) {
  const char* data = value.data() == nullptr ? "" : value.data();
  if (code_ == SQLITE_OK) code_ = sqlite3_bind_blob64(statement_, ++bound_, data, value.size(), SQLITE_STATIC);
  return *this;
}

Statement& Statement::BindNull() {
  if (code_ == SQLITE_OK) code_ = sqlite3_bind_null(statement_, ++bound_);
  return *this;
}

absl::StatusOr<bool> Statement::Step() {
  if (code_ == SQLITE_OK) {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    code_ = code;
  }
  return connection_->Error(code_);
}

absl::Status Statement::Run() {
  while (true) {
    absl::StatusOr<bool> row = Step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::OkStatus();
  }
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_, column); }

double Statement::Real(int column) const { return sqlite3_column_double(statement_, column); }

std::string_view Statement::Bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  return {static_cast<const char*>(data), static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

absl::StatusOr<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(const std::filesystem::path& file, Mode mode,
                                                                         int busy_milliseconds) {
  sqlite3* db = nullptr;
  const int how = mode == Mode::kWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE;
  // Absolute, so that no name means something else to SQLite, as :memory: does.
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(file, error);
  const int code =
      sqlite3_open_v2(absolute.c_str(), &db, how | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, /*zVfs=*/nullptr);
  if (db == nullptr) return SqliteError(SQLITE_NOMEM, "out of memory", 0, file.native());
  std::unique_ptr<SqliteConnection> connection(new SqliteConnection(db, file.native()));
  if (code != SQLITE_OK) return connection->Error(code);
  sqlite3_busy_timeout(db, busy_milliseconds);
  if (mode == Mode::kRead) {
    if (absl::Status status = connection->Execute("PRAGMA query_only = ON"); !status.ok()) return status;
  }
  return connection;
}

SqliteConnection::~SqliteConnection() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(db_);
}

absl::Status SqliteConnection::Execute(const std::string& sql) {
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

absl::StatusOr<int64_t> SqliteConnection::QueryInt(std::string_view sql) {
  Statement statement = Use(sql);
  absl::StatusOr<bool> row = statement.Step();
  if (!row.ok()) return row.status();
  return *row ? statement.Int(0) : 0;
}

Statement SqliteConnection::Use(std::string_view sql) {
  auto found = statements_.find(sql);
  if (found == statements_.end()) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                        &statement, nullptr);
    if (code != SQLITE_OK) return Statement(this, nullptr, code);
    found = statements_.emplace(sql, statement).first;
  }
  return Statement(this, found->second, SQLITE_OK);
}

void SqliteConnection::KeepWalOnClose() { sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr); }

absl::Status SqliteConnection::Error(int code) const {
  // SQLite's words and errno are of its latest failure, which need not be this one.
  const bool latest = sqlite3_extended_errcode(db_) == code;
  const bool writes = (code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_FSYNC;
  return SqliteError(code, latest ? sqlite3_errmsg(db_) : sqlite3_errstr(code), latest ? sqlite3_system_errno(db_) : 0,
                     writes && !written_.empty() ? written_ : file_);
}

int SqliteConnection::last_code() const { return sqlite3_errcode(db_) & 0xff; }

bool SqliteConnection::read_only() const { return sqlite3_db_readonly(db_, "main") != 0; }

Transaction::~Transaction() {
  // Some failures roll back by themselves.
  if (sqlite3_get_autocommit(connection_->handle()) == 0) (void)connection_->Use("ROLLBACK").Run();
}

absl::Status Transaction::Begin() { return connection_->Use("BEGIN IMMEDIATE").Run(); }

absl::Status Transaction::Commit() { return connection_->Use("COMMIT").Run(); }

absl::Status SqliteError(int code, std::string_view detail, int system_error, std::string_view file) {
  const absl::string_view name(file.data(), file.size());
  std::string what = absl::StrCat(" (SQLite ", code, ": ", absl::string_view(detail.data(), detail.size()));
  if (system_error != 0) absl::StrAppend(&what, "; ", strerror(system_error));
  what += ")";
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(absl::StrCat(
          "database ", name, " is locked by another process, a sqlite3 shell or a program that copies it: ",
          "end its transaction (`fuser -v ", name, "` shows who has it open) and try again", what));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::UnavailableError(
          absl::StrCat("database ", name, " is read-only: give this user write permission to the file and its folder, ",
                       "or mount the disk for writing, and try again", what));
    case SQLITE_FULL:
      return absl::UnavailableError(absl::StrCat("no space is left for database ", name,
                                                 ": free some on its disk and try again; nothing was written", what));
    case SQLITE_IOERR:
      return absl::UnavailableError(absl::StrCat("the disk failed under database ", name,
                                                 ": check the disk (dmesg, df, the mount) and try again", what));
    case SQLITE_CANTOPEN:
      return absl::UnavailableError(absl::StrCat(
          "database ", name, " can't be opened: check that its folder exists and that this user may read and ",
          "write both", what));
    case SQLITE_CORRUPT:
      return absl::DataLossError(absl::StrCat(
          "database ", name, " is damaged: move it aside with its -wal and -shm files, and put the latest ",
          "backup in its place", what));
    case SQLITE_NOTADB:
      return absl::FailedPreconditionError(absl::StrCat(
          name, " is not a Pawl database: name another file; or, if it was one, move it aside with its -wal ",
          "and -shm files, and put the latest backup in its place", what));
    case SQLITE_CONSTRAINT:
      switch (code) {
        case SQLITE_CONSTRAINT_UNIQUE:
        case SQLITE_CONSTRAINT_PRIMARYKEY:
        case SQLITE_CONSTRAINT_ROWID:
          return absl::AlreadyExistsError(absl::StrCat("database ", name, " has such a row already", what));
        case SQLITE_CONSTRAINT_FOREIGNKEY:
          return absl::FailedPreconditionError(absl::StrCat(
              "database ", name, " lacks the row that a new one refers to: write its campaign first", what));
        case SQLITE_CONSTRAINT_TRIGGER:
          return absl::FailedPreconditionError(absl::StrCat("database ", name, " forbids the write", what));
      }
      return absl::InvalidArgumentError(absl::StrCat("database ", name, " forbids the value", what));
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      return absl::ResourceExhaustedError(absl::StrCat("too large for database ", name, " or for memory", what));
  }
  return absl::InternalError(absl::StrCat("database ", name, " failed", what));
}

}  // namespace pawl
