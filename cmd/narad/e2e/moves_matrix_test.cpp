// One move of a partition between real nodes under load, held open in one of its phases, and
// something that happens to the source, the destination, the leader or the network just then.
// Whatever it is: the move ends and the history says how, the partition has one owner and lies on
// that one's disk only, every message that was accepted is there, and no client was refused.
//
// The matrix is phases times blows. NARAD_MATRIX: "eight" (unless it is set; from another case on
// with every commit, or from NARAD_MATRIX_START), "all", or a part of a case's name.
// NARAD_MATRIX_SCALE: of the time constants, 0.1 unless it is set.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/statvfs.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "cmd/narad/e2e/moves_for_test.h"
#include "cmd/narad/e2e/network.h"
#include "cmd/narad/e2e/tmpfs.h"
#include "pkg/base/text.h"
#include "pkg/config/config.h"

namespace narad::e2e {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// ---- the matrix
// ----------------------------------------------------------------------------------

enum class Who : std::uint8_t { nobody, source, destination, leader };

enum class Deed : std::uint8_t {
  nothing,  // the phase lasts almost as long as a freeze may; nobody logs so much as a warning
  outlast,  // it lasts longer than that
  kill,     // -9, and started again
  hang,     // SIGSTOP for longer than a freeze lasts and than a member may be silent
  abort,    // by an operator
  drain,    // the node is to leave
  join,     // another node comes
  fill,     // the destination's disk is full for a while
  cut,      // nothing gets from one to the other, which is open the other way
  lose,     // a fifth of what comes to it is lost
  reset,    // its connections are
  delay,    // everything between nodes takes 150 to 250 ms
};

struct Blow {
  const char* name;
  Deed deed;
  Who who = Who::nobody;
  Who to = Who::nobody;
};

constexpr Blow kBlows[] = {
    {"clean", Deed::nothing},
    {"outlasts_freeze", Deed::outlast},
    {"kill_source", Deed::kill, Who::source},
    {"kill_destination", Deed::kill, Who::destination},
    {"kill_leader", Deed::kill, Who::leader},
    {"hang_source", Deed::hang, Who::source},
    {"hang_destination", Deed::hang, Who::destination},
    {"hang_leader", Deed::hang, Who::leader},
    {"abort_operator", Deed::abort},
    {"drain_source", Deed::drain, Who::source},
    {"drain_destination", Deed::drain, Who::destination},
    {"join_another", Deed::join},
    {"fill_destination", Deed::fill, Who::destination},
    {"cut_source_to_destination", Deed::cut, Who::source, Who::destination},
    {"cut_destination_to_source", Deed::cut, Who::destination, Who::source},
    {"cut_destination_to_leader", Deed::cut, Who::destination, Who::leader},
    {"cut_leader_to_destination", Deed::cut, Who::leader, Who::destination},
    {"lose_source", Deed::lose, Who::source},
    {"lose_destination", Deed::lose, Who::destination},
    {"reset_destination", Deed::reset, Who::destination},
    {"delay_all", Deed::delay},
};

struct Case {
  std::string name;  // phase_blow
  std::string phase;
  Blow blow;
};

// It takes name spaces of its own.
bool needs_network(Deed deed) {
  return deed == Deed::cut || deed == Deed::lose || deed == Deed::reset || deed == Deed::delay;
}

bool freezes(std::string_view phase) {
  return phase != "queued" && phase != "copying" && phase != "freezing";
}

std::vector<Case> matrix() {
  std::vector<Case> cases;
  for (const Blow& blow : kBlows) {
    for (const std::string_view phase : kMovePhases) {
      if (blow.deed == Deed::outlast && !freezes(phase)) continue;
      cases.push_back({cat(phase, "_", blow.name), std::string(phase), blow});
    }
  }
  return cases;
}

std::string setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

// Where the eight begin: another place for each commit.
std::size_t start_of_eight() {
  const std::string given = setting("NARAD_MATRIX_START", "");
  if (!given.empty()) return std::stoul(given);
  const std::string here = std::filesystem::current_path();
  const Ran head = run({"git", "-C", here, "rev-parse", "--short=6", "HEAD"});
  return head.exit.code == 0 ? std::stoul(head.out.substr(0, 6), nullptr, 16) : 0;
}

// Spread over the matrix, whose order is blow by blow: another blow and another phase each time.
std::vector<Case> eight_of(const std::vector<Case>& all, std::size_t start) {
  std::vector<Case> chosen;
  for (std::size_t k = 0; k < 8; ++k) {
    chosen.push_back(all[(start + k * (all.size() / 8 + 1)) % all.size()]);
  }
  return chosen;
}

std::vector<Case> chosen_cases() {
  const std::vector<Case> all = matrix();
  const std::string wish = setting("NARAD_MATRIX", "eight");
  if (wish == "all") return all;
  if (wish == "eight") return eight_of(all, start_of_eight());
  std::vector<Case> chosen;
  for (const Case& c : all) {
    if (c.name.find(wish) != std::string::npos) chosen.push_back(c);
  }
  return chosen;
}

// ---- one case
// ------------------------------------------------------------------------------------

// What went wrong in a case, which ends it.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};
void must(bool holds, const std::string& otherwise) {
  if (!holds) throw Wrong(otherwise);
}

// A disk of 64 MiB with room for a little of what is not moved, as long as this lives.
class Ballast {
 public:
  explicit Ballast(const std::string& disk) : path_(disk + "/ballast") {
    struct statvfs space{};
    ::statvfs(disk.c_str(), &space);
    const std::uint64_t available = space.f_bavail * space.f_frsize;
    constexpr std::uint64_t kLeft = 2u << 20;  // moves leave a twentieth free, which is more
    std::ofstream out(path_, std::ios::binary);
    if (available > kLeft) out << std::string(available - kLeft, 'b');
  }
  ~Ballast() { std::filesystem::remove(path_); }

