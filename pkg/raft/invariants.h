#pragma once
// Holds a core against itself and against what it was before: called after each step in tests and
// simulation. It knows one replica only; what must hold between replicas is checked in sim_test.
#include <optional>
#include <string>

#include "pkg/raft/core.h"

namespace narad::raft {

class InvariantChecker {
 public:
  // What is wrong, or nothing. Between two calls the core may have taken any number of inputs, but
  // must be the same life (start afresh after a restart).
  std::optional<std::string> check(const Core& core);

 private:
  std::optional<std::string> check_now(const Core& core) const;
  std::optional<std::string> check_leader(const Core& core) const;
  std::optional<std::string> check_since(const Core& core) const;

  struct Past {
    Term term;
    ReplicaId vote;
    Role role;
    ReplicaId leader;
    Index commit;
    Term commit_term;
    Index handed;
    Index applied;
    Index last;
    Term last_term;
    Index snapshot;
    Index base;
  };
  std::optional<Past> past_;
};

}  // namespace narad::raft
