// How fast three nodes on one machine are, beside their load generator: what a relay adds, what
// they sustain together, what a write of metadata costs, and how a node with 100,000 partitions in
// its metadata starts. With --check, exits 1 below a threshold.
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "cmd/narad/e2e/cluster.h"
#include "cmd/narad/e2e/figures.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

using namespace std::chrono_literals;

const std::string kBody(256, 'x');

struct Trouble {
  std::string what;
};
[[noreturn]] void fail(const std::string& what) { throw Trouble{what}; }

Answer must(std::optional<Answer> answer, int status, const std::string& what) {
  if (!answer) fail(what + ": no answer");
  if (answer->status != status) fail(cat(what, ": ", answer->status, " ", answer->body));
  return std::move(*answer);
}

std::string text_after(const std::string& body, const std::string& field) {
  const std::string start = cat("\"", field, "\":\"");
  std::size_t at = body.find(start);
  if (at == std::string::npos) fail(cat("no ", field, " in ", body));
  at += start.size();
  return body.substr(at, body.find('"', at) - at);
}

void create(Cluster& cluster, const std::string& topic, int partitions) {
  Http http(cluster.node(0).port());
  must(http.post("/v1/topics", cat("{\"name\":\"", topic, "\",\"partitions\":", partitions,
                                   ",\"max_in_flight_per_partition\":100000}")),
       201, "create");
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    if (!soon([&] { return knows_topic(cluster.node(i), topic); })) fail("a topic is not known");
  }
}

double timed(const std::function<void()>& call) {
  const auto start = Clock::now();
  call();
  return seconds_since(start) * 1e6;
}

// ---- what a follower adds ----------------------------------------------------------------------

void produce_latency(Cluster& cluster, std::size_t leader) {
  create(cluster, "latency", 6);
  Http there(cluster.node(leader).port()), here(cluster.node((leader + 1) % 3).port());
  std::vector<double> at_leader, at_follower;
  for (int n = 0; n < 2500; ++n) {
    const std::string target = cat("/v1/topics/latency/produce?key=k", n % 50);
    const double a = timed([&] { must(there.post(target, kBody), 202, "produce"); });
    const double b = timed([&] { must(here.post(target, kBody), 202, "produce"); });
    if (n < 500) continue;  // partitions and connections are being made
    at_leader.push_back(a);
    at_follower.push_back(b);
  }
  state("produce through the leader, 1 connection, p50", percentile(at_leader, 0.5), "us");
  state("produce through a follower, 1 connection, p50", percentile(at_follower, 0.5), "us");
  report("  follower / leader", percentile(at_follower, 0.5) / percentile(at_leader, 0.5), "x",
         1.15, true);
}

void consume_latency(Cluster& cluster) {
  create(cluster, "relay", 1);
  constexpr int kRounds = 2000;
  {
    Http http(cluster.node(0).port());
    for (int n = 0; n < 2 * kRounds; ++n) {
      must(http.post("/v1/topics/relay/produce?key=a", kBody), 202, "produce");
    }
    if (!await_records(cluster.node(0).port(), "relay", 2 * kRounds, 30s)) fail("no hand-over");
  }
  const std::string owner = text_after(
      must(Http(cluster.node(0).port()).get("/v1/topics/relay"), 200, "topic").body, "owner_node");
  std::size_t local = 0;
  while (Cluster::id(local) != owner) ++local;
  Http there(cluster.node(local).port()), here(cluster.node((local + 1) % 3).port());
  std::vector<double> consumed_local, consumed_relayed, acked_local, acked_relayed;
  const auto one = [](Http& http, std::vector<double>& consumed, std::vector<double>& acked) {
    Answer got;
    consumed.push_back(
        timed([&] { got = must(http.get("/v1/topics/relay/consume?wait=1s"), 200, "consume"); }));
    const std::string target =
        "/v1/topics/relay/ack?receipt_handle=" + url_encode(text_after(got.body, "receipt_handle"));
    acked.push_back(timed([&] { must(http.post(target), 204, "ack"); }));
  };
  for (int n = 0; n < kRounds; ++n) {
    one(there, consumed_local, acked_local);
    one(here, consumed_relayed, acked_relayed);
  }
  state("consume at the owner, 1 connection, p50", percentile(consumed_local, 0.5), "us");
  state("consume relayed, 1 connection, p50", percentile(consumed_relayed, 0.5), "us");
  report("  relayed / local", percentile(consumed_relayed, 0.5) / percentile(consumed_local, 0.5),
         "x", 2, true);
  state("  ack, relayed / local", percentile(acked_relayed, 0.5) / percentile(acked_local, 0.5),
        "x");
}

// ---- what they sustain -------------------------------------------------------------------------

