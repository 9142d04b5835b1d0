#include "internal/metastore/metastore.h"

#include <map>
#include <optional>

#include "internal/metastore/apply.h"
#include "internal/metastore/outcome.h"
#include "internal/metastore/snapshot.h"
#include "internal/metastore/storage.h"
#include "pkg/async/task_group.h"
#include "pkg/async/timeout.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::metastore {
namespace {

constexpr int kDeadlineTicks = 100;
constexpr int kLapseTicks = 100;
constexpr int kContactTicks = 20;  // how often a follower asks for a read index
constexpr int kCloseTicks = 20;    // how long open proposals hold a stop up
constexpr Nanos kWriteRetry = std::chrono::seconds(1);

struct Proposal {
  explicit Proposal(Env& env) : answered(env) {}
  std::optional<Result<Applied>> outcome;
  Event answered;
};
using ProposalPtr = std::shared_ptr<Proposal>;

void answer(Proposal& proposal, Result<Applied> outcome) {
  if (!proposal.outcome) proposal.outcome.emplace(std::move(outcome));
  proposal.answered.notify_all();
}

Error closing_error() { return Error(Errc::unavailable, "the metastore is shutting down"); }

Error cannot_write(std::string_view why) {
  return Error(Errc::unavailable, cat("the metastore cannot write: ", why));
}

Error too_large(std::size_t bytes) {
  return Error(Errc::too_large, cat("the change is too large for one metadata entry: ", bytes,
                                    " of ", kCommandBytesMax, " bytes"));
}

raft::ReplicaId draw_replica(Env& env) {
  std::uint64_t bits = 0;
  while (bits == 0) bits = env.random.next();
  return raft::ReplicaId(bits);
}

}  // namespace

struct Metastore::Impl final : raftnode::StateMachine {
  Impl(Env& e, MetastoreOptions o, Storage s)
      : env(e),
        options(std::move(o)),
        storage(std::move(s)),
        view(std::make_shared<const State>(std::move(storage.state))),
        written(view),
        changed(e),
        leadership(e),
        settled(e),
        work(e),
        wrote(e),
        store_lock(e),
        tasks(e) {
    if (options.propose_deadline == Nanos(0)) {
      options.propose_deadline = options.raft.tick * kDeadlineTicks;
    }
  }

  Env& env;
  MetastoreOptions options;
  Storage storage;  // touched by jobs under store_lock, and by those of the log
  std::unique_ptr<raftnode::RaftNode> raft;
  ViewPtr view;     // applied and published
  ViewPtr written;  // what the store holds
  RaftIndex durable{0};
  RaftIndex durable_wanted{0};
  std::uint64_t write_failures = 0;
  std::map<raft::ProposalId, ProposalPtr> waiting;
  bool closing = false;
  bool stop_writer = false, writer_ended = false;
  bool dead = false;  // a sync failed: the process is about to end

  // Who leads, counted: what was true under one says nothing under the next.
  std::uint64_t leader_epoch = 1;
  std::string leader_node;
  raft::Term leader_term;
  std::uint64_t contact_epoch = 0;  // under which a read index was had and applied
  Nanos contact_at{0};              // when it was asked for

  Event changed;     // public: view, leader
  Event leadership;  // leader, term, role, trouble
  Event settled;     // a proposal got its outcome
  Event work;        // for the writer
  Event wrote;       // the writer has written, or failed
  Mutex store_lock;
  TaskGroup tasks;

  // StateMachine
  void apply(std::span<const raft::Entry> entries) override;
  void abandoned(const Error& why, bool certain) override;
  raftnode::SnapshotWriter freeze() override;
  Task<Result<void>> make_durable(raft::Index index) override;
  Task<Result<void>> install(std::string path, raft::SnapshotMeta meta) override;
  void status_changed() override;

  Task<Result<void>> await_start();
  Task<void> write_loop();
  Task<Result<void>> write_once();
  void end_process(const Error& why);
  Task<void> contact_loop();
  Task<Result<RaftIndex>> barrier(Nanos deadline);
  void in_contact(std::uint64_t epoch, Nanos asked_at);
  bool caught_up() const;

  Task<Result<Applied>> propose(std::string encoded, Nanos deadline, bool may_forward);
  Task<Result<Applied>> outcome_of(raft::ProposalId id, Deadline until);
  Task<Result<Applied>> forward(std::string leader, std::string encoded, Deadline until);
  void settle_through(RaftIndex index, const Error& why);
};

