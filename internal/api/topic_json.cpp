#include "internal/api/topic_json.h"

#include "pkg/base/text.h"
#include "pkg/json/decode.h"
#include "pkg/json/writer.h"

namespace narad::api {
namespace {

constexpr std::int64_t kKeepForEver = -1;

Error invalid(std::string text) { return Error(Errc::invalid_argument, std::move(text)); }

void write_fields(json::Writer& w, const Topic& t) {
  w.member("name", t.name)
      .member("partitions", t.partitions)
      .member("retention_ms", t.retention_ms)
      .member("visibility_timeout_ms", t.visibility_timeout_ms)
      .member("max_in_flight_per_partition", t.max_in_flight_per_partition)
      .member("max_acked_ahead_per_partition", t.max_acked_ahead_per_partition)
      .member("created_at", t.created_at_s);
  if (!t.owner.empty()) w.member("owner", t.owner);
  w.member("role", to_string(t.role));
  if (!t.children.empty()) {
    w.key("children").begin_array();
    for (const std::string& child : t.children) w.value(child);
    w.end_array();
  }
  if (!t.parent.empty()) w.member("parent", t.parent);
  if (!t.attach_epoch.empty()) w.member("attach_epoch", t.attach_epoch);
  if (t.fanout_delay_ms != 0) w.member("fanout_delay_ms", t.fanout_delay_ms);
}

void write_stat(json::Writer& w, const PartitionStat& s) {
  w.begin_object()
      .member("index", s.index)
      .member("segments", s.segments)
      .member("oldest_offset", s.oldest_offset)
      .member("next_offset", s.next_offset)
      .member("high_watermark", s.high_watermark)
      .member("size_bytes", s.size_bytes);
  if (s.oldest_segment_at_s != 0) w.member("oldest_segment_at", s.oldest_segment_at_s);
  if (!s.owner_node.empty()) w.member("owner_node", s.owner_node);
  w.end_object();
}

std::string take_line(json::Writer& w) {
  std::string out = w.take();
  out += '\n';
  return out;
}

// 0 means the server's default, -1 for ever; anything else is a time of at least an hour.
Result<std::int64_t> resolve_retention(std::int64_t given, const Options& options) {
  if (given == 0) return options.default_retention_ms;
  if (given == kKeepForEver) return std::int64_t{0};
  if (given < kRetentionMillisMin) {
    return invalid(cat("retention_ms must be at least ", kRetentionMillisMin,
                       " (0 for the server's default, -1 to keep for ever)"));
  }
  return given;
}

Result<std::int64_t> resolve(std::string_view field, std::int64_t given, std::int64_t fallback) {
  if (given < 0) return invalid(cat(field, " must not be negative"));
  return given == 0 ? fallback : given;
}

Error bad_partitions(const Options& options) {
  return invalid(cat("partitions must be between 1 and ", options.max_partitions));
}

}  // namespace

std::string topic_body(const Topic& topic) {
  json::Writer w;
  w.begin_object();
  write_fields(w, topic);
  w.end_object();
  return take_line(w);
}

std::string topic_body(const Topic& topic, const std::vector<PartitionStat>& stats) {
  json::Writer w;
  w.begin_object();
  write_fields(w, topic);
  w.key("partition_stats").begin_array();
  for (const PartitionStat& s : stats) write_stat(w, s);
  w.end_array().end_object();
  return take_line(w);
}

std::string topic_list_body(const std::vector<metastore::TopicRowPtr>& rows,
                            std::string_view next_page_token) {
  json::Writer w;
  w.begin_object().member("next_page_token", next_page_token).key("topics").begin_array();
  for (const metastore::TopicRowPtr& row : rows) {
    w.begin_object();
    write_fields(w, row->topic);
    w.end_object();
  }
  w.end_array().end_object();
  return take_line(w);
}

Result<NewTopic> read_create(std::string body) {
  NewTopic out;
  std::string owner_ignored;
  NARAD_TRY(auto document, json::parse_body(std::move(body)));
  json::Decoder d(document.root());
  d.field("name", out.name)
      .field("partitions", out.partitions)
      .field("retention_ms", out.retention_ms)
      .field("visibility_timeout_ms", out.visibility_timeout_ms)
      .field("max_in_flight_per_partition", out.max_in_flight_per_partition)
      .field("max_acked_ahead_per_partition", out.max_acked_ahead_per_partition)
      .raw("schema", out.schema)
      .field("parent", out.parent)
      .field("fanout_delay_ms", out.fanout_delay_ms)
      .field("owner", owner_ignored);
  NARAD_TRY(d.finish());
  return out;
}

Result<metastore::TopicSpec> resolve_create(NewTopic body, const Options& options) {
  metastore::TopicSpec spec;
  NARAD_TRY(validate_topic_name(body.name));
  if (!body.parent.empty()) {
    if (body.parent == body.name) return invalid("a topic cannot be its own parent");
    return invalid("parent: this release cannot create a topic as a fan-out child");
  }
  if (body.fanout_delay_ms.value_or(0) != 0) return invalid("fanout_delay_ms needs a parent");
  if (body.partitions < 0 || body.partitions > options.max_partitions) {
    return bad_partitions(options);
  }
  spec.name = std::move(body.name);
  spec.schema = std::move(body.schema);
  spec.partitions = body.partitions == 0 ? options.default_partitions
                                         : static_cast<std::uint32_t>(body.partitions);
  NARAD_TRY(spec.retention_ms, resolve_retention(body.retention_ms, options));
  NARAD_TRY(spec.visibility_timeout_ms, resolve("visibility_timeout_ms", body.visibility_timeout_ms,
                                                options.default_visibility_timeout_ms));
  NARAD_TRY(spec.max_in_flight_per_partition,
            resolve("max_in_flight_per_partition", body.max_in_flight_per_partition,
                    options.default_max_in_flight));
  NARAD_TRY(spec.max_acked_ahead_per_partition,
            resolve("max_acked_ahead_per_partition", body.max_acked_ahead_per_partition,
                    options.default_max_acked_ahead));
  return spec;
}

bool TopicChange::has_settings() const {
  return settings.retention_ms || settings.visibility_timeout_ms ||
         settings.max_in_flight_per_partition || settings.max_acked_ahead_per_partition;
}

Result<TopicChange> parse_change(std::string body, const Options& options) {
  std::int64_t partitions = 0;
  std::optional<std::int64_t> retention, visibility, in_flight, acked_ahead;
  TopicChange change;
  NARAD_TRY(auto document, json::parse_body(std::move(body)));
  json::Decoder d(document.root());
  d.field("partitions", partitions)
      .field("retention_ms", retention)
      .field("visibility_timeout_ms", visibility)
      .field("max_in_flight_per_partition", in_flight)
      .field("max_acked_ahead_per_partition", acked_ahead)
      .raw("schema", change.schema);
  NARAD_TRY(d.finish());

  if (partitions < 0 || partitions > options.max_partitions) return bad_partitions(options);
  if (partitions > 0) change.growth.partitions = static_cast<std::uint32_t>(partitions);
  if (retention) {
    NARAD_TRY(change.settings.retention_ms, resolve_retention(*retention, options));
  }
  if (visibility) {
    NARAD_TRY(change.settings.visibility_timeout_ms,
              resolve("visibility_timeout_ms", *visibility, options.default_visibility_timeout_ms));
  }
  if (in_flight) {
    NARAD_TRY(change.settings.max_in_flight_per_partition,
              resolve("max_in_flight_per_partition", *in_flight, options.default_max_in_flight));
  }
  if (acked_ahead) {
    NARAD_TRY(
        change.settings.max_acked_ahead_per_partition,
        resolve("max_acked_ahead_per_partition", *acked_ahead, options.default_max_acked_ahead));
  }
  if (!change.has_settings() && !change.growth.partitions && !change.schema) {
    return invalid(
        "nothing to change: give partitions, retention_ms, visibility_timeout_ms, "
        "max_in_flight_per_partition, max_acked_ahead_per_partition or schema");
  }
  return change;
}

}  // namespace narad::api
