#include "pkg/http/server.h"

#include <algorithm>

#include "pkg/base/assert.h"
#include "pkg/http/session.h"

namespace narad::http {
namespace {

constexpr Nanos kTickMin = std::chrono::milliseconds(10);
constexpr Nanos kTickMax = std::chrono::seconds(1);
constexpr Nanos kAcceptPause = std::chrono::milliseconds(50);
// Connections over the cap that get an answer at once; further ones are just closed.
constexpr std::size_t kTurnedAwayMax = 64;

Nanos tick_of(const ServerOptions& options) {
  const Nanos shortest =
      std::min({options.read_timeout, options.write_timeout, options.idle_timeout});
  return std::clamp(shortest / 8, kTickMin, kTickMax);
}

// Cuts off whoever is overdue, or lets it answer. Sleeps without a timer while nobody is connected.
Task<void> sweep(std::shared_ptr<ServerState> state) {
  for (;;) {
    while (state->sessions.empty()) co_await state->sessions_changed.wait();
    co_await sleep_for(state->env, state->tick);
    state->now = state->env.clock.mono();
    bool late_body = false;
    for (Session* session : state->sessions) {
      if (!session->overdue()) continue;
      ++state->stats.timed_out;
      if (session->awaits_body()) {
        late_body = true;
      } else {
        session->cut_off();
      }
    }
    if (late_body) state->body_overdue.notify_all();
  }
}

void start(const std::shared_ptr<ServerState>& state, std::unique_ptr<Stream> stream,
           std::shared_ptr<const void> context = nullptr) {
  if (state->sessions.empty()) state->now = state->env.clock.mono();
  ++state->stats.accepted;
  const std::size_t open = state->sessions.size();
  if (open < state->options.connections_max) {
    auto session = std::make_shared<Session>(state, std::move(stream), std::move(context));
    state->tasks.spawn("http session", Session::run(std::move(session)));
    return;
  }
  ++state->stats.refused;
  if (open >= state->options.connections_max + kTurnedAwayMax) return;
  auto session = std::make_shared<Session>(state, std::move(stream));
  state->tasks.spawn("http refusal", Session::turn_away(std::move(session)));
}

Task<void> accept_all(std::shared_ptr<ServerState> state, Listener* listener) {
  for (;;) {
    std::unique_ptr<Stream> stream;
    error_code ec;
    try {
      stream = co_await accept(*listener);
    } catch (const boost::system::system_error& e) {
      ec = e.code();
    }
    if (state->draining) co_return;
    if (ec == asio::error::operation_aborted) co_return;
    if (ec) {
      // Out of descriptors, or the peer was gone before we looked: others may still come.
      if (state->stats.accept_errors++ % 1000 == 0)
        NARAD_LOG_WARN(state->env.log, "cannot accept a connection", {"error", ec.message()});
      co_await sleep_for(state->env, kAcceptPause);
      continue;
    }
    start(state, std::move(stream));
  }
}

}  // namespace

Admit admit_with(const Router& router) {
  return [&router](Request& request) {
    request.match = router.match(request.method, request.path());
    Admission admission;
    if (const Route* route = request.match.route) {
      admission.body_bytes_max = route->options.body_bytes_max;
      admission.cancel_when_gone = route->options.cancel_when_gone;
      admission.handler_refuses_large = route->options.handler_refuses_large;
    }
    return admission;
  };
}

Server::Server(Env& env, ServerOptions options, Admit admit, Handler handler)
    : state_(std::make_shared<ServerState>(env, options, std::move(admit), std::move(handler))) {
  state_->tick = tick_of(options);
  state_->now = env.clock.mono();
  state_->tasks.spawn("http sweeper", sweep(state_));
}

Server::~Server() = default;

Result<void> Server::listen(const Endpoint& at) {
  NARAD_TRY(auto listener, state_->env.net.listen(at));
  state_->listeners.push_back(std::move(listener));
  state_->tasks.spawn("http accept", accept_all(state_, state_->listeners.back().get()));
  return ok();
}

std::vector<Endpoint> Server::local() const {
  std::vector<Endpoint> all;
  for (const auto& listener : state_->listeners) all.push_back(listener->local());
  return all;
}

void Server::serve(std::unique_ptr<Stream> stream, std::shared_ptr<const void> context) {
  if (!state_->draining) start(state_, std::move(stream), std::move(context));
}

Task<void> Server::stop(Nanos grace) {
  auto state = state_;
  const Nanos deadline = state->env.clock.mono() + grace;
  state->draining = true;
  state->listeners.clear();
  // Sessions end later, each in its own task: the list does not change here.
  for (Session* session : state->sessions) {
    if (session->waits_for_a_request()) session->cut_off();
  }
  while (!state->sessions.empty()) {
    const Nanos left = deadline - state->env.clock.mono();
    if (left <= Nanos(0)) break;
    (void)co_await state->sessions_changed.wait_for(left);
  }
  co_await state->tasks.stop();
}

ServerStats Server::stats() const { return state_->stats; }

}  // namespace narad::http
