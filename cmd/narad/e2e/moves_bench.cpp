// How fast partitions move between real nodes on one machine, as ratios to what the same machine
// does without them in the same run: copying, freezes, what other partitions feel of it, the
// throttle, memory, and how never-used partitions leave a node. With --check, exits 1 where a limit
// is missed.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/json.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "cmd/narad/e2e/cluster.h"
#include "cmd/narad/e2e/figures.h"
#include "pkg/base/bytes.h"
#include "pkg/base/text.h"

namespace narad::e2e {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

struct Trouble {
  std::string what;
};
[[noreturn]] void fail(const std::string& what) { throw Trouble{what}; }

struct Sizes {
  std::uint64_t copy_mib = 1024;
  std::size_t freezes = 60;
};

Answer must(std::optional<Answer> answer, int status, const std::string& what) {
  if (!answer) fail(what + ": no answer");
  if (answer->status != status) fail(cat(what, ": ", answer->status, " ", answer->body));
  return std::move(*answer);
}

// ---- the cluster, as a person sees it ----------------------------------------------------------

// Reads what the nodes print, so that none of them waits for somebody to read it.
void drain_output(Cluster& cluster) {
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    cluster.node(i).child().out();
    cluster.node(i).child().err();
  }
}

void begin(Cluster& cluster) {
  if (!cluster.start()) fail("the cluster does not start: " + cluster.why());
}

void create(Cluster& cluster, const std::string& topic, int partitions) {
  Http http(cluster.node(0).port());
  must(http.post("/v1/topics", cat("{\"name\":\"", topic, "\",\"partitions\":", partitions, "}")),
       201, "create");
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    if (!soon([&] { return knows_topic(cluster.node(i), topic); })) fail("a topic is not known");
  }
}

std::size_t index_of(const Cluster& cluster, std::string_view id) {
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    if (Cluster::id(i) == id) return i;
  }
  fail(cat("no node ", id));
}

// Who owns each partition, as node `asked` knows it.
std::vector<std::size_t> owners(Cluster& cluster, const std::string& topic, std::size_t asked = 0) {
  Http http(cluster.node(asked).port());
  const json::value body = json::parse(must(http.get("/v1/topics/" + topic), 200, "describe").body);
  std::vector<std::size_t> out;
  for (const auto& stat : body.at("partition_stats").as_array()) {
    out.push_back(index_of(cluster, stat.at("owner_node").as_string()));
  }
  return out;
}

// Orders a move; answers its id.
std::int64_t order(Http& http, const std::string& topic, std::size_t partition, std::size_t to) {
  std::optional<Answer> answer;
  // Without a leader for a moment it is refused.
  soon([&] {
    answer =
        http.post("/v1/cluster/moves", cat("{\"topic\":\"", topic, "\",\"partition\":", partition,
                                           ",\"to\":\"", Cluster::id(to), "\"}"));
    return answer && answer->status == 202;
  });
  return json::parse(must(std::move(answer), 202, "order").body).at("id").as_int64();
}

bool moved(Http& http, std::int64_t id) {
  auto answer = http.get(cat("/v1/cluster/moves/", id));
  if (!answer || answer->status != 200) return false;
  const json::value body = json::parse(answer->body);
  const json::value* outcome = body.as_object().if_contains("outcome");
  if (outcome == nullptr || outcome->as_string() == "running") return false;
  if (outcome->as_string() != "moved") fail("a move did not end as it should: " + answer->body);
  return true;
}

void await_moved(Cluster& cluster, Http& http, std::int64_t id, Duration limit) {
  const bool done = soon(
      [&] {
        drain_output(cluster);
        return moved(http, id);
      },
      limit);
  if (!done) fail(cat("move ", id, " does not end"));
}

// ---- load --------------------------------------------------------------------------------------

const Http::Headers kBatch{{"Content-Type", "application/vnd.narad.batch"}};

// So many records of so many bytes that do not compress.
std::string batch_of(std::size_t records, std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes out;
  ByteWriter w(out);
  w.bytes(as_bytes("NRB1"));
  w.u32(static_cast<std::uint32_t>(records));
  for (std::size_t r = 0; r < records; ++r) {
    w.u32(0);
    w.u32(static_cast<std::uint32_t>(bytes));
    std::string value(bytes, '\0');
    for (char& c : value) c = static_cast<char>(random());
    w.bytes(as_bytes(value));
  }
  return to_text(out);
}

void await_handed_over(Cluster& cluster, const std::string& topic, std::int64_t records) {
  const bool there = soon(
      [&] {
        drain_output(cluster);
        std::int64_t sum = 0;
        for (const auto& [p, hwm] : high_watermarks(cluster.node(0).port(), topic)) sum += hwm;
        return sum >= records;
      },
      600s);
  if (!there) fail("what was produced does not arrive in " + topic);
}

