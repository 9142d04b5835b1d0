#pragma once
// The file door with the writing taken out: what every check reads through. A call that would
// change something is a bug of the check and is answered with EROFS without reaching the disk.
// Counts what is read.
#include <set>
#include <string>

#include "internal/fsck/report.h"
#include "pkg/env/fs.h"

namespace narad::fsck {

class ReadOnlyFs final : public FileSystem {
 public:
  // Both outlive it.
  ReadOnlyFs(FileSystem& fs, Counters& counters) : fs_(fs), counters_(counters) {}

  // Mode `read` only; locks may be taken on what it opens.
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<std::vector<std::string>> list(const std::string& directory) override {
    return fs_.list(directory);
  }
  Result<FileStat> stat(const std::string& path) override { return fs_.stat(path); }
  Result<DiskSpace> space(const std::string& path) override { return fs_.space(path); }

  Result<void> remove(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> mkdir(const std::string& path) override;
  Result<void> rmdir(const std::string& path) override;
  Result<void> set_mtime(const std::string& path, UnixMillis mtime) override;
  Result<void> sync_dir(const std::string& directory) override;

 private:
  FileSystem& fs_;
  Counters& counters_;
  std::set<std::string> opened_;
};

}  // namespace narad::fsck
