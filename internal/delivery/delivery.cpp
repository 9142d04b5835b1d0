#include "internal/delivery/delivery.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "pkg/async/timeout.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::delivery {
namespace {

constexpr std::uint32_t kReadAheadRecords = 256;
constexpr std::uint64_t kReadAheadBytes = 256 * 1024;
// Of one consume() that finds nothing it may answer.
constexpr int kRoundsMax = 64;
constexpr Nanos kNever = Nanos::max();

Error closing_error(const TopicPartition& partition) {
  return Error(Errc::unavailable, cat(to_string(partition), " is closing on this node; try again"));
}

// Ascending and apart, as the journal wants them.
std::vector<OffsetRun> sorted(std::vector<OffsetRun> runs) {
  std::sort(runs.begin(), runs.end(),
            [](const OffsetRun& a, const OffsetRun& b) { return a.begin < b.begin; });
  std::vector<OffsetRun> out;
  for (const OffsetRun& run : runs) {
    if (!out.empty() && run.begin <= out.back().end) {
      out.back().end = std::max(out.back().end, run.end);
    } else {
      out.push_back(run);
    }
  }
  return out;
}

}  // namespace

struct Delivery::Impl {
  Impl(Env& e, DeliveryConfig c, std::shared_ptr<RecordSource> s, ConsumerFiles::Opened opened)
      : env(e),
        config(std::move(c)),
        source(std::move(s)),
        files(std::move(opened.files)),
        table(opened.positions, first_nonce(env.random.next())),
        ahead(config.read_ahead),
        waiters(std::make_shared<Waiters>()),
        read_lock(env),
        lease_added(env),
        leases_ended(env),
        changed(env),
        hurry(env),
        saved(env),
        call_ended(env),
        tasks(env) {}

  Env& env;
  const DeliveryConfig config;
  const std::shared_ptr<RecordSource> source;
  // Touched only inside jobs of the writer task, one at a time.
  const std::shared_ptr<ConsumerFiles> files;
  LeaseTable table;
  ReadAhead ahead;
  DeliveryStats counters;
  const std::shared_ptr<Waiters> waiters;
  LeaseCaps caps;                    // as last seen
  std::uint64_t dropped_logged = 0;  // of table.dropped_total()
  Mutex read_lock;

  // Expiry: when the timer task is going to look next.
  Nanos armed = kNever;
  Event lease_added;
  Event leases_ended;  // none is out

  // Saving. The writer task alone starts jobs on the files.
  std::vector<OffsetRun> pending;  // acks not handed to a job yet
  bool unsaved = false;            // something is to be saved
  bool must_snapshot = true;       // as the files said after the last job
  bool went_back = false;          // the table forgot positions: the journal is void
  bool failing = false;
  std::uint64_t journal_bytes = 0;
  std::optional<Nanos> last_snapshot;
  std::uint64_t flush_wanted = 0;
  std::uint64_t flush_done = 0;
  Result<void> last_save = ok();
  Event changed;  // `unsaved` or `flush_wanted` or `closing` was set
  Event hurry;    // do not wait for the tick
  Event saved;    // flush_done moved on, or the writer ended
  bool writer_ended = false;

  std::uint64_t offered = 0;  // of the records that are ready: somebody was woken for them

  bool closing = false;
  std::size_t calls = 0;  // consume() in progress
  Event call_ended;
  TaskGroup tasks;

  Nanos now() const { return env.clock.mono(); }

  // After every change of the table or the log: wakes as many as there are records for that nobody
  // was woken for yet. Waking for all that are ready each time would have a few records make
  // everybody look again and again.
  void offer() {
    if (table.in_flight() == 0) leases_ended.notify_all();
    const bool topic_waits = config.topic_waiters && config.topic_waiters->wanted();
    if (!topic_waits && waiters->size() == 0) {
      offered = 0;  // whoever comes looks first
      return;
    }
    const std::uint64_t count = table.ready(now(), source->bounds(), caps);
    const std::uint64_t more = count - std::min(count, offered);
    offered = count;
    waiters->wake(more);
    if (topic_waits) config.topic_waiters->wake(more);
  }
  // As offer(), when a lease may run out before the timer task looks again.
  void offer_and_arm() {
    offer();
    if (auto next = table.next_expiry(); next && *next < armed) lease_added.notify_all();
  }
  void log_dropped();