// Puts `mib` into a topic through the node, and waits until its partitions have it.
void put(Cluster& cluster, const std::string& topic, std::uint64_t mib, std::size_t through) {
  Http http(cluster.node(through).port());
  constexpr std::size_t kRecords = 240;  // of 64 KiB: 15 MiB
  const std::string batch = batch_of(kRecords, 64u << 10, 7);
  std::int64_t records = 0;
  for (std::uint64_t done = 0; done < mib; done += 15) {
    must(http.request("POST", cat("/v1/topics/", topic, "/produce:batch"), batch, kBatch), 202,
         "produce");
    records += kRecords;
    // Not faster than it is handed over, so that what waits in the log stays small.
    if (done % 240 == 0) await_handed_over(cluster, topic, records - 16 * 240);
  }
  await_handed_over(cluster, topic, records);
}

// Produces so many records a second of 100 bytes into one topic, in batches, until it goes.
class Steady {
 public:
  Steady(std::uint16_t port, std::string topic, std::size_t per_second)
      : thread_(
            [this, port, topic = std::move(topic), per_second] { run(port, topic, per_second); }) {}
  ~Steady() {
    stop_ = true;
    thread_.join();
  }
  std::int64_t produced() const { return produced_; }

 private:
  void run(std::uint16_t port, const std::string& topic, std::size_t per_second) {
    Http http(port);
    constexpr std::size_t kRecords = 50;
    const std::string batch = batch_of(kRecords, 100, 11);
    const std::string target = cat("/v1/topics/", topic, "/produce:batch");
    const auto step = std::chrono::nanoseconds(1'000'000'000 * kRecords / per_second);
    for (auto next = Clock::now(); !stop_; next += step) {
      std::this_thread::sleep_until(next);
      auto answer = http.request("POST", target, batch, kBatch);
      if (answer && answer->status == 202) produced_ += kRecords;
    }
  }
  std::atomic<bool> stop_{false};
  std::atomic<std::int64_t> produced_{0};
  std::thread thread_;
};

// ---- copying -----------------------------------------------------------------------------------

std::vector<std::filesystem::path> segments_of(Cluster& cluster, std::size_t node,
                                               const std::string& topic, std::size_t partition) {
  std::vector<std::filesystem::path> out;
  const std::string name = cat("p0000", partition);
  const auto directory =
      std::filesystem::path(cluster.directory()) / Cluster::id(node) / "topics" / topic / name;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".log") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::uint64_t size_of(const std::vector<std::filesystem::path>& files) {
  std::uint64_t sum = 0;
  for (const auto& file : files) sum += std::filesystem::file_size(file);
  return sum;
}

constexpr std::size_t kBlock = 1u << 20;

bool write_fully(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, data, size);
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

void send_files(const std::vector<std::filesystem::path>& files, int to) {
  std::string block(kBlock, '\0');
  for (const auto& file : files) {
    const int fd = ::open(file.c_str(), O_RDONLY);
    for (ssize_t n; (n = ::read(fd, block.data(), block.size())) > 0;) {
      if (!write_fully(to, block.data(), static_cast<std::size_t>(n))) std::abort();
    }
    ::close(fd);
  }
  ::shutdown(to, SHUT_WR);
}

// Seconds for the bytes of those files through a pair of sockets into one new file, synced: what no
// copy can beat by much.
double plain_copy(const std::vector<std::filesystem::path>& files, const std::string& to) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) std::abort();
  const auto start = Clock::now();
  std::thread sender([&] { send_files(files, pair[0]); });
  const int out = ::open(to.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  std::string block(kBlock, '\0');
  for (ssize_t n; (n = ::read(pair[1], block.data(), block.size())) > 0;) {
    if (!write_fully(out, block.data(), static_cast<std::size_t>(n))) std::abort();
  }
  if (::fsync(out) != 0) std::abort();
  const double seconds = seconds_since(start);
  sender.join();
  ::close(out);
  ::close(pair[0]);
  ::close(pair[1]);
  std::filesystem::remove(to);
  return seconds;
}

// From here on VmHWM is the most from here on.
void forget_peak(pid_t pid) { std::ofstream(cat("/proc/", pid, "/clear_refs")) << 5; }
double peak_mib(pid_t pid) {
  std::ifstream in(cat("/proc/", pid, "/status"));
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("VmHWM:")) return std::atof(line.c_str() + 6) / 1024;
  }
  fail("a process without VmHWM");
}

