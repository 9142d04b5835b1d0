#include "pkg/raft/invariants.h"

#include "pkg/base/text.h"

namespace narad::raft {

namespace {
using Finding = std::optional<std::string>;
}  // namespace

Finding InvariantChecker::check(const Core& core) {
  if (Finding f = check_now(core)) return f;
  if (Finding f = check_leader(core)) return f;
  if (Finding f = check_since(core)) return f;
  const Log& log = core.log();
  past_ = Past{core.term(),         core.vote(),           core.role(),
               core.leader(),       core.commit_index(),   log.term_at(core.commit_index()).value(),
               core.handed_index(), core.applied_index(),  log.last(),
               log.last_term(),     core.snapshot().index, log.base()};
  return std::nullopt;
}

Finding InvariantChecker::check_now(const Core& core) const {
  const Log& log = core.log();
  if (core.commit_index() > log.last()) return "committed beyond the log";
  if (core.commit_index() < core.snapshot().index)
    return "the snapshot holds what is not committed";
  if (log.base() > core.snapshot().index) return "entries are gone that no snapshot holds";
  if (log.stable() > log.last()) return "stable beyond the log";
  if (core.handed_index() > core.commit_index()) return "handed out what is not committed";
  if (core.handed_index() > log.stable()) return "handed out what is not durable";
  if (core.applied_index() > core.handed_index()) return "applied what was not handed out";
  if (log.last_term() > core.term()) return "the log is of a later term";
  if (core.role() == Role::leader && core.leader() != core.self()) return "leads, knows it not";
  if (core.role() != Role::leader && core.leader() == core.self()) return "follows itself";
  bool stands = core.role() == Role::leader || core.role() == Role::candidate;
  if (stands && core.vote() != core.self()) return "stands without its own vote";
  if (core.membership().current_index() > log.last()) return "a configuration beyond the log";
  return std::nullopt;
}

Finding InvariantChecker::check_leader(const Core& core) const {
  if (core.role() != Role::leader) {
    return core.progress().empty() ? Finding() : "follows others without leading";
  }
  const Log& log = core.log();
  if (log.last_term() != core.term()) return "a leader whose log does not end in its term";
  for (const Member& m : core.membership().current().members()) {
    if (m.replica != core.self() && core.progress().count(m.replica) == 0) {
      return cat("the leader forgot member ", m.replica);
    }
  }
  for (const auto& [id, p] : core.progress()) {
    if (p.match() > log.last()) return cat("replica ", id, " matches beyond the log");
    if (p.next() <= p.match()) return cat("replica ", id, " would be sent what it has");
    if (p.next() > log.last().next()) return cat("replica ", id, " is beyond the log");
    bool streams = p.state() == Progress::State::snapshot;
    if (streams != (p.snapshot() != nullptr)) return cat("replica ", id, " streams nothing");
    if (streams && p.snapshot()->index < log.base() && p.match() < log.base()) {
      return cat("replica ", id, " gets a snapshot that the log cannot follow");
    }
  }
  return std::nullopt;
}

Finding InvariantChecker::check_since(const Core& core) const {
  if (!past_) return std::nullopt;
  const Past& was = *past_;
  const Log& log = core.log();
  if (core.term() < was.term) return "the term fell";
  bool same_term = core.term() == was.term;
  if (same_term && was.vote != ReplicaId() && core.vote() != was.vote) return "changed its vote";
  if (same_term && was.leader != ReplicaId() && core.leader() != ReplicaId() &&
      core.leader() != was.leader) {
    return "two leaders in a term";
  }
  if (core.commit_index() < was.commit) return "the commit index fell";
  if (core.handed_index() < was.handed) return "the handed index fell";
  if (core.applied_index() < was.applied) return "the applied index fell";
  if (core.snapshot().index < was.snapshot) return "the snapshot fell";
  if (log.base() < was.base) return "the base of the log fell";
  if (std::optional<Term> t = log.term_at(was.commit); t && *t != was.commit_term) {
    return "a committed entry was replaced";
  }
  bool led = was.role == Role::leader && core.role() == Role::leader && same_term;
  if (led &&
      (log.last() < was.last || log.term_at(was.last).value_or(was.last_term) != was.last_term)) {
    return "a leader changed its own log";
  }
  return std::nullopt;
}

}  // namespace narad::raft
