#include "internal/moves/worker.h"

#include <algorithm>

#include "internal/metastore/move_rules.h"
#include "internal/moves/cursor_rules.h"
#include "pkg/async/timeout.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::moves {
namespace {

constexpr std::uint64_t kRateSeconds = 5;
constexpr Nanos kRateWindow = std::chrono::seconds(kRateSeconds);

std::uint64_t millis(Nanos d) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(d).count()));
}

}  // namespace

Worker::Worker(Workshop& shop, MoveKey key)
    : shop_(shop),
      env_(shop.env),
      key_(std::move(key)),
      mover_(shop.timing, key_, shop.env.clock.mono()),
      own_(shop.env, 0),
      from_(shop.from_source(key_.source)),
      wake_(shop.env),
      tasks_(shop.env) {}

Worker::~Worker() = default;

Task<void> Worker::stop() { co_await tasks_.stop(); }

std::string Worker::path() const {
  return shop_.place.partition_directory(key_.disk, key_.partition);
}

std::string Worker::staged_path() const {
  return join_path(join_path(shop_.place.disk(key_.disk).path, ".moves"),
                   staging_name(key_.partition));
}

Nanos Worker::jitter() {
  const auto spread = static_cast<std::uint64_t>(shop_.timing.retry.count() / 2 + 1);
  return Nanos(static_cast<Nanos::rep>(env_.random.next() % spread));
}

void Worker::fail(const Error& error) { mover_.on_failed(now(), jitter(), error.text()); }

void Worker::refuse_or_fail(const Error& error) {
  if (error.code() == Errc::conflict) {
    mover_.on_refused(now(), jitter(), error.text());
  } else {
    fail(error);
  }
}

void Worker::look_at_row() {
  const RowSeen seen = row_seen(*shop_.metastore.view(), key_);
  const bool ours = seen.row && seen.row->move_id == key_.move_id;
  own_.set_rate(ours ? seen.row->move_rate : 0);
  mover_.on_view(now(), seen);
}

void Worker::poke() {
  look_at_row();
  wake_.notify_all();
}

Task<void> Worker::over() {
  while (!mover_.ended()) co_await wake_.wait();
}

Task<void> Worker::run() {
  NARAD_LOG_INFO(env_.log, "move: begins", {"partition", to_string(key_.partition)},
                 {"move", key_.move_id}, {"source", key_.source});
  for (;;) {
    look_at_row();
    const Step step = mover_.next(now());
    tell_notes();
    if (step.what == Do::done) break;
    if (step.what == Do::wait) {
      const Nanos longest = shop_.timing.full_pass;
      (void)co_await wake_.wait_for(std::min(longest, step.until - now()));
      continue;
    }
    if (co_await hold()) continue;
    co_await act(step);
    tell_notes();
  }
  co_await done();
}

Task<bool> Worker::hold() {
  const Nanos length = shop_.timing.hold;
  if (held_ || length == Nanos(0) || mover_.phase() != shop_.timing.hold_phase) co_return false;
  held_ = true;
  const Nanos until = now() + length;
  while (!broken_off() && now() < until) (void)co_await wake_.wait_for(until - now());
  co_return true;
}

Task<void> Worker::act(Step step) {
  switch (step.what) {
    case Do::look:
      return look();
    case Do::settle:
      return settle();
    case Do::resolve:
      return resolve();
    case Do::pass:
      return pass(step);
    case Do::prepare:
      return prepare();
    case Do::freeze:
      return freeze();
    case Do::verify:
      return verify();
    case Do::fence:
      return fence();
    case Do::start_over:
      return start_over();
    case Do::finish:
      return finish(step);
    case Do::install:
      return install();
    case Do::flip:
      return flip(step);
    case Do::silence:
      return ask_silence();
    case Do::promote:
      return promote(step);
    case Do::let_go:
      return let_go(step);
    case Do::take_off:
      return take_off();
    case Do::give_back:
      return give_back();
    case Do::dispose:
      return dispose();
    case Do::wait:
    case Do::done:
      break;
  }
  NARAD_ASSERT(false, "not a step to be done");
}

// ---- where the copy is
// -----------------------------------------------------------------------------

