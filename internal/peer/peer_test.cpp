// Calls between nodes over the simulated network, nothing going wrong but what the test says.
#include "internal/peer/test_cluster.h"

namespace narad::peer {
namespace {

using namespace testing;

TEST(Peers, Call_OnEveryLane_IsAnsweredAndNamesTheSender) {
  TestCluster c(2);
  c.boot_all();
  for (Lane lane : {Lane::raft, Lane::control, Lane::data, Lane::bulk}) {
    auto r = c.call(0, 1, cat("/peer/v1/", to_string(lane), "/echo"), lane, "hello");
    ASSERT_TRUE(r) << r.error().text();
    EXPECT_EQ(r.value().status, 200);
    EXPECT_EQ(r.value().body, "hello");
    EXPECT_EQ(r.value().headers.get("x-node"), "n1");
    EXPECT_EQ(r.value().headers.count("content-length"), 0u);
    EXPECT_EQ(c.setup(1).last_sender->node_id, "n0");
    EXPECT_EQ(c.setup(1).last_sender->replica, ReplicaId(100));
    EXPECT_EQ(c.setup(1).last_sender->cluster_id, kCluster);
  }
  c.stop_all();
}

TEST(Peers, CallsInARow_ShareOneConnection) {
  TestCluster c(2);
  c.boot_all();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(c.echo(0, 1));
  EXPECT_EQ(c.node(0).peers.stats(Lane::control).connects, 1u);
  EXPECT_EQ(c.node(0).peers.stats(Lane::control).answered, 20u);
  EXPECT_EQ(c.node(1).server.stats().accepted, 1u);
  EXPECT_EQ(c.setup(1).handled.size(), 20u);  // request ids are distinct
  ASSERT_TRUE(c.echo(0, 1, Lane::data));
  EXPECT_EQ(c.node(1).server.stats().accepted, 2u);  // a lane of its own
  c.stop_all();
}

TEST(Peers, SlowCall_HoldsUpNoOther) {
  TestCluster c(2);
  c.boot_all();
  std::vector<std::shared_ptr<Pending<http::Response>>> slow;
  for (int i = 0; i < 10; ++i)
    slow.push_back(c.start(0, 1, "/peer/v1/wait", Lane::control, "", seconds(60)));
  c.sim.run_for(seconds(1));
  EXPECT_EQ(c.setup(1).waiting, 10);
  const Nanos before = c.sim.now();
  ASSERT_TRUE(c.echo(0, 1));
  EXPECT_LT(c.sim.now() - before, milliseconds(50));
  c.node(1).release.notify_all();
  for (auto& s : slow) EXPECT_EQ(c.finish(s).value().body, "released\n");
  c.stop_all();
}

TEST(Peers, FullLane_ServesInOrderOfArrivalAndTellsWhoseDeadlinePassed) {
  TestCluster c(2);
  c.setup(0).peers.lanes[1].connections_max = 1;
  c.boot_all();
  auto slow = c.start(0, 1, "/peer/v1/wait", Lane::control, "slow", seconds(60));
  c.sim.run_for(seconds(1));
  auto impatient = c.start(0, 1, "/peer/v1/control/echo", Lane::control, "late", seconds(1));
  std::vector<std::shared_ptr<Pending<http::Response>>> patient;
  for (int i = 0; i < 3; ++i)
    patient.push_back(
        c.start(0, 1, "/peer/v1/control/echo", Lane::control, cat("p", i), seconds(60)));
  c.sim.run_for(milliseconds(10));
  EXPECT_EQ(c.node(0).peers.status()[0].waiting, 4u);
  EXPECT_EQ(c.error_of(c.finish(impatient)),
            "unavailable: the deadline of a call to n1 passed in the queue for a connection");
  c.node(1).release.notify_all();
  EXPECT_TRUE(c.finish(slow));
  for (auto& p : patient) EXPECT_TRUE(c.finish(p));
  EXPECT_EQ(c.setup(1).bodies, (std::vector<std::string>{"slow", "p0", "p1", "p2"}));
  EXPECT_EQ(c.node(0).peers.stats(Lane::control).unavailable, 1u);
  EXPECT_EQ(c.node(1).server.stats().accepted, 1u);
  c.stop_all();
}

TEST(Peers, UnknownNode_IsUnavailable) {
  TestCluster c(1);
  c.boot_all();
  EXPECT_EQ(c.error_of(c.echo(0, 7)), "unavailable: no address of n7 is known to this node");
  c.stop_all();
}

TEST(Peers, BadTarget_IsInvalidAndNeverSent) {
  TestCluster c(2);
  c.boot_all();
  EXPECT_EQ(c.call(0, 1, "/peer/v1/a b").error().code(), Errc::invalid_argument);
  EXPECT_EQ(c.node(1).server.stats().accepted, 0u);
  c.stop_all();
}

TEST(Peers, DeadNode_FailsAtOnceBetweenAttemptsAndIsFoundAgain) {
  TestCluster c(2);
  c.boot(0);
  EXPECT_TRUE(contains(c.error_of(c.echo(0, 1)), "unavailable: cannot reach n1 at host1:7943: "));
  EXPECT_EQ(c.node(0).peers.stats(Lane::control).connect_failures, 1u);
  // Within the back-off nothing is tried.
  EXPECT_TRUE(contains(c.error_of(c.echo(0, 1)), "unavailable: cannot reach n1 at host1:7943: "));
  EXPECT_EQ(c.node(0).peers.stats(Lane::control).connect_failures, 1u);
  EXPECT_FALSE(c.node(0).peers.trouble_with("n1").empty());
  // The wait doubles, but not beyond its limit: in 20 s there are some fifty attempts, not four
  // hundred.
  for (int i = 0; i < 2000; ++i) {
    (void)c.echo(0, 1);
    c.sim.run_for(milliseconds(10));
  }
  EXPECT_GT(c.node(0).peers.stats(Lane::control).connect_failures, 20u);
  EXPECT_LT(c.node(0).peers.stats(Lane::control).connect_failures, 100u);
  EXPECT_EQ(c.machine(0).log().count("cannot connect to a node"), 1u);  // not once per attempt
  c.boot(1);
  c.sim.run_for(seconds(1));
  EXPECT_TRUE(c.echo(0, 1));
  EXPECT_EQ(c.node(0).peers.trouble_with("n1"), "");
  EXPECT_EQ(c.machine(0).log().count("connected to a node again"), 1u);
  c.stop_all();
}

TEST(Peers, SilentHost_EndsAtTheConnectTimeoutEvenIfTheDeadlineIsLater) {
  TestCluster c(2);
  c.boot_all();
  c.net.block(1, 0);
  const Nanos before = c.sim.now();
  EXPECT_EQ(c.error_of(c.call(0, 1, "/peer/v1/control/echo", Lane::control, "x", seconds(60))),
            "unavailable: cannot reach n1 at host1:7943: no answer in time");
  EXPECT_LT(c.sim.now() - before, seconds(4));
  c.net.heal();
  c.sim.run_for(seconds(1));
  EXPECT_TRUE(c.echo(0, 1));
  c.stop_all();
}

TEST(Peers, NewAddress_IsUsedByTheNextCall) {
  TestCluster c(3);
  c.boot_all();
  ASSERT_TRUE(c.echo(0, 1));
  // n1 moves to the third machine.
  c.machine(1).kill(sim::Machine::Kill::process_exit);
  c.machine(2).kill(sim::Machine::Kill::process_exit);
  c.setup(2).id = c.setup(1).id;
  c.boot(2);
  EXPECT_FALSE(c.echo(0, 1));
  c.setup(0).addresses["n1"] = c.setup(0).addresses["n2"];
  ASSERT_TRUE(c.echo(0, 1));  // at once: the back-off was of the old address
  EXPECT_EQ(c.setup(2).handled.size(), 1u);
  c.stop_all();
}

TEST(Peers, AddressChangedWhileConnected_OldConnectionIsLeft) {
  TestCluster c(3);
  c.boot_all();
  ASSERT_TRUE(c.echo(0, 1));
  c.machine(2).kill(sim::Machine::Kill::process_exit);
  c.setup(2).id = c.setup(1).id;
  c.boot(2);
  c.setup(0).addresses["n1"] = c.setup(0).addresses["n2"];
  ASSERT_TRUE(c.echo(0, 1));
  EXPECT_EQ(c.setup(1).handled.size(), 1u);
  EXPECT_EQ(c.setup(2).handled.size(), 1u);
  c.sim.run_for(seconds(1));
  EXPECT_EQ(c.node(1).server.stats().connections, 0u);
  c.stop_all();
}

TEST(Peers, Deadline_CutsTheCallOffAndIsToldToTheHandler) {
  TestCluster c(2);
  c.boot_all();
  ASSERT_TRUE(c.echo(0, 1));
  const Nanos before = c.sim.now();
  EXPECT_EQ(c.error_of(c.call(0, 1, "/peer/v1/wait", Lane::control, "", milliseconds(700))),
            "unknown_outcome: no answer from n1 before the deadline");
  EXPECT_GE(c.sim.now() - before, milliseconds(700));
  EXPECT_LT(c.sim.now() - before, milliseconds(710));
  const auto told = parse_number<int>(c.setup(1).last_deadline);
  ASSERT_TRUE(told);
  EXPECT_GT(*told, 600);
  EXPECT_LE(*told, 700);
  c.sim.run_for(milliseconds(100));
  EXPECT_EQ(c.setup(1).waiting, 0);
  EXPECT_EQ(c.setup(1).cancelled, 1);
  EXPECT_EQ(c.node(1).server.stats().late, 1u);
  EXPECT_EQ(c.node(0).peers.stats(Lane::control).unknown, 1u);
  ASSERT_TRUE(c.echo(0, 1));
  c.stop_all();
}

TEST(Peers, RouteThatRunsToItsEnd_IsNotCancelledAtTheDeadline) {
  TestCluster c(2);
  c.boot_all();
  EXPECT_FALSE(c.call(0, 1, "/peer/v1/steady", Lane::control, "", milliseconds(700)));
  c.sim.run_for(seconds(2));
  EXPECT_EQ(c.setup(1).waiting, 1);
  c.node(1).release.notify_all();
  c.sim.run_for(seconds(1));
  EXPECT_EQ(c.setup(1).waiting, 0);
  EXPECT_EQ(c.setup(1).cancelled, 0);
  c.stop_all();
}

TEST(Peers, WatchedRoute_IsCancelledWhenTheCallerDies) {
  TestCluster c(2);
  c.boot_all();
  auto call = c.start(0, 1, "/peer/v1/watched", Lane::control, "", seconds(60));
  c.sim.run_for(seconds(1));
  EXPECT_EQ(c.setup(1).waiting, 1);
  c.machine(0).kill(sim::Machine::Kill::process_exit);
  c.sim.run_for(seconds(1));
  EXPECT_EQ(c.setup(1).waiting, 0);
  EXPECT_EQ(c.setup(1).cancelled, 1);
  c.stop_all();
}

TEST(Peers, NoTimeLeft_IsUnavailable) {
  TestCluster c(2);
  c.boot_all();
  EXPECT_EQ(c.call(0, 1, "/peer/v1/control/echo", Lane::control, "", Nanos(0)).error().code(),
            Errc::unavailable);
  EXPECT_EQ(c.node(1).server.stats().accepted, 0u);
  c.stop_all();
}

TEST(Peers, UnknownRoute_WrongLaneAndBadMethod_AreDeclinedPolitely) {
  TestCluster c(2);
  c.boot_all();
  auto unknown = c.call(0, 1, "/peer/v1/of_the_future?x=1");
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown.value().status, 400);
  EXPECT_TRUE(contains(unknown.value().body, "unknown call POST /peer/v1/of_the_future"));
  auto lane = c.call(0, 1, "/peer/v1/data/echo", Lane::control);
  ASSERT_TRUE(lane);
  EXPECT_EQ(lane.value().status, 400);
  EXPECT_TRUE(contains(lane.value().body, "belongs on lane data, not control"));
  // The connection goes on.
  ASSERT_TRUE(c.echo(0, 1));
  EXPECT_EQ(c.node(1).server.stats().accepted, 1u);
  EXPECT_EQ(c.node(1).server.stats().declined, 2u);
  EXPECT_EQ(c.node(1).server.stats().served, 1u);
  c.stop_all();
}

TEST(Peers, AnswerOverTheLimit_IsUnknownOutcome) {
  TestCluster c(2);
  c.setup(0).peers.lanes[2].answer_bytes_max = 1000;
  c.boot_all();
  ASSERT_TRUE(c.call(0, 1, "/peer/v1/data/echo", Lane::data, std::string(1000, 'x')));
  auto r = c.call(0, 1, "/peer/v1/data/echo", Lane::data, std::string(1001, 'x'));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unknown_outcome);
  EXPECT_TRUE(contains(r.error().text(), "larger than 1000 bytes"));
  c.stop_all();
}

