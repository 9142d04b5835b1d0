#include "cmd/narad/commands.h"
#include "cmd/narad/format.h"
#include "cmd/narad/session.h"
#include "pkg/base/text.h"
#include "pkg/http/query.h"
#include "pkg/json/writer.h"

namespace narad::cli {
namespace {

using http::Method;

std::string topic_path(std::string_view topic, std::string_view rest = {}) {
  return cat("/v1/topics/", http::encode_component(topic), rest);
}

std::int64_t millis(std::chrono::nanoseconds d) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
}

Error refuse(std::string_view text) { return {Errc::invalid_argument, std::string(text)}; }

// Sends one request and prints the answer's JSON.
Task<Result<int>> show(Session& s, Method method, std::string target, std::string body = {}) {
  std::string type = body.empty() ? "" : "application/json";
  NARAD_CO_TRY(auto answer,
               co_await s.client.call(method, std::move(target), std::move(body), std::move(type)));
  print_json(s.terminal, answer.body);
  co_return 0;
}

Task<Result<int>> add(Session& s) {
  json::Writer w;
  w.begin_object().member("name", s.args.operand(0));
  if (s.args.integer("partitions") > 0) w.member("partitions", s.args.integer("partitions"));
  auto member_ms = [&](std::string_view name, std::string_view flag) {
    if (millis(s.args.duration(flag)) > 0) w.member(name, millis(s.args.duration(flag)));
  };
  member_ms("retention_ms", "retention");
  member_ms("visibility_timeout_ms", "visibility");
  if (s.args.integer("max-in-flight") > 0) {
    w.member("max_in_flight_per_partition", s.args.integer("max-in-flight"));
  }
  if (s.args.integer("max-acked-ahead") > 0) {
    w.member("max_acked_ahead_per_partition", s.args.integer("max-acked-ahead"));
  }
  std::string parent = s.args.text("parent");
  if (!parent.empty()) w.member("parent", parent);
  member_ms("fanout_delay_ms", "delay");
  w.end_object();
  if (parent.empty() && s.args.duration("delay").count() > 0) {
    co_return refuse("--delay needs --parent");
  }
  std::string body = w.take();
  co_return co_await show(s, Method::post, "/v1/topics", std::move(body));
}

std::string role_text(const client::TopicInfo& t) {
  if (!t.parent.empty()) {
    if (t.fanout_delay_ms <= 0) return cat("child of ", t.parent);
    std::string delay = format_duration(std::chrono::milliseconds(t.fanout_delay_ms));
    return cat("child of ", t.parent, " (delay ", delay, ")");
  }
  return t.role == "parent" ? "parent" : "-";
}

std::string retention_text(std::int64_t ms) {
  return ms <= 0 ? "forever" : format_duration(std::chrono::milliseconds(ms));
}

std::string topic_row(std::string_view name, std::string_view partitions,
                      std::string_view retention, std::string_view role) {
  return cat(left(name, 32), ' ', right(partitions, 10), ' ', right(retention, 12), "  ", role);
}

std::string topics_json(const std::vector<client::TopicInfo>& topics) {
  if (topics.empty()) return "null\n";
  json::Writer w;
  w.begin_array();
  for (const client::TopicInfo& t : topics) {
    w.begin_object().member("name", t.name).member("partitions", t.partitions);
    w.member("retention_ms", t.retention_ms).member("role", t.role).member("parent", t.parent);
    w.member("fanout_delay_ms", t.fanout_delay_ms).end_object();
  }
  w.end_array();
  return cat(w.take(), "\n");
}

Task<Result<int>> ls(Session& s) {
  NARAD_CO_TRY(auto topics, co_await s.client.all_topics());
  if (s.args.flag("json")) {
    print_out(s.terminal, topics_json(topics));
    co_return 0;
  }
  if (topics.empty()) {
    s.terminal.out("no topics\n");
    co_return 0;
  }
  std::string header = topic_row("NAME", "PARTITIONS", "RETENTION", "ROLE");
  s.terminal.out(cat(s.terminal.faint(header), "\n"));
  std::string out;
  for (const client::TopicInfo& t : topics) {
    out += cat(topic_row(t.name, cat(t.partitions), retention_text(t.retention_ms), role_text(t)),
               "\n");
  }
  print_out(s.terminal, out);
  co_return 0;
}

Task<Result<int>> info(Session& s) { return show(s, Method::get, topic_path(s.args.operand(0))); }

Task<Result<int>> edit(Session& s) {
  bool retention = s.args.given("retention");
  bool visibility = s.args.given("visibility");
  bool partitions = s.args.given("partitions");
  if (!retention && !visibility && !partitions) {
    co_return refuse("nothing to change: give --retention, --visibility or --partitions");
  }
  json::Writer w;
  w.begin_object();
  if (partitions) w.member("partitions", s.args.integer("partitions"));
  // 0 asks for the server's default.
  if (retention) w.member("retention_ms", millis(s.args.duration("retention")));
  if (visibility) w.member("visibility_timeout_ms", millis(s.args.duration("visibility")));
  w.end_object();
  std::string body = w.take();
  co_return co_await show(s, Method::patch, topic_path(s.args.operand(0)), std::move(body));
}

Task<Result<int>> rm(Session& s) {
  const std::string& name = s.args.operand(0);
  if (!s.args.flag("force")) {
    s.terminal.out(cat("delete topic ", name, " and all its messages? [y/N] "));
    std::string answer = s.terminal.read_line();
    if (answer != "y" && answer != "Y" && answer != "yes") co_return refuse("aborted");
  }
  NARAD_CO_TRY(co_await s.client.delete_topic(name));
  s.terminal.out(cat("deleted ", name, "\n"));
  co_return 0;
}

Task<Result<int>> attach(Session& s) {
  json::Writer w;
  w.begin_object().member("child", s.args.operand(1));
  if (millis(s.args.duration("delay")) > 0) w.member("delay_ms", millis(s.args.duration("delay")));
  w.end_object();
  std::string body = w.take();
  return show(s, Method::post, topic_path(s.args.operand(0), "/children"), std::move(body));
}

Task<Result<int>> detach(Session& s) {
  std::string child = http::encode_component(s.args.operand(1));
  return show(s, Method::delete_, topic_path(s.args.operand(0), cat("/children/", child)));
}

Task<Result<int>> children(Session& s) {
  return show(s, Method::get, topic_path(s.args.operand(0), "/children"));
}

}  // namespace

int topic_add(const Arguments& a, Terminal& t) { return run_session(a, t, add); }
int topic_ls(const Arguments& a, Terminal& t) { return run_session(a, t, ls); }
int topic_info(const Arguments& a, Terminal& t) { return run_session(a, t, info); }
int topic_edit(const Arguments& a, Terminal& t) { return run_session(a, t, edit); }
int topic_rm(const Arguments& a, Terminal& t) { return run_session(a, t, rm); }
int topic_attach(const Arguments& a, Terminal& t) { return run_session(a, t, attach); }
int topic_detach(const Arguments& a, Terminal& t) { return run_session(a, t, detach); }
int topic_children(const Arguments& a, Terminal& t) { return run_session(a, t, children); }

}  // namespace narad::cli
