#pragma once
// Raft messages as bytes: the body of POST /peer/v1/raft, a batch from one node to another. Pure.
//
//   batch    version u8 = 1, count u32, then per message length u32 and the message
//   message  kind u8, flags u8 (1 reject, 2 force), from u64, to u64, term u64, then by kind
//
// Numbers are little-endian and fixed in size. What a kind carries is what types.h lists for it; of
// a message that was decoded every other field is as in a fresh one. The core judges the sense of a
// message (Core::step); here it is only made sure that bytes are one.
#include <string>
#include <vector>

#include "pkg/base/bytes.h"
#include "pkg/base/result.h"
#include "pkg/raft/types.h"

namespace narad::wire {

// The largest body: one entry of the largest size, and room to spare. A receiver refuses more.
inline constexpr std::size_t kRaftBodyMax = 8u << 20;
inline constexpr std::size_t kRaftBatchMessagesMax = 4096;
// How far a batch is filled before the next one begins.
inline constexpr std::size_t kRaftBatchBytes = 1u << 20;

std::size_t encoded_size(const raft::Message& m);

// Whole messages in order, each body at most kRaftBatchBytes long unless a single message is
// longer. REQUIRES: entries in a row after m.index (as the core makes them), chunks filled.
std::vector<std::string> encode_raft_bodies(const std::vector<raft::Message>& messages);

// Errors: invalid_argument, with what is wrong. Never allocates more than a small multiple of
// `body`.
Result<std::vector<raft::Message>> decode_raft_body(ByteView body);

}  // namespace narad::wire
