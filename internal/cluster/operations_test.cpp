// What operators ask of members and plans, on the leader and on others, over real connections
// between simulated machines. Destinations are played by the test.
#include "internal/cluster/operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "internal/cluster/world_for_test.h"

namespace narad::cluster {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Operate : public ::testing::Test {
 protected:
  // n1 leads; three are configured, and further ones join.
  void begin(int nodes) {
    world = std::make_unique<World>(3);
    ASSERT_TRUE(world->form());
    ASSERT_EQ(world->sky.leader, "n1");
    for (int i = 4; i <= nodes; ++i) join(cat("n", i));
    world->sim.run_for(2s);
  }
  World& w() { return *world; }
  metastore::State& state() { return world->sky.state; }
  void join(const std::string& id) {
    w().add(id, {"n1", "n2", "n3", id});
    w().boot(id);
    ASSERT_TRUE(w().until([&] { return w().setup(id).started && w().member(id) != nullptr; }));
  }
  // `partitions` of a new topic, dealt out and used.
  void create(const std::string& name, std::uint32_t partitions) {
    metastore::CreateTopic c;
    c.name = name;
    c.incarnation = Incarnation(100 + state().applied.value());
    c.partitions = partitions;
    c.max_in_flight_per_partition = c.max_acked_ahead_per_partition = 1;
    ASSERT_TRUE(w().sky.apply(c).done());
    for (std::uint32_t p = 0; p < partitions; ++p) {
      const Assignment& a = row(name, p);
      w().sky.apply(
          metastore::MarkUsed{name, a.incarnation, PartitionId(p), a.owner_node, a.owner_disk});
    }
  }
  const Assignment& row(const std::string& topic, std::uint32_t p) {
    return *state().assignment(topic, PartitionId(p));
  }
  std::size_t owned(const std::string& id) {
    std::size_t n = 0;
    state().topics.for_each([&](const metastore::TopicRowPtr& topic) {
      for (const Assignment& a : topic->assignments) n += a.owner_node == id ? 1 : 0;
    });
    return n;
  }
  // Destinations take their partitions over until nothing is left on `id`.
  void empty_by_moves(const std::string& id) {
    ASSERT_TRUE(w().until([&] {
      for (const MoveUnderWay& m : moves_under_way(state())) {
        const auto& [topic, p] = m.partition;
        const Assignment a = *state().assignment(topic, p);
        w().sky.apply(metastore::ArmFreeze{topic, a.incarnation, p, a.owner_node, a.move_id});
        w().sky.apply(metastore::CompleteMove{topic, a.incarnation, p, a.owner_node, a.move_id,
                                              a.freeze_epoch + 1});
      }
      return owned(id) == 0;
    }));
  }
  void die(const std::string& id) {
    w().kill(id);
    ASSERT_TRUE(
        w().until([&] { return w().member(id)->status == metastore::MemberStatus::dead; }, 60s));
  }

  Operations& on(const std::string& id) { return w().node(id).operations; }
  // What `task` answers, which runs on that node.
  template <class T>
  T ask(const std::string& id, Task<T> task) {
    auto out = std::make_shared<std::optional<T>>();
    w().node(id).group.spawn("ask", keep(std::move(task), out));
    NARAD_ASSERT(w().until([&] { return out->has_value(); }, 60s));
    return std::move(**out);
  }
  template <class T>
  static Task<void> keep(Task<T> task, std::shared_ptr<std::optional<T>> out) {
    out->emplace(co_await std::move(task));
  }
  Result<DrainOutcome> decommission(const std::string& at, const std::string& id,
                                    bool wal_lost = false) {
    return ask(at, on(at).decommission(id, wal_lost));
  }
  Result<DrainVerdict> verdict(const std::string& at, const std::string& id,
                               bool wal_lost = false) {
    return ask(at, on(at).verdict(id, wal_lost));
  }
  std::vector<DrainVerdict> drains(const std::string& at) { return ask(at, on(at).drains()); }
  bool draining(const std::string& id) { return w().member(id)->draining; }

