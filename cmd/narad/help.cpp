// Help, manual page and completion scripts, all from the table of commands.
#include <algorithm>

#include "cmd/narad/commands.h"
#include "cmd/narad/parser.h"
#include "cmd/narad/spec.h"
#include "cmd/narad/terminal.h"
#include "pkg/base/text.h"
#include "pkg/config/config.h"

namespace narad::cli {
namespace {

constexpr std::size_t kWidth = 80;

// Breaks `text` at spaces so that no line is longer than kWidth; `indent` spaces before each line.
std::string wrap(std::string_view text, std::size_t indent) {
  std::string out;
  std::string line(indent, ' ');
  while (!text.empty()) {
    std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.size() > indent && line.size() + 1 + word.size() > kWidth) {
      out += cat(line, "\n");
      line.assign(indent, ' ');
    }
    if (line.size() > indent) line += ' ';
    line += word;
  }
  return cat(out, line, "\n");
}

std::string flag_column(const FlagSpec& f) {
  std::string out =
      f.short_name != 0 ? cat("  -", f.short_name, ", --", f.name) : cat("      --", f.name);
  if (f.kind != FlagKind::boolean) out += cat(' ', f.value_name);
  return out;
}

std::string flag_help(const FlagSpec& f) {
  bool silent = f.kind == FlagKind::boolean || f.default_value.empty() || f.default_value == "0" ||
                f.default_value == "-1";
  return silent ? std::string(f.help) : cat(f.help, " (default ", f.default_value, ")");
}

std::string flag_table(const std::vector<FlagSpec>& flags) {
  std::size_t width = 0;
  for (const FlagSpec& f : flags) width = std::max(width, flag_column(f).size());
  std::string out;
  for (const FlagSpec& f : flags) {
    std::string column = flag_column(f);
    column.resize(width, ' ');
    out += cat(column, "   ", flag_help(f), "\n");
  }
  return out;
}

std::string usage_line(const CommandPath& path) {
  const CommandSpec& c = path.leaf();
  std::string line = path.text();
  if (c.run == nullptr) return cat(line, " COMMAND");
  if (!c.operands.empty()) line += cat(' ', c.operands);
  if (!c.flags.empty() || c.connects) line += " [flags]";
  return line;
}

// Calls `visit` for the command or group and all below it, in the order of the table.
template <class F>
void for_each_path(const CommandPath& path, const F& visit) {
  visit(path);
  for (const CommandSpec& child : path.leaf().children) {
    CommandPath next = path;
    next.steps.push_back(&child);
    for_each_path(next, visit);
  }
}

// The same for every command that can be run.
template <class F>
void for_each_command(const CommandPath& path, const F& visit) {
  for_each_path(path, [&](const CommandPath& p) {
    if (p.leaf().run != nullptr) visit(p);
  });
}

// The settings of `narad serve`, from the table that reads them.
std::string settings_table() {
  std::string out = "\nSettings (path in the file of --config, variable, default):\n";
  for (const SettingInfo& setting : describe_settings()) {
    std::string path = setting.path;
    path.resize(std::max<std::size_t>(path.size() + 1, 40), ' ');
    std::string env = setting.env.empty() ? "-" : setting.env;
    env.resize(std::max<std::size_t>(env.size() + 1, 44), ' ');
    std::string_view otherwise =
        setting.default_value.empty() ? "-" : std::string_view(setting.default_value);
    out += cat("  ", path, env, otherwise, "\n");
  }
  return out;
}

CommandPath root_path() { return {{&root_command()}}; }

// Text as roff: backslashes and hyphens of options escaped, no line starts with a control
// character.
std::string roff(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
  return out;
}

std::string roff_flags(const std::vector<FlagSpec>& flags) {
  std::string out;
  for (const FlagSpec& f : flags) {
    std::string column = flag_column(f);
    out += cat(".TP\n.B ", roff(column.substr(column.find('-'))), "\n", roff(flag_help(f)), "\n");
  }
  return out;
}

// What may follow a command on the command line: children and flags.
std::vector<std::string> completions_of(const CommandSpec& command) {
  std::vector<std::string> words;
  for (const CommandSpec& child : command.children) words.emplace_back(child.name);
  for (const FlagSpec& f : command.flags) words.push_back(cat("--", f.name));
  if (command.connects) {
    for (const FlagSpec& f : connection_flags()) words.push_back(cat("--", f.name));
  }
  if (command.name == "completion") words.insert(words.end(), {"bash", "zsh", "fish"});
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += out.empty() ? w : cat(' ', w);
  return out;
}

// One line per command: "  'topic add') words='--partitions ...' ;;".
std::string shell_cases() {
  std::string out;
  for_each_path(root_path(), [&](const CommandPath& path) {
    std::string text = path.text();
    std::string key = text == "narad" ? "" : text.substr(6);
    out += cat("    '", key, "') words='", joined(completions_of(path.leaf())), "' ;;\n");
  });
  return out;
}

std::string bash_completion() {
  return cat(
      "# bash completion for narad: source this, or put it into "
      "/usr/share/bash-completion/completions/narad\n"
      "_narad() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} path='' words='' i word\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    word=${COMP_WORDS[i]}\n"
      "    [[ $word == -* ]] || path=\"${path:+$path }$word\"\n"
      "  done\n"
      "  while :; do\n"
      "    case \"$path\" in\n",
      shell_cases(),
      "    esac\n"
      "    [[ -n $words || $path != *' '* ]] && break\n"
      "    path=${path% *}\n"
      "  done\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
      "}\n"
      "complete -o default -F _narad narad\n");
}

std::string zsh_completion() {
  return cat("#compdef narad\nautoload -U +X bashcompinit && bashcompinit\n", bash_completion());
}

std::string fish_completion() {
  std::string out =
      "# fish completion for narad: put it into ~/.config/fish/completions/narad.fish\n";
  out += "complete -c narad -f\n";
  for_each_path(root_path(), [&](const CommandPath& path) {
    if (path.steps.size() == 1) return;
    const CommandSpec& command = path.leaf();
    std::string before;  // the words that were typed already
    for (std::size_t i = 1; i + 1 < path.steps.size(); ++i) {
      before += cat(i == 1 ? "" : "; and ", "__fish_seen_subcommand_from ", path.steps[i]->name);
    }
    out += before.empty() ? cat("complete -c narad -n __fish_use_subcommand -a ", command.name)
                          : cat("complete -c narad -n '", before, "' -a ", command.name);
    out += cat(" -d '", command.summary, "'\n");
    const std::string inside =
        cat(before, before.empty() ? "" : "; and ", "__fish_seen_subcommand_from ", command.name);
    for (const std::string& word : completions_of(command)) {
      if (!word.starts_with("--")) continue;
      out += cat("complete -c narad -n '", inside, "' -l ", word.substr(2), "\n");
    }
  });
  return out;
}

}  // namespace

