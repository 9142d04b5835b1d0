#include "internal/simtest/knobs.h"

#include <algorithm>
#include <iterator>

namespace narad::simtest {

using sim::Rng;
using namespace std::chrono_literals;

std::string host_of(int index) { return cat("n", index); }

namespace {

void set_nodes(Knobs& k, int nodes) {
  k.nodes = nodes;
  k.config.cluster.peers.clear();
  k.config.cluster.initial_members.clear();
  for (int i = 0; i < nodes; ++i) {
    k.config.cluster.peers.push_back({host_of(i), cat(host_of(i), ":7943")});
    k.config.cluster.initial_members.push_back(host_of(i));
  }
}

// What differs when several nodes form a cluster. From a stream of its own: a lone node of the same
// seed draws the same knobs.
void draw_cluster(const sim::Sim& sim, Knobs& k) {
  Rng r = sim.stream("cluster knobs");
  const int nodes = r.below(3) == 0 ? 5 : r.below(4) == 0 ? 4 : 3;
  // At 50 ms the heartbeats alone cost more than the work (decisions.md).
  k.config.timing.raft_tick = std::chrono::milliseconds(r.below(10) == 0 ? 50 : 500);
  k.config.cluster.addr = ":7943";
  k.config.cluster.secret = "the secret of the simulation";
  set_nodes(k, nodes);
}

// Moves need minutes by default, a run has one: everything they wait for is shorter. From a stream
// of its own again.
void draw_moves(const sim::Sim& sim, Knobs& k) {
  Rng r = sim.stream("move knobs");
  k.moves = true;
  Config::Timing& timing = k.config.timing;
  timing.dead_after = r.below(4) == 0 ? Nanos(12s) : Nanos(6s);
  timing.heartbeat = timing.dead_after / 6;
  timing.move_tick = r.below(2) == 0 ? Nanos(200ms) : Nanos(1s);
  timing.freeze_ttl = r.below(3) == 0 ? Nanos(8s) : Nanos(2s);
  // Slower ones (2,000 a second, seed 11) get there too, but not within the time that a run waits.
  const std::int64_t rates[] = {0, 0, 20'000, 100'000};
  k.config.moves.max_bytes_per_second = rates[r.below(std::size(rates))];
  k.brakes = sim.stream("brake knobs").below(3) == 0;
}

}  // namespace

Knobs draw_knobs(const sim::Sim& sim, bool cluster, bool moves) {
  Rng r = sim.stream("knobs");
  Knobs k;
  const auto pick = [&](std::initializer_list<std::uint64_t> from) {
    return *(from.begin() + static_cast<std::ptrdiff_t>(r.below(from.size())));
  };
  k.log.segment_bytes = pick({4096, 8192, 65536, 1u << 20});
  k.log.frame_raw_bytes = static_cast<std::size_t>(pick({2048, 16384, 1u << 20}));
  if (r.below(4) == 0) k.log.compression.codec = seglog::Codec::zstd;
  k.ingress.segment_bytes_max = pick({8192, 65536, 1u << 20});
  k.ingress.preallocate_bytes = pick({0, 4096, 65536});
  k.ingress.group_bytes_max = pick({4096, 65536, 1u << 20});
  k.ingress.memory_bytes_max = pick({4096, 65536, 8u << 20});
  k.dispatch.plan.batch_records_max = static_cast<std::size_t>(pick({1, 7, 100, 10000}));
  k.dispatch.plan.batch_bytes_max = pick({1000, 20000, 1u << 20});
  k.dispatch.plan.loaded_bytes_max = pick({10000, 1u << 20});
  k.reroutes = r.below(5) == 0;
  k.config.timing.dispatch_grace = k.reroutes ? Nanos(3s) : Nanos(1h);
  k.config.timing.dispatch_retry = std::chrono::milliseconds(pick({50, 300, 1000}));
  k.config.timing.ingress_retry = std::chrono::milliseconds(pick({100, 1000}));
  k.config.timing.retention_check = std::chrono::seconds(pick({3, 10, 60}));
  k.config.timing.idle_check = std::chrono::seconds(pick({2, 10, 60}));
  k.config.storage.idle_log_eviction_ms = static_cast<std::int64_t>(pick({0, 1500, 60000}));
  k.config.storage.data_dir = "/data";
  k.producers = static_cast<std::uint32_t>(r.range(1, 4));
  k.consumers = static_cast<std::uint32_t>(r.range(1, 3));
  k.message_bytes_max = static_cast<std::size_t>(pick({20, 200, 3000}));
  if (cluster) draw_cluster(sim, k);
  if (moves) draw_moves(sim, k);
  k.text =
      cat("segment ", k.log.segment_bytes, ", frame ", k.log.frame_raw_bytes, ", wal segment ",
          k.ingress.segment_bytes_max, ", batch ", k.dispatch.plan.batch_records_max, ", message ",
          k.message_bytes_max, ", producers ", k.producers, ", consumers ", k.consumers,
          k.reroutes ? ", reroutes" : "", k.nodes > 1 ? cat(", nodes ", k.nodes) : "",
          k.moves ? ", moves" : "", k.brakes ? ", brakes" : "");
  return k;
}

Knobs draw_load_knobs(const sim::Sim& sim) {
  Knobs k = draw_knobs(sim, true, true);
  Rng r = sim.stream("load knobs");
  set_nodes(k, 4);
  k.under_load = true;
  Config::Timing& timing = k.config.timing;
  // A dead owner is replaced after five times dead_after, by clocks that may be slow: within a run.
  timing.raft_tick = 100ms;
  timing.dead_after = 3s;
  timing.heartbeat = timing.dead_after / 6;
  timing.move_tick = 200ms;
  timing.freeze_ttl = r.below(3) == 0 ? Nanos(2s) : Nanos(1s);  // shorter than a lease, or longer
  timing.dispatch_grace = 1h;
  timing.dispatch_retry = r.below(2) == 0 ? Nanos(50ms) : Nanos(300ms);
  k.reroutes = false;
  k.dispatch.plan.batch_records_max = std::max<std::size_t>(7, k.dispatch.plan.batch_records_max);
  k.producers = static_cast<std::uint32_t>(r.range(1, 2));
  k.consumers = 1;
  k.message_bytes_max = r.below(2) == 0 ? 20 : 200;
  k.slow_disk_max = r.below(2) == 0 ? Nanos(0) : Nanos(40ms);
  k.text = cat("under load; segment ", k.log.segment_bytes, ", batch ",
               k.dispatch.plan.batch_records_max, ", message ", k.message_bytes_max, ", producers ",
               k.producers, ", freeze ", format_duration(timing.freeze_ttl), ", rate ",
               k.config.moves.max_bytes_per_second, ", slow disks ",
               format_duration(k.slow_disk_max), k.brakes ? ", brakes" : "");
  return k;
}

Knobs walk_knobs(const sim::Sim& sim) {
  Knobs k = draw_load_knobs(sim);
  set_nodes(k, 3);
  k.log.segment_bytes = 4096;
  k.log.frame_raw_bytes = 2048;
  k.config.timing.raft_tick = 200ms;
  k.config.timing.freeze_ttl = 1s;
  k.config.timing.dispatch_retry = 300ms;
  k.config.moves.max_bytes_per_second = 0;
  k.brakes = false;
  k.producers = 1;
  k.message_bytes_max = 200;
  k.slow_disk_max = Nanos(0);
  k.text = "one move, step by step";
  return k;
}

Knobs script_knobs() {
  Knobs k;
  k.log.segment_bytes = 4096;
  k.log.frame_raw_bytes = 2048;
  k.ingress.segment_bytes_max = 8192;
  k.ingress.preallocate_bytes = 4096;
  k.config.timing.dispatch_grace = Nanos(1h);
  k.config.timing.retention_check = Nanos(1s);
  k.config.storage.data_dir = "/data";
  k.text = "scripted";
  return k;
}

}  // namespace narad::simtest
