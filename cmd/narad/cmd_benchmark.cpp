#include <algorithm>
#include <optional>

#include "cmd/narad/commands.h"
#include "cmd/narad/format.h"
#include "cmd/narad/histogram.h"
#include "cmd/narad/ledger.h"
#include "cmd/narad/session.h"
#include "pkg/async/task_group.h"
#include "pkg/base/text.h"
#include "pkg/json/writer.h"

namespace narad::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanos kPoll = seconds(2);
constexpr Nanos kProgressPeriod = milliseconds(500);
// How long --verify waits for a message that does not come: longer than the usual lease.
constexpr Nanos kVerifyPatience = seconds(45);
constexpr int kEmptyPollsMax = 2;  // as release 2.x: two empty polls end a consuming worker

struct Settings {
  std::string topic;
  std::uint64_t count = 0;
  std::size_t size = 0;
  std::size_t workers = 0;
  std::uint64_t batch = 0;
  double rate = 0;  // messages a second; 0 = closed loop
  Nanos duration{0};
  bool consume = false;
  bool verify = false;
  bool json = false;
};

Settings read_settings(const Arguments& args) {
  Settings s;
  s.topic = args.operand(0);
  s.duration = args.duration("duration");
  // --duration without --count runs for the time alone.
  bool timed = s.duration > Nanos(0) && !args.given("count");
  s.count = timed ? UINT64_MAX : static_cast<std::uint64_t>(args.integer("count"));
  s.size = static_cast<std::size_t>(args.integer("size"));
  s.workers = static_cast<std::size_t>(args.integer("workers"));
  s.batch = static_cast<std::uint64_t>(args.integer("batch"));
  s.rate = static_cast<double>(args.integer("rate"));
  s.verify = args.flag("verify");
  s.consume = args.flag("consume") || s.verify;
  s.json = args.text("output") == "json";
  return s;
}

struct Phase {
  std::uint64_t ok = 0;      // messages
  std::uint64_t failed = 0;  // messages
  Nanos took{0};
  Histogram latency;  // of requests
  std::string first_error;
  void note(const Error& error) {
    if (first_error.empty()) first_error = error.text();
  }
};

// One run. Lives in run_bench()'s frame, which waits for all workers.
class Bench {
 public:
  Bench(Session& session, Settings settings)
      : session_(session),
        env_(session.env),
        settings_(std::move(settings)),
        ledger_(env_.random.next(), settings_.size),
        done_(env_) {
    payload_ = cat("{\"bench\":\"",
                   std::string(std::max<std::size_t>(settings_.size, 13) - 12, 'x'), "\"}");
  }

  Task<void> produce() {
    started_ = env_.clock.mono();
    co_await run_workers("producing", &Bench::produce_worker, produced_);
  }
  Task<void> consume() {
    last_delivery_ = env_.clock.mono();
    co_await run_workers("consuming", &Bench::consume_worker, consumed_);
    // Release 2.x counts the polls that found nothing; the rate is of the time until the last
    // message.
    consumed_.took = std::max(last_delivery_ - phase_start_, Nanos(1));
  }

  // A lease may have run out by now: then it is given back already.
  Task<void> give_back_foreign() {
    for (std::string& handle : foreign_)
      (void)co_await session_.client.nack(settings_.topic, std::move(handle));
  }

  const Phase& produced() const { return produced_; }
  const Phase& consumed() const { return consumed_; }
  const Settings& settings() const { return settings_; }
  Tally tally() const { return ledger_.tally(); }

 private:
  struct Share {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    Nanos due{0};
  };

  Task<void> run_workers(const char* name, Task<void> (Bench::*worker)(), Phase& phase) {
    phase_start_ = env_.clock.mono();
    running_ = settings_.workers;
    TaskGroup group(env_);
    for (std::size_t i = 0; i < settings_.workers; ++i) group.spawn(name, counted(worker));
    bool watch = session_.terminal.err_is_terminal() && !settings_.json;
    while (running_ > 0) {
      co_await done_.wait_for(kProgressPeriod);
      if (watch) show_progress(name, phase);
    }
    if (watch) session_.terminal.err("\r\x1b[K");
    phase.took = env_.clock.mono() - phase_start_;
    co_await group.stop();
  }
  Task<void> counted(Task<void> (Bench::*worker)()) {
    co_await (this->*worker)();
    if (--running_ == 0) done_.notify_all();
  }

