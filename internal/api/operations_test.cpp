// Departures and plans over HTTP (http-api 1.13, 7; DEC, OBS). What is decided is tested where it
// is (internal/cluster/operations_test.cpp); here it is canned.
#include <gtest/gtest.h>

#include "internal/api/operation_json.h"
#include "internal/api/routes.h"
#include "internal/api/schema_for_test.h"
#include "internal/api/test_api.h"

namespace narad::api {
namespace {

constexpr const char* kN3 = "/v1/cluster/members/n3/decommission";

DrainVerdict waiting_n3() {
  return {"n3",
          true,
          false,
          4,
          1,
          2,
          {{DrainRule::owns_partitions, "owns 4 partitions, 3 on the way"},
           {DrainRule::ingress_backlog, "its ingress WAL holds 7 messages"}}};
}
DrainVerdict hopeless_n3() {
  return {"n3",
          false,
          false,
          4,
          0,
          0,
          {{DrainRule::dead_owner, "n3 is dead and owns 4 partitions", true},
           {DrainRule::owns_partitions, "owns 4 partitions"},
           {DrainRule::min_voters, "needs 3: add a node first", true}}};
}
DrainOutcome accepted() {
  DrainOutcome out;
  out.accepted = true;
  out.verdict = waiting_n3();
  return out;
}

// With an account of what was asked.
struct Recorded : SecuredFixture {
  Recorded() : SecuredFixture(with_file()) {
    NARAD_ASSERT(solo.run([this](Env&) { return security.audit().open(); }).has_value());
    as("admin");
    broker.calls.clear();
  }
  static security::Options with_file() {
    security::Options options;
    options.audit_file = "/audit.jsonl";
    return options;
  }
  std::string last_line() {
    std::string all = to_text(read_file(solo.env().fs, "/audit.jsonl", 1 << 20).value());
    NARAD_ASSERT(all.ends_with('\n'));
    all.pop_back();
    return all.substr(all.rfind('\n') + 1);
  }
};

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// ---- decommission -----------------------------------------------------------------------------

TEST(Decommission, Accepted_Is204WithoutBody_AlsoIfItHolds) {
  Fixture f;
  f.broker.departure = accepted();
  for (const bool already : {false, true}) {
    f.broker.departure.value().already = already;
    const auto response = f.post(kN3);
    EXPECT_EQ(response.status, 204);
    EXPECT_EQ(response.body, "");
  }
  EXPECT_EQ(f.post(cat(kN3, "?wal_lost=1")).status, 204);
  EXPECT_EQ(f.broker.calls, (std::vector<std::string>{"decommission n3", "decommission n3",
                                                      "decommission n3 wal_lost"}));
}

TEST(Decommission, DEC_17_Hopeless_Is409WithEveryReasonThatWouldNotPass) {
  Fixture f;
  DrainOutcome refused;
  refused.verdict = hopeless_n3();
  f.broker.departure = refused;
  const auto response = f.post(kN3);
  EXPECT_EQ(response.status, 409);
  EXPECT_EQ(response.body,
            R"({"error":"member n3 cannot be decommissioned: n3 is dead and owns 4 partitions; )"
            R"(needs 3: add a node first","code":"dead_owner","reasons":[)"
            R"({"rule":"dead_owner","detail":"n3 is dead and owns 4 partitions"},)"
            R"({"rule":"min_voters","detail":"needs 3: add a node first"}]})"
            "\n");
}

TEST(Decommission, DEC_18_DryRun_AnswersTheVerdictAndOrdersNothing) {
  Fixture f;
  f.broker.verdict = hopeless_n3();
  auto response = f.post(cat(kN3, "?dry_run=1&wal_lost=true"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body,
            R"({"node":"n3","possible":false,"draining":false,"leaving":false,"partitions":4,)"
            R"("unused":0,"inbound":0,"reasons":[)"
            R"({"rule":"dead_owner","detail":"n3 is dead and owns 4 partitions","hopeless":true},)"
            R"({"rule":"owns_partitions","detail":"owns 4 partitions","hopeless":false},)"
            R"({"rule":"min_voters","detail":"needs 3: add a node first","hopeless":true}]})"
            "\n");
  f.broker.verdict = waiting_n3();
  EXPECT_TRUE(has(f.post(cat(kN3, "?dry_run=1")).body, R"("possible":true,"draining":true)"));
  EXPECT_EQ(f.broker.calls, (std::vector<std::string>{"verdict n3 wal_lost", "verdict n3"}));
}

TEST(Decommission, SenselessSwitch_Is400AndOrdersNothing) {
  Fixture f;
  f.broker.departure = accepted();
  for (const char* query :
       {"?dry_run=yes", "?dry_run=%zz", "?dry_run=0&dry_run=1", "?wal_lost=2", "?%zz=1"}) {
    EXPECT_EQ(f.post(cat(kN3, query)).status, 400) << query;
  }
  EXPECT_TRUE(f.broker.calls.empty());
}

TEST(Decommission, WhatCannotBe_HasItsStatus) {
  Fixture f;
  EXPECT_EQ(f.post("/v1/cluster/members/n9/decommission").status, 404);
  EXPECT_EQ(f.post("/v1/cluster/members/n9/decommission?dry_run=1").status, 404);
  EXPECT_EQ(f.remove("/v1/cluster/members/n9/decommission").status, 404);
  f.broker.departure = Error(Errc::unavailable, "no leader");
  auto response = f.post(kN3);
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(f.error(response), "control plane temporarily unavailable: no leader");
  f.broker.departure = Error(Errc::unreachable, "leader n1 does not answer");
  EXPECT_EQ(f.post(kN3).status, 502);
  f.broker.departure = Error(Errc::conflict, "member n3 is alive: its ingress WAL is not lost");
  response = f.post(cat(kN3, "?wal_lost=1"));
  EXPECT_EQ(response.status, 409);
  EXPECT_TRUE(has(response.body, R"("code":"alive","reasons":[{"rule":"alive","detail":"member)"))
      << response.body;
  f.broker.verdict = Error(Errc::conflict, "member n3 is alive: its ingress WAL is not lost");
  EXPECT_EQ(f.post(cat(kN3, "?wal_lost=1&dry_run=1")).body, response.body);
}

TEST(Decommission, Cancelled_Is204_AndRefusedOnceItIsTooLate) {
  Fixture f;
  f.broker.cancellation = ok();
  EXPECT_EQ(f.remove(kN3).status, 204);
  f.broker.cancellation = Error(Errc::conflict, "member n3 has left the cluster already");
  auto response = f.remove(kN3);
  EXPECT_EQ(response.status, 409);
  EXPECT_TRUE(has(response.body, R"("code":"left")")) << response.body;
  f.broker.apply(metastore::RegisterMember{"n3", "h:1", "h:2", "b", {"d1"}, UnixMillis(1)});
  f.broker.cancellation = Error(Errc::conflict, "member n3 is leaving");
  response = f.remove(kN3);
  EXPECT_EQ(response.status, 409);
  EXPECT_TRUE(has(response.body, R"("code":"leaving")")) << response.body;
}

// ---- the record -------------------------------------------------------------------------------

TEST(Departures, AreRecorded_WithWhatWasGivenUpAndWhatWasOnlyAsked) {
  Recorded f;
  f.broker.departure = accepted();
  f.broker.cancellation = ok();
  f.broker.verdict = waiting_n3();
  ASSERT_EQ(f.post(kN3).status, 204);
  EXPECT_TRUE(has(f.last_line(), R"("user":"admin")")) << f.last_line();
  EXPECT_TRUE(has(f.last_line(),
                  R"("action":"cluster.decommission","target":"n3","outcome":"done","status":204)"))
      << f.last_line();
  ASSERT_EQ(f.post(cat(kN3, "?wal_lost=1")).status, 204);
  EXPECT_TRUE(has(f.last_line(), R"("target":"n3, giving up its ingress WAL")")) << f.last_line();
  ASSERT_EQ(f.post(cat(kN3, "?dry_run=1")).status, 200);
  EXPECT_TRUE(has(f.last_line(), R"-("target":"n3 (dry run)")-")) << f.last_line();
  ASSERT_EQ(f.remove(kN3).status, 204);
  EXPECT_TRUE(has(f.last_line(), R"("action":"cluster.decommission.cancel","target":"n3")"))
      << f.last_line();
  ASSERT_EQ(f.post("/v1/cluster/rebalance").status, 200);
  EXPECT_TRUE(has(f.last_line(), R"("action":"cluster.rebalance","target":"all partitions",)"))
      << f.last_line();
  DrainOutcome refused;
  refused.verdict = hopeless_n3();
  f.broker.departure = refused;
  ASSERT_EQ(f.post(kN3).status, 409);
  EXPECT_TRUE(has(f.last_line(), R"("outcome":"refused","status":409)")) << f.last_line();
}

TEST(Departures, WhatNobodyKnows_Is503AndRecordedAsUnknown) {
  Recorded f;
  f.broker.departure = Error(Errc::unknown_outcome, "it may have happened: look");
  const auto response = f.post(kN3);
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(f.error(response), "it may have happened: look");
  EXPECT_TRUE(has(f.last_line(), R"("outcome":"unknown","status":503)")) << f.last_line();
}

TEST(Departures, OnlyAdmins_OrderThem) {
  Recorded f;
  f.add("svc", {{GrantAction::produce, {"*"}}});
  f.as("svc");
  f.broker.calls.clear();
  EXPECT_EQ(f.post(kN3).status, 403);
  EXPECT_EQ(f.post(cat(kN3, "?dry_run=1")).status, 403);
  EXPECT_EQ(f.remove(kN3).status, 403);
  EXPECT_EQ(f.post("/v1/cluster/rebalance?dry_run=1").status, 403);
  EXPECT_TRUE(f.broker.calls.empty());
}

// ---- members ----------------------------------------------------------------------------------

TEST(Members, OBS_7_DEC_16_OneThatDrains_SaysWhatItWaitsFor) {
  Fixture f;
  for (const char* id : {"n2", "n3"}) {
    f.broker.apply(metastore::RegisterMember{id, "h:1", "h:2", "b", {"d1"}, UnixMillis(1)});
  }
  f.broker.apply(metastore::SetDraining{"n3", true});
  f.broker.waiting = {waiting_n3()};
  std::string body = f.get("/v1/cluster/members").body;
  EXPECT_TRUE(has(
      body, R"("last_seen_ms":1,"drain":{"leaving":false,"partitions":4,"unused":1,"inbound":2,)"
            R"("reasons":[{"rule":"owns_partitions","detail":"owns 4 partitions, 3 on the way",)"
            R"("hopeless":false},{"rule":"ingress_backlog","detail":"its ingress WAL holds 7 )"
            R"(messages","hopeless":false}]},)"
            R"("decommission_blocked":["owns_partitions","ingress_backlog"]}],"leader")"))
      << body;
  EXPECT_EQ(body.find("\"drain\":"), body.rfind("\"drain\":")) << "the others do not drain";
  f.broker.apply(metastore::Leaving{"n3", f.broker.view()->members.find("n3")->drain_id});
  f.broker.waiting.clear();
  body = f.get("/v1/cluster/members").body;
  EXPECT_TRUE(has(body, R"("drain":{"leaving":true,"partitions":0,"unused":0,"inbound":0,)"
                        R"("reasons":[]},"decommission_blocked":[])"))
      << body;
}