 private:
  std::string path_;
};

class Drill {
 public:
  Drill(const Case& c, double scale) : case_(c), scale_(scale) {
    const Deed deed = c.blow.deed;
    delays_ = deed == Deed::delay;
    if (needs_network(deed)) network_ = std::make_unique<Network>(kNodes);
    if (delays_) relay_ = std::make_unique<DelayingRelay>(kNodes, Cluster::kPlane, 0ms, 0ms);
    cluster_ = std::make_unique<Cluster>(options());
    if (deed == Deed::fill) {
      for (std::size_t i = 0; i < kNodes; ++i) {
        disks_.push_back(std::make_unique<Tmpfs>(directory(i), "64m"));
        must(disks_.back()->error() == 0, "this mounts a tmpfs: run it as root");
      }
    }
  }
  ~Drill() {
    load_.reset();
    cluster_.reset();
  }

  void run() {
    begin();
    strike();
    settle();
    check_outcome();
    check_disks();
    check_clients();
    check_ledger();
    check_logs();
  }
  void keep_logs(const std::string& where) {
    std::filesystem::create_directories(where);
    for (std::size_t i = 0; i < cluster_->size(); ++i) {
      write_text(cat(where, "/", case_.name, ".", Cluster::id(i)), cluster_->node(i).log());
    }
  }
  const std::string& outcome() const { return outcome_; }
  std::string cast() const {
    return cat("source ", Cluster::id(source_), ", destination ", Cluster::id(destination_),
               ", leader ", Cluster::id(leader_), ", partition ", partition_);
  }

 private:
  static constexpr std::size_t kNodes = 4;

  Duration of(Duration full) const {
    return Duration(static_cast<std::int64_t>(static_cast<double>(full.count()) * scale_));
  }
  Duration ttl() const { return of(30s); }
  Duration blow_time() const { return of(40s); }
  Duration patience() const { return 60s + of(300s); }

