#include "pkg/sqlite/database.h"

#include <sqlite3.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/sqlite/vfs.h"

namespace narad::sqlite {

void reseed_randomness(Random& random) {
  // The generator seeds itself from the default VFS, once; so that is what `random` poses as.
  sqlite3_initialize();
  sqlite3_vfs source{};
  source.iVersion = 1;
  source.szOsFile = sizeof(sqlite3_file);
  source.mxPathname = 1;
  source.zName = "narad-randomness";
  source.pAppData = &random;
  source.xRandomness = [](sqlite3_vfs* vfs, int size, char* out) noexcept {
    auto& from = *static_cast<Random*>(vfs->pAppData);
    for (int i = 0; i < size; i += 8) {
      const std::uint64_t bits = from.next();
      std::memcpy(out + i, &bits, static_cast<std::size_t>(std::min(8, size - i)));
    }
    return size;
  };
  source.xCurrentTime = [](sqlite3_vfs*, double* out) noexcept {
    *out = 0;
    return SQLITE_OK;
  };
  sqlite3_vfs* usual = sqlite3_vfs_find(nullptr);
  sqlite3_vfs_register(&source, 1);
  sqlite3_randomness(0, nullptr);  // forget the old state
  char first = 0;
  sqlite3_randomness(1, &first);  // seed now
  sqlite3_vfs_unregister(&source);
  if (usual != nullptr) sqlite3_vfs_register(usual, 1);
}

struct Database::Connection {
  Connection(FileSystem& fs, const std::string& file, bool read_only)
      : path(file), vfs(fs, file, read_only) {}
  Connection(const Connection&) = delete;
  ~Connection() {
    // Every Statement holds the connection, so none is left.
    const int code = sqlite3_close(handle);
    NARAD_ASSERT(code != SQLITE_BUSY, "a statement outlives its database");
  }

  // The error behind a code that SQLite just answered for `what`.
  Error error(int code, std::string_view what) const;
  // ok() or the error; a failed sync that SQLite kept to itself (a commit may fold the log and say
  // nothing when that fails) is an error too.
  Result<void> outcome(int code, std::string_view what) const;

  std::string path;
  Vfs vfs;
  sqlite3* handle = nullptr;
};

namespace {

Errc code_of(int code, const std::optional<Error>& cause) {
  switch (code & 0xff) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
      return Errc::unavailable;
    case SQLITE_CANTOPEN:
      return cause ? cause->code() : Errc::unavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Errc::data_loss;
    case SQLITE_CONSTRAINT:
      return Errc::conflict;
    case SQLITE_TOOBIG:
      return Errc::too_large;
    default:
      return Errc::internal;
  }
}

constexpr std::size_t kSqlInErrorMax = 120;

}  // namespace

Error Database::Connection::error(int code, std::string_view what) const {
  const std::optional<Error>& cause = vfs.sync_failure() ? vfs.sync_failure() : vfs.error();
  const int primary = code & 0xff;
  // VACUUM INTO, for one, reports a file it cannot look at as a plain error.
  const bool disk_behind = primary == SQLITE_ERROR && cause && cause->code() == Errc::unavailable;
  const bool file_trouble = disk_behind || primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN ||
                            primary == SQLITE_FULL;
  std::string text = cat(path, ": ", what.substr(0, kSqlInErrorMax), ": ");
  text += handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
  text += cat(" (SQLite ", code, ")");
  if (!file_trouble || !cause) return Error(code_of(code, std::nullopt), std::move(text));
  const Errc kind = disk_behind ? Errc::unavailable : code_of(code, cause);
  return Error(kind, cat(text, ": ", cause->text()), cause->os_errno());
}

Result<void> Database::Connection::outcome(int code, std::string_view what) const {
  if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE) {
    return error(handle != nullptr ? sqlite3_extended_errcode(handle) : code, what);
  }
  if (const auto& failure = vfs.sync_failure()) {
    return Error(
        Errc::unavailable,
        cat(path, ": ", what.substr(0, kSqlInErrorMax), ": a sync failed: ", failure->text()),
        failure->os_errno());
  }
  return ok();
}

