// How fast partitions may move: one value for all nodes (http-api 7).
#include "internal/api/gate.h"
#include "internal/api/move_json.h"
#include "internal/api/routes.h"
#include "internal/api/status.h"
#include "pkg/base/text.h"

namespace narad::api {

Task<http::Response> get_throttle(Context& context, http::Request) {
  co_return http::json_response(200, throttle_body(context.broker.view()->move_rate, std::nullopt));
}

Task<http::Response> set_throttle(Context& context, http::Request request) {
  const Call& call = call_of(request);
  const auto rate = parse_throttle(std::move(request.body));
  if (!rate) co_return fail(context.env.log, "set throttle", rate.error());
  call.target = cat(rate.value(), " bytes/s");
  const auto answer = co_await context.broker.set_move_rate(rate.value());
  if (!answer) co_return fail_order(context, call, "set throttle", answer.error());
  co_return http::json_response(200, throttle_body(answer.value().now, answer.value().changed));
}

Task<http::Response> clear_throttle(Context& context, http::Request request) {
  const Call& call = call_of(request);
  const auto answer = co_await context.broker.set_move_rate(std::nullopt);
  if (!answer) co_return fail_order(context, call, "clear throttle", answer.error());
  co_return http::json_response(200, throttle_body(answer.value().now, answer.value().changed));
}

}  // namespace narad::api
