// Health, metrics and the description of the API (http-api 1.14, 7).
#include "internal/api/routes.h"
#include "pkg/json/writer.h"

namespace narad::api {

Task<http::Response> healthz(Context& context, http::Request) {
  const bool leaving = context.broker.readiness().shutting_down;
  co_return http::json_response(
      leaving ? 503 : 200, leaving ? "{\"status\":\"shutting down\"}\n" : "{\"status\":\"ok\"}\n");
}

Task<http::Response> readyz(Context& context, http::Request) {
  const Readiness readiness = context.broker.readiness();
  if (readiness.ready && !readiness.shutting_down) {
    co_return http::json_response(200, "{\"status\":\"ready\"}\n");
  }
  json::Writer w;
  w.begin_object().member("error", "not ready").key("waiting_for").begin_array();
  for (const std::string& reason : readiness.waiting_for) w.value(reason);
  w.end_array().end_object();
  co_return http::json_response(503, w.take() + "\n");
}

Task<http::Response> metrics_text(Context& context, http::Request) {
  http::Response response;
  response.status = 200;
  response.content_type = metrics::kContentType;
  response.body = context.registry.expose();
  co_return response;
}

Task<http::Response> openapi(Context&, http::Request) {
  co_return http::json_response(200, std::string(openapi_document()));
}

}  // namespace narad::api
