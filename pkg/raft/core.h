#pragma once
// One replica of a Raft group as a pure state machine: no clock, disk, network, thread or
// exception. Same start and same inputs give the same outputs.
//
// The owner (internal/raftnode) runs this loop on one executor:
//
//   input (tick, step, propose, ...)          any number, in any order
//   Ready r = core.take_ready()               when has_ready()
//   send r.messages_now
//   store r (one transaction; sync if r.must_sync), in order of r.id
//   core.persisted(r.id); send r.messages
//   apply r.committed; core.applied(last)
//
// Inputs may come while a Ready is being stored, and further Readies may be taken.
//
// Promises (Raft paper, figure 3): at most one leader a term; logs that agree at a position agree
// before it; what is committed stays; all replicas hand out the same entries at the same positions.
// They hold through any loss, doubling, delay and reordering of messages and through crashes that
// lose whatever was not reported persisted.
//
// A replica that is told to drop what it has committed, or that turns out to have lost what it
// acknowledged, stops: fault() says why, all inputs are refused from then on, nothing is changed.
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "pkg/base/result.h"
#include "pkg/raft/log.h"
#include "pkg/raft/membership.h"
#include "pkg/raft/progress.h"
#include "pkg/raft/reads.h"
#include "pkg/raft/types.h"

namespace narad::raft {

struct Options {
  ReplicaId self;
  std::string node;        // this node's id
  std::uint64_t seed = 0;  // for election times; replicas need different ones

  int heartbeat_ticks = 1;
  // A follower waits for between this and twice this many ticks; a leader that has not heard a
  // majority for this long steps down; a transfer of leadership may take as long.
  int election_ticks = 10;

  std::uint64_t entry_bytes_max = 4u << 20;     // larger proposals are refused
  std::uint64_t append_bytes_max = 512u << 10;  // entries in one append (one entry may be larger)
  std::uint64_t inflight_bytes_max = 4u << 20;  // sent to one follower and not yet answered
  std::size_t inflight_messages_max = 256;
  std::uint64_t uncommitted_bytes_max = 64u << 20;  // proposals waiting for a majority
  std::uint64_t apply_bytes_max = 4u << 20;         // handed out and not yet reported applied
  std::uint64_t chunk_bytes = 256u << 10;           // of a snapshot

  bool promote_learners = true;          // the leader does so by itself (next_promotion)
  std::uint64_t caught_up_entries = 16;  // how far behind the commit a learner may be for that
  std::size_t voters_max = 5;
};

// What the storage found. A first start of a group: a snapshot at index 0 with the same
// configuration on every replica. A replica that joins: everything empty.
struct StartState {
  HardState hard_state;
  SnapshotMeta snapshot;  // the latest; its configuration is in force at its index
  Index log_base;         // entries at and below are not stored; not above snapshot.index
  Term log_base_term;
  std::vector<Entry> entries;
  Index applied;  // durable in the applied state; not below snapshot.index
};

class Core {
 public:
  // Errors: invalid_argument on options that cannot work, data_loss on a start state that
  // contradicts itself.
  static Result<std::unique_ptr<Core>> create(Options options, StartState start);

  // ---- inputs -------------------------------------------------------------------------------
  void tick();
  // Errors: invalid_argument (malformed), conflict (meant for another replica): the message is
  // dropped and nothing changes; or fault().
  Result<> step(Message m);
  // Errors: not_leader, too_large, unavailable (leadership is being handed over), busy (too much is
  // waiting): certainly not done. Otherwise it is handed out in `committed` under this id, or named
  // in `unknown`, or this replica crashes.
  Result<ProposalId> propose(Payload payload);
  // Errors: as propose, unavailable while another change is not committed or nothing of this term
  // is, and those of apply().
  Result<ProposalId> propose_change(const ConfigurationChange& change);
  // Errors: not_leader, not_found, unavailable (another transfer runs). Success means it has begun.
  Result<> transfer_leadership(ReplicaId target);
  // Answered in Ready::reads under `context`, which the caller chooses; a follower asks its leader,
  // and messages may be lost: give it a deadline. Errors: unavailable (no leader known), busy.
  Result<> read_index(std::uint64_t context);
  void persisted(std::uint64_t ready_id);
  void applied(Index index);
  void snapshot_done(bool installed);

  // ---- snapshots and compaction ---------------------------------------------------------------
  // What a snapshot of the state applied up to `index` is: the owner adds size and checksum.
  // REQUIRES: index == applied_index().
  SnapshotMeta snapshot_at(Index index) const;
  struct LogBase {
    Index index;
    Term term;
  };
  // `snapshot` is durable. Forgets entries at and below its index, but the last `keep_entries` and
  // what streams in progress still need. Answers what the storage may delete up to.
  // Errors: invalid_argument if it is not newer, or not of what was applied.
  Result<LogBase> compact(SnapshotMeta snapshot, std::uint64_t keep_entries);
  // Older snapshots that are still being sent; their files must stay.
  std::vector<SnapshotMeta> snapshots_in_use() const;

  // ---- output ---------------------------------------------------------------------------------
  bool has_ready() const;
  Ready take_ready();

