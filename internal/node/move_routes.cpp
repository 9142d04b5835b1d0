#include "internal/node/move_routes.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "internal/api/status.h"
#include "internal/wire/broker_messages.h"
#include "pkg/base/text.h"
#include "pkg/http/query.h"

namespace narad::node {
namespace {

using Desk = std::shared_ptr<const MoveDesk>;

http::Response answer(std::string body, std::string_view type = "application/json") {
  http::Response response;
  response.body = std::move(body);
  response.content_type = type;
  return response;
}
http::Response refuse(const Error& error) {
  return http::json_response(api::status_of(error.code()), wire::encode_error(error));
}

// A whole number in the path or in the query, at most `max`.
Result<std::uint64_t> number(std::string_view name, std::string_view text, std::uint64_t max) {
  const auto value = parse_number<std::uint64_t>(text);
  if (!value || *value > max) {
    return Error(Errc::invalid_argument, cat(name, ": a whole number up to ", max,
                                             " was expected, not \"", text.substr(0, 40), "\""));
  }
  return *value;
}
Result<std::uint64_t> number(const http::Query& query, std::string_view name, std::uint64_t max) {
  NARAD_TRY(auto text, query.get(name));
  if (!text) return Error(Errc::invalid_argument, cat("the query has no ", name));
  return number(name, *text, max);
}

Result<TopicPartition> partition_of(const http::Request& request) {
  TopicPartition partition;
  partition.topic = std::string(request.match.param("topic"));
  NARAD_TRY(validate_topic_name(partition.topic));
  NARAD_TRY(const auto index, number("partition", request.match.param("partition"), UINT32_MAX));
  partition.partition = PartitionId(static_cast<std::uint32_t>(index));
  return partition;
}

Result<wire::MoveRef> move_of(const http::Request& request) {
  wire::MoveRef move;
  NARAD_TRY(move.partition, partition_of(request));
  const http::Query query(request.query());
  NARAD_TRY(const auto id, number(query, "move", wire::kNumberMax));
  NARAD_TRY(const auto incarnation, query.get("incarnation"));
  const auto bits = parse_hex16(incarnation.value_or(""));
  if (!bits) return Error(Errc::invalid_argument, "incarnation: 16 hex digits were expected");
  move.move_id = RaftIndex(id);
  move.incarnation = Incarnation(*bits);
  return move;
}

Result<Offset> base_of(const http::Request& request) {
  NARAD_TRY(const auto base, number("segment", request.match.param("base"), wire::kNumberMax));
  return Offset(base);
}

Task<http::Response> listing(Desk desk, http::Request request) {
  auto move = move_of(request);
  if (!move) co_return refuse(move.error());
  auto found = co_await desk->source->listing({}, std::move(move.value()));
  if (!found) co_return refuse(found.error());
  co_return answer(wire::encode(found.value()));
}

struct Range {
  Offset base{0};
  std::uint64_t from = 0;
  std::uint64_t length = 0;
};
// Checked before anything is allocated for it; at most a chunk.
Result<Range> range_of(const http::Request& request) {
  Range range;
  NARAD_TRY(range.base, base_of(request));
  const http::Query query(request.query());
  NARAD_TRY(range.from, number(query, "from", wire::kSegmentBytesMax));
  NARAD_TRY(range.length, number(query, "len", wire::kSegmentBytesMax));
  if (range.length == 0) return Error(Errc::invalid_argument, "len: nothing was asked for");
  range.length = std::min(range.length, wire::kChunkBytesMax);
  return range;
}

Task<http::Response> segment(Desk desk, http::Request request) {
  auto move = move_of(request);
  if (!move) co_return refuse(move.error());
  const auto range = range_of(request);
  if (!range) co_return refuse(range.error());
  const Range r = range.value();
  auto bytes = co_await desk->source->chunk({}, std::move(move.value()), r.base, r.from, r.length);
  if (!bytes) co_return refuse(bytes.error());
  co_return answer(std::move(bytes.value()), "application/octet-stream");
}

Task<http::Response> digests(Desk desk, http::Request request) {
  auto move = move_of(request);
  if (!move) co_return refuse(move.error());
  const auto base = base_of(request);
  if (!base) co_return refuse(base.error());
  auto found = co_await desk->source->digests({}, std::move(move.value()), base.value());
  if (!found) co_return refuse(found.error());
  co_return answer(wire::encode(found.value()));
}

Task<http::Response> freeze(Desk desk, http::Request request) {
  const auto partition = partition_of(request);
  if (!partition) co_return refuse(partition.error());
  auto call = wire::decode_freeze_request(request.body);
  if (!call) co_return refuse(call.error());
  if (call.value().move.partition != partition.value()) {
    const Error error(Errc::invalid_argument, "the body names another partition than the path");
    co_return refuse(error);
  }
  auto frozen = co_await desk->source->freeze({}, std::move(call.value()));
  if (!frozen) co_return refuse(frozen.error());
  co_return answer(wire::encode(frozen.value()));
}

Task<http::Response> reports(Desk desk, http::Request) {
  co_return answer(wire::encode(desk->reports()));
}

Task<http::Response> quarantine(Desk desk, http::Request) {
  auto found = co_await desk->quarantine();
  if (!found) co_return refuse(found.error());
  co_return answer(wire::encode(found.value()));
}

Task<http::Response> silence(Desk desk, http::Request request) {
  std::string node(request.match.param("id"));
  auto silent = co_await desk->silence(std::move(node));
  if (!silent) co_return refuse(silent.error());
  co_return answer(wire::encode(silent.value()));
}

}  // namespace

void add_move_routes(peer::Server& server, MoveDesk desk) {
  using peer::Lane;
  const Desk shared = std::make_shared<const MoveDesk>(std::move(desk));
  using Answer = Task<http::Response> (*)(Desk, http::Request);
  const auto add = [&](std::string_view pattern, Lane lane, Answer handler,
                       peer::RouteOptions options = {}) {
    server.route(
        pattern, lane,
        [shared, handler](peer::Sender, http::Request r) { return handler(shared, std::move(r)); },
        options);
  };
  add("GET /peer/v1/partitions/{topic}/{partition}/listing", Lane::data, listing);
  add("GET /peer/v1/partitions/{topic}/{partition}/segments/{base}", Lane::bulk, segment);
  add("GET /peer/v1/partitions/{topic}/{partition}/segments/{base}/digests", Lane::data, digests);
  peer::RouteOptions steady;
  // An armed freeze must not be left half-way: it ends by its time, or by an entry of the log.
  steady.runs_to_its_end = true;
  add("POST /peer/v1/partitions/{topic}/{partition}/freeze", Lane::control, freeze, steady);
  add("GET /peer/v1/moves", Lane::control, reports);
  add("GET /peer/v1/quarantine", Lane::control, quarantine);
  add("GET /peer/v1/members/{id}/silence", Lane::control, silence);
}

}  // namespace narad::node
