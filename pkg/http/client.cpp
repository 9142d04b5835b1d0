#include "pkg/http/client.h"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <deque>
#include <map>

#include "pkg/base/text.h"
#include "pkg/http/buffered_stream.h"
#include "pkg/http/response_parser.h"

namespace narad::http {
namespace {

using Wire = std::shared_ptr<BufferedStream>;

constexpr std::size_t kChunkBufferMax = 64 * 1024;
constexpr std::size_t kBodyStep = 64 * 1024;

// What a caller must know about an exchange that did not end well.
struct Progress {
  bool sent = false;      // a byte of the request may have reached the peer
  bool answered = false;  // a byte of an answer arrived
  std::optional<ClientResponse> response;
  std::optional<Error> error;
};

bool sends_length(Method method) {
  return method == Method::post || method == Method::put || method == Method::patch;
}

// Visible ASCII and above: nothing that could end the request line.
bool is_sendable(std::string_view target) {
  return target.starts_with('/') && std::none_of(target.begin(), target.end(), [](char c) {
           return static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
         });
}

std::string head_of(const Endpoint& to, const ClientRequest& request) {
  std::string head = cat(to_string(request.method), ' ', request.target,
                         " HTTP/1.1\r\nHost: ", to_string(to), "\r\n");
  if (!request.body.empty() || sends_length(request.method))
    head += cat("Content-Length: ", request.body.size(), "\r\n");
  for (std::size_t i = 0; i < request.headers.size(); ++i) {
    const auto [name, value] = request.headers.at(i);
    head += cat(name, ": ", value, "\r\n");
  }
  head += "\r\n";
  return head;
}

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

namespace {

enum class Reading { done, done_and_reusable, lost, failed };

Error malformed(const Endpoint& to) {
  return Error(Errc::data_loss, cat("malformed HTTP answer from ", to_string(to)));
}

Error too_large(const Endpoint& to, std::uint64_t limit) {
  return Error(Errc::too_large,
               cat("the answer from ", to_string(to), " is larger than ", limit, " bytes"));
}

Task<bool> read_sized_body(BufferedStream& wire, std::string& body, std::size_t bytes) {
  std::size_t filled = std::min(bytes, wire.buffer().data().size());
  body.assign(wire.buffer().data().substr(0, filled));
  wire.buffer().consume(filled);
  while (filled < bytes) {
    if (filled == body.size()) body.resize(std::min(bytes, std::max(kBodyStep, filled * 2)));
    auto [ec, n] =
        co_await read_some(wire.stream(), asio::buffer(body.data() + filled, body.size() - filled));
    if (ec) co_return false;
    filled += n;
  }
  co_return true;
}

Task<Reading> read_chunked_body(BufferedStream& wire, ResponseParser& parser, const Endpoint& to,
                                std::uint64_t limit, Progress& progress) {
  parser.set_body_limit(limit);
  for (;;) {
    std::size_t used = 0;
    const auto step = parser.feed_chunks(wire.buffer().data(), used);
    wire.buffer().consume(used);
    if (step == ResponseParser::Step::body_done) co_return Reading::done;
    const bool stuck = wire.buffer().full() && !wire.buffer().grow(kChunkBufferMax);
    if (step != ResponseParser::Step::need_more || stuck) {
      progress.error =
          step == ResponseParser::Step::too_large ? too_large(to, limit) : malformed(to);
      co_return Reading::failed;
    }
    if (co_await wire.fill()) co_return Reading::lost;
  }
}

Task<Reading> read_body_to_end(BufferedStream& wire, std::string& body, const Endpoint& to,
                               std::uint64_t limit, Progress& progress) {
  for (;;) {
    body += wire.buffer().data();
    wire.buffer().consume(wire.buffer().data().size());
    if (body.size() > limit) {
      progress.error = too_large(to, limit);
      co_return Reading::failed;
    }
    const error_code ec = co_await wire.fill();
    if (ec == asio::error::eof) co_return Reading::done;
    if (ec) co_return Reading::lost;
  }
}

// One final answer into progress.response; informational ones are passed over.
Task<Reading> read_response(BufferedStream& wire, const ClientOptions& options, const Endpoint& to,
                            Method method, Progress& progress) {
  for (;;) {
    ResponseParser parser(options.header_bytes_max, method == Method::head);
    for (;;) {
      std::size_t used = 0;
      const auto step = parser.feed_head(wire.buffer().data(), used);
      wire.buffer().consume(used);
      if (step == ResponseParser::Step::head_done) break;
      if (step != ResponseParser::Step::need_more) {
        progress.error = step == ResponseParser::Step::too_large
                             ? too_large(to, options.header_bytes_max)
                             : malformed(to);
        co_return Reading::failed;
      }
      if (wire.buffer().full()) wire.buffer().grow(options.header_bytes_max + ReadBuffer::kSmall);
      if (co_await wire.fill()) co_return Reading::lost;
      progress.answered = true;
    }
    ClientResponse& response = parser.response();
    if (response.status / 100 == 1) continue;
    Reading reading = Reading::done;
    if (!parser.is_done()) {
      const std::uint64_t limit = options.body_bytes_max;
      if (parser.chunked()) {
        reading = co_await read_chunked_body(wire, parser, to, limit, progress);
      } else if (parser.content_length()) {
        const std::uint64_t bytes = *parser.content_length();
        if (bytes > limit) {
          progress.error = too_large(to, limit);
          co_return Reading::failed;
        }
        const bool whole =
            co_await read_sized_body(wire, response.body, static_cast<std::size_t>(bytes));
        if (!whole) reading = Reading::lost;
      } else {
        reading = co_await read_body_to_end(wire, response.body, to, limit, progress);
      }
    }
    if (reading != Reading::done) co_return reading;
    progress.response = std::move(response);
    const bool reusable = parser.keep_alive() && wire.buffer().empty();
    co_return reusable ? Reading::done_and_reusable : Reading::done;
  }
}

}  // namespace

// Sends and receives until progress has a response or an error, or throws if cancelled before.
Task<void> Client::exchange(std::shared_ptr<State> state, Endpoint to, ClientRequest request,
                            std::shared_ptr<void> shared) {
  auto& progress = *static_cast<Progress*>(shared.get());
  const std::string head = head_of(to, request);
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
        progress.error = Error(progress.sent ? Errc::unknown_outcome : Errc::unavailable,
                               cat("cannot connect to ", to_string(to), ": ", ec.message()));
        co_return;
      }
      wire = std::make_shared<BufferedStream>(state->env, std::move(stream));
    }

