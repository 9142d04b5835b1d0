// The commands against a running broker: outputs and exit status as release 2.x has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json.hpp>

#include "cmd/narad/e2e/broker.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

namespace json = boost::json;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Cli : public ::testing::Test {
 protected:
  static BrokerOptions open_broker() {
    BrokerOptions options;
    options.env["NARAD_SECURITY_ENABLED"] = "false";
    return options;
  }
  void SetUp() override { ASSERT_TRUE(broker_.start()) << broker_.why(); }

  std::vector<std::string> command(std::vector<std::string> words) const {
    words.insert(words.begin(), narad_binary());
    return words;
  }
  ChildOptions options() const {
    ChildOptions o;
    o.env["NARAD_ADDR"] = cat("http://127.0.0.1:", broker_.port(), "/");
    o.env["NARAD_CONFIG_DIR"] = directory_ / "config";
    o.env["TZ"] = "UTC";
    return o;
  }
  Ran narad(std::vector<std::string> words) const { return run(command(words), options()); }
  // Runs it, and takes any status but 0 for a failure of the test.
  std::string good(std::vector<std::string> words) const {
    Ran ran = narad(std::move(words));
    EXPECT_EQ(ran.exit.code, 0) << ran.out << ran.err;
    return ran.out;
  }

  TempDir directory_;
  Broker broker_{directory_ / "data", open_broker()};
};

TEST_F(Cli, TopicLifeCycle_PrintsWhatReleaseTwoPrints) {
  EXPECT_EQ(good({"topic", "ls"}), "no topics\n");
  EXPECT_EQ(good({"topic", "ls", "--json"}), "null\n");
  std::string added = good({"topic", "add", "orders", "--partitions", "4", "--retention", "168h"});
  EXPECT_THAT(added, StartsWith("{\n  \"name\": \"orders\",\n  \"partitions\": 4,\n"));
  EXPECT_THAT(added, EndsWith("\n}\n"));
  EXPECT_EQ(good({"topics", "ls"}),
            "NAME                             PARTITIONS    RETENTION  ROLE\n"
            "orders                                    4     168h0m0s  -\n");
  EXPECT_EQ(
      good({"topic", "ls", "--json"}),
      "[{\"name\":\"orders\",\"partitions\":4,\"retention_ms\":604800000,\"role\":\"standalone\","
      "\"parent\":\"\",\"fanout_delay_ms\":0}]\n");
  EXPECT_THAT(good({"topic", "edit", "orders", "--partitions", "6"}),
              HasSubstr("\"partitions\": 6"));
  EXPECT_THAT(good({"topic", "edit", "orders", "--visibility", "1m"}),
              HasSubstr("\"visibility_timeout_ms\": 60000"));
  EXPECT_THAT(good({"topic", "info", "orders"}), HasSubstr("\"partition_stats\": ["));
  EXPECT_EQ(good({"topic", "rm", "orders", "-f"}), "deleted orders\n");
  EXPECT_EQ(good({"topic", "ls"}), "no topics\n");
}

TEST_F(Cli, Failures_AnswerOneAndSayWhy) {
  Ran missing = narad({"topic", "info", "nowhere"});
  EXPECT_EQ(missing.exit.code, 1);
  EXPECT_EQ(missing.err, "narad: http 404: topic not found\n");
  good({"topic", "add", "orders"});
  Ran twice = narad({"topic", "add", "orders"});
  EXPECT_EQ(twice.exit.code, 1);
  EXPECT_EQ(twice.err, "narad: http 409: topic already exists\n");
  Ran nothing = narad({"topic", "edit", "orders"});
  EXPECT_EQ(nothing.exit.code, 1);
  EXPECT_THAT(nothing.err, StartsWith("narad: nothing to change"));
  Ran unknown = narad({"frobnicate"});
  EXPECT_EQ(unknown.exit.code, 1);
  EXPECT_THAT(unknown.err, StartsWith("narad: unknown command \"frobnicate\""));
}

