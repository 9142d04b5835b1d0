// What a node says of files that are gone or damaged: nothing is silent, nothing is taken for
// another thing, and what can go on goes on.
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json.hpp>
#include <filesystem>

#include "cmd/narad/e2e/broker.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

namespace fs = std::filesystem;

class Honest : public testing::Test {
 protected:
  // A topic of one partition with `records` records.
  void make(Broker& broker, int records) {
    ASSERT_TRUE(broker.start()) << broker.why();
    broker.create_topic("t", 1);
    Http http(broker.port());
    for (int n = 0; n < records; ++n) {
      ASSERT_EQ(http.post("/v1/topics/t/produce", cat("message ", n))->status, 202);
    }
    ASSERT_TRUE(await_records(broker.port(), "t", records, std::chrono::seconds(10)));
  }
  // Consumes and acks one message; its offset.
  std::int64_t consume_one(std::uint16_t port) {
    Http http(port);
    auto answer = http.get("/v1/topics/t/consume?wait=5s");
    EXPECT_TRUE(answer && answer->status == 200);
    const auto message = boost::json::parse(answer->body).as_object();
    const std::string handle(message.at("receipt_handle").as_string());
    EXPECT_EQ(http.post("/v1/topics/t/ack?receipt_handle=" + handle, "")->status, 204);
    return message.at("offset").to_number<std::int64_t>();
  }
  std::string partition() { return dir / "data/topics/t/p00000"; }
  std::string segment() { return partition() + "/00000000000000000000.log"; }
  Ran fsck() { return run({narad_binary(), "fsck", dir / "data"}); }

  TempDir dir;
};

TEST_F(Honest, SegmentsOfAUsedPartitionGone_AnswersDataMissingAndStillAccepts) {
  for (const bool watermark : {true, false}) {
    TempDir own;
    Broker broker(own / "data");
    make(broker, 3);
    ASSERT_EQ(broker.terminate()->code, 0);
    const std::string directory = own / "data/topics/t/p00000";
    fs::remove(directory + "/00000000000000000000.log");
    if (!watermark) fs::remove(directory + "/hwm");
    Broker again(own / "data");
    ASSERT_TRUE(again.start()) << again.why();
    Http http(again.port());
    for (const char* query : {"?wait=0s", "?partition=0", "?partition=0&offset=1"}) {
      auto answer = http.get(cat("/v1/topics/t/consume", query));
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->status, 503) << query << answer->body;
      EXPECT_NE(answer->body.find("data_missing: "), std::string::npos) << answer->body;
      EXPECT_NE(answer->body.find(directory), std::string::npos) << answer->body;
    }
    EXPECT_EQ(http.post("/v1/topics/t/produce", "kept in the WAL")->status, 202);
    again.kill9();
  }
}

TEST_F(Honest, LastRecordDamagedAfterItWasAcked_IsALossAndItsOffsetStaysTaken) {
  Broker broker(dir / "data");
  make(broker, 3);
  for (std::int64_t n = 0; n < 3; ++n) EXPECT_EQ(consume_one(broker.port()), n);
  // The ack is in its file, and the watermark in its own is still that of the beginning.
  const auto until = Clock::now() + std::chrono::seconds(4);
  while (!fs::exists(partition() + "/consumer.offset") && Clock::now() < until) {
    Http(broker.port()).get("/healthz");
  }
  Http(broker.port()).get("/v1/topics/t/consume?wait=300ms");  // two ticks of the journal
  broker.kill9();
  std::string bytes = read_text(segment());
  bytes[bytes.size() - 2] = static_cast<char>(bytes[bytes.size() - 2] ^ 1);
  write_text(segment(), bytes);

  Ran checked = fsck();
  EXPECT_EQ(checked.exit.code & 4, 4) << checked.out;
  EXPECT_NE(checked.out.find("consumers have acked records below 3"), std::string::npos)
      << checked.out;

  Broker again(dir / "data");
  ASSERT_TRUE(again.start()) << again.why();
  Http http(again.port());
  ASSERT_EQ(http.post("/v1/topics/t/produce", "later")->status, 202);
  EXPECT_EQ(consume_one(again.port()), 3) << "offset 2 belongs to the record that is lost";
  EXPECT_EQ(http.get("/v1/topics/t/consume?partition=0&offset=2")->status, 410);
  const std::string log = again.child().out();
  EXPECT_NE(log.find("the log ends before records that consumers have acked"), std::string::npos);
  EXPECT_EQ(again.terminate()->code, 0);
}

TEST_F(Honest, WalGoneBesidePartitions_IsAnErrorInTheLogAndInFsck) {
  Broker broker(dir / "data");
  make(broker, 1);
  ASSERT_EQ(broker.terminate()->code, 0);
  fs::remove_all(dir / "data/ingress");
  Ran checked = fsck();
  EXPECT_EQ(checked.exit.code & 4, 4) << checked.out;
  EXPECT_NE(checked.out.find("not yet handed over are lost"), std::string::npos) << checked.out;
  Broker again(dir / "data");
  ASSERT_TRUE(again.start()) << again.why();
  const std::string log = again.child().out();
  EXPECT_NE(log.find("the ingress WAL is missing beside partitions"), std::string::npos) << log;
  EXPECT_EQ(consume_one(again.port()), 0) << "what was handed over is there";
  EXPECT_EQ(again.terminate()->code, 0);
}

TEST_F(Honest, StrayFileNamedLikeASegment_HidesNothing) {
  Broker broker(dir / "data");
  make(broker, 4);
  ASSERT_EQ(broker.terminate()->code, 0);
  write_text(partition() + "/00000000000000000002.log", "oops");
  Ran checked = fsck();
  EXPECT_EQ(checked.exit.code & 4, 4) << checked.out;
  Broker again(dir / "data");
  ASSERT_TRUE(again.start()) << again.why();
  const auto records = read_all(again.port(), "t");
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[3].payload, "message 3");
  EXPECT_TRUE(fs::exists(partition() + "/00000000000000000002.log.stray"));
  EXPECT_EQ(again.terminate()->code, 0);
}

}  // namespace
}  // namespace narad::e2e
