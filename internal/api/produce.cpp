// Produce, single and in batches (http-api 1.9; decisions.md, "batch").
#include <array>
#include <charconv>

#include "internal/api/batch.h"
#include "internal/api/query_fields.h"
#include "internal/api/routes.h"
#include "internal/api/status.h"
#include "pkg/base/text.h"

namespace narad::api {
namespace {

// Messages larger than this, together, are validated off the loop.
constexpr std::size_t kValidateInlineBytesMax = 32 << 10;

// "key-1", "key-2", … "key-a": the keys of keyless messages, counted per process in base 36.
std::string next_key(Context& context) {
  std::array<char, 16> digits;
  auto [end, ec] =
      std::to_chars(digits.data(), digits.data() + digits.size(), ++context.generated_keys, 36);
  return cat("key-", std::string_view(digits.data(), end));
}

// What produce needs to know of the topic, looked up once.
struct Destination {
  metastore::TopicRowPtr row;
  SchemaPtr schema;  // null: any payload goes
};

// 404 before 409 (http-api 1.9), and before anything that depends on the topic.
Result<Destination> find_destination(Context& context, const std::string& name) {
  Destination to;
  to.row = context.broker.view()->topics.get(name);
  if (to.row == nullptr) return Error(Errc::not_found, "topic not found");
  if (to.row->topic.role == TopicRole::child && to.row->topic.fanout_delay_ms > 0) {
    context.http_metrics.rejected(name, "delayed_child");
    return Error(Errc::conflict, "a delayed child topic takes messages from its parent only");
  }
  NARAD_TRY(to.schema, context.schemas.get(*to.row));
  return to;
}

MessagePtr make_message(Context& context, const Topic& topic, std::string key,
                        std::optional<PartitionId> pinned, std::string payload, UnixMillis now) {
  auto message = std::make_shared<Message>();
  message->incarnation = topic.incarnation;
  message->topic = topic.name;
  message->key = key.empty() ? next_key(context) : std::move(key);
  message->partition = pinned ? *pinned : partition_of_key(message->key, topic.partitions);
  message->accepted_at = now;
  message->payload = std::move(payload);
  return message;
}

// The number of the first message that the schema refuses, and why.
struct InvalidRecord {
  std::size_t number;
  Error why;
};
std::optional<InvalidRecord> first_refusal(const jsonschema::Schema& schema,
                                           const std::vector<BatchRecord>& records) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (auto valid = check_message(schema, records[i].value); !valid) {
      return InvalidRecord{i + 1, valid.error()};
    }
  }
  return std::nullopt;
}

}  // namespace

Task<http::Response> produce(Context& context, http::Request request) {
  LogSink& log = context.env.log;
  auto query = parse_produce_query(http::Query(request.query()));
  if (!query) co_return fail(log, "produce", query.error());
  if (request.body_too_large) co_return too_large();
  if (request.body.empty()) co_return http::error_response(400, "message required");
  const std::string name(request.match.param("topic"));
  auto to = find_destination(context, name);
  if (!to) co_return fail(log, "produce", to.error());
  const metastore::TopicRowPtr row = to.value().row;
  std::string payload = std::move(request.body);
  if (const SchemaPtr schema = to.value().schema; schema != nullptr) {
    auto valid = Result<void>(ok());
    if (payload.size() <= kValidateInlineBytesMax) {
      valid = check_message(*schema, payload);
    } else {
      auto shared = std::make_shared<std::string>(std::move(payload));
      auto job = [schema, shared] { return check_message(*schema, *shared); };
      valid = co_await blocking(context.env, "schema check", std::move(job));
      payload = std::move(*shared);
    }
    if (!valid) {
      context.http_metrics.rejected(name, "schema");
      co_return fail(log, "produce", valid.error());
    }
  }
  std::optional<PartitionId> pinned;
  if (query.value().partition) {
    auto in_topic = partition_in(row->topic, *query.value().partition);
    if (!in_topic) co_return fail(log, "produce", in_topic.error());
    pinned = in_topic.value();
  }
  MessagePtr message = make_message(context, row->topic, std::move(query.value().key), pinned,
                                    std::move(payload), context.env.clock.wall_millis());
  const PartitionId partition = message->partition;
  auto accepted = co_await context.broker.produce(std::move(message));
  if (!accepted) co_return fail(log, "produce", accepted.error());
  http::Response response = http::empty_response(202);
  response.headers.add("X-Narad-Partition", std::to_string(partition.value()));
  co_return response;
}

Task<http::Response> produce_batch(Context& context, http::Request request) {
  LogSink& log = context.env.log;
  auto wanted = parse_batch_query(http::Query(request.query()));
  if (!wanted) co_return fail(log, "produce", wanted.error());
  const std::string type = media_type(request.headers.get("Content-Type").value_or(""));
  const bool binary = type == "application/vnd.narad.batch";
  if (!binary && type != "application/x-ndjson") {
    co_return http::error_response(
        415, "Content-Type must be application/vnd.narad.batch or application/x-ndjson");
  }
  if (request.body_too_large) co_return too_large();
  auto records = std::make_shared<std::vector<BatchRecord>>();
  {
    auto parsed = binary ? parse_binary_batch(request.body) : parse_ndjson_batch(request.body);
    if (!parsed) co_return fail(log, "produce", parsed.error());
    *records = std::move(parsed.value());
  }
  const std::size_t bytes = std::exchange(request.body, {}).size();
  const std::string name(request.match.param("topic"));
  auto to = find_destination(context, name);
  if (!to) co_return fail(log, "produce", to.error());
  const metastore::TopicRowPtr row = to.value().row;
  if (const SchemaPtr schema = to.value().schema; schema != nullptr) {
    std::optional<InvalidRecord> refusal;
    if (bytes <= kValidateInlineBytesMax) {
      refusal = first_refusal(*schema, *records);
    } else {
      auto job = [schema, records] { return first_refusal(*schema, *records); };
      refusal = co_await blocking(context.env, "schema check", std::move(job));
    }
    if (refusal) {
      context.http_metrics.rejected(name, "schema");
      co_return fail(log, "produce", refusal->why.with_context(cat("record ", refusal->number)));
    }
  }
  std::optional<PartitionId> pinned;
  if (wanted.value()) {
    auto in_topic = partition_in(row->topic, *wanted.value());
    if (!in_topic) co_return fail(log, "produce", in_topic.error());
    pinned = in_topic.value();
  }
  std::vector<MessagePtr> messages;
  messages.reserve(records->size());
  const UnixMillis now = context.env.clock.wall_millis();
  for (BatchRecord& r : *records) {
    messages.push_back(
        make_message(context, row->topic, std::move(r.key), pinned, std::move(r.value), now));
  }
  const std::size_t count = messages.size();
  auto accepted = co_await context.broker.produce_batch(std::move(messages));
  if (!accepted) co_return fail(log, "produce", accepted.error());
  co_return http::json_response(202, cat("{\"accepted\":", count, "}\n"));
}

}  // namespace narad::api
