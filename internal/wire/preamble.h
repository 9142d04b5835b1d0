#pragma once
// What two nodes say to each other before HTTP on a connection of the cluster plane
// (docs/internals/ peer-protocol.md). Pure: bytes to values and back, and the proofs.
//
//   caller                          called
//   hello  ------------------------>
//          <------------------------  hello       fresh nonces on both sides
//   proof  ------------------------>
//          <------------------------  proof       from here on HTTP/1.1
//
// In the place of any message there may be a refusal: a code, and a text for the other side's
// people. Every message: magic "NRDP", u16 version, u8 kind, u8 0, u16 length of the body. That
// header and the refusal never change, so that releases which understand nothing else of each
// other can still say so.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/bytes.h"
#include "pkg/base/result.h"

namespace narad::wire {

inline constexpr std::uint16_t kPreambleVersion = 1;
inline constexpr std::size_t kPreambleHeaderBytes = 10;
inline constexpr std::size_t kPreambleBodyMax = 1024;
inline constexpr std::size_t kNodeIdBytesMax = 255;
inline constexpr std::size_t kRefusalTextMax = 600;

using Nonce = std::array<std::byte, 32>;
using Proof = std::array<std::byte, 32>;

enum class PreambleKind : std::uint8_t { hello = 1, proof = 2, refusal = 3 };

struct PreambleHeader {
  std::uint16_t version = kPreambleVersion;
  std::uint8_t kind = 0;  // PreambleKind, or one of a later release
  std::uint16_t body_bytes = 0;
};

// u8 lane, u64 cluster id, u64 replica id, 32 bytes nonce, u8 length and node id. What follows in
// the body is of a later release, and passed over.
struct Hello {
  std::uint8_t lane = 0;
  std::uint64_t cluster_id = 0;  // 0: none yet
  std::uint64_t replica_id = 0;  // 0: none yet
  Nonce nonce{};
  std::string node_id;
  friend bool operator==(const Hello&, const Hello&) = default;
};

// u8 code, u16 length and text.
enum class RefusalCode : std::uint8_t {
  version = 1,    // the releases do not understand each other
  malformed = 2,  // what came is no message of this protocol
  cluster = 3,    // of another cluster
  node_id = 4,    // the caller has the called node's own id, or the called is not who was meant
  replica = 5,    // not the replica under which that node is configured
  proof = 6,      // another secret
  lane = 7,       // not on this lane (yet)
  crowded = 8,    // too many connections
};
struct Refusal {
  RefusalCode code = RefusalCode::malformed;
  std::string text;  // UTF-8, no control characters
  friend bool operator==(const Refusal&, const Refusal&) = default;
};
std::string_view to_string(RefusalCode code);

// Each a whole message. REQUIRES: node_id of 1 to kNodeIdBytesMax bytes. A longer text is cut.
Bytes encode(const Hello& hello);
Bytes encode(const Proof& proof);
Bytes encode(const Refusal& refusal);

// REQUIRES: kPreambleHeaderBytes. invalid_argument if it is no preamble, or announces a body over
// kPreambleBodyMax. Any version and kind are let through: judge them.
Result<PreambleHeader> decode_preamble_header(ByteView bytes);
// Bodies. invalid_argument if malformed. The node id is UTF-8 without control characters.
Result<Hello> decode_hello(ByteView body);
Result<Proof> decode_proof(ByteView body);
// Always something printable: what is not is replaced, what is missing is left empty.
Refusal decode_refusal(ByteView body);

enum class ProofRole : std::uint8_t { caller = 'C', called = 'S' };

// HMAC-SHA256(secret, "narad-1" ‖ role ‖ caller's hello ‖ called node's hello), both as whole
// messages: so over both nonces, both ids (of node, replica and cluster), the versions and the
// lane.
Proof prove(std::string_view secret, ProofRole role, ByteView caller_hello, ByteView called_hello);
// In a time that does not depend on where they differ.
bool same_proof(const Proof& a, const Proof& b);

}  // namespace narad::wire