Database::Database(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

Result<Database> Database::open(FileSystem& fs, const std::string& path, const Options& options) {
  const bool read_only = options.open_as == OpenAs::read_only;
  auto connection = std::make_shared<Connection>(fs, path, read_only);
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  flags |= read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (options.open_as == OpenAs::create) flags |= SQLITE_OPEN_CREATE;
  const int code =
      sqlite3_open_v2(path.c_str(), &connection->handle, flags, connection->vfs.name());
  NARAD_TRY(connection->outcome(code, "open"));
  sqlite3_db_config(connection->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_db_config(connection->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);

  Database database(std::move(connection));
  // Exclusive before anything touches the file: that is what makes a log without shared memory
  // work.
  NARAD_TRY(database.exec("PRAGMA locking_mode=EXCLUSIVE"));
  NARAD_TRY(database.exec("PRAGMA temp_store=MEMORY"));
  NARAD_TRY(database.exec("PRAGMA trusted_schema=OFF"));
  NARAD_TRY(database.exec("PRAGMA cell_size_check=ON"));
  if (read_only) {
    NARAD_TRY(database.query_int64("PRAGMA schema_version"));
    return database;
  }
  NARAD_TRY(std::string mode, database.query_text("PRAGMA journal_mode=WAL"));
  if (mode != "wal") {
    return Error(Errc::internal, cat(path, ": SQLite chose journal mode ", mode, ", not wal"));
  }
  const bool full = options.synchronous == Synchronous::full;
  NARAD_TRY(database.exec(full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL"));
  NARAD_TRY(database.exec(cat("PRAGMA wal_autocheckpoint=", options.checkpoint_pages)));
  return database;
}

Result<void> Database::exec(const std::string& sql) {
  connection_->vfs.clear_error();
  const int code = sqlite3_exec(connection_->handle, sql.c_str(), nullptr, nullptr, nullptr);
  return connection_->outcome(code, sql);
}

Result<Statement> Database::prepare(std::string_view sql) {
  connection_->vfs.clear_error();
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(connection_->handle, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  Statement prepared(connection_, statement);
  NARAD_TRY(connection_->outcome(code, sql));
  NARAD_ASSERT(statement != nullptr, "an empty statement");
  return prepared;
}

Result<std::int64_t> Database::query_int64(std::string_view sql) {
  NARAD_TRY(Statement statement, prepare(sql));
  NARAD_TRY(bool row, statement.step());
  if (!row) return Error(Errc::internal, cat(path(), ": ", sql, ": no row"));
  const std::int64_t value = statement.int64(0);
  NARAD_TRY(statement.finish());
  return value;
}

Result<std::string> Database::query_text(std::string_view sql) {
  NARAD_TRY(Statement statement, prepare(sql));
  NARAD_TRY(bool row, statement.step());
  if (!row) return Error(Errc::internal, cat(path(), ": ", sql, ": no row"));
  std::string value(statement.text(0));
  NARAD_TRY(statement.finish());
  return value;
}

Result<void> Database::checkpoint() {
  NARAD_TRY(Statement statement, prepare("PRAGMA wal_checkpoint(TRUNCATE)"));
  NARAD_TRY(bool row, statement.step());
  const std::int64_t busy = row ? statement.int64(0) : 1;
  const std::int64_t pages = row ? statement.int64(1) : 0;
  NARAD_TRY(statement.finish());
  if (busy != 0) {
    return Error(Errc::internal, cat(path(), ": checkpoint while a statement is in mid-step"));
  }
  // SQLite could not open the log, and says so only in this way.
  if (pages < 0) return connection_->error(SQLITE_IOERR, "open the log for a checkpoint");
  return ok();
}

Result<void> Database::quick_check() {
  NARAD_TRY(Statement statement, prepare("PRAGMA quick_check(5)"));
  std::string found;
  std::optional<Error> unread;
  for (;;) {
    NARAD_TRY(bool row, statement.step());
    if (const auto& error = connection_->vfs.error(); error && !unread) unread = *error;
    if (!row) break;
    if (statement.text(0) != "ok") found += cat(found.empty() ? "" : "; ", statement.text(0));
  }
  if (found.empty()) return ok();
  // A page that the disk did not give is not a damaged page.
  if (unread) return connection_->error(SQLITE_IOERR, "PRAGMA quick_check");
  return Error(Errc::data_loss, cat(path(), " is damaged: ", found));
}

bool Database::sync_failed() const { return connection_->vfs.sync_failure().has_value(); }
std::int64_t Database::changes() const { return sqlite3_changes64(connection_->handle); }
bool Database::in_transaction() const { return sqlite3_get_autocommit(connection_->handle) == 0; }
const std::string& Database::path() const { return connection_->path; }

// ---- Statement ---------------------------------------------------------------------------------

Statement::Statement(std::shared_ptr<Database::Connection> connection, sqlite3_stmt* statement)
    : connection_(std::move(connection)), statement_(statement) {}

Statement::Statement(Statement&& other) noexcept
    : connection_(std::move(other.connection_)),
      statement_(std::exchange(other.statement_, nullptr)),
      bind_code_(other.bind_code_) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(connection_, other.connection_);
  std::swap(statement_, other.statement_);
  std::swap(bind_code_, other.bind_code_);
  return *this;
}

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement& Statement::bind(int index, std::int64_t value) {
  if (bind_code_ == SQLITE_OK) bind_code_ = sqlite3_bind_int64(statement_, index, value);
  return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
  // An empty view may have no address, which SQLite would take for NULL.
  const char* data = text.data() != nullptr ? text.data() : "";
  if (bind_code_ == SQLITE_OK) {
    bind_code_ =
        sqlite3_bind_text64(statement_, index, data, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  return *this;
}

Statement& Statement::bind(int index, ByteView blob) {
  const void* data = blob.data() != nullptr ? static_cast<const void*>(blob.data()) : "";
  if (bind_code_ == SQLITE_OK) {
    bind_code_ = sqlite3_bind_blob64(statement_, index, data, blob.size(), SQLITE_TRANSIENT);
  }
  return *this;
}

Statement& Statement::bind(int index, std::nullptr_t) {
  if (bind_code_ == SQLITE_OK) bind_code_ = sqlite3_bind_null(statement_, index);
  return *this;
}

Result<bool> Statement::step() {
  const char* sql = sqlite3_sql(statement_);
  if (bind_code_ != SQLITE_OK) {
    return connection_->error(bind_code_, cat("bind a value of ", sql));
  }
  connection_->vfs.clear_error();
  const int code = sqlite3_step(statement_);
  NARAD_TRY(connection_->outcome(code, sql));
  return code == SQLITE_ROW;
}

void Statement::reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  bind_code_ = SQLITE_OK;
}

// To the end: an implicit transaction commits only there.
Result<void> Statement::finish() {
  Result<bool> row = true;
  while (row && row.value()) row = step();
  reset();
  if (!row) return row.error();
  return ok();
}

std::int64_t Statement::int64(int column) const { return sqlite3_column_int64(statement_, column); }

std::string_view Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

ByteView Statement::blob(int column) const {
  const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

// ---- Transaction -------------------------------------------------------------------------------

Result<Transaction> Transaction::begin(Database& database) {
  NARAD_TRY(database.exec("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::~Transaction() {
  // A failure to roll back leaves nothing behind either: the log holds no commit mark.
  if (database_ != nullptr && database_->in_transaction()) (void)database_->exec("ROLLBACK");
}

Result<void> Transaction::commit() {
  NARAD_ASSERT(database_ != nullptr, "commit() twice");
  Database& database = *database_;
  auto r = database.exec("COMMIT");
  if (!r && database.in_transaction()) (void)database.exec("ROLLBACK");
  database_ = nullptr;
  return r;
}

}  // namespace narad::sqlite
