// Ack, extend and nack, single and in batches (http-api 1.11; decisions.md, "batch").
#include "internal/api/query_fields.h"
#include "internal/api/routes.h"
#include "internal/api/status.h"
#include "pkg/base/text.h"
#include "pkg/json/decode.h"
#include "pkg/json/writer.h"

namespace narad::api {
namespace {

std::string_view op_of(SettleMode mode) {
  switch (mode) {
    case SettleMode::ack:
      return "ack";
    case SettleMode::extend:
      return "extend ack";
    case SettleMode::nack:
      return "nack";
  }
  return "ack";
}

struct SettleBatch {
  SettleMode mode = SettleMode::ack;
  std::vector<std::string> handles;
};

Result<SettleBatch> parse_settle_batch(std::string body) {
  SettleBatch batch;
  std::string mode;
  NARAD_TRY(auto document, json::parse_body(std::move(body)));
  json::Decoder d(document.root());
  d.field("mode", mode).field("handles", batch.handles);
  NARAD_TRY(d.finish());
  if (mode == "extend") {
    batch.mode = SettleMode::extend;
  } else if (mode == "nack") {
    batch.mode = SettleMode::nack;
  } else if (mode != "ack") {
    return Error(Errc::invalid_argument, "mode must be ack, extend or nack");
  }
  if (batch.handles.empty() || batch.handles.size() > kSettleMax) {
    return Error(Errc::invalid_argument, cat("handles must hold 1 to ", kSettleMax, " handles"));
  }
  return batch;
}

}  // namespace

Task<http::Response> ack(Context& context, http::Request request) {
  LogSink& log = context.env.log;
  auto query = parse_settle_query(http::Query(request.query()));
  if (!query) co_return fail(log, "ack", query.error());
  const std::string name(request.match.param("topic"));
  const metastore::TopicRowPtr row = context.broker.view()->topics.get(name);
  if (row == nullptr) co_return http::error_response(404, "topic not found");
  const SettleMode mode = query.value().mode;
  auto settled =
      co_await context.broker.settle(name, row->topic.incarnation, query.value().handle, mode);
  if (!settled) co_return fail(log, op_of(mode), settled.error());
  co_return http::empty_response(204);
}

Task<http::Response> ack_batch(Context& context, http::Request request) {
  LogSink& log = context.env.log;
  if (auto type = request.headers.get("Content-Type");
      type && media_type(*type) != "application/json") {
    co_return http::error_response(415, "Content-Type must be application/json");
  }
  auto parsed = parse_settle_batch(std::move(request.body));
  if (!parsed) co_return fail(log, "ack", parsed.error());
  const SettleBatch batch = std::move(parsed.value());
  const std::string name(request.match.param("topic"));
  const metastore::TopicRowPtr row = context.broker.view()->topics.get(name);
  if (row == nullptr) co_return http::error_response(404, "topic not found");
  // A malformed handle is its own result; the others are settled all the same.
  std::vector<int> statuses(batch.handles.size(), 0);
  std::vector<ReceiptHandle> handles;
  for (std::size_t i = 0; i < batch.handles.size(); ++i) {
    auto handle = parse_receipt_handle(batch.handles[i]);
    if (handle) {
      handles.push_back(handle.value());
    } else {
      statuses[i] = status_of(handle.error().code());
    }
  }
  std::vector<Result<void>> outcomes;
  if (!handles.empty()) {
    outcomes = co_await context.broker.settle_batch(name, row->topic.incarnation,
                                                    std::move(handles), batch.mode);
  }
  json::Writer w;
  w.begin_object().key("results").begin_array();
  std::size_t next = 0;
  for (std::size_t i = 0; i < batch.handles.size(); ++i) {
    if (statuses[i] == 0) {
      const Result<void>& outcome = outcomes.at(next++);
      statuses[i] = outcome ? 204 : status_of(outcome.error().code());
    }
    w.begin_object().member("handle", batch.handles[i]).member("status", statuses[i]).end_object();
  }
  w.end_array().end_object();
  co_return http::json_response(200, w.take() + "\n");
}

}  // namespace narad::api
