#include "pkg/http/session.h"

#include <array>
#include <boost/asio/this_coro.hpp>
#include <charconv>
#include <new>

#include "pkg/async/timeout.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/http/request_parser.h"

namespace narad::http {
namespace {

constexpr Nanos kNever = Nanos::max();
// After a refusal: how long to wait for more of what is not wanted, and how much to read of it.
constexpr Nanos kLingerSilence = std::chrono::seconds(2);
constexpr std::size_t kLingerBytes = 64u << 20;
constexpr std::size_t kLingerStep = 64 * 1024;
constexpr std::size_t kChunkBufferMax = 16 * 1024;
constexpr std::size_t kFirstBodyStep = 16 * 1024;
constexpr std::size_t kHeadKept = 1024;

void append_number(std::string& out, std::size_t n) {
  std::array<char, 20> digits;
  auto [end, ec] = std::to_chars(digits.data(), digits.data() + digits.size(), n);
  out.append(digits.data(), end);
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

bool may_have_body(int status) { return status >= 200 && status != 204 && status != 304; }

std::string_view status_line(int status, std::string& storage) {
  switch (status) {
    case 200:
      return "HTTP/1.1 200 OK\r\n";
    case 202:
      return "HTTP/1.1 202 Accepted\r\n";
    case 204:
      return "HTTP/1.1 204 No Content\r\n";
    default:
      storage = cat("HTTP/1.1 ", status, ' ', reason_phrase(status), "\r\n");
      return storage;
  }
}

// Counts the requests in a handler, also when the node is killed in one.
class InHandler {
 public:
  explicit InHandler(ServerStats& stats) : stats_(stats) { ++stats_.requests; }
  ~InHandler() { --stats_.requests; }
  InHandler(const InHandler&) = delete;

 private:
  ServerStats& stats_;
};

}  // namespace

Session::Session(std::shared_ptr<ServerState> server, std::unique_ptr<Stream> stream,
                 std::shared_ptr<const void> context)
    : server_(std::move(server)),
      wire_(std::make_shared<BufferedStream>(server_->env, std::move(stream))),
      buffer_(wire_->buffer()),
      peer_(std::make_shared<const Endpoint>(wire_->stream().peer())),
      context_(std::move(context)) {
  server_->sessions.push_back(this);
  place_ = std::prev(server_->sessions.end());
  ++server_->stats.connections;
  if (server_->sessions.size() == 1) server_->sessions_changed.notify_all();
  enter(Phase::first);
}

Session::~Session() {
  charge(0);
  server_->sessions.erase(place_);
  --server_->stats.connections;
  if (server_->sessions.empty()) server_->sessions_changed.notify_all();
}

void Session::enter(Phase phase) {
  phase_ = phase;
  const auto in = [&](Nanos delay) { return server_->now + server_->tick + delay; };
  switch (phase) {
    case Phase::first:
    case Phase::reading:
    case Phase::body:  // of the whole request: see read_body_in_time()
      deadline_ = in(server_->options.read_timeout);
      break;
    case Phase::idle:
      deadline_ = in(server_->options.idle_timeout);
      break;
    case Phase::handling:
      deadline_ = kNever;  // how long an answer may take is the handler's business
      break;
    case Phase::writing:
      deadline_ = in(server_->options.write_timeout);
      break;
    case Phase::closing:
      deadline_ = std::min(in(kLingerSilence), linger_end_);
      break;
  }
}

// Accounts for a request body of that many bytes; false, and nothing changes, if it may not be so
// large now: a body may grow while it leaves as much as it takes to all others. So n large ones
// together always leave room for one of 1/(n+1) of the total, whoever came first.
bool Session::charge(std::size_t body_bytes) {
  auto& total = server_->stats.buffered_bytes;
  if (body_bytes > charged_) {
    const std::size_t others = total - charged_;
    const std::size_t left =
        server_->options.buffered_bytes_max - std::min(others, server_->options.buffered_bytes_max);
    if (body_bytes > left / 2) return false;
  }
  total = total - charged_ + body_bytes;
  charged_ = body_bytes;
  return true;
}

Task<void> Session::run(std::shared_ptr<Session> self) {
  Session& s = *self;
  const Closer closer(s.wire_->stream());
  for (;;) {
    if (s.server_->draining && s.wire_->buffer().empty()) co_return;
    RequestParser parser(s.server_->options.header_bytes_max);
    if (!co_await s.read_head(parser)) co_return;

    Request& request = parser.request();
    request.peer = s.peer_;
    request.context = s.context_;
    const bool head_only = request.method == Method::head;
    const Admission admission = s.server_->admit(request);
    Body body = Body::complete;
    if (parser.has_chunked_body() || parser.content_bytes() > 0) {
      body = co_await s.read_body(parser, admission.body_bytes_max);
    }
    if (body != Body::complete) {
      request.body = std::string();
      s.charge(0);
      if (body != Body::too_large || !admission.handler_refuses_large) {
        auto refusal = refusal_of(body, parser);
        if (refusal) co_await s.refuse(std::move(*refusal));
        co_return;
      }
    }
    const bool must_close = body == Body::too_large || !parser.keep_alive();
    const bool say_keep_alive = !must_close && !parser.is_http11();
    request.body_too_large = body == Body::too_large;

    s.enter(Phase::handling);
    Request owned = std::move(request);
    Response response;
    if (admission.cancel_when_gone) {
      auto answer = co_await s.handle_watched(std::move(owned));
      if (!answer) co_return;  // the client is gone
      response = std::move(*answer);
    } else {
      response = co_await call_handler(s.server_, std::move(owned));
    }
    if (say_keep_alive) response.headers.add("Connection", "keep-alive");
    const bool close = must_close || response.close || s.server_->draining;
    if (!co_await s.write(std::move(response), head_only, close)) co_return;
    s.charge(0);
    ++s.server_->stats.served;
    if (close) {
      if (body == Body::too_large || !s.wire_->buffer().empty())
        co_await s.linger(s.server_->options.read_timeout);
      co_return;
    }
  }
}

Task<bool> Session::read_head(RequestParser& parser) {
  const bool first = phase_ == Phase::first;
  if (!wire_->reading()) buffer_.shrink();
  if (!buffer_.empty())
    enter(Phase::reading);
  else if (!first)
    enter(Phase::idle);
  for (;;) {
    if (!buffer_.empty()) {
      std::size_t used = 0;
      const auto step = parser.feed_head(buffer_.data(), used);
      buffer_.consume(used);
      if (step == RequestParser::Step::head_done) co_return true;
      if (step == RequestParser::Step::refused) {
        auto refusal = parser.refusal();
        co_await refuse(std::move(refusal));
        co_return false;
      }
      // The parser refuses before the buffer outgrows the limit.
      if (buffer_.full()) {
        const bool grown = buffer_.grow(server_->options.header_bytes_max + ReadBuffer::kSmall);
        NARAD_ASSERT(grown);
      }
    }
    if (co_await wire_->fill()) co_return false;
    if (waits_for_a_request()) enter(Phase::reading);
  }
}

Task<Session::Body> Session::read_body(RequestParser& parser, std::uint64_t limit) {
  const bool chunked = parser.has_chunked_body();
  if (!chunked && parser.content_bytes() > limit) co_return Body::too_large;
  parser.set_body_limit(limit);
  const bool all_here = !chunked && buffer_.data().size() >= parser.content_bytes();
  if (all_here)
    co_return co_await read_sized_body(parser.request().body,
                                       static_cast<std::size_t>(parser.content_bytes()));
  co_return co_await read_body_in_time(parser);
}

// Until the read time-out, which the sweeper announces: a late body gets an answer.
Task<Session::Body> Session::read_body_in_time(RequestParser& parser) {
  phase_ = Phase::body;  // the deadline stays: it is that of the whole request
  Body body = Body::late;
  auto reading = store_body(this, &parser, &body);
  auto watching = until_late(this);
  (void)co_await finishes_before(std::move(reading), std::move(watching));
  co_return body;
}

Task<void> Session::until_late(Session* session) {
  while (!session->overdue()) co_await session->server_->body_overdue.wait();
}

Task<void> Session::store_body(Session* session, RequestParser* parser, Body* body) {
  Session& s = *session;
  if (parser->expects_continue() && s.buffer_.empty()) {
    constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    if (co_await write_all(s.wire_->stream(), buffers_of(kContinue))) {
      *body = Body::lost;
      co_return;
    }
  }
  Body read = Body::lost;
  if (parser->has_chunked_body()) {
    read = co_await s.read_chunked_body(*parser);
  } else {
    read = co_await s.read_sized_body(parser->request().body,
                                      static_cast<std::size_t>(parser->content_bytes()));
  }
  // A read that ended because time was up says nothing about the connection.
  if (read != Body::lost || !s.overdue()) *body = read;
}

Session::Body Session::lost_by(error_code ec) {
  return ec == asio::error::eof ? Body::cut_short : Body::lost;
}

// What the server answers by itself to a request whose body it did not get. Nothing if nobody is
// there to read it.
std::optional<Response> Session::refusal_of(Body body, const RequestParser& parser) {
  switch (body) {
    case Body::complete:
    case Body::lost:
      return std::nullopt;
    case Body::too_large:
      return error_response(413, "request body too large");
    case Body::cut_short:
      return error_response(400, "the request body ends before its announced end");
    case Body::late:
      return error_response(400, "the request body did not arrive within the read timeout");
    case Body::no_memory:
      return error_response(503, "too many request bytes in flight, retry later");
    case Body::malformed:
      return parser.refusal();
    case Body::long_chunk:
      return text_response(400, "400 Bad Request: a chunk header or trailer is too long");
  }
  return std::nullopt;
}

// Memory follows what has arrived, not what was announced.
Task<Session::Body> Session::read_sized_body(std::string& body, std::size_t bytes) {
  std::size_t filled = std::min(bytes, buffer_.data().size());
  if (!charge(filled)) co_return Body::no_memory;
  body.assign(buffer_.data().substr(0, filled));
  buffer_.consume(filled);
  while (filled < bytes) {
    if (filled == body.size()) {
      const std::size_t size = std::min(bytes, std::max(kFirstBodyStep, filled * 2));
      if (!charge(size)) co_return Body::no_memory;
      body.resize(size);
    }
    auto [ec, n] = co_await read_some(wire_->stream(),
                                      asio::buffer(body.data() + filled, body.size() - filled));
    if (ec) co_return lost_by(ec);
    filled += n;
  }
  co_return Body::complete;
}

Task<Session::Body> Session::read_chunked_body(RequestParser& parser) {
  for (;;) {
    std::size_t used = 0;
    const auto step = parser.feed_chunks(buffer_.data(), used);
    buffer_.consume(used);
    if (!charge(parser.request().body.size())) co_return Body::no_memory;
    switch (step) {
      case RequestParser::Step::body_done:
        co_return Body::complete;
      case RequestParser::Step::too_large:
        co_return Body::too_large;
      case RequestParser::Step::need_more:
        break;
      default:
        co_return Body::malformed;
    }
    if (buffer_.full() && !buffer_.grow(kChunkBufferMax)) co_return Body::long_chunk;
    const error_code ec = co_await wire_->fill();
    if (ec) co_return lost_by(ec);
  }
}

// The handler's answer, or 500 if it threw. Cancellation is passed on.
Task<Response> Session::call_handler(std::shared_ptr<ServerState> server, Request request) {
  const InHandler counted(server->stats);
  std::exception_ptr error;
  try {
    co_return co_await server->handler(std::move(request));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    error = std::current_exception();
  }
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) std::rethrow_exception(error);
  std::string what = "an unknown exception";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
  }
  NARAD_LOG_ERROR(server->env.log, "request handler failed", {"error", what});
  Response response = json_response(500, R"({"error":"internal server panic"})");
  co_return response;
}

