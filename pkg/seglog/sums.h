#pragma once
// The block digests of one segment, from its .sum file or from its bytes. Blocks: call from a job.
#include <optional>
#include <string>
#include <vector>

#include "pkg/env/fs.h"
#include "pkg/seglog/digest.h"
#include "pkg/seglog/view.h"

namespace narad::seglog {

struct SegmentDigests {
  std::vector<std::optional<std::uint64_t>> blocks;
  // What read all of it, to go on with where it ends; only if the bytes were read and all of them
  // verify.
  std::optional<BlockDigester> digester;
};

// One digest per 1 MiB block of the first `segment.bytes` bytes. A .sum beside a sealed segment is
// taken if it fits; otherwise the bytes are read, and a block that touches bytes that do not verify
// has no digest: there is no telling what was written there.
Result<SegmentDigests> read_digests(FileSystem& fs, const std::string& directory, LogId log,
                                    const SegmentInfo& segment);
// The blocks alone.
Result<std::vector<std::optional<std::uint64_t>>> block_digests(FileSystem& fs,
                                                                const std::string& directory,
                                                                LogId log,
                                                                const SegmentInfo& segment);

// Writes `<base>.sum`. Not synced: one that a crash tears is recomputed.
Result<void> write_sum_file(FileSystem& fs, const std::string& directory, LogId log, Offset base,
                            const Sum& sum);

}  // namespace narad::seglog
