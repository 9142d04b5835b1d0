#pragma once
// Works on one move until this node owns the partition or the move has ended: does what the mover
// (mover.h) says, one step at a time, with the source's calls, the staging's jobs, the node's
// partitions and the metastore. Decides nothing. Lives on the node's loop; its runner owns it.
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "internal/moves/pace.h"
#include "internal/moves/runner.h"
#include "internal/moves/staging.h"
#include "internal/moves/throttle.h"
#include "pkg/async/timeout.h"

namespace narad::moves {

// Bytes that a worker has yet to write.
struct Reserved {
  std::string disk;
  std::uint64_t bytes = 0;
};

// What all workers of a node share. Outlives them.
struct Workshop {
  Env& env;
  std::string node_id;
  metastore::Proposer& metastore;
  SourceCalls& source;
  LeaderCalls& leader;
  InstallPlace& place;
  RunnerTiming timing;
  Throttle throttle;  // of what arrives at this node
  RunnerStats stats;
  std::map<RaftIndex, Reserved> reserved{};  // by move id
  // Held by a worker while it syncs what it copies: one file after the other reaches the disk, so
  // that a commit of this node never waits behind more than one piece.
  Mutex syncing{env};
  Pace pace{};
  // This node's share of what each source may send (metastore/move_budget.h). Never removed: those
  // who wait in one hold on to it.
  std::map<std::string, Throttle> from{};

  Throttle& from_source(const std::string& node) {
    return from.try_emplace(node, env, 0).first->second;
  }
};

class Worker {
 public:
  Worker(Workshop& shop, MoveKey key);
  ~Worker();  // REQUIRES: stop() has returned, or the node was killed

  // Until the move is over, here or for good. May be cancelled anywhere; what is staged and
  // installed stays, and the next worker of the move takes it up.
  Task<void> run();
  // Ends what run() left behind. REQUIRES: run() has returned, or was cancelled and awaited.
  Task<void> stop();

  // The applied state has changed.
  void poke();

  const MoveKey& key() const { return key_; }
  wire::MoveReport report() const;
  std::string_view blocked() const { return mover_.blocked(); }
  // It has nothing in hand: what it is blocked by, or its pause, ends by itself or not at all.
  bool idle() const { return mover_.rests() || !mover_.blocked().empty(); }

 private:
  struct Fetch;

  // Waits in a phase that is to be held open; true if it did, and the step may be another one now.
  Task<bool> hold();
  Task<void> act(Step step);
  Task<void> look();
  Task<void> settle();
  Task<void> resolve();
  Task<void> pass(Step step);
  Task<void> prepare();
  Task<void> freeze();
  Task<void> verify();
  Task<void> fence();
  Task<void> start_over();
  Task<void> finish(Step step);
  Task<Result<Staging::Finished>> finish_copy(Staging::FinishPlan plan);
  struct Syncs;
  static Task<void> sync_one(Env& env, std::shared_ptr<Syncs> syncs, std::size_t i,
                             std::string path);
  Task<void> install();
  Task<void> flip(Step step);
  Task<void> ask_silence();
  Task<void> promote(Step step);
  Task<void> let_go(Step step);
  Task<void> take_off();
  Task<void> give_back();
  Task<void> dispose();
  Task<void> done();