// ---- stopping for a while -----------------------------------------------------------------------

TEST(SafeToStop, TheVerdict_IsAnsweredWithEveryReason) {
  Fixture f;
  f.broker.stop_verdict = StopVerdict{
      "n3", {{StopRule::owns_partitions, "has 4"}, {StopRule::no_live_majority, "1 of 3"}}};
  const auto response = f.get("/v1/cluster/members/n3/safe-to-stop");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body,
            R"({"node":"n3","safe":false,"reasons":[{"rule":"owns_partitions","detail":"has 4"},)"
            R"({"rule":"no_live_majority","detail":"1 of 3"}]})"
            "\n");
  EXPECT_EQ(f.broker.calls, std::vector<std::string>{"safe_to_stop n3"});
  f.broker.stop_verdict = StopVerdict{"n3", {}};
  EXPECT_EQ(f.get("/v1/cluster/members/n3/safe-to-stop").body,
            "{\"node\":\"n3\",\"safe\":true,\"reasons\":[]}\n");
  f.broker.stop_verdict = Error(Errc::not_found, "member not found: n9");
  EXPECT_EQ(f.get("/v1/cluster/members/n9/safe-to-stop").status, 404);
  f.broker.stop_verdict = Error(Errc::unavailable, "no leader");
  EXPECT_EQ(f.get("/v1/cluster/members/n9/safe-to-stop").status, 503);
}