struct Copied {
  double seconds = 0;
  double source_mib = 0, destination_mib = 0;  // over idle
};
// Orders the move, and waits for its end.
Copied copy_once(Cluster& cluster, std::size_t from, std::size_t to) {
  Copied out;
  const pid_t pids[2] = {cluster.node(from).child().pid(), cluster.node(to).child().pid()};
  const double idle[2] = {usage(pids[0]).rss_mib, usage(pids[1]).rss_mib};
  for (const pid_t pid : pids) forget_peak(pid);
  Http http(cluster.node(to).port());
  const auto start = Clock::now();
  await_moved(cluster, http, order(http, "big", 0, to), 600s);
  out.seconds = seconds_since(start);
  out.source_mib = peak_mib(pids[0]) - idle[0];
  out.destination_mib = peak_mib(pids[1]) - idle[1];
  return out;
}

// One that has done nothing yet: memory is measured over that.
void restart(Cluster& cluster) {
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    if (!cluster.node(i).terminate(30s)) fail("a node does not end");
  }
  begin(cluster);
  if (!cluster.leader()) fail("nobody leads");
}

void copying(const Sizes& sizes) {
  Cluster cluster(3);
  begin(cluster);
  create(cluster, "big", 1);
  const std::size_t from = owners(cluster, "big").at(0);
  put(cluster, "big", sizes.copy_mib, from);
  restart(cluster);
  std::vector<double> ratios;
  double memory[2] = {0, 0};
  std::size_t at = from;
  const std::string plain = cluster.directory() + "/plain";
  for (int round = 0; round < 3; ++round) {
    const auto files = segments_of(cluster, at, "big", 0);
    const double mib = static_cast<double>(size_of(files)) / (1 << 20);
    if (round == 0) state("partition", mib, "MiB");
    ::sync();
    const double before = plain_copy(files, plain);
    ::sync();
    const std::size_t to = (at + 1) % cluster.size();
    const Copied copied = copy_once(cluster, at, to);
    ::sync();
    const double after = plain_copy(segments_of(cluster, to, "big", 0), plain);
    const double rate = mib / copied.seconds;
    state("  copied and synced through sockets", 2 * mib / (before + after), "MiB/s");
    state("  moved", rate, "MiB/s");
    ratios.push_back(rate * (before + after) / 2 / mib);
    memory[0] = std::max(memory[0], copied.source_mib);
    memory[1] = std::max(memory[1], copied.destination_mib);
    at = to;
  }
  report("moving / copying through sockets, median of 3", percentile(ratios, 0.5), "x", 0.7);
  report("memory of the source over idle", memory[0], "MiB", 64, true);
  report("memory of the destination over idle", memory[1], "MiB", 64, true);
}

// ---- freezes -----------------------------------------------------------------------------------

// What the node says its last freeze took, after `seen` of them.
std::vector<double> freezes_said(Broker& node) {
  std::vector<double> out;
  const std::string text = node.child().err() + node.child().out();
  const std::string field = "\"took_no_commits_us\":";
  for (std::size_t at = 0; (at = text.find(field, at)) != std::string::npos;) {
    at += field.size();
    out.push_back(std::atof(text.c_str() + at) / 1000);
  }
  return out;
}

void freezes_on(const std::string& where, const Sizes& sizes, double p50_max, double p99_max) {
  Cluster cluster(3);
  begin(cluster);
  create(cluster, "flow", 1);
  const std::size_t from = owners(cluster, "flow").at(0);
  put(cluster, "flow", 90, from);
  const double sync_ms = sync_baseline(cluster.directory()) / 1000;
  std::vector<double> took;
  {
    Steady steady(cluster.node(from).port(), "flow", 5000);
    const std::int64_t before = steady.produced();
    const auto start = Clock::now();
    std::size_t at = from;
    for (std::size_t n = 0; n < sizes.freezes; ++n) {
      const std::size_t to = (at + 1) % cluster.size();
      Http http(cluster.node(to).port());
      await_moved(cluster, http, order(http, "flow", 0, to), 60s);
      at = to;
    }
    const double rate = static_cast<double>(steady.produced() - before) / seconds_since(start);
    state(cat("records a second into the partition, ", where), rate, "");
  }
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    for (const double ms : freezes_said(cluster.node(i))) took.push_back(ms);
  }
  if (took.size() < sizes.freezes) fail(cat("only ", took.size(), " freezes were seen"));
  state(cat("  an fdatasync there, p50, ", where), sync_ms, "ms");
  report(cat("freeze, p50, ", where), percentile(took, 0.5), "ms", p50_max, true);
  report(cat("freeze, p99, ", where), percentile(took, 0.99), "ms", p99_max, true);
  state("  in syncs of that disk, p50", percentile(took, 0.5) / std::max(sync_ms, 1e-3), "");
}

