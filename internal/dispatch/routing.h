#pragma once
// What a node's own view says about where partitions live. Values and one interface; no I/O.
#include <cstdint>

#include "internal/model/names.h"

namespace narad::dispatch {

enum class OwnerState : std::uint8_t {
  alive,       // worth sending to
  dead,        // known dead: its records are rerouted at once
  unassigned,  // nobody yet: waited for as for an owner that does not answer
};

// What this node's own view says about one partition of one life of a topic. Never proof that the
// topic is gone: a local view may lag (CommitTarget::confirm_gone is the proof).
struct Route {
  bool topic_known = false;      // the view holds this very incarnation of the topic
  std::uint32_t partitions = 0;  // of the topic; 0 if it is not known
  OwnerState owner = OwnerState::unassigned;
  RaftIndex assignment_index{0};  // the row version that `owner` was read from
  bool frozen = false;            // the owner takes nothing for a moment: the last step of a move
};

class Routing {
 public:
  virtual ~Routing() = default;
  // Does not suspend, and is cheap: asked for every batch.
  virtual Route route(const TopicPartition& partition, Incarnation incarnation) const = 0;
};

}  // namespace narad::dispatch