// ---- the applied state --------------------------------------------------------------------------

void Metastore::Impl::apply(std::span<const raft::Entry> entries) {
  auto after = std::make_shared<State>(*view);
  std::vector<std::pair<raft::ProposalId, CommandResult>> results;
  for (const raft::Entry& e : entries) {
    CommandResult result;
    if (e.kind == raft::EntryKind::command) {
      result = metastore::apply(*after, e.index, decode_command(as_chars(*e.payload)));
    } else {
      after->applied = e.index;
    }
    const raft::ProposalId id{e.index, e.term};
    if (waiting.contains(id)) results.emplace_back(id, std::move(result));
  }
  view = after;
  for (auto& [id, result] : results) {
    answer(*waiting.at(id), Applied{id.index, std::move(result)});
    waiting.erase(id);
  }
  // Something else came to stand where they would have: they never will.
  settle_through(after->applied,
                 Error(Errc::unavailable, "another leader was faster; the change was not made"));
  changed.notify_all();
  work.notify_all();
}

void Metastore::Impl::settle_through(RaftIndex index, const Error& why) {
  while (!waiting.empty() && waiting.begin()->first.index <= index) {
    answer(*waiting.begin()->second, why);
    waiting.erase(waiting.begin());
  }
  settled.notify_all();
}

void Metastore::Impl::abandoned(const Error& why, bool certain) {
  const Error told = certain
                         ? cannot_write(why.text())
                         : Error(Errc::unknown_outcome,
                                 cat("this node could not go on (", why.text(),
                                     "); the change may still be made. Look before trying again"));
  settle_through(RaftIndex(~std::uint64_t{0}), told);
}

void Metastore::Impl::status_changed() {
  const std::string node = raft ? raft->leader_node() : std::string();
  const raft::Term term = raft ? raft->term() : raft::Term();
  if (node != leader_node || term != leader_term) {
    ++leader_epoch;
    leader_node = node;
    leader_term = term;
  }
  // Their patience may depend on who leads.
  for (const auto& [id, proposal] : waiting) proposal->answered.notify_all();
  leadership.notify_all();
  changed.notify_all();
}

raftnode::SnapshotWriter Metastore::Impl::freeze() {
  return
      [state = view](const raftnode::SnapshotSink& sink) { return write_snapshot(*state, sink); };
}

// ---- the store behind it ------------------------------------------------------------------------

Task<void> Metastore::Impl::write_loop() {
  while (!dead) {
    const bool idle = written == view && durable_wanted <= durable;
    if (idle && stop_writer) break;
    if (idle) {
      co_await work.wait();
      continue;
    }
    const Result<void> done = co_await write_once();
    wrote.notify_all();
    if (done || dead) continue;
    ++write_failures;
    if (stop_writer) break;  // the log has it all
    NARAD_LOG_ERROR(env.log, "metastore state cannot be written; the log grows until it can",
                    {"error", done.error()});
    co_await sleep_for(env, kWriteRetry);
  }
  writer_ended = true;
  wrote.notify_all();
}

// Everything applied since the last time in one transaction; durable if somebody wants that.
Task<Result<void>> Metastore::Impl::write_once() {
  const Mutex::Guard guard = co_await store_lock.lock();
  const ViewPtr before = written, after = view;
  const bool sync = durable_wanted > durable;
  auto job = [store = storage.store, before, after, sync]() -> Result<void> {
    if (before != after) {
      NARAD_TRY(store->commit(*before, *after));
    }
    if (!sync) return ok();
    return store->checkpoint();
  };
  const Result<void> done = co_await blocking(env, "metastore state", std::move(job));
  if (!done) {
    if (storage.store->sync_failed()) end_process(done.error());
    co_return done;
  }
  written = after;
  if (sync) durable = after->applied;
  co_return ok();
}

void Metastore::Impl::end_process(const Error& why) {
  dead = true;
  env.process.exit(
      kExitSyncFailed,
      cat("metastore: a sync failed, so nothing newly written may be believed: ", why.text()));
}

Task<Result<void>> Metastore::Impl::make_durable(raft::Index index) {
  const std::uint64_t failed_before = write_failures;
  durable_wanted = std::max(durable_wanted, index);
  work.notify_all();
  while (durable < index) {
    if (closing || dead) co_return closing_error();
    if (write_failures != failed_before) {
      co_return Error(Errc::unavailable, "the applied state cannot be written");
    }
    co_await wrote.wait();
  }
  co_return ok();
}

