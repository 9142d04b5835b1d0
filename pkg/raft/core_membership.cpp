// Changes of membership: one replica at a time (Raft thesis 4), learners, removal of the leader
// itself.
#include <algorithm>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/raft/core.h"

namespace narad::raft {

Result<ProposalId> Core::propose_change(const ConfigurationChange& change) {
  NARAD_TRY(may_propose());
  // Two changes on the way could give two majorities that do not meet; so could one that begins
  // before this leader knows which of an earlier leader's changes is committed.
  if (!leads_own_term()) {
    return Error(Errc::unavailable, "nothing of this term is committed yet; try again");
  }
  if (members_.current_index() > commit_) {
    return Error(Errc::unavailable, "another change of membership is not committed yet; try again");
  }
  NARAD_TRY(Configuration next, apply(members_.current(), change));
  if (change.kind == ConfigurationChange::Kind::promote && !is_ready(change.replica)) {
    return Error(Errc::unavailable,
                 cat("replica ", change.replica, " has not caught up; try again"));
  }
  append_own(EntryKind::configuration, std::make_shared<const Bytes>(next.encode()));
  members_.append(log_.last(), std::move(next));
  adopt_configuration();
  proposals_.push_back({log_.last(), term_});
  return proposals_.back();
}

// The leader follows whoever is a member now, and for a while whoever was until now.
void Core::adopt_configuration() {
  for (const Member& m : members_.current().members()) {
    if (m.replica == self()) continue;
    auto [p, added] = progress_.emplace(m.replica, Progress(log_.last()));
    p->second.departing_ticks = -1;
    if (added) p->second.mark_active();  // until the first check
  }
  for (auto& [id, p] : progress_) {
    if (members_.current().find(id) == nullptr && p.departing_ticks < 0) {
      p.departing_ticks = 2 * options_.election_ticks;
    }
  }
  if (transfer_ && !members_.current().is_voter(transfer_->target)) transfer_.reset();
}

void Core::settle_departures() {
  for (auto p = progress_.begin(); p != progress_.end();) {
    bool gone = p->second.departing_ticks == 0;
    if (p->second.departing_ticks > 0) --p->second.departing_ticks;
    p = gone ? progress_.erase(p) : std::next(p);
  }
}

// Answers, and holds nearly all that is committed: as a voter it would not hold the others up.
bool Core::is_ready(ReplicaId learner) const {
  auto p = progress_.find(learner);
  return p != progress_.end() && p->second.active() &&
         p->second.state() == Progress::State::replicate &&
         p->second.match().value() + options_.caught_up_entries >= commit_.value();
}

void Core::promote_if_ready() {
  bool may = options_.promote_learners && leads_own_term() && !transfer_ &&
             members_.current_index() <= commit_;
  if (!may) return;
  std::vector<ReplicaId> ready;
  for (const Member& m : members_.current().members()) {
    if (m.role == MemberRole::learner && is_ready(m.replica)) ready.push_back(m.replica);
  }
  ReplicaId next = next_promotion(members_.current(), ready, options_.voters_max);
  if (next == ReplicaId()) return;
  Result<ProposalId> begun = propose_change({ConfigurationChange::Kind::promote, next, ""});
  NARAD_ASSERT(begun.has_value(), "a ready learner can be promoted");
  proposals_.pop_back();  // nobody waits for it
}

// A leader outside of the voters leads until that is committed, counting only the others, then goes
// and lets the best of them stand at once.
void Core::leave_if_removed() {
  if (is_voter() || members_.current_index() > commit_) return;
  send_all_appends(true);  // the others learn that it is committed
  ReplicaId heir;
  Index best;
  for (ReplicaId voter : members_.voters()) {
    auto p = progress_.find(voter);
    if (p == progress_.end() || p->second.match() < best) continue;
    best = p->second.match();
    heir = voter;
  }
  if (heir != ReplicaId()) {
    Message m;
    m.kind = MessageKind::timeout_now;
    m.to = heir;
    send(std::move(m));
  }
  become_follower(term_, ReplicaId());
}

}  // namespace narad::raft
