#include "internal/raftnode/log_store.h"

#include <algorithm>
#include <optional>

#include "pkg/base/assert.h"
#include "pkg/base/checksum.h"
#include "pkg/base/text.h"
#include "pkg/sqlite/generation_store.h"

namespace narad::raftnode {

using raft::Index;
using raft::ReplicaId;
using raft::SnapshotMeta;
using raft::Term;

namespace {

constexpr std::int64_t kFormatVersion = 1;  // PRAGMA user_version
constexpr std::size_t kBlockBytes = 256u << 10;
constexpr std::uint64_t kSnapshotSeed = 0x6e61726164736e70;  // "naradsnp"
constexpr std::string_view kSnapshotPrefix = "snapshot.";
constexpr std::string_view kStaged = "snapshot.incoming";
constexpr std::string_view kWriting = "snapshot.writing";

// snapshot: row 1 is the latest, row 2 the one that is being installed.
constexpr const char* kSchema = R"(
  CREATE TABLE replica(id INTEGER PRIMARY KEY CHECK (id = 1), replica INTEGER NOT NULL,
                       node TEXT NOT NULL);
  CREATE TABLE hard_state(id INTEGER PRIMARY KEY CHECK (id = 1), term INTEGER NOT NULL,
                          vote INTEGER NOT NULL, commit_index INTEGER NOT NULL,
                          checksum INTEGER NOT NULL);
  CREATE TABLE snapshot(id INTEGER PRIMARY KEY CHECK (id IN (1, 2)), idx INTEGER NOT NULL,
                        term INTEGER NOT NULL, size INTEGER NOT NULL, sum INTEGER NOT NULL,
                        configuration BLOB NOT NULL, checksum INTEGER NOT NULL);
  CREATE TABLE log_base(id INTEGER PRIMARY KEY CHECK (id = 1), idx INTEGER NOT NULL,
                        term INTEGER NOT NULL);
  CREATE TABLE log(idx INTEGER PRIMARY KEY, term INTEGER NOT NULL, kind INTEGER NOT NULL,
                   payload BLOB NOT NULL, checksum INTEGER NOT NULL);
  PRAGMA user_version = 1;
)";

struct Statements {
  sqlite::Statement hard_state, snapshot, drop_snapshot, log_base, add, drop_from, drop_through;

