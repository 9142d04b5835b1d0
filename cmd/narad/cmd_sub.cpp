// `narad sub` and `narad replay`: reading messages, with and without consuming them.
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <map>

#include "cmd/narad/commands.h"
#include "cmd/narad/format.h"
#include "cmd/narad/session.h"
#include "pkg/base/text.h"

namespace narad::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanos kPoll = seconds(10);
constexpr Nanos kErrorPause = seconds(1);
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
    terminal_.out(raw_ ? raw_line(m) : message_line(m, utc_offset_s_));
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

// Keeps trying for a little while: the message was printed, so a lost ack means a repetition.
Task<void> ack(Session& s, const client::Received& m) {
  for (int attempt = 1;; ++attempt) {
    auto done = co_await s.client.ack(s.args.operand(0), m.receipt_handle);
    if (done || done.error().code() == Errc::gone) co_return;
    if (attempt == kAckTries) {
      s.terminal.err(cat("narad: ack ", m.receipt_handle, ": ", done.error().text(), "\n"));
      co_return;
    }
    co_await sleep_for(s.env, milliseconds(200) * attempt);
  }
}

Task<void> consume_forever(Session& s, Printer& printer) {
  client::ConsumeOptions options;
  options.wait = kPoll;
  if (std::int64_t p = s.args.integer("partition"); p >= 0) {
    options.partition = PartitionId(static_cast<std::uint32_t>(p));
  }
  while (!printer.closed()) {
    auto messages = co_await s.client.consume(s.args.operand(0), options);
    if (!messages) {
      s.terminal.err(cat("narad: ", messages.error().text(), "\n"));
      co_await sleep_for(s.env, kErrorPause);
      continue;
    }
    for (const client::Received& m : messages.value()) {
      printer.print(m);
      if (!s.args.flag("no-ack") && !printer.closed()) co_await ack(s, m);
    }
  }
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
Task<bool> peek_sweep(Session& s, Printer& printer, Positions& positions) {
  bool any = false;
  for (auto& [partition, next] : positions) {
    for (int i = 0; i < kPeekPerSweep && !printer.closed(); ++i) {
      auto message = co_await s.client.replay(s.args.operand(0), partition, next);
      if (!message) {
        if (message.error().code() == Errc::gone) {
          co_await jump_to_oldest(s, partition, next);
        } else {
          s.terminal.err(cat("narad: ", message.error().text(), "\n"));
        }
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

Task<void> peek_forever(Session& s, Printer& printer, Positions positions) {
  while (!printer.closed()) {
    bool any = co_await peek_sweep(s, printer, positions);
    if (!any) co_await sleep_for(s.env, kPeekPause);
  }
}

Task<void> interrupted(Session& s) { co_await next_signal(s.env); }

Task<Result<int>> run_sub(Session& s) {
  using namespace asio::experimental::awaitable_operators;
  bool peek = s.args.flag("peek");
  bool from = s.args.integer("from") >= 0;
  if (from && !peek) co_return refuse("--from needs --peek; to read a range use narad replay");
  if (from && s.args.integer("partition") < 0) co_return refuse("--from needs --partition");
  Printer printer(s);
  if (peek) {
    NARAD_CO_TRY(auto positions, co_await peek_start(s));
    co_await (peek_forever(s, printer, std::move(positions)) || interrupted(s));
  } else {
    co_await (consume_forever(s, printer) || interrupted(s));
  }
  s.terminal.err(cat(printer.count(), " message(s)\n"));
  co_return 0;
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
