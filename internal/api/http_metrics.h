#pragma once
// The narad_http_* metrics (http-api 5). Lives on the node's loop.
#include <map>
#include <string_view>

#include "pkg/base/text.h"
#include "pkg/http/message.h"
#include "pkg/metrics/registry.h"

namespace narad::api {

class HttpMetrics {
 public:
  // REQUIRES: declare_narad_metrics(registry) was called. The registry outlives this.
  explicit HttpMetrics(metrics::Registry& registry);

  // Counts a request as being served for as long as it lives.
  class InFlight {
   public:
    explicit InFlight(metrics::Gauge& gauge) : gauge_(gauge) { gauge_.add(1); }
    InFlight(const InFlight&) = delete;
    ~InFlight() { gauge_.add(-1); }

   private:
    metrics::Gauge& gauge_;
  };
  metrics::Gauge& in_flight() { return in_flight_; }

  // `route` is null for what reached no route.
  void served(const http::Route* route, http::Method method, std::uint64_t bytes_in, int status,
              std::uint64_t bytes_out, Nanos took);
  void rejected(std::string_view topic, std::string_view reason);

 private:
  struct Cells {
    metrics::Counter* requests;
    metrics::Histogram* duration;
    metrics::Counter* bytes_in;
    metrics::Counter* bytes_out;
  };
  struct Key {
    const http::Route* route;
    int route_id;  // orders keys; -1 for no route
    http::Method method;
    int status;
    bool operator<(const Key& other) const {
      return std::tie(route_id, method, status) <
             std::tie(other.route_id, other.method, other.status);
    }
  };
  Cells& cells(const Key& key);

  metrics::Registry& registry_;
  metrics::Gauge& in_flight_;
  metrics::Counter& server_errors_;
  std::map<Key, Cells> cells_;
};

}  // namespace narad::api