// Nothing if the client went away first: then the handler is cancelled, and awaited.
Task<std::optional<Response>> Session::handle_watched(Request request) {
  wire_->read_in_background();
  auto answer = std::make_shared<std::optional<Response>>();
  auto answering = store_answer(server_, std::move(request), answer);
  auto watching = wire_->wait_gone();
  (void)co_await finishes_before(std::move(answering), std::move(watching));
  co_return std::move(*answer);
}

Task<void> Session::store_answer(std::shared_ptr<ServerState> server, Request request,
                                 std::shared_ptr<std::optional<Response>> answer) {
  answer->emplace(co_await call_handler(std::move(server), std::move(request)));
}

// False if the connection broke or was cut off.
Task<bool> Session::write(Response response, bool head_only, bool close) {
  enter(Phase::writing);
  const bool has_body = may_have_body(response.status);
  std::string line;
  head_.clear();
  head_ += status_line(response.status, line);
  if (has_body) {
    const bool typed = !response.content_type.empty() && !response.body.empty();
    if (typed) append_field(head_, "Content-Type", response.content_type);
    head_ += "Content-Length: ";
    append_number(head_, response.body.size());
    head_ += "\r\n";
  }
  for (std::size_t i = 0; i < response.headers.size(); ++i) {
    const auto [name, value] = response.headers.at(i);
    append_field(head_, name, value);
  }
  if (close) head_ += "Connection: close\r\n";
  head_ += "\r\n";

  const std::string_view body = has_body && !head_only ? response.body : std::string_view();
  const ConstBuffers all = buffers_of(head_, body);
  auto [ec, n] = co_await write_some(wire_->stream(), all);
  if (!ec && n < head_.size() + body.size()) {
    const std::size_t of_head = std::min(n, head_.size());
    const std::string_view head_rest = std::string_view(head_).substr(of_head);
    const std::string_view body_rest = body.substr(n - of_head);
    ec = co_await write_all(wire_->stream(), buffers_of(head_rest, body_rest));
  }
  if (head_.capacity() > kHeadKept) head_ = std::string();
  co_return !ec;
}

