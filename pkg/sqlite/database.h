#pragma once
// SQLite with results instead of codes, and all of its file access through the file door.
//
// A Database is the one connection to its file: exclusive, write-ahead log, no shared memory, no
// thread safety of its own. Every call blocks: use it from one job at a time (pkg/env/blocking.h).
//
// Durability: a commit under Synchronous::full is durable when it answers ok; under normal it is
// durable after the next checkpoint() that answers ok. Neither ever leaves half a transaction.
//
// After a failed sync (sync_failed()) nothing may be believed about what the file holds: the object
// refuses all further work, and its owner ends the process with kExitSyncFailed; the next start
// copies the file (generation_store.h).
//
// Errors: full disk and I/O failures `unavailable` with os_errno; a damaged file `data_loss`;
// constraints `conflict`; everything else `internal`. The text holds the SQL and SQLite's words.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/base/bytes.h"
#include "pkg/base/ids.h"
#include "pkg/base/result.h"
#include "pkg/env/fs.h"
#include "pkg/env/random.h"

struct sqlite3_stmt;

namespace narad::sqlite {

// Makes SQLite's own generator, one for the whole process, start afresh from `random`. Called once
// when a node starts; a simulation calls it at the start of each run, or runs differ.
void reseed_randomness(Random& random);

enum class Synchronous : std::uint8_t { normal, full };
enum class OpenAs : std::uint8_t { create, existing, read_only };

struct Options {
  OpenAs open_as = OpenAs::create;
  Synchronous synchronous = Synchronous::full;
  // A commit that leaves more pages (4 KiB) than this in the write-ahead log folds it into the
  // database. 0: only checkpoint() does.
  std::uint32_t checkpoint_pages = 1000;
};

class Statement;

class Database {
 public:
  // not_found if absent (unless created). read_only never writes, whatever state the files are in.
  static Result<Database> open(FileSystem& fs, const std::string& path, const Options& options);

  Database(Database&&) noexcept = default;
  Database& operator=(Database&&) noexcept = default;
  ~Database() = default;  // closes; never folds the log (see checkpoint())

  // One or more statements without parameters; rows are ignored.
  Result<void> exec(const std::string& sql);
  // One statement, with ?1, ?2, … for parameters. It may outlive the Database object.
  Result<Statement> prepare(std::string_view sql);
  // The first column of the first row, for PRAGMAs and counts; `internal` if there is no row.
  Result<std::int64_t> query_int64(std::string_view sql);
  Result<std::string> query_text(std::string_view sql);

  // Folds the whole log into the database, durably, and empties it. REQUIRES: no transaction and
  // no statement in mid-step. Everything committed before is durable when it answers ok.
  Result<void> checkpoint();
  // data_loss, with what was found, unless the structure of the whole file is sound.
  Result<void> quick_check();

  // A sync of one of the files failed since open.
  bool sync_failed() const;
  // Rows changed by the last statement that changed any.
  std::int64_t changes() const;
  bool in_transaction() const;
  const std::string& path() const;

 private:
  friend class Statement;
  struct Connection;
  explicit Database(std::shared_ptr<Connection> connection);
  std::shared_ptr<Connection> connection_;
};

// A prepared statement. Bound values are copied. Views of columns are good until the next step(),
// reset() or run().
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();

  // Parameters count from 1. A failure to bind is answered by the next step().
  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, std::uint64_t value) {  // kept as the same 64 bits
    return bind(index, static_cast<std::int64_t>(value));
  }
  Statement& bind(int index, std::int32_t value) { return bind(index, std::int64_t{value}); }
  Statement& bind(int index, std::uint32_t value) { return bind(index, std::int64_t{value}); }
  Statement& bind(int index, bool value) { return bind(index, std::int64_t{value ? 1 : 0}); }
  Statement& bind(int index, std::string_view text);
  Statement& bind(int index, const char* text) { return bind(index, std::string_view(text)); }
  Statement& bind(int index, const std::string& text) {
    return bind(index, std::string_view(text));
  }
  Statement& bind(int index, ByteView blob);
  Statement& bind(int index, std::nullptr_t);
  template <class Tag, class Rep>
  Statement& bind(int index, StrongNumber<Tag, Rep> value) {
    return bind(index, value.value());
  }

  // True: there is a row. False: finished. After an error or false: reset() before the next use.
  Result<bool> step();
  // Rewinds and forgets the bound values.
  void reset();
  // reset(), bind all, step to the end, reset(): for statements that answer nothing.
  template <class... Args>
  Result<void> run(const Args&... args) {
    reset();
    int index = 0;
    (bind(++index, args), ...);
    return finish();
  }

  // Columns of the current row count from 0; a NULL reads as 0 or empty.
  std::int64_t int64(int column) const;
  std::uint64_t uint64(int column) const { return static_cast<std::uint64_t>(int64(column)); }
  std::string_view text(int column) const;
  ByteView blob(int column) const;
  bool is_null(int column) const;

 private:
  friend class Database;
  Statement(std::shared_ptr<Database::Connection> connection, sqlite3_stmt* statement);
  Result<void> finish();
  std::shared_ptr<Database::Connection> connection_;
  sqlite3_stmt* statement_ = nullptr;
  int bind_code_ = 0;
};

// BEGIN IMMEDIATE … COMMIT. Destroyed without commit(), it rolls back.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  // On an error everything was rolled back, except that after a failed sync (see
  // Database::sync_failed) a later start may find it done.
  Result<void> commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace narad::sqlite