  std::unique_ptr<World> world;
};

std::vector<std::string> rules(const DrainVerdict& v, bool hopeless_only = false) {
  std::vector<std::string> out;
  for (const DrainReason& r : v.reasons) {
    if (r.hopeless || !hopeless_only) out.emplace_back(to_string(r.rule));
  }
  return out;
}

// ---- decommission -----------------------------------------------------------------------------

TEST_F(Operate, DEC_17_TooFewVoters_IsRefusedAndNothingIsWritten) {
  begin(3);
  create("orders", 6);
  w().sky.proposals.clear();
  for (const char* at : {"n1", "n2"}) {
    const auto outcome = decommission(at, "n3");
    ASSERT_TRUE(outcome) << outcome.error().text();
    EXPECT_FALSE(outcome.value().accepted);
    EXPECT_THAT(rules(outcome.value().verdict, true), ::testing::ElementsAre("min_voters"));
  }
  EXPECT_FALSE(draining("n3"));
  EXPECT_THAT(w().sky.proposals, Not(Contains("set_draining")));
}

TEST_F(Operate, DEC_17_DeadOwner_IsRefusedWithEveryReasonAtOnce) {
  begin(3);
  create("orders", 6);
  die("n3");
  const auto outcome = decommission("n1", "n3", true);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_FALSE(outcome.value().accepted);
  EXPECT_THAT(rules(outcome.value().verdict, true),
              ::testing::UnorderedElementsAre("dead_owner", "min_voters"));
  EXPECT_FALSE(draining("n3"));
}

TEST_F(Operate, DEC_18_DryRun_GivesTheVerdictOfAnOrderAndChangesNothing) {
  begin(4);
  create("orders", 8);
  w().sky.proposals.clear();
  for (const char* at : {"n1", "n2"}) {
    const auto seen = verdict(at, "n4");
    ASSERT_TRUE(seen) << seen.error().text();
    EXPECT_FALSE(seen.value().hopeless());
    EXPECT_FALSE(seen.value().draining);
    EXPECT_EQ(seen.value().partitions, 2u);
    EXPECT_THAT(rules(seen.value()), ::testing::ElementsAre("owns_partitions"));
  }
  EXPECT_FALSE(draining("n4"));
  EXPECT_THAT(w().sky.proposals, Not(Contains("set_draining")));
  EXPECT_THAT(moves_under_way(state()), IsEmpty());
  EXPECT_TRUE(decommission("n2", "n4").value().accepted);
}

TEST_F(Operate, DEC_1_AnOrderThroughAnyNode_BeginsADrain_AndHoldsWhenRepeated) {
  begin(4);
  create("orders", 8);
  const auto first = decommission("n2", "n4");
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_TRUE(first.value().accepted);
  EXPECT_FALSE(first.value().already);
  EXPECT_TRUE(draining("n4"));
  EXPECT_EQ(owned("n4"), 2u) << "it owns them until somebody has taken them over";
  const RaftIndex drain_id = w().member("n4")->drain_id;
  const auto again = decommission("n1", "n4");
  EXPECT_TRUE(again.value().accepted);
  EXPECT_TRUE(again.value().already);
  EXPECT_EQ(w().member("n4")->drain_id, drain_id);
}

TEST_F(Operate, DEC_16_WhatADrainWaitsFor_IsTheSameWhicheverNodeIsAsked) {
  begin(4);
  create("orders", 8);
  EXPECT_THAT(drains("n2"), IsEmpty());
  ASSERT_TRUE(decommission("n1", "n4").value().accepted);
  w().sim.run_for(7s);  // a heartbeat without a word about the drain
  for (const char* at : {"n1", "n2", "n4"}) {
    const auto all = drains(at);
    ASSERT_EQ(all.size(), 1u) << at;
    EXPECT_EQ(all[0].node, "n4");
    EXPECT_EQ(all[0].partitions, 2u);
    EXPECT_THAT(rules(all[0]),
                ::testing::UnorderedElementsAre("owns_partitions", "ingress_backlog"))
        << at;
  }
}

TEST_F(Operate, LeaderThatDoesNotAnswer_LeavesOutWhatOnlyItKnows) {
  begin(4);
  create("orders", 8);
  ASSERT_TRUE(decommission("n1", "n4").value().accepted);
  w().machine("n1").kill(sim::Machine::Kill::power_cut);
  const Nanos began = w().sim.now();
  const auto all = drains("n2");
  EXPECT_LT(w().sim.now() - began, 2s);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(rules(all[0]), ::testing::ElementsAre("owns_partitions"));
  const auto seen = verdict("n2", "n4");
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().code(), Errc::unavailable);
  EXPECT_THAT(std::string(seen.error().text()), HasSubstr("n1"));
}

TEST_F(Operate, DEC_4_OneThatHasLeft_IsDoneAndCannotComeBack) {
  begin(4);
  ASSERT_TRUE(decommission("n2", "n4").value().accepted);
  w().node("n4").drain = {w().member("n4")->drain_id, true, 0, true, 0};
  ASSERT_TRUE(w().until([&] { return w().member("n4") == nullptr; }));
  const auto again = decommission("n2", "n4");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_TRUE(again.value().accepted && again.value().removed);
  const auto back = ask("n2", on("n2").cancel("n4"));
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code(), Errc::conflict);
}

