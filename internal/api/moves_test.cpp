// Moves over HTTP: what is under way, what has ended, orders (http-api 1.13, 7; ABT, OBS).
#include <gtest/gtest.h>

#include "internal/api/move_json.h"
#include "internal/api/routes.h"
#include "internal/api/schema_for_test.h"
#include "internal/api/test_api.h"

namespace narad::api {
namespace {

constexpr PartitionId kP{1};

// Members n1, n2, n3; topic orders, whose partition 1 is on n1 and holds messages.
template <class Base>
struct WithMembers : Base {
  template <class... Args>
  explicit WithMembers(Args&&... args) : Base(std::forward<Args>(args)...) {
    if constexpr (std::is_base_of_v<SecuredFixture, Base>) {
      NARAD_ASSERT(
          this->solo.run([this](Env&) { return this->security.audit().open(); }).has_value());
      this->as("admin");
    }
    this->topic("orders");
    for (const char* id : {"n2", "n3"}) {
      this->broker.apply(
          metastore::RegisterMember{id, "h:1", "h:2", "b", {"d1", "d2"}, UnixMillis(1)});
    }
    mark_used(kP);
  }
  Incarnation life() const { return this->broker.view()->topics.find("orders")->topic.incarnation; }
  const Assignment& row(PartitionId p = kP) const {
    return *this->broker.view()->assignment("orders", p);
  }
  void mark_used(PartitionId p) {
    const auto& a = row(p);
    apply(metastore::MarkUsed{"orders", life(), p, a.owner_node, a.owner_disk});
  }
  void apply(const metastore::Command& command) {
    const auto result = this->broker.apply(command);
    NARAD_ASSERT(result.done(), result.text);
  }
  RaftIndex set_target(const std::string& to, PartitionId p = kP) {
    apply(metastore::SetTarget{"orders", life(), p, row(p).owner_node, row(p).move_id, to, "d1",
                               "joined", UnixMillis(1'783'615'000'500)});
    return row(p).move_id;
  }
  void arm() { apply(metastore::ArmFreeze{"orders", life(), kP, row().owner_node, row().move_id}); }
  void flip(std::string receipt = {}) {
    apply(metastore::CompleteMove{"orders", life(), kP, row().owner_node, row().move_id,
                                  row().freeze_epoch, UnixMillis(1'783'615'002'700),
                                  std::move(receipt)});
  }
  void clear() {
    apply(metastore::ClearTarget{"orders", life(), kP, row().target_node, row().move_id,
                                 "target_dead", UnixMillis(1'783'615'009'000)});
  }
  void die(const std::string& node) {
    apply(metastore::MarkDead{node, this->broker.view()->members.find(node)->stamp});
  }
};
using Moving = WithMembers<Fixture>;
using SecuredMoving = WithMembers<SecuredFixture>;

// A report of the move of partition 1, some way on its way.
wire::MoveReport report_of(RaftIndex move) {
  wire::MoveReport r;
  r.move.partition = {"orders", kP};
  r.move.move_id = move;
  r.phase = "copying";
  r.bytes_done = 400;
  r.bytes_total = 1000;
  r.bytes_per_second = 110;
  r.write_bytes_per_second = 10;
  r.moved_ms_ago = 20;
  r.passes = 2;
  r.attempts = 1;
  return r;
}

json::Document parsed(const http::Response& response) {
  auto document = json::Document::parse(response.body, 16);
  NARAD_ASSERT(document.has_value(), response.body);
  return std::move(document.value());
}
std::string text(const http::Response& response, std::string_view name) {
  const auto document = parsed(response);
  const auto value = document.root().find(name);
  if (!value) return "(none)";
  return value->is(json::Kind::string) ? std::string(value->as_string())
                                       : std::string(value->raw());
}

// ---- what is under way ------------------------------------------------------------------------

TEST(ListMoves, NothingMoves_IsAnEmptyList) {
  Moving f;
  EXPECT_EQ(f.get("/v1/cluster/moves").body, "{\"moves\":[]}\n");
}

TEST(ListMoves, OBS_1_AMove_HasTheFieldsOfRelease2AndEachSidesStatus) {
  Moving f;
  const RaftIndex move = f.set_target("n2");
  EXPECT_EQ(f.get("/v1/cluster/moves").body,
            cat(R"({"moves":[{"topic":"orders","partition":1,"from":"n1","to":"n2","id":)", move,
                R"(,"from_disk":"d1","to_disk":"d1","reason":"joined","from_status":"alive",)"
                R"("to_status":"alive","blocked":[],"started_at":1783615000}]})"
                "\n"));
  EXPECT_NE(f.get("/v1/cluster/members").body.find("\"outbound_moves\":1"), std::string::npos);
}

TEST(ListMoves, AreSortedByTopicAndPartition) {
  Moving f;
  f.topic("aaa");
  f.mark_used(PartitionId(2));
  f.set_target("n2", PartitionId(2));
  f.set_target("n2", kP);
  const std::string body = f.get("/v1/cluster/moves").body;
  EXPECT_LT(body.find("\"partition\":1"), body.find("\"partition\":2"));
}

TEST(ListMoves, OBS_1_OBS_2_DeadSides_AreSaidToBlock) {
  Moving f;
  f.set_target("n2");
  f.die("n1");
  f.die("n2");
  const std::string body = f.get("/v1/cluster/moves").body;
  EXPECT_NE(body.find(R"("from_status":"dead","to_status":"dead",)"
                      R"("blocked":["source_dead","target_dead"])"),
            std::string::npos)
      << body;
}

TEST(ListMoves, OBS_1_ADrainingOwner_IsNamed) {
  Moving f;
  f.set_target("n2");
  f.apply(metastore::SetDraining{"n1", true});
  EXPECT_NE(f.get("/v1/cluster/moves").body.find(R"("from_status":"draining")"), std::string::npos);
}

TEST(ListMoves, OfATopicOrANode_AreChosen) {
  Moving f;
  f.set_target("n2");
  const auto count = [&](const std::string& query) {
    const auto document = parsed(f.get("/v1/cluster/moves?" + query));
    return document.root().find("moves")->size();
  };
  EXPECT_EQ(count("topic=orders"), 1u);
  EXPECT_EQ(count("topic=order"), 0u);
  EXPECT_EQ(count("node=n1"), 1u);
  EXPECT_EQ(count("node=n2"), 1u);
  EXPECT_EQ(count("node=n3"), 0u);
}

TEST(ListMoves, WithoutDetail_NobodyIsAsked) {
  Moving f;
  f.set_target("n2");
  f.get("/v1/cluster/moves");
  EXPECT_TRUE(f.broker.asked_for_reports.empty());
}

TEST(ListMoves, OBS_3_Detail_AddsWhatTheDestinationSays) {
  Moving f;
  const RaftIndex move = f.set_target("n2");
  wire::MoveReport other = report_of(RaftIndex(1));
  other.phase = "done";
  wire::MoveReport own = report_of(move);
  own.last_error = "node n1: busy";
  own.blocked = "copy_unverifiable";
  f.broker.reports.emplace("n2", wire::MoveReports{{other, own}});
  const std::string body = f.get("/v1/cluster/moves?detail=1").body;
  EXPECT_EQ(f.broker.asked_for_reports, std::vector<std::string>{"n2"});
  EXPECT_NE(body.find(R"("report":{"phase":"copying","bytes_done":400,"bytes_total":1000,)"
                      R"("bytes_per_second":110,"write_bytes_per_second":10,"seconds_left":6,)"
                      R"("passes":2,"attempts":1,"frozen_ms":0,"last_error":"node n1: busy"})"),
            std::string::npos)
      << body;
  EXPECT_NE(body.find(R"("blocked":["copy_unverifiable"])"), std::string::npos);
}

TEST(ListMoves, OBS_3_ADestinationThatDoesNotAnswer_IsNamedAndTheOthersAreShown) {
  Moving f;
  f.mark_used(PartitionId(0));
  const RaftIndex move = f.set_target("n2");
  f.set_target("n3", PartitionId(0));
  f.broker.reports.emplace("n2", wire::MoveReports{{report_of(move)}});
  f.broker.reports.emplace("n3", Error(Errc::unreachable, "node n3 did not answer in 1.5s"));
  const auto response = f.get("/v1/cluster/moves?detail=true");
  EXPECT_EQ(response.status, 200);
  EXPECT_NE(response.body.find(R"("report_error":"node n3 did not answer in 1.5s")"),
            std::string::npos);
  EXPECT_NE(response.body.find(R"("phase":"copying")"), std::string::npos);
  f.broker.reports.erase("n2");
  f.broker.reports.emplace("n2", wire::MoveReports{});
  EXPECT_NE(f.get("/v1/cluster/moves?detail=1").body.find("node n2 does not work on it yet"),
            std::string::npos);
}

TEST(ListMoves, BadQuery_Is400) {
  Moving f;
  for (const char* query : {"detail=yes", "history=2", "limit=0", "limit=x"}) {
    EXPECT_EQ(f.get(cat("/v1/cluster/moves?", query)).status, 400) << query;
  }
}

// ---- how long yet -----------------------------------------------------------------------------

TEST(TimeLeft, IsAtTheRateOfNowWithoutWhatIsWrittenMeanwhile) {
  EXPECT_EQ(seconds_left(report_of(RaftIndex(1))), 6u);
  wire::MoveReport uneven = report_of(RaftIndex(1));
  uneven.bytes_done = 399;
  EXPECT_EQ(seconds_left(uneven), 7u) << "rounded up";
}

TEST(TimeLeft, WhereItWouldBeAGuess_ThereIsNone) {
  wire::MoveReport queued;
  EXPECT_FALSE(seconds_left(queued)) << "nothing is known yet";
  wire::MoveReport slow = report_of(RaftIndex(1));
  slow.bytes_per_second = slow.write_bytes_per_second;
  EXPECT_FALSE(seconds_left(slow)) << "it never catches up";
  EXPECT_FALSE(stalled_seconds(slow));
}

TEST(TimeLeft, NothingArrivedForThirtySeconds_IsStalled) {
  wire::MoveReport r = report_of(RaftIndex(1));
  r.moved_ms_ago = 29'999;
  EXPECT_FALSE(stalled_seconds(r));
  r.moved_ms_ago = 40'900;
  EXPECT_EQ(stalled_seconds(r), 40u);
  EXPECT_FALSE(seconds_left(r)) << "never a stale guess";
  r.bytes_done = r.bytes_total;
  EXPECT_FALSE(stalled_seconds(r)) << "it has all there is";
  EXPECT_EQ(seconds_left(r), 0u);
}

// ---- what has ended ---------------------------------------------------------------------------

TEST(MoveHistory, NewestFirst_WithWhatBecameOfEach) {
  Moving f;
  const RaftIndex first = f.set_target("n2");
  f.clear();
  const RaftIndex second = f.set_target("n3");
  f.arm();
  f.flip(R"({"records":7,"bytes":512})");
  const RaftIndex third = f.set_target("n1");
  EXPECT_EQ(
      f.get("/v1/cluster/moves?history=1").body,
      cat(R"({"moves":[{"topic":"orders","partition":1,"from":"n3","to":"n1","id":)", third,
          R"(,"from_disk":"d1","to_disk":"d1","reason":"joined","from_status":"alive",)"
          R"("to_status":"alive","blocked":[],"started_at":1783615000}],"history":[)"
          R"({"topic":"orders","partition":1,"from":"n1","to":"n3","id":)",
          second,
          R"(,"from_disk":"d1","to_disk":"d1","reason":"joined","outcome":"moved",)"
          R"("started_at":1783615000,"ended_at":1783615002,"took_ms":2200,)"
          R"("receipt":{"records":7,"bytes":512}},)"
          R"({"topic":"orders","partition":1,"from":"n1","to":"n2","id":)",
          first,
          R"(,"from_disk":"d1","to_disk":"d1","reason":"joined","outcome":"cleared",)"
          R"("why":"target_dead","started_at":1783615000,"ended_at":1783615009,"took_ms":8500}]})",
          "\n"));
}

TEST(MoveHistory, Limit_CutsTheOldOnesOff) {
  Moving f;
  std::vector<RaftIndex> moves;
  for (int i = 0; i < 3; ++i) {
    moves.push_back(f.set_target("n2"));
    f.clear();
  }
  const auto document = parsed(f.get("/v1/cluster/moves?history=1&limit=2"));
  const json::Value history = *document.root().find("history");
  ASSERT_EQ(history.size(), 2u);
  EXPECT_EQ(history.element(0).find("id")->raw(), to_string(moves[2]));
  EXPECT_EQ(history.element(1).find("id")->raw(), to_string(moves[1]));
  EXPECT_EQ(f.get("/v1/cluster/moves?history=1&limit=5000").status, 200);
  EXPECT_EQ(parsed(f.get("/v1/cluster/moves?history=1&node=n3")).root().find("history")->size(),
            0u);
}

TEST(MoveHistory, AReceiptThatIsNoJson_IsLeftOut) {
  Moving f;
  f.set_target("n2");
  f.arm();
  f.flip("{oops");
  const std::string body = f.get("/v1/cluster/moves?history=1").body;
  EXPECT_EQ(body.find("receipt"), std::string::npos) << body;
}

TEST(GetMove, UnderWayOrEnded_IsShown) {
  Moving f;
  const RaftIndex move = f.set_target("n2");
  f.broker.reports.emplace("n2", wire::MoveReports{{report_of(move)}});
  auto response = f.get(cat("/v1/cluster/moves/", move));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(text(response, "outcome"), "running");
  EXPECT_NE(response.body.find("\"report\":{"), std::string::npos);
  f.broker.asked_for_reports.clear();
  f.clear();
  response = f.get(cat("/v1/cluster/moves/", move));
  EXPECT_EQ(text(response, "outcome"), "cleared");
  EXPECT_TRUE(f.broker.asked_for_reports.empty());
}

TEST(GetMove, UnknownOrSenselessIds) {
  Moving f;
  EXPECT_EQ(f.get("/v1/cluster/moves/9999").status, 404);
  EXPECT_EQ(f.get("/v1/cluster/moves/abc").status, 400);
  EXPECT_EQ(f.get("/v1/cluster/moves/-1").status, 400);
  EXPECT_EQ(f.get("/v1/cluster/moves/0").status, 404);
}

// ---- start ------------------------------------------------------------------------------------

TEST(StartMove, APartition_IsOnItsWay) {
  Moving f;
  const char* body = R"({"topic":"orders","partition":1,"to":"n2"})";
  auto response = f.post("/v1/cluster/moves", body);
  EXPECT_EQ(response.status, 202);
  const RaftIndex move = f.row().move_id;
  EXPECT_EQ(response.body,
            cat(R"({"topic":"orders","partition":1,"from":"n1","to":"n2","to_disk":"d1","id":)",
                move, R"(,"outcome":"started"})", "\n"));
  response = f.post("/v1/cluster/moves", body);
  EXPECT_EQ(response.status, 200) << "it is on its way already";
  EXPECT_EQ(text(response, "id"), to_string(move));
  EXPECT_EQ(text(response, "outcome"), "on_its_way");
}

TEST(StartMove, OfAPartitionThatTakesInMoreThanMayBeFetched_SaysSo) {
  Moving f;
  f.apply(metastore::SetMoveRate{10'000});
  f.broker.written = 6'000;
  const char* to_n2 = R"({"topic":"orders","partition":1,"to":"n2"})";
  EXPECT_EQ(f.post("/v1/cluster/moves", to_n2).body.find("converge"), std::string::npos);
  EXPECT_EQ(f.broker.asked_for_rate.size(), 1u);
  // Of what n1 may send, two nodes take a half each from now on.
  f.mark_used(PartitionId(2));
  f.set_target("n2", PartitionId(2));
  const auto response =
      f.post("/v1/cluster/moves", R"({"topic":"orders","partition":1,"to":"n3"})");
  ASSERT_EQ(response.status, 202) << response.body;
  EXPECT_NE(response.body.find(R"("outcome":"started","will_not_converge":{)"
                               R"("write_bytes_per_second":6000,"budget_bytes_per_second":5000}})"),
            std::string::npos)
      << response.body;
  expect_fits("MoveStarted", response.body);
  f.apply(metastore::SetMoveRate{0});
  EXPECT_EQ(f.post("/v1/cluster/moves", to_n2).body.find("converge"), std::string::npos);
  EXPECT_EQ(f.broker.asked_for_rate.size(), 2u) << "no budget, no question";
  f.broker.written.reset();
  f.apply(metastore::SetMoveRate{10'000});
  EXPECT_EQ(f.post("/v1/cluster/moves", R"({"topic":"orders","partition":1,"to":"n3"})").status,
            202)
      << "an owner that says nothing holds nobody up";
}

TEST(StartMove, ItIsThereAlready_Is200WithoutAMove) {
  Moving f;
  const auto response =
      f.post("/v1/cluster/moves", R"({"topic":"orders","partition":1,"to":"n1"})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(text(response, "outcome"), "there");
  EXPECT_EQ(text(response, "id"), "(none)");
}

TEST(StartMove, NeverUsedPartition_IsGivenAtOnce) {
  Moving f;
  const auto response =
      f.post("/v1/cluster/moves", R"({"topic":"orders","partition":2,"to":"n3","disk":"d2"})");
  EXPECT_EQ(response.status, 202);
  EXPECT_EQ(text(response, "outcome"), "given");
  EXPECT_EQ(text(response, "to"), "n3");
  EXPECT_EQ(text(response, "to_disk"), "d2");
  EXPECT_EQ(f.row(PartitionId(2)).owner_node, "n3");
  EXPECT_EQ(f.get(cat("/v1/cluster/moves/", text(response, "id"))).status, 200);
}

TEST(StartMove, WhatIsUnknown_Is404) {
  Moving f;
  const auto status = [&](const char* body) { return f.post("/v1/cluster/moves", body).status; };
  EXPECT_EQ(status(R"({"topic":"nope","partition":0,"to":"n2"})"), 404);
  EXPECT_EQ(status(R"({"topic":"orders","partition":3,"to":"n2"})"), 404);
  EXPECT_EQ(status(R"({"topic":"orders","partition":1,"to":"n9"})"), 404);
}

TEST(StartMove, BadBody_Is400) {
  Moving f;
  for (const char* body :
       {"", "[]", R"({"topic":"orders","partition":1})", R"({"topic":"orders","to":"n2"})",
        R"({"partition":1,"to":"n2"})", R"({"topic":"orders","partition":-1,"to":"n2"})",
        R"({"topic":"orders","partition":"1","to":"n2"})",
        R"({"topic":"orders","partition":1,"to":"n2","rate":5})"}) {
    EXPECT_EQ(f.post("/v1/cluster/moves", body).status, 400) << body;
  }
  EXPECT_EQ(f.row().target_node, "");
}

TEST(StartMove, WhoCannotReceive_Is409WithTheRule) {
  Moving f;
  f.die("n2");
  f.apply(metastore::SetDraining{"n3", true});
  const auto refused = [&](const char* body) {
    const auto response = f.post("/v1/cluster/moves", body);
    EXPECT_EQ(response.status, 409) << response.body;
    EXPECT_EQ(text(response, "owner"), "n1");
    EXPECT_NE(response.body.find(cat("\"reasons\":[{\"rule\":\"", text(response, "code"))),
              std::string::npos);
    return text(response, "code");
  };
  EXPECT_EQ(refused(R"({"topic":"orders","partition":1,"to":"n2"})"), "target_dead");
  EXPECT_EQ(refused(R"({"topic":"orders","partition":1,"to":"n3"})"), "target_draining");
  EXPECT_EQ(refused(R"({"topic":"orders","partition":1,"to":"n1","disk":"d7"})"), "no_such_disk");
}

TEST(StartMove, NoLeader_Is503AndNothingChanged) {
  Moving f;
  f.proposer.refuse_barrier = Error(Errc::unavailable, "no round of the majority in time");
  const auto response =
      f.post("/v1/cluster/moves", R"({"topic":"orders","partition":1,"to":"n2"})");
  EXPECT_EQ(response.status, 503);
  EXPECT_NE(f.error(response).find("nothing was changed"), std::string::npos);
  EXPECT_EQ(f.row().target_node, "");
}

// ---- abort ------------------------------------------------------------------------------------

TEST(AbortMove, ABT_1_ABT_7_AMoveUnderWay_IsAborted) {
  Moving f;
  const RaftIndex move = f.set_target("n2");
  const auto response = f.post("/v1/cluster/moves/orders/1/abort");
  EXPECT_EQ(response.status, 202);
  EXPECT_EQ(response.body,
            cat(R"({"topic":"orders","partition":1,"id":)", move,
                R"(,"from":"n1","to":"n2","outcome":"aborted","owner":"n1","target":""})", "\n"));
  EXPECT_EQ(f.row().target_node, "");
  EXPECT_EQ(f.broker.view()->moves.find(metastore::move_key(move))->why, "aborted by an operator");
}

TEST(AbortMove, ABT_3_ItMovesToAnotherNode_Is409AndUntouched) {
  Moving f;
  f.set_target("n3");
  const auto response = f.post("/v1/cluster/moves/orders/1/abort?target=n2");
  EXPECT_EQ(response.status, 409);
  EXPECT_EQ(text(response, "owner"), "n1");
  EXPECT_EQ(text(response, "target"), "n3");
  EXPECT_EQ(text(response, "code"), "other_target");
  EXPECT_EQ(f.row().target_node, "n3");
  EXPECT_EQ(f.post("/v1/cluster/moves/orders/1/abort?target=n3").status, 202);
}

TEST(AbortMove, ABT_7_TheFlipWasFaster_Is409WithTheNewOwner) {
  Moving f;
  f.set_target("n2");
  f.arm();
  f.proposer.before_apply = [&] { f.flip(); };
  const auto response = f.post("/v1/cluster/moves/orders/1/abort");
  EXPECT_EQ(response.status, 409);
  EXPECT_EQ(text(response, "code"), "already_moved");
  EXPECT_EQ(text(response, "owner"), "n2");
  EXPECT_EQ(text(response, "target"), "");
}

TEST(AbortMove, NoMoveUnderWay_Is409) {
  Moving f;
  const auto response = f.post("/v1/cluster/moves/orders/1/abort");
  EXPECT_EQ(response.status, 409);
  EXPECT_EQ(text(response, "code"), "no_move");
  EXPECT_EQ(text(response, "owner"), "n1");
}

TEST(AbortMove, WhatIsUnknownOrSenseless) {
  Moving f;
  EXPECT_EQ(f.post("/v1/cluster/moves/nope/0/abort").status, 404);
  EXPECT_EQ(f.post("/v1/cluster/moves/orders/3/abort").status, 404);
  EXPECT_EQ(f.post("/v1/cluster/moves/orders/x/abort").status, 400);
  EXPECT_EQ(f.post("/v1/cluster/moves/orders/1/abort?target=%zz").status, 400);
  EXPECT_EQ(f.get("/v1/cluster/moves/orders/1/abort").status, 405);
}

// ---- who, and the record ----------------------------------------------------------------------

struct Recorded : SecuredMoving {
  Recorded() : SecuredMoving(with_file()) {}
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

TEST(MoveOrders, OnlyAdmins_GiveThem) {
  SecuredMoving f;
  f.set_target("n2");
  f.add("svc", {{GrantAction::produce, {"orders"}}});
  f.as("svc");
  EXPECT_EQ(f.get("/v1/cluster/moves").status, 200);
  EXPECT_EQ(f.post("/v1/cluster/moves/orders/1/abort").status, 403);
  EXPECT_EQ(f.post("/v1/cluster/moves", R"({"topic":"orders","partition":1,"to":"n3"})").status,
            403);
  EXPECT_EQ(f.row().target_node, "n2");
}

TEST(MoveOrders, ABT_8_AnAbortIsRecordedWithItsOutcome) {
  Recorded f;
  const RaftIndex move = f.set_target("n2");
  ASSERT_EQ(f.post("/v1/cluster/moves/orders/1/abort").status, 202);
  EXPECT_TRUE(f.last_line().ends_with(
      R"("user":"admin","remote":"127.0.0.1:4242","action":"cluster.move.abort",)"
      R"("target":"orders/1 to n2","outcome":"done","status":202})"))
      << f.last_line();
  EXPECT_EQ(f.broker.view()->moves.find(metastore::move_key(move))->why, "aborted by admin");
  ASSERT_EQ(f.post("/v1/cluster/moves/orders/1/abort").status, 409);
  EXPECT_NE(f.last_line().find(R"("target":"orders/1","outcome":"refused","status":409)"),
            std::string::npos)
      << f.last_line();
}

TEST(MoveOrders, ABT_9_AnUnreadableOutcome_Is503AndRecordedAsUnknown) {
  Recorded f;
  f.set_target("n2");
  f.proposer.before_apply = [&] {
    f.proposer.refuse_barrier = Error(Errc::unavailable, "no round of the majority in time");
  };
  const auto response = f.post("/v1/cluster/moves/orders/1/abort");
  EXPECT_EQ(response.status, 503);
  EXPECT_NE(f.error(response).find("could not be read back"), std::string::npos) << response.body;
  EXPECT_NE(f.last_line().find(R"("action":"cluster.move.abort","target":"orders/1",)"
                               R"("outcome":"unknown","status":503)"),
            std::string::npos)
      << f.last_line();
}

TEST(MoveOrders, AStart_IsRecorded) {
  Recorded f;
  ASSERT_EQ(f.post("/v1/cluster/moves", R"({"topic":"orders","partition":1,"to":"n2"})").status,
            202);
  EXPECT_NE(f.last_line().find(R"("action":"cluster.move.start","target":"orders/1 to n2",)"
                               R"("outcome":"done","status":202)"),
            std::string::npos)
      << f.last_line();
}

TEST(StartMove, RateOfTheMove_IsTakenAndShown) {
  Moving f;
  EXPECT_EQ(f.post("/v1/cluster/moves",
                   R"({"topic":"orders","partition":1,"to":"n2","max_bytes_per_second":9})")
                .status,
            400);
  EXPECT_EQ(f.post("/v1/cluster/moves",
                   R"({"topic":"orders","partition":1,"to":"n2","max_bytes_per_second":4096})")
                .status,
            202);
  const auto listed = f.get("/v1/cluster/moves");
  EXPECT_NE(listed.body.find(R"("blocked":[],"max_bytes_per_second":4096)"), std::string::npos);
  expect_fits("Moves", listed.body);
}

TEST(ListMoves, WithAThrottle_TheReportNamesTheBudget) {
  Moving f;
  const RaftIndex move = f.set_target("n2");
  f.broker.reports.emplace("n2", wire::MoveReports{{report_of(move)}});
  const auto budget = [&] {
    const std::string body = f.get("/v1/cluster/moves?detail=1").body;
    const std::size_t at = body.find("\"budget_bytes_per_second\":");
    return at == std::string::npos ? std::string() : body.substr(at + 26, 4);
  };
  EXPECT_EQ(budget(), "");
  f.apply(metastore::SetMoveRate{4096});
  EXPECT_EQ(budget(), "4096");
  expect_fits("Moves", f.get("/v1/cluster/moves?detail=1").body);
  f.apply(metastore::SetMoveRate{0});
  EXPECT_EQ(budget(), "");
}

// ---- the throttle -----------------------------------------------------------------------------

TEST(Throttle, IsSetForAllNodes_AndShown) {
  Moving f;
  EXPECT_EQ(f.get("/v1/cluster/throttle").body, "{\"set\":false}\n");
  EXPECT_EQ(f.put("/v1/cluster/throttle", R"({"max_bytes_per_second":5000000})").body,
            "{\"set\":true,\"max_bytes_per_second\":5000000,\"changed\":true}\n");
  EXPECT_EQ(f.broker.view()->move_rate, 5'000'000u);
  EXPECT_EQ(f.put("/v1/cluster/throttle", R"({"max_bytes_per_second":5000000})").body,
            "{\"set\":true,\"max_bytes_per_second\":5000000,\"changed\":false}\n");
  EXPECT_EQ(f.get("/v1/cluster/moves").body, "{\"moves\":[],\"max_bytes_per_second\":5000000}\n");
  EXPECT_EQ(f.put("/v1/cluster/throttle", R"({"max_bytes_per_second":0})").status, 200);
  EXPECT_EQ(f.get("/v1/cluster/throttle").body, "{\"set\":true,\"max_bytes_per_second\":0}\n");
  EXPECT_EQ(f.remove("/v1/cluster/throttle").body, "{\"set\":false,\"changed\":true}\n");
  EXPECT_EQ(f.remove("/v1/cluster/throttle").body, "{\"set\":false,\"changed\":false}\n");
  EXPECT_EQ(f.get("/v1/cluster/moves").body, "{\"moves\":[]}\n");
}

TEST(Throttle, Nonsense_IsRefusedAndChangesNothing) {
  Moving f;
  for (const char* body :
       {"", "{}", R"({"max_bytes_per_second":null})", R"({"max_bytes_per_second":-1})",
        R"({"max_bytes_per_second":1023})", R"({"max_bytes_per_second":"5MB"})",
        R"({"max_bytes_per_second":5000,"node":"n1"})"}) {
    EXPECT_EQ(f.put("/v1/cluster/throttle", body).status, 400) << body;
  }
  EXPECT_EQ(f.broker.view()->move_rate, std::nullopt);
}

TEST(Throttle, OnlyAdmins_ChangeIt_AndThatIsRecorded) {
  Recorded f;
  ASSERT_EQ(f.put("/v1/cluster/throttle", R"({"max_bytes_per_second":5000000})").status, 200);
  EXPECT_NE(f.last_line().find(R"("action":"cluster.throttle.set","target":"5000000 bytes/s",)"
                               R"("outcome":"done","status":200)"),
            std::string::npos)
      << f.last_line();
  f.add("svc", {{GrantAction::produce, {"orders"}}});
  f.as("svc");
  EXPECT_EQ(f.get("/v1/cluster/throttle").status, 200);
  EXPECT_EQ(f.put("/v1/cluster/throttle", R"({"max_bytes_per_second":0})").status, 403);
  EXPECT_EQ(f.remove("/v1/cluster/throttle").status, 403);
  EXPECT_EQ(f.broker.view()->move_rate, 5'000'000u);
  f.as("admin");
  ASSERT_EQ(f.remove("/v1/cluster/throttle").status, 200);
  EXPECT_NE(f.last_line().find(R"("action":"cluster.throttle.clear")"), std::string::npos);
}

// ---- pauses -----------------------------------------------------------------------------------

TEST(PauseMoves, OfOneMove_IsSaidAndShown) {
  Moving f;
  const RaftIndex move = f.set_target("n2");
  const std::string of_move = cat(R"({"topic":"orders","partition":1,"id":)", move);
  EXPECT_EQ(f.post("/v1/cluster/moves/orders/1/pause").body,
            cat(of_move, R"(,"paused":true,"changed":true,"paused_by":["move"]})", "\n"));
  EXPECT_TRUE(f.row().paused);
  EXPECT_EQ(f.post("/v1/cluster/moves/orders/1/pause").body,
            cat(of_move, R"(,"paused":true,"changed":false,"paused_by":["move"]})", "\n"));
  EXPECT_NE(f.get("/v1/cluster/moves").body.find(R"("blocked":[],"paused_by":["move"])"),
            std::string::npos);
  EXPECT_EQ(f.post("/v1/cluster/moves/pause?node=n1").body,
            "{\"node\":\"n1\",\"paused\":true,\"changed\":true}\n");
  EXPECT_EQ(f.post("/v1/cluster/moves/orders/1/resume").body,
            cat(of_move, R"(,"paused":false,"changed":true,"paused_by":["source"]})", "\n"));
  EXPECT_EQ(f.post("/v1/cluster/moves/resume?node=n1").status, 200);
  EXPECT_EQ(f.post("/v1/cluster/moves/orders/1/resume").body,
            cat(of_move, R"(,"paused":false,"changed":false})", "\n"));
}

TEST(PauseMoves, OfAll_IsShownEvenWhereNothingMoves) {
  Moving f;
  EXPECT_EQ(f.post("/v1/cluster/moves/pause").body, "{\"paused\":true,\"changed\":true}\n");
  EXPECT_EQ(f.get("/v1/cluster/moves").body, "{\"moves\":[],\"paused\":true}\n");
  f.set_target("n2");
  EXPECT_NE(f.get("/v1/cluster/moves").body.find(R"("paused_by":["cluster"])"), std::string::npos);
  EXPECT_EQ(f.post("/v1/cluster/moves/resume").body, "{\"paused\":false,\"changed\":true}\n");
  EXPECT_EQ(f.get("/v1/cluster/moves").body.find("paused"), std::string::npos);
}

TEST(PauseMoves, WhatIsNotThereOrSenseless_IsRefused) {
  Moving f;
  EXPECT_EQ(f.post("/v1/cluster/moves/orders/1/pause").status, 409);
  EXPECT_EQ(f.post("/v1/cluster/moves/orders/9/pause").status, 404);
  EXPECT_EQ(f.post("/v1/cluster/moves/orders/x/pause").status, 400);
  EXPECT_EQ(f.post("/v1/cluster/moves/nope/0/resume").status, 404);
  EXPECT_EQ(f.post("/v1/cluster/moves/pause?node=n9").status, 404);
  EXPECT_EQ(f.post("/v1/cluster/moves/pause?node=").status, 400) << "which is not all of them";
  EXPECT_FALSE(f.broker.view()->moves_paused);
  // A topic may be called so.
  f.topic("pause");
  EXPECT_EQ(f.post("/v1/cluster/moves/pause/0/resume").status, 409);
}

TEST(PauseMoves, AreForAdminsAndRecorded) {
  Recorded f;
  f.set_target("n2");
  ASSERT_EQ(f.post("/v1/cluster/moves/orders/1/pause").status, 200);
  EXPECT_NE(f.last_line().find(R"("action":"cluster.move.pause","target":"orders/1",)"
                               R"("outcome":"done","status":200)"),
            std::string::npos)
      << f.last_line();
  ASSERT_EQ(f.post("/v1/cluster/moves/resume?node=n2").status, 200);
  EXPECT_NE(f.last_line().find(R"("action":"cluster.moves.resume","target":"n2")"),
            std::string::npos)
      << f.last_line();
  ASSERT_EQ(f.post("/v1/cluster/moves/pause").status, 200);
  EXPECT_NE(f.last_line().find(R"("action":"cluster.moves.pause","target":"all")"),
            std::string::npos)
      << f.last_line();
}

TEST(PauseMoves, ThatRest_AreNotStalled) {
  wire::MoveReport r = report_of(RaftIndex(7));
  r.moved_ms_ago = 100'000;
  EXPECT_TRUE(stalled_seconds(r));
  r.phase = "paused";
  EXPECT_FALSE(stalled_seconds(r));
  EXPECT_FALSE(seconds_left(r));
}

// ---- the document -----------------------------------------------------------------------------

TEST(MoveAnswers, FitTheirSchemas) {
  Moving f;
  expect_fits("Moves", f.get("/v1/cluster/moves").body);
  const char* wish = R"({"topic":"orders","partition":1,"to":"n2"})";
  expect_fits("MoveWish", wish);
  const auto started = f.post("/v1/cluster/moves", wish);
  expect_fits("MoveStarted", started.body);
  const std::string path = cat("/v1/cluster/moves/", text(started, "id"));
  f.broker.reports.emplace("n2", wire::MoveReports{{report_of(f.row().move_id)}});
  expect_fits("Moves", f.get("/v1/cluster/moves?detail=1").body);
  expect_fits("Move", f.get(path).body);
  expect_fits("MoveAborted", f.post("/v1/cluster/moves/orders/1/abort").body);
  expect_fits("Refusal", f.post("/v1/cluster/moves/orders/1/abort").body);
  expect_fits("EndedMove", f.get(path).body);
  expect_fits("Moves", f.get("/v1/cluster/moves?history=1").body);
  f.set_target("n3");
  expect_fits("MovesPaused", f.post("/v1/cluster/moves/orders/1/pause").body);
  expect_fits("MovesPaused", f.post("/v1/cluster/moves/pause?node=n3").body);
  expect_fits("MovesPaused", f.post("/v1/cluster/moves/pause").body);
  expect_fits("Moves", f.get("/v1/cluster/moves").body);
  expect_fits("Throttle", f.get("/v1/cluster/throttle").body);
  const char* rate = R"({"max_bytes_per_second":4096})";
  expect_fits("ThrottleWish", rate);
  expect_fits("Throttle", f.put("/v1/cluster/throttle", rate).body);
  expect_fits("Moves", f.get("/v1/cluster/moves").body);
}

}  // namespace
}  // namespace narad::api
