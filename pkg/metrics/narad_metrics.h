#pragma once
// Every metric of the wire contract that this release publishes (http-api section 5), declared in
// one place; and the `process_*` collector, whose numbers the caller reads behind the doors.
#include "pkg/metrics/registry.h"

namespace narad::metrics {

// The 49 of the contract, present whether or not this release counts them, those it adds, and
// `process_*`.
void declare_narad_metrics(Registry& registry);

// Drops every series of a deleted topic, as topic, parent or child.
void remove_topic(Registry& registry, std::string_view topic);

struct ProcessNumbers {
  double cpu_seconds = 0;
  double resident_bytes = 0;
  double virtual_bytes = 0;
  double open_fds = 0;
  double max_fds = 0;
  double start_time_seconds = 0;  // Unix time
};
void set_process_metrics(Registry& registry, const ProcessNumbers& numbers);

}  // namespace narad::metrics
