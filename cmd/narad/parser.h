#pragma once
// From words to a command and its values. The only source that includes CLI11 is parser.cpp.
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/narad/spec.h"
#include "pkg/base/result.h"

namespace narad::cli {

// The values of one command: what was given, else the default. Asking for a flag that the command
// does not have is a bug.
class Arguments {
 public:
  const CommandSpec& command() const { return path_.leaf(); }
  const CommandPath& path() const { return path_; }
  const std::vector<std::string>& operands() const { return operands_; }
  const std::string& operand(std::size_t i) const { return operands_.at(i); }
  std::size_t operand_count() const { return operands_.size(); }

  bool given(std::string_view flag) const;
  bool flag(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  std::string text(std::string_view name) const;
  std::chrono::nanoseconds duration(std::string_view name) const;
  std::vector<std::string> list(std::string_view name) const;

 private:
  friend class Parser;
  CommandPath path_;
  std::vector<std::string> operands_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;  // given ones
  const FlagSpec& spec(std::string_view name) const;
  std::string value(std::string_view name) const;
};

struct Parsed {
  std::optional<Arguments> arguments;  // run this; otherwise:
  int status = 0;
  std::string out;  // for standard output (help)
  std::string err;  // for standard error, without "narad: "
};
Parsed parse(const std::vector<std::string>& words);

}  // namespace narad::cli
