#pragma once
// Copying a file so that what was copied is on the disk and nothing of the old file is relied on:
// the only answer to a failed sync, or to a page cache that outlived a process (README.md).
// Blocks.
#include <memory>
#include <string>

#include "pkg/env/fs.h"
#include "pkg/seglog/digest.h"

namespace narad::seglog {

// Writes bytes [begin, end) of `source` to `temporary` (replaced if there), keeps `mtime`, syncs,
// reads it back against what was written, renames it to `path` and syncs the directory. Durable
// when it returns; on an error `path` names either file, whole. Answers the digests of the copy.
Result<BlockDigester> copy_fresh(FileSystem& fs, File& source, std::uint64_t begin,
                                 std::uint64_t end, const std::string& temporary,
                                 const std::string& path, UnixMillis mtime, LogId seed);

// Creates `path` with `content` the same way.
Result<void> create_fresh(FileSystem& fs, ByteView content, const std::string& temporary,
                          const std::string& path);

}  // namespace narad::seglog
