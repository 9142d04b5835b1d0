#include "pkg/env/real/real_fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "pkg/base/text.h"

namespace narad {
namespace {

// Repeats a call that a signal interrupted.
template <class F>
auto uninterrupted(F call) {
  auto r = call();
  while (r < 0 && errno == EINTR) r = call();
  return r;
}

Error failed(std::string_view verb, std::string_view path) {
  const int code = errno;
  return Error::system(code, cat(verb, " ", path));
}

constexpr std::uint64_t kLargestOffset = std::numeric_limits<off_t>::max();

class RealFile final : public File {
 public:
  RealFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  RealFile(const RealFile&) = delete;
  ~RealFile() override { ::close(fd_); }  // what had to be durable was synced before

  Result<std::size_t> pread(std::span<std::byte> buffer, std::uint64_t offset) override {
    NARAD_TRY(check("read", offset, buffer.size()));
    const ssize_t n = uninterrupted(
        [&] { return ::pread(fd_, buffer.data(), buffer.size(), static_cast<off_t>(offset)); });
    if (n < 0) return failed("read", path_);
    return static_cast<std::size_t>(n);
  }

  Result<std::size_t> pwrite(ByteView bytes, std::uint64_t offset) override {
    NARAD_TRY(check("write", offset, bytes.size()));
    const ssize_t n = uninterrupted(
        [&] { return ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (n < 0) return failed("write", path_);
    return static_cast<std::size_t>(n);
  }

  Result<std::size_t> pwritev(std::span<const ByteView> parts, std::uint64_t offset) override {
    std::array<iovec, 256> vectors;
    std::size_t count = 0;
    std::uint64_t total = 0;
    for (const ByteView& part : parts) {
      if (part.empty()) continue;
      if (count == vectors.size()) break;  // a partial write: the caller goes on
      vectors[count++] = iovec{const_cast<std::byte*>(part.data()), part.size()};
      total += part.size();
    }
    if (count == 0) return std::size_t{0};
    NARAD_TRY(check("write", offset, total));
    const ssize_t n = uninterrupted([&] {
      return ::pwritev(fd_, vectors.data(), static_cast<int>(count), static_cast<off_t>(offset));
    });
    if (n < 0) return failed("write", path_);
    return static_cast<std::size_t>(n);
  }

  Result<void> truncate(std::uint64_t size) override {
    NARAD_TRY(check("truncate", size, 0));
    if (uninterrupted([&] { return ::ftruncate(fd_, static_cast<off_t>(size)); }) < 0)
      return failed("truncate", path_);
    return ok();
  }

  Result<void> allocate(std::uint64_t size) override {
    NARAD_TRY(check("allocate", size, 0));
    if (size == 0) return ok();
    if (uninterrupted([&] { return ::fallocate(fd_, 0, 0, static_cast<off_t>(size)); }) == 0)
      return ok();
    if (errno != EOPNOTSUPP) return failed("allocate", path_);
    return allocate_by_writing(size);
  }

  Result<void> sync() override {
    if (uninterrupted([&] { return ::fsync(fd_); }) < 0) return failed("sync", path_);
    return ok();
  }

  Result<void> datasync() override {
    if (uninterrupted([&] { return ::fdatasync(fd_); }) < 0) return failed("sync", path_);
    return ok();
  }

  Result<std::uint64_t> size() override {
    struct stat st;
    if (::fstat(fd_, &st) < 0) return failed("stat", path_);
    return static_cast<std::uint64_t>(st.st_size);
  }

  Result<bool> try_lock() override {
    if (uninterrupted([&] { return ::flock(fd_, LOCK_EX | LOCK_NB); }) == 0) return true;
    if (errno == EWOULDBLOCK) return false;
    return failed("lock", path_);
  }

 private:
  // The kernel takes signed offsets; a larger number comes from damaged metadata.
  Result<void> check(std::string_view verb, std::uint64_t offset, std::uint64_t bytes) const {
    if (offset > kLargestOffset || bytes > kLargestOffset - offset)
      return Error::system(EFBIG, cat(verb, " ", path_));
    return ok();
  }

  // For file systems without fallocate. Blocks below the present end count as allocated: we write
  // our files from the front.
  Result<void> allocate_by_writing(std::uint64_t size) {
    static constexpr std::array<std::byte, 64 * 1024> kZeros{};
    NARAD_TRY(std::uint64_t end, this->size());
    while (end < size) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kZeros.size(), size - end));
      NARAD_TRY(write_all(*this, ByteView(kZeros.data(), n), end));
      end += n;
    }
    return ok();
  }

