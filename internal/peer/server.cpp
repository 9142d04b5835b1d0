#include "internal/peer/server.h"

#include <boost/system/system_error.hpp>
#include <list>
#include <map>

#include "internal/peer/handshake.h"
#include "internal/peer/headers.h"
#include "pkg/async/event.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/http/server.h"

namespace narad::peer {
namespace {

constexpr Nanos kAcceptPause = std::chrono::milliseconds(50);
constexpr Nanos kLogPause = std::chrono::seconds(10);
constexpr Nanos kDefaultDeadline = std::chrono::seconds(30);

// What a connection has proven; the context of its requests.
struct Proven {
  Sender who;
  Lane lane;
};

struct Entry {
  Lane lane;
  Handler handler;
  RouteOptions options;
};

// An unproven connection.
struct Greeting {
  StreamHolder stream = std::make_shared<std::unique_ptr<Stream>>();
  Endpoint peer;
  bool crowded_out = false;
};

http::ServerOptions http_options(const ServerOptions& o) {
  http::ServerOptions h;
  h.read_timeout = o.read_timeout;
  h.write_timeout = o.write_timeout;
  h.idle_timeout = o.idle_timeout;
  // Over the cap is refused before; a few more may be on their way through the preamble.
  h.connections_max = o.connections_max + o.handshakes_max;
  h.header_bytes_max = 16 * 1024;
  h.buffered_bytes_max = o.buffered_bytes_max;
  return h;
}

}  // namespace

struct Server::State : std::enable_shared_from_this<Server::State> {
  State(Env& e, ServerOptions o, const Self& s)
      : env(e), options(std::move(o)), self(s), tasks(e) {}

  Env& env;
  const ServerOptions options;
  const Self& self;
  http::Router router;
  std::vector<Entry> entries;  // by route id
  std::unique_ptr<http::Server> http;
  std::vector<std::unique_ptr<Listener>> listeners;
  std::list<Greeting*> greetings;  // the oldest first
  ServerStats stats;
  bool stopping = false;
  // Refusals that are not logged: whoever can reach the port could fill the log.
  struct Quiet {
    Nanos until{0};
    std::uint64_t suppressed = 0;
  };
  std::map<std::string, Quiet, std::less<>> quiet;
  TaskGroup tasks;

  void start_http();
  http::Admission admit(http::Request& request) const;
  void log_refusal(const Handshake& handshake, const Endpoint& from);
  void begin_greeting(std::unique_ptr<Stream> stream);