// ---- quarantine -------------------------------------------------------------------------------

wire::SetAsideCopies two_copies() {
  return {{{SetAsideKind::partition, "orders", PartitionId(3), "d1",
            "/d/topics/orders/p00003.quarantine", 4096, "the owner has less",
            UnixMillis(1'783'615'000'500)},
           {SetAsideKind::topic, "gone", std::nullopt, "d2", "/e/.quarantine/gone@1", 0, "",
            UnixMillis(0)}},
          1};
}

TEST(ListQuarantine, EveryMemberIsAsked_AndOneThatDoesNotAnswerIsNamed) {
  Fixture f;
  f.broker.apply(metastore::RegisterMember{"n2", "h:1", "h:2", "b", {"d1"}, UnixMillis(1)});
  f.broker.quarantined.emplace("n1", two_copies());
  f.broker.quarantined.emplace("n2", Error(Errc::unreachable, "node n2 did not answer in 1.5s"));
  const auto response = f.get("/v1/cluster/quarantine");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body,
            R"({"copies":[{"node":"n1","kind":"partition","topic":"orders","partition":3,)"
            R"("disk":"d1","path":"/d/topics/orders/p00003.quarantine","bytes":4096,)"
            R"("why":"the owner has less","since":1783615000},{"node":"n1","kind":"topic",)"
            R"("topic":"gone","disk":"d2","path":"/e/.quarantine/gone@1","bytes":0}],)"
            R"("left_out":1,"unanswered":[{"node":"n2",)"
            R"("error":"node n2 did not answer in 1.5s"}]})"
            "\n");
  EXPECT_EQ(f.broker.asked_for_quarantine, (std::vector<std::string>{"n1", "n2"}));
  expect_fits("Quarantine", response.body);
}

