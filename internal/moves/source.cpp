#include "internal/moves/source.h"

#include <algorithm>
#include <map>
#include <set>

#include "internal/moves/freeze_gate.h"
#include "pkg/async/shield.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::moves {

using metastore::Command;
using metastore::ViewPtr;

namespace {

// The row of that life of the topic, or null.
const Assignment* row_of(const metastore::State& state, const TopicPartition& id,
                         Incarnation incarnation) {
  const Assignment* row = state.assignment(id.topic, id.partition);
  return row != nullptr && row->incarnation == incarnation ? row : nullptr;
}

Error lives_elsewhere(const TopicPartition& id) {
  return Error(Errc::not_owner, cat("partition ", to_string(id), " is not owned by this node"));
}

}  // namespace

struct Source::Impl {
  // The gate of one ownership, and what this node does about it.
  struct Entry {
    Entry(TopicPartition i, Ownership o) : id(std::move(i)), gate(std::move(o)) {}
    const TopicPartition id;
    FreezeGate gate;
    // What it was last shown: nothing else can have changed while these stand.
    RaftIndex topics_seen{0}, assignments_seen{0};
    bool known_seen = false;
    bool voiding = false;  // a task does it
    std::optional<Nanos> closed_since;
    std::optional<Nanos> due_seen;
  };
  using EntryPtr = std::shared_ptr<Entry>;
  class Gate;

  Impl(Env& e, std::string id, metastore::Proposer& m, bool peers,
       std::function<std::optional<LeaseProof>()> l, SourceTiming t)
      : env(e),
        node_id(std::move(id)),
        metastore(m),
        has_peers(peers),
        lease(std::move(l)),
        timing(t),
        known(!peers),
        closed_changed(e),
        moved_away(e),
        shield(e),
        tasks(e) {}

  // ---- looking
  EntryPtr entry_of(const TopicPartition& id, Incarnation incarnation);
  void look(const EntryPtr& entry);
  void act(const EntryPtr& entry);
  Result<void> lease_holds(const Entry& entry) const;

  // ---- what follows
  Task<void> follow();
  Task<void> become_known();
  Task<void> close_moved();
  void look_at_changes(const metastore::State& before, const metastore::State& now);
  void look_at_row(const TopicPartition& id, const Assignment* before, const Assignment* now);
  Task<void> watch_time();
  Task<void> void_until_over(EntryPtr entry);

  // ---- calls
  Result<EntryPtr> named(const wire::MoveRef& move);
  Result<EntryPtr> owned(const wire::MoveRef& move);
  Task<Result<wire::FreezeAnswer>> arm(wire::MoveRef move);
  Task<Result<void>> propose_arm(EntryPtr entry, FreezeAttempt attempt, RaftIndex move);
  Task<Result<wire::FreezeAnswer>> settle(EntryPtr entry, FreezeAttempt attempt,
                                          wire::MoveRef move);
  Task<Result<wire::FreezeAnswer>> extend(wire::FreezeRequest request);

  Nanos now() const { return env.clock.mono(); }
  std::string draw_nonce() { return to_hex16(env.random.next()) + to_hex16(env.random.next()); }

  Env& env;
  const std::string node_id;
  metastore::Proposer& metastore;
  const bool has_peers;
  const std::function<std::optional<LeaseProof>()> lease;
  const SourceTiming timing;
  SourcePartitions* partitions = nullptr;
  // A barrier made after this start has been applied. A group of one has applied all it ever
  // answered when its metastore opens.
  bool known;
  std::map<TopicPartition, EntryPtr> entries;
  std::set<TopicPartition> closed;  // those of the entries that take no commits
  Event closed_changed;
  bool moved = false;  // some partition has another home: what is open here may have to close
  Event moved_away;
  SourceStats counters;
  Shield shield;  // freezes: a caller that goes away does not leave one half made
  TaskGroup tasks;
};

// ---- gates -------------------------------------------------------------------------------------

class Source::Impl::Gate final : public CommitGate {
 public:
  // `entry` null: that ownership was over before the partition was open.
  Gate(Impl& source, EntryPtr entry) : source_(source), entry_(std::move(entry)) {}

