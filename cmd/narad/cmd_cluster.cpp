// `narad cluster members`, `decommission`, `safe-to-stop`, `quarantine`, `rebalance` and `explain`.
#include <algorithm>

#include "cmd/narad/cluster_view.h"
#include "cmd/narad/commands.h"
#include "cmd/narad/operator.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"
#include "pkg/http/query.h"
#include "pkg/json/text.h"

namespace narad::cli {
namespace {

using http::Method;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Nanos kLookEvery = seconds(1);
constexpr Nanos kSilenceMax = minutes(1);   // of a server that said that the node drains
constexpr Nanos kNotSeenMax = seconds(10);  // a drain that was begun, by the server that is asked

// With the command that shows why, or who there is.
Error with_next(Error error, std::string_view on_conflict) {
  if (error.code() == Errc::not_found) {
    return {error.code(), cat(error.text(), "; see narad cluster members")};
  }
  if (error.code() != Errc::conflict || on_conflict.empty()) return error;
  return {error.code(), cat(error.text(), "; see ", on_conflict)};
}

Task<Result<int>> members(Session& s) {
  NARAD_CO_TRY(auto answer, co_await s.client.call(Method::get, "/v1/cluster/members"));
  co_return show_answer(s, std::move(answer.body), read_members, members_table);
}

// ---- decommission

// Says how far the drain is whenever that has changed, until the node has left.
class Wait {
 public:
  explicit Wait(Session& s) : s_(s), node_(s.args.operand(0)) {}

  // The exit status, or an error that asking again cannot mend.
  Task<Result<int>> run() {
    const Nanos began = s_.env.clock.mono();
    heard_ = began;
    for (;;) {
      auto answer = co_await s_.client.call(Method::get, "/v1/cluster/members");
      const Nanos now = s_.env.clock.mono();
      if (!answer) {
        NARAD_CO_TRY(bear(answer.error(), now));
      } else {
        heard_ = now;
        NARAD_CO_TRY(const auto list, read_members(std::move(answer.value().body)));
        const auto status = look(list, now - began);
        if (status) co_return *status;
      }
      if (s_.terminal.out_failed()) co_return 0;  // nobody reads on
      co_await sleep_for(s_.env, kLookEvery);
    }
  }

 private:
  std::optional<int> look(const std::vector<MemberView>& list, Nanos since) {
    const auto at = std::find_if(list.begin(), list.end(),
                                 [this](const MemberView& m) { return m.id == node_; });
    if (at == list.end()) {
      say(cat(node_, " has left the cluster"));
      return 0;
    }
    if (at->draining) {
      seen_ = true;
      say(drain_line(*at));
      return std::nullopt;
    }
    if (!seen_ && since < kNotSeenMax) return std::nullopt;
    complain(s_.terminal, cat(node_, " stays: its decommission was cancelled meanwhile"));
    return kRefused;
  }

  // The server may come back; but the node that leaves does not, and may be the one that is asked.
  Result<void> bear(const Error& error, Nanos now) {
    if (!may_pass(error)) return error;
    if (now - heard_ < kSilenceMax) {
      say(cat(error.text(), "; trying again"));
      return ok();
    }
    return Error(
        Errc::unavailable,
        cat(error.text(), "; if that server is ", node_,
            " it may have left: ask another one, with narad cluster members --server URL"));
  }

  void say(const std::string& line) {
    if (line == said_) return;
    said_ = line;
    print_out(s_.terminal, cat(format_rfc3339(s_.env.clock.wall_millis()), "  ", line, "\n"));
  }

