// A bare server to measure the HTTP layer by itself, and to be the baseline of other measurements:
//
//   pkg_http_server_bench [port]     # prints "listening on 127.0.0.1:PORT"
//   wrk -t1 -c64 -d5 http://127.0.0.1:PORT/hello
//
// GET /hello answers 13 bytes; POST /echo answers the body; POST /accept answers 202, as produce
// does; GET /wait answers after 20 s unless the client goes away. Ends at SIGTERM or SIGINT.
#include <cstdio>
#include <cstdlib>

#include "pkg/env/real/runtime.h"
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

Task<int> serve(Env& env, std::uint16_t port) {
  http::Router router;
  router.add("GET /hello", kHello);
  router.add("POST /echo", kEcho);
  router.add("POST /accept", kAccept);
  http::RouteOptions poll;
  poll.cancel_when_gone = true;
  router.add("GET /wait", kWait, poll);
  auto handler = [&env](http::Request request) { return answer(env, std::move(request)); };
  http::Server server(env, {}, http::admit_with(router), std::move(handler));
  auto listening = server.listen(Endpoint{"127.0.0.1", port});
  if (!listening) {
    std::fprintf(stderr, "%s\n", listening.error().text().c_str());
    co_return 1;
  }
  std::printf("listening on %s\n", to_string(server.local().front()).c_str());
  std::fflush(stdout);
  co_await next_signal(env);
  co_await server.stop(std::chrono::seconds(1));
  co_return 0;
}

}  // namespace
}  // namespace narad

int main(int argc, char** argv) {
  narad::RuntimeOptions options;
  options.handle_signals = true;
  narad::Runtime runtime(options);
  const auto port = static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0);
  return runtime.run(narad::serve(runtime.env(), port));
}