  // ---- saving
  void note_ack(Offset offset) {
    ++counters.unsaved_acks;
    if (!pending.empty() && pending.back().end == offset) {
      pending.back().end = offset.next();
    } else {
      pending.push_back({offset, offset.next()});
    }
    note_unsaved();
  }
  void note_unsaved() {
    if (unsaved) return;
    unsaved = true;
    changed.notify_all();
  }
  bool snapshot_due(bool last) const {
    if (must_snapshot || went_back || last || journal_bytes >= kJournalBytesMax) return true;
    return journal_bytes >= kJournalBytesSnapshot &&
           (!last_snapshot || now() - *last_snapshot >= kSnapshotInterval);
  }

  SettleStatus settle(SettleMode mode, Lease lease, LeaseCaps caps, Nanos visibility, Nanos at);
  Task<Result<void>> flush_now();
  Task<Result<void>> go_back_to_hwm();

  // Tasks. The delivery outlives them (close() waits).
  static Task<void> write_states(Impl& me);
  static Task<void> take_back_expired(Impl& me);
  static Task<void> watch_commits(Impl& me);
  static Task<Result<void>> save(Impl& me, bool last);

  // Leases of one consume() that are not answered yet: given back unless they are.
  struct Taken;
  Task<Result<void>> read_taken(Taken& taken, ConsumeOptions options, ConsumeResult& out);
  Result<void> accept(Taken& taken, ReadBatch batch, ConsumeOptions options, ConsumeResult& out);
  void pass_lost(Taken& taken, const std::vector<OffsetRun>& runs);
};

// ---- opening and closing ------------------------------------------------------------------

Task<Result<std::shared_ptr<Delivery>>> Delivery::open(Env& env, DeliveryConfig config,
                                                       std::shared_ptr<RecordSource> source) {
  FileSystem* fs = &env.fs;
  const Offset hwm = source->bounds().hwm;
  auto job = [fs, directory = config.directory, identity = config.identity, hwm] {
    return ConsumerFiles::open(*fs, directory, identity, hwm);
  };
  auto result = co_await blocking(env, "open consumer state", std::move(job));
  if (!result) co_return result.error().with_context(to_string(config.partition));
  ConsumerFiles::Opened opened = std::move(result).value();

  const ConsumerStateReport report = std::move(opened.report);
  for (const std::string& problem : report.unreadable) {
    NARAD_LOG_WARN(env.log, "consumer state is not whole", {"topic", config.partition.topic},
                   {"partition", config.partition.partition}, {"problem", problem});
  }
  if (!report.torn.empty()) {
    NARAD_LOG_INFO(env.log, "consumer state ends in an unfinished write",
                   {"topic", config.partition.topic}, {"partition", config.partition.partition},
                   {"what", report.torn});
  }
  if (report.clamped) {
    NARAD_LOG_WARN(env.log, "consumer positions lay above the high watermark and were taken back",
                   {"topic", config.partition.topic}, {"partition", config.partition.partition},
                   {"frontier", report.frontier_before}, {"hwm", hwm});
  }
  auto impl = std::make_unique<Impl>(env, std::move(config), std::move(source), std::move(opened));
  impl->counters.state_unreadable_total = report.unreadable.size();
  Impl& me = *impl;
  std::shared_ptr<Delivery> out(new Delivery(std::move(impl)));
  me.tasks.spawn("delivery: save", Impl::write_states(me));
  me.tasks.spawn("delivery: expire", Impl::take_back_expired(me));
  me.tasks.spawn("delivery: watch commits", Impl::watch_commits(me));
  co_return out;
}

Delivery::Delivery(std::unique_ptr<Impl> impl) : impl_(std::move(impl)), waiters_(impl_->waiters) {}

Delivery::~Delivery() = default;  // ~TaskGroup asserts that close() was called

Task<Result<void>> Delivery::close() {
  auto self = shared_from_this();
  Impl& me = *impl_;
  me.closing = true;
  wake_all();
  me.leases_ended.notify_all();
  me.hurry.notify_all();
  while (me.calls > 0) co_await me.call_ended.wait();
  me.changed.notify_all();
  me.hurry.notify_all();
  while (!me.writer_ended) co_await me.saved.wait();
  co_await me.tasks.stop();
  co_return me.last_save;
}