void freezing(const Sizes& sizes) { freezes_on("disk", sizes, 5, 20); }
void freezing_in_memory(const Sizes& sizes) {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/dev/shm", 1);
  freezes_on("memory", sizes, 5, 20);
  if (kept.empty()) {
    ::unsetenv("TMPDIR");
  } else {
    ::setenv("TMPDIR", kept.c_str(), 1);
  }
}

// ---- others ------------------------------------------------------------------------------------

// How long single calls take, through all nodes in turn, while `going` says so.
std::vector<double> produce_while(Cluster& cluster, const std::function<bool()>& going) {
  std::vector<std::unique_ptr<Http>> clients;
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    clients.push_back(std::make_unique<Http>(cluster.node(i).port()));
  }
  const std::string body(256, 'x');
  std::vector<double> took;
  auto next = Clock::now();
  for (std::size_t n = 0; going(); ++n) {
    next += 3ms;
    std::this_thread::sleep_until(next);
    const auto start = Clock::now();
    auto answer =
        clients[n % clients.size()]->post(cat("/v1/topics/others/produce?key=k", n % 50), body);
    must(std::move(answer), 202, "produce");
    took.push_back(seconds_since(start) * 1000);
    next = std::max(next, Clock::now() - 3ms);
  }
  return took;
}

void others(const Sizes& sizes) {
  Cluster cluster(3);
  begin(cluster);
  create(cluster, "others", 6);
  create(cluster, "loads", 8);
  put(cluster, "loads", sizes.copy_mib, 0);
  produce_while(cluster, [n = 0]() mutable { return n++ < 500; });  // connections, first segments
  const auto for_a_while = [until = Clock::now() + 10s] { return Clock::now() < until; };
  std::vector<double> quiet = produce_while(cluster, for_a_while);

  Http http(cluster.node(0).port());
  const std::vector<std::size_t> home = owners(cluster, "loads");
  std::vector<std::int64_t> ids;
  const auto start = Clock::now();
  for (std::size_t p = 0; p < home.size(); ++p) {
    ids.push_back(order(http, "loads", p, (home[p] + 1) % cluster.size()));
  }
  std::atomic<bool> going{true};
  std::string trouble;
  std::thread watch([&] {
    try {
      for (const std::int64_t id : ids) await_moved(cluster, http, id, 300s);
    } catch (const Trouble& t) {
      trouble = t.what;
    }
    going = false;
  });
  std::vector<double> busy = produce_while(cluster, [&] { return going.load(); });
  watch.join();
  if (!trouble.empty()) fail(trouble);
  state("eight moves took", seconds_since(start), "s");
  state("calls meanwhile", static_cast<double>(busy.size()), "");
  const double before = percentile(quiet, 0.99), during = percentile(busy, 0.99);
  state("produce on other partitions, quiet, p50", percentile(quiet, 0.5), "ms");
  state("produce on other partitions, during moves, p50", percentile(busy, 0.5), "ms");
  state("produce on other partitions, quiet, p99", before, "ms");
  state("produce on other partitions, during moves, p99", during, "ms");
  report("  during eight moves / quiet, p99", during / before, "x", 2, true);
}

// ---- throttle ----------------------------------------------------------------------------------

// Bytes that have arrived of all moves that copy; nothing while fewer than `count` do.
std::optional<double> arrived(Http& http, std::size_t count) {
  auto answer = http.get("/v1/cluster/moves?detail=1");
  if (!answer || answer->status != 200) return std::nullopt;
  const json::value body = json::parse(answer->body);
  double sum = 0;
  std::size_t found = 0;
  for (const auto& move : body.at("moves").as_array()) {
    const json::value* report = move.as_object().if_contains("report");
    if (report == nullptr || report->at("phase").as_string() != "copying") continue;
    ++found;
    sum += report->at("bytes_done").to_number<double>();
  }
  if (found < count) return std::nullopt;
  return sum;
}

