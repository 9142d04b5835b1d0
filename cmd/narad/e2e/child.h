#pragma once
// A child process of a test: started with its own environment, its standard output read line by
// line, its standard error kept. Killed when the object goes.
#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace narad::e2e {

using Clock = std::chrono::steady_clock;
using Duration = std::chrono::milliseconds;

struct ChildOptions {
  std::map<std::string, std::string> env;  // added to a small fixed environment
  std::string cwd;                         // empty: a neutral one
  unsigned run_as = 0;                     // user and group id; 0: as the test
};

struct Exit {
  int code = -1;   // exit code, or -1 if a signal ended it
  int signal = 0;  // that signal
};

class Child {
 public:
  explicit Child(std::vector<std::string> argv, ChildOptions options = {});
  Child(const Child&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }
  // Waits for the next whole line of standard output; nothing at its end or after `limit`.
  std::optional<std::string> line(Duration limit);
  // Reads lines until one contains `text`; that line, or nothing.
  std::optional<std::string> line_with(const std::string& text, Duration limit);
  void signal(int number);
  // Waits for the end; nothing after `limit`.
  std::optional<Exit> wait(Duration limit);
  // kill -9 and wait.
  void kill9();
  bool running();
  // All that was read from standard output so far (drains what is there), and standard error.
  std::string out();
  std::string err();

 private:
  bool read_some(int fd, std::string& into, int wait_ms);
  pid_t pid_ = -1;
  int pidfd_ = -1;
  int out_fd_ = -1;
  int err_fd_ = -1;
  std::string out_;
  std::size_t line_at_ = 0;  // where the next line() begins in out_
  std::string err_;
  std::optional<Exit> exit_;
};

struct Ran {
  Exit exit;
  std::string out;
  std::string err;
};
// Runs a command to its end (killed after `limit`; then exit.signal is 9).
Ran run(std::vector<std::string> argv, ChildOptions options = {},
        Duration limit = std::chrono::seconds(60));

// The built binary, and the directory of the build.
std::string narad_binary();
std::string build_directory();

// A directory of its own that goes with the object.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& text);

}  // namespace narad::e2e
