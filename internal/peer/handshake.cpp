#include "internal/peer/handshake.h"

#include <array>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include "pkg/async/stream_io.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::peer {
namespace {

using wire::PreambleKind;
using wire::Refusal;
using wire::RefusalCode;
using End = Handshake::End;

constexpr std::size_t kLingerBytes = 64 * 1024;

// One message as it came: header and body together.
struct Frame {
  wire::PreambleHeader header;
  Bytes bytes;
  ByteView body() const { return ByteView(bytes).subspan(wire::kPreambleHeaderBytes); }
  bool is(PreambleKind kind) const { return header.kind == static_cast<std::uint8_t>(kind); }
};

using Out = std::shared_ptr<Handshake>;

// A lost stream is a result, and so may pass for an end in time: a step that was cut off says so.
Task<void> note_lost(error_code ec, Out out) {
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none)
    throw boost::system::system_error(asio::error::operation_aborted);
  if (ec != asio::error::eof) out->lost_by = ec.message();
}

Task<bool> send(StreamHolder stream, Bytes bytes, Out out) {
  const error_code ec = co_await write_all(**stream, buffers_of(as_chars(bytes)));
  if (ec) co_await note_lost(ec, out);
  co_return !ec;
}

Task<bool> read_into(StreamHolder stream, asio::mutable_buffer buffer, Out out) {
  const error_code ec = co_await read_exactly(**stream, buffer);
  if (ec) co_await note_lost(ec, out);
  co_return !ec;
}

// Closes our direction so that what was written arrives: a close with unread input is a reset,
// which may overtake it.
Task<void> linger(StreamHolder stream) {
  (*stream)->shutdown_write();
  std::array<char, 1024> buffer;
  for (std::size_t read = 0; read < kLingerBytes;) {
    auto [ec, n] = co_await read_some(**stream, asio::buffer(buffer));
    if (ec) co_return;
    read += n;
  }
}

Task<void> refuse(StreamHolder stream, Refusal refusal, Out out) {
  out->end = End::refused_by_us;
  out->code = refusal.code;
  out->why = refusal.text;
  if (co_await send(stream, wire::encode(refusal), out)) co_await linger(stream);
}

// What is no preamble at all: an HTTP client is told in its own language.
Task<void> refuse_foreign(StreamHolder stream, Bytes first, std::string why, Out out) {
  out->end = End::foreign;
  out->why = why + guess_protocol(first);
  if (!looks_like_http_request(first)) {
    if (co_await send(stream, wire::encode(Refusal{RefusalCode::malformed, why}), out))
      co_await linger(stream);
    co_return;
  }
  constexpr std::string_view kText =
      "this port is for the nodes of the cluster; clients use the HTTP address (http.addr)\n";
  const std::string answer =
      cat("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ",
          kText.size(), "\r\nConnection: close\r\n\r\n", kText);
  if (co_await send(stream, to_bytes(answer), out)) co_await linger(stream);
}

// The next message, of the kind that is due. Nothing if there is none: then `out` says why, and the
// other end has been told what it may be told.
Task<std::optional<Frame>> receive(StreamHolder stream, PreambleKind due, Out out) {
  Frame frame;
  frame.bytes.resize(wire::kPreambleHeaderBytes);
  if (!co_await read_into(stream, asio::buffer(frame.bytes), out)) co_return std::nullopt;
  auto header = wire::decode_preamble_header(frame.bytes);
  if (!header) {
    co_await refuse_foreign(stream, frame.bytes, header.error().text(), out);
    co_return std::nullopt;
  }
  frame.header = header.value();
  frame.bytes.resize(wire::kPreambleHeaderBytes + frame.header.body_bytes);
  if (frame.header.body_bytes > 0) {
    const asio::mutable_buffer rest = asio::buffer(frame.bytes) + wire::kPreambleHeaderBytes;
    if (!co_await read_into(stream, rest, out)) co_return std::nullopt;
  }
  if (frame.is(PreambleKind::refusal)) {
    Refusal refusal = wire::decode_refusal(frame.body());
    out->end = End::refused_by_them;
    out->code = refusal.code;
    out->why = refusal.text;
    co_return std::nullopt;
  }
  if (frame.header.version != wire::kPreambleVersion) {
    co_await refuse(stream, other_version(frame.header.version), out);
    co_return std::nullopt;
  }
  if (!frame.is(due)) {
    co_await refuse(stream,
                    Refusal{RefusalCode::malformed, "a message of the preamble out of turn"}, out);
    co_return std::nullopt;
  }
  co_return frame;
}