TEST_F(Operate, WhoIsNoMember_IsNotFound) {
  begin(3);
  EXPECT_EQ(decommission("n2", "n9").error().code(), Errc::not_found);
  EXPECT_EQ(verdict("n2", "n9").error().code(), Errc::not_found);
  EXPECT_EQ(ask("n2", on("n2").cancel("n9")).error().code(), Errc::not_found);
}

TEST_F(Operate, WithoutALeader_NothingIsPromised) {
  begin(4);
  w().sky.leader.clear();
  w().sky.tell_all();
  EXPECT_EQ(decommission("n2", "n4").error().code(), Errc::unavailable);
  EXPECT_EQ(verdict("n2", "n4").error().code(), Errc::unavailable);
  EXPECT_EQ(ask("n2", on("n2").cancel("n4")).error().code(), Errc::unavailable);
  EXPECT_EQ(ask("n2", on("n2").rebalance(false)).error().code(), Errc::unavailable);
  EXPECT_EQ(ask("n2", on("n2").rebalance(true)).error().code(), Errc::unavailable);
}

TEST_F(Operate, WalLost_IsForTheDeadOnly) {
  begin(4);
  const auto order = decommission("n1", "n4", true);
  EXPECT_EQ(order.error().code(), Errc::conflict);
  EXPECT_EQ(verdict("n2", "n4", true).error().text(), order.error().text()) << "DEC-18";
  die("n4");
  EXPECT_THAT(rules(verdict("n2", "n4").value()), Contains("unreachable"));
  EXPECT_THAT(rules(verdict("n2", "n4", true).value()), IsEmpty());
  ASSERT_TRUE(decommission("n2", "n4").value().accepted);
  w().sim.run_for(10s);
  ASSERT_NE(w().member("n4"), nullptr) << "what its WAL holds was not given up";
  const auto given_up = decommission("n2", "n4", true);
  EXPECT_TRUE(given_up.value().accepted && given_up.value().already);
  EXPECT_TRUE(w().until([&] { return w().member("n4") == nullptr; }));
}

// ---- cancel -----------------------------------------------------------------------------------

TEST_F(Operate, Cancelled_ADrainTakesItsMovesWithIt) {
  begin(4);
  create("orders", 8);
  ASSERT_TRUE(decommission("n1", "n4").value().accepted);
  ASSERT_TRUE(w().until([&] { return moves_under_way(state()).size() == 2; }));
  const auto cancelled = ask("n2", on("n2").cancel("n4"));
  ASSERT_TRUE(cancelled) << cancelled.error().text();
  EXPECT_FALSE(draining("n4"));
  EXPECT_THAT(moves_under_way(state()), IsEmpty());
  EXPECT_EQ(owned("n4"), 2u);
  EXPECT_TRUE(ask("n2", on("n2").cancel("n4"))) << "it holds already";
  w().sim.run_for(30s);
  EXPECT_THAT(moves_under_way(state()), IsEmpty()) << "an even cluster stays as it is";
}

TEST_F(Operate, Cancelled_ADrainLeavesAnOperatorsMoveAlone) {
  begin(4);
  create("orders", 8);
  ASSERT_TRUE(decommission("n1", "n4").value().accepted);
  ASSERT_TRUE(w().until([&] { return moves_under_way(state()).size() == 2; }));
  const MoveUnderWay first = moves_under_way(state()).front();
  const Assignment& a = row("orders", first.partition.partition.value());
  ASSERT_TRUE(w().sky
                  .apply(metastore::SetTarget{"orders", a.incarnation, first.partition.partition,
                                              "n4", a.move_id, first.to == "n1" ? "n2" : "n1",
                                              a.target_disk, "operator"})
                  .done());
  ASSERT_TRUE(ask("n2", on("n2").cancel("n4")));
  ASSERT_EQ(moves_under_way(state()).size(), 1u);
  EXPECT_EQ(moves_under_way(state()).front().partition, first.partition);
}

// ---- stopping for a while -----------------------------------------------------------------------