  void show_progress(std::string_view name, const Phase& phase) {
    Nanos took = env_.clock.mono() - phase_start_;
    std::string text = cat("\r\x1b[K", name, ": ", phase.ok, " ok");
    if (phase.failed > 0) text += cat(", ", phase.failed, " failed");
    text += cat(" in ", format_duration(std::chrono::round<seconds>(took)), " — ",
                rate_text(phase.ok, took), " msg/s");
    session_.terminal.err(text);
  }

  // What a worker sends next; nothing once the run is over. In the open loop that is when the next
  // one is due after the end: what was due before is sent, however late, or the slowest would not
  // count.
  std::optional<Share> next_share() {
    if (next_ >= settings_.count) return std::nullopt;
    Share share;
    share.first = next_;
    share.count = std::min(settings_.batch, settings_.count - next_);
    share.due = env_.clock.mono();
    if (settings_.rate > 0) {
      double offset_ns = 1e9 * static_cast<double>(next_) / settings_.rate;
      share.due = started_ + Nanos(static_cast<std::int64_t>(offset_ns));
    }
    if (settings_.duration > Nanos(0) && share.due - started_ >= settings_.duration) {
      return std::nullopt;
    }
    next_ += share.count;
    return share;
  }

  std::string payload(std::uint64_t index) const {
    return settings_.verify ? ledger_.payload(index) : payload_;
  }

  Task<Result<void>> send(Share share) {
    if (settings_.batch == 1)
      co_return co_await session_.client.produce(settings_.topic, payload(share.first));
    std::vector<client::BatchRecord> records(share.count);
    for (std::uint64_t i = 0; i < share.count; ++i) records[i].value = payload(share.first + i);
    auto sent = co_await session_.client.produce_batch(settings_.topic, std::move(records));
    if (!sent) co_return sent.error();
    co_return ok();
  }

  Task<void> produce_worker() {
    while (auto share = next_share()) {
      Nanos now = env_.clock.mono();
      if (share->due > now) co_await sleep_for(env_, share->due - now);
      // In the open loop a request counts from when it was due, however late it could be sent.
      auto sent = co_await send(*share);
      if (sent) {
        produced_.latency.record(env_.clock.mono() - share->due);
        produced_.ok += share->count;
      } else {
        produced_.failed += share->count;
        produced_.note(sent.error());
      }
      for (std::uint64_t i = 0; settings_.verify && i < share->count; ++i) {
        ledger_.sent(share->first + i, sent ? Sent::accepted : Sent::unknown);
      }
    }
  }

  // Enters what came back; messages of others leave the list, and are given back at the end: an ack
  // would take them from whom they are meant for.
  void keep_ours(std::vector<client::Received>& messages) {
    std::erase_if(messages, [this](client::Received& m) {
      bool foreign = !ledger_.came_back(m.payload);
      if (foreign) foreign_.push_back(std::move(m.receipt_handle));
      return foreign;
    });
  }

  // Whether a consuming worker that found nothing of this run `empty` times in a row is done.
  bool enough(int empty) const {
    if (!settings_.verify) return empty >= kEmptyPollsMax;
    if (ledger_.complete()) return empty >= 1;
    return env_.clock.mono() - last_delivery_ > kVerifyPatience;
  }

  Task<void> settle(std::vector<client::Received> messages) {
    std::uint64_t acked = 0;
    if (messages.size() == 1) {
      auto done = co_await session_.client.ack(settings_.topic, messages[0].receipt_handle);
      if (done) ++acked;
      if (!done) consumed_.note(done.error());
    } else {
      std::vector<std::string> handles;
      for (client::Received& m : messages) handles.push_back(std::move(m.receipt_handle));
      auto results = co_await session_.client.settle(settings_.topic, client::AckMode::ack,
                                                     std::move(handles));
      if (!results) consumed_.note(results.error());
      for (std::size_t i = 0; results && i < results.value().size(); ++i) {
        if (results.value()[i].status == 204) ++acked;
      }
    }
    consumed_.ok += acked;
    consumed_.failed += messages.size() - acked;
  }