  Result<void> before_append(const CommitBatch&) override {
    NARAD_TRY(look());
    if (auto may = entry_->gate.may_append(); !may) {
      ++source_.counters.refused_gate;
      return may;
    }
    auto held = source_.lease_holds(*entry_);
    if (!held) ++source_.counters.refused_lease;
    return held;
  }

  Result<void> after_sync() override {
    ++source_.counters.commits;
    NARAD_TRY(look());
    auto may = entry_->gate.may_publish();
    if (may) may = source_.lease_holds(*entry_);
    if (!may) ++source_.counters.commits_failed_late;
    return may;
  }

 private:
  Result<void> look() {
    if (!entry_) return Error(Errc::not_owner, "the partition has another home now");
    source_.look(entry_);
    return ok();
  }

  Impl& source_;
  const EntryPtr entry_;
};

Result<void> Source::Impl::lease_holds(const Entry& entry) const {
  if (!has_peers || !entry.gate.needs_lease()) return ok();
  const LeaseMoment moment{env.clock.boot(), metastore.view()->applied};
  return check_lease(lease(), LeaseRule{timing.move_lease}, moment);
}

// Shows the gate what is applied and what time it is, and does what follows from it.
void Source::Impl::look(const EntryPtr& entry) {
  const ViewPtr view = metastore.view();
  const bool news = view->versions.topics != entry->topics_seen ||
                    view->versions.assignments != entry->assignments_seen ||
                    known != entry->known_seen;
  if (news) {
    entry->topics_seen = view->versions.topics;
    entry->assignments_seen = view->versions.assignments;
    entry->known_seen = known;
    entry->gate.see(row_of(*view, entry->id, entry->gate.ownership().incarnation), known);
  }
  entry->gate.tick(now());
  act(entry);
}

void Source::Impl::act(const EntryPtr& entry) {
  const FreezeGate& gate = entry->gate;
  if (gate.to_void() && !std::exchange(entry->voiding, true)) {
    tasks.spawn("void freeze", void_until_over(entry));
  }
  const bool was_closed = entry->closed_since.has_value();
  const bool is_closed = !gate.may_lease().has_value();
  const bool due_moved = std::exchange(entry->due_seen, gate.due()) != gate.due();
  if (due_moved || was_closed != is_closed) closed_changed.notify_all();
  if (was_closed == is_closed && gate.phase() != GatePhase::gone) return;
  if (is_closed && gate.phase() != GatePhase::gone) {
    entry->closed_since = now();
    closed.insert(entry->id);
    return;
  }
  if (!was_closed) return;
  counters.last_frozen = now() - *entry->closed_since;
  NARAD_LOG_INFO(env.log, "move: a freeze has ended", {"partition", to_string(entry->id)},
                 {"took_no_commits_us", counters.last_frozen / std::chrono::microseconds(1)},
                 {"moved", gate.phase() == GatePhase::gone});
  entry->closed_since.reset();
  closed.erase(entry->id);
  if (partitions != nullptr) partitions->wake(entry->id);
}

// The present ownership's, if it is this node's; else null.
Source::Impl::EntryPtr Source::Impl::entry_of(const TopicPartition& id, Incarnation incarnation) {
  if (auto it = entries.find(id); it != entries.end()) {
    const EntryPtr entry = it->second;
    look(entry);
    const bool over = entry->gate.phase() == GatePhase::gone;
    if (!over) return entry->gate.ownership().incarnation == incarnation ? entry : nullptr;
    entries.erase(id);
  }
  const ViewPtr view = metastore.view();
  const Assignment* row = row_of(*view, id, incarnation);
  if (row == nullptr || row->owner_node != node_id) return nullptr;
  auto entry = std::make_shared<Entry>(id, ownership_of(*row));
  entries.emplace(id, entry);
  look(entry);
  return entry;
}

// ---- following ---------------------------------------------------------------------------------

Task<void> Source::Impl::become_known() {
  while (!known) {
    auto reached = co_await metastore.barrier(timing.barrier_deadline);
    known = reached.has_value();
    if (!known) co_await metastore.changed().wait_for(timing.retry);
  }
}

