#pragma once
// Query parameters of the API, with the contract's rules for each route (http-api 1.4 to 1.11).
// Pure: values, or the text of the 400.
#include <optional>
#include <string>

#include "internal/api/broker.h"
#include "internal/api/options.h"
#include "pkg/http/query.h"

namespace narad::api {

struct ListQuery {
  std::size_t limit = 100;  // 1 to 1000
  std::string page_token;
};
Result<ListQuery> parse_list_query(http::Query query);

// `partition` of GET topic; empty value = absent.
Result<std::optional<std::uint64_t>> parse_stats_query(http::Query query);

struct ProduceQuery {
  std::string key;                         // empty: the server makes one
  std::optional<std::uint64_t> partition;  // may still be out of range
};
Result<ProduceQuery> parse_produce_query(http::Query query);
// For batches: `partition` only.
Result<std::optional<std::uint64_t>> parse_batch_query(http::Query query);

struct ConsumeQuery {
  std::optional<std::uint64_t> partition;
  std::optional<Offset> offset;      // replay
  std::optional<std::uint32_t> max;  // given: the answer is a list
  Nanos wait{0};                     // clamped
  bool local_only = false;
  bool base64 = false;
};
Result<ConsumeQuery> parse_consume_query(http::Query query, const Options& options);

struct SettleQuery {
  ReceiptHandle handle;
  SettleMode mode = SettleMode::ack;
};
Result<SettleQuery> parse_settle_query(http::Query query);

struct MovesQuery {
  bool detail = false;                 // ask the destinations
  bool history = false;                // those that have ended, too
  std::size_t limit = kMovesShownMax;  // of the ended ones, 1 to kMovesShownMax
  std::string topic, node;             // only of this topic, from or to this node; empty: all
};
Result<MovesQuery> parse_moves_query(http::Query query);

struct DrainQuery {
  bool dry_run = false;
  bool wal_lost = false;  // what the ingress WAL of that member holds is given up
};
Result<DrainQuery> parse_drain_query(http::Query query);
// `dry_run` of a rebalance.
Result<bool> parse_rebalance_query(http::Query query);
// The node that a move must go to if it is to be aborted; nothing: wherever it goes.
Result<std::optional<std::string>> parse_abort_query(http::Query query);

// The one node whose moves are to wait or to go on; empty: all moves.
Result<std::string> parse_pause_query(http::Query query);

// The one node whose quarantine is asked for; nothing: every member's.
Result<std::optional<std::string>> parse_quarantine_query(http::Query query);

// The partition as an id, if the topic has it; invalid_argument "invalid partition" otherwise.
Result<PartitionId> partition_in(const Topic& topic, std::uint64_t partition);

}  // namespace narad::api
