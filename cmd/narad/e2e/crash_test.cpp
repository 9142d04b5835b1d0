// The real binary under load, killed: nothing that was answered 202 is lost, nothing is stored
// twice.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "cmd/narad/e2e/broker.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// What producers were told, by payload.
struct Ledger {
  std::mutex mutex;
  std::set<std::string> accepted;  // answered 202
  std::set<std::string> unknown;   // sent, no answer
  std::atomic<int> acknowledged{0};
};

// Produces unique messages until the connection breaks.
void produce_until_dead(std::uint16_t port, const std::string& topic, int worker, int round,
                        Ledger& ledger) {
  Http http(port);
  for (int n = 0;; ++n) {
    const std::string payload =
        cat("r", round, "-w", worker, "-n", n, std::string(static_cast<std::size_t>(n % 700), 'x'));
    auto answer = http.post(cat("/v1/topics/", topic, "/produce?key=k", n % 17), payload);
    const std::lock_guard lock(ledger.mutex);
    if (!answer) {
      ledger.unknown.insert(payload);
      return;
    }
    if (answer->status != 202) return;
    ledger.accepted.insert(payload);
    ++ledger.acknowledged;
  }
}

// Waits until everything accepted so far is in the logs: a last message into each partition is
// handed over after all that came before it. (Counting records would not do: messages whose answer
// was lost in a kill are stored, too.)
void await_hand_over(std::uint16_t port, const std::string& topic, int partitions) {
  Http http(port);
  for (int p = 0; p < partitions; ++p) {
    auto answer = http.post(cat("/v1/topics/", topic, "/produce?partition=", p),
                            cat("last of partition ", p));
    ASSERT_TRUE(answer && answer->status == 202);
  }
  const auto until = Clock::now() + std::chrono::seconds(60);
  int seen = 0;
  while (seen < partitions) {
    ASSERT_LT(Clock::now(), until) << "the hand-over does not end";
    seen = 0;
    for (const auto& [partition, hwm] : high_watermarks(port, topic)) {
      auto last = http.get(
          cat("/v1/topics/", topic, "/consume?partition=", partition, "&offset=", hwm - 1));
      if (last && last->body.find(cat("last of partition ", partition)) != std::string::npos)
        ++seen;
    }
  }
}

TEST(Kill9, UnderLoadAgainAndAgain_LosesAndDoublesNothing) {
  const int rounds = from_environment("NARAD_KILLS", 30);
  TempDir dir;
  Broker broker(dir / "data");
  Ledger ledger;
  std::mt19937 random(4711);
  for (int round = 0; round < rounds; ++round) {
    ASSERT_TRUE(broker.start()) << broker.why();
    if (round == 0) broker.create_topic("t", 3);
    const int goal = ledger.acknowledged + 1 + static_cast<int>(random() % 300);
    std::vector<std::thread> workers;
    for (int w = 0; w < 4; ++w) {
      workers.emplace_back([&, w] { produce_until_dead(broker.port(), "t", w, round, ledger); });
    }
    while (ledger.acknowledged < goal && broker.child().running()) std::this_thread::yield();
    broker.kill9();
    for (auto& worker : workers) worker.join();
  }
  ASSERT_TRUE(broker.start()) << broker.why();
  await_hand_over(broker.port(), "t", 3);
  std::map<std::string, int> stored;
  for (const Record& record : read_all(broker.port(), "t")) ++stored[record.payload];
  std::size_t lost = 0, doubled = 0, strange = 0;
  for (const auto& payload : ledger.accepted) lost += stored.contains(payload) ? 0 : 1;
  for (const auto& [payload, times] : stored) {
    doubled += times > 1 ? 1 : 0;
    const bool known = ledger.accepted.contains(payload) || ledger.unknown.contains(payload);
    strange += known || payload.starts_with("last of partition ") ? 0 : 1;
  }
  EXPECT_EQ(lost, 0u);
  EXPECT_EQ(doubled, 0u) << "the origin table recognises every repeated hand-over";
  EXPECT_EQ(strange, 0u);
  EXPECT_GE(ledger.accepted.size(), static_cast<std::size_t>(rounds));
  RecordProperty("accepted", static_cast<int>(ledger.accepted.size()));
  std::printf("kills %d, accepted %zu, unknown %zu, stored %zu, lost %zu, doubled %zu\n", rounds,
              ledger.accepted.size(), ledger.unknown.size(), stored.size(), lost, doubled);
}