TEST(Peers, LargeBodies_ArriveWhole) {
  TestCluster c(2);
  c.net.faults.split_read = c.net.faults.partial_write = 0;
  c.boot_all();
  std::string body;
  for (int i = 0; i < 4'000'000; ++i) body += static_cast<char>('a' + i % 23);
  auto r = c.call(0, 1, "/peer/v1/data/echo", Lane::data, body, seconds(60));
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_TRUE(r.value().body == body);
  c.stop_all();
}

TEST(Peers, IdleConnections_AreClosedByTheCallerFirst) {
  TestCluster c(2);
  c.boot_all();
  for (Lane lane : {Lane::raft, Lane::control, Lane::data, Lane::bulk})
    ASSERT_TRUE(c.echo(0, 1, lane));
  c.sim.run_for(seconds(20));
  EXPECT_EQ(c.node(1).server.stats().connections, 4u);
  c.sim.run_for(seconds(30));
  EXPECT_EQ(c.node(1).server.stats().connections, 0u);
  EXPECT_EQ(c.node(1).server.stats().timed_out, 0u);
  EXPECT_EQ(c.net.open_connections(), 0u);
  ASSERT_TRUE(c.echo(0, 1));
  c.stop_all();
}

TEST(Peers, RestartedPeer_IsCalledOverANewConnection) {
  TestCluster c(2);
  c.boot_all();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(c.echo(0, 1));
    c.machine(1).kill(sim::Machine::Kill::process_exit);
    c.sim.run_for(milliseconds(200));
    c.boot(1);
  }
  EXPECT_EQ(c.node(0).peers.stats(Lane::control).unknown, 0u);
  c.stop_all();
}

