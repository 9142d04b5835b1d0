#pragma once
// How a replica's messages leave the node. Messages may be lost, doubled, delayed and reordered; a
// damaged one must not arrive (the connection proves who sent it, and what).
#include <string>

#include "pkg/raft/types.h"

namespace narad::raftnode {

class Transport {
 public:
  virtual ~Transport() = default;
  // To the replica of another node. Never suspends and never fails: what cannot be sent is lost.
  // Called on the loop, outside of RaftNode::deliver() of the receiver.
  virtual void send(const std::string& node, raft::Message message) = 0;
};

}  // namespace narad::raftnode
