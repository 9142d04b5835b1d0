// What nodes keep aside instead of deleting it (http-api 7; move-requirements QUA).
#include "internal/api/operation_json.h"
#include "internal/api/query_fields.h"
#include "internal/api/routes.h"
#include "internal/api/status.h"
#include "pkg/base/text.h"

namespace narad::api {
namespace {

// A node that is slower is named as one that did not answer.
constexpr Nanos kAskDeadline = std::chrono::milliseconds(1500);

}  // namespace

Task<http::Response> list_quarantine(Context& context, http::Request request) {
  auto only = parse_quarantine_query(http::Query(request.query()));
  if (!only) co_return fail(context.env.log, "list quarantine", only.error());
  const metastore::ViewPtr view = context.broker.view();
  std::vector<std::string> nodes;
  if (only.value()) {
    if (!view->members.contains(*only.value())) {
      co_return http::error_response(404, cat("member not found: ", *only.value()));
    }
    nodes.push_back(std::move(*only.value()));
  } else {
    view->members.for_each(
        [&](const std::shared_ptr<const metastore::Member>& m) { nodes.push_back(m->id); });
  }
  const QuarantineByNode found = co_await context.broker.quarantine(std::move(nodes), kAskDeadline);
  co_return http::json_response(200, quarantine_body(found));
}

}  // namespace narad::api
