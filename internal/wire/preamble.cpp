#include "internal/wire/preamble.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::wire {
namespace {

constexpr std::string_view kMagic = "NRDP";

bool is_printable(std::string_view text) {
  return is_utf8(text) && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

Bytes message(PreambleKind kind, ByteView body) {
  NARAD_ASSERT(body.size() <= kPreambleBodyMax);
  Bytes out;
  ByteWriter writer(out);
  writer.bytes(as_bytes(kMagic));
  writer.u16(kPreambleVersion);
  writer.u8(static_cast<std::uint8_t>(kind));
  writer.u8(0);
  writer.u16(static_cast<std::uint16_t>(body.size()));
  writer.bytes(body);
  return out;
}

Error malformed(std::string_view what) {
  return Error(Errc::invalid_argument, cat("malformed ", what, " on a cluster connection"));
}

// At most `bytes_max` bytes of it, without half a character at the end.
std::string_view cut(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

std::string_view to_string(RefusalCode code) {
  switch (code) {
    case RefusalCode::version:
      return "version";
    case RefusalCode::malformed:
      return "malformed";
    case RefusalCode::cluster:
      return "cluster";
    case RefusalCode::node_id:
      return "node_id";
    case RefusalCode::replica:
      return "replica";
    case RefusalCode::proof:
      return "proof";
    case RefusalCode::lane:
      return "lane";
    case RefusalCode::crowded:
      return "crowded";
  }
  return "unknown";
}

Bytes encode(const Hello& hello) {
  NARAD_ASSERT(!hello.node_id.empty() && hello.node_id.size() <= kNodeIdBytesMax);
  Bytes body;
  ByteWriter writer(body);
  writer.u8(hello.lane);
  writer.u64(hello.cluster_id);
  writer.u64(hello.replica_id);
  writer.bytes(hello.nonce);
  writer.u8(static_cast<std::uint8_t>(hello.node_id.size()));
  writer.bytes(as_bytes(hello.node_id));
  return message(PreambleKind::hello, body);
}

Bytes encode(const Proof& proof) { return message(PreambleKind::proof, proof); }

Bytes encode(const Refusal& refusal) {
  const std::string_view text = cut(refusal.text, kRefusalTextMax);
  Bytes body;
  ByteWriter writer(body);
  writer.u8(static_cast<std::uint8_t>(refusal.code));
  writer.u16(static_cast<std::uint16_t>(text.size()));
  writer.bytes(as_bytes(text));
  return message(PreambleKind::refusal, body);
}

Result<PreambleHeader> decode_preamble_header(ByteView bytes) {
  NARAD_ASSERT(bytes.size() == kPreambleHeaderBytes);
  ByteReader reader(bytes);
  if (as_chars(reader.bytes(kMagic.size())) != kMagic)
    return Error(Errc::invalid_argument, "this is not the protocol of Narad's cluster port");
  PreambleHeader header;
  header.version = reader.u16();
  header.kind = reader.u8();
  reader.u8();
  header.body_bytes = reader.u16();
  if (header.body_bytes > kPreambleBodyMax)
    return Error(Errc::invalid_argument,
                 cat("a cluster connection announces ", header.body_bytes,
                     " bytes of preamble; at most ", kPreambleBodyMax, " are accepted"));
  return header;
}

Result<Hello> decode_hello(ByteView body) {
  ByteReader reader(body);
  Hello hello;
  hello.lane = reader.u8();
  hello.cluster_id = reader.u64();
  hello.replica_id = reader.u64();
  const ByteView nonce = reader.bytes(hello.nonce.size());
  const ByteView node_id = reader.bytes(reader.u8());
  if (!reader.ok() || node_id.empty()) return malformed("hello");
  std::copy(nonce.begin(), nonce.end(), hello.nonce.begin());
  hello.node_id = to_text(node_id);
  if (!is_printable(hello.node_id)) return malformed("node id");
  return hello;
}

Result<Proof> decode_proof(ByteView body) {
  Proof proof;
  if (body.size() != proof.size()) return malformed("proof");
  std::copy(body.begin(), body.end(), proof.begin());
  return proof;
}

Refusal decode_refusal(ByteView body) {
  ByteReader reader(body);
  Refusal refusal;
  refusal.code = static_cast<RefusalCode>(reader.u8());
  const std::size_t announced = reader.u16();
  const std::size_t length = std::min({announced, reader.remaining(), kRefusalTextMax});
  refusal.text = to_text(reader.bytes(length));
  if (!is_printable(refusal.text)) {
    for (char& c : refusal.text) {
      if (c < 0x20 || c == 0x7f) c = '?';
    }
  }
  return refusal;
}

Proof prove(std::string_view secret, ProofRole role, ByteView caller_hello, ByteView called_hello) {
  Bytes input;
  ByteWriter writer(input);
  writer.bytes(as_bytes("narad-1"));
  writer.u8(static_cast<std::uint8_t>(role));
  writer.bytes(caller_hello);
  writer.bytes(called_hello);
  Proof proof;
  unsigned int size = 0;
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  const unsigned char* done =
      HMAC(EVP_sha256(), secret.empty() ? "" : secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(input.data()), input.size(),
           reinterpret_cast<unsigned char*>(proof.data()), &size);
  NARAD_ASSERT(done != nullptr && size == proof.size(), "HMAC-SHA256 failed");
  return proof;
}

bool same_proof(const Proof& a, const Proof& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace narad::wire
