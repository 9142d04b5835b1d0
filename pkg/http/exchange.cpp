#include "pkg/http/exchange.h"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include "pkg/base/text.h"
#include "pkg/http/response_parser.h"

namespace narad::http {
namespace {

constexpr std::size_t kChunkBufferMax = 64 * 1024;
constexpr std::size_t kBodyStep = 64 * 1024;
constexpr std::size_t kReservedMax = 8u << 20;

bool sends_length(Method method) {
  return method == Method::post || method == Method::put || method == Method::patch;
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
  // In one place, which costs nothing until it is filled: a large body is not moved as it grows.
  body.reserve(std::min(bytes, kReservedMax));
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
                                std::uint64_t limit, Exchange& progress) {
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
                               std::uint64_t limit, Exchange& progress) {
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
                            Method method, Exchange& progress) {
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

bool is_sendable(std::string_view target) {
  return target.starts_with('/') && std::none_of(target.begin(), target.end(), [](char c) {
           return static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
         });
}

Task<void> exchange_on(std::shared_ptr<BufferedStream> wire, ClientOptions options, Endpoint to,
                       std::shared_ptr<const ClientRequest> request,
                       std::shared_ptr<Exchange> exchange) {
  Exchange& progress = *exchange;
  const std::string head = head_of(to, *request);
  const ConstBuffers all = buffers_of(head, request->body);
  auto [write_error, written] = co_await write_some(wire->stream(), all);
  // A write that failed at once passed nothing on; one that was given up may have.
  progress.sent = progress.sent || !write_error || write_error == asio::error::operation_aborted;
  if (!write_error && written < all.bytes()) {
    const std::size_t of_head = std::min(written, head.size());
    const std::string_view head_rest = std::string_view(head).substr(of_head);
    const std::string_view body_rest = std::string_view(request->body).substr(written - of_head);
    write_error = co_await write_all(wire->stream(), buffers_of(head_rest, body_rest));
  }
  // A server that refuses a large body answers before it has read all of it: look for an answer
  // even if the request could not be written whole.
  progress.answered = false;
  Reading reading = Reading::lost;
  if (progress.sent)
    reading = co_await read_response(*wire, options, to, request->method, progress);
  progress.reusable = reading == Reading::done_and_reusable && !write_error;
  if (reading != Reading::lost) co_return;
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none)
    throw boost::system::system_error(asio::error::operation_aborted);
}

Error lost_connection(const Endpoint& to, const Exchange& exchange) {
  return Error(exchange.sent ? Errc::unknown_outcome : Errc::unavailable,
               cat(to_string(to), " closed the connection ",
                   exchange.answered ? "in the middle of its answer" : "without an answer"));
}

}  // namespace narad::http
