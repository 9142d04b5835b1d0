// Members, as the local replica knows them (http-api 1.13).
#include <map>

#include "internal/api/routes.h"
#include "pkg/json/writer.h"

namespace narad::api {

Task<http::Response> list_members(Context& context, http::Request) {
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
        .member("last_seen_ms", m->last_seen)
        .end_object();
  });
  w.end_array().member("leader", info.leader).end_object();
  co_return http::json_response(200, w.take() + "\n");
}

}  // namespace narad::api
