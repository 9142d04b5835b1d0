#pragma once
// Asks other nodes about the partitions that live there: encodes, calls, decodes, and turns what
// the plane says into errors. The other end is peer_routes.h. Lives on the node's loop.
//
// Errors of every call: `unreachable` if the node did not answer whole in time (whether it acted is
// unknown), otherwise the error that it answered.
#include <optional>
#include <string>
#include <vector>

#include "internal/api/broker.h"
#include "internal/peer/peers.h"
#include "internal/wire/broker_messages.h"

namespace narad::node {

class RemoteOwners {
 public:
  // `caller` outlives this.
  explicit RemoteOwners(peer::Caller& caller) : caller_(caller) {}

  Task<Result<CommitOutcome>> commit(std::string node, wire::CommitCall call);
  Task<Result<std::vector<api::LeasedMessage>>> consume(std::string node, wire::ConsumeCall call,
                                                        Nanos deadline);
  Task<Result<std::vector<Result<void>>>> settle(std::string node, wire::SettleCall call);
  Task<Result<std::optional<StoredRecord>>> replay(std::string node, wire::ReplayCall call);
  Task<Result<std::vector<api::PartitionStat>>> stats(std::string node, wire::StatsCall call);
  Task<Result<void>> interest(std::string node, wire::InterestCall call);
  Task<Result<void>> wake(std::string node, wire::WakeCall call);

 private:
  Task<Result<std::string>> ask(std::string node, peer::Lane lane, std::string target,
                                std::string body, Nanos deadline);

  peer::Caller& caller_;
};

}  // namespace narad::node
