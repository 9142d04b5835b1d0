#include "cmd/narad/commands.h"
#include "cmd/narad/format.h"
#include "cmd/narad/session.h"
#include "pkg/base/text.h"
#include "pkg/http/query.h"
#include "pkg/json/document.h"
#include "pkg/json/text.h"

namespace narad::cli {
namespace {

using http::Method;

// Whether people read this: asked for, or standard output is a terminal.
bool wants_text(const Session& s) {
  std::string output = s.args.text("output");
  return output.empty() ? s.terminal.out_is_terminal() : output == "text";
}

std::string cell(json::Value row, std::string_view name) {
  auto v = row.find(name);
  if (!v || v->is(json::Kind::null)) return "-";
  return v->is(json::Kind::string) ? std::string(v->as_string()) : std::string(v->raw());
}

std::string members_table(json::Value list) {
  std::string out =
      cat(left("NODE", 20), ' ', left("ADDRESS", 24), ' ', left("STATUS", 8), ' ', left("ROLE", 10),
          left("DRAINING", 9), right("PARTITIONS", 10), right("MOVES OUT", 11), "\n");
  for (std::size_t i = 0; i < list.size(); ++i) {
    json::Value m = list.element(i);
    out += cat(left(cell(m, "id"), 20), ' ', left(cell(m, "addr"), 24), ' ',
               left(cell(m, "status"), 8), ' ', left(cell(m, "role"), 10),
               left(cell(m, "draining") == "true" ? "yes" : "no", 9),
               right(cell(m, "owned_partitions"), 10), right(cell(m, "outbound_moves"), 11), "\n");
  }
  return out;
}

Task<Result<int>> members(Session& s) {
  NARAD_CO_TRY(auto answer, co_await s.client.call(Method::get, "/v1/cluster/members"));
  if (!wants_text(s)) {
    print_json(s.terminal, answer.body);
    co_return 0;
  }
  NARAD_CO_TRY(auto document, json::Document::parse(std::move(answer.body), json::kBodyDepthMax));
  auto list =
      document.root().is(json::Kind::object) ? document.root().find("members") : std::nullopt;
  if (!list || !list->is(json::Kind::array)) {
    co_return Error(Errc::data_loss, "the server's answer has no list of members");
  }
  print_out(s.terminal, members_table(*list));
  co_return 0;
}

Task<Result<int>> decommission(Session& s) {
  Method method = s.args.flag("cancel") ? Method::delete_ : Method::post;
  std::string node = http::encode_component(s.args.operand(0));
  NARAD_CO_TRY(co_await s.client.call(method, cat("/v1/cluster/members/", node, "/decommission")));
  co_return 0;
}

}  // namespace

int cluster_members(const Arguments& a, Terminal& t) { return run_session(a, t, members); }
int cluster_decommission(const Arguments& a, Terminal& t) {
  return run_session(a, t, decommission);
}

}  // namespace narad::cli