  static Result<Statements> prepare(sqlite::Database& db) {
    NARAD_TRY(auto hard_state,
              db.prepare("INSERT OR REPLACE INTO hard_state VALUES(1, ?1, ?2, ?3, ?4)"));
    NARAD_TRY(auto snapshot, db.prepare("INSERT OR REPLACE INTO snapshot VALUES(?1, ?2, ?3, ?4, "
                                        "?5, ?6, ?7)"));
    NARAD_TRY(auto drop_snapshot, db.prepare("DELETE FROM snapshot WHERE id = ?1"));
    NARAD_TRY(auto log_base, db.prepare("INSERT OR REPLACE INTO log_base VALUES(1, ?1, ?2)"));
    NARAD_TRY(auto add, db.prepare("INSERT INTO log VALUES(?1, ?2, ?3, ?4, ?5)"));
    NARAD_TRY(auto drop_from, db.prepare("DELETE FROM log WHERE idx >= ?1"));
    NARAD_TRY(auto drop_through, db.prepare("DELETE FROM log WHERE idx <= ?1"));
    return Statements{std::move(hard_state),  std::move(snapshot), std::move(drop_snapshot),
                      std::move(log_base),    std::move(add),      std::move(drop_from),
                      std::move(drop_through)};
  }
};

Error contradiction(std::string text) { return Error(Errc::data_loss, std::move(text)); }

// SQLite's own check sees the structure of its pages, not a flipped bit within a value.
std::uint64_t sum_of(std::initializer_list<std::uint64_t> numbers, ByteView bytes = {}) {
  Bytes head;
  ByteWriter writer(head);
  for (std::uint64_t n : numbers) writer.u64(n);
  return xxh3(bytes, xxh3(head, kSnapshotSeed));
}
std::uint64_t sum_of(const raft::HardState& h) {
  return sum_of({h.term.value(), h.vote.value(), h.commit.value()});
}
std::uint64_t sum_of(const raft::Entry& e) {
  return sum_of({e.index.value(), e.term.value(), static_cast<std::uint64_t>(e.kind)}, *e.payload);
}
std::uint64_t sum_of(const SnapshotMeta& s, ByteView configuration) {
  return sum_of({s.index.value(), s.term.value(), s.size_bytes, s.checksum}, configuration);
}

enum class SnapshotRow : std::int32_t { latest = 1, installing = 2 };

Result<void> put_hard_state(Statements& sql, const raft::HardState& h) {
  return sql.hard_state.run(h.term, h.vote, h.commit, sum_of(h));
}

Result<void> put_snapshot(Statements& sql, SnapshotRow row, const SnapshotMeta& s) {
  const Bytes configuration = s.configuration.encode();
  return sql.snapshot.run(static_cast<std::int32_t>(row), s.index, s.term, s.size_bytes, s.checksum,
                          ByteView(configuration), sum_of(s, configuration));
}

Result<std::optional<SnapshotMeta>> load_snapshot(sqlite::Database& db, SnapshotRow row) {
  NARAD_TRY(auto rows, db.prepare("SELECT idx, term, size, sum, configuration, checksum FROM "
                                  "snapshot WHERE id = ?1"));
  rows.bind(1, static_cast<std::int32_t>(row));
  NARAD_TRY(bool found, rows.step());
  if (!found) return std::nullopt;
  SnapshotMeta s;
  s.index = Index(rows.uint64(0));
  s.term = Term(rows.uint64(1));
  s.size_bytes = rows.uint64(2);
  s.checksum = rows.uint64(3);
  const Bytes configuration(rows.blob(4).begin(), rows.blob(4).end());
  if (rows.uint64(5) != sum_of(s, configuration)) {
    return contradiction("the row of the snapshot is damaged");
  }
  NARAD_TRY(s.configuration, raft::Configuration::decode(configuration));
  return s;
}

Result<void> load_hard_state(sqlite::Database& db, raft::StartState& out) {
  NARAD_TRY(auto rows, db.prepare("SELECT term, vote, commit_index, checksum FROM hard_state"));
  NARAD_TRY(bool found, rows.step());
  if (!found) return contradiction("term and vote are missing");
  out.hard_state.term = Term(rows.uint64(0));
  out.hard_state.vote = ReplicaId(rows.uint64(1));
  out.hard_state.commit = Index(rows.uint64(2));
  if (rows.uint64(3) != sum_of(out.hard_state)) return contradiction("term and vote are damaged");
  return ok();
}

Result<void> load_log(sqlite::Database& db, raft::StartState& out) {
  NARAD_TRY(auto base, db.prepare("SELECT idx, term FROM log_base"));
  NARAD_TRY(bool found, base.step());
  if (!found) return contradiction("where the log begins is missing");
  out.log_base = Index(base.uint64(0));
  out.log_base_term = Term(base.uint64(1));
  NARAD_TRY(auto rows,
            db.prepare("SELECT idx, term, kind, payload, checksum FROM log ORDER BY idx"));
  for (;;) {
    NARAD_TRY(bool more, rows.step());
    if (!more) return ok();
    raft::Entry e;
    e.index = Index(rows.uint64(0));
    e.term = Term(rows.uint64(1));
    const std::uint64_t kind = rows.uint64(2);
    if (kind > static_cast<std::uint64_t>(raft::EntryKind::configuration)) {
      return contradiction(cat("entry ", e.index, " is of unknown kind"));
    }
    e.kind = static_cast<raft::EntryKind>(kind);
    const ByteView payload = rows.blob(3);
    e.payload = std::make_shared<const Bytes>(payload.begin(), payload.end());
    if (rows.uint64(4) != sum_of(e)) return contradiction(cat("entry ", e.index, " is damaged"));
    out.entries.push_back(std::move(e));
  }
}

// What to say when the file cannot be believed: what, why, and what to do.
Error damaged(const std::string& path, const Error& why) {
  const std::string data = parent_path(parent_path(path));
  return Error(
      Errc::data_loss,
      cat("metastore: ", path, " is damaged: ", why.text(),
          ". It holds what this node has promised to others, so it will not go on with a guess. "
          "Nothing was changed, and messages in topics/ and ingress/ are untouched. See what is "
          "wrong with: narad fsck --quick ",
          data, ". Then put back a copy of the metastore directory; in a cluster, instead, move ",
          join_path(data, "metastore"), " away and start again: the node joins as a new one"),
      why.os_errno());
}

}  // namespace

