// Moves of partitions: look at them, start one, abort one, hold them back (http-api 1.13, 7;
// move-requirements ABT).
#include "internal/api/gate.h"
#include "internal/api/move_json.h"
#include "internal/api/query_fields.h"
#include "internal/api/routes.h"
#include "internal/api/status.h"
#include "internal/metastore/move_budget.h"
#include "pkg/base/text.h"

namespace narad::api {
namespace {

// A destination that is slower is named as one that did not answer.
constexpr Nanos kReportDeadline = std::chrono::milliseconds(1500);
constexpr Nanos kRateDeadline = std::chrono::seconds(1);

// 409, with where the partition is and where it goes (ABT-7).
http::Response refuse_order(const metastore::OrderRefusal& why, const Assignment& now) {
  Refusal refusal;
  refusal.text = why.detail;
  refusal.code = why.rule;
  refusal.reasons.push_back({why.rule, why.detail});
  refusal.more = {{"owner", now.owner_node}, {"target", now.target_node}};
  return refuse(refusal);
}

std::string aborted_by(const security::Caller& caller) {
  const std::string_view name = security::name_of(caller);
  return cat(metastore::kAbortedBy, name.empty() ? std::string_view("an operator") : name);
}

Task<http::Response> pause_or_resume(Context& context, const Call& call,
                                     metastore::PauseWish wish) {
  const std::string_view op = wish.pause ? "pause moves" : "resume moves";
  auto answer = co_await context.broker.pause_moves(wish);
  if (!answer) co_return fail_order(context, call, op, answer.error());
  const metastore::PauseAnswer& a = answer.value();
  if (a.refusal) co_return refuse_order(*a.refusal, a.now);
  co_return http::json_response(200, pause_body(*context.broker.view(), wish, a));
}

Task<http::Response> pause_one(Context& context, http::Request request, bool pause) {
  const Call& call = call_of(request);
  metastore::PauseWish wish;
  wish.pause = pause;
  wish.partition.emplace().topic = std::string(request.match.param("topic"));
  call.target = cat(wish.partition->topic, '/', request.match.param("partition"));
  const auto index = parse_number<std::uint32_t>(request.match.param("partition"));
  if (!index) co_return http::error_response(400, "invalid partition");
  wish.partition->partition = PartitionId(*index);
  co_return co_await pause_or_resume(context, call, std::move(wish));
}

Task<http::Response> pause_many(Context& context, http::Request request, bool pause) {
  const Call& call = call_of(request);
  auto node = parse_pause_query(http::Query(request.query()));
  if (!node) co_return fail(context.env.log, "pause moves", node.error());
  metastore::PauseWish wish;
  wish.pause = pause;
  wish.node = std::move(node.value());
  call.target = wish.node.empty() ? std::string("all") : wish.node;
  co_return co_await pause_or_resume(context, call, std::move(wish));
}

// Whether the move that was ordered is held to less than its partition takes in: whoever ordered it
// is told at once. What the owner does not say in time shows in the list of moves.
Task<std::optional<TooSlow>> too_slow(Context& context, TopicPartition partition, Assignment move) {
  const metastore::ViewPtr view = context.broker.view();
  metastore::Receivers receivers = metastore::receivers_of(*view);
  receivers.see(move);
  TooSlow slow;
  slow.budget = metastore::budget_of(*view, receivers, move);
  if (slow.budget == 0) co_return std::nullopt;
  const auto written = co_await context.broker.write_rate(std::move(partition), kRateDeadline);
  if (!written || *written < slow.budget) co_return std::nullopt;
  slow.written = *written;
  co_return slow;
}

}  // namespace

Task<http::Response> list_moves(Context& context, http::Request request) {
  auto query = parse_moves_query(http::Query(request.query()));
  if (!query) co_return fail(context.env.log, "list moves", query.error());
  const metastore::ViewPtr view = context.broker.view();
  MovesShown shown;
  shown.topic = query.value().topic;
  shown.node = query.value().node;
  if (query.value().history) shown.history = query.value().limit;
  ReportsByNode reports;
  if (query.value().detail) {
    const auto nodes = destinations(*view, shown);
    std::vector<std::string> asked(nodes.begin(), nodes.end());
    reports = co_await context.broker.move_reports(std::move(asked), kReportDeadline);
    shown.reports = &reports;
  }
  co_return http::json_response(200, moves_body(*view, shown));
}

Task<http::Response> get_move(Context& context, http::Request request) {
  const auto id = parse_number<std::uint64_t>(request.match.param("id"));
  if (!id) co_return http::error_response(400, "a move has a number as its id");
  const metastore::ViewPtr view = context.broker.view();
  const RaftIndex move_id(*id);
  ReportsByNode reports;
  if (std::string node = destination_of(*view, move_id); !node.empty()) {
    std::vector<std::string> asked{std::move(node)};
    reports = co_await context.broker.move_reports(std::move(asked), kReportDeadline);
  }
  const auto body = move_body(*view, move_id, reports);
  if (body) co_return http::json_response(200, *body);
  co_return http::error_response(
      404, cat("no move ", move_id, " is known: the last ", metastore::kMovesKept, " are kept"));
}

Task<http::Response> start_move(Context& context, http::Request request) {
  const Call& call = call_of(request);
  auto wish = parse_move_wish(std::move(request.body));
  if (!wish) co_return fail(context.env.log, "start move", wish.error());
  const TopicPartition partition = wish.value().partition;
  call.target = cat(to_string(partition), " to ", wish.value().to);
  auto answer = co_await context.broker.start_move(std::move(wish.value()));
  if (!answer) co_return fail_order(context, call, "start move", answer.error());
  using metastore::StartOutcome;
  const metastore::StartAnswer& a = answer.value();
  if (a.outcome == StartOutcome::refused) co_return refuse_order(a.refusal, a.now);
  const bool changed = a.outcome == StartOutcome::started || a.outcome == StartOutcome::given;
  std::optional<TooSlow> slow;
  if (a.outcome == StartOutcome::started) slow = co_await too_slow(context, partition, a.now);
  co_return http::json_response(changed ? 202 : 200, start_body(partition, a, slow));
}

Task<http::Response> abort_move(Context& context, http::Request request) {
  const Call& call = call_of(request);
  metastore::AbortWish wish;
  wish.partition.topic = std::string(request.match.param("topic"));
  call.target = cat(wish.partition.topic, '/', request.match.param("partition"));
  const auto index = parse_number<std::uint32_t>(request.match.param("partition"));
  if (!index) co_return http::error_response(400, "invalid partition");
  wish.partition.partition = PartitionId(*index);
  auto target = parse_abort_query(http::Query(request.query()));
  if (!target) co_return fail(context.env.log, "abort move", target.error());
  wish.target = std::move(target.value());
  const TopicPartition partition = wish.partition;
  auto answer = co_await context.broker.abort_move(std::move(wish), aborted_by(call.caller));
  if (!answer) co_return fail_order(context, call, "abort move", answer.error());
  const metastore::AbortAnswer& a = answer.value();
  if (!a.read.target_node.empty()) {
    call.target = cat(to_string(partition), " to ", a.read.target_node);
  }
  if (!a.aborted) co_return refuse_order(a.refusal, a.now);
  co_return http::json_response(202, abort_body(partition, a));
}

Task<http::Response> pause_move(Context& context, http::Request request) {
  return pause_one(context, std::move(request), true);
}
Task<http::Response> resume_move(Context& context, http::Request request) {
  return pause_one(context, std::move(request), false);
}
Task<http::Response> pause_moves(Context& context, http::Request request) {
  return pause_many(context, std::move(request), true);
}
Task<http::Response> resume_moves(Context& context, http::Request request) {
  return pause_many(context, std::move(request), false);
}

}  // namespace narad::api
