#pragma once
// Where the dispatcher hands records over, declared here and implemented by internal/node: the
// local partition, or later a call to the node that owns it. Lives on the dispatcher's loop and
// outlives it.
#include <string>

#include "internal/dispatch/routing.h"
#include "internal/model/message.h"
#include "pkg/async/event.h"
#include "pkg/base/result.h"

namespace narad::dispatch {

class CommitTarget : public Routing {
 public:
  // Hands `batch` to the owner of `partition`. Success: every record of it is durable there,
  // appended now or recognised as known. An error means nothing about whether it was: the
  // dispatcher sends the same records again. The dispatcher gives up on an answer (cancels) after
  // Options::deadline from the moment of the call, so an answer that comes later is never believed.
  virtual Task<Result<CommitOutcome>> commit(TopicPartition partition, CommitBatch batch) = 0;
  // Asks the Raft leader, who answers behind a barrier, whether this life of the topic has ended
  // for good. true: proof that its records may be discarded. false: it lives. An error ("could not
  // ask") keeps the records.
  virtual Task<Result<bool>> confirm_gone(std::string topic, Incarnation incarnation) = 0;
  // Notified after route() may answer differently: an owner changed, died or came back, a topic
  // appeared or went.
  virtual Event& routing_changed() = 0;
};

}  // namespace narad::dispatch
