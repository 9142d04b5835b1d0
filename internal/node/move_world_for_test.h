#pragma once
// For tests: the owner's side of moves on one simulated machine, with a real metastore, real
// partitions and nothing between them but the reins of the test. Node "here" owns every partition
// of topic "orders"; "there" and "away" are members to whom they may be moved.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "internal/node/links_for_test.h"
#include "internal/node/local_broker.h"
#include "internal/node/source_partitions.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::node::testing {

using namespace std::chrono_literals;

// A metastore whose leader can be out of reach.
class Reins final : public metastore::Proposer {
 public:
  Reins(Env& env, metastore::Metastore& inner) : env_(env), inner_(inner) {}
  bool reachable = true;
  // Applied, but the answer is lost.
  bool lose_answers = false;
  const std::shared_ptr<StubLinks> links = std::make_shared<StubLinks>(StubLinks{"orders", {}});
  std::uint64_t proposals = 0;

  Task<Result<metastore::CommandResult>> propose(metastore::Command command) override {
    ++proposals;
    if (!reachable) {
      co_await sleep_for(env_, 500ms);
      co_return Error(Errc::unavailable, "no leader");
    }
    auto result = co_await inner_.propose(std::move(command));
    if (lose_answers) co_return Error(Errc::unknown_outcome, "the answer was lost");
    co_return result;
  }
  metastore::ViewPtr view() const override { return linked_.in(inner_.view()); }
  Event& changed() override { return inner_.changed(); }
  Task<Result<RaftIndex>> barrier(Nanos deadline) override {
    if (!reachable) {
      co_await sleep_for(env_, 500ms);
      co_return Error(Errc::unavailable, "no leader");
    }
    co_return co_await inner_.barrier(deadline);
  }
  metastore::LeaderView leader() const override {
    return reachable ? inner_.leader() : metastore::LeaderView{};
  }
  bool caught_up() const override { return reachable && inner_.caught_up(); }

 private:
  Env& env_;
  metastore::Metastore& inner_;
  const LinkedView linked_{links};
};

template <class T>
using Slot = std::shared_ptr<std::optional<T>>;

class MoveWorld : public ::testing::Test {
 protected:
  // What one life of the node consists of; goes with it, in this order from below.
  struct Life {
    std::unique_ptr<DataDir> data;
    std::unique_ptr<metastore::Metastore> store;
    std::unique_ptr<Reins> reins;
    std::unique_ptr<moves::Source> source;
    std::unique_ptr<Partitions> partitions;
    std::unique_ptr<SourcePartitions> seen;
    std::unique_ptr<LocalBroker> broker;
  };
  // What the node holds goes when it dies: after its frames, before its loop.
  struct Held {
    explicit Held(MoveWorld& w) : world(w) {}
    ~Held() { world.life.reset(); }
    MoveWorld& world;
  };

  ~MoveWorld() override {
    if (life) stop();
  }

  Env& boot() {
    solo.machine.boot([this](Env&) { return std::make_shared<Held>(*this); });
    return solo.machine.env();
  }
  void start() {
    life = std::make_unique<Life>();
    run(open(*this));
  }
  static Task<void> open(MoveWorld& w) {
    Env& env = w.env;
    Life& l = *w.life;
    DataDirOptions where;
    where.data_dir = "/data";
    where.default_node_id = "here";
    where.holder = "a test";
    auto dir = [&env, where] { return DataDir::open(env.fs, env.random, UnixMillis(1), where); };
    auto data = co_await blocking(env, "data", std::move(dir));
    l.data = std::move(data.value());
    metastore::MetastoreOptions options;
    options.node_id = "here";
    auto store = co_await metastore::Metastore::open(env, l.data->metastore_path(), options);
    l.store = std::move(store.value());
    l.reins = std::make_unique<Reins>(env, *l.store);
    l.reins->reachable = w.reachable_at_start;
    auto lease = [&w] { return w.proof; };
    l.source = std::make_unique<moves::Source>(env, "here", *l.reins, w.has_peers, std::move(lease),
                                               w.timing);
    PartitionsOptions how;
    how.node_id = "here";
    how.log = w.knobs;
    how.gate = [source = l.source.get()](const TopicPartition& id, const Assignment& row) {
      return source->gate(id, row);
    };
    l.partitions = std::make_unique<Partitions>(env, std::move(how), *l.data, *l.reins);
    l.seen = std::make_unique<SourcePartitions>(env, *l.partitions, *l.reins);
    l.source->attach(*l.seen);
    l.source->start();
    l.broker = std::make_unique<LocalBroker>(env, "here", *l.reins, *l.partitions, l.source.get());
  }
  void stop() {
    run(close(*this));
    life.reset();
  }
  static Task<void> close(MoveWorld& w) {
    co_await w.life->source->stop();
    co_await w.life->partitions->close_all();
    co_await w.life->store->close();
  }
  void crash() {
    solo.kill();
    boot();
  }

