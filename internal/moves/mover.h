#pragma once
// One move as its destination sees it: what to do next, and what each outcome means (moves.md,
// "Worker"; docs/internals/moves.md, "The destination"). A step machine: the worker (worker.h) asks
// next(), does that one thing, reports its outcome, and asks again; keep() is asked beside it while
// a freeze is held. Knows no clock, file or call. Pure.
//
// What it promises: a flip is proposed only for a copy that was verified under a freeze that held,
// is durable and installed; an installed copy leaves its path only when the row, read behind a
// barrier, shows that no flip of it can ever apply; a failed attempt never ends a move.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "internal/metastore/state.h"
#include "internal/wire/move_messages.h"
#include "pkg/base/text.h"

namespace narad::moves {

struct RunnerTiming {
  Nanos tick = std::chrono::seconds(1);
  Nanos full_pass = std::chrono::seconds(30);
  Nanos retry = std::chrono::seconds(2);  // with jitter
  Nanos between_passes = std::chrono::milliseconds(50);
  Nanos freeze_ttl =
      std::chrono::seconds(30);  // unless the owner names another; re-armed every quarter
  Nanos force_promote_after = std::chrono::minutes(2);
  Nanos propose_again_for = std::chrono::minutes(2);
  Nanos quiet_before_undo = std::chrono::seconds(15);
  Nanos hung_after = std::chrono::seconds(30);  // a freeze is let go when nothing advances
  Nanos barrier_deadline = std::chrono::seconds(5);
  std::uint64_t lag_bytes = 4u << 20;
  std::uint32_t passes_max = 20;
  std::uint32_t passes_without_progress_max = 3;
  std::uint64_t bytes_per_second = 0;  // 0: as fast as it goes
  // Small ones stay in the caches on their way, and use memory again that was just given back.
  std::uint64_t chunk_bytes = 256u << 10;
  std::size_t chunks_in_flight = 12;
  // What of a copy is left to one sync; and while records are written to this node, whose syncs
  // wait behind it (pace.h): of the bulk so much, four times as much of what follows.
  std::uint64_t sync_every_bytes = 4u << 20;
  std::uint64_t sync_every_bytes_beside_clients = 256u << 10;
  // Tests strike while a phase is held open: the first time that a worker is about to act in the
  // phase of that name, it waits so long. 0: never.
  Nanos hold{0};
  std::string hold_phase;
  // A bug that simulation plants to see it found: a source that went back is believed. Never set
  // outside of it.
  bool plant_believes_less = false;
};

// Which move, for whom.
struct MoveKey {
  TopicPartition partition;
  Incarnation incarnation{0};
  RaftIndex move_id{0};
  std::string source;  // node
  std::string self;    // node
  std::string disk;    // of the target
  friend bool operator==(const MoveKey&, const MoveKey&) = default;
};

// What a state says of the move.
struct RowSeen {
  // Of that topic's present life; nothing if there is no such partition in this incarnation.
  std::optional<Assignment> row;
  bool source_is_member = false;
  bool source_dead = false;
  RaftIndex dead_mark{0};
  bool paused = false;  // by itself, or with others
};
RowSeen row_seen(const metastore::State& state, const MoveKey& key);

// A flip that may have been proposed: by the source's freeze, or without it.
struct Proposal {
  bool forced = false;
  std::uint64_t epoch = 0;             // of the freeze, unless forced
  std::optional<RaftIndex> dead_mark;  // if forced; nothing: proposed by an earlier process
};
enum class FlipFate : std::uint8_t {
  done,       // this node owns the partition through this move
  open,       // it may still apply
  lapsed,     // it can never apply, the move goes on
  ended,      // it can never apply, the move is over, and it never did apply
  elsewhere,  // the move is over, and the copy is not this move's business any more
};
// What `row`, read behind a barrier, makes of it.
FlipFate judge_flip(const MoveKey& key, const RowSeen& seen, const Proposal& proposal);

// What the worker is to do. Ends with the event in brackets, or on_failed().
enum class Do : std::uint8_t {
  look,        // is a copy of this very move at the partition's path? [on_looked]
  settle,      // make sure that its rename is on the disk [on_settled]
  resolve,     // a barrier, then the row [on_row]
  pass,        // list, and fetch what lacks [on_pass, on_went_back]
  prepare,     // the topic's directory, of this incarnation [on_prepared]
  freeze,      // [on_frozen, on_refused]
  verify,      // [on_verified]
  fence,       // [on_fenced, on_refused]
  start_over,  // throw away what is staged [on_started_over]
  finish,      // make the copy whole and durable [on_finished]
  install,     // [on_installed]
  flip,        // propose complete_move [on_proposed]
  silence,     // ask the leader how long it has not heard of the source [on_silence]
  promote,     // propose force_promote [on_proposed]
  let_go,      // propose void_freeze; whatever comes of it [on_let_go]
  take_off,    // rename the install back to staging [on_taken_off, on_refused]
  wait,        // until Step::until, or until something changes
  give_back,   // propose clear_target: there is no room here [on_given_back]
  dispose,     // of what is staged [on_disposed]
  done,        // nothing: the worker ends
};
std::string_view to_string(Do what);

struct Step {
  Do what = Do::wait;
  Nanos until{0};
  bool frozen = false;      // pass: the first one under a freeze takes the listing of its answer
  std::uint64_t epoch = 0;  // finish, flip, let_go; 0 for a force-promote
  RaftIndex dead_mark{0};   // promote
};

// Things to be told to people, once each.
enum class Note : std::uint8_t {
  not_converged,     // CPY-7
  no_token,          // FEN-7
  hung,              // a freeze was let go because nothing advanced
  verify_failed,     // the first time (VER-2)
  unverifiable,      // the second time (VER-3)
  copy_behind,       // SRC-9
  went_back,         // source_went_back
  no_room,           // given back
  prepare_refused,   // INC-4
  flip_unresolved,   // FLP-10: no more proposals
  take_off_refused,  // INS-8
};

enum class ProposalOutcome : std::uint8_t { done, refused, unknown, not_applied };

class Mover {
 public:
  Mover(RunnerTiming timing, MoveKey key, Nanos now);

