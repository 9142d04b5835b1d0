// Members, as the local replica knows them (http-api 1.13), and what those that drain wait for.
#include <map>

#include "internal/api/operation_json.h"
#include "internal/api/routes.h"
#include "pkg/json/writer.h"

namespace narad::api {

namespace {

using Drains = std::map<std::string_view, const DrainVerdict*>;

// One that leaves waits for nothing any more. Nothing of one that was not judged: its drain has
// begun since.
void write_drain_of(json::Writer& w, const metastore::Member& member, const Drains& drains) {
  const auto at = drains.find(member.id);
  if (member.leaving) {
    DrainVerdict waits_for_nothing;
    waits_for_nothing.leaving = true;
    write_drain(w, waits_for_nothing);
  } else if (member.draining && at != drains.end()) {
    write_drain(w, *at->second);
  }
}

}  // namespace

Task<http::Response> list_members(Context& context, http::Request) {
  const std::vector<DrainVerdict> verdicts = co_await context.broker.drains();
  Drains drains;
  for (const DrainVerdict& v : verdicts) drains.emplace(v.node, &v);
  const metastore::ViewPtr view = context.broker.view();
  struct Load {
    std::uint64_t owned = 0, outbound = 0;
  };
  std::map<std::string_view, Load> loads;
  view->topics.for_each([&](const metastore::TopicRowPtr& row) {
    for (const Assignment& a : row->assignments) {
      if (a.owner_node.empty()) continue;
      Load& load = loads[a.owner_node];
      ++load.owned;
      if (!a.target_node.empty()) ++load.outbound;
    }
  });
  const ClusterInfo info = context.broker.cluster_info();
  const auto role_of = [&](const std::string& id) {
    const auto at = info.roles.find(id);
    return at == info.roles.end() ? std::string_view("none") : std::string_view(at->second);
  };
  json::Writer w;
  w.begin_object().key("members").begin_array();
  view->members.for_each([&](const std::shared_ptr<const metastore::Member>& m) {
    const Load load = loads[m->id];
    w.begin_object()
        .member("id", m->id)
        .member("addr", m->http_addr)
        .member("status", to_string(m->status))
        .member("draining", m->draining)
        .member("owned_partitions", load.owned)
        .member("outbound_moves", load.outbound)
        .member("role", role_of(m->id))
        .member("cluster_addr", m->cluster_addr)
        .member("last_seen_ms", m->last_seen);
    write_drain_of(w, *m, drains);
    w.end_object();
  });
  w.end_array().member("leader", info.leader).end_object();
  co_return http::json_response(200, w.take() + "\n");
}

}  // namespace narad::api
