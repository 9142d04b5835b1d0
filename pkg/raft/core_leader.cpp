// The leader: heartbeats, replication, commit, check-quorum, transfer and reads (Raft
// paper 5.3, 5.4.2; thesis 3.10, 6.2, 6.4).
#include <algorithm>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/raft/core.h"
#include "pkg/raft/quorum.h"

namespace narad::raft {

// ---- time -------------------------------------------------------------------------------------

void Core::tick_leader() {
  if (++election_elapsed_ >= options_.election_ticks) {
    election_elapsed_ = 0;
    check_quorum();
    if (role_ != Role::leader) return;
  }
  if (transfer_ && ++transfer_->elapsed >= options_.election_ticks) transfer_.reset();
  if (++heartbeat_elapsed_ >= options_.heartbeat_ticks) {
    heartbeat_elapsed_ = 0;
    send_heartbeats();
  }
  settle_departures();
  promote_if_ready();
}

// A leader that a majority has not answered for an election time may be alone, and steps down.
void Core::check_quorum() {
  std::size_t heard = 0;
  for (ReplicaId voter : members_.voters()) {
    auto p = progress_.find(voter);
    if (voter == self() || (p != progress_.end() && p->second.active())) ++heard;
  }
  for (auto& [id, p] : progress_) p.clear_active();
  if (heard < majority(members_.voters().size())) become_follower(term_, ReplicaId());
}

void Core::send_heartbeats() {
  for (auto& [id, p] : progress_) {
    Message m;
    m.kind = MessageKind::heartbeat;
    m.to = id;
    m.commit = std::min(p.match(), commit_);
    m.round = reads_.round();
    send(std::move(m));
  }
}

// ---- proposals ----------------------------------------------------------------------------------

Result<> Core::may_propose() const {
  NARAD_TRY(refuse_if_stopped());
  if (role_ != Role::leader) return Error(Errc::not_leader, "this replica does not lead");
  if (transfer_) return Error(Errc::unavailable, "leadership is being handed over; try again");
  return ok();
}

Result<ProposalId> Core::propose(Payload payload) {
  NARAD_TRY(may_propose());
  if (payload->size() > options_.entry_bytes_max) {
    return Error(Errc::too_large, cat("a Raft entry of ", payload->size(), " bytes; at most ",
                                      options_.entry_bytes_max, " are allowed"));
  }
  if (uncommitted_bytes_ > options_.uncommitted_bytes_max) {
    return Error(Errc::busy, "too many proposals wait for a majority; try again later");
  }
  append_own(EntryKind::command, std::move(payload));
  proposals_.push_back({log_.last(), term_});
  return proposals_.back();
}

void Core::append_own(EntryKind kind, Payload payload) {
  NARAD_ASSERT(role_ == Role::leader, "only a leader adds entries");
  Entry e{log_.last().next(), term_, kind, std::move(payload)};
  uncommitted_bytes_ += e.bytes();
  log_.append(std::move(e));
}

// ---- replication --------------------------------------------------------------------------------

bool Core::send_append(ReplicaId to, Progress& p, bool even_empty) {
  const FlowLimits limits{options_.inflight_bytes_max, options_.inflight_messages_max};
  if (!p.may_append(limits)) return false;
  const Index previous = before(p.next());
  std::optional<Term> previous_term = log_.term_at(previous);
  if (!previous_term) {
    start_snapshot(to, p);
    return false;
  }
  Message m;
  m.kind = MessageKind::append;
  m.to = to;
  m.index = previous;
  m.log_term = *previous_term;
  m.commit = commit_;
  m.entries = log_.slice(p.next(), log_.last(), options_.append_bytes_max);
  if (m.entries.empty() && !even_empty && p.commit_sent() >= commit_) return false;
  std::uint64_t bytes = 0;
  for (const Entry& e : m.entries) bytes += e.bytes();
  bool some = !m.entries.empty();
  p.told_commit(commit_);
  p.sent(previous.plus(m.entries.size()), bytes);
  send(std::move(m));
  return some;
}

void Core::send_all_appends(bool even_empty) {
  for (auto& [id, p] : progress_) {
    bool first = even_empty;
    while (send_append(id, p, first)) first = false;
  }
}

void Core::on_append_reply(const Message& m) {
  auto found = progress_.find(m.from);
  if (role_ != Role::leader || found == progress_.end()) return;
  Progress& p = found->second;
  p.mark_active();
  if (m.reject) {
    Index retry = log_.last_at_or_below(m.hint, m.hint_term);
    if (p.refused(m.index, retry)) send_append(m.from, p, true);
    return;
  }
  if (m.index > log_.last()) return;  // nothing this leader has sent
  bool news = p.matched(m.index);
  if (p.state() == Progress::State::snapshot && p.match() >= log_.base()) {
    bool served = p.match() >= p.snapshot()->index || news;
    if (served) p.leave_snapshot();
  }
  if (news) advance_commit();
  if (role_ != Role::leader) return;
  while (send_append(m.from, p, p.state() == Progress::State::probe)) {
  }
  continue_transfer(m.from, p);
}

void Core::on_heartbeat_reply(const Message& m) {
  auto found = progress_.find(m.from);
  if (role_ != Role::leader || found == progress_.end()) return;
  Progress& p = found->second;
  p.mark_active();
  p.confirm_round(std::min(m.round, reads_.round()));
  answer_reads();
  if (p.heard(m.index)) {
    if (p.state() == Progress::State::snapshot) {
      send_chunk(m.from, p);
    } else {
      send_append(m.from, p, true);
    }
  }
  continue_transfer(m.from, p);
}

// Entries of earlier terms are never committed by counting, only by one of this term after them.
void Core::advance_commit() {
  auto reached = [this](ReplicaId voter) {
    if (voter == self()) return log_.stable().value();
    auto p = progress_.find(voter);
    return p == progress_.end() ? 0 : p->second.match().value();
  };
  std::optional<std::uint64_t> held = agreed(members_.voters(), reached);
  if (!held) return;
  const Index index(*held);
  if (index <= commit_) return;
  if (log_.term_at(index) != term_) return;
  for (Index i = commit_.next(); i <= index; i = i.next()) {
    uncommitted_bytes_ -= std::min(uncommitted_bytes_, log_.at(i).bytes());
  }
  commit_to(index);
  leave_if_removed();
}

// ---- transfer of leadership
// -----------------------------------------------------------------------

Result<> Core::transfer_leadership(ReplicaId target) {
  NARAD_TRY(refuse_if_stopped());
  if (role_ != Role::leader) return Error(Errc::not_leader, "this replica does not lead");
  if (target == self()) return Error(Errc::invalid_argument, "this replica leads already");
  auto p = progress_.find(target);
  if (!members_.current().is_voter(target) || p == progress_.end()) {
    return Error(Errc::not_found, cat("replica ", target, " is no voter"));
  }
  if (transfer_) {
    return Error(Errc::unavailable,
                 cat("leadership is being handed to replica ", transfer_->target, " already"));
  }
  transfer_ = Transfer{target};
  continue_transfer(target, p->second);
  return ok();
}

// Once the target holds the whole log it is told to stand at once; told again if that was lost.
void Core::continue_transfer(ReplicaId target, const Progress& p) {
  if (!transfer_ || transfer_->target != target || p.match() != log_.last()) return;
  Message m;
  m.kind = MessageKind::timeout_now;
  m.to = target;
  send(std::move(m));
}

// ---- reads
// ----------------------------------------------------------------------------------------

bool Core::leads_own_term() const { return role_ == Role::leader && commit_ >= term_start_; }

Result<> Core::read_index(std::uint64_t context) {
  NARAD_TRY(refuse_if_stopped());
  if (role_ == Role::leader) {
    if (reads_.full()) return Error(Errc::busy, "too many reads wait for the leader");
    reads_.add({self(), context});
    return ok();
  }
  if (leader_ == ReplicaId()) return Error(Errc::unavailable, "no leader is known; try again");
  Message m;
  m.kind = MessageKind::read_request;
  m.to = leader_;
  m.context = context;
  send(std::move(m));
  return ok();
}

// Until an entry of its own term is committed a leader may not know all that is: questions wait.
void Core::start_reads() {
  if (!reads_.has_unasked() || !leads_own_term()) return;
  reads_.begin_round(commit_);
  send_heartbeats();
  answer_reads();
}

void Core::answer_reads() {
  auto reached = [this](ReplicaId voter) {
    if (voter == self()) return reads_.round();
    auto p = progress_.find(voter);
    return p == progress_.end() ? 0 : p->second.round();
  };
  std::optional<std::uint64_t> confirmed = agreed(members_.voters(), reached);
  if (!confirmed) return;
  for (const Reads::Answer& a : reads_.confirm(*confirmed)) answer_read(a.read, a.index);
}

void Core::answer_read(const Read& read, std::optional<Index> index) {
  if (read.from == self()) {
    ready_.reads.push_back({read.context, index});
    return;
  }
  Message m;
  m.kind = MessageKind::read_reply;
  m.to = read.from;
  m.context = read.context;
  m.reject = !index;
  m.index = index.value_or(Index());
  send(std::move(m));
}

void Core::on_read_request(const Message& m) {
  if (role_ == Role::leader && !reads_.full()) {
    reads_.add({m.from, m.context});
  } else {
    answer_read({m.from, m.context}, std::nullopt);
  }
}

void Core::on_read_reply(const Message& m) {
  ready_.reads.push_back({m.context, m.reject ? std::nullopt : std::optional<Index>(m.index)});
}

}  // namespace narad::raft