  Step next(Nanos now);

  // ---- what the applied state of this node shows (no barrier): before each step
  void on_view(Nanos now, const RowSeen& seen);

  // ---- outcomes; `jitter` is added to the pause before the next attempt
  struct Found {
    bool forced = false;
    std::uint64_t epoch = 0;
  };
  void on_looked(Nanos now, std::optional<Found> installed);
  void on_settled(Nanos now);
  // `began`: when the barrier was asked for.
  void on_row(Nanos now, Nanos began, const RowSeen& seen);
  void on_pass(Nanos now, std::uint64_t bytes, Offset hwm);
  // A pass was broken off since must_rest(), which may be over by now: what it brought is kept.
  void on_broken_off(Nanos now);
  void on_went_back(Nanos now, Nanos jitter, std::string why);
  // The disk has no room for the rest. The move is given back while the source lives, since all of
  // it is there; else it is tried again: what is staged may be the last copy.
  void on_no_room(Nanos now, Nanos jitter, std::string why);
  void on_given_back(Nanos now, Nanos jitter);  // whatever came of it: the row tells
  void on_prepared(Nanos now);
  // `epoch` of the token, or what was armed in the name of an older source that gives none.
  void on_frozen(Nanos now, std::uint64_t epoch, bool token, Nanos ttl);
  // `highest_hwm`: that the source ever named; nothing if it was never reached.
  void on_verified(Nanos now, Nanos jitter, std::string problem, Offset end,
                   std::optional<Offset> highest_hwm);
  void on_fenced(Nanos now);
  void on_started_over(Nanos now);
  void on_finished(Nanos now);
  void on_installed(Nanos now);
  void on_proposed(Nanos now, Nanos jitter, ProposalOutcome outcome);
  void on_silence(Nanos now, Nanos silent);
  void on_let_go(Nanos now);
  void on_taken_off(Nanos now);
  void on_disposed(Nanos now);
  // It was refused for good in the present state of things (409): freeze, fence, take_off.
  void on_refused(Nanos now, Nanos jitter, std::string why);
  void on_failed(Nanos now, Nanos jitter, std::string why);

  // ---- the freeze, kept beside the steps
  enum class Keep : std::uint8_t { nothing, wait, rearm, let_go };
  struct Keeping {
    Keep what = Keep::nothing;
    Nanos until{0};           // wait
    std::uint64_t epoch = 0;  // let_go
  };
  Keeping keep(Nanos now);
  void on_rearmed(Nanos now);
  void on_rearm_refused(Nanos now);
  // Bytes landed, a sync ended: the drain lives.
  void on_progress(Nanos now);

