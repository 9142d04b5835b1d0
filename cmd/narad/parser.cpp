#include "cmd/narad/parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <list>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::cli {
namespace {

int usage_status(Manners manners) {
  switch (manners) {
    case Manners::operators:
      return 2;
    case Manners::fsck:
      return 16;
    default:
      return 1;
  }
}

const FlagSpec* find_flag(const std::vector<FlagSpec>& flags, std::string_view name) {
  for (const FlagSpec& f : flags) {
    if (f.name == name) return &f;
  }
  return nullptr;
}

// The flags a command takes: its own, then those for connecting.
std::vector<const FlagSpec*> flags_of(const CommandSpec& command) {
  std::vector<const FlagSpec*> all;
  for (const FlagSpec& f : command.flags) all.push_back(&f);
  for (const FlagSpec& f : connection_flags()) {
    bool shadowed = find_flag(command.flags, f.name) != nullptr;
    if (!shadowed && (command.connects || command.run == nullptr)) all.push_back(&f);
  }
  return all;
}

// Whether the word is a connection flag whose value is the next word ("-s URL", "--server URL").
bool takes_next_word(std::string_view word) {
  for (const FlagSpec& f : connection_flags()) {
    bool short_form = word.size() == 2 && word[0] == '-' && word[1] == f.short_name;
    if (short_form || word == cat("--", f.name)) return true;
  }
  return false;
}

// Splits `words` into the command they name and the rest. A topic may be called like a command:
// only leading words (between connection flags) name commands.
CommandPath resolve(const std::vector<std::string>& words, std::vector<std::string>& rest) {
  CommandPath path;
  path.steps.push_back(&root_command());
  bool naming = true;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (naming && word.size() > 1 && word[0] == '-') {
      if (word == "--") naming = false;
      rest.push_back(word);
      if (takes_next_word(word) && i + 1 < words.size()) rest.push_back(words[++i]);
      continue;
    }
    const CommandSpec* child = naming ? find_child(path.leaf(), word) : nullptr;
    if (child != nullptr) {
      path.steps.push_back(child);
      continue;
    }
    naming = false;
    rest.push_back(word);
  }
  return path;
}

bool is_whole_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<void> check_value(const FlagSpec& flag, const std::string& value) {
  auto refuse = [&](std::string_view why) {
    return Error(Errc::invalid_argument,
                 cat("invalid value \"", value, "\" for --", flag.name, ": ", why));
  };
  if (flag.kind == FlagKind::integer) {
    if (!is_whole_number(value)) return refuse("not a whole number");
    auto n = parse_number<std::int64_t>(value);
    if (!n || *n < flag.min || *n > flag.max) {
      if (flag.max == INT64_MAX) return refuse(cat("must be at least ", flag.min));
      return refuse(cat("must be from ", flag.min, " to ", flag.max));
    }
  }
  if (flag.kind == FlagKind::duration) {
    auto d = parse_duration(value);
    if (!d) return refuse(d.error().text());
    if (d.value() < std::chrono::nanoseconds(0)) return refuse("must not be negative");
    bool some = d.value() > std::chrono::nanoseconds(0);
    if (some && d.value() < std::chrono::milliseconds(1)) return refuse("must be at least 1ms");
  }
  if (flag.kind == FlagKind::choice && !value.empty()) {
    std::string choices = cat('|', flag.value_name, '|');
    if (choices.find(cat('|', value, '|')) == std::string::npos) {
      return refuse(cat("one of ", flag.value_name));
    }
  }
  return ok();
}

}  // namespace

class Parser {
 public:
  explicit Parser(const std::vector<std::string>& words) {
    arguments_.path_ = resolve(words, rest_);
  }

  Parsed run() {
    const CommandSpec& command = arguments_.command();
    if (auto read = read_words(); !read) return usage(read.error().text());
    if (help_ || command.run == nullptr) return help_or_refusal();
    std::size_t n = arguments_.operands_.size();
    if (n < command.operands_min || n > command.operands_max) return usage(operand_problem(n));
    Parsed parsed;
    parsed.arguments = std::move(arguments_);
    return parsed;
  }