  int fd_;
  std::string path_;
};

int flags_of(OpenMode mode) {
  switch (mode) {
    case OpenMode::read:
      return O_RDONLY;
    case OpenMode::read_write:
      return O_RDWR;
    case OpenMode::create:
      return O_RDWR | O_CREAT;
    case OpenMode::create_new:
      return O_RDWR | O_CREAT | O_EXCL;
  }
  return O_RDONLY;
}

struct CloseDirectory {
  void operator()(DIR* d) const { ::closedir(d); }
};

}  // namespace

Result<std::unique_ptr<File>> RealFs::open(const std::string& path, OpenMode mode) {
  const int fd = uninterrupted(
      [&] { return ::open(path.c_str(), flags_of(mode) | O_CLOEXEC | O_NOCTTY, 0640); });
  if (fd < 0) return failed(mode == OpenMode::create_new ? "create" : "open", path);
  auto file = std::make_unique<RealFile>(fd, path);
  if (mode == OpenMode::read) {
    // Reading a directory would only fail later, and with a stranger error.
    struct stat st;
    if (::fstat(fd, &st) < 0) return failed("stat", path);
    if (S_ISDIR(st.st_mode)) return Error::system(EISDIR, cat("open ", path));
  }
  return std::unique_ptr<File>(std::move(file));
}

Result<void> RealFs::remove(const std::string& path) {
  if (::unlink(path.c_str()) < 0) return failed("remove", path);
  return ok();
}

Result<void> RealFs::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) < 0) return failed("rename", cat(from, " to ", to));
  return ok();
}

Result<void> RealFs::mkdir(const std::string& path) {
  if (::mkdir(path.c_str(), 0750) < 0) return failed("make directory", path);
  return ok();
}

Result<void> RealFs::rmdir(const std::string& path) {
  if (::rmdir(path.c_str()) < 0) return failed("remove directory", path);
  return ok();
}

Result<std::vector<std::string>> RealFs::list(const std::string& directory) {
  std::unique_ptr<DIR, CloseDirectory> dir(::opendir(directory.c_str()));
  if (!dir) return failed("list", directory);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return failed("list", directory);
  std::sort(names.begin(), names.end());
  return names;
}

Result<FileStat> RealFs::stat(const std::string& path) {
  struct stat st;
  if (::stat(path.c_str(), &st) < 0) return failed("stat", path);
  FileStat out;
  out.is_directory = S_ISDIR(st.st_mode);
  out.size = out.is_directory ? 0 : static_cast<std::uint64_t>(st.st_size);
  out.mtime = UnixMillis(static_cast<std::int64_t>(st.st_mtim.tv_sec) * 1000 +
                         st.st_mtim.tv_nsec / 1'000'000);
  out.id = st.st_ino;
  return out;
}

Result<void> RealFs::set_mtime(const std::string& path, UnixMillis mtime) {
  std::int64_t seconds = mtime.value() / 1000;
  std::int64_t millis = mtime.value() % 1000;
  if (millis < 0) {
    millis += 1000;
    --seconds;
  }
  timespec times[2] = {};
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_sec = seconds;
  times[1].tv_nsec = millis * 1'000'000;
  if (::utimensat(AT_FDCWD, path.c_str(), times, 0) < 0) return failed("set time of", path);
  return ok();
}

Result<void> RealFs::sync_dir(const std::string& directory) {
  const int fd =
      uninterrupted([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd < 0) return failed("sync directory", directory);
  const int r = uninterrupted([&] { return ::fsync(fd); });
  const int code = errno;
  ::close(fd);
  if (r < 0) return Error::system(code, cat("sync directory ", directory));
  return ok();
}

Result<DiskSpace> RealFs::space(const std::string& path) {
  struct statvfs st;
  if (uninterrupted([&] { return ::statvfs(path.c_str(), &st); }) < 0)
    return failed("ask for the free space of", path);
  DiskSpace out;
  out.total = static_cast<std::uint64_t>(st.f_blocks) * st.f_frsize;
  out.available = static_cast<std::uint64_t>(st.f_bavail) * st.f_frsize;
  return out;
}

}  // namespace narad