  ClusterOptions options() const {
    ClusterOptions o;
    o.nodes = kNodes;
    o.network = network_.get();
    o.through_relay = delays_;
    const std::pair<const char*, Duration> times[] = {
        {"FREEZE_TTL", ttl()},     {"DEAD_AFTER", of(30s)},    {"HEARTBEAT", of(5s)},
        {"MOVE_TICK", of(1s)},     {"DISPATCH_RETRY", of(1s)}, {"DISPATCH_GRACE", of(3s)},
        {"INGRESS_RETRY", of(1s)}, {"MOVE_HOLD", hold()},
    };
    for (const auto& [name, time] : times) {
      // How long a node may take to hear of a new owner is no constant of a move.
      const bool of_dispatch = std::string_view(name).starts_with("DISPATCH");
      if (of_dispatch && case_.blow.deed == Deed::nothing) continue;
      o.env[cat("NARAD_TIMING_", name)] = cat(time.count(), "ms");
    }
    o.env["NARAD_TIMING_MOVE_HOLD_PHASE"] = case_.phase;
    return o;
  }
  Duration hold() const {
    if (case_.blow.deed == Deed::outlast) return ttl() * 3 / 2;
    return ttl() * 4 / 5;
  }
  std::string directory(std::size_t node) const {
    return cat(cluster_->directory(), "/", Cluster::id(node));
  }
  std::size_t node_of(Who who) const {
    if (who == Who::source) return source_;
    return who == Who::destination ? destination_ : leader_;
  }
  // Waits for it, and takes what nodes log meanwhile, so that none of them waits for the test.
  bool comes(const std::function<bool()>& holds, Duration limit) {
    return soon(
        [&] {
          for (std::size_t i = 0; i < cluster_->size(); ++i) cluster_->node(i).child().running();
          return holds();
        },
        limit);
  }
  void let_pass(Duration time) {
    comes([] { return false; }, time);
  }

  // ---- before
  void begin() {
    must(cluster_->start(), cluster_->why());
    auto made = cluster_->node(0).client().post(
        "/v1/topics", R"({"name":"orders","partitions":6,"visibility_timeout_ms":5000})");
    must(made && made->status == 201, "the topic was not created");
    for (std::size_t i = 0; i < kNodes; ++i) {
      must(comes([&] { return knows_topic(cluster_->node(i), "orders"); }, 20s), "no topic");
    }
    choose();
    begin_load();
    start_move();
  }

  // Somebody who owns two partitions, somebody who owns one, and the leader is neither: so nobody
  // has a reason to move anything else before or after.
  void choose() {
    const auto leader = cluster_->leader();
    must(leader.has_value(), "nobody leads");
    leader_ = *leader;
    const auto owned = owned_by(*cluster_, leader_);
    source_ = destination_ = kNodes;
    for (std::size_t i = 0; i < kNodes; ++i) {
      if (i == leader_ || !owned.contains(Cluster::id(i))) continue;
      const int count = owned.at(Cluster::id(i));
      if (count == 2 && source_ == kNodes) {
        source_ = i;
      } else if (count == 1 && destination_ == kNodes) {
        destination_ = i;
      } else {
        witness_ = i;
      }
    }
    must(source_ < kNodes && destination_ < kNodes, describe(*cluster_, leader_));
    for (const auto& [partition, owner] : owners(*cluster_, leader_)) {
      if (owner == Cluster::id(source_)) partition_ = partition;
    }
  }

  // At three fifths of what the cluster takes.
  void begin_load() {
    load_ = std::make_unique<Producers>(*cluster_, "orders");
    must(accepted_more(*load_, 200), "no load");
    const std::size_t before = load_->accepted();
    let_pass(500ms);
    const std::size_t per_second = 2 * (load_->accepted() - before);
    load_->hold_to(std::max<std::size_t>(1, per_second * 3 / 5));
  }

  void start_move() {
    for (std::size_t i = 0; i < kNodes; ++i) log_begins_[i] = cluster_->node(i).log().size();
    auto answer = cluster_->node(witness_).client().post(
        "/v1/cluster/moves", cat(R"({"topic":"orders","partition":)", partition_, R"(,"to":")",
                                 Cluster::id(destination_), R"("})"));
    must(answer && answer->status == 202, answer ? answer->body : "no answer");
    move_ = json::parse(answer->body).at("id").as_int64();
    must(comes([&] { return phase() == case_.phase; }, 10s + of(60s)),
         cat("the phase never came: ", phase(), describe(*cluster_, witness_)));
  }