// ---- checksum of a snapshot ---------------------------------------------------------------------

void SnapshotSum::add(ByteView bytes) {
  size_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t take = std::min(bytes.size(), kBlockBytes - block_.size());
    block_.insert(block_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(take));
    bytes = bytes.subspan(take);
    if (block_.size() < kBlockBytes) return;
    sum_ = xxh3(block_, sum_ ^ kSnapshotSeed);
    block_.clear();
  }
}

std::uint64_t SnapshotSum::finish() {
  sum_ = xxh3(block_, sum_ ^ kSnapshotSeed);
  block_.clear();
  return sum_;
}

// ---- opening ------------------------------------------------------------------------------------

struct LogStore::Impl {
  FileSystem& fs;
  const std::string directory;
  std::shared_ptr<sqlite::GenerationStore> generations;
  sqlite::Database db;
  std::optional<Statements> sql;
  ReplicaId replica;
  std::string node;
  std::unique_ptr<File> staged;  // only ever touched by write() and accept_staged()

  Impl(FileSystem& f, std::string d, std::shared_ptr<sqlite::GenerationStore> g,
       sqlite::Database database)
      : fs(f), directory(std::move(d)), generations(std::move(g)), db(std::move(database)) {}

  std::string path(std::string_view name) const { return join_path(directory, name); }
  Result<void> stage(const raft::SnapshotWrite& piece);
  Result<void> check_file(const std::string& path, const SnapshotMeta& meta);
};

LogStore::LogStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LogStore::~LogStore() = default;
ReplicaId LogStore::replica() const { return impl_->replica; }
const std::string& LogStore::node() const { return impl_->node; }

Result<std::shared_ptr<LogStore>> LogStore::create(FileSystem& fs, std::string directory,
                                                   std::shared_ptr<sqlite::GenerationStore> store,
                                                   Birth birth) {
  NARAD_ASSERT(birth.replica != ReplicaId(), "a replica id was drawn");
  const sqlite::Options options{sqlite::OpenAs::create, sqlite::Synchronous::full, 1000};
  const auto fill = [&birth](sqlite::Database& fresh) -> Result<void> {
    NARAD_TRY(fresh.exec(kSchema));
    NARAD_TRY(auto identity, fresh.prepare("INSERT INTO replica VALUES(1, ?1, ?2)"));
    NARAD_TRY(identity.run(birth.replica, birth.node));
    NARAD_TRY(auto sql, Statements::prepare(fresh));
    NARAD_TRY(put_hard_state(sql, birth.hard_state));
    NARAD_TRY(put_snapshot(sql, SnapshotRow::latest, birth.snapshot));
    return sql.log_base.run(birth.snapshot.index, birth.snapshot.term);
  };
  NARAD_TRY(auto db, store->create_database(kLogName, options, fill));
  auto impl = std::make_unique<Impl>(fs, std::move(directory), std::move(store), std::move(db));
  impl->replica = birth.replica;
  impl->node = std::move(birth.node);
  NARAD_TRY(auto sql, Statements::prepare(impl->db));
  impl->sql.emplace(std::move(sql));
  return std::shared_ptr<LogStore>(new LogStore(std::move(impl)));
}

