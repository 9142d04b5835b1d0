#pragma once
// What must hold between replicas, remembered across their crashes. Every call ends in a finding,
// or in nothing; work per call is proportional to what is new.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pkg/raft/core.h"

namespace narad::raft::simtest {

// The state machine: a number folded over all entries applied.
std::uint64_t fold(std::uint64_t state, const Entry& e);
std::uint64_t digest(const Entry& e);

class Oracle {
 public:
  using Finding = std::optional<std::string>;

  // A core was looked at after a step.
  Finding looked_at(const Core& core);
  // A replica's log holds this entry, stored or not. Checks log matching: (index, term) determines
  // the entry and the term before it.
  Finding in_log(const Entry& e, Term previous);
  // A replica, itself in term `now`, applied `e`; its state is now `state`.
  Finding applied(ReplicaId who, Term now, const Entry& e, std::uint64_t state);
  // A replica took over a snapshot.
  Finding installed(ReplicaId who, Index index, std::uint64_t state) const;
  // A proposal was answered as done.
  Finding done(const ProposalId& id, std::uint64_t digest_proposed) const;

  // The highest index known committed anywhere.
  Index committed() const { return Index(committed_.size()); }
  std::uint64_t leaders() const { return leaders_.size(); }

 private:
  struct Committed {
    Term term;
    Term committed_in;  // at the latest: the term of who applied it first
    std::uint64_t digest;
    std::uint64_t state;
  };
  std::vector<Committed> committed_;  // [index - 1]
  std::map<Term, ReplicaId> leaders_;
  struct Logged {
    std::uint64_t digest;
    Term previous;
  };
  std::map<std::pair<Index, Term>, Logged> logged_;
  // Per leader: how far its log was held against what is committed.
  std::map<Term, Index> complete_;
};

}  // namespace narad::raft::simtest
