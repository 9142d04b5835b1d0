#include "internal/wire/member_messages.h"

#include <gtest/gtest.h>

#include <fstream>

namespace narad::wire {
namespace {

MemberInfo member() {
  return {"narad-1",       raft::ReplicaId(0xabc), "00000000000000b0",
          "10.0.0.1:7942", "10.0.0.1:7943",        {"00000000000000d1", "00000000000000d2"}};
}
WhoAnswer founder() {
  return {"narad-1",
          raft::ReplicaId(0xabc),
          0xc1,
          {{raft::ReplicaId(0xabc), "narad-1", raft::MemberRole::voter},
           {raft::ReplicaId(0xdef), "narad-2", raft::MemberRole::learner}},
          "narad-1",
          {{"narad-1", "10.0.0.1:7943"}, {"narad-2", "10.0.0.2:7943"}}};
}
JoinRequest join() { return {0xc1, member()}; }
JoinAnswer admitted() { return {0xc1, "narad-2", RaftIndex(42)}; }
HeartbeatRequest beat() { return {member(), {RaftIndex(17), true, 2, true, 3}}; }
HeartbeatAnswer alive() { return {RaftIndex(43), 7, "narad-2", UnixMillis(1'783'615'000'123)}; }
MemberRefusal removed() {
  return {Refused::removed, "narad-1 was removed", "", RaftIndex(40),
          UnixMillis(1'783'615'000'000)};
}

std::vector<std::string> one_of_each() {
  WhoAnswer nobody;
  nobody.node = "narad-3";
  nobody.replica = raft::ReplicaId(1);
  MemberRefusal elsewhere{Refused::not_leader, "ask narad-2", "narad-2", {}, {}};
  return {encode(founder()), encode(nobody),  encode(join()),    encode(admitted()),
          encode(beat()),    encode(alive()), encode(elsewhere), encode(removed())};
}

TEST(MemberMessages, GoldenFile_IsWhatWeWrite) {
  std::ifstream file("testdata/wire/member_messages.ndjson");
  ASSERT_TRUE(file) << "run in the source root";
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  EXPECT_EQ(one_of_each(), lines);
}

TEST(MemberMessages, Each_RoundTrips) {
  EXPECT_EQ(decode_who_answer(encode(founder())).value(), founder());
  EXPECT_EQ(decode_join_request(encode(join())).value(), join());
  EXPECT_EQ(decode_join_answer(encode(admitted())).value(), admitted());
  EXPECT_EQ(decode_heartbeat_request(encode(beat())).value(), beat());
  EXPECT_EQ(decode_heartbeat_answer(encode(alive())).value(), alive());
  EXPECT_EQ(decode_refusal(410, encode(removed())), removed());
}

TEST(MemberMessages, DEC_15_OlderNode_NeverCountsAsEmpty) {
  HeartbeatRequest older = beat();
  older.drain = {RaftIndex(17), true, 0, true, 0};
  EXPECT_TRUE(older.drain.empty_under(RaftIndex(17)));
  std::string text = encode(older);
  const auto at = text.find(R"(,"refuses_produce")");
  text.erase(at, text.find('}', at) - at);
  const auto read = decode_heartbeat_request(text);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read.value().drain, (DrainStatus{RaftIndex(17), false, 0, false, 0}));
  EXPECT_FALSE(read.value().drain.empty_under(RaftIndex(17)));
}

TEST(MemberMessages, DEC_15_G46_EmptyMeansRefusingUnderThatDrainWithNothingLeft) {
  const DrainStatus empty{RaftIndex(17), true, 0, true, 0};
  EXPECT_TRUE(empty.empty_under(RaftIndex(17)));
  EXPECT_FALSE(empty.empty_under(RaftIndex(18))) << "another drain";
  DrainStatus s = empty;
  s.refuses_produce = false;
  EXPECT_FALSE(s.empty_under(RaftIndex(17)));
  s = empty;
  s.unanswered = 1;
  EXPECT_FALSE(s.empty_under(RaftIndex(17)));
  s = empty;
  s.wal_open = false;
  EXPECT_FALSE(s.empty_under(RaftIndex(17))) << "it cannot tell";
  s = empty;
  s.wal_records = 1;
  EXPECT_FALSE(s.empty_under(RaftIndex(17)));
}

TEST(MemberMessages, UnknownFields_AreOverlooked) {
  std::string text = encode(alive());
  text.insert(1, R"("later":{"x":[1,2]},)");
  EXPECT_EQ(decode_heartbeat_answer(text).value(), alive());
}

TEST(MemberMessages, MissingAndWrongFields_AreNamed) {
  const auto why = [](auto result) { return result ? std::string() : result.error().text(); };
  EXPECT_EQ(why(decode_who_answer("[]")),
            "the answer to who are you cannot be read: a JSON object was expected");
  EXPECT_EQ(
      why(decode_join_answer(R"({"cluster":"1"})")),
      "the answer to a request to join cannot be read: field \"cluster\" is not 16 hex digits");
  EXPECT_EQ(
      why(decode_join_answer(R"({"cluster":"00000000000000c1","leader":"a","index":1.5})")),
      "the answer to a request to join cannot be read: field \"index\" is not a whole number");
  JoinRequest no_disk = join();
  no_disk.member.disks.clear();
  EXPECT_EQ(why(decode_join_request(encode(no_disk))),
            "the request to join cannot be read: field \"member: disks\" is empty");
  JoinRequest no_id = join();
  no_id.member.id.clear();
  EXPECT_EQ(why(decode_join_request(encode(no_id))),
            "the request to join cannot be read: member: field \"id\" is empty");
  WhoAnswer twice = founder();
  twice.founding[1].replica = twice.founding[0].replica;
  EXPECT_NE(why(decode_who_answer(encode(twice))), "");
  WhoAnswer lost = founder();
  lost.cluster_id = 0;
  EXPECT_EQ(why(decode_who_answer(encode(lost))),
            "the answer to who are you cannot be read: field \"founding\" without a cluster");
}

TEST(MemberMessages, Lengths_AreBounded) {
  JoinRequest large = join();
  large.member.id = std::string(256, 'x');
  EXPECT_FALSE(decode_join_request(encode(large)));
  large = join();
  large.member.disks.assign(257, "d");
  EXPECT_FALSE(decode_join_request(encode(large)));
  EXPECT_EQ(decode_join_request(std::string(kMemberMessageBytesMax + 1, ' ')).error().code(),
            Errc::invalid_argument);
}

TEST(MemberRefusal, WhateverWasAnswered_BecomesOne) {
  const MemberRefusal other = decode_refusal(400, "no such route\n");
  EXPECT_EQ(other.reason, Refused::unavailable);
  EXPECT_EQ(other.error, "it answered status 400: no such route");
  // A refusal whose status says otherwise is not believed.
  EXPECT_EQ(decode_refusal(503, encode(removed())).reason, Refused::unavailable);
  for (Refused r : {Refused::not_leader, Refused::unavailable, Refused::unknown, Refused::replaced,
                    Refused::other_cluster, Refused::removed, Refused::invalid}) {
    const MemberRefusal m{r, "why", "", {}, {}};
    EXPECT_EQ(decode_refusal(status_of(r), encode(m)), m) << to_string(r);
  }
}

}  // namespace
}  // namespace narad::wire