// Two moves at once to one node, which has a budget for both together.
void throttled() {
  constexpr double kRate = 16 << 20;
  ClusterOptions options;
  options.env["NARAD_MOVES_MAX_BYTES_PER_SECOND"] = cat(static_cast<std::uint64_t>(kRate));
  Cluster cluster(std::move(options));
  begin(cluster);
  create(cluster, "loads", 2);
  put(cluster, "loads", 180, 0);
  const std::vector<std::size_t> home = owners(cluster, "loads");
  std::size_t to = 0;
  while (std::find(home.begin(), home.end(), to) != home.end()) ++to;
  Http http(cluster.node(to).port());
  std::vector<std::int64_t> ids;
  for (std::size_t p = 0; p < home.size(); ++p) ids.push_back(order(http, "loads", p, to));
  std::vector<std::pair<double, double>> seen;  // seconds and bytes, whenever more were there
  const auto start = Clock::now();
  const bool done = soon(
      [&] {
        drain_output(cluster);
        const auto bytes = arrived(http, home.size());
        if (bytes && *bytes > 0 && (seen.empty() || *bytes > seen.back().second)) {
          seen.emplace_back(seconds_since(start), *bytes);
        }
        while (!ids.empty() && moved(http, ids.back())) ids.pop_back();
        return ids.empty();
      },
      120s);
  if (!done || seen.size() < 10) fail("the throttled moves do not end");
  // Whole chunks arrive: from one arrival to another.
  const auto& first = seen.front();
  const auto& last = seen.back();
  const double rate = (last.second - first.second) / (last.first - first.first);
  state("throttled moves took", seconds_since(start), "s");
  state("  bytes a second", rate / (1 << 20), "MiB/s");
  report("throttle, off by", std::abs(rate / kRate - 1) * 100, "%", 5, true);
}

// ---- empty partitions --------------------------------------------------------------------------

std::map<std::string, int> owned(Cluster& cluster, std::size_t asked) {
  std::map<std::string, int> out;
  auto answer = Http(cluster.node(asked).port()).get("/v1/cluster/members");
  if (!answer || answer->status != 200) return out;
  const json::value body = json::parse(answer->body);
  for (const auto& member : body.at("members").as_array()) {
    out[std::string(member.at("id").as_string())] = member.at("owned_partitions").to_number<int>();
  }
  return out;
}

void draining() {
  Cluster cluster(4);
  begin(cluster);
  Http http(cluster.node(0).port());
  for (int t = 0; t < 120; ++t) {
    must(http.post("/v1/topics", cat("{\"name\":\"t", t, "\",\"partitions\":100}")), 201, "create");
    drain_output(cluster);
  }
  const auto leader = cluster.leader();
  if (!leader) fail("nobody leads");
  const std::size_t leaving = (*leader + 1) % 4, witness = (leaving + 1) % 4;
  const std::string id = Cluster::id(leaving);
  state("never-used partitions on the node that drains", owned(cluster, witness)[id], "");
  Http asked(cluster.node(witness).port());
  const auto start = Clock::now();
  auto drained = asked.post(cat("/v1/cluster/members/", id, "/decommission"));
  if (!drained || drained->status / 100 != 2)
    fail("decommission: " + (drained ? drained->body : ""));
  const auto left = [&] {
    drain_output(cluster);
    const auto now = owned(cluster, witness);
    const auto at = now.find(id);
    return !now.empty() && (at == now.end() || at->second == 0);
  };
  if (!soon(left, 300s)) fail("the node does not drain");
  report("they have left it after", seconds_since(start), "s", 60, true);
  const auto gone = [&] {
    drain_output(cluster);
    const auto now = owned(cluster, witness);
    return !now.empty() && !now.contains(id);
  };
  if (!soon(gone, 120s)) fail("the node does not leave");
  state("the node has left after", seconds_since(start), "s");
}

int bench(bool check, const std::string& only, const Sizes& sizes) {
  const auto wanted = [&](std::string_view part) { return only.empty() || only == part; };
  try {
    if (wanted("copy")) copying(sizes);
    if (wanted("freeze")) freezing(sizes);
    if (wanted("freeze")) freezing_in_memory(sizes);
    if (wanted("others")) others(sizes);
    if (wanted("throttle")) throttled();
    if (wanted("drain")) draining();
  } catch (const Trouble& trouble) {
    std::printf("%s\n", trouble.what.c_str());
    return 2;
  }
  return check && !all_good() ? 1 : 0;
}

}  // namespace
}  // namespace narad::e2e

// moves_bench [--check] [--mib N] [--freezes N] [copy | freeze | others | throttle | drain]
int main(int argc, char** argv) {
  ::setenv("NARAD_BUILD_DIR", "build/release", 0);
  bool check = false;
  std::string only;
  narad::e2e::Sizes sizes;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--check") {
      check = true;
    } else if (word == "--mib" && i + 1 < argc) {
      sizes.copy_mib = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--freezes" && i + 1 < argc) {
      sizes.freezes = std::strtoull(argv[++i], nullptr, 10);
    } else {
      only = word;
    }
  }
  return narad::e2e::bench(check, only, sizes);
}