TEST(ListQuarantine, OfOneNode_AsksOnlyIt) {
  Fixture f;
  f.broker.quarantined.emplace("n1", wire::SetAsideCopies{});
  EXPECT_EQ(f.get("/v1/cluster/quarantine?node=n1").body,
            R"({"copies":[],"left_out":0,"unanswered":[]})"
            "\n");
  EXPECT_EQ(f.broker.asked_for_quarantine, std::vector<std::string>{"n1"});
  EXPECT_EQ(f.get("/v1/cluster/quarantine?node=n9").status, 404);
  EXPECT_EQ(f.get("/v1/cluster/quarantine?node=n1&node=n2").status, 400);
}

// ---- plans ------------------------------------------------------------------------------------

TEST(Rebalance, IsAnsweredAsItWasMade) {
  Fixture f;
  RebalanceOutcome made;
  made.cleared = {{{"orders", PartitionId(1)}, "n9", "target_dead"}};
  made.moves = {{{"orders", PartitionId(2)}, "n1", "n4", "d1", "joined", false}};
  made.wanted = 3;
  f.broker.pass = made;
  auto response = f.post("/v1/cluster/rebalance?dry_run=1");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body,
            R"({"dry_run":true,"cleared":[{"topic":"orders","partition":1,"to":"n9",)"
            R"("reason":"target_dead"}],"moves":[{"topic":"orders","partition":2,"from":"n1",)"
            R"("to":"n4","to_disk":"d1","reason":"joined","at_once":false}],"wanted":3})"
            "\n");
  EXPECT_TRUE(has(f.post("/v1/cluster/rebalance").body, R"("dry_run":false)"));
  EXPECT_EQ(f.broker.calls, (std::vector<std::string>{"rebalance dry", "rebalance"}));
  EXPECT_EQ(f.post("/v1/cluster/rebalance?dry_run=maybe").status, 400);
  f.broker.pass = Error(Errc::unavailable, "no leader");
  EXPECT_EQ(f.post("/v1/cluster/rebalance").status, 503);
}

