// The demo: real files through a cluster whose nodes die, join and leave meanwhile, and an account
// of every one of them.
//
//   narad-demo [PATH OF narad] [--files N]
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "cmd/narad-demo/traffic.h"
#include "cmd/narad/cluster_view.h"
#include "cmd/narad/e2e/cluster.h"
#include "cmd/narad/moves_view.h"
#include "pkg/base/text.h"
#include "pkg/env/real/runtime.h"

namespace narad::demo {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::string_view kStatusFile = "/var/lib/dpkg/status";
constexpr Nanos kRetryPause = milliseconds(20);
constexpr Nanos kLook = milliseconds(200);
constexpr Nanos kPatience = seconds(180);
constexpr std::size_t kNodes = 3;
constexpr std::size_t kPartitions = 6;  // of each of two topics
constexpr std::size_t kBarWidth = 20;
// Moves get so much of the data a second that a person can watch them.
constexpr std::uint64_t kSecondsOfAll = 40;
constexpr std::uint64_t kRateMin = 256 << 10;

void say(std::string_view what, std::string_view text) {
  std::string column(what);
  column.resize(10, ' ');
  std::cout << "  " << column << text << std::endl;
}

std::string mib(std::uint64_t bytes) { return format_bytes(bytes); }
std::string duration_text(Nanos d) { return format_duration(std::chrono::round<milliseconds>(d)); }
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

using Members = std::vector<cli::MemberView>;

const cli::MemberView* find(const Members& members, const std::string& node) {
  const auto at = std::find_if(members.begin(), members.end(),
                               [&](const cli::MemberView& m) { return m.id == node; });
  return at == members.end() ? nullptr : &*at;
}
std::string leader_of(const Members& members) {
  const auto at = std::find_if(members.begin(), members.end(),
                               [](const cli::MemberView& m) { return m.role == "leader"; });
  return at == members.end() ? std::string() : at->id;
}
std::uint64_t owned_by(const Members& members, const std::string& node) {
  const cli::MemberView* m = find(members, node);
  return m == nullptr ? 0 : m->owned;
}
std::string shares(const Members& members) {
  std::string text;
  for (const cli::MemberView& m : members) {
    text += cat(text.empty() ? "" : ", ", m.id, " ", m.owned);
  }
  return text;
}

// One run. Lives in main()'s frame.
class Demo {
 public:
  Demo(Env& env, e2e::Cluster& cluster, std::string password, const std::vector<Item>& items)
      : env_(env), cluster_(cluster), items_(items), traffic_(env, std::move(password), items) {
    for (std::size_t i = 0; i < cluster.size(); ++i) use(i);
  }

  Task<int> run() {
    auto played = co_await play();
    co_await traffic_.stop();
    if (played) co_return report();
    std::cerr << "narad-demo: " << played.error().text() << std::endl;
    co_return 1;
  }

  // Of nodes that are in the cluster.
  bool has_left(std::size_t node) const { return name(node) == left_; }

 private:
  using Moves = std::vector<cli::MoveView>;

  Task<Result<void>> play() {
    for (const char* topic : {"packages", "files"}) {
      NARAD_CO_TRY(co_await create(topic));
    }
    NARAD_CO_TRY(co_await introduce());
    begin_ = env_.clock.mono();
    traffic_.start();
    co_await until_accepted(items_.size() / 2);
    NARAD_CO_TRY(co_await kill_leader());
    co_await until_accepted(items_.size());
    say("produced", cat("all ", items_.size(), " of them once, after ",
                        duration_text(env_.clock.mono() - begin_),
                        "; from here on the texts again and again, while nodes come and go"));
    NARAD_CO_TRY(co_await join());
    NARAD_CO_TRY(co_await decommission());
    NARAD_CO_TRY(co_await stop_leader());
    const Nanos end = env_.clock.mono();
    co_await traffic_.finish();
    say("load", cat(traffic_.accepted(), " messages accepted and ", traffic_.acked(),
                    " acked through random nodes in ", duration_text(end - begin_)));
    co_return co_await tell_history();
  }

  std::string name(std::size_t node) const { return e2e::Cluster::id(node); }
  std::size_t number(const std::string& node) const {
    for (std::size_t i = 0; i < cluster_.size(); ++i) {
      if (name(i) == node) return i;
    }
    return 0;
  }
  void use(std::size_t node) { traffic_.use(name(node), cluster_.node(node).port()); }
  Task<void> until_accepted(std::uint64_t count) {
    while (traffic_.accepted() < count) (void)co_await traffic_.progress().wait_for(kLook);
  }

  // The first user is made a moment after the first node is ready, so it is tried again.
  Task<Result<void>> create(std::string topic) {
    client::NewTopic fresh;
    fresh.name = std::move(topic);
    fresh.partitions = kPartitions;
    fresh.visibility_timeout_ms = std::chrono::duration_cast<milliseconds>(kLease).count();
    const Nanos until = env_.clock.mono() + seconds(20);
    for (;;) {
      auto created = co_await traffic_.anyone().create_topic(fresh);
      if (created) co_return ok();
      if (env_.clock.mono() > until) co_return created.error();
      co_await sleep_for(env_, kRetryPause);
    }
  }

