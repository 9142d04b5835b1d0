#include "internal/raftnode/raft_node.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "internal/raftnode/log_store.h"
#include "pkg/async/event.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::raftnode {

using raft::Core;
using raft::Index;
using raft::ReplicaId;

namespace {

constexpr std::size_t kLearnedNodesMax = 4096;
// One transaction takes at most about so much.
constexpr std::uint64_t kWriteBytesMax = 8u << 20;

raft::Options core_options(const Options& o, ReplicaId self, std::uint64_t seed) {
  raft::Options out;
  out.self = self;
  out.node = o.node;
  out.seed = seed;
  out.election_ticks = o.election_ticks;
  out.promote_learners = o.promote_learners;
  out.chunk_bytes = o.chunk_bytes;
  out.append_bytes_max = o.append_bytes;
  return out;
}

// What the storer does, in order.
struct Work {
  std::optional<raft::Ready> ready;
  struct Compaction {
    raft::SnapshotMeta snapshot;
    Core::LogBase base;
  };
  std::optional<Compaction> compaction;
  std::optional<raft::Configuration> founding;
};

// Somebody waits for one answer.
template <class T>
struct Waiter {
  explicit Waiter(Env& env) : answered(env) {}
  std::optional<T> answer;
  Event answered;
  void settle(T value) {
    if (!answer) answer.emplace(std::move(value));
    answered.notify_all();
  }
};
template <class T>
using WaiterPtr = std::shared_ptr<Waiter<T>>;

Error stopping_error() { return Error(Errc::unavailable, "the node is shutting down"); }

}  // namespace

struct RaftNode::Impl {
  Impl(Env& e, Options o, std::shared_ptr<LogStore> s, StateMachine& m)
      : env(e),
        options(std::move(o)),
        store(std::move(s)),
        machine(m),
        next_context(e.random.next()),
        wake(e),
        store_wake(e),
        tick_wake(e),
        compact_wake(e),
        retry_wake(e),
        status_event(e),
        applied_event(e),
        ended(e),
        tasks(e) {}

  Env& env;
  const Options options;
  const std::shared_ptr<LogStore> store;
  StateMachine& machine;

  std::unique_ptr<Core> core;  // null while it begins anew after a write that failed
  Index applied;               // handed to the machine
  std::uint64_t life = 0;      // of cores
  std::string trouble;
  std::uint64_t failures = 0;
  bool fault_told = false;
  bool dead = false;  // a sync failed: the process is about to end
  bool stopping = false;
  bool pumping = false;

  std::deque<Work> work;
  std::optional<raft::HardState> lazy;  // commit: stored with whatever is stored next
  // Nodes of replicas: members of this and earlier configurations (a removed one is told so), and
  // whoever has written.
  std::map<ReplicaId, std::string> learned;
  std::optional<Index> learned_from;  // the configuration whose members are in it
  std::set<ReplicaId> chunks_read;    // replicas that one is being read for
  std::uint64_t next_context;
  std::map<std::uint64_t, WaiterPtr<std::optional<Index>>> reads;
  std::map<raft::ProposalId, WaiterPtr<Result<void>>> changes;
  WaiterPtr<Result<void>> founding;
  std::uint64_t bytes_since_snapshot = 0;
  bool compacting = false;

  Event wake, store_wake, tick_wake, compact_wake, retry_wake, status_event, applied_event, ended;
  bool store_ended = false;
  TaskGroup tasks;

  Result<void> begin(raft::StartState state);
  void hurry();
  bool alone() const;
  std::string node_of(ReplicaId replica) const;
  void learn(ReplicaId replica, const std::string& node);
  void learn_members();

  void pump();
  void take(raft::Ready r);
  void apply(const std::vector<raft::Entry>& entries);
  void settle_changes(const raft::Entry& e);
  void post(raft::Message m);
  Task<void> send_chunk(raft::Message m);
  void tell_status();
  void abandon(const Error& why);
  bool compaction_due() const;