Task<Result<void>> Metastore::Impl::install(std::string path, raft::SnapshotMeta meta) {
  const Mutex::Guard guard = co_await store_lock.lock();
  auto job = [&fs = env.fs, store = storage.store, path,
              index = meta.index]() -> Result<std::shared_ptr<const State>> {
    NARAD_TRY(auto state, read_snapshot_file(fs, path));
    if (state.applied != index) {
      return Error(Errc::data_loss,
                   cat(path, " holds the state of entry ", state.applied, ", not of ", index));
    }
    NARAD_TRY(store->replace(state));
    return std::make_shared<const State>(std::move(state));
  };
  auto state = co_await blocking(env, "install state", std::move(job));
  if (!state) {
    if (storage.store->sync_failed()) end_process(state.error());
    co_return state.error();
  }
  view = written = std::move(state.value());
  durable = view->applied;
  settle_through(view->applied,
                 Error(Errc::unknown_outcome,
                       "this node was too far behind to see what came of the change; "
                       "look before trying again"));
  changed.notify_all();
  co_return ok();
}

// ---- reads --------------------------------------------------------------------------------------

Task<Result<RaftIndex>> Metastore::Impl::barrier(Nanos deadline) {
  const std::uint64_t epoch = leader_epoch;
  const Nanos asked_at = env.clock.mono();
  const Deadline until = Deadline::after(env, deadline);
  NARAD_CO_TRY(RaftIndex index, co_await raft->read_index(deadline));
  const bool reached = co_await raft->wait_applied(index, until.left(env));
  if (!reached) {
    co_return Error(Errc::unavailable, cat("this node has applied entry ", view->applied,
                                           " and is still behind entry ", index, " of the leader"));
  }
  in_contact(epoch, asked_at);
  co_return index;
}

// A read index that was asked for at `asked_at` has been answered and applied: the only proof that
// this node is in touch with a leader that still leads, whoever asked for it.
void Metastore::Impl::in_contact(std::uint64_t epoch, Nanos asked_at) {
  if (epoch != leader_epoch || leader_node.empty()) return;
  const bool news = !caught_up();
  contact_at = contact_epoch == epoch ? std::max(contact_at, asked_at) : asked_at;
  contact_epoch = epoch;
  if (news) changed.notify_all();
}

bool Metastore::Impl::caught_up() const {
  if (contact_epoch != leader_epoch || leader_node.empty()) return false;
  if (raft->alone()) return true;
  return env.clock.mono() - contact_at < options.raft.tick * kLapseTicks;
}

// Asks for a read index again and again.
Task<void> Metastore::Impl::contact_loop() {
  const Nanos lapse = options.raft.tick * kLapseTicks;
  for (;;) {
    const std::uint64_t epoch = leader_epoch;
    const auto read = co_await barrier(lapse);
    if (epoch != leader_epoch) continue;  // another leader: ask that one, now
    const bool counts = read && !leader_node.empty();
    if (counts && raft->alone()) {
      co_await leadership.wait();
    } else {
      const Nanos pause = counts ? options.raft.tick * kContactTicks : options.raft.tick;
      (void)co_await leadership.wait_for(pause);
    }
  }
}

// ---- proposals ----------------------------------------------------------------------------------

Task<Result<Applied>> Metastore::Impl::outcome_of(raft::ProposalId id, Deadline until) {
  auto proposal = std::make_shared<Proposal>(env);
  waiting.emplace(id, proposal);
  while (!proposal->outcome && !until.passed(env)) {
    // Alone, it is applied or abandoned, whatever happens.
    if (raft->alone()) {
      co_await proposal->answered.wait();
    } else {
      (void)co_await proposal->answered.wait_for(until.left(env));
    }
  }
  if (proposal->outcome) co_return std::move(*proposal->outcome);
  waiting.erase(id);
  co_return Error(Errc::unknown_outcome,
                  "no majority of the metadata voters has confirmed the change in time; it may "
                  "still be made. Look before trying again");
}