TEST_F(Cli, NoBroker_IsATransportError) {
  Ran classic = narad({"-s", "http://127.0.0.1:1", "topic", "ls"});
  EXPECT_EQ(classic.exit.code, 1);
  EXPECT_THAT(classic.err, StartsWith("narad: transport: "));
  Ran cluster = narad({"cluster", "members", "-s", "http://127.0.0.1:1"});
  EXPECT_EQ(cluster.exit.code, 3);
}

TEST_F(Cli, ProduceAndConsume_ShowEveryKindOfPayload) {
  good({"topic", "add", "t"});
  Ran pub = narad({"pub", "t", "{\"id\":1}", "-k", "k1", "--partition", "2"});
  EXPECT_EQ(pub.err, "accepted (8 bytes)\n");
  good({"pub", "t", "plain", "--partition", "2"});
  write_text(directory_ / "bytes", std::string("A\xff\0", 3));
  good({"pub", "t", "--file", directory_ / "bytes", "--partition", "2"});
  ASSERT_TRUE(await_records(broker_.port(), "t", 3, std::chrono::seconds(10)));

  Ran replay = narad({"replay", "t", "--partition", "2"});
  EXPECT_EQ(replay.err, "3 message(s) replayed from p2 [0, 3)\n");
  EXPECT_THAT(replay.out, ContainsRegex("^\\[p2 @0\\] key=k1 [0-9:]{8}\\.000 \\{\"id\":1\\}\n"));
  EXPECT_THAT(replay.out, ContainsRegex("\\[p2 @1\\] key=key-[0-9a-z]+ [0-9:]{8}\\.000 plain\n"));
  EXPECT_THAT(replay.out, HasSubstr(" (binary, 3 bytes)\n00000000  41 ff 00 "));
  EXPECT_EQ(good({"replay", "t", "--partition=2", "--from=1", "--to=2", "--raw"}), "\"plain\"\n");

  // Prints, acks, and says how many there were when it is interrupted.
  Child sub(command({"sub", "t", "--raw"}), options());
  EXPECT_EQ(sub.line(std::chrono::seconds(10)), "{\"id\":1}");
  EXPECT_EQ(sub.line(std::chrono::seconds(10)), "\"plain\"");
  ASSERT_TRUE(sub.line(std::chrono::seconds(10)).has_value());
  sub.signal(SIGINT);
  auto exit = sub.wait(std::chrono::seconds(10));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0);
  EXPECT_EQ(sub.err(), "3 message(s)\n");
}

TEST_F(Cli, Peek_ShowsNewMessagesWithoutTakingThem) {
  good({"topic", "add", "t"});
  good({"pub", "t", "first", "--partition", "1"});
  ASSERT_TRUE(await_records(broker_.port(), "t", 1, std::chrono::seconds(10)));
  Child peek(command({"sub", "t", "--peek", "--partition", "1", "--from", "0", "--raw"}),
             options());
  EXPECT_EQ(peek.line(std::chrono::seconds(10)), "\"first\"");
  good({"pub", "t", "second", "--partition", "1"});
  EXPECT_EQ(peek.line(std::chrono::seconds(10)), "\"second\"");
  peek.signal(SIGTERM);
  EXPECT_EQ(peek.wait(std::chrono::seconds(10))->code, 0);
  Child sub(command({"sub", "t", "--raw"}), options());
  EXPECT_EQ(sub.line(std::chrono::seconds(10)), "\"first\"");
}

TEST_F(Cli, BenchVerify_AccountsForEveryMessage) {
  good({"topic", "add", "b", "--partitions", "6"});
  Ran single = narad({"bench", "b", "--count", "500", "--workers", "8", "--verify"});
  EXPECT_EQ(single.exit.code, 0) << single.err;
  EXPECT_THAT(single.err, ContainsRegex("^produce: 500 ok, 0 failed in [0-9.msµ]+ — [0-9]+ msg/s; "
                                        "latency p50=[^ ]+ p95=[^ ]+ p99="));
  EXPECT_THAT(single.err, HasSubstr("\nconsume: 500 msgs in "));
  EXPECT_THAT(single.err, HasSubstr("verify: 500 accepted, 500 delivered, 0 lost, 0 duplicated, "
                                    "0 damaged, 0 foreign"));
  json::value report = json::parse(
      good({"bench", "b", "--count=3000", "--batch=100", "--workers=4", "--verify", "-o", "json"}));
  EXPECT_EQ(report.at("version").as_int64(), 1);
  EXPECT_EQ(report.at("produce").at("ok").as_int64(), 3000);
  EXPECT_EQ(report.at("verify").at("lost").as_int64(), 0);
  EXPECT_EQ(report.at("verify").at("delivered").as_int64(), 3000);
}

