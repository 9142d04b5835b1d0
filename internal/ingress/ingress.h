#pragma once
// The ingress WAL as an actor on the node's loop: takes any message, makes it durable, answers
// (202), and gives the durable ones to the dispatcher until they are settled.
//
// Acknowledged after: one write and one datasync of the WAL segment that holds the record. Requests
// that arrive while a sync is in flight share the next one. A crash at any point keeps every record
// whose accept() had answered success, and may keep ones that had not answered yet.
//
// Errors of the disk (README.md has the table): a failed write or a full disk refuses with
// `unavailable` until it passes; a failed sync ends the process with kExitSyncFailed.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "internal/model/message.h"
#include "pkg/async/event.h"
#include "pkg/async/task.h"
#include "pkg/base/result.h"

namespace narad::ingress {

struct Options {
  std::string directory;                          // "<data>/ingress"; created if absent
  std::uint64_t max_backlog_bytes = 10ull << 30;  // of WAL segments on disk
  std::uint64_t segment_bytes_max = 16u << 20;    // roll before a write that would pass it
  std::uint64_t preallocate_bytes = 512u << 10;   // step in which space is reserved ahead
  std::uint64_t group_bytes_max = 8u << 20;       // accept() waits while a group is this full
  std::uint64_t memory_bytes_max = 64u << 20;     // durable records kept for the dispatcher
  std::uint32_t disk_reserve_percent = 5;         // of the disk, never written into
  Nanos open_retry = std::chrono::seconds(10);    // when opening failed for a passing reason
  Nanos refusal_retry = std::chrono::seconds(1);  // when a write failed
  // Between stores of the checkpoint; an idle, handed-over WAL is cut below 1 MiB after two of
  // them.
  Nanos checkpoint_interval = std::chrono::seconds(1);
};

enum class State : std::uint8_t {
  opening,   // not open yet: start() has not finished, or the disk keeps it from opening
  open,      // accepts
  refusing,  // a write failed or space ran out; probing
  closed,    // close() began, or a sync failed and the process is ending
};
std::string_view to_string(State state);

struct Stats {
  State state = State::opening;
  std::string reason;  // empty while open; otherwise what is wrong and what happens next
  Sequence checkpoint{1};
  Sequence durable_end{1};
  std::uint64_t backlog_bytes = 0;  // bytes of WAL segments on disk
  std::uint64_t segments = 0;
  std::uint64_t memory_bytes = 0;  // of durable records kept for the dispatcher
  std::uint64_t accepted = 0;      // records made durable by this process
  std::uint64_t refused = 0;       // records answered with an error
  std::uint64_t groups = 0;        // syncs that made records durable
  std::uint64_t disk_reads = 0;    // jobs that read records back from disk
  std::uint64_t shrinks = 0;       // times an idle WAL was cut below 1 MiB
  std::uint64_t checkpoint_failures = 0;
};

// Records of these origins, below that sequence, were settled: committed by their partition or by
// another of the topic, or discarded with it.
struct HandedOver {
  std::vector<OriginId> origins;
  Sequence below{0};
  bool covers(OriginId origin, Sequence sequence) const {
    return sequence < below && std::find(origins.begin(), origins.end(), origin) != origins.end();
  }
};

// Whether a WAL lies in `directory`: a segment or a checkpoint. An absent directory holds none.
// Blocking.
Result<bool> has_wal(FileSystem& fs, const std::string& directory);

class Ingress {
 public:
  Ingress(Env& env, Options options);
  // REQUIRES: never started, or close() has returned, or the node was killed in simulation.
  ~Ingress();
  Ingress(const Ingress&) = delete;

  // Recovers the WAL and opens it. data_loss or invalid_argument: refused, nothing was changed, the
  // node must not start (the text names the place and the command to run). Any other trouble of the
  // disk is not an error here: the ingress stays in State::opening, accept() refuses, and opening
  // is tried again every Options::open_retry.
  Task<Result<void>> start();

  // Makes the message durable. Success (its sequence) only after the sync. unavailable: certainly
  // not accepted; unknown_outcome: a failed write could not be taken back, so it may yet be
  // delivered; too_large, invalid_argument: never acceptable. Once the record is staged, cancelling
  // the caller does not end the wait: the true outcome is reported.
  Task<Result<Sequence>> accept(MessagePtr message);
  // All or none of them, in one sync; success is the sequence of the first, the others follow it
  // without a gap. REQUIRES: not empty.
  Task<Result<Sequence>> accept_batch(std::vector<MessagePtr> messages);

  // Accepts nothing more, finishes what is staged, stores the checkpoint and marks the WAL clean.
  // The dispatcher has stopped before. Idempotent.
  Task<Result<void>> close();

  Stats stats() const;
  bool is_open() const;  // the WAL was opened (it may be refusing right now)

  // Of what records this node knows that they were handed over.
  HandedOver handed_over() const;

  // ---- for the dispatcher: dispatch::RecordSource has the contract ---------------------------
  Sequence checkpoint() const;
  Sequence durable_end() const;
  Event& changed();
  Task<Result<std::vector<DurableRecord>>> read(Sequence from, std::size_t records_max,
                                                std::uint64_t bytes_max);
  void advance_checkpoint(Sequence checkpoint);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace narad::ingress