  // Two partitions, each with `records` committed.
  void begin(std::uint32_t partitions = 2, std::uint64_t records = 5) {
    start();
    join("here");
    metastore::TopicSpec spec;
    spec.name = "orders";
    spec.partitions = partitions;
    spec.visibility_timeout_ms = 30'000;
    spec.max_in_flight_per_partition = 100;
    spec.max_acked_ahead_per_partition = 100;
    topic = run(metastore::create_topic(env, *life->store, spec)).value();
    join("there");
    join("away");
    for (std::uint32_t p = 0; p < partitions && records > 0; ++p) {
      ASSERT_TRUE(produce(p, records));
    }
  }
  void join(std::string id) {
    propose(metastore::RegisterMember{
        id, "h:1", "c:1", "boot", {life->data->disks()[0].id}, UnixMillis(1)});
  }
  metastore::CommandResult propose(metastore::Command command) {
    auto result = run(life->store->propose(std::move(command)));
    EXPECT_TRUE(result);
    if (!result) return {};
    EXPECT_TRUE(result.value().done()) << result.value().text;
    return result.value();
  }
  // Until everything that is under way has come to an end, about.
  void settle(Nanos time = 100ms) { solo.sim.run_for(time); }
  template <class T>
  T run(Task<T> task) {
    return solo.run([task = std::move(task)](Env&) mutable { return std::move(task); });
  }
  template <class T>
  Slot<T> spawn(Task<T> task) {
    auto slot = std::make_shared<std::optional<T>>();
    asio::co_spawn(env.executor, into(std::move(task), slot), asio::detached);
    return slot;
  }
  template <class T>
  static Task<void> into(Task<T> task, Slot<T> slot) {
    slot->emplace(co_await std::move(task));
  }
  bool wait_for(const std::function<bool()>& done, Nanos limit = 60s) {
    return solo.sim.run_until(done, limit);
  }

  // ---- the partition
  Assignment row(std::uint32_t p = 0) {
    return *life->store->view()->assignment("orders", PartitionId(p));
  }
  // The next `count` records of a partition, as one batch.
  CommitBatch batch(std::uint32_t p, std::uint64_t count, std::size_t bytes = 20) {
    CommitBatch b;
    b.incarnation = topic.incarnation;
    b.origin = OriginId(1);
    for (std::uint64_t i = 0; i < count; ++i) {
      auto message = std::make_shared<Message>();
      message->incarnation = topic.incarnation;
      message->topic = "orders";
      message->partition = PartitionId(p);
      message->key = "k";
      message->payload = cat("record ", ++produced, " ");
      message->payload.resize(std::max(bytes, message->payload.size()), '.');
      b.records.push_back({Sequence(produced), std::move(message)});
    }
    return b;
  }
  Task<Result<CommitOutcome>> committing(std::uint32_t p, std::uint64_t count,
                                         std::size_t bytes = 20) {
    return life->broker->commit({"orders", PartitionId(p)}, batch(p, count, bytes));
  }
  Result<CommitOutcome> produce(std::uint32_t p, std::uint64_t count, std::size_t bytes = 20) {
    return run(committing(p, count, bytes));
  }
  std::vector<ReceiptHandle> consume(std::uint32_t max, std::optional<std::uint32_t> p = 0) {
    std::optional<PartitionId> pinned;
    if (p) pinned = PartitionId(*p);
    auto got = run(life->broker->consume("orders", topic.incarnation, pinned, max));
    std::vector<ReceiptHandle> handles;
    EXPECT_TRUE(got) << got.error().text();
    if (!got) return handles;
    for (const auto& message : got.value()) handles.push_back(message.handle);
    return handles;
  }
  Result<void> settle_one(ReceiptHandle handle, SettleMode mode = SettleMode::ack) {
    std::vector<ReceiptHandle> handles{handle};
    return run(life->broker->settle("orders", topic.incarnation, std::move(handles), mode)).front();
  }
  std::shared_ptr<OpenPartition> opened(std::uint32_t p = 0) {
    return life->partitions->find_open({"orders", PartitionId(p)});
  }
  std::string path(std::uint32_t p, const std::string& name) {
    return join_path(partition_path(life->data->disks()[0], {"orders", PartitionId(p)}), name);
  }

  // ---- its move
  RaftIndex set_target(const std::string& to = "there", std::uint32_t p = 0) {
    propose(metastore::SetTarget{"orders", topic.incarnation, PartitionId(p), "here",
                                 row(p).move_id, to, life->data->disks()[0].id, "operator"});
    return row(p).move_id;
  }
  void clear_target(std::uint32_t p = 0) {
    propose(metastore::ClearTarget{"orders", topic.incarnation, PartitionId(p), row(p).target_node,
                                   row(p).move_id, "test"});
  }
  wire::MoveRef move(std::uint32_t p = 0) {
    return {{"orders", PartitionId(p)}, topic.incarnation, row(p).move_id};
  }
  Result<wire::Listing> list(std::uint32_t p = 0) { return run(life->source->listing(move(p))); }
  Result<wire::FreezeAnswer> freeze(std::uint32_t p = 0) {
    wire::FreezeRequest request;
    request.move = move(p);
    return run(life->source->freeze(std::move(request)));
  }
  Result<wire::FreezeAnswer> extend(const wire::FreezeToken& token,
                                    std::optional<Offset> expect = std::nullopt,
                                    std::uint32_t p = 0) {
    wire::FreezeRequest request;
    request.move = move(p);
    request.token = token;
    request.expect_hwm = expect;
    return run(life->source->freeze(std::move(request)));
  }
  void flip(const wire::FreezeToken& token, std::uint32_t p = 0) {
    propose(metastore::CompleteMove{"orders", topic.incarnation, PartitionId(p), "here",
                                    row(p).move_id, token.epoch});
  }
  // A heartbeat that was answered just now.
  void renew_lease() { proof = moves::LeaseProof{env.clock.boot(), life->store->view()->applied}; }

  template <class T>
  static void expect_error(const Result<T>& result, Errc code) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), code) << result.error().text();
  }

  std::unique_ptr<Life> life;
  sim::Solo solo;
  Env& env = boot();
  Topic topic;
  std::uint64_t produced = 0;
  // Of the next start().
  bool has_peers = false;
  bool reachable_at_start = true;
  moves::SourceTiming timing;
  seglog::Knobs knobs;
  std::optional<moves::LeaseProof> proof;
};

}  // namespace narad::node::testing