TEST_F(Cli, BenchOnATopicInUse_LeavesItsMessagesOrSaysSo) {
  good({"topic", "add", "b"});
  good({"pub", "b", "somebody's", "--partition", "1"});
  ASSERT_TRUE(await_records(broker_.port(), "b", 1, std::chrono::seconds(10)));
  Ran verify = narad({"bench", "b", "--count", "10", "--verify"});
  EXPECT_EQ(verify.exit.code, 1);
  EXPECT_THAT(verify.err, HasSubstr("narad: topic b holds messages that are not of this run"));
  EXPECT_EQ(high_watermarks(broker_.port(), "b")[1], 1) << "nothing was produced";
  Ran consume = narad({"bench", "b", "--count", "10", "--consume"});
  EXPECT_EQ(consume.exit.code, 0) << consume.err;
  EXPECT_THAT(consume.err, HasSubstr("narad: warning: topic b holds messages from before"));
  EXPECT_THAT(consume.err, HasSubstr("consume: 11 msgs")) << "as release 2.x does it";
}

TEST_F(Cli, BenchVerifyWhileOthersKeepProducing_EndsOnceItsOwnAreBack) {
  good({"topic", "add", "b", "--partitions", "6"});
  Child verify(command({"bench", "b", "--count", "300", "--rate", "150", "--verify"}), options());
  ASSERT_TRUE(await_records(broker_.port(), "b", 1, std::chrono::seconds(30)));
  // Enough that no poll of any worker ever comes back with nothing.
  Child others(command({"bench", "b", "--rate", "200", "--duration", "10m"}), options());
  const auto exit = verify.wait(std::chrono::seconds(90));
  ASSERT_TRUE(exit) << "still waiting for an end of what others send";
  EXPECT_EQ(exit->code, 0) << verify.err();
  EXPECT_THAT(verify.err(), HasSubstr("verify: 300 accepted, 300 delivered, 0 lost"));
  EXPECT_THAT(verify.err(), HasSubstr("messages of others came in between; they were not acked"));
  EXPECT_TRUE(others.running());
}

TEST_F(Cli, BenchWithoutSuccess_SaysSoAndOnlyVerifyFails) {
  Ran classic = narad({"bench", "nowhere", "--count", "10"});
  EXPECT_EQ(classic.exit.code, 0);
  EXPECT_THAT(classic.err, HasSubstr("produce: 0 ok, 10 failed"));
  EXPECT_THAT(classic.err, HasSubstr("narad: no message was accepted: http 404: topic not found"));
  EXPECT_EQ(narad({"bench", "nowhere", "--count", "10", "--verify"}).exit.code, 1);
  Ran dead = narad({"bench", "b", "--count", "10", "-s", "http://127.0.0.1:1"});
  EXPECT_THAT(dead.err, HasSubstr("narad: no message was accepted: transport: "));
}

TEST_F(Cli, SubOfAMissingTopic_EndsWithTheError) {
  for (std::vector<std::string> flags : {std::vector<std::string>{}, {"--peek"}}) {
    flags.insert(flags.begin(), {"sub", "nowhere"});
    Ran ran = narad(flags);
    EXPECT_EQ(ran.exit.code, 1);
    EXPECT_THAT(ran.err, EndsWith("narad: http 404: topic not found\n"));
  }
  good({"topic", "add", "t"});
  Ran partition = narad({"sub", "t", "--partition", "7"});
  EXPECT_EQ(partition.exit.code, 1);
  EXPECT_THAT(partition.err, HasSubstr("narad: http 400: "));
}

