// Who is let in, who is refused, and that both sides' people learn why.
#include "internal/peer/test_cluster.h"
#include "internal/wire/preamble.h"

namespace narad::peer {
namespace {

using namespace testing;

// What an attacker or an odd program would say.
std::string bytes_of(const Bytes& bytes) { return to_text(bytes); }
wire::Hello hello_from(const Sender& who, Lane lane = Lane::control, std::uint8_t nonce = 7) {
  wire::Hello hello;
  hello.lane = static_cast<std::uint8_t>(lane);
  hello.cluster_id = who.cluster_id;
  hello.replica_id = who.replica.value();
  hello.nonce.fill(std::byte{nonce});
  hello.node_id = who.node_id;
  return hello;
}
const Sender kN0{"n0", ReplicaId(100), kCluster};

// The refusal at the end of what arrived.
std::string refusal_in(std::string_view received) {
  const auto bytes = as_bytes(received);
  for (std::size_t at = 0; at + wire::kPreambleHeaderBytes <= bytes.size();) {
    auto header = wire::decode_preamble_header(bytes.subspan(at, wire::kPreambleHeaderBytes));
    if (!header) return "no preamble";
    at += wire::kPreambleHeaderBytes;
    const auto body = bytes.subspan(at, header.value().body_bytes);
    if (header.value().kind == static_cast<std::uint8_t>(wire::PreambleKind::refusal)) {
      const auto refusal = wire::decode_refusal(body);
      return cat(to_string(refusal.code), ": ", refusal.text);
    }
    at += body.size();
  }
  return "none";
}

TEST(PeerProof, WrongSecret_IsRefusedAndBothSidesSayWhy) {
  TestCluster c(2);
  c.setup(1).server.secret = "something else";
  c.boot_all();
  auto r = c.echo(0, 1);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unavailable);
  EXPECT_TRUE(contains(r.error().text(),
                       "cannot reach n1 at host1:7943: it refused this node: n0 and n1 do not have "
                       "the same cluster secret"));
  EXPECT_TRUE(contains(r.error().text(), "NARAD_CLUSTER_SECRET"));
  EXPECT_TRUE(contains(c.log(0), "do not have the same cluster secret"));
  c.sim.run_for(seconds(1));
  EXPECT_TRUE(contains(c.log(1), "refused a cluster connection"));
  EXPECT_TRUE(contains(c.log(1), "do not have the same cluster secret"));
  EXPECT_EQ(c.setup(1).handled.size(), 0u);
  EXPECT_EQ(c.node(0).peers.stats(Lane::control).refused, 1u);
  EXPECT_EQ(c.node(1).server.stats().refused, 1u);
  // Neither log holds the secret.
  EXPECT_FALSE(contains(c.log(0) + c.log(1), "open sesame"));
  EXPECT_FALSE(contains(c.log(0) + c.log(1), "something else"));
  c.stop_all();
}

TEST(PeerProof, CalledNodeWithoutTheSecret_IsNotBelieved) {
  // It lets everybody in, but cannot prove itself.
  TestCluster c(2);
  c.boot_all();
  auto raw = std::make_shared<Raw>();
  c.machine(1).kill(sim::Machine::Kill::process_exit);
  // An impostor on n1's address: says a fine hello and an invented proof.
  auto heard = std::make_shared<std::string>();
  c.machine(1).boot([heard](Env& env) {
    struct Impostor {
      explicit Impostor(Env& env) : group(env) {}
      std::unique_ptr<Listener> listener;
      TaskGroup group;
    };
    auto impostor = std::make_shared<Impostor>(env);
    impostor->listener = std::move(env.net.listen(Endpoint{"", kPort}).value());
    const auto run = [](Impostor* self, std::shared_ptr<std::string> out) -> Task<void> {
      auto stream = co_await accept(*self->listener);
      const Sender n1{"n1", ReplicaId(101), kCluster};
      const std::string hello = bytes_of(wire::encode(hello_from(n1)));
      const std::string proof = bytes_of(wire::encode(wire::Proof{}));
      (void)co_await write_all(*stream, buffers_of(hello, proof));
      std::array<char, 4096> buffer;
      for (;;) {
        auto [ec, n] = co_await read_some(*stream, asio::buffer(buffer));
        out->append(buffer.data(), n);
        if (ec) co_return;
      }
    };
    impostor->group.spawn("impostor", run(impostor.get(), heard));
    return impostor;
  });
  auto r = c.echo(0, 1);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unavailable);
  EXPECT_TRUE(contains(r.error().text(),
                       "this node refused it: n1 and n0 do not have the same cluster secret"));
  c.sim.run_for(seconds(1));
  EXPECT_TRUE(contains(refusal_in(*heard), "proof: n1 and n0"));
  EXPECT_FALSE(contains(*heard, "HTTP/1.1"));  // no request was sent to it
  c.machine(1).kill(sim::Machine::Kill::process_exit);
  c.stop_all();
}

