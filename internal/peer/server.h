#pragma once
// The listener of the cluster plane: proves who connects, then serves HTTP/1.1 to routes, each on
// its lane. The protocol: docs/internals/peer-protocol.md. Lives on one loop.
//
//   Server server(env, options, self);
//   server.route("POST /peer/v1/commit/{topic}", Lane::data, handler, {.body_bytes_max = …});
//   server.listen(endpoint);
//
// What it answers by itself: 400 for a route it does not know (an older node declines politely) and
// for a route asked for on another lane; 403 if the caller is a stranger (it has no cluster yet, or
// this node has none, or its replica id is not the configured one) and the route is not open to
// strangers; 503 once the caller's deadline has passed: the handler is cancelled
// (operation_aborted from its co_await) unless the route runs to its end.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "internal/peer/party.h"
#include "pkg/async/task.h"
#include "pkg/http/message.h"

namespace narad::peer {

using Handler = std::function<Task<http::Response>(Sender, http::Request)>;

struct RouteOptions {
  std::uint64_t body_bytes_max = std::uint64_t{1} << 20;
  bool open_to_strangers = false;  // control lane only
  // The handler is cancelled when the caller hangs up (long polls).
  bool cancel_when_gone = false;
  // The handler is not cancelled at the caller's deadline (its steps must not end half-way).
  bool runs_to_its_end = false;
};

struct ServerOptions {
  std::string secret;
  bool insecure = false;  // security.enabled = false: an empty secret is accepted
  Nanos handshake_timeout = std::chrono::seconds(5);
  std::size_t handshakes_max = 256;     // unproven connections; beyond it the oldest is cut off
  std::size_t connections_max = 4'096;  // proven; beyond it refused
  Nanos read_timeout = std::chrono::seconds(30);
  Nanos write_timeout = std::chrono::seconds(30);
  Nanos idle_timeout = std::chrono::seconds(60);
  std::size_t buffered_bytes_max = 512u << 20;  // request bodies, all connections
  Nanos deadline_max = std::chrono::minutes(10);
};

struct ServerStats {
  std::size_t connections = 0;      // proven, open now
  std::size_t handshakes = 0;       // unproven, open now
  std::uint64_t accepted = 0;       // connections since start
  std::uint64_t refused = 0;        // in the preamble
  std::uint64_t timed_out = 0;      // in the preamble, or slow or idle after it
  std::uint64_t crowded_out = 0;    // unproven ones cut off for newer ones
  std::uint64_t served = 0;         // answers of handlers
  std::uint64_t declined = 0;       // unknown route, wrong lane, stranger
  std::uint64_t late = 0;           // deadline passed
  std::uint64_t accept_errors = 0;  // for example, out of file descriptors
  std::size_t requests = 0;         // in a handler now
};

class Server {
 public:
  // `self` outlives this.
  Server(Env& env, ServerOptions options, const Self& self);
  Server(const Server&) = delete;
  ~Server();  // REQUIRES: stop() has ended, or the node was killed

  // Pattern as in pkg/http/router.h. Parameters are in request.match. REQUIRES: before listen().
  void route(std::string_view pattern, Lane lane, Handler handler, RouteOptions options = {});

  // May be called for several addresses. invalid_argument without a secret, unless insecure.
  Result<void> listen(const Endpoint& at);
  std::vector<Endpoint> local() const;

  // Stops accepting; requests in progress may finish within `grace`, then are cancelled.
  // Idempotent.
  Task<void> stop(Nanos grace);

  ServerStats stats() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace narad::peer