TEST_F(Cli, SubOfABrokerThatGoesAway_ComesBackWithIt) {
  good({"topic", "add", "t"});
  Child sub(command({"sub", "t", "--raw"}), options());
  good({"pub", "t", "before"});
  EXPECT_EQ(sub.line(std::chrono::seconds(10)), "\"before\"");
  const std::uint16_t port = broker_.port();
  broker_.kill9();
  BrokerOptions same = open_broker();
  same.args = {"--addr", cat("127.0.0.1:", port)};
  Broker again(directory_ / "data", same);
  ASSERT_TRUE(again.start()) << again.why();
  ASSERT_EQ(again.port(), port);
  good({"pub", "t", "after"});
  std::optional<std::string> line;
  do line = sub.line(std::chrono::seconds(30));
  while (line == "\"before\"");  // an ack of the last tick may be lost
  EXPECT_EQ(line, "\"after\"");
  EXPECT_EQ(narad({"topic", "rm", "t", "-f"}).exit.code, 0);
  auto exit = sub.wait(std::chrono::seconds(20));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 1) << "the topic is gone for good";
  EXPECT_THAT(sub.err(), EndsWith("narad: http 404: topic not found\n"));
}

TEST_F(Cli, EditToZero_AsksForTheServersDefault) {
  good({"topic", "add", "t", "--retention", "2h", "--visibility", "1m"});
  std::string edited = good({"topic", "edit", "t", "--retention", "0", "--visibility", "0"});
  EXPECT_THAT(edited, HasSubstr("\"retention_ms\": 604800000"));
  EXPECT_THAT(edited, HasSubstr("\"visibility_timeout_ms\": 30000"));
}

TEST_F(Cli, OpenLoopBench_KeepsItsRate) {
  good({"topic", "add", "b"});
  json::value report =
      json::parse(good({"bench", "b", "--rate=500", "--duration=1s", "-o", "json"}));
  std::int64_t sent = report.at("produce").at("ok").as_int64();
  // Every message that was due within the time, also if the machine was late with it.
  EXPECT_EQ(sent, 500);
}

TEST_F(Cli, Contexts_SelectTheBroker) {
  ChildOptions o = options();
  o.env.erase("NARAD_ADDR");
  auto ctx = [&](std::vector<std::string> words) { return run(command(std::move(words)), o); };
  EXPECT_THAT(ctx({"ctx", "ls"}).out, HasSubstr("narad ctx add"));
  EXPECT_EQ(ctx({"ctx", "add", "here", "--server", cat("http://127.0.0.1:", broker_.port())}).out,
            "context \"here\" saved (current: here)\n");
  EXPECT_EQ(ctx({"ctx", "add", "other", "--server", "http://127.0.0.1:1", "--user", "u"}).out,
            "context \"other\" saved (current: here)\n");
  EXPECT_EQ(ctx({"topic", "ls"}).out, "no topics\n");
  EXPECT_EQ(ctx({"ctx", "select", "other"}).out, "current context: other\n");
  EXPECT_EQ(ctx({"topic", "ls"}).exit.code, 1);
  EXPECT_THAT(ctx({"ctx", "ls"}).out, HasSubstr("\n* other            http://127.0.0.1:1"));
  EXPECT_EQ(ctx({"ctx", "rm", "other"}).out, "");
  EXPECT_EQ(ctx({"ctx", "rm", "other"}).exit.code, 1);
}

TEST_F(Cli, ServerReport_SumsTopics) {
  EXPECT_EQ(good({"server", "report"}), "no topics\n");
  good({"topic", "add", "t"});
  good({"pub", "t", "x", "--count", "5"});
  ASSERT_TRUE(await_records(broker_.port(), "t", 5, std::chrono::seconds(10)));
  std::string report = good({"server", "report"});
  EXPECT_THAT(
      report,
      StartsWith("TOPIC                         PARTS     MESSAGES       SIZE  OWNERS  ROLE\n"));
  EXPECT_THAT(report, ContainsRegex("\nt +3 +5 +[0-9.]+[KM]?i?B +1  standalone\n"));
  EXPECT_THAT(report, ContainsRegex("\ntotal +3 +5 "));
}

