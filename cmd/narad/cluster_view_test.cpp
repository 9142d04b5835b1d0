#include "cmd/narad/cluster_view.h"

#include <gtest/gtest.h>

#include "pkg/base/text.h"

namespace narad::cli {
namespace {

// As a server answers: one that drains, one that is dead, one that leaves.
constexpr const char* kMembers = R"({"members":[
 {"id":"n1","addr":"10.0.0.1:7942","status":"alive","draining":false,"owned_partitions":12,
  "outbound_moves":0,"role":"leader","cluster_addr":"10.0.0.1:7943","last_seen_ms":1},
 {"id":"node-2","addr":"10.0.0.2:7942","status":"dead","draining":false,"owned_partitions":1,
  "outbound_moves":0,"role":"voter"},
 {"id":"n3","addr":"10.0.0.3:7942","status":"alive","draining":true,"owned_partitions":4,
  "outbound_moves":3,"role":"voter","drain":{"leaving":false,"partitions":4,"unused":1,"inbound":2,
   "reasons":[{"rule":"owns_partitions","detail":"owns 4 partitions, 3 on the way","hopeless":false},
              {"rule":"ingress_backlog","detail":"its ingress WAL holds 7 messages","hopeless":false}]},
  "decommission_blocked":["owns_partitions","ingress_backlog"]},
 {"id":"n4","addr":"10.0.0.4:7942","status":"alive","draining":true,"owned_partitions":0,
  "outbound_moves":0,"role":"non-voter","drain":{"leaving":true,"partitions":0,"unused":0,
   "inbound":0,"reasons":[]},"decommission_blocked":[]}],"leader":"n1"})";

TEST(MembersTable, OBS_7_DEC_16_DrainsAndDeadNodes_SayWhy) {
  EXPECT_EQ(
      members_table(read_members(kMembers).value()),
      "NODE    ADDRESS        STATUS  ROLE       DRAINING  PARTITIONS  MOVES OUT\n"
      "n1      10.0.0.1:7942  alive   leader     no                12          0\n"
      "node-2  10.0.0.2:7942  dead    voter      no                 1          0\n"
      "n3      10.0.0.3:7942  alive   voter      yes                4          3\n"
      "n4      10.0.0.4:7942  alive   non-voter  yes                0          0\n"
      "\n"
      "n3 is being decommissioned: 4 partitions left (1 never used), 2 moves on their way "
      "there\n"
      "    owns_partitions: owns 4 partitions, 3 on the way\n"
      "    ingress_backlog: its ingress WAL holds 7 messages\n"
      "\n"
      "n4 is empty and leaves the cluster\n"
      "\n"
      "node-2 is dead and owns 1 partition: nobody else has what was written there. Start it again "
      "with its disks\n");
}

TEST(MembersTable, OlderServer_HasNoReasons) {
  const auto list =
      read_members(R"({"members":[{"id":"n1","addr":"a:1","status":"alive","draining":true,)"
                   R"("owned_partitions":2,"outbound_moves":1}]})");
  EXPECT_EQ(members_table(list.value()),
            "NODE  ADDRESS  STATUS  ROLE  DRAINING  PARTITIONS  MOVES OUT\n"
            "n1    a:1      alive   -     yes                2          1\n"
            "\n"
            "n1 is being decommissioned\n");
}

TEST(Reading, WhatIsNoAnswer_IsRefused_AndOddFieldsAreOverlooked) {
  for (const char* body : {"", "[]", "{}", "{", R"({"members":5,"moves":5,"node":5,"topic":5})"}) {
    EXPECT_EQ(read_members(body).error().code(), Errc::data_loss) << body;
    EXPECT_EQ(read_verdict(body).error().code(), Errc::data_loss) << body;
    EXPECT_EQ(read_quarantine(body).error().code(), Errc::data_loss) << body;
    EXPECT_EQ(read_stop(body).error().code(), Errc::data_loss) << body;
    EXPECT_EQ(read_rebalance(body).error().code(), Errc::data_loss) << body;
    EXPECT_EQ(read_explanation(body).error().code(), Errc::data_loss) << body;
  }
  const auto odd = read_members(
      R"({"members":[7,{"id":5,"draining":1,"owned_partitions":-1,"drain":[],"status":null}]})");
  ASSERT_EQ(odd.value().size(), 1u);
  EXPECT_FALSE(odd.value()[0].draining);
  EXPECT_FALSE(odd.value()[0].drain);
}