  Task<void> consume_worker() {
    client::ConsumeOptions options;
    options.max = static_cast<std::uint32_t>(settings_.batch);
    options.wait = kPoll;
    for (int empty = 0; !enough(empty);) {
      Nanos begin = env_.clock.mono();
      auto messages = co_await session_.client.consume(settings_.topic, options);
      if (!messages) {
        consumed_.note(messages.error());
        ++empty;
        co_await sleep_for(env_, seconds(1));
        continue;
      }
      const Nanos came = env_.clock.mono();
      std::vector<client::Received> ours = std::move(messages).value();
      if (settings_.verify) keep_ours(ours);
      // Messages of others are nothing found: however many of them come, the run ends.
      if (ours.empty()) {
        ++empty;
        continue;
      }
      empty = 0;
      last_delivery_ = came;
      consumed_.latency.record(came - begin);
      co_await settle(std::move(ours));
      last_delivery_ = env_.clock.mono();
    }
  }

  Session& session_;
  Env& env_;
  Settings settings_;
  Ledger ledger_;
  std::string payload_;
  Phase produced_;
  Phase consumed_;
  std::vector<std::string> foreign_;  // leases
  std::uint64_t next_ = 0;
  Nanos started_{0};
  Nanos phase_start_{0};
  Nanos last_delivery_{0};
  std::size_t running_ = 0;
  Event done_;
};

std::string latency_text(Nanos d) {
  return format_duration(std::chrono::round<std::chrono::microseconds>(d));
}

std::string percentiles(const Histogram& h,
                        std::initializer_list<std::pair<const char*, double>> ps) {
  std::string out;
  for (const auto& [name, p] : ps)
    out += cat(out.empty() ? "" : " ", name, "=", latency_text(h.percentile(p)));
  return out;
}

void print_text(Terminal& terminal, const Bench& bench) {
  const Phase& p = bench.produced();
  std::string out = cat("produce: ", p.ok, " ok, ", p.failed, " failed in ", short_duration(p.took),
                        " — ", rate_text(p.ok, p.took), " msg/s; latency ",
                        percentiles(p.latency, {{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}}), "\n");
  double seconds_taken = std::chrono::duration<double>(p.took).count();
  auto bytes = static_cast<double>(p.ok * bench.settings().size);
  auto per_second = static_cast<std::uint64_t>(seconds_taken > 0 ? bytes / seconds_taken : 0);
  out +=
      cat("produce: ", short_bytes(per_second), "/s; ", percentiles(p.latency, {{"p99.9", 0.999}}),
          " max=", latency_text(p.latency.max()), "\n");
  if (!p.first_error.empty()) out += cat("produce: first error: ", p.first_error, "\n");
  if (bench.settings().consume) {
    const Phase& c = bench.consumed();
    out += cat("consume: ", c.ok, " msgs in ", short_duration(c.took), " (",
               rate_text(c.ok, c.took), " msg/s)\n");
    out += cat("consume: latency ",
               percentiles(c.latency, {{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}}), "\n");
    if (c.failed > 0) out += cat("consume: ", c.failed, " acks failed\n");
    if (!c.first_error.empty()) out += cat("consume: first error: ", c.first_error, "\n");
  }
  if (bench.settings().verify) {
    Tally t = bench.tally();
    out +=
        cat("verify: ", t.accepted, " accepted, ", t.delivered, " delivered, ", t.lost, " lost, ",
            t.duplicated, " duplicated, ", t.damaged, " damaged, ", t.foreign, " foreign; ",
            t.unknown, " not answered, of which ", t.unknown_delivered, " delivered\n");
  }
  print_err(terminal, out);
}

