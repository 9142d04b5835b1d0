#include "cmd/narad/moves_view.h"

#include <algorithm>
#include <chrono>

#include "cmd/narad/format.h"
#include "cmd/narad/view_parts.h"
#include "pkg/base/text.h"
#include "pkg/json/writer.h"

namespace narad::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kBarWidth = 20;
constexpr std::size_t kRecentShown = 5;

// ---- reading

MoveReportView read_report(const Fields& f) {
  MoveReportView r;
  r.phase = f.text("phase");
  r.bytes_done = f.count("bytes_done");
  r.bytes_total = f.count("bytes_total");
  r.bytes_per_second = f.count("bytes_per_second");
  r.write_bytes_per_second = f.count("write_bytes_per_second");
  r.budget_bytes_per_second = f.count("budget_bytes_per_second");
  r.seconds_left = f.maybe("seconds_left");
  r.stalled_seconds = f.maybe("stalled_seconds");
  r.passes = f.count("passes");
  r.attempts = f.count("attempts");
  r.frozen_ms = f.count("frozen_ms");
  r.last_error = f.text("last_error");
  return r;
}

MoveView read_running(const Fields& f) {
  MoveView m;
  m.id = f.count("id");
  m.topic = f.text("topic");
  m.partition = f.count("partition");
  m.from = f.text("from");
  m.from_disk = f.text("from_disk");
  m.from_status = f.text("from_status");
  m.to = f.text("to");
  m.to_disk = f.text("to_disk");
  m.to_status = f.text("to_status");
  m.reason = f.text("reason");
  m.blocked = f.texts("blocked");
  m.paused_by = f.texts("paused_by");
  m.rate = f.count("max_bytes_per_second");
  m.started_at = f.time("started_at");
  if (const auto report = f.object("report")) m.report = read_report(*report);
  m.report_error = f.text("report_error");
  return m;
}

ReceiptView read_receipt(const Fields& f) {
  ReceiptView r;
  r.records = f.count("records");
  r.first = f.count("first");
  r.end = f.count("end");
  r.bytes = f.count("bytes");
  r.frozen_ms = f.count("frozen_ms");
  r.passes = f.count("passes");
  r.retries = f.count("retries");
  r.damaged_blocks = f.count("damaged_blocks");
  r.copy_ms = f.count("copy_ms");
  r.drain_ms = f.count("drain_ms");
  r.verify_ms = f.count("verify_ms");
  r.install_ms = f.count("install_ms");
  r.flip_ms = f.count("flip_ms");
  r.digest = f.text("digest");
  return r;
}

EndedMoveView read_ended(const Fields& f) {
  EndedMoveView m;
  m.id = f.count("id");
  m.topic = f.text("topic");
  m.partition = f.count("partition");
  m.from = f.text("from");
  m.from_disk = f.text("from_disk");
  m.to = f.text("to");
  m.to_disk = f.text("to_disk");
  m.reason = f.text("reason");
  m.outcome = f.text("outcome");
  m.why = f.text("why");
  m.started_at = f.time("started_at");
  m.ended_at = f.time("ended_at");
  m.took_ms = f.maybe("took_ms");
  if (const auto receipt = f.object("receipt")) m.receipt = read_receipt(*receipt);
  return m;
}

Error no_moves() { return Error(Errc::data_loss, "the server's answer has no list of moves"); }

// ---- words

template <class Move>
std::string name_of(const Move& m) {
  return cat(m.topic, '/', m.partition);
}

std::string span_text(std::uint64_t ms) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 43;  // 270 years
  const auto span = milliseconds(static_cast<std::int64_t>(std::min(ms, kMax)));
  // Nobody reads the fraction of minutes.
  if (span < seconds(10)) return short_duration(span);
  return short_duration(std::chrono::duration_cast<seconds>(span));
}
std::string seconds_text(std::uint64_t s) {
  return span_text(std::min(s, std::uint64_t{1} << 33) * 1000);
}