  // As the destination reports it.
  std::string phase() {
    auto answer = cluster_->node(destination_).client().get("/v1/cluster/moves?detail=1");
    if (!answer || answer->status != 200) return {};
    const json::value body = json::parse(answer->body);
    for (const auto& m : body.at("moves").as_array()) {
      const json::value* report = m.as_object().if_contains("report");
      if (report != nullptr) return std::string(report->at("phase").as_string());
    }
    return {};
  }

  // ---- the blow
  void strike() {
    const Blow& blow = case_.blow;
    const std::size_t who = node_of(blow.who);
    switch (blow.deed) {
      case Deed::nothing:
      case Deed::outlast:
        return;
      case Deed::kill:
        return kill(who);
      case Deed::hang:
        return hang(who);
      case Deed::abort:
        return order(cat("/v1/cluster/moves/orders/", partition_, "/abort"));
      case Deed::drain:
        return order(cat("/v1/cluster/members/", Cluster::id(who), "/decommission"));
      case Deed::join:
        return must(cluster_->add(), cluster_->why());
      case Deed::fill: {
        const Ballast ballast(directory(who));
        return let_pass(blow_time());
      }
      case Deed::cut:
        network_->cut(who, node_of(blow.to));
        let_pass(blow_time());
        return network_->heal(node_of(blow.to));
      case Deed::lose:
        network_->lose(who, 20);
        let_pass(blow_time());
        return network_->heal(who);
      case Deed::reset:
        network_->reset(who);
        let_pass(blow_time());
        return network_->heal(who);
      case Deed::delay:
        relay_->set(150ms, 100ms);
        let_pass(blow_time());
        return relay_->set(0ms, 0ms);
    }
  }
  void kill(std::size_t who) {
    Broker& broker = cluster_->node(who);
    broker.kill9();
    broker.env().erase("NARAD_TIMING_MOVE_HOLD");
    broker.env().erase("NARAD_TIMING_MOVE_HOLD_PHASE");
    broker.launch();
    must(broker.await_ready(60s + of(120s)), "it is not ready again: " + broker.why());
  }
  void hang(std::size_t who) {
    const pid_t pid = cluster_->node(who).child().pid();
    must(::kill(pid, SIGSTOP) == 0, "SIGSTOP");
    let_pass(blow_time());
    must(::kill(pid, SIGCONT) == 0, "SIGCONT");
  }
  void order(const std::string& target) {
    auto answer = cluster_->node(witness_).client().post(target);
    must(answer && answer->status / 100 == 2, answer ? answer->body : "no answer");
  }

  // ---- after
  bool gone(std::size_t node) const {
    return case_.blow.deed == Deed::drain && node_of(case_.blow.who) == node;
  }
  std::set<std::string> members() {
    std::set<std::string> ids;
    for (std::size_t i = 0; i < cluster_->size(); ++i) {
      if (!gone(i)) ids.insert(Cluster::id(i));
    }
    return ids;
  }

  // Nothing moves any more, as every member knows it, and who is to leave has left.
  void settle() {
    const auto settled = [&] {
      for (std::size_t i = 0; i < cluster_->size(); ++i) {
        if (!gone(i) && moves_under_way(*cluster_, i) != 0) return false;
      }
      return owned_by(*cluster_, witness_).size() == members().size();
    };
    must(comes(settled, patience()), "it does not settle: " + describe(*cluster_, witness_));
    if (case_.blow.deed == Deed::join) {
      const auto has = [&] {
        return owned_by(*cluster_, witness_)[Cluster::id(kNodes)] == 1 && settled();
      };
      must(comes(has, patience()), "the new node has nothing: " + describe(*cluster_, witness_));
    }
  }

