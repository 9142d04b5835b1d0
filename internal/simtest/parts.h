#pragma once
// The two halves of a simulated run, for the sources of this directory: the world, which survives
// every crash, and what runs on a machine in one life. world.h is what others use.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "internal/node/node.h"
#include "internal/simtest/knobs.h"
#include "internal/simtest/ownership.h"
#include "internal/simtest/world.h"
#include "pkg/async/task_group.h"
#include "pkg/sim/machine.h"

namespace narad::simtest {

using sim::Rng;

inline constexpr const char* kTopics[] = {"orders", "clicks", "audit", "short"};

// What is done to whom in the middle of a move (strikes.cpp).
struct Strike {
  enum class Victim { source, target, leader, source_target, source_leader, target_leader };
  enum class Action { pause, cut_off, power_cut, kill9 };
  std::string phase;  // of the move, as its target reports it
  Nanos delay{0};     // after that phase was first seen
  Victim victim = Victim::source;
  Action action = Action::pause;
  Nanos length{0};
  bool retargeted = false;  // meanwhile the operator sends it elsewhere
  // The source comes back just when it would be replaced, and the target is paused.
  bool source_returns = false;
  bool whole = false;      // only while all that was listed is copied
  bool in_commit = false;  // only while the source writes a commit
  bool replaces = false;   // the second half of that
};

enum class Phase { faults, calm, read_back };

class App;

// The world's side: survives every crash.
class World {
 public:
  World(const sim::Plan& plan, const sim::RunWish& wish, Defect defect, bool echo_log);
  RunResult run();

 private:
  friend class App;
  void apply(const sim::Fault& fault);
  void went_down(int node);
  void apply_to_network(const sim::Fault& fault);
  void wipe(int node);
  void doom(int node, std::uint64_t number);
  void heal_network();
  void ambush(std::uint64_t number);
  void watch_for_freezes(std::uint64_t number, int looks);
  void strike(const Assignment& frozen, std::uint64_t number);

  // ---- one partition under load (strikes.cpp)
  Strike draw_strike(std::uint64_t number) const;
  // After each step of the simulation.
  void watch_moves();
  // True if the move is where the strike is to come.
  bool watch_for(const Strike& strike, int node);
  bool commits_now(int node);
  void strike_at(const Assignment& row, Strike strike);
  void hold(int node, const Strike& strike);
  void bring_back(int node);
  void await_replacement(int target, const Strike& strike);
  void separate(int a, int b, Nanos length);
  void move_on(const Assignment& row, int node);
  void move_to(App& app, const Assignment& row, const metastore::Member& to);
  App* anybody();
  int leader();

  // ---- one move, step by step (walk.cpp)
  // After each step of the simulation. True when the faults are over.
  bool watch_walk();
  void start_walk();
  void count_message();
  std::string shown_of_move();
  sim::Machine& of_role(Role role) {
    return *machines_[static_cast<std::size_t>(walk_.nodes[static_cast<std::size_t>(role)])];
  }
  void walk_strikes();
  void revert(sim::Machine& machine);
  // What is produced from now on would hide what the source has lost.
  bool quiet() const { return walk_.struck && walk_.point.deed == Deed::reverted; }
  void walk_abort_answered(const Result<metastore::AbortAnswer>& answer);
  void check_walk_abort();
  void walk_went_down(int node);

  bool each_node(const std::function<bool(App&)>& holds);
  std::uint64_t unsettled();
  bool has_disk(int node, const std::string& disk);
  // Each node of a cluster does its share of the work that a lone node does.
  Nanos share(Nanos of_a_lone_node) const { return of_a_lone_node * knobs_.nodes; }
  void later(Nanos delay, std::function<void()> what);
  void heal();
  // `holds`, asked no more often than that: the answer costs more than a step.
  std::function<bool()> every(Nanos pause, std::function<bool()> holds);
  bool settle(const char* what, const std::function<bool()>& done);
  void read_back(const char* when);
  void collect_reach();
  void run_faults();
  void stop_all_cleanly();

  // ---- who owns what (moves.cpp)
  // Asks every node that is up what it has applied. Cheap if nothing is new.
  void look();
  void look_regularly();
  Oracle::Reroutes reroutes() const {
    if (knobs_.reroutes) return Oracle::Reroutes::any;
    return deaths_ ? Oracle::Reroutes::of_dead_owners : Oracle::Reroutes::none;
  }
  void note_deaths(const metastore::State& state);
  void check_silence(const Ownership::Change& change);
  void changed_hands(const Ownership::Change& change);
  void check_former_owners();
  bool moves_ended();
  void abort_moves();
  void release_brakes();  // brakes.cpp
  std::string standing_of(const Assignment& move);
  void name_moves();  // those that do not end, as violations
  bool end_moves();
  std::vector<std::string> leftovers() const;
  void read_copies_set_aside();