// From the start on, so that a partition that is never used again is thawed, too.
Task<void> Source::Impl::follow() {
  co_await become_known();
  moved = true;  // what was opened before may live elsewhere
  moved_away.notify_all();
  ViewPtr seen = std::make_shared<const metastore::State>();
  for (;;) {
    const ViewPtr view = metastore.view();
    const ViewPtr before = std::exchange(seen, view);
    if (view->versions.assignments != before->versions.assignments ||
        view->versions.topics != before->versions.topics) {
      look_at_changes(*before, *view);
    }
    if (metastore.view() == seen) co_await metastore.changed().wait();
  }
}

void Source::Impl::look_at_changes(const metastore::State& before, const metastore::State& now) {
  const auto at = [](const metastore::TopicRow* row, std::size_t p) {
    return row != nullptr && p < row->assignments.size() ? &row->assignments[p] : nullptr;
  };
  before.topics.diff(now.topics, [&](const auto* old_row, const auto* new_row) {
    const auto* any = new_row != nullptr ? new_row : old_row;
    const std::size_t count = std::max(old_row != nullptr ? old_row->assignments.size() : 0,
                                       new_row != nullptr ? new_row->assignments.size() : 0);
    for (std::size_t p = 0; p < count; ++p) {
      const Assignment* was = at(old_row, p);
      const Assignment* is = at(new_row, p);
      if (was != nullptr && is != nullptr && *was == *is) continue;
      look_at_row({any->topic.name, PartitionId(static_cast<std::uint32_t>(p))}, was, is);
    }
  });
}

void Source::Impl::look_at_row(const TopicPartition& id, const Assignment* before,
                               const Assignment* now) {
  if (auto it = entries.find(id); it != entries.end()) {
    const EntryPtr entry = it->second;
    look(entry);
    if (entry->gate.phase() == GatePhase::gone) entries.erase(id);
  }
  // Armed by an earlier process of this node: voided before anybody asks for the partition.
  if (now != nullptr && now->owner_node == node_id && now->freeze_armed) {
    (void)entry_of(id, now->incarnation);
  }
  if (before == nullptr || now == nullptr || ownership_of(*before) == ownership_of(*now)) return;
  partitions->wake(id);
  moved = true;
  moved_away.notify_all();
}

Task<void> Source::Impl::close_moved() {
  for (;;) {
    while (!std::exchange(moved, false)) co_await moved_away.wait();
    co_await partitions->close_elsewhere();
  }
}

Task<void> Source::Impl::watch_time() {
  for (;;) {
    std::optional<Nanos> next;
    for (const TopicPartition& id : std::set<TopicPartition>(closed)) {
      const auto it = entries.find(id);
      if (it == entries.end()) continue;
      const EntryPtr entry = it->second;
      look(entry);
      const auto due = entry->gate.due();
      if (due && (!next || *due < *next)) next = due;
    }
    if (next) {
      const Nanos delay = *next - now();
      co_await closed_changed.wait_for(delay);
    } else {
      co_await closed_changed.wait();
    }
  }
}

// A proposal that was lost, or met no leader, is made again; only the row ends it.
Task<void> Source::Impl::void_until_over(EntryPtr entry) {
  for (;;) {
    look(entry);
    const auto epoch = entry->gate.to_void();
    if (!epoch) break;
    metastore::VoidFreeze freeze;
    freeze.name = entry->id.topic;
    freeze.incarnation = entry->gate.ownership().incarnation;
    freeze.partition = entry->id.partition;
    freeze.owner_node = node_id;
    freeze.epoch = *epoch;
    Command command = std::move(freeze);
    auto result = co_await metastore.propose(std::move(command));
    look(entry);
    if (entry->gate.to_void() != epoch) {
      if (result && result.value().done()) ++counters.voids;
      continue;
    }
    co_await metastore.changed().wait_for(timing.retry);
  }
  entry->voiding = false;
}

// ---- calls -------------------------------------------------------------------------------------