// ---- consume ------------------------------------------------------------------------------

struct Delivery::Impl::Taken {
  explicit Taken(Impl& i) : impl(i) { ++impl.calls; }
  Taken(const Taken&) = delete;
  ~Taken() {
    give_back_rest();
    if (--impl.calls == 0) impl.call_ended.notify_all();
  }
  bool done() const { return next == leases.size(); }
  void give_back_rest() {
    for (; next < leases.size(); ++next) (void)impl.table.nack(impl.now(), leases[next]);
    impl.offer();
  }

  Impl& impl;
  std::vector<Lease> leases;  // ascending
  std::size_t next = 0;       // those before it are answered or lost
  std::uint64_t bytes = 0;    // of the records answered
};

Task<Result<ConsumeResult>> Delivery::consume(ConsumeOptions options) {
  NARAD_ASSERT(options.records_max > 0);
  auto self = shared_from_this();
  Impl& me = *impl_;
  ConsumeResult out;
  if (me.closing) co_return closing_error(me.config.partition);
  me.caps = options.caps;
  Impl::Taken taken(me);
  // Once more whenever all that was leased proved unreadable, or ran out while it was read.
  for (int round = 0; out.records.empty() && round < kRoundsMax; ++round) {
    if (options.may_lease && !options.may_lease()) break;
    if (me.source->bounds().hwm < me.table.position_end()) {
      auto stored = co_await me.go_back_to_hwm();
      if (!stored) co_return stored.error();
    }
    const LogBounds bounds = me.source->bounds();
    taken.leases.clear();
    taken.next = 0;
    me.offer();  // what has come since: taking hides it
    out.outcome = me.table.reserve(me.now(), bounds, options.caps, options.visibility,
                                   options.records_max, taken.leases);
    me.log_dropped();
    me.offer_and_arm();
    if (out.outcome != ReserveOutcome::leased) break;
    auto read = co_await me.read_taken(taken, options, out);
    if (!read && out.records.empty()) co_return read.error();
    if (me.closing) {
      // The leases end with the delivery, so nobody could settle them.
      co_return closing_error(me.config.partition);
    }
    taken.give_back_rest();
    if (out.records.empty()) out.outcome = ReserveOutcome::all_reserved;
    // Not because there is nothing: somebody looks again.
    if (round + 1 == kRoundsMax) me.offered = 0;
  }
  for (const LeasedRecord& leased : out.records) {
    me.counters.delivered_bytes_total += leased.record.payload.size();
  }
  me.counters.delivered_total += out.records.size();
  co_return out;
}

// Fills `out` with the records of the leases, from what was read ahead or from the log. Stops at
// bytes_max with the rest still taken. One read at a time for the partition: who comes while one is
// on its way mostly finds what they need in its answer.
Task<Result<void>> Delivery::Impl::read_taken(Taken& taken, ConsumeOptions options,
                                              ConsumeResult& out) {
  const auto take_from_memory = [](Taken& from, ReadAhead& ahead, std::uint64_t bytes_max,
                                   std::vector<LeasedRecord>& to) {
    while (!from.done()) {
      if (!to.empty() && from.bytes >= bytes_max) return;
      const Lease lease = from.leases[from.next];
      auto record = ahead.take(lease.offset);
      if (!record) return;
      from.bytes += record->key.size() + record->payload.size();
      to.push_back(LeasedRecord{std::move(*record), lease.nonce});
      ++from.next;
    }
  };
  out.records.reserve(taken.leases.size());
  take_from_memory(taken, ahead, options.bytes_max, out.records);
  if (taken.done()) co_return ok();

  auto lock = co_await read_lock.lock();
  while (!taken.done()) {
    // Leases that ran out while we waited belong to somebody else.
    while (!taken.done() && !table.is_live(now(), taken.leases[taken.next])) ++taken.next;
    take_from_memory(taken, ahead, options.bytes_max, out.records);
    if (taken.done() || (!out.records.empty() && taken.bytes >= options.bytes_max)) break;

    const Offset from = taken.leases[taken.next].offset;
    std::uint32_t run = 1;
    while (taken.next + run < taken.leases.size() &&
           taken.leases[taken.next + run].offset == from.plus(run)) {
      ++run;
    }
    std::uint32_t records_max = run;
    std::uint64_t bytes_max = options.bytes_max - taken.bytes;
    if (from.plus(run) == table.fresh() && ahead.has_room(kReadAheadBytes)) {
      records_max = std::max(records_max, kReadAheadRecords);
      bytes_max = std::max(bytes_max, kReadAheadBytes);
    }
    auto batch = co_await source->read(from, records_max, bytes_max);
    if (!batch) {
      if (batch.error().code() == Errc::gone && source->bounds().oldest > from) {
        // Retention was faster. The frontier follows with the next reserve.
        while (!taken.done() && taken.leases[taken.next].offset < source->bounds().oldest) {
          (void)table.nack(now(), taken.leases[taken.next++]);
        }
        continue;
      }
      co_return batch.error().with_context(cat("reading ", to_string(config.partition)));
    }
    if (batch.value().next <= from) {
      co_return Error(Errc::internal, cat("reading ", to_string(config.partition), " at offset ",
                                          from, " made no progress"));
    }
    NARAD_CO_TRY(accept(taken, std::move(batch).value(), options, out));
  }
  co_return ok();
}

