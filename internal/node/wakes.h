#pragma once
// Wakes long-polls on one node for messages that land on another. A node whose client waits tells
// the owners of the topic that it is interested, for a while; an owner sends word when messages are
// there that nobody sleeps for on the owner itself, gathering what comes while an earlier word is
// under way. Word may be lost: whoever waits
// looks again by itself now and then. Lives on the node's loop.
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "internal/node/partitions.h"
#include "internal/node/remote_owners.h"
#include "pkg/async/task_group.h"

namespace narad::node {

class Wakes {
 public:
  // Both outlive this. Listens to `partitions` until it is stopped.
  Wakes(Env& env, RemoteOwners& owners, Partitions& partitions);
  ~Wakes();  // REQUIRES: stop() has returned, or the node was killed

  enum class Cover : std::uint8_t {
    held,   // the owner knew already: nothing can have been missed
    fresh,  // it knows from now on: look once more before waiting
    none,   // it cannot be told
  };
  // Sees to it that `node` sends word about `topic`.
  Task<Cover> cover(std::string node, std::string topic);

  // What other nodes said.
  void interested(const std::string& node, const wire::InterestCall& call);
  void woken(const std::string& node, const wire::WakeCall& call);

  Task<void> stop();

 private:
  struct Interest {  // of another node, in a topic that lives here
    Nanos until{0};
  };
  struct Peer {
    std::map<std::string, std::uint64_t> word;  // topic -> records, to be sent
    bool sending = false;
  };
  struct Told {  // another node about a topic
    explicit Told(Env& env) : done(env) {}
    Nanos until{0};
    bool calling = false;
    Event done;
  };
  void available(const std::string& topic, std::uint64_t records);
  Task<void> send(std::string node);
  void forget_expired();

  Env& env_;
  RemoteOwners& owners_;
  Partitions& partitions_;
  std::map<std::string, std::map<std::string, Interest>> interests_;  // topic -> node
  std::size_t interest_count_ = 0;
  std::map<std::string, Peer> peers_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Told>> told_;  // node, topic
  TaskGroup tasks_;
};

}  // namespace narad::node
