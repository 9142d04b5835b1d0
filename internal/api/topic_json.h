#pragma once
// The topic object of the contract and its statistics as JSON (http-api 1.2, 1.5), and the bodies
// that create and change a topic. Pure.
#include <optional>
#include <string>
#include <vector>

#include "internal/api/broker.h"
#include "internal/api/options.h"

namespace narad::api {

// `{"name":…}` and a newline.
std::string topic_body(const Topic& topic);
// The same with `partition_stats`.
std::string topic_body(const Topic& topic, const std::vector<PartitionStat>& stats);
// {"next_page_token":…,"topics":[…]}.
std::string topic_list_body(const std::vector<metastore::TopicRowPtr>& rows,
                            std::string_view next_page_token);

// A create body as it was written. Rights are checked on it, before anything else is looked at.
struct NewTopic {
  std::string name;
  std::int64_t partitions = 0, retention_ms = 0, visibility_timeout_ms = 0;
  std::int64_t max_in_flight_per_partition = 0, max_acked_ahead_per_partition = 0;
  std::optional<std::string> schema;
  std::string parent;
  std::optional<std::int64_t> fanout_delay_ms;
};
Result<NewTopic> read_create(std::string body);
// Checked and with every default filled in; its schema has not been compiled yet. invalid_argument
// in the order of http-api 1.3 up to the bounds.
Result<metastore::TopicSpec> resolve_create(NewTopic body, const Options& options);

// A change, in the three steps in which it is applied. An empty step was not asked for.
struct TopicChange {
  metastore::TopicPatch settings;  // retention, visibility, caps
  metastore::TopicPatch growth;    // partitions
  std::optional<std::string> schema;
  bool has_settings() const;
};
// invalid_argument as http-api 1.6 says; at least one field must be given.
Result<TopicChange> parse_change(std::string body, const Options& options);

}  // namespace narad::api
