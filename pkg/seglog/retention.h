#pragma once
// Retention: whole sealed segments, oldest first and only as a prefix, whose files were last
// modified longer ago than the retention. Never the active segment. Blocks.
#include <string>
#include <vector>

#include "pkg/env/fs.h"
#include "pkg/seglog/view.h"

namespace narad::seglog {

struct RetentionRule {
  UnixMillis now{0};
  std::int64_t retention_ms = 0;  // 0: keep for ever
  bool trusted = false;           // whether the wall clock may judge; if not, nothing expires
};

struct RetentionOutcome {
  std::uint32_t segments = 0;  // removed
  std::uint64_t bytes = 0;
  Offset oldest{0};  // the first offset still there (the active base if nothing is sealed)
};

// Removes what has expired among `sealed` (ascending base). Each removal is durable before the
// next, so a crash leaves a log without its beginning, never one with a gap. On an error what was
// removed until then is in `outcome`.
Result<void> remove_expired(FileSystem& fs, const std::string& directory,
                            const std::vector<SegmentInfo>& sealed, const RetentionRule& rule,
                            RetentionOutcome& outcome);

// The same for a partition that is not open, by its directory alone. REQUIRES: nobody has the log
// open, nor opens it meanwhile.
Result<RetentionOutcome> retain_cold(FileSystem& fs, const std::string& directory,
                                     const RetentionRule& rule);

}  // namespace narad::seglog