TEST_F(Cli, ClusterMembers_IsJsonWithoutATerminal) {
  json::value members = json::parse(good({"cluster", "members"}));
  EXPECT_EQ(members.at("members").as_array().size(), 1u);
  EXPECT_THAT(good({"cluster", "members", "-o", "text"}), StartsWith("NODE "));
  EXPECT_EQ(narad({"cluster", "members", "-o", "yaml"}).exit.code, 2);
}

TEST_F(Cli, ABT_1_OrdersAboutMoves_AnswerByTheirManners) {
  good({"topic", "add", "orders"});
  const json::value members = json::parse(good({"cluster", "members"}));
  const std::string node(members.at("members").at(0).at("id").as_string());
  EXPECT_EQ(good({"cluster", "moves"}), "{\n  \"moves\": []\n}\n");
  EXPECT_EQ(good({"cluster", "moves", "-o", "text"}), "no moves\n");
  EXPECT_EQ(good({"cluster", "moves", "--history", "-o", "text"}), "no moves have ended\n");
  EXPECT_EQ(good({"cluster", "moves", "start", "orders", "0", "--to", node, "-o", "text"}),
            cat("orders/0 is on ", node, " already\n"));
  const auto refused = [&](int code, std::vector<std::string> words, std::string text) {
    words.insert(words.begin(), {"cluster", "moves"});
    const Ran ran = narad(std::move(words));
    EXPECT_EQ(ran.exit.code, code) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(text));
    EXPECT_EQ(ran.out, "");
  };
  refused(1, {"abort", "orders", "0"},
          "http 409: no move of orders/0 is under way: its owner is " + node);
  refused(1, {"abort", "nope", "0"}, "topic not found; see narad cluster moves --topic nope");
  refused(1, {"start", "orders", "0", "--to", "n9"}, "no member is called n9");
  refused(1, {"show", "9999"}, "http 404: no move 9999 is known");
  refused(2, {"start", "orders", "0"}, "--to NODE is needed");
  refused(2, {"start", "orders", "x", "--to", node}, "a partition has a number");
  refused(2, {"show", "x"}, "a move has a number");
  refused(2, {"abort", "orders"}, "PARTITION");
  refused(2, {"abort"}, "--all");
  refused(2, {"abort", "orders", "0", "--all"}, "go with no TOPIC");
  refused(2, {"abort", "--all", "--node", node}, "do not go together");
  refused(2, {"abort", "--all", "--target", node}, "--target goes with TOPIC");
  EXPECT_EQ(good({"cluster", "moves", "abort", "--all", "-o", "text"}), "no moves\n")
      << "nothing to ask about";
  EXPECT_EQ(good({"cluster", "moves", "abort", "--node", node}), "{\n  \"moves\": []\n}\n");
  refused(2, {"--watch", "--history"}, "do not go together");
}