  Task<void> drive_loop();
  Task<void> tick_loop();
  Task<void> store_loop();
  Task<void> store_step();
  Task<void> store_readies();
  Task<void> store_compaction();
  Task<void> store_founding();
  Task<bool> survived(Result<void> written, const char* what);
  Task<void> begin_anew(Error why);
  Task<void> recover();
  Task<void> install(std::shared_ptr<const raft::SnapshotMeta> meta);
  void installed(const raft::SnapshotMeta& meta);
  Task<void> compact_loop();
  Task<void> compact_once();
  Task<void> flush_lazy();
};

// ---- start --------------------------------------------------------------------------------------

Result<void> RaftNode::Impl::begin(raft::StartState state) {
  const std::uint64_t seed = env.random.next();
  applied = state.applied;
  NARAD_TRY(core, Core::create(core_options(options, store->replica(), seed), std::move(state)));
  ++life;
  learned_from.reset();
  learn_members();
  compacting = false;
  lazy.reset();
  bytes_since_snapshot = 0;
  for (Index i = core->snapshot().index.next(); i <= applied && i > core->log().base();
       i = i.next()) {
    bytes_since_snapshot += core->log().at(i).bytes();
  }
  hurry();
  return ok();
}

// The only voter need not wait for the silence of a leader.
void RaftNode::Impl::hurry() {
  const std::vector<ReplicaId>& voters = core->membership().voters();
  if (voters.size() != 1 || voters.front() != core->self()) return;
  for (int i = 0; i < 2 * options.election_ticks && core->role() == raft::Role::follower; ++i) {
    core->tick();
  }
}

bool RaftNode::Impl::alone() const {
  return core && core->role() == raft::Role::leader &&
         core->membership().current().members().size() == 1 && core->progress().empty() &&
         core->membership().current().is_voter(core->self());
}

std::string RaftNode::Impl::node_of(ReplicaId replica) const {
  if (core) {
    if (const raft::Member* m = core->membership().current().find(replica)) return m->node;
  }
  const auto known = learned.find(replica);
  return known == learned.end() ? std::string() : known->second;
}

void RaftNode::Impl::learn(ReplicaId replica, const std::string& node) {
  if (learned.size() >= kLearnedNodesMax && !learned.contains(replica)) {
    learned.clear();
    learned_from.reset();
  }
  learned[replica] = node;
}

void RaftNode::Impl::learn_members() {
  const Index index = core->membership().current_index();
  if (learned_from == index) return;
  for (const raft::Member& m : core->membership().current().members()) learn(m.replica, m.node);
  learned_from = index;
}

// ---- the core's outputs -------------------------------------------------------------------------

// Synchronous; whoever gave the core an input calls it, or wakes the drive loop to.
void RaftNode::Impl::pump() {
  if (pumping || dead) return;
  pumping = true;
  while (core && core->has_ready()) {
    learn_members();
    take(core->take_ready());
  }
  pumping = false;
  if (!core) return;
  if (core->fault() && !fault_told) {
    fault_told = true;
    trouble = core->fault()->text();
    NARAD_LOG_ERROR(env.log, "metadata replica has stopped", {"error", *core->fault()});
    abandon(*core->fault());
    tell_status();
  }
  if (!alone()) tick_wake.notify_all();
  if (compaction_due()) compact_wake.notify_all();
}

void RaftNode::Impl::take(raft::Ready r) {
  for (raft::Message& m : r.messages_now) post(std::move(m));
  r.messages_now.clear();
  if (!r.committed.empty()) apply(r.committed);
  r.committed.clear();
  for (const raft::ReadResult& result : r.reads) {
    const auto waiting = reads.find(result.context);
    if (waiting == reads.end()) continue;
    waiting->second->settle(result.index);
    reads.erase(waiting);
  }
  // What `unknown` names may yet be applied: whoever waits looks at what comes to stand there.
  const bool changed = r.soft_state.has_value();
  Work item;
  item.ready.emplace(std::move(r));
  work.push_back(std::move(item));
  store_wake.notify_all();
  if (changed) tell_status();
}