  // ---- what is asked of nodes

  Task<Result<Members>> members_by(std::string node) {
    NARAD_CO_TRY(auto answer,
                 co_await traffic_.client(node).call(http::Method::get, "/v1/cluster/members"));
    co_return cli::read_members(std::move(answer.body));
  }
  // As the leader sees them.
  Task<Result<Members>> members() {
    const Nanos until = env_.clock.mono() + seconds(20);
    for (;;) {
      for (const std::string& node : traffic_.nodes()) {
        auto seen = co_await members_by(node);
        if (seen && leader_of(seen.value()) == node) co_return seen;
      }
      if (env_.clock.mono() > until) {
        co_return Error(Errc::unavailable, "nobody led the cluster for 20 s");
      }
      co_await sleep_for(env_, kRetryPause);
    }
  }
  Task<Result<cli::MovesView>> moves() {
    auto answer = co_await traffic_.anyone().call(
        http::Method::get, "/v1/cluster/moves?detail=1&history=1&limit=1000");
    if (!answer) co_return answer.error();
    co_return cli::read_moves(std::move(answer.value().body));
  }

  Task<Result<void>> introduce() {
    NARAD_CO_TRY(const Members members, co_await this->members());
    for (std::size_t i = 0; i < cluster_.size(); ++i) {
      say(i == 0 ? "members" : "",
          cat(name(i), ": pid ", cluster_.node(i).child().pid(), ", http://127.0.0.1:",
              cluster_.node(i).port(), ", owns ", owned_by(members, name(i)), " of ",
              2 * kPartitions, " partitions", name(i) == leader_of(members) ? ", leads" : ""));
    }
    co_return ok();
  }

  // ---- what is done to them

  // Ends a node in its way, and starts it again.
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
    (void)traffic_.take_longest_gap();
    auto went = co_await blocking(env_, "end a node", std::move(down));
    NARAD_CO_TRY(std::move(went));
    const Nanos begin = env_.clock.mono();
    auto came = co_await blocking(env_, "start a node", std::move(up));
    NARAD_CO_TRY(std::move(came));
    const Nanos ready = env_.clock.mono() - begin;
    NARAD_CO_TRY(const Members members, co_await this->members());
    say(how, cat(name(victim), " (pid ", old, "), ", when, ". ", leader_of(members),
                 " leads; the longest time without an accepted message was ",
                 duration_text(traffic_.take_longest_gap()), ". ", name(victim),
                 " was ready again ", duration_text(ready), " after its new start"));
    co_return ok();
  }
  Task<Result<void>> kill_leader() {
    NARAD_CO_TRY(const Members members, co_await this->members());
    co_return co_await down_and_up("kill -9", number(leader_of(members)),
                                   "the leader, with half of the messages accepted");
  }
  Task<Result<void>> stop_leader() {
    NARAD_CO_TRY(const Members members, co_await this->members());
    co_return co_await down_and_up("SIGTERM", number(leader_of(members)), "the leader, once more");
  }

  // A node joins and gets its share; a source dies in the middle of its first copy.
  Task<Result<void>> join() {
    const std::size_t fresh = cluster_.size();
    (void)traffic_.take_longest_gap();
    auto add = [this]() -> Result<void> {
      if (cluster_.add()) return ok();
      return Error(Errc::unavailable, cat("a node did not join:\n", cluster_.why()));
    };
    const Nanos begin = env_.clock.mono();
    auto added = co_await blocking(env_, "add a node", std::move(add));
    NARAD_CO_TRY(std::move(added));
    use(fresh);
    say("join",
        cat(name(fresh), " is a member and ready after ", duration_text(env_.clock.mono() - begin),
            ": its share of the partitions follows"));
    may_kill_ = true;
    const auto even = [](const Members& s) {
      std::uint64_t least = 1'000'000, most = 0;
      for (const cli::MemberView& m : s) {
        least = std::min(least, m.owned);
        most = std::max(most, m.owned);
      }
      return s.size() == kNodes + 1 && most - least <= 1;
    };
    NARAD_CO_TRY(const Members members, co_await watch(even, "the new node did not get its share"));
    say("even", cat("partitions: ", shares(members), "; ", duration_text(env_.clock.mono() - begin),
                    " after its start. The longest time without an accepted message was ",
                    duration_text(traffic_.take_longest_gap())));
    co_return ok();
  }

