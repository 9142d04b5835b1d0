#pragma once
// The HTTP API of one node: routes, and the handler that http::Server calls. Lives on the node's
// loop; the owner stops the server before it destroys this, and keeps the broker, security and
// the registry alive.
//
//   Api api(env, broker, security, registry, options);
//   http::Server server(env, server_options, api.admit(), api.handler());
#include <memory>

#include "internal/api/broker.h"
#include "internal/api/options.h"
#include "internal/security/security.h"
#include "pkg/http/server.h"
#include "pkg/metrics/registry.h"

namespace narad::api {

struct Context;
struct RouteSpec;

class Api {
 public:
  // REQUIRES: metrics::declare_narad_metrics(registry) was called.
  Api(Env& env, Broker& broker, security::Security& security, metrics::Registry& registry,
      Options options);
  Api(const Api&) = delete;
  ~Api();

  const http::Router& router() const { return router_; }
  http::Admit admit() const;
  http::Handler handler();

  // Answers one request, whose `match` was filled with router(). Never fails: whatever goes wrong
  // is an answer. A cancelled long poll throws operation_aborted, as every task does.
  Task<http::Response> handle(http::Request request);

 private:
  Task<http::Response> dispatch(const http::Route& route, http::Request request);
  Task<http::Response> recorded(const RouteSpec& spec, http::Request request);

  std::unique_ptr<Context> context_;
  http::Router router_;
  const std::vector<RouteSpec> routes_;  // by route id
};

}  // namespace narad::api
