#pragma once
// The few administrative steps on topics, on top of any Proposer: they draw what a proposer must
// draw, name the incarnation they saw, and turn refusals into errors.
#include <optional>
#include <string>

#include "internal/metastore/metastore.h"

namespace narad::metastore {

// All values resolved (no "0 = default" left).
struct TopicSpec {
  std::string name;
  std::uint32_t partitions = 0;
  std::int64_t retention_ms = 0;  // 0 = keep for ever
  std::int64_t visibility_timeout_ms = 0;
  std::int64_t max_in_flight_per_partition = 0;
  std::int64_t max_acked_ahead_per_partition = 0;
  std::string owner;                  // username or empty
  std::optional<std::string> schema;  // JSON Schema text, already compiled once
};

struct TopicPatch {
  std::optional<std::int64_t> retention_ms;
  std::optional<std::int64_t> visibility_timeout_ms;
  std::optional<std::int64_t> max_in_flight_per_partition;
  std::optional<std::int64_t> max_acked_ahead_per_partition;
  std::optional<std::uint32_t> partitions;  // more than there are
};

// The topic as created. Errors: exists, invalid_argument, and those of Proposer::propose.
Task<Result<Topic>> create_topic(Env& env, Proposer& proposer, TopicSpec spec);
// The topic after the change. Errors: not_found, invalid_argument (not growing), conflict.
Task<Result<Topic>> alter_topic(Proposer& proposer, std::string name, TopicPatch patch);
// The incarnation that was deleted. Errors: not_found, conflict.
Task<Result<Incarnation>> delete_topic(Proposer& proposer, std::string name);
// Adds `schema` as version `version` (newest + 1 as the caller read it; conflict if that is no
// longer so).
Task<Result<void>> put_schema(Proposer& proposer, std::string name, Incarnation incarnation,
                              std::uint32_t version, std::string schema);

}  // namespace narad::metastore