Task<Result<Applied>> Metastore::Impl::forward(std::string leader, std::string encoded,
                                               Deadline until) {
  auto body = co_await options.forwarder->forward(leader, std::move(encoded), until.left(env));
  if (!body) {
    if (body.error().code() == Errc::unknown_outcome) co_return body.error();
    co_return Error(Errc::not_leader, body.error().text());  // not executed: try elsewhere
  }
  auto outcome = decode_outcome(body.value());
  if (!outcome) co_return outcome.error();
  const bool seen = co_await raft->wait_applied(outcome.value().index, until.left(env));
  if (seen) co_return std::move(outcome.value());
  co_return Error(Errc::unknown_outcome,
                  cat("the leader has made the change, but this node is still behind it (entry ",
                      view->applied, " of ", outcome.value().index, ")"));
}

Task<Result<Applied>> Metastore::Impl::propose(std::string encoded, Nanos deadline,
                                               bool may_forward) {
  const Deadline until = Deadline::after(env, deadline);
  const std::uint64_t failures = raft->failures();
  Error last(Errc::unavailable,
             "no leader of the metadata is known; a majority of the voters must be up and reach "
             "each other");
  while (!closing && !dead) {
    if (raft->is_leader()) {
      auto id = raft->propose(raft::payload_of(encoded));
      if (id) co_return co_await outcome_of(id.value(), until);
      last = id.error();
      if (last.code() == Errc::too_large) co_return last;
    } else if (!raft->trouble().empty()) {
      if (raft->stopped()) co_return Error(Errc::unavailable, raft->trouble());
      last = cannot_write(raft->trouble());
      if (raft->failures() != failures) co_return last;
      raft->retry_now();
    } else if (!may_forward) {
      co_return Error(Errc::not_leader, "this node does not lead the metadata");
    } else if (options.forwarder != nullptr && !leader_node.empty() && !until.passed(env)) {
      auto outcome = co_await forward(leader_node, encoded, until);
      if (outcome || outcome.error().code() != Errc::not_leader) co_return std::move(outcome);
      last = Error(Errc::unavailable, outcome.error().text());
    }
    if (until.passed(env)) co_return Error(Errc::unavailable, last.text());
    (void)co_await leadership.wait_for(std::min(until.left(env), options.raft.tick * 2));
  }
  co_return closing_error();
}

// ---- the interface ------------------------------------------------------------------------------

Metastore::Metastore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Metastore::~Metastore() = default;

// A group of one knows everything it ever answered once it leads and has applied its log.
Task<Result<void>> Metastore::Impl::await_start() {
  const raftnode::Status status = raft->status();
  const bool only_voter =
      status.configuration.voter_count() == 1 && status.configuration.is_voter(status.replica);
  if (!only_voter) co_return ok();
  const Deadline until = Deadline::after(env, options.propose_deadline);
  for (;;) {
    auto reached = co_await barrier(options.raft.tick);
    if (reached) co_return ok();
    if (raft->stopped()) co_return Error(Errc::data_loss, cat("metastore: ", raft->trouble()));
    if (raft->failures() > 0) co_return cannot_write(raft->trouble());
    if (until.passed(env)) co_return reached.error();
  }
}

Task<Result<std::unique_ptr<Metastore>>> Metastore::open(Env& env, std::string directory,
                                                         MetastoreOptions options) {
  const StorageOptions how{options.node_id, draw_replica(env), options.found_alone};
  auto job = [&fs = env.fs, directory, how] { return open_storage(fs, directory, how); };
  NARAD_CO_TRY(Storage storage, co_await blocking(env, "metastore open", std::move(job)));
  if (!storage.repaired.empty()) {
    NARAD_LOG_ERROR(env.log,
                    "metastore state was damaged; made anew from the snapshot and the log, and the "
                    "damaged file kept beside it",
                    {"why", storage.repaired});
  }
  options.raft.node = options.node_id;
  raft::StartState start = std::move(storage.start);
  auto impl = std::make_unique<Impl>(env, std::move(options), std::move(storage));
  auto raft = raftnode::RaftNode::start(env, impl->options.raft, impl->storage.log,
                                        std::move(start), *impl);
  if (!raft) {
    co_return raft.error().with_context(
        cat("metastore: ", directory,
            " contradicts itself (nothing was changed; put back a copy of the directory)"));
  }
  impl->raft = std::move(raft.value());
  impl->status_changed();
  impl->tasks.spawn("metastore writer", impl->write_loop());
  impl->tasks.spawn("metastore contact", impl->contact_loop());
  std::unique_ptr<Metastore> opened(new Metastore(std::move(impl)));
  Result<void> started = ok();
  std::exception_ptr cancelled;
  try {
    started = co_await opened->impl_->await_start();
  } catch (...) {
    cancelled = std::current_exception();
  }
  if (cancelled) co_await clear_cancellation();
  if (cancelled || !started) co_await opened->close();
  if (cancelled) std::rethrow_exception(cancelled);
  if (!started) co_return started.error();
  const ViewPtr view = opened->view();
  NARAD_LOG_INFO(env.log, "metastore opened", {"applied", view->applied},
                 {"topics", view->topics.size()}, {"members", view->members.size()},
                 {"replica", to_hex16(opened->replica().value())});
  co_return std::move(opened);
}