TEST_F(Cli, DEC_17_DEC_18_Decommission_AnswersByItsManners) {
  good({"topic", "add", "orders"});
  const json::value members = json::parse(good({"cluster", "members"}));
  const std::string node(members.at("members").at(0).at("id").as_string());
  const auto answers = [&](int code, std::vector<std::string> words, std::string text) {
    words.insert(words.begin(), {"cluster", "decommission"});
    const Ran ran = narad(std::move(words));
    EXPECT_EQ(ran.exit.code, code) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(text));
    return ran.out;
  };
  // The only node there is.
  EXPECT_EQ(answers(1, {node}, "needs 3: add a node first"), "");
  EXPECT_EQ(answers(1, {node, "--wait"}, cat("narad cluster decommission ", node, " --dry-run")),
            "");
  EXPECT_THAT(answers(1, {node, "--dry-run", "-o", "text"}, "would be refused"),
              HasSubstr("    no_receiver: "));
  const json::value verdict = json::parse(answers(1, {node, "--dry-run"}, "would be refused"));
  EXPECT_FALSE(verdict.at("possible").as_bool());
  EXPECT_EQ(answers(1, {"n9"}, "member not found: n9; see narad cluster members"), "");
  const Ran alone = narad({"cluster", "safe-to-stop", node, "-o", "text"});
  EXPECT_EQ(alone.exit.code, 1) << alone.err;
  EXPECT_THAT(alone.err, HasSubstr("no_live_majority"));
  EXPECT_THAT(alone.out, StartsWith(cat(node, " should not be stopped now\n")));
  EXPECT_EQ(narad({"cluster", "safe-to-stop", "n9"}).exit.code, 1);
  EXPECT_EQ(good({"cluster", "quarantine", "-o", "text"}), "nothing is in quarantine\n");
  EXPECT_EQ(narad({"cluster", "quarantine", "--node", "n9"}).exit.code, 1);
  EXPECT_EQ(answers(2, {node, "--cancel", "--wait"}, "--cancel goes with no other flag"), "");
  EXPECT_EQ(answers(2, {node, "--dry-run", "--wait"}, "--dry-run begins nothing"), "");
  EXPECT_EQ(good({"cluster", "decommission", node, "--cancel"}), "");
  EXPECT_THAT(good({"cluster", "members"}), Not(HasSubstr("\"drain\"")));
}

TEST_F(Cli, Plans_OfALoneNode_AreThatEverythingStays) {
  good({"topic", "add", "orders"});
  EXPECT_EQ(good({"cluster", "rebalance", "-o", "text"}), "nothing is to move\n");
  EXPECT_EQ(good({"cluster", "rebalance", "--dry-run", "-o", "text"}), "nothing is to move\n");
  EXPECT_THAT(good({"cluster", "explain", "orders", "0", "-o", "text"}), HasSubstr("at_home: "));
  const json::value why = json::parse(good({"cluster", "explain", "orders", "0"}));
  EXPECT_EQ(why.at("verdict").as_string(), "at_home");
  EXPECT_EQ(narad({"cluster", "explain", "nope", "0"}).exit.code, 1);
  EXPECT_EQ(narad({"cluster", "explain", "orders", "x"}).exit.code, 2);
}

TEST_F(Cli, Throttle_IsSetShownAndCleared) {
  const auto throttle = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"cluster", "throttle", "-o", "text"});
    return good(std::move(words));
  };
  EXPECT_EQ(throttle({}), "moves: each node goes by its own configuration\n");
  EXPECT_EQ(throttle({"8MiB/s"}), "moves: at most 8.0MiB/s into each node\n");
  EXPECT_EQ(throttle({"8MiB/s"}), "moves: at most 8.0MiB/s into each node, as before\n");
  EXPECT_EQ(good({"cluster", "moves", "-o", "text"}),
            "no moves\nmoves: at most 8.0MiB/s into each node\n");
  EXPECT_EQ(throttle({"off"}), "moves: no limit\n");
  EXPECT_EQ(json::parse(good({"cluster", "throttle"})).at("max_bytes_per_second").as_int64(), 0);
  EXPECT_EQ(throttle({"clear"}), "moves: each node goes by its own configuration\n");
  EXPECT_EQ(narad({"cluster", "throttle", "fast"}).exit.code, 2);
  EXPECT_EQ(narad({"cluster", "throttle", "7"}).exit.code, 1) << "less than any move could use";
}

TEST_F(Cli, Pauses_AreGivenShownAndTakenBack) {
  good({"topic", "add", "orders"});
  EXPECT_EQ(good({"cluster", "moves", "pause", "--all", "-o", "text"}), "all moves are paused\n");
  EXPECT_EQ(good({"cluster", "moves", "pause", "--all", "-o", "text"}),
            "all moves are paused, as before\n");
  EXPECT_EQ(good({"cluster", "moves", "-o", "text"}), "no moves\nmoves: all are paused\n");
  EXPECT_EQ(good({"cluster", "moves", "resume", "--all", "-o", "text"}), "all moves go on\n");
  EXPECT_EQ(narad({"cluster", "moves", "pause"}).exit.code, 2);
  EXPECT_EQ(narad({"cluster", "moves", "pause", "orders", "0", "--all"}).exit.code, 2);
  const Ran none = narad({"cluster", "moves", "pause", "orders", "0"});
  EXPECT_EQ(none.exit.code, 1);
  EXPECT_THAT(none.err, HasSubstr("no move of orders/0 is under way"));
  EXPECT_EQ(narad({"cluster", "moves", "resume", "--node", "n9"}).exit.code, 1);
}