  // A node that does not lead gives all away and leaves.
  Task<Result<void>> decommission() {
    NARAD_CO_TRY(const Members before, co_await this->members());
    std::string leaving;
    for (const cli::MemberView& m : before) {
      if (m.role != "leader" && number(m.id) < kNodes) leaving = m.id;
    }
    const Nanos begin = env_.clock.mono();
    (void)traffic_.take_longest_gap();
    NARAD_CO_TRY(
        co_await traffic_.client(leader_of(before))
            .call(http::Method::post, cat("/v1/cluster/members/", leaving, "/decommission")));
    say("drain", cat(leaving, " is to leave, and owns ", owned_by(before, leaving), " partitions"));
    traffic_.leave(leaving);
    const auto gone = [leaving](const Members& s) { return find(s, leaving) == nullptr; };
    NARAD_CO_TRY(const Members members, co_await watch(gone, cat(leaving, " did not leave")));
    left_ = leaving;
    e2e::Broker* broker = &cluster_.node(number(leaving));
    auto end = [broker] { return broker->child().wait(seconds(30)); };
    const auto exit = co_await blocking(env_, "await its end", std::move(end));
    if (!exit) {
      co_return Error(Errc::internal, cat(leaving, " has left the cluster, but still runs"));
    }
    say("left",
        cat(leaving, " is no member any more after ", duration_text(env_.clock.mono() - begin),
            " and ended by itself (exit ", exit->code, "). Partitions: ", shares(members),
            ". The longest time without an accepted message was ",
            duration_text(traffic_.take_longest_gap())));
    co_return ok();
  }

  // Shows moves until no move is under way and `holds` says yes.
  Task<Result<Members>> watch(std::function<bool(const Members&)> holds, std::string otherwise) {
    const Nanos until = env_.clock.mono() + kPatience;
    Moves before;
    std::string standing = "not known";
    for (;;) {
      auto now = co_await moves();
      if (now) {
        show(before, now.value());
        NARAD_CO_TRY(co_await strike(now.value().moves));
        before = std::move(now.value().moves);
        NARAD_CO_TRY(Members members, co_await this->members());
        if (before.empty() && holds(members)) co_return members;
        standing = cat(shares(members), "; ", before.size(), " moves under way");
      }
      if (env_.clock.mono() > until) {
        co_return Error(Errc::unavailable, cat(otherwise, ". Partitions: ", standing));
      }
      co_await sleep_for(env_, kLook);
    }
  }
  static void show(const Moves& before, const cli::MovesView& now) {
    for (const cli::MoveView& m : now.moves) {
      for (const std::string& line : cli::changes(before, {m})) {
        const std::string progress =
            m.report ? cli::bar(m.report->bytes_done, m.report->bytes_total, kBarWidth)
                     : std::string(kBarWidth + 2, ' ');
        say("", cat(progress, " ", line));
      }
    }
    for (const cli::MoveView& m : cli::gone(before, now.moves)) {
      for (const cli::EndedMoveView& e : now.history) {
        if (e.id == m.id) say("", cat(cli::bar(1, 1, kBarWidth), " ", cli::end_line(e)));
      }
    }
  }
  // The first source that is seen in the middle of a copy dies.
  Task<Result<void>> strike(Moves now) {
    if (!may_kill_) co_return ok();
    for (const cli::MoveView& m : now) {
      if (!m.report || m.report->bytes_done == 0 || m.report->bytes_done >= m.report->bytes_total) {
        continue;
      }
      may_kill_ = false;
      co_return co_await down_and_up("kill -9", number(m.from),
                                     cat("the source of ", m.topic, "/", m.partition, ", of which ",
                                         format_bytes(m.report->bytes_done), " of ",
                                         format_bytes(m.report->bytes_total), " were copied"));
    }
    co_return ok();
  }

  // ---- what came of it

  Task<Result<void>> tell_history() {
    NARAD_CO_TRY(const cli::MovesView view, co_await moves());
    std::uint64_t bytes = 0, records = 0, frozen_most = 0, at_once = 0, copied = 0;
    for (const cli::EndedMoveView& m : view.history) {
      if (!m.receipt) {
        ++at_once;
        continue;
      }
      ++copied;
      bytes += m.receipt->bytes;
      records += m.receipt->records;
      frozen_most = std::max(frozen_most, m.receipt->frozen_ms);
    }
    say("moved", cat(copied, " partitions with ", records, " messages, ", format_bytes(bytes),
                     "; no longer frozen than ", frozen_most, " ms",
                     at_once == 0 ? "" : cat("; ", at_once, " moves without a copy")));
    if (may_kill_) say("", "no source was killed: every copy was done before it was seen");
    if (copied > 0) co_return ok();
    co_return Error(Errc::internal, "no partition was moved");
  }

  int report() {
    const Totals t = traffic_.totals();
    const bool good = t.lost == 0 && t.damaged == 0 && t.delivered >= t.accepted &&
                      t.accepted == traffic_.accepted();
    say("compared", cat(t.delivered, " of ", t.accepted, " messages, ", mib(t.delivered_bytes),
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
  Traffic traffic_;
  std::string left_;  // the node that was decommissioned
  bool may_kill_ = false;
  Nanos begin_{0};
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
  std::cout << "narad demo: real files through nodes that are killed, join and leave" << std::endl;
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
  const std::uint64_t rate = std::max(kRateMin, bytes_of(items) / kSecondsOfAll);
  cluster_options.env["NARAD_MOVES_MAX_BYTES_PER_SECOND"] = cat(rate);
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
    if (demo.has_left(i)) continue;
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
