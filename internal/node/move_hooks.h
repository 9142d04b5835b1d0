#pragma once
// For simulation: where a planted bug takes the place of a part of moves (internal/simtest/
// defects.h). Empty in the product.
#include <functional>
#include <memory>
#include <optional>

#include "internal/metastore/metastore.h"
#include "internal/partition/partition.h"
#include "pkg/base/text.h"

namespace narad::node {

struct MoveHooks {
  using WrapMetastore =
      std::function<std::unique_ptr<metastore::Proposer>(metastore::Proposer& inner)>;
  WrapMetastore source_metastore;  // as the owner's side sees it
  WrapMetastore runner_metastore;  // as the destination's side sees it
  std::function<std::shared_ptr<CommitGate>(std::shared_ptr<CommitGate> inner)> gate;
  std::optional<Nanos> move_lease;  // in place of what follows from the configuration
  bool believes_less = false;       // a source that came back with less is believed
};

}  // namespace narad::node
