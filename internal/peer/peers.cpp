#include "internal/peer/peers.h"

#include <algorithm>
#include <boost/system/system_error.hpp>
#include <deque>
#include <map>

#include "internal/peer/handshake.h"
#include "internal/peer/headers.h"
#include "internal/peer/slots.h"
#include "pkg/async/event.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/http/exchange.h"

namespace narad::peer {
namespace {

// All open connections, so that stop() can cut them off.
struct Registry {
  std::map<std::uint64_t, Stream*> open;
  std::uint64_t last_id = 0;
};

// A proven connection. Closes at destruction.
class Connection {
 public:
  Connection(Env& env, std::shared_ptr<Registry> registry, std::unique_ptr<Stream> stream,
             const Handshake& handshake, Endpoint at)
      : wire(std::make_shared<http::BufferedStream>(env, std::move(stream))),
        self(handshake.self),
        who(*handshake.who),
        at(std::move(at)),
        registry_(std::move(registry)),
        id_(++registry_->last_id) {
    registry_->open.emplace(id_, &wire->stream());
  }
  Connection(const Connection&) = delete;
  ~Connection() {
    registry_->open.erase(id_);
    wire->stream().close();
  }

  const std::shared_ptr<http::BufferedStream> wire;
  const Sender self;  // as this node presented itself
  const Sender who;
  const Endpoint at;
  Nanos idle_since{0};

 private:
  const std::shared_ptr<Registry> registry_;
  const std::uint64_t id_;
};
using ConnectionPtr = std::shared_ptr<Connection>;

bool same_identity(const Sender& a, const Sender& b) {
  return a.cluster_id == b.cluster_id && a.replica == b.replica && a.node_id == b.node_id;
}

// The connections of one lane to one node.
struct Pool {
  Pool(Env& env, std::string n, Lane l, std::size_t connections_max)
      : node(std::move(n)), lane(l), slots(env, connections_max) {}

  const std::string node;
  const Lane lane;
  Slots slots;
  std::deque<ConnectionPtr> idle;  // the one used last at the back
  std::optional<Endpoint> at;
  Nanos retry_at{0};  // no attempt to connect before
  Nanos backoff{0};
  std::string last_error;
};

Error stopping_error() { return Error(Errc::unavailable, "this node stops"); }

// What is known of a call when its deadline cuts it off.
struct Progress {
  std::shared_ptr<http::Exchange> exchange = std::make_shared<http::Exchange>();
  const char* stage = "in the queue for a connection";
  std::optional<Error> error;
  Sender who;
};

struct Dialled {
  StreamHolder stream = std::make_shared<std::unique_ptr<Stream>>();
  std::string connect_error;
  std::shared_ptr<Handshake> handshake = std::make_shared<Handshake>();
};

Task<void> open_stream(Env& env, Endpoint at, std::shared_ptr<Dialled> out) {
  try {
    *out->stream = co_await connect(env, at);
  } catch (const boost::system::system_error& e) {
    if (e.code() == asio::error::operation_aborted) throw;
    out->connect_error = e.code().message();
  }
}

std::string why_not(const Dialled& d, bool in_time) {
  const Handshake& h = *d.handshake;
  switch (h.end) {
    case Handshake::End::refused_by_us:
      return cat("this node refused it: ", h.why);
    case Handshake::End::refused_by_them:
      return cat("it refused this node: ", h.why);
    case Handshake::End::foreign:
      return h.why;
    case Handshake::End::lost:
      if (!in_time) return cat("it said nothing in time ", h.step);
      return cat("the connection ended ", h.step, h.lost_by.empty() ? "" : ": ", h.lost_by);
    case Handshake::End::proven:
      break;
  }
  return "";
}

http::Response response_of(http::ClientResponse from) {
  http::Response to;
  to.status = from.status;
  to.body = std::move(from.body);
  to.content_type = {};
  for (std::size_t i = 0; i < from.headers.size(); ++i) {
    const auto [name, value] = from.headers.at(i);
    if (!is_of_the_connection(name)) to.headers.add(name, value);
  }
  return to;
}

}  // namespace

struct Peers::State {
  State(Env& e, PeersOptions o, const Self& s, const AddressBook& b)
      : env(e),
        options(std::move(o)),
        self(s),
        book(b),
        request_id(e.random.next()),
        changed(e),
        stopped(e),
        tasks(e) {}

