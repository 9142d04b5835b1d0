#pragma once
// The configurations along a replica's log. A configuration is in force from the moment its entry
// is in the log, committed or not (Raft thesis 4.1), and falls with it when the log is truncated.
#include <vector>

#include "pkg/raft/configuration.h"
#include "pkg/raft/types.h"

namespace narad::raft {

class Membership {
 public:
  Membership(Index index, Configuration c) { reset(index, std::move(c)); }

  const Configuration& current() const { return history_.back().configuration; }
  const std::vector<ReplicaId>& voters() const { return voters_; }
  // Where the current one stands in the log; it is settled once committed.
  Index current_index() const { return history_.back().index; }
  // The one in force at `index`. REQUIRES: not forgotten.
  const Configuration& at(Index index) const;

  // REQUIRES: index above current_index().
  void append(Index index, Configuration c);
  // True if the configuration in force changed.
  bool truncate_from(Index index);
  // Keeps what is needed for at(i), i >= index.
  void forget_below(Index index);
  void reset(Index index, Configuration c);

  Standing standing_of(ReplicaId self, std::string_view node) const;

 private:
  void refresh();
  struct Step {
    Index index;
    Configuration configuration;
  };
  std::vector<Step> history_;  // never empty, ascending
  std::vector<ReplicaId> voters_;
};

}  // namespace narad::raft
