#pragma once
// What one replica keeps on its disk, in the metastore's directory: `raft.<generation>.db` (SQLite:
// replica id, hard state, log, what the latest snapshot is) and `snapshot.<index>.<checksum>`, the
// snapshots themselves. Every call blocks: use it inside jobs. Calls on the database come one at a
// time; those on snapshot files may run beside them.
//
// Every transaction is durable when its call answers ok (Synchronous::full). After a failed sync
// (sync_failed()) the owner ends the process: the next start copies the file before it believes it.
//
// Installing a snapshot changes two databases, this one and the applied state: begin_install()
// writes down what is about to happen, and recover() finishes or forgets it, by whether the applied
// state got there.
#include <memory>
#include <string>
#include <vector>

#include "internal/raftnode/state_machine.h"
#include "pkg/base/result.h"
#include "pkg/env/fs.h"
#include "pkg/raft/core.h"

namespace narad::sqlite {
class Database;
class GenerationStore;
}  // namespace narad::sqlite

namespace narad::raftnode {

// Name of the database within the generation store.
inline constexpr std::string_view kLogName = "raft";

// The checksum of a snapshot: over its blocks of 256 KiB, each sealed with the sum before it.
class SnapshotSum {
 public:
  void add(ByteView bytes);
  std::uint64_t finish();
  std::uint64_t size() const { return size_; }

 private:
  Bytes block_;
  std::uint64_t sum_ = 0;
  std::uint64_t size_ = 0;
};

class LogStore {
 public:
  // A replica that has no past: empty, or the first of a group (a snapshot at index 0 with its
  // configuration, or at the index where an older format ended).
  struct Birth {
    raft::ReplicaId replica;  // drawn at random, never 0
    std::string node;
    raft::HardState hard_state;
    raft::SnapshotMeta snapshot;
  };

  // Makes the database live. REQUIRES: the generation store has none.
  static Result<std::shared_ptr<LogStore>> create(FileSystem& fs, std::string directory,
                                                  std::shared_ptr<sqlite::GenerationStore> store,
                                                  Birth birth);
  // REQUIRES: the generation store has one. Errors: data_loss, with the way out, if it is damaged;
  // conflict if it belongs to another node; internal for the format of another release.
  static Result<std::shared_ptr<LogStore>> open(FileSystem& fs, std::string directory,
                                                std::shared_ptr<sqlite::GenerationStore> store,
                                                std::string node);
  ~LogStore();

  raft::ReplicaId replica() const;
  const std::string& node() const;

  // ---- the database -----------------------------------------------------------------------------
  // What is stored, as the core takes it; `applied` is what the applied state holds. Ends an
  // install that a crash interrupted. data_loss if something is missing or contradicts itself.
  Result<raft::StartState> recover(raft::Index applied);
  // Stores Readies in order, in one transaction: entries, hard state, pieces of a snapshot.
  Result<void> write(const std::vector<const raft::Ready*>& readies);
  // Only of a replica without configuration, log and vote.
  Result<void> found(const raft::Configuration& configuration);
  // The snapshot's file is durable, and so is an applied state at or above it.
  Result<void> compact(const raft::SnapshotMeta& snapshot, raft::Core::LogBase base);
  Result<void> begin_install(const raft::SnapshotMeta& snapshot);
  Result<void> cancel_install();
  // The applied state holds the snapshot, durably: it replaces the whole log.
  Result<void> finish_install(const raft::SnapshotMeta& snapshot);
  bool sync_failed() const;
  // For closing. Nothing else may be called afterwards.
  sqlite::Database release();

  // ---- files of snapshots -----------------------------------------------------------------------
  // Writes the file, durably; answers `meta` with size and checksum.
  Result<raft::SnapshotMeta> write_snapshot(raft::SnapshotMeta meta, const SnapshotWriter& writer);
  // The same before there is a log store.
  static Result<raft::SnapshotMeta> write_first_snapshot(FileSystem& fs,
                                                         const std::string& directory,
                                                         raft::SnapshotMeta meta,
                                                         const SnapshotWriter& writer);
  Result<Bytes> read_chunk(const raft::SnapshotMeta& meta, std::uint64_t offset,
                           std::uint64_t length);
  // Checks the staged bytes and gives them their durable place. data_loss if they are not what
  // `meta` names.
  Result<void> accept_staged(const raft::SnapshotMeta& meta);
  // data_loss unless the file is there and whole.
  Result<void> verify_snapshot(const raft::SnapshotMeta& meta);
  // Removes every other snapshot file. REQUIRES: those of `keep` are all that anybody still names:
  // the latest one stored by compact() or finish_install(), and those being sent.
  Result<void> remove_snapshots_but(const std::vector<raft::SnapshotMeta>& keep);
  std::string path_of(const raft::SnapshotMeta& meta) const;

 private:
  struct Impl;
  explicit LogStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace narad::raftnode