  // ---- parts of a pass (worker_copy.cpp)
  Task<Result<void>> open_staging();
  Task<Result<wire::Listing>> take_listing(Step step);
  Task<Result<void>> reserve_room();
  Task<Result<std::uint64_t>> copy_missing();
  Task<Result<std::uint64_t>> copy_ranges(std::shared_ptr<Fetch> fetch);
  Task<Result<void>> take_chunk(SegmentRange range, std::string bytes, bool frozen);
  Task<Result<void>> segment_landed(Offset base);
  // Syncs a staged file beside what goes on; one at a time. `whole`: all of it has landed.
  Task<Result<void>> begin_sync(Offset base, bool whole);
  // The bulk of the copy is under way while records are written to this node. The passes that
  // follow have to overtake the partition's own traffic: they wait for nobody.
  bool gives_way();
  Task<Result<void>> end_sync();
  struct Sync;
  static Task<void> sync_beside(Worker* self, std::shared_ptr<Sync> sync);
  Task<Result<void>> hold_against_digests(Offset base);
  void start_fetching(std::shared_ptr<Fetch> fetch);
  bool must_stop(Fetch& fetch);
  Task<void> fetch_some(std::shared_ptr<Fetch> fetch);
  Task<Result<std::string>> next_chunk(std::shared_ptr<Fetch> fetch, std::size_t i);
  void count_landed(std::uint64_t bytes);
  void take_figures();

  // ---- ends of staging (worker_end.cpp)
  Task<Result<void>> dispose_of(std::string source, RaftIndex move_id, bool took_off);
  Task<Result<DisposalCase>> look_at_staging(std::string source, RaftIndex move_id, bool took_off);

  // Keeps the freeze of that number alive beside the steps.
  Task<void> keep_frozen(std::uint64_t number);
  Task<bool> rearm();

  // The answer, or `cancelled` once the move is over: an answer is of no use then.
  template <class T>
  Task<Result<T>> unless_over(Task<Result<T>> call);
  Task<void> over();
  // A job on the staging; one at a time, since the steps are.
  template <class F>
  auto job(const char* name, F work) -> Task<std::invoke_result_t<F&, Staging&>>;

  ProposalOutcome outcome_of(const Result<metastore::CommandResult>& result);
  // The applied state may have changed.
  void look_at_row();
  void fail(const Error& error);
  void fail_pass(const Error& error);
  // What is under way is of no use any more, or is to wait.
  bool broken_off() const { return mover_.ended() || mover_.must_rest(); }
  void refuse_or_fail(const Error& error);
  void tell_notes();
  Nanos now() const { return env_.clock.mono(); }
  Nanos jitter();
  wire::MoveRef ref() const { return {key_.partition, key_.incarnation, key_.move_id}; }
  std::string path() const;
  std::string staged_path() const;

  Workshop& shop_;
  Env& env_;
  const MoveKey key_;
  Mover mover_;
  Throttle own_;    // the move's, beside that of all moves to this node
  Throttle& from_;  // and that of all from its source to this node
  Event wake_;
  std::shared_ptr<Staging> staging_;
  bool held_ = false;        // the phase that tests hold open was
  bool look_again_ = false;  // the files may have changed since the staging was opened

  std::optional<wire::FreezeToken> token_;
  std::optional<wire::Listing> frozen_listing_;
  UnixMillis frozen_listing_at_{0};
  std::uint64_t freeze_number_ = 0;

  std::shared_ptr<Sync> sync_;  // under way, or ended and not looked at
  std::uint64_t unsynced_ = 0;  // bytes that landed since the last one began

  wire::Receipt receipt_;  // as the marker has it
  // Of the staging, which a job may be at, for reports.
  struct Figures {
    std::uint64_t staged = 0, listed = 0;
    std::uint64_t write_rate = 0;
    Offset highest_hwm{0};
  };
  Figures figures_;
  Nanos last_landed_{0};
  std::deque<std::pair<Nanos, std::uint64_t>> landed_;  // of late, for the rate
  TaskGroup tasks_;
};

template <class T>
Task<Result<T>> Worker::unless_over(Task<Result<T>> call) {
  Task<void> end = over();
  auto answer = co_await result_before(std::move(call), std::move(end));
  if (!answer) co_return Error(Errc::cancelled, "the move is over");
  co_return std::move(*answer);
}

template <class F>
auto Worker::job(const char* name, F work) -> Task<std::invoke_result_t<F&, Staging&>> {
  auto whole = [staging = staging_, work = std::move(work)]() mutable { return work(*staging); };
  co_return co_await blocking(env_, name, std::move(whole));
}

}  // namespace narad::moves
