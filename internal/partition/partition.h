#pragma once
// Partition: one owned partition, as an actor on the node's loop over one SegmentedLog
// (pkg/seglog/log.h). Group commit: batches that arrive while a sync is in flight share the next
// write and sync. Readers at the tail are served from memory.
//
// Promise: a batch is answered ok only after its records are durable and read back; hwm() advances
// with them, in memory, at that moment. After a crash every such record is there, at its offset.
//
// Owner: whoever open()s it holds the shared_ptr, and calls close() and waits for it before letting
// go. Callers of coroutine members hold a shared_ptr until they have returned. All members must be
// called on the loop.
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "internal/model/message.h"
#include "internal/model/names.h"
#include "internal/partition/cache_budget.h"
#include "internal/partition/record_cache.h"
#include "internal/partition/write_rate.h"
#include "pkg/async/event.h"
#include "pkg/async/task.h"
#include "pkg/async/task_group.h"
#include "pkg/seglog/log.h"

namespace narad {

// Whether this node may commit to the partition at this moment (frozen, lease, raft index): moves
// provide one; without it every commit may go ahead. Lives on the loop, outlives the partition's
// close().
class CommitGate {
 public:
  virtual ~CommitGate() = default;
  // Before records are compared with the origin table or appended. An error is the batch's answer
  // (unavailable for "not now").
  virtual Result<void> before_append(const CommitBatch& batch) = 0;
  // After the sync, before the HWM advances. An error makes the whole group a failed commit.
  virtual Result<void> after_sync() = 0;
};

struct PartitionOptions {
  std::string directory;  // exists, unless create_if_missing (then it is made)
  TopicPartition name;
  Incarnation incarnation{0};  // the life of the topic that the directory belongs to
  seglog::Knobs knobs;
  bool create_if_missing = false;
  // Records below it were committed once (seglog/log.h).
  Offset durable_below{0};
  // Whether the sender of these records was told that they are committed (or that another partition
  // has them): a cut of such records is no ordinary picture after a crash. Empty: nothing is known.
  std::function<bool(OriginId, Sequence)> handed_over;
  std::shared_ptr<CommitGate> gate;       // null: always open
  std::shared_ptr<CacheBudget> cache;     // null: a budget of its own, of tail_bytes_max
  std::size_t tail_bytes_max = 4u << 20;  // recent records kept in memory
  std::size_t tail_records_max = 65'536;
  std::size_t group_bytes_max = 16u << 20;  // records written with one sync
  std::size_t queue_bytes_max = 64u << 20;  // records waiting; more are answered busy
  Nanos hwm_interval = std::chrono::seconds(5);
  Nanos repair_interval = std::chrono::seconds(10);
};

struct PartitionStats {
  seglog::LogStats log;
  seglog::OpenReport open;
  std::uint64_t batches = 0;   // answered ok
  std::uint64_t groups = 0;    // writes that carried them
  std::uint64_t appended = 0;  // records
  std::uint64_t known = 0;     // records recognised as committed before
  std::uint64_t failed = 0;    // batches answered with an error after they were queued
  std::uint64_t queued_bytes = 0;
  std::uint64_t reads_cached = 0, reads_disk = 0, read_errors = 0;
  std::uint64_t lost_records_read = 0;  // sum of lost ranges met by reads from disk
  std::uint64_t repairs_failed = 0;
  std::size_t cache_bytes = 0;
  std::uint64_t bytes_per_second = 0;  // committed lately
};

class Partition {
 public:
  // Opens (recovers if needed) or creates the log. Errors as SegmentedLog::open.
  static Task<Result<std::shared_ptr<Partition>>> open(Env& env, PartitionOptions options);
  ~Partition();  // REQUIRES: close() has returned, or the loop is dead
  Partition(const Partition&) = delete;

  // Appends what is not committed yet and answers when all of it is durable. Once it has been
  // queued the batch goes on even if the caller is cancelled. Errors: conflict (another
  // incarnation), what the gate says, busy (queue full), too_large, invalid_argument, unavailable
  // (latched, disk full or failing, closed): nothing of the batch is committed then.
  Task<Result<CommitOutcome>> commit(CommitBatch batch);

  // Records at `from` and above, below the HWM: at most max_records, about max_bytes of key and
  // payload, at least one record or lost range if there is any. An empty answer with next == from
  // means that `from` is at or above the HWM. Errors: gone (`from` is below oldest()), unavailable
  // (the disk fails, or closed).
  Task<Result<ReadBatch>> read(Offset from, std::size_t max_records, std::size_t max_bytes);
  // The same from memory alone, without suspending; nothing if the disk is needed.
  std::optional<ReadBatch> read_cached(Offset from, std::size_t max_records, std::size_t max_bytes);

