// `narad sub` and `narad replay`: reading messages, with and without consuming them.
#include <algorithm>
#include <map>
#include <utility>

#include "cmd/narad/commands.h"
#include "cmd/narad/format.h"
#include "cmd/narad/session.h"
#include "pkg/async/timeout.h"
#include "pkg/base/text.h"

namespace narad::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanos kPoll = seconds(10);
constexpr Nanos kErrorPauseMin = seconds(1);
constexpr Nanos kErrorPauseMax = seconds(10);
constexpr Nanos kPeekPause = milliseconds(400);
constexpr int kPeekPerSweep = 100;
constexpr int kAckTries = 5;

Error refuse(std::string_view text) { return {Errc::invalid_argument, std::string(text)}; }

// Prints messages and counts them; knows the flags that change how they look.
class Printer {
 public:
  explicit Printer(const Session& s)
      : terminal_(s.terminal), raw_(s.args.flag("raw")), utc_offset_s_(local_utc_offset_s()) {}
  void print(const client::Received& m) {
    bool escape = terminal_.out_is_terminal();
    terminal_.out(raw_ ? raw_line(m, escape) : message_line(m, utc_offset_s_, escape));
    ++count_;
  }
  std::uint64_t count() const { return count_; }
  // Nobody reads on: a closed pipe.
  bool closed() const { return terminal_.out_failed(); }

 private:
  Terminal& terminal_;
  bool raw_;
  std::int64_t utc_offset_s_;
  std::uint64_t count_ = 0;
};

// Whether asking again may help: no answer, an overloaded broker, or one without a leader. Any
// other refusal stays what it is.
bool may_pass(const Error& error) {
  return error.code() == Errc::unavailable || error.code() == Errc::unknown_outcome ||
         error.code() == Errc::busy;
}

// Says what went wrong and waits, longer each time in a row.
class Patience {
 public:
  explicit Patience(Session& s) : session_(s) {}
  Task<void> after(const Error& error) {
    complain(session_.terminal, cat(error.text(), "; trying again"));
    Nanos pause = std::exchange(pause_, std::min(pause_ * 2, kErrorPauseMax));
    co_await sleep_for(session_.env, pause);
  }
  void restore() { pause_ = kErrorPauseMin; }

 private:
  Session& session_;
  Nanos pause_ = kErrorPauseMin;
};

// Keeps trying for a little while: the message was printed, so a lost ack means a repetition.
Task<void> ack(Session& s, const client::Received& m) {
  for (int attempt = 1;; ++attempt) {
    auto done = co_await s.client.ack(s.args.operand(0), m.receipt_handle);
    if (done || done.error().code() == Errc::gone) co_return;
    if (attempt == kAckTries || !may_pass(done.error())) {
      complain(s.terminal, cat("ack ", m.receipt_handle, ": ", done.error().text()));
      co_return;
    }
    co_await sleep_for(s.env, milliseconds(200) * attempt);
  }
}

// Until nobody reads on (ok), or an error that asking again cannot mend.
Task<Result<void>> consume_forever(Session& s, Printer& printer) {
  client::ConsumeOptions options;
  options.wait = kPoll;
  if (std::int64_t p = s.args.integer("partition"); p >= 0) {
    options.partition = PartitionId(static_cast<std::uint32_t>(p));
  }
  Patience patience(s);
  while (!printer.closed()) {
    auto messages = co_await s.client.consume(s.args.operand(0), options);
    if (!messages) {
      Error error = messages.error();
      if (!may_pass(error)) co_return error;
      co_await patience.after(error);
      continue;
    }
    patience.restore();
    for (const client::Received& m : messages.value()) {
      printer.print(m);
      if (!s.args.flag("no-ack") && !printer.closed()) co_await ack(s, m);
    }
  }
  co_return ok();
}

using Positions = std::map<PartitionId, Offset>;

Task<Result<Positions>> peek_start(Session& s) {
  NARAD_CO_TRY(auto topic, co_await s.client.topic(s.args.operand(0)));
  std::int64_t only = s.args.integer("partition");
  std::int64_t from = s.args.integer("from");
  Positions next;
  for (const client::PartitionStats& p : topic.stats) {
    if (only >= 0 && p.index.value() != only) continue;
    next[p.index] = from >= 0 ? Offset(static_cast<std::uint64_t>(from)) : p.high_watermark;
  }
  if (next.empty()) co_return Error(Errc::not_found, cat("no partition ", only));
  co_return next;
}

