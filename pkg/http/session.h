#pragma once
// Internal: one connection of a Server, and what the connections of a server share.
#include <list>
#include <optional>
#include <string>

#include "pkg/async/event.h"
#include "pkg/async/task_group.h"
#include "pkg/http/buffered_stream.h"
#include "pkg/http/server.h"

namespace narad::http {

class RequestParser;
class Session;

struct ServerState {
  ServerState(Env& e, ServerOptions o, Admit a, Handler h)
      : env(e),
        options(o),
        admit(std::move(a)),
        handler(std::move(h)),
        sessions_changed(e),
        body_overdue(e),
        tasks(e) {}

  Env& env;
  const ServerOptions options;
  const Admit admit;
  const Handler handler;
  ServerStats stats;
  bool draining = false;
  // Coarse time for time-outs: the sweeper sets it every tick, and a deadline is checked every
  // tick, so that a request costs no timer and no look at the clock.
  Nanos now{0};
  Nanos tick{0};
  std::list<Session*> sessions;
  Event sessions_changed;  // the first came, or the last left
  Event body_overdue;      // some connection's body did: each looks whether it is its own
  std::vector<std::unique_ptr<Listener>> listeners;
  TaskGroup tasks;
};

class Session {
 public:
  Session(std::shared_ptr<ServerState> server, std::unique_ptr<Stream> stream,
          std::shared_ptr<const void> context = nullptr);
  ~Session();

  // Serves until the connection ends. `self` keeps the session alive.
  static Task<void> run(std::shared_ptr<Session> self);
  // Answers 503 and closes: over the cap.
  static Task<void> turn_away(std::shared_ptr<Session> self);

  // By the sweeper, and when the server stops.
  bool overdue() const { return server_->now >= deadline_; }
  // Whether a late request is answered (its head said whom to answer) rather than cut off.
  bool awaits_body() const { return phase_ == Phase::body; }
  void cut_off() { wire_->stream().close(); }
  bool waits_for_a_request() const { return phase_ == Phase::first || phase_ == Phase::idle; }

 private:
  enum class Phase { first, idle, reading, body, handling, writing, closing };
  enum class Body { complete, too_large, cut_short, late, no_memory, malformed, long_chunk, lost };

  void enter(Phase phase);
  Task<bool> read_head(RequestParser& parser);
  Task<Body> read_body(RequestParser& parser, std::uint64_t limit);
  Task<Body> read_body_in_time(RequestParser& parser);
  static Task<void> store_body(Session* session, RequestParser* parser, Body* body);
  static Task<void> until_late(Session* session);
  static Body lost_by(error_code ec);
  static std::optional<Response> refusal_of(Body body, const RequestParser& parser);
  Task<Body> read_sized_body(std::string& body, std::size_t bytes);
  Task<Body> read_chunked_body(RequestParser& parser);
  Task<std::optional<Response>> handle_watched(Request request);
  static Task<void> store_answer(std::shared_ptr<ServerState> server, Request request,
                                 std::shared_ptr<std::optional<Response>> answer);
  static Task<Response> call_handler(std::shared_ptr<ServerState> server, Request request);
  Task<bool> write(Response response, bool head_only, bool close);
  Task<void> refuse(Response response);
  Task<void> linger(Nanos at_most);
  bool charge(std::size_t body_bytes);

  const std::shared_ptr<ServerState> server_;
  const std::shared_ptr<BufferedStream> wire_;
  ReadBuffer& buffer_;  // of wire_
  const std::shared_ptr<const Endpoint> peer_;
  const std::shared_ptr<const void> context_;
  std::list<Session*>::iterator place_;
  Phase phase_ = Phase::first;
  Nanos deadline_;
  Nanos linger_end_{0};
  std::size_t charged_ = 0;  // body bytes counted in the server's total

  std::string head_;  // of the response being written
};

}  // namespace narad::http
