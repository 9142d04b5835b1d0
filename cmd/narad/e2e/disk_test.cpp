// Full and read-only disks under the real binary, on small file systems made for the test (needs
// root).
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>

#include "cmd/narad/e2e/broker.h"
#include "cmd/narad/e2e/tmpfs.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

TEST(FullDisk, Produce_IsRefusedCleanlyAndRecoversWithoutARestart) {
  TempDir dir;
  Tmpfs disk(dir / "disk", "24m");
  ASSERT_EQ(disk.error(), 0) << std::strerror(disk.error())
                             << " (this test mounts a tmpfs: run it as root)";
  Broker broker((dir / "disk") + "/data");
  ASSERT_TRUE(broker.start()) << broker.why();
  broker.create_topic("t", 1);
  Http http(broker.port());
  std::size_t accepted = 0;
  std::optional<Answer> refused;
  for (int n = 0; n < 200 && !refused; ++n) {
    auto answer = http.post("/v1/topics/t/produce", cat(n, ":", std::string(256 * 1024, 'f')));
    ASSERT_TRUE(answer) << "the connection broke; the process must outlive a full disk";
    if (answer->status == 202) {
      ++accepted;
    } else {
      refused = answer;
    }
  }
  ASSERT_TRUE(refused) << "24 MiB never filled";
  EXPECT_EQ(refused->status, 503) << refused->body;
  EXPECT_NE(refused->body.find("\"error\""), std::string::npos);
  EXPECT_TRUE(broker.child().running());
  // Reads and acks go on.
  auto got = http.get("/v1/topics/t/consume?wait=5s");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 200) << got->body;
  // The node says what is wrong.
  auto metrics = http.get("/metrics");
  ASSERT_TRUE(metrics);
  EXPECT_NE(metrics->body.find("narad_ingress_refused_total"), std::string::npos);

  ASSERT_TRUE(disk.resize("256m"));
  const auto until = Clock::now() + std::chrono::seconds(30);
  bool taken = false;
  while (!taken && Clock::now() < until) {
    auto answer = http.post("/v1/topics/t/produce", "after");
    ASSERT_TRUE(answer);
    taken = answer->status == 202;
    if (!taken) std::this_thread::yield();
  }
  EXPECT_TRUE(taken) << "space came back, and produce is still refused after 30 s";
  ASSERT_TRUE(await_records(broker.port(), "t", static_cast<std::int64_t>(accepted) + 1,
                            std::chrono::seconds(30)));
  auto records = read_all(broker.port(), "t");
  std::set<std::string> payloads;
  for (auto& r : records) payloads.insert(r.payload.substr(0, r.payload.find(':')));
  for (std::size_t n = 0; n < accepted; ++n) EXPECT_TRUE(payloads.contains(std::to_string(n))) << n;
  EXPECT_TRUE(payloads.contains("after"));
}

TEST(ReadOnlyDisk, Start_IsRefusedWithAReason) {
  TempDir dir;
  Tmpfs disk(dir / "disk", "16m");
  ASSERT_EQ(disk.error(), 0) << std::strerror(disk.error());
  {
    Broker broker((dir / "disk") + "/data");
    ASSERT_TRUE(broker.start()) << broker.why();
    broker.create_topic("t", 1);
    ASSERT_EQ(Http(broker.port()).post("/v1/topics/t/produce", "kept")->status, 202);
    ASSERT_EQ(broker.terminate()->code, 0);
  }
  ASSERT_TRUE(disk.read_only());
  Broker broker((dir / "disk") + "/data");
  EXPECT_FALSE(broker.start());
  EXPECT_NE(broker.why().find("Read-only file system"), std::string::npos) << broker.why();
  EXPECT_EQ(broker.child().wait(std::chrono::seconds(5))->code, 1);
}

}  // namespace
}  // namespace narad::e2e
