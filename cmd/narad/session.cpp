#include "cmd/narad/session.h"

#include "cmd/narad/contexts.h"
#include "cmd/narad/format.h"
#include "pkg/base/text.h"
#include "pkg/env/real/runtime.h"
#include "pkg/json/text.h"

namespace narad::cli {
namespace {

constexpr int kUnknownStatus = 3;

Task<int> run_body(Session session, Task<Result<int>> (*body)(Session&)) {
  auto result = co_await body(session);
  if (result) co_return result.value();
  co_return report(session.terminal, result.error(), session.args.command().manners);
}

}  // namespace

int report(Terminal& terminal, const Error& error, Manners manners) {
  bool for_terminal = terminal.err_is_terminal();
  terminal.err(cat("narad: ", for_terminal ? printable(error.text(), true) : error.text(), "\n"));
  if (manners == Manners::classic) return 1;
  bool unknown = error.code() == Errc::unavailable || error.code() == Errc::unknown_outcome ||
                 error.code() == Errc::data_loss;
  return unknown ? kUnknownStatus : 1;
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
  if (pretty) {
    terminal.out(cat(terminal.out_is_terminal() ? printable(*pretty, true) : *pretty, "\n"));
  } else {
    terminal.out(terminal.out_is_terminal() ? printable(body, true) : std::string(body));
  }
}

}  // namespace narad::cli
