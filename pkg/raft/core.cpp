#include "pkg/raft/core.h"

#include <algorithm>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::raft {

// ---- start ------------------------------------------------------------------------------------

Result<> Core::check_options(const Options& o) {
  auto bad = [](std::string_view what) {
    return Error(Errc::invalid_argument, cat("Raft options: ", what));
  };
  if (o.self == ReplicaId()) return bad("replica id 0");
  if (o.node.empty() || o.node.size() > kNodeNameBytesMax) return bad("no usable node id");
  if (o.heartbeat_ticks < 1) return bad("heartbeats every 0 ticks");
  if (o.election_ticks < 5 * o.heartbeat_ticks) {
    return bad("the election time must be at least five heartbeats");
  }
  if (o.append_bytes_max == 0 || o.inflight_bytes_max == 0 || o.inflight_messages_max == 0 ||
      o.apply_bytes_max == 0 || o.chunk_bytes == 0 || o.entry_bytes_max == 0) {
    return bad("a limit of 0 lets nothing through");
  }
  return ok();
}

Result<Membership> Core::check_start(const StartState& s) {
  auto bad = [](std::string_view what) {
    return Error(Errc::data_loss, cat("the stored Raft state contradicts itself: ", what));
  };
  if (s.log_base > s.snapshot.index) return bad("the log begins after the snapshot");
  Index last = s.log_base.plus(s.entries.size());
  if (last < s.snapshot.index) return bad("the log ends before the snapshot");
  Membership members(s.snapshot.index, s.snapshot.configuration);
  Index expected = s.log_base;
  Term term = s.log_base_term;
  for (const Entry& e : s.entries) {
    expected = expected.next();
    if (e.index != expected) return bad(cat("entry ", e.index, " where ", expected, " belongs"));
    if (e.term < term) return bad(cat("the term falls at entry ", e.index));
    if (!e.payload) return bad(cat("entry ", e.index, " has no payload"));
    term = e.term;
    if (e.index == s.snapshot.index && e.term != s.snapshot.term) {
      return bad("snapshot and log disagree on a term");
    }
    if (e.kind != EntryKind::configuration || e.index <= s.snapshot.index) continue;
    NARAD_TRY(Configuration c, Configuration::decode(*e.payload));
    members.append(e.index, std::move(c));
  }
  if (s.log_base == s.snapshot.index && s.log_base_term != s.snapshot.term) {
    return bad("snapshot and log disagree on a term");
  }
  if (term > s.hard_state.term) return bad("an entry is of a later term than the stored one");
  if (s.applied < s.snapshot.index) return bad("less is applied than the snapshot holds");
  if (s.applied > last) return bad(cat("entry ", s.applied, " is applied, the log ends at ", last));
  if (s.hard_state.commit > last) {
    return bad(cat("entry ", s.hard_state.commit, " is committed, the log ends at ", last));
  }
  return members;
}

Result<std::unique_ptr<Core>> Core::create(Options options, StartState start) {
  NARAD_TRY(check_options(options));
  NARAD_TRY(Membership members, check_start(start));
  return std::unique_ptr<Core>(new Core(std::move(options), start, std::move(members)));
}

Core::Core(Options options, const StartState& start, Membership members)
    : options_(std::move(options)),
      random_(options_.seed ^ options_.self.value()),
      term_(start.hard_state.term),
      vote_(start.hard_state.vote),
      log_(start.log_base, start.log_base_term),
      commit_(std::max(start.hard_state.commit, start.applied)),
      snapshot_(std::make_shared<SnapshotMeta>(start.snapshot)),
      members_(std::move(members)),
      handed_(start.applied),
      applied_(start.applied),
      emitted_(start.hard_state),
      persisted_term_(start.hard_state.term),
      persisted_vote_(start.hard_state.vote) {
  for (const Entry& e : start.entries) log_.append(e);
  log_.set_stable(log_.last());
  emitted_last_ = log_.last();
  reset_election_timer();
}

// ---- inputs -----------------------------------------------------------------------------------

void Core::tick() {
  if (fault_) return;
  if (role_ == Role::leader) {
    tick_leader();
    return;
  }
  ++election_elapsed_;
  if (election_elapsed_ < election_timeout_) return;
  reset_election_timer();
  // The leader is silent: it is known no longer, and others may ask for votes.
  leader_ = ReplicaId();
  if (may_campaign()) pre_campaign();
}

Result<> Core::step(Message m) {
  NARAD_TRY(refuse_if_stopped());
  NARAD_TRY(check_message(m));
  if (!settle_term(m)) return ok();
  switch (m.kind) {
    case MessageKind::pre_vote:
    case MessageKind::vote:
      on_vote_request(m);
      break;
    case MessageKind::pre_vote_reply:
    case MessageKind::vote_reply:
      on_vote_reply(m);
      break;
    case MessageKind::append:
      on_append(m);
      break;
    case MessageKind::append_reply:
      on_append_reply(m);
      break;
    case MessageKind::heartbeat:
      on_heartbeat(m);
      break;
    case MessageKind::heartbeat_reply:
      on_heartbeat_reply(m);
      break;
    case MessageKind::snapshot_chunk:
      on_chunk(m);
      break;
    case MessageKind::snapshot_reply:
      on_snapshot_reply(m);
      break;
    case MessageKind::timeout_now:
      on_timeout_now(m);
      break;
    case MessageKind::read_request:
      on_read_request(m);
      break;
    case MessageKind::read_reply:
      on_read_reply(m);
      break;
  }
  return refuse_if_stopped();
}

