// Topics: create, list, look at, change, delete (http-api 1.3 to 1.7).
#include "internal/api/query_fields.h"
#include "internal/api/routes.h"
#include "internal/api/status.h"
#include "internal/api/topic_json.h"
#include "pkg/base/text.h"
#include "pkg/jsonschema/schema.h"

namespace narad::api {
namespace {

constexpr int kSchemaTries = 3;

http::Response not_found() { return http::error_response(404, "topic not found"); }

// Adds the next version of a topic's schema. Somebody else may add one meanwhile: then the new one
// is judged against theirs.
Task<Result<void>> add_schema(Context& context, std::string name, std::string schema) {
  for (int attempt = 1;; ++attempt) {
    const metastore::ViewPtr view = context.broker.view();
    const metastore::TopicRow* row = view->topics.find(name);
    if (row == nullptr) co_return Error(Errc::not_found, "topic not found");
    if (row->topic.role == TopicRole::child) {
      co_return Error(Errc::conflict, "the schema of a child topic is that of its parent");
    }
    const metastore::SchemaVersion* latest = row->schema();
    if (latest != nullptr) {
      NARAD_CO_TRY(jsonschema::check_evolution(latest->text, schema));
    }
    const std::uint32_t next = latest != nullptr ? latest->version + 1 : 1;
    const Incarnation incarnation = row->topic.incarnation;
    Result<void> added = co_await context.broker.put_schema(name, incarnation, next, schema);
    if (added || added.error().code() != Errc::conflict || attempt == kSchemaTries) {
      co_return added;
    }
  }
}

}  // namespace

http::Response fail_write(Context& context, std::string_view op, const Error& error) {
  const bool control_plane =
      error.code() == Errc::unavailable || error.code() == Errc::unknown_outcome;
  return fail(context.env.log, op,
              control_plane ? error.with_context("control plane temporarily unavailable") : error);
}

http::Response fail_order(Context& context, const Call& call, std::string_view op,
                          const Error& error) {
  if (error.code() != Errc::unknown_outcome) return fail_write(context, op, error);
  call.outcome_unknown = true;
  return fail(context.env.log, op, error);
}

Task<http::Response> create_topic(Context& context, http::Request request) {
  const Call& call = call_of(request);
  auto body = read_create(std::move(request.body));
  if (!body) co_return fail(context.env.log, "create topic", body.error());
  call.target = body.value().name;
  if (auto denied = check_create(call.caller, body.value().name)) co_return std::move(*denied);
  if (!body.value().parent.empty()) {
    auto denied = check_manage(call.caller, *context.broker.view(), body.value().parent);
    if (denied) co_return std::move(*denied);
  }
  auto spec = resolve_create(std::move(body.value()), context.options);
  if (!spec) co_return fail(context.env.log, "create topic", spec.error());
  spec.value().owner = security::name_of(call.caller);
  if (spec.value().schema) {
    if (auto compiled = compile_schema(*spec.value().schema); !compiled) {
      co_return fail(context.env.log, "create topic", compiled.error());
    }
  }
  auto topic = co_await context.broker.create_topic(std::move(spec.value()));
  if (!topic) co_return fail_write(context, "create topic", topic.error());
  co_return http::json_response(201, topic_body(topic.value()));
}

Task<http::Response> list_topics(Context& context, http::Request request) {
  auto query = parse_list_query(http::Query(request.query()));
  if (!query) co_return fail(context.env.log, "list topics", query.error());
  const metastore::ViewPtr view = context.broker.view();
  // One more than the page, to know whether there is another.
  auto rows = view->topics.after(query.value().page_token, query.value().limit + 1);
  std::string next;
  if (rows.size() > query.value().limit) {
    rows.pop_back();
    next = rows.back()->topic.name;
  }
  co_return http::json_response(200, topic_list_body(rows, next));
}

Task<http::Response> get_topic(Context& context, http::Request request) {
  auto wanted = parse_stats_query(http::Query(request.query()));
  if (!wanted) co_return fail(context.env.log, "get topic", wanted.error());
  const std::string name(request.match.param("topic"));
  const metastore::ViewPtr view = context.broker.view();
  const metastore::TopicRowPtr row = view->topics.get(name);
  if (row == nullptr) co_return not_found();
  std::optional<PartitionId> partition;
  if (wanted.value()) {
    auto in_topic = partition_in(row->topic, *wanted.value());
    if (!in_topic) co_return fail(context.env.log, "get topic", in_topic.error());
    partition = in_topic.value();
  }
  auto stats = co_await context.broker.partition_stats(name, partition);
  if (!stats) co_return fail(context.env.log, "get topic", stats.error());
  co_return http::json_response(200, topic_body(row->topic, stats.value()));
}

Task<http::Response> change_topic(Context& context, http::Request request) {
  const std::string name(request.match.param("topic"));
  auto parsed = parse_change(std::move(request.body), context.options);
  if (!parsed) co_return fail(context.env.log, "alter topic", parsed.error());
  TopicChange change = std::move(parsed.value());
  if (change.schema) {
    if (auto compiled = compile_schema(*change.schema); !compiled) {
      co_return fail(context.env.log, "alter topic", compiled.error());
    }
  }
  if (auto denied = check_manage(call_of(request).caller, *context.broker.view(), name)) {
    co_return std::move(*denied);
  }
  if (!context.broker.view()->topics.contains(name)) co_return not_found();
  // One step after the other: what was done stays done if a later one is refused.
  if (change.has_settings()) {
    auto altered = co_await context.broker.alter_topic(name, change.settings);
    if (!altered) co_return fail_write(context, "alter topic", altered.error());
  }
  if (change.growth.partitions) {
    auto altered = co_await context.broker.alter_topic(name, change.growth);
    if (!altered) co_return fail_write(context, "alter topic", altered.error());
  }
  if (change.schema) {
    auto added = co_await add_schema(context, name, std::move(*change.schema));
    if (!added) co_return fail_write(context, "alter topic", added.error());
  }
  const metastore::ViewPtr view = context.broker.view();
  const metastore::TopicRow* row = view->topics.find(name);
  if (row == nullptr) co_return not_found();
  co_return http::json_response(200, topic_body(row->topic));
}

Task<http::Response> delete_topic(Context& context, http::Request request) {
  const std::string name(request.match.param("topic"));
  auto deleted = co_await context.broker.delete_topic(name);
  if (!deleted) co_return fail_write(context, "delete topic", deleted.error());
  co_return http::empty_response(204);
}

}  // namespace narad::api