void write_phase(json::Writer& w, std::string_view name, const Phase& p) {
  double s = std::chrono::duration<double>(p.took).count();
  w.key(name).begin_object().member("ok", p.ok).member("failed", p.failed);
  w.member("seconds", s).member("messages_per_second", s > 0 ? static_cast<double>(p.ok) / s : 0.0);
  w.key("latency_ns").begin_object().member("count", p.latency.count());
  w.member("mean", p.latency.mean().count());
  constexpr std::pair<const char*, double> kPercentiles[] = {
      {"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}};
  for (const auto& [key, p_value] : kPercentiles) {
    w.member(key, p.latency.percentile(p_value).count());
  }
  w.member("max", p.latency.max().count()).end_object();
  if (!p.first_error.empty()) w.member("first_error", p.first_error);
  w.end_object();
}

void print_json_report(Terminal& terminal, const Bench& bench) {
  const Settings& s = bench.settings();
  json::Writer w;
  w.begin_object().member("version", 1).member("topic", s.topic).member("size", s.size);
  w.member("workers", s.workers).member("batch", s.batch).member("rate", s.rate);
  write_phase(w, "produce", bench.produced());
  if (s.consume) write_phase(w, "consume", bench.consumed());
  if (s.verify) {
    Tally t = bench.tally();
    w.key("verify").begin_object().member("accepted", t.accepted).member("unknown", t.unknown);
    w.member("delivered", t.delivered).member("unknown_delivered", t.unknown_delivered);
    w.member("lost", t.lost).member("duplicated", t.duplicated).member("damaged", t.damaged);
    w.member("foreign", t.foreign).end_object();
  }
  w.end_object();
  print_out(terminal, cat(w.take(), "\n"));
}

// A run that consumes takes whatever is in the topic.
Task<Result<void>> look_for_others(Session& s, const Settings& settings) {
  auto there = co_await s.client.consume(settings.topic, {});
  if (!there) co_return there.error();
  if (there.value().empty()) co_return ok();
  (void)co_await s.client.nack(settings.topic, there.value()[0].receipt_handle);
  if (settings.verify) {
    co_return Error(Errc::conflict,
                    cat("topic ", settings.topic,
                        " holds messages that are not of this run, which would consume them; "
                        "use a topic of its own: narad topic add NAME"));
  }
  complain(s.terminal, cat("warning: topic ", settings.topic,
                           " holds messages from before this run; they are consumed too"));
  co_return ok();
}

// The exit status. Release 2.x answers 0 whatever fails, and its scripts are kept; --verify is
// ours.
int verdict(Session& s, const Bench& bench) {
  if (bench.produced().ok == 0) {
    const std::string& why = bench.produced().first_error;
    complain(s.terminal, cat("no message was accepted", why.empty() ? "" : ": ", why));
    return bench.settings().verify ? 1 : 0;
  }
  if (bench.settings().consume && bench.consumed().ok == 0) {
    const std::string& why = bench.consumed().first_error;
    complain(s.terminal, cat("no message was consumed", why.empty() ? "" : ": ", why));
  }
  Tally t = bench.tally();
  if (t.foreign > 0) {
    complain(s.terminal, cat("warning: ", t.foreign,
                             " messages of others came in between; they were not acked"));
  }
  return bench.settings().verify && (t.lost > 0 || t.damaged > 0) ? 1 : 0;
}

Task<Result<int>> run_bench(Session& s) {
  Bench bench(s, read_settings(s.args));
  if (bench.settings().consume) {
    NARAD_CO_TRY(co_await look_for_others(s, bench.settings()));
  }
  co_await bench.produce();
  if (bench.settings().consume) co_await bench.consume();
  co_await bench.give_back_foreign();
  if (bench.settings().json) {
    print_json_report(s.terminal, bench);
  } else {
    print_text(s.terminal, bench);
  }
  co_return verdict(s, bench);
}

}  // namespace

int bench(const Arguments& a, Terminal& t) {
  return run_session(a, t, run_bench, {.connections = kBenchWorkersMax});
}

}  // namespace narad::cli
