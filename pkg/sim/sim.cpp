#include "pkg/sim/sim.h"

#include <algorithm>
#include <utility>

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
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].id == 0) continue;
    const Event dead = take(slots_[i].id);
  }
}

Nanos Sim::later(Nanos delay) const {
  if (delay > kFarAway) return kFarAway * 2;
  return delay <= Nanos(0) ? now_ : now_ + delay;
}

Sim::EventId Sim::push(Nanos when, NodeId owner, const char* tag, std::unique_ptr<AnyBody> body) {
  if (free_.empty()) {
    NARAD_ASSERT(slots_.size() < EventId{1} << kSlotBits, "too many events");
    free_.push_back(slots_.size());
    slots_.emplace_back();
  }
  const EventId slot = free_.back();
  free_.pop_back();
  const EventId id = ++last_id_ << kSlotBits | slot;
  slots_[slot].id = id;
  slots_[slot].event = Event{owner, tag, std::move(body)};
  ++live_;
  enqueue(std::max(when, now_), id);
  return id;
}

void Sim::enqueue(Nanos when, EventId id) {
  slot_of(id).when = when;
  heap_.emplace_back(when, id);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

// Until the key in front is that of an event, or there is none. Where most are stale, all of those
// go.
void Sim::skip_stale() {
  const auto stale = [&](const Key& key) {
    const Slot& slot = slot_of(key.second);
    return slot.id != key.second || slot.when != key.first;
  };
  if (heap_.size() > 2 * live_ + 64) {
    std::erase_if(heap_, stale);
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  while (!heap_.empty() && stale(heap_.front())) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
  }
}

// Its key stays behind, stale. REQUIRES: it is in the queue.
Sim::Event Sim::take(EventId id) {
  Slot& slot = slot_of(id);
  Event event = std::move(slot.event);
  slot.id = 0;
  free_.push_back(id & ((EventId{1} << kSlotBits) - 1));
  --live_;
  return event;
}

bool Sim::cancel(EventId id) {
  if (id == 0 || slot_of(id).id != id) return false;
  const Event event = take(id);
  event.body->run(true);
  return true;
}

// In the order of the queue.
std::vector<Sim::Key> Sim::keys_of(NodeId owner) const {
  std::vector<Key> keys;
  for (const Slot& slot : slots_) {
    if (slot.id != 0 && slot.event.owner == owner) keys.emplace_back(slot.when, slot.id);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

void Sim::drop_owner(NodeId owner) {
  // A destructor may call back in, so each event leaves the queue before it goes.
  for (auto keys = keys_of(owner); !keys.empty(); keys = keys_of(owner)) {
    for (const auto& [when, id] : keys) {
      if (slot_of(id).id != id) continue;
      const Event dead = take(id);
    }
  }
  put_off_.erase(owner);
}

void Sim::postpone(NodeId owner, Nanos by) {
  for (const auto& [when, id] : keys_of(owner)) enqueue(when + by, id);
}

void Sim::attach(NodeId node, NodeContext* context) {
  NARAD_ASSERT(node >= 0);
  const auto place =
      std::lower_bound(contexts_.begin(), contexts_.end(), std::pair(node, context),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
  NARAD_ASSERT(place == contexts_.end() || place->first != node, "two live nodes with one id");
  contexts_.emplace(place, node, context);
}

void Sim::detach(NodeId node) {
  std::erase_if(contexts_, [&](const auto& context) { return context.first == node; });
  paused_.erase(node);
}

void Sim::pause(NodeId node) { paused_.insert(node); }

void Sim::resume(NodeId node) {
  if (paused_.erase(node) == 0) return;
  for (const EventId id : std::exchange(put_off_[node], {})) {
    if (slot_of(id).id == id) enqueue(now_, id);
  }
  put_off_.erase(node);
}

bool Sim::step() {
  if (!contexts_.empty()) {
    // From a random node on, once around.
    const std::size_t n = contexts_.size();
    std::size_t at = static_cast<std::size_t>(pick_.below(n));
    for (std::size_t i = 0; i < n; ++i) {
      if (const auto [node, context] = contexts_[at]; paused_.empty() || !paused_.contains(node)) {
        running_ = node;
        const std::size_t ran = context->poll_one();
        running_ = kWorld;
        if (ran != 0) {
          ++handlers_;
          NARAD_ASSERT(++handlers_in_a_row_ < kSpinning, cat("node ", node, " spins"));
          mix(0x11 + static_cast<std::uint64_t>(node));
          return true;
        }
      }
      if (++at == n) at = 0;
    }
  }
  skip_stale();
  if (heap_.empty()) return false;
  const auto [when, id] = heap_.front();
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  heap_.pop_back();
  now_ = when;
  if (const NodeId owner = slot_of(id).event.owner; paused_.contains(owner)) {
    put_off_[owner].push_back(id);  // it keeps its slot, so that it can be cancelled
    return true;
  }
  Event event = take(id);
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
