#include "internal/metastore/snapshot.h"

#include "internal/metastore/codec.h"
#include "pkg/base/text.h"

namespace narad::metastore {
namespace {

constexpr std::string_view kMagic = "NRMS";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 8;
constexpr std::size_t kRowHeaderBytes = 5;

enum class Table : std::uint8_t {
  summary = 1,
  topic = 2,
  assignment = 3,
  schema = 4,
  member = 5,
  tombstone = 6,
  deleted = 7,
  user = 8,
  move = 9,
  end = 255,
};

Error wrong(std::string_view what) {
  return Error(Errc::data_loss, cat("snapshot of the metastore: ", what));
}

}  // namespace

Result<void> write_snapshot(const State& state, const std::function<Result<void>(ByteView)>& sink) {
  std::optional<Error> failure;
  Bytes out;
  std::uint64_t rows = 0;
  const auto put = [&](Table table, ByteView doc) {
    if (failure) return;
    out.clear();
    ByteWriter writer(out);
    writer.u8(static_cast<std::uint8_t>(table));
    writer.u32(static_cast<std::uint32_t>(doc.size()));
    writer.bytes(doc);
    if (auto r = sink(out); !r) failure.emplace(r.error());
  };
  const auto add = [&](Table table, std::string_view doc) {
    ++rows;
    put(table, as_bytes(doc));
  };
  ByteWriter header(out);
  header.bytes(as_bytes(kMagic));
  header.u32(kVersion);
  NARAD_TRY(sink(out));
  add(Table::summary, encode_summary(state));
  state.topics.for_each([&](const TopicRowPtr& row) {
    add(Table::topic, encode_topic(row->topic, row->changed_at));
    for (const Assignment& a : row->assignments) add(Table::assignment, encode_assignment(a));
    for (const auto& s : row->schemas) add(Table::schema, encode_schema(*s));
  });
  state.members.for_each([&](const auto& m) { add(Table::member, encode_member(*m)); });
  state.tombstones.for_each([&](const auto& t) { add(Table::tombstone, encode_tombstone(*t)); });
  state.deleted.for_each([&](const auto& d) { add(Table::deleted, encode_deleted_topic(*d)); });
  state.users.for_each([&](const UserPtr& u) { add(Table::user, encode_user(*u)); });
  state.moves.for_each([&](const auto& m) { add(Table::move, encode_move(*m)); });
  Bytes count;
  ByteWriter(count).u64(rows);
  put(Table::end, count);
  if (failure) return *failure;
  return ok();
}

Result<void> SnapshotReader::close_topic() {
  if (!topic_) return ok();
  if (topic_->assignments.size() != topic_->topic.partitions) {
    return wrong(cat("topic ", topic_->topic.name, " has ", topic_->topic.partitions,
                     " partitions and ", topic_->assignments.size(), " assignments"));
  }
  state_.topics.put(std::move(topic_));
  topic_.reset();
  return ok();
}

Result<void> SnapshotReader::row(std::uint8_t table, std::string_view doc) {
  const auto kind = static_cast<Table>(table);
  const bool of_topic = kind == Table::assignment || kind == Table::schema;
  if (of_topic != false && !topic_) return wrong("a row belongs to no topic");
  if ((rows_ == 0) != (kind == Table::summary)) return wrong("the summary is not its first row");
  if (!of_topic) {
    NARAD_TRY(close_topic());
  }
  ++rows_;
  switch (kind) {
    case Table::summary:
      return decode_summary(doc, state_);
    case Table::topic: {
      NARAD_TRY(auto decoded, decode_topic(doc));
      topic_ = std::make_shared<TopicRow>();
      topic_->topic = std::move(decoded.topic);
      topic_->changed_at = decoded.changed_at;
      return ok();
    }
    case Table::assignment: {
      NARAD_TRY(auto assignment, decode_assignment(doc));
      topic_->assignments.push_back(std::move(assignment));
      return ok();
    }
    case Table::schema: {
      NARAD_TRY(auto schema, decode_schema(doc));
      if (schema.version != topic_->schemas.size() + 1) {
        return wrong(cat("topic ", topic_->topic.name, " lacks a schema version"));
      }
      topic_->schemas.push_back(std::make_shared<const SchemaVersion>(std::move(schema)));
      return ok();
    }
    case Table::member: {
      NARAD_TRY(auto member, decode_member(doc));
      state_.members.put(std::make_shared<const Member>(std::move(member)));
      return ok();
    }
    case Table::tombstone: {
      NARAD_TRY(auto tombstone, decode_tombstone(doc));
      state_.tombstones.put(std::make_shared<const Tombstone>(std::move(tombstone)));
      return ok();
    }
    case Table::deleted: {
      NARAD_TRY(auto deleted, decode_deleted_topic(doc));
      state_.deleted.put(std::make_shared<const DeletedTopic>(std::move(deleted)));
      return ok();
    }
    case Table::user: {
      NARAD_TRY(auto user, decode_user(doc));
      state_.users.put(std::make_shared<const User>(std::move(user)));
      return ok();
    }
    case Table::move: {
      NARAD_TRY(auto move, decode_move(doc));
      state_.moves.put(std::make_shared<const MoveRecord>(std::move(move)));
      return ok();
    }
    case Table::end:
      break;
  }
  return wrong(cat("it has a table ", table, " that this release does not know"));
}

Result<void> SnapshotReader::feed(ByteView bytes) {
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  ByteView rest(pending_);
  if (!begun_) {
    if (rest.size() < kHeaderBytes) return ok();
    if (as_chars(rest.first(kMagic.size())) != kMagic) return wrong("it is none");
    if (load_le<std::uint32_t>(rest.data() + kMagic.size()) != kVersion) {
      return wrong("its version is unknown to this release");
    }
    begun_ = true;
    rest = rest.subspan(kHeaderBytes);
  }
  while (rest.size() >= kRowHeaderBytes) {
    if (ended_) return wrong("something follows its end");
    const auto table = std::to_integer<std::uint8_t>(rest[0]);
    const auto length = load_le<std::uint32_t>(rest.data() + 1);
    if (length > kSnapshotRowMax) return wrong("a row is too long");
    if (rest.size() - kRowHeaderBytes < length) break;
    const ByteView doc = rest.subspan(kRowHeaderBytes, length);
    if (static_cast<Table>(table) != Table::end) {
      NARAD_TRY(row(table, as_chars(doc)));
    } else {
      if (length != 8 || load_le<std::uint64_t>(doc.data()) != rows_ || rows_ == 0) {
        return wrong("rows are missing");
      }
      NARAD_TRY(close_topic());
      ended_ = true;
    }
    rest = rest.subspan(kRowHeaderBytes + length);
  }
  pending_ = Bytes(rest.begin(), rest.end());
  return ok();
}

Result<State> SnapshotReader::finish() {
  if (!ended_ || !pending_.empty()) return wrong("it does not end where it should");
  return std::move(state_);
}

}  // namespace narad::metastore