std::string rate_of(std::uint64_t bytes_per_second) {
  return cat(short_bytes(bytes_per_second), "/s");
}

// What each node may receive.
std::string limit_text(std::uint64_t rate) {
  return rate == 0 ? "no limit" : cat("at most ", rate_of(rate), " into each node");
}

// Rounded down; 100 only when all is done.
std::uint64_t percent(std::uint64_t done, std::uint64_t total) {
  if (total == 0) return 0;
  if (done >= total) return 100;
  const double part = static_cast<double>(done) / static_cast<double>(total);
  return std::min<std::uint64_t>(99, static_cast<std::uint64_t>(part * 100));
}

std::string side(const std::string& node, const std::string& status) {
  return status.empty() || status == "alive" ? node : cat(node, " (", status, ')');
}
std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += cat(out.empty() ? "" : ", ", w);
  return out;
}

std::string pause_word(const std::string& by, const std::string& from, const std::string& to) {
  if (by == "source") return cat("pause of ", from);
  if (by == "target") return cat("pause of ", to);
  return by == "cluster" ? "pause of all moves" : "pause";
}

std::string phase_of(const MoveView& m) {
  return m.report && !m.report->phase.empty() ? m.report->phase : "-";
}
std::string copied(const MoveReportView& r) {
  return cat(short_bytes(r.bytes_done), " of ", short_bytes(r.bytes_total));
}
std::string left_of(const MoveReportView& r) {
  if (r.stalled_seconds) return cat("stalled ", seconds_text(*r.stalled_seconds));
  return r.seconds_left ? seconds_text(*r.seconds_left) : "-";
}
// Why it does not get on, or why nothing is known of it.
std::string held_up(const MoveView& m) {
  std::vector<std::string> all = m.blocked;
  for (const std::string& by : m.paused_by) all.push_back(pause_word(by, m.from, m.to));
  if (!all.empty()) return joined(all);
  return m.report_error.empty() ? "-" : cat("(", m.report_error, ")");
}

// What is fetched under a freeze is not held to the budget, so nobody can say for how long that
// will be.
std::string slower_than_writes(const std::string& partition, std::uint64_t budget,
                               std::uint64_t written) {
  return cat("will not converge at ", rate_of(budget), ": ", partition, " takes in ",
             rate_of(written), "; the rest would be copied while it is frozen");
}

// Of one that gets no more than is written meanwhile, or empty.
std::string too_slow(const MoveView& m) {
  if (!m.report || m.report->budget_bytes_per_second == 0) return {};
  const MoveReportView& r = *m.report;
  if (r.write_bytes_per_second < r.budget_bytes_per_second) return {};
  return slower_than_writes(name_of(m), r.budget_bytes_per_second, r.write_bytes_per_second);
}

// ---- tables

const std::vector<Column> kMoveColumns{
    {"PARTITION"}, {"FROM"},       {"TO"},         {"PHASE"},        {"COPIED", true},
    {"%", true},   {"RATE", true}, {"LEFT", true}, {"FROZEN", true}, {"HELD UP BY"}};

Row move_row(const MoveView& m) {
  Row row{name_of(m), side(m.from, m.from_status), side(m.to, m.to_status), phase_of(m)};
  if (!m.report || m.report->bytes_total == 0) {
    row.insert(row.end(), {"-", "-", "-", "-"});
  } else {
    const MoveReportView& r = *m.report;
    row.insert(row.end(), {copied(r), cat(percent(r.bytes_done, r.bytes_total), '%'),
                           rate_of(r.bytes_per_second), left_of(r)});
  }
  row.push_back(m.report && m.report->frozen_ms > 0 ? span_text(m.report->frozen_ms) : "-");
  row.push_back(held_up(m));
  return row;
}

