#pragma once
// What moves ask of other nodes. Declared by their user; internal/node binds them to the cluster
// plane (and to this node's own source, where the other node is this one). All on the node's loop.
//
// Errors of every call: unreachable (no whole answer in time: whether it acted is unknown), else
// what the other node answered: conflict (409: the freeze or the move named is not in force there),
// not_owner, not_found (a segment that is gone; no such partition), gone (another incarnation),
// unavailable (try again), invalid_argument.
#include <string>

#include "internal/wire/move_messages.h"
#include "pkg/async/task.h"
#include "pkg/base/result.h"

namespace narad::moves {

inline constexpr Nanos kListingDeadline = std::chrono::seconds(10);
inline constexpr Nanos kChunkDeadline = std::chrono::seconds(30);
inline constexpr Nanos kFreezeDeadline = std::chrono::seconds(20);  // leases, lock wait, and 10 s

// The owner of a partition, as the destination (and a sweep) sees it. `node` is resolved per call.
class SourceCalls {
 public:
  virtual ~SourceCalls() = default;
  // move_id 0: what the owner has, outside of any move (the sweep's question).
  virtual Task<Result<wire::Listing>> listing(std::string node, wire::MoveRef move) = 0;
  // At most `length` committed bytes from `from`; fewer at the end of what is committed.
  virtual Task<Result<std::string>> chunk(std::string node, wire::MoveRef move, Offset base,
                                          std::uint64_t from, std::uint64_t length) = 0;
  virtual Task<Result<wire::SegmentDigests>> digests(std::string node, wire::MoveRef move,
                                                     Offset base) = 0;
  virtual Task<Result<wire::FreezeAnswer>> freeze(std::string node,
                                                  wire::FreezeRequest request) = 0;
};

// The leader, for what only it knows. Proposals and leader reads go through metastore::Proposer
// (a barrier is a leader read on any node).
class LeaderCalls {
 public:
  virtual ~LeaderCalls() = default;
  // How long the leader has not heard of `node`.
  virtual Task<Result<Nanos>> silence(std::string node) = 0;
};

}  // namespace narad::moves
