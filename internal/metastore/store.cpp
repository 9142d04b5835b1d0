#include "internal/metastore/store.h"

#include <optional>

#include "internal/metastore/codec.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/sqlite/generation_store.h"

namespace narad::metastore {
namespace {

constexpr std::string_view kName = kStateName;
// PRAGMA user_version. Format 1 had the log of a lone voter in a table of its own.
constexpr std::int64_t kFormatVersion = 2;
constexpr std::int64_t kFormatWithLog = 1;
// Not synced commit by commit: what is missing after a power cut is applied again from the log.
constexpr sqlite::Options kOptions{sqlite::OpenAs::create, sqlite::Synchronous::normal, 1000};

// Rows are the JSON of codec.h. `summary` holds one row; everything else is keyed as in the state.
constexpr const char* kSchema = R"(
  CREATE TABLE summary(id INTEGER PRIMARY KEY CHECK (id = 1), doc TEXT NOT NULL);
  CREATE TABLE topic(name TEXT PRIMARY KEY, doc TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE assignment(topic TEXT, partition INTEGER, doc TEXT NOT NULL,
                          PRIMARY KEY(topic, partition)) WITHOUT ROWID;
  CREATE TABLE topic_schema(topic TEXT, version INTEGER, doc TEXT NOT NULL,
                            PRIMARY KEY(topic, version)) WITHOUT ROWID;
  CREATE TABLE member(id TEXT PRIMARY KEY, doc TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE tombstone(id TEXT PRIMARY KEY, doc TEXT NOT NULL) WITHOUT ROWID;
  PRAGMA user_version = 2;
)";
// Tables that came later; made when a store without them is opened.
constexpr const char* kLaterTables = R"(
  CREATE TABLE IF NOT EXISTS deleted_topic(id TEXT PRIMARY KEY, doc TEXT NOT NULL)
      WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS user(name TEXT PRIMARY KEY, doc TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS move(id TEXT PRIMARY KEY, doc TEXT NOT NULL) WITHOUT ROWID;
)";

// Every statement of a commit, prepared once.
struct Statements {
  sqlite::Statement summary, topic, assignment, schema, member, tombstone;
  sqlite::Statement drop_topic, drop_assignments, drop_schemas, drop_member, drop_tombstone;
  sqlite::Statement deleted, drop_deleted, user, drop_user, move, drop_move;

  static Result<Statements> prepare(sqlite::Database& db) {
    NARAD_TRY(auto summary, db.prepare("INSERT OR REPLACE INTO summary VALUES(1, ?1)"));
    NARAD_TRY(auto topic, db.prepare("INSERT OR REPLACE INTO topic VALUES(?1, ?2)"));
    NARAD_TRY(auto assignment, db.prepare("INSERT OR REPLACE INTO assignment VALUES(?1, ?2, ?3)"));
    NARAD_TRY(auto schema, db.prepare("INSERT OR REPLACE INTO topic_schema VALUES(?1, ?2, ?3)"));
    NARAD_TRY(auto member, db.prepare("INSERT OR REPLACE INTO member VALUES(?1, ?2)"));
    NARAD_TRY(auto tombstone, db.prepare("INSERT OR REPLACE INTO tombstone VALUES(?1, ?2)"));
    NARAD_TRY(auto user, db.prepare("INSERT OR REPLACE INTO user VALUES(?1, ?2)"));
    NARAD_TRY(auto drop_topic, db.prepare("DELETE FROM topic WHERE name = ?1"));
    NARAD_TRY(auto drop_assignments, db.prepare("DELETE FROM assignment WHERE topic = ?1"));
    NARAD_TRY(auto drop_schemas, db.prepare("DELETE FROM topic_schema WHERE topic = ?1"));
    NARAD_TRY(auto drop_member, db.prepare("DELETE FROM member WHERE id = ?1"));
    NARAD_TRY(auto drop_tombstone, db.prepare("DELETE FROM tombstone WHERE id = ?1"));
    NARAD_TRY(auto drop_user, db.prepare("DELETE FROM user WHERE name = ?1"));
    NARAD_TRY(auto deleted, db.prepare("INSERT OR REPLACE INTO deleted_topic VALUES(?1, ?2)"));
    NARAD_TRY(auto drop_deleted, db.prepare("DELETE FROM deleted_topic WHERE id = ?1"));
    NARAD_TRY(auto move, db.prepare("INSERT OR REPLACE INTO move VALUES(?1, ?2)"));
    NARAD_TRY(auto drop_move, db.prepare("DELETE FROM move WHERE id = ?1"));
    return Statements{std::move(summary),        std::move(topic),
                      std::move(assignment),     std::move(schema),
                      std::move(member),         std::move(tombstone),
                      std::move(drop_topic),     std::move(drop_assignments),
                      std::move(drop_schemas),   std::move(drop_member),
                      std::move(drop_tombstone), std::move(deleted),
                      std::move(drop_deleted),   std::move(user),
                      std::move(drop_user),      std::move(move),
                      std::move(drop_move)};
  }
};

// What to say when the file cannot be believed: what, why, and what to do.
Error damaged(const std::string& path, const Error& why) {
  return Error(Errc::data_loss,
               cat("metastore: ", path, " is damaged: ", why.text(),
                   ". Nothing was changed, and messages in topics/ and ingress/ are untouched. See "
                   "what is wrong with: narad fsck --quick ",
                   parent_path(parent_path(path)),
                   ". Then put back a copy of the metastore directory and start again"),
               why.os_errno());
}

Result<std::int64_t> read_version(sqlite::Database& db) {
  NARAD_TRY(auto version, db.query_int64("PRAGMA user_version"));
  if (version == kFormatVersion || version == kFormatWithLog) return version;
  return Error(Errc::internal,
               cat("metastore: ", db.path(), " has format ", version, "; this release reads ",
                   kFormatVersion, ". Nothing was changed. Start the release that wrote it"));
}

Error inconsistent(std::string text) { return Error(Errc::data_loss, std::move(text)); }

Result<void> load_summary(sqlite::Database& db, State& state) {
  NARAD_TRY(auto rows, db.prepare("SELECT doc FROM summary"));
  NARAD_TRY(bool found, rows.step());
  if (!found) return inconsistent("the summary row is missing");
  NARAD_TRY(decode_summary(rows.text(0), state));
  return ok();
}

Result<void> load_topics(sqlite::Database& db, State& state) {
  NARAD_TRY(auto topics, db.prepare("SELECT name, doc FROM topic ORDER BY name"));
  NARAD_TRY(auto assignments, db.prepare("SELECT partition, doc FROM assignment WHERE topic = ?1 "
                                         "ORDER BY partition"));
  NARAD_TRY(auto schemas, db.prepare("SELECT version, doc FROM topic_schema WHERE topic = ?1 "
                                     "ORDER BY version"));
  std::uint64_t assignments_seen = 0, schemas_seen = 0;
  for (;;) {
    NARAD_TRY(bool more, topics.step());
    if (!more) break;
    NARAD_TRY(auto decoded, decode_topic(topics.text(1)));
    if (decoded.topic.name != topics.text(0)) {
      return inconsistent(cat("topic ", topics.text(0), " holds the row of ", decoded.topic.name));
    }
    TopicRow row;
    row.topic = std::move(decoded.topic);
    row.changed_at = decoded.changed_at;
    assignments.reset();
    assignments.bind(1, row.topic.name);
    for (;;) {
      NARAD_TRY(bool next, assignments.step());
      if (!next) break;
      if (assignments.uint64(0) != row.assignments.size()) break;  // a gap: found out below
      NARAD_TRY(auto assignment, decode_assignment(assignments.text(1)));
      row.assignments.push_back(std::move(assignment));
    }
    if (row.assignments.size() != row.topic.partitions) {
      return inconsistent(cat("topic ", row.topic.name, " has ", row.topic.partitions,
                              " partitions, but assignments for the first ",
                              row.assignments.size()));
    }
    schemas.reset();
    schemas.bind(1, row.topic.name);
    for (;;) {
      NARAD_TRY(bool next, schemas.step());
      if (!next) break;
      NARAD_TRY(auto schema, decode_schema(schemas.text(1)));
      if (schema.version != row.schemas.size() + 1) {
        return inconsistent(
            cat("topic ", row.topic.name, " lacks a schema version before ", schema.version));
      }
      row.schemas.push_back(std::make_shared<const SchemaVersion>(std::move(schema)));
    }
    assignments_seen += row.assignments.size();
    schemas_seen += row.schemas.size();
    state.topics.put(std::make_shared<const TopicRow>(std::move(row)));
  }
  NARAD_TRY(auto assignment_rows, db.query_int64("SELECT count(*) FROM assignment"));
  NARAD_TRY(auto schema_rows, db.query_int64("SELECT count(*) FROM topic_schema"));
  if (static_cast<std::uint64_t>(assignment_rows) != assignments_seen ||
      static_cast<std::uint64_t>(schema_rows) != schemas_seen) {
    return inconsistent("there are assignments or schemas without their topic");
  }
  return ok();
}

Result<void> load_members(sqlite::Database& db, State& state) {
  NARAD_TRY(auto members, db.prepare("SELECT doc FROM member ORDER BY id"));
  for (;;) {
    NARAD_TRY(bool more, members.step());
    if (!more) break;
    NARAD_TRY(auto member, decode_member(members.text(0)));
    state.members.put(std::make_shared<const Member>(std::move(member)));
  }
  NARAD_TRY(auto tombstones, db.prepare("SELECT doc FROM tombstone ORDER BY id"));
  for (;;) {
    NARAD_TRY(bool more, tombstones.step());
    if (!more) break;
    NARAD_TRY(auto tombstone, decode_tombstone(tombstones.text(0)));
    state.tombstones.put(std::make_shared<const Tombstone>(std::move(tombstone)));
  }
  NARAD_TRY(auto deleted, db.prepare("SELECT doc FROM deleted_topic ORDER BY id"));
  for (;;) {
    NARAD_TRY(bool more, deleted.step());
    if (!more) break;
    NARAD_TRY(auto topic, decode_deleted_topic(deleted.text(0)));
    state.deleted.put(std::make_shared<const DeletedTopic>(std::move(topic)));
  }
  return ok();
}

Result<void> load_users(sqlite::Database& db, State& state) {
  NARAD_TRY(auto users, db.prepare("SELECT name, doc FROM user ORDER BY name"));
  for (;;) {
    NARAD_TRY(bool more, users.step());
    if (!more) return ok();
    NARAD_TRY(auto user, decode_user(users.text(1)));
    if (user.username != users.text(0)) {
      return inconsistent(cat("user ", users.text(0), " holds the row of ", user.username));
    }
    state.users.put(std::make_shared<const User>(std::move(user)));
  }
}

Result<void> load_moves(sqlite::Database& db, State& state) {
  NARAD_TRY(auto moves, db.prepare("SELECT id, doc FROM move ORDER BY id"));
  for (;;) {
    NARAD_TRY(bool more, moves.step());
    if (!more) return ok();
    NARAD_TRY(auto move, decode_move(moves.text(1)));
    if (move.id != moves.text(0)) {
      return inconsistent(cat("move ", moves.text(0), " holds the row of ", move.id));
    }
    state.moves.put(std::make_shared<const MoveRecord>(std::move(move)));
  }
}

Result<State> load(sqlite::Database& db, std::int64_t version) {
  State state;
  NARAD_TRY(load_summary(db, state));
  NARAD_TRY(load_topics(db, state));
  NARAD_TRY(load_members(db, state));
  NARAD_TRY(load_users(db, state));
  NARAD_TRY(load_moves(db, state));
  if (version != kFormatWithLog) return state;
  NARAD_TRY(auto last, db.query_int64("SELECT coalesce(max(idx), 0) FROM log"));
  if (static_cast<std::uint64_t>(last) != state.applied.value()) {
    return inconsistent(cat("the log ends at entry ", last, ", the rows at entry ", state.applied));
  }
  return state;
}

Result<void> write_topic(Statements& sql, const TopicRow* before, const TopicRow* after) {
  const std::string& name = after != nullptr ? after->topic.name : before->topic.name;
  // Another life of the name shares nothing with the one before.
  if (before != nullptr && after != nullptr &&
      before->topic.incarnation != after->topic.incarnation) {
    NARAD_TRY(sql.drop_assignments.run(name));
    NARAD_TRY(sql.drop_schemas.run(name));
    before = nullptr;
  }
  if (after == nullptr) {
    // Deleted by a committed entry whose effect this is.
    NARAD_TRY(sql.drop_topic.run(name));
    NARAD_TRY(sql.drop_assignments.run(name));
    NARAD_TRY(sql.drop_schemas.run(name));
    return ok();
  }
  NARAD_TRY(sql.topic.run(name, encode_topic(after->topic, after->changed_at)));
  for (std::size_t p = 0; p < after->assignments.size(); ++p) {
    if (before != nullptr && p < before->assignments.size() &&
        before->assignments[p] == after->assignments[p]) {
      continue;
    }
    NARAD_TRY(sql.assignment.run(name, static_cast<std::uint64_t>(p),
                                 encode_assignment(after->assignments[p])));
  }
  // Versions are only ever added.
  const std::size_t known = before != nullptr ? before->schemas.size() : 0;
  for (std::size_t i = known; i < after->schemas.size(); ++i) {
    NARAD_TRY(sql.schema.run(name, after->schemas[i]->version, encode_schema(*after->schemas[i])));
  }
  return ok();
}

Result<void> write_difference(Statements& sql, const State& before, const State& after) {
  std::optional<Error> failure;
  const auto note = [&](Result<void> r) {
    if (!r && !failure) failure.emplace(r.error());
  };
  before.topics.diff(after.topics, [&](const TopicRow* a, const TopicRow* b) {
    if (!failure) note(write_topic(sql, a, b));
  });
  before.members.diff(after.members, [&](const Member* a, const Member* b) {
    if (failure) return;
    note(b != nullptr ? sql.member.run(b->id, encode_member(*b)) : sql.drop_member.run(a->id));
  });
  before.tombstones.diff(after.tombstones, [&](const Tombstone* a, const Tombstone* b) {
    if (failure) return;
    note(b != nullptr ? sql.tombstone.run(b->id, encode_tombstone(*b))
                      : sql.drop_tombstone.run(a->id));
  });
  before.deleted.diff(after.deleted, [&](const DeletedTopic* a, const DeletedTopic* b) {
    if (failure) return;
    note(b != nullptr ? sql.deleted.run(b->id, encode_deleted_topic(*b))
                      : sql.drop_deleted.run(a->id));
  });
  before.users.diff(after.users, [&](const User* a, const User* b) {
    if (failure) return;
    note(b != nullptr ? sql.user.run(b->username, encode_user(*b))
                      : sql.drop_user.run(a->username));
  });
  before.moves.diff(after.moves, [&](const MoveRecord* a, const MoveRecord* b) {
    if (failure) return;
    note(b != nullptr ? sql.move.run(b->id, encode_move(*b)) : sql.drop_move.run(a->id));
  });
  if (failure) return *failure;
  return sql.summary.run(encode_summary(after));
}

}  // namespace

struct Store::Impl {
  std::shared_ptr<sqlite::GenerationStore> generations;
  sqlite::Database db;
  std::optional<Statements> sql;