  Session& s_;
  const std::string node_;
  bool seen_ = false;  // draining
  Nanos heard_{0};
  std::string said_;
};

Task<Result<int>> wait_until_gone(Session& s) {
  Wait wait(s);
  auto waiting = wait.run();
  auto interrupted = interruption(s);
  const auto ended = co_await result_before(std::move(waiting), std::move(interrupted));
  if (!ended) {
    s.terminal.err(
        cat("narad: no longer waiting; the decommission goes on. Look again with narad "
            "cluster decommission ",
            s.args.operand(0), " --wait, or end it with --cancel\n"));
    co_return kInterrupted;
  }
  co_return *ended;
}

Task<Result<int>> show_verdict(Session& s, std::string target) {
  auto answer = co_await s.client.call(Method::post, std::move(target));
  if (!answer) co_return with_next(answer.error(), "");
  NARAD_CO_TRY(const VerdictView verdict, read_verdict(answer.value().body));
  if (wants_text(s)) {
    print_out(s.terminal, verdict_page(verdict));
  } else {
    print_json(s.terminal, answer.value().body);
  }
  if (verdict.possible) co_return 0;
  complain(s.terminal, cat("a decommission of ", verdict.node, " would be refused"));
  co_return kRefused;
}

// What goes with what; empty: all of it.
std::string misfit(const Arguments& a) {
  const bool wait = a.flag("wait");
  if (a.flag("cancel") && (wait || a.flag("dry-run") || a.flag("wal-lost"))) {
    return "--cancel goes with no other flag";
  }
  if (a.flag("dry-run") && wait) return "--dry-run begins nothing that --wait could wait for";
  return {};
}

Task<Result<int>> decommission(Session& s) {
  if (const std::string wrong = misfit(s.args); !wrong.empty()) co_return usage(s, wrong);
  const std::string& node = s.args.operand(0);
  std::string target = cat("/v1/cluster/members/", http::encode_component(node), "/decommission");
  const bool cancel = s.args.flag("cancel");
  if (s.args.flag("dry-run")) target += "?dry_run=1";
  if (s.args.flag("wal-lost")) target += s.args.flag("dry-run") ? "&wal_lost=1" : "?wal_lost=1";
  if (s.args.flag("dry-run")) co_return co_await show_verdict(s, std::move(target));
  auto answer = co_await s.client.call(cancel ? Method::delete_ : Method::post, std::move(target));
  if (!answer) {
    const std::string next = cat("narad cluster decommission ", node, " --dry-run");
    co_return with_next(answer.error(), cancel ? std::string_view() : std::string_view(next));
  }
  if (!s.args.flag("wait")) co_return 0;
  co_return co_await wait_until_gone(s);
}

// ---- stopping for a while

Task<Result<int>> safe_to_stop(Session& s) {
  std::string target =
      cat("/v1/cluster/members/", http::encode_component(s.args.operand(0)), "/safe-to-stop");
  auto answer = co_await s.client.call(Method::get, std::move(target));
  if (!answer) co_return with_next(answer.error(), "");
  NARAD_CO_TRY(const StopView verdict, read_stop(answer.value().body));
  NARAD_CO_TRY(show_answer(s, std::move(answer.value().body), read_stop, stop_page));
  if (verdict.safe) co_return 0;
  std::string rules;
  for (const DrainReasonView& r : verdict.reasons) rules += cat(rules.empty() ? "" : ", ", r.rule);
  complain(s.terminal, cat(verdict.node, " is not known to be safe to stop: ", rules));
  co_return verdict.unknown() ? kUnknown : kRefused;
}

// ---- quarantine

Task<Result<int>> quarantine(Session& s) {
  std::string target = "/v1/cluster/quarantine";
  if (const std::string node = s.args.text("node"); !node.empty()) {
    target += cat("?node=", http::encode_component(node));
  }
  auto answer = co_await s.client.call(Method::get, std::move(target));
  if (!answer) co_return with_next(answer.error(), "");
  NARAD_CO_TRY(const QuarantineView seen, read_quarantine(answer.value().body));
  NARAD_CO_TRY(show_answer(s, std::move(answer.value().body), read_quarantine, quarantine_page));
  if (seen.unanswered.empty()) co_return 0;
  complain(s.terminal, "not every node has said what it keeps aside");
  co_return kUnknown;
}

// ---- plans

Task<Result<int>> rebalance(Session& s) {
  std::string target = "/v1/cluster/rebalance";
  if (s.args.flag("dry-run")) target += "?dry_run=1";
  NARAD_CO_TRY(auto answer, co_await s.client.call(Method::post, std::move(target)));
  co_return show_answer(s, std::move(answer.body), read_rebalance, rebalance_page);
}

Task<Result<int>> explain(Session& s) {
  const auto partition = partition_operand(s);
  if (!partition) co_return kUsage;
  const std::string topic = http::encode_component(s.args.operand(0));
  NARAD_CO_TRY(auto answer, co_await s.client.call(
                                Method::get, cat("/v1/cluster/explain/", topic, '/', *partition)));
  co_return show_answer(s, std::move(answer.body), read_explanation, explanation_page);
}

}  // namespace

int cluster_members(const Arguments& a, Terminal& t) { return run_session(a, t, members); }
int cluster_decommission(const Arguments& a, Terminal& t) {
  return run_session(a, t, decommission, {.signals = a.flag("wait")});
}
int cluster_safe_to_stop(const Arguments& a, Terminal& t) {
  return run_session(a, t, safe_to_stop);
}
int cluster_quarantine(const Arguments& a, Terminal& t) { return run_session(a, t, quarantine); }
int cluster_rebalance(const Arguments& a, Terminal& t) { return run_session(a, t, rebalance); }
int cluster_explain(const Arguments& a, Terminal& t) { return run_session(a, t, explain); }

}  // namespace narad::cli