    Closer closer(wire->stream());
    const ConstBuffers all = buffers_of(head, request.body);
    auto [write_error, written] = co_await write_some(wire->stream(), all);
    // A write that failed at once passed nothing on; one that was given up may have.
    progress.sent = progress.sent || !write_error || write_error == asio::error::operation_aborted;
    if (!write_error && written < all.bytes()) {
      const std::size_t of_head = std::min(written, head.size());
      const std::string_view head_rest = std::string_view(head).substr(of_head);
      const std::string_view body_rest = std::string_view(request.body).substr(written - of_head);
      write_error = co_await write_all(wire->stream(), buffers_of(head_rest, body_rest));
    }
    // A server that refuses a large body answers before it has read all of it: look for an answer
    // even if the request could not be written whole.
    progress.answered = false;
    Reading reading = Reading::lost;
    if (progress.sent)
      reading = co_await read_response(*wire, state->options, to, request.method, progress);
    switch (reading) {
      case Reading::done_and_reusable:
        if (!write_error) {
          closer.release();
          state->keep(to, std::move(wire));
        }
        co_return;
      case Reading::done:
      case Reading::failed:
        co_return;
      case Reading::lost:
        break;
    }
    const auto state_now = co_await asio::this_coro::cancellation_state;
    if (state_now.cancelled() != asio::cancellation_type::none)
      throw boost::system::system_error(asio::error::operation_aborted);
    // The peer may have closed a kept connection as we took it.
    if (reused && !progress.answered && (request.repeatable || !progress.sent)) continue;
    progress.error =
        Error(progress.sent ? Errc::unknown_outcome : Errc::unavailable,
              cat(to_string(to), " closed the connection ",
                  progress.answered ? "in the middle of its answer" : "without an answer"));
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
  auto progress = std::make_shared<Progress>();
  if (left > Nanos(0)) {
    auto exchanging = exchange(state, to, std::move(request), progress);
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