TEST(PeerProof, OtherCluster_IsRefusedByEitherSideWithBothNames) {
  TestCluster c(2);
  c.setup(1).id.cluster_id = 0x9999;
  c.boot_all();
  auto r = c.echo(0, 1);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unavailable);
  EXPECT_TRUE(
      contains(r.error().text(),
               "n0 belongs to cluster 1111222233334444, this is n1 of cluster 0000000000009999"));
  EXPECT_TRUE(contains(c.log(0), "n0 belongs to cluster 1111222233334444"));
  c.sim.run_for(seconds(1));
  EXPECT_TRUE(contains(c.log(1), "n0 belongs to cluster 1111222233334444"));
  c.stop_all();
}

TEST(PeerProof, OwnNodeId_IsRefused) {
  TestCluster c(2);
  c.boot_all();
  c.setup(0).addresses["n1"] = Endpoint{"host0", kPort};
  auto r = c.echo(0, 1);
  ASSERT_FALSE(r);
  EXPECT_TRUE(contains(r.error().text(),
                       "both ends say they are n0: either this node has been called by itself, or "
                       "two nodes share a cluster.node_id"));
  c.stop_all();
}

TEST(PeerProof, AnotherNodeAtTheAddress_IsRefusedByTheCaller) {
  TestCluster c(3);
  c.boot_all();
  c.setup(0).addresses["n1"] = Endpoint{"host2", kPort};
  auto r = c.echo(0, 1);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unavailable);
  EXPECT_TRUE(contains(r.error().text(),
                       "this node refused it: n0 called n1, but n2 listens at that address"));
  c.sim.run_for(seconds(1));
  EXPECT_TRUE(contains(c.log(2), "a node refused this one"));
  EXPECT_TRUE(contains(c.log(2), "n0 called n1, but n2 listens at that address"));
  c.stop_all();
}

TEST(PeerProof, ReplicaThatIsNotTheConfiguredOne_MayOnlyAskToJoin) {
  TestCluster c(2);
  c.setup(0).id.replica = ReplicaId(555);
  c.setup(0).replicas["n0"] = ReplicaId(555);
  c.boot_all();
  // Who is configured here may be old news: messages of Raft name their replicas themselves.
  EXPECT_TRUE(c.echo(0, 1, Lane::raft));
  for (Lane lane : {Lane::data, Lane::bulk}) {
    auto r = c.echo(0, 1, lane);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), Errc::unavailable);
    EXPECT_TRUE(
        contains(r.error().text(),
                 "n0 is configured as replica 0000000000000064, but is replica 000000000000022b: "
                 "its disk was emptied or is of an earlier life, so it has to join again"));
  }
  auto closed = c.echo(0, 1);
  ASSERT_TRUE(closed) << closed.error().text();
  EXPECT_EQ(closed.value().status, 403);
  EXPECT_TRUE(contains(closed.value().body, "is not open to n0: n0 is configured as replica"));
  EXPECT_EQ(c.call(0, 1, "/peer/v1/join").value().status, 200);
  EXPECT_EQ(c.setup(1).handled.size(), 2u);
  EXPECT_EQ(c.setup(1).last_sender->replica, ReplicaId(555));
  // Once it is admitted, what is open to it is judged anew, on the connections that are there.
  c.setup(1).replicas["n0"] = ReplicaId(555);
  EXPECT_EQ(c.echo(0, 1).value().status, 200);
  c.stop_all();
}