Task<void> Worker::look() {
  const MoveDisk disk = shop_.place.disk(key_.disk);
  if (!disk.usable && mover_.ended()) {
    // It is not there as long as this process runs. The start that finds it disposes of what lies
    // there; until then later moves of the partition are not to wait for this one.
    mover_.on_disposed(now());
    co_return;
  }
  if (!disk.usable) {
    fail(Error(Errc::unavailable, cat("disk ", key_.disk, " of this node cannot be used now")));
    co_return;
  }
  look_again_ = true;
  auto read = [&fs = env_.fs, path = path()] { return read_marker(fs, path); };
  auto marker = co_await blocking(env_, "move marker", std::move(read));
  if (!marker) {
    fail(marker.error());
    co_return;
  }
  const auto& found = marker.value();
  const bool ours =
      found && found->move_id == key_.move_id && found->incarnation == key_.incarnation;
  if (!ours) {
    mover_.on_looked(now(), std::nullopt);
    co_return;
  }
  receipt_ = found->receipt;
  mover_.on_looked(now(), Mover::Found{found->force_promoted, found->epoch});
}

Task<void> Worker::settle() {
  auto sync = [&fs = env_.fs, path = path(), staged = staged_path()] {
    return settle_install(fs, path, staged);
  };
  auto settled = co_await blocking(env_, "settle install", std::move(sync));
  if (!settled) {
    fail(settled.error());
    co_return;
  }
  mover_.on_settled(now());
}

Task<void> Worker::resolve() {
  const Nanos began = now();
  auto read = co_await shop_.metastore.barrier(shop_.timing.barrier_deadline);
  if (!read) {
    fail(read.error());
    co_return;
  }
  mover_.on_row(now(), began, row_seen(*shop_.metastore.view(), key_));
}

// ---- freeze, verify, fence
// ----------------------------------------------------------------------------

Task<void> Worker::prepare() {
  auto prepared = co_await shop_.place.prepare(key_.partition, key_.incarnation, key_.disk);
  if (!prepared) {
    fail(prepared.error());
    co_return;
  }
  mover_.on_prepared(now());
}

Task<void> Worker::freeze() {
  const Nanos sent = now();
  wire::FreezeRequest request;
  request.move = ref();
  Task<Result<wire::FreezeAnswer>> call = shop_.source.freeze(key_.source, std::move(request));
  auto answer = co_await unless_over(std::move(call));
  if (!answer) {
    refuse_or_fail(answer.error());
    co_return;
  }
  wire::FreezeAnswer& frozen = answer.value();
  token_ = frozen.token;
  frozen_listing_ = std::move(frozen.listing);
  frozen_listing_at_ = env_.clock.wall_millis();
  std::uint64_t epoch = token_ ? token_->epoch : 0;
  if (!token_) {
    // An older source knows no epochs: the flip needs one all the same.
    metastore::Command arm =
        metastore::ArmFreeze{key_.partition.topic, key_.incarnation, key_.partition.partition,
                             key_.source, key_.move_id};
    auto armed = co_await shop_.metastore.propose(std::move(arm));
    if (armed && !armed.value().done()) armed = metastore::to_error(armed.value());
    if (!armed) {
      fail(armed.error());
      co_return;
    }
    epoch = std::get<metastore::AssignmentRow>(armed.value().row).assignment.freeze_epoch;
  }
  const Nanos ttl = std::chrono::milliseconds(frozen.ttl_ms);
  mover_.on_frozen(sent, epoch, token_.has_value(), ttl);
  tasks_.spawn("keep frozen", keep_frozen(++freeze_number_));
}

Task<void> Worker::keep_frozen(std::uint64_t number) {
  while (number == freeze_number_) {
    const Mover::Keeping keeping = mover_.keep(now());
    if (keeping.what == Mover::Keep::nothing) co_return;
    if (keeping.what == Mover::Keep::wait) {
      co_await sleep_for(env_, keeping.until - now());
      continue;
    }
    if (keeping.what == Mover::Keep::let_go) {
      tell_notes();
      metastore::Command entry =
          metastore::VoidFreeze{key_.partition.topic, key_.incarnation, key_.partition.partition,
                                key_.source, keeping.epoch};
      (void)co_await shop_.metastore.propose(std::move(entry));
      continue;
    }
    if (!co_await rearm()) co_await sleep_for(env_, shop_.timing.retry / 2);
  }
}