  Offset hwm() const { return view_->hwm; }
  Offset oldest() const { return view_->oldest(); }
  // End of what is written, visible or not: hwm() plus what is being committed right now.
  Offset log_end() const { return view_->hwm.plus(in_flight_records_); }
  // What segment reads and listings may show: whole frames below the HWM.
  seglog::LogViewPtr view() const { return view_; }

  // Notified at every advance of the HWM, and when the partition closes. Re-check your condition.
  Event& committed() { return committed_; }

  // What the log holds behind every commit that is under way now: with the gate shut nothing lands
  // behind it. Errors: unavailable (closed).
  Task<Result<seglog::LogViewPtr>> settled_view();
  // Digests of the active segment's committed bytes as they were written, and the view they belong
  // to; none if they are not known (opened after a clean close). Waits behind a running commit.
  struct ActiveDigests {
    seglog::LogViewPtr view;
    std::optional<std::vector<std::uint64_t>> blocks;
  };
  Task<Result<ActiveDigests>> active_digests();
  // Makes them known from here on, from what has read the beginning of the active segment
  // (seglog/sums.h). Waits behind a running commit. Errors: unavailable (closed).
  Task<Result<void>> adopt_digests(Offset base, seglog::BlockDigester digester);

  // Waits behind a running commit. See seglog/retention.h.
  Task<Result<seglog::RetentionOutcome>> apply_retention(UnixMillis now, std::int64_t retention_ms,
                                                         bool trusted);
  // Lets what is queued finish, then closes the log cleanly. Idempotent; later calls are refused.
  Task<void> close();
  bool closed() const { return closing_; }

  // Whether commits are refused until a fresh copy of the active segment is made (tried every
  // repair_interval), and why in words for /readyz; empty while serving.
  bool latched() const { return !latched_text_.empty(); }
  const std::string& latched_text() const { return latched_text_; }

  PartitionStats stats() const;
  const TopicPartition& name() const { return options_.name; }
  Incarnation incarnation() const { return options_.incarnation; }
  const std::string& directory() const { return options_.directory; }
  LogId id() const;
  // When it was last read from or committed to (mono clock), and whether it is at it now: for
  // closing idle logs.
  Nanos last_used() const { return last_used_; }
  bool busy() const;

 private:
  struct Request;
  struct Command;
  using CommandPtr = std::shared_ptr<Command>;

  Partition(Env& env, PartitionOptions options, std::unique_ptr<seglog::SegmentedLog> log);
  // The worker: one task at most, which alone starts jobs on log_. It lives while there is
  // something to do or to come back for.
  void wake_worker();
  Task<void> work();
  bool has_runnable_command() const;
  Task<Result<void>> run_in_turn(CommandPtr command);
  Task<void> run_command();
  Task<void> close_log();
  std::vector<std::shared_ptr<Request>> next_group();
  Task<void> commit_group();
  void publish_group(const std::vector<std::shared_ptr<Request>>& group,
                     const std::vector<seglog::AppendOutcome>& outcomes);
  void finish(Request& request, Result<CommitOutcome> result);
  // When it has to look after the log by itself (mono clock); nothing: never.
  std::optional<Nanos> due() const;
  Task<void> look_after();
  void take_log_state();
  Task<Result<ReadBatch>> read_disk(Offset from, ReadLimits limits);
  std::optional<ReadBatch> find(Offset from, ReadLimits limits);

  Env& env_;
  PartitionOptions options_;
  // Touched by one job at a time, started by the worker alone; by the loop between jobs.
  std::shared_ptr<seglog::SegmentedLog> log_;
  seglog::LogViewPtr view_;
  seglog::LogStats log_stats_;
  Event committed_;
  Event wake_;
  Event log_closed_event_;
  std::deque<std::shared_ptr<Request>> queue_;
  std::deque<CommandPtr> commands_;
  std::size_t queued_bytes_ = 0;
  std::uint64_t in_flight_records_ = 0;
  std::size_t readers_ = 0;  // disk reads under way
  bool working_ = false;
  bool closing_ = false;
  bool log_closed_ = false;
  std::string latched_text_;
  Nanos repair_due_{0};           // while latched
  std::optional<Nanos> hwm_due_;  // while the watermark has moved past its file
  Nanos last_used_{0};
  PartitionStats stats_;
  WriteRate rate_;
  RecordCache cache_;
  TaskGroup tasks_;
};

}  // namespace narad