TEST(PeerProof, NodeWithoutACluster_MayOnlyUseOpenRoutesUntilItHasJoined) {
  TestCluster c(2);
  c.setup(0).id.cluster_id = 0;
  c.setup(0).id.replica = ReplicaId(0);
  c.boot_all();
  auto data = c.echo(0, 1, Lane::data);
  ASSERT_FALSE(data);
  EXPECT_TRUE(contains(data.error().text(), "n0 has not joined the cluster yet"));
  EXPECT_TRUE(contains(data.error().text(), "only the control lane is open"));
  EXPECT_EQ(c.echo(0, 1).value().status, 403);
  auto join = c.call_address(0, Endpoint{"host1", kPort}, "/peer/v1/join");
  ASSERT_TRUE(join) << join.error().text();
  EXPECT_EQ(join.value().response.status, 200);
  EXPECT_EQ(join.value().who.node_id, "n1");
  EXPECT_EQ(join.value().who.cluster_id, kCluster);
  EXPECT_EQ(join.value().who.replica, ReplicaId(101));
  EXPECT_EQ(c.setup(1).last_sender->cluster_id, 0u);
  // It has joined: the next call introduces it anew, and nothing waits for a back-off.
  c.setup(0).id.cluster_id = kCluster;
  c.setup(0).id.replica = ReplicaId(100);
  EXPECT_EQ(c.echo(0, 1).value().status, 200);
  EXPECT_EQ(c.setup(1).last_sender->cluster_id, kCluster);
  auto again = c.echo(0, 1, Lane::data);
  EXPECT_TRUE(again) << again.error().text();
  c.stop_all();
}

TEST(PeerProof, TwoNodesWithoutAClusterYet_MayAskEachOther) {
  TestCluster c(2);
  for (int i = 0; i < 2; ++i) c.setup(i).id.cluster_id = 0;
  c.boot_all();
  auto r = c.call_address(0, Endpoint{"host1", kPort}, "/peer/v1/join");
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_EQ(r.value().who.cluster_id, 0u);
  auto closed = c.call_address(0, Endpoint{"host1", kPort}, "/peer/v1/control/echo");
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed.value().response.status, 403);
  EXPECT_FALSE(c.call_address(0, Endpoint{"host1", kPort}, "/peer/v1/raft/echo", Lane::raft));
  auto self = c.call_address(0, Endpoint{"host0", kPort}, "/peer/v1/join");
  ASSERT_FALSE(self);
  EXPECT_EQ(self.error().code(), Errc::unavailable);
  EXPECT_TRUE(contains(self.error().text(), "this node has been called by itself"));
  c.stop_all();
}

TEST(PeerProof, NoSecret_IsRefusedAtStartUnlessSecurityIsOff) {
  TestCluster c(2);
  for (int i = 0; i < 2; ++i) c.setup(i).peers.secret = c.setup(i).server.secret = "";
  c.boot_all();
  EXPECT_TRUE(c.node(1).server.local().empty());
  EXPECT_TRUE(contains(c.error_of(c.echo(0, 1)), "set NARAD_CLUSTER_SECRET"));
  EXPECT_EQ(c.net.stats.connections, 0u);
  for (int i = 0; i < 2; ++i) {
    c.machine(i).kill(sim::Machine::Kill::process_exit);
    c.setup(i).peers.insecure = c.setup(i).server.insecure = true;
    c.boot(i);
  }
  EXPECT_TRUE(c.echo(0, 1));
  c.stop_all();
}

TEST(PeerProof, SecuredNode_DoesNotBelieveOneWithoutASecret) {
  TestCluster c(2);
  c.setup(0).peers.secret = "";
  c.setup(0).peers.insecure = true;
  c.boot_all();
  EXPECT_TRUE(contains(c.error_of(c.echo(0, 1)), "do not have the same cluster secret"));
  c.stop_all();
}

TEST(PeerProof, ReplayedProof_IsRefused) {
  TestCluster c(2);
  c.boot_all();
  // One good introduction by hand, to have something to replay.
  const Bytes hello = wire::encode(hello_from(kN0));
  auto good = c.dial(0, 1, bytes_of(hello));
  ASSERT_GT(good->received.size(), wire::kPreambleHeaderBytes);
  const Bytes proof = wire::encode(
      wire::prove("open sesame", wire::ProofRole::caller, hello, as_bytes(good->received)));
  const std::string first_answer = good->received;
  c.say(0, good, bytes_of(proof));
  EXPECT_EQ(refusal_in(good->received), "none");
  EXPECT_EQ(good->received.size(), first_answer.size() + wire::kPreambleHeaderBytes + 32);
  EXPECT_EQ(c.node(1).server.stats().connections, 1u);
  // The same words again: its nonce is another one now.
  auto replay = c.dial(0, 1, bytes_of(hello));
  EXPECT_NE(replay->received, first_answer);
  c.say(0, replay, bytes_of(proof));
  EXPECT_TRUE(contains(refusal_in(replay->received), "proof: "));
  // Its own proof sent back to it.
  const std::string own_proof = good->received.substr(first_answer.size());
  auto mirror = c.dial(0, 1, bytes_of(hello));
  c.say(0, mirror, own_proof);
  EXPECT_TRUE(contains(refusal_in(mirror->received), "proof: "));
  EXPECT_EQ(c.node(1).server.stats().connections, 1u);
  c.stop_all();
}

