#pragma once
// Says to the leader every five seconds that this node is here, and keeps what came of it: when the
// last answered heartbeat was sent, on the clock that counts suspended time, and which index it
// named. Leases rest on that (moves.md). While it knows no leader it asks the others in turn: one
// of them may know it, or know that this node was removed. Lives on the node's loop.
#include <functional>
#include <optional>
#include <string>

#include "internal/cluster/consensus.h"
#include "internal/cluster/desk.h"
#include "internal/peer/peers.h"
#include "internal/wire/member_messages.h"
#include "pkg/async/task_group.h"

namespace narad::cluster {

struct HeartbeatOptions {
  Nanos every = std::chrono::seconds(5);
  Nanos deadline = std::chrono::seconds(4);
  Nanos retry = std::chrono::seconds(1);  // after one that was not answered
};

class Heartbeater {
 public:
  struct Answered {
    Nanos sent_boot{0};  // Clock::boot() before it was sent
    RaftIndex index{0};
    std::uint64_t term = 0;
    UnixMillis leader_wall{0};
    UnixMillis own_wall{0};  // when the answer arrived
  };
  using Info = std::function<wire::MemberInfo()>;
  using Drain = std::function<wire::DrainStatus()>;
  using Others = std::function<std::vector<std::string>()>;
  using OnRemoved = std::function<void(const wire::MemberRefusal&)>;

  // `desk` is this node's own, asked while it leads itself. `others`: node ids to ask while no
  // leader is known.
  Heartbeater(Env& env, Consensus& consensus, peer::Caller& caller, Desk& desk, Info info,
              Drain drain, Others others, OnRemoved on_removed, HeartbeatOptions options = {});

  void start();
  Task<void> stop() { return tasks_.stop(); }

  const std::optional<Answered>& last() const { return last_; }
  // Why the last heartbeat was not answered; empty if it was, or none was sent yet.
  const std::string& trouble() const { return trouble_; }
  // The last heartbeat was refused because this node is not in the configuration: its admission was
  // never committed. It has to ask again.
  bool unknown() const { return unknown_; }
  // After each answer and each failure.
  Event& changed() { return changed_; }

 private:
  Task<void> run();
  Task<bool> beat(std::string leader);
  std::string next_other();
  Task<HeartbeatOutcome> ask(std::string leader, wire::HeartbeatRequest request);
  static Task<HeartbeatOutcome> ask_own(Desk& desk, wire::HeartbeatRequest request);
  void fail(std::string why);

  Env& env_;
  Consensus& consensus_;
  peer::Caller& caller_;
  Desk& desk_;
  const Info info_;
  const Drain drain_;
  const Others others_;
  const OnRemoved on_removed_;
  const HeartbeatOptions options_;
  std::optional<Answered> last_;
  std::string trouble_;
  bool unknown_ = false;
  std::string hint_;  // whom another node named as the leader
  std::size_t asked_ = 0;
  Event changed_;
  TaskGroup tasks_;
};

}  // namespace narad::cluster