std::string help_text(const CommandPath& path) {
  const CommandSpec& c = path.leaf();
  std::string out = cat(c.summary, ".\n\nUsage:\n  ", usage_line(path), "\n");
  if (!c.alias.empty()) out += cat("  (also: ", c.alias, ")\n");
  if (!c.details.empty()) out += cat("\n", wrap(c.details, 0));
  if (!c.children.empty()) {
    out += "\nCommands:\n";
    for (const CommandSpec& child : c.children) {
      std::string name(child.name);
      name.resize(14, ' ');
      out += cat("  ", name, child.summary, "\n");
    }
    out += cat("\nRun '", path.text(), " COMMAND --help' for one of them.\n");
  }
  if (!c.flags.empty()) out += cat("\nFlags:\n", flag_table(c.flags));
  if (c.connects) out += cat("\nConnection:\n", flag_table(connection_flags()));
  if (path.text() == "narad serve") out += settings_table();
  return out;
}

std::string manual_page() {
  std::string out = ".TH NARAD 1\n.SH NAME\nnarad \\- ";
  out += "message broker in one binary, and its command line\n.SH SYNOPSIS\n.B narad\n.I COMMAND\n";
  out += "[flags]\n.SH DESCRIPTION\n";
  out +=
      "Narad keeps topics of records on disk, takes messages over HTTP and hands each to one "
      "consumer until it is acked.\n";
  out += ".SH CONNECTION\nCommands that talk to a broker take:\n";
  out += roff_flags(connection_flags());
  out += ".SH COMMANDS\n";
  for_each_command(root_path(), [&](const CommandPath& path) {
    const CommandSpec& c = path.leaf();
    out += cat(".SS ", roff(usage_line(path)), "\n", roff(c.summary), ".\n");
    if (!c.details.empty()) out += cat(".PP\n", roff(c.details), "\n");
    out += roff_flags(c.flags);
  });
  out +=
      ".SH EXIT STATUS\n0 done; 1 failed or refused. "
      ".B cluster\nand\n.B serve\nalso answer 2 for wrong usage and 3 when the answer could not be "
      "found out;\n.B serve\n74 when a sync failed and 77 when the node was removed from its "
      "cluster;\n"
      ".B fsck\nanswers bits, see there.\n";
  out +=
      ".SH SETTINGS\nOf\n.BR serve :\nthe path in the file of --config, the variable, the "
      "default.\n";
  for (const SettingInfo& setting : describe_settings()) {
    out += cat(".TP\n.B ", roff(setting.path), "\n");
    if (!setting.env.empty()) out += cat(roff(setting.env), "; ");
    out += cat("default ", setting.default_value.empty() ? "empty" : roff(setting.default_value),
               "\n");
  }
  out += ".SH FILES\n.TP\n.I ~/.config/narad/contexts.json\nsaved connections\n";
  return out;
}

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return bash_completion();
  if (shell == "zsh") return zsh_completion();
  if (shell == "fish") return fish_completion();
  return {};
}

int help(const Arguments& args, Terminal& terminal) {
  CommandPath path = root_path();
  for (const std::string& word : args.operands()) {
    const CommandSpec* child = find_child(path.leaf(), word);
    if (child == nullptr) {
      terminal.err(cat("narad: no command \"", path.text(), " ", word, "\"\n"));
      return 1;
    }
    path.steps.push_back(child);
  }
  terminal.out(help_text(path));
  return 0;
}

int completion(const Arguments& args, Terminal& terminal) {
  std::string script = completion_script(args.operand(0));
  if (script.empty()) {
    terminal.err(cat("narad: no completion for \"", args.operand(0), "\": bash, zsh or fish\n"));
    return 1;
  }
  terminal.out(script);
  return 0;
}

int man(const Arguments&, Terminal& terminal) {
  terminal.out(manual_page());
  return 0;
}

}  // namespace narad::cli