void RaftNode::Impl::apply(const std::vector<raft::Entry>& entries) {
  machine.apply(entries);
  for (const raft::Entry& e : entries) {
    bytes_since_snapshot += e.bytes();
    settle_changes(e);
  }
  applied = entries.back().index;
  core->applied(applied);
  applied_event.notify_all();
}

void RaftNode::Impl::settle_changes(const raft::Entry& e) {
  while (!changes.empty() && changes.begin()->first.index <= e.index) {
    const auto first = changes.begin();
    const bool done = first->first == raft::ProposalId{e.index, e.term};
    first->second->settle(
        done ? Result<void>(ok())
             : Result<void>(Error(Errc::unavailable, "another leader was faster; try again")));
    changes.erase(first);
  }
}

void RaftNode::Impl::post(raft::Message m) {
  if (options.transport == nullptr) return;
  if (m.kind == raft::MessageKind::snapshot_chunk && m.length > 0) {
    // One at a time for each: the core asks again for what did not get through.
    if (!chunks_read.insert(m.to).second) return;
    tasks.spawn("snapshot chunk", send_chunk(std::move(m)));
    return;
  }
  if (m.kind == raft::MessageKind::snapshot_chunk) raft::fill_chunk(m, raft::payload_of(""));
  const std::string node = node_of(m.to);
  if (!node.empty()) options.transport->send(node, std::move(m));
}

Task<void> RaftNode::Impl::send_chunk(raft::Message m) {
  const ReplicaId to = m.to;
  auto job = [store = store, meta = m.snapshot, offset = m.offset, length = m.length] {
    return store->read_chunk(*meta, offset, length);
  };
  auto bytes = co_await blocking(env, "snapshot chunk", std::move(job));
  chunks_read.erase(to);
  if (!bytes) {
    NARAD_LOG_WARN(env.log, "snapshot cannot be read for a follower", {"error", bytes.error()});
    co_return;
  }
  const std::string node = node_of(to);
  if (node.empty() || stopping) co_return;
  raft::fill_chunk(m, std::make_shared<const Bytes>(std::move(bytes.value())));
  options.transport->send(node, std::move(m));
}

void RaftNode::Impl::tell_status() {
  status_event.notify_all();
  machine.status_changed();
}

// Whoever waits for an outcome of this life of the core.
void RaftNode::Impl::abandon(const Error& why) {
  const bool certain = core && core->membership().current().members().size() == 1;
  machine.abandoned(why, certain);
  auto open = std::move(changes);
  changes.clear();
  for (auto& [id, waiter] : open) {
    waiter->settle(Error(certain ? Errc::unavailable : Errc::unknown_outcome, why.text()));
  }
  auto asked = std::move(reads);
  reads.clear();
  for (auto& [context, waiter] : asked) waiter->settle(std::nullopt);
}

Task<void> RaftNode::Impl::drive_loop() {
  while (!stopping) {
    pump();
    co_await wake.wait();
  }
}

Task<void> RaftNode::Impl::tick_loop() {
  for (;;) {
    if (alone()) {
      co_await tick_wake.wait();
      continue;
    }
    co_await sleep_for(env, options.tick);
    if (!core) continue;
    core->tick();
    pump();
  }
}

// ---- the storer: one piece of work after the other
// ------------------------------------------------

Task<void> RaftNode::Impl::store_loop() {
  while (!dead) {
    if (!work.empty()) {
      co_await store_step();
    } else if (stopping) {
      break;
    } else {
      co_await store_wake.wait();
    }
  }
  if (!dead) co_await flush_lazy();
  store_ended = true;
  ended.notify_all();
}

