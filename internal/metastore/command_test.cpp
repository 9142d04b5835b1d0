#include "internal/metastore/command.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "internal/metastore/apply.h"

namespace narad::metastore {
namespace {

constexpr const char* kHash = "$2b$10$abcdefghijklmnopqrstuvABCDEFGHIJKLMNOPQRSTUVWXYZ01234";

std::vector<Command> one_of_each() {
  CreateTopic create;
  create.name = "orders";
  create.incarnation = Incarnation(0x0123456789abcdefu);
  create.partitions = 3;
  create.retention_ms = 604'800'000;
  create.visibility_timeout_ms = 30'000;
  create.max_in_flight_per_partition = 1024;
  create.max_acked_ahead_per_partition = 1024;
  create.created_at_s = 1'783'615'000;
  create.owner = "admin";
  create.schema = R"({"type":"object"})";
  CreateTopic plain = create;
  plain.owner.clear();
  plain.schema.reset();
  UpdateTopic update;
  update.name = "orders";
  update.incarnation = Incarnation(1);
  update.retention_ms = 0;
  update.partitions = 6;
  RegisterMember member{"narad-1", "127.0.0.1:7942", "127.0.0.1:7943",
                        "b0",      {"d1", "d2"},     UnixMillis(1'783'615'000'123)};
  return {
      FoundCluster{"00000000000000ab"},
      create,
      plain,
      update,
      DeleteTopic{"orders", Incarnation(1)},
      PutSchema{"orders", Incarnation(1), 2, "{\"title\":\"\\u00e9 \xC3\xA9\"}"},
      AssignPartition{"orders", Incarnation(1), PartitionId(2), "narad-1", "d1"},
      MarkUsed{"orders", Incarnation(1), PartitionId(2), "narad-1", "d1"},
      member,
      Heartbeats{{"narad-1", "narad-2"}, UnixMillis(5)},
      MarkDead{"narad-1", RaftIndex(12)},
      SetDraining{"narad-1", true},
      SetDraining{"narad-2", true, true},
      Leaving{"narad-1", RaftIndex(13)},
      RemoveMember{"narad-1", RaftIndex(13), UnixMillis(1'783'615'000'456)},
      CreateUser{"svc",
                 kHash,
                 {{GrantAction::produce, {"orders-*", "bills"}}, {GrantAction::admin, {}}},
                 false,
                 UnixMillis(1'783'615'000'123)},
      CreateUser{"admin", kHash, {}, true, UnixMillis(5)},
      SetUserGrants{"svc", RaftIndex(9), {{GrantAction::consume, {"*"}}}, UnixMillis(6)},
      SetUserPassword{"svc", RaftIndex(10), kHash, UnixMillis(7)},
      DeleteUser{"svc", RaftIndex(11)},
      SetTarget{"orders", Incarnation(1), PartitionId(2), "narad-1", RaftIndex(0), "narad-2", "d3",
                "operator"},
      ArmFreeze{"orders", Incarnation(1), PartitionId(2), "narad-1", RaftIndex(40)},
      VoidFreeze{"orders", Incarnation(1), PartitionId(2), "narad-1", 3},
      CompleteMove{"orders", Incarnation(1), PartitionId(2), "narad-1", RaftIndex(40), 4},
      ForcePromote{"orders", Incarnation(1), PartitionId(2), "narad-1", RaftIndex(40),
                   RaftIndex(55), "source dead"},
      ClearTarget{"orders", Incarnation(1), PartitionId(2), "narad-2", RaftIndex(40), "aborted"},
      SetTarget{"orders", Incarnation(1), PartitionId(2), "narad-1", RaftIndex(7), "narad-2", "d3",
                "operator", UnixMillis(5), 4'000'000},
      SetMoveRate{50'000'000},
      SetMoveRate{},
      PauseMove{"orders", Incarnation(1), PartitionId(2), RaftIndex(40), true},
      PauseMoves{"narad-2", false},
      PauseMoves{"", true}};
}

TEST(Command, Encoding_RoundTrips) {
  for (const Command& command : one_of_each()) {
    const std::string text = encode(command);
    const Command back = decode_command(text);
    EXPECT_EQ(back.index(), command.index()) << text;
    EXPECT_EQ(encode(back), text);
  }
}

TEST(Command, GoldenFile_IsWhatWeWriteAndRead) {
  std::ifstream file("testdata/metastore/commands.ndjson");
  ASSERT_TRUE(file) << "run in the source root";
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  const auto commands = one_of_each();
  ASSERT_EQ(lines.size(), commands.size());
  for (std::size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(encode(commands[i]), lines[i]);
}

TEST(Command, UnknownOpVersionOrField_DecodesToUnsupported) {
  struct Case {
    std::string_view text;
    std::string_view op;
    std::int64_t version;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"", "", 0},
           {"null", "", 0},
           {"[1,2]", "", 0},
           {"{\"v\":1", "", 0},
           {R"({"v":1,"op":7})", "", 1},
           {R"({"v":1,"op":"explode"})", "explode", 1},
           {R"({"v":2,"op":"mark_dead","id":"a","stamp":3})", "mark_dead", 2},
           {R"({"op":"mark_dead","id":"a","stamp":3})", "mark_dead", 0},
           {R"({"v":1,"op":"mark_dead","id":"a","stamp":3,"more":1})", "mark_dead", 1},
           {R"({"v":1,"op":"mark_dead","id":"a"})", "mark_dead", 1},
           {R"({"v":1,"op":"mark_dead","id":"a","stamp":-3})", "mark_dead", 1},
           {R"({"v":1,"op":"mark_dead","id":"a","stamp":3.5})", "mark_dead", 1},
           {R"({"v":1,"op":"set_user_grants","username":"a","version":1,"now_ms":1,)"
            R"("grants":[{"action":"fly","patterns":[]}]})",
            "set_user_grants", 1},
           {R"({"v":1,"op":"set_user_grants","username":"a","version":1,"now_ms":1,)"
            R"("grants":[{"action":"produce"}]})",
            "set_user_grants", 1},
           {R"({"v":1,"op":"set_user_grants","username":"a","version":1,"now_ms":1,)"
            R"("grants":[{"action":"produce","patterns":["a"],"more":1}]})",
            "set_user_grants", 1},
           {R"({"v":1,"op":"delete_topic","name":"a","incarnation":"12"})", "delete_topic", 1}}) {
    const Command command = decode_command(c.text);
    ASSERT_TRUE(std::holds_alternative<Unsupported>(command)) << c.text;
    EXPECT_EQ(std::get<Unsupported>(command).op, c.op) << c.text;
    EXPECT_EQ(std::get<Unsupported>(command).version, c.version) << c.text;
    State state;
    const CommandResult result = apply(state, RaftIndex(1), command);
    EXPECT_EQ(result.code, ResultCode::unsupported) << c.text;
    EXPECT_EQ(state.applied, RaftIndex(1));
  }
}

TEST(CommandResult, Refusals_BecomeErrorsOfTheirKind) {
  const auto code = [](ResultCode c) { return to_error({c, "why", {}}).code(); };
  EXPECT_EQ(code(ResultCode::invalid), Errc::invalid_argument);
  EXPECT_EQ(code(ResultCode::not_found), Errc::not_found);
  EXPECT_EQ(code(ResultCode::exists), Errc::exists);
  EXPECT_EQ(code(ResultCode::conflict), Errc::conflict);
  EXPECT_EQ(code(ResultCode::unsupported), Errc::internal);
}

}  // namespace
}  // namespace narad::metastore
