#include "internal/api/api.h"

#include <algorithm>

#include "internal/api/routes.h"

namespace narad::api {
namespace {

constexpr std::uint64_t kJsonBodyMax = kMessageBytesMax;

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

}  // namespace

std::vector<RouteSpec> route_table(const Options& options) {
  const http::RouteOptions json = body_of(kJsonBodyMax);
  return {
      {"POST /v1/topics", create_topic, json},
      {"GET /v1/topics", list_topics, json},
      {"GET /v1/topics/{topic}", get_topic, json},
      {"PATCH /v1/topics/{topic}", change_topic, json},
      {"DELETE /v1/topics/{topic}", delete_topic, json},
      {"POST /v1/topics/{topic}/produce", produce, body_of(kMessageBytesMax)},
      {"POST /v1/topics/{topic}/produce:batch", produce_batch, body_of(options.max_batch_bytes)},
      {"GET /v1/topics/{topic}/consume", consume, long_poll()},
      {"POST /v1/topics/{topic}/ack", ack, json},
      {"POST /v1/topics/{topic}/ack:batch", ack_batch, json},
      {"GET /v1/cluster/members", list_members, json},
      {"GET /v1/cluster/moves", list_moves, json},
      {"GET /healthz", healthz, json},
      {"GET /readyz", readyz, json},
      {"GET /metrics", metrics_text, json},
      {"GET /v1/openapi.json", openapi, json},
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

Api::Api(Env& env, Broker& broker, metrics::Registry& registry, Options options)
    : context_(std::make_unique<Context>(env, broker, registry, options)) {
  const auto table = route_table(options);
  for (std::size_t i = 0; i < table.size(); ++i) {
    router_.add(table[i].pattern, static_cast<int>(i), table[i].options);
  }
  handlers_.reserve(table.size());
  for (const RouteSpec& spec : table) handlers_.push_back(spec.handler);
}

Api::~Api() = default;

http::Admit Api::admit() const { return http::admit_with(router_); }

http::Handler Api::handler() {
  return [this](http::Request request) { return handle(std::move(request)); };
}

Task<http::Response> Api::handle(http::Request request) {
  HttpMetrics& metrics = context_->http_metrics;
  const HttpMetrics::InFlight counted(metrics.in_flight());
  const Nanos began = context_->env.clock.mono();
  const http::Route* route = request.match.route;
  const http::Method method = request.method;
  const std::uint64_t bytes_in = request.body.size();
  http::Response response;
  if (route == nullptr) {
    response = router_.refuse(method, request.target);
  } else {
    const RouteHandler code = handlers_[static_cast<std::size_t>(route->id)];
    const bool refused = request.body_too_large && code != produce && code != produce_batch;
    response = refused ? too_large() : co_await code(*context_, std::move(request));
  }
  const Nanos took = context_->env.clock.mono() - began;
  metrics.served(route, method, bytes_in, response.status, response.body.size(), took);
  co_return response;
}

}  // namespace narad::api
