#include "internal/peer/raft_lane.h"

#include "internal/peer/test_cluster.h"
#include "internal/wire/raft_message.h"

namespace narad::peer {
namespace {

using namespace testing;
using raft::Message;
using raft::MessageKind;

// A machine with both sides of the plane, a raft lane, and what it was handed.
struct RaftNode {
  RaftNode(Env& env, NodeSetup& s, RaftLaneOptions options)
      : peers(env, s.peers, s, s), server(env, s.server, s), lane(env, peers, options), group(env) {
    RaftLane::add_route(server, [this](Message m, const std::string& from) {
      received.push_back(std::move(m));
      senders.push_back(from);
    });
    EXPECT_TRUE(server.listen(Endpoint{"", kPort}));
  }
  Peers peers;
  Server server;
  RaftLane lane;
  TaskGroup group;
  std::vector<Message> received;
  std::vector<std::string> senders;
};

class RaftLaneTest : public ::testing::Test {
 protected:
  explicit RaftLaneTest() : c(3) {}
  ~RaftLaneTest() override {
    for (int i = 0; i < 3; ++i) {
      if (!c.machine(i).up()) continue;
      auto done = std::make_shared<bool>(false);
      const auto stop = [](RaftNode* n, std::shared_ptr<bool> out) -> Task<void> {
        co_await n->lane.stop();
        co_await n->peers.stop();
        co_await n->server.stop(seconds(1));
        *out = true;
      };
      asio::co_spawn(c.machine(i).env().executor, stop(&node(i), done), [](std::exception_ptr e) {
        if (e) std::rethrow_exception(e);
      });
      EXPECT_TRUE(c.sim.run_until([&] { return *done; }, seconds(30)));
    }
  }
  void boot(int i, RaftLaneOptions options = {}) {
    NodeSetup& setup = c.setup(i);
    c.machine(i).boot(
        [&setup, options](Env& env) { return std::make_shared<RaftNode>(env, setup, options); });
  }
  RaftNode& node(int i) { return c.machine(i).component<RaftNode>(); }

  static Message heartbeat(std::uint64_t round, std::uint64_t from = 100) {
    Message m;
    m.kind = MessageKind::heartbeat;
    m.from = ReplicaId(from);
    m.to = ReplicaId(101);
    m.term = raft::Term(1);
    m.round = round;
    return m;
  }
  static Message append(std::uint64_t index, std::size_t bytes) {
    Message m = heartbeat(0);
    m.kind = MessageKind::append;
    m.index = raft::Index(index);
    raft::Entry e;
    e.index = raft::Index(index + 1);
    e.term = raft::Term(1);
    e.kind = raft::EntryKind::command;
    e.payload = raft::payload_of(std::string(bytes, 'p'));
    m.entries.push_back(e);
    return m;
  }
  static Message chunk(std::size_t bytes) {
    Message m = heartbeat(0);
    m.kind = MessageKind::snapshot_chunk;
    auto meta = std::make_shared<raft::SnapshotMeta>();
    meta->index = raft::Index(5);
    meta->term = raft::Term(1);
    meta->size_bytes = bytes;
    m.snapshot = meta;
    m.length = bytes;
    raft::fill_chunk(m, raft::payload_of(std::string(bytes, 'c')));
    return m;
  }

