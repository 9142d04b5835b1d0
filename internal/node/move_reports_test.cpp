#include "internal/node/move_reports.h"

#include <gtest/gtest.h>

#include <map>

#include "pkg/base/text.h"
#include "pkg/sim/solo.h"

namespace narad::node {
namespace {

using namespace std::chrono_literals;

wire::MoveReports working_on(std::uint64_t move) {
  wire::MoveReport report;
  report.move.partition = {"orders", PartitionId(1)};
  report.move.move_id = RaftIndex(move);
  report.phase = "copying";
  return {{report}};
}

// Nodes that answer after a while; one that is not named here never does.
struct SlowNodes final : peer::Caller {
  explicit SlowNodes(Env& e) : env(e) {}
  Task<Result<http::Response>> call(std::string node, peer::Lane lane, peer::Call call,
                                    Nanos deadline) override {
    EXPECT_EQ(lane, peer::Lane::control);
    EXPECT_EQ(call.target, "/peer/v1/moves");
    ++calls;
    most_at_once = std::max(most_at_once, ++open);
    const auto it = takes.find(node);
    const Nanos wait = it == takes.end() ? deadline + hangs : it->second;
    co_await sleep_for(env, wait);
    --open;
    if (it == takes.end()) co_return Error(Errc::unknown_outcome, "not answered whole");
    co_return http::json_response(200, wire::encode(working_on(7)));
  }
  Task<Result<peer::Answer>> call_address(Endpoint, peer::Lane, peer::Call, Nanos) override {
    co_return Error(Errc::unavailable, "not here");
  }
  Env& env;
  std::map<std::string, Nanos> takes;
  Nanos hangs{0};
  int calls = 0, open = 0, most_at_once = 0;
};

struct World {
  sim::Solo solo;
  SlowNodes nodes{solo.env()};
  MoveReportDesk desk{solo.env(), &nodes, "n1", [] { return working_on(3); }};
  Nanos took{0};

  ~World() {
    solo.run([this](Env&) { return desk.stop(); });
  }
  api::ReportsByNode ask(std::vector<std::string> who) {
    const Nanos began = solo.env().clock.mono();
    auto answers = solo.run([&](Env&) { return desk.ask(std::move(who), 1500ms); });
    took = solo.env().clock.mono() - began;
    return answers;
  }
};

TEST(MoveReportDesk, OBS_3_AllAreAskedAtOnce_ThisNodeWithoutTheNetwork) {
  World w;
  w.nodes.takes = {{"n2", 1000ms}, {"n3", 800ms}};
  const auto answers = w.ask({"n1", "n2", "n3"});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers.at("n1").value().moves.at(0).move.move_id, RaftIndex(3));
  EXPECT_EQ(answers.at("n2").value().moves.at(0).move.move_id, RaftIndex(7));
  EXPECT_TRUE(answers.at("n3"));
  EXPECT_EQ(w.nodes.calls, 2);
  EXPECT_EQ(w.nodes.most_at_once, 2);
  EXPECT_LT(w.took, 1100ms) << "no longer than the slowest";
}

TEST(MoveReportDesk, OneThatDoesNotAnswer_IsNamedAndHoldsUpNobodyBeyondTheDeadline) {
  World w;
  w.nodes.takes = {{"n2", 10ms}};
  w.nodes.hangs = 1h;  // its call does not even keep its own deadline
  const auto answers = w.ask({"n2", "n9"});
  EXPECT_TRUE(answers.at("n2"));
  EXPECT_EQ(answers.at("n9").error().code(), Errc::unreachable);
  EXPECT_NE(answers.at("n9").error().text().find("n9"), std::string::npos);
  EXPECT_GE(w.took, 1500ms);
  EXPECT_LT(w.took, 1600ms);
}

TEST(MoveReportDesk, NobodyToAsk_IsAnsweredAtOnce) {
  World w;
  EXPECT_TRUE(w.ask({}).empty());
  EXPECT_EQ(w.took, Nanos(0));
}

TEST(MoveReportDesk, NodeWithoutPeers_KnowsOnlyItself) {
  sim::Solo solo;
  MoveReportDesk alone(solo.env(), nullptr, "n1", {});
  const auto answers =
      solo.run([&](Env&) { return alone.ask({std::string("n1"), std::string("n2")}, 1s); });
  EXPECT_TRUE(answers.at("n1").value().moves.empty());
  EXPECT_EQ(answers.at("n2").error().code(), Errc::unavailable);
  solo.run([&](Env&) { return alone.stop(); });
}

}  // namespace
}  // namespace narad::node
