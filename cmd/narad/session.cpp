#include "cmd/narad/session.h"

#include "cmd/narad/contexts.h"
#include "cmd/narad/format.h"
#include "pkg/base/text.h"
#include "pkg/env/real/runtime.h"
#include "pkg/json/text.h"

namespace narad::cli {
namespace {

Task<int> run_body(Session session, Task<Result<int>> (*body)(Session&)) {
  auto result = co_await body(session);
  if (result) co_return result.value();
  co_return report(session.terminal, result.error(), session.args.command().manners);
}

}  // namespace

void print_out(Terminal& terminal, std::string_view text) {
  if (!terminal.out_is_terminal()) return terminal.out(text);
  terminal.out(printable(text, true));
}

void print_err(Terminal& terminal, std::string_view text) {
  if (!terminal.err_is_terminal()) return terminal.err(text);
  terminal.err(printable(text, true));
}

void complain(Terminal& terminal, std::string_view text) {
  print_err(terminal, cat("narad: ", text, "\n"));
}

int report(Terminal& terminal, const Error& error, Manners manners) {
  complain(terminal, error.text());
  if (manners == Manners::classic) return 1;
  bool unknown = error.code() == Errc::unavailable || error.code() == Errc::unknown_outcome ||
                 error.code() == Errc::data_loss;
  return unknown ? kUnknown : 1;
}

int run_session(const Arguments& args, Terminal& terminal, Task<Result<int>> (*body)(Session&),
                SessionOptions options) {
  Connection connection = resolve_connection(args);
  RuntimeOptions runtime_options;
  runtime_options.handle_signals = options.signals;
  runtime_options.log.level = LogLevel::error;
  runtime_options.log.format = LogOptions::Format::text;
  runtime_options.log.fd = 2;
  Runtime runtime(runtime_options);
  client::ClientOptions client_options;
  client_options.pool.idle_max = options.connections;
  Client client(runtime.env(), connection.server, connection.user, connection.password,
                client_options);
  return runtime.run(run_body(Session{args, terminal, runtime.env(), client}, body));
}

void print_json(Terminal& terminal, std::string_view body) {
  if (body.empty()) return;
  auto pretty = json::pretty(body);
  print_out(terminal, pretty ? cat(*pretty, "\n") : std::string(body));
}

}  // namespace narad::cli