// A caller between two nodes that passes their words on to others gains no lane or name.
TEST(PeerProof, ProofForAnotherLane_IsRefused) {
  TestCluster c(2);
  c.boot_all();
  const Bytes control = wire::encode(hello_from(kN0, Lane::control));
  const Bytes raft = wire::encode(hello_from(kN0, Lane::raft));
  auto raw = c.dial(0, 1, bytes_of(raft));
  c.say(0, raw,
        bytes_of(wire::encode(wire::prove("open sesame", wire::ProofRole::caller, control,
                                          as_bytes(raw->received)))));
  EXPECT_TRUE(contains(refusal_in(raw->received), "proof: "));
  c.stop_all();
}

TEST(PeerProof, OddBytes_AreRefusedOneByOneKind) {
  TestCluster c(2);
  c.boot_all();
  Bytes other_version = wire::encode(hello_from(kN0));
  other_version[4] = std::byte{2};
  Bytes oversized = wire::encode(hello_from(kN0));
  oversized[9] = std::byte{0xff};
  Bytes out_of_turn = wire::encode(wire::Proof{});
  Bytes malformed = wire::encode(hello_from(kN0));
  malformed[wire::kPreambleHeaderBytes + 49] = std::byte{200};  // the length of the node id
  Bytes bad_lane = wire::encode(hello_from(kN0));
  bad_lane[wire::kPreambleHeaderBytes] = std::byte{9};
  const std::pair<Bytes, std::string> cases[] = {
      {other_version,
       "version: one node speaks version 1 of the cluster protocol, the other version 2: "
       "upgrade the one with the older release"},
      {oversized, "malformed: a cluster connection announces"},
      {out_of_turn, "malformed: a message of the preamble out of turn"},
      {malformed, "malformed: malformed hello on a cluster connection"},
      {bad_lane, "lane: lane 9 is not known to this release of n1"},
      {to_bytes("\x16\x03\x01\x02\x03 some TLS hello"), "malformed: this is not the protocol"},
      {to_bytes(std::string(5000, 'x')), "malformed: this is not the protocol"},
  };
  for (const auto& [bytes, expected] : cases) {
    auto raw = c.dial(0, 1, bytes_of(bytes));
    c.sim.run_for(seconds(11));  // as long as refusals of one kind are not logged again
    EXPECT_TRUE(contains(refusal_in(raw->received), expected)) << to_hex(bytes).substr(0, 40);
    EXPECT_TRUE(raw->closed);
  }
  EXPECT_TRUE(contains(c.log(1), "it looks like TLS"));
  EXPECT_EQ(c.node(1).server.stats().refused, std::size(cases));
  EXPECT_EQ(c.node(1).server.stats().connections, 0u);
  c.stop_all();
}

TEST(PeerProof, HttpClientOnTheClusterPort_IsToldSo) {
  TestCluster c(2);
  c.boot_all();
  auto raw = c.dial(0, 1, "GET /v1/topics HTTP/1.1\r\nHost: x\r\n\r\n");
  c.sim.run_for(seconds(1));
  EXPECT_TRUE(raw->received.starts_with("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_TRUE(contains(raw->received,
                       "this port is for the nodes of the cluster; clients use the HTTP address"));
  EXPECT_TRUE(raw->closed);
  c.stop_all();
}

