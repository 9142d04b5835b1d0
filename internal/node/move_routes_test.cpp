// Both ends of the calls of moves, over simulated connections.
#include "internal/node/move_routes.h"

#include <gtest/gtest.h>

#include "internal/node/remote_source.h"
#include "internal/peer/test_cluster.h"
#include "internal/wire/broker_messages.h"

namespace narad::node {
namespace {

using namespace std::chrono_literals;
using peer::testing::contains;

wire::MoveRef orders() { return {{"orders", PartitionId(3)}, Incarnation(0x1f), RaftIndex(42)}; }
wire::FreezeToken token() { return {7, "00112233445566778899aabbccddeeff"}; }

// An owner that answers what the test says, and notes what it was asked.
struct FakeOwner final : moves::SourceCalls {
  std::optional<Error> refuses;
  wire::Listing listed;
  std::string bytes;
  Nanos takes{0};
  Env* env = nullptr;
  int calls = 0, ended = 0;
  wire::MoveRef move;
  Offset base{0};
  std::uint64_t from = 0, length = 0;
  std::optional<wire::FreezeRequest> frozen;

  FakeOwner() {
    listed.move_id = orders().move_id;
    listed.incarnation = orders().incarnation;
    listed.hwm = Offset(5);
  }
  Task<Result<wire::Listing>> listing(std::string, wire::MoveRef m) override {
    ++calls;
    move = m;
    if (refuses) co_return *refuses;
    co_return listed;
  }
  Task<Result<std::string>> chunk(std::string, wire::MoveRef m, Offset b, std::uint64_t f,
                                  std::uint64_t n) override {
    ++calls;
    move = m;
    base = b;
    from = f;
    length = n;
    if (refuses) co_return *refuses;
    co_return bytes;
  }
  Task<Result<wire::SegmentDigests>> digests(std::string, wire::MoveRef m, Offset b) override {
    ++calls;
    move = m;
    base = b;
    if (refuses) co_return *refuses;
    co_return wire::SegmentDigests{10, {1ULL, std::nullopt}};
  }
  Task<Result<wire::FreezeAnswer>> freeze(std::string, wire::FreezeRequest r) override {
    ++calls;
    if (takes > Nanos(0)) co_await sleep_for(*env, takes);
    ++ended;
    frozen = r;
    if (refuses) co_return *refuses;
    co_return wire::FreezeAnswer{token(), 30'000, listed};
  }
};

// A node with the routes, and with the calls of the other end. Survives in what it points to.
struct MoveNode {
  MoveNode(Env& e, peer::testing::NodeSetup& s, FakeOwner& o)
      : env(e), owner(o), peers(e, s.peers, s, s), server(e, s.server, s), group(e) {
    owner.env = &e;
    add_move_routes(server, {&owner,
                             [] {
                               wire::MoveReport copying;
                               copying.move = orders();
                               copying.source = "n0";
                               copying.phase = "copying";
                               return wire::MoveReports{{copying}};
                             },
                             [this](std::string node) { return silence(this, std::move(node)); },
                             [this] { return aside(this); }});
    EXPECT_TRUE(server.listen(Endpoint{"", peer::testing::kPort}));
  }
  static Task<Result<wire::SilenceAnswer>> silence(MoveNode* n, std::string node) {
    if (!n->leads) co_return Error(Errc::not_leader, "n2 leads");
    n->asked_about = node;
    co_return wire::SilenceAnswer{121'000, 9};
  }
  static Task<Result<wire::SetAsideCopies>> aside(MoveNode* n) {
    if (!n->disk) co_return Error(Errc::unavailable, "the disk does not answer");
    wire::SetAsideCopies copies;
    copies.left_out = 7;
    co_return copies;
  }
  Env& env;
  FakeOwner& owner;
  bool disk = true;
  peer::Peers peers;
  peer::Server server;
  TaskGroup group;
  bool leads = true;
  std::string asked_about;
};

class MoveCalls : public testing::Test {
 protected:
  MoveCalls() {
    for (int i = 0; i < 2; ++i) {
      cluster_.machine(i).boot([this, i](Env& env) {
        return std::make_shared<MoveNode>(env, cluster_.setup(i), owners_[i]);
      });
    }
  }
  MoveNode& node(int i) { return cluster_.machine(i).component<MoveNode>(); }
  RemoteSource& remote() {
    if (!remote_) remote_.emplace(node(1).peers, "n1", owners_[1]);
    return *remote_;
  }
  template <class T>
  Result<T> finish(Task<Result<T>> task) {
    auto pending = std::make_shared<peer::testing::Pending<T>>();
    node(1).group.spawn("call", keep(std::move(task), pending));
    return cluster_.finish(pending);
  }
  template <class T>
  static Task<void> keep(Task<Result<T>> task, std::shared_ptr<peer::testing::Pending<T>> pending) {
    pending->result.emplace(co_await std::move(task));
  }
  // As it stands, on the lane where the route is.
  Result<http::Response> raw(std::string target, peer::Lane lane, std::string body = {},
                             Nanos deadline = 5s) {
    const auto method = body.empty() ? http::Method::get : http::Method::post;
    peer::Call call(method, std::move(target), std::move(body));
    return finish(node(1).peers.call("n0", lane, std::move(call), deadline));
  }
  int status(std::string target, peer::Lane lane, std::string body = {}) {
    const auto answer = raw(std::move(target), lane, std::move(body));
    return answer ? answer.value().status : 0;
  }