Task<void> RaftNode::Impl::store_step() {
  if (work.front().compaction) {
    co_await store_compaction();
  } else if (work.front().founding) {
    co_await store_founding();
  } else {
    co_await store_readies();
  }
}

// All that wait, up to one that installs a snapshot, in one transaction.
Task<void> RaftNode::Impl::store_readies() {
  auto batch = std::make_shared<std::vector<raft::Ready>>();
  std::uint64_t bytes = 0;
  bool to_disk = false;
  while (!work.empty() && work.front().ready && bytes < kWriteBytesMax) {
    raft::Ready& r = batch->emplace_back(std::move(*work.front().ready));
    work.pop_front();
    for (const raft::Entry& e : r.entries) bytes += e.bytes();
    for (const raft::SnapshotWrite& w : r.snapshot_writes) bytes += w.bytes->size();
    to_disk = to_disk || r.must_sync || !r.snapshot_writes.empty();
    if (r.hard_state) lazy = r.hard_state;
    if (r.install) break;
  }
  if (to_disk) {
    batch->back().hard_state = lazy;
    auto job = [store = store, batch]() -> Result<void> {
      std::vector<const raft::Ready*> all;
      for (const raft::Ready& r : *batch) all.push_back(&r);
      return store->write(all);
    };
    Result<void> written = co_await blocking(env, "raft log", std::move(job));
    if (!co_await survived(std::move(written), "the log")) co_return;
    lazy.reset();
    if (!trouble.empty() && !core->fault()) {
      trouble.clear();
      NARAD_LOG_INFO(env.log, "metastore can write again");
      tell_status();
    }
  }
  core->persisted(batch->back().id);
  for (raft::Ready& r : *batch) {
    for (raft::Message& m : r.messages) post(std::move(m));
  }
  pump();
  if (batch->back().install) co_await install(batch->back().install);
}

// False: there is nothing to go on with; what comes next begins anew, or never.
Task<bool> RaftNode::Impl::survived(Result<void> written, const char* what) {
  if (written) co_return true;
  if (store->sync_failed()) {
    dead = true;
    env.process.exit(kExitSyncFailed, cat("metastore: a sync of ", what,
                                          " failed, so nothing newly written may be believed: ",
                                          written.error().text()));
    co_return false;  // in simulation the node ends with the next event; nobody is answered
  }
  co_await begin_anew(written.error());
  co_return false;
}

// As after a crash: what was not stored is gone, what is stored is read again.
Task<void> RaftNode::Impl::begin_anew(Error why) {
  ++failures;
  trouble = why.text();
  NARAD_LOG_ERROR(env.log, "metastore cannot write", {"error", why});
  abandon(why);
  core.reset();
  work.clear();
  if (founding) founding->settle(why);
  founding.reset();
  tell_status();
  co_await recover();
}

Task<void> RaftNode::Impl::recover() {
  while (!stopping) {
    (void)co_await retry_wake.wait_for(options.retry);
    if (stopping) break;
    auto job = [store = store, at = applied] { return store->recover(at); };
    auto stored = co_await blocking(env, "raft log recovery", std::move(job));
    if (stored) {
      if (auto begun = begin(std::move(stored.value())); !begun) stored = begun.error();
    }
    if (stored) break;
    ++failures;
    trouble = stored.error().text();
    if (store->sync_failed()) {
      (void)co_await survived(stored.error(), "the log");
      co_return;
    }
    tell_status();
  }
  if (!core) co_return;
  tell_status();
  pump();
}

Task<void> RaftNode::Impl::store_compaction() {
  const Work::Compaction item = std::move(*work.front().compaction);
  work.pop_front();
  auto job = [store = store, item] { return store->compact(item.snapshot, item.base); };
  Result<void> written = co_await blocking(env, "raft log compaction", std::move(job));
  if (!co_await survived(std::move(written), "the log")) co_return;
  std::vector<raft::SnapshotMeta> keep = core->snapshots_in_use();
  keep.push_back(core->snapshot());
  keep.push_back(item.snapshot);
  auto sweep = [store = store, keep] { return store->remove_snapshots_but(keep); };
  const Result<void> swept = co_await blocking(env, "old snapshots", std::move(sweep));
  if (!swept) {
    NARAD_LOG_WARN(env.log, "old snapshot cannot be removed", {"error", swept.error()});
  }
  compacting = false;
}

