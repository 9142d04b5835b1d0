#pragma once
// A group of replicas on a network and on disks that misbehave as the seed says, one event at a
// time. Virtual time: 1,000 units are one tick of the fastest clock; clocks differ by up to 1.9.
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "pkg/raft/sim_test/oracle.h"
#include "pkg/raft/sim_test/replica.h"
#include "pkg/raft/sim_test/rng.h"

namespace narad::raft::simtest {

inline constexpr std::uint64_t kTick = 1'000;

struct RunResult {
  std::optional<std::string> finding;  // what went wrong, with the seed
  std::uint64_t steps = 0;
  std::uint64_t trace = 0;  // over everything that happened: equal seeds, equal traces
};

class Cluster {
 public:
  Cluster(std::uint64_t seed, Counters& counters);

  // `steps` events under faults, then peace: a leader, a commit and equal members within bounded
  // time, and nobody disturbs them after that.
  RunResult run(std::uint64_t steps);

 private:
  using Finding = std::optional<std::string>;
  enum class What : std::uint8_t { tick, deliver, disk, act };
  struct Event {
    std::uint64_t time;
    std::uint64_t order;
    What what;
    ReplicaId who;
    std::uint64_t life;
    std::shared_ptr<Message> message;
    bool operator>(const Event& o) const {
      return time != o.time ? time > o.time : order > o.order;
    }
  };
  struct Machine {
    std::unique_ptr<Replica> replica;
    std::uint64_t life = 0;
    std::uint64_t tick_every = kTick;
    std::uint64_t disk_slow = 1;
    bool disk_busy = false;
  };

  // cluster.cpp
  Finding one_event();
  Finding handle(const Event& e);
  Finding boot(ReplicaId id);
  void crash(ReplicaId id);
  void put(std::uint64_t delay, What what, ReplicaId who, std::shared_ptr<Message> m = nullptr);
  void send(Message m);
  Finding worked(ReplicaId id);
  ReplicaId add_machine(const std::string& node, StartState first);
  Replica* leader();
  ReplicaId pick();

  // cluster_faults.cpp
  Finding act();
  Finding act_fault();
  Finding act_members();
  Finding act_client();
  void partition();
  Finding jump_clocks();
  void draw_weather();
  void join();
  void wipe();
  void tidy_up();
  bool survives(const Configuration& c, ReplicaId without) const;

  // cluster_peace.cpp
  Finding make_peace();
  Finding settle(std::uint64_t deadline);
  bool settled(Index index);

  std::uint64_t seed_;
  Counters& counters_;
  Rng rng_;
  Oracle oracle_;
  std::uint64_t now_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t trace_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::map<ReplicaId, Machine> machines_;
  std::set<ReplicaId> gone_;  // disks that are no more
  std::set<std::pair<ReplicaId, ReplicaId>> blocked_;
  std::uint64_t next_replica_ = 1;
  std::uint64_t next_value_ = 1;
  bool peace_ = false;

  // Weather: what the network and disks do by chance; 0 never.
  std::uint64_t lose_one_in_ = 0;
  std::uint64_t double_one_in_ = 0;
  std::uint64_t slow_one_in_ = 0;
  std::uint64_t latency_max_ = 200;
  std::uint64_t crash_weight_ = 1;
  bool changes_members_ = false;
  bool restless_ = false;  // clocks jump, and several replicas stand at once
};

}  // namespace narad::raft::simtest
