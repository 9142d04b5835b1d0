#pragma once
// The open partitions of a node: opens them on first use, keeps log and delivery together, closes
// idle ones, and removes those of deleted topics. Lives on the node's loop.
//
// One lock per topic name orders opening, closing and removing of its partitions; other topics are
// never held up by it. Whoever works with a partition holds a Pin: a pinned partition is not closed
// for idleness. Opening, closing and removing run to their end even if the caller is cancelled.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "internal/delivery/delivery.h"
#include "internal/metastore/metastore.h"
#include "internal/node/data_dir.h"
#include "internal/partition/partition.h"
#include "pkg/async/event.h"
#include "pkg/async/shield.h"
#include "pkg/seglog/retention.h"

namespace narad::node {

struct OpenPartition {
  TopicPartition id;
  std::uint64_t opening = 0;  // number of this opening, unique within the process
  Incarnation incarnation{0};
  // The ownership it was opened under: Assignment::owner_disk and owned_by_move.
  std::string disk;
  RaftIndex by_move{0};
  std::string directory;
  std::shared_ptr<Partition> log;
  std::shared_ptr<delivery::Delivery> delivery;
  Nanos last_used{0};
  std::uint32_t pins = 0;
};

// Keeps a partition open while it lives. Movable; on the loop only.
class [[nodiscard]] Pin {
 public:
  Pin() = default;
  Pin(std::shared_ptr<OpenPartition> partition, const Clock& clock);
  Pin(Pin&& other) noexcept = default;
  Pin& operator=(Pin&& other) noexcept;
  ~Pin() { release(); }
  OpenPartition* operator->() const { return partition_.get(); }
  const std::shared_ptr<OpenPartition>& shared() const { return partition_; }

 private:
  void release();
  std::shared_ptr<OpenPartition> partition_;
  const Clock* clock_ = nullptr;
};

struct PartitionsOptions {
  std::string node_id;
  seglog::Knobs log;
  Nanos idle_close{0};                         // 0: never
  std::uint64_t read_ahead_bytes = 64u << 20;  // of all deliveries together
  std::size_t cache_bytes = 128u << 20;        // of recent records, of all partitions together
  std::function<bool(OriginId, Sequence)> handed_over;  // PartitionOptions::handed_over
  // The gate of the ownership that the row shows; empty: partitions have none.
  std::function<std::shared_ptr<CommitGate>(const TopicPartition&, const Assignment&)> gate;
};

enum class OpenFor : std::uint8_t {
  read,    // a partition never used has nothing to read: not_found
  commit,  // marks it used (a metastore entry) and creates it if it never was
};

// Makes way for another life of a topic's name: a directory of the life `life` (nothing: unknown)
// is removed if `view` holds the deletion of that life, else set aside; answers where to, empty if
// it was removed. REQUIRES: nothing of that life is open; `view` is an applied state. Blocking.
Result<std::string> clear_life(FileSystem& fs, const Disk& disk, const std::string& topic,
                               std::optional<Incarnation> life, const metastore::State& view);

class Partitions {
 public:
  // `data` and `metastore` outlive this.
  Partitions(Env& env, PartitionsOptions options, const DataDir& data,
             metastore::Proposer& metastore);
  ~Partitions();  // REQUIRES: close_all() has returned, or nothing was opened

  // Errors: not_found (no such topic or partition, or never used and opened for reading), gone
  // (another incarnation), not_owner, unavailable (not assigned yet; the disk or the directory of a
  // used partition is missing: `data_missing`; closing; or what opening met).
  Task<Result<Pin>> open(TopicPartition id, Incarnation incarnation, OpenFor purpose);

  // The waiters of all partitions of a topic.
  std::shared_ptr<delivery::Waiters> topic_waiters(const std::string& topic);
  // Topics of which something is kept in memory: all that are in use, and some that were.
  static constexpr std::size_t kTopicsKept = 1024;
  std::size_t topics_kept() const { return topics_.size(); }

  // Wakes everybody on this node who waits for messages of any topic.
  void wake_all();
  // Wakes everybody who waits for messages of that topic, here and on other nodes.
  void wake_topic(const std::string& topic);

  // `listener` is told of messages that became available here and that nobody here sleeps for;
  // empty: nobody is.
  using WakeListener = std::function<void(const std::string& topic, std::uint64_t records)>;
  void on_wake(WakeListener listener) { *wake_listener_ = std::move(listener); }

