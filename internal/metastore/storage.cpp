#include "internal/metastore/storage.h"

#include "internal/metastore/snapshot.h"
#include "pkg/base/text.h"
#include "pkg/sqlite/generation_store.h"

namespace narad::metastore {

using raftnode::kLogName;
using raftnode::LogStore;

namespace {

constexpr std::size_t kReadBytes = 256u << 10;

Error with_way_out(const std::string& directory, const std::string& what) {
  const std::string data = parent_path(directory);
  return Error(Errc::data_loss,
               cat("metastore: ", what,
                   ". Nothing was changed, and messages in topics/ and ingress/ are untouched. See "
                   "what is wrong with: narad fsck --quick ",
                   data, ". Then put back a copy of the metastore directory and start again"));
}

raft::Configuration only(const StorageOptions& o) {
  return raft::Configuration::make({{o.replica, o.node, raft::MemberRole::voter}}).value();
}

struct Opener {
  FileSystem& fs;
  const std::string& directory;
  const StorageOptions& options;
  Storage out;

  Result<Storage> open();
  Result<void> make_log();
  Result<void> open_log();
  Result<void> open_state();
  Result<void> state_from_log();
  Result<void> set_state_aside();
  Result<void> migrate();
};

Result<Storage> Opener::open() {
  NARAD_TRY(make_directories(fs, directory));
  auto generations = sqlite::GenerationStore::open(
      fs, directory, {std::string(kLogName), std::string(kStateName)});
  if (!generations) {
    if (generations.error().code() != Errc::data_loss) return generations.error();
    return with_way_out(directory, generations.error().text());
  }
  out.generations = std::make_shared<sqlite::GenerationStore>(std::move(generations.value()));
  const bool has_state = out.generations->has(kStateName);
  if (!out.generations->has(kLogName) && has_state) {
    NARAD_TRY(migrate());
  } else {
    if (out.generations->has(kLogName)) {
      NARAD_TRY(open_log());
    } else {
      NARAD_TRY(make_log());
    }
    if (has_state) {
      NARAD_TRY(open_state());
    } else {
      NARAD_TRY(state_from_log());
    }
  }
  NARAD_TRY(out.start, out.log->recover(out.state.applied));
  const bool belongs_to_nothing = out.start.snapshot.configuration.empty() &&
                                  out.start.entries.empty() &&
                                  out.start.hard_state == raft::HardState();
  if (options.found_alone && belongs_to_nothing) {
    StorageOptions self = options;
    self.replica = out.log->replica();
    NARAD_TRY(out.log->found(only(self)));
    NARAD_TRY(out.start, out.log->recover(out.state.applied));
  }
  // Proof: nothing is being sent yet, and the log names this one as its latest.
  NARAD_TRY(out.log->remove_snapshots_but({out.start.snapshot}));
  return std::move(out);
}

// The log first: a state without one is of the release before Raft.
Result<void> Opener::make_log() {
  LogStore::Birth birth;
  birth.replica = options.replica;
  birth.node = options.node;
  if (options.found_alone) birth.snapshot.configuration = only(options);
  NARAD_TRY(out.log, LogStore::create(fs, directory, out.generations, std::move(birth)));
  return ok();
}

Result<void> Opener::open_log() {
  NARAD_TRY(out.log, LogStore::open(fs, directory, out.generations, options.node));
  return ok();
}

Result<void> Opener::open_state() {
  auto opened = Store::open(out.generations);
  if (!opened) {
    if (opened.error().code() != Errc::data_loss) return opened.error();
    auto made = state_from_log();
    if (!made) return made.error().code() == Errc::data_loss ? opened.error() : made.error();
    out.repaired = opened.error().text();
    return ok();
  }
  out.store = std::move(opened.value().store);
  out.state = std::move(opened.value().state);
  // The Raft log was made from it, so nothing but that is left to do (migrate()).
  if (opened.value().has_old_log) return out.store->drop_old_log();
  return ok();
}

// The state as the latest snapshot has it, or the empty one before any.
Result<void> Opener::state_from_log() {
  NARAD_TRY(auto stored, out.log->recover(RaftIndex(0)));
  State state;
  if (stored.snapshot.index > RaftIndex(0)) {
    NARAD_TRY(out.log->verify_snapshot(stored.snapshot));
    NARAD_TRY(state, read_snapshot_file(fs, out.log->path_of(stored.snapshot)));
    if (state.applied != stored.snapshot.index) {
      return with_way_out(directory, "the latest snapshot holds another state than it says");
    }
  }
  NARAD_TRY(set_state_aside());
  // Proof that a live one may go: it is damaged, a copy lies beside it, and what it held is in the
  // snapshot, which was just verified, and in the log after it.
  NARAD_TRY(out.store, Store::create(out.generations, state));
  out.state = std::move(state);
  return ok();
}

// Keeps the damaged files for people.
Result<void> Opener::set_state_aside() {
  if (!out.generations->has(kStateName)) return ok();
  const std::string path = out.generations->path(kStateName);
  for (std::string_view suffix : {"", "-wal"}) {
    auto moved = fs.rename(cat(path, suffix), cat(path, suffix, ".damaged"));
    if (!moved && moved.error().code() != Errc::not_found) return moved.error();
  }
  return fs.sync_dir(directory);
}

Result<void> Opener::migrate() {
  NARAD_TRY(auto opened, Store::open(out.generations));
  if (!opened.has_old_log) {
    return with_way_out(directory, cat(directory, " holds a state, but not the Raft log that ",
                                       "every state of this format has beside it"));
  }
  out.store = std::move(opened.store);
  out.state = std::move(opened.state);
  LogStore::Birth birth;
  birth.replica = options.replica;
  birth.node = options.node;
  birth.snapshot.index = out.state.applied;
  birth.snapshot.configuration = only(options);
  if (birth.snapshot.index > RaftIndex(0)) {
    birth.snapshot.term = raft::Term(1);
    birth.hard_state = {raft::Term(1), raft::ReplicaId(), birth.snapshot.index};
    const auto writer = [this](const raftnode::SnapshotSink& sink) {
      return write_snapshot(out.state, sink);
    };
    NARAD_TRY(birth.snapshot,
              LogStore::write_first_snapshot(fs, directory, birth.snapshot, writer));
  }
  // Live only once it is whole: until then the next start migrates afresh.
  NARAD_TRY(out.log, LogStore::create(fs, directory, out.generations, std::move(birth)));
  return out.store->drop_old_log();
}

}  // namespace

Result<Storage> open_storage(FileSystem& fs, const std::string& directory, StorageOptions options) {
  Opener opener{fs, directory, options, {}};
  return opener.open();
}

Result<void> close_storage(Storage& storage) {
  std::vector<sqlite::Database> open;
  open.push_back(storage.log->release());
  open.push_back(storage.store->release());
  return storage.generations->close_clean(std::move(open));
}

Result<State> read_snapshot_file(FileSystem& fs, const std::string& path) {
  NARAD_TRY(auto file, fs.open(path, OpenMode::read));
  NARAD_TRY(auto size, file->size());
  SnapshotReader reader;
  Bytes buffer(kReadBytes);
  for (std::uint64_t at = 0; at < size;) {
    const std::size_t want = std::min<std::uint64_t>(buffer.size(), size - at);
    NARAD_TRY(read_exact(*file, std::span(buffer).first(want), at));
    NARAD_TRY(reader.feed(ByteView(buffer).first(want)));
    at += want;
  }
  return reader.finish();
}

}  // namespace narad::metastore
