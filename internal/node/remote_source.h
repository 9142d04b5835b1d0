#pragma once
// Asks the owner of a partition, and the leader, on behalf of moves: encodes, calls, decodes, and
// turns what the plane says into errors. What concerns this node itself is asked without the
// network. The other end is move_routes.h. Lives on the node's loop.
//
// Errors: `unreachable` if the node did not answer whole in time (whether it acted is unknown);
// `internal` if what it answered makes no sense; otherwise as moves/calls.h lists them.
#include <functional>
#include <string>

#include "internal/moves/calls.h"
#include "internal/peer/peers.h"
#include "internal/wire/operation_messages.h"

namespace narad::node {

class RemoteSource final : public moves::SourceCalls {
 public:
  // `self` is asked through `own`. Both references outlive this.
  RemoteSource(peer::Caller& caller, std::string self, moves::SourceCalls& own)
      : caller_(caller), self_(std::move(self)), own_(own) {}
  Task<Result<wire::Listing>> listing(std::string node, wire::MoveRef move) override;
  Task<Result<std::string>> chunk(std::string node, wire::MoveRef move, Offset base,
                                  std::uint64_t from, std::uint64_t length) override;
  Task<Result<wire::SegmentDigests>> digests(std::string node, wire::MoveRef move,
                                             Offset base) override;
  Task<Result<wire::FreezeAnswer>> freeze(std::string node, wire::FreezeRequest request) override;

 private:
  peer::Caller& caller_;
  const std::string self_;
  moves::SourceCalls& own_;
};

// How long the leader has not heard of a node, whoever leads.
class RemoteLeader final : public moves::LeaderCalls {
 public:
  using Silence = std::function<Task<Result<wire::SilenceAnswer>>(std::string node)>;
  // `leader`: the node that leads as far as this one knows, or empty. `own`: this node as the
  // leader. `caller` outlives this.
  RemoteLeader(peer::Caller& caller, std::string self, std::function<std::string()> leader,
               Silence own)
      : caller_(caller), self_(std::move(self)), leader_(std::move(leader)), own_(std::move(own)) {}
  // unavailable while no leader is known.
  Task<Result<Nanos>> silence(std::string node) override;

 private:
  Task<Result<wire::SilenceAnswer>> ask(std::string leader, std::string node);

  peer::Caller& caller_;
  const std::string self_;
  const std::function<std::string()> leader_;
  const Silence own_;
};

// What `node` lists of a partition that it owns (move_id 0: outside of any move).
Task<Result<wire::Listing>> ask_for_listing(peer::Caller& caller, std::string node,
                                            wire::MoveRef move,
                                            Nanos deadline = moves::kListingDeadline);

// The moves that `node` works on.
Task<Result<wire::MoveReports>> ask_for_moves(peer::Caller& caller, std::string node,
                                              Nanos deadline = std::chrono::seconds(5));

// What `node` keeps in quarantine.
Task<Result<wire::SetAsideCopies>> ask_for_quarantine(peer::Caller& caller, std::string node,
                                                      Nanos deadline);

}  // namespace narad::node
