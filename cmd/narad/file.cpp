#include "cmd/narad/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "pkg/base/text.h"

namespace narad::cli {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Result<std::string> read_whole(const std::string& path, std::size_t limit) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return Error::system(errno, cat("read ", path));
  std::string text;
  char buffer[64 * 1024];
  for (;;) {
    ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error::system(errno, cat("read ", path));
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > limit) {
      return Error(Errc::too_large, cat(path, " is larger than ", limit, " bytes"));
    }
  }
}

}  // namespace narad::cli