  Impl(std::shared_ptr<sqlite::GenerationStore> g, sqlite::Database d)
      : generations(std::move(g)), db(std::move(d)) {}
};

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

namespace {

// A database of its own that holds `state`, durably, and is the live one when it answers.
Result<sqlite::Database> make_database(sqlite::GenerationStore& generations, const State& state) {
  return generations.create_database(kName, kOptions, [&](sqlite::Database& fresh) -> Result<void> {
    NARAD_TRY(fresh.exec(kSchema));
    NARAD_TRY(fresh.exec(kLaterTables));
    NARAD_TRY(auto sql, Statements::prepare(fresh));
    NARAD_TRY(auto transaction, sqlite::Transaction::begin(fresh));
    NARAD_TRY(write_difference(sql, State{}, state));
    return transaction.commit();
  });
}

}  // namespace

Result<std::unique_ptr<Store>> Store::create(std::shared_ptr<sqlite::GenerationStore> generations,
                                             const State& state) {
  NARAD_TRY(auto db, make_database(*generations, state));
  auto impl = std::make_unique<Impl>(std::move(generations), std::move(db));
  NARAD_TRY(auto sql, Statements::prepare(impl->db));
  impl->sql.emplace(std::move(sql));
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

Result<Store::Opened> Store::open(std::shared_ptr<sqlite::GenerationStore> generations) {
  const std::string path = generations->path(kName);
  const auto explain = [&](const Error& e) {
    return e.code() == Errc::data_loss ? damaged(path, e) : e.with_context("metastore");
  };
  auto db = generations->open_database(kName, kOptions);
  if (!db) return explain(db.error());
  if (auto sound = db.value().quick_check(); !sound) return explain(sound.error());
  NARAD_TRY(auto version, read_version(db.value()));
  if (auto made = db.value().exec(kLaterTables); !made) return explain(made.error());
  auto state = load(db.value(), version);
  if (!state) return explain(state.error());
  auto impl = std::make_unique<Impl>(std::move(generations), std::move(db.value()));
  NARAD_TRY(auto sql, Statements::prepare(impl->db));
  impl->sql.emplace(std::move(sql));
  return Opened{std::unique_ptr<Store>(new Store(std::move(impl))), std::move(state.value()),
                version == kFormatWithLog};
}

Result<void> Store::commit(const State& before, const State& after) {
  NARAD_ASSERT(after.applied >= before.applied);
  NARAD_TRY(auto transaction, sqlite::Transaction::begin(impl_->db));
  NARAD_TRY(write_difference(*impl_->sql, before, after));
  return transaction.commit();
}

Result<void> Store::checkpoint() { return impl_->db.checkpoint(); }

Result<void> Store::drop_old_log() {
  {
    NARAD_TRY(auto transaction, sqlite::Transaction::begin(impl_->db));
    // Proof: the rows hold what its entries did, and so does the first snapshot of the Raft log,
    // which is durable.
    NARAD_TRY(impl_->db.exec("DROP TABLE log"));
    NARAD_TRY(impl_->db.exec(cat("PRAGMA user_version = ", kFormatVersion)));
    NARAD_TRY(transaction.commit());
  }
  return impl_->db.checkpoint();
}

Result<void> Store::replace(const State& state) {
  // Proof that the old rows may go: the caller's, who holds a later state whole and verified.
  NARAD_TRY(auto db, make_database(*impl_->generations, state));
  impl_->sql.reset();
  impl_->db = std::move(db);
  NARAD_TRY(auto sql, Statements::prepare(impl_->db));
  impl_->sql.emplace(std::move(sql));
  return ok();
}

bool Store::sync_failed() const { return impl_->db.sync_failed(); }

sqlite::Database Store::release() {
  impl_->sql.reset();
  return std::move(impl_->db);
}

}  // namespace narad::metastore
