#include "internal/api/http_metrics.h"

#include <string>

namespace narad::api {

HttpMetrics::HttpMetrics(metrics::Registry& registry)
    : registry_(registry),
      in_flight_(registry.gauge("narad_http_requests_in_flight")),
      server_errors_(registry.counter("narad_errors_total", {"http", "5xx"})) {}

HttpMetrics::Cells& HttpMetrics::cells(const Key& key) {
  auto at = cells_.find(key);
  if (at != cells_.end()) return at->second;
  const std::string route = key.route != nullptr ? key.route->pattern : "unmatched";
  const metrics::LabelValues labels{route, std::string(to_string(key.method)),
                                    std::to_string(key.status)};
  Cells fresh{&registry_.counter("narad_http_requests_total", labels),
              &registry_.histogram("narad_http_request_duration_seconds", labels),
              &registry_.counter("narad_http_request_bytes_in_total", {route}),
              &registry_.counter("narad_http_response_bytes_out_total", {route})};
  return cells_.emplace(key, fresh).first->second;
}

void HttpMetrics::served(const http::Route* route, http::Method method, std::uint64_t bytes_in,
                         int status, std::uint64_t bytes_out, Nanos took) {
  Cells& c = cells({route, route != nullptr ? route->id : -1, method, status});
  c.requests->add();
  c.duration->observe(std::chrono::duration<double>(took).count());
  c.bytes_in->add(static_cast<double>(bytes_in));
  c.bytes_out->add(static_cast<double>(bytes_out));
  if (status >= 500) server_errors_.add();
}

void HttpMetrics::rejected(std::string_view topic, std::string_view reason) {
  registry_.counter("narad_produce_rejections_total", {std::string(topic), std::string(reason)})
      .add();
}

}  // namespace narad::api
