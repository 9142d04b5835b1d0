#pragma once
// From whatever lies on the disk to a replica that belongs to a cluster: asks the configured peers
// every two seconds, decides (bootstrap.h), founds or asks to be let in, until one of it has
// happened. Lives on the node's loop.
//
// Order, so that every crash leaves a state from which the same way is taken again: node.json says
// which cluster (and, for a founder, with which configuration), then the Raft store begins.
#include <functional>
#include <map>
#include <string>

#include "internal/cluster/bootstrap.h"
#include "internal/cluster/reasons.h"
#include "internal/peer/peers.h"
#include "pkg/async/task_group.h"

namespace narad::peer {
class Server;
}

namespace narad::cluster {

// What formation needs of its node.
class FormationHost {
 public:
  virtual ~FormationHost() = default;
  virtual OwnDisk disk() const = 0;
  virtual wire::MemberInfo member_info() const = 0;
  virtual std::string leader() const = 0;    // node id; empty: none known
  virtual std::string data_dir() const = 0;  // for people
  // Durable in node.json when it answers. `founding` empty: it joins.
  virtual Task<Result<>> adopt(std::uint64_t cluster_id, std::vector<raft::Member> founding) = 0;
  // The Raft store begins with this configuration; durable when it answers. `exists` counts as
  // done.
  virtual Task<Result<>> found(std::vector<raft::Member> configuration) = 0;
};

enum class Formed : std::uint8_t {
  resumed,
  founded,
  joined,
  removed,  // the process is ending with kExitRemoved
};

struct FormationOptions {
  Nanos every = std::chrono::seconds(2);
  Nanos probe_deadline = std::chrono::milliseconds(1500);
  Nanos join_deadline = std::chrono::seconds(10);
};

class Formation {
 public:
  // `addresses`: where each peer of the rules listens. `known`: the members this node knows, for
  // others who ask.
  using Known = std::function<std::vector<wire::MemberAddress>()>;
  Formation(Env& env, FormationHost& host, peer::Caller& caller, BootstrapRules rules,
            std::map<std::string, Endpoint> addresses, Known known, FormationOptions options = {});

  // "Who are you", for others. Add before the server listens, and before run().
  void add_routes(peer::Server& server);
  // Ends when this node is a member, was removed, or on an error of its disk. May take for ever:
  // cancel it.
  Task<Result<Formed>> run();
  Task<void> stop() { return tasks_.stop(); }
  // Asks once to be let in again, of a node that has formed already. True if it was.
  Task<bool> rejoin();
  // What every configured peer says now; within the probe deadline.
  Task<std::vector<PeerReport>> look_around();

  Standing::Phase phase() const { return phase_; }
  const std::string& detail() const { return detail_; }
  wire::WhoAnswer who() const;

 private:
  struct Probe;
  Task<void> probe(std::size_t index, std::shared_ptr<Probe> round);
  Task<Result<>> found(Found decision);
  Task<bool> try_join(Join decision);  // true: admitted, or phase_ is removed
  void say(Standing::Phase phase, std::string detail);
  void removed(const wire::MemberRefusal& refusal);

  Env& env_;
  FormationHost& host_;
  peer::Caller& caller_;
  const BootstrapRules rules_;
  const std::map<std::string, Endpoint> addresses_;
  const Known known_;
  const FormationOptions options_;
  Standing::Phase phase_ = Standing::Phase::starting;
  std::string detail_;
  std::size_t first_asked_ = 0;  // peers are asked to let this node in from a rotating start
  Event probed_;
  TaskGroup tasks_;
};

}  // namespace narad::cluster
