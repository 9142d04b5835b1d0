#include "internal/wire/operation_messages.h"

#include <gtest/gtest.h>

#include <fstream>

namespace narad::wire {
namespace {

LeaderFacts facts() {
  return {"narad-2",
          7,
          {{"narad-1", 1200, std::nullopt},
           {"narad-3", 0, DrainStatus{RaftIndex(17), true, 2, true, 5}}}};
}
RebalanceOutcome outcome() {
  return {{{{"orders", PartitionId(1)}, "narad-9", "target_dead"}},
          {{{"orders", PartitionId(2)}, "narad-1", "narad-4", "d1", "joined", false},
           {{"bills", PartitionId(0)}, "narad-2", "narad-4", "d2", "draining", true}},
          12};
}

SetAsideCopies copies() {
  return {{{SetAsideKind::partition, "orders", PartitionId(3), "d1",
            "/d/topics/orders/p00003.quarantine", 4096, "the owner serves another log",
            UnixMillis(1'783'615'000'500)},
           {SetAsideKind::staged, "bills", PartitionId(0), "d2", "/e/.moves/bills-0.quarantine", 7,
            "", UnixMillis(0)},
           {SetAsideKind::topic, "gone", std::nullopt, "d1", "/d/.quarantine/gone@1", 0, "",
            UnixMillis(0)}},
          2};
}

TEST(OperationMessages, GoldenFile_IsWhatWeWrite) {
  std::ifstream file("testdata/wire/operation_messages.ndjson");
  ASSERT_TRUE(file) << "run in the source root";
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  EXPECT_EQ((std::vector<std::string>{encode(facts()), encode(outcome()), encode(copies())}),
            lines);
}

TEST(OperationMessages, Each_RoundTrips) {
  EXPECT_EQ(decode_leader_facts(encode(facts())).value(), facts());
  EXPECT_EQ(decode_leader_facts(encode(LeaderFacts{})).value(), LeaderFacts{});
  EXPECT_EQ(decode_rebalance_outcome(encode(outcome())).value(), outcome());
  EXPECT_EQ(decode_set_aside_copies(encode(copies())).value(), copies());
  EXPECT_EQ(facts().find("narad-3")->drain->wal_records, 5u);
  EXPECT_EQ(facts().find("narad-4"), nullptr);
}

TEST(OperationMessages, UnknownFields_AreOverlookedAndWrongOnesNamed) {
  std::string text = encode(outcome());
  text.insert(1, R"("later":{"x":[1,2]},)");
  EXPECT_EQ(decode_rebalance_outcome(text).value(), outcome());
  const auto why = [](auto result) { return result ? std::string() : result.error().text(); };
  EXPECT_EQ(why(decode_leader_facts(R"({"leader":"a","term":1,"members":[{"id":"b"}]})")),
            "what the leader knows cannot be read: members: field \"silent_ms\" is missing");
  EXPECT_EQ(why(decode_leader_facts(
                R"({"leader":"a","term":1,"members":[{"id":"b","silent_ms":1,"drain":{}}]})")),
            "what the leader knows cannot be read: members: drain: field \"id\" is missing");
  EXPECT_EQ(
      why(decode_set_aside_copies(R"({"copies":[{"kind":"heap","topic":"a"}],"left_out":0})")),
      "what is in quarantine cannot be read: copies: field \"kind\" is none that is known");
  EXPECT_EQ(
      why(decode_rebalance_outcome(
          R"({"cleared":[{"topic":"a","partition":4294967296,"to":"b","reason":""}],"moves":[],"wanted":0})")),
      "what came of a pass over the moves cannot be read: cleared: field \"partition\" is too "
      "large");
}

}  // namespace
}  // namespace narad::wire