// False if the source could not be asked.
Task<bool> Worker::rearm() {
  const std::uint64_t number = freeze_number_;
  const Nanos sent = now();
  wire::FreezeRequest request;
  request.move = ref();
  request.token = token_;
  auto answer = co_await shop_.source.freeze(key_.source, std::move(request));
  if (number != freeze_number_) co_return true;
  if (answer) {
    mover_.on_rearmed(sent);
  } else if (answer.error().code() == Errc::conflict) {
    mover_.on_rearm_refused(now());
  }
  co_return answer || answer.error().code() == Errc::conflict;
}

Task<void> Worker::verify() {
  const bool forced = mover_.forced();
  if (!staging_) {
    if (auto opened = co_await open_staging(); !opened) {
      fail(opened.error());
      co_return;
    }
  }
  if (!staging_->reached_source()) {
    mover_.on_verified(now(), jitter(), "the source was never reached", Offset(0), std::nullopt);
    co_return;
  }
  auto check = [forced](Staging& staging) -> Result<Staging::Verdict> {
    NARAD_TRY(staging.cut_to_hwm());
    return staging.verify(!forced);
  };
  auto verdict = co_await job("verify copy", std::move(check));
  if (!verdict) {
    fail(verdict.error());
    co_return;
  }
  mover_.on_verified(now(), jitter(), verdict.value().problem, verdict.value().end,
                     staging_->highest_hwm());
}

Task<void> Worker::fence() {
  const Nanos sent = now();
  wire::FreezeRequest request;
  request.move = ref();
  request.token = token_;
  request.expect_hwm = staging_ ? std::optional(staging_->newest().listing.hwm) : std::nullopt;
  auto answer = co_await shop_.source.freeze(key_.source, std::move(request));
  if (!answer) {
    refuse_or_fail(answer.error());
    co_return;
  }
  mover_.on_fenced(sent);
}

// VER-2.
Task<void> Worker::start_over() {
  // Proof: the fence that told the failed verify from a lapsed freeze has shown that the source has
  // everything up to the HWM it listed.
  auto work = [](Staging& staging) { return staging.start_over(); };
  auto cleared = co_await job("start over", std::move(work));
  if (!cleared) {
    fail(cleared.error());
    co_return;
  }
  mover_.on_started_over(now());
}

struct Worker::Syncs {
  Syncs(Env& env, std::size_t n)
      : outcomes(n, Error(Errc::unavailable, "not synced")), left(n), ended(env) {}
  std::vector<Result<void>> outcomes;
  std::size_t left;
  Event ended;
};

Task<void> Worker::sync_one(Env& env, std::shared_ptr<Syncs> syncs, std::size_t i,
                            std::string path) {
  auto work = [&fs = env.fs, path = std::move(path)] { return sync_file(fs, path); };
  syncs->outcomes[i] = co_await blocking(env, "sync copy", std::move(work));
  if (--syncs->left == 0) syncs->ended.notify_all();
}

// All files at once: traffic waits, and a disk that is asked for several syncs makes one of them.
Task<Result<Staging::Finished>> Worker::finish_copy(Staging::FinishPlan plan) {
  auto write = [plan = std::move(plan)](Staging& staging) { return staging.begin_finish(plan); };
  NARAD_CO_TRY(const auto files, co_await job("write what lies beside a copy", std::move(write)));
  auto syncs = std::make_shared<Syncs>(env_, files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    tasks_.spawn("sync copy", sync_one(env_, syncs, i, files[i]));
  }
  while (syncs->left > 0) co_await syncs->ended.wait();
  auto end = [syncs](Staging& staging) { return staging.end_finish(syncs->outcomes); };
  co_return co_await job("finish copy", std::move(end));
}

Task<void> Worker::finish(Step step) {
  Staging::FinishPlan plan;
  plan.self = key_.self;
  plan.epoch = step.epoch;
  plan.fresh_log = LogId(env_.random.next() | 1);
  plan.now = env_.clock.wall_millis();
  const metastore::ViewPtr view = shop_.metastore.view();
  plan.links = links_of(*view, key_.partition.topic);
  plan.receipt = mover_.receipt(now());
  auto finished = co_await finish_copy(std::move(plan));
  if (!finished) {
    fail(finished.error());
    co_return;
  }
  const Staging::Finished& made = finished.value();
  receipt_ = made.marker.receipt;
  if (made.frontier_capped) {
    NARAD_LOG_WARN(env_.log,
                   "move: the source's consumer frontier lies past the high watermark; capped",
                   {"partition", to_string(key_.partition)}, {"frontier", made.frontier_listed},
                   {"hwm", made.marker.promoted_hwm});
  }
  if (made.cursors_dropped > 0) {
    NARAD_LOG_WARN(
        env_.log,
        "move: fan-out cursors that do not verify were left out; those children begin at "
        "the oldest record",
        {"partition", to_string(key_.partition)}, {"cursors", made.cursors_dropped});
  }
  mover_.on_finished(now());
}