std::vector<std::string> detail_lines(const MoveView& m) {
  std::vector<std::string> lines;
  std::string first = cat("    move ", m.id);
  if (!m.reason.empty()) first += cat(", ", m.reason);
  if (m.started_at != 0) first += cat(", since ", time_text(m.started_at));
  if (m.rate != 0) first += cat(", at most ", rate_of(m.rate));
  first += cat("; ", m.from, " is ", m.from_status, ", ", m.to, " is ", m.to_status);
  lines.push_back(std::move(first));
  if (!m.report) {
    if (!m.report_error.empty()) lines.push_back(cat("    no report: ", m.report_error));
    return lines;
  }
  const MoveReportView& r = *m.report;
  lines.push_back(cat("    pass ", r.passes, ", attempt ", r.attempts, "; ",
                      rate_of(r.write_bytes_per_second), " written meanwhile"));
  if (const std::string slow = too_slow(m); !slow.empty()) lines.push_back(cat("    ", slow));
  if (!r.last_error.empty()) lines.push_back(cat("    last error: ", r.last_error));
  return lines;
}

// At most `columns` bytes, without a torn character at its end.
std::string cut(std::string text, std::size_t columns) {
  if (text.size() <= columns) return text;
  while (columns > 0 && (static_cast<unsigned char>(text[columns]) & 0xc0) == 0x80) --columns;
  text.resize(columns);
  return text;
}

// ---- one move

void add(std::string& page, std::string_view name, std::string_view value) {
  if (!value.empty() && value != "-") page += cat("  ", left(name, 12), value, "\n");
}
template <class Move>
std::string heading(const Move& m) {
  const auto place = [](const std::string& node, const std::string& disk) {
    return disk.empty() ? node : cat(node, ", disk ", disk);
  };
  return cat("Move ", m.id, ": ", name_of(m), " from ", place(m.from, m.from_disk), " to ",
             place(m.to, m.to_disk), "\n");
}
void add_phases(std::string& page, const ReceiptView& r) {
  add(page, "phases",
      cat("copy ", span_text(r.copy_ms), ", drain ", span_text(r.drain_ms), ", verify ",
          span_text(r.verify_ms), ", install ", span_text(r.install_ms), ", flip ",
          span_text(r.flip_ms)));
}
std::string outcome_text(const EndedMoveView& m) {
  if (m.outcome == "moved") return cat("moved to ", m.to);
  if (m.outcome == "promoted") return cat(m.to, " took over without ", m.from, ", which was dead");
  if (m.outcome == "given") return cat("given to ", m.to, " at once: it was never used");
  if (m.outcome == "cleared") return cat("given up; it stays on ", m.from);
  if (m.outcome == "replaced") return "replaced by a later move";
  if (m.outcome == "topic_deleted") return "over: its topic was deleted";
  return m.outcome;
}

// ---- changes

const MoveView* find(const std::vector<MoveView>& moves, std::uint64_t id) {
  const auto at =
      std::find_if(moves.begin(), moves.end(), [id](const MoveView& m) { return m.id == id; });
  return at == moves.end() ? nullptr : &*at;
}

std::uint64_t tenth(const MoveView& m) {
  return m.report ? percent(m.report->bytes_done, m.report->bytes_total) / 10 : 0;
}
std::string error_of(const MoveView& m) { return m.report ? m.report->last_error : std::string(); }
bool stalled(const MoveView& m) { return m.report && m.report->stalled_seconds; }

bool changed(const MoveView& a, const MoveView& b) {
  return a.report.has_value() != b.report.has_value() || a.report_error != b.report_error ||
         phase_of(a) != phase_of(b) || tenth(a) != tenth(b) || a.blocked != b.blocked ||
         a.paused_by != b.paused_by || a.from_status != b.from_status ||
         a.to_status != b.to_status || stalled(a) != stalled(b) ||
         too_slow(a).empty() != too_slow(b).empty() || error_of(a) != error_of(b);
}

