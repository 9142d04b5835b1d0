#pragma once
// How long the steps of moves take, from the few times of the configuration, in the proportions of
// the defaults (docs/internals/moves.md). Pure.
#include "internal/moves/runner.h"
#include "internal/moves/source.h"
#include "pkg/config/config.h"

namespace narad::node {

moves::SourceTiming source_timing(const Config& config);
moves::RunnerTiming runner_timing(const Config& config);

}  // namespace narad::node
