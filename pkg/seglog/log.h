#pragma once
// SegmentedLog: the writing side of one partition's log. Synchronous; blocks on the file door, so
// it is used inside jobs, one at a time (publish() and the plain getters excepted). Readers need
// only the views it publishes (view.h, read.h).
//
// Files of the directory (names.h): `<base>.log` segments, the highest is active; `hwm`;
// `<base>.sum` block digests of sealed segments; `<base>.cut` bytes that recovery cut off. Other
// names are left alone.
//
// After a crash: every record of a published commit is there, at its offset, whole; what a failed
// commit wrote is gone or, if the machine stopped before its truncation was durable, there as a
// whole prefix, with its origin in the table. See recovery.h for what damage costs.
//
// A failed sync, or a failed truncation, latches the active segment: stage() is refused until
// repair() has copied it, up to the HWM, to a fresh file. Views and reads go on.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/env/fs.h"
#include "pkg/seglog/digest.h"
#include "pkg/seglog/frame.h"
#include "pkg/seglog/hwm.h"
#include "pkg/seglog/origin_table.h"
#include "pkg/seglog/recovery.h"
#include "pkg/seglog/retention.h"
#include "pkg/seglog/view.h"

namespace narad::seglog {

inline constexpr std::size_t kRecordBytesMax = kFrameBytesMax - kHeaderBytes;  // as record_bytes()

struct Knobs {
  std::uint64_t segment_bytes = 64u << 20;  // a segment rolls before it would grow past this
  std::size_t frame_raw_bytes = 4u << 20;   // a batch is split into frames of about this size
  std::size_t index_bytes_max = 1u << 20;   // sparse indexes of one partition
  Compression compression;
};

struct AppendRecord {
  Sequence sequence{0};
  RecordView record;  // must stay valid until stage() returns
};
// Records of one origin. Sequences ascend strictly unless origin is 0 or the batch is rerouted.
struct AppendBatch {
  OriginId origin{0};
  bool rerouted = false;
  std::vector<AppendRecord> records;
};
// What stage() refuses in a batch: so that one bad batch cannot fail others, check before.
Result<void> validate(const AppendBatch& batch);

struct AppendOutcome {
  Offset first{0};  // of the first appended record
  std::uint32_t appended = 0;
  std::uint32_t known = 0;  // committed before, or by an earlier batch of the same stage()
  std::vector<bool> kept;   // per record of the batch: appended (true) or known (false)
};

// What opening found and did.
struct OpenReport {
  bool created = false;
  bool clean = false;           // trusted as it was: no copy was needed
  bool sealed = false;          // the former active segment was damaged and is sealed
  std::vector<LostRange> lost;  // in the former active segment
  std::uint64_t cut_bytes = 0;  // set aside, never acknowledged
  std::uint64_t cut_at = 0;
  Offset cut_from{0};                   // first offset of the cut
  bool hwm_missing = false;             // the `hwm` file was missing or unreadable
  std::vector<OriginMark> cut_origins;  // RecoveryPlan::cut_origins
  // Records below it had been committed (OpenOptions::durable_below), and the log ended before:
  // what is missing is in `lost`.
  std::optional<Offset> ended_below;
  // Files named like segments that were none; they bear this name now, and nothing of them is read.
  std::vector<std::string> strays;
};

struct LogStats {
  std::size_t segments = 0;
  std::uint64_t bytes = 0;
  Offset oldest{0};
  Offset hwm{0};
  UnixMillis oldest_mtime{0};  // of the oldest sealed segment; 0 if there is none
  UnixMillis last_commit{0};
  std::size_t origins = 0;
  // Since the log was opened.
  std::uint64_t origins_dropped = 0;
  std::uint64_t commits = 0, failed_commits = 0;
  std::uint64_t frames = 0, records = 0, record_bytes = 0;
  std::uint64_t rolls = 0, latches = 0, fresh_copies = 0, truncations = 0;
  std::uint64_t hwm_writes = 0, hwm_write_failures = 0;
  std::uint64_t read_back_mismatches = 0;
};

// What stage() wrote and publish() has not yet made part of the log.
struct StagedFrames {
  std::uint64_t bytes = 0;
  std::uint64_t records = 0, record_bytes = 0;
  UnixMillis commit_time{0};
  std::vector<FrameHeader> frames;
  BlockDigester::Mark digest_mark;
};

class SegmentedLog {
 public:
  struct OpenOptions {
    std::string directory;  // must exist
    Knobs knobs;
    bool create_if_missing = false;
    LogId fresh_id{0};  // random; becomes the log id if the log is created
    // Records below it are known to have been committed (consumers have acked them, say): what is
    // missing there is lost, and no offset below it is ever given again.
    Offset durable_below{0};
  };
  // Errors: not_found (no log there and create_if_missing is false); unavailable (disk full or
  // failing: try again; or a newer release wrote it); data_loss (the log cannot be told from its
  // files: nothing was changed).
  static Result<std::unique_ptr<SegmentedLog>> open(FileSystem& fs, OpenOptions options);
  ~SegmentedLog();  // without close(): as a crash, the next open copies the active segment
  SegmentedLog(const SegmentedLog&) = delete;