  static Task<void> accept_all(std::shared_ptr<State> s, Listener* listener);
  static Task<void> greet(std::shared_ptr<State> s, std::shared_ptr<Greeting> greeting);
  static Task<http::Response> handle(std::shared_ptr<State> s, http::Request request);
  static Task<http::Response> run(std::shared_ptr<State> s, const Entry* entry, Sender who,
                                  Nanos left, http::Request request);
};

// ---- unproven connections ----------------------------------------------------------------------

Task<void> Server::State::accept_all(std::shared_ptr<State> s, Listener* listener) {
  for (;;) {
    std::unique_ptr<Stream> stream;
    error_code ec;
    try {
      stream = co_await accept(*listener);
    } catch (const boost::system::system_error& e) {
      ec = e.code();
    }
    if (s->stopping || ec == asio::error::operation_aborted) co_return;
    if (ec) {
      // Out of descriptors, or the peer was gone before we looked: others may still come.
      if (s->stats.accept_errors++ % 1000 == 0)
        NARAD_LOG_WARN(s->env.log, "cannot accept a cluster connection", {"error", ec.message()});
      co_await sleep_for(s->env, kAcceptPause);
      continue;
    }
    s->begin_greeting(std::move(stream));
  }
}

void Server::State::begin_greeting(std::unique_ptr<Stream> stream) {
  ++stats.accepted;
  // A node proves itself within moments; whoever has been silent the longest makes room, so that a
  // flood of silent connections does not keep nodes out.
  if (greetings.size() >= options.handshakes_max) {
    Greeting& oldest = *greetings.front();
    if (!oldest.crowded_out) ++stats.crowded_out;
    oldest.crowded_out = true;
    greetings.splice(greetings.end(), greetings, greetings.begin());
    if (*oldest.stream) (*oldest.stream)->close();
  }
  auto greeting = std::make_shared<Greeting>();
  greeting->peer = stream->peer();
  *greeting->stream = std::move(stream);
  tasks.spawn("peer greeting", greet(shared_from_this(), std::move(greeting)));
}

Task<void> Server::State::greet(std::shared_ptr<State> s, std::shared_ptr<Greeting> greeting) {
  struct Listed {
    Listed(std::shared_ptr<State> st, Greeting* g) : state(std::move(st)) {
      place = state->greetings.insert(state->greetings.end(), g);
    }
    ~Listed() { state->greetings.erase(place); }
    Listed(const Listed&) = delete;
    std::shared_ptr<State> state;
    std::list<Greeting*>::iterator place;
  } listed(s, greeting.get());

  auto handshake = std::make_shared<Handshake>();
  HandshakeSide side{s->options.secret, &s->self};
  auto crowded = [s] { return s->http->stats().connections >= s->options.connections_max; };
  auto welcoming = welcome(s->env, greeting->stream, side, std::move(crowded), handshake);
  const bool in_time =
      co_await finishes_within(s->env, s->options.handshake_timeout, std::move(welcoming));
  switch (handshake->end) {
    case Handshake::End::proven: {
      if (s->stopping || greeting->crowded_out) co_return;
      auto proven = std::make_shared<Proven>();
      proven->who = std::move(*handshake->who);
      proven->lane = handshake->lane;
      s->http->serve(std::move(*greeting->stream), std::move(proven));
      co_return;
    }
    case Handshake::End::lost:
      if (!in_time) ++s->stats.timed_out;
      co_return;
    case Handshake::End::refused_by_us:
    case Handshake::End::refused_by_them:
    case Handshake::End::foreign:
      ++s->stats.refused;
      s->log_refusal(*handshake, greeting->peer);
      co_return;
  }
}

// Once in a while per kind and host, with the number of those that were not logged.
void Server::State::log_refusal(const Handshake& h, const Endpoint& from) {
  const bool foreign = h.end == Handshake::End::foreign;
  const std::string_view kind = foreign ? "foreign" : to_string(h.code);
  const Nanos now = env.clock.mono();
  constexpr std::size_t kKeysMax = 1'000;
  const std::string key = quiet.size() < kKeysMax ? cat(kind, ' ', from.host) : std::string(kind);
  Quiet& q = quiet[key];
  if (now < q.until) {
    ++q.suppressed;
    return;
  }
  const std::uint64_t suppressed = std::exchange(q.suppressed, 0);
  q.until = now + kLogPause;
  if (h.end == Handshake::End::refused_by_them)
    NARAD_LOG_WARN(env.log, "a node refused this one", {"from", to_string(from)},
                   {"node", h.who ? h.who->node_id : ""}, {"kind", kind}, {"reason", h.why},
                   {"not_logged_before", suppressed});
  else
    NARAD_LOG_WARN(env.log, "refused a cluster connection", {"from", to_string(from)},
                   {"node", h.who ? h.who->node_id : ""}, {"kind", kind}, {"reason", h.why},
                   {"not_logged_before", suppressed});
  if (quiet.size() >= kKeysMax)
    std::erase_if(quiet, [&](const auto& entry) { return entry.second.until <= now; });
}

// ---- requests ----------------------------------------------------------------------------------

void Server::State::start_http() {
  if (http) return;
  // The http server belongs to this object, and its tasks end in stop(): a plain pointer, as a
  // shared one would keep this alive for ever.
  auto admit_one = [this](http::Request& request) { return admit(request); };
  auto handle_one = [weak = weak_from_this()](http::Request request) {
    return handle(weak.lock(), std::move(request));
  };
  http = std::make_unique<http::Server>(env, http_options(options), std::move(admit_one),
                                        std::move(handle_one));
}

http::Admission Server::State::admit(http::Request& request) const {
  request.match = router.match(request.method, request.path());
  http::Admission admission;
  if (const http::Route* route = request.match.route) {
    admission.body_bytes_max = route->options.body_bytes_max;
    admission.cancel_when_gone = route->options.cancel_when_gone;
  }
  return admission;
}

namespace {

http::Response decline(ServerStats& stats, int status, std::string_view why) {
  ++stats.declined;
  return http::error_response(status, why);
}

// Nothing if the field is there and wrong.
std::optional<Nanos> deadline_of(const http::Request& request, Nanos deadline_max) {
  const auto text = request.headers.get(kDeadlineHeader);
  if (!text) return std::min(kDefaultDeadline, deadline_max);
  const auto ms = parse_number<std::uint32_t>(*text);
  if (!ms) return std::nullopt;
  return std::min<Nanos>(std::chrono::milliseconds(*ms), deadline_max);
}

}  // namespace

Task<http::Response> Server::State::handle(std::shared_ptr<State> s, http::Request request) {
  if (!request.match)
    co_return decline(s->stats, 400,
                      cat("unknown call ", to_string(request.method), ' ', request.path(),
                          ": not known to this release"));
  const Entry& entry = s->entries[static_cast<std::size_t>(request.match.route->id)];
  const auto& proven = *static_cast<const Proven*>(request.context.get());
  if (proven.lane != entry.lane)
    co_return decline(s->stats, 400,
                      cat(request.match.route->pattern, " belongs on lane ", to_string(entry.lane),
                          ", not ", to_string(proven.lane)));
  const Sender self = s->self.identity();
  const auto configured = s->self.configured_replica(proven.who.node_id);
  if (!entry.options.open_to_strangers && is_stranger(self, proven.who, configured, proven.lane))
    co_return decline(s->stats, 403,
                      cat(request.match.route->pattern, " is not open to ", proven.who.node_id,
                          ": ", why_stranger(self, proven.who, configured)));
  const auto left = deadline_of(request, s->options.deadline_max);
  if (!left) co_return decline(s->stats, 400, cat(kDeadlineHeader, " is not a number"));
  Sender who = proven.who;
  co_return co_await run(s, &entry, std::move(who), *left, std::move(request));
}

namespace {

Task<void> store_answer(const Entry* entry, Sender who, http::Request request,
                        std::shared_ptr<std::optional<http::Response>> out) {
  out->emplace(co_await entry->handler(std::move(who), std::move(request)));
}

}  // namespace

Task<http::Response> Server::State::run(std::shared_ptr<State> s, const Entry* entry, Sender who,
                                        Nanos left, http::Request request) {
  if (entry->options.runs_to_its_end) {
    auto response = co_await entry->handler(std::move(who), std::move(request));
    ++s->stats.served;
    co_return response;
  }
  auto answer = std::make_shared<std::optional<http::Response>>();
  if (left > Nanos(0)) {
    auto answering = store_answer(entry, std::move(who), std::move(request), answer);
    (void)co_await finishes_within(s->env, left, std::move(answering));
  }
  if (*answer) {
    ++s->stats.served;
    co_return std::move(**answer);
  }
  ++s->stats.late;
  co_return http::error_response(503, "the deadline of the call has passed");
}

// ---- the server --------------------------------------------------------------------------------

Server::Server(Env& env, ServerOptions options, const Self& self)
    : state_(std::make_shared<State>(env, std::move(options), self)) {}

Server::~Server() = default;

void Server::route(std::string_view pattern, Lane lane, Handler handler, RouteOptions options) {
  NARAD_ASSERT(state_->listeners.empty(), "routes come before listen()");
  NARAD_ASSERT(!options.open_to_strangers || lane == Lane::control, pattern);
  http::RouteOptions o;
  o.body_bytes_max = options.body_bytes_max;
  o.cancel_when_gone = options.cancel_when_gone;
  state_->router.add(pattern, static_cast<int>(state_->entries.size()), o);
  state_->entries.push_back(Entry{lane, std::move(handler), options});
}

Result<void> Server::listen(const Endpoint& at) {
  if (state_->options.secret.empty() && !state_->options.insecure)
    return Error(Errc::invalid_argument, kNoSecret);
  NARAD_TRY(auto listener, state_->env.net.listen(at));
  state_->start_http();
  state_->listeners.push_back(std::move(listener));
  state_->tasks.spawn("peer accept", State::accept_all(state_, state_->listeners.back().get()));
  return ok();
}

std::vector<Endpoint> Server::local() const {
  std::vector<Endpoint> all;
  for (const auto& listener : state_->listeners) all.push_back(listener->local());
  return all;
}

Task<void> Server::stop(Nanos grace) {
  auto state = state_;
  state->stopping = true;
  state->listeners.clear();
  co_await state->tasks.stop();
  if (state->http) co_await state->http->stop(grace);
}

ServerStats Server::stats() const {
  ServerStats stats = state_->stats;
  stats.handshakes = state_->greetings.size();
  if (state_->http) {
    const auto http = state_->http->stats();
    stats.connections = http.connections;
    stats.requests = http.requests;
    stats.timed_out += http.timed_out;
  }
  return stats;
}

}  // namespace narad::peer
