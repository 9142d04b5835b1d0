#include "internal/fsck/read_only_fs.h"

#include <cerrno>

#include "pkg/base/text.h"

namespace narad::fsck {
namespace {

Error refused(std::string_view what) { return Error::system(EROFS, cat("check: ", what)); }

class ReadOnlyFile final : public File {
 public:
  ReadOnlyFile(std::unique_ptr<File> file, Counters& counters)
      : file_(std::move(file)), counters_(counters) {}

  Result<std::size_t> pread(std::span<std::byte> buffer, std::uint64_t offset) override {
    auto got = file_->pread(buffer, offset);
    if (got) counters_.bytes_read += got.value();
    return got;
  }
  Result<std::uint64_t> size() override { return file_->size(); }
  Result<bool> try_lock() override { return file_->try_lock(); }

  Result<std::size_t> pwrite(ByteView, std::uint64_t) override { return refused("write"); }
  Result<std::size_t> pwritev(std::span<const ByteView>, std::uint64_t) override {
    return refused("write");
  }
  Result<void> truncate(std::uint64_t) override { return refused("truncate"); }
  Result<void> allocate(std::uint64_t) override { return refused("allocate"); }
  Result<void> sync() override { return refused("sync"); }
  Result<void> datasync() override { return refused("sync"); }

 private:
  std::unique_ptr<File> file_;
  Counters& counters_;
};

}  // namespace

Result<std::unique_ptr<File>> ReadOnlyFs::open(const std::string& path, OpenMode mode) {
  if (mode != OpenMode::read) return refused(cat("open for writing ", path));
  NARAD_TRY(auto file, fs_.open(path, OpenMode::read));
  if (opened_.insert(path).second) ++counters_.files;
  return std::unique_ptr<File>(std::make_unique<ReadOnlyFile>(std::move(file), counters_));
}

Result<void> ReadOnlyFs::remove(const std::string& path) { return refused(cat("remove ", path)); }
Result<void> ReadOnlyFs::rename(const std::string& from, const std::string&) {
  return refused(cat("rename ", from));
}
Result<void> ReadOnlyFs::mkdir(const std::string& path) { return refused(cat("mkdir ", path)); }
Result<void> ReadOnlyFs::rmdir(const std::string& path) { return refused(cat("rmdir ", path)); }
Result<void> ReadOnlyFs::set_mtime(const std::string& path, UnixMillis) {
  return refused(cat("set the time of ", path));
}
Result<void> ReadOnlyFs::sync_dir(const std::string& path) { return refused(cat("sync ", path)); }

}  // namespace narad::fsck
