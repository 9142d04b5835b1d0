#pragma once
// For the fuzzers of this directory: one node without a secret, in a world of memory.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "internal/peer/peers.h"
#include "internal/peer/server.h"
#include "internal/wire/preamble.h"
#include "pkg/http/test_world.h"

namespace narad::peer::fuzzing {

inline void check(bool holds) {
  if (!holds) std::abort();
}

inline constexpr std::uint16_t kPort = 7943;

struct Party final : Self, AddressBook {
  explicit Party(std::string id) : me{std::move(id), ReplicaId(1), 7} {}
  Sender me;
  Sender identity() const override { return me; }
  std::optional<ReplicaId> configured_replica(const std::string& node) const override {
    if (node == "replaced") return ReplicaId(99);
    return std::nullopt;
  }
  std::optional<Endpoint> address_of(const std::string&) const override {
    return Endpoint{"node", kPort};
  }
};

inline std::string hello_of(const std::string& node, std::uint8_t lane) {
  wire::Hello hello;
  hello.lane = lane;
  hello.cluster_id = 7;
  hello.replica_id = 2;
  hello.node_id = node;
  return to_text(wire::encode(hello));
}
inline std::string proof_of(wire::ProofRole role, std::string_view caller,
                            std::string_view called) {
  return to_text(wire::encode(wire::prove("", role, as_bytes(caller), as_bytes(called))));
}

}  // namespace narad::peer::fuzzing