TEST_F(Cli, WatchingMoves_EndsWith130AndSaysHowToLookAgain) {
  ChildOptions how = options();
  Child watch(command({"cluster", "moves", "--watch"}), how);
  ASSERT_TRUE(watch.line_with("no moves", std::chrono::seconds(20))) << watch.err();
  watch.signal(SIGINT);
  const auto exit = watch.wait(std::chrono::seconds(10));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 130);
  EXPECT_THAT(watch.err(), HasSubstr("narad cluster moves --watch"));
}

TEST_F(Cli, FsckOfAStoppedNode_IsCleanAndOfADamagedOneIsNot) {
  good({"topic", "add", "t"});
  good({"pub", "t", "x", "--count", "20"});
  ASSERT_TRUE(await_records(broker_.port(), "t", 20, std::chrono::seconds(10)));
  EXPECT_EQ(narad({"fsck", directory_ / "data"}).exit.code & 8, 8) << "a live node has it locked";
  ASSERT_EQ(broker_.terminate()->code, 0);
  Ran clean = narad({"fsck", "--quick", directory_ / "data"});
  EXPECT_EQ(clean.exit.code, 0) << clean.out << clean.err;
  json::value report = json::parse(good({"fsck", "-o", "json", directory_ / "data"}));
  EXPECT_EQ(report.at("version").as_int64(), 1);
  EXPECT_EQ(narad({"fsck", "wal", directory_ / "data/ingress"}).exit.code, 0);
  EXPECT_EQ(narad({"fsck", directory_ / "nowhere"}).exit.code, 8);
  write_text(directory_ / "data/node.json", "{");
  EXPECT_EQ(narad({"fsck", directory_ / "data"}).exit.code & 4, 4);
}

TEST(Serve, Hangup_ReloadsTheLogLevelAndKeepsWhatItCannotRead) {
  TempDir directory;
  std::string config = directory / "narad.json";
  write_text(config, R"({"security":{"enabled":false},"log":{"level":"info"}})");
  BrokerOptions options;
  options.args = {"-config", config, "a word that is ignored"};
  Broker broker(directory / "data", options);
  ASSERT_TRUE(broker.start()) << broker.why();
  write_text(config, R"({"security":{"enabled":false},"log":{"level":"debug"}})");
  broker.child().signal(SIGHUP);
  auto reloaded = broker.child().line_with("settings reloaded", std::chrono::seconds(10));
  ASSERT_TRUE(reloaded);
  EXPECT_THAT(*reloaded, HasSubstr("debug"));
  write_text(config, "{");
  broker.child().signal(SIGHUP);
  auto line = broker.child().line_with("reload refused", std::chrono::seconds(10));
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, HasSubstr("config"));
  EXPECT_EQ(broker.terminate()->code, 0);
}

TEST(CliAlone, DevelopmentBrokerOnAnyPort_NamesThePort) {
  TempDir directory;
  Child child({narad_binary(), "server", "start", "--dev", "--port", "0", "--data-dir",
               directory / "data"});
  ASSERT_TRUE(child.line_with("node ready", std::chrono::seconds(20)));
  child.signal(SIGTERM);
  ASSERT_TRUE(child.wait(std::chrono::seconds(10)));
  EXPECT_THAT(
      child.err(),
      ContainsRegex("^narad: development broker on http://127.0.0.1:[1-9][0-9]*, data in "));
  EXPECT_THAT(child.err(), HasSubstr(directory / "data"));
}

