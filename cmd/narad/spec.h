#pragma once
// The commands of `narad` as a table: parser, help, manual page and completion are all made from
// it.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace narad::cli {

class Arguments;
class Terminal;

enum class FlagKind : std::uint8_t {
  boolean,
  integer,  // decimal, from min to max
  text,
  duration,  // Go's: "1h30m"; 0, or a millisecond at least
  list,      // text, may be given again
  choice,    // one of the words of value_name: "text|json"
};

struct FlagSpec {
  std::string_view name;
  char short_name = 0;
  FlagKind kind = FlagKind::text;
  std::string_view default_value = {};  // as a user would write it
  std::string_view value_name = {};     // in help: --key KEY
  std::string_view help = {};
  std::int64_t min = 0;  // of an integer
  std::int64_t max = INT64_MAX;
};

// How a command answers a shell.
enum class Manners : std::uint8_t {
  classic,    // 0, or 1 for every failure: what scripts of release 2.x rely on
  operators,  // 0 yes, 1 no or refused, 2 usage, 3 could not find out
  fsck,       // fsck(8)'s bits; 16 usage
};

struct CommandSpec {
  std::string_view name;
  std::string_view alias = {};
  std::string_view operands = {};  // "TOPIC [MESSAGE]"
  std::size_t operands_min = 0;
  std::size_t operands_max = 0;
  std::string_view summary = {};  // one line
  std::string_view details = {};  // paragraphs for help and the manual page
  std::vector<FlagSpec> flags = {};
  std::vector<CommandSpec> children = {};
  bool connects = false;  // takes --server, --user, --password
  Manners manners = Manners::classic;
  int (*run)(const Arguments&, Terminal&) = nullptr;  // the exit status; null for a group
};

const CommandSpec& root_command();
// --server, --user, --password.
const std::vector<FlagSpec>& connection_flags();

// The child of that name or alias, or null.
const CommandSpec* find_child(const CommandSpec& group, std::string_view name);

// The words behind "narad", and what they name in the table.
struct CommandPath {
  std::vector<const CommandSpec*> steps;  // from the root
  const CommandSpec& leaf() const { return *steps.back(); }
  std::string text() const;  // "narad topic add"
};

// What `narad help WORDS` and -h print.
std::string help_text(const CommandPath& path);
// narad(1), roff.
std::string manual_page();
// A script for "bash", "zsh" or "fish"; empty for another shell.
std::string completion_script(std::string_view shell);

}  // namespace narad::cli