// Sorts a stretch of the log: records of our leases into the answer, lost ones out of the table,
// and what was read beyond them into memory.
Result<void> Delivery::Impl::accept(Taken& taken, ReadBatch batch, ConsumeOptions options,
                                    ConsumeResult& out) {
  if (!batch.lost.empty()) pass_lost(taken, batch.lost);
  const Nanos at = now();
  std::size_t n = 0;  // of the batch
  while (!taken.done() && taken.leases[taken.next].offset < batch.next) {
    if (!out.records.empty() && taken.bytes >= options.bytes_max) break;
    const Lease lease = taken.leases[taken.next];
    if (!table.is_live(at, lease)) {  // lost, or it ran out while we read
      ++taken.next;
      continue;
    }
    while (n < batch.records.size() && batch.records[n].offset < lease.offset) ++n;
    if (n == batch.records.size() || batch.records[n].offset != lease.offset) {
      return Error(Errc::internal, cat("reading ", to_string(config.partition), ": offset ",
                                       lease.offset, " is neither a record nor lost"));
    }
    StoredRecord& record = batch.records[n++];
    taken.bytes += record.key.size() + record.payload.size();
    out.records.push_back(LeasedRecord{std::move(record), lease.nonce});
    ++taken.next;
  }
  ahead.put(std::move(batch.records), n);
  return ok();
}

void Delivery::Impl::pass_lost(Taken& taken, const std::vector<OffsetRun>& runs) {
  const Nanos at = now();
  const Offset hwm = source->bounds().hwm;
  std::uint64_t lost = 0;
  offer();  // before there is less
  for (const OffsetRun& run : runs) {
    for (std::size_t n = taken.next; n < taken.leases.size(); ++n) {
      const Lease lease = taken.leases[n];
      if (run.begin <= lease.offset && lease.offset < run.end && table.lose(at, lease)) ++lost;
    }
    lost += table.mark_lost(run, hwm);
  }
  if (lost == 0) return;
  counters.corrupt_skipped_total += lost;
  note_unsaved();  // the frontier may have moved
  NARAD_LOG_ERROR(env.log, "records cannot be read and are passed over",
                  {"topic", config.partition.topic}, {"partition", config.partition.partition},
                  {"records", lost}, {"first", runs.front().begin}, {"end", runs.back().end});
}

void Delivery::Impl::log_dropped() {
  const std::uint64_t dropped = table.dropped_total() - dropped_logged;
  if (dropped == 0) return;
  dropped_logged = table.dropped_total();
  NARAD_LOG_WARN(env.log, "retention deleted records that no consumer had acked",
                 {"topic", config.partition.topic}, {"partition", config.partition.partition},
                 {"records", dropped}, {"frontier", table.frontier()});
}

