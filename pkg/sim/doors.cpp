#include "pkg/sim/doors.h"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/error.hpp>
#include <cstdio>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::sim {

// ---- clock -------------------------------------------------------------------------------------

Nanos SimClock::scaled(Nanos t) const {
  const std::int64_t n = t.count();
  return Nanos(n / kAlways * rate_ + n % kAlways * rate_ / kAlways);
}

Nanos SimClock::to_virtual(Nanos delay) const {
  const std::int64_t n = delay.count();
  if (n <= 0 || rate_ == kAlways) return delay;
  if (n / rate_ > Nanos::max().count() / (2 * std::int64_t{kAlways})) return delay;
  // Rounded up: a timer never rings early by its own clock.
  return Nanos(n / rate_ * kAlways + (n % rate_ * kAlways + rate_ - 1) / rate_);
}

Nanos SimClock::mono() const noexcept {
  return anchor_mono_ + scaled(sim_.now() - anchor_virtual_);
}

void SimClock::set_rate(Ppm rate) {
  NARAD_ASSERT(rate > 0);
  anchor_mono_ = mono();
  anchor_virtual_ = sim_.now();
  rate_ = rate;
}

void SimClock::reboot() {
  wall_offset_ += boot();
  suspended_ = Nanos(0);
  anchor_mono_ = Nanos(0);
  anchor_virtual_ = sim_.now();
}

void SimClock::slept(Nanos virtual_time) {
  const Nanos missed = scaled(virtual_time);
  anchor_mono_ -= missed;
  suspended_ += missed;
}

// ---- timers ------------------------------------------------------------------------------------

void SimTimers::wait(Nanos delay, VoidHandler handler) {
  if (!power_.on) return;
  // Only the queue owns the handler; the slot holds the event's number. The slot lives in the frame
  // that the handler owns: an owning reference would be a ring, leaked at every kill.
  auto slot = asio::get_associated_cancellation_slot(handler);
  const Nanos stretch(
      static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(stretch_max.count()) + 1)));
  const Nanos virtual_delay = clock_.to_virtual(delay);
  auto ring = [handler = std::move(handler)](bool cancelled) mutable {
    complete(std::move(handler),
             cancelled ? error_code(asio::error::operation_aborted) : error_code{});
  };
  const Sim::EventId id = delay > Nanos::max() / 4
                              ? sim_.after(Nanos::max(), node_, "timer", std::move(ring))
                              : sim_.after(std::max(virtual_delay, Nanos(0)) + stretch, node_,
                                           "timer", std::move(ring));
  if (slot.is_connected()) {
    slot.assign([&sim = sim_, id](asio::cancellation_type) { sim.cancel(id); });
  }
}

// ---- blocking ----------------------------------------------------------------------------------

void SimBlocking::run(const char* name, UniqueFunction job, VoidHandler handler) {
  if (!power_.on) return;
  queue_.push_back({name, std::move(job), std::move(handler)});
  pump();
}

void SimBlocking::pump() {
  while (busy_ < threads && !queue_.empty()) {
    ++busy_;
    Job job = std::move(queue_.front());
    queue_.pop_front();
    const Nanos latency =
        latency_min + Nanos(static_cast<std::int64_t>(
                          rng_.below(static_cast<std::uint64_t>(latency_spread.count()) + 1)));
    sim_.after(latency, node_, job.name, [this, job = std::move(job)](bool) mutable {
      ++jobs_;
      disk_.take_latency();
      job.work();
      if (!power_.on) return;  // the power went inside the job
      const Nanos busy = disk_.take_latency();
      if (busy <= Nanos(0)) {
        finish(std::move(job.handler));
        return;
      }
      sim_.after(busy, node_, "disk", [this, handler = std::move(job.handler)](bool) mutable {
        finish(std::move(handler));
      });
    });
  }
}

void SimBlocking::finish(VoidHandler handler) {
  --busy_;
  complete(std::move(handler), error_code{});
  pump();
}

void SimBlocking::drop_all() {
  auto dead = std::move(queue_);
  queue_.clear();
  busy_ = 0;
}

// ---- log ---------------------------------------------------------------------------------------

void SimLogSink::write(const LogRecord& record) {
  std::string text(record.message);
  for (const LogField& field : record.fields) text += cat(" ", field.key, "=", field.value);
  static constexpr const char* kLevels[] = {"debug", "info", "warn", "error"};
  const char* level = kLevels[static_cast<std::size_t>(record.level)];
  sim_.note(node_, text);
  if (echo_) {
    std::fprintf(stderr, "%s node %d %s %s\n", format_duration(sim_.now()).c_str(), node_, level,
                 text.c_str());
  }
  auto it = counts_.find(record.message);
  if (it == counts_.end()) it = counts_.emplace(record.message, 0).first;
  ++it->second;
  ++levels_[record.level];
  sim_.reach().hit(cat("log: ", record.message));
  lines_.push_back({sim_.now(), record.level, std::string(record.message), std::move(text)});
  if (lines_.size() > kKeep) lines_.pop_front();
}

std::uint64_t SimLogSink::count(std::string_view message) const {
  auto it = counts_.find(message);
  return it == counts_.end() ? 0 : it->second;
}

std::uint64_t SimLogSink::count(LogLevel level) const {
  auto it = levels_.find(level);
  return it == levels_.end() ? 0 : it->second;
}

const SimLogSink::Line* SimLogSink::last(std::string_view message) const {
  for (auto it = lines_.rbegin(); it != lines_.rend(); ++it) {
    if (it->message == message) return &*it;
  }
  return nullptr;
}

void SimLogSink::clear() {
  lines_.clear();
  counts_.clear();
  levels_.clear();
}

// ---- signals -----------------------------------------------------------------------------------

void SimSignals::wait(SignalHandler handler) {
  if (!power_.on) return;
  if (!pending_.empty()) {
    const Signal signal = pending_.front();
    pending_.pop_front();
    complete(std::move(handler), error_code{}, signal);
    return;
  }
  const std::uint64_t id = ++last_;
  auto slot = asio::get_associated_cancellation_slot(handler);
  waiting_.emplace(id, std::move(handler));
  if (slot.is_connected()) {
    slot.assign([this, id](asio::cancellation_type) {
      auto node = waiting_.extract(id);
      if (node.empty()) return;
      complete(std::move(node.mapped()), error_code(asio::error::operation_aborted),
               Signal::terminate);
    });
  }
}

void SimSignals::deliver(Signal signal) {
  if (!power_.on) return;
  if (waiting_.empty()) {
    pending_.push_back(signal);
    return;
  }
  auto waiting = std::exchange(waiting_, {});
  for (auto& [id, handler] : waiting) complete(std::move(handler), error_code{}, signal);
}

void SimSignals::drop_all() {
  pending_.clear();
  while (!waiting_.empty()) {
    auto dead = waiting_.extract(waiting_.begin());
  }
}

}  // namespace narad::sim
