#include "pkg/seglog/fresh_copy.h"

#include <algorithm>

#include "pkg/base/text.h"

namespace narad::seglog {
namespace {

constexpr std::size_t kChunk = 256u << 10;

Result<std::unique_ptr<File>> open_temporary(FileSystem& fs, const std::string& temporary) {
  // A temporary that an earlier attempt left may go: it never got the name it was made for, so
  // nothing relies on it, and its syncs prove nothing.
  if (auto r = fs.remove(temporary); !r && r.error().code() != Errc::not_found) return r.error();
  return fs.open(temporary, OpenMode::create_new);
}

Result<void> publish(FileSystem& fs, const std::string& temporary, const std::string& path) {
  NARAD_TRY(fs.rename(temporary, path));
  return fs.sync_dir(parent_path(path));
}

}  // namespace

Result<BlockDigester> copy_fresh(FileSystem& fs, File& source, std::uint64_t begin,
                                 std::uint64_t end, const std::string& temporary,
                                 const std::string& path, UnixMillis mtime, LogId seed) {
  NARAD_TRY(auto file, open_temporary(fs, temporary));
  BlockDigester written(seed);
  Bytes chunk(static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, end - begin)));
  for (std::uint64_t at = begin; at < end;) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), end - at));
    const std::span<std::byte> part = std::span(chunk).first(n);
    NARAD_TRY(read_exact(source, part, at));
    NARAD_TRY(write_all(*file, part, at - begin));
    written.update(part);
    at += n;
  }
  NARAD_TRY(fs.set_mtime(temporary, mtime));
  NARAD_TRY(file->sync());
  BlockDigester read(seed);
  while (read.bytes() < end - begin) {
    const auto n =
        static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), end - begin - read.bytes()));
    const std::span<std::byte> part = std::span(chunk).first(n);
    NARAD_TRY(read_exact(*file, part, read.bytes()));
    read.update(part);
  }
  if (read.digests() != written.digests()) {
    return Error(Errc::unavailable, cat(temporary,
                                        ": what was read back is not what was written; "
                                        "the disk or the memory of this node is failing"));
  }
  NARAD_TRY(publish(fs, temporary, path));
  return written;
}

Result<void> create_fresh(FileSystem& fs, ByteView content, const std::string& temporary,
                          const std::string& path) {
  NARAD_TRY(auto file, open_temporary(fs, temporary));
  NARAD_TRY(write_all(*file, content, 0));
  NARAD_TRY(file->datasync());
  return publish(fs, temporary, path);
}

}  // namespace narad::seglog
