#include "internal/model/operations.h"

#include <algorithm>

#include "pkg/base/assert.h"

namespace narad {

std::string_view to_string(DrainRule rule) {
  switch (rule) {
    case DrainRule::owns_partitions:
      return "owns_partitions";
    case DrainRule::move_target:
      return "move_target";
    case DrainRule::min_voters:
      return "min_voters";
    case DrainRule::no_live_majority:
      return "no_live_majority";
    case DrainRule::is_leader:
      return "is_leader";
    case DrainRule::no_receiver:
      return "no_receiver";
    case DrainRule::dead_owner:
      return "dead_owner";
    case DrainRule::ingress_backlog:
      return "ingress_backlog";
    case DrainRule::unreachable:
      return "unreachable";
  }
  NARAD_ASSERT(false, "unknown rule");
}

std::string_view to_string(StopRule rule) {
  switch (rule) {
    case StopRule::owns_partitions:
      return "owns_partitions";
    case StopRule::move_source:
      return "move_source";
    case StopRule::move_target:
      return "move_target";
    case StopRule::ingress_backlog:
      return "ingress_backlog";
    case StopRule::no_live_majority:
      return "no_live_majority";
    case StopRule::unreachable:
      return "unreachable";
  }
  NARAD_ASSERT(false, "unknown rule");
}

std::string_view to_string(SetAsideKind kind) {
  switch (kind) {
    case SetAsideKind::partition:
      return "partition";
    case SetAsideKind::staged:
      return "staged";
    case SetAsideKind::topic:
      return "topic";
  }
  NARAD_ASSERT(false, "unknown kind");
}

bool DrainVerdict::hopeless() const {
  return std::any_of(reasons.begin(), reasons.end(), [](const auto& r) { return r.hopeless; });
}

bool DrainVerdict::has(DrainRule rule) const {
  return std::any_of(reasons.begin(), reasons.end(), [&](const auto& r) { return r.rule == rule; });
}

}  // namespace narad
