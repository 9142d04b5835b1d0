#pragma once
// The files of a move that arrives: `<disk>/.moves/<topic>-<p>/` (moves.md, "Worker"), a
// partition's directory in the making. Synchronous, over the file door: every call runs in a job,
// one at a time.
//
// Promises: never more bytes of a segment than a listing named (CMT-5); of what a crash leaves only
// what `staging.json` records as synced is believed, everything else is fetched again; a file whose
// sync failed is never used again (storage.md); a listing that is not of the staged log changes
// nothing. After finish() the directory is a copy that SegmentedLog::open() takes as it is,
// durable.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "internal/moves/staging_rules.h"
#include "pkg/env/fs.h"
#include "pkg/seglog/digest.h"
#include "pkg/seglog/scan.h"

namespace narad::moves {

// A range of a segment.
struct SegmentRange {
  Offset base{0};
  std::uint64_t from = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const SegmentRange&, const SegmentRange&) = default;
};

struct StagingOwner {
  TopicPartition partition;
  Incarnation incarnation{0};
  RaftIndex move_id{0};
  std::string source;
};

// What a directory holds that may be the staging of any move.
struct StagingFound {
  bool present = false;
  std::optional<StagingRecord> record;  // nothing if it is unreadable or absent
  bool holds_records = false;           // one intact frame with records (G53)
  LogId log{0};                         // of those
  Offset end{0};                        // of the last intact frame, or the highest base
  std::uint64_t bytes = 0;              // of segments
};
Result<StagingFound> inspect_staging(FileSystem& fs, const std::string& directory);

// Every staging directory in a disk's `.moves`, by its path; what was set aside is none. An error
// only if the list itself cannot be read.
struct StagingPlace {
  std::string directory;
  Result<StagingFound> found;
};
Result<std::vector<StagingPlace>> find_staging(FileSystem& fs, const std::string& moves_directory);

// Renames it to `<directory>.quarantine[.N]`; answers the new path. Keeps every byte (QUA-4).
Result<std::string> set_aside_staging(FileSystem& fs, const std::string& directory);
// REQUIRES (proof): the present owner, asked after the move had ended, listed an HWM at or above
// the end of what is staged, of the same log; or the staging holds no record; or this life of the
// topic was deleted.
Result<void> remove_staging(FileSystem& fs, const std::string& directory);

// The marker of an installed copy at `directory`; nothing if there is none that can be read.
Result<std::optional<wire::MoveMarker>> read_marker(FileSystem& fs, const std::string& directory);
// Makes sure that an install which is seen is also on the disk (a process may have ended between
// the rename and its sync): both directories are synced.
Result<void> settle_install(FileSystem& fs, const std::string& directory,
                            const std::string& staged);
// Removes staging.json from an installed copy that the flip has made the partition's own.
Result<void> tidy_install(FileSystem& fs, const std::string& directory);

// Of a file that is closed. What it answers is all that is known of it.
Result<void> sync_file(FileSystem& fs, const std::string& path);

class Staging {
 public:
  // Takes up what is there of this very move, or makes the directory. conflict: it holds something
  // of another move (dispose of that first).
  static Result<std::unique_ptr<Staging>> open(FileSystem& fs, std::string directory,
                                               StagingOwner owner);

  // Reads one segment that was found at open(), so that its digests are known; false if none is
  // left. REQUIRED before accept() and everything behind it.
  Result<bool> read_back_one();
  // Sizes again from the files (G27): what is not as it was left is dropped, and fetched anew.
  Result<void> look_again();

  bool reached_source() const { return record_.newest.has_value(); }
  Offset highest_hwm() const { return record_.highest_hwm; }
  // REQUIRES: reached_source().
  const TakenListing& newest() const { return *record_.newest; }

  enum class Recorded : std::uint8_t {
    now,
    with_the_copy,  // by sync() or finish() at the latest: traffic waits for what comes next
  };
  // Takes over a listing. conflict, with the reason, if it is not of the log that is staged:
  // nothing was changed then. Drops segments that retention took at the source, cuts back what is
  // longer than listed (CMT-6), makes a file for each segment (G12).
  Result<void> accept(wire::Listing listing, UnixMillis arrived_at,
                      Recorded recorded = Recorded::now, bool plant_believes_less = false);

  // What the newest listing has and the files lack, in order, at most `range_bytes` each.
  std::vector<SegmentRange> missing(std::uint64_t range_bytes) const;
  std::uint64_t bytes() const;         // staged
  std::uint64_t listed_bytes() const;  // of the newest listing
  // REQUIRES: `range` begins where the file ends, and lies within what is listed.
  Result<void> append(SegmentRange range, const std::string& bytes);

  // Whether blocks of the segment have not been held against the source's digests: those that can
  // still grow do not count unless `all`.
  bool wants_digests(Offset base, bool all) const;
  std::vector<Offset> undigested(bool all) const;
  // Holds its blocks against them. Answers those that differ and are to be fetched once more.
  std::vector<SegmentRange> compare(Offset base, const wire::SegmentDigests& digests);
  // The second reading of a block that differed. If it differs again, the source's disk has rotted
  // there: of the two readings the one stays of which more frames verify.
  Result<void> replace(SegmentRange block, const std::string& bytes);
  std::uint64_t damaged_blocks() const;

  // Takes down a sync of the file at path() that was made beside other jobs, with that outcome. If
  // it failed the file is dropped, and the error answered. `whole`: nothing changed it since the
  // sync began, and all of it had landed by then: a sealed segment is made durable so as soon as
  // that is so (DUR-2), which is recorded now and then, and by sync(). Else a good one counts for
  // nothing.
  Result<void> after_sync(Offset base, bool whole, Result<void> outcome);
  // Whether it is sealed, and all of it has landed.
  bool whole(Offset base) const;
  std::string path(Offset base) const;
  // Makes everything durable that is not, and records it. Here as there: a file whose sync failed
  // is gone, and is fetched anew.
  Result<void> sync();

