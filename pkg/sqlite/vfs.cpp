#include "pkg/sqlite/vfs.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::sqlite {
namespace {

// The log of a database opened for reading only that has none.
class EmptyFile final : public File {
 public:
  Result<std::size_t> pread(std::span<std::byte>, std::uint64_t) override { return std::size_t{0}; }
  Result<std::size_t> pwrite(ByteView, std::uint64_t) override { return refused(); }
  Result<std::size_t> pwritev(std::span<const ByteView>, std::uint64_t) override {
    return refused();
  }
  Result<void> truncate(std::uint64_t) override { return refused(); }
  Result<void> allocate(std::uint64_t) override { return refused(); }
  Result<void> sync() override { return refused(); }
  Result<void> datasync() override { return refused(); }
  Result<std::uint64_t> size() override { return std::uint64_t{0}; }
  Result<bool> try_lock() override { return true; }

 private:
  static Error refused() { return Error::system(EROFS, "write to a database opened for reading"); }
};

bool is_full(const Error& error) {
  return error.os_errno() == ENOSPC || error.os_errno() == EDQUOT;
}

// A name no other live Vfs has: SQLite keeps them in one list for the process.
std::string unique_name(const void* owner) {
  return cat("narad-", to_hex16(reinterpret_cast<std::uintptr_t>(owner)));
}

}  // namespace

// What SQLite allocates for an open file; `base` comes first.
struct Vfs::Handle {
  sqlite3_file base;
  Vfs* vfs;
  File* file;       // owned
  char* temporary;  // owned: the path to remove at close, or null
  char* directory;  // owned: to be synced with the first sync, or null
  static Handle& of(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }
};

// SQLite calls these from C: they throw nothing (no memory ends the process).
struct Vfs::Calls {
  static Vfs& self(sqlite3_vfs* vfs) { return *static_cast<Vfs*>(vfs->pAppData); }

  static char* copy(const std::string& text) {
    auto* out = new char[text.size() + 1];
    std::memcpy(out, text.c_str(), text.size() + 1);
    return out;
  }

  static Result<std::unique_ptr<File>> open_file(Vfs& me, const std::string& path, int flags) {
    if (me.protects(path)) {
      auto file = me.fs_.open(path, OpenMode::read);
      const bool log = (flags & SQLITE_OPEN_WAL) != 0;
      if (!file && log && file.error().code() == Errc::not_found) {
        return std::unique_ptr<File>(std::make_unique<EmptyFile>());
      }
      return file;
    }
    if ((flags & SQLITE_OPEN_CREATE) == 0) return me.fs_.open(path, OpenMode::read_write);
    const bool exclusive = (flags & SQLITE_OPEN_EXCLUSIVE) != 0;
    return me.fs_.open(path, exclusive ? OpenMode::create_new : OpenMode::create);
  }

  // A file without a name of its own, under the next name that nobody has.
  static Result<std::unique_ptr<File>> open_temporary(Vfs& me, std::string& path) {
    for (;;) {
      path = join_path(parent_path(me.path_), cat(kTemporaryPrefix, ++me.temporaries_));
      auto file = me.fs_.open(path, OpenMode::create_new);
      if (file || file.error().code() != Errc::exists) return file;
    }
  }