// How it stands, in one line.
std::string standing(const MoveView& m, const MoveView* before) {
  std::string out;
  if (m.report) {
    const MoveReportView& r = *m.report;
    out = phase_of(m);
    if (r.bytes_total > 0) {
      out += cat(' ', percent(r.bytes_done, r.bytes_total), "%, ", copied(r), ", ",
                 rate_of(r.bytes_per_second));
      if (r.stalled_seconds) out += cat(", ", left_of(r));
      if (!r.stalled_seconds && r.seconds_left) out += cat(", ", left_of(r), " left");
    }
  } else {
    out = m.report_error.empty() ? "under way" : cat("no report: ", m.report_error);
  }
  const auto say_of = [&out](const std::string& node, const std::string& status) {
    if (status != "alive" && !status.empty()) out += cat("; ", node, " is ", status);
  };
  say_of(m.from, m.from_status);
  say_of(m.to, m.to_status);
  if (!m.blocked.empty() || !m.paused_by.empty()) out += cat("; held up by ", held_up(m));
  const std::string slow = too_slow(m);
  if (!slow.empty() && (before == nullptr || too_slow(*before).empty())) out += cat("; ", slow);
  const std::string error = error_of(m);
  if (!error.empty() && (before == nullptr || error_of(*before) != error)) {
    out += cat("; ", error);
  }
  return out;
}

std::string_view to_string(AbortEnd end) {
  switch (end) {
    case AbortEnd::aborted:
      return "aborted";
    case AbortEnd::refused:
      return "refused";
    case AbortEnd::unknown:
      return "unknown";
    case AbortEnd::untried:
      return "untried";
  }
  return "unknown";
}

std::string abort_line(const AbortedMove& m) {
  const std::string name =
      cat(m.move.topic, '/', m.move.partition, ": move ", m.move.id, " to ", m.move.to);
  switch (m.end) {
    case AbortEnd::aborted:
      return cat(name, " was aborted; it stays on ", m.move.from);
    case AbortEnd::refused:
      return cat(name, " was not aborted: ", m.why);
    case AbortEnd::unknown:
      return cat(name, ": whether it was aborted is not known: ", m.why);
    case AbortEnd::untried:
      return cat(name, " goes on: it was not tried after that");
  }
  return name;
}

}  // namespace

Result<MovesView> read_moves(std::string body) {
  NARAD_TRY(const json::Document document, read_object(std::move(body), no_moves()));
  const Fields fields(document.root());
  const auto list = fields.objects("moves");
  if (!list) return no_moves();
  MovesView out;
  for (const Fields& m : *list) out.moves.push_back(read_running(m));
  out.paused = fields.flag("paused");
  out.rate = fields.maybe("max_bytes_per_second");
  const auto history = fields.objects("history");
  for (const Fields& m : history.value_or(std::vector<Fields>())) {
    out.history.push_back(read_ended(m));
  }
  return out;
}

Result<OneMove> read_move(std::string body) {
  NARAD_TRY(const json::Document document,
            read_object(std::move(body), Error(Errc::data_loss, "the server's answer is no move")));
  const Fields fields(document.root());
  OneMove out;
  if (fields.text("outcome") == "running") {
    out.running = read_running(fields);
  } else {
    out.ended = read_ended(fields);
  }
  return out;
}

Result<StartedMove> read_started(std::string body) {
  NARAD_TRY(
      const json::Document document,
      read_object(std::move(body),
                  Error(Errc::data_loss, "it was done, but what the server answered is no JSON")));
  const Fields f(document.root());
  StartedMove m;
  m.id = f.count("id");
  m.topic = f.text("topic");
  m.partition = f.count("partition");
  m.from = f.text("from");
  m.to = f.text("to");
  m.to_disk = f.text("to_disk");
  m.outcome = f.text("outcome");
  if (const auto slow = f.object("will_not_converge")) {
    m.written = slow->count("write_bytes_per_second");
    m.budget = slow->count("budget_bytes_per_second");
  }
  return m;
}