TEST_F(Operate, SafeToStop_IsTheSameWhicheverNodeIsAsked) {
  begin(4);
  create("orders", 3);
  std::string spare, owner;  // of four nodes one has none of three partitions
  for (const char* id : {"n1", "n2", "n3", "n4"}) (owned(id) == 0 ? spare : owner) = id;
  ASSERT_NE(spare, "");
  for (int i = 1; i <= 4; ++i) w().node(cat("n", i)).drain.wal_open = true;
  w().sim.run_for(7s);  // a heartbeat of each says so
  for (const char* at : {"n1", "n2", "n4"}) {
    const auto empty = ask(at, on(at).safe_to_stop(spare));
    ASSERT_TRUE(empty) << empty.error().text();
    EXPECT_TRUE(empty.value().safe()) << at << ": " << empty.value().reasons[0].detail;
    const auto not_now = ask(at, on(at).safe_to_stop(owner));
    ASSERT_TRUE(not_now) << not_now.error().text();
    ASSERT_EQ(not_now.value().reasons.size(), 1u) << at;
    EXPECT_EQ(not_now.value().reasons[0].rule, StopRule::owns_partitions);
  }
  EXPECT_EQ(ask("n2", on("n2").safe_to_stop("n9")).error().code(), Errc::not_found);
  w().sky.leader.clear();
  w().sky.tell_all();
  EXPECT_EQ(ask("n2", on("n2").safe_to_stop(spare)).error().code(), Errc::unavailable);
}

TEST_F(Operate, SafeToStop_OneThatWasStoppedAMomentAgo_CountsAsAwayBeforeItIsMarkedDead) {
  begin(3);
  for (int i = 1; i <= 3; ++i) w().node(cat("n", i)).drain.wal_open = true;
  w().sim.run_for(7s);
  EXPECT_TRUE(ask("n1", on("n1").safe_to_stop("n2")).value().safe());
  w().kill("n3");
  w().sim.run_for(12s);
  ASSERT_EQ(w().member("n3")->status, metastore::MemberStatus::alive);
  const auto second = ask("n1", on("n1").safe_to_stop("n2"));
  ASSERT_TRUE(second) << second.error().text();
  ASSERT_EQ(second.value().reasons.size(), 1u);
  EXPECT_EQ(second.value().reasons[0].rule, StopRule::no_live_majority);
}

// ---- plans ------------------------------------------------------------------------------------

TEST_F(Operate, RebalanceDryRun_SaysWhatAPassThenDoes) {
  begin(3);
  create("orders", 12);
  w().sim.run_for(15s);  // passes that find an even cluster
  // A member that the leader's loop has not looked at: nothing tells it of this change.
  metastore::Member fourth = *w().member("n3");
  fourth.id = "n4";
  state().members.put(std::make_shared<const metastore::Member>(fourth));
  w().node("n2").consensus.tell();
  const auto dry = ask("n2", on("n2").rebalance(true));
  ASSERT_TRUE(dry) << dry.error().text();
  EXPECT_EQ(dry.value().moves.size(), 3u);
  EXPECT_EQ(dry.value().wanted, 3u);
  EXPECT_THAT(moves_under_way(state()), IsEmpty());
  w().node("n1").consensus.tell();
  const auto made = ask("n2", on("n2").rebalance(false));
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(made.value(), dry.value());
  EXPECT_EQ(moves_under_way(state()).size(), 3u);
}

TEST_F(Operate, Explain_NamesTheRuleAndEachMembersShare) {
  begin(4);
  create("orders", 8);
  ASSERT_TRUE(decommission("n1", "n4").value().accepted);
  ASSERT_TRUE(w().until([&] { return moves_under_way(state()).size() == 2; }));
  for (std::uint32_t p = 0; p < 8; ++p) {
    const TopicPartition tp{"orders", PartitionId(p)};
    const auto e = ask("n2", on("n2").explain(tp));
    ASSERT_TRUE(e) << e.error().text();
    const bool goes = row("orders", p).owner_node == "n4";
    EXPECT_EQ(e.value().verdict, goes ? "in_flight" : "at_home") << e.value().text;
    EXPECT_EQ(e.value().place.target.empty(), !goes);
    EXPECT_THAT(e.value().text, HasSubstr(goes ? "on its way" : "stays"));
    ASSERT_EQ(e.value().members.size(), 4u);
    EXPECT_EQ(e.value().members[3].standing, "draining");
    EXPECT_EQ(e.value().members[0].standing, "");
  }
  EXPECT_EQ(ask("n2", on("n2").explain({"orders", PartitionId(8)})).error().code(),
            Errc::not_found);
  EXPECT_EQ(ask("n2", on("n2").explain({"nope", PartitionId(0)})).error().code(), Errc::not_found);
}

}  // namespace
}  // namespace narad::cluster
