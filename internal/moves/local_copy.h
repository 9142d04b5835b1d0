#pragma once
// What a partition directory holds, read without changing anything. Blocks: call from a job.
#include <string>

#include "internal/moves/sweep_rules.h"
#include "pkg/env/fs.h"

namespace narad::moves {

// The log's identity, its segments, and where recovery would go on: at the end of the last intact
// frame of the last segment, at its base, or at the persisted high watermark, whichever is highest.
// Errors: what the disk said; unavailable if a newer release wrote it.
Result<LocalCopy> read_local_copy(FileSystem& fs, const std::string& directory);

}  // namespace narad::moves
