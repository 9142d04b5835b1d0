// The demo: real files through a cluster of three nodes that die in turn, and an account of every
// one of them.
//
//   narad-demo [PATH OF narad] [--files N]
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <sstream>

#include "cmd/narad-demo/book.h"
#include "cmd/narad/e2e/cluster.h"
#include "pkg/async/task_group.h"
#include "pkg/base/text.h"
#include "pkg/client/client.h"
#include "pkg/env/real/runtime.h"
#include "pkg/json/document.h"

namespace narad::demo {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kStatusFile = "/var/lib/dpkg/status";
constexpr std::size_t kWorkers = 16;
constexpr Nanos kRetryPause = milliseconds(20);
constexpr Nanos kPoll = seconds(1);
constexpr Nanos kPatience = seconds(90);
// Of a lease: a message that was on its way to a client when the node died comes back after it.
constexpr Nanos kLease = seconds(5);
constexpr std::size_t kNodes = 3;
constexpr std::size_t kAckTries = 5;

void say(std::string_view what, std::string_view text) {
  std::string column(what);
  column.resize(10, ' ');
  std::cout << "  " << column << text << std::endl;
}

std::string mib(std::uint64_t bytes) { return format_bytes(bytes); }
std::string duration_text(Nanos d) { return format_duration(std::chrono::round<milliseconds>(d)); }
std::uint64_t per_second(std::uint64_t n, Nanos d) {
  double s = std::chrono::duration<double>(d).count();
  return s > 0 ? static_cast<std::uint64_t>(static_cast<double>(n) / s) : 0;
}

std::string slurp(std::string_view path) {
  std::ifstream in{std::string(path), std::ios::binary};
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// What a person would make up once and give to every node.
std::string made_up_secret() {
  std::random_device random;
  std::string text;
  for (int i = 0; i < 4; ++i) text += to_hex16(random());
  return text;
}

// One run. Lives in main()'s frame.
class Demo {
 public:
  Demo(Env& env, e2e::Cluster& cluster, std::string password, const std::vector<Item>& items)
      : env_(env), cluster_(cluster), items_(items), book_(items), done_(env) {
    for (std::size_t i = 0; i < cluster.size(); ++i) {
      clients_.push_back(std::make_unique<Client>(
          env, cat("http://127.0.0.1:", cluster.node(i).port()), "admin", password, pool()));
    }
  }

  Task<int> run() {
    for (const char* topic : {"packages", "files"}) {
      auto created = co_await create(topic);
      if (!created) co_return fail(created.error());
    }
    auto introduced = co_await introduce();
    if (!introduced) co_return fail(introduced.error());
    auto produced = co_await produce();
    if (!produced) co_return fail(produced.error());
    auto consumed = co_await consume();
    if (!consumed) co_return fail(consumed.error());
    co_return report();
  }

 private:
  // Something to be done to the cluster once it is time.
  struct Blow {
    bool (Demo::*time)() const;
    Task<Result<void>> (Demo::*strike)();
  };

  static client::ClientOptions pool() {
    client::ClientOptions options;
    options.pool.idle_max = 2 * kWorkers;
    options.timeout = seconds(10);
    return options;
  }
  static int fail(const Error& error) {
    std::cerr << "narad-demo: " << error.text() << std::endl;
    return 1;
  }
  Client& anyone() { return *clients_[env_.random.next() % clients_.size()]; }
  std::string name(std::size_t node) const { return e2e::Cluster::id(node); }

  // The first user is made a moment after the first node is ready, so it is tried again.
  Task<Result<void>> create(std::string topic) {
    client::NewTopic fresh;
    fresh.name = std::move(topic);
    fresh.partitions = 6;
    fresh.visibility_timeout_ms = std::chrono::duration_cast<milliseconds>(kLease).count();
    const Nanos until = env_.clock.mono() + seconds(20);
    for (;;) {
      auto created = co_await anyone().create_topic(fresh);
      if (created) co_return ok();
      if (env_.clock.mono() > until) co_return created.error();
      co_await sleep_for(env_, kRetryPause);
    }
  }

  // Who leads, as the node `asked` sees it.
  Task<Result<std::size_t>> leader(std::size_t asked) {
    NARAD_CO_TRY(auto answer,
                 co_await clients_[asked]->call(http::Method::get, "/v1/cluster/members"));
    NARAD_CO_TRY(auto document, json::Document::parse(std::move(answer.body), 8));
    auto found = document.root().find("leader");
    for (std::size_t i = 0; found && i < cluster_.size(); ++i) {
      if (found->as_string() == name(i)) co_return i;
    }
    co_return Error(Errc::unavailable, "nobody leads the cluster");
  }
  Task<Result<std::size_t>> leader() {
    const Nanos until = env_.clock.mono() + seconds(20);
    for (;;) {
      for (std::size_t i = 0; i < cluster_.size(); ++i) {
        auto found = co_await leader(i);
        if (found && found.value() == i) co_return i;
      }
      if (env_.clock.mono() > until) {
        co_return Error(Errc::unavailable, "nobody led the cluster for 20 s");
      }
      co_await sleep_for(env_, kRetryPause);
    }
  }

  Task<Result<void>> introduce() {
    NARAD_CO_TRY(const std::size_t first, co_await leader());
    std::map<std::string, int> owned;
    for (const char* topic : {"packages", "files"}) {
      NARAD_CO_TRY(auto info, co_await clients_[first]->topic(topic));
      for (const client::PartitionStats& p : info.stats) ++owned[p.owner_node];
    }
    for (std::size_t i = 0; i < cluster_.size(); ++i) {
      say(i == 0 ? "members" : "",
          cat(name(i), ": pid ", cluster_.node(i).child().pid(),
              ", http://127.0.0.1:", cluster_.node(i).port(), ", owns ", owned[name(i)],
              " of 12 partitions", i == first ? ", leads" : ""));
    }
    co_return ok();
  }

  // Writes metadata through `node` until `ended` and one more write is done; the longest time in
  // which none was.
  Task<void> watch_metadata(std::size_t node, const bool* ended, Nanos* longest) {
    Nanos last = env_.clock.mono();
    for (std::int64_t turn = 0;; ++turn) {
      const bool final = *ended;
      client::TopicChange change;
      change.retention_ms = 86'400'000 + turn % 2;
      auto changed = co_await clients_[node]->change_topic("files", change);
      if (changed) {
        const Nanos now = env_.clock.mono();
        *longest = std::max(*longest, now - last);
        last = now;
        if (final) co_return;
      }
      co_await sleep_for(env_, milliseconds(2));
    }
  }

  // Ends a node in its way, waits until metadata can be written again, and starts it again.
  Task<Result<void>> down_and_up(std::string_view how, std::size_t victim, std::string_view when) {
    e2e::Broker* broker = &cluster_.node(victim);
    const bool killed = how == "kill -9";
    const long old = broker->child().pid();
    auto down = [broker, killed]() -> Result<void> {
      if (killed) {
        broker->kill9();
        return ok();
      }
      auto exit = broker->terminate(seconds(20));
      if (exit && exit->code == 0) return ok();
      return Error(Errc::internal, "a node did not end in order after SIGTERM");
    };
    auto up = [broker]() -> Result<void> {
      if (broker->start()) return ok();
      return Error(Errc::unavailable, cat("a node did not start again:\n", broker->why()));
    };
    bool ended = false;
    Nanos gap{0};
    TaskGroup watch(env_);
    const std::size_t witness = (victim + 1) % cluster_.size();
    bool watched = false;
    watch.spawn("metadata", flagged(watch_metadata(witness, &ended, &gap), &watched));
    auto went = co_await blocking(env_, "end a node", std::move(down));
    ended = true;
    while (!watched) co_await done_.wait_for(milliseconds(2));
    co_await watch.stop();
    NARAD_CO_TRY(std::move(went));
    auto now_leads = co_await leader(witness);
    const Nanos begin = env_.clock.mono();
    auto came = co_await blocking(env_, "start a node", std::move(up));
    NARAD_CO_TRY(std::move(came));
    say(how,
        cat(name(victim), " (pid ", old, "), ", when, ". ",
            now_leads ? cat(name(now_leads.value()), " led then") : std::string("Nobody led"),
            "; no metadata could be written for ", duration_text(gap), ". ", name(victim),
            " was ready again ", duration_text(env_.clock.mono() - begin), " after its new start"));
    co_return ok();
  }
  Task<void> flagged(Task<void> work, bool* flag) {
    co_await std::move(work);
    *flag = true;
    done_.notify_all();
  }

  Task<Result<void>> kill_leader() {
    NARAD_CO_TRY(const std::size_t victim, co_await leader());
    co_return co_await down_and_up("kill -9", victim,
                                   "the leader, with half of the messages accepted");
  }
  // Every node owns partitions: one that does not lead.
  Task<Result<void>> kill_owner() {
    NARAD_CO_TRY(const std::size_t leads, co_await leader());
    co_return co_await down_and_up("kill -9", (leads + 1) % cluster_.size(),
                                   "an owner of partitions, with a third of the messages acked");
  }
  Task<Result<void>> stop_leader() {
    NARAD_CO_TRY(const std::size_t victim, co_await leader());
    co_return co_await down_and_up("SIGTERM", victim,
                                   "the leader, with two thirds of the messages acked");
  }

  Task<void> counted(Task<void> work) {
    co_await std::move(work);
    if (--running_ == 0) done_.notify_all();
  }
  // Runs kWorkers of `worker`, and strikes each blow when it is time.
  Task<Result<void>> under_blows(Task<void> (Demo::*worker)(), std::vector<Blow> blows) {
    running_ = kWorkers;
    TaskGroup group(env_);
    for (std::size_t i = 0; i < kWorkers; ++i) group.spawn("worker", counted((this->*worker)()));
    Result<void> outcome = ok();
    for (std::size_t i = 0; outcome && i < blows.size(); ++i) {
      while (running_ > 0 && !(this->*blows[i].time)()) co_await done_.wait_for(milliseconds(2));
      outcome = co_await (this->*blows[i].strike)();
    }
    while (outcome && running_ > 0) co_await done_.wait();
    co_await group.stop();
    co_return outcome;
  }

  bool half_sent() const { return accepted_ >= items_.size() / 2; }
  bool third_acked() const { return acked_ >= items_.size() / 3; }
  bool two_thirds_acked() const { return acked_ >= items_.size() * 2 / 3; }

  // Sends item after item, each through any node; one that was not answered is sent again through
  // another, since it may not be there.
  Task<void> produce_worker() {
    while (next_ < items_.size()) {
      std::size_t i = next_++;
      client::ProduceOptions options;
      options.key = items_[i].key;
      for (;;) {
        auto sent = co_await anyone().produce(items_[i].topic, items_[i].payload, options);
        book_.sent(i, sent.has_value());
        if (sent) break;
        co_await sleep_for(env_, kRetryPause);
      }
      ++accepted_;
    }
  }
  Task<Result<void>> produce() {
    Nanos begin = env_.clock.mono();
    std::vector<Blow> blows{{&Demo::half_sent, &Demo::kill_leader}};
    NARAD_CO_TRY(co_await under_blows(&Demo::produce_worker, std::move(blows)));
    Nanos took = env_.clock.mono() - begin;
    say("produce",
        cat(accepted_, " messages, ", mib(bytes_of(items_)), " accepted through random nodes in ",
            duration_text(took), " (", per_second(accepted_, took), " msg/s, ",
            mib(per_second(bytes_of(items_), took)), "/s, the kill included)"));
    co_return ok();
  }

  // Through any node; through another if that one died.
  Task<void> ack(std::string topic, std::string handle) {
    for (std::size_t i = 0; i < kAckTries; ++i) {
      auto acked = co_await anyone().ack(topic, handle);
      if (acked) ++acked_;
      if (acked || acked.error().code() == Errc::gone) co_return;
      co_await sleep_for(env_, kRetryPause);
    }
  }
  Task<void> consume_worker() {
    std::string topic = consumers_++ % 2 == 0 ? "packages" : "files";
    client::ConsumeOptions options;
    options.wait = kPoll;
    while (!finished()) {
      auto messages = co_await anyone().consume(topic, options);
      if (!messages) {
        co_await sleep_for(env_, kRetryPause);
        continue;
      }
      for (const client::Received& m : messages.value()) {
        last_delivery_ = env_.clock.mono();
        book_.delivered(m.topic, m.key, m.payload, m.partition.value(), m.offset.value());
        co_await ack(topic, m.receipt_handle);
      }
    }
  }
  // All is there, and a quiet moment has shown that no copy follows; or patience ran out.
  bool finished() const {
    Nanos quiet = env_.clock.mono() - last_delivery_;
    return (book_.all_delivered() && quiet > 2 * kPoll) || quiet > kPatience;
  }
  Task<Result<void>> consume() {
    Nanos begin = env_.clock.mono();
    last_delivery_ = begin;
    std::vector<Blow> blows{{&Demo::third_acked, &Demo::kill_owner},
                            {&Demo::two_thirds_acked, &Demo::stop_leader}};
    NARAD_CO_TRY(co_await under_blows(&Demo::consume_worker, std::move(blows)));
    Nanos took = last_delivery_ - begin;
    say("consume",
        cat(acked_, " messages consumed and acked through random nodes in ", duration_text(took),
            " (", per_second(acked_, took), " msg/s, all of that included)"));
    co_return ok();
  }

  int report() {
    Totals t = book_.totals();
    bool good = t.lost == 0 && t.damaged == 0 && t.delivered == items_.size();
    say("compared", cat(t.delivered, " of ", items_.size(), " messages, ", mib(t.delivered_bytes),
                        t.damaged == 0 ? ": every one byte for byte what was sent" : ""));
    say("duplicate",
        cat(t.duplicates, " deliveries: ", t.duplicates_resent,
            " stored twice, since a node died before its answer and the message was "
            "sent again; ",
            t.duplicates_moved,
            " stored twice, since an owner died before its answer and the message "
            "went to another partition; ",
            t.duplicates_unacked,
            " handed out again, since a node died in the tenth of a second before their ack "
            "was on disk, or with the answer"));
    say("damaged", cat(t.damaged));
    say("lost", cat(t.lost));
    std::cout << (good ? "nothing lost" : "FAILED") << std::endl;
    return good ? 0 : 1;
  }

  Env& env_;
  e2e::Cluster& cluster_;
  const std::vector<Item>& items_;
  Book book_;
  std::vector<std::unique_ptr<Client>> clients_;  // one for each node
  Event done_;
  std::size_t running_ = 0;
  std::size_t next_ = 0;
  std::size_t consumers_ = 0;
  std::uint64_t accepted_ = 0;
  std::uint64_t acked_ = 0;
  Nanos last_delivery_{0};
};

int run(const std::string& binary, std::size_t files) {
  std::vector<Item> items = package_items(slurp(kStatusFile), "packages");
  std::uint64_t text_bytes = bytes_of(items);
  std::size_t packages = items.size();
  std::vector<Item> binaries = binary_items({"/usr/share/doc", "/usr/lib"}, files, "files");
  std::uint64_t binary_bytes = bytes_of(binaries);
  // Mixed, so that the crash meets both kinds.
  std::size_t every = packages / (binaries.size() + 1) + 1;
  for (std::size_t i = 0; i < binaries.size(); ++i) {
    auto at = std::min(items.size(), (i + 1) * every + i);
    items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), std::move(binaries[i]));
  }
  if (items.empty()) {
    std::cerr << "narad-demo: found neither " << kStatusFile << " nor binary files" << std::endl;
    return 1;
  }
  std::cout << "narad demo: real files through three nodes that are killed and stopped in turn"
            << std::endl;
  say("input", cat(packages, " package descriptions (", mib(text_bytes), ", text), ",
                   items.size() - packages, " binary files (", mib(binary_bytes), ")"));
  const std::string password = made_up_secret();
  e2e::ClusterOptions cluster_options;
  cluster_options.nodes = kNodes;
  cluster_options.testing = false;
  cluster_options.binary = binary;
  cluster_options.env["NARAD_SECURITY_ENABLED"] = "true";
  cluster_options.env["NARAD_ADMIN_PASSWORD"] = password;
  cluster_options.env["NARAD_CLUSTER_SECRET"] = made_up_secret();
  e2e::Cluster cluster(std::move(cluster_options));
  const auto begin = e2e::Clock::now();
  if (!cluster.start()) {
    std::cerr << "narad-demo: the nodes did not start:\n" << cluster.why() << std::endl;
    return 1;
  }
  say("cluster", cat("three nodes with one secret, formed and ready after ",
                     duration_text(e2e::Clock::now() - begin), ", data in ", cluster.directory()));
  RuntimeOptions options;
  options.log.level = LogLevel::error;
  options.log.fd = 2;
  // Outlives the nodes: a restarted one is the child of a thread of the runtime.
  Runtime runtime(options);
  Demo demo(runtime.env(), cluster, password, items);
  int status = runtime.run(demo.run());
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    auto exit = cluster.node(i).terminate(seconds(20));
    if (exit && exit->code == 0) continue;
    std::cerr << "narad-demo: node " << i << " did not end in order after SIGTERM\n"
              << cluster.node(i).child().out() << std::endl;
    return 1;
  }
  return status;
}

}  // namespace
}  // namespace narad::demo

int main(int argc, char** argv) {
  // The binary of the same build.
  std::string binary =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../narad/narad";
  std::size_t files = 300;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--files" && i + 1 < argc) {
      files = narad::parse_number<std::size_t>(argv[++i]).value_or(files);
    } else if (!word.starts_with('-')) {
      binary = word;
    } else {
      std::cerr << "usage: narad-demo [PATH OF narad] [--files N]" << std::endl;
      return 2;
    }
  }
  return narad::demo::run(binary, files);
}