TEST(Peers, Stop_EndsCallsOfEveryKindAndLaterOnesAreUnavailable) {
  TestCluster c(3);
  c.setup(0).peers.lanes[1].connections_max = 1;
  c.boot(0);
  c.boot(1);
  auto sent = c.start(0, 1, "/peer/v1/wait", Lane::control, "", seconds(60));
  c.sim.run_for(milliseconds(500));
  auto queued = c.start(0, 1, "/peer/v1/control/echo", Lane::control, "", seconds(60));
  c.net.block(0, 2);
  auto connecting = c.start(0, 2, "/peer/v1/control/echo", Lane::control, "", seconds(60));
  c.sim.run_for(milliseconds(500));
  const Nanos before = c.sim.now();
  auto stopped = std::make_shared<bool>(false);
  c.node(0).group.spawn("stop", [](TestNode* n, std::shared_ptr<bool> out) -> Task<void> {
    co_await n->peers.stop();
    *out = true;
  }(&c.node(0), stopped));
  EXPECT_TRUE(c.sim.run_until([&] { return *stopped; }, seconds(30)));
  EXPECT_LT(c.sim.now() - before, milliseconds(100));
  EXPECT_EQ(c.finish(sent).error().code(), Errc::unknown_outcome);
  EXPECT_EQ(c.finish(queued).error().code(), Errc::unavailable);
  EXPECT_EQ(c.finish(connecting).error().code(), Errc::unavailable);
  const auto later = c.echo(0, 1);
  EXPECT_EQ(later.error().code(), Errc::unavailable);
  EXPECT_EQ(later.error().text(), "this node stops");
  c.stop_all();
}

