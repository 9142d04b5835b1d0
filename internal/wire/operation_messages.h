#pragma once
// What nodes ask the leader's node about moves and departures, because only it knows: how long it
// has not heard of whom, and what each member said of its drain; what a pass over the moves did;
// and what each node keeps in quarantine. JSON bodies of the peer routes listed in
// docs/internals/peer-protocol.md. Pure.
//
// Decoding is bounded before anything is kept, overlooks fields it does not know (a newer release
// may say more) and answers invalid_argument, naming the field, for everything else. Golden file:
// testdata/wire/operation_messages.ndjson.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "internal/model/operations.h"
#include "internal/wire/member_messages.h"
#include "pkg/base/result.h"

namespace narad::wire {

inline constexpr std::size_t kOperationMessageBytesMax = 4 << 20;

struct MemberFacts {
  std::string id;
  std::uint64_t silent_ms = 0;       // on the leader's clock, since its election at the earliest
  std::optional<DrainStatus> drain;  // nothing: it said nothing in this term
  friend bool operator==(const MemberFacts&, const MemberFacts&) = default;
};

struct LeaderFacts {
  std::string leader;
  std::uint64_t term = 0;
  std::vector<MemberFacts> members;

  const MemberFacts* find(std::string_view id) const;
  friend bool operator==(const LeaderFacts&, const LeaderFacts&) = default;
};

// What one node keeps aside, by path, at most kSetAsideMax of it.
inline constexpr std::size_t kSetAsideMax = 2000;
struct SetAsideCopies {
  std::vector<SetAsideCopy> copies;
  std::uint64_t left_out = 0;
  friend bool operator==(const SetAsideCopies&, const SetAsideCopies&) = default;
};

std::string encode(const LeaderFacts& m);
std::string encode(const RebalanceOutcome& m);
std::string encode(const SetAsideCopies& m);

Result<LeaderFacts> decode_leader_facts(std::string_view body);
Result<RebalanceOutcome> decode_rebalance_outcome(std::string_view body);
Result<SetAsideCopies> decode_set_aside_copies(std::string_view body);

}  // namespace narad::wire
