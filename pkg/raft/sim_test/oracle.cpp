#include "pkg/raft/sim_test/oracle.h"

#include <algorithm>

#include "pkg/base/checksum.h"
#include "pkg/base/text.h"

namespace narad::raft::simtest {

std::uint64_t digest(const Entry& e) {
  return xxh3(*e.payload, e.index.value() * 1'000'003 + e.term.value() * 31 +
                              static_cast<std::uint64_t>(e.kind));
}

std::uint64_t fold(std::uint64_t state, const Entry& e) {
  return (state ^ digest(e)) * 0x9e3779b97f4a7c15ull + 1;
}

// Election safety, leader completeness, and that nothing committed is ever something else.
Oracle::Finding Oracle::looked_at(const Core& core) {
  const Log& log = core.log();
  if (core.role() == Role::leader) {
    auto [at, first] = leaders_.emplace(core.term(), core.self());
    if (at->second != core.self()) {
      return cat("election safety: term ", core.term(), " has leaders ", at->second, " and ",
                 core.self());
    }
    // Everything committed in an earlier term (5.4.3): held against each leader once.
    Index& checked = complete_.try_emplace(core.term(), log.base()).first->second;
    for (Index i = std::max(checked, log.base()).next(); i <= committed(); i = i.next()) {
      const Committed& c = committed_[i.value() - 1];
      if (c.committed_in > core.term()) break;  // it was deposed before, and does not know
      if (log.term_at(i) != c.term) {
        return cat("leader completeness: leader ", core.self(), " of term ", core.term(),
                   " lacks committed entry ", c.term, "/", i);
      }
      checked = i;
    }
  }
  // What this replica believes committed is so everywhere.
  Index known = std::min(core.commit_index(), committed());
  if (known > log.base() && log.term_at(known) != committed_[known.value() - 1].term) {
    return cat("state machine safety: replica ", core.self(), " believes ", known,
               " committed with another term");
  }
  return std::nullopt;
}

Oracle::Finding Oracle::in_log(const Entry& e, Term previous) {
  auto [at, first] = logged_.try_emplace({e.index, e.term}, Logged{digest(e), previous});
  if (at->second.digest != digest(e)) {
    return cat("log matching: two entries at ", e.term, "/", e.index);
  }
  if (at->second.previous != previous) {
    return cat("log matching: logs agree at ", e.term, "/", e.index, " and differ before it");
  }
  return std::nullopt;
}

Oracle::Finding Oracle::applied(ReplicaId who, Term now, const Entry& e, std::uint64_t state) {
  if (e.index > committed().next()) return cat("replica ", who, " applied ", e.index, " too early");
  if (e.index == committed().next()) {
    committed_.push_back({e.term, now, digest(e), state});
    return std::nullopt;
  }
  const Committed& c = committed_[e.index.value() - 1];
  if (c.digest != digest(e) || c.state != state) {
    return cat("state machine safety: replica ", who, " applied ", e.term, "/", e.index,
               ", others applied ", c.term, "/", e.index);
  }
  return std::nullopt;
}

Oracle::Finding Oracle::installed(ReplicaId who, Index index, std::uint64_t state) const {
  if (index > committed()) return cat("replica ", who, " installed a snapshot of the future");
  if (committed_[index.value() - 1].state != state) {
    return cat("state machine safety: replica ", who, " installed another state at ", index);
  }
  return std::nullopt;
}

Oracle::Finding Oracle::done(const ProposalId& id, std::uint64_t proposed) const {
  if (id.index > committed()) return cat("proposal ", id.index, " answered before it committed");
  if (committed_[id.index.value() - 1].digest != proposed) {
    return cat("proposal ", id.term, "/", id.index, " answered as done, something else was");
  }
  return std::nullopt;
}

}  // namespace narad::raft::simtest
