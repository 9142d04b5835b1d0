#include "pkg/metrics/narad_metrics.h"

namespace narad::metrics {
namespace {

// The bucket sets of the contract, under its letters.
const std::vector<double> kA{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};
const std::vector<double> kB{.001, .01, .1, .5, 1, 5, 10, 30, 60};
const std::vector<double> kC{.0001, .0005, .001, .005, .01, .05, .1, .5, 1};
const std::vector<double> kD{1, 8, 64, 256, 1024, 4096, 16384};

// first, first*factor, … : `count` of them.
std::vector<double> powers(double first, double factor, int count) {
  std::vector<double> out;
  for (; count > 0; --count, first *= factor) out.push_back(first);
  return out;
}

}  // namespace

void declare_narad_metrics(Registry& r) {
  using enum Type;
  const std::vector<std::string_view> tp{"topic", "partition"};
  const auto add = [&](std::string_view name, Type type, std::string_view help,
                       std::vector<std::string_view> labels = {},
                       std::vector<double> buckets = {}) {
    r.declare(Family{name, type, help, std::move(labels), std::move(buckets)});
  };
  add("narad_http_requests_total", counter, "HTTP requests.", {"route", "method", "status"});
  add("narad_http_request_duration_seconds", histogram, "Time from request to response.",
      {"route", "method", "status"}, kA);
  add("narad_http_request_bytes_in_total", counter, "Bytes of request bodies.", {"route"});
  add("narad_http_response_bytes_out_total", counter, "Bytes of response bodies.", {"route"});
  add("narad_http_requests_in_flight", gauge, "Requests being served now.");
  add("narad_messages_produced_total", counter, "Records committed to a partition log.", tp);
  add("narad_messages_consumed_total", counter, "Messages returned to consumers.", tp);
  add("narad_bytes_produced_total", counter, "Payload bytes committed.", tp);
  add("narad_bytes_consumed_total", counter, "Payload bytes returned.", tp);
  add("narad_produce_rejections_total", counter, "Produce requests refused by a rule of the topic.",
      {"topic", "reason"});
  add("narad_consume_wait_seconds", histogram, "Time a scan for messages took, waiting included.",
      {"topic", "outcome"}, kB);
  add("narad_consume_empty_total", counter, "Scans that found nothing.", {"topic"});
  add("narad_topics_total", gauge, "Topics in the metadata.");
  add("narad_partitions_total", gauge, "Partitions owned here with an open log.");
  add("narad_open_partition_logs", gauge, "Open partition logs, as of the last idle check.");
  add("narad_idle_logs_evicted_total", counter, "Partition logs closed because nobody used them.");
  add("narad_data_dir_size_bytes", gauge, "Regular files under the data directory.");
  add("narad_data_dir_available_bytes", gauge, "Bytes available on the data directory's disk.");
  add("narad_topic_bytes", gauge, "Sum of partition sizes on this node.", {"topic"});
  add("narad_partition_size_bytes", gauge, "Size of the partition's segments.", tp);
  add("narad_segments", gauge, "Segment files.", tp);
  add("narad_consumer_lag_messages", gauge, "Records not settled yet.", tp);
  add("narad_consumer_dropped_messages", gauge, "Unacked records that retention deleted.", tp);
  add("narad_oldest_unconsumed_message_age_seconds", gauge,
      "Age of the segment that holds the next message; 0 if caught up.", tp);
  add("narad_inflight_size", gauge, "Live leases.", tp);
  add("narad_acked_ahead_size", gauge, "Parked out-of-order acks.", tp);
  add("narad_ack_rejected_total", counter, "Acks refused.", {"reason"});
  add("narad_ack_extended_total", counter, "Lease extensions granted.", {"topic"});
  add("narad_nack_total", counter, "Nacks granted.", {"topic"});
  add("narad_consumer_corrupt_skipped_total", counter, "Unreadable records skipped (lost).", tp);
  add("narad_storage_flush_duration_seconds", histogram, "Writing a commit to its segment.", tp,
      kC);
  add("narad_storage_flush_bytes_total", counter, "Bytes written to segments.", tp);
  add("narad_storage_fsync_duration_seconds", histogram, "Syncing a segment.", tp, kC);
  add("narad_storage_high_watermark_persist_duration_seconds", histogram,
      "Storing the high watermark.", {"topic", "partition", "outcome"}, kC);
  add("narad_storage_retention_bytes_deleted_total", counter, "Bytes deleted by retention.",
      {"topic", "partition", "reason"});
  add("narad_storage_retention_messages_deleted_total", counter, "Records deleted by retention.",
      {"topic", "partition", "reason"});
  add("narad_storage_retention_run_duration_seconds", histogram, "One retention sweep.", tp, kA);
  const std::vector<double> kE = powers(1024, 4, 10);
  const std::vector<double> kF = powers(0.25, 2, 14);
  add("narad_fanout_lag_messages", gauge, "Records of the parent that the child lacks.",
      {"parent", "child", "partition"});
  add("narad_fanout_committed_total", counter, "Records committed into the child.",
      {"parent", "child"});
  // A counter whose name, by contract, lacks the usual ending.
  add("narad_fanout_child_dropped_messages", counter, "Records that the child lost.",
      {"parent", "child"});
  add("narad_fanout_batch_records", histogram, "Records of a fan-out batch.", {}, kD);
  add("narad_fanout_batch_bytes", histogram, "Bytes of a fan-out batch.", {}, kE);
  add("narad_fanout_due_lag_seconds", gauge, "Seconds behind the due time of a delay child.",
      {"parent", "child", "partition"});
  add("narad_moves_inflight", gauge, "Moves that this node executes as destination.");
  add("narad_moves_total", counter, "Moves ended, by outcome.", {"outcome"});
  add("narad_moves_duration_seconds", histogram, "From the start of a move to its flip.", {}, kF);
  add("narad_moves_bytes_total", counter, "Bytes copied by moves.");
  add("narad_moves_blocked", gauge, "Moves that wait for something to change, by reason.",
      {"reason"});
  add("narad_decommission_blocked", gauge,
      "1 for each reason that keeps a draining member in the cluster, as the leader sees it.",
      {"node", "reason"});
  add("narad_errors_total", counter, "Errors, by where they happened.", {"component", "kind"});
  add("narad_boot_duration_seconds", gauge, "From process start to ready.");
  // What this implementation adds.
  add("narad_ingress_backlog_bytes", gauge, "Bytes of ingress WAL segments on disk.");
  add("narad_ingress_refused_total", counter, "Records that the ingress WAL refused.");
  add("narad_dispatch_unsettled_records", gauge, "Records accepted and not handed over yet.");
  add("narad_dispatch_rerouted_total", counter, "Records handed to a sibling partition.");
  add("narad_dispatch_discarded_total", counter, "Records of deleted topics discarded.");
  add("narad_origin_dropped_total", counter, "Origin table entries dropped.", tp);
  add("narad_consume_state_unreadable_total", counter,
      "Stored consumer states that did not verify.", tp);
  add("narad_partitions_latched", gauge, "Partitions that take no commits after a failed sync.");
  add("narad_quarantined_copies", gauge, "Copies set aside on this node.");
  add("narad_quarantined_bytes", gauge, "Bytes of the copies set aside on this node.");
  add("narad_orphan_topic_dirs", gauge,
      "Topic directories on this node that do not say which life of the topic they are of.");
  add("narad_clock_trusted", gauge, "1 while the wall clock may expire records, else 0.");
  add("process_cpu_seconds_total", counter, "User and system CPU time spent in seconds.");
  add("process_resident_memory_bytes", gauge, "Resident memory size in bytes.");
  add("process_virtual_memory_bytes", gauge, "Virtual memory size in bytes.");
  add("process_open_fds", gauge, "Number of open file descriptors.");
  add("process_max_fds", gauge, "Maximum number of open file descriptors.");
  add("process_start_time_seconds", gauge, "Start time of the process since the Unix epoch.");
}

void remove_topic(Registry& r, std::string_view topic) {
  for (std::string_view label : {"topic", "parent", "child"}) r.remove_series(label, topic);
}

void set_process_metrics(Registry& r, const ProcessNumbers& n) {
  r.counter("process_cpu_seconds_total").set_total(n.cpu_seconds);
  r.gauge("process_resident_memory_bytes").set(n.resident_bytes);
  r.gauge("process_virtual_memory_bytes").set(n.virtual_bytes);
  r.gauge("process_open_fds").set(n.open_fds);
  r.gauge("process_max_fds").set(n.max_fds);
  r.gauge("process_start_time_seconds").set(n.start_time_seconds);
}

}  // namespace narad::metrics