// ---- install and flip
// --------------------------------------------------------------------------------------

Task<void> Worker::install() {
  auto installed =
      co_await shop_.place.install(key_.partition, key_.incarnation, key_.disk, staged_path());
  if (!installed) {
    fail(installed.error());
    co_return;
  }
  if (!installed.value().empty()) ++shop_.stats.set_aside;
  mover_.on_installed(now());
}

ProposalOutcome Worker::outcome_of(const Result<metastore::CommandResult>& result) {
  if (result) {
    return result.value().done() ? ProposalOutcome::done : ProposalOutcome::refused;
  }
  switch (result.error().code()) {
    case Errc::unavailable:
    case Errc::busy:
    case Errc::too_large:
    case Errc::not_leader:
      return ProposalOutcome::not_applied;
    default:
      return ProposalOutcome::unknown;
  }
}

Task<void> Worker::flip(Step step) {
  receipt_ = mover_.receipt_of_flip(now(), std::move(receipt_));
  metastore::CompleteMove entry;
  entry.name = key_.partition.topic;
  entry.incarnation = key_.incarnation;
  entry.partition = key_.partition.partition;
  entry.source_node = key_.source;
  entry.move_id = key_.move_id;
  entry.epoch = step.epoch;
  entry.now = env_.clock.wall_millis();
  entry.receipt = wire::encode(receipt_);
  metastore::Command command = std::move(entry);
  auto result = co_await shop_.metastore.propose(std::move(command));
  mover_.on_proposed(now(), jitter(), outcome_of(result));
}

Task<void> Worker::promote(Step step) {
  metastore::ForcePromote entry;
  entry.name = key_.partition.topic;
  entry.incarnation = key_.incarnation;
  entry.partition = key_.partition.partition;
  entry.source_node = key_.source;
  entry.move_id = key_.move_id;
  entry.dead_mark = step.dead_mark;
  entry.reason = cat("source ", key_.source, " is dead");
  entry.now = env_.clock.wall_millis();
  entry.receipt = wire::encode(receipt_);
  metastore::Command command = std::move(entry);
  auto result = co_await shop_.metastore.propose(std::move(command));
  mover_.on_proposed(now(), jitter(), outcome_of(result));
}

Task<void> Worker::ask_silence() {
  auto silent = co_await shop_.leader.silence(key_.source);
  const RowSeen seen = row_seen(*shop_.metastore.view(), key_);
  if (!silent && silent.error().code() == Errc::not_found && !seen.source_is_member) {
    // It was removed, and nobody waits for it any more.
    silent = Nanos::max();
  }
  if (!silent) {
    fail(silent.error());
    co_return;
  }
  mover_.on_silence(now(), silent.value());
}

Task<void> Worker::let_go(Step step) {
  metastore::Command entry = metastore::VoidFreeze{
      key_.partition.topic, key_.incarnation, key_.partition.partition, key_.source, step.epoch};
  (void)co_await shop_.metastore.propose(std::move(entry));
  mover_.on_let_go(now());
}

// Nothing is lost by it: the source, which lives, has all of it.
Task<void> Worker::give_back() {
  metastore::Command entry =
      metastore::ClearTarget{key_.partition.topic,
                             key_.incarnation,
                             key_.partition.partition,
                             key_.self,
                             key_.move_id,
                             cat(metastore::kTargetFull, mover_.last_error()),
                             env_.clock.wall_millis()};
  (void)co_await shop_.metastore.propose(std::move(entry));
  mover_.on_given_back(now(), jitter());
}

Task<void> Worker::take_off() {
  // Proof: the row, read behind a barrier that was made after the last proposal of this flip, shows
  // that it can never apply (judge_flip).
  auto taken = co_await shop_.place.take_off(key_.partition, key_.incarnation, key_.disk,
                                             staged_path(), key_.move_id);
  if (!taken) {
    refuse_or_fail(taken.error());
    co_return;
  }
  mover_.on_taken_off(now());
}

