#pragma once
// What to make of the other end's hello. Pure.
#include <optional>
#include <string>
#include <string_view>

#include "internal/peer/party.h"
#include "internal/wire/preamble.h"

namespace narad::peer {

wire::Hello hello_of(const Sender& self, Lane lane, const wire::Nonce& nonce);
Sender sender_of(const wire::Hello& hello);

// Whether `other` may only use what is open to strangers: one of the two has no cluster yet, it is
// of another cluster (this node learned of its own after they met), or `other` is not the replica
// that is configured for its node. The last does not hold on the raft lane: each message there
// names its replicas, and the core believes none that is not meant for it. What is configured here
// may be old, and a leader that has taken the place of an earlier replica of its node is the only
// one who can tell.
bool is_stranger(const Sender& self, const Sender& other, std::optional<ReplicaId> configured,
                 Lane lane);
// Why, for people. REQUIRES: is_stranger().
std::string why_stranger(const Sender& self, const Sender& other,
                         std::optional<ReplicaId> configured);

// Why `self` refuses the end that said `hello`, if it does. `meant` is the node that was to be
// reached; empty if that is not known (or the other end is the caller).
std::optional<wire::Refusal> judge(const Sender& self, const wire::Hello& hello,
                                   std::optional<ReplicaId> configured, std::string_view meant);

wire::Refusal other_version(std::uint16_t version);
wire::Refusal wrong_proof(const Sender& self, const Sender& other);

// What the first bytes look like that were no preamble: " (it looks like TLS)".
std::string guess_protocol(ByteView first_bytes);
bool looks_like_http_request(ByteView first_bytes);

}  // namespace narad::peer
