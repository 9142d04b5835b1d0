// What a connection costs the node that is connected to, by counting every byte that its handlers
// allocate.
#include <cstdlib>
#include <new>

#include "internal/peer/test_cluster.h"

namespace {

// What node `node` of `sim` allocates is counted; everything else only carries the header.
struct Counting {
  narad::sim::Sim* sim = nullptr;
  int node = 0;
  long bytes = 0;
} counting;

struct alignas(std::max_align_t) Header {
  std::size_t size;
  bool counted;
};

}  // namespace

// All forms but the over-aligned ones, since memory of one must fit the delete of any other.
void* operator new(std::size_t size) {
  void* memory = std::malloc(sizeof(Header) + size);
  if (memory == nullptr) std::abort();
  auto* header = new (memory) Header{size, false};
  if (counting.sim != nullptr && counting.sim->running() == counting.node) {
    header->counted = true;
    counting.bytes += static_cast<long>(size);
  }
  return header + 1;
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return operator new(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return operator new(size);
}
void operator delete(void* p) noexcept {
  if (p == nullptr) return;
  Header* header = static_cast<Header*>(p) - 1;
  if (header->counted) counting.bytes -= static_cast<long>(header->size);
  std::free(header);
}
void operator delete(void* p, std::size_t) noexcept { operator delete(p); }
void operator delete[](void* p) noexcept { operator delete(p); }
void operator delete[](void* p, std::size_t) noexcept { operator delete(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { operator delete(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { operator delete(p); }

namespace narad::peer {
namespace {

using namespace testing;

class PeerMemory : public ::testing::Test {
 protected:
  ~PeerMemory() override { counting = Counting(); }
  void count(TestCluster& c, int node) {
    counting.sim = &c.sim;
    counting.node = node;
    counting.bytes = 0;
  }
};

constexpr long kPerConnectionMax = 16 * 1024;

TEST_F(PeerMemory, IdleProvenConnection_CostsAtMost16KiB) {
  TestCluster c(2);
  c.setup(0).peers.lanes[1].connections_max = 200;
  c.boot_all();
  ASSERT_TRUE(c.echo(0, 1));  // what is there once only
  ASSERT_TRUE(c.echo(0, 1, Lane::data));
  count(c, 1);
  std::vector<std::shared_ptr<Pending<http::Response>>> waiting;
  for (int i = 0; i < 101; ++i)
    waiting.push_back(
        c.start(0, 1, "/peer/v1/wait", Lane::control, std::string(100'000, 'x'), seconds(60)));
  ASSERT_TRUE(c.sim.run_until([&] { return c.setup(1).waiting == 101; }, seconds(60)));
  c.node(1).release.notify_all();
  c.sim.run_for(seconds(2));
  ASSERT_EQ(c.node(1).server.stats().connections, 102u);
  EXPECT_EQ(c.node(1).server.stats().requests, 0u);
  const long each = counting.bytes / 100;
  std::printf("a proven idle connection: %ld bytes\n", each);
  EXPECT_GT(each, 4'000);  // the counting works
  EXPECT_LT(each, kPerConnectionMax);
  // Closed: all of it comes back.
  c.sim.run_for(seconds(60));
  EXPECT_EQ(c.node(1).server.stats().connections, 0u);
  EXPECT_LT(counting.bytes, 100 * 200);
  counting.sim = nullptr;
  c.stop_all();
}

TEST_F(PeerMemory, FloodOfUnprovenConnections_IsBounded) {
  TestCluster c(2);
  c.net.faults.backlog = 100'000;
  c.boot_all();
  ASSERT_TRUE(c.echo(0, 1));
  count(c, 1);
  std::vector<std::shared_ptr<Raw>> flood;
  for (int i = 0; i < 2'000; ++i) {
    auto raw = std::make_shared<Raw>();
    flood.push_back(raw);
    c.node(0).group.spawn("flood", c.read_raw(&c.node(0), Endpoint{"host1", kPort}, raw));
    c.sim.run_for(milliseconds(1));
  }
  const auto stats = c.node(1).server.stats();
  std::printf("%zu unproven connections: %ld bytes\n", stats.handshakes, counting.bytes);
  EXPECT_GT(stats.crowded_out, 1'500u);
  EXPECT_LE(stats.handshakes, 300u);
  EXPECT_LT(counting.bytes, static_cast<long>(stats.handshakes) * kPerConnectionMax);
  ASSERT_TRUE(c.echo(0, 1));
  counting.sim = nullptr;
  c.stop_all();
}

// A length is only a claim: memory follows what arrives.
TEST_F(PeerMemory, AnnouncedBody_CostsNothingBeforeItArrives) {
  TestCluster c(2);
  c.boot_all();
  ASSERT_TRUE(c.echo(0, 1));
  count(c, 1);
  c.net.set_link(0, 1, sim::Link{.latency_min = seconds(1)});
  auto call =
      c.start(0, 1, "/peer/v1/data/echo", Lane::data, std::string(8'000'000, 'x'), seconds(8));
  c.sim.run_for(seconds(7));  // one window of 64 KiB at a time
  EXPECT_LT(counting.bytes, 1'000'000);
  EXPECT_FALSE(c.finish(call));
  counting.sim = nullptr;
  c.stop_all();
}

}  // namespace
}  // namespace narad::peer
