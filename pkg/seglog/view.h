#pragma once
// What readers of a log see: an immutable picture of its committed state, shared freely between
// jobs and threads. A new one is made at every commit; old ones stay right about what they show,
// except that retention may have removed files of theirs.
#include <memory>
#include <vector>

#include "pkg/base/ids.h"

namespace narad::seglog {

struct SegmentInfo {
  Offset base{0};
  Offset end{0};            // the next segment's base; the HWM for the active one
  std::uint64_t bytes = 0;  // committed; of a sealed segment, its file's size
  UnixMillis mtime{0};      // of a sealed segment, as last seen
  // Changes when the file is replaced by a fresh copy (same content up to `bytes`).
  std::uint32_t generation = 0;
};

struct LogView {
  LogId log{0};
  std::shared_ptr<const std::vector<SegmentInfo>> sealed;  // ascending base; never null
  SegmentInfo active;
  Offset hwm{0};  // exclusive end of what may be seen

  // The first offset that still exists (== hwm if none does).
  Offset oldest() const { return sealed->empty() ? active.base : sealed->front().base; }
  std::size_t segments() const { return sealed->size() + 1; }
};
using LogViewPtr = std::shared_ptr<const LogView>;

}  // namespace narad::seglog