Task<Result<CommandResult>> Metastore::propose(Command command) {
  if (impl_->closing) co_return closing_error();
  if (std::holds_alternative<Unsupported>(command)) {
    State scratch;
    co_return apply(scratch, RaftIndex(1), command);
  }
  std::string encoded = encode(command);
  if (encoded.size() > kCommandBytesMax) co_return too_large(encoded.size());
  auto outcome = co_await impl_->propose(std::move(encoded), impl_->options.propose_deadline, true);
  if (!outcome) co_return outcome.error();
  co_return std::move(outcome.value().result);
}

Task<std::string> Metastore::serve_forwarded(std::string body, Nanos deadline) {
  const Command command = decode_command(body);
  Result<Applied> outcome = closing_error();
  if (impl_->closing) co_return encode_outcome(outcome);
  if (body.size() > kCommandBytesMax) {
    outcome = too_large(body.size());
  } else if (std::holds_alternative<Unsupported>(command)) {
    State scratch;
    outcome = Applied{RaftIndex(1), apply(scratch, RaftIndex(1), command)};
  } else {
    outcome = co_await impl_->propose(std::move(body), deadline, false);
  }
  co_return encode_outcome(outcome);
}

void Metastore::deliver(raft::Message message, const std::string& from_node) {
  impl_->raft->deliver(std::move(message), from_node);
}

ViewPtr Metastore::view() const { return impl_->view; }
Event& Metastore::changed() { return impl_->changed; }
Task<Result<RaftIndex>> Metastore::barrier(Nanos deadline) { return impl_->barrier(deadline); }
bool Metastore::caught_up() const { return impl_->caught_up(); }
LeaderView Metastore::leader() const {
  return {impl_->raft->leader_node(), impl_->raft->is_leader(), impl_->raft->term().value()};
}

raftnode::Status Metastore::raft_status() const { return impl_->raft->status(); }
raft::ReplicaId Metastore::replica() const { return impl_->raft->replica(); }
bool Metastore::empty() const { return impl_->raft->empty(); }
Task<Result<void>> Metastore::found(raft::Configuration configuration) {
  return impl_->raft->found(std::move(configuration));
}
Task<Result<void>> Metastore::propose_change(raft::ConfigurationChange change) {
  return impl_->raft->change(std::move(change), impl_->options.propose_deadline);
}
Task<Result<void>> Metastore::transfer_leadership(std::string node, Nanos deadline) {
  return impl_->raft->transfer_leadership(std::move(node), deadline);
}

Task<void> Metastore::close() {
  Impl& impl = *impl_;
  if (impl.closing) co_return;
  impl.closing = true;
  impl.leadership.notify_all();
  impl.wrote.notify_all();
  const Deadline patience = Deadline::after(impl.env, impl.options.raft.tick * kCloseTicks);
  while (!impl.waiting.empty() && !impl.dead && !patience.passed(impl.env)) {
    (void)co_await impl.settled.wait_for(patience.left(impl.env));
  }
  co_await impl.raft->stop();
  impl.stop_writer = true;
  impl.work.notify_all();
  while (!impl.writer_ended && !impl.dead) co_await impl.wrote.wait();
  co_await impl.tasks.stop();
  if (impl.dead || impl.storage.log->sync_failed()) co_return;
  auto storage = std::make_shared<Storage>(std::move(impl.storage));
  auto job = [storage] { return close_storage(*storage); };
  const Result<void> closed = co_await blocking(impl.env, "metastore close", std::move(job));
  if (closed) co_return;
  NARAD_LOG_ERROR(impl.env.log, "metastore not closed cleanly: the next start checks it",
                  {"error", closed.error()});
}

}  // namespace narad::metastore