  // ---- observers ------------------------------------------------------------------------------
  const std::optional<Error>& fault() const { return fault_; }
  const Options& options() const { return options_; }
  ReplicaId self() const { return options_.self; }
  Role role() const { return role_; }
  Term term() const { return term_; }
  ReplicaId vote() const { return vote_; }
  ReplicaId leader() const { return leader_; }
  Index commit_index() const { return commit_; }
  Index applied_index() const { return applied_; }
  Index handed_index() const { return handed_; }
  const Log& log() const { return log_; }
  const Membership& membership() const { return members_; }
  const SnapshotMeta& snapshot() const { return *snapshot_; }
  bool installing() const { return incoming_ && incoming_->installing; }
  SoftState soft_state() const;
  // Of the leader: what it knows of the others.
  const std::map<ReplicaId, Progress>& progress() const { return progress_; }
  std::optional<ReplicaId> transfer_target() const;
  // The leader has committed an entry of its own term: it knows what is committed.
  bool leads_own_term() const;

 private:
  Core(Options options, const StartState& start, Membership members);
  static Result<> check_options(const Options& o);
  static Result<Membership> check_start(const StartState& s);

  // core.cpp
  void send(Message m);
  void stop(std::string why);
  Result<> refuse_if_stopped() const;
  std::uint64_t draw();
  void commit_to(Index index);
  bool is_voter() const { return members_.current().is_voter(self()); }
  void hand_out(Ready& r);
  void note_persisted_vote();
  void truncate_log(Index from);

  // core_check.cpp: what a message must look like before it is believed
  Result<> check_message(const Message& m) const;

  // core_election.cpp
  void reset_election_timer();
  bool hears_leader() const;
  bool may_campaign() const;
  void campaign(bool transfer);
  void pre_campaign();
  void ask_votes(MessageKind kind, Term term, bool force);
  void count_votes();
  void become_follower(Term term, ReplicaId leader);
  void become_leader();
  void on_vote_request(const Message& m);
  void on_vote_reply(const Message& m);
  void on_timeout_now(const Message& m);
  bool settle_term(const Message& m);
  void answer_old_term(const Message& m);

  // core_leader.cpp
  void tick_leader();
  void check_quorum();
  void append_own(EntryKind kind, Payload payload);
  bool send_append(ReplicaId to, Progress& p, bool even_empty);
  void send_all_appends(bool even_empty);
  void send_heartbeats();
  void advance_commit();
  void on_append_reply(const Message& m);
  void on_heartbeat_reply(const Message& m);
  void continue_transfer(ReplicaId target, const Progress& p);
  void start_reads();
  void answer_reads();
  void on_read_request(const Message& m);
  void on_read_reply(const Message& m);
  void answer_read(const Read& read, std::optional<Index> index);
  Result<> may_propose() const;

  // core_follower.cpp
  void on_append(const Message& m);
  bool contradicts_committed(const Message& m);
  void take_entries(const Message& m);
  void on_heartbeat(const Message& m);
  Message reply_to(const Message& m, MessageKind kind) const;

  // core_snapshot.cpp
  void start_snapshot(ReplicaId to, Progress& p);
  void send_chunk(ReplicaId to, const Progress& p);
  void on_chunk(const Message& m);
  void take_chunk(const Message& m);
  void on_snapshot_reply(const Message& m);

  // core_membership.cpp
  void adopt_configuration();
  void promote_if_ready();
  void settle_departures();
  void leave_if_removed();
  bool is_ready(ReplicaId learner) const;

  Options options_;
  std::uint64_t random_;
  std::optional<Error> fault_;

  // Durable through Ready.
  Term term_;
  ReplicaId vote_;
  Log log_;
  Index commit_;
  std::shared_ptr<const SnapshotMeta> snapshot_;
  Membership members_;

  Role role_ = Role::follower;
  ReplicaId leader_;
  int election_elapsed_ = 0;
  int election_timeout_ = 0;
  int heartbeat_elapsed_ = 0;
  std::map<ReplicaId, bool> votes_;

  // Leader only.
  std::map<ReplicaId, Progress> progress_;
  Index term_start_;  // its no-op
  std::uint64_t uncommitted_bytes_ = 0;
  Reads reads_;
  struct Transfer {
    ReplicaId target;
    int elapsed = 0;
  };
  std::optional<Transfer> transfer_;
  std::deque<ProposalId> proposals_;  // own, not yet handed out

  // A snapshot being received.
  struct Incoming {
    std::shared_ptr<const SnapshotMeta> meta;
    ReplicaId from;
    std::uint64_t next_offset = 0;
    std::uint64_t last_offset = 0;  // the chunk to answer when done
    bool installing = false;
  };
  std::optional<Incoming> incoming_;

  // Output.
  Ready ready_;   // what has gathered since the last one
  Index handed_;  // handed out in `committed`
  Index applied_;
  std::uint64_t ready_id_ = 0;
  HardState emitted_;  // in the last Ready
  Term persisted_term_;
  ReplicaId persisted_vote_;
  Index emitted_last_;  // entries up to here were in some Ready (after any truncation)
  SoftState emitted_soft_;
  struct Flight {
    std::uint64_t id;
    Index last;
    Term term;
    ReplicaId vote;
  };
  std::deque<Flight> flights_;
  // Readies before this one say nothing about the log: it was truncated since.
  std::uint64_t log_valid_from_ = 0;
};

}  // namespace narad::raft
