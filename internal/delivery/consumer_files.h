#pragma once
// The files of a partition's consumer state (formats: consumer_state.h): read at opening, an entry
// of acks appended every tick, a snapshot now and then. Blocking; Delivery calls it inside jobs.
#include <memory>
#include <string>
#include <vector>

#include "internal/delivery/consumer_state.h"
#include "pkg/base/result.h"
#include "pkg/env/fs.h"

namespace narad::delivery {

// A snapshot is due once the journal is this large, and at the latest at the second size.
inline constexpr std::uint64_t kJournalBytesSnapshot = 64 * 1024;
inline constexpr std::uint64_t kJournalBytesMax = 1024 * 1024;

// What open() found, for the log and the counters.
struct ConsumerStateReport {
  // One sentence per file that could not be used; what it held is delivered again.
  std::vector<std::string> unreadable;
  // Positions at or above the HWM were forgotten (and what is left stored before open() answered).
  bool clamped = false;
  Offset frontier_before{0};  // as stored, before the clamp
};

// The two files of one partition. Every call blocks: use it inside jobs, one at a time.
//
// A failed write or sync leaves nothing in doubt for long: no ack counts as stored until snapshot()
// has written both files anew (must_snapshot() is true until it has).
class ConsumerFiles {
 public:
  struct Opened;
  // Reads what is stored for `identity` in the partition's `directory`, which exists, and clamps it
  // to `hwm`: if anything was at or above, the clamped state is on disk when it returns, so that
  // offsets which are given to other records later are delivered. Errors: what the disk said
  // (retry later), or unavailable for a file of an unknown version.
  static Result<Opened> open(FileSystem& fs, std::string directory, std::uint64_t identity,
                             Offset hwm);

  // Adds one entry: one write and one datasync. Durable when it returns. REQUIRES: runs ascending
  // and apart, not empty; !must_snapshot().
  Result<void> append(const std::vector<OffsetRun>& runs);
  // Replaces the snapshot; durable when it returns ok. What is in the journal no longer counts.
  Result<void> snapshot(const ConsumerPositions& positions);

  bool must_snapshot() const { return must_snapshot_; }
  // Bytes of entries that follow the current snapshot.
  std::uint64_t journal_bytes() const { return journal_end_ - kConsumerHeaderBytes; }

 private:
  ConsumerFiles(FileSystem& fs, std::string directory, std::uint64_t identity);
  Result<void> load_snapshot(ConsumerStateReport& report, ConsumerPositions& positions);
  Result<void> load_journal(ConsumerStateReport& report, ConsumerPositions& positions);
  Result<void> remove_leftovers();
  Result<void> begin_journal();
  Result<void> set_aside_unreadable();
  std::string snapshot_path() const { return join_path(directory_, kSnapshotFileName); }
  std::string journal_path() const { return join_path(directory_, kJournalFileName); }

  FileSystem& fs_;
  const std::string directory_;
  const std::uint64_t identity_;
  std::uint64_t sequence_ = 0;          // of the snapshot in force; 0: none
  std::uint64_t sequence_highest_ = 0;  // ever seen or tried
  std::unique_ptr<File> journal_;       // open once it was appended to
  std::uint64_t journal_end_ = kConsumerHeaderBytes;
  bool journal_exists_ = false;  // with a good header
  bool journal_tail_ = false;    // bytes past journal_end_ are to be cut first
  bool must_snapshot_ = false;
  bool set_aside_ = false;  // the stored snapshot is unreadable: keep it under another name
};

struct ConsumerFiles::Opened {
  std::unique_ptr<ConsumerFiles> files;
  ConsumerPositions positions;
  ConsumerStateReport report;
};

// Clamps what is stored, without keeping it open. To be run at every opening of a partition, before
// its HWM can rise (storage.md: "clamped on every open"): the first consume may come much later.
Result<ConsumerStateReport> clamp_consumer_state(FileSystem& fs, std::string directory,
                                                 std::uint64_t identity, Offset hwm);

}  // namespace narad::delivery