  static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* out, int flags,
                  int* out_flags) noexcept {
    Vfs& me = self(vfs);
    Handle& handle = Handle::of(out);
    handle.base.pMethods = nullptr;
    std::string path = name != nullptr ? name : "";
    auto file = name != nullptr ? open_file(me, path, flags) : open_temporary(me, path);
    if (!file) {
      return me.fail(file.error(), is_full(file.error()) ? SQLITE_FULL : SQLITE_CANTOPEN);
    }
    const bool removed_at_close = name == nullptr || (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
    handle.vfs = &me;
    handle.file = std::move(file).value().release();
    handle.temporary = removed_at_close ? copy(path) : nullptr;
    handle.directory = removed_at_close ? nullptr : copy(parent_path(path));
    handle.base.pMethods = methods();
    if (out_flags != nullptr) {
      *out_flags = me.protects(path) ? (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) |
                                           SQLITE_OPEN_READONLY
                                     : flags;
    }
    return SQLITE_OK;
  }

  static int remove(sqlite3_vfs* vfs, const char* path, int sync_dir) noexcept {
    Vfs& me = self(vfs);
    if (me.protects(path)) return SQLITE_READONLY;
    // Proof: SQLite deletes only its own journals, logs and temporaries, by its own recovery rules.
    if (me.sync_failure_) return me.fail(*me.sync_failure_, SQLITE_IOERR_DELETE);
    if (auto r = me.fs_.remove(path); !r) {
      const bool absent = r.error().code() == Errc::not_found;
      return me.fail(r.error(), absent ? SQLITE_IOERR_DELETE_NOENT : SQLITE_IOERR_DELETE);
    }
    if (sync_dir != 0) {
      if (auto r = me.fs_.sync_dir(parent_path(path)); !r) {
        return me.fail_sync(r.error(), SQLITE_IOERR_DIR_FSYNC);
      }
    }
    return SQLITE_OK;
  }

  static int access(sqlite3_vfs* vfs, const char* path, int flags, int* out) noexcept {
    Vfs& me = self(vfs);
    auto stat = me.fs_.stat(path);
    if (!stat && stat.error().code() != Errc::not_found) {
      return me.fail(stat.error(), SQLITE_IOERR_ACCESS);
    }
    // SQLite wants an empty file to count as absent.
    *out = stat && (flags != SQLITE_ACCESS_EXISTS || stat.value().size > 0) ? 1 : 0;
    return SQLITE_OK;
  }

  static int full_path(sqlite3_vfs*, const char* path, int size, char* out) noexcept {
    const std::size_t bytes = std::strlen(path) + 1;
    if (bytes > static_cast<std::size_t>(size)) return SQLITE_CANTOPEN;
    std::memcpy(out, path, bytes);
    return SQLITE_OK;
  }

  // Only ever asked of the default VFS (see reseed_randomness).
  static int randomness(sqlite3_vfs*, int size, char* out) noexcept {
    std::memset(out, 0, static_cast<std::size_t>(size));
    return size;
  }
  static int pause(sqlite3_vfs*, int micros) noexcept { return micros; }
  static int current_time(sqlite3_vfs*, double* out) noexcept {
    *out = 2440587.5;  // 1970-01-01 as a Julian day
    return SQLITE_OK;
  }
  static int last_error(sqlite3_vfs* vfs, int, char*) noexcept {
    Vfs& me = self(vfs);
    return me.error_ ? me.error_->os_errno() : 0;
  }

  // ---- one open file ------------------------------------------------------------------------

  static int close(sqlite3_file* file) noexcept {
    Handle& handle = Handle::of(file);
    delete handle.file;
    int code = SQLITE_OK;
    if (handle.temporary != nullptr) {
      // Proof: created by this handle, nameless for SQLite.
      auto r = handle.vfs->fs_.remove(handle.temporary);
      if (!r) code = handle.vfs->fail(r.error(), SQLITE_IOERR_CLOSE);
    }
    delete[] handle.temporary;
    delete[] handle.directory;
    handle.base.pMethods = nullptr;
    return code;
  }

  static int read(sqlite3_file* file, void* buffer, int size, sqlite3_int64 offset) noexcept {
    Handle& handle = Handle::of(file);
    const std::span<std::byte> out(static_cast<std::byte*>(buffer), static_cast<std::size_t>(size));
    auto n = read_up_to(*handle.file, out, static_cast<std::uint64_t>(offset));
    if (!n) return handle.vfs->fail(n.error(), SQLITE_IOERR_READ);
    if (n.value() == out.size()) return SQLITE_OK;
    std::memset(out.data() + n.value(), 0, out.size() - n.value());
    return SQLITE_IOERR_SHORT_READ;
  }

  static int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) noexcept {
    Handle& handle = Handle::of(file);
    Vfs& me = *handle.vfs;
    if (me.sync_failure_) return me.fail(*me.sync_failure_, SQLITE_IOERR_WRITE);
    const ByteView view(static_cast<const std::byte*>(bytes), static_cast<std::size_t>(size));
    if (auto r = write_all(*handle.file, view, static_cast<std::uint64_t>(offset)); !r) {
      return me.fail(r.error(), is_full(r.error()) ? SQLITE_FULL : SQLITE_IOERR_WRITE);
    }
    return SQLITE_OK;
  }

  static int truncate(sqlite3_file* file, sqlite3_int64 size) noexcept {
    Handle& handle = Handle::of(file);
    Vfs& me = *handle.vfs;
    if (me.sync_failure_) return me.fail(*me.sync_failure_, SQLITE_IOERR_TRUNCATE);
    auto r = handle.file->truncate(static_cast<std::uint64_t>(size));
    return r ? SQLITE_OK : me.fail(r.error(), SQLITE_IOERR_TRUNCATE);
  }

  static int sync(sqlite3_file* file, int flags) noexcept {
    Handle& handle = Handle::of(file);
    Vfs& me = *handle.vfs;
    if (me.sync_failure_) return me.fail(*me.sync_failure_, SQLITE_IOERR_FSYNC);
    const bool data_only = (flags & SQLITE_SYNC_DATAONLY) != 0;
    auto r = data_only ? handle.file->datasync() : handle.file->sync();
    if (!r) return me.fail_sync(r.error(), SQLITE_IOERR_FSYNC);
    if (handle.directory != nullptr) {
      // Whoever created the file may not have lived to sync its name.
      if (auto d = me.fs_.sync_dir(handle.directory); !d) {
        return me.fail_sync(d.error(), SQLITE_IOERR_DIR_FSYNC);
      }
      delete[] handle.directory;
      handle.directory = nullptr;
    }
    return SQLITE_OK;
  }

  static int file_size(sqlite3_file* file, sqlite3_int64* out) noexcept {
    Handle& handle = Handle::of(file);
    auto size = handle.file->size();
    if (!size) return handle.vfs->fail(size.error(), SQLITE_IOERR_FSTAT);
    *out = static_cast<sqlite3_int64>(size.value());
    return SQLITE_OK;
  }

  static const sqlite3_io_methods* methods() {
    static const sqlite3_io_methods kMethods = [] {
      sqlite3_io_methods m{};
      m.iVersion = 1;
      m.xClose = close;
      m.xRead = read;
      m.xWrite = write;
      m.xTruncate = truncate;
      m.xSync = sync;
      m.xFileSize = file_size;
      // One connection per file, one process per directory: there is nobody to lock out.
      m.xLock = [](sqlite3_file*, int) noexcept { return SQLITE_OK; };
      m.xUnlock = [](sqlite3_file*, int) noexcept { return SQLITE_OK; };
      m.xCheckReservedLock = [](sqlite3_file*, int* out) noexcept {
        *out = 0;
        return SQLITE_OK;
      };
      m.xFileControl = [](sqlite3_file*, int, void*) noexcept { return SQLITE_NOTFOUND; };
      m.xSectorSize = [](sqlite3_file*) noexcept { return 512; };
      m.xDeviceCharacteristics = [](sqlite3_file*) noexcept { return 0; };
      return m;
    }();
    return &kMethods;
  }
};

