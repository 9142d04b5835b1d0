#include "internal/node/peer_routes.h"

#include <utility>

#include "internal/api/status.h"
#include "internal/wire/broker_messages.h"

namespace narad::node {
namespace {

http::Response answer(std::string body) {
  http::Response response;
  response.body = std::move(body);
  response.content_type = "application/octet-stream";
  return response;
}
http::Response refuse(const Error& error) {
  return http::json_response(api::status_of(error.code()), wire::encode_error(error));
}

Task<http::Response> commit(LocalBroker* local, http::Request request) {
  auto call = wire::decode_commit(request.body);
  if (!call) co_return refuse(call.error());
  request.body = {};  // decoded: a large batch is not held twice
  auto outcome =
      co_await local->commit(std::move(call.value().partition), std::move(call.value().batch));
  if (!outcome) co_return refuse(outcome.error());
  co_return answer(wire::encode(outcome.value()));
}

Task<http::Response> consume(LocalBroker* local, http::Request request) {
  auto call = wire::decode_consume(request.body);
  if (!call) co_return refuse(call.error());
  wire::ConsumeCall& c = call.value();
  auto found = co_await local->consume(std::move(c.topic), c.incarnation, c.partition, c.max);
  if (!found) co_return refuse(found.error());
  std::vector<wire::LeasedRecord> records;
  records.reserve(found.value().size());
  for (auto& m : found.value()) records.push_back({m.handle, std::move(m.record)});
  co_return answer(wire::encode(records));
}

Task<http::Response> settle(LocalBroker* local, http::Request request) {
  auto call = wire::decode_settle(request.body);
  if (!call) co_return refuse(call.error());
  wire::SettleCall& c = call.value();
  auto outcomes =
      co_await local->settle(std::move(c.topic), c.incarnation, std::move(c.handles), c.mode);
  co_return answer(wire::encode(outcomes));
}

Task<http::Response> replay(LocalBroker* local, http::Request request) {
  auto call = wire::decode_replay(request.body);
  if (!call) co_return refuse(call.error());
  wire::ReplayCall& c = call.value();
  auto record = co_await local->replay(std::move(c.partition), c.incarnation, c.offset);
  if (!record) co_return refuse(record.error());
  co_return answer(wire::encode(record.value()));
}

Task<http::Response> stats(LocalBroker* local, http::Request request) {
  auto call = wire::decode_stats(request.body);
  if (!call) co_return refuse(call.error());
  wire::StatsCall& c = call.value();
  auto found = co_await local->stats(std::move(c.topic), c.incarnation, std::move(c.partitions));
  if (!found) co_return refuse(found.error());
  std::vector<wire::PartitionStat> out;
  out.reserve(found.value().size());
  for (const auto& s : found.value()) {
    out.push_back({s.index, s.segments, s.oldest_offset, s.next_offset, s.high_watermark,
                   s.size_bytes, s.oldest_segment_at_s});
  }
  co_return answer(wire::encode(out));
}

Task<http::Response> interest(Wakes* wakes, peer::Sender sender, http::Request request) {
  auto call = wire::decode_interest(request.body);
  if (!call) co_return refuse(call.error());
  wakes->interested(sender.node_id, call.value());
  co_return answer({});
}

Task<http::Response> wake(Wakes* wakes, peer::Sender sender, http::Request request) {
  auto call = wire::decode_wake(request.body);
  if (!call) co_return refuse(call.error());
  wakes->woken(sender.node_id, call.value());
  co_return answer({});
}

}  // namespace

void add_broker_routes(peer::Server& server, LocalBroker& local, Wakes& wakes) {
  using peer::Lane;
  using peer::Sender;
  using Answer = Task<http::Response> (*)(LocalBroker*, http::Request);
  const auto add = [&](std::string_view pattern, Answer handler, peer::RouteOptions options = {}) {
    server.route(
        pattern, Lane::data,
        [&local, handler](Sender, http::Request r) { return handler(&local, std::move(r)); },
        options);
  };
  peer::RouteOptions commits;
  commits.body_bytes_max = 32u << 20;  // 4 MiB of records raw, one larger record, and their frame
  // A commit goes on when its sender gives up: half of it would be no better than all of it.
  commits.runs_to_its_end = true;
  add("POST /peer/v1/commit", commit, commits);
  add("POST /peer/v1/consume", consume);
  add("POST /peer/v1/settle", settle);
  add("POST /peer/v1/replay", replay);
  add("POST /peer/v1/stats", stats);
  // Neither waits for anything: no deadline to watch.
  peer::RouteOptions notes;
  notes.runs_to_its_end = true;
  server.route(
      "POST /peer/v1/interest", Lane::control,
      [&wakes](Sender s, http::Request r) { return interest(&wakes, std::move(s), std::move(r)); },
      notes);
  server.route(
      "POST /peer/v1/wake", Lane::control,
      [&wakes](Sender s, http::Request r) { return wake(&wakes, std::move(s), std::move(r)); },
      notes);
}

}  // namespace narad::node