TEST(PeerServer, Stop_LetsRequestsFinishAndThenCancels) {
  TestCluster c(2);
  c.boot_all();
  auto quick = c.start(0, 1, "/peer/v1/wait", Lane::control, "", seconds(60));
  c.sim.run_for(milliseconds(500));
  auto stopped = std::make_shared<bool>(false);
  const auto stop = [](TestNode* n, Nanos grace, std::shared_ptr<bool> out) -> Task<void> {
    co_await n->server.stop(grace);
    *out = true;
  };
  c.node(1).group.spawn("stop", stop(&c.node(1), seconds(5), stopped));
  c.sim.run_for(seconds(1));
  EXPECT_FALSE(*stopped);
  EXPECT_EQ(c.echo(0, 1).error().code(), Errc::unavailable);  // it takes no more
  c.node(1).release.notify_all();
  EXPECT_EQ(c.finish(quick).value().body, "released\n");
  EXPECT_TRUE(c.sim.run_until([&] { return *stopped; }, seconds(30)));

  c.machine(1).kill(sim::Machine::Kill::process_exit);
  c.boot(1);
  c.sim.run_for(seconds(2));
  auto endless = c.start(0, 1, "/peer/v1/wait", Lane::control, "", seconds(60));
  c.sim.run_for(milliseconds(500));
  stopped = std::make_shared<bool>(false);
  const Nanos before = c.sim.now();
  c.node(1).group.spawn("stop", stop(&c.node(1), seconds(5), stopped));
  EXPECT_TRUE(c.sim.run_until([&] { return *stopped; }, seconds(30)));
  EXPECT_LT(c.sim.now() - before, seconds(6));
  EXPECT_EQ(c.finish(endless).error().code(), Errc::unknown_outcome);
  EXPECT_EQ(c.setup(1).cancelled, 1);
  c.stop_all();
}