// ---- reports
// -------------------------------------------------------------------------------------------------

void Worker::tell_notes() {
  const std::string partition = to_string(key_.partition);
  for (const Note note : mover_.take_notes()) {
    switch (note) {
      case Note::not_converged:
        NARAD_LOG_WARN(env_.log,
                       "move: pre-copy did not converge; freezing the source for the rest",
                       {"partition", partition}, {"passes", mover_.passes()});
        break;
      case Note::no_token:
        NARAD_LOG_WARN(env_.log,
                       "move: the source is of an older release and names no freeze: no fence",
                       {"partition", partition}, {"source", key_.source});
        break;
      case Note::hung:
        NARAD_LOG_ERROR(
            env_.log,
            "move: nothing advanced under the freeze; it was let go, so that the source "
            "serves on",
            {"partition", partition}, {"why", mover_.last_error()});
        break;
      case Note::verify_failed:
        NARAD_LOG_WARN(env_.log, "move: staged copy cannot be verified; copying all of it again",
                       {"partition", partition}, {"why", mover_.last_error()});
        break;
      case Note::unverifiable:
        NARAD_LOG_ERROR(env_.log,
                        "move: staged copy cannot be verified; not freezing the source again",
                        {"partition", partition}, {"why", mover_.last_error()});
        break;
      case Note::copy_behind:
        NARAD_LOG_ERROR(env_.log,
                        "move: the source is dead and this node's copy is behind its last high "
                        "watermark, so it cannot force-promote",
                        {"partition", partition}, {"source", key_.source},
                        {"next_offset", mover_.copy_end()}, {"source_hwm", figures_.highest_hwm});
        break;
      case Note::went_back:
        NARAD_LOG_ERROR(
            env_.log,
            "move: the source lists less than it did; nothing staged is touched (is the "
            "right disk mounted there?)",
            {"partition", partition}, {"source", key_.source}, {"staged_hwm", figures_.highest_hwm},
            {"why", mover_.last_error()});
        break;
      case Note::no_room:
        NARAD_LOG_WARN(env_.log, "move: there is no room for it here; it is given back",
                       {"partition", partition}, {"disk", shop_.place.disk(key_.disk).path},
                       {"why", mover_.last_error()});
        break;
      case Note::prepare_refused:
        NARAD_LOG_WARN(env_.log, "move: the topic's directory cannot be prepared yet",
                       {"partition", partition}, {"why", mover_.last_error()});
        break;
      case Note::flip_unresolved:
        NARAD_LOG_WARN(env_.log, "move: the flip is not proposed any more; its freeze is ended",
                       {"partition", partition});
        break;
      case Note::take_off_refused:
        NARAD_LOG_WARN(env_.log, "move: the installed copy is left where it is",
                       {"partition", partition}, {"why", mover_.last_error()});
        break;
    }
  }
}

void Worker::count_landed(std::uint64_t bytes) {
  last_landed_ = now();
  landed_.emplace_back(last_landed_, bytes);
  while (landed_.front().first + kRateWindow < last_landed_) landed_.pop_front();
  shop_.stats.bytes += bytes;
  if (auto it = shop_.reserved.find(key_.move_id); it != shop_.reserved.end()) {
    it->second.bytes -= std::min(bytes, it->second.bytes);
  }
  mover_.on_progress(last_landed_);
}

wire::MoveReport Worker::report() const {
  wire::MoveReport r;
  r.move = ref();
  r.source = key_.source;
  r.phase = std::string(mover_.phase());
  r.bytes_done = figures_.staged;
  r.bytes_total = figures_.listed;
  std::uint64_t recent = 0;
  for (const auto& [at, bytes] : landed_) {
    if (at + kRateWindow >= now()) recent += bytes;
  }
  r.bytes_per_second = recent / kRateSeconds;
  r.write_bytes_per_second = figures_.write_rate;
  r.moved_ms_ago = last_landed_ == Nanos(0) ? 0 : millis(now() - last_landed_);
  r.passes = mover_.passes();
  r.attempts = mover_.attempts();
  r.frozen_ms = millis(mover_.frozen_for(now()));
  r.blocked = std::string(mover_.blocked());
  r.last_error = mover_.last_error();
  return r;
}

}  // namespace narad::moves