Task<void> RaftNode::Impl::store_founding() {
  const raft::Configuration configuration = std::move(*work.front().founding);
  work.pop_front();
  auto job = [store = store, configuration] { return store->found(configuration); };
  Result<void> written = co_await blocking(env, "found the group", std::move(job));
  if (!co_await survived(std::move(written), "the log")) co_return;
  core.reset();
  work.clear();
  auto load = [store = store, at = applied] { return store->recover(at); };
  auto stored = co_await blocking(env, "raft log recovery", std::move(load));
  Result<void> begun = stored ? begin(std::move(stored.value())) : stored.error();
  if (!begun) {
    co_await begin_anew(begun.error());
    co_return;
  }
  if (founding) founding->settle(ok());
  founding.reset();
  tell_status();
  pump();
}

// The commit index is only advice for the next start, but spares it from waiting for the leader.
Task<void> RaftNode::Impl::flush_lazy() {
  if (!lazy || !core) co_return;
  auto batch = std::make_shared<raft::Ready>();
  batch->hard_state = lazy;
  auto job = [store = store, batch] { return store->write({batch.get()}); };
  const Result<void> written = co_await blocking(env, "raft log", std::move(job));
  if (!written) {
    NARAD_LOG_WARN(env.log, "commit index not stored", {"error", written.error()});
  }
}

// ---- snapshots
// ------------------------------------------------------------------------------------

Task<void> RaftNode::Impl::install(std::shared_ptr<const raft::SnapshotMeta> meta) {
  auto accept = [store = store, meta]() -> Result<void> {
    NARAD_TRY(store->accept_staged(*meta));
    return store->begin_install(*meta);
  };
  Result<void> accepted = co_await blocking(env, "accept snapshot", std::move(accept));
  const bool damaged = !accepted && accepted.error().code() == Errc::data_loss;
  if (!accepted && !damaged) {
    (void)co_await survived(std::move(accepted), "the log");
    co_return;
  }
  Result<void> replaced =
      damaged ? accepted : co_await machine.install(store->path_of(*meta), *meta);
  if (!replaced && replaced.error().code() == Errc::data_loss) {
    NARAD_LOG_WARN(env.log, "received snapshot is damaged; asking again",
                   {"error", replaced.error()});
    auto cancel = [store = store] { return store->cancel_install(); };
    Result<void> cancelled = co_await blocking(env, "forget snapshot", std::move(cancel));
    if (!co_await survived(std::move(cancelled), "the log")) co_return;
    core->snapshot_done(false);
    pump();
    co_return;
  }
  if (!replaced) {
    (void)co_await survived(std::move(replaced), "the applied state");
    co_return;
  }
  applied = meta->index;
  auto finish = [store = store, meta] { return store->finish_install(*meta); };
  Result<void> finished = co_await blocking(env, "install snapshot", std::move(finish));
  if (!co_await survived(std::move(finished), "the log")) co_return;
  installed(*meta);
}

void RaftNode::Impl::installed(const raft::SnapshotMeta& meta) {
  NARAD_LOG_INFO(env.log, "snapshot installed", {"index", meta.index}, {"bytes", meta.size_bytes});
  bytes_since_snapshot = 0;
  lazy.reset();
  while (!changes.empty() && changes.begin()->first.index <= meta.index) {
    changes.begin()->second->settle(
        Error(Errc::unknown_outcome, "a snapshot replaced the log; look at the members"));
    changes.erase(changes.begin());
  }
  core->snapshot_done(true);
  applied_event.notify_all();
  tell_status();
  pump();
}