void Core::persisted(std::uint64_t ready_id) {
  NARAD_ASSERT(ready_id <= ready_id_, "only what was taken can be persisted");
  while (!flights_.empty() && flights_.front().id <= ready_id) {
    const Flight f = flights_.front();
    flights_.pop_front();
    persisted_term_ = f.term;
    persisted_vote_ = f.vote;
    if (f.id >= log_valid_from_ && f.last > log_.stable()) log_.set_stable(f.last);
  }
  if (fault_) return;
  note_persisted_vote();
  if (role_ == Role::leader) advance_commit();
}

// A candidate votes for itself like any other voter: once the vote is durable.
void Core::note_persisted_vote() {
  bool own = role_ == Role::candidate && persisted_term_ == term_ && persisted_vote_ == self();
  if (!own || votes_.count(self()) != 0) return;
  votes_[self()] = true;
  count_votes();
}

void Core::applied(Index index) {
  NARAD_ASSERT(index <= handed_, "only what was handed out can be applied");
  applied_ = std::max(applied_, index);
}

// ---- output -----------------------------------------------------------------------------------

// Kinds that promise nothing about the sender's disk go at once, the others after it.
void Core::send(Message m) {
  m.from = self();
  if (m.term == Term()) m.term = term_;
  bool at_once = false;
  switch (m.kind) {
    case MessageKind::append:
    case MessageKind::heartbeat:
    case MessageKind::snapshot_chunk:
    case MessageKind::timeout_now:
    case MessageKind::heartbeat_reply:
    case MessageKind::read_request:
    case MessageKind::read_reply:
      at_once = persisted_term_ == term_;
      break;
    case MessageKind::pre_vote:
    case MessageKind::pre_vote_reply:
      at_once = true;
      break;
    case MessageKind::vote:
    case MessageKind::vote_reply:
    case MessageKind::append_reply:
    case MessageKind::snapshot_reply:
      break;
  }
  (at_once ? ready_.messages_now : ready_.messages).push_back(std::move(m));
}

bool Core::has_ready() const {
  if (!ready_.messages.empty() || !ready_.messages_now.empty() || !ready_.reads.empty() ||
      !ready_.unknown.empty() || !ready_.snapshot_writes.empty() || ready_.install) {
    return true;
  }
  bool entries = log_.last() > emitted_last_;
  bool state = HardState{term_, vote_, commit_} != emitted_;
  bool to_apply =
      std::min(commit_, log_.stable()) > handed_ && handed_ == applied_ && !installing();
  bool reads = role_ == Role::leader && reads_.has_unasked() && leads_own_term();
  return entries || state || to_apply || reads || soft_state() != emitted_soft_;
}

Ready Core::take_ready() {
  if (role_ == Role::leader) {
    send_all_appends(false);
    start_reads();
  }
  Ready r = std::move(ready_);
  ready_ = Ready();
  r.id = ++ready_id_;
  const HardState now{term_, vote_, commit_};
  if (now != emitted_) {
    r.must_sync = now.term != emitted_.term || now.vote != emitted_.vote;
    r.hard_state = now;
    emitted_ = now;
  }
  for (Index i = emitted_last_.next(); i <= log_.last(); i = i.next()) {
    r.entries.push_back(log_.at(i));
  }
  emitted_last_ = log_.last();
  r.must_sync = r.must_sync || !r.entries.empty() || !r.snapshot_writes.empty();
  hand_out(r);
  if (SoftState soft = soft_state(); soft != emitted_soft_) {
    r.soft_state = soft;
    emitted_soft_ = soft;
  }
  flights_.push_back({r.id, log_.last(), term_, vote_});
  return r;
}

// Committed and durable here; one batch at a time is out.
void Core::hand_out(Ready& r) {
  Index through = std::min(commit_, log_.stable());
  if (through <= handed_ || handed_ != applied_ || installing()) return;
  r.committed = log_.slice(handed_.next(), through, options_.apply_bytes_max);
  handed_ = r.committed.back().index;
  while (!proposals_.empty() && proposals_.front().index <= handed_) proposals_.pop_front();
}

SoftState Core::soft_state() const {
  return {role_, term_, leader_, members_.standing_of(self(), options_.node)};
}

// ---- small helpers ------------------------------------------------------------------------------

void Core::commit_to(Index index) {
  NARAD_ASSERT(index <= log_.last(), "only what the log holds is committed");
  commit_ = std::max(commit_, index);
}

void Core::truncate_log(Index from) {
  NARAD_ASSERT(from > commit_, "what is committed is never truncated");
  log_.truncate_from(from);
  members_.truncate_from(from);
  emitted_last_ = std::min(emitted_last_, log_.last());
  log_valid_from_ = ready_id_ + 1;
}

void Core::stop(std::string why) {
  if (fault_) return;
  fault_ = Error(Errc::data_loss,
                 cat("replica ", self(), " of node ", options_.node, " has stopped: ", why));
  ready_ = Ready();
}

Result<> Core::refuse_if_stopped() const {
  if (fault_) return *fault_;
  return ok();
}

// splitmix64
std::uint64_t Core::draw() {
  std::uint64_t z = (random_ += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

std::optional<ReplicaId> Core::transfer_target() const {
  if (!transfer_) return std::nullopt;
  return transfer_->target;
}

}  // namespace narad::raft