struct Flow {
  std::atomic<std::int64_t> produced{0}, consumed{0}, acked{0}, refused{0};
  std::atomic<bool> stop{false};
};

// A client of every node, used at random.
struct Anyone {
  Anyone(const std::vector<Broker*>& nodes, unsigned seed) : random(seed) {
    for (Broker* node : nodes) clients.push_back(std::make_unique<Http>(node->port()));
  }
  Http& pick() { return *clients[random() % clients.size()]; }
  std::vector<std::unique_ptr<Http>> clients;
  std::minstd_rand random;
};

void produce_some(const std::vector<Broker*>& nodes, Flow& flow, unsigned seed) {
  Anyone anyone(nodes, seed);
  while (!flow.stop) {
    auto answer =
        anyone.pick().post(cat("/v1/topics/flow/produce?key=k", anyone.random() % 1000), kBody);
    ++(answer && answer->status == 202 ? flow.produced : flow.refused);
  }
}

void consume_some(const std::vector<Broker*>& nodes, Flow& flow, unsigned seed) {
  Anyone anyone(nodes, seed);
  while (!flow.stop) {
    auto got = anyone.pick().get("/v1/topics/flow/consume?wait=500ms");
    if (!got || got->status != 200) continue;
    ++flow.consumed;
    auto acked = anyone.pick().post("/v1/topics/flow/ack?receipt_handle=" +
                                    url_encode(text_after(got->body, "receipt_handle")));
    ++(acked && acked->status == 204 ? flow.acked : flow.refused);
  }
}

double cpu_of(const std::vector<Broker*>& nodes) {
  double seconds = 0;
  for (Broker* node : nodes) seconds += usage(node->child().pid()).cpu_seconds;
  return seconds;
}

struct Sustained {
  double produced = 0, acked = 0;  // a second
  double cores = 0;                // busy in the nodes
  double refused = 0;
};
Sustained run_flow(const std::vector<Broker*>& nodes) {
  Flow flow;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 24; ++t) {
    threads.emplace_back([&, t] { produce_some(nodes, flow, t + 1); });
  }
  for (unsigned t = 0; t < 48; ++t) {
    threads.emplace_back([&, t] { consume_some(nodes, flow, 100 + t); });
  }
  std::this_thread::sleep_for(2s);  // until it flows
  const double cpu = cpu_of(nodes);
  const std::int64_t produced = flow.produced, acked = flow.acked;
  const auto start = Clock::now();
  std::this_thread::sleep_for(8s);
  const double seconds = seconds_since(start);
  Sustained result;
  result.produced = static_cast<double>(flow.produced - produced) / seconds;
  result.acked = static_cast<double>(flow.acked - acked) / seconds;
  result.cores = (cpu_of(nodes) - cpu) / seconds;
  flow.stop = true;
  for (auto& thread : threads) thread.join();
  result.refused = static_cast<double>(flow.refused);
  return result;
}

void sustained(Cluster& cluster) {
  create(cluster, "flow", 12);
  std::vector<Broker*> nodes;
  for (std::size_t i = 0; i < cluster.size(); ++i) nodes.push_back(&cluster.node(i));
  const Sustained three = run_flow(nodes);
  for (Broker* node : nodes) node->terminate();
  Broker lone(cluster.directory() + "/lone");
  if (!lone.start()) fail("a lone node does not start: " + lone.why());
  must(Http(lone.port()).post("/v1/topics", R"({"name":"flow","partitions":12})"), 201, "create");
  const Sustained one = run_flow({&lone});
  state("produced through random nodes, single calls", three.produced, "msg/s");
  report("consumed and acked through random nodes meanwhile", three.acked, "msg/s", 10'000);
  state("  cores busy in the three nodes", three.cores, "");
  state("  processor time of the nodes per message", three.cores / three.acked * 1e6, "us");
  report("  refused", three.refused, "", 0, true);
  state("the same with one node alone", one.acked, "msg/s");
  state("  processor time of that node per message", one.cores / one.acked * 1e6, "us");
}

// ---- metadata ----------------------------------------------------------------------------------

// Calls of fsync and fdatasync of a process while `work` runs.
double syncs_during(Cluster& cluster, std::vector<double>& of_node,
                    const std::function<void()>& work) {
  std::vector<std::unique_ptr<Child>> traces;
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    traces.push_back(std::make_unique<Child>(std::vector<std::string>{
        "strace", "-f", "-e", "trace=fsync,fdatasync", "-e", "signal=none", "-o",
        cat(cluster.directory(), "/trace", i), "-p", cat(cluster.node(i).child().pid())}));
  }
  for (auto& trace : traces) {
    if (!soon([&] { return trace->err().find("attached") != std::string::npos; })) {
      fail("strace does not attach: " + trace->err());
    }
  }
  work();
  double most = 0;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    traces[i]->signal(SIGINT);
    traces[i]->wait(10s);
    const std::string text = read_text(cat(cluster.directory(), "/trace", i));
    double count = 0;
    for (std::size_t at = 0; (at = text.find("sync(", at)) != std::string::npos; ++at) ++count;
    of_node.push_back(count);
    most = std::max(most, count);
  }
  return most;
}

