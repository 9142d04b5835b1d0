#pragma once
// The owner's side of moves on this node, asked as that of any other. Lives on the node's loop.
#include <string>

#include "internal/moves/calls.h"
#include "internal/moves/source.h"

namespace narad::node {

// Whatever `node` says: it is this one.
class OwnSource final : public moves::SourceCalls {
 public:
  // `source` outlives this.
  explicit OwnSource(moves::Source& source) : source_(source) {}
  Task<Result<wire::Listing>> listing(std::string node, wire::MoveRef move) override;
  Task<Result<std::string>> chunk(std::string node, wire::MoveRef move, Offset base,
                                  std::uint64_t from, std::uint64_t length) override;
  Task<Result<wire::SegmentDigests>> digests(std::string node, wire::MoveRef move,
                                             Offset base) override;
  Task<Result<wire::FreezeAnswer>> freeze(std::string node, wire::FreezeRequest request) override;

 private:
  moves::Source& source_;
};

}  // namespace narad::node
