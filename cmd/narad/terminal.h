#pragma once
// Standard streams as a command sees them.
#include <string>
#include <string_view>

#include "pkg/base/result.h"

namespace narad::cli {

struct ScreenSize {
  std::size_t rows = 24, columns = 80;
};

class Terminal {
 public:
  Terminal();
  // Written at once and whole. A failure to write standard output is remembered (out_failed).
  void out(std::string_view text);
  void err(std::string_view text);
  bool out_failed() const { return out_failed_; }

  bool out_is_terminal() const { return out_is_terminal_; }
  bool err_is_terminal() const { return err_is_terminal_; }
  // Of the terminal behind standard output now; 24 lines of 80 where it does not say.
  ScreenSize out_size() const;
  // Styles only where a person looks and NO_COLOR is empty.
  std::string bold(std::string_view text) const;
  std::string faint(std::string_view text) const;

  // All of standard input; too_large above `limit` bytes.
  Result<std::string> read_all(std::size_t limit) const;
  // One line of standard input without its end; empty at the end of input.
  std::string read_line() const;

 private:
  bool out_is_terminal_;
  bool err_is_terminal_;
  bool styled_;
  bool out_failed_ = false;
};

// An environment variable; empty if it is not set.
std::string environment(const char* name);

}  // namespace narad::cli