Result<std::shared_ptr<LogStore>> LogStore::open(FileSystem& fs, std::string directory,
                                                 std::shared_ptr<sqlite::GenerationStore> store,
                                                 std::string node) {
  const std::string path = store->path(kLogName);
  const auto explain = [&](const Error& e) {
    return e.code() == Errc::data_loss ? damaged(path, e) : e.with_context("metastore");
  };
  const sqlite::Options options{sqlite::OpenAs::existing, sqlite::Synchronous::full, 1000};
  auto db = store->open_database(kLogName, options);
  if (!db) return explain(db.error());
  if (auto sound = db.value().quick_check(); !sound) return explain(sound.error());
  NARAD_TRY(auto version, db.value().query_int64("PRAGMA user_version"));
  if (version != kFormatVersion) {
    return Error(Errc::internal,
                 cat("metastore: ", path, " has format ", version, "; this release reads ",
                     kFormatVersion, ". Nothing was changed. Start the release that wrote it"));
  }
  auto impl =
      std::make_unique<Impl>(fs, std::move(directory), std::move(store), std::move(db.value()));
  {
    NARAD_TRY(auto rows, impl->db.prepare("SELECT replica, node FROM replica"));
    NARAD_TRY(bool found, rows.step());
    if (!found) return damaged(path, contradiction("the replica id is missing"));
    impl->replica = ReplicaId(rows.uint64(0));
    impl->node = std::string(rows.text(1));
  }
  if (impl->node != node) {
    return Error(Errc::conflict,
                 cat("metastore: ", path, " belongs to node ", impl->node, ", this is node ", node,
                     ": files of two nodes are mixed, or node.json was changed. Give the node its "
                     "old id back"));
  }
  NARAD_TRY(auto sql, Statements::prepare(impl->db));
  impl->sql.emplace(std::move(sql));
  return std::shared_ptr<LogStore>(new LogStore(std::move(impl)));
}

// ---- the database -------------------------------------------------------------------------------

Result<raft::StartState> LogStore::recover(Index applied) {
  Impl& impl = *impl_;
  const auto load = [&]() -> Result<raft::StartState> {
    NARAD_TRY(auto installing, load_snapshot(impl.db, SnapshotRow::installing));
    if (installing) {
      // The applied state either holds the snapshot, then the log must follow; or it never got
      // there, and nothing has happened.
      if (applied >= installing->index) {
        NARAD_TRY(finish_install(*installing));
      } else {
        NARAD_TRY(cancel_install());
      }
    }
    raft::StartState out;
    NARAD_TRY(auto latest, load_snapshot(impl.db, SnapshotRow::latest));
    if (!latest) return contradiction("what the latest snapshot is, is missing");
    out.snapshot = std::move(*latest);
    NARAD_TRY(load_hard_state(impl.db, out));
    NARAD_TRY(load_log(impl.db, out));
    out.applied = applied;
    return out;
  };
  auto loaded = load();
  if (!loaded && loaded.error().code() == Errc::data_loss) {
    return damaged(impl.db.path(), loaded.error());
  }
  return loaded;
}

Result<void> LogStore::Impl::stage(const raft::SnapshotWrite& piece) {
  if (piece.offset == 0 || !staged) {
    NARAD_TRY(staged, fs.open(path(kStaged), OpenMode::create));
    if (piece.offset == 0) {
      // Proof: the core begins to receive anew, what was staged before belongs to nothing.
      NARAD_TRY(staged->truncate(0));
    }
  }
  return narad::write_all(*staged, *piece.bytes, piece.offset);
}

Result<void> LogStore::write(const std::vector<const raft::Ready*>& readies) {
  bool to_database = false;
  for (const raft::Ready* r : readies) {
    // Not synced piece by piece: after a crash nothing of it is asked for, and accept_staged()
    // checks the whole.
    for (const raft::SnapshotWrite& piece : r->snapshot_writes) {
      NARAD_TRY(impl_->stage(piece));
    }
    to_database = to_database || r->hard_state || !r->entries.empty();
  }
  if (!to_database) return ok();
  Statements& sql = *impl_->sql;
  NARAD_TRY(auto transaction, sqlite::Transaction::begin(impl_->db));
  const raft::HardState* hard_state = nullptr;
  for (const raft::Ready* r : readies) {
    if (r->hard_state) hard_state = &*r->hard_state;
    if (r->entries.empty()) continue;
    // Proof: the core truncated its log there; only what was never committed is truncated.
    NARAD_TRY(sql.drop_from.run(r->entries.front().index));
    for (const raft::Entry& e : r->entries) {
      NARAD_TRY(sql.add.run(e.index, e.term, static_cast<std::int32_t>(e.kind),
                            ByteView(*e.payload), sum_of(e)));
    }
  }
  if (hard_state != nullptr) {
    NARAD_TRY(put_hard_state(sql, *hard_state));
  }
  return transaction.commit();
}

