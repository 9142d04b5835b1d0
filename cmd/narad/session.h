#pragma once
// What a command that talks to a broker works with: its values, the terminal, a loop and a client.
#include <string>

#include "cmd/narad/parser.h"
#include "cmd/narad/terminal.h"
#include "pkg/client/client.h"

namespace narad::cli {

inline constexpr int kUnknown = 3;  // operators' manners: it could not be found out

struct Session {
  const Arguments& args;
  Terminal& terminal;
  Env& env;
  Client& client;
};

struct SessionOptions {
  bool signals = false;         // the command waits for SIGINT and SIGTERM itself
  std::size_t connections = 8;  // kept open
};

// Runs `body` on a loop of its own; its value is the exit status. An error is printed as
// "narad: text" and answered 1; with operators' manners 3 if it could not be found out.
int run_session(const Arguments& args, Terminal& terminal, Task<Result<int>> (*body)(Session&),
                SessionOptions options = {});

// Prints text that has words of a server or of a file in it: where a person looks at it, control
// characters are escaped. Styles of our own do not go through here.
void print_out(Terminal& terminal, std::string_view text);
void print_err(Terminal& terminal, std::string_view text);
// "narad: text" and a newline to standard error, in the same way.
void complain(Terminal& terminal, std::string_view text);

// Prints the error; the exit status that fits it.
int report(Terminal& terminal, const Error& error, Manners manners);

// The answer re-indented with two spaces and a newline; nothing for an empty one; what is not JSON
// as it is.
void print_json(Terminal& terminal, std::string_view body);

}  // namespace narad::cli
