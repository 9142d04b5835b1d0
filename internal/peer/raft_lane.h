#pragma once
// Raft messages between nodes: a bounded queue per peer, sent in batches on the raft lane, and the
// route that takes them. Messages may be lost (queue full, connection lost, time-out), never
// changed; the consensus sends again what matters. One batch per peer is under way at a time, and
// beside it one with snapshot chunks, so that a large chunk on a slow link does not hold up
// heartbeats; a slow or dead peer never slows another. Lives on one loop.
#include <functional>
#include <memory>
#include <string>

#include "internal/peer/peers.h"
#include "pkg/raft/types.h"

namespace narad::peer {

class Server;

struct RaftLaneOptions {
  // Waiting for one peer, each for chunks and for the rest; the oldest are dropped beyond.
  std::size_t queue_messages_max = 4'096;
  std::size_t queue_bytes_max = 32u << 20;
  // For one batch: this, and a second more per 512 KiB. A connection that has died silently is
  // noticed after that long.
  Nanos deadline = std::chrono::seconds(2);
};

struct RaftLaneStats {
  std::uint64_t sent = 0;     // messages whose batch was taken
  std::uint64_t batches = 0;  // that were taken
  std::uint64_t dropped = 0;  // messages: the queue was full
  std::uint64_t lost = 0;     // messages: the call failed
  std::size_t waiting = 0;    // messages in queues now
};

class RaftLane {
 public:
  // `caller` outlives this.
  RaftLane(Env& env, Caller& caller, RaftLaneOptions options = {});
  RaftLane(const RaftLane&) = delete;
  ~RaftLane();  // REQUIRES: stop() has ended, or the node was killed

  // Queues `message` for `node`; never suspends. Snapshot chunks are filled.
  void send(const std::string& node, raft::Message message);
  // Drops what is queued and ends what is under way. Idempotent.
  Task<void> stop();
  RaftLaneStats stats() const;

  // What to do with a message that came: must not suspend, may drop it. Its `from` is the proven
  // replica of the sender.
  using Deliver = std::function<void(raft::Message message, const std::string& from_node)>;
  // Adds POST /peer/v1/raft.
  static void add_route(Server& server, Deliver deliver);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace narad::peer