TEST(Reading, WhatAServerSays_StaysOneLineAndMovesNoCursor) {
  const auto list = read_members(
      R"({"members":[{"id":"a\nb\u001b[2J","addr":"x\r","status":"alive","draining":true,)"
      R"("drain":{"reasons":[{"rule":"r","detail":"d\ne"}]}}]})");
  const std::string table = members_table(list.value());
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
  EXPECT_EQ(table.find('\r'), std::string::npos);
  EXPECT_NE(table.find("    r: d\\x0ae\n"), std::string::npos) << table;
}

TEST(QuarantinePage, QUA_7_EveryCopy_IsNamedWithItsReason) {
  const auto q = read_quarantine(
      R"({"copies":[{"node":"n1","kind":"partition","topic":"orders","partition":3,"disk":"d1",
          "path":"/d/topics/orders/p00003.quarantine","bytes":4096,"why":"the owner has less",
          "since":1783615000},
         {"node":"node-2","kind":"staged","topic":"a","partition":0,"path":"/d/.moves/a-0.quarantine",
          "bytes":1},
         {"node":"node-2","kind":"topic","topic":"gone","path":"/d/.quarantine/gone@1","bytes":0}],
         "left_out":1,"unanswered":[{"node":"n3","error":"node n3 did not answer in 1.5s"}]})");
  EXPECT_EQ(
      quarantine_page(q.value()),
      "NODE    COPY OF        BYTES  SINCE                 PATH                                "
      "WHY\n"
      "n1      orders/3      4.0KiB  2026-07-09T16:36:40Z  /d/topics/orders/p00003.quarantine  "
      "the owner has less\n"
      "node-2  a/0 (staged)      1B  -                     /d/.moves/a-0.quarantine            "
      "-\n"
      "node-2  gone (topic)      0B  -                     /d/.quarantine/gone@1               "
      "-\n"
      "\n"
      "3 copies, 4.0KiB: Narad never removes one. narad fsck PATH says what is in it\n"
      "and 1 more that are not named here\n"
      "n3: what it has is not known: node n3 did not answer in 1.5s\n");
}

TEST(QuarantinePage, NothingThere_IsSaidOnlyIfAllHaveAnswered) {
  EXPECT_EQ(quarantine_page(read_quarantine(R"({"copies":[]})").value()),
            "nothing is in quarantine\n");
  EXPECT_EQ(
      quarantine_page(
          read_quarantine(R"({"copies":[],"unanswered":[{"node":"n3","error":"away"}]})").value()),
      "n3: what it has is not known: away\n");
}

TEST(StopPage, SaysYesOrEveryReason) {
  EXPECT_EQ(stop_page(read_stop(R"({"node":"n3","safe":true,"reasons":[]})").value()),
            "n3 may be stopped now\n");
  const StopView no =
      read_stop(R"({"node":"n3","safe":false,"reasons":[{"rule":"unreachable","detail":"silent"},)"
                R"({"rule":"no_live_majority","detail":"1 of 3"}]})")
          .value();
  EXPECT_FALSE(no.unknown()) << "one thing is known that speaks against it";
  EXPECT_EQ(stop_page(no),
            "n3 should not be stopped now\n"
            "    unreachable: silent\n"
            "    no_live_majority: 1 of 3\n");
  const StopView open =
      read_stop(
          R"({"node":"n3","safe":false,"reasons":[{"rule":"unreachable","detail":"silent"}]})")
          .value();
  EXPECT_TRUE(open.unknown());
  EXPECT_EQ(stop_page(open),
            "n3 may not be safe to stop now\n"
            "    unreachable: silent\n");
  EXPECT_FALSE(read_stop(R"({"node":"n3"})").value().safe) << "what is not said is no yes";
}

TEST(DrainLine, IsTheSameAsLongAsNothingHasChanged) {
  auto list = read_members(kMembers).value();
  const std::string line = drain_line(list[2]);
  EXPECT_EQ(line,
            "n3: 4 partitions left (1 never used), 2 moves on their way there; owns_partitions: "
            "owns 4 partitions, 3 on the way; ingress_backlog: its ingress WAL holds 7 messages");
  EXPECT_EQ(drain_line(read_members(kMembers).value()[2]), line);
  list[2].drain->partitions = 3;
  EXPECT_NE(drain_line(list[2]), line);
  EXPECT_EQ(drain_line(list[3]), "n4 is empty and leaves the cluster");
}

VerdictView verdict_of(const char* body) { return read_verdict(body).value(); }