  TestCluster c;
};

TEST_F(RaftLaneTest, Messages_ArriveInOrderAndFewBatches) {
  boot(0);
  boot(1);
  for (std::uint64_t i = 0; i < 100; ++i) node(0).lane.send("n1", heartbeat(i));
  c.sim.run_for(seconds(1));
  ASSERT_EQ(node(1).received.size(), 100u);
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(node(1).received[i].round, i);
    EXPECT_EQ(node(1).received[i].from, ReplicaId(100));
    EXPECT_EQ(node(1).senders[i], "n0");
  }
  const auto stats = node(0).lane.stats();
  EXPECT_EQ(stats.sent, 100u);
  EXPECT_LE(stats.batches, 2u);
  EXPECT_EQ(stats.waiting, 0u);
  node(0).lane.send("n1", heartbeat(100));
  c.sim.run_for(seconds(1));
  EXPECT_EQ(node(1).received.size(), 101u);
  EXPECT_EQ(node(0).peers.stats(Lane::raft).connects, 1u);
}

TEST_F(RaftLaneTest, LargeEntries_GoInBatchesOfBoundedSize) {
  c.net.faults.split_read = c.net.faults.partial_write = 0;
  boot(0);
  boot(1);
  for (std::uint64_t i = 1; i <= 10; ++i) node(0).lane.send("n1", append(i, 700'000));
  c.sim.run_for(seconds(20));
  ASSERT_EQ(node(1).received.size(), 10u);
  EXPECT_EQ(node(1).received[9].entries[0].payload->size(), 700'000u);
  EXPECT_EQ(node(0).lane.stats().batches, 10u);
}

TEST_F(RaftLaneTest, FullQueue_DropsTheOldest) {
  RaftLaneOptions options;
  options.queue_messages_max = 10;
  boot(0, options);
  boot(1);
  for (std::uint64_t i = 0; i < 25; ++i) node(0).lane.send("n1", heartbeat(i));
  EXPECT_EQ(node(0).lane.stats().dropped, 15u);
  EXPECT_EQ(node(0).lane.stats().waiting, 10u);
  c.sim.run_for(seconds(1));
  ASSERT_EQ(node(1).received.size(), 10u);
  EXPECT_EQ(node(1).received[0].round, 15u);

  options.queue_messages_max = 1000;
  options.queue_bytes_max = 100'000;
  c.machine(0).kill(sim::Machine::Kill::process_exit);
  boot(0, options);
  for (std::uint64_t i = 1; i <= 5; ++i) node(0).lane.send("n1", append(i, 40'000));
  EXPECT_EQ(node(0).lane.stats().dropped, 3u);
  // One that is larger than the queue is still sent.
  node(0).lane.send("n1", append(6, 200'000));
  EXPECT_EQ(node(0).lane.stats().waiting, 1u);
  c.sim.run_for(seconds(10));
  ASSERT_EQ(node(1).received.size(), 11u);
  EXPECT_EQ(node(1).received[10].index, raft::Index(6));
}

TEST_F(RaftLaneTest, SlowDeadOrSilentPeer_NeverSlowsAnother) {
  sim::Link slow;
  slow.latency_min = slow.latency_spread = seconds(1);
  c.net.set_link(0, 2, slow);
  boot(0);
  boot(1);
  boot(2);
  for (int phase = 0; phase < 3; ++phase) {
    if (phase == 1) c.machine(2).kill(sim::Machine::Kill::process_exit);
    if (phase == 2) {
      boot(2);
      c.net.block(2, 0);
    }
    const std::size_t before = node(1).received.size();
    for (std::uint64_t i = 0; i < 20; ++i) {
      node(0).lane.send("n2", heartbeat(i));
      node(0).lane.send("n1", heartbeat(i));
      c.sim.run_for(milliseconds(50));
      EXPECT_EQ(node(1).received.size(), before + i + 1) << "phase " << phase;
    }
  }
  EXPECT_GT(node(0).lane.stats().lost, 0u);
  // Healed: what is sent then arrives.
  c.net.heal();
  c.net.clear_links();
  c.sim.run_for(seconds(20));
  const std::size_t before = node(2).received.size();
  node(0).lane.send("n2", heartbeat(7777));
  c.sim.run_for(seconds(1));
  ASSERT_EQ(node(2).received.size(), before + 1);
  EXPECT_EQ(node(2).received.back().round, 7777u);
}

TEST_F(RaftLaneTest, SnapshotChunkOnASlowLink_DoesNotHoldUpHeartbeats) {
  c.net.faults.split_read = c.net.faults.partial_write = 0;
  sim::Link slow;
  slow.bytes_per_second = 300'000;
  c.net.set_link(0, 1, slow);
  boot(0);
  boot(1);
  node(0).lane.send("n1", chunk(600'000));
  Nanos worst{0};
  for (std::uint64_t i = 0; i < 30; ++i) {
    const std::size_t before = node(1).received.size();
    const Nanos sent = c.sim.now();
    node(0).lane.send("n1", heartbeat(i));
    ASSERT_TRUE(c.sim.run_until([&] { return node(1).received.size() > before; }, seconds(5)));
    worst = std::max(worst, c.sim.now() - sent);
    c.sim.run_for(milliseconds(50));
  }
  EXPECT_LT(worst, milliseconds(60));
  ASSERT_TRUE(c.sim.run_until([&] { return node(1).received.size() == 31; }, seconds(10)));
  EXPECT_EQ(node(0).lane.stats().lost, 0u);  // the chunk had the time that its size needs
}

TEST_F(RaftLaneTest, MessagesInAnothersName_AreRefused) {
  boot(0);
  boot(1);
  node(0).lane.send("n1", heartbeat(1, 102));
  c.sim.run_for(seconds(1));
  EXPECT_EQ(node(1).received.size(), 0u);
  EXPECT_EQ(node(0).lane.stats().lost, 1u);
}

TEST_F(RaftLaneTest, MalformedBatch_IsRefusedWhole) {
  boot(0);
  boot(1);
  auto out = std::make_shared<Pending<http::Response>>();
  const auto run = [](RaftNode* n, std::shared_ptr<Pending<http::Response>> p) -> Task<void> {
    Call call(http::Method::post, "/peer/v1/raft", "no batch");
    p->result.emplace(co_await n->peers.call("n1", Lane::raft, std::move(call), seconds(5)));
  };
  node(0).group.spawn("call", run(&node(0), out));
  auto r = c.finish(out);
  ASSERT_TRUE(r);
  EXPECT_EQ(r.value().status, 400);
  EXPECT_TRUE(contains(r.value().body, "malformed"));
  EXPECT_EQ(node(1).received.size(), 0u);
}

TEST_F(RaftLaneTest, Stop_WithMessagesUnderWay_EndsAtOnce) {
  boot(0);
  boot(1);
  c.net.block(1, 0);
  for (std::uint64_t i = 0; i < 100; ++i) node(0).lane.send("n1", heartbeat(i));
  c.sim.run_for(milliseconds(10));
  auto done = std::make_shared<bool>(false);
  const auto stop = [](RaftNode* n, std::shared_ptr<bool> out) -> Task<void> {
    co_await n->lane.stop();
    *out = true;
  };
  const Nanos before = c.sim.now();
  node(0).group.spawn("stop", stop(&node(0), done));
  EXPECT_TRUE(c.sim.run_until([&] { return *done; }, seconds(10)));
  EXPECT_LT(c.sim.now() - before, milliseconds(10));
  node(0).lane.send("n1", heartbeat(1));
  EXPECT_EQ(node(0).lane.stats().waiting, 0u);
}

}  // namespace
}  // namespace narad::peer
