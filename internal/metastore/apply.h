#pragma once
// The one function that changes the state: pure, total and deterministic. The same state, index and
// command give the same state and result on every node; what does not fit is a typed refusal that
// changes nothing but the applied index.
#include "internal/metastore/command.h"
#include "internal/metastore/state.h"

namespace narad::metastore {

// Sanity bounds of the state itself; the configured limits of the API are tighter.
inline constexpr std::uint32_t kTopicPartitionsMax = 10'000;
inline constexpr std::size_t kSchemaBytesMax = 1 << 20;

// REQUIRES: index > state.applied. Afterwards state.applied == index, whatever the result.
CommandResult apply(State& state, RaftIndex index, const Command& command);

}  // namespace narad::metastore