TEST(Kill9, BetweenAckAndCrash_SettledMessagesStaySettled) {
  TempDir dir;
  Broker broker(dir / "data");
  ASSERT_TRUE(broker.start()) << broker.why();
  broker.create_topic("t", 1);
  Http http(broker.port());
  for (int n = 0; n < 20; ++n)
    ASSERT_EQ(http.post("/v1/topics/t/produce", cat("m", n))->status, 202);
  std::set<std::string> acked;
  for (int n = 0; n < 10; ++n) {
    auto got = http.get("/v1/topics/t/consume?wait=5s");
    ASSERT_TRUE(got && got->status == 200);
    const std::size_t at = got->body.find("\"receipt_handle\":\"") + 18;
    const std::string handle = got->body.substr(at, got->body.find('"', at) - at);
    ASSERT_EQ(http.post("/v1/topics/t/ack?receipt_handle=" + url_encode(handle))->status, 204);
    acked.insert(got->body.substr(0, got->body.find("\"timestamp\"")));
  }
  // A clean stop stores every ack; a kill may forget those of the last 100 ms, never more.
  ASSERT_EQ(broker.terminate()->code, 0);
  ASSERT_TRUE(broker.start()) << broker.why();
  Http again(broker.port());
  for (int n = 0; n < 10; ++n) {
    auto got = again.get("/v1/topics/t/consume?wait=5s");
    ASSERT_TRUE(got && got->status == 200);
    EXPECT_FALSE(acked.contains(got->body.substr(0, got->body.find("\"timestamp\"")))) << got->body;
  }
  EXPECT_EQ(again.get("/v1/topics/t/consume")->status, 204);
}

TEST(Sigterm, UnderLoad_ExitsCleanlyWithinTheGraceAndKeepsEverything) {
  TempDir dir;
  Broker broker(dir / "data");
  ASSERT_TRUE(broker.start()) << broker.why();
  broker.create_topic("t", 3);
  Ledger ledger;
  std::vector<std::thread> workers;
  for (int w = 0; w < 4; ++w) {
    workers.emplace_back([&, w] { produce_until_dead(broker.port(), "t", w, 0, ledger); });
  }
  while (ledger.acknowledged < 500) std::this_thread::yield();
  auto exit = broker.terminate();
  ASSERT_TRUE(exit) << "still running after 10 s";
  EXPECT_EQ(exit->code, 0);
  for (auto& worker : workers) worker.join();
  ASSERT_TRUE(broker.start()) << broker.why();
  await_hand_over(broker.port(), "t", 3);
  std::set<std::string> stored;
  for (const Record& record : read_all(broker.port(), "t")) {
    EXPECT_TRUE(stored.insert(record.payload).second) << "stored twice: " << record.payload;
  }
  for (const auto& payload : ledger.accepted) EXPECT_TRUE(stored.contains(payload)) << payload;
}

TEST(Sigterm, WithAWaitingConsumer_AnswersItAndStopsSoon) {
  TempDir dir;
  Broker broker(dir / "data");
  ASSERT_TRUE(broker.start()) << broker.why();
  broker.create_topic("t", 1);
  std::optional<Answer> polled;
  std::thread poller([&] { polled = Http(broker.port()).get("/v1/topics/t/consume?wait=10s"); });
  // The poll waits once its connection shows up beside ours.
  Http http(broker.port());
  const auto until = Clock::now() + std::chrono::seconds(5);
  while (Clock::now() < until) {
    auto metrics = http.get("/metrics");
    ASSERT_TRUE(metrics);
    if (metrics->body.find("narad_http_requests_in_flight 2") != std::string::npos) break;
  }
  auto exit = broker.terminate(std::chrono::seconds(4));
  poller.join();
  ASSERT_TRUE(exit) << "a waiting consumer held the stop up";
  EXPECT_EQ(exit->code, 0);
  ASSERT_TRUE(polled);
  EXPECT_EQ(polled->status, 204);
}

TEST(Sigterm, Second_EndsTheProcessAtOnce) {
  TempDir dir;
  Broker broker(dir / "data");
  ASSERT_TRUE(broker.start()) << broker.why();
  broker.create_topic("t", 1);
  // A request whose body does not come holds the graceful stop open.
  std::thread slow([port = broker.port()] {
    Http(port).raw(
        "POST /v1/topics/t/produce HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345", 10'000);
  });
  ASSERT_EQ(Http(broker.port()).get("/readyz")->status, 200);
  broker.child().signal(SIGTERM);
  // Two signals at once may become one: the second comes when the first was seen.
  ASSERT_TRUE(broker.child().line_with("node stopping", std::chrono::seconds(5)));
  broker.child().signal(SIGTERM);
  auto exit = broker.child().wait(std::chrono::seconds(5));
  slow.join();
  ASSERT_TRUE(exit) << "still running 5 s after the second signal";
}

}  // namespace
}  // namespace narad::e2e
