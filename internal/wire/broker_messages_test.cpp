#include "internal/wire/broker_messages.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "pkg/base/text.h"

namespace narad::wire {
namespace {

MessagePtr message(std::string topic, std::uint32_t home, std::string key, std::string payload) {
  auto m = std::make_shared<Message>();
  m->incarnation = Incarnation(0xfedcba9876543210u);
  m->topic = std::move(topic);
  m->partition = PartitionId(home);
  m->key = std::move(key);
  m->accepted_at = UnixMillis(-5);
  m->payload = std::move(payload);
  return m;
}

CommitCall commit_call() {
  CommitCall call;
  call.partition = {"orders", PartitionId(3)};
  call.batch.incarnation = Incarnation(0xfedcba9876543210u);
  call.batch.assignment_index = RaftIndex(300);
  call.batch.origin = OriginId(7);
  call.batch.rerouted = true;
  call.batch.records.push_back({Sequence(9), message("orders", 1, "k", std::string("\0\r\n", 3))});
  call.batch.records.push_back({Sequence(200), message("orders", 3, "käse", "")});
  return call;
}
StoredRecord record(std::uint64_t offset, std::string payload) {
  return {Offset(offset), UnixMillis(1'783'615'000'123), "key", std::move(payload)};
}

// Every body of this release, by name, with its decoder.
struct Sample {
  std::string name;
  std::string body;
  std::function<bool(std::string_view)> reads;
};
template <class F>
Sample sample(std::string name, std::string body, F decode) {
  return {std::move(name), std::move(body),
          [decode](std::string_view b) { return decode(b).has_value(); }};
}
std::vector<Sample> samples() {
  const ReceiptHandle handle{PartitionId(2), Offset(1000), 0x8000000000000001u};
  return {
      sample("commit", encode(commit_call()), decode_commit),
      sample("commit_outcome", encode(CommitOutcome{Offset(500), 2, 1}), decode_commit_outcome),
      sample("consume", encode(ConsumeCall{"orders", Incarnation(1), PartitionId(4), 10}),
             decode_consume),
      sample("leased", encode(std::vector<LeasedRecord>{{handle, record(1000, "payload")}}),
             decode_leased),
      sample("settle", encode(SettleCall{"orders", Incarnation(1), SettleMode::nack, {handle}}),
             decode_settle),
      sample("settled",
             encode(std::vector<Result<void>>{ok(), Error(Errc::gone, "not a live lease")}),
             decode_settled),
      sample("replay", encode(ReplayCall{{"orders", PartitionId(1)}, Incarnation(1), Offset(7)}),
             decode_replay),
      sample("replayed", encode(std::optional<StoredRecord>(record(7, "x"))), decode_replayed),
      sample("stats", encode(StatsCall{"orders", Incarnation(1), {PartitionId(0), PartitionId(9)}}),
             decode_stats),
      sample("stats_answer",
             encode(std::vector<PartitionStat>{
                 {PartitionId(9), 3, Offset(1), Offset(8), Offset(7), 4096, 1'783'615'000}}),
             decode_stats_answer),
      sample("interest", encode(InterestCall{30'000, {"orders", "clicks"}}), decode_interest),
      sample("wake", encode(WakeCall{{{"orders", 12}}}), decode_wake),
  };
}

TEST(BrokerMessages, Commit_ComesBackWhole) {
  const CommitCall call = commit_call();
  auto read = decode_commit(encode(call));
  ASSERT_TRUE(read) << read.error().text();
  const CommitBatch& batch = read.value().batch;
  EXPECT_EQ(read.value().partition, call.partition);
  EXPECT_EQ(batch.incarnation, call.batch.incarnation);
  EXPECT_EQ(batch.assignment_index, call.batch.assignment_index);
  EXPECT_EQ(batch.origin, call.batch.origin);
  EXPECT_TRUE(batch.rerouted);
  ASSERT_EQ(batch.records.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const Message& a = *batch.records[i].message;
    const Message& b = *call.batch.records[i].message;
    EXPECT_EQ(batch.records[i].sequence, call.batch.records[i].sequence);
    EXPECT_EQ(a.incarnation, b.incarnation);
    EXPECT_EQ(a.topic, b.topic);
    EXPECT_EQ(a.partition, b.partition);
    EXPECT_EQ(a.key, b.key);
    EXPECT_EQ(a.accepted_at, b.accepted_at);
    EXPECT_EQ(a.payload, b.payload);
  }
}

TEST(BrokerMessages, Answers_ComeBackWhole) {
  const ReceiptHandle handle{PartitionId(2), Offset(1000), 0x8000000000000001u};
  const std::string payload("\xff\x00\n{", 4);
  const auto leased = decode_leased(
      encode(std::vector<LeasedRecord>{{handle, record(1000, payload)}, {handle, record(1, "")}}));
  ASSERT_TRUE(leased);
  ASSERT_EQ(leased.value().size(), 2u);
  EXPECT_EQ(leased.value()[0].handle, handle);
  EXPECT_EQ(leased.value()[0].record.payload, payload);
  EXPECT_EQ(leased.value()[0].record.commit_time, UnixMillis(1'783'615'000'123));
  const auto settled = decode_settled(encode(
      std::vector<Result<void>>{ok(), Error(Errc::gone, "g"), Error(Errc::unreachable, "")}));
  ASSERT_TRUE(settled);
  EXPECT_TRUE(settled.value()[0]);
  EXPECT_EQ(settled.value()[1].error().code(), Errc::gone);
  EXPECT_EQ(settled.value()[1].error().text(), "g");
  EXPECT_EQ(settled.value()[2].error().code(), Errc::unreachable);
  const auto nothing = decode_replayed(encode(std::optional<StoredRecord>()));
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(nothing.value());
}

TEST(BrokerMessages, Errors_KeepCodeAndText) {
  for (std::uint8_t c = 1; c <= static_cast<std::uint8_t>(kErrcLast); ++c) {
    const Error e = decode_error(encode_error(Error(static_cast<Errc>(c), "why \"so\"")));
    EXPECT_EQ(e.code(), static_cast<Errc>(c));
    EXPECT_EQ(e.text(), "why \"so\"");
  }
  EXPECT_EQ(decode_error("404 page not found").code(), Errc::internal);
  EXPECT_EQ(decode_error(R"({"code":"nonsense","error":"x"})").code(), Errc::internal);
}

TEST(BrokerMessages, EveryPrefix_IsRefused) {
  for (const Sample& s : samples()) {
    ASSERT_TRUE(s.reads(s.body)) << s.name;
    for (std::size_t n = 0; n < s.body.size(); ++n) {
      EXPECT_FALSE(s.reads(std::string_view(s.body).substr(0, n))) << s.name << " cut at " << n;
    }
    // Fields of a later release come behind, and another version is refused.
    EXPECT_TRUE(s.reads(s.body + "later")) << s.name;
    std::string other = s.body;
    other[0] = 2;
    EXPECT_FALSE(s.reads(other)) << s.name;
  }
}

TEST(BrokerMessages, BadValues_AreRefused) {
  CommitCall call = commit_call();
  call.batch.records[1].sequence = call.batch.records[0].sequence;  // does not ascend
  EXPECT_FALSE(decode_commit(encode(call)));
  call = commit_call();
  call.batch.records.clear();
  EXPECT_FALSE(decode_commit(encode(call)));
  call = commit_call();
  call.partition.topic = "../etc";
  EXPECT_FALSE(decode_commit(encode(call)));
  EXPECT_FALSE(decode_consume(encode(ConsumeCall{"orders", Incarnation(1), std::nullopt, 0})));
  // A count that promises more than the bytes can hold allocates nothing.
  EXPECT_FALSE(decode_leased(std::string("\x01\xff\xff\x03", 4)));
}

// What is sent today must be understood by every later release.
TEST(BrokerMessages, GoldenBodies_StayAsTheyAre) {
  std::string text;
  for (const Sample& s : samples()) {
    text += s.name + " ";
    for (unsigned char c : s.body) {
      constexpr char kDigits[] = "0123456789abcdef";
      text += kDigits[c >> 4];
      text += kDigits[c & 15];
    }
    text += "\n";
  }
  const std::string path = "testdata/wire/broker.v1.txt";
  if (std::getenv("NARAD_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream in(path);
  std::stringstream golden;
  golden << in.rdbuf();
  EXPECT_EQ(text, golden.str());
}

}  // namespace
}  // namespace narad::wire
