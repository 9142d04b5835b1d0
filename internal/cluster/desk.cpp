#include "internal/cluster/desk.h"

#include <algorithm>

#include "internal/cluster/reasons.h"
#include "internal/peer/server.h"
#include "pkg/base/text.h"

namespace narad::cluster {
namespace {

using wire::MemberRefusal;
using wire::Refused;

MemberRefusal refusal(Refused reason, std::string text) {
  return {reason, std::move(text), {}, RaftIndex(0), UnixMillis(0)};
}

MemberRefusal refusal_of(const Error& error) {
  const bool elsewhere = error.code() == Errc::not_leader;
  return refusal(elsewhere ? Refused::not_leader : Refused::unavailable, error.text());
}

http::Response respond(const MemberRefusal& r) {
  return http::json_response(wire::status_of(r.reason), wire::encode(r) + "\n");
}
template <class Answer>
http::Response respond(const std::variant<Answer, MemberRefusal>& outcome) {
  if (const auto* refused = std::get_if<MemberRefusal>(&outcome)) return respond(*refused);
  return http::json_response(200, wire::encode(std::get<Answer>(outcome)) + "\n");
}

bool says_something_new(const metastore::Member& m, const wire::MemberInfo& info) {
  return m.status == metastore::MemberStatus::dead || m.http_addr != info.http_addr ||
         m.cluster_addr != info.cluster_addr || m.boot_id != info.boot_id || m.disks != info.disks;
}

}  // namespace

Desk::Desk(Env& env, Consensus& consensus, Leadership& leadership, peer::Caller& caller,
           std::string node, DeskOptions options)
    : env_(env),
      consensus_(consensus),
      leadership_(leadership),
      caller_(caller),
      node_(std::move(node)),
      options_(options),
      rounds_(
          env, [&consensus](Nanos deadline) { return consensus.barrier(deadline); },
          options.round_deadline) {}

void Desk::add_routes(peer::Server& server) {
  peer::RouteOptions open;
  open.body_bytes_max = wire::kMemberMessageBytesMax;
  open.open_to_strangers = true;
  server.route(
      kHeartbeatRoute, peer::Lane::control,
      [this](peer::Sender sender, http::Request r) {
        return serve_heartbeat(this, std::move(sender), std::move(r));
      },
      open);
  open.runs_to_its_end = true;
  server.route(
      kJoinRoute, peer::Lane::control,
      [this](peer::Sender sender, http::Request r) {
        return serve_join(this, std::move(sender), std::move(r));
      },
      open);
  peer::RouteOptions members = open;
  members.open_to_strangers = false;
  server.route(
      kJoinForwardedRoute, peer::Lane::control,
      [this](peer::Sender, http::Request r) { return serve_forwarded(this, std::move(r)); },
      members);
}

// The refusal if another node leads, or nobody.
std::optional<MemberRefusal> Desk::not_here() const {
  const RaftView raft = consensus_.raft();
  if (raft.leads) return std::nullopt;
  const bool known = !raft.leader.empty() && raft.leader != node_;
  MemberRefusal r =
      refusal(Refused::not_leader, known ? cat(node_, " does not lead: ask ", raft.leader)
                                         : cat(node_, " knows no leader at the moment"));
  if (known) r.leader = raft.leader;
  return r;
}

// A tombstone in any applied state is the truth for ever: no round is needed to tell of it.
std::optional<MemberRefusal> Desk::refuse_removed(const std::string& id) const {
  const metastore::ViewPtr view = consensus_.view();
  const metastore::Tombstone* t = view->tombstones.find(id);
  if (t == nullptr) return std::nullopt;
  MemberRefusal r = refusal(Refused::removed, removed_text(id, t->removed_at, t->removed_ms, ""));
  r.removed_at = t->removed_at;
  r.removed_ms = t->removed_ms;
  return r;
}

Task<Result<metastore::Member>> Desk::registered(const wire::MemberInfo& info) {
  metastore::RegisterMember entry;
  entry.id = info.id;
  entry.http_addr = info.http_addr;
  entry.cluster_addr = info.cluster_addr;
  entry.boot_id = info.boot_id;
  entry.disks = info.disks;
  entry.now = env_.clock.wall_millis();
  metastore::Command command = std::move(entry);
  NARAD_CO_TRY(auto result, co_await consensus_.propose(std::move(command)));
  if (!result.done()) co_return metastore::to_error(result);
  co_return std::get<metastore::Member>(std::move(result.row));
}

Task<HeartbeatOutcome> Desk::heartbeat(wire::HeartbeatRequest request) {
  const std::string& id = request.member.id;
  if (auto removed = refuse_removed(id)) co_return *removed;
  if (auto elsewhere = not_here()) co_return *elsewhere;
  const RaftView raft = consensus_.raft();
  const raft::Member* configured = raft.configuration.find_node(id);
  if (configured == nullptr) {
    co_return refusal(Refused::unknown,
                      cat(id, " is not a member of this cluster, and asks to be let in"));
  }
  if (configured->replica != request.member.replica) {
    co_return refusal(Refused::replaced,
                      cat("another disk has taken the place of this one under node id ", id,
                          ": if that is a second process, stop it; else start this one with an "
                          "empty data directory"));
  }
  leadership_.liveness.heard(id, env_.clock.mono());
  leadership_.drains[id] = request.drain;

  auto round = co_await rounds_.confirmed();
  if (!round) co_return refusal_of(round.error());
  // A dead mark on its way may commit after that round: its outcome comes first.
  while (leadership_.liveness.marking(id)) co_await leadership_.settled.wait();
  if (auto removed = refuse_removed(id)) co_return *removed;

  wire::HeartbeatAnswer answer;
  answer.index = round.value();
  const metastore::ViewPtr view = consensus_.view();
  const metastore::Member* member = view->members.find(id);
  if (member == nullptr || says_something_new(*member, request.member)) {
    auto row = co_await registered(request.member);
    if (!row) {
      if (auto removed = refuse_removed(id)) co_return *removed;
      co_return refusal_of(row.error());
    }
    answer.index = std::max(answer.index, row.value().stamp);
  }
  answer.term = raft.term;
  answer.leader = node_;
  answer.leader_wall = env_.clock.wall_millis();
  co_return answer;
}

// An emptied disk shows an empty WAL. Of a member that drains that would count as handed over.
bool Desk::handed_over(const std::string& id) const {
  const metastore::ViewPtr view = consensus_.view();
  const metastore::Member* member = view->members.find(id);
  if (member == nullptr || !member->draining || member->wal_lost) return true;
  const auto said = leadership_.drains.find(id);
  return said != leadership_.drains.end() && said->second.empty_under(member->drain_id);
}

Task<Result<>> Desk::let_in(const wire::MemberInfo& info) {
  const RaftView raft = consensus_.raft();
  const raft::Member* old = raft.configuration.find_node(info.id);
  if (old != nullptr && old->replica == info.replica) co_return ok();
  if (old != nullptr && raft.reachable.contains(old->replica)) {
    co_return Error(Errc::conflict,
                    cat("node id ", info.id,
                        " is in use: its replica still answers. Two processes have the same "
                        "cluster.node_id, or the old one has not stopped yet"));
  }
  if (old != nullptr && !handed_over(info.id)) {
    co_return Error(Errc::conflict,
                    cat(info.id,
                        " is being decommissioned, and what the ingress WAL on its former "
                        "disk holds is not known: start it with that disk, or give those messages "
                        "up with: narad cluster decommission ",
                        info.id, " --wal-lost"));
  }
  raft::ConfigurationChange change;
  change.kind = raft::ConfigurationChange::Kind::add_learner;
  change.replica = info.replica;
  change.node = info.id;
  NARAD_LOG_INFO(env_.log, "member admitted as a non-voter", {"node", info.id},
                 {"replica", to_hex16(info.replica.value())},
                 {"replaces", old == nullptr ? std::string() : to_hex16(old->replica.value())});
  co_return co_await consensus_.propose_change(std::move(change));
}

Task<JoinOutcome> Desk::join(wire::JoinRequest request) {
  const wire::MemberInfo& info = request.member;
  if (auto removed = refuse_removed(info.id)) co_return *removed;
  if (auto elsewhere = not_here()) co_return *elsewhere;
  auto round = co_await rounds_.confirmed();
  if (!round) co_return refusal_of(round.error());
  const std::string cluster = consensus_.view()->cluster_id;
  if (cluster.empty()) {
    co_return refusal(Refused::unavailable, "the cluster is being founded: try again");
  }
  if (cluster != to_hex16(request.cluster_id)) {
    co_return refusal(Refused::other_cluster,
                      cat("this is cluster ", cluster, ", not ", to_hex16(request.cluster_id)));
  }
  if (auto removed = refuse_removed(info.id)) co_return *removed;
  if (auto let = co_await let_in(info); !let) {
    if (let.error().code() == Errc::conflict) {
      co_return refusal(Refused::replaced, let.error().text());
    }
    co_return refusal_of(let.error());
  }
  auto row = co_await registered(info);
  if (!row) {
    if (auto removed = refuse_removed(info.id)) co_return *removed;
    co_return refusal_of(row.error());
  }
  leadership_.liveness.heard(info.id, env_.clock.mono());
  co_return wire::JoinAnswer{request.cluster_id, node_, row.value().stamp};
}

Task<JoinOutcome> Desk::join_anywhere(wire::JoinRequest request) {
  const RaftView raft = consensus_.raft();
  if (raft.leads || raft.leader.empty() || raft.leader == node_) {
    co_return co_await join(std::move(request));
  }
  if (auto removed = refuse_removed(request.member.id)) co_return *removed;
  peer::Call call(http::Method::post, "/peer/v1/join/forwarded", wire::encode(request));
  auto response = co_await caller_.call(raft.leader, peer::Lane::control, std::move(call),
                                        options_.forward_deadline);
  if (!response) {
    co_return refusal(Refused::unavailable, cat("leader ", raft.leader, " does not answer ", node_,
                                                ": ", response.error().text()));
  }
  if (response.value().status != 200) {
    co_return wire::decode_refusal(response.value().status, response.value().body);
  }
  auto answer = wire::decode_join_answer(response.value().body);
  if (!answer) co_return refusal(Refused::unavailable, answer.error().text());
  co_return std::move(answer.value());
}

Task<http::Response> Desk::serve_heartbeat(Desk* self, peer::Sender sender, http::Request r) {
  auto request = wire::decode_heartbeat_request(r.body);
  if (!request) co_return respond(refusal(Refused::invalid, request.error().text()));
  const wire::MemberInfo& info = request.value().member;
  if (info.id != sender.node_id || info.replica != sender.replica) {
    co_return respond(refusal(Refused::invalid, cat(sender.node_id, " speaks for ", info.id)));
  }
  HeartbeatOutcome outcome = co_await self->heartbeat(std::move(request.value()));
  co_return respond(outcome);
}

Task<http::Response> Desk::serve_join(Desk* self, peer::Sender sender, http::Request r) {
  auto request = wire::decode_join_request(r.body);
  if (!request) co_return respond(refusal(Refused::invalid, request.error().text()));
  const wire::MemberInfo& info = request.value().member;
  if (info.id != sender.node_id || info.replica != sender.replica) {
    co_return respond(refusal(Refused::invalid, cat(sender.node_id, " speaks for ", info.id)));
  }
  JoinOutcome outcome = co_await self->join_anywhere(std::move(request.value()));
  co_return respond(outcome);
}

// From a member, which has checked whose request it is.
Task<http::Response> Desk::serve_forwarded(Desk* self, http::Request r) {
  auto request = wire::decode_join_request(r.body);
  if (!request) co_return respond(refusal(Refused::invalid, request.error().text()));
  JoinOutcome outcome = co_await self->join(std::move(request.value()));
  co_return respond(outcome);
}

}  // namespace narad::cluster