  // Appends what is not known yet, as frames, with one write, one datasync and a read-back of what
  // was written; nothing of it is visible before publish(). Commit time is max(now, last). One
  // outcome per batch. On an error nothing is appended: what was written is truncated away.
  // Errors: invalid_argument (sequences do not ascend), too_large (a record over 16 MiB),
  // unavailable (latched, disk full or failing), otherwise what the disk says.
  // REQUIRES: nothing staged.
  Result<std::vector<AppendOutcome>> stage(const std::vector<AppendBatch>& batches, UnixMillis now);
  // The staged frames become part of the log: HWM and origin table advance together. Does not
  // block. Acknowledged after it returns.
  void publish();
  // The staged frames are taken back (a failed commit): truncated away, durably.
  void abandon();
  bool staged() const { return staged_.has_value(); }
  UnixMillis staged_commit_time() const;  // REQUIRES: staged()

  // Why nothing can be appended, or nothing if it can.
  const std::optional<Error>& latched() const { return latched_; }
  // Copies the active segment to a fresh file; on success the log takes appends again. REQUIRES:
  // nothing staged.
  Result<void> repair();

  // Writes the HWM to its file (call at most every few seconds). REQUIRES: nothing staged.
  Result<void> persist_hwm();
  bool hwm_persisted() const { return hwm_on_disk_ == hwm_; }

  // REQUIRES: nothing staged. Also on an error the view shows what was removed.
  Result<RetentionOutcome> retain(const RetentionRule& rule);

  // Syncs, and writes the HWM with the clean mark unless the log is latched. After it only the
  // destructor may be called. On an error the log is as after a crash.
  Result<void> close();

  LogViewPtr view() const { return view_; }
  LogId id() const { return id_; }
  Offset hwm() const { return hwm_; }
  UnixMillis last_commit() const { return last_commit_; }
  const OriginTable& origins() const { return table_; }
  LogStats stats() const;
  const OpenReport& open_report() const { return open_report_; }
  // Digests of the active segment's committed bytes, or nothing if they are not known (opened
  // after a clean close).
  std::optional<std::vector<std::uint64_t>> active_digests() const;
  // Makes them known from here on: `digester` has read the beginning of the committed bytes of the
  // active segment (sums.h), and what has come since is read now. Changes nothing if they are
  // known, if another segment is active by now, or while something is staged. Blocks.
  Result<void> adopt_digests(Offset base, BlockDigester digester);
  const std::string& directory() const { return directory_; }
  void check_invariants() const;

 private:
  class Opener;

  SegmentedLog(FileSystem& fs, OpenOptions options);
  std::vector<AppendOutcome> encode(const std::vector<AppendBatch>& batches);
  Result<void> write_staged();
  Result<void> verify_staged();
  void take_back(bool durably);
  void latch(const Error& why, std::string_view what);
  Result<void> write_hwm(bool clean);
  Result<void> roll();
  Result<void> begin_segment(Offset base);
  void add_sealed(const SegmentInfo& segment);
  void write_sum();
  void remake_view();
  std::string path(Offset base, std::string_view suffix) const;

  FileSystem& fs_;
  std::string directory_;
  Knobs knobs_;
  LogId id_{0};
  std::shared_ptr<const std::vector<SegmentInfo>> sealed_;
  std::uint64_t sealed_bytes_ = 0;
  SegmentInfo active_;
  std::uint32_t generations_ = 0;
  std::unique_ptr<File> file_;  // of the active segment
  bool truncated_ = false;      // a truncation that no sync has covered yet
  bool rolling_ = false;        // a roll began: the old segment takes no more frames
  bool closed_ = false;
  Offset hwm_{0};
  UnixMillis last_commit_{0};
  OriginTable table_;
  std::uint64_t dropped_at_open_ = 0;  // by the replay, not since
  std::optional<BlockDigester> digester_;
  std::optional<StagedFrames> staged_;
  std::optional<Error> latched_;
  Bytes buffer_;  // the staged frames
  Bytes read_back_;

  std::uint64_t hwm_sequence_ = 0;
  std::optional<Offset> hwm_on_disk_;
  bool clean_on_disk_ = false;
  bool hwm_rewrite_ = false;  // a slot's write or sync failed: write the file anew

  LogViewPtr view_;
  OpenReport open_report_;
  LogStats stats_;
};

}  // namespace narad::seglog
