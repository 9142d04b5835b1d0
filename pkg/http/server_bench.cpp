// The HTTP layer by itself. Without arguments: server and 64 clients in one loop, requests a
// second. As a server, to be driven from outside and to be the baseline of other measurements:
//
//   pkg_http_server_bench --listen [port]     # prints "listening on 127.0.0.1:PORT"
//   wrk -t1 -c64 -d5 http://127.0.0.1:PORT/hello
//
// GET /hello answers 13 bytes; POST /echo answers the body; POST /accept answers 202, as produce
// does; GET /wait answers after 20 s unless the client goes away. Ends at SIGTERM or SIGINT.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "pkg/async/task_group.h"
#include "pkg/env/real/runtime.h"
#include "pkg/http/client.h"
#include "pkg/http/server.h"

namespace narad {
namespace {

enum Routes { kHello, kEcho, kAccept, kWait };

Task<http::Response> answer(Env& env, http::Request request) {
  if (!request.match) co_return http::error_response(404, "no such page");
  switch (request.match.route->id) {
    case kEcho:
      co_return http::json_response(200, std::move(request.body));
    case kAccept:
      co_return http::empty_response(202);
    case kWait:
      co_await sleep_for(env, std::chrono::seconds(20));
      co_return http::empty_response(204);
    default:
      co_return http::json_response(200, "Hello, world\n");
  }
}

struct Counted {
  std::uint64_t requests = 0;
  bool failed = false;
};

Task<void> ask(Env& env, http::Client& client, Endpoint to, Deadline until, Counted& counted) {
  while (!until.passed(env)) {
    http::ClientRequest request(http::Method::get, "/hello");
    auto r = co_await client.request(to, std::move(request),
                                     Deadline::after(env, std::chrono::seconds(5)));
    if (!r || r.value().status != 200) {
      counted.failed = true;
      co_return;
    }
    ++counted.requests;
  }
}

Task<int> load(Env& env, Endpoint to) {
  constexpr int kClients = 64;
  constexpr auto kTime = std::chrono::seconds(3);
  http::ClientOptions options;
  options.idle_max = kClients;
  http::Client client(env, options);
  Counted counted;
  TaskGroup group(env);
  const auto until = Deadline::after(env, kTime);
  for (int i = 0; i < kClients; ++i) group.spawn("ask", ask(env, client, to, until, counted));
  while (group.size() > 0) co_await sleep_for(env, std::chrono::milliseconds(20));
  std::printf("server and client on one loop: %llu requests/s\n",
              static_cast<unsigned long long>(counted.requests / kTime.count()));
  client.close_idle();
  co_return counted.failed ? 1 : 0;
}

Task<int> serve(Env& env, std::optional<std::uint16_t> port) {
  http::Router router;
  router.add("GET /hello", kHello);
  router.add("POST /echo", kEcho);
  router.add("POST /accept", kAccept);
  http::RouteOptions poll;
  poll.cancel_when_gone = true;
  router.add("GET /wait", kWait, poll);
  auto handler = [&env](http::Request request) { return answer(env, std::move(request)); };
  http::Server server(env, {}, http::admit_with(router), std::move(handler));
  auto listening = server.listen(Endpoint{"127.0.0.1", port.value_or(0)});
  if (!listening) {
    std::fprintf(stderr, "%s\n", listening.error().text().c_str());
    co_return 1;
  }
  const Endpoint at = server.local().front();
  int code = 0;
  if (port) {
    std::printf("listening on %s\n", to_string(at).c_str());
    std::fflush(stdout);
    co_await next_signal(env);
  } else {
    code = co_await load(env, at);
  }
  co_await server.stop(std::chrono::seconds(1));
  co_return code;
}

}  // namespace
}  // namespace narad

int main(int argc, char** argv) {
  narad::RuntimeOptions options;
  options.handle_signals = true;
  narad::Runtime runtime(options);
  std::optional<std::uint16_t> port;
  if (argc > 1 && std::string_view(argv[1]) == "--listen")
    port = static_cast<std::uint16_t>(argc > 2 ? std::atoi(argv[2]) : 0);
  return runtime.run(narad::serve(runtime.env(), port));
}
