#pragma once
// What connects this node with the others: the listener and the calls of the cluster plane, the
// transport of the consensus, forwarding of proposals, and membership. Binds the interfaces that
// those parts declare to each other; decides nothing. Lives on the node's loop.
//
//   ClusterPlane plane(env, config, data);
//   metastore = open(..., {.transport = &plane, .forwarder = &plane});
//   plane.attach(metastore);                 // then wakes, partitions, local broker
//   plane.listen(local, wakes, desk);
//   plane.form(...)  ->  plane.start()
//   ...
//   plane.hand_over(); ...; plane.stop();
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "internal/api/broker.h"
#include "internal/cluster/membership.h"
#include "internal/cluster/operations.h"
#include "internal/cluster/raft_consensus.h"
#include "internal/metastore/metastore.h"
#include "internal/node/data_dir.h"
#include "internal/node/move_routes.h"
#include "internal/node/remote_owners.h"
#include "internal/node/wakes.h"
#include "internal/peer/peers.h"
#include "internal/peer/raft_lane.h"
#include "internal/peer/server.h"
#include "internal/raftnode/transport.h"
#include "internal/wire/move_messages.h"
#include "pkg/config/config.h"

namespace narad::node {

class LocalBroker;

class ClusterPlane final : public raftnode::Transport,
                           public metastore::Forwarder,
                           private peer::Self,
                           private peer::AddressBook,
                           private cluster::FormationHost {
 public:
  // Whether the configuration speaks of other nodes at all.
  static bool wanted(const Config& config) { return !config.cluster.peers.empty(); }
  // invalid_argument, saying what to set, if nodes could not trust each other.
  static Result<void> check(const Config& config);

  // `data` outlives this. REQUIRES: wanted(), check() passed.
  ClusterPlane(Env& env, const Config& config, DataDir& data);
  ~ClusterPlane() override;  // REQUIRES: stop() has returned, or the node was killed

  // `metastore` outlives the use of this, up to stop(). `drain`: what heartbeats say of this node's
  // drain.
  void attach(metastore::Metastore& metastore, std::function<wire::DrainStatus()> drain);
  RemoteOwners& owners() { return owners_; }

  // Adds every route and listens. Errors: as of Net::listen, with what to do.
  Result<void> listen(LocalBroker& local, Wakes& wakes, MoveDesk moves);
  // Until this node is a member; may take for ever. `removed` has told the process to end.
  Task<Result<cluster::Formed>> form() { return membership_->form(); }
  // REQUIRES: form() has answered, and not `removed`.
  void start() { membership_->start(); }

  Task<void> hand_over();
  Task<void> stop(Nanos grace);

  std::vector<std::string> why_not_ready() const { return membership_->why_not_ready(); }
  cluster::Membership& membership() { return *membership_; }
  cluster::Operations& operations() { return *operations_; }
  // What this node sees of moves and departures while it leads; empty while it does not.
  cluster::BalancerReport balance() const;
  // How long this node, as the leader, has not heard of `node` (moves: force-promote). Answered
  // only behind a round of the majority, so a leader that was replaced says not_leader. unavailable
  // if there was no such round in time.
  Task<Result<wire::SilenceAnswer>> silence(std::string node);
  // Calls of parts that are composed elsewhere; valid up to stop().
  peer::Caller& caller() { return peers_; }
  // Who leads and who votes, by the newest configuration.
  api::ClusterInfo cluster_info() const;
  std::vector<Endpoint> endpoints() const { return server_.local(); }
  // "other: refused: …" for each node that cannot be reached.
  const peer::Peers& peers() const { return peers_; }

  // ---- raftnode::Transport, metastore::Forwarder
  void send(const std::string& node, raft::Message message) override;
  Task<Result<std::string>> forward(std::string leader, std::string body, Nanos deadline) override;

 private:
  // ---- peer::Self, peer::AddressBook
  peer::Sender identity() const override;
  std::optional<raft::ReplicaId> configured_replica(const std::string& node) const override;
  std::optional<Endpoint> address_of(const std::string& node) const override;
  // ---- cluster::FormationHost
  cluster::OwnDisk disk() const override;
  wire::MemberInfo member_info() const override;
  std::string leader() const override;
  std::string data_dir() const override { return data_.root(); }
  Task<Result<>> adopt(std::uint64_t cluster_id, std::vector<raft::Member> founding) override;
  Task<Result<>> found(std::vector<raft::Member> configuration) override;

  Env& env_;
  const Config& config_;
  DataDir& data_;
  const std::string boot_id_;
  metastore::Metastore* metastore_ = nullptr;
  std::unique_ptr<cluster::RaftConsensus> consensus_;  // from attach() on
  std::map<std::string, Endpoint> configured_;         // where each peer listens, by cluster.peers
  peer::Peers peers_;
  peer::Server server_;
  peer::RaftLane raft_lane_;
  RemoteOwners owners_;
  const cluster::MembershipOptions options_;
  std::unique_ptr<cluster::Membership> membership_;  // from attach() on
  std::unique_ptr<cluster::Operations> operations_;  // likewise
};

}  // namespace narad::node
