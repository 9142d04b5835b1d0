#pragma once
// The ingress WAL on a disk: recovery, the writer of the newest segment, the checkpoint file,
// reading records back, deleting segments. Synchronous: every call blocks, so the runner
// (ingress.cpp) makes each from a job, one at a time per object.
//
// What a crash leaves and what recovery makes of it:
//   - A segment's header is durable before its name exists, and the segment before it is durable
//     before that. So damage that is followed by another segment was acknowledged once.
//   - In the last segment, frames behind the last sync may be whole, torn or absent. Recovery keeps
//     the intact ones from the start on and cuts the rest, unless a frame behind the damage proves
//     (`synced`) that the damaged one was durable.
//   - After an unclean stop the page cache may show frames of the last segment that are not on the
//     platter and never will be (a failed sync). What is kept of it is copied to a fresh file
//     first. Earlier segments were synced successfully, or the process would have ended with them
//     the last.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "internal/ingress/wal_format.h"
#include "pkg/env/fs.h"

namespace narad::ingress {

struct WalOptions {
  std::string directory;
  std::uint64_t segment_bytes_max = 16u << 20;  // roll before a write that would pass it
  std::uint64_t preallocate_bytes = 512u << 10;
  std::uint32_t disk_reserve_percent = 5;  // of the disk; no space is reserved for segments in it
};

// A segment with records: [first, end), `bytes` on disk.
struct SegmentInfo {
  OriginId origin{0};
  Sequence first{0};
  Sequence end{0};
  std::uint64_t bytes = 0;
};
std::string segment_path(const std::string& directory, Sequence first);

// ---- recovery -------------------------------------------------------------------------------

// What a WAL directory holds, found by reading only.
struct Inspection {
  struct Cut {
    std::string path;
    std::uint64_t at = 0;     // first byte that goes
    std::uint64_t bytes = 0;  // up to the last byte that is not zero
    Sequence first_lost{0};   // never acknowledged
  };
  std::vector<OriginId> origins;       // of all segments that were read
  std::vector<SegmentInfo> segments;   // with records at or above the checkpoint, oldest first
  std::vector<Sequence> handed_over;   // names of segments wholly below the checkpoint
  std::optional<Sequence> empty;       // name of a last segment without any record
  std::vector<std::string> leftovers;  // names of temporary files
  Bytes last;                          // intact bytes of the last of `segments`
  std::optional<Cut> cut;
  std::vector<std::string> remarks;  // for the log: odd, but no acknowledged record is touched
  Checkpoint checkpoint;
  std::uint64_t checkpoint_slot = 0;  // sequence of the slot it was read from
  bool clean = false;                 // the last stop was
  Sequence next{1};                   // the sequence that the next record gets
};
// data_loss: acknowledged records are damaged or missing; invalid_argument: a format of a later
// release. Both texts say where, and what to run. Other errors: the disk could not be read.
// An absent directory is an empty WAL.
Result<Inspection> inspect_wal(FileSystem& fs, const std::string& directory);

// Carries out what `inspection` found, so that everything kept is durable, and stores a checkpoint
// without the clean mark. May be repeated after an error (with a fresh inspection).
Result<void> recover_wal(FileSystem& fs, const WalOptions& options, const Inspection& inspection);

// ---- the newest segment ---------------------------------------------------------------------

class WalWriter {
 public:
  // Begins a segment. REQUIRES: everything below `first` is durable or handed over.
  static Result<std::unique_ptr<WalWriter>> create(FileSystem& fs, WalOptions options,
                                                   OriginId origin, Sequence first);

  enum class Health : std::uint8_t {
    good,
    torn,         // a failed write left bytes that could not be cut off yet; repair() does
    sync_failed,  // the end: nothing written here may ever be acknowledged again
  };
  // Seals `count` frames (encode_frame) that fill `frames` and appends them; a group is never split
  // between segments. Durable when it returns success: the sequence of the first. On an error that
  // is not unknown_outcome, and unless health() is sync_failed, certainly nothing of it is in the
  // file and its sequences go to the next group; unknown_outcome: it may survive a crash.
  Result<Sequence> append(std::span<std::byte> frames, std::uint64_t count);
  // Cuts off what a failed append left, and reserves as much space as the last one wanted.
  Result<void> repair();
  // Begins a new segment unless this one is empty.
  Result<void> roll();
  // Gives back reserved space. Everything is durable when it returns success.
  Result<void> close();

  Health health() const { return health_; }
  // Segments that rolls (by append too, successful or not) have sealed since the last call.
  std::vector<SegmentInfo> take_sealed() { return std::exchange(sealed_, {}); }
  // The current segment; `bytes` includes reserved space.
  SegmentInfo segment() const;

 private:
  WalWriter(FileSystem& fs, WalOptions options, OriginId origin);
  Result<void> begin(Sequence first);
  Result<void> reserve(std::uint64_t end);
  Result<void> cut();
  Result<void> sync_failed(const Error& error, std::string_view what);

  FileSystem& fs_;
  WalOptions options_;
  OriginId origin_;
  std::unique_ptr<File> file_;
  std::string path_;
  Sequence first_{0};           // of the current segment
  Sequence next_{0};            // everything below is durable
  std::uint64_t end_ = 0;       // of its durable frames
  std::uint64_t reserved_ = 0;  // size of the file
  std::uint64_t wanted_ = 1;    // bytes of the last append
  Health health_ = Health::good;
  std::vector<SegmentInfo> sealed_;
};

// ---- checkpoint, reading, deleting ----------------------------------------------------------

class CheckpointFile {
 public:
  // REQUIRES: recover_wal() has written the file; `slot` is the sequence of its newest slot.
  CheckpointFile(FileSystem& fs, const std::string& directory, std::uint64_t slot);
  // Durable when it returns success. After a failed sync the next store writes the file anew.
  Result<void> store(const Checkpoint& checkpoint);

 private:
  FileSystem& fs_;
  std::string path_;
  std::uint64_t slot_;
  std::unique_ptr<File> file_;
  bool broken_ = false;  // to be written anew
};

// Where a sequential reader stands.
struct ReadPosition {
  Sequence sequence{0};  // of the frame at `at`
  Sequence segment{0};   // its segment
  std::uint64_t at = 0;
};
struct ReadResult {
  std::vector<DurableRecord> records;
  ReadPosition next;
};
// Records of one segment from `from` on, below `end`: at least one, at most `records_max`, about
// `bytes_max`. `position` saves walking up to `from` if it fits. data_loss if a frame does not
// verify. REQUIRES: segment.first <= from < end <= segment.end.
Result<ReadResult> read_records(FileSystem& fs, const std::string& directory,
                                const SegmentInfo& segment, Sequence from, Sequence end,
                                std::size_t records_max, std::uint64_t bytes_max,
                                const ReadPosition& position);

// Removes segment files. REQUIRES proof that all their records were handed over: a durable
// checkpoint at or above their ends. A name that is gone already is no error.
Result<void> remove_segments(FileSystem& fs, const std::string& directory,
                             const std::vector<Sequence>& names);

}  // namespace narad::ingress