  Env& env;
  const PeersOptions options;
  const Self& self;
  const AddressBook& book;
  std::uint64_t request_id;
  std::map<std::pair<std::string, Lane>, std::shared_ptr<Pool>> pools;
  std::shared_ptr<Registry> registry = std::make_shared<Registry>();
  std::array<PeersStats, kLanes> stats;
  bool stopping = false;
  std::size_t calls = 0;  // in flight
  Event changed;          // a connection became idle, or the last call ended
  Event stopped;          // stopping
  TaskGroup tasks;

  PeersStats& stats_of(Lane lane) { return stats[static_cast<std::size_t>(lane)]; }
  const LaneOptions& lane_options(Lane lane) const {
    return options.lanes[static_cast<std::size_t>(lane)];
  }
  std::shared_ptr<Pool> pool_of(const std::string& node, Lane lane) {
    auto& pool = pools[{node, lane}];
    if (!pool) pool = std::make_shared<Pool>(env, node, lane, lane_options(lane).connections_max);
    return pool;
  }

  ConnectionPtr take_idle(Pool& pool);
  void keep(Pool& pool, ConnectionPtr connection);
  std::size_t drop_stale();
  void note_failure(Pool& pool, const Endpoint& at, std::string why);
  void note_success(Pool& pool, const Endpoint& at);

