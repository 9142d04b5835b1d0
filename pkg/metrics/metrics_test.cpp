#include <gtest/gtest.h>

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

}  // namespace
}  // namespace narad::metrics
