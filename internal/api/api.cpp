#include "internal/api/api.h"

#include <algorithm>

#include "internal/api/routes.h"
#include "pkg/env/net.h"
#include "pkg/json/document.h"
#include "pkg/json/text.h"

namespace narad::api {
namespace {

constexpr std::uint64_t kJsonBodyMax = kMessageBytesMax;
// Of a request without credentials.
constexpr std::uint64_t kStrangerBodyMax = 16 << 10;

http::RouteOptions body_of(std::uint64_t bytes_max) {
  http::RouteOptions options;
  options.body_bytes_max = bytes_max;
  options.handler_refuses_large = true;  // so that 413 stands at its place, and is counted
  return options;
}
http::RouteOptions long_poll() {
  http::RouteOptions options;
  options.serves_head = false;  // a HEAD never takes a lease
  options.cancel_when_gone = true;
  return options;
}

// Rights first, so that who may not do a thing learns nothing else; then the handler, or 413 in its
// place where the body is of no use.
Task<http::Response> call_handler(const RouteSpec& spec, Context& context, http::Request request) {
  const security::Caller& caller = call_of(request).caller;
  auto denied = check_right(spec.right, request, caller, *context.broker.view());
  if (denied) co_return std::move(*denied);
  // Made through another node a moment ago, perhaps: then it may be another's, too.
  const std::string_view topic = topic_needed(spec.right, request);
  if (!topic.empty() && !context.broker.view()->topics.contains(topic)) {
    co_await context.broker.catch_up();
    denied = check_right(spec.right, request, caller, *context.broker.view());
    if (denied) co_return std::move(*denied);
  }
  const bool refuses_large = spec.handler == produce || spec.handler == produce_batch;
  if (request.body_too_large && !refuses_large) co_return too_large();
  co_return co_await spec.handler(context, std::move(request));
}

// What an error answer tells the client.
std::string error_text(const http::Response& response) {
  if (response.status < 300) return {};
  auto document = json::Document::parse(response.body, json::kBodyDepthMax);
  if (!document || !document.value().root().is(json::Kind::object)) return response.body;
  const auto text = document.value().root().find("error");
  return text && text->is(json::Kind::string) ? std::string(text->as_string()) : std::string();
}

}  // namespace

std::vector<RouteSpec> route_table(const Options& options) {
  const http::RouteOptions json = body_of(kJsonBodyMax);
  return {
      {"POST /v1/topics", create_topic, json, Right::create_named, "create_topic"},
      {"GET /v1/topics", list_topics, json, Right::any_user},
      {"GET /v1/topics/{topic}", get_topic, json, Right::any_user},
      {"PATCH /v1/topics/{topic}", change_topic, json, Right::manage_when_read, "change_topic"},
      {"DELETE /v1/topics/{topic}", delete_topic, json, Right::manage, "delete_topic"},
      {"POST /v1/topics/{topic}/produce", produce, body_of(kMessageBytesMax), Right::produce},
      {"POST /v1/topics/{topic}/produce:batch", produce_batch, body_of(options.max_batch_bytes),
       Right::produce},
      {"GET /v1/topics/{topic}/consume", consume, long_poll(), Right::consume},
      {"POST /v1/topics/{topic}/ack", ack, json, Right::consume},
      {"POST /v1/topics/{topic}/ack:batch", ack_batch, json, Right::consume},
      {"POST /v1/users", create_user, json, Right::admin, "create_user"},
      {"GET /v1/users", list_users, json, Right::admin},
      {"GET /v1/users/{username}", get_user, json, Right::admin},
      {"DELETE /v1/users/{username}", delete_user, json, Right::admin, "delete_user"},
      {"PUT /v1/users/{username}/grants", set_user_grants, json, Right::admin, "set_grants"},
      {"PUT /v1/users/{username}/password", set_user_password, json, Right::self_or_admin,
       "set_password"},
      {"GET /v1/cluster/members", list_members, json, Right::any_user},
      {"POST /v1/cluster/members/{id}/decommission", decommission, json, Right::admin,
       "cluster.decommission"},
      {"DELETE /v1/cluster/members/{id}/decommission", cancel_decommission, json, Right::admin,
       "cluster.decommission.cancel"},
      {"GET /v1/cluster/members/{id}/safe-to-stop", safe_to_stop, json, Right::any_user},
      {"POST /v1/cluster/rebalance", rebalance, json, Right::admin, "cluster.rebalance"},
      {"GET /v1/cluster/explain/{topic}/{partition}", explain, json, Right::any_user},
      {"GET /v1/cluster/moves", list_moves, json, Right::any_user},
      {"GET /v1/cluster/moves/{id}", get_move, json, Right::any_user},
      {"POST /v1/cluster/moves", start_move, json, Right::admin, "cluster.move.start"},
      {"POST /v1/cluster/moves/{topic}/{partition}/abort", abort_move, json, Right::admin,
       "cluster.move.abort"},
      {"POST /v1/cluster/moves/{topic}/{partition}/pause", pause_move, json, Right::admin,
       "cluster.move.pause"},
      {"POST /v1/cluster/moves/{topic}/{partition}/resume", resume_move, json, Right::admin,
       "cluster.move.resume"},
      {"POST /v1/cluster/moves/pause", pause_moves, json, Right::admin, "cluster.moves.pause"},
      {"POST /v1/cluster/moves/resume", resume_moves, json, Right::admin, "cluster.moves.resume"},
      {"GET /v1/cluster/throttle", get_throttle, json, Right::any_user},
      {"PUT /v1/cluster/throttle", set_throttle, json, Right::admin, "cluster.throttle.set"},
      {"DELETE /v1/cluster/throttle", clear_throttle, json, Right::admin, "cluster.throttle.clear"},
      {"GET /v1/cluster/quarantine", list_quarantine, json, Right::any_user},
      {"GET /healthz", healthz, json, Right::anybody},
      {"GET /readyz", readyz, json, Right::anybody},
      {"GET /metrics", metrics_text, json, Right::anybody},
      {"GET /v1/openapi.json", openapi, json, Right::any_user},
  };
}

http::Response too_large() { return http::error_response(413, "request body too large"); }

std::string media_type(std::string_view header) {
  std::string_view type = header.substr(0, header.find(';'));
  while (!type.empty() && (type.front() == ' ' || type.front() == '\t')) type.remove_prefix(1);
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.remove_suffix(1);
  std::string out(type);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

Api::Api(Env& env, Broker& broker, security::Security& security, metrics::Registry& registry,
         Options options)
    : context_(std::make_unique<Context>(env, broker, security, registry, options)),
      routes_(route_table(options)) {
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    router_.add(routes_[i].pattern, static_cast<int>(i), routes_[i].options);
  }
}

Api::~Api() = default;

http::Admit Api::admit() const {
  return [place = http::admit_with(router_), &security = context_->security](http::Request& r) {
    http::Admission admission = place(r);
    // The body of somebody who does not even say who it is gets no memory worth speaking of.
    if (security.enabled() && !needs_no_login(r.path()) && authorization_of(r).empty()) {
      admission.body_bytes_max = std::min(admission.body_bytes_max, kStrangerBodyMax);
      admission.handler_refuses_large = true;
    }
    return admission;
  };
}

http::Handler Api::handler() {
  return [this](http::Request request) { return handle(std::move(request)); };
}

// An administrative write, with its line in the record. The line is written even if the write was
// cut off: it may have happened.
Task<http::Response> Api::recorded(const RouteSpec& spec, http::Request request) {
  security::AuditEvent event;
  const auto call = std::static_pointer_cast<const Call>(request.context);
  event.user = security::name_of(call->caller);
  event.remote = to_string(*request.peer);
  event.action = spec.audit;
  if (!request.match.route->params.empty()) event.target = request.match.values[0];
  http::Response response;
  std::exception_ptr cut_off;
  try {
    response = co_await call_handler(spec, *context_, std::move(request));
  } catch (...) {
    cut_off = std::current_exception();
  }
  if (cut_off) {
    co_await clear_cancellation();
    response = http::error_response(503, "cut off before it was answered: it may have happened");
  }
  event.time = context_->env.clock.wall_millis();
  event.status = response.status;
  event.unknown = cut_off || call->outcome_unknown;
  event.error = error_text(response);
  if (!call->target.empty()) event.target = call->target;
  co_await context_->security.audit().record(std::move(event));
  if (cut_off) std::rethrow_exception(cut_off);
  co_return response;
}

Task<http::Response> Api::dispatch(const http::Route& route, http::Request request) {
  const RouteSpec& spec = routes_[static_cast<std::size_t>(route.id)];
  if (!spec.audit.empty() && context_->security.audit().enabled()) {
    co_return co_await recorded(spec, std::move(request));
  }
  co_return co_await call_handler(spec, *context_, std::move(request));
}

Task<http::Response> Api::handle(http::Request request) {
  HttpMetrics& metrics = context_->http_metrics;
  security::Security& security = context_->security;
  const HttpMetrics::InFlight counted(metrics.in_flight());
  const Nanos began = context_->env.clock.mono();
  const http::Route* route = request.match.route;
  const http::Method method = request.method;
  const std::uint64_t bytes_in = request.body.size();
  const auto call = std::make_shared<Call>();
  request.context = call;
  http::Response response;
  if (auto refusal = co_await let_in(security, context_->env, request, *call)) {
    route = nullptr;  // none was reached
    response = std::move(*refusal);
  } else if (route == nullptr) {
    response = router_.refuse(method, request.target);
  } else {
    response = co_await dispatch(*route, std::move(request));
  }
  const Nanos now = context_->env.clock.mono();
  if (route != nullptr && call->caller != nullptr) {
    security.rates().charge(call->caller->username, bytes_in + response.body.size(), now);
  }
  metrics.served(route, method, bytes_in, response.status, response.body.size(), now - began);
  co_return response;
}

}  // namespace narad::api
