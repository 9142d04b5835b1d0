#pragma once
// What recovery decides about the active segment, from nothing but the scan of its bytes and what
// the `hwm` file says (docs/internals/partition-log.md). Pure.
//
// Feed every item of a scan with verify_from = the persisted watermark (or 0 to judge all), then
// finish(). Rules:
//   - damage below the persisted watermark (or below what else proves records to have been
//     committed: OpenOptions::durable_below), or followed by an intact sync-head frame, was durable
//     once: it stays where it is and its offsets are reported lost (a hole);
//   - any other damage is a sync that never completed: the log is cut at its first byte;
//   - the watermark becomes max(persisted, end of the last intact frame kept);
//   - a segment with a hole, or that ends below the watermark, is sealed as it is.
#include <optional>
#include <vector>

#include "pkg/seglog/origin_table.h"
#include "pkg/seglog/scan.h"

namespace narad::seglog {

struct LostRange {
  Offset from{0};
  Offset to{0};  // exclusive
  friend bool operator==(const LostRange&, const LostRange&) = default;
};

// The highest sequence of an origin that some frame names.
struct OriginMark {
  OriginId origin{0};
  Sequence last{0};
  friend bool operator==(const OriginMark&, const OriginMark&) = default;
};

struct RecoveryPlan {
  std::uint64_t keep_bytes = 0;         // what a fresh copy holds, and the segment from now on
  std::optional<std::uint64_t> cut_at;  // bytes from here on are set aside
  Offset end{0};                        // of the last intact frame kept
  Offset hwm{0};
  std::vector<LostRange> holes;  // ascending; may be empty although damage was kept
  bool damaged = false;          // some damage is kept
  bool seal = false;             // begin a new segment at `hwm`
  OriginTable table;
  UnixMillis last_commit{0};
  bool saw_records = false;  // of intact frames kept
  // What frames in the cut say they hold (headers that verify; rerouted ones left out): if the
  // sender knows that it was told of them, the cut is a loss.
  std::vector<OriginMark> cut_origins;
};

class Recovery {
 public:
  // `base`: the segment's; `persisted`: never below `base`. `table`, `last_commit`: as of the end
  // of the segments before (the control frame replaces the table).
  Recovery(Offset base, Offset persisted, OriginTable table, UnixMillis last_commit);

  // data_loss if a verified control frame makes no sense.
  Result<void> feed(const ScanItem& item, LogId log);
  RecoveryPlan finish(std::uint64_t file_bytes);

 private:
  struct State {
    std::uint64_t frames_end = 0;
    Offset end{0};
    std::vector<LostRange> holes;
    bool damaged = false;
    OriginTable table;
    UnixMillis last_commit{0};
    bool saw_records = false;
  };
  void keep_damage(const ScanItem& item);
  void mark_doubtful(const ScanItem& item);

  Offset persisted_;
  State now_;
  // Set while there is damage that may turn out to be a sync that never completed.
  std::optional<State> before_;
  std::uint64_t cut_at_ = 0;
  std::vector<OriginMark> doubtful_;  // of the frames since
};

}  // namespace narad::seglog