std::string started_text(const StartedMove& m) {
  const std::string name = cat(m.topic, '/', m.partition);
  if (m.outcome == "there") return cat(name, " is on ", m.to, " already\n");
  if (m.outcome == "given") {
    return cat(name, " is on ", m.to, " now (disk ", m.to_disk, "): it was never used (move ", m.id,
               ")\n");
  }
  return cat(name, m.outcome == "started" ? " moves from " : " is moving already from ", m.from,
             " to ", m.to, " (disk ", m.to_disk, "): move ", m.id, "\n",
             m.budget == 0 ? std::string() : slower_than_writes(name, m.budget, m.written) + "\n",
             "see narad cluster moves --watch --topic ", m.topic, "\n");
}

std::string aborted_text(const StartedMove& m) {
  return cat("move ", m.id, " of ", m.topic, '/', m.partition, " to ", m.to,
             " was aborted; it stays on ", m.from, "\n");
}

Result<PauseView> read_pause(std::string body) {
  NARAD_TRY(
      const json::Document document,
      read_object(std::move(body), Error(Errc::data_loss, "the server's answer names no pause")));
  const Fields f(document.root());
  PauseView out;
  out.topic = f.text("topic");
  out.partition = f.count("partition");
  out.id = f.count("id");
  out.node = f.text("node");
  out.paused = f.flag("paused");
  out.changed = f.flag("changed");
  out.paused_by = f.texts("paused_by");
  return out;
}

std::string pause_text(const PauseView& p) {
  std::string text = "all moves";
  if (!p.node.empty()) text = cat("moves from and to ", p.node);
  if (!p.topic.empty()) text = cat("move ", p.id, " of ", p.topic, '/', p.partition);
  const bool one = !p.topic.empty();
  text += p.paused ? (one ? " is paused" : " are paused") : (one ? " goes on" : " go on");
  if (!p.changed) text += p.paused ? ", as before" : ": nothing of that kind was paused";
  text += "\n";
  if (p.paused) return text;
  for (const std::string& by : p.paused_by) {
    const std::string node = by == "source" ? "the node it comes from" : "the node it goes to";
    text += cat("it waits all the same: ", by == "cluster" ? "all moves" : cat("moves of ", node),
                " are paused; see narad cluster moves\n");
  }
  return text;
}

Result<ThrottleView> read_throttle(std::string body) {
  NARAD_TRY(const json::Document document,
            read_object(std::move(body),
                        Error(Errc::data_loss, "the server's answer names no throttle")));
  const Fields f(document.root());
  ThrottleView out;
  if (f.flag("set")) out.rate = f.count("max_bytes_per_second");
  if (document.root().find("changed")) out.changed = f.flag("changed");
  return out;
}

std::string throttle_text(const ThrottleView& t) {
  const bool before = t.changed && !*t.changed;
  std::string text = "moves: each node goes by its own configuration";
  if (t.rate) text = cat("moves: ", limit_text(*t.rate));
  return cat(text, before ? ", as before\n" : "\n");
}

Result<std::uint64_t> parse_rate(std::string_view text) {
  if (text == "off") return 0;
  std::string_view bytes = text;
  if (bytes.ends_with("/s")) bytes.remove_suffix(2);
  const auto rate = parse_bytes(bytes);
  if (rate && rate.value() > 0) return rate.value();
  return Error(Errc::invalid_argument,
               cat("a rate is bytes per second, such as 50MB/s, or off; ", text, " is none"));
}

AbortEnd worst_of(const std::vector<AbortedMove>& moves) {
  AbortEnd worst = AbortEnd::aborted;
  for (const AbortedMove& m : moves) worst = std::max(worst, m.end);
  return worst;
}

std::string aborts_page(const std::vector<AbortedMove>& moves) {
  if (moves.empty()) return "no moves\n";
  std::string out;
  for (const AbortedMove& m : moves) out += cat(abort_line(m), "\n");
  return out;
}

