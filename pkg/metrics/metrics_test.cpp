#include <gtest/gtest.h>

#include <iostream>

#include "pkg/metrics/narad_metrics.h"

namespace narad::metrics {
namespace {

TEST(Exposition, FamiliesAndSeries_AreInOrderAndEscaped) {
  Registry r;
  r.declare({"b_total", Type::counter, "B\nhelp \\.", {"who"}, {}});
  r.declare({"a", Type::gauge, "A.", {}, {}});
  r.counter("b_total", {"x\"y\\z\n"}).add(2);
  r.counter("b_total", {"a"}).add();
  r.gauge("a").set(1.5);
  EXPECT_EQ(r.expose(),
            "# HELP a A.\n# TYPE a gauge\na 1.5\n"
            "# HELP b_total B\\nhelp \\\\.\n# TYPE b_total counter\n"
            "b_total{who=\"a\"} 1\nb_total{who=\"x\\\"y\\\\z\\n\"} 2\n");
}

TEST(Exposition, FamilyWithLabels_AppearsOnFirstUse) {
  Registry r;
  r.declare({"seen", Type::gauge, "S.", {}, {}});
  r.declare({"unseen", Type::gauge, "U.", {"l"}, {}});
  EXPECT_EQ(r.expose(), "# HELP seen S.\n# TYPE seen gauge\nseen 0\n");
}

TEST(Histogram, Buckets_AreCumulativeAndInclusive) {
  Registry r;
  r.declare({"h", Type::histogram, "H.", {"l"}, {0.1, 1}});
  auto& h = r.histogram("h", {"v"});
  for (double v : {0.05, 0.1, 0.5, 7.0}) h.observe(v);
  EXPECT_EQ(h.count(), 4u);
  EXPECT_EQ(r.expose(),
            "# HELP h H.\n# TYPE h histogram\n"
            "h_bucket{l=\"v\",le=\"0.1\"} 2\nh_bucket{l=\"v\",le=\"1\"} 3\n"
            "h_bucket{l=\"v\",le=\"+Inf\"} 4\nh_sum{l=\"v\"} 7.65\nh_count{l=\"v\"} 4\n");
}

TEST(Registry, RemovedTopic_TakesItsSeriesInEveryFamily) {
  Registry r;
  declare_narad_metrics(r);
  r.gauge("narad_segments", {"gone", "0"}).set(1);
  r.gauge("narad_topic_bytes", {"gone"}).set(1);
  r.gauge("narad_topic_bytes", {"kept"}).set(1);
  r.remove_series("topic", "gone");
  EXPECT_EQ(r.expose().find("gone"), std::string::npos);
  EXPECT_NE(r.expose().find("narad_topic_bytes{topic=\"kept\"} 1"), std::string::npos);
}

TEST(Registry, Numbers_ReadBackAsTheyWere) {
  Registry r;
  r.declare({"n", Type::gauge, "N.", {}, {}});
  for (double v : {0.1, 1e300, 123456789.125, 1e15, 3.0}) {
    r.gauge("n").set(v);
    const std::string text = r.expose();
    EXPECT_EQ(std::stod(text.substr(text.rfind(' ') + 1)), v);
  }
}

TEST(NaradMetrics, UnlabelledOnes_ArePresentFromTheStart) {
  Registry r;
  declare_narad_metrics(r);
  set_process_metrics(r, {});
  for (const char* name : {"narad_topics_total 0", "narad_http_requests_in_flight 0",
                           "narad_boot_duration_seconds 0", "process_open_fds 0"}) {
    EXPECT_NE(r.expose().find(name), std::string::npos) << name;
  }
}

TEST(Exposition, Numbers_AreSpelledAsDashboardsKnowThem) {
  Registry r;
  r.declare({"n", Type::gauge, "N.", {}, {}});
  const std::pair<double, const char*> kSpelled[] = {{0, "0"},
                                                     {-0.0, "0"},
                                                     {1, "1"},
                                                     {0.1, "0.1"},
                                                     {999999, "999999"},
                                                     {1e6, "1e+06"},
                                                     {1048576, "1.048576e+06"},
                                                     {268435456, "2.68435456e+08"},
                                                     {0.0001, "0.0001"},
                                                     {0.00001, "1e-05"},
                                                     {123456789.125, "1.23456789125e+08"},
                                                     {-2.5, "-2.5"},
                                                     {1e300, "1e+300"},
                                                     {5e-324, "5e-324"}};
  for (const auto& [value, text] : kSpelled) {
    r.gauge("n").set(value);
    EXPECT_EQ(r.expose(), std::string("# HELP n N.\n# TYPE n gauge\nn ") + text + "\n");
  }
}

TEST(NaradMetrics, BucketSets_AreThoseOfTheContract) {
  Registry r;
  declare_narad_metrics(r);
  r.histogram("narad_http_request_duration_seconds", {"GET /", "GET", "200"}).observe(0.003);
  r.histogram("narad_consume_wait_seconds", {"t", "hit"}).observe(61);
  r.histogram("narad_storage_fsync_duration_seconds", {"t", "0"}).observe(0.0001);
  const std::string text = r.expose();
  const auto bounds = [&](const std::string& name) {
    std::string out;
    const std::string start = name + "_bucket";
    for (std::size_t at = text.find(start); at != std::string::npos;
         at = text.find(start, at + 1)) {
      const std::size_t le = text.find("le=\"", at) + 4;
      out += text.substr(le, text.find('"', le) - le) + " ";
    }
    return out;
  };
  EXPECT_EQ(bounds("narad_http_request_duration_seconds"),
            "0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 +Inf ");
  EXPECT_EQ(bounds("narad_consume_wait_seconds"), "0.001 0.01 0.1 0.5 1 5 10 30 60 +Inf ");
  EXPECT_EQ(bounds("narad_storage_fsync_duration_seconds"),
            "0.0001 0.0005 0.001 0.005 0.01 0.05 0.1 0.5 1 +Inf ");
  EXPECT_EQ(bounds("narad_fanout_batch_records"), "1 8 64 256 1024 4096 16384 +Inf ");
  EXPECT_EQ(bounds("narad_fanout_batch_bytes"),
            "1024 4096 16384 65536 262144 1.048576e+06 4.194304e+06 1.6777216e+07 6.7108864e+07 "
            "2.68435456e+08 +Inf ");
  EXPECT_EQ(bounds("narad_moves_duration_seconds"),
            "0.25 0.5 1 2 4 8 16 32 64 128 256 512 1024 2048 +Inf ");
}

struct ContractRow {
  const char* name;
  Type type;
  std::size_t labels;
};
constexpr ContractRow kContract[] = {
    {"narad_http_requests_total", Type::counter, 3},
    {"narad_http_request_duration_seconds", Type::histogram, 3},
    {"narad_http_request_bytes_in_total", Type::counter, 1},
    {"narad_http_response_bytes_out_total", Type::counter, 1},
    {"narad_http_requests_in_flight", Type::gauge, 0},
    {"narad_messages_produced_total", Type::counter, 2},
    {"narad_messages_consumed_total", Type::counter, 2},
    {"narad_bytes_produced_total", Type::counter, 2},
    {"narad_bytes_consumed_total", Type::counter, 2},
    {"narad_produce_rejections_total", Type::counter, 2},
    {"narad_consume_wait_seconds", Type::histogram, 2},
    {"narad_consume_empty_total", Type::counter, 1},
    {"narad_topics_total", Type::gauge, 0},
    {"narad_partitions_total", Type::gauge, 0},
    {"narad_open_partition_logs", Type::gauge, 0},
    {"narad_idle_logs_evicted_total", Type::counter, 0},
    {"narad_data_dir_size_bytes", Type::gauge, 0},
    {"narad_data_dir_available_bytes", Type::gauge, 0},
    {"narad_topic_bytes", Type::gauge, 1},
    {"narad_partition_size_bytes", Type::gauge, 2},
    {"narad_segments", Type::gauge, 2},
    {"narad_consumer_lag_messages", Type::gauge, 2},
    {"narad_consumer_dropped_messages", Type::gauge, 2},
    {"narad_oldest_unconsumed_message_age_seconds", Type::gauge, 2},
    {"narad_inflight_size", Type::gauge, 2},
    {"narad_acked_ahead_size", Type::gauge, 2},
    {"narad_ack_rejected_total", Type::counter, 1},
    {"narad_ack_extended_total", Type::counter, 1},
    {"narad_nack_total", Type::counter, 1},
    {"narad_consumer_corrupt_skipped_total", Type::counter, 2},
    {"narad_storage_flush_duration_seconds", Type::histogram, 2},
    {"narad_storage_flush_bytes_total", Type::counter, 2},
    {"narad_storage_fsync_duration_seconds", Type::histogram, 2},
    {"narad_storage_high_watermark_persist_duration_seconds", Type::histogram, 3},
    {"narad_storage_retention_bytes_deleted_total", Type::counter, 3},
    {"narad_storage_retention_messages_deleted_total", Type::counter, 3},
    {"narad_storage_retention_run_duration_seconds", Type::histogram, 2},
    {"narad_fanout_lag_messages", Type::gauge, 3},
    {"narad_fanout_committed_total", Type::counter, 2},
    {"narad_fanout_child_dropped_messages", Type::counter, 2},
    {"narad_fanout_batch_records", Type::histogram, 0},
    {"narad_fanout_batch_bytes", Type::histogram, 0},
    {"narad_fanout_due_lag_seconds", Type::gauge, 3},
    {"narad_moves_inflight", Type::gauge, 0},
    {"narad_moves_total", Type::counter, 1},
    {"narad_moves_duration_seconds", Type::histogram, 0},
    {"narad_moves_bytes_total", Type::counter, 0},
    {"narad_errors_total", Type::counter, 2},
    {"narad_boot_duration_seconds", Type::gauge, 0},
};
static_assert(std::size(kContract) == 49);

TEST(NaradMetrics, EveryRowOfTheContract_IsDeclaredWithItsTypeAndLabels) {
  Registry r;
  declare_narad_metrics(r);
  for (const ContractRow& row : kContract) {
    SCOPED_TRACE(row.name);
    // Each asserts that the family exists, has this type and takes so many labels.
    const LabelValues values(row.labels, "v");
    if (row.type == Type::counter) r.counter(row.name, values).add();
    if (row.type == Type::gauge) r.gauge(row.name, values).set(1);
    if (row.type == Type::histogram) r.histogram(row.name, values).observe(1);
    EXPECT_NE(r.expose().find(std::string("# TYPE ") + row.name + " "), std::string::npos);
  }
}

TEST(NaradMetrics, DeletedTopic_GoesAsParentAndChildToo) {
  Registry r;
  declare_narad_metrics(r);
  r.gauge("narad_segments", {"gone", "0"}).set(1);
  r.gauge("narad_fanout_lag_messages", {"gone", "kept", "0"}).set(1);
  r.counter("narad_fanout_committed_total", {"kept", "gone"}).add();
  r.counter("narad_fanout_committed_total", {"kept", "other"}).add();
  remove_topic(r, "gone");
  EXPECT_EQ(r.expose().find("gone"), std::string::npos);
  EXPECT_NE(r.expose().find("narad_fanout_committed_total{parent=\"kept\",child=\"other\"} 1"),
            std::string::npos);
}

TEST(Registry, Cells_StayWhereTheyAre) {
  Registry r;
  r.declare({"c_total", Type::counter, "C.", {"l"}, {}});
  Counter& first = r.counter("c_total", {"0"});
  for (int i = 1; i < 1000; ++i) r.counter("c_total", {std::to_string(i)}).add();
  first.add(5);
  EXPECT_EQ(&first, &r.counter("c_total", {"0"}));
  EXPECT_EQ(r.counter("c_total", {"0"}).value(), 5);
}

TEST(Registry, ClearedFamily_LosesItsSeriesOnly) {
  Registry r;
  r.declare({"a", Type::gauge, "A.", {"l"}, {}});
  r.declare({"b", Type::gauge, "B.", {"l"}, {}});
  r.gauge("a", {"x"}).set(1);
  r.gauge("b", {"x"}).set(1);
  r.clear("a");
  EXPECT_EQ(r.expose(), "# HELP b B.\n# TYPE b gauge\nb{l=\"x\"} 1\n");
}

TEST(RegistryDeathTest, Misuse_Asserts) {
  Registry r;
  r.declare({"a_total", Type::counter, "A.", {"l"}, {}});
  EXPECT_DEATH(r.counter("nothing"), "nothing");
  EXPECT_DEATH(r.gauge("a_total", {"x"}), "a_total");
  EXPECT_DEATH(r.counter("a_total"), "a_total");
  EXPECT_DEATH(r.declare({"a_total", Type::counter, "A.", {}, {}}), "a_total");
  EXPECT_DEATH(r.declare({"0bad", Type::counter, "B.", {}, {}}), "0bad");
  EXPECT_DEATH(r.declare({"h", Type::histogram, "H.", {"le"}, {1}}), "le");
}

// Printed for promtool: every family with a series or two, hostile label values included
// (.ci/promtool-check reads it from here).
TEST(NaradMetrics, WholeExposition_IsPrinted) {
  Registry r;
  declare_narad_metrics(r);
  r.counter("narad_messages_produced_total", {"a\"b\\c\nd", "0"}).add(1e9);
  r.counter("narad_messages_produced_total", {"orders", "0"}).add(3);
  r.histogram("narad_consume_wait_seconds", {"orders", "hit"}).observe(0.5);
  r.gauge("narad_fanout_lag_messages", {"p", "c", "0"}).set(-0.25);
  r.counter("narad_fanout_child_dropped_messages", {"p", "c"}).add();
  r.counter("narad_moves_total", {"completed"}).add();
  set_process_metrics(r, {.cpu_seconds = 1.5, .start_time_seconds = 1.7e9});
  const std::string text = r.expose();
  std::cout << "-----BEGIN EXPOSITION-----\n" << text << "-----END EXPOSITION-----\n";
  std::size_t families = 0;
  for (std::size_t at = text.find("# TYPE narad_"); at != std::string::npos;
       at = text.find("# TYPE narad_", at + 1)) {
    ++families;
  }
  EXPECT_GT(families, 20u);
}

}  // namespace
}  // namespace narad::metrics
