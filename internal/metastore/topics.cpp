#include "internal/metastore/topics.h"

#include "pkg/base/text.h"

namespace narad::metastore {
namespace {

// 64 random bits that are never 0: 0 means "no incarnation" everywhere.
Incarnation draw_incarnation(Env& env) {
  std::uint64_t bits = 0;
  while (bits == 0) bits = env.random.next();
  return Incarnation(bits);
}

Error no_such_topic() { return Error(Errc::not_found, "topic not found"); }

// The topic that a done result carries.
Result<Topic> topic_of(CommandResult result) {
  if (!result.done()) return to_error(result);
  return std::get<Topic>(std::move(result.row));
}

}  // namespace

Task<Result<Topic>> create_topic(Env& env, Proposer& proposer, TopicSpec spec) {
  CreateTopic c;
  c.name = std::move(spec.name);
  c.incarnation = draw_incarnation(env);
  c.partitions = spec.partitions;
  c.retention_ms = spec.retention_ms;
  c.visibility_timeout_ms = spec.visibility_timeout_ms;
  c.max_in_flight_per_partition = spec.max_in_flight_per_partition;
  c.max_acked_ahead_per_partition = spec.max_acked_ahead_per_partition;
  c.created_at_s = env.clock.wall_millis().value() / 1000;
  c.owner = std::move(spec.owner);
  c.schema = std::move(spec.schema);
  Command command = std::move(c);
  NARAD_CO_TRY(CommandResult result, co_await proposer.propose(std::move(command)));
  co_return topic_of(std::move(result));
}

Task<Result<Topic>> alter_topic(Proposer& proposer, std::string name, TopicPatch patch) {
  const ViewPtr view = proposer.view();
  const TopicRow* row = view->topics.find(name);
  if (row == nullptr) co_return no_such_topic();
  UpdateTopic c;
  c.name = std::move(name);
  c.incarnation = row->topic.incarnation;
  c.retention_ms = patch.retention_ms;
  c.visibility_timeout_ms = patch.visibility_timeout_ms;
  c.max_in_flight_per_partition = patch.max_in_flight_per_partition;
  c.max_acked_ahead_per_partition = patch.max_acked_ahead_per_partition;
  c.partitions = patch.partitions;
  Command command = std::move(c);
  NARAD_CO_TRY(CommandResult result, co_await proposer.propose(std::move(command)));
  co_return topic_of(std::move(result));
}

Task<Result<Incarnation>> delete_topic(Proposer& proposer, std::string name) {
  const ViewPtr view = proposer.view();
  const TopicRow* row = view->topics.find(name);
  if (row == nullptr) co_return no_such_topic();
  const Incarnation incarnation = row->topic.incarnation;
  Command command = DeleteTopic{std::move(name), incarnation};
  NARAD_CO_TRY(CommandResult result, co_await proposer.propose(std::move(command)));
  if (!result.done()) co_return to_error(result);
  co_return incarnation;
}

Task<Result<void>> put_schema(Proposer& proposer, std::string name, Incarnation incarnation,
                              std::uint32_t version, std::string schema) {
  Command command = PutSchema{std::move(name), incarnation, version, std::move(schema)};
  NARAD_CO_TRY(CommandResult result, co_await proposer.propose(std::move(command)));
  if (!result.done()) co_return to_error(result);
  co_return ok();
}

}  // namespace narad::metastore
