#include "pkg/http/client.h"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <deque>
#include <map>

#include "pkg/base/text.h"
#include "pkg/http/exchange.h"

namespace narad::http {
namespace {

using Wire = std::shared_ptr<BufferedStream>;

}  // namespace

struct Client::State {
  State(Env& e, ClientOptions o) : env(e), options(o) {}
  ~State() { close_idle(); }

  struct Idle {
    Wire wire;
    Nanos since;
  };

  // A kept connection that is still good, or null.
  Wire take(const Endpoint& to) {
    drop_stale();
    auto it = idle.find(to);
    if (it == idle.end()) return nullptr;
    Wire wire = std::move(it->second.back().wire);
    it->second.pop_back();
    if (it->second.empty()) idle.erase(it);
    return wire;
  }
  void keep(const Endpoint& to, Wire wire) {
    auto& kept = idle[to];
    // The read tells when the peer closes; and whatever it brings unasked spoils the connection.
    wire->read_in_background();
    kept.push_back(Idle{std::move(wire), env.clock.mono()});
    if (kept.size() > options.idle_max) {
      kept.front().wire->stream().close();
      kept.pop_front();
    }
    if (kept.empty()) idle.erase(to);
  }
  void drop_stale() {
    const Nanos now = env.clock.mono();
    for (auto it = idle.begin(); it != idle.end();) {
      std::erase_if(it->second, [&](const Idle& i) {
        const bool stale = !i.wire->reading() || now - i.since >= options.idle_timeout;
        if (stale) i.wire->stream().close();
        return stale;
      });
      it = it->second.empty() ? idle.erase(it) : std::next(it);
    }
  }
  void close_idle() {
    for (auto& [to, kept] : idle) {
      for (auto& i : kept) i.wire->stream().close();
    }
    idle.clear();
  }

  Env& env;
  const ClientOptions options;
  std::map<Endpoint, std::deque<Idle>> idle;
};

// Sends and receives until the exchange has a response or an error, or throws if cancelled before.
Task<void> Client::exchange(std::shared_ptr<State> state, Endpoint to,
                            std::shared_ptr<const ClientRequest> request,
                            std::shared_ptr<Exchange> progress) {
  for (int attempt = 0;; ++attempt) {
    Wire wire = attempt == 0 ? state->take(to) : nullptr;
    const bool reused = wire != nullptr;
    if (!reused) {
      std::unique_ptr<Stream> stream;
      error_code ec;
      try {
        stream = co_await connect(state->env, to);
      } catch (const boost::system::system_error& e) {
        if (e.code() == asio::error::operation_aborted) throw;
        ec = e.code();
      }
      if (ec) {
        progress->error = Error(progress->sent ? Errc::unknown_outcome : Errc::unavailable,
                                cat("cannot connect to ", to_string(to), ": ", ec.message()));
        co_return;
      }
      wire = std::make_shared<BufferedStream>(state->env, std::move(stream));
    }

    Closer closer(wire->stream());
    co_await exchange_on(wire, state->options, to, request, progress);
    if (progress->reusable) {
      closer.release();
      state->keep(to, std::move(wire));
    }
    if (progress->response || progress->error) co_return;
    // The peer may have closed a kept connection as we took it.
    if (reused && !progress->answered && (request->repeatable || !progress->sent)) continue;
    progress->error = lost_connection(to, *progress);
    co_return;
  }
}

Client::Client(Env& env, ClientOptions options) : state_(std::make_shared<State>(env, options)) {}

Client::~Client() { state_->close_idle(); }

Task<Result<ClientResponse>> Client::request(Endpoint to, ClientRequest request,
                                             Deadline deadline) {
  auto state = state_;
  if (!is_sendable(request.target))
    co_return Error(Errc::invalid_argument,
                    cat("\"", request.target, "\" is no request target: encode it"));
  const Nanos left = deadline.left(state->env);
  auto progress = std::make_shared<Exchange>();
  if (left > Nanos(0)) {
    auto shared = std::make_shared<const ClientRequest>(std::move(request));
    auto exchanging = exchange(state, to, std::move(shared), progress);
    (void)co_await finishes_within(state->env, left, std::move(exchanging));
  }
  if (progress->response) co_return std::move(*progress->response);
  if (progress->error) co_return std::move(*progress->error);
  co_return Error(progress->sent ? Errc::unknown_outcome : Errc::unavailable,
                  cat("no answer from ", to_string(to), " before the deadline"));
}

void Client::close_idle() { state_->close_idle(); }

std::size_t Client::idle() const {
  state_->drop_stale();
  std::size_t n = 0;
  for (const auto& [to, kept] : state_->idle) n += kept.size();
  return n;
}

std::string basic_authorization(std::string_view user, std::string_view password) {
  return cat("Basic ", to_base64(as_bytes(cat(user, ':', password))));
}

}  // namespace narad::http
