#include "internal/node/move_timing.h"

#include <algorithm>

namespace narad::node {

moves::SourceTiming source_timing(const Config& config) {
  const Config::Timing& t = config.timing;
  moves::SourceTiming timing;
  timing.freeze_ttl = t.freeze_ttl;
  timing.lease_drain = std::min(timing.lease_drain, t.freeze_ttl / 4);
  // Half of what must pass before a silent owner is replaced: clocks may run twice as fast as each
  // other (moves.md, "Fenced by the log").
  timing.move_lease = t.dead_after / 2;
  timing.retry = t.move_tick;
  return timing;
}

moves::RunnerTiming runner_timing(const Config& config) {
  const Config::Timing& t = config.timing;
  moves::RunnerTiming timing;
  timing.tick = t.move_tick;
  timing.full_pass = t.move_tick * 30;
  timing.retry = t.move_tick * 2;
  timing.between_passes = t.move_tick / 20;
  timing.freeze_ttl = t.freeze_ttl;
  timing.force_promote_after = t.dead_after * 4;
  timing.propose_again_for = t.freeze_ttl * 4;
  timing.quiet_before_undo = t.freeze_ttl / 2;
  timing.hung_after = t.freeze_ttl;
  timing.hold = t.move_hold;
  timing.hold_phase = t.move_hold_phase;
  timing.bytes_per_second = static_cast<std::uint64_t>(config.moves.max_bytes_per_second);
  return timing;
}

}  // namespace narad::node
