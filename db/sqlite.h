#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace pawl {

class SqliteConnection;

// One use of a prepared statement: bind in order, step, read. Returns it to its connection's cache when it goes, which
// must be before the same SQL is used again. A mistake in preparing or binding shows in the first Step.
class Statement {
 public:
  Statement(SqliteConnection* connection, sqlite3_stmt* statement, int code);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // What is bound is not copied: it must live until the last Step.
  Statement& Bind(int64_t value);
  Statement& Bind(double value);
  Statement& BindText(std::string_view value);
  Statement& BindBytes(std::string_view value);
  Statement& BindNull();

  absl::StatusOr<bool> Step();  // true: there is a row
  absl::Status Run();           // to its end

  int64_t Int(int column) const;
  double Real(int column) const;
  std::string_view Bytes(int column) const;  // text or blob; until the next Step

 private:
  SqliteConnection* connection_;
  sqlite3_stmt* statement_;
  int code_;
  int bound_ = 0;
};

// An open database file. Owns its prepared statements, one for each SQL text that was used. Not thread-safe.
class SqliteConnection {
 public:
  enum class Mode {
    kWrite,  // the file is made if it is not there
    kRead,   // it must be there
  };
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> Open(const std::filesystem::path& file, Mode mode,
                                                                int busy_milliseconds);
  ~SqliteConnection();
  SqliteConnection(const SqliteConnection&) = delete;

  absl::Status Execute(const std::string& sql);            // one or more statements, results thrown away
  absl::StatusOr<int64_t> QueryInt(std::string_view sql);  // the first column of the first row; 0: there is none
  Statement Use(std::string_view sql);

  void KeepWalOnClose();  // neither copied into the file nor removed

  // While only an attached file is written: which one, for errors. Empty: the connection's own again.
  void NoteWritten(std::string attached) { written_ = std::move(attached); }
  absl::Status Error(int code) const;
  int last_code() const;  // primary result code of the latest call
  bool read_only() const;
  sqlite3* handle() const { return db_; }
  const std::string& file() const { return file_; }

 private:
  SqliteConnection(sqlite3* db, std::string file) : db_(db), file_(std::move(file)) {}

  sqlite3* db_;
  std::string file_;
  std::string written_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
};

// BEGIN IMMEDIATE: the write lock is taken at the start, so that nothing after it can fail for being late. Rolled back
// unless committed.
class Transaction {
 public:
  explicit Transaction(SqliteConnection* connection) : connection_(connection) {}
  ~Transaction();
  Transaction(const Transaction&) = delete;

  absl::Status Begin();
  absl::Status Commit();

 private:
  SqliteConnection* connection_;
};

// What a failure of SQLite means and what to do about it, in one place. `code` is an extended result code, `detail`
// SQLite's own words, `system_error` the errno below it (0: none).
//
// UNAVAILABLE: locked, read-only, full, I/O, cannot be opened. DATA_LOSS: damaged. FAILED_PRECONDITION: not a database,
// or a row is missing that another names, or a trigger forbids it. ALREADY_EXISTS: a second row of that key.
// INVALID_ARGUMENT: a value that the schema forbids. RESOURCE_EXHAUSTED: memory. INTERNAL: anything else.
absl::Status SqliteError(int code, std::string_view detail, int system_error, std::string_view file);

}  // namespace pawl