// The log ends below what is settled. That is a fault of the log's owner (an HWM never goes back
// while it is open), and doubt delivers again: forget what lies above, on disk first.
Task<Result<void>> Delivery::Impl::go_back_to_hwm() {
  const Offset hwm = source->bounds().hwm;
  NARAD_LOG_ERROR(env.log, "the high watermark went back; what was acked above it is void",
                  {"topic", config.partition.topic}, {"partition", config.partition.partition},
                  {"frontier", table.frontier()}, {"hwm", hwm});
  table.clamp(hwm);
  ahead.clear();
  went_back = true;
  pending.clear();
  note_unsaved();
  co_return co_await flush_now();
}

Task<bool> Delivery::wait_for_messages(LeaseCaps caps, Deadline deadline) {
  auto self = shared_from_this();
  Impl& me = *impl_;
  Waiters::Ticket ticket(me.env, waiters_);
  for (;;) {
    if (me.closing) co_return false;
    me.caps = caps;
    if (me.table.ready(me.now(), me.source->bounds(), caps) > 0) {
      ticket.used();
      co_return true;
    }
    if (!co_await ticket.wait(deadline)) co_return false;
  }
}

Task<bool> Delivery::wait_for_leases(Deadline deadline) {
  auto self = shared_from_this();
  Impl& me = *impl_;
  for (;;) {
    me.table.expire(me.now());
    if (me.table.in_flight() == 0) co_return true;
    if (me.closing || deadline.passed(me.env)) co_return false;
    co_await me.leases_ended.wait_for(deadline.left(me.env));
  }
}

void Delivery::wake_all() {
  impl_->waiters->wake_all(false);
  if (const auto& topic = impl_->config.topic_waiters) topic->wake_all(false);
}

// ---- settling -----------------------------------------------------------------------------

SettleStatus Delivery::Impl::settle(SettleMode mode, Lease lease, LeaseCaps caps, Nanos visibility,
                                    Nanos at) {
  SettleStatus status = SettleStatus::stale;
  if (closing) return status;
  switch (mode) {
    case SettleMode::ack:
      status = table.ack(at, lease, caps);
      if (status == SettleStatus::done) {
        ++counters.acked_total;
        note_ack(lease.offset);
      } else if (status == SettleStatus::ahead_full) {
        ++counters.ack_rejected_total;
      }
      break;
    case SettleMode::extend:
      status = table.extend(at, lease, visibility);
      if (status == SettleStatus::done) ++counters.extended_total;
      break;
    case SettleMode::nack:
      status = table.nack(at, lease);
      if (status == SettleStatus::done) ++counters.nacked_total;
      break;
  }
  return status;
}

std::vector<SettleStatus> Delivery::settle_many(SettleMode mode, const std::vector<Lease>& leases,
                                                LeaseCaps caps, Nanos visibility) {
  Impl& me = *impl_;
  std::vector<SettleStatus> out;
  out.reserve(leases.size());
  const Nanos at = me.now();
  for (const Lease& lease : leases) out.push_back(me.settle(mode, lease, caps, visibility, at));
  me.offer_and_arm();
  return out;
}

SettleStatus Delivery::ack(Lease lease, LeaseCaps caps) {
  const SettleStatus status = impl_->settle(SettleMode::ack, lease, caps, Nanos(0), impl_->now());
  impl_->offer();
  return status;
}

SettleStatus Delivery::extend(Lease lease, Nanos visibility) {
  const SettleStatus status =
      impl_->settle(SettleMode::extend, lease, LeaseCaps{}, visibility, impl_->now());
  impl_->offer_and_arm();
  return status;
}

SettleStatus Delivery::nack(Lease lease) {
  const SettleStatus status =
      impl_->settle(SettleMode::nack, lease, LeaseCaps{}, Nanos(0), impl_->now());
  impl_->offer();
  return status;
}

ConsumerPositions Delivery::positions() const { return impl_->table.positions(); }

DeliveryStats Delivery::stats() {
  Impl& me = *impl_;
  me.table.expire(me.now());
  const LogBounds bounds = me.source->bounds();
  DeliveryStats out = me.counters;
  out.in_flight = me.table.in_flight();
  out.acked_ahead = me.table.acked_ahead();
  out.frontier = me.table.frontier();
  out.lag = bounds.hwm > out.frontier ? bounds.hwm.minus(out.frontier) : 0;
  out.dropped = me.table.dropped_below(std::min(bounds.oldest, bounds.hwm));
  out.dropped_total = me.table.dropped_total();
  return out;
}