// A slow bulk transfer takes the whole link of its connections; control has its own.
TEST(Peers, ControlCalls_StayQuickWhileTheBulkLaneIsSaturated) {
  TestCluster c(2);
  c.net.faults.split_read = c.net.faults.partial_write = 0;
  sim::Link link;
  link.bytes_per_second = 1'000'000;
  c.net.set_link(0, 1, link);
  c.net.set_link(1, 0, link);
  c.boot_all();
  ASSERT_TRUE(c.echo(0, 1));
  std::vector<std::shared_ptr<Pending<http::Response>>> bulk;
  for (int i = 0; i < 20; ++i)
    bulk.push_back(
        c.start(0, 1, "/peer/v1/bulk/echo", Lane::bulk, std::string(2'000'000, 'x'), seconds(100)));
  Nanos worst{0};
  int calls = 0;
  while (!bulk.front()->done()) {
    const Nanos before = c.sim.now();
    ASSERT_TRUE(c.echo(0, 1));
    worst = std::max(worst, c.sim.now() - before);
    ++calls;
    c.sim.run_for(milliseconds(20));
  }
  EXPECT_GT(calls, 50);
  EXPECT_LT(worst, milliseconds(20));
  EXPECT_EQ(c.node(0).peers.stats(Lane::bulk).connects, 4u);
  c.stop_all();
}

}  // namespace
}  // namespace narad::peer