  // ---- what is reported
  std::string_view phase() const;
  std::string_view blocked() const;  // reason, or empty
  const std::string& last_error() const { return last_error_; }
  std::uint32_t attempts() const { return attempts_; }
  std::uint32_t passes() const { return passes_total_; }
  // The first pass of a round, over all that is missing.
  bool bulk() const { return !draining_ && round_passes_ == 0; }
  Nanos frozen_for(Nanos now) const;  // the freeze in force, or the last one
  bool forced() const { return forced_; }
  bool flipped() const { return flipped_; }
  bool ended() const { return flipped_ || over_; }
  // The move is paused and nothing is in the way of that: what is being done is to be broken off. A
  // flip that may apply is in the way, until it is resolved.
  bool must_rest() const { return paused_ && !ended() && !at_path_ && !proposal_; }
  bool rests() const { return resting_; }
  bool source_dead() const { return dead_; }
  bool converged() const { return converged_; }
  bool took_off() const { return took_off_; }
  Offset copy_end() const { return copy_end_; }
  // As the marker of the copy has it.
  wire::Receipt receipt(Nanos now) const;
  // The same as the flip that is proposed now has it: what was to be done since is in it.
  wire::Receipt receipt_of_flip(Nanos now, wire::Receipt marked) const;
  std::vector<Note> take_notes();

 private:
  struct Freeze {
    std::uint64_t epoch = 0;
    bool token = true;
    Nanos ttl{0}, since{0}, armed_at{0}, progress_at{0};
    bool lost = false;  // the source refused to extend it
    bool hung = false;  // let go
  };
  void begin_attempt(Nanos now);
  void pause(Nanos now, Nanos jitter, std::string why);
  void retry_from(Do what, Nanos now, Nanos jitter, std::string why);
  void after_drain_pass(Nanos now, std::uint64_t bytes, Offset hwm);
  void after_copy_pass(Nanos now, std::uint64_t bytes);
  void freeze_again(Nanos now, Nanos jitter, std::string why);
  void end_freeze(Nanos now);
  bool rest(Nanos now);
  bool promotable(Nanos now) const;
  void count_verify_failure(Nanos now);
  void start_copying();
  void judge_without_source(std::string problem, Offset end, std::optional<Offset> highest_hwm);
  void propose_again(Nanos now);
  void stop_proposing();
  void undo(Nanos now, Nanos began);
  void note(Note n) { notes_.push_back(n); }
  bool freeze_gone() const { return !freeze_ || freeze_->lost || freeze_->hung; }

  const RunnerTiming timing_;
  const MoveKey key_;
  Do stage_ = Do::look;
  Nanos wait_until_{0};
  Do after_let_go_ = Do::look;
  Nanos resume_at_{0};
  bool first_look_ = true;
  bool over_ = false;  // the row names this move no more
  bool paused_ = false;
  bool resting_ = false;
  bool flipped_ = false;
  bool at_path_ = false;  // a copy of this move is, or may be, at the partition's path
  bool took_off_ = false;

  std::uint32_t attempts_ = 0;
  std::uint32_t passes_total_ = 0;
  // Of the present round of passes.
  bool draining_ = false;
  bool converged_ = false;
  std::uint32_t round_passes_ = 0;
  std::uint32_t stale_passes_ = 0;
  std::optional<std::uint64_t> best_pass_;
  bool last_pass_quiet_ = false;
  Offset last_hwm_{0};

  std::optional<Freeze> freeze_;
  Nanos last_frozen_{0};
  std::uint32_t fences_refused_ = 0;  // in a row
  bool checks_hold_ = false;  // the fence is to tell whether the freeze of a failed verify held
  std::uint32_t verify_failures_ = 0;
  bool blocked_unverifiable_ = false;
  bool blocked_went_back_ = false;
  bool no_room_noted_ = false;

  std::optional<Proposal> proposal_;
  Nanos first_proposal_{0};
  std::optional<Nanos> last_unknown_;
  bool proposing_stopped_ = false;
  bool refused_ = false;  // the last proposal, for certain

  bool dead_ = false;
  RaftIndex dead_mark_{0};
  Nanos dead_since_{0};
  bool forced_ = false;  // the present attempt goes without the source
  RaftIndex forced_mark_{0};
  bool forced_tried_ = false;  // since the last pause
  bool behind_ = false;
  bool unverifiable_without_source_ = false;
  bool waits_for_source_ = false;
  std::optional<RaftIndex> behind_noted_;
  bool prepare_noted_ = false;
  Offset copy_end_{0};

  std::string last_error_;
  std::vector<Note> notes_;
  Nanos began_;
  Nanos copy_ended_{0}, drain_began_{0}, drain_ended_{0}, verify_ended_{0};
};

}  // namespace narad::moves
