#include "pkg/sim/sim.h"

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::sim {
namespace {
// Far beyond every run; keeps sums of times from overflowing.
constexpr Nanos kFarAway = std::chrono::hours(24 * 365 * 100);
constexpr std::uint64_t kSpinning = 20'000'000;
}  // namespace

Sim::Sim(std::uint64_t seed) : seed_(seed), pick_(derive(seed, "scheduler")) {}

Sim::~Sim() {
  // What is left belongs to nobody alive; bodies may look at the Sim while they go.
  while (!queue_.empty()) queue_.extract(queue_.begin());
}

Nanos Sim::later(Nanos delay) const {
  if (delay > kFarAway) return kFarAway * 2;
  return delay <= Nanos(0) ? now_ : now_ + delay;
}

Sim::EventId Sim::push(Nanos when, NodeId owner, const char* tag, std::unique_ptr<AnyBody> body) {
  const EventId id = ++last_id_;
  when = std::max(when, now_);
  queue_.emplace(Key(when, id), Event{owner, tag, std::move(body)});
  when_.emplace(id, when);
  return id;
}

bool Sim::cancel(EventId id) {
  Event event{kWorld, nullptr, nullptr};
  if (auto when = when_.find(id); when != when_.end()) {
    auto it = queue_.find(Key(when->second, id));
    event = std::move(it->second);
    queue_.erase(it);
    when_.erase(when);
  } else {
    for (auto& [owner, events] : put_off_) {
      auto it = events.find(id);
      if (it == events.end()) continue;
      event = std::move(it->second);
      events.erase(it);
      break;
    }
    if (!event.body) return false;
  }
  event.body->run(true);
  return true;
}

void Sim::drop_owner(NodeId owner) {
  // A destructor may call back in, so each event leaves the queue before it goes.
  for (auto it = queue_.begin(); it != queue_.end();) {
    if (it->second.owner != owner) {
      ++it;
      continue;
    }
    const Key key = it->first;
    when_.erase(key.second);
    {
      auto dead = queue_.extract(it);
    }
    it = queue_.upper_bound(key);
  }
  while (put_off_.contains(owner) && !put_off_[owner].empty()) {
    auto dead = put_off_[owner].extract(put_off_[owner].begin());
  }
  put_off_.erase(owner);
}

void Sim::postpone(NodeId owner, Nanos by) {
  std::vector<std::pair<Key, Event>> moved;
  for (auto it = queue_.begin(); it != queue_.end();) {
    if (it->second.owner != owner) {
      ++it;
      continue;
    }
    moved.emplace_back(Key(it->first.first + by, it->first.second), std::move(it->second));
    it = queue_.erase(it);
  }
  for (auto& [key, event] : moved) {
    when_[key.second] = key.first;
    queue_.emplace(key, std::move(event));
  }
}

void Sim::attach(NodeId node, NodeContext* context) {
  NARAD_ASSERT(node >= 0);
  NARAD_ASSERT(contexts_.emplace(node, context).second, "two live nodes with one id");
}

void Sim::detach(NodeId node) {
  contexts_.erase(node);
  paused_.erase(node);
}

void Sim::pause(NodeId node) { paused_.insert(node); }

void Sim::resume(NodeId node) {
  if (paused_.erase(node) == 0) return;
  auto it = put_off_.find(node);
  if (it == put_off_.end()) return;
  auto events = std::move(it->second);
  put_off_.erase(it);
  for (auto& [id, event] : events) {
    when_.emplace(id, now_);
    queue_.emplace(Key(now_, id), std::move(event));
  }
}

bool Sim::step() {
  if (!contexts_.empty()) {
    // From a random node on, once around.
    const std::size_t n = contexts_.size();
    auto it = std::next(contexts_.begin(), static_cast<std::ptrdiff_t>(pick_.below(n)));
    for (std::size_t i = 0; i < n; ++i) {
      if (!paused_.contains(it->first)) {
        running_ = it->first;
        const std::size_t ran = it->second->poll_one();
        const NodeId node = std::exchange(running_, kWorld);
        if (ran != 0) {
          ++handlers_;
          NARAD_ASSERT(++handlers_in_a_row_ < kSpinning, cat("node ", node, " spins"));
          mix(0x11 + static_cast<std::uint64_t>(node));
          return true;
        }
      }
      if (++it == contexts_.end()) it = contexts_.begin();
    }
  }
  if (queue_.empty()) return false;
  auto it = queue_.begin();
  now_ = it->first.first;
  const EventId id = it->first.second;
  Event event = std::move(it->second);
  queue_.erase(it);
  when_.erase(id);
  if (paused_.contains(event.owner)) {
    put_off_[event.owner].emplace(id, std::move(event));
    return true;
  }
  handlers_in_a_row_ = 0;
  trace_step(event.owner, event.tag);
  running_ = event.owner;
  event.body->run(false);
  event.body.reset();
  running_ = kWorld;
  return true;
}

void Sim::trace_step(NodeId owner, const char* tag) {
  ++events_;
  mix(static_cast<std::uint64_t>(now_.count()));
  mix(static_cast<std::uint64_t>(owner));
  mix(std::string_view(tag));
  if (recording_) steps_.push_back({hash_, now_, owner, tag});
  if (trace_max_ != 0) {
    TraceLine line{now_, owner, tag};
    if (trace_ring_.size() < trace_max_) {
      trace_ring_.push_back(std::move(line));
    } else {
      trace_ring_[trace_next_ % trace_max_] = std::move(line);
    }
    ++trace_next_;
  }
}

void Sim::run_until(Nanos when) {
  bool done = false;
  at(when, kWorld, "stop", [&done](bool) { done = true; });
  while (!done) NARAD_ASSERT(step());
}

bool Sim::run_until(const std::function<bool()>& done, Nanos limit) {
  bool late = false;
  const EventId stop = after(limit, kWorld, "limit", [&late](bool) { late = true; });
  bool reached = done();
  while (!reached && !late) {
    NARAD_ASSERT(step());
    reached = done();
  }
  cancel(stop);
  return reached;
}

void Sim::mix(std::uint64_t value) {
  hash_ = (hash_ ^ value) * 0x100000001b3ull;
  hash_ ^= hash_ >> 29;
}

void Sim::mix(std::string_view text) {
  for (char c : text) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  mix(text.size());
}

void Sim::note(NodeId owner, std::string_view text) {
  mix(text);
  if (trace_max_ == 0) return;
  TraceLine line{now_, owner, cat("  ", text)};
  if (trace_ring_.size() < trace_max_) {
    trace_ring_.push_back(std::move(line));
  } else {
    trace_ring_[trace_next_ % trace_max_] = std::move(line);
  }
  ++trace_next_;
}

std::vector<std::string> Sim::trace_lines() const {
  std::vector<std::string> out;
  const std::size_t n = trace_ring_.size();
  for (std::size_t i = 0; i < n; ++i) {
    const TraceLine& line = trace_ring_[n < trace_max_ ? i : (trace_next_ + i) % n];
    const std::string who = line.owner == kWorld ? "world" : cat("node ", line.owner);
    out.push_back(cat(format_duration(line.at), " ", who, " ", line.text));
  }
  return out;
}

}  // namespace narad::sim