std::string aborts_json(const std::vector<AbortedMove>& moves) {
  json::Writer w;
  w.begin_object().key("moves").begin_array();
  for (const AbortedMove& m : moves) {
    w.begin_object().member("topic", m.move.topic).member("partition", m.move.partition);
    w.member("id", m.move.id).member("from", m.move.from).member("to", m.move.to);
    w.member("outcome", to_string(m.end));
    if (!m.why.empty()) w.member("why", m.why);
    w.end_object();
  }
  w.end_array().end_object();
  return w.take();
}

std::string moves_table(const std::vector<MoveView>& moves, bool detail) {
  if (moves.empty()) return "no moves\n";
  std::vector<Row> rows;
  for (const MoveView& m : moves) rows.push_back(move_row(m));
  const std::vector<std::string> lines = align(kMoveColumns, rows);
  if (!detail) return together(lines);
  std::string out = cat(lines[0], "\n");
  for (std::size_t i = 0; i < moves.size(); ++i) {
    out += cat(lines[i + 1], "\n", together(detail_lines(moves[i])));
  }
  return out;
}

std::string slow_lines(const std::vector<MoveView>& moves) {
  std::string out;
  for (const MoveView& m : moves) {
    if (const std::string slow = too_slow(m); !slow.empty()) out += cat(slow, "\n");
  }
  return out;
}

std::string history_table(const std::vector<EndedMoveView>& moves) {
  if (moves.empty()) return "no moves have ended\n";
  const std::vector<Column> columns{
      {"ENDED"},   {"MOVE", true}, {"PARTITION"},   {"FROM"},         {"TO"},
      {"OUTCOME"}, {"TOOK", true}, {"BYTES", true}, {"FROZEN", true}, {"WHY"}};
  std::vector<Row> rows;
  for (const EndedMoveView& m : moves) {
    rows.push_back({time_text(m.ended_at), cat(m.id), name_of(m), m.from, m.to, m.outcome,
                    m.took_ms ? span_text(*m.took_ms) : "-",
                    m.receipt ? short_bytes(m.receipt->bytes) : "-",
                    m.receipt ? span_text(m.receipt->frozen_ms) : "-",
                    m.why.empty() ? m.reason : cat(m.reason, "; ", m.why)});
  }
  return together(align(columns, rows));
}

std::string move_page(const MoveView& m) {
  std::string page = heading(m);
  add(page, "state", m.report ? phase_of(m) : "under way");
  add(page, "reason", m.reason);
  add(page, "started", time_text(m.started_at));
  add(page, "from", side(m.from, m.from_status.empty() ? "-" : m.from_status));
  add(page, "to", side(m.to, m.to_status.empty() ? "-" : m.to_status));
  if (m.rate != 0) add(page, "at most", rate_of(m.rate));
  if (!m.blocked.empty() || !m.paused_by.empty()) add(page, "held up by", held_up(m));
  add(page, "no report", m.report_error);
  if (m.report) {
    const MoveReportView& r = *m.report;
    if (r.bytes_total > 0) {
      add(page, "copied", cat(copied(r), " (", percent(r.bytes_done, r.bytes_total), "%)"));
    }
    add(page, "rate",
        cat(rate_of(r.bytes_per_second), "; ", rate_of(r.write_bytes_per_second),
            " written meanwhile"));
    add(page, "left", left_of(r));
    add(page, "warning", too_slow(m));
    add(page, "work", cat("pass ", r.passes, ", attempt ", r.attempts));
    if (r.frozen_ms > 0) add(page, "frozen", span_text(r.frozen_ms));
    add(page, "last error", r.last_error);
  }
  return page;
}