// ---- background tasks ---------------------------------------------------------------------

Task<void> Delivery::Impl::watch_commits(Impl& me) {
  for (;;) {
    co_await me.source->committed().wait();
    me.offer();
  }
}

Task<void> Delivery::Impl::take_back_expired(Impl& me) {
  for (;;) {
    const std::optional<Nanos> next = me.table.next_expiry();
    me.armed = next.value_or(kNever);
    if (!next) {
      co_await me.lease_added.wait();
    } else if (*next > me.now()) {
      co_await me.lease_added.wait_for(*next - me.now());
    }
    me.table.expire(me.now());
    me.offer();
  }
}

Task<Result<void>> Delivery::Impl::flush_now() {
  if (writer_ended) co_return last_save;
  const std::uint64_t mine = ++flush_wanted;
  changed.notify_all();
  hurry.notify_all();
  while (flush_done < mine && !writer_ended) co_await saved.wait();
  co_return last_save;
}

Task<Result<void>> Delivery::flush() {
  auto self = shared_from_this();
  auto result = co_await impl_->flush_now();
  co_return result;
}

// The one place that starts jobs on the files. It is never cancelled while a job runs: close() asks
// it to end and waits.
Task<void> Delivery::Impl::write_states(Impl& me) {
  for (bool last = false; !last;) {
    while (!me.unsaved && me.flush_wanted == me.flush_done && !me.closing) {
      co_await me.changed.wait();
    }
    const auto pressed = [&me] { return me.flush_wanted != me.flush_done || me.closing; };
    if (!pressed()) co_await me.hurry.wait_for(me.failing ? kJournalRetry : kJournalTick);
    // The last one is when no call runs any more that could settle something.
    while (me.closing && me.calls > 0 && me.flush_wanted == me.flush_done) {
      co_await me.changed.wait();
    }
    last = me.closing && me.calls == 0;
    const std::uint64_t wanted = me.flush_wanted;
    me.last_save = co_await save(me, last);
    me.flush_done = wanted;
    me.writer_ended = last;
    me.saved.notify_all();
  }
}

Task<Result<void>> Delivery::Impl::save(Impl& me, bool last) {
  if (!me.unsaved && !(last && me.journal_bytes > 0)) co_return ok();
  const bool snapshot = me.snapshot_due(last);
  const std::uint64_t acks = me.counters.unsaved_acks;
  std::vector<OffsetRun> runs = sorted(std::exchange(me.pending, {}));
  me.unsaved = false;
  me.went_back = false;
  if (!snapshot && runs.empty()) co_return ok();  // lost records alone are found again

  struct Saved {
    Result<void> result;
    bool must_snapshot;
    std::uint64_t journal_bytes;
  };
  auto job = [files = me.files, snapshot, runs = std::move(runs),
              positions = snapshot ? me.table.positions() : ConsumerPositions{}] {
    Result<void> result = snapshot ? files->snapshot(positions) : files->append(runs);
    return Saved{std::move(result), files->must_snapshot(), files->journal_bytes()};
  };
  Saved saved = co_await blocking(me.env, "save consumer state", std::move(job));

  me.must_snapshot = saved.must_snapshot;
  me.journal_bytes = saved.journal_bytes;
  if (saved.result) {
    me.counters.unsaved_acks -= acks;
    if (snapshot) me.last_snapshot = me.now();
    if (std::exchange(me.failing, false)) {
      NARAD_LOG_INFO(me.env.log, "acks are stored again", {"topic", me.config.partition.topic},
                     {"partition", me.config.partition.partition});
    }
  } else {
    me.unsaved = true;
    ++me.counters.write_failures_total;
    if (!std::exchange(me.failing, true)) {
      NARAD_LOG_ERROR(
          me.env.log, "acks cannot be stored; they would be delivered again after a crash",
          {"topic", me.config.partition.topic}, {"partition", me.config.partition.partition},
          {"error", saved.result.error()});
    }
  }
  co_return std::move(saved.result);
}

}  // namespace narad::delivery