Result<void> LogStore::found(const raft::Configuration& configuration) {
  NARAD_TRY(auto transaction, sqlite::Transaction::begin(impl_->db));
  SnapshotMeta first;
  first.configuration = configuration;
  NARAD_TRY(put_snapshot(*impl_->sql, SnapshotRow::latest, first));
  return transaction.commit();
}

Result<void> LogStore::compact(const SnapshotMeta& snapshot, raft::Core::LogBase base) {
  Statements& sql = *impl_->sql;
  NARAD_TRY(auto transaction, sqlite::Transaction::begin(impl_->db));
  NARAD_TRY(put_snapshot(sql, SnapshotRow::latest, snapshot));
  NARAD_TRY(sql.log_base.run(base.index, base.term));
  // Proof: the snapshot and the applied state hold what these entries did, both durably.
  NARAD_TRY(sql.drop_through.run(base.index));
  return transaction.commit();
}

Result<void> LogStore::begin_install(const SnapshotMeta& snapshot) {
  NARAD_TRY(auto transaction, sqlite::Transaction::begin(impl_->db));
  NARAD_TRY(put_snapshot(*impl_->sql, SnapshotRow::installing, snapshot));
  return transaction.commit();
}

Result<void> LogStore::cancel_install() {
  return impl_->sql->drop_snapshot.run(static_cast<std::int32_t>(SnapshotRow::installing));
}

Result<void> LogStore::finish_install(const SnapshotMeta& snapshot) {
  Statements& sql = *impl_->sql;
  raft::StartState before;
  NARAD_TRY(load_hard_state(impl_->db, before));
  NARAD_TRY(auto transaction, sqlite::Transaction::begin(impl_->db));
  NARAD_TRY(put_snapshot(sql, SnapshotRow::latest, snapshot));
  NARAD_TRY(sql.drop_snapshot.run(static_cast<std::int32_t>(SnapshotRow::installing)));
  NARAD_TRY(sql.log_base.run(snapshot.index, snapshot.term));
  // Proof: the applied state durably holds the snapshot, which covers all that was committed of
  // this log; what was not committed is the leader's to decide.
  NARAD_TRY(sql.drop_from.run(Index(0)));
  before.hard_state.commit = snapshot.index;
  if (snapshot.term > before.hard_state.term) {
    before.hard_state = {snapshot.term, ReplicaId(), snapshot.index};
  }
  NARAD_TRY(put_hard_state(sql, before.hard_state));
  return transaction.commit();
}

bool LogStore::sync_failed() const { return impl_->db.sync_failed(); }

sqlite::Database LogStore::release() {
  impl_->sql.reset();
  impl_->staged.reset();
  return std::move(impl_->db);
}

// ---- files of snapshots -------------------------------------------------------------------------

namespace {
std::string snapshot_path(const std::string& directory, const SnapshotMeta& meta) {
  return join_path(directory, cat(kSnapshotPrefix, meta.index, ".", to_hex16(meta.checksum)));
}
}  // namespace

std::string LogStore::path_of(const SnapshotMeta& meta) const {
  return snapshot_path(impl_->directory, meta);
}

Result<SnapshotMeta> LogStore::write_snapshot(SnapshotMeta meta, const SnapshotWriter& writer) {
  return write_first_snapshot(impl_->fs, impl_->directory, std::move(meta), writer);
}