  sim::Plan plan_;
  sim::RunWish wish_;
  Defect defect_;
  std::int64_t workload_percent_;
  bool scripted_;
  bool script_done_ = false;
  std::uint64_t disk_calls_ = 0;
  sim::Sim sim_;
  sim::SimNet net_;
  Knobs knobs_;
  Oracle oracle_;
  sim::Reach reach_;
  Phase phase_ = Phase::faults;
  bool clean_stop_ = false;
  int read_backs_done_ = 0;
  bool drained_ = false;
  std::optional<int> wiped_;  // the node that lost its disk
  bool gave_up_ = false;
  Ownership ownership_;
  bool deaths_ = false;                    // a dispatcher was told that an owner is dead
  std::vector<metastore::ViewPtr> shown_;  // by each node, when it was last asked
  // One that owned a log until somebody took over: it may not commit to it any more.
  struct FormerOwner {
    LogName log;
    int node = 0;
    int boots = 0;
    std::uint64_t opening = 0;
    Offset hwm{0};
  };
  std::vector<FormerOwner> former_owners_;
  std::map<std::string, Nanos> died_at_;  // members that count as dead, since when
  std::vector<Nanos> went_down_at_;
  std::vector<Nanos> down_until_;
  struct AwaitedStrike {
    Strike strike;
    int node = 0;  // says where to
    Nanos until{0};
  };
  std::vector<AwaitedStrike> strikes_;
  Nanos operator_rests_until_{0};
  struct Walk {
    bool on = false;
    WalkPoint point;
    bool started = false, begun = false, struck = false;
    int nodes[kRoles] = {0, 0, 0};
    Incarnation incarnation{0};
    std::uint64_t chunks = 0;
    std::string shown;
    Nanos look_at{0}, heals_at{0}, ends_at{0};
    WalkSteps steps;
    std::string abort_answer;
    bool moved_at_answer = false;
    std::unique_ptr<sim::SimFs> earlier;  // the source's disk as it was
  };
  Walk walk_;
  Nanos brakes_looked_at_{0};
  std::set<int> cut_off_;  // from all others, until they are healed one by one
  std::vector<std::unique_ptr<sim::Machine>> machines_;

  // What a client notes before it asks: an answer about a lease is judged by the life and the clock
  // that its owner had then.
  struct Moment {
    std::vector<int> boots;
    std::vector<Nanos> mono;
    std::uint64_t changes = 0;  // of owners, so far
  };
  Moment moment();
  // Still the same life as at that moment. An answer may arrive when its sender is dead already.
  bool still_lives(std::size_t node, const Moment& then) const {
    return machines_[node]->up() && machines_[node]->boots() == then.boots[node];
  }
  // A number for that life, unlike those of all others.
  int life_of(std::size_t node, int boots) const {
    return boots * static_cast<int>(machines_.size()) + static_cast<int>(node);
  }
  // The life that answered what was asked at that moment; negative if nobody can tell.
  int life_since(std::size_t owner, const LogName& log, const Moment& asked) const {
    if (!still_lives(owner, asked) || ownership_.changed_since(log, asked.changes)) return -1;
    // A dead owner that was replaced may not know it yet, and go on answering.
    if (oracle_.contested(log) && phase_ == Phase::faults) return -1;
    return life_of(owner, asked.boots[owner]);
  }
  int node_of(const std::string& id) const;
  // The node that owns the log; nothing while nobody does.
  std::optional<int> owner_of(const LogName& log);
};

// What runs on the machine in one life: the node, and clients that live and die with it.
class App {
 public:
  App(Env& env, World& world, int index);
  node::Node& node() { return node_; }
  // Started, and a member that has seen what the others know.
  bool ready() { return ready_ && !stopping_ && node_.broker().readiness().ready; }
  bool stopping() const { return stopping_; }
  bool stopped() const { return stopped_; }
  void stop_cleanly();
  std::string describe();
  void start_drain();
  void start_giving_up();
  void start_moving_away(int node);
  bool has_disk(const std::string& id) const { return node_.has_disk(id); }
  bool all_acked();
  void check_lag();
  void each_owned(const std::function<void(const LogName&, const delivery::DeliveryStats*)>& look);
  void start_read_back();
  // Answers whether nodes may be asked for their state now.
  bool started() const { return ready_ && !stopping_; }
  void propose(metastore::Command command);
  void start_aborting();
  UnixMillis wall_millis() const { return env_.clock.wall_millis(); }
  std::vector<metastore::TopicRowPtr> topics();

 private:
  Task<void> main();
  Task<void> producer(std::uint32_t index);
  Task<void> consumer(std::uint32_t index);
  Task<void> administrator();
  Task<void> mover();
  Task<void> brakes();
  Task<void> brake(Rng& random);
  std::optional<metastore::Command> draw_pause(Rng& random);
  Task<void> make_topic();
  const char* draw_topic(Rng& random) const;
  Task<void> move_somewhere(Rng& random);
  Task<void> move_away(int node);
  std::optional<metastore::Command> draw_move(Rng& random, const metastore::TopicRow& row,
                                              PartitionId partition);
  Task<void> abort_the_move();
  static Task<void> propose_one(App* app, metastore::Command command);
  Task<void> script();
  Task<void> drain();
  Task<void> give_up_lost_topics();
  Task<void> give_up(Topic topic);
  Task<void> read_everything();
  Task<bool> consume_some(Rng& random, std::string name, bool drain);
  MessagePtr make_message(Rng& random, const Topic& topic, std::uint64_t& id);
  void note_durable_acks();
  Task<void> ack_all(Topic topic, std::vector<api::LeasedMessage> messages);
  bool sees_owner(const LogName& log);
  void note_delivery(const LogName& log, const StoredRecord& record, const World::Moment& asked,
                     Nanos visibility);
  Nanos pause(Rng& random, Nanos most) {
    return Nanos(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most.count()))));
  }
  Rng stream(const char* purpose, std::uint64_t index) {
    const std::uint64_t life = index * 1000 + static_cast<std::uint64_t>(machine().boots());
    return world_.sim_.stream(purpose, life + static_cast<std::uint64_t>(index_) * 1'000'000);
  }

  sim::Machine& machine() const { return *world_.machines_[static_cast<std::size_t>(index_)]; }

  World& world_;
  const int index_;
  std::unique_ptr<FileSystem> fs_;
  Env env_;
  node::Node node_;
  bool ready_ = false;
  bool stopping_ = false;
  bool stopped_ = false;
  TaskGroup clients_;  // they use the broker, which goes with a clean stop
  TaskGroup tasks_;
};

}  // namespace narad::simtest