TEST(VerdictPage, DEC_18_Possible_SaysWhatItWouldWaitFor) {
  EXPECT_EQ(verdict_page(verdict_of(
                R"({"node":"n3","possible":true,"draining":false,"leaving":false,"partitions":4,)"
                R"("unused":0,"inbound":0,"reasons":[{"rule":"owns_partitions",)"
                R"("detail":"owns 4 partitions","hopeless":false}]})")),
            "n3 can be decommissioned\n"
            "  what it would wait for:\n"
            "    owns_partitions: owns 4 partitions\n");
}

TEST(VerdictPage, DEC_17_Hopeless_SaysWhatDoesNotPass) {
  EXPECT_EQ(verdict_page(verdict_of(
                R"({"node":"n3","possible":false,"draining":false,"leaving":false,"partitions":4,)"
                R"("unused":0,"inbound":0,"reasons":[{"rule":"owns_partitions",)"
                R"("detail":"owns 4 partitions","hopeless":false},{"rule":"min_voters",)"
                R"("detail":"needs 3: add a node first","hopeless":true}]})")),
            "n3 cannot be decommissioned\n"
            "  what does not pass by itself:\n"
            "    min_voters: needs 3: add a node first\n"
            "  what it would wait for:\n"
            "    owns_partitions: owns 4 partitions\n");
}

TEST(VerdictPage, UnderWay_SaysHowFarItIs) {
  EXPECT_EQ(verdict_page(verdict_of(
                R"({"node":"n3","possible":true,"draining":true,"leaving":false,"partitions":1,)"
                R"("unused":0,"inbound":1,"reasons":[{"rule":"owns_partitions",)"
                R"("detail":"owns 1 partition","hopeless":false}]})")),
            "n3 is being decommissioned already: 1 partition left, 1 move on its way there\n"
            "  what it waits for:\n"
            "    owns_partitions: owns 1 partition\n");
  EXPECT_EQ(verdict_page(verdict_of(
                R"({"node":"n3","possible":true,"draining":true,"leaving":true,"reasons":[]})")),
            "n3 is empty and leaves the cluster\n");
}

TEST(RebalancePage, SaysWhatMovesAndWhatHasToWait) {
  const char* body = R"({"dry_run":true,
    "cleared":[{"topic":"orders","partition":1,"to":"n9","reason":"target_dead"}],
    "moves":[{"topic":"orders","partition":2,"from":"n1","to":"n4","to_disk":"d1",
              "reason":"joined","at_once":false},
             {"topic":"a","partition":10,"from":"n2","to":"n4","to_disk":"d2",
              "reason":"joined","at_once":true}],"wanted":5})";
  auto plan = read_rebalance(body).value();
  EXPECT_EQ(rebalance_page(plan),
            "the move of orders/1 to n9 would be called off: target_dead\n"
            "2 partitions would be moved now\n"
            "PARTITION  FROM  TO  DISK  WHY\n"
            "orders/2   n1    n4  d1    joined\n"
            "a/10       n2    n4  d2    joined, at once: it was never used\n"
            "3 more once fewer are under way\n");
  plan.dry_run = false;
  plan.cleared.clear();
  plan.wanted = 2;
  EXPECT_TRUE(rebalance_page(plan).starts_with("2 partitions to move\nPARTITION"));
  EXPECT_EQ(rebalance_page(RebalanceView{}), "nothing is to move\n");
  plan.moves.clear();
  EXPECT_EQ(rebalance_page(plan), "nothing more can begin now; 2 moves wanted\n");
}

TEST(ExplanationPage, SaysWhereWhyAndWhoElse) {
  const char* body = R"({"topic":"orders","partition":3,"owner":"n1","owner_disk":"d1","used":true,
    "target":"n4","target_disk":"d2","id":4711,"verdict":"in_flight","text":"it is on its way",
    "would_go_to":"n4","members":[{"node":"n1","standing":"","owned":12,"share":5},
                                  {"node":"n3","standing":"draining","owned":2,"share":0}]})";
  EXPECT_EQ(explanation_page(read_explanation(body).value()),
            "orders/3 is on n1 (disk d1)\n"
            "on its way to n4 (disk d2): see narad cluster moves show 4711\n"
            "in_flight: it is on its way\n"
            "\n"
            "NODE  PARTITIONS  SHARE  TAKES MORE\n"
            "n1            12      5  yes\n"
            "n3             2      0  no: it is draining\n");
  EXPECT_EQ(explanation_page(read_explanation(R"({"topic":"a","partition":0,"owner":"n1",
              "used":false,"verdict":"at_home","text":"it stays"})")
                                 .value()),
            "a/0 is on n1 and was never used\n"
            "at_home: it stays\n"
            "\n"
            "NODE  PARTITIONS  SHARE  TAKES MORE\n");
}

}  // namespace
}  // namespace narad::cli
