#pragma once
// A small file system in memory, mounted as long as this lives. Needs root.
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <utility>

namespace narad::e2e {

class Tmpfs {
 public:
  Tmpfs(std::string path, const std::string& size) : path_(std::move(path)) {
    ::mkdir(path_.c_str(), 0755);
    error_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0 ? 0 : errno;
  }
  ~Tmpfs() { ::umount2(path_.c_str(), MNT_DETACH); }
  int error() const { return error_; }
  bool resize(const std::string& size) {
    return ::mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT, ("size=" + size).c_str()) == 0;
  }
  bool read_only() {
    return ::mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "") == 0;
  }

 private:
  std::string path_;
  int error_ = 0;
};

}  // namespace narad::e2e
