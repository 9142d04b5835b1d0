#include "cmd/narad/session.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "pkg/base/assert.h"

namespace narad::cli {
namespace {

// What a hostile server could say: clear the screen, set the title, go back in the line.
constexpr std::string_view kHostile = "gone\x1b[2J\x1b]0;x\x07\r: no\n";
constexpr std::string_view kEscaped = "gone\\x1b[2J\\x1b]0;x\\x07\\x0d: no\n";

// Stands in for a standard stream as long as it lives.
class Stream {
 public:
  Stream(int number, int by) : number_(number), saved_(::dup(number)) {
    NARAD_ASSERT(saved_ >= 0 && ::dup2(by, number) == number);
  }
  Stream(const Stream&) = delete;
  ~Stream() {
    ::dup2(saved_, number_);
    ::close(saved_);
  }

 private:
  int number_;
  int saved_;
};

std::string read_once(int fd) {
  char buffer[4096];
  const ssize_t n = ::read(fd, buffer, sizeof buffer);
  NARAD_ASSERT(n >= 0);
  return std::string(buffer, static_cast<std::size_t>(n));
}

// What `print` puts on that stream while it is a terminal, which changes nothing by itself.
std::string on_terminal(int number, void (*print)(Terminal&)) {
  const int keyboard = ::posix_openpt(O_RDWR | O_NOCTTY);
  NARAD_ASSERT(keyboard >= 0 && ::grantpt(keyboard) == 0 && ::unlockpt(keyboard) == 0);
  const int screen = ::open(::ptsname(keyboard), O_RDWR | O_NOCTTY);
  NARAD_ASSERT(screen >= 0);
  termios raw{};
  NARAD_ASSERT(::tcgetattr(screen, &raw) == 0);
  ::cfmakeraw(&raw);
  NARAD_ASSERT(::tcsetattr(screen, TCSANOW, &raw) == 0);
  {
    const Stream stream(number, screen);
    Terminal terminal;
    print(terminal);
  }
  const std::string shown = read_once(keyboard);
  ::close(screen);
  ::close(keyboard);
  return shown;
}

std::string on_pipe(int number, void (*print)(Terminal&)) {
  int ends[2];
  NARAD_ASSERT(::pipe(ends) == 0);
  {
    const Stream stream(number, ends[1]);
    Terminal terminal;
    print(terminal);
  }
  const std::string written = read_once(ends[0]);
  ::close(ends[0]);
  ::close(ends[1]);
  return written;
}

void print_hostile(Terminal& t) { print_out(t, kHostile); }
void warn_hostile(Terminal& t) { print_err(t, kHostile); }
void complain_hostile(Terminal& t) { complain(t, kHostile.substr(0, kHostile.size() - 1)); }
void report_hostile(Terminal& t) {
  report(t, Error(Errc::internal, std::string(kHostile.substr(0, kHostile.size() - 1))),
         Manners::classic);
}
void print_body(Terminal& t) { print_json(t, kHostile); }

TEST(Print, TextOfAServerOnATerminal_IsEscaped) {
  EXPECT_EQ(on_terminal(STDOUT_FILENO, print_hostile), kEscaped);
  EXPECT_EQ(on_terminal(STDOUT_FILENO, print_body), kEscaped);
  EXPECT_EQ(on_terminal(STDERR_FILENO, warn_hostile), kEscaped);
  EXPECT_EQ(on_terminal(STDERR_FILENO, complain_hostile), "narad: " + std::string(kEscaped));
  EXPECT_EQ(on_terminal(STDERR_FILENO, report_hostile), "narad: " + std::string(kEscaped));
}

TEST(Print, TextOfAServerElsewhere_IsAsItCame) {
  EXPECT_EQ(on_pipe(STDOUT_FILENO, print_hostile), kHostile);
  EXPECT_EQ(on_pipe(STDOUT_FILENO, print_body), kHostile);
  EXPECT_EQ(on_pipe(STDERR_FILENO, complain_hostile), "narad: " + std::string(kHostile));
}

}  // namespace
}  // namespace narad::cli