  static Task<void> sweep(std::shared_ptr<State> s);
  static Task<void> wait_stopped(std::shared_ptr<State> s);
  static Task<ConnectionPtr> dial(std::shared_ptr<State> s, Endpoint at, Lane lane,
                                  std::string meant, std::string& why);
  static Task<void> try_dial(std::shared_ptr<State> s, Endpoint at, Lane lane, std::string meant,
                             std::shared_ptr<Dialled> out, std::shared_ptr<std::string> why);
  static Task<ConnectionPtr> connection_for(std::shared_ptr<State> s, std::shared_ptr<Pool> pool,
                                            std::shared_ptr<Progress> progress);
  static Task<void> run_call(std::shared_ptr<State> s, std::shared_ptr<Pool> pool, Call call,
                             Deadline deadline, std::shared_ptr<Progress> progress);
  static Task<void> run_call_address(std::shared_ptr<State> s, Endpoint at, Lane lane, Call call,
                                     Deadline deadline, std::shared_ptr<Progress> progress);
  std::shared_ptr<http::ClientRequest> request_of(Call call);
  void stamp(http::ClientRequest& request, Deadline deadline) const;
  http::ClientOptions exchange_options(Lane lane) const;
  Result<http::Response> finish(Lane lane, const std::string& whom, Progress& progress);
};

namespace {

// Counts the calls in flight, also when the node is killed in one.
template <class State>
class InFlight {
 public:
  explicit InFlight(std::shared_ptr<State> state) : state_(std::move(state)) { ++state_->calls; }
  ~InFlight() {
    if (--state_->calls == 0 && state_->stopping) state_->changed.notify_all();
  }
  InFlight(const InFlight&) = delete;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace

// ---- connections -------------------------------------------------------------------------------

ConnectionPtr Peers::State::take_idle(Pool& pool) {
  const Sender now = self.identity();
  while (!pool.idle.empty()) {
    ConnectionPtr connection = std::move(pool.idle.back());
    pool.idle.pop_back();
    const bool good = connection->wire->reading() && connection->at == *pool.at &&
                      same_identity(connection->self, now) &&
                      env.clock.mono() - connection->idle_since < options.idle_timeout;
    if (good) return connection;
  }
  return nullptr;
}

void Peers::State::keep(Pool& pool, ConnectionPtr connection) {
  if (stopping || connection->at != pool.at) return;
  // The read tells when the peer closes; and whatever it brings unasked spoils the connection.
  connection->wire->read_in_background();
  connection->idle_since = env.clock.mono();
  pool.idle.push_back(std::move(connection));
  changed.notify_all();
}

// Closes what has been idle for too long or was closed by the peer; answers how many are left.
std::size_t Peers::State::drop_stale() {
  std::size_t left = 0;
  const Nanos now = env.clock.mono();
  for (auto& [key, pool] : pools) {
    std::erase_if(pool->idle, [&](const ConnectionPtr& c) {
      return !c->wire->reading() || now - c->idle_since >= options.idle_timeout;
    });
    left += pool->idle.size();
  }
  return left;
}

Task<void> Peers::State::sweep(std::shared_ptr<State> s) {
  for (;;) {
    while (s->drop_stale() == 0) co_await s->changed.wait();
    co_await sleep_for(s->env, s->options.idle_timeout / 4);
  }
}

Task<void> Peers::State::wait_stopped(std::shared_ptr<State> s) {
  while (!s->stopping) co_await s->stopped.wait();
}

void Peers::State::note_failure(Pool& pool, const Endpoint& at, std::string why) {
  ++stats_of(pool.lane).connect_failures;
  pool.backoff = std::clamp(pool.backoff * 2, options.backoff_min, options.backoff_max);
  const auto spread = static_cast<std::uint64_t>(pool.backoff.count() / 2 + 1);
  const std::uint64_t jitter = env.random.next() % spread;
  pool.retry_at = env.clock.mono() + pool.backoff - Nanos(static_cast<std::int64_t>(jitter));
  if (pool.last_error != why)
    NARAD_LOG_WARN(env.log, "cannot connect to a node", {"node", pool.node},
                   {"lane", to_string(pool.lane)}, {"addr", to_string(at)}, {"error", why});
  pool.last_error = std::move(why);
}

void Peers::State::note_success(Pool& pool, const Endpoint& at) {
  ++stats_of(pool.lane).connects;
  if (!pool.last_error.empty())
    NARAD_LOG_INFO(env.log, "connected to a node again", {"node", pool.node},
                   {"lane", to_string(pool.lane)}, {"addr", to_string(at)});
  pool.last_error.clear();
  pool.backoff = pool.retry_at = Nanos(0);
}

// Connects and speaks the preamble. Without a connection `why` says why not.
Task<void> Peers::State::try_dial(std::shared_ptr<State> s, Endpoint at, Lane lane,
                                  std::string meant, std::shared_ptr<Dialled> out,
                                  std::shared_ptr<std::string> why) {
  auto opening = open_stream(s->env, at, out);
  const bool in_time =
      co_await finishes_within(s->env, s->options.connect_timeout, std::move(opening));
  if (!*out->stream) {
    *why = in_time ? out->connect_error : "no answer in time";
    co_return;
  }
  HandshakeSide side{s->options.secret, &s->self};
  auto introducing = introduce(s->env, out->stream, side, lane, meant, out->handshake);
  const bool said =
      co_await finishes_within(s->env, s->options.handshake_timeout, std::move(introducing));
  const auto end = out->handshake->end;
  *why = why_not(*out, said);
  if (end == Handshake::End::refused_by_us || end == Handshake::End::refused_by_them)
    ++s->stats_of(lane).refused;
}

Task<ConnectionPtr> Peers::State::dial(std::shared_ptr<State> s, Endpoint at, Lane lane,
                                       std::string meant, std::string& why) {
  if (s->options.secret.empty() && !s->options.insecure) {
    why = kNoSecret;
    co_return nullptr;
  }
  auto dialled = std::make_shared<Dialled>();
  auto reason = std::make_shared<std::string>();
  auto dialling = try_dial(s, at, lane, std::move(meant), dialled, reason);
  auto stopping = wait_stopped(s);
  if (!co_await finishes_before(std::move(dialling), std::move(stopping)))
    *reason = "this node stops";
  if (dialled->handshake->end != Handshake::End::proven || s->stopping) {
    why = std::move(*reason);
    co_return nullptr;
  }
  auto stream = std::move(*dialled->stream);
  co_return std::make_shared<Connection>(s->env, s->registry, std::move(stream),
                                         *dialled->handshake, std::move(at));
}

// A kept connection, or a new one; null, and progress->error, if there is none to be had.
Task<ConnectionPtr> Peers::State::connection_for(std::shared_ptr<State> s,
                                                 std::shared_ptr<Pool> pool,
                                                 std::shared_ptr<Progress> progress) {
  const auto at = s->book.address_of(pool->node);
  if (!at) {
    progress->error =
        Error(Errc::unavailable, cat("no address of ", pool->node, " is known to this node"));
    co_return nullptr;
  }
  if (pool->at != at) {
    pool->at = at;
    pool->idle.clear();
    pool->backoff = pool->retry_at = Nanos(0);
  }
  if (auto kept = s->take_idle(*pool)) co_return kept;
  const std::string where = cat(pool->node, " at ", to_string(*at));
  if (s->env.clock.mono() < pool->retry_at) {
    progress->error = Error(Errc::unavailable, cat("cannot reach ", where, ": ", pool->last_error));
    co_return nullptr;
  }
  progress->stage = "while connecting";
  std::string why;
  const Endpoint to = *at;
  auto connection = co_await dial(s, to, pool->lane, pool->node, why);
  if (connection) {
    s->note_success(*pool, to);
    co_return connection;
  }
  if (!s->stopping && pool->at == to) s->note_failure(*pool, to, why);
  progress->error = Error(Errc::unavailable, cat("cannot reach ", where, ": ", why));
  co_return nullptr;
}

// ---- calls -------------------------------------------------------------------------------------

std::shared_ptr<http::ClientRequest> Peers::State::request_of(Call call) {
  auto request = std::make_shared<http::ClientRequest>(call.method, std::move(call.target));
  request->body = std::move(call.body);
  request->headers.add(kRequestIdHeader, to_hex16(++request_id));
  return request;
}

// When it is about to be sent: the other side is told what is left.
void Peers::State::stamp(http::ClientRequest& request, Deadline deadline) const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left(env));
  request.headers.add(kDeadlineHeader, std::to_string(std::max<std::int64_t>(left.count(), 1)));
}

http::ClientOptions Peers::State::exchange_options(Lane lane) const {
  http::ClientOptions o;
  o.header_bytes_max = 16 * 1024;
  o.body_bytes_max = lane_options(lane).answer_bytes_max;
  return o;
}

Task<void> Peers::State::run_call(std::shared_ptr<State> s, std::shared_ptr<Pool> pool, Call call,
                                  Deadline deadline, std::shared_ptr<Progress> progress) {
  const auto slot = co_await pool->slots.take();
  const auto request = s->request_of(std::move(call));
  bool stamped = false;
  for (;;) {
    if (s->stopping) {
      progress->error = stopping_error();
      co_return;
    }
    const bool had_idle = !pool->idle.empty();
    auto connection = co_await connection_for(s, pool, progress);
    if (!connection) co_return;
    progress->who = connection->who;
    progress->stage = "while waiting for the answer";
    if (!std::exchange(stamped, true)) s->stamp(*request, deadline);
    co_await http::exchange_on(connection->wire, s->exchange_options(pool->lane), connection->at,
                               request, progress->exchange);
    http::Exchange& exchange = *progress->exchange;
    if (exchange.reusable) s->keep(*pool, connection);
    if (exchange.response || exchange.error) co_return;
    // The peer may have closed a kept connection as we took it: if nothing was sent, try another.
    if (had_idle && !exchange.sent) continue;
    progress->error = http::lost_connection(connection->at, exchange);
    co_return;
  }
}

Task<void> Peers::State::run_call_address(std::shared_ptr<State> s, Endpoint at, Lane lane,
                                          Call call, Deadline deadline,
                                          std::shared_ptr<Progress> progress) {
  progress->stage = "while connecting";
  std::string why;
  auto connection = co_await dial(s, at, lane, "", why);
  if (!connection) {
    ++s->stats_of(lane).connect_failures;
    progress->error = Error(Errc::unavailable, cat("cannot reach ", to_string(at), ": ", why));
    co_return;
  }
  ++s->stats_of(lane).connects;
  progress->who = connection->who;
  progress->stage = "while waiting for the answer";
  auto request = s->request_of(std::move(call));
  s->stamp(*request, deadline);
  co_await http::exchange_on(connection->wire, s->exchange_options(lane), at, request,
                             progress->exchange);
  if (!progress->exchange->response && !progress->exchange->error)
    progress->error = http::lost_connection(at, *progress->exchange);
}

// What came of a call, once it has ended or its deadline has cut it off.
Result<http::Response> Peers::State::finish(Lane lane, const std::string& whom,
                                            Progress& progress) {
  PeersStats& count = stats_of(lane);
  http::Exchange& exchange = *progress.exchange;
  if (exchange.response) {
    ++count.answered;
    return response_of(std::move(*exchange.response));
  }
  if (!exchange.sent) {
    ++count.unavailable;
    if (progress.error) return *progress.error;
    return Error(Errc::unavailable,
                 cat("the deadline of a call to ", whom, " passed ", progress.stage));
  }
  ++count.unknown;
  if (exchange.error) return Error(Errc::unknown_outcome, exchange.error->text());
  if (progress.error) return Error(Errc::unknown_outcome, progress.error->text());
  return Error(Errc::unknown_outcome, cat("no answer from ", whom, " before the deadline"));
}

namespace {

Result<void> check_target(const Call& call) {
  if (http::is_sendable(call.target)) return ok();
  return Error(Errc::invalid_argument,
               cat("\"", call.target, "\" is no request target: encode it"));
}

}  // namespace

Peers::Peers(Env& env, PeersOptions options, const Self& self, const AddressBook& book)
    : state_(std::make_shared<State>(env, std::move(options), self, book)) {
  state_->tasks.spawn("peer connections", State::sweep(state_));
}

Peers::~Peers() = default;

Task<Result<http::Response>> Peers::call(std::string node, Lane lane, Call call, Nanos deadline) {
  auto state = state_;
  NARAD_CO_TRY(check_target(call));
  const InFlight<State> counted(state);
  ++state->stats_of(lane).calls;
  const auto until = Deadline::after(state->env, deadline);
  auto progress = std::make_shared<Progress>();
  if (state->stopping) {
    progress->error = stopping_error();
  } else if (deadline > Nanos(0)) {
    auto running =
        State::run_call(state, state->pool_of(node, lane), std::move(call), until, progress);
    (void)co_await finishes_within(state->env, deadline, std::move(running));
  }
  co_return state->finish(lane, node, *progress);
}

Task<Result<Answer>> Peers::call_address(Endpoint at, Lane lane, Call call, Nanos deadline) {
  auto state = state_;
  NARAD_CO_TRY(check_target(call));
  const InFlight<State> counted(state);
  ++state->stats_of(lane).calls;
  const auto until = Deadline::after(state->env, deadline);
  auto progress = std::make_shared<Progress>();
  if (state->stopping) {
    progress->error = stopping_error();
  } else if (deadline > Nanos(0)) {
    auto running = State::run_call_address(state, at, lane, std::move(call), until, progress);
    (void)co_await finishes_within(state->env, deadline, std::move(running));
  }
  NARAD_CO_TRY(auto response, state->finish(lane, to_string(at), *progress));
  co_return Answer{std::move(response), progress->who};
}

Task<void> Peers::stop() {
  auto state = state_;
  state->stopping = true;
  state->stopped.notify_all();
  for (auto& [key, pool] : state->pools) {
    pool->idle.clear();
    pool->slots.open();
  }
  // Calls end later, each in its own task: closing only queues their handlers.
  for (auto& [id, stream] : state->registry->open) stream->close();
  while (state->calls > 0) co_await state->changed.wait();
  co_await state->tasks.stop();
}

PeersStats Peers::stats(Lane lane) const { return state_->stats_of(lane); }

std::vector<LaneStatus> Peers::status() const {
  std::vector<LaneStatus> all;
  for (const auto& [key, pool] : state_->pools) {
    LaneStatus lane;
    lane.node = pool->node;
    lane.lane = pool->lane;
    lane.calls = pool->slots.taken();
    lane.connections = pool->idle.size() + pool->slots.taken();
    lane.waiting = pool->slots.waiting();
    lane.last_error = pool->last_error;
    all.push_back(std::move(lane));
  }
  return all;
}

std::string Peers::trouble_with(const std::string& node) const {
  const auto it = state_->pools.find({node, Lane::control});
  return it == state_->pools.end() ? "" : it->second->last_error;
}

}  // namespace narad::peer
