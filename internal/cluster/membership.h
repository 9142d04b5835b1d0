#pragma once
// Everything membership of one node, put together for internal/node: formation, the desk, the
// heartbeats, the controller. Lives on the node's loop.
//
//   Membership m(env, host, consensus, peers, rules, addresses, drain);
//   m.add_routes(server);  server.listen(...);
//   co_await m.form();     // until this node is a member; may take for ever
//   m.start();
//   ...
//   co_await m.hand_over();  co_await m.stop();
#include <map>
#include <memory>

#include "internal/cluster/addresses.h"
#include "internal/cluster/controller.h"
#include "internal/cluster/desk.h"
#include "internal/cluster/formation.h"
#include "internal/cluster/heartbeater.h"

namespace narad::cluster {

struct MembershipOptions {
  FormationOptions formation;
  DeskOptions desk;
  HeartbeatOptions heartbeat;
  ControllerOptions controller;
  LivenessTiming liveness;
};

class Membership {
 public:
  // All references outlive this.
  Membership(Env& env, FormationHost& host, Consensus& consensus, peer::Caller& caller,
             BootstrapRules rules, std::map<std::string, Endpoint> addresses,
             Heartbeater::Drain drain, MembershipOptions options = {});
  ~Membership();

  void add_routes(peer::Server& server);
  Task<Result<Formed>> form() { return formation_.run(); }
  // REQUIRES: form() has answered, and not `removed`.
  void start();
  // Lets another node lead, within half a second; before anything else stops.
  Task<bool> hand_over();
  Task<void> stop();

  // Where that node listens for others, for peer::AddressBook.
  std::optional<Endpoint> address_of(const std::string& node) const;

  // Why this node is not ready as far as membership goes; empty if it is.
  std::vector<std::string> why_not_ready() const;
  Standing standing() const;
  const Heartbeater& heartbeats() const { return heartbeater_; }
  Heartbeater& heartbeats() { return heartbeater_; }
  Desk& desk() { return desk_; }
  Leadership& leadership() { return leadership_; }
  Balancer& balancer() { return controller_.balancer(); }
  const Balancer& balancer() const { return controller_.balancer(); }
  // How long this leader has not heard of the member; of no meaning while it does not lead.
  Nanos silence(const std::string& node) const {
    return leadership_.liveness.silence(node, env_.clock.mono());
  }

 private:
  Task<void> watch_leader();
  Task<void> keep_in_touch();
  Task<void> learn_addresses();
  void tell_of_strangers(const std::vector<PeerReport>& reports);
  std::vector<std::string> others() const;

  Env& env_;
  FormationHost& host_;
  Consensus& consensus_;
  const MembershipOptions options_;
  const std::string node_;
  Leadership leadership_;
  const std::vector<std::string> peers_;
  const std::map<std::string, Endpoint> configured_;
  AddressHints hints_;
  std::map<std::string, std::string> told_of_;  // peer -> what was said of it last
  Formation formation_;
  Desk desk_;
  Heartbeater heartbeater_;
  Controller controller_;
  std::optional<Nanos> leaderless_since_;
  TaskGroup tasks_;
};

}  // namespace narad::cluster
