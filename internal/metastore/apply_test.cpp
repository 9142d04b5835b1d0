#include "internal/metastore/apply.h"

#include <gtest/gtest.h>

#include "internal/metastore/codec.h"
#include "pkg/base/text.h"

namespace narad::metastore {
namespace {

// A state and the entries that come to it, checked after each.
struct Machine {
  State state;
  CommandResult run(const Command& command) {
    CommandResult result = apply(state, state.applied.next(), command);
    check_invariants(state);
    return result;
  }
  const Topic& topic(std::string_view name) const { return state.topics.find(name)->topic; }
  std::string owners(std::string_view name) const {
    std::string out;
    for (const Assignment& a : state.topics.find(name)->assignments) {
      out +=
          cat(out.empty() ? "" : " ", a.owner_node.empty() ? "-" : a.owner_node, "/", a.owner_disk);
    }
    return out;
  }
};

CreateTopic creation(std::string name, std::uint32_t partitions = 3, std::uint64_t life = 7) {
  CreateTopic c;
  c.name = std::move(name);
  c.incarnation = Incarnation(life);
  c.partitions = partitions;
  c.retention_ms = 604'800'000;
  c.visibility_timeout_ms = 30'000;
  c.max_in_flight_per_partition = 1024;
  c.max_acked_ahead_per_partition = 1024;
  c.created_at_s = 1'783'615'000;
  return c;
}
RegisterMember member(std::string id, std::vector<std::string> disks = {"d1"}) {
  const std::string address = id + ":7942";
  return {std::move(id), address, "c:7943", "boot", std::move(disks), UnixMillis(1000)};
}

TEST(CreateTopic, OnOneMember_PlacesEverythingThere) {
  Machine m;
  m.run(member("n1"));
  const auto result = m.run(creation("orders"));
  ASSERT_TRUE(result.done()) << result.text;
  EXPECT_EQ(std::get<Topic>(result.row), m.topic("orders"));
  EXPECT_EQ(m.owners("orders"), "n1/d1 n1/d1 n1/d1");
  EXPECT_FALSE(m.state.assignment("orders", PartitionId(0))->used);
  EXPECT_EQ(m.state.assignment("orders", PartitionId(0))->incarnation, Incarnation(7));
  EXPECT_EQ(m.state.assignment("orders", PartitionId(3)), nullptr);
  EXPECT_EQ(m.state.versions.topics, RaftIndex(2));
  EXPECT_EQ(m.state.versions.assignments, RaftIndex(2));
  EXPECT_EQ(m.state.versions.schemas, RaftIndex(0));
}

TEST(CreateTopic, SeveralMembersAndDisks_GoesRoundAllOfThemAcrossTopics) {
  Machine m;
  m.run(member("b", {"b1"}));
  m.run(member("a", {"a1", "a2"}));
  m.run(creation("first", 3));
  m.run(creation("second", 3));
  EXPECT_EQ(m.owners("first"), "a/a1 b/b1 a/a2");
  EXPECT_EQ(m.owners("second"), "b/b1 a/a1 b/b1");
}

TEST(CreateTopic, Trap26_DeadAndDrainingMembers_GetNothing) {
  Machine m;
  m.run(member("a"));
  m.run(member("b"));
  m.run(member("c"));
  const RaftIndex stamp = m.state.members.find("a")->stamp;
  m.run(MarkDead{"a", stamp});
  m.run(SetDraining{"b", true});
  m.run(creation("orders", 2));
  EXPECT_EQ(m.owners("orders"), "c/d1 c/d1");
}

TEST(CreateTopic, NoMember_LeavesPartitionsUnassigned) {
  Machine m;
  EXPECT_TRUE(m.run(creation("orders", 2)).done());
  EXPECT_EQ(m.owners("orders"), "-/ -/");
}

TEST(CreateTopic, TakenName_IsRefusedWithTheRowInTheWay) {
  Machine m;
  m.run(creation("orders", 3, 7));
  const auto result = m.run(creation("orders", 5, 8));
  EXPECT_EQ(result.code, ResultCode::exists);
  EXPECT_EQ(result.text, "topic already exists");
  EXPECT_EQ(std::get<Topic>(result.row).incarnation, Incarnation(7));
  EXPECT_EQ(m.topic("orders").partitions, 3u);
}

TEST(CreateTopic, BrokenSettings_AreInvalid) {
  const auto code_after = [](auto change) {
    Machine m;
    CreateTopic c = creation("orders");
    change(c);
    const auto result = m.run(c);
    EXPECT_EQ(m.state.topics.size(), 0u);
    return result.code;
  };
  EXPECT_EQ(code_after([](auto& c) { c.name = "a/b"; }), ResultCode::invalid);
  EXPECT_EQ(code_after([](auto& c) { c.incarnation = Incarnation(0); }), ResultCode::invalid);
  EXPECT_EQ(code_after([](auto& c) { c.partitions = 0; }), ResultCode::invalid);
  EXPECT_EQ(code_after([](auto& c) { c.partitions = 10'001; }), ResultCode::invalid);
  EXPECT_EQ(code_after([](auto& c) { c.retention_ms = 1; }), ResultCode::invalid);
  EXPECT_EQ(code_after([](auto& c) { c.retention_ms = -1; }), ResultCode::invalid);
  EXPECT_EQ(code_after([](auto& c) { c.visibility_timeout_ms = -1; }), ResultCode::invalid);
  EXPECT_EQ(code_after([](auto& c) { c.max_in_flight_per_partition = 0; }), ResultCode::invalid);
  EXPECT_EQ(code_after([](auto& c) { c.max_acked_ahead_per_partition = 0; }), ResultCode::invalid);
  EXPECT_EQ(code_after([](auto& c) { c.schema = ""; }), ResultCode::invalid);
}

TEST(CreateTopic, WithSchema_HasVersionOneAtOnce) {
  Machine m;
  CreateTopic c = creation("orders");
  c.schema = "true";
  m.run(c);
  ASSERT_NE(m.state.topics.find("orders")->schema(), nullptr);
  EXPECT_EQ(m.state.topics.find("orders")->schema()->version, 1u);
  EXPECT_EQ(m.state.topics.find("orders")->schema()->text, "true");
  EXPECT_EQ(m.state.versions.schemas, RaftIndex(1));
}

TEST(UpdateTopic, GivenFields_ChangeAndOthersStay) {
  Machine m;
  m.run(creation("orders"));
  UpdateTopic u;
  u.name = "orders";
  u.incarnation = Incarnation(7);
  u.retention_ms = 0;
  u.max_in_flight_per_partition = 5;
  auto result = m.run(u);
  ASSERT_TRUE(result.done()) << result.text;
  EXPECT_EQ(std::get<Topic>(result.row).retention_ms, 0);
  EXPECT_EQ(m.topic("orders").max_in_flight_per_partition, 5);
  EXPECT_EQ(m.topic("orders").max_acked_ahead_per_partition, 1024);
  EXPECT_EQ(m.state.versions.topics, RaftIndex(2));
  // Repeating it is harmless and bumps nothing.
  EXPECT_TRUE(m.run(u).done());
  EXPECT_EQ(m.state.versions.topics, RaftIndex(2));
  EXPECT_EQ(m.state.topics.find("orders")->changed_at, RaftIndex(2));
}

TEST(UpdateTopic, Partitions_OnlyGrowAndExistingRowsStay) {
  Machine m;
  m.run(member("a"));
  m.run(creation("orders", 2));
  m.run(member("b"));
  UpdateTopic u;
  u.name = "orders";
  u.incarnation = Incarnation(7);
  u.partitions = 4;
  ASSERT_TRUE(m.run(u).done());
  EXPECT_EQ(m.owners("orders"), "a/d1 a/d1 a/d1 b/d1");
  for (std::uint32_t n : {4u, 3u, 0u}) {
    u.partitions = n;
    const auto result = m.run(u);
    EXPECT_EQ(result.code, ResultCode::invalid);
    EXPECT_EQ(result.text, "partitions can only grow: the topic has 4");
  }
}

TEST(DeleteTopic, OtherIncarnation_KeepsTheTopic) {
  Machine m;
  m.run(creation("orders", 3, 7));
  EXPECT_EQ(m.run(DeleteTopic{"orders", Incarnation(8)}).code, ResultCode::conflict);
  EXPECT_TRUE(m.state.topics.contains("orders"));
  EXPECT_TRUE(m.run(DeleteTopic{"orders", Incarnation(7)}).done());
  EXPECT_FALSE(m.state.topics.contains("orders"));
  EXPECT_EQ(m.run(DeleteTopic{"orders", Incarnation(7)}).code, ResultCode::not_found);
}

TEST(DeleteTopic, Trap25_RecreatedName_InheritsNothing) {
  Machine m;
  m.run(member("a"));
  CreateTopic c = creation("orders", 3, 7);
  c.schema = "true";
  m.run(c);
  m.run(MarkUsed{"orders", Incarnation(7), PartitionId(0), "a", "d1"});
  m.run(DeleteTopic{"orders", Incarnation(7)});
  m.run(creation("orders", 1, 9));
  EXPECT_EQ(m.state.topics.find("orders")->schema(), nullptr);
  EXPECT_EQ(m.state.topics.find("orders")->assignments.size(), 1u);
  EXPECT_FALSE(m.state.assignment("orders", PartitionId(0))->used);
  EXPECT_EQ(m.run(MarkUsed{"orders", Incarnation(7), PartitionId(0), "a", "d1"}).code,
            ResultCode::conflict);
}

TEST(DeleteTopic, Deletion_IsRememberedAsProof) {
  Machine m;
  m.run(member("a"));
  m.run(creation("orders", 1, 7));
  EXPECT_FALSE(m.state.was_deleted("orders", Incarnation(7)));
  m.run(DeleteTopic{"orders", Incarnation(7)});
  EXPECT_TRUE(m.state.was_deleted("orders", Incarnation(7)));
  EXPECT_EQ(m.state.deleted.find("orders@0000000000000007")->deleted_at, m.state.applied);
  EXPECT_EQ(m.run(creation("orders", 1, 7)).code, ResultCode::conflict);
  EXPECT_TRUE(m.run(creation("orders", 1, 8)).done());
  EXPECT_FALSE(m.state.was_deleted("orders", Incarnation(8)));
}

TEST(DeleteTopic, TooManyDeletions_ForgetTheOldestOnly) {
  State state;
  apply(state, state.applied.next(), member("a"));
  for (std::uint64_t life = 1; life <= kDeletedTopicsKept + 3; ++life) {
    // Lives in no order of their numbers, as random ones are.
    const std::uint64_t bits = life * 0x9e3779b97f4a7c15u;
    apply(state, state.applied.next(), creation("orders", 1, bits));
    ASSERT_TRUE(
        apply(state, state.applied.next(), DeleteTopic{"orders", Incarnation(bits)}).done());
  }
  check_invariants(state);
  EXPECT_EQ(state.deleted.size(), kDeletedTopicsKept);
  EXPECT_FALSE(state.was_deleted("orders", Incarnation(3 * 0x9e3779b97f4a7c15u)));
  EXPECT_TRUE(state.was_deleted("orders", Incarnation(4 * 0x9e3779b97f4a7c15u)));
}

TEST(PutSchema, VersionThatIsNotNext_IsAConflict) {
  Machine m;
  m.run(creation("orders"));
  EXPECT_EQ(m.run(PutSchema{"orders", Incarnation(7), 2, "true"}).code, ResultCode::conflict);
  EXPECT_TRUE(m.run(PutSchema{"orders", Incarnation(7), 1, "true"}).done());
  const auto late = m.run(PutSchema{"orders", Incarnation(7), 1, "false"});
  EXPECT_EQ(late.code, ResultCode::conflict);
  EXPECT_EQ(std::get<SchemaVersion>(late.row).text, "true");
  EXPECT_TRUE(m.run(PutSchema{"orders", Incarnation(7), 2, "true"}).done());
  EXPECT_EQ(m.run(PutSchema{"nope", Incarnation(7), 1, "true"}).code, ResultCode::not_found);
  EXPECT_EQ(m.state.topics.find("orders")->schemas.size(), 2u);
}

TEST(AssignPartition, Trap25_Preconditions_AreAllChecked) {
  Machine m;
  m.run(creation("orders", 2, 7));
  m.run(member("a", {"d1"}));
  m.run(member("dead"));
  m.run(MarkDead{"dead", m.state.members.find("dead")->stamp});
  m.run(member("drained"));
  m.run(SetDraining{"drained", true});
  const auto assign = [&](std::uint64_t life, std::uint32_t p, std::string node, std::string disk) {
    return m
        .run(AssignPartition{"orders", Incarnation(life), PartitionId(p), std::move(node),
                             std::move(disk)})
        .code;
  };
  EXPECT_EQ(assign(8, 0, "a", "d1"), ResultCode::conflict);
  EXPECT_EQ(assign(7, 2, "a", "d1"), ResultCode::not_found);
  EXPECT_EQ(assign(7, 0, "nobody", "d1"), ResultCode::not_found);
  EXPECT_EQ(assign(7, 0, "dead", "d1"), ResultCode::conflict);
  EXPECT_EQ(assign(7, 0, "drained", "d1"), ResultCode::conflict);
  EXPECT_EQ(assign(7, 0, "a", "d9"), ResultCode::conflict);
  EXPECT_EQ(m.owners("orders"), "-/ -/");
  EXPECT_EQ(assign(7, 1, "a", "d1"), ResultCode::done);
  EXPECT_EQ(m.owners("orders"), "-/ a/d1");
  EXPECT_EQ(assign(7, 1, "a", "d1"), ResultCode::conflict);
  EXPECT_EQ(m.state.assignment("orders", PartitionId(1))->changed_at, m.state.versions.assignments);
}

TEST(AssignPartition, NeverUsedOnADiskThatItsOwnerLost_MayGoAnywhere) {
  Machine m;
  m.run(member("a", {"old"}));
  m.run(creation("orders", 2, 7));
  m.run(member("b", {"d1"}));
  m.run(MarkUsed{"orders", Incarnation(7), PartitionId(1), "a", "old"});
  const AssignPartition unused{"orders", Incarnation(7), PartitionId(0), "b", "d1"};
  EXPECT_EQ(m.run(unused).code, ResultCode::conflict);  // it has its home
  m.run(member("a", {"new"}));                          // the disk was lost
  EXPECT_TRUE(m.run(unused).done());
  EXPECT_EQ(m.owners("orders"), "b/d1 a/old");
  // One that holds data is never given away: its disk may come back.
  const AssignPartition used{"orders", Incarnation(7), PartitionId(1), "b", "d1"};
  EXPECT_EQ(m.run(used).code, ResultCode::conflict);
}

TEST(MarkUsed, ByTheOwnerOnly_AndOnce) {
  Machine m;
  m.run(member("a"));
  m.run(creation("orders", 2, 7));
  EXPECT_EQ(m.run(MarkUsed{"orders", Incarnation(7), PartitionId(0), "b", "d1"}).code,
            ResultCode::conflict);
  EXPECT_EQ(m.run(MarkUsed{"orders", Incarnation(7), PartitionId(0), "a", "d2"}).code,
            ResultCode::conflict);
  EXPECT_EQ(m.run(MarkUsed{"orders", Incarnation(7), PartitionId(5), "a", "d1"}).code,
            ResultCode::not_found);
  const auto result = m.run(MarkUsed{"orders", Incarnation(7), PartitionId(0), "a", "d1"});
  ASSERT_TRUE(result.done());
  EXPECT_TRUE(std::get<AssignmentRow>(result.row).assignment.used);
  const RaftIndex version = m.state.versions.assignments;
  EXPECT_TRUE(m.run(MarkUsed{"orders", Incarnation(7), PartitionId(0), "a", "d1"}).done());
  EXPECT_EQ(m.state.versions.assignments, version);
  EXPECT_FALSE(m.state.assignment("orders", PartitionId(1))->used);
}

TEST(MarkUsed, UnassignedPartition_IsNobodys) {
  Machine m;
  m.run(creation("orders", 1, 7));
  EXPECT_EQ(m.run(MarkUsed{"orders", Incarnation(7), PartitionId(0), "", ""}).code,
            ResultCode::conflict);
}

TEST(Member, MarkDead_RefusesAfterAFresherStamp) {
  Machine m;
  m.run(member("a"));
  const RaftIndex judged = m.state.members.find("a")->stamp;
  m.run(Heartbeats{{"a", "unknown"}, UnixMillis(2000)});
  EXPECT_EQ(m.run(MarkDead{"a", judged}).code, ResultCode::conflict);
  EXPECT_EQ(m.state.members.find("a")->status, MemberStatus::alive);
  EXPECT_EQ(m.state.members.find("a")->last_seen, UnixMillis(2000));
  EXPECT_TRUE(m.run(MarkDead{"a", m.state.members.find("a")->stamp}).done());
  EXPECT_EQ(m.state.members.find("a")->dead_mark, m.state.applied);
  EXPECT_EQ(m.run(MarkDead{"b", judged}).code, ResultCode::not_found);
}

TEST(Member, Registering_RevivesAndKeepsTheDrain) {
  Machine m;
  m.run(member("a"));
  m.run(SetDraining{"a", true});
  const RaftIndex drain = m.state.members.find("a")->drain_id;
  EXPECT_EQ(drain, m.state.applied);
  m.run(MarkDead{"a", m.state.members.find("a")->stamp});
  m.run(Heartbeats{{"a"}, UnixMillis(3000)});  // does not revive
  EXPECT_EQ(m.state.members.find("a")->status, MemberStatus::dead);
  m.run(member("a"));
  EXPECT_EQ(m.state.members.find("a")->status, MemberStatus::alive);
  EXPECT_TRUE(m.state.members.find("a")->draining);
  EXPECT_EQ(m.state.members.find("a")->drain_id, drain);
}

TEST(Member, Trap29_DrainAndDepartureFlags_BumpTheVersion) {
  Machine m;
  m.run(member("a"));
  const auto version_after = [&](const Command& c) {
    EXPECT_TRUE(m.run(c).done());
    return m.state.versions.members;
  };
  EXPECT_EQ(version_after(SetDraining{"a", true}), m.state.applied);
  EXPECT_EQ(version_after(SetDraining{"a", false}), m.state.applied);
  EXPECT_EQ(version_after(SetDraining{"a", true}), m.state.applied);
  EXPECT_EQ(version_after(Leaving{"a", m.state.members.find("a")->drain_id}), m.state.applied);
}

TEST(Member, OnlyAFreshStamp_BumpsNoVersion) {
  Machine m;
  m.run(member("a"));
  const RaftIndex version = m.state.versions.members;
  m.run(member("a"));
  m.run(Heartbeats{{"a"}, UnixMillis(5000)});
  EXPECT_EQ(m.state.versions.members, version);
  RegisterMember moved = member("a");
  moved.http_addr = "elsewhere:1";
  m.run(moved);
  EXPECT_EQ(m.state.versions.members, m.state.applied);
}

TEST(Member, Trap29_Drain_BumpsTheVersionThatCachesCompare) {
  Machine m;
  m.run(member("a"));
  const RaftIndex before = m.state.versions.members;
  m.run(SetDraining{"a", true});
  EXPECT_GT(m.state.versions.members, before);
  EXPECT_EQ(m.state.members.find("a")->changed_at, m.state.versions.members);
  const RaftIndex draining = m.state.versions.members;
  m.run(SetDraining{"a", false});
  EXPECT_GT(m.state.versions.members, draining);
}

TEST(Member, Drain_CannotBeCancelledOnceLeaving) {
  Machine m;
  m.run(member("a"));
  m.run(SetDraining{"a", true});
  Member leaving = *m.state.members.find("a");
  leaving.leaving = true;
  m.state.members.put(std::make_shared<const Member>(leaving));
  EXPECT_EQ(m.run(SetDraining{"a", false}).code, ResultCode::conflict);
  EXPECT_TRUE(m.state.members.find("a")->draining);
}

TEST(Member, WalLost_IsSaidOfADeadMemberAndEndsWithItsReturn) {
  Machine m;
  m.run(member("a"));
  EXPECT_EQ(m.run(SetDraining{"a", true, true}).code, ResultCode::conflict) << "it lives";
  EXPECT_FALSE(m.state.members.find("a")->draining);
  m.run(MarkDead{"a", m.state.members.find("a")->stamp});
  EXPECT_EQ(m.run(SetDraining{"a", false, true}).code, ResultCode::invalid);
  m.run(SetDraining{"a", true});
  const RaftIndex drain = m.state.members.find("a")->drain_id;
  EXPECT_FALSE(m.state.members.find("a")->wal_lost);
  ASSERT_TRUE(m.run(SetDraining{"a", true, true}).done());
  EXPECT_TRUE(m.state.members.find("a")->wal_lost);
  EXPECT_EQ(m.state.versions.members, m.state.applied);
  ASSERT_TRUE(m.run(SetDraining{"a", true}).done());
  EXPECT_TRUE(m.state.members.find("a")->wal_lost) << "a repeated request takes nothing back";
  EXPECT_EQ(m.state.members.find("a")->drain_id, drain) << "it is the same drain";
  m.run(member("a"));
  EXPECT_FALSE(m.state.members.find("a")->wal_lost);
  EXPECT_TRUE(m.state.members.find("a")->draining);
  m.run(MarkDead{"a", m.state.members.find("a")->stamp});
  m.run(SetDraining{"a", true, true});
  m.run(SetDraining{"a", false});
  EXPECT_FALSE(m.state.members.find("a")->wal_lost);
}

TEST(Member, Leaving_NeedsItsDrainAndNothingToItsName) {
  Machine m;
  m.run(member("a"));
  m.run(member("b"));
  m.run(creation("orders", 1, 7));
  EXPECT_EQ(m.owners("orders"), "a/d1");
  const auto leaving = [&](std::string id, std::uint64_t drain) {
    return m.run(Leaving{std::move(id), RaftIndex(drain)});
  };
  EXPECT_EQ(leaving("nobody", 1).code, ResultCode::not_found);
  EXPECT_EQ(leaving("a", 0).text, "member a is not draining");
  m.run(SetDraining{"a", true});
  const std::uint64_t drain = m.state.members.find("a")->drain_id.value();
  EXPECT_EQ(leaving("a", drain).text, "member a still owns or receives orders/0");
  m.run(DeleteTopic{"orders", Incarnation(7)});
  // A drain that was cancelled and begun again is another one: what was judged under the first
  // (an empty WAL) says nothing under the second.
  m.run(SetDraining{"a", false});
  m.run(SetDraining{"a", true});
  const std::uint64_t second = m.state.members.find("a")->drain_id.value();
  EXPECT_EQ(leaving("a", drain).code, ResultCode::conflict);
  EXPECT_FALSE(m.state.members.find("a")->leaving);
  EXPECT_TRUE(leaving("a", second).done());
  EXPECT_TRUE(m.state.members.find("a")->leaving);
  EXPECT_EQ(m.state.versions.members, m.state.applied);
  const RaftIndex version = m.state.versions.members;
  EXPECT_TRUE(leaving("a", second).done());
  EXPECT_EQ(m.state.versions.members, version);
  EXPECT_EQ(m.run(SetDraining{"a", false}).code, ResultCode::conflict);
}

TEST(Member, DEC_11_OnceItLeaves_NothingLandsOnItAnyMore) {
  Machine m;
  m.run(member("a"));
  m.run(creation("orders", 1, 7));
  m.run(MarkUsed{"orders", Incarnation(7), PartitionId(0), "a", "d1"});
  m.run(member("b"));
  m.run(SetDraining{"b", true});
  ASSERT_TRUE(m.run(Leaving{"b", m.state.members.find("b")->drain_id}).done());
  ASSERT_TRUE(m.run(creation("later", 3, 8)).done());
  EXPECT_EQ(m.owners("later"), "a/d1 a/d1 a/d1");
  UpdateTopic more;
  more.name = "orders";
  more.incarnation = Incarnation(7);
  more.partitions = 3;
  ASSERT_TRUE(m.run(more).done());
  EXPECT_EQ(m.owners("orders"), "a/d1 a/d1 a/d1");
  EXPECT_EQ(m.run(SetTarget{"orders", Incarnation(7), PartitionId(0), "a", RaftIndex(0), "b", "d1",
                            "operator"})
                .code,
            ResultCode::conflict);
  EXPECT_FALSE(m.state.partition_naming("b"));
}

TEST(Member, DEC_13_JudgedDead_DoesNotLeaveOnceItHasReturned) {
  Machine m;
  m.run(member("b"));
  m.run(SetDraining{"b", true});
  m.run(MarkDead{"b", m.state.members.find("b")->stamp});
  const Member judged = *m.state.members.find("b");
  ASSERT_NE(judged.dead_mark, RaftIndex(0));
  m.run(RegisterMember{"b", "h", "c", "b", {"d"}, UnixMillis(9)});
  EXPECT_EQ(m.run(Leaving{"b", judged.drain_id, judged.dead_mark}).code, ResultCode::conflict);
  EXPECT_FALSE(m.state.members.find("b")->leaving);
  EXPECT_TRUE(m.run(Leaving{"b", judged.drain_id}).done());
}

TEST(Member, DEC_10_ATarget_KeepsItFromLeaving) {
  Machine m;
  m.run(member("a"));
  m.run(creation("orders", 1, 7));
  m.run(member("b"));
  m.run(MarkUsed{"orders", Incarnation(7), PartitionId(0), "a", "d1"});
  ASSERT_TRUE(m.run(SetTarget{"orders", Incarnation(7), PartitionId(0), "a", RaftIndex(0), "b",
                              "d1", "operator"})
                  .done());
  m.run(SetDraining{"b", true});
  EXPECT_EQ(m.run(Leaving{"b", m.state.members.find("b")->drain_id}).code, ResultCode::conflict);
}

TEST(Member, Removed_LeavesATombstoneThatRefusesItsId) {
  Machine m;
  m.run(member("a"));
  m.run(member("b"));
  m.run(SetDraining{"a", true});
  const RaftIndex drain = m.state.members.find("a")->drain_id;
  EXPECT_EQ(m.run(RemoveMember{"a", drain, UnixMillis(9)}).text, "member a is not leaving yet");
  m.run(Leaving{"a", drain});
  EXPECT_EQ(m.run(RemoveMember{"a", RaftIndex(1), UnixMillis(9)}).code, ResultCode::conflict);
  ASSERT_TRUE(m.run(RemoveMember{"a", drain, UnixMillis(9)}).done());
  const RaftIndex at = m.state.applied;
  EXPECT_FALSE(m.state.members.contains("a"));
  EXPECT_EQ(*m.state.tombstones.find("a"), (Tombstone{"a", at, UnixMillis(9)}));
  EXPECT_EQ(m.state.versions.members, at);
  // Said twice, it is done; the tombstone stays as it is.
  EXPECT_TRUE(m.run(RemoveMember{"a", drain, UnixMillis(10)}).done());
  EXPECT_EQ(m.state.tombstones.find("a")->removed_at, at);
  EXPECT_EQ(m.run(member("a")).code, ResultCode::conflict);
  EXPECT_EQ(m.run(RemoveMember{"nobody", drain, UnixMillis(10)}).code, ResultCode::not_found);
  m.run(creation("orders", 2, 7));
  EXPECT_EQ(m.owners("orders"), "b/d1 b/d1");
}

TEST(Member, WhatItSaysOfItself_IsBounded) {
  Machine m;
  EXPECT_EQ(m.run(member(std::string(256, 'a'))).code, ResultCode::invalid);
  EXPECT_EQ(m.run(member("a", {})).code, ResultCode::invalid);
  EXPECT_EQ(m.run(member("a", {""})).code, ResultCode::invalid);
  EXPECT_EQ(m.run(member("a", std::vector<std::string>(257, "d"))).code, ResultCode::invalid);
  RegisterMember c = member("a");
  c.cluster_addr = std::string(513, 'x');
  EXPECT_EQ(m.run(c).code, ResultCode::invalid);
  EXPECT_TRUE(m.state.members.empty());
}

TEST(AssignPartition, TurnsCount_SoThatTheRoundGoesOn) {
  Machine m;
  m.run(creation("orders", 1, 7));
  m.run(member("a"));
  m.run(member("b"));
  m.run(AssignPartition{"orders", Incarnation(7), PartitionId(0), "a", "d1"});
  m.run(creation("more", 1, 8));
  EXPECT_EQ(m.owners("more"), "b/d1");
}

TEST(Member, RemovedId_IsRefusedWithTheWayOut) {
  Machine m;
  m.state.tombstones.put(std::make_shared<const Tombstone>(Tombstone{"a", RaftIndex(0), {}}));
  const auto result = m.run(member("a"));
  EXPECT_EQ(result.code, ResultCode::conflict);
  EXPECT_NE(result.text.find("new node id"), std::string::npos);
  EXPECT_FALSE(m.state.members.contains("a"));
}

constexpr const char* kHash = "$2b$10$abcdefghijklmnopqrstuvABCDEFGHIJKLMNOPQRSTUVWXYZ01234";

CreateUser creation_of(std::string name, std::vector<Grant> grants = {}) {
  return {std::move(name), kHash, std::move(grants), false, UnixMillis(1000)};
}

TEST(CreateUser, FreeName_IsStoredWithItsTimes) {
  Machine m;
  const auto result = m.run(creation_of("svc", {{GrantAction::produce, {"orders-*"}}}));
  ASSERT_TRUE(result.done()) << result.text;
  const User& user = *m.state.users.find("svc");
  EXPECT_EQ(std::get<User>(result.row), user);
  EXPECT_EQ(user.created_at, UnixMillis(1000));
  EXPECT_EQ(user.updated_at, UnixMillis(1000));
  EXPECT_EQ(user.changed_at, RaftIndex(1));
  EXPECT_FALSE(user.root);
  EXPECT_EQ(m.state.versions.users, RaftIndex(1));
  const auto again = m.run(creation_of("svc"));
  EXPECT_EQ(again.code, ResultCode::exists);
  EXPECT_EQ(std::get<User>(again.row), user);
  EXPECT_EQ(m.state.versions.users, RaftIndex(1));
}

TEST(CreateUser, Malformed_IsInvalid) {
  const auto code_after = [](auto change) {
    Machine m;
    CreateUser c = creation_of("svc");
    change(c);
    const auto result = m.run(c);
    EXPECT_TRUE(m.state.users.empty());
    return result.code;
  };
  EXPECT_EQ(code_after([](auto& c) { c.username = ""; }), ResultCode::invalid);
  EXPECT_EQ(code_after([](auto& c) { c.username = "a:b"; }), ResultCode::invalid);
  EXPECT_EQ(code_after([](auto& c) { c.username = std::string(65, 'a'); }), ResultCode::invalid);
  EXPECT_EQ(code_after([](auto& c) { c.password_hash = "secret"; }), ResultCode::invalid);
  EXPECT_EQ(code_after([](auto& c) { c.grants = {{GrantAction::produce, {}}}; }),
            ResultCode::invalid);
  EXPECT_EQ(code_after([](auto& c) { c.grants = {{GrantAction::consume, {"a*b"}}}; }),
            ResultCode::invalid);
  EXPECT_EQ(code_after([](auto& c) { c.grants = {{GrantAction::admin, {"a"}}}; }),
            ResultCode::invalid);
}

TEST(CreateUser, Root_IsOnlyEverTheFirst) {
  Machine m;
  CreateUser root = creation_of("admin");
  root.root = true;
  EXPECT_TRUE(m.run(root).done());
  EXPECT_TRUE(m.state.users.find("admin")->root);
  root.username = "second";
  EXPECT_EQ(m.run(root).code, ResultCode::exists);
  Machine other;
  EXPECT_TRUE(other.run(creation_of("svc")).done());
  EXPECT_EQ(other.run(root).code, ResultCode::exists);
}

TEST(SetUserGrants, VersionThatWasNotJudged_IsAConflict) {
  Machine m;
  m.run(creation_of("svc"));
  EXPECT_TRUE(
      m.run(SetUserGrants{"svc", RaftIndex(1), {{GrantAction::admin, {}}}, UnixMillis(5)}).done());
  const User& user = *m.state.users.find("svc");
  EXPECT_EQ(user.grants.size(), 1u);
  EXPECT_EQ(user.updated_at, UnixMillis(5));
  EXPECT_EQ(user.created_at, UnixMillis(1000));
  EXPECT_EQ(m.state.versions.users, RaftIndex(2));
  const auto late = m.run(SetUserGrants{"svc", RaftIndex(1), {}, UnixMillis(6)});
  EXPECT_EQ(late.code, ResultCode::conflict);
  EXPECT_EQ(std::get<User>(late.row), *m.state.users.find("svc"));
  EXPECT_EQ(m.state.users.find("svc")->grants.size(), 1u);
  EXPECT_EQ(
      m.run(SetUserGrants{"svc", RaftIndex(2), {{GrantAction::create, {""}}}, UnixMillis(6)}).code,
      ResultCode::invalid);
  EXPECT_EQ(m.run(SetUserGrants{"nobody", RaftIndex(2), {}, UnixMillis(6)}).code,
            ResultCode::not_found);
}

TEST(SetUserPassword, OnlyThePasswordChanges) {
  Machine m;
  m.run(creation_of("svc", {{GrantAction::consume, {"*"}}}));
  std::string hash = kHash;
  hash.back() = 'z';
  EXPECT_EQ(m.run(SetUserPassword{"svc", RaftIndex(1), "plain", UnixMillis(5)}).code,
            ResultCode::invalid);
  EXPECT_EQ(m.run(SetUserPassword{"svc", RaftIndex(9), hash, UnixMillis(5)}).code,
            ResultCode::conflict);
  EXPECT_EQ(m.run(SetUserPassword{"nobody", RaftIndex(1), hash, UnixMillis(5)}).code,
            ResultCode::not_found);
  EXPECT_EQ(m.state.users.find("svc")->password_hash, kHash);
  EXPECT_TRUE(m.run(SetUserPassword{"svc", RaftIndex(1), hash, UnixMillis(5)}).done());
  EXPECT_EQ(m.state.users.find("svc")->password_hash, hash);
  EXPECT_EQ(m.state.users.find("svc")->grants.size(), 1u);
  EXPECT_EQ(m.state.versions.users, m.state.applied);
}

TEST(DeleteUser, OfTheVersionJudged_AndNeverRoot) {
  Machine m;
  CreateUser root = creation_of("admin");
  root.root = true;
  m.run(root);
  m.run(creation_of("svc"));
  EXPECT_EQ(m.run(DeleteUser{"admin", RaftIndex(1)}).code, ResultCode::invalid);
  EXPECT_EQ(m.run(SetUserGrants{"admin", RaftIndex(1), {}, UnixMillis(5)}).code,
            ResultCode::invalid);
  EXPECT_EQ(m.run(DeleteUser{"svc", RaftIndex(1)}).code, ResultCode::conflict);
  EXPECT_TRUE(m.run(DeleteUser{"svc", RaftIndex(2)}).done());
  EXPECT_EQ(m.run(DeleteUser{"svc", RaftIndex(2)}).code, ResultCode::not_found);
  EXPECT_EQ(m.state.versions.users, RaftIndex(6));
  EXPECT_EQ(m.state.users.size(), 1u);
}

TEST(FoundCluster, SecondCluster_IsRefused) {
  Machine m;
  EXPECT_EQ(m.run(FoundCluster{"xyz"}).code, ResultCode::invalid);
  EXPECT_TRUE(m.run(FoundCluster{"00000000000000ab"}).done());
  EXPECT_TRUE(m.run(FoundCluster{"00000000000000ab"}).done());
  EXPECT_EQ(m.run(FoundCluster{"00000000000000ac"}).code, ResultCode::conflict);
  EXPECT_EQ(m.state.cluster_id, "00000000000000ab");
}

// ---- properties over random histories ------------------------------------------------------

struct Numbers {
  std::uint64_t state;
  std::uint64_t next() {
    state += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
};

std::string random_name(Numbers& r) { return "t" + std::to_string(r.below(12)); }
std::string random_node(Numbers& r) { return "n" + std::to_string(r.below(4)); }

Command random_move_command(Numbers& r, const State& state, const std::string& name,
                            Incarnation life, PartitionId p) {
  const Assignment nothing;
  const Assignment* found = state.assignment(name, p);
  const Assignment& a = found != nullptr ? *found : nothing;
  const auto mostly = [&](RaftIndex right) {
    return r.below(6) > 0 ? right : RaftIndex(r.below(9));
  };
  const std::string owner = r.below(8) > 0 ? a.owner_node : random_node(r);
  // Only what was used moves; the rest is given at once.
  if (!a.used && r.below(3) > 0) return MarkUsed{name, life, p, a.owner_node, a.owner_disk};
  switch (r.below(11)) {
    case 9:
      return PauseMove{name, life, p, mostly(a.move_id), r.below(2) == 0};
    case 10:
      return PauseMoves{r.below(3) == 0 ? "" : random_node(r), r.below(2) == 0};
    case 8:
      if (r.below(3) == 0) return SetMoveRate{};
      return SetMoveRate{r.below(3) == 0 ? r.below(2 * kMoveRateMin) : 4096 * r.below(3)};
    case 0:
    case 1:
    case 2:
      return SetTarget{name, life, p, owner, mostly(a.move_id), random_node(r), "d1", "operator"};
    case 3:
      return ArmFreeze{name, life, p, owner, mostly(a.move_id)};
    case 4:
      return VoidFreeze{name, life, p, owner, a.freeze_epoch + (r.below(5) == 0 ? 1 : 0)};
    case 5:
      return CompleteMove{
          name, life, p, owner, mostly(a.move_id), a.freeze_epoch + (r.below(5) == 0 ? 1 : 0)};
    case 6: {
      const Member* source = state.members.find(owner);
      const RaftIndex mark = source != nullptr ? source->dead_mark : RaftIndex(0);
      return ForcePromote{name, life, p, owner, mostly(a.move_id), mostly(mark), "source dead"};
    }
    default:
      return ClearTarget{name, life, p, a.target_node, mostly(a.move_id), "aborted"};
  }
}

// Mostly sensible commands, drawn with an eye on the state so that preconditions often hold.
Command random_command(Numbers& r, const State& state) {
  const std::string name = random_name(r);
  const TopicRow* row = state.topics.find(name);
  const Incarnation life =
      row != nullptr && r.below(8) > 0 ? row->topic.incarnation : Incarnation(1 + r.below(5));
  const PartitionId p(static_cast<std::uint32_t>(r.below(4)));
  const std::string node = random_node(r);
  const std::string person = "u" + std::to_string(r.below(4));
  const User* user = state.users.find(person);
  const RaftIndex seen =
      user != nullptr && r.below(4) > 0 ? user->changed_at : RaftIndex(r.below(9));
  switch (r.below(23)) {
    case 11: {
      const Member* m = state.members.find(node);
      return Leaving{node, m != nullptr ? m->drain_id : RaftIndex(r.below(9))};
    }
    case 12: {
      // Rare, since a removed id never comes back.
      const Member* m = state.members.find(node);
      if (m == nullptr || r.below(4) > 0) return Heartbeats{{node}, UnixMillis(1)};
      return RemoveMember{node, m->drain_id, UnixMillis(7)};
    }
    case 0:
    case 1: {
      CreateTopic c = creation(name, static_cast<std::uint32_t>(r.below(5)), 1 + r.below(1000));
      if (r.below(3) == 0) c.schema = "{}";
      return c;
    }
    case 2: {
      UpdateTopic c;
      c.name = name;
      c.incarnation = life;
      if (r.below(2) == 0) c.retention_ms = static_cast<std::int64_t>(r.below(3)) * 3'600'000;
      if (r.below(2) == 0) c.max_in_flight_per_partition = static_cast<std::int64_t>(r.below(3));
      if (r.below(2) == 0) c.partitions = static_cast<std::uint32_t>(r.below(9));
      return c;
    }
    case 3:
      return DeleteTopic{name, life};
    case 4:
      return PutSchema{name, life, static_cast<std::uint32_t>(r.below(4)), "true"};
    case 5:
      return AssignPartition{name, life, p, node, "d1"};
    case 6: {
      const Assignment* a = state.assignment(name, p);
      if (a == nullptr) return MarkUsed{name, life, p, node, "d1"};
      return MarkUsed{name, life, p, a->owner_node, a->owner_disk};
    }
    case 7: {
      RegisterMember c = member(node, {"d1", "d2"});
      c.boot_id = std::to_string(r.below(2));
      return c;
    }
    case 8:
      return Heartbeats{{random_node(r), random_node(r)},
                        UnixMillis(static_cast<int>(r.below(99)))};
    case 9: {
      const Member* m = state.members.find(node);
      return MarkDead{node, m != nullptr && r.below(2) == 0 ? m->stamp : RaftIndex(r.below(9))};
    }
    case 13: {
      CreateUser c = creation_of(person, {{GrantAction::produce, {r.below(9) == 0 ? "" : "t*"}}});
      c.root = r.below(3) == 0;
      return c;
    }
    case 14:
      return SetUserGrants{person, seen, {{GrantAction::create, {"*"}}}, UnixMillis(3)};
    case 15:
      return SetUserPassword{person, seen, r.below(9) == 0 ? "" : kHash, UnixMillis(4)};
    case 16:
      return DeleteUser{person, seen};
    case 17:
    case 18:
    case 19:
    case 20:
    case 21:
    case 22:
      return random_move_command(r, state, name, life, p);
    default:
      return r.below(9) == 0 ? decode_command(R"({"v":1,"op":"later"})")
                             : Command(SetDraining{node, r.below(2) == 0});
  }
}

TEST(Apply, SameEntries_GiveSameStateAndResultsOnEveryNode) {
  std::array<std::size_t, 6> reached{};
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Numbers r{seed};
    Machine leader, follower;
    std::vector<std::pair<State, std::uint64_t>> published;
    for (int step = 0; step < 400; ++step) {
      const Command command = random_command(r, leader.state);
      const bool known = !std::holds_alternative<Unsupported>(command);
      // The follower gets what the log carries.
      const Command logged = known ? decode_command(encode(command)) : command;
      const CommandResult a = leader.run(command);
      const CommandResult b = follower.run(logged);
      ASSERT_EQ(a.code, b.code) << "seed " << seed << " step " << step;
      ASSERT_EQ(a.text, b.text);
      ASSERT_EQ(a.row, b.row);
      ASSERT_EQ(digest(leader.state), digest(follower.state))
          << "seed " << seed << " step " << step;
      ++reached[static_cast<std::size_t>(a.code)];
      if (step % 50 == 0) published.emplace_back(leader.state, digest(leader.state));
    }
    // Views taken on the way are as they were.
    for (const auto& [view, sum] : published) EXPECT_EQ(digest(view), sum);
  }
  for (std::size_t code = 0; code < reached.size(); ++code) {
    EXPECT_GT(reached[code], 5u) << "result code " << code << " was hardly ever reached";
  }
}

TEST(Apply, RefusedCommand_ChangesNothingButTheIndex) {
  for (std::uint64_t seed = 100; seed < 104; ++seed) {
    Numbers r{seed};
    Machine m;
    for (int step = 0; step < 400; ++step) {
      State before = m.state;
      const CommandResult result = m.run(random_command(r, m.state));
      if (result.done()) continue;
      before.applied = m.state.applied;
      ASSERT_EQ(digest(before), digest(m.state)) << result.text;
    }
  }
}

TEST(Digest, AnyDifference_ChangesIt) {
  Machine m;
  m.run(member("a"));
  m.run(creation("orders", 2, 7));
  const std::uint64_t base = digest(m.state);
  State other = m.state;
  TopicRow row = *other.topics.find("orders");
  row.assignments[1].freeze_epoch = 1;
  other.topics.put(std::make_shared<const TopicRow>(row));
  EXPECT_NE(digest(other), base);
  other = m.state;
  other.placed += 1;
  EXPECT_NE(digest(other), base);
  other = m.state;
  other.tombstones.put(std::make_shared<const Tombstone>(Tombstone{"z", RaftIndex(1), {}}));
  EXPECT_NE(digest(other), base);
  other = m.state;
  other.deleted.put(
      std::make_shared<const DeletedTopic>(DeletedTopic{"z@00000000000000ff", RaftIndex(1)}));
  EXPECT_NE(digest(other), base);
  other = m.state;
  other.users.put(std::make_shared<const User>(User{"u", kHash, {}, false, {}, {}, RaftIndex(1)}));
  EXPECT_NE(digest(other), base);
}

TEST(Codec, Rows_RoundTripWithEveryField) {
  Topic topic;
  topic.name = "orders";
  topic.incarnation = Incarnation(0xfedcba9876543210u);
  topic.partitions = 3;
  topic.retention_ms = 1;
  topic.visibility_timeout_ms = 2;
  topic.max_in_flight_per_partition = 3;
  topic.max_acked_ahead_per_partition = 4;
  topic.created_at_s = 5;
  topic.owner = "o\"\n";
  topic.role = TopicRole::parent;
  topic.children = {"a", "b"};
  topic.parent = "p";
  topic.attach_epoch = "00000000000000ab";
  topic.fanout_delay_ms = 9;
  const auto t = decode_topic(encode_topic(topic, RaftIndex(8)));
  ASSERT_TRUE(t) << t.error().text();
  EXPECT_EQ(t.value().topic, topic);
  EXPECT_EQ(t.value().changed_at, RaftIndex(8));

  Assignment a{Incarnation(3),      "n",  "d",          true,        "m", "e", RaftIndex(4),
               0xffffffffffffffffu, true, RaftIndex(2), RaftIndex(6)};
  EXPECT_EQ(decode_assignment(encode_assignment(a)).value(), a);

  SchemaVersion s{4, "{\"a\":\"\xE2\x82\xAC\"}", RaftIndex(5)};
  EXPECT_EQ(decode_schema(encode_schema(s)).value(), s);

  Member m{"a",
           "h",
           "c",
           "b",
           {"d1", "d2"},
           MemberStatus::dead,
           UnixMillis(-4),
           RaftIndex(2),
           RaftIndex(3),
           true,
           RaftIndex(4),
           true,
           RaftIndex(5)};
  EXPECT_EQ(decode_member(encode_member(m)).value(), m);

  Tombstone g{"gone", RaftIndex(77), UnixMillis(78)};
  EXPECT_EQ(decode_tombstone(encode_tombstone(g)).value(), g);

  DeletedTopic d{"orders@00000000000000ff", RaftIndex(78)};
  EXPECT_EQ(decode_deleted_topic(encode_deleted_topic(d)).value(), d);
  User u{
      "svc",       kHash,          {{GrantAction::produce, {"a", "b*"}}, {GrantAction::admin, {}}},
      true,        UnixMillis(-4), UnixMillis(5),
      RaftIndex(6)};
  EXPECT_EQ(decode_user(encode_user(u)).value(), u);
}

TEST(Codec, DamagedRow_IsDataLossAndNamesTheField) {
  const auto bad = decode_assignment(R"({"incarnation":"0000000000000001"})");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code(), Errc::data_loss);
  EXPECT_EQ(bad.error().text(),
            "stored assignment cannot be read: field \"owner_node\" is missing");
  for (std::string_view text : {"", "[]", "null", "{\"id\":1,\"removed_at\":2}",
                                "{\"id\":\"a\",\"removed_at\":2,\"x\":1}"}) {
    const auto t = decode_tombstone(text);
    ASSERT_FALSE(t) << text;
    EXPECT_EQ(t.error().code(), Errc::data_loss) << text;
  }
}

}  // namespace
}  // namespace narad::metastore
