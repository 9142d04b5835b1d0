#pragma once
// An HTTP/1.1 server over the stream door: keep-alive, pipelining, chunked bodies, 100-continue,
// limits on everything a client can make large or slow. One object per listener; lives on one loop.
//
// A connection serves one request at a time, in order. Per request: headers are parsed; `admit` (a
// plain function) places the request and says how large its body may be; the body is read whole;
// `handler` answers. What the server answers by itself, closing the connection: 400 malformed or
// not HTTP/1.x (text), 413 body over the limit (JSON), 417 an expectation other than 100-continue,
// 400 (JSON) a body cut short or late, 431 headers over the limit, 501 unknown transfer coding, 503
// too many connections or buffered bytes. A handler that throws is logged and answered 500. Any
// other client over a time-out is cut off without an answer. Time-outs are noticed at most two
// ticks late (a tick is an eighth of the shortest time-out, a second at most).
//
// After a refusal what the client still sends is read away, so that it can read the answer: up to
// 64 MiB, while something comes every two seconds, for the read time-out at most. A client that
// sends more before it reads sees a reset.
//
// Memory for bodies: `buffered_bytes_max` for all connections together. A body grows with what has
// arrived, and only while it leaves as much for the others as it takes itself: n large bodies at
// once leave room for one of 1/(n+1) of the total, so that bulk loads cannot shut out single
// messages.
//
// Client gone: with Admission::cancel_when_gone the connection is watched while the handler runs,
// and the handler is cancelled (operation_aborted from its co_await) when the peer closes or
// resets; a half-close counts as gone. A client that has already sent its next request is not
// watched. Without it the handler runs to its end and the answer is dropped.
//
// stop() must have ended before the Server is destroyed, or its tasks must be gone (a killed node):
// so a Server lives in a component, not in the frame of a task that may be destroyed suspended.
#include <cstdint>
#include <functional>
#include <memory>

#include "pkg/async/task.h"
#include "pkg/http/message.h"

namespace narad::http {

struct ServerOptions {
  Nanos read_timeout = std::chrono::seconds(10);   // a whole request, from its first byte
  Nanos write_timeout = std::chrono::seconds(30);  // a whole response
  Nanos idle_timeout = std::chrono::seconds(60);   // between requests
  std::size_t connections_max = 10'000;            // further ones: 503 and closed
  std::size_t header_bytes_max = 64 * 1024;        // request line and fields; over: 431
  std::size_t buffered_bytes_max = 256u << 20;     // bodies of all connections together; over: 503
};

// What the admission callback decides once the headers are there.
struct Admission {
  std::uint64_t body_bytes_max = std::uint64_t{1} << 20;
  bool cancel_when_gone = false;       // as in RouteOptions
  bool handler_refuses_large = false;  // as in RouteOptions
};
// Called on the loop with everything but the body; may fill request.match. Must not block.
using Admit = std::function<Admission(Request& request)>;
using Handler = std::function<Task<Response>(Request)>;

// The common admission: places the request with `router`, which must outlive the server, and takes
// limits from the route.
Admit admit_with(const Router& router);

struct ServerStats {
  std::size_t connections = 0;      // open now
  std::size_t requests = 0;         // in a handler now
  std::size_t buffered_bytes = 0;   // of bodies, now
  std::uint64_t accepted = 0;       // connections since start
  std::uint64_t refused = 0;        // connections over the cap
  std::uint64_t served = 0;         // responses of handlers
  std::uint64_t malformed = 0;      // answered by the server itself
  std::uint64_t timed_out = 0;      // cut off: slow or idle
  std::uint64_t accept_errors = 0;  // for example, out of file descriptors
};

struct ServerState;

class Server {
 public:
  Server(Env& env, ServerOptions options, Admit admit, Handler handler);
  Server(const Server&) = delete;
  ~Server();  // REQUIRES: stop() has ended, or nothing was ever started

  // Starts accepting. May be called for several addresses.
  Result<void> listen(const Endpoint& at);
  // Where it listens, in order of listen().
  std::vector<Endpoint> local() const;
  // Serves one connection that came from elsewhere (tests; another kind of listener). Its requests
  // carry `context`.
  void serve(std::unique_ptr<Stream> stream, std::shared_ptr<const void> context = nullptr);

  // Stops accepting, closes idle connections, lets requests in progress finish with
  // "Connection: close"; what is left after `grace` is cancelled. Idempotent.
  Task<void> stop(Nanos grace);

  ServerStats stats() const;

 private:
  std::shared_ptr<ServerState> state_;
};

}  // namespace narad::http
