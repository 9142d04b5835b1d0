#pragma once
// SQLite's view of the file door, for one Database. Internal to this directory.
//
// Version 1 of the interface: no shared memory, so a write-ahead log needs locking_mode=EXCLUSIVE,
// which suits one connection per file. Sectors of 512 bytes and no promise about the device, so
// SQLite assumes the worst. Locks and sleeps do nothing, and SQL sees the year 1970: nothing here
// may depend on a clock.
#include <sqlite3.h>

#include <optional>
#include <string>

#include "pkg/base/result.h"
#include "pkg/env/fs.h"

namespace narad::sqlite {

class Vfs {
 public:
  // For the database at `path`; with `read_only`, that file and its log are never written (the
  // target of VACUUM INTO may be). Registers itself under a name of its own. REQUIRES: `fs`
  // outlives it, and no connection does.
  Vfs(FileSystem& fs, std::string path, bool read_only);
  Vfs(const Vfs&) = delete;
  ~Vfs();

  const char* name() const { return name_.c_str(); }
  // The latest failure of a file call since clear_error(), for the text and errno behind SQLite's
  // code.
  const std::optional<Error>& error() const { return error_; }
  void clear_error() { error_.reset(); }
  // The first failed sync of a file or its directory. From then on every write and sync fails.
  const std::optional<Error>& sync_failure() const { return sync_failure_; }

 private:
  struct Handle;
  struct Calls;  // the C functions
  // The database itself or one of SQLite's files beside it, which nothing may change.
  bool protects(std::string_view path) const;
  int fail(const Error& error, int code);
  int fail_sync(const Error& error, int code);

  FileSystem& fs_;
  std::string path_;
  bool read_only_;
  std::string name_;
  sqlite3_vfs vfs_{};
  std::uint64_t temporaries_ = 0;
  std::optional<Error> error_;
  std::optional<Error> sync_failure_;
};

// How the names of temporary files begin. SQLite forgets them when it closes: one left behind
// belongs to a process that is gone.
inline constexpr std::string_view kTemporaryPrefix = "sqlite.tmp-";

}  // namespace narad::sqlite