wire::Nonce fresh_nonce(Env& env) {
  wire::Nonce nonce;
  for (std::size_t i = 0; i < nonce.size(); i += 8) store_le(nonce.data() + i, env.random.next());
  return nonce;
}

// A hello that has passed judgement, into out->who and out->lane.
Task<bool> take_hello(StreamHolder stream, Frame frame, const Self* self, std::string meant,
                      Out out) {
  auto hello = wire::decode_hello(frame.body());
  if (!hello) {
    co_await refuse(stream, Refusal{RefusalCode::malformed, hello.error().text()}, out);
    co_return false;
  }
  out->who = sender_of(hello.value());
  auto refusal =
      judge(out->self, hello.value(), self->configured_replica(out->who->node_id), meant);
  if (refusal) {
    co_await refuse(stream, std::move(*refusal), out);
    co_return false;
  }
  out->lane = Lane{hello.value().lane};
  co_return true;
}

Task<bool> take_proof(StreamHolder stream, Frame frame, wire::Proof expected, Out out) {
  auto proof = wire::decode_proof(frame.body());
  if (!proof || !wire::same_proof(proof.value(), expected)) {
    co_await refuse(stream, wrong_proof(out->self, *out->who), out);
    co_return false;
  }
  co_return true;
}

}  // namespace

Task<void> introduce(Env& env, StreamHolder stream, HandshakeSide side, Lane lane,
                     std::string meant, Out out) {
  out->self = side.self->identity();
  const Bytes hello = wire::encode(hello_of(out->self, lane, fresh_nonce(env)));
  if (!co_await send(stream, hello, out)) co_return;
  auto theirs = co_await receive(stream, PreambleKind::hello, out);
  if (!theirs) co_return;
  if (!co_await take_hello(stream, *theirs, side.self, meant, out)) co_return;
  if (out->lane != lane) {
    co_await refuse(stream,
                    Refusal{RefusalCode::malformed, "the lane in the answer is another one"}, out);
    co_return;
  }
  out->step = "before its proof";
  const auto proof = wire::prove(side.secret, wire::ProofRole::caller, hello, theirs->bytes);
  if (!co_await send(stream, wire::encode(proof), out)) co_return;
  auto answer = co_await receive(stream, PreambleKind::proof, out);
  if (!answer) co_return;
  const auto expected = wire::prove(side.secret, wire::ProofRole::called, hello, theirs->bytes);
  if (!co_await take_proof(stream, *answer, expected, out)) co_return;
  out->end = End::proven;
}

Task<void> welcome(Env& env, StreamHolder stream, HandshakeSide side, std::function<bool()> crowded,
                   Out out) {
  out->self = side.self->identity();
  auto theirs = co_await receive(stream, PreambleKind::hello, out);
  if (!theirs) co_return;
  if (!co_await take_hello(stream, *theirs, side.self, "", out)) co_return;
  out->step = "before its proof";
  const Bytes hello = wire::encode(hello_of(out->self, out->lane, fresh_nonce(env)));
  if (!co_await send(stream, hello, out)) co_return;
  auto answer = co_await receive(stream, PreambleKind::proof, out);
  if (!answer) co_return;
  const auto expected = wire::prove(side.secret, wire::ProofRole::caller, theirs->bytes, hello);
  if (!co_await take_proof(stream, *answer, expected, out)) co_return;
  if (crowded()) {
    co_await refuse(stream,
                    Refusal{RefusalCode::crowded,
                            cat(out->self.node_id, " has too many connections of other nodes")},
                    out);
    co_return;
  }
  const auto proof = wire::prove(side.secret, wire::ProofRole::called, theirs->bytes, hello);
  if (!co_await send(stream, wire::encode(proof), out)) co_return;
  out->end = End::proven;
}

}  // namespace narad::peer
