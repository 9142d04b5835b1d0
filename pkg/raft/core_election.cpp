// Elections: pre-vote, votes, terms, and becoming leader or follower (Raft paper 5.2, 5.4.1; thesis
// 4.2.3 and 9.6).
#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/raft/core.h"
#include "pkg/raft/quorum.h"

namespace narad::raft {

void Core::reset_election_timer() {
  election_elapsed_ = 0;
  std::uint64_t ticks = static_cast<std::uint64_t>(options_.election_ticks);
  election_timeout_ = static_cast<int>(ticks + draw() % ticks);
}

// Within the shortest election time of a sign of the leader, no one may be voted for: a replica
// that was cut off, or was removed, disturbs nobody.
bool Core::hears_leader() const {
  return leader_ != ReplicaId() && election_elapsed_ < options_.election_ticks;
}

// A replica that an uncommitted entry takes out of the voters may be the only one that can still be
// elected and commit that entry (thesis 4.2.2).
bool Core::may_campaign() const {
  bool leaving = members_.current_index() > commit_ && members_.at(commit_).is_voter(self());
  return (is_voter() || leaving) && !installing();
}

// Asks whether an election could be won, without disturbing anyone by a new term.
void Core::pre_campaign() {
  NARAD_ASSERT(role_ != Role::leader, "a leader does not campaign");
  role_ = Role::pre_candidate;
  leader_ = ReplicaId();
  votes_.clear();
  votes_[self()] = true;
  ask_votes(MessageKind::pre_vote, term_.next(), false);
  count_votes();
}

void Core::campaign(bool transfer) {
  NARAD_ASSERT(role_ != Role::leader, "a leader does not campaign");
  role_ = Role::candidate;
  leader_ = ReplicaId();
  term_ = term_.next();
  vote_ = self();
  votes_.clear();
  reset_election_timer();
  ask_votes(MessageKind::vote, term_, transfer);
}

void Core::ask_votes(MessageKind kind, Term term, bool force) {
  for (ReplicaId voter : members_.voters()) {
    if (voter == self()) continue;
    Message m;
    m.kind = kind;
    m.to = voter;
    m.term = term;
    m.index = log_.last();
    m.log_term = log_.last_term();
    m.force = force;
    send(std::move(m));
  }
}

void Core::count_votes() {
  switch (tally(members_.voters(), votes_)) {
    case Tally::open:
      return;
    case Tally::lost:
      become_follower(term_, ReplicaId());
      return;
    case Tally::won:
      break;
  }
  if (role_ == Role::pre_candidate) {
    campaign(false);
  } else if (votes_.count(self()) != 0) {  // else once its own vote is durable
    become_leader();
  }
}

void Core::become_follower(Term term, ReplicaId leader) {
  NARAD_ASSERT(term >= term_, "terms never fall");
  if (term > term_) {
    term_ = term;
    vote_ = ReplicaId();
  }
  bool led = role_ == Role::leader;
  role_ = Role::follower;
  leader_ = leader;
  votes_.clear();
  reset_election_timer();
  if (!led) return;
  progress_.clear();
  transfer_.reset();
  for (const Read& read : reads_.drop()) answer_read(read, std::nullopt);
  // They may yet commit, or not: whoever waits must look.
  while (!proposals_.empty() && proposals_.back().index > commit_) {
    ready_.unknown.insert(ready_.unknown.begin(), proposals_.back());
    proposals_.pop_back();
  }
}

void Core::become_leader() {
  NARAD_ASSERT(role_ == Role::candidate, "a leader was elected");
  NARAD_ASSERT(persisted_term_ == term_ && persisted_vote_ == self(), "its vote is durable");
  role_ = Role::leader;
  leader_ = self();
  votes_.clear();
  election_elapsed_ = 0;
  heartbeat_elapsed_ = 0;
  progress_.clear();
  transfer_.reset();
  incoming_.reset();
  for (const Member& m : members_.current().members()) {
    if (m.replica == self()) continue;
    Progress& p = progress_.emplace(m.replica, Progress(log_.last().next())).first->second;
    p.mark_active();  // until the first check
  }
  uncommitted_bytes_ = 0;
  for (Index i = commit_.next(); i <= log_.last(); i = i.next()) {
    uncommitted_bytes_ += log_.at(i).bytes();
  }
  term_start_ = log_.last().next();
  append_own(EntryKind::noop, payload_of(""));
  send_all_appends(true);
}

void Core::on_vote_request(const Message& m) {
  bool pre = m.kind == MessageKind::pre_vote;
  Message reply = reply_to(m, pre ? MessageKind::pre_vote_reply : MessageKind::vote_reply);
  bool may = pre ? m.term > term_ : vote_ == ReplicaId() || vote_ == m.from;
  bool grant = may && log_.is_up_to_date(m.index, m.log_term);
  reply.reject = !grant;
  reply.term = pre && grant ? m.term : term_;
  if (grant && !pre) {
    vote_ = m.from;
    reset_election_timer();
  }
  send(std::move(reply));
}

void Core::on_vote_reply(const Message& m) {
  bool pre = m.kind == MessageKind::pre_vote_reply;
  if (role_ != (pre ? Role::pre_candidate : Role::candidate)) return;
  if (!m.reject && m.term != (pre ? term_.next() : term_)) return;
  votes_.emplace(m.from, !m.reject);
  count_votes();
}

void Core::on_timeout_now(const Message& m) {
  if (m.from != leader_ || role_ == Role::leader || !may_campaign()) return;
  campaign(true);
}

// Brings this replica to the message's term, or answers a message of an older one. False: done with
// it.
bool Core::settle_term(const Message& m) {
  bool request = m.kind == MessageKind::vote || m.kind == MessageKind::pre_vote;
  if (request && !m.force && m.term > term_ && hears_leader()) return false;
  if (m.term > term_) {
    bool pre_grant = m.kind == MessageKind::pre_vote_reply && !m.reject;
    if (m.kind == MessageKind::pre_vote || pre_grant) return true;
    bool from_leader = m.kind == MessageKind::append || m.kind == MessageKind::heartbeat ||
                       m.kind == MessageKind::snapshot_chunk;
    become_follower(m.term, from_leader ? m.from : ReplicaId());
    return true;
  }
  if (m.term < term_) {
    answer_old_term(m);
    return false;
  }
  bool from_leader = m.kind == MessageKind::append || m.kind == MessageKind::heartbeat ||
                     m.kind == MessageKind::snapshot_chunk;
  if (!from_leader) return true;
  if (leader_ != ReplicaId() && leader_ != m.from) {
    stop(cat("replicas ", leader_, " and ", m.from, " both lead term ", term_,
             "; some disk has lost a vote. Nothing was changed"));
    return false;
  }
  if (role_ != Role::follower || leader_ != m.from) become_follower(term_, m.from);
  election_elapsed_ = 0;
  return true;
}

// The sender learns the term: a deposed leader steps down, a candidate catches up.
void Core::answer_old_term(const Message& m) {
  MessageKind kind;
  switch (m.kind) {
    case MessageKind::append:
    case MessageKind::heartbeat:
    case MessageKind::snapshot_chunk:
      kind = MessageKind::append_reply;
      break;
    case MessageKind::pre_vote:
      kind = MessageKind::pre_vote_reply;
      break;
    case MessageKind::vote:
      kind = MessageKind::vote_reply;
      break;
    default:
      return;
  }
  Message reply = reply_to(m, kind);
  reply.reject = true;
  send(std::move(reply));
}

}  // namespace narad::raft