void metadata_writes(Cluster& cluster, std::size_t leader) {
  create(cluster, "changed", 3);
  const double sync_us = sync_baseline(cluster.directory());
  Http there(cluster.node(leader).port()), here(cluster.node((leader + 1) % 3).port());
  int turn = 0;
  const auto write = [&](Http& http) {
    must(http.request("PATCH", "/v1/topics/changed",
                      cat("{\"retention_ms\":", 86'400'000 + ++turn, "}")),
         200, "change");
  };
  std::vector<double> at_leader, at_follower;
  for (int n = 0; n < 300; ++n) {
    at_leader.push_back(timed([&] { write(there); }));
    at_follower.push_back(timed([&] { write(here); }));
  }
  state("fdatasync after a 400-byte append, p50", sync_us, "us");
  state("write of metadata through the leader, p50", percentile(at_leader, 0.5), "us");
  state("write of metadata through a follower, p50", percentile(at_follower, 0.5), "us");
  state("  of fdatasync, leader", percentile(at_leader, 0.5) / sync_us, "x");
  std::vector<double> of_node;
  constexpr int kWrites = 200;
  const double most = syncs_during(cluster, of_node, [&] {
    for (int n = 0; n < kWrites; ++n) write(there);
  });
  report("  syncs per write, on the node with the most", most / kWrites, "", 3, true);
}

void many_partitions() {
  Cluster cluster(3);
  if (!cluster.start()) fail("the cluster does not start: " + cluster.why());
  Http http(cluster.node(0).port());
  const Usage empty = usage(cluster.node(1).child().pid());
  const auto begin = Clock::now();
  for (int t = 0; t < 1000; ++t) {
    must(http.post("/v1/topics", cat("{\"name\":\"t", t, "\",\"partitions\":100}")), 201, "create");
  }
  state("1,000 topics of 100 partitions created in", seconds_since(begin), "s");
  if (!soon([&] { return knows_topic(cluster.node(1), "t999"); })) fail("a topic is not known");
  const Usage full = usage(cluster.node(1).child().pid());
  state("100,000 partitions, memory of a node", full.rss_mib, "MiB");
  state("  per partition", (full.rss_mib - empty.rss_mib) * 1024 / 100'000, "KiB");
  for (const bool killed : {false, true}) {
    if (killed) {
      cluster.node(1).kill9();
    } else if (!cluster.node(1).terminate(20s)) {
      fail("a node does not end");
    }
    const auto start = Clock::now();
    if (!cluster.node(1).start()) fail(cluster.node(1).why());
    report(killed ? "  ready again after kill -9" : "  ready again after SIGTERM",
           seconds_since(start), "s", 5, true);
  }
  state("  memory after that start", usage(cluster.node(1).child().pid()).rss_mib, "MiB");
  const std::string target = "/v1/topics/t500/produce?key=a";
  Http again(cluster.node(1).port());
  must(again.post(target, kBody), 202, "produce");
  std::vector<double> took;
  for (int n = 0; n < 1000; ++n) {
    took.push_back(timed([&] { must(again.post(target, kBody), 202, "produce"); }));
  }
  state("  produce beside them, 1 connection, p50", percentile(took, 0.5), "us");
}

// All of it, or the one part that is named.
int bench(bool check, const std::string& only) {
  const auto wanted = [&](std::string_view part) { return only.empty() || only == part; };
  try {
    if (only != "partitions") {
      Cluster cluster(3);
      if (!cluster.start()) fail("the cluster does not start: " + cluster.why());
      const auto leader = cluster.leader();
      if (!leader) fail("nobody leads");
      if (wanted("produce")) produce_latency(cluster, *leader);
      if (wanted("consume")) consume_latency(cluster);
      if (wanted("metadata")) metadata_writes(cluster, *leader);
      if (wanted("sustained")) sustained(cluster);
    }
    if (wanted("partitions")) many_partitions();
  } catch (const Trouble& trouble) {
    std::printf("%s\n", trouble.what.c_str());
    return 2;
  }
  return check && !all_good() ? 1 : 0;
}

}  // namespace
}  // namespace narad::e2e

// cluster_bench [--check] [produce | consume | metadata | sustained | partitions]
int main(int argc, char** argv) {
  ::setenv("NARAD_BUILD_DIR", "build/release", 0);
  bool check = false;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--check") {
      check = true;
    } else {
      only = word;
    }
  }
  return narad::e2e::bench(check, only);
}
