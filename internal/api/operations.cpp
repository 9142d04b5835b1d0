// Members that are to leave or to stop, and plans: orders, verdicts, explanations (http-api 1.13,
// 7; move-requirements DEC).
#include "internal/api/gate.h"
#include "internal/api/operation_json.h"
#include "internal/api/query_fields.h"
#include "internal/api/routes.h"
#include "internal/api/status.h"
#include "pkg/base/text.h"

namespace narad::api {
namespace {

// A conflict as a refusal with its rule.
http::Response refuse_with(std::string_view rule, const Error& why) {
  Refusal refusal;
  refusal.text = std::string(why.text());
  refusal.code = std::string(rule);
  refusal.reasons.push_back({refusal.code, refusal.text});
  return refuse(refusal);
}

Task<http::Response> show_verdict(Context& context, const Call& call, std::string node,
                                  bool wal_lost) {
  auto verdict = co_await context.broker.drain_verdict(std::move(node), wal_lost);
  if (!verdict && verdict.error().code() == Errc::conflict) {
    co_return refuse_with("alive", verdict.error());  // as the order
  }
  if (!verdict) co_return fail_order(context, call, "look at member", verdict.error());
  co_return http::json_response(200, verdict_body(verdict.value()));
}

}  // namespace

Task<http::Response> decommission(Context& context, http::Request request) {
  const Call& call = call_of(request);
  std::string node(request.match.param("id"));
  auto query = parse_drain_query(http::Query(request.query()));
  if (!query) co_return fail(context.env.log, "decommission member", query.error());
  const bool wal_lost = query.value().wal_lost;
  if (query.value().dry_run) {
    call.target = cat(node, " (dry run)");
    co_return co_await show_verdict(context, call, std::move(node), wal_lost);
  }
  if (wal_lost) call.target = cat(node, ", giving up its ingress WAL");
  auto outcome = co_await context.broker.decommission(std::move(node), wal_lost);
  if (!outcome && outcome.error().code() == Errc::conflict) {
    co_return refuse_with("alive", outcome.error());
  }
  if (!outcome) co_return fail_order(context, call, "decommission member", outcome.error());
  if (!outcome.value().accepted) co_return refuse(hopeless_drain(outcome.value().verdict));
  co_return http::empty_response(204);
}

Task<http::Response> cancel_decommission(Context& context, http::Request request) {
  const Call& call = call_of(request);
  std::string node(request.match.param("id"));
  std::string asked = node;
  auto cancelled = co_await context.broker.cancel_decommission(std::move(asked));
  if (!cancelled && cancelled.error().code() == Errc::conflict) {
    const bool there = context.broker.view()->members.contains(node);
    co_return refuse_with(there ? "leaving" : "left", cancelled.error());
  }
  if (!cancelled) co_return fail_order(context, call, "cancel decommission", cancelled.error());
  co_return http::empty_response(204);
}

Task<http::Response> safe_to_stop(Context& context, http::Request request) {
  std::string node(request.match.param("id"));
  auto verdict = co_await context.broker.safe_to_stop(std::move(node));
  if (!verdict) co_return fail_write(context, "look at member", verdict.error());
  co_return http::json_response(200, stop_body(verdict.value()));
}

Task<http::Response> rebalance(Context& context, http::Request request) {
  const Call& call = call_of(request);
  auto dry_run = parse_rebalance_query(http::Query(request.query()));
  if (!dry_run) co_return fail(context.env.log, "rebalance", dry_run.error());
  call.target = dry_run.value() ? "all partitions (dry run)" : "all partitions";
  auto outcome = co_await context.broker.rebalance(dry_run.value());
  if (!outcome) co_return fail_order(context, call, "rebalance", outcome.error());
  co_return http::json_response(200, rebalance_body(outcome.value(), dry_run.value()));
}

Task<http::Response> explain(Context& context, http::Request request) {
  const auto index = parse_number<std::uint32_t>(request.match.param("partition"));
  if (!index) co_return http::error_response(400, "invalid partition");
  TopicPartition partition{std::string(request.match.param("topic")), PartitionId(*index)};
  auto explanation = co_await context.broker.explain(std::move(partition));
  if (!explanation) co_return fail_write(context, "explain", explanation.error());
  co_return http::json_response(200, explanation_body(explanation.value()));
}

}  // namespace narad::api