bool RaftNode::Impl::compaction_due() const {
  if (!core || compacting || core->fault() || core->installing()) return false;
  return applied.minus(core->snapshot().index) >= options.snapshot_entries ||
         bytes_since_snapshot >= options.snapshot_bytes;
}

Task<void> RaftNode::Impl::compact_loop() {
  for (;;) {
    if (!compaction_due()) {
      co_await compact_wake.wait();
      continue;
    }
    co_await compact_once();
    // Whatever came of it: not again at once.
    if (compaction_due()) co_await sleep_for(env, options.retry);
  }
}

Task<void> RaftNode::Impl::compact_once() {
  const std::uint64_t begun_in = life;
  const raft::SnapshotMeta meta = core->snapshot_at(applied);
  auto job = [store = store, meta, writer = machine.freeze()] {
    return store->write_snapshot(meta, writer);
  };
  auto written = co_await blocking(env, "write snapshot", std::move(job));
  Result<void> outcome = ok();
  if (!written) {
    outcome = written.error();
  } else {
    outcome = co_await machine.make_durable(meta.index);
  }
  if (!outcome) {
    NARAD_LOG_WARN(env.log, "metastore cannot write a snapshot; the log grows until it can",
                   {"error", outcome.error()});
    co_return;
  }
  if (stopping || dead || !core || life != begun_in || core->fault()) co_return;
  auto base = core->compact(written.value(), options.keep_entries);
  if (!base) co_return;  // one from the leader was faster; the file goes with the next compaction
  bytes_since_snapshot = 0;
  for (Index i = meta.index.next(); i <= applied; i = i.next()) {
    bytes_since_snapshot += core->log().at(i).bytes();
  }
  compacting = true;
  Work item;
  item.compaction.emplace(Work::Compaction{std::move(written.value()), base.value()});
  work.push_back(std::move(item));
  store_wake.notify_all();
}

// ---- the interface
// --------------------------------------------------------------------------------