// The gate of a partition that lives here.
Result<Source::Impl::EntryPtr> Source::Impl::owned(const wire::MoveRef& move) {
  if (EntryPtr entry = entry_of(move.partition, move.incarnation)) return entry;
  if (!metastore.caught_up()) {
    return Error(Errc::unavailable,
                 "this node does not know that partition as its own, and hears of no leader");
  }
  const ViewPtr view = metastore.view();
  const auto* topic = view->topics.find(move.partition.topic);
  if (topic == nullptr) return Error(Errc::not_found, "topic not found");
  if (topic->topic.incarnation != move.incarnation) {
    return Error(Errc::gone, cat("topic ", move.partition.topic, " was deleted and created again"));
  }
  if (move.partition.partition.value() >= topic->assignments.size()) {
    return Error(Errc::not_found, cat("no partition ", to_string(move.partition)));
  }
  return lives_elsewhere(move.partition);
}

// The same, and the move is its present one. Whoever is served under it has a row here that asks
// for a move lease.
Result<Source::Impl::EntryPtr> Source::Impl::named(const wire::MoveRef& move) {
  NARAD_TRY(EntryPtr entry, owned(move));
  NARAD_TRY(entry->gate.may_settle());  // it knows what it shows
  const RaftIndex present = entry->gate.present_move();
  if (move.move_id == present && present != RaftIndex(0)) return entry;
  if (!metastore.caught_up()) {
    return Error(Errc::unavailable,
                 cat("this node does not know of move ", move.move_id, ", and hears of no leader"));
  }
  return Error(Errc::conflict,
               cat("move ", move.move_id, " of partition ", to_string(move.partition), " is over"));
}

Task<Result<void>> Source::Impl::propose_arm(EntryPtr entry, FreezeAttempt attempt,
                                             RaftIndex move) {
  metastore::ArmFreeze freeze;
  freeze.name = entry->id.topic;
  freeze.incarnation = entry->gate.ownership().incarnation;
  freeze.partition = entry->id.partition;
  freeze.owner_node = node_id;
  freeze.move_id = move;
  Command command = std::move(freeze);
  auto result = co_await metastore.propose(std::move(command));
  look(entry);
  if (result && result.value().done()) {
    const auto& row = std::get<metastore::AssignmentRow>(result.value().row).assignment;
    entry->gate.armed(attempt, {row.freeze_epoch, now() + timing.freeze_ttl});
    act(entry);
    co_return ok();
  }
  entry->gate.not_armed(attempt);
  act(entry);
  if (result) co_return metastore::to_error(result.value());
  co_return Error(Errc::unavailable, cat("the freeze could not be armed: ", result.error().text()));
}

Task<Result<wire::FreezeAnswer>> Source::Impl::arm(wire::MoveRef move) {
  NARAD_CO_TRY(EntryPtr entry, owned(move));
  NARAD_CO_TRY(FreezeAttempt attempt, entry->gate.ask(move.move_id, metastore.caught_up()));
  act(entry);
  NARAD_CO_TRY(co_await propose_arm(entry, attempt, move.move_id));
  co_return co_await settle(std::move(entry), attempt, std::move(move));
}

// Leases come to their end, and so do commits that passed before; what there is then is reported.
Task<Result<wire::FreezeAnswer>> Source::Impl::settle(EntryPtr entry, FreezeAttempt attempt,
                                                      wire::MoveRef move) {
  const Nanos drain = std::min(timing.lease_drain, timing.freeze_ttl / 4);
  co_await partitions->wait_for_leases(entry->id, drain);
  auto listing = co_await partitions->list(move, true);
  look(entry);
  if (!listing) {
    entry->gate.give_up(attempt);
    act(entry);
    co_return listing.error();
  }
  NARAD_CO_TRY(wire::FreezeToken token,
               entry->gate.report(attempt, draw_nonce(), now() + timing.freeze_ttl));
  act(entry);
  ++counters.freezes;
  wire::FreezeAnswer answer;
  answer.token = std::move(token);
  answer.ttl_ms = static_cast<std::uint64_t>(timing.freeze_ttl / std::chrono::milliseconds(1));
  answer.listing = std::move(listing.value());
  co_return answer;
}

