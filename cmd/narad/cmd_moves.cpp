// `narad cluster moves` and `throttle`: what moves, what has moved, and orders about it.
#include "cmd/narad/commands.h"
#include "cmd/narad/moves_view.h"
#include "cmd/narad/operator.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"
#include "pkg/http/query.h"
#include "pkg/json/text.h"
#include "pkg/json/writer.h"

namespace narad::cli {
namespace {

using http::Method;
using std::chrono::seconds;

constexpr Nanos kWatchEvery = seconds(1);
constexpr Nanos kWatchPauseMax = seconds(10);
constexpr std::size_t kRecentKept = 20;

// A refusal by the state of things, with the command that shows it.
Error with_next(Error error, std::string_view command) {
  if (error.code() != Errc::conflict && error.code() != Errc::not_found) return error;
  return {error.code(), cat(error.text(), "; see ", command)};
}

// ---- what moves, what has moved

std::string list_target(const Session& s, bool detail, bool history) {
  std::string query;
  const auto add = [&](std::string_view name, std::string_view value) {
    query += cat(query.empty() ? '?' : '&', name, '=', http::encode_component(value));
  };
  if (detail) add("detail", "1");
  if (history) {
    add("history", "1");
    add("limit", cat(s.args.integer("limit")));
  }
  if (const std::string topic = s.args.text("topic"); !topic.empty()) add("topic", topic);
  if (const std::string node = s.args.text("node"); !node.empty()) add("node", node);
  return cat("/v1/cluster/moves", query);
}

Task<Result<int>> list(Session& s) {
  const bool history = s.args.flag("history");
  // A table without phases and bytes would say little: the destinations are asked for it.
  const bool detail = s.args.flag("detail") || (wants_text(s) && !history);
  std::string target = list_target(s, detail, history);
  NARAD_CO_TRY(auto answer, co_await s.client.call(Method::get, std::move(target)));
  co_return show_answer(s, std::move(answer.body), read_moves, [&](const MovesView& view) {
    if (history) return history_table(view.history);
    std::string page = moves_table(view.moves, s.args.flag("detail"));
    if (!s.args.flag("detail")) page += slow_lines(view.moves);
    if (view.paused) page += "moves: all are paused\n";
    if (view.rate) page += throttle_text({view.rate, std::nullopt});
    return page;
  });
}

// ---- watching

// Shows what was read: anew on a screen, as lines about what changed elsewhere, or as JSON.
class Watch {
 public:
  explicit Watch(Session& s)
      : s_(s),
        json_(s.args.text("output") == "json"),
        screen_(!json_ && s.terminal.out_is_terminal() && environment("TERM") != "dumb") {}

  // Until nobody reads on (ok), or an error that asking again cannot mend.
  Task<Result<void>> run() {
    Nanos pause = kWatchEvery;
    for (bool first = true; !s_.terminal.out_failed(); first = false) {
      auto answer = co_await s_.client.call(Method::get, list_target(s_, true, false));
      if (!answer && (first || !may_pass(answer.error()))) co_return answer.error();
      if (!answer) {
        say(cat(answer.error().text(), "; trying again"));
        pause = std::min(pause * 2, kWatchPauseMax);
      } else {
        pause = kWatchEvery;
        NARAD_CO_TRY(co_await show(std::move(answer.value().body)));
      }
      co_await sleep_for(s_.env, pause);
    }
    co_return ok();
  }

 private:
  Task<Result<void>> show(std::string body) {
    if (json_) {
      show_json(body);
      co_return ok();
    }
    NARAD_CO_TRY(MovesView view, read_moves(std::move(body)));
    for (const std::string& line : changes(before_, view.moves)) {
      if (!screen_) say(line);
    }
    for (const MoveView& ended : gone(before_, view.moves)) say(co_await end_of(ended));
    if (!screen_ && !shown_ && view.moves.empty()) say("no moves");
    shown_ = true;
    before_ = std::move(view.moves);
    if (screen_) draw();
    co_return ok();
  }

  void show_json(const std::string& body) {
    if (shown_ && body == last_body_) return;
    shown_ = true;
    last_body_ = body;
    s_.terminal.out(cat(json::compact(body).value_or(body), "\n"));
  }

  Task<std::string> end_of(MoveView move) {
    auto answer = co_await s_.client.call(Method::get, cat("/v1/cluster/moves/", move.id));
    if (answer) {
      auto one = read_move(std::move(answer.value().body));
      if (one && one.value().ended) co_return end_line(*one.value().ended);
    }
    co_return cat(move.topic, '/', move.partition, ": move ", move.id, " is over");
  }

  void say(std::string_view line) {
    const std::string text = cat(format_rfc3339(s_.env.clock.wall_millis()), "  ", line);
    recent_.push_back(text);
    if (recent_.size() > kRecentKept) recent_.erase(recent_.begin());
    if (json_) complain(s_.terminal, line);
    if (!json_ && !screen_) print_out(s_.terminal, text + "\n");
    if (screen_) draw();
  }

