#include "cmd/narad/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "pkg/base/text.h"

namespace narad::cli {
namespace {

bool write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

Terminal::Terminal()
    : out_is_terminal_(::isatty(STDOUT_FILENO) == 1),
      err_is_terminal_(::isatty(STDERR_FILENO) == 1),
      styled_(out_is_terminal_ && environment("NO_COLOR").empty()) {}

void Terminal::out(std::string_view text) {
  if (!write_whole(STDOUT_FILENO, text)) out_failed_ = true;
}
void Terminal::err(std::string_view text) { write_whole(STDERR_FILENO, text); }

ScreenSize Terminal::out_size() const {
  ScreenSize size;
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0) return size;
  if (window.ws_row > 0) size.rows = window.ws_row;
  if (window.ws_col > 0) size.columns = window.ws_col;
  return size;
}

std::string Terminal::bold(std::string_view text) const {
  return styled_ ? cat("\x1b[1m", text, "\x1b[0m") : std::string(text);
}
std::string Terminal::faint(std::string_view text) const {
  return styled_ ? cat("\x1b[2m", text, "\x1b[0m") : std::string(text);
}

Result<std::string> Terminal::read_all(std::size_t limit) const {
  std::string all;
  char buffer[64 * 1024];
  for (;;) {
    ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Error::system(errno, "read standard input");
    if (n == 0) return all;
    all.append(buffer, static_cast<std::size_t>(n));
    if (all.size() > limit) {
      return Error(Errc::too_large, cat("standard input is larger than ", limit, " bytes"));
    }
  }
}

std::string Terminal::read_line() const {
  std::string line;
  char c = 0;
  while (::read(STDIN_FILENO, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace narad::cli