 private:
  Result<void> read_words() {
    const CommandSpec& command = arguments_.command();
    CLI::App app;
    app.set_help_flag();
    app.add_flag("-h,--help", help_);
    app.add_option("operands", arguments_.operands_);
    std::list<bool> switches;
    std::list<std::vector<std::string>> texts;
    std::vector<std::pair<const FlagSpec*, CLI::Option*>> options;
    for (const FlagSpec* f : flags_of(command)) {
      std::string names = cat("--", f->name);
      if (f->short_name != 0) names = cat("-", f->short_name, ",", names);
      CLI::Option* option = f->kind == FlagKind::boolean
                                ? app.add_flag(names, switches.emplace_back())
                                : app.add_option(names, texts.emplace_back());
      if (f->kind != FlagKind::boolean) option->allow_extra_args(false);
      options.emplace_back(f, option);
    }
    drop_empty_values();
    join_short_values();
    try {
      std::vector<std::string> reversed(rest_.rbegin(), rest_.rend());
      app.parse(reversed);
    } catch (const CLI::ParseError& e) {
      return Error(Errc::invalid_argument, unknown_flag().value_or(e.what()));
    }
    for (const auto& [flag, option] : options) {
      if (option->count() == 0) continue;
      for (const std::string& value : option->results()) {
        NARAD_TRY(check_value(*flag, value));
        arguments_.values_[std::string(flag->name)].push_back(value);
      }
    }
    return ok();
  }

  // "--key=" means the same as not giving it; CLI11 would take the next word for its value.
  void drop_empty_values() {
    auto end = std::find(rest_.begin(), rest_.end(), "--");
    auto kept = std::remove_if(rest_.begin(), end, [](const std::string& word) {
      return word.size() > 3 && word.starts_with("--") && word.find('=') == word.size() - 1;
    });
    rest_.erase(kept, end);
  }

  // "-k=v" is "-kv" to CLI11.
  void join_short_values() {
    for (std::string& word : rest_) {
      if (word == "--") break;
      if (word.size() > 2 && word[0] == '-' && word[1] != '-' && word[2] == '=') word.erase(2, 1);
    }
  }

  // A clearer word than CLI11's for the usual mistake.
  std::optional<std::string> unknown_flag() const {
    for (const std::string& word : rest_) {
      if (word == "--") break;
      if (!word.starts_with("--")) continue;
      std::string name = word.substr(2, word.find('=') - 2);
      bool known = name == "help";
      for (const FlagSpec* f : flags_of(arguments_.command())) known = known || f->name == name;
      if (!known) return cat("unknown flag: --", name);
    }
    return std::nullopt;
  }

  Parsed help_or_refusal() {
    bool at_root = arguments_.path_.steps.size() == 1;
    if (at_root && !help_ && !arguments_.operands_.empty()) {
      return usage(cat("unknown command \"", arguments_.operands_[0], "\" for \"narad\""));
    }
    Parsed parsed;
    parsed.out = help_text(arguments_.path_);
    return parsed;
  }

  Parsed usage(std::string text) const {
    Parsed parsed;
    parsed.status = usage_status(arguments_.command().manners);
    parsed.err = cat(text, "\nRun '", arguments_.path_.text(), " --help' for usage.");
    return parsed;
  }

  std::string operand_problem(std::size_t n) const {
    const CommandSpec& command = arguments_.command();
    if (n > command.operands_max) {
      return cat("unexpected argument \"", arguments_.operands_[command.operands_max], "\"");
    }
    return cat(arguments_.path_.text(), " needs ", command.operands);
  }

  Arguments arguments_;
  std::vector<std::string> rest_;
  bool help_ = false;
};

Parsed parse(const std::vector<std::string>& words) { return Parser(words).run(); }

const FlagSpec& Arguments::spec(std::string_view name) const {
  const FlagSpec* found = find_flag(command().flags, name);
  if (found == nullptr) found = find_flag(connection_flags(), name);
  NARAD_ASSERT(found != nullptr, name);
  return *found;
}

std::string Arguments::value(std::string_view name) const {
  auto at = values_.find(name);
  return at == values_.end() ? std::string(spec(name).default_value) : at->second.back();
}

bool Arguments::given(std::string_view flag) const { return values_.contains(flag); }
bool Arguments::flag(std::string_view name) const { return value(name) == "true"; }
std::int64_t Arguments::integer(std::string_view name) const {
  return parse_number<std::int64_t>(value(name)).value_or(0);
}
std::string Arguments::text(std::string_view name) const { return value(name); }
std::chrono::nanoseconds Arguments::duration(std::string_view name) const {
  auto d = parse_duration(value(name));
  return d ? d.value() : std::chrono::nanoseconds(0);
}
std::vector<std::string> Arguments::list(std::string_view name) const {
  auto at = values_.find(name);
  return at == values_.end() ? std::vector<std::string>() : at->second;
}

}  // namespace narad::cli
