#pragma once
// The file door: everything Narad does to a disk. All calls block; call them only from a job of the
// blocking door (or before the loop starts, or in an offline tool). Paths are absolute or relative
// to the process; '/' separates. Errors are Error::system with "verb path" as text, so os_errno()
// tells ENOENT, ENOSPC, EIO, EROFS apart.
//
// Durability: nothing written is durable before sync()/datasync() of the file *and*, for a created,
// renamed or removed name, sync_dir() of its directory. After a failed sync of a file nothing may
// be assumed about what was written since the last good one, ever (storage.md).
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/bytes.h"
#include "pkg/base/ids.h"
#include "pkg/base/result.h"

namespace narad {

// One open file. Not thread-safe: one job at a time. Destruction closes (and drops a lock).
class File {
 public:
  virtual ~File() = default;
  // Up to buffer.size() bytes from `offset`; fewer is legal, 0 means end of file.
  virtual Result<std::size_t> pread(std::span<std::byte> buffer, std::uint64_t offset) = 0;
  // Up to bytes.size(); fewer is legal and not an error. The file grows as needed, holes read as 0.
  virtual Result<std::size_t> pwrite(ByteView bytes, std::uint64_t offset) = 0;
  // Gather write of several buffers at one offset; same partial-write rule.
  virtual Result<std::size_t> pwritev(std::span<const ByteView> parts, std::uint64_t offset) = 0;
  virtual Result<void> truncate(std::uint64_t size) = 0;
  // Reserves space so that writes below `size` meet no ENOSPC; extends the file with zeros.
  virtual Result<void> allocate(std::uint64_t size) = 0;
  // Data and all metadata.
  virtual Result<void> sync() = 0;
  // Data and the metadata needed to read it back (size included).
  virtual Result<void> datasync() = 0;
  virtual Result<std::uint64_t> size() = 0;
  // Exclusive advisory lock for the lifetime of this File; false if another process holds it.
  virtual Result<bool> try_lock() = 0;
};

enum class OpenMode : std::uint8_t {
  read,        // must exist
  read_write,  // must exist
  create,      // read and write, created if absent
  create_new,  // read and write, must not exist (EEXIST otherwise)
};

struct FileStat {
  bool is_directory = false;
  std::uint64_t size = 0;  // bytes; 0 for a directory
  UnixMillis mtime{0};     // last modification
  std::uint64_t id = 0;    // identity within the file system (inode): the same after a rename
};

struct DiskSpace {
  std::uint64_t total = 0;      // bytes
  std::uint64_t available = 0;  // bytes an unprivileged process may still use
};

// Thread-safe: jobs may call concurrently.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) = 0;
  virtual Result<void> remove(const std::string& path) = 0;  // a file
  // Atomic replace within one file system; works for files and directories.
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  virtual Result<void> mkdir(const std::string& path) = 0;  // one level; EEXIST if present
  virtual Result<void> rmdir(const std::string& path) = 0;  // must be empty
  // Names (not paths), sorted bytewise, without "." and "..".
  virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;
  virtual Result<FileStat> stat(const std::string& path) = 0;
  virtual Result<void> set_mtime(const std::string& path, UnixMillis mtime) = 0;
  virtual Result<void> sync_dir(const std::string& directory) = 0;
  virtual Result<DiskSpace> space(const std::string& path) = 0;
};

// ---- built from the calls above -----------------------------------------------------------

// Loops over short reads/writes. read_exact fails with data_loss if the file ends first.
Result<void> write_all(File& file, ByteView bytes, std::uint64_t offset);
Result<void> read_exact(File& file, std::span<std::byte> buffer, std::uint64_t offset);
// As many bytes as there are, up to buffer.size().
Result<std::size_t> read_up_to(File& file, std::span<std::byte> buffer, std::uint64_t offset);

// The whole file; too_large above `limit` bytes.
Result<Bytes> read_file(FileSystem& fs, const std::string& path, std::uint64_t limit);
// Replaces `path` so that a crash leaves the old or the new content whole: temporary file beside
// it (".tmp" appended), datasync, rename, sync_dir. Durable when it returns.
Result<void> replace_file(FileSystem& fs, const std::string& path, ByteView content);

// True/false, or the error that kept us from knowing.
Result<bool> exists(FileSystem& fs, const std::string& path);
// mkdir of every missing level, each followed by sync_dir of its parent. If nothing is missing, the
// name itself is still made durable (the call that made it may have failed after that).
Result<void> make_directories(FileSystem& fs, const std::string& path);
// Removes a tree. REQUIRES proof that the data may go: every call site names it in a comment.
Result<void> remove_tree(FileSystem& fs, const std::string& path);

std::string join_path(std::string_view directory, std::string_view name);
// "/a/b" -> "/a"; "a" -> ".".
std::string parent_path(std::string_view path);

}  // namespace narad