  peer::testing::TestCluster cluster_{2};
  std::array<FakeOwner, 2> owners_;
  std::optional<RemoteSource> remote_;
};

TEST_F(MoveCalls, Listing_ArrivesAsItWas) {
  owners_[0].listed.segments = {{Offset(0), 100, false, UnixMillis(7)}};
  const auto got = finish(remote().listing("n0", orders()));
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got.value(), owners_[0].listed);
  EXPECT_EQ(owners_[0].move, orders());
}

TEST_F(MoveCalls, Chunk_IsRawBytesOfTheRange) {
  owners_[0].bytes = std::string("\0\xff\r\n", 4);
  const auto got = finish(remote().chunk("n0", orders(), Offset(700), 12, 4));
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got.value(), owners_[0].bytes);
  EXPECT_EQ(owners_[0].base, Offset(700));
  EXPECT_EQ(owners_[0].from, 12u);
  EXPECT_EQ(owners_[0].length, 4u);
  // Nobody believes an owner that sends more than it was asked for.
  EXPECT_EQ(finish(remote().chunk("n0", orders(), Offset(700), 12, 3)).error().code(),
            Errc::internal);
}

TEST_F(MoveCalls, Digests_KeepTheirGaps) {
  const auto got = finish(remote().digests("n0", orders(), Offset(700)));
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got.value(), (wire::SegmentDigests{10, {1ULL, std::nullopt}}));
}

TEST_F(MoveCalls, Freeze_CarriesTokenAndExpectedEnd) {
  const wire::FreezeRequest fence{orders(), token(), Offset(5)};
  const auto got = finish(remote().freeze("n0", fence));
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(owners_[0].frozen, fence);
  EXPECT_EQ(got.value().token, token());
  EXPECT_EQ(got.value().listing, owners_[0].listed);
}

TEST_F(MoveCalls, TopicNames_AreEncodedInThePath) {
  wire::MoveRef move = orders();
  move.partition.topic = "a.b_c-d";
  (void)finish(remote().listing("n0", move));
  EXPECT_EQ(owners_[0].move, move);
}

TEST_F(MoveCalls, ThisNodeItself_IsAskedWithoutTheNetwork) {
  cluster_.machine(0).kill(sim::Machine::Kill::process_exit);
  EXPECT_TRUE(finish(remote().listing("n1", orders())));
  EXPECT_TRUE(finish(remote().chunk("n1", orders(), Offset(0), 0, 9)));
  EXPECT_TRUE(finish(remote().digests("n1", orders(), Offset(0))));
  EXPECT_TRUE(finish(remote().freeze("n1", {orders(), std::nullopt, std::nullopt})));
  EXPECT_EQ(owners_[1].calls, 4);
  EXPECT_EQ(finish(remote().listing("n0", orders())).error().code(), Errc::unreachable);
}

TEST_F(MoveCalls, Refusals_SayWhatToDo) {
  for (const Errc code : {Errc::conflict, Errc::not_owner, Errc::not_found, Errc::gone,
                          Errc::unavailable, Errc::invalid_argument, Errc::data_loss}) {
    owners_[0].refuses = Error(code, "because");
    const auto got = finish(remote().listing("n0", orders()));
    EXPECT_EQ(got.error().code(), code) << got.error().text();
    EXPECT_TRUE(contains(got.error().text(), "node n0: because"));
  }
  // An unknown outcome over there is one to ask again about, like any 503.
  owners_[0].refuses = Error(Errc::unknown_outcome, "perhaps");
  EXPECT_EQ(finish(remote().freeze("n0", {orders(), {}, {}})).error().code(), Errc::unavailable);
}

TEST_F(MoveCalls, AnAnswerAboutAnotherMove_IsNotBelieved) {
  owners_[0].listed.move_id = RaftIndex(41);
  EXPECT_EQ(finish(remote().listing("n0", orders())).error().code(), Errc::internal);
  EXPECT_EQ(finish(remote().freeze("n0", {orders(), {}, {}})).error().code(), Errc::internal);
  owners_[0].listed.move_id = orders().move_id;
  owners_[0].listed.incarnation = Incarnation(0x20);
  EXPECT_EQ(finish(remote().listing("n0", orders())).error().code(), Errc::internal);
}

// Whatever a caller writes is looked at before anything is allocated or asked for it.
TEST_F(MoveCalls, HostileRequests_AreRefusedBeforeAnybodyIsAsked) {
  using peer::Lane;
  const std::string good = "?move=42&incarnation=000000000000001f";
  const std::string at = "/peer/v1/partitions/orders/3/";
  for (const char* partition : {"-1", "4294967296", "x", "%33x", "3%00", "0x3"}) {
    EXPECT_EQ(status(cat("/peer/v1/partitions/orders/", partition, "/listing", good), Lane::data),
              400)
        << partition;
  }
  for (const char* topic : {"%2e%2e", "a%2fb", "a%00", "%ff"}) {
    EXPECT_EQ(status(cat("/peer/v1/partitions/", topic, "/3/listing", good), Lane::data), 400)
        << topic;
  }
  for (const char* query :
       {"", "?move=42", "?incarnation=000000000000001f", "?move=-1&incarnation=000000000000001f",
        "?move=42&incarnation=1f", "?move=9223372036854775807&incarnation=000000000000001f",
        "?move=%zz&incarnation=000000000000001f"}) {
    EXPECT_EQ(status(cat(at, "listing", query), Lane::data), 400) << query;
  }
  for (const char* range :
       {"", "&from=0", "&len=1", "&from=-1&len=1", "&from=0&len=-1", "&from=0&len=0",
        "&from=0&len=1e3", "&from=1099511627777&len=1", "&from=0&len=1099511627777",
        "&from=18446744073709551616&len=1", "&from=0&len=18446744073709551615"}) {
    EXPECT_EQ(status(cat(at, "segments/0", good, range), Lane::bulk), 400) << range;
  }
  EXPECT_EQ(status(cat(at, "segments/-1", good, "&from=0&len=1"), Lane::bulk), 400);
  EXPECT_EQ(status(cat(at, "segments/-1/digests", good), Lane::data), 400);
  EXPECT_EQ(status(cat(at, "freeze"), Lane::control, "{"), 400);
  wire::FreezeRequest other{orders(), {}, {}};
  other.move.partition.partition = PartitionId(4);
  EXPECT_EQ(status(cat(at, "freeze"), Lane::control, wire::encode(other)), 400);
  EXPECT_EQ(owners_[0].calls, 0);
}

TEST_F(MoveCalls, MoreThanAChunk_IsClippedToOne) {
  EXPECT_EQ(status("/peer/v1/partitions/orders/3/segments/0?move=42&incarnation=000000000000001f"
                   "&from=0&len=1000000000",
                   peer::Lane::bulk),
            200);
  EXPECT_EQ(owners_[0].length, wire::kChunkBytesMax);
}

TEST_F(MoveCalls, Lanes_AreKept) {
  const std::string good = "?move=42&incarnation=000000000000001f";
  const std::string at = "/peer/v1/partitions/orders/3/";
  EXPECT_EQ(status(cat(at, "listing", good), peer::Lane::bulk), 400);
  EXPECT_EQ(status(cat(at, "segments/0", good, "&from=0&len=1"), peer::Lane::data), 400);
  EXPECT_EQ(owners_[0].calls, 0);
}

// A freeze that its caller no longer waits for is still seen through: what was armed is known.
TEST_F(MoveCalls, Freeze_RunsToItsEndWhenTheCallerGivesUp) {
  owners_[0].takes = 3s;
  const std::string body = wire::encode(wire::FreezeRequest{orders(), {}, {}});
  const auto answer = raw("/peer/v1/partitions/orders/3/freeze", peer::Lane::control, body, 500ms);
  EXPECT_TRUE(!answer || answer.value().status == 503);
  cluster_.sim.run_for(5s);
  EXPECT_EQ(owners_[0].ended, 1);
}

TEST_F(MoveCalls, Reports_AreThoseOfTheNodeAsked) {
  const auto got = finish(ask_for_moves(node(1).peers, "n0"));
  ASSERT_TRUE(got) << got.error().text();
  ASSERT_EQ(got.value().moves.size(), 1u);
  EXPECT_EQ(got.value().moves[0].phase, "copying");
}

TEST_F(MoveCalls, Quarantine_IsThatOfTheNodeAsked) {
  const auto got = finish(ask_for_quarantine(node(1).peers, "n0", 2s));
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got.value().left_out, 7u);
  node(0).disk = false;
  const auto failed = finish(ask_for_quarantine(node(1).peers, "n0", 2s));
  EXPECT_EQ(failed.error().code(), Errc::unavailable);
  EXPECT_NE(failed.error().text().find("the disk does not answer"), std::string::npos);
}

TEST_F(MoveCalls, Silence_IsAskedOfTheLeaderWhoeverItIs) {
  std::string leader;
  RemoteLeader calls(
      node(1).peers, "n1", [&] { return leader; },
      [this](std::string n) { return MoveNode::silence(&node(1), std::move(n)); });
  EXPECT_EQ(finish(calls.silence("n2")).error().code(), Errc::unavailable);
  leader = "n0";
  const auto remote = finish(calls.silence("n2"));
  ASSERT_TRUE(remote) << remote.error().text();
  EXPECT_EQ(remote.value(), 121s);
  EXPECT_EQ(node(0).asked_about, "n2");
  node(0).leads = false;
  EXPECT_EQ(finish(calls.silence("n2")).error().code(), Errc::not_leader);
  leader = "n1";
  const auto own = finish(calls.silence("n3"));
  ASSERT_TRUE(own) << own.error().text();
  EXPECT_EQ(node(1).asked_about, "n3");
}

}  // namespace
}  // namespace narad::node
