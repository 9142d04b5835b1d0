#pragma once
// Who talks to whom on the cluster plane. Values and small interfaces.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/raft/configuration.h"

namespace narad::peer {

using raft::ReplicaId;

// Separate connections per pair of nodes, so that control never queues behind data. Values are on
// the wire.
enum class Lane : std::uint8_t { raft = 0, control = 1, data = 2, bulk = 3 };
inline constexpr std::size_t kLanes = 4;
std::string_view to_string(Lane lane);  // "control"

// The other end of a connection: proven by the cluster secret, if there is one.
struct Sender {
  std::string node_id;
  ReplicaId replica;             // 0: has none yet
  std::uint64_t cluster_id = 0;  // 0: has none yet (joining, bootstrapping)
};

// What this node says of itself, and what it knows of others. Read at each new connection, and at
// each call: connections made under another identity are not used again.
class Self {
 public:
  virtual ~Self() = default;
  virtual Sender identity() const = 0;
  // The replica id under which `node` is configured; nothing if it is unknown here. A node that
  // shows another one (its disk was emptied or is of an earlier life) may only use routes that are
  // open to strangers.
  virtual std::optional<ReplicaId> configured_replica(const std::string& node) const = 0;
};

}  // namespace narad::peer