TEST(PeerProof, HalfAPreambleAndSilence_IsCutOffAfterFiveSeconds) {
  TestCluster c(2);
  c.boot_all();
  const std::string hello = bytes_of(wire::encode(hello_from(kN0)));
  std::vector<std::shared_ptr<Raw>> silent;
  for (std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{9}, std::size_t{10},
                        hello.size() - 1, hello.size()})
    silent.push_back(c.dial(0, 1, hello.substr(0, n)));
  EXPECT_EQ(c.node(1).server.stats().handshakes, silent.size());
  const Nanos before = c.machine(0).clock().mono();
  c.sim.run_for(seconds(6));
  for (auto& raw : silent) {
    EXPECT_TRUE(raw->closed);
    EXPECT_LT(raw->closed_at - before, milliseconds(5200));
  }
  EXPECT_EQ(c.node(1).server.stats().handshakes, 0u);
  EXPECT_EQ(c.node(1).server.stats().timed_out, silent.size());
  c.stop_all();
}

// One byte a second keeps nobody in.
TEST(PeerProof, SlowPreamble_IsCutOffAfterFiveSecondsInAll) {
  TestCluster c(2);
  c.boot_all();
  const std::string hello = bytes_of(wire::encode(hello_from(kN0)));
  auto raw = c.dial(0, 1);
  for (std::size_t i = 0; i < 10 && !raw->closed; ++i) {
    c.say(0, raw, hello.substr(i, 1));
    c.sim.run_for(milliseconds(900));
  }
  EXPECT_TRUE(raw->closed);
  EXPECT_EQ(c.node(1).server.stats().timed_out, 1u);
  c.stop_all();
}

TEST(PeerProof, SilentServer_EndsTheCallAsUnavailable) {
  TestCluster c(2);
  c.boot(0);
  c.machine(1).boot([](Env& env) {
    return std::shared_ptr<void>(std::move(env.net.listen(Endpoint{"", kPort}).value()));
  });
  const Nanos before = c.sim.now();
  EXPECT_EQ(
      c.error_of(c.call(0, 1, "/peer/v1/control/echo", Lane::control, "x", seconds(60))),
      "unavailable: cannot reach n1 at host1:7943: it said nothing in time before its greeting");
  EXPECT_LT(c.sim.now() - before, seconds(6));
  c.machine(1).kill(sim::Machine::Kill::process_exit);
  c.stop_all();
}

TEST(PeerProof, FloodOfSilentConnections_DoesNotKeepNodesOut) {
  TestCluster c(3);
  c.setup(1).server.handshakes_max = 20;
  c.net.faults.backlog = 100'000;
  c.boot_all();
  std::vector<std::shared_ptr<Raw>> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(c.dial(2, 1));
  EXPECT_LE(c.node(1).server.stats().handshakes, 21u);
  EXPECT_GT(c.node(1).server.stats().crowded_out, 20u);
  auto r = c.echo(0, 1);
  EXPECT_TRUE(r) << r.error().text();
  c.stop_all();
}

TEST(PeerProof, TooManyConnections_AreRefusedWithAReason) {
  TestCluster c(2);
  c.setup(1).server.connections_max = 2;
  c.boot_all();
  ASSERT_TRUE(c.echo(0, 1, Lane::control));
  ASSERT_TRUE(c.echo(0, 1, Lane::data));
  auto r = c.echo(0, 1, Lane::raft);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::unavailable);
  EXPECT_TRUE(contains(r.error().text(), "n1 has too many connections of other nodes"));
  ASSERT_TRUE(c.echo(0, 1, Lane::control));
  c.stop_all();
}

TEST(PeerProof, RefusalsOfOneKind_DoNotFillTheLog) {
  TestCluster c(2);
  c.boot_all();
  for (int i = 0; i < 50; ++i) (void)c.dial(0, 1, "garbage garbage");
  EXPECT_EQ(c.machine(1).log().count("refused a cluster connection"), 1u);
  c.sim.run_for(seconds(11));
  (void)c.dial(0, 1, "garbage garbage");
  EXPECT_EQ(c.machine(1).log().count("refused a cluster connection"), 2u);
  EXPECT_TRUE(contains(c.log(1), "not_logged_before=49"));
  c.stop_all();
}

TEST(PeerProof, SmallNoiseInARefusal_IsShownPrintable) {
  TestCluster c(2);
  c.boot_all();
  const Bytes hello = wire::encode(hello_from(kN0));
  Bytes refusal = wire::encode(wire::Refusal{wire::RefusalCode::proof, "evil"});
  refusal[refusal.size() - 2] = std::byte{'\n'};
  (void)c.dial(0, 1, bytes_of(hello) + bytes_of(refusal));
  EXPECT_TRUE(contains(c.log(1), "ev?l"));
  c.stop_all();
}

}  // namespace
}  // namespace narad::peer
