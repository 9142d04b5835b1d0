#include "internal/api/query_fields.h"

#include <algorithm>
#include <limits>

#include "pkg/base/text.h"

namespace narad::api {
namespace {

constexpr std::size_t kPageMax = 1000;

Error invalid(std::string text) { return Error(Errc::invalid_argument, std::move(text)); }
Error invalid_partition() { return invalid("invalid partition"); }

// A non-negative integer as release 2.x reads one: an optional '+', digits, at most 63 bits.
std::optional<std::uint64_t> parse_index(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  auto n = parse_number<std::uint64_t>(text);
  if (!n || *n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  return n;
}

// The first occurrence; an empty value counts as absent. Bad escapes are overlooked.
std::optional<std::string> given(const http::Query& query, std::string_view name) {
  auto value = query.first(name);
  if (value && value->empty()) value.reset();
  return value;
}

// The rules of produce: at most once, no bad escape.
Result<std::optional<std::string>> single(const http::Query& query, std::string_view name) {
  if (query.count(name) > 1) return invalid(cat(name, " is given more than once"));
  return query.get(name);
}

Result<std::optional<std::uint64_t>> produce_partition(const http::Query& query) {
  NARAD_TRY(auto text, single(query, "partition"));
  if (!text) return std::optional<std::uint64_t>();
  auto n = parse_index(*text);
  if (!n) return invalid_partition();
  return n;
}

Result<bool> parse_switch(const http::Query& query, std::string_view name) {
  const std::string text = given(query, name).value_or("0");
  if (text == "1" || text == "true") return true;
  if (text == "0" || text == "false") return false;
  return invalid(cat(name, " must be 1 or 0"));
}

Result<void> check_names(const http::Query& query) {
  if (query.has_bad_name()) return invalid("invalid query: bad escape in a parameter name");
  return ok();
}

// Of an order, where a value that is overlooked would do what was not meant: once, and readable. An
// empty one counts as absent.
Result<std::optional<std::string>> of_order(const http::Query& query, std::string_view name) {
  NARAD_TRY(check_names(query));
  NARAD_TRY(auto text, single(query, name));
  if (text && text->empty()) text.reset();
  return text;
}

Result<bool> parse_order_switch(const http::Query& query, std::string_view name) {
  NARAD_TRY(const auto text, of_order(query, name));
  if (!text || *text == "0" || *text == "false") return false;
  if (*text == "1" || *text == "true") return true;
  return invalid(cat(name, " must be 1 or 0"));
}

}  // namespace

Result<ListQuery> parse_list_query(http::Query query) {
  ListQuery out;
  if (auto limit = given(query, "limit")) {
    auto n = parse_index(*limit);
    if (!n || *n == 0) return invalid("limit must be an integer of at least 1");
    out.limit = static_cast<std::size_t>(std::min<std::uint64_t>(*n, kPageMax));
  }
  out.page_token = given(query, "page_token").value_or("");
  return out;
}

Result<std::optional<std::uint64_t>> parse_stats_query(http::Query query) {
  auto text = given(query, "partition");
  if (!text) return std::optional<std::uint64_t>();
  auto n = parse_index(*text);
  if (!n) return invalid_partition();
  return n;
}

Result<ProduceQuery> parse_produce_query(http::Query query) {
  ProduceQuery out;
  if (query.raw().empty()) return out;
  NARAD_TRY(check_names(query));
  NARAD_TRY(auto key, single(query, "key"));
  NARAD_TRY(out.partition, produce_partition(query));
  if (key) out.key = std::move(*key);
  if (!is_utf8(out.key)) return invalid("key is not valid UTF-8");
  return out;
}

Result<std::optional<std::uint64_t>> parse_batch_query(http::Query query) {
  NARAD_TRY(check_names(query));
  if (query.count("key") > 0) return invalid("key: each record of a batch carries its own");
  return produce_partition(query);
}

Result<ConsumeQuery> parse_consume_query(http::Query query, const Options& options) {
  ConsumeQuery out;
  if (query.raw().empty()) return out;
  if (auto text = given(query, "partition")) {
    out.partition = parse_index(*text);
    if (!out.partition) return invalid_partition();
  }
  if (auto text = given(query, "offset")) {
    auto n = parse_index(*text);
    if (!n) return invalid("invalid offset");
    if (!out.partition) return invalid("offset needs a partition");
    out.offset = Offset(*n);
  }
  if (auto text = given(query, "max")) {
    auto n = parse_index(*text);
    if (!n || *n == 0 || *n > kConsumeMax) {
      return invalid(cat("max must be an integer from 1 to ", kConsumeMax));
    }
    if (out.offset) return invalid("max does not go with offset: a replay reads one message");
    out.max = static_cast<std::uint32_t>(*n);
  }
  if (auto text = given(query, "wait")) {
    auto wait = parse_duration(*text);
    if (!wait) return invalid(cat("invalid wait: ", wait.error().text()));
    const Nanos ceiling =
        options.max_consume_wait > Nanos(0) ? options.max_consume_wait : kWaitCeiling;
    out.wait = std::clamp(wait.value(), Nanos(0), ceiling);
  }
  out.local_only = given(query, "local_only") == "1";
  if (auto text = given(query, "encoding")) {
    if (*text != "base64") return invalid("encoding must be base64");
    out.base64 = true;
  }
  return out;
}

Result<SettleQuery> parse_settle_query(http::Query query) {
  SettleQuery out;
  NARAD_TRY(auto handle, query.get("receipt_handle"));
  if (!handle || handle->empty()) return invalid("receipt_handle required");
  const std::string extend = query.first("extend").value_or("");
  if (extend == "true" || extend == "1") {
    out.mode = SettleMode::extend;
  } else if (extend == "0") {
    out.mode = SettleMode::nack;
  } else if (!extend.empty() && extend != "false") {
    return invalid("extend must be true or 1 (extend), 0 (nack), or false (ack)");
  }
  NARAD_TRY(out.handle, parse_receipt_handle(*handle));
  return out;
}

Result<MovesQuery> parse_moves_query(http::Query query) {
  MovesQuery out;
  NARAD_TRY(out.detail, parse_switch(query, "detail"));
  NARAD_TRY(out.history, parse_switch(query, "history"));
  if (auto limit = given(query, "limit")) {
    auto n = parse_index(*limit);
    if (!n || *n == 0) return invalid("limit must be an integer of at least 1");
    out.limit = static_cast<std::size_t>(std::min<std::uint64_t>(*n, kMovesShownMax));
  }
  out.topic = given(query, "topic").value_or("");
  out.node = given(query, "node").value_or("");
  return out;
}

Result<DrainQuery> parse_drain_query(http::Query query) {
  DrainQuery out;
  NARAD_TRY(out.dry_run, parse_order_switch(query, "dry_run"));
  NARAD_TRY(out.wal_lost, parse_order_switch(query, "wal_lost"));
  return out;
}

Result<bool> parse_rebalance_query(http::Query query) {
  return parse_order_switch(query, "dry_run");
}

Result<std::optional<std::string>> parse_abort_query(http::Query query) {
  return of_order(query, "target");
}

Result<std::string> parse_pause_query(http::Query query) {
  NARAD_TRY(auto node, of_order(query, "node"));
  if (node) return std::move(*node);
  // All of them are asked for with no word about a node, not with an empty one.
  if (query.count("node") > 0) return invalid("node: which one?");
  return std::string();
}

Result<std::optional<std::string>> parse_quarantine_query(http::Query query) {
  return of_order(query, "node");
}

Result<PartitionId> partition_in(const Topic& topic, std::uint64_t partition) {
  if (partition >= topic.partitions) return invalid_partition();
  return PartitionId(static_cast<std::uint32_t>(partition));
}

}  // namespace narad::api
