#include "internal/api/move_json.h"

#include <algorithm>
#include <vector>

#include "internal/metastore/move_budget.h"
#include "internal/metastore/move_rules.h"
#include "pkg/base/text.h"
#include "pkg/json/decode.h"
#include "pkg/json/text.h"
#include "pkg/json/writer.h"

namespace narad::api {
namespace {

using metastore::MoveOutcome;
using metastore::MoveRecord;
using metastore::State;

// A move that is under way.
struct Running {
  TopicPartition partition;
  const Assignment* row = nullptr;
  const MoveRecord* record = nullptr;  // null: the history has forgotten it
};

bool fits(const MovesShown& shown, std::string_view topic, std::string_view from,
          std::string_view to) {
  if (!shown.topic.empty() && shown.topic != topic) return false;
  return shown.node.empty() || shown.node == from || shown.node == to;
}

template <class F>
void for_each_running(const State& state, const MovesShown& shown, const F& visit) {
  state.topics.for_each([&](const metastore::TopicRowPtr& topic) {
    for (std::uint32_t p = 0; p < topic->assignments.size(); ++p) {
      const Assignment& a = topic->assignments[p];
      if (a.target_node.empty()) continue;
      if (!fits(shown, topic->topic.name, a.owner_node, a.target_node)) continue;
      visit(Running{{topic->topic.name, PartitionId(p)},
                    &a,
                    state.moves.find(metastore::move_key(a.move_id))});
    }
  });
}

std::optional<Running> running_with(const State& state, RaftIndex move_id) {
  std::optional<Running> found;
  for_each_running(state, {}, [&](const Running& running) {
    if (running.row->move_id == move_id) found = running;
  });
  return found;
}

std::int64_t seconds_of(UnixMillis time) { return time.value() / 1000; }

void write_report(json::Writer& w, const wire::MoveReport& r, std::uint64_t budget) {
  w.begin_object().member("phase", r.phase);
  w.member("bytes_done", r.bytes_done).member("bytes_total", r.bytes_total);
  w.member("bytes_per_second", r.bytes_per_second);
  w.member("write_bytes_per_second", r.write_bytes_per_second);
  if (budget != 0) w.member("budget_bytes_per_second", budget);
  if (const auto left = seconds_left(r)) w.member("seconds_left", *left);
  if (const auto stalled = stalled_seconds(r)) w.member("stalled_seconds", *stalled);
  w.member("passes", r.passes).member("attempts", r.attempts).member("frozen_ms", r.frozen_ms);
  if (!r.last_error.empty()) w.member("last_error", r.last_error);
  w.end_object();
}

// What the destination says of the move, or why it says nothing.
struct Said {
  const wire::MoveReport* report = nullptr;
  std::string silence;
};
Said said_of(const Running& running, const ReportsByNode& reports) {
  const std::string& node = running.row->target_node;
  const auto at = reports.find(node);
  if (at == reports.end()) return {nullptr, cat("node ", node, " was not asked")};
  if (!at->second) return {nullptr, at->second.error().text()};
  for (const wire::MoveReport& r : at->second.value().moves) {
    if (r.move.move_id == running.row->move_id) return {&r, {}};
  }
  return {nullptr, cat("node ", node, " does not work on it yet")};
}

// Left out if nothing makes it wait.
void write_pauses(json::Writer& w, const State& state, const Assignment& move) {
  const auto by = metastore::pauses_of(state, move);
  if (by.empty()) return;
  w.key("paused_by").begin_array();
  for (std::string_view one : by) w.value(one);
  w.end_array();
}

// Of a move under way, without the braces.
void write_running(json::Writer& w, const State& state, const metastore::Receivers& receivers,
                   const Running& running, const ReportsByNode* reports) {
  const Assignment& a = *running.row;
  w.member("topic", running.partition.topic).member("partition", running.partition.partition);
  w.member("from", a.owner_node).member("to", a.target_node).member("id", a.move_id);
  w.member("from_disk", a.owner_disk).member("to_disk", a.target_disk);
  if (running.record != nullptr) w.member("reason", running.record->reason);
  w.member("from_status", metastore::standing_of(state, a.owner_node));
  w.member("to_status", metastore::standing_of(state, a.target_node));
  Said said;
  if (reports != nullptr) said = said_of(running, *reports);
  w.key("blocked").begin_array();
  for (std::string_view block : metastore::blocks_of(state, a)) w.value(block);
  if (said.report != nullptr && !said.report->blocked.empty()) w.value(said.report->blocked);
  w.end_array();
  write_pauses(w, state, a);
  if (a.move_rate != 0) w.member("max_bytes_per_second", a.move_rate);
  if (running.record != nullptr && running.record->started.value() > 0) {
    w.member("started_at", seconds_of(running.record->started));
  }
  if (said.report != nullptr) {
    w.key("report");
    write_report(w, *said.report, metastore::budget_of(state, receivers, a));
  } else if (reports != nullptr) {
    w.member("report_error", said.silence);
  }
}

// Of a move that has ended, without the braces.
void write_ended(json::Writer& w, const MoveRecord& m) {
  w.member("topic", m.topic).member("partition", m.partition);
  w.member("from", m.from_node).member("to", m.to_node).member("id", m.move_id);
  w.member("from_disk", m.from_disk).member("to_disk", m.to_disk).member("reason", m.reason);
  w.member("outcome", metastore::to_string(m.outcome));
  if (!m.why.empty()) w.member("why", m.why);
  if (m.started.value() > 0) w.member("started_at", seconds_of(m.started));
  if (m.ended.value() > 0) w.member("ended_at", seconds_of(m.ended));
  // By the clocks of two nodes, perhaps.
  if (m.started.value() > 0 && m.ended >= m.started) {
    w.member("took_ms", m.ended.value() - m.started.value());
  }
  if (!m.receipt.empty() && json::is_payload(m.receipt)) w.key("receipt").raw(m.receipt);
}

std::vector<const MoveRecord*> ended_moves(const State& state, const MovesShown& shown) {
  std::vector<const MoveRecord*> ended;
  state.moves.for_each([&](const std::shared_ptr<const MoveRecord>& m) {
    if (m->outcome == MoveOutcome::running) return;
    if (fits(shown, m->topic, m->from_node, m->to_node)) ended.push_back(m.get());
  });
  const std::size_t count = std::min(*shown.history, ended.size());
  std::partial_sort(ended.begin(), ended.begin() + static_cast<std::ptrdiff_t>(count), ended.end(),
                    [](const MoveRecord* a, const MoveRecord* b) {
                      return a->ended_at != b->ended_at ? a->ended_at > b->ended_at
                                                        : a->move_id > b->move_id;
                    });
  ended.resize(count);
  return ended;
}

Error invalid(std::string text) { return Error(Errc::invalid_argument, std::move(text)); }

std::string_view to_string(metastore::StartOutcome outcome) {
  switch (outcome) {
    case metastore::StartOutcome::started:
      return "started";
    case metastore::StartOutcome::given:
      return "given";
    case metastore::StartOutcome::there:
      return "there";
    case metastore::StartOutcome::on_its_way:
      return "on_its_way";
    case metastore::StartOutcome::refused:
      break;
  }
  return "refused";
}

}  // namespace

std::optional<std::uint64_t> stalled_seconds(const wire::MoveReport& r) {
  if (r.phase == "paused") return std::nullopt;
  if (r.bytes_done >= r.bytes_total || r.moved_ms_ago < kStalledAfterMs) return std::nullopt;
  return r.moved_ms_ago / 1000;
}

std::optional<std::uint64_t> seconds_left(const wire::MoveReport& r) {
  if (r.bytes_total == 0 || r.phase == "paused" || stalled_seconds(r)) return std::nullopt;
  const std::uint64_t left = r.bytes_total > r.bytes_done ? r.bytes_total - r.bytes_done : 0;
  if (left == 0) return 0;
  if (r.bytes_per_second <= r.write_bytes_per_second) return std::nullopt;
  const std::uint64_t rate = r.bytes_per_second - r.write_bytes_per_second;
  return left / rate + (left % rate != 0 ? 1 : 0);
}

std::string moves_body(const State& state, const MovesShown& shown) {
  json::Writer w;
  // For the reports only.
  const metastore::Receivers receivers =
      shown.reports != nullptr ? metastore::receivers_of(state) : metastore::Receivers();
  w.begin_object().key("moves").begin_array();
  for_each_running(state, shown, [&](const Running& running) {
    w.begin_object();
    write_running(w, state, receivers, running, shown.reports);
    w.end_object();
  });
  w.end_array();
  if (state.moves_paused) w.member("paused", true);
  if (state.move_rate) w.member("max_bytes_per_second", *state.move_rate);
  if (shown.history) {
    w.key("history").begin_array();
    for (const MoveRecord* m : ended_moves(state, shown)) {
      w.begin_object();
      write_ended(w, *m);
      w.end_object();
    }
    w.end_array();
  }
  w.end_object();
  return w.take() + "\n";
}

std::set<std::string> destinations(const State& state, const MovesShown& shown) {
  std::set<std::string> nodes;
  for_each_running(state, shown,
                   [&](const Running& running) { nodes.insert(running.row->target_node); });
  return nodes;
}

std::optional<std::string> move_body(const State& state, RaftIndex move_id,
                                     const ReportsByNode& reports) {
  json::Writer w;
  w.begin_object();
  if (const auto running = running_with(state, move_id)) {
    write_running(w, state, metastore::receivers_of(state), *running, &reports);
    w.member("outcome", metastore::to_string(MoveOutcome::running));
  } else if (const MoveRecord* m = state.moves.find(metastore::move_key(move_id))) {
    write_ended(w, *m);
  } else {
    return std::nullopt;
  }
  w.end_object();
  return w.take() + "\n";
}

std::string destination_of(const State& state, RaftIndex move_id) {
  const auto running = running_with(state, move_id);
  return running ? running->row->target_node : std::string();
}

std::string start_body(const TopicPartition& partition, const metastore::StartAnswer& answer,
                       const std::optional<TooSlow>& slow) {
  const bool there = answer.outcome == metastore::StartOutcome::there;
  const bool moves = !answer.now.target_node.empty();
  json::Writer w;
  w.begin_object().member("topic", partition.topic).member("partition", partition.partition);
  w.member("from", answer.before.owner_node);
  w.member("to", moves ? answer.now.target_node : answer.now.owner_node);
  w.member("to_disk", moves ? answer.now.target_disk : answer.now.owner_disk);
  if (!there) w.member("id", answer.move_id);
  w.member("outcome", to_string(answer.outcome));
  if (slow) {
    w.key("will_not_converge").begin_object();
    w.member("write_bytes_per_second", slow->written);
    w.member("budget_bytes_per_second", slow->budget).end_object();
  }
  w.end_object();
  return w.take() + "\n";
}

std::string abort_body(const TopicPartition& partition, const metastore::AbortAnswer& answer) {
  json::Writer w;
  w.begin_object().member("topic", partition.topic).member("partition", partition.partition);
  w.member("id", answer.read.move_id).member("from", answer.read.owner_node);
  w.member("to", answer.read.target_node).member("outcome", "aborted");
  w.member("owner", answer.now.owner_node).member("target", answer.now.target_node).end_object();
  return w.take() + "\n";
}

std::string throttle_body(std::optional<std::uint64_t> rate, std::optional<bool> changed) {
  json::Writer w;
  w.begin_object().member("set", rate.has_value());
  if (rate) w.member("max_bytes_per_second", *rate);
  if (changed) w.member("changed", *changed);
  w.end_object();
  return w.take() + "\n";
}

Result<std::uint64_t> parse_throttle(std::string body) {
  std::optional<std::uint64_t> rate;
  NARAD_TRY(auto document, json::parse_body(std::move(body)));
  json::Decoder d(document.root());
  d.field("max_bytes_per_second", rate);
  NARAD_TRY(d.finish());
  if (!rate) return invalid("max_bytes_per_second: how many? 0: no limit");
  return *rate;
}

std::string pause_body(const State& state, const metastore::PauseWish& wish,
                       const metastore::PauseAnswer& answer) {
  json::Writer w;
  w.begin_object();
  if (wish.partition) {
    w.member("topic", wish.partition->topic).member("partition", wish.partition->partition);
    w.member("id", answer.now.move_id);
  } else if (!wish.node.empty()) {
    w.member("node", wish.node);
  }
  w.member("paused", wish.pause).member("changed", answer.changed);
  if (wish.partition) write_pauses(w, state, answer.now);
  w.end_object();
  return w.take() + "\n";
}

Result<metastore::MoveWish> parse_move_wish(std::string body) {
  metastore::MoveWish wish;
  std::optional<std::uint32_t> partition;
  NARAD_TRY(auto document, json::parse_body(std::move(body)));
  json::Decoder d(document.root());
  d.field("topic", wish.partition.topic)
      .field("partition", partition)
      .field("to", wish.to)
      .field("disk", wish.disk)
      .field("max_bytes_per_second", wish.max_bytes_per_second);
  NARAD_TRY(d.finish());
  if (wish.partition.topic.empty()) return invalid("topic: which one is to move?");
  if (!partition) return invalid("partition: which one of the topic is to move?");
  if (wish.to.empty()) return invalid("to: which node is it to move to?");
  wish.partition.partition = PartitionId(*partition);
  return wish;
}

}  // namespace narad::api
