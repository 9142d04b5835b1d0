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
// Where a snapshot that does not verify is kept, for whoever wants to look (the last one only).
inline constexpr const char* kUnreadableSnapshotFileName = "consumer.offset.unreadable";

// What open() found, for the log and the counters.
struct ConsumerStateReport {
  // One sentence per file that could not be used whole: what is wrong with it, and which acks are
  // forgotten for it.
  std::vector<std::string> unreadable;
  // The ordinary picture after a crash: a sentence about an entry whose write never completed.
  std::string torn;
  // Positions at or above the HWM were forgotten (and what is left stored before open() answered).
  bool clamped = false;
  Offset frontier_before{0};  // as stored, before the clamp
};

// The two files of one partition. Every call blocks: use it inside jobs, one at a time.
//
// What another process left is read, and never added to: what a page cache shows after a crash of
// the process may not be on the disk, and an entry behind such bytes would be lost with them. So
// the first write of an opening is a snapshot, and so is the first after any that failed; until it
// has succeeded, nothing new counts as stored and nothing old is touched.
class ConsumerFiles {
 public:
  struct Opened;
  // Reads what is stored for `identity` in the partition's `directory`, which exists, and clamps it
  // to `hwm`: if anything was at or above, the clamped state is on disk when it returns, so that
  // offsets which are given to other records later are delivered. Errors: what the disk said
  // (retry later), or unavailable for a file of an unknown version.
  static Result<Opened> open(FileSystem& fs, std::string directory, std::uint64_t identity,
                             Offset hwm);

  // Adds one entry: one write and one datasync. Durable when it returns ok. REQUIRES: runs
  // ascending and apart, not empty; !must_snapshot().
  Result<void> append(const std::vector<OffsetRun>& runs);
  // Replaces the snapshot; durable when it returns ok. What is in the journal no longer counts.
  Result<void> snapshot(const ConsumerPositions& positions);

  bool must_snapshot() const { return must_snapshot_; }
  // Bytes of entries that follow the current snapshot.
  std::uint64_t journal_bytes() const { return journal_end_ - kConsumerHeaderBytes; }

 private:
  friend Result<Offset> acked_end(FileSystem&, std::string, std::uint64_t);
  ConsumerFiles(FileSystem& fs, std::string directory, std::uint64_t identity);
  void remove_leftovers();
  Result<ConsumerPositions> load(ConsumerStateReport& report);
  Result<void> begin_journal(const Bytes& entry);
  Result<void> add_to_journal(const Bytes& entry);
  std::string path(const char* name) const { return join_path(directory_, name); }

  FileSystem& fs_;
  const std::string directory_;
  const std::uint64_t identity_;
  std::uint64_t sequence_ = 0;       // of the snapshot that appended entries follow
  std::uint64_t sequence_last_ = 0;  // the highest ever seen or tried: never given again
  std::unique_ptr<File> journal_;    // written by this opening only
  std::uint64_t journal_end_ = kConsumerHeaderBytes;
  bool must_snapshot_ = true;
  bool set_aside_ = false;  // the stored snapshot does not verify: keep it under another name
};

struct ConsumerFiles::Opened {
  std::unique_ptr<ConsumerFiles> files;
  ConsumerPositions positions;
  ConsumerStateReport report;
};

// One past the highest offset that what is stored says was acked: records below it were committed
// once. Reads only; errors as ConsumerFiles::open().
Result<Offset> acked_end(FileSystem& fs, std::string directory, std::uint64_t identity);

// Clamps what is stored, without keeping it open. To be run at every opening of a partition, before
// its HWM can rise (storage.md: "clamped on every open"): the first consume may come much later.
Result<ConsumerStateReport> clamp_consumer_state(FileSystem& fs, std::string directory,
                                                 std::uint64_t identity, Offset hwm);

}  // namespace narad::delivery
