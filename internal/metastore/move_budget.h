#pragma once
// What the throttle of moves leaves for one of them. It is one budget per node and direction
// (moves.md, "Throttle"): a node receives no more than that in all, and sends no more than that in
// all. Those who receive hold themselves to both, since every node knows who moves what to whom:
// of what a node may send, each node that it sends to takes an even share. Pure.
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "internal/metastore/state.h"

namespace narad::metastore {

// To how many other nodes each node has partitions to send. Moves that wait count too: a pause
// must not make the others' shares jump, and who is waited for may come back any moment.
class Receivers {
 public:
  void see(const Assignment& assignment);
  // At least 1.
  std::size_t of(const std::string& source) const;

 private:
  std::map<std::string, std::set<std::string>> by_source_;
};
Receivers receivers_of(const State& state);

// Bytes per second that one of `receivers` nodes may take from a node. `budget` 0: no limit, and so
// is the answer; else it is at least 1.
std::uint64_t sending_share(std::uint64_t budget, std::size_t receivers);

// What the move is held to by the throttle and by a rate of its own, as far as the metadata says;
// 0: nothing.
std::uint64_t budget_of(const State& state, const Receivers& receivers, const Assignment& move);

}  // namespace narad::metastore
