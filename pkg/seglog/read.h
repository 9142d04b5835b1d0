#pragma once
// Reading records of a log by offset. Stateless: each call opens the files it needs under the view
// it is given, so any number may run at once, beside the writer. Blocks: call from a job.
//
// Records always come in offset order, and damage never stops a reader: the offsets it costs are
// answered as lost ranges, exactly once each, in their place.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/env/fs.h"
#include "pkg/seglog/recovery.h"
#include "pkg/seglog/view.h"

namespace narad::seglog {

// Where frames of one segment begin, one anchor per 32 KiB or so. Immutable once built; valid for
// the segment's file of that generation.
struct SegmentIndex {
  struct Anchor {
    std::uint64_t at;
    Offset base;
  };
  Offset segment{0};
  std::uint32_t generation = 0;
  std::uint64_t covered_bytes = 0;  // of the segment; an active one grows past it
  Offset covered_end{0};
  std::vector<Anchor> anchors;  // ascending

  std::size_t memory_bytes() const { return sizeof *this + anchors.capacity() * sizeof(Anchor); }
};
using SegmentIndexPtr = std::shared_ptr<const SegmentIndex>;

// A place to go on from: the frame that holds, or follows, `offset`.
struct ReadPosition {
  Offset offset{0};  // what a reader standing here wants next
  Offset segment{0};
  std::uint32_t generation = 0;
  std::uint64_t at = 0;  // a frame boundary
  Offset expected{0};    // the base offset of the frame there
};

struct ReadRequest {
  Offset from{0};
  // The read ends at the first frame boundary past either; at least one record or lost range is
  // answered if there is any below the HWM.
  std::size_t records_soft_max = 1024;
  std::size_t bytes_soft_max = 256u << 10;
  std::optional<ReadPosition> position;  // used if its offset is `from` and it still fits
  SegmentIndexPtr index;                 // used if it is of the segment of `from`
};

// (offset, commit time, record): views valid during the call.
using RecordSink = std::function<void(Offset, UnixMillis, const RecordView&)>;

struct ReadOutcome {
  Offset next{0};  // everything in [from, next) was delivered to the sink or is lost
  std::vector<LostRange> lost;
  std::optional<ReadPosition> position;  // for the next read, from `next`
  SegmentIndexPtr index;                 // built or extended by this read, or null
};

// Errors: gone if `from` is below the oldest offset of the view; not_found if a file of the view
// has vanished (take a newer view; if it is still listed, the disk lost it); whatever the disk
// says.
Result<ReadOutcome> read_records(FileSystem& fs, const std::string& directory, const LogView& view,
                                 const ReadRequest& request, const RecordSink& sink);

// The segment of the view that holds `offset`, with end and size as of the view. REQUIRES:
// oldest() <= offset.
const SegmentInfo& segment_of(const LogView& view, Offset offset);

}  // namespace narad::seglog