  // From the upper left corner over what was there, so that nothing flickers.
  void draw() {
    std::string frame = drawn_ ? "\x1b[H" : "\x1b[2J\x1b[H";
    drawn_ = true;
    for (const std::string& line : watch_screen(before_, recent_, s_.terminal.out_size())) {
      frame += cat(line, "\x1b[K\n");
    }
    s_.terminal.out(frame + "\x1b[J");
  }

  Session& s_;
  const bool json_;
  const bool screen_;
  bool shown_ = false;
  bool drawn_ = false;
  std::vector<MoveView> before_;
  std::vector<std::string> recent_;
  std::string last_body_;
};

Task<Result<int>> watch(Session& s) {
  Watch watch(s);
  auto watching = watch.run();
  auto interrupted = interruption(s);
  const auto ended = co_await result_before(std::move(watching), std::move(interrupted));
  if (!ended) {
    s.terminal.err(
        "narad: no longer watching; what moves goes on. "
        "Look again with narad cluster moves --watch\n");
    co_return kInterrupted;
  }
  if (!*ended) co_return ended->error();
  co_return 0;
}

Task<Result<int>> moves(Session& s) {
  if (!s.args.flag("watch")) co_return co_await list(s);
  if (s.args.flag("history")) co_return usage(s, "--watch and --history do not go together");
  co_return co_await watch(s);
}

// ---- one move, orders

std::string see_moves_of(const std::string& topic) {
  return cat("narad cluster moves --topic ", topic);
}

Task<Result<int>> show(Session& s) {
  if (!parse_number<std::uint64_t>(s.args.operand(0))) {
    co_return usage(s, cat("a move has a number, which ", s.args.operand(0), " is not"));
  }
  auto answer = co_await s.client.call(Method::get, cat("/v1/cluster/moves/", s.args.operand(0)));
  if (!answer) co_return with_next(answer.error(), "narad cluster moves --history");
  co_return show_answer(s, std::move(answer.value().body), read_move, [](const OneMove& move) {
    return move.running ? move_page(*move.running) : move_page(*move.ended);
  });
}

Task<Result<int>> start(Session& s) {
  const auto partition = partition_operand(s);
  if (!partition) co_return kUsage;
  if (s.args.text("to").empty()) co_return usage(s, "--to NODE is needed: where is it to move?");
  json::Writer w;
  w.begin_object().member("topic", s.args.operand(0)).member("partition", *partition);
  w.member("to", s.args.text("to"));
  if (const std::string disk = s.args.text("disk"); !disk.empty()) w.member("disk", disk);
  if (const std::string text = s.args.text("max-rate"); !text.empty()) {
    const auto rate = parse_rate(text);
    if (!rate) co_return usage(s, rate.error().text());
    w.member("max_bytes_per_second", rate.value());
  }
  w.end_object();
  auto answer =
      co_await s.client.call(Method::post, "/v1/cluster/moves", w.take(), "application/json");
  if (!answer) co_return with_next(answer.error(), "narad cluster members");
  co_return show_answer(s, std::move(answer.value().body), read_started, started_text);
}

std::string abort_target(const std::string& topic, std::uint64_t partition,
                         const std::string& only_to) {
  std::string target =
      cat("/v1/cluster/moves/", http::encode_component(topic), '/', partition, "/abort");
  if (!only_to.empty()) target += cat("?target=", http::encode_component(only_to));
  return target;
}

// Aborts them one after the other, up to the first of which nobody can say what became of it: what
// keeps that from being said keeps it of the others too.
Task<Result<std::vector<AbortedMove>>> abort_each(Session& s, std::vector<MoveView> moves) {
  std::vector<AbortedMove> out;
  for (MoveView& move : moves) out.push_back({std::move(move), AbortEnd::untried, {}});
  for (AbortedMove& one : out) {
    std::string target = abort_target(one.move.topic, one.move.partition, one.move.to);
    auto answer = co_await s.client.call(Method::post, std::move(target));
    if (answer) {
      one.end = AbortEnd::aborted;
      continue;
    }
    const Errc code = answer.error().code();
    if (code == Errc::unauthenticated || code == Errc::forbidden) co_return answer.error();
    one.why = std::string(answer.error().text());
    const bool refused = code == Errc::conflict || code == Errc::not_found;
    one.end = refused ? AbortEnd::refused : AbortEnd::unknown;
    if (!refused) break;
  }
  co_return out;
}

int status_of(AbortEnd worst) {
  if (worst == AbortEnd::aborted) return 0;
  return worst == AbortEnd::refused ? kRefused : kUnknown;
}

Task<Result<int>> abort_many(Session& s) {
  std::string all = "/v1/cluster/moves";
  if (const std::string node = s.args.text("node"); !node.empty()) {
    all += cat("?node=", http::encode_component(node));
  }
  NARAD_CO_TRY(auto answer, co_await s.client.call(Method::get, std::move(all)));
  NARAD_CO_TRY(MovesView view, read_moves(std::move(answer.body)));
  if (!view.moves.empty() && !s.args.flag("yes")) {
    const std::string asked = cat(moves_table(view.moves, false), "abort ",
                                  view.moves.size() == 1 ? "it?" : "all of them?");
    if (!agreed(s, asked)) {
      complain(s.terminal, "nothing was aborted");
      co_return kRefused;
    }
  }
  NARAD_CO_TRY(const auto done, co_await abort_each(s, std::move(view.moves)));
  if (wants_text(s)) {
    print_out(s.terminal, aborts_page(done));
  } else {
    print_json(s.terminal, aborts_json(done));
  }
  const int status = status_of(worst_of(done));
  if (status != 0) complain(s.terminal, "not all were aborted; see narad cluster moves");
  co_return status;
}

// What goes with what; empty: all of it.
std::string abort_misfit(const Arguments& a) {
  const bool all = a.flag("all"), node = !a.text("node").empty();
  const bool many = all || node;
  if (all && node) return "--all and --node do not go together";
  if (many && !a.operands().empty()) return "--all and --node go with no TOPIC and PARTITION";
  if (many && !a.text("target").empty()) return "--target goes with TOPIC and PARTITION";
  if (!many && a.operands().size() != 2) {
    return "which move? Give TOPIC and PARTITION, --node or --all";
  }
  return {};
}

Task<Result<int>> abort(Session& s) {
  if (const std::string wrong = abort_misfit(s.args); !wrong.empty()) co_return usage(s, wrong);
  if (s.args.operands().empty()) co_return co_await abort_many(s);
  const auto partition = partition_operand(s);
  if (!partition) co_return kUsage;
  const std::string& topic = s.args.operand(0);
  std::string target = abort_target(topic, *partition, s.args.text("target"));
  auto answer = co_await s.client.call(Method::post, std::move(target));
  if (!answer) co_return with_next(answer.error(), see_moves_of(topic));
  co_return show_answer(s, std::move(answer.value().body), read_started, aborted_text);
}

// ---- pauses

std::string pause_misfit(const Arguments& a) {
  const bool all = a.flag("all"), node = !a.text("node").empty();
  if (all && node) return "--all and --node do not go together";
  if ((all || node) && !a.operands().empty())
    return "--all and --node go with no TOPIC and PARTITION";
  if (!all && !node && a.operands().size() != 2) {
    return "which move? Give TOPIC and PARTITION, --node or --all";
  }
  return {};
}

Task<Result<int>> pause_or_resume(Session& s, std::string verb) {
  if (const std::string wrong = pause_misfit(s.args); !wrong.empty()) co_return usage(s, wrong);
  std::string target = "/v1/cluster/moves/";
  std::string see = "narad cluster members";
  if (!s.args.operands().empty()) {
    const auto partition = partition_operand(s);
    if (!partition) co_return kUsage;
    target += cat(http::encode_component(s.args.operand(0)), '/', *partition, '/');
    see = see_moves_of(s.args.operand(0));
  }
  target += verb;
  if (const std::string node = s.args.text("node"); !node.empty()) {
    target += cat("?node=", http::encode_component(node));
  }
  auto answer = co_await s.client.call(Method::post, std::move(target));
  if (!answer) co_return with_next(answer.error(), see);
  co_return show_answer(s, std::move(answer.value().body), read_pause, pause_text);
}

Task<Result<int>> pause(Session& s) { return pause_or_resume(s, "pause"); }
Task<Result<int>> resume(Session& s) { return pause_or_resume(s, "resume"); }

// ---- how fast

Task<Result<int>> throttle(Session& s) {
  const std::string target = "/v1/cluster/throttle";
  if (s.args.operands().empty()) {
    NARAD_CO_TRY(auto answer, co_await s.client.call(Method::get, target));
    co_return show_answer(s, std::move(answer.body), read_throttle, throttle_text);
  }
  if (s.args.operand(0) == "clear") {
    NARAD_CO_TRY(auto answer, co_await s.client.call(Method::delete_, target));
    co_return show_answer(s, std::move(answer.body), read_throttle, throttle_text);
  }
  const auto rate = parse_rate(s.args.operand(0));
  if (!rate) co_return usage(s, rate.error().text());
  json::Writer w;
  w.begin_object().member("max_bytes_per_second", rate.value()).end_object();
  NARAD_CO_TRY(auto answer,
               co_await s.client.call(Method::put, target, w.take(), "application/json"));
  co_return show_answer(s, std::move(answer.body), read_throttle, throttle_text);
}

}  // namespace

int cluster_moves_pause(const Arguments& a, Terminal& t) { return run_session(a, t, pause); }
int cluster_moves_resume(const Arguments& a, Terminal& t) { return run_session(a, t, resume); }
int cluster_throttle(const Arguments& a, Terminal& t) { return run_session(a, t, throttle); }
int cluster_moves(const Arguments& a, Terminal& t) {
  return run_session(a, t, moves, {.signals = a.flag("watch")});
}
int cluster_moves_show(const Arguments& a, Terminal& t) { return run_session(a, t, show); }
int cluster_moves_start(const Arguments& a, Terminal& t) { return run_session(a, t, start); }
int cluster_moves_abort(const Arguments& a, Terminal& t) { return run_session(a, t, abort); }

}  // namespace narad::cli
