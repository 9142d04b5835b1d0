#pragma once
// Files of the kernel (fs.h). Usable without a loop: offline tools make one and call it directly.
// New files are 0640 and new directories 0750, less the umask.
#include "pkg/env/fs.h"

namespace narad {

class RealFs final : public FileSystem {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<void> remove(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> mkdir(const std::string& path) override;
  Result<void> rmdir(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& directory) override;
  Result<FileStat> stat(const std::string& path) override;
  Result<void> set_mtime(const std::string& path, UnixMillis mtime) override;
  Result<void> sync_dir(const std::string& directory) override;
  Result<DiskSpace> space(const std::string& path) override;
};

}  // namespace narad