Vfs::Vfs(FileSystem& fs, std::string path, bool read_only)
    : fs_(fs), path_(std::move(path)), read_only_(read_only), name_(unique_name(this)) {
  vfs_.iVersion = 1;
  vfs_.szOsFile = sizeof(Handle);
  vfs_.mxPathname = 4096;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.xOpen = Calls::open;
  vfs_.xDelete = Calls::remove;
  vfs_.xAccess = Calls::access;
  vfs_.xFullPathname = Calls::full_path;
  vfs_.xRandomness = Calls::randomness;
  vfs_.xSleep = Calls::pause;
  vfs_.xCurrentTime = Calls::current_time;
  vfs_.xGetLastError = Calls::last_error;
  const int code = sqlite3_vfs_register(&vfs_, 0);
  NARAD_ASSERT(code == SQLITE_OK);
}

Vfs::~Vfs() { sqlite3_vfs_unregister(&vfs_); }

bool Vfs::protects(std::string_view path) const { return read_only_ && path.starts_with(path_); }

int Vfs::fail(const Error& error, int code) {
  error_ = error;
  return code;
}

int Vfs::fail_sync(const Error& error, int code) {
  if (!sync_failure_) sync_failure_ = error;
  return fail(error, code);
}

}  // namespace narad::sqlite