RaftNode::RaftNode(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RaftNode::~RaftNode() = default;

Result<std::unique_ptr<RaftNode>> RaftNode::start(Env& env, Options options,
                                                  std::shared_ptr<LogStore> store,
                                                  raft::StartState state, StateMachine& machine) {
  auto impl = std::make_unique<Impl>(env, std::move(options), std::move(store), machine);
  NARAD_TRY(impl->begin(std::move(state)));
  impl->tasks.spawn("raft outputs", impl->drive_loop());
  impl->tasks.spawn("raft ticks", impl->tick_loop());
  impl->tasks.spawn("raft log", impl->store_loop());
  impl->tasks.spawn("raft compaction", impl->compact_loop());
  return std::unique_ptr<RaftNode>(new RaftNode(std::move(impl)));
}

void RaftNode::deliver(raft::Message message, const std::string& from_node) {
  Impl& impl = *impl_;
  if (!impl.core || impl.stopping || impl.dead) return;
  if (!from_node.empty() && impl.core->membership().current().find(message.from) == nullptr) {
    impl.learn(message.from, from_node);
  }
  const auto kind = message.kind;
  if (auto done = impl.core->step(std::move(message)); !done && !impl.core->fault()) {
    NARAD_LOG_DEBUG(impl.env.log, "raft message dropped", {"from", from_node},
                    {"kind", to_string(kind)}, {"error", done.error()});
  }
  impl.wake.notify_all();
}

Task<Result<void>> RaftNode::found(raft::Configuration configuration) {
  Impl& impl = *impl_;
  if (impl.stopping) co_return stopping_error();
  if (!impl.core || impl.founding) {
    co_return Error(Errc::unavailable, "the metastore cannot be founded just now; try again");
  }
  if (!empty()) {
    co_return Error(Errc::exists, "this node belongs to a group already; it can only go on in it");
  }
  const raft::Member* self = configuration.find(impl.core->self());
  if (self == nullptr || self->node != impl.options.node || configuration.voter_count() == 0) {
    co_return Error(Errc::invalid_argument,
                    cat("the founding configuration ", raft::describe(configuration),
                        " does not name replica ", impl.core->self(), " of ", impl.options.node));
  }
  auto waiter = std::make_shared<Waiter<Result<void>>>(impl.env);
  impl.founding = waiter;
  Work item;
  item.founding.emplace(std::move(configuration));
  impl.work.push_back(std::move(item));
  impl.store_wake.notify_all();
  while (!waiter->answer) co_await waiter->answered.wait();
  co_return *waiter->answer;
}

Task<Result<void>> RaftNode::change(raft::ConfigurationChange change, Nanos deadline) {
  Impl& impl = *impl_;
  const Deadline until = Deadline::after(impl.env, deadline);
  if (impl.stopping) co_return stopping_error();
  if (!impl.core) co_return Error(Errc::unavailable, impl.trouble);
  NARAD_CO_TRY(raft::ProposalId id, impl.core->propose_change(change));
  auto waiter = std::make_shared<Waiter<Result<void>>>(impl.env);
  impl.changes.emplace(id, waiter);
  impl.wake.notify_all();
  while (!waiter->answer && !until.passed(impl.env)) {
    (void)co_await waiter->answered.wait_for(until.left(impl.env));
  }
  if (waiter->answer) co_return *waiter->answer;
  impl.changes.erase(id);
  co_return Error(Errc::unknown_outcome,
                  "no majority has answered in time; the change may still be made");
}

namespace {

// The voter that holds most of the log, of those that answer.
ReplicaId heir_of(const Core& core) {
  ReplicaId heir;
  Index best;
  for (const auto& [id, p] : core.progress()) {
    if (!p.active() || !core.membership().current().is_voter(id)) continue;
    if (heir != ReplicaId() && p.match() <= best) continue;
    heir = id;
    best = p.match();
  }
  return heir;
}

}  // namespace

Task<Result<void>> RaftNode::transfer_leadership(std::string node, Nanos deadline) {
  Impl& impl = *impl_;
  const Deadline until = Deadline::after(impl.env, deadline);
  if (!is_leader()) co_return Error(Errc::not_leader, "this node does not lead");
  while (is_leader()) {
    if (!impl.core->transfer_target()) {
      ReplicaId target = heir_of(*impl.core);
      if (!node.empty()) {
        const raft::Member* member = impl.core->membership().current().find_node(node);
        if (member == nullptr || member->role != raft::MemberRole::voter) {
          co_return Error(Errc::not_found, cat("node ", node, " is no voter"));
        }
        target = member->replica;
      }
      if (target == ReplicaId()) {
        co_return Error(Errc::not_found, "no other voter answers that could take over");
      }
      NARAD_CO_TRY(impl.core->transfer_leadership(target));
      impl.wake.notify_all();
    }
    if (until.passed(impl.env)) {
      co_return Error(Errc::unavailable, "nobody took leadership over in time");
    }
    (void)co_await impl.status_event.wait_for(std::min(until.left(impl.env), impl.options.tick));
  }
  co_return ok();
}

Result<raft::ProposalId> RaftNode::propose(raft::Payload payload) {
  Impl& impl = *impl_;
  if (impl.stopping) return stopping_error();
  if (!impl.core) return Error(Errc::unavailable, impl.trouble);
  NARAD_TRY(raft::ProposalId id, impl.core->propose(std::move(payload)));
  impl.wake.notify_all();
  return id;
}

Task<Result<Index>> RaftNode::read_index(Nanos deadline) {
  Impl& impl = *impl_;
  const Deadline until = Deadline::after(impl.env, deadline);
  const Nanos patience = impl.options.tick * impl.options.election_ticks;
  while (!impl.stopping && !until.passed(impl.env)) {
    const std::uint64_t context = ++impl.next_context;
    const bool asked = impl.core && impl.core->read_index(context).has_value();
    if (!asked) {
      (void)co_await impl.status_event.wait_for(std::min(until.left(impl.env), impl.options.tick));
      continue;
    }
    auto waiter = std::make_shared<Waiter<std::optional<Index>>>(impl.env);
    impl.reads.emplace(context, waiter);
    impl.wake.notify_all();
    (void)co_await waiter->answered.wait_for(std::min(until.left(impl.env), patience));
    impl.reads.erase(context);
    if (waiter->answer && *waiter->answer) co_return **waiter->answer;
    // Refused: whoever was asked does not lead. Not again at once.
    if (waiter->answer) (void)co_await impl.status_event.wait_for(impl.options.tick);
  }
  if (impl.stopping) co_return stopping_error();
  const std::string leader = leader_node();
  co_return Error(Errc::unavailable,
                  leader.empty() ? "no leader of the metadata is known; a majority of the voters "
                                   "must be up and reach each other"
                                 : cat("leader ", leader, " has not answered in time"));
}

Task<bool> RaftNode::wait_applied(Index index, Nanos deadline) {
  Impl& impl = *impl_;
  const Deadline until = Deadline::after(impl.env, deadline);
  while (impl.applied < index) {
    if (until.passed(impl.env) || impl.stopping) co_return false;
    (void)co_await impl.applied_event.wait_for(until.left(impl.env));
  }
  co_return true;
}

Status RaftNode::status() const {
  const Impl& impl = *impl_;
  Status s;
  s.replica = impl.store->replica();
  s.trouble = impl.trouble;
  s.applied = impl.applied;
  if (!impl.core) return s;
  const Core& core = *impl.core;
  s.role = core.role();
  s.standing = core.soft_state().standing;
  s.term = core.term();
  s.leader = core.leader();
  s.leader_node = leader_node();
  s.is_leader = is_leader();
  s.leads_own_term = core.leads_own_term();
  s.commit = core.commit_index();
  s.last = core.log().last();
  s.configuration = core.membership().current();
  s.configuration_index = core.membership().current_index();
  s.fault = core.fault();
  for (const auto& [id, p] : core.progress()) {
    const raft::Member* member = s.configuration.find(id);
    if (member == nullptr) continue;
    s.followers[id] = {member->node, member->role, p.match(), p.active()};
  }
  return s;
}

ReplicaId RaftNode::replica() const { return impl_->store->replica(); }
bool RaftNode::is_leader() const {
  return impl_->core && !impl_->core->fault() && impl_->core->role() == raft::Role::leader;
}
bool RaftNode::alone() const { return impl_->alone(); }
std::string RaftNode::leader_node() const {
  if (!impl_->core || impl_->core->leader() == ReplicaId()) return {};
  if (impl_->core->leader() == impl_->core->self()) return impl_->options.node;
  return impl_->node_of(impl_->core->leader());
}
raft::Term RaftNode::term() const { return impl_->core ? impl_->core->term() : raft::Term(); }
bool RaftNode::empty() const {
  if (!impl_->core) return false;
  const Core& c = *impl_->core;
  return c.membership().current().empty() && c.log().last() == Index() && c.term() == raft::Term();
}

const std::string& RaftNode::trouble() const { return impl_->trouble; }
bool RaftNode::stopped() const { return impl_->core && impl_->core->fault(); }
std::uint64_t RaftNode::failures() const { return impl_->failures; }
void RaftNode::retry_now() { impl_->retry_wake.notify_all(); }

Task<void> RaftNode::stop() {
  Impl& impl = *impl_;
  impl.stopping = true;
  impl.wake.notify_all();
  impl.store_wake.notify_all();
  impl.retry_wake.notify_all();
  while (!impl.store_ended) co_await impl.ended.wait();
  co_await impl.tasks.stop();
  if (!impl.dead) impl.abandon(stopping_error());
}

}  // namespace narad::raftnode