std::string move_page(const EndedMoveView& m) {
  std::string page = heading(m);
  add(page, "outcome", outcome_text(m));
  add(page, "why", m.why);
  add(page, "reason", m.reason);
  add(page, "started", time_text(m.started_at));
  add(page, "ended", time_text(m.ended_at));
  if (m.took_ms) add(page, "took", span_text(*m.took_ms));
  if (!m.receipt) return page;
  const ReceiptView& r = *m.receipt;
  add(page, "records", cat(r.records, ", offsets ", r.first, " to below ", r.end));
  add(page, "bytes", cat(short_bytes(r.bytes), ", digest ", r.digest));
  add(page, "frozen", span_text(r.frozen_ms));
  add(page, "work", cat("passes ", r.passes, ", retries ", r.retries));
  add_phases(page, r);
  if (r.damaged_blocks > 0) {
    add(page, "damage",
        cat(r.damaged_blocks, " blocks read otherwise at ", m.from,
            " than they were written: look at its disk with narad fsck"));
  }
  return page;
}

std::string bar(std::uint64_t done, std::uint64_t total, std::size_t width) {
  const std::size_t full = total == 0 ? 0 : percent(done, total) * width / 100;
  return cat('[', std::string(full, '#'), std::string(width - full, '.'), ']');
}

std::vector<std::string> watch_screen(const std::vector<MoveView>& moves,
                                      const std::vector<std::string>& recent, ScreenSize size) {
  std::vector<Column> columns = kMoveColumns;
  columns.insert(columns.begin() + 4, {"PROGRESS"});
  std::vector<Row> rows;
  for (const MoveView& m : moves) {
    Row row = move_row(m);
    const std::string progress =
        m.report ? bar(m.report->bytes_done, m.report->bytes_total, kBarWidth) : "-";
    row.insert(row.begin() + 4, progress);
    rows.push_back(std::move(row));
  }
  std::vector<std::string> lines{"no moves"};
  if (!moves.empty()) lines = align(columns, rows);
  // The cursor takes the last row. What was said last stays, moves that do not fit are counted.
  const std::size_t most = std::max<std::size_t>(size.rows, 3) - 1;
  const std::size_t said = std::min({kRecentShown, recent.size(), most / 3});
  const std::size_t room = said == 0 ? most : most - said - 1;
  if (lines.size() > room) {
    const std::size_t moves_shown = room > 2 ? room - 2 : 0;
    lines.resize(room - 1);
    lines.push_back(cat("... and ", moves.size() - moves_shown, " more"));
  }
  if (said > 0) lines.emplace_back();
  lines.insert(lines.end(), recent.end() - static_cast<std::ptrdiff_t>(said), recent.end());
  for (std::string& line : lines) line = cut(printable(line, false), size.columns);
  return lines;
}

std::vector<std::string> changes(const std::vector<MoveView>& before,
                                 const std::vector<MoveView>& now) {
  std::vector<std::string> lines;
  for (const MoveView& m : now) {
    const MoveView* was = find(before, m.id);
    if (was != nullptr && !changed(*was, m)) continue;
    std::string line = cat(name_of(m), ": ");
    if (was == nullptr) {
      line += cat("move ", m.id, " from ", m.from, " to ", m.to);
      if (!m.reason.empty()) line += cat(" (", m.reason, ')');
      line += "; ";
    }
    lines.push_back(line + standing(m, was));
  }
  return lines;
}

std::vector<MoveView> gone(const std::vector<MoveView>& before, const std::vector<MoveView>& now) {
  std::vector<MoveView> out;
  for (const MoveView& m : before) {
    if (find(now, m.id) == nullptr) out.push_back(m);
  }
  return out;
}

std::string end_line(const EndedMoveView& m) {
  std::string line = cat(name_of(m), ": move ", m.id, ": ", outcome_text(m));
  if (!m.why.empty()) line += cat(" (", m.why, ')');
  if (m.took_ms) line += cat(", after ", span_text(*m.took_ms));
  if (m.receipt) {
    line += cat(", ", short_bytes(m.receipt->bytes), ", frozen ", span_text(m.receipt->frozen_ms));
  }
  return line;
}

}  // namespace narad::cli
