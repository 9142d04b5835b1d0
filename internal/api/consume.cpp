// Consume: queue reads, pinned reads and replay (http-api 1.10).
#include "internal/api/message_json.h"
#include "internal/api/query_fields.h"
#include "internal/api/routes.h"
#include "internal/api/status.h"
#include "pkg/http/accept.h"

namespace narad::api {
namespace {

constexpr std::string_view kLines = "application/x-ndjson";

// Whether the client names the media type of lines, and likes it no less than JSON.
bool accepts_lines(const http::Request& request) {
  const auto lines = http::accept_quality(request.headers, "Accept", kLines);
  const auto json = http::accept_quality(request.headers, "Accept", "application/json");
  return lines.value_or(0) > 0 && *lines >= json.value_or(0);
}

// 200 with the messages: one object, a list, or lines.
http::Response messages_response(std::string_view topic, const std::vector<LeasedMessage>& messages,
                                 bool list, MessageFormat format) {
  std::size_t bytes = 64;
  for (const LeasedMessage& m : messages) {
    bytes += m.record.payload.size() + m.record.key.size() + topic.size() + 160;
  }
  std::string body;
  body.reserve(bytes);
  if (list && !format.lines) body += '[';
  bool first = true;
  for (const LeasedMessage& m : messages) {
    if (!first) body += format.lines ? '\n' : ',';
    first = false;
    append_message(body, topic, m.handle.partition, m.record, &m.handle, format);
  }
  if (list && !format.lines) body += ']';
  body += '\n';
  http::Response response = http::json_response(200, std::move(body));
  if (format.lines) response.content_type = kLines;
  return response;
}

Task<http::Response> replay(Context& context, ReplayRequest wanted, MessageFormat format) {
  const std::string topic = wanted.topic;
  const PartitionId partition = wanted.partition;
  auto record = co_await context.broker.replay(std::move(wanted));
  if (!record) co_return fail(context.env.log, "consume", record.error());
  if (!record.value()) co_return http::empty_response(204);
  std::string body;
  append_message(body, topic, partition, *record.value(), nullptr, format);
  body += '\n';
  http::Response response = http::json_response(200, std::move(body));
  if (format.lines) response.content_type = kLines;
  co_return response;
}

}  // namespace

Task<http::Response> consume(Context& context, http::Request request) {
  LogSink& log = context.env.log;
  auto parsed = parse_consume_query(http::Query(request.query()), context.options);
  if (!parsed) co_return fail(log, "consume", parsed.error());
  const ConsumeQuery query = parsed.value();
  const std::string name(request.match.param("topic"));
  const metastore::TopicRowPtr row = context.broker.view()->topics.get(name);
  if (row == nullptr) co_return http::error_response(404, "topic not found");
  std::optional<PartitionId> partition;
  if (query.partition) {
    auto in_topic = partition_in(row->topic, *query.partition);
    if (!in_topic) co_return fail(log, "consume", in_topic.error());
    partition = in_topic.value();
  }
  const MessageFormat format{query.base64, accepts_lines(request)};
  if (query.offset) {
    ReplayRequest wanted;
    wanted.topic = name;
    wanted.incarnation = row->topic.incarnation;
    wanted.partition = *partition;
    wanted.offset = *query.offset;
    co_return co_await replay(context, std::move(wanted), format);
  }
  ConsumeRequest wanted;
  wanted.topic = name;
  wanted.incarnation = row->topic.incarnation;
  wanted.partition = partition;
  wanted.max = query.max.value_or(1);
  wanted.local_only = query.local_only;
  wanted.wait = query.local_only ? Nanos(0) : query.wait;
  auto messages = co_await context.broker.consume(std::move(wanted));
  if (!messages) co_return fail(log, "consume", messages.error());
  if (messages.value().empty()) co_return http::empty_response(204);
  co_return messages_response(name, messages.value(), query.max.has_value(), format);
}

}  // namespace narad::api