// Retention overtook the position: go on at the oldest record there is.
Task<void> jump_to_oldest(Session& s, PartitionId partition, Offset& next) {
  auto topic = co_await s.client.topic(s.args.operand(0));
  if (!topic) co_return;
  for (const client::PartitionStats& p : topic.value().stats) {
    if (p.index != partition) continue;
    next = p.oldest_offset > next ? p.oldest_offset : next.next();
  }
}

// Whether anything was read.
Task<Result<bool>> peek_sweep(Session& s, Printer& printer, Positions& positions) {
  bool any = false;
  for (auto& [partition, next] : positions) {
    for (int i = 0; i < kPeekPerSweep && !printer.closed(); ++i) {
      auto message = co_await s.client.replay(s.args.operand(0), partition, next);
      if (!message) {
        Error error = message.error();
        if (error.code() != Errc::gone) co_return error;
        co_await jump_to_oldest(s, partition, next);
        break;
      }
      if (!message.value()) break;
      printer.print(*message.value());
      next = next.next();
      any = true;
    }
  }
  co_return any;
}

Task<Result<void>> peek_forever(Session& s, Printer& printer, Positions positions) {
  Patience patience(s);
  while (!printer.closed()) {
    auto any = co_await peek_sweep(s, printer, positions);
    if (!any) {
      Error error = any.error();
      if (!may_pass(error)) co_return error;
      co_await patience.after(error);
      continue;
    }
    patience.restore();
    if (!any.value()) co_await sleep_for(s.env, kPeekPause);
  }
  co_return ok();
}

Task<void> interrupted(Session& s) { co_await next_signal(s.env); }

Task<Result<int>> until_interrupted(Session& s, Printer& printer, Task<Result<void>> reading) {
  auto interruption = interrupted(s);
  auto ended = co_await result_before(std::move(reading), std::move(interruption));
  s.terminal.err(cat(printer.count(), " message(s)\n"));
  if (ended && !*ended) co_return ended->error();
  co_return 0;
}

Task<Result<int>> run_sub(Session& s) {
  bool peek = s.args.flag("peek");
  bool from = s.args.integer("from") >= 0;
  if (from && !peek) co_return refuse("--from needs --peek; to read a range use narad replay");
  if (from && s.args.integer("partition") < 0) co_return refuse("--from needs --partition");
  Printer printer(s);
  if (peek) {
    NARAD_CO_TRY(auto positions, co_await peek_start(s));
    auto reading = peek_forever(s, printer, std::move(positions));
    co_return co_await until_interrupted(s, printer, std::move(reading));
  }
  auto reading = consume_forever(s, printer);
  co_return co_await until_interrupted(s, printer, std::move(reading));
}

struct Range {
  Offset from{0};
  Offset to{0};
};

Task<Result<Range>> replay_range(Session& s, PartitionId partition) {
  std::int64_t from = s.args.integer("from");
  std::int64_t to = s.args.integer("to");
  NARAD_CO_TRY(auto topic, co_await s.client.topic(s.args.operand(0)));
  for (const client::PartitionStats& p : topic.stats) {
    if (p.index != partition) continue;
    Range range;
    range.from = from >= 0 ? Offset(static_cast<std::uint64_t>(from)) : p.oldest_offset;
    range.to = to >= 0 ? Offset(static_cast<std::uint64_t>(to)) : p.high_watermark;
    co_return range;
  }
  co_return Error(Errc::not_found,
                  cat("topic ", s.args.operand(0), " has no partition ", partition));
}

Task<Result<int>> run_replay(Session& s) {
  if (s.args.integer("partition") < 0) co_return refuse("--partition is required");
  PartitionId partition(static_cast<std::uint32_t>(s.args.integer("partition")));
  NARAD_CO_TRY(auto range, co_await replay_range(s, partition));
  Printer printer(s);
  for (Offset at = range.from; at < range.to && !printer.closed(); at = at.next()) {
    auto message = co_await s.client.replay(s.args.operand(0), partition, at);
    if (!message && message.error().code() == Errc::gone) continue;
    if (!message) co_return message.error();
    if (!message.value()) break;
    printer.print(*message.value());
  }
  s.terminal.err(cat(printer.count(), " message(s) replayed from p", partition, " [", range.from,
                     ", ", range.to, ")\n"));
  co_return 0;
}

}  // namespace

int sub(const Arguments& a, Terminal& t) { return run_session(a, t, run_sub, {.signals = true}); }
int replay(const Arguments& a, Terminal& t) { return run_session(a, t, run_replay); }

}  // namespace narad::cli
