#pragma once
// Questions for a read index at the leader: each waits for a round of heartbeats begun after it
// came, and is answered with the commit index of that beginning once a majority has answered the
// round. One round serves all that wait (Raft thesis 6.4; no leader lease is relied on).
#include <cstdint>
#include <deque>
#include <vector>

#include "pkg/raft/types.h"

namespace narad::raft {

struct Read {
  ReplicaId from;  // who asked
  std::uint64_t context = 0;
};

inline constexpr std::size_t kReadsMax = 100'000;

class Reads {
 public:
  std::uint64_t round() const { return round_; }
  bool empty() const { return waiting_.empty() && asked_.empty(); }
  bool full() const { return waiting_.size() + asked_.size() >= kReadsMax; }
  bool has_unasked() const { return !waiting_.empty(); }

  void add(Read read) { waiting_.push_back(read); }
  // Begins a round for all that wait, at this commit index; answers its number.
  std::uint64_t begin_round(Index commit);

  struct Answer {
    Read read;
    Index index;
  };
  // A majority has answered round `confirmed` or a later one.
  std::vector<Answer> confirm(std::uint64_t confirmed);
  // Leadership is gone: all questions that are open.
  std::vector<Read> drop();

 private:
  struct Asked {
    std::uint64_t round;
    Index index;
    Read read;
  };
  std::deque<Read> waiting_;
  std::deque<Asked> asked_;
  std::uint64_t round_ = 0;
};

}  // namespace narad::raft