  void check_outcome() {
    std::string why, last_owner = Cluster::id(source_);
    std::int64_t last = -1;
    const json::value body = json::parse(history(*cluster_, witness_));
    for (const auto& m : body.at("history").as_array()) {
      if (m.at("partition").as_int64() != partition_) continue;
      const std::int64_t id = m.at("id").as_int64();
      const std::string how(m.at("outcome").as_string());
      if (id == move_) {
        outcome_ = how;
        if (const json::value* text = m.as_object().if_contains("why")) {
          why = std::string(text->as_string());
        }
      }
      if ((how == "moved" || how == "promoted") && id > last) {
        last = id;
        last_owner = std::string(m.at("to").as_string());
      }
    }
    must(may_end(why), cat("the move ended as ", outcome_, " (", why, ")"));
    std::map<std::int64_t, std::string> agreed;
    const auto all_agree = [&] {
      agreed = owners(*cluster_, witness_);
      for (std::size_t i = 0; i < cluster_->size(); ++i) {
        if (!gone(i) && owners(*cluster_, i) != agreed) return false;
      }
      return agreed.size() == 6;
    };
    must(comes(all_agree, 20s), "they do not agree on who owns what");
    must(agreed[partition_] == last_owner,
         cat("by the history ", last_owner, " owns it, and by the state ", agreed[partition_]));
  }
  bool may_end(const std::string& why) const {
    const bool moved = outcome_ == "moved", cleared = outcome_ == "cleared";
    const bool full = cleared && why.find("target_full") != std::string::npos;
    // What the copy needs most of its room for is over.
    const bool has_all = freezes(case_.phase) || case_.phase == "freezing";
    switch (case_.blow.deed) {
      case Deed::abort:
        return cleared && why.find("operator") != std::string::npos;
      case Deed::fill:
        return full || (moved && has_all);
      case Deed::drain:
        return moved || (cleared && case_.blow.who == Who::destination);
      default:
        return moved;
    }
  }

  void check_disks() {
    std::string what;
    const auto tidy = [&] {
      what.clear();
      const std::set<std::string> nodes = members();
      const auto owned = owners(*cluster_, witness_);
      for (const auto& [partition, where] : holders(*cluster_, nodes)) {
        const auto at = owned.find(partition);
        if (at != owned.end() && where == std::set<std::string>{at->second}) continue;
        for (const std::string& node : where) what += cat(partition, " lies at ", node, "; ");
      }
      for (const std::string& node : nodes) {
        for (const std::string& path : left_behind(*cluster_, node)) what += cat(path, "; ");
      }
      return what.empty();
    };
    must(comes(tidy, patience()), "on the disks: " + what);
  }

  // The load goes on after it all. Nobody was refused, and whose connections broke was killed or
  // has left.
  void check_clients() {
    must(accepted_more(*load_, 200), "nothing is accepted any more");
    load_->stop();
    for (std::size_t i = 0; i < kNodes; ++i) {
      const bool struck = case_.blow.who != Who::nobody && i == node_of(case_.blow.who);
      const Deed deed = case_.blow.deed;
      for (const std::string& refusal : load_->refusals_of(i)) {
        must(struck && may_refuse(refusal), cat(Cluster::id(i), " refused: ", refusal));
      }
      const bool may_break =
          struck && (deed == Deed::kill || deed == Deed::hang || deed == Deed::drain);
      must(may_break || load_->broken_by(i) == 0,
           cat(Cluster::id(i), " broke ", load_->broken_by(i), " connections"));
    }
  }

  // What is no doing of the move: that a node leaves, starts, or has no room.
  bool may_refuse(const std::string& refusal) const {
    const Deed deed = case_.blow.deed;
    if (deed == Deed::kill) return refusal.find("this node is not ready") != std::string::npos;
    return deed == Deed::drain || deed == Deed::fill;
  }

  void check_ledger() {
    if (case_.blow.deed == Deed::drain) cluster_->node(node_of(case_.blow.who)).kill9();
    const auto left = consume_all(*cluster_, "orders", load_->accepted_payloads(), patience());
    must(left.empty(), cat(left.size(), " of ", load_->accepted(), " are lost, first ",
                           left.empty() ? std::string() : *left.begin()));
  }