  // Walks the headers of the last segment as far as they are intact now, so that verify() begins
  // there: it is called under a freeze.
  Result<void> walk_ahead();

  // Cuts frames at or past the HWM off the last segment: an older source lists file sizes (CMT-7).
  Result<void> cut_to_hwm();
  // Why the copy is not the newest listing, or empty. Read-only; reads headers of the last segment
  // alone. `digests`: blocks that were never compared count as a reason.
  struct Verdict {
    std::string problem;
    Offset end{0};  // of the last intact frame, or the highest base
  };
  Result<Verdict> verify(bool digests) const;
  // The end that verify() would find, whatever is listed.
  Result<Offset> end() const;

  struct FinishPlan {
    std::string self;         // node id
    std::uint64_t epoch = 0;  // of the flip; 0: a force-promote
    LogId fresh_log{0};       // random: of the empty log, if the source has none
    UnixMillis now{0};
    std::vector<wire::ChildLink> links;  // known here: an older source names none (CUR-9)
    wire::Receipt receipt;               // what the mover knows; the rest is filled in
  };
  struct Finished {
    bool frontier_capped = false;  // CON-6
    Offset frontier_listed{0};
    std::uint32_t cursors_dropped = 0;  // that did not verify here (CUR-5)
    wire::MoveMarker marker;
  };
  // Makes a partition of it, durably (DUR): segments with their ages, hwm, consumer state, cursors,
  // marker; then their directory. What has been taken off again counts whole after a restart.
  // REQUIRES: verify() found no problem.
  Result<Finished> finish(const FinishPlan& plan);
  // The same in parts, for who can sync many files at once. begin_finish() writes everything, and
  // answers the files that sync_file() is to be called for; with what came of each, in that order,
  // end_finish() puts them in place, if all went well. Nothing else of this class in between.
  Result<std::vector<std::string>> begin_finish(const FinishPlan& plan);
  Result<Finished> end_finish(const std::vector<Result<void>>& synced);

  // Throws away all that was copied, to begin again. REQUIRES (proof): the source has just
  // confirmed under a freeze that held that it has everything up to the HWM it listed (VER-2).
  Result<void> start_over();

  const std::string& directory() const { return directory_; }
  const StagingOwner& owner() const { return owner_; }

 private:
  struct Block {
    enum class State : std::uint8_t { open, differs, confirmed, unknown, damaged };
    State state = State::open;
    std::uint32_t bytes = 0;     // of the block when it was settled
    std::uint64_t expected = 0;  // if it differs
  };
  struct Segment {
    std::uint64_t bytes = 0;   // in the file
    std::uint64_t synced = 0;  // of them, as recorded or to be recorded
    bool dirty = false;        // something since the last sync
    bool read_back = true;     // `digests` is of all `bytes`
    bool cut_to_hwm = false;   // shorter than listed on purpose
    bool summed = false;       // its .sum is there
    // What of it was walked: so many bytes are intact headers and what belongs to them.
    std::uint64_t walked = 0;
    Offset walked_end{0};                // of the last frame among them
    std::vector<std::uint64_t> digests;  // of blocks, as they lie in the file
    std::optional<seglog::BlockDigester> tail;
    std::vector<Block> blocks;
  };

  Staging(FileSystem& fs, std::string directory, StagingOwner owner);
  Result<void> load();
  Result<void> load_segments(const std::vector<std::string>& names);
  Result<void> write_record();
  Result<void> drop(const std::vector<Offset>& bases);
  Result<void> cut(Offset base, std::uint64_t to);
  Result<void> read_digests(Offset base, Segment& segment);
  Result<std::unique_ptr<File>> new_file(Offset base);
  void add_digests(Segment& segment, ByteView bytes);
  Result<void> sync_segment(Offset base, Segment& segment);
  Result<void> sync_files();
  void count_synced(Segment& segment);
  Result<void> settle_sealed(Offset base, Segment& segment);
  Result<LogId> known_log() const;
  Result<void> write_sum(Offset base, Segment& segment);
  Result<std::uint64_t> damage_with(Offset base, SegmentRange block,
                                    const std::string& bytes) const;
  const wire::ListedSegment* listed(Offset base) const;
  bool complete(Offset base, const Segment& segment) const;
  Result<seglog::ScanOptions> scan_of(Offset base, const Segment& segment) const;
  Result<Offset> walk_last(std::optional<Offset> cut_at, std::uint64_t* at) const;
  Result<void> set_ages(UnixMillis now);
  Result<void> write_small_files(const FinishPlan& plan);
  Result<void> write_cursors();
  Result<void> write_beside(const std::string& name, ByteView content);
  Result<void> remove_stale_cursors(const std::vector<std::string>& written);
  wire::Receipt receipt(wire::Receipt known) const;

  FileSystem& fs_;
  const std::string directory_;
  const StagingOwner owner_;
  StagingRecord record_;
  LogId log_{0};  // as listed
  std::map<Offset, Segment> segments_;
  std::uint64_t unrecorded_ = 0;  // bytes synced since the record was written
  bool record_stale_ = false;     // it does not have the newest listing
  struct Finishing {
    Finished out;
    std::vector<Offset> segments;    // to be synced
    std::vector<std::string> names;  // of files that lie there as `.tmp`
  };
  std::unique_ptr<Finishing> finishing_;
};

}  // namespace narad::moves
