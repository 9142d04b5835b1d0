#include "internal/metastore/metastore.h"

#include <deque>
#include <optional>

#include "internal/metastore/apply.h"
#include "internal/metastore/store.h"
#include "pkg/async/task_group.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::metastore {
namespace {

// One transaction takes at most so much.
constexpr std::size_t kBatchEntriesMax = 1024;
constexpr std::size_t kBatchBytesMax = 8 << 20;

struct Proposal {
  Proposal(Env& env, Command c, std::string e)
      : command(std::move(c)), encoded(std::move(e)), answered(env) {}
  Command command;
  std::string encoded;
  std::optional<Result<CommandResult>> outcome;
  Event answered;
};
using ProposalPtr = std::shared_ptr<Proposal>;

void answer(Proposal& proposal, Result<CommandResult> outcome) {
  proposal.outcome.emplace(std::move(outcome));
  proposal.answered.notify_all();
}

Error closing_error() { return Error(Errc::unavailable, "the metastore is shutting down"); }

}  // namespace

struct Metastore::Impl {
  Impl(Env& e, std::unique_ptr<Store> s, ViewPtr v)
      : env(e), store(std::move(s)), view(std::move(v)), changed(e), work(e), ended(e), tasks(e) {}

  Env& env;
  std::shared_ptr<Store> store;  // touched by one job at a time; jobs own a reference
  ViewPtr view;                  // what is durable and published
  std::deque<ProposalPtr> waiting;
  bool closing = false;
  bool failed = false;  // a sync failed: the process is about to end
  Event changed;
  Event work;  // something was proposed, or closing began
  bool writer_ended = false;
  Event ended;
  TaskGroup tasks;

  std::vector<ProposalPtr> take_batch();
  Task<void> write_loop();
  Task<void> write_batch(std::vector<ProposalPtr> batch);
};

std::vector<ProposalPtr> Metastore::Impl::take_batch() {
  std::vector<ProposalPtr> batch;
  std::size_t bytes = 0;
  while (!waiting.empty() && batch.size() < kBatchEntriesMax) {
    bytes += waiting.front()->encoded.size();
    if (!batch.empty() && bytes > kBatchBytesMax) break;
    batch.push_back(std::move(waiting.front()));
    waiting.pop_front();
  }
  return batch;
}

// One transaction at a time; what arrives meanwhile shares the next one. Ends by itself once
// everything that was proposed before closing has its outcome.
Task<void> Metastore::Impl::write_loop() {
  while (!failed) {
    std::vector<ProposalPtr> batch = take_batch();
    if (!batch.empty()) {
      co_await write_batch(std::move(batch));
    } else if (closing) {
      break;
    } else {
      co_await work.wait();
    }
  }
  writer_ended = true;
  ended.notify_all();
}

Task<void> Metastore::Impl::write_batch(std::vector<ProposalPtr> batch) {
  const ViewPtr before = view;
  auto after = std::make_shared<State>(*before);
  auto entries = std::make_shared<std::vector<LogEntry>>();
  std::vector<CommandResult> results;
  for (const ProposalPtr& proposal : batch) {
    const RaftIndex index = after->applied.next();
    results.push_back(apply(*after, index, proposal->command));
    entries->push_back({index, proposal->encoded});
  }
  auto job = [store = store, before, after, entries]() -> Result<void> {
    return store->commit(*before, *after, *entries);
  };
  const Result<void> written = co_await blocking(env, "metastore commit", std::move(job));
  if (written) {
    // Acknowledged after the transaction above was synced.
    view = after;
    for (std::size_t i = 0; i < batch.size(); ++i) answer(*batch[i], std::move(results[i]));
    changed.notify_all();
    co_return;
  }
  if (store->sync_failed()) {
    failed = true;
    env.process.exit(kExitSyncFailed,
                     cat("metastore: a sync failed, so nothing newly written may be believed: ",
                         written.error().text()));
    co_return;  // in simulation the node ends with the next event; nobody is answered
  }
  NARAD_LOG_ERROR(env.log, "metastore cannot write", {"error", written.error()},
                  {"proposals", batch.size()});
  const Error refused(Errc::unavailable,
                      cat("the metastore cannot write: ", written.error().text()));
  for (const ProposalPtr& proposal : batch) answer(*proposal, refused);
}

Metastore::Metastore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Metastore::~Metastore() = default;

Task<Result<std::unique_ptr<Metastore>>> Metastore::open(Env& env, std::string directory) {
  auto job = [&fs = env.fs, directory = std::move(directory)] {
    return Store::open(fs, directory);
  };
  auto opened = co_await blocking(env, "metastore open", std::move(job));
  if (!opened) co_return opened.error();
  auto view = std::make_shared<const State>(std::move(opened.value().state));
  NARAD_LOG_INFO(env.log, "metastore opened", {"applied", view->applied},
                 {"topics", view->topics.size()}, {"members", view->members.size()});
  auto impl = std::make_unique<Impl>(env, std::move(opened.value().store), std::move(view));
  impl->tasks.spawn("metastore writer", impl->write_loop());
  co_return std::unique_ptr<Metastore>(new Metastore(std::move(impl)));
}

Task<Result<CommandResult>> Metastore::propose(Command command) {
  if (impl_->closing) co_return closing_error();
  if (std::holds_alternative<Unsupported>(command)) {
    State scratch;
    co_return apply(scratch, RaftIndex(1), command);
  }
  std::string encoded = encode(command);
  if (encoded.size() > kCommandBytesMax) {
    co_return Error(Errc::too_large, cat("the change is too large for one metadata entry: ",
                                         encoded.size(), " of ", kCommandBytesMax, " bytes"));
  }
  auto proposal = std::make_shared<Proposal>(impl_->env, std::move(command), std::move(encoded));
  impl_->waiting.push_back(proposal);
  impl_->work.notify_all();
  while (!proposal->outcome) co_await proposal->answered.wait();
  co_return std::move(*proposal->outcome);
}

ViewPtr Metastore::view() const { return impl_->view; }
Event& Metastore::changed() { return impl_->changed; }
Task<Result<RaftIndex>> Metastore::barrier(Nanos) { co_return impl_->view->applied; }
LeaderView Metastore::leader() const { return {"", true, 0}; }
bool Metastore::caught_up() const { return true; }

Task<void> Metastore::close() {
  Impl& impl = *impl_;
  if (impl.closing) co_return;
  impl.closing = true;
  impl.work.notify_all();
  while (!impl.writer_ended) co_await impl.ended.wait();
  co_await impl.tasks.stop();
  if (impl.failed) co_return;
  auto job = [store = impl.store] { return store->close(); };
  const Result<void> closed = co_await blocking(impl.env, "metastore close", std::move(job));
  if (closed) co_return;
  NARAD_LOG_ERROR(impl.env.log, "metastore not closed cleanly: the next start checks it",
                  {"error", closed.error()});
}

}  // namespace narad::metastore