  void check_logs() {
    // Before the copy is at its path, where the flip keeps the freeze for longer.
    if (case_.blow.deed == Deed::outlast && case_.phase != "flipping") {
      must(cluster_->node(destination_).log().find("it was let go") != std::string::npos,
           "the freeze lasted as long as the phase");
    }
    if (case_.blow.deed != Deed::nothing) return;
    for (std::size_t i = 0; i < kNodes; ++i) {
      const std::string log = cluster_->node(i).log();
      // At its start it says that nodes talk to each other in the clear: so this is not blind.
      must(!first_warning(log).empty(), "a node has not warned at its start");
      const std::string warning = first_warning(log.substr(log_begins_[i]));
      must(warning.empty(), cat(Cluster::id(i), " logged ", warning));
    }
  }
  static std::string first_warning(const std::string& log) {
    const std::size_t at = std::min(log.find(R"("level":"WARN")"), log.find(R"("level":"ERROR")"));
    if (at == std::string::npos) return {};
    const std::size_t from = log.rfind('\n', at) + 1;
    return log.substr(from, log.find('\n', at) - from);
  }

  const Case& case_;
  const double scale_;
  bool delays_ = false;
  std::unique_ptr<Network> network_;
  std::unique_ptr<DelayingRelay> relay_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<std::unique_ptr<Tmpfs>> disks_;
  std::unique_ptr<Producers> load_;
  std::size_t source_ = 0, destination_ = 0, leader_ = 0, witness_ = 0;
  std::int64_t partition_ = 0, move_ = 0;
  std::string outcome_;  // of the move, by the history
  std::size_t log_begins_[kNodes] = {};
};

struct Result {
  std::string problem;  // empty: none
  std::string outcome;  // of the move
};
Result run_case(const Case& c, double scale) {
  Result result;
  std::string& problem = result.problem;
  const auto drill = [&] {
    std::unique_ptr<Drill> one;
    try {
      one = std::make_unique<Drill>(c, scale);
      one->run();
      result.outcome = one->outcome();
    } catch (const std::exception& e) {
      problem = e.what();
      const std::string where = build_directory() + "/moves-matrix";
      if (one) one->keep_logs(where);
      if (one) problem = cat(one->cast(), ": ", problem, "; logs in ", where);
    }
  };
  // On a thread of its own, which is where a network of its own is.
  std::thread(drill).join();
  return result;
}

TEST(MovesMatrix, TheChosenCases_LoseNothingAndRefuseNobody) {
  const std::vector<Case> cases = chosen_cases();
  ASSERT_FALSE(cases.empty()) << "no case has such a name";
  const double scale = std::stod(setting("NARAD_MATRIX_SCALE", "0.1"));
  const std::string no_network = no_networks();
  std::size_t passed = 0, failed = 0, not_run = 0;
  for (const Case& c : cases) {
    if (needs_network(c.blow.deed) && !no_network.empty()) {
      std::cout << cat(c.name, ": not run: ", no_network) << std::endl;
      ++not_run;
      continue;
    }
    const auto begin = Clock::now();
    const auto [problem, outcome] = run_case(c, scale);
    const auto took = std::chrono::duration_cast<Duration>(Clock::now() - begin).count();
    std::cout << cat(c.name, ": ", problem.empty() ? "passed" : "FAILED", " in ", took, " ms, ",
                     outcome)
              << std::endl;
    EXPECT_EQ(problem, "") << c.name;
    ++(problem.empty() ? passed : failed);
  }
  std::cout << cat(passed, " cases passed, ", failed, " failed, ", not_run, " not run, of ",
                   matrix().size())
            << std::endl;
  EXPECT_GT(passed + failed, 0u) << no_network;
}

TEST(MovesMatrix, TheEight_AreOfDifferentPhasesAndBlowsAndReachTheWholeMatrix) {
  const std::vector<Case> all = matrix();
  std::set<std::string> reached;
  for (std::size_t start = 0; start < all.size(); ++start) {
    std::set<std::string> phases, blows;
    for (const Case& c : eight_of(all, start)) {
      phases.insert(c.phase);
      blows.insert(c.blow.name);
      reached.insert(c.name);
    }
    EXPECT_GE(phases.size(), 5u) << start;
    EXPECT_EQ(blows.size(), 8u) << start;
  }
  EXPECT_EQ(reached.size(), all.size());
}

}  // namespace
}  // namespace narad::e2e