  // Sets the directory of a topic aside unless it belongs to the life that the metastore shows, or
  // deletes it if the metastore holds the deletion of its life. Answers the new path, or nothing if
  // it stayed. REQUIRES: the view is behind a barrier made after the directory was found.
  Task<Result<std::string>> sweep_directory(const Disk& disk, std::string topic);

  // What is open now, in order. Pointers stay valid; the partitions may close.
  std::vector<std::shared_ptr<OpenPartition>> open_now() const;
  // Null if it is not open.
  std::shared_ptr<OpenPartition> find_open(const TopicPartition& id) const;

  // Closes the open partitions of that incarnation and removes its data from every disk.
  // REQUIRES (proof): the metastore applied the deletion of this incarnation.
  Task<Result<void>> remove_topic(std::string topic, Incarnation incarnation);

  // Runs `work` in a job while nobody can open, close or remove a partition of the topic here, and
  // with this one closed; `may`, asked before anything is closed and once more right before the
  // job, can refuse. Runs to its end even if the caller is cancelled.
  using Check = std::function<Result<void>()>;
  using Work = std::function<Result<std::string>(FileSystem&)>;
  Task<Result<std::string>> with_closed(TopicPartition id, Check may, Work work);

  // Deletes what the retention of each topic allows, on open and on closed partitions. `trusted`:
  // the wall clock may judge. Answers the first error, after having tried all.
  struct Retained {
    TopicPartition id;
    seglog::RetentionOutcome outcome;
  };
  Task<Result<std::vector<Retained>>> apply_retention(UnixMillis now, bool trusted);

  // Closes what has another home now by the applied state, and lets those who wait there look
  // again; answers how many.
  Task<std::size_t> close_elsewhere();
  // Closes what nobody has used for the idle time; answers how many.
  Task<std::size_t> close_idle();
  Task<void> close_all();

 private:
  struct TopicSlot {
    TopicSlot(Env& env, delivery::Waiters::Listener listener)
        : lock(env), waiters(std::make_shared<delivery::Waiters>(std::move(listener))) {}
    Mutex lock;
    std::shared_ptr<delivery::Waiters> waiters;
  };

  Task<Result<Pin>> open_now_or_wait(TopicPartition id, Incarnation incarnation, OpenFor purpose);
  Task<Result<void>> remove_whole_topic(std::string topic, Incarnation incarnation);
  Task<Result<std::string>> work_closed(TopicPartition id, Check may, Work work);
  Task<bool> close_if_idle(std::shared_ptr<OpenPartition> partition);
  bool is_idle(const OpenPartition& partition) const;
  Task<bool> close_if_elsewhere(std::shared_ptr<OpenPartition> partition);
  // Whether the applied state still shows the ownership it was opened under.
  bool still_here(const OpenPartition& partition) const;
  bool has_moved(const OpenPartition& partition) const;
  std::shared_ptr<TopicSlot> topic_slot(const std::string& topic);
  void forget_topics();
  // The row of the partition, or the error of open().
  Result<Assignment> check(const TopicPartition& id, Incarnation incarnation) const;
  Task<Result<void>> mark_used(TopicPartition id, Assignment row);
  Task<Result<std::shared_ptr<OpenPartition>>> open_files(TopicPartition id, Assignment row,
                                                          std::shared_ptr<TopicSlot> slot);
  Task<Result<seglog::RetentionOutcome>> retain(TopicPartition id, Assignment row,
                                                std::int64_t retention_ms, UnixMillis now,
                                                bool trusted);
  // Closes what is open of the topic's lives for which `which` holds. REQUIRES: the topic's lock.
  Task<void> close_lives(const std::string& topic, const std::function<bool(Incarnation)>& which);
  // Closes one that is not in the map any more.
  Task<void> close(std::shared_ptr<OpenPartition> partition);

  Env& env_;
  PartitionsOptions options_;
  const DataDir& data_;
  metastore::Proposer& metastore_;
  std::shared_ptr<delivery::ReadAheadBudget> read_ahead_;
  std::shared_ptr<CacheBudget> cache_;
  std::map<TopicPartition, std::shared_ptr<OpenPartition>> open_;
  std::map<std::string, std::shared_ptr<TopicSlot>> topics_;
  std::size_t forget_at_ = kTopicsKept;
  // Shared with the waiters, which may outlive this.
  std::shared_ptr<WakeListener> wake_listener_ = std::make_shared<WakeListener>();
  std::uint64_t openings_ = 0;
  bool closing_ = false;
  Shield shield_;
};

}  // namespace narad::node
