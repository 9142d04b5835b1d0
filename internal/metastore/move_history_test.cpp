// What is remembered of moves: one record for each, from the entry that began it to the one that
// ended it.
#include "internal/metastore/move_history.h"

#include <gtest/gtest.h>

#include "internal/metastore/apply.h"
#include "internal/metastore/codec.h"
#include "pkg/base/text.h"

namespace narad::metastore {
namespace {

constexpr PartitionId kP{0};
constexpr Incarnation kLife{7};

// Partition orders/0 on "s", used; members "s", "d", "e".
class History : public testing::Test {
 protected:
  History() {
    member("s");
    CreateTopic c;
    c.name = "orders";
    c.incarnation = kLife;
    c.partitions = 1;
    c.visibility_timeout_ms = 30'000;
    c.max_in_flight_per_partition = 100;
    c.max_acked_ahead_per_partition = 100;
    run(c);
    member("d");
    member("e");
    run(MarkUsed{"orders", kLife, kP, "s", "d1"});
  }
  void member(std::string id) {
    run(RegisterMember{id, "h:1", "c:1", "boot", {"d1"}, UnixMillis(1)});
  }
  CommandResult run(const Command& command) {
    CommandResult result = apply(state, state.applied.next(), command);
    EXPECT_TRUE(result.done()) << result.text;
    check_invariants(state);
    return result;
  }
  const Assignment& row() const { return *state.assignment("orders", kP); }
  RaftIndex start(std::string to) {
    run(SetTarget{"orders", kLife, kP, row().owner_node, row().move_id, std::move(to), "d1",
                  "operator", UnixMillis(1000)});
    return row().move_id;
  }
  void flip(std::string receipt) {
    run(ArmFreeze{"orders", kLife, kP, row().owner_node, row().move_id});
    run(CompleteMove{"orders", kLife, kP, row().owner_node, row().move_id, row().freeze_epoch,
                     UnixMillis(2000), std::move(receipt)});
  }
  const MoveRecord& record(RaftIndex move) const { return *state.moves.find(move_key(move)); }
  State state;
};

TEST_F(History, AMoveThatFlipped_KeepsWhereFromWhereToWhenAndItsReceipt) {
  const RaftIndex move = start("d");
  EXPECT_EQ(record(move).outcome, MoveOutcome::running);
  EXPECT_EQ(record(move).started, UnixMillis(1000));
  flip(R"({"records":5})");
  const MoveRecord& m = record(move);
  EXPECT_EQ(m.outcome, MoveOutcome::moved);
  EXPECT_EQ(m.topic, "orders");
  EXPECT_EQ(m.incarnation, kLife);
  EXPECT_EQ(m.from_node, "s");
  EXPECT_EQ(m.to_node, "d");
  EXPECT_EQ(m.reason, "operator");
  EXPECT_EQ(m.ended_at, state.applied);
  EXPECT_EQ(m.ended, UnixMillis(2000));
  EXPECT_EQ(m.receipt, R"({"records":5})");
  EXPECT_EQ(decode_move(encode_move(m)).value(), m);
}

TEST_F(History, AClearedAReplacedAndAPromotedMove_SayWhatEndedThem) {
  const RaftIndex first = start("d");
  const RaftIndex second = start("e");
  EXPECT_EQ(record(first).outcome, MoveOutcome::replaced);
  EXPECT_EQ(record(first).ended_at, second);
  run(ClearTarget{"orders", kLife, kP, "e", second, "aborted by ann", UnixMillis(3000)});
  EXPECT_EQ(record(second).outcome, MoveOutcome::cleared);
  EXPECT_EQ(record(second).why, "aborted by ann");
  const RaftIndex third = start("d");
  run(MarkDead{"s", state.members.find("s")->stamp});
  run(ForcePromote{"orders", kLife, kP, "s", third, state.members.find("s")->dead_mark,
                   "dead for 2m", UnixMillis(4000), "{}"});
  EXPECT_EQ(record(third).outcome, MoveOutcome::promoted);
  EXPECT_EQ(record(third).why, "dead for 2m");
  EXPECT_EQ(state.moves.size(), 3u);
}

TEST_F(History, ADeletedTopic_EndsWhatRanInIt) {
  const RaftIndex move = start("d");
  run(DeleteTopic{"orders", kLife});
  EXPECT_EQ(record(move).outcome, MoveOutcome::topic_deleted);
}

TEST_F(History, AFlipThatIsRepeated_ChangesNothing) {
  const RaftIndex move = start("d");
  run(ArmFreeze{"orders", kLife, kP, "s", move});
  const std::uint64_t epoch = row().freeze_epoch;
  run(CompleteMove{"orders", kLife, kP, "s", move, epoch, UnixMillis(2000), "first"});
  const MoveRecord before = record(move);
  run(CompleteMove{"orders", kLife, kP, "s", move, epoch, UnixMillis(9000), "second"});
  EXPECT_EQ(record(move), before);
}

TEST_F(History, AReceiptThatIsTooLong_IsLeftOutAndTheFlipHolds) {
  const RaftIndex move = start("d");
  flip(std::string(kReceiptBytesMax + 1, 'x'));
  EXPECT_EQ(row().owner_node, "d");
  EXPECT_EQ(record(move).receipt, "");
}

TEST(MoveHistory, TimesAndReceipts_TravelWithTheirEntries) {
  const Command commands[] = {
      SetTarget{"t", kLife, kP, "s", RaftIndex(0), "d", "d1", "plan", UnixMillis(1)},
      CompleteMove{"t", kLife, kP, "s", RaftIndex(2), 3, UnixMillis(4), R"({"a":"b"})"},
      ForcePromote{"t", kLife, kP, "s", RaftIndex(2), RaftIndex(5), "dead", UnixMillis(6), "{}"},
      ClearTarget{"t", kLife, kP, "d", RaftIndex(2), "aborted", UnixMillis(7)}};
  for (const Command& c : commands) {
    const std::string text = encode(c);
    EXPECT_NE(text.find("now_ms"), std::string::npos) << text;
    EXPECT_EQ(encode(decode_command(text)), text);
  }
  // Entries of an older release have neither.
  const std::string old = encode(SetTarget{"t", kLife, kP, "s", RaftIndex(0), "d", "d1", "plan"});
  EXPECT_EQ(old.find("now_ms"), std::string::npos);
  EXPECT_EQ(encode(decode_command(old)), old);
}

TEST(MoveHistory, TheOldestThatEnded_IsForgottenFirst) {
  State state;
  Assignment row;
  row.owner_node = "s";
  const auto begin = [&](std::uint64_t index) {
    begin_move_record(state, row, {RaftIndex(index), "t", PartitionId(0), "d", "d1", "", {}});
  };
  for (std::uint64_t i = 1; i <= kMovesKept; ++i) {
    begin(i);
    // The first one goes on running.
    if (i > 1) end_move_record(state, RaftIndex(i), {RaftIndex(i), MoveOutcome::moved, {}, {}, {}});
  }
  begin(kMovesKept + 1);
  EXPECT_EQ(state.moves.size(), kMovesKept);
  EXPECT_TRUE(state.moves.contains(move_key(RaftIndex(1))));
  EXPECT_FALSE(state.moves.contains(move_key(RaftIndex(2))));
  EXPECT_TRUE(state.moves.contains(move_key(RaftIndex(3))));
}

}  // namespace
}  // namespace narad::metastore
