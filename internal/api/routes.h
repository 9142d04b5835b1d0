#pragma once
// The table of routes, and what every handler may use. Private to this directory.
#include <span>

#include "internal/api/broker.h"
#include "internal/api/gate.h"
#include "internal/api/http_metrics.h"
#include "internal/api/options.h"
#include "internal/api/schemas.h"
#include "pkg/http/message.h"
#include "pkg/http/query.h"

namespace narad::api {

struct Context {
  Context(Env& e, Broker& b, security::Security& s, metrics::Registry& r, Options o)
      : env(e), broker(b), security(s), registry(r), options(o), http_metrics(r) {}
  Env& env;
  Broker& broker;
  security::Security& security;
  metrics::Registry& registry;
  const Options options;
  HttpMetrics http_metrics;
  SchemaCache schemas;
  std::uint64_t generated_keys = 0;  // since the start of the process
};

// One route's code. The context outlives the task. Anything it awaits may take long; state read
// from the view before is old afterwards.
using RouteHandler = Task<http::Response> (*)(Context& context, http::Request request);

struct RouteSpec {
  std::string_view pattern;
  RouteHandler handler;
  http::RouteOptions options;
  Right right = Right::unset;
  std::string_view audit{};  // the name of an administrative write in the record; empty: none
};
// All of them; a route's id is its index here. Batch bodies are limited by `options`.
std::vector<RouteSpec> route_table(const Options& options);

// topics.cpp
Task<http::Response> create_topic(Context& context, http::Request request);
Task<http::Response> list_topics(Context& context, http::Request request);
Task<http::Response> get_topic(Context& context, http::Request request);
Task<http::Response> change_topic(Context& context, http::Request request);
Task<http::Response> delete_topic(Context& context, http::Request request);
// produce.cpp
Task<http::Response> produce(Context& context, http::Request request);
Task<http::Response> produce_batch(Context& context, http::Request request);
// consume.cpp
Task<http::Response> consume(Context& context, http::Request request);
// ack.cpp
Task<http::Response> ack(Context& context, http::Request request);
Task<http::Response> ack_batch(Context& context, http::Request request);
// cluster.cpp
Task<http::Response> list_members(Context& context, http::Request request);
// moves.cpp
Task<http::Response> list_moves(Context& context, http::Request request);
Task<http::Response> get_move(Context& context, http::Request request);
Task<http::Response> start_move(Context& context, http::Request request);
Task<http::Response> abort_move(Context& context, http::Request request);
Task<http::Response> pause_move(Context& context, http::Request request);
Task<http::Response> resume_move(Context& context, http::Request request);
Task<http::Response> pause_moves(Context& context, http::Request request);
Task<http::Response> resume_moves(Context& context, http::Request request);
// throttle.cpp
Task<http::Response> get_throttle(Context& context, http::Request request);
Task<http::Response> set_throttle(Context& context, http::Request request);
Task<http::Response> clear_throttle(Context& context, http::Request request);
// quarantine.cpp
Task<http::Response> list_quarantine(Context& context, http::Request request);
// operations.cpp
Task<http::Response> decommission(Context& context, http::Request request);
Task<http::Response> cancel_decommission(Context& context, http::Request request);
Task<http::Response> safe_to_stop(Context& context, http::Request request);
Task<http::Response> rebalance(Context& context, http::Request request);
Task<http::Response> explain(Context& context, http::Request request);
// users.cpp
Task<http::Response> create_user(Context& context, http::Request request);
Task<http::Response> list_users(Context& context, http::Request request);
Task<http::Response> get_user(Context& context, http::Request request);
Task<http::Response> delete_user(Context& context, http::Request request);
Task<http::Response> set_user_grants(Context& context, http::Request request);
Task<http::Response> set_user_password(Context& context, http::Request request);
// health.cpp
Task<http::Response> healthz(Context& context, http::Request request);
Task<http::Response> readyz(Context& context, http::Request request);
Task<http::Response> metrics_text(Context& context, http::Request request);
Task<http::Response> openapi(Context& context, http::Request request);

// The OpenAPI 3.1 document (openapi.cpp).
std::string_view openapi_document();

// As fail(), for writes of metadata: when the consensus is not to be had, the contract has a
// sentence of its own.
http::Response fail_write(Context& context, std::string_view op, const Error& error);

// As fail_write(), for orders about the cluster: the record learns it if nobody knows whether it
// happened.
http::Response fail_order(Context& context, const Call& call, std::string_view op,
                          const Error& error);

// 413, as every route answers a body over its limit. Produce checks its query first, so its
// handlers do it themselves; for the others it is done before they are called.
http::Response too_large();

// The value of a media-type header without parameters, in lower case: "application/json".
std::string media_type(std::string_view header);

}  // namespace narad::api