// Every command that talks to a broker: what it answers when there is none.
TEST(CliAlone, CommandsWithoutABroker_AnswerByTheirManners) {
  const std::pair<int, std::vector<std::string>> cases[] = {
      {1, {"topic", "add", "t"}},
      {1, {"topic", "ls"}},
      {1, {"topic", "info", "t"}},
      {1, {"topic", "edit", "t", "--partitions", "9"}},
      {1, {"topic", "rm", "t", "-f"}},
      {1, {"topic", "attach", "a", "b"}},
      {1, {"topic", "detach", "a", "b"}},
      {1, {"topic", "children", "a"}},
      {1, {"pub", "t", "m"}},
      {1, {"pub", "t", "m", "--count", "3"}},
      {1, {"sub", "t", "--peek"}},
      {1, {"replay", "t", "--partition", "0"}},
      {1, {"bench", "t", "--count", "2", "--verify"}},
      {1, {"user", "ls"}},
      {1, {"server", "report"}},
      {3, {"cluster", "members"}},
      {3, {"cluster", "moves"}},
      {3, {"cluster", "moves", "--watch"}},
      {3, {"cluster", "moves", "show", "7"}},
      {3, {"cluster", "moves", "start", "t", "0", "--to", "n1"}},
      {3, {"cluster", "moves", "abort", "t", "0"}},
      {3, {"cluster", "moves", "abort", "--all", "-y"}},
      {3, {"cluster", "moves", "pause", "t", "0"}},
      {3, {"cluster", "moves", "resume", "--all"}},
      {3, {"cluster", "decommission", "n1"}},
      {3, {"cluster", "decommission", "n1", "--dry-run"}},
      {3, {"cluster", "decommission", "n1", "--wait"}},
      {3, {"cluster", "safe-to-stop", "n1"}},
      {3, {"cluster", "quarantine"}},
      {3, {"cluster", "throttle"}},
      {3, {"cluster", "throttle", "5MB/s"}},
      {3, {"cluster", "throttle", "clear"}},
      {3, {"cluster", "rebalance"}},
      {3, {"cluster", "explain", "t", "0"}},
  };
  for (const auto& [code, words] : cases) {
    std::vector<std::string> argv = words;
    argv.insert(argv.begin(), narad_binary());
    argv.insert(argv.end(), {"--server", "http://127.0.0.1:1"});
    Ran ran = run(argv);
    EXPECT_EQ(ran.exit.code, code) << argv[1] << ' ' << argv[2];
    EXPECT_THAT(ran.err, HasSubstr("transport: ")) << argv[1] << ' ' << argv[2];
    EXPECT_EQ(ran.out, "") << argv[1] << ' ' << argv[2];
  }
}

TEST(CliAlone, HelpVersionAndCompletion_NeedNoBroker) {
  auto narad = [](std::vector<std::string> words) {
    words.insert(words.begin(), narad_binary());
    return run(std::move(words));
  };
  EXPECT_THAT(narad({"version"}).out, ContainsRegex("^narad [0-9]+\\.[0-9]+\\.[0-9]+\n$"));
  EXPECT_THAT(narad({}).out, HasSubstr("Commands:"));
  EXPECT_EQ(narad({"topic"}).exit.code, 0);
  EXPECT_THAT(narad({"help", "topic", "add"}).out, HasSubstr("narad topic add NAME"));
  EXPECT_EQ(narad({"help", "nonsense"}).exit.code, 1);
  Ran serve_help = narad({"serve", "-h"});
  EXPECT_EQ(serve_help.exit.code, 0);
  EXPECT_THAT(serve_help.err, HasSubstr("--data-dir DIR"));
  // The script is valid, and knows what follows "narad topic".
  Ran completed = run({"/usr/bin/env", "bash", "-c",
                       cat("source <(", narad_binary(),
                           " completion bash); COMP_WORDS=(narad topic e); COMP_CWORD=2; _narad; "
                           "echo ${COMPREPLY[@]}")});
  EXPECT_EQ(completed.out, "edit\n") << completed.err;
}

}  // namespace
}  // namespace narad::e2e
