#include "pkg/config/config.h"

#include <gtest/gtest.h>

namespace narad {
namespace {

using namespace std::chrono_literals;

std::string problem_of(ConfigInput input) {
  auto r = load_config(input);
  return r ? std::string() : r.error().text();
}
ConfigInput file(std::string text) {
  ConfigInput input;
  input.file_text = std::move(text);
  input.file_name = "narad.json";
  return input;
}

TEST(Config, NothingGiven_DefaultsHold) {
  auto r = load_config({});
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_EQ(r.value().http.addr, ":7942");
  EXPECT_EQ(r.value().topic.default_retention_age_ms, 604'800'000);
  EXPECT_EQ(r.value().http.write_timeout, 30s);
  EXPECT_TRUE(r.value().security.enabled);
}

TEST(Config, Layers_LaterOneWins) {
  ConfigInput input =
      file(R"({"http":{"addr":"127.0.0.1:1","read_timeout":"3s"},"log":{"level":"WARN"}})");
  input.env["NARAD_HTTP_ADDR"] = "127.0.0.1:2";
  input.env["NARAD_UNKNOWN_THING"] = "ignored";
  auto r = load_config(input);
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_EQ(r.value().http.addr, "127.0.0.1:2");
  EXPECT_EQ(r.value().http.read_timeout, 3s);
  EXPECT_EQ(r.value().log.level, "warn");
  input.flags.emplace_back("http.addr", "127.0.0.1:3");
  EXPECT_EQ(load_config(input).value().http.addr, "127.0.0.1:3");
}

TEST(Config, UnknownKey_IsNamedWithItsPathAndASuggestion) {
  EXPECT_EQ(problem_of(file(R"({"storage":{"codex":"zstd"}})")),
            "config: unknown key \"storage.codex\" (did you mean \"storage.codec\"?)");
  EXPECT_EQ(problem_of(file(R"({"storage":{"fsync":"batched"}})")),
            "config: unknown key \"storage.fsync\"");
}

TEST(Config, SeveralProblems_AreReportedTogether) {
  ConfigInput input =
      file(R"({"http":{"read_timeout":"10","max_connections":1.5},"topic":{"max_partitions":0}})");
  input.env["NARAD_SECURITY_ENABLED"] = "maybe";
  const std::string text = problem_of(input);
  EXPECT_NE(text.find("http.read_timeout: invalid duration \"10\""), std::string::npos) << text;
  EXPECT_NE(text.find("http.max_connections: expected a whole number"), std::string::npos) << text;
  EXPECT_NE(text.find("topic.max_partitions: must be above 0"), std::string::npos) << text;
  EXPECT_NE(text.find("NARAD_SECURITY_ENABLED=\"maybe\""), std::string::npos) << text;
}

TEST(Config, DurationAsNanoseconds_IsTaken) {
  EXPECT_EQ(load_config(file(R"({"http":{"idle_timeout":5000000000}})")).value().http.idle_timeout,
            5s);
}

TEST(Config, EmptyVariable_Counts) {
  ConfigInput input;
  input.env["NARAD_HTTP_ADDR"] = "";
  EXPECT_EQ(problem_of(input), "config: http.addr: must not be blank");
}

TEST(Config, EmptyDataDirInFile_IsIgnored) {
  EXPECT_EQ(load_config(file(R"({"storage":{"data_dir":""}})")).value().storage.data_dir, "data");
}

TEST(Config, TimingWithoutTesting_IsRefused) {
  ConfigInput input = file(R"({"timing":{"hwm_sync":"50ms"}})");
  EXPECT_NE(problem_of(input).find("timing.hwm_sync: time constants are for tests"),
            std::string::npos);
  input.env["NARAD_TESTING"] = "1";
  EXPECT_EQ(load_config(input).value().timing.hwm_sync, 50ms);
}

TEST(Config, HoldOfAMove_NamesAPhaseThatThereIs) {
  ConfigInput input;
  input.env["NARAD_TIMING_MOVE_HOLD"] = "2s";
  input.env["NARAD_TIMING_MOVE_HOLD_PHASE"] = "fencing";
  EXPECT_NE(problem_of(input).find("timing.move_hold: time constants are for tests"),
            std::string::npos);
  input.dev = true;
  auto r = load_config(input);
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_EQ(r.value().timing.move_hold, 2s);
  EXPECT_EQ(r.value().timing.move_hold_phase, "fencing");
  input.env["NARAD_TIMING_MOVE_HOLD_PHASE"] = "done";
  EXPECT_EQ(problem_of(input),
            "config: timing.move_hold_phase: \"done\" is no phase of a move: use queued, copying, "
            "freezing, draining, fencing, installing, flipping");
  input.env["NARAD_TIMING_MOVE_HOLD_PHASE"] = "";
  EXPECT_EQ(problem_of(input),
            "config: timing.move_hold: say which phase with timing.move_hold_phase");
  input.env["NARAD_TIMING_MOVE_HOLD"] = "-1s";
  EXPECT_NE(problem_of(input).find("timing.move_hold: must not be negative"), std::string::npos);
}

TEST(Config, Peers_AreCheckedAgainstThisNode) {
  ConfigInput input;
  input.env["NARAD_CLUSTER_PEERS"] = "a@h1:7943,b@h2:7943,c@h3:7943";
  input.env["NARAD_CLUSTER_SECRET"] = "s";
  input.env["NARAD_NODE_ID"] = "b";
  auto r = load_config(input);
  ASSERT_TRUE(r) << r.error().text();
  EXPECT_EQ(r.value().cluster.peers[1].addr, "h2:7943");
  input.env["NARAD_NODE_ID"] = "d";
  EXPECT_NE(problem_of(input).find("no entry for this node"), std::string::npos);
  input.env["NARAD_CLUSTER_PEERS"] = "a@h1:1,b@h2:2";
  input.env["NARAD_NODE_ID"] = "b";
  EXPECT_NE(problem_of(input).find("at least 3"), std::string::npos);
}

TEST(Config, EverySetting_HasADefaultThatItsOwnParserTakes) {
  for (const SettingInfo& info : describe_settings()) {
    if (info.default_value.empty()) continue;
    ConfigInput input;
    input.dev = true;
    input.flags.emplace_back(info.path, info.default_value);
    EXPECT_EQ(problem_of(input), "") << info.path;
  }
}

TEST(Config, NotAnObject_IsAClearError) {
  EXPECT_EQ(problem_of(file("[]")), "config: narad.json: expected a JSON object");
  EXPECT_NE(problem_of(file("{")).find("config: narad.json: "), std::string::npos);
}

}  // namespace
}  // namespace narad