// Extends, and with an expected watermark is the fence.
Task<Result<wire::FreezeAnswer>> Source::Impl::extend(wire::FreezeRequest request) {
  NARAD_CO_TRY(EntryPtr entry, owned(request.move));
  if (request.expect_hwm) {
    NARAD_CO_TRY(entry->gate.holds(*request.token, now()));
    NARAD_CO_TRY(Offset hwm, co_await partitions->settled_hwm(request.move));
    look(entry);
    NARAD_CO_TRY(entry->gate.holds(*request.token, now()));
    if (hwm != *request.expect_hwm) {
      co_return Error(Errc::conflict, cat("partition ", to_string(request.move.partition),
                                          " ends at ", hwm, ", the copy at ", *request.expect_hwm));
    }
    ++counters.fences;
  }
  auto extended = entry->gate.extend(*request.token, now(), now() + timing.freeze_ttl);
  act(entry);
  if (!extended) co_return extended.error();
  wire::FreezeAnswer answer;
  answer.token = std::move(request.token);
  answer.ttl_ms = static_cast<std::uint64_t>(timing.freeze_ttl / std::chrono::milliseconds(1));
  co_return answer;
}

// ---- Source ------------------------------------------------------------------------------------

Source::Source(Env& env, std::string node_id, metastore::Proposer& metastore, bool has_peers,
               std::function<std::optional<LeaseProof>()> lease, SourceTiming timing)
    : impl_(std::make_unique<Impl>(env, std::move(node_id), metastore, has_peers, std::move(lease),
                                   timing)) {}
Source::~Source() = default;

void Source::attach(SourcePartitions& partitions) { impl_->partitions = &partitions; }

void Source::start() {
  NARAD_ASSERT(impl_->partitions != nullptr);
  impl_->tasks.spawn("follow moves", impl_->follow());
  impl_->tasks.spawn("close what moved away", impl_->close_moved());
  impl_->tasks.spawn("freeze time", impl_->watch_time());
}

Task<void> Source::stop() {
  co_await impl_->shield.drain();
  co_await impl_->tasks.stop();
}

std::shared_ptr<CommitGate> Source::gate(const TopicPartition& partition, const Assignment& row) {
  Impl::EntryPtr entry = impl_->entry_of(partition, row.incarnation);
  if (entry && entry->gate.ownership() != ownership_of(row)) entry = nullptr;
  return std::make_shared<Impl::Gate>(*impl_, std::move(entry));
}

Result<void> Source::may_lease(const TopicPartition& partition, Incarnation incarnation) {
  const Impl::EntryPtr entry = impl_->entry_of(partition, incarnation);
  if (!entry) return lives_elsewhere(partition);
  return entry->gate.may_lease();
}

Result<void> Source::may_settle(const TopicPartition& partition, Incarnation incarnation) {
  const Impl::EntryPtr entry = impl_->entry_of(partition, incarnation);
  if (!entry) return lives_elsewhere(partition);
  return entry->gate.may_settle();
}

Task<Result<wire::Listing>> Source::listing(wire::MoveRef move) {
  const bool of_a_move = move.move_id != RaftIndex(0);
  NARAD_CO_TRY(of_a_move ? impl_->named(move) : impl_->owned(move));
  auto listing = co_await impl_->partitions->list(move, false);
  if (!listing) co_return listing.error();
  // Served only if it is still so: the row that is seen now asks for the lease.
  NARAD_CO_TRY(of_a_move ? impl_->named(move) : impl_->owned(move));
  co_return std::move(listing.value());
}

Task<Result<std::string>> Source::chunk(wire::MoveRef move, Offset base, std::uint64_t from,
                                        std::uint64_t length) {
  NARAD_CO_TRY(impl_->named(move));
  co_return co_await impl_->partitions->read(std::move(move), base, from, length);
}

Task<Result<wire::SegmentDigests>> Source::digests(wire::MoveRef move, Offset base) {
  NARAD_CO_TRY(impl_->named(move));
  co_return co_await impl_->partitions->digests(std::move(move), base);
}

Task<Result<wire::FreezeAnswer>> Source::freeze(wire::FreezeRequest request) {
  if (request.token) co_return co_await impl_->extend(std::move(request));
  Task<Result<wire::FreezeAnswer>> arming = impl_->arm(std::move(request.move));
  co_return co_await impl_->shield.run("freeze", std::move(arming));
}

SourceStats Source::stats() const {
  SourceStats stats = impl_->counters;
  stats.frozen = impl_->closed.size();
  return stats;
}

}  // namespace narad::moves