// Answers by the server itself, then ends the connection.
Task<void> Session::refuse(Response response) {
  ++server_->stats.malformed;
  if (co_await write(std::move(response), false, true))
    co_await linger(server_->options.read_timeout);
}

// Closes so that the answer arrives: a close with unread input is a reset, which may overtake it.
// So what a client still sends (one that sends all before it reads, say) is read away: up to
// kLingerBytes, while it keeps coming, at most for that long.
Task<void> Session::linger(Nanos at_most) {
  linger_end_ = server_->now + server_->tick + at_most;
  enter(Phase::closing);
  wire_->stream().shutdown_write();
  std::size_t discarded = 0;
  while (discarded < kLingerBytes) {
    if (!buffer_.empty()) buffer_.consume(buffer_.data().size());
    if (discarded > 0) (void)buffer_.grow(kLingerStep);
    if (co_await wire_->fill()) co_return;
    discarded += buffer_.data().size();
    enter(Phase::closing);
  }
}

Task<void> Session::turn_away(std::shared_ptr<Session> self) {
  const Closer closer(self->wire_->stream());
  auto refusal = error_response(503, "too many connections, retry later");
  if (co_await self->write(std::move(refusal), false, true)) co_await self->linger(kLingerSilence);
}

}  // namespace narad::http
