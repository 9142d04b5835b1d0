// kill -9 proves nothing about sync: the page cache survives it. Here the system calls of the real
// binary are watched: the sync of the right file comes after the request was read and before its
// answer is written.
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "cmd/narad/e2e/broker.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

// One finished system call of an `strace -f -y -tt` log, in the order of completion.
struct Call {
  std::string name;
  std::string text;  // arguments and result, resumed parts joined
};

std::vector<Call> parse_strace(const std::string& log) {
  std::vector<Call> calls;
  std::map<std::string, std::string> unfinished;  // by thread
  std::istringstream in(log);
  for (std::string line; std::getline(in, line);) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    const std::string thread = line.substr(0, space);
    std::string rest = line.substr(line.find_first_not_of(' ', space));
    if (const auto at = rest.find(" <unfinished"); at != std::string::npos) {
      unfinished[thread] = rest.substr(0, at);
      continue;
    }
    if (rest.starts_with("<... ")) {
      const auto at = rest.find("resumed>");
      if (at == std::string::npos) continue;
      rest = unfinished[thread] + rest.substr(at + 8);
    }
    const std::size_t open = rest.find('(');
    if (open == std::string::npos) continue;
    calls.push_back({rest.substr(0, open), rest});
  }
  return calls;
}

bool is_sync_of(const Call& call, const std::string& file) {
  return (call.name == "fdatasync" || call.name == "fsync") &&
         call.text.find(file) != std::string::npos && call.text.find("= 0") != std::string::npos;
}

// Whether some sync of a file with `file` in its path completed between the arrival of the request
// (a read that shows `request`) and the first write that shows `answer` after it.
enum class Order { good, no_request, no_answer, not_synced };
Order order_of(const std::vector<Call>& calls, const std::string& request,
               const std::string& answer, const std::string& file) {
  const auto shows = [](const Call& call, std::initializer_list<const char*> names,
                        const std::string& what) {
    return std::any_of(names.begin(), names.end(), [&](const char* n) { return call.name == n; }) &&
           call.text.find(what) != std::string::npos;
  };
  auto read = std::find_if(calls.begin(), calls.end(), [&](const Call& c) {
    return shows(c, {"read", "readv", "recvfrom", "recvmsg"}, request);
  });
  if (read == calls.end()) return Order::no_request;
  auto write = std::find_if(read, calls.end(), [&](const Call& c) {
    return shows(c, {"write", "writev", "sendto", "sendmsg"}, answer);
  });
  if (write == calls.end()) return Order::no_answer;
  return std::any_of(read, write, [&](const Call& c) { return is_sync_of(c, file); })
             ? Order::good
             : Order::not_synced;
}

class SyncOrder : public testing::Test {
 protected:
  // Runs a broker under strace while `body` talks to it; the calls it made.
  template <class F>
  std::vector<Call> watch(F body) {
    BrokerOptions options;
    options.wrapper = {"strace",
                       "-f",
                       "-y",
                       "-s",
                       "256",
                       "-o",
                       dir / "strace.log",
                       "-e",
                       "trace=read,readv,recvfrom,recvmsg,write,writev,sendto,sendmsg,fsync,"
                       "fdatasync,pwrite64,pwritev"};
    Broker broker(dir / "data", options);
    EXPECT_TRUE(broker.start()) << broker.why();
    if (broker.port() != 0) body(broker);
    // strace ends with what it watches; the process itself is named in its LOCK file.
    const std::string holder = read_text(dir / "data/LOCK");
    const std::size_t pid = holder.find("pid ");
    EXPECT_NE(pid, std::string::npos) << holder;
    if (pid != std::string::npos) ::kill(std::atoi(holder.c_str() + pid + 4), SIGTERM);
    EXPECT_TRUE(broker.child().wait(std::chrono::seconds(30)));
    return parse_strace(read_text(dir / "strace.log"));
  }
  TempDir dir;
};

TEST_F(SyncOrder, Produce202_ComesAfterTheSyncOfTheIngressWal) {
  auto calls = watch([](Broker& broker) {
    broker.create_topic("t", 1);
    ASSERT_EQ(Http(broker.port()).post("/v1/topics/t/produce", "synced-before-answered")->status,
              202);
  });
  EXPECT_EQ(order_of(calls, "synced-before-answered", "202 Accepted", "/ingress/"), Order::good);
  // The same log without its syncs is what a build that forgets them would show.
  std::erase_if(calls, [](const Call& c) { return is_sync_of(c, "/ingress/"); });
  EXPECT_EQ(order_of(calls, "synced-before-answered", "202 Accepted", "/ingress/"),
            Order::not_synced);
}

TEST_F(SyncOrder, TopicCreated201_ComesAfterTheSyncOfTheMetastore) {
  auto calls = watch([](Broker& broker) { broker.create_topic("created-durably", 1); });
  EXPECT_EQ(order_of(calls, "created-durably", "201 Created", "/metastore/"), Order::good);
  std::erase_if(calls, [](const Call& c) { return is_sync_of(c, "/metastore/"); });
  EXPECT_EQ(order_of(calls, "created-durably", "201 Created", "/metastore/"), Order::not_synced);
}

TEST_F(SyncOrder, RecordShownToAConsumer_IsSyncedInItsPartitionFirst) {
  auto calls = watch([](Broker& broker) {
    broker.create_topic("t", 1);
    Http http(broker.port());
    ASSERT_EQ(http.post("/v1/topics/t/produce", "shown-after-sync")->status, 202);
    ASSERT_EQ(http.get("/v1/topics/t/consume?wait=5s")->status, 200);
  });
  EXPECT_EQ(order_of(calls, "shown-after-sync", "shown-after-sync\\\"", "/p00000/"), Order::good);
}

TEST_F(SyncOrder, Ack_IsSyncedInTheJournalSoonAfter) {
  auto calls = watch([](Broker& broker) {
    broker.create_topic("t", 1);
    Http http(broker.port());
    ASSERT_EQ(http.post("/v1/topics/t/produce", "one")->status, 202);
    auto got = http.get("/v1/topics/t/consume?wait=5s");
    ASSERT_EQ(got->status, 200);
    const std::size_t at = got->body.find("\"receipt_handle\":\"") + 18;
    const std::string handle = got->body.substr(at, got->body.find('"', at) - at);
    ASSERT_EQ(http.post("/v1/topics/t/ack?receipt_handle=" + url_encode(handle))->status, 204);
  });
  const auto synced = std::any_of(calls.begin(), calls.end(), [](const Call& c) {
    return is_sync_of(c, "consumer.acks") || is_sync_of(c, "consumer.offset");
  });
  EXPECT_TRUE(synced) << "the ack never reached the disk";
}

TEST(StraceLog, UnfinishedCalls_AreJoined) {
  auto calls = parse_strace(
      "12  read(5<socket:[1]>, \"POST body\"..., 100) = 9\n"
      "13  fdatasync(7</d/ingress/1.wal> <unfinished ...>\n"
      "12  write(1, \"x\", 1) = 1\n"
      "13  <... fdatasync resumed>) = 0\n"
      "12  write(5<socket:[1]>, \"HTTP/1.1 202 Accepted\"..., 40) = 40\n");
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(order_of(calls, "POST body", "202 Accepted", "/ingress/"), Order::good);
}

}  // namespace
}  // namespace narad::e2e