Result<SnapshotMeta> LogStore::write_first_snapshot(FileSystem& fs, const std::string& directory,
                                                    SnapshotMeta meta,
                                                    const SnapshotWriter& writer) {
  const std::string temporary = join_path(directory, kWriting);
  // Proof: an unfinished attempt, which nothing names. Not written over: its sync may have failed.
  auto removed = fs.remove(temporary);
  if (!removed && removed.error().code() != Errc::not_found) return removed.error();
  NARAD_TRY(auto file, fs.open(temporary, OpenMode::create_new));
  SnapshotSum sum;
  Bytes buffer;
  std::uint64_t written = 0;
  const auto flush = [&]() -> Result<void> {
    NARAD_TRY(narad::write_all(*file, buffer, written));
    written += buffer.size();
    buffer.clear();
    return ok();
  };
  NARAD_TRY(writer([&](ByteView bytes) -> Result<void> {
    sum.add(bytes);
    buffer.insert(buffer.end(), bytes.begin(), bytes.end());
    if (buffer.size() < kBlockBytes) return ok();
    return flush();
  }));
  NARAD_TRY(flush());
  NARAD_TRY(file->sync());
  meta.checksum = sum.finish();
  meta.size_bytes = sum.size();
  NARAD_TRY(fs.rename(temporary, snapshot_path(directory, meta)));
  NARAD_TRY(fs.sync_dir(directory));
  return meta;
}

Result<Bytes> LogStore::read_chunk(const SnapshotMeta& meta, std::uint64_t offset,
                                   std::uint64_t length) {
  NARAD_TRY(auto file, impl_->fs.open(path_of(meta), OpenMode::read));
  Bytes bytes(length);
  NARAD_TRY(read_exact(*file, bytes, offset));
  return bytes;
}

Result<void> LogStore::Impl::check_file(const std::string& path, const SnapshotMeta& meta) {
  const auto wrong = [&] {
    return Error(Errc::data_loss, cat(path, " is not the snapshot at entry ", meta.index,
                                      " that it should be: its checksum or size is another"));
  };
  auto file = fs.open(path, OpenMode::read);
  if (!file && file.error().code() == Errc::not_found) return wrong();
  if (!file) return file.error();
  NARAD_TRY(auto size, file.value()->size());
  if (size != meta.size_bytes) return wrong();
  SnapshotSum sum;
  Bytes block(kBlockBytes);
  while (sum.size() < size) {
    const std::uint64_t want = std::min<std::uint64_t>(block.size(), size - sum.size());
    NARAD_TRY(read_exact(*file.value(), std::span(block).first(want), sum.size()));
    sum.add(ByteView(block).first(want));
  }
  if (sum.finish() != meta.checksum) return wrong();
  return ok();
}

Result<void> LogStore::accept_staged(const SnapshotMeta& meta) {
  Impl& impl = *impl_;
  const std::string from = impl.path(kStaged);
  if (impl.staged) {
    auto synced = impl.staged->sync();
    impl.staged.reset();
    // The next attempt begins with a fresh file: these pages are never believed.
    if (!synced) {
      (void)impl.fs.remove(from).has_value();
      return Error(Errc::data_loss, cat("the received snapshot: ", synced.error().text()));
    }
  }
  NARAD_TRY(impl.check_file(from, meta));
  NARAD_TRY(impl.fs.rename(from, path_of(meta)));
  return impl.fs.sync_dir(impl.directory);
}

Result<void> LogStore::verify_snapshot(const SnapshotMeta& meta) {
  return impl_->check_file(path_of(meta), meta);
}

Result<void> LogStore::remove_snapshots_but(const std::vector<SnapshotMeta>& keep) {
  Impl& impl = *impl_;
  NARAD_TRY(auto names, impl.fs.list(impl.directory));
  for (const std::string& name : names) {
    if (!name.starts_with(kSnapshotPrefix) || name == kStaged || name == kWriting) continue;
    const std::string path = impl.path(name);
    const bool kept = std::any_of(keep.begin(), keep.end(),
                                  [&](const SnapshotMeta& m) { return path_of(m) == path; });
    if (kept) continue;
    // Proof: the caller's, that nobody names it any more: a later snapshot is durably the latest.
    NARAD_TRY(impl.fs.remove(path));
  }
  return ok();
}

}  // namespace narad::raftnode
