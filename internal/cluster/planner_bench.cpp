// How long a plan for 100,000 partitions over 100 nodes takes, in the cases that have the most to
// weigh. With --check, exits 1 where the limit is missed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "internal/cluster/planner.h"
#include "internal/metastore/apply.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::cluster {
namespace {

constexpr int kNodes = 100;
constexpr int kTopics = 1000;
constexpr std::uint32_t kPartitions = 100;  // of each
constexpr double kLimitMs = 200;

void run(metastore::State& state, const metastore::Command& command) {
  const bool done = metastore::apply(state, state.applied.next(), command).done();
  NARAD_ASSERT(done);
}

void join(metastore::State& state, int n) {
  const std::string id = cat("n", n);
  run(state, metastore::RegisterMember{id, id + ":1", id + ":2", "b", {"d1", "d2"}, UnixMillis(1)});
}

metastore::State cluster(bool used) {
  metastore::State state;
  for (int n = 0; n < kNodes; ++n) join(state, n);
  for (int t = 0; t < kTopics; ++t) {
    metastore::CreateTopic c;
    c.name = cat("topic", t);
    c.incarnation = Incarnation(state.applied.value() + 1);
    c.partitions = kPartitions;
    c.visibility_timeout_ms = 1000;
    c.max_in_flight_per_partition = 1;
    c.max_acked_ahead_per_partition = 1;
    run(state, c);
    for (std::uint32_t p = 0; used && p < kPartitions; ++p) {
      const Assignment a = *state.assignment(c.name, PartitionId(p));
      run(state,
          metastore::MarkUsed{c.name, a.incarnation, PartitionId(p), a.owner_node, a.owner_disk});
    }
  }
  return state;
}

// The longest of a few; false if that is too long.
bool measure(const std::string& name, const metastore::State& state) {
  double worst = 0;
  std::size_t wanted = 0;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const MovePlan plan = plan_moves(state);
    worst = std::max(
        worst, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                   .count());
    wanted = plan.wanted;
  }
  const bool good = worst <= kLimitMs;
  std::printf("%-52s %12.2f %-10s <= %.2f  %s (%zu moves wanted)\n", name.c_str(), worst, "ms",
              kLimitMs, good ? "ok" : "MISSED", wanted);
  return good;
}

bool bench() {
  std::printf("%d partitions over %d nodes\n", kTopics * static_cast<int>(kPartitions), kNodes);
  metastore::State state = cluster(true);
  bool good = measure("plan, nothing to do", state);
  join(state, kNodes);
  good = measure("plan, a node has joined", state) && good;
  for (int n = 0; n < 10; ++n) run(state, metastore::SetDraining{cat("n", n), true});
  good = measure("plan, and ten nodes drain", state) && good;
  metastore::State unused = cluster(false);
  run(unused, metastore::SetDraining{"n0", true});
  return measure("plan, a node drains, nothing was ever used", unused) && good;
}

}  // namespace
}  // namespace narad::cluster

int main(int argc, char** argv) {
  const bool check = argc > 1 && std::strcmp(argv[1], "--check") == 0;
  return !narad::cluster::bench() && check ? 1 : 0;
}
