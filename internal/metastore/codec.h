#pragma once
// The rows of the state as JSON, one compact object each with its keys in a fixed order: what the
// store keeps, what snapshots will carry, and what digest() sums up. Decoding is strict: an unknown
// field or a value out of range is data_loss, for nobody but a newer release writes such a row.
#include "internal/metastore/state.h"
#include "pkg/base/result.h"

namespace narad::metastore {

// Everything of the state that is not a row: cluster id, applied index, versions, counters.
std::string encode_summary(const State& state);
Result<void> decode_summary(std::string_view text, State& out);

std::string encode_topic(const Topic& topic, RaftIndex changed_at);
std::string encode_assignment(const Assignment& assignment);
std::string encode_schema(const SchemaVersion& schema);
std::string encode_member(const Member& member);
std::string encode_tombstone(const Tombstone& tombstone);
std::string encode_deleted_topic(const DeletedTopic& deleted);
std::string encode_move(const MoveRecord& move);
std::string encode_user(const User& user);

struct DecodedTopic {
  Topic topic;
  RaftIndex changed_at{0};
};
Result<DecodedTopic> decode_topic(std::string_view text);
Result<Assignment> decode_assignment(std::string_view text);
Result<SchemaVersion> decode_schema(std::string_view text);
Result<Member> decode_member(std::string_view text);
Result<Tombstone> decode_tombstone(std::string_view text);
Result<DeletedTopic> decode_deleted_topic(std::string_view text);
Result<MoveRecord> decode_move(std::string_view text);
Result<User> decode_user(std::string_view text);

}  // namespace narad::metastore
