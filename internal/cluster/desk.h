#pragma once
// The leader's side of membership: lets newcomers in, hears heartbeats. Every node has one: where
// it does not lead, it says who does (heartbeats) or passes the request on (joining). Lives on the
// node's loop.
//
// A heartbeat is answered only after a read-index round that began after it arrived, and names that
// index; a member that is marked dead, or that says something new of itself, only once the entry
// that says so has been applied. So whoever has an answer knows: at that index, which lies after
// its question, the cluster counted it as alive.
#include <functional>
#include <string>
#include <variant>

#include "internal/cluster/consensus.h"
#include "internal/cluster/leadership.h"
#include "internal/cluster/rounds.h"
#include "internal/peer/peers.h"
#include "internal/wire/member_messages.h"

namespace narad::peer {
class Server;
}

namespace narad::cluster {

inline constexpr std::string_view kJoinRoute = "POST /peer/v1/join";
inline constexpr std::string_view kJoinForwardedRoute = "POST /peer/v1/join/forwarded";
inline constexpr std::string_view kHeartbeatRoute = "POST /peer/v1/heartbeat";
inline constexpr std::string_view kWhoRoute = "GET /peer/v1/who";

using JoinOutcome = std::variant<wire::JoinAnswer, wire::MemberRefusal>;
using HeartbeatOutcome = std::variant<wire::HeartbeatAnswer, wire::MemberRefusal>;

struct DeskOptions {
  Nanos round_deadline = std::chrono::seconds(3);
  Nanos forward_deadline = std::chrono::seconds(8);
};

class Desk {
 public:
  Desk(Env& env, Consensus& consensus, Leadership& leadership, peer::Caller& caller,
       std::string node, DeskOptions options = {});

  void add_routes(peer::Server& server);
  Task<void> stop() { return rounds_.stop(); }

  Task<HeartbeatOutcome> heartbeat(wire::HeartbeatRequest request);
  Task<JoinOutcome> join(wire::JoinRequest request);
  std::uint64_t rounds() const { return rounds_.rounds(); }

 private:
  // Passes it on if another node leads.
  Task<JoinOutcome> join_anywhere(wire::JoinRequest request);
  // Brings the member's row up to date and waits until it is applied.
  Task<Result<metastore::Member>> registered(const wire::MemberInfo& info);
  bool handed_over(const std::string& id) const;
  Task<Result<>> let_in(const wire::MemberInfo& info);
  std::optional<wire::MemberRefusal> not_here() const;
  std::optional<wire::MemberRefusal> refuse_removed(const std::string& id) const;

  static Task<http::Response> serve_heartbeat(Desk* self, peer::Sender sender, http::Request r);
  static Task<http::Response> serve_join(Desk* self, peer::Sender sender, http::Request r);
  static Task<http::Response> serve_forwarded(Desk* self, http::Request r);

  Env& env_;
  Consensus& consensus_;
  Leadership& leadership_;
  peer::Caller& caller_;
  const std::string node_;
  const DeskOptions options_;
  Rounds rounds_;
};

}  // namespace narad::cluster