TEST(Explain, SaysWhereAndWhy) {
  Fixture f;
  Explanation e;
  e.partition = {"orders", PartitionId(3)};
  e.place = {"n1", "d1", "n4", "d2", RaftIndex(4711)};
  e.used = true;
  e.verdict = "in_flight";
  e.text = "it is on its way";
  e.would_go_to = "n4";
  e.members = {{"n1", "", 6, 5}, {"n3", "draining", 2, 0}};
  f.broker.explanation = e;
  const auto response = f.get("/v1/cluster/explain/orders/3");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body,
            R"({"topic":"orders","partition":3,"owner":"n1","owner_disk":"d1","used":true,)"
            R"("target":"n4","target_disk":"d2","id":4711,"verdict":"in_flight",)"
            R"("text":"it is on its way","would_go_to":"n4","members":[)"
            R"({"node":"n1","standing":"","owned":6,"share":5},)"
            R"({"node":"n3","standing":"draining","owned":2,"share":0}]})"
            "\n");
  EXPECT_EQ(f.broker.calls, std::vector<std::string>{"explain orders/3"});
  f.broker.explanation = Error(Errc::not_found, "topic not found");
  EXPECT_EQ(f.get("/v1/cluster/explain/nope/3").status, 404);
  EXPECT_EQ(f.get("/v1/cluster/explain/orders/x").status, 400);
}

// ---- the document -----------------------------------------------------------------------------

TEST(OperationAnswers, FitTheirSchemas) {
  expect_fits("DrainVerdict", verdict_body(hopeless_n3()));
  expect_fits("Refusal", refuse(hopeless_drain(hopeless_n3())).body);
  RebalanceOutcome made;
  made.cleared = {{{"orders", PartitionId(1)}, "n9", "target_dead"}};
  made.moves = {{{"orders", PartitionId(2)}, "n1", "n4", "d1", "joined", true}};
  expect_fits("Rebalance", rebalance_body(made, false));
  Explanation e;
  e.place.target = "n4";
  e.place.move_id = RaftIndex(7);
  e.members = {{"n1", "", 6, 5}};
  expect_fits("Explanation", explanation_body(e));
  Fixture f;
  f.broker.apply(metastore::SetDraining{"n1", true});
  DrainVerdict drains = hopeless_n3();
  drains.node = "n1";
  f.broker.waiting = {drains};
  const std::string members = f.get("/v1/cluster/members").body;
  EXPECT_TRUE(has(members, "\"drain\":{"));
  expect_fits("Members", members);
}

// Every rule that there is, is one that the document knows.
TEST(OperationAnswers, EveryRule_IsInTheDocument) {
  for (const DrainRule rule : kDrainRules) {
    DrainVerdict verdict = waiting_n3();
    verdict.reasons = {{rule, "so it is"}};
    expect_fits("DrainVerdict", verdict_body(verdict));
  }
  for (const StopRule rule : kStopRules) {
    expect_fits("StopVerdict", stop_body({"n3", {{rule, "so it is"}}}));
  }
  for (const SetAsideKind kind : kSetAsideKinds) {
    wire::SetAsideCopies copies = two_copies();
    copies.copies[0].kind = kind;
    expect_fits("Quarantine", quarantine_body({{"n1", copies}}));
  }
}

}  // namespace
}  // namespace narad::api
