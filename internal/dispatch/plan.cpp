#include "internal/dispatch/plan.h"

#include <algorithm>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::dispatch {
namespace {

// Of a home that waits, so many messages stay in memory if they can, so that it starts at once.
constexpr std::size_t kKeptMessages = 256;

std::uint32_t bytes_of(const Message& m) {
  return static_cast<std::uint32_t>(m.payload.size() + m.key.size() + 32);
}

}  // namespace

std::size_t Plan::KeyHash::operator()(const KeyView& key) const noexcept {
  // An incarnation is one life of one name: the name itself adds nothing.
  std::uint64_t h = key.incarnation.value() + 0x9e3779b97f4a7c15ull * (key.partition.value() + 1);
  h = (h ^ (h >> 31)) * 0xbf58476d1ce4e5b9ull;
  return static_cast<std::size_t>(h ^ (h >> 29));
}

Plan::Plan(PlanOptions options, Sequence checkpoint)
    : options_(options), checkpoint_(checkpoint), next_(checkpoint) {
  NARAD_ASSERT(options_.batch_records_max > 0);
  NARAD_ASSERT(options_.in_flight_max > 0);
  NARAD_ASSERT(options_.unsettled_max > 0);
  NARAD_ASSERT(options_.window_max > 0);
}

// ---- records come in ------------------------------------------------------------------------

std::optional<ReadRequest> Plan::read_next() const {
  const std::uint64_t room =
      options_.loaded_bytes_max - std::min(options_.loaded_bytes_max, stats_.loaded_bytes);
  if (!reload_.empty()) {
    Sequence from = reload_.begin()->second;
    for (const auto& [id, sequence] : reload_) from = std::min(from, sequence);
    return ReadRequest{from, options_.unsettled_max, std::max<std::uint64_t>(room, 1)};
  }
  if (full()) return std::nullopt;
  return ReadRequest{
      next_,
      std::min(options_.unsettled_max - stats_.unsettled, options_.window_max - settled_.size()),
      room};
}

bool Plan::full() const {
  return stats_.unsettled >= options_.unsettled_max || settled_.size() >= options_.window_max ||
         stats_.loaded_bytes >= options_.loaded_bytes_max;
}

void Plan::offer(const std::vector<DurableRecord>& records) {
  for (const DurableRecord& record : records) {
    if (record.sequence < next_) {
      load(record);
    } else if (!full()) {
      add(record);
    } else {
      break;  // read again once there is room
    }
  }
  if (stats_.loaded_bytes >= options_.loaded_bytes_max) give_up_memory();
}

void Plan::add(const DurableRecord& record) {
  NARAD_ASSERT(record.sequence == next_);
  const Message& m = *record.message;
  Slot& slot = slot_of(KeyView{m.topic, m.incarnation, m.partition});
  Entry entry{record.sequence, record.origin, bytes_of(m), nullptr};
  if (slot.loaded == slot.queue.size()) {
    entry.message = record.message;
    ++slot.loaded;
    stats_.loaded_bytes += entry.bytes;
  }
  const bool was_empty = slot.queue.empty();
  slot.queue.push_back(std::move(entry));
  settled_.push_back(0);
  next_ = next_.next();
  ++stats_.unsettled;
  // Otherwise it is in flight, ready, or waits for something already.
  if (was_empty && slot.out == 0) make_ready(slot);
}

// A record read again: wanted only if it is the first of its home whose message was given up.
void Plan::load(const DurableRecord& record) {
  const Message& m = *record.message;
  auto it = ids_.find(KeyView{m.topic, m.incarnation, m.partition});
  if (it == ids_.end()) return;
  Slot& slot = slots_.at(it->second);
  if (slot.loaded == slot.queue.size()) return;
  Entry& entry = slot.queue[slot.loaded];
  if (entry.sequence != record.sequence) return;
  if (slot.loaded != 0 && stats_.loaded_bytes >= options_.loaded_bytes_max) return;
  entry.message = record.message;
  ++slot.loaded;
  stats_.loaded_bytes += entry.bytes;
  if (slot.reloading) {
    slot.reloading = false;
    reload_.erase(slot.id);
    make_ready(slot);
  }
}

// Homes that wait give up messages, the newest first; the WAL still has them.
void Plan::give_up_memory() {
  for (std::size_t keep : {kKeptMessages, std::size_t{0}}) {
    for (const auto& [at, id] : timers_) {
      Slot& slot = slots_.at(id);
      while (slot.loaded > keep && stats_.loaded_bytes > options_.loaded_bytes_max) {
        Entry& entry = slot.queue[--slot.loaded];
        entry.message.reset();
        stats_.loaded_bytes -= entry.bytes;
      }
    }
  }
}

Plan::Slot& Plan::slot_of(const KeyView& key) {
  if (last_slot_ != nullptr && KeyEqual{}(last_slot_->key, key)) return *last_slot_;
  auto it = ids_.find(key);
  if (it == ids_.end()) {
    const std::uint64_t id = ++last_id_;
    Slot& slot = slots_[id];
    slot.id = id;
    slot.key = Key{std::string(key.topic), key.incarnation, key.partition};
    it = ids_.emplace(slot.key, id).first;
  }
  last_slot_ = &slots_.at(it->second);
  return *last_slot_;
}

// ---- decisions ------------------------------------------------------------------------------

void Plan::make_ready(Slot& slot) {
  set_timer(slot, std::nullopt);
  if (slot.ready) return;
  slot.ready = true;
  ready_.push_back(slot.id);
}

void Plan::set_timer(Slot& slot, std::optional<Nanos> at) {
  if (slot.timer) timers_.erase({*slot.timer, slot.id});
  slot.timer = at;
  if (at) timers_.emplace(*at, slot.id);
}

Actions Plan::next_actions(Nanos now, const Routing& routing) {
  Actions actions;
  while (!timers_.empty() && timers_.begin()->first <= now) {
    make_ready(slots_.at(timers_.begin()->second));
  }
  for (std::size_t n = ready_.size(); n > 0 && in_flight_.size() < options_.in_flight_max; --n) {
    const std::uint64_t id = ready_.front();
    ready_.pop_front();
    Slot& slot = slots_.at(id);
    slot.ready = false;
    decide(slot, now, routing, actions);
  }
  return actions;
}

std::optional<Nanos> Plan::wake_at() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first;
}

void Plan::on_routing_changed() {
  while (!timers_.empty()) make_ready(slots_.at(timers_.begin()->second));
}

void Plan::decide(Slot& slot, Nanos now, const Routing& routing, Actions& actions) {
  if (slot.queue.empty() || (slot.out != 0 && !options_.defects.ignore_home_settling)) {
    settle_down(slot, now);
    return;
  }
  const Route route =
      routing.route(TopicPartition{slot.key.topic, slot.key.partition}, slot.key.incarnation);
  if (!route.topic_known) {
    decide_gone(slot, now, actions);
    return;
  }
  if (route.owner == OwnerState::alive) {
    decide_alive(slot, route, now, routing, actions);
    return;
  }
  if (route.owner == OwnerState::dead && reroute(slot, route, now, routing, actions)) return;
  // Nobody to send to. From when on is remembered: for the grace, and for people.
  if (!slot.failing) start_failing(slot, now, route.assignment_index, now);
  const Nanos graced = slot.failing->since + options_.grace;
  if (route.owner == OwnerState::unassigned && now >= graced &&
      reroute(slot, route, now, routing, actions)) {
    return;
  }
  set_timer(slot, now < graced ? std::min(now + options_.retry, graced) : now + options_.retry);
}

void Plan::decide_alive(Slot& slot, const Route& route, Nanos now, const Routing& routing,
                        Actions& actions) {
  const bool failed = slot.failing && slot.failing->tried == route.assignment_index;
  if (!failed || now >= slot.failing->next_try) {
    // A failing destination gets one record to show itself with; if that hangs, the rest can still
    // be rerouted, and such calls never take all the room that the others need.
    if (failed && probes_ >= std::max<std::size_t>(options_.in_flight_max / 4, 1)) {
      set_timer(slot, now + options_.retry);
    } else if (slot.lane != 0) {
      slot.lane_waiters.insert(slot.id);
    } else if (!wait_for_message(slot)) {
      send(slot, slot, route.assignment_index, failed, now, actions);
    }
    return;
  }
  const Nanos graced = slot.failing->since + options_.grace;
  if (now >= graced && reroute(slot, route, now, routing, actions)) return;
  const Nanos next_try = slot.failing->next_try;
  set_timer(slot, now < graced ? std::min(next_try, graced) : next_try);
}

// The local view does not hold the topic. Only the leader's word, behind a barrier, discards.
void Plan::decide_gone(Slot& slot, Nanos now, Actions& actions) {
  if (confirming_.emplace(slot.key.topic, slot.key.incarnation).second) {
    actions.confirms.push_back({slot.key.topic, slot.key.incarnation});
  }
  set_timer(slot, now + options_.retry);
}

// To the next partition, in a circle, whose owner lives and does not fail either; preferably one
// whose lane is free. False if there is none.
bool Plan::reroute(Slot& home, const Route& route, Nanos now, const Routing& routing,
                   Actions& actions) {
  std::uint64_t busy = 0;
  for (std::uint32_t i = 1; i < route.partitions; ++i) {
    const PartitionId partition((home.key.partition.value() + i) % route.partitions);
    if (partition == home.key.partition) continue;
    const Route other =
        routing.route(TopicPartition{home.key.topic, partition}, home.key.incarnation);
    if (!other.topic_known || other.owner != OwnerState::alive) continue;
    Slot& to = slot_of(KeyView{home.key.topic, home.key.incarnation, partition});
    const bool failed = to.failing && to.failing->tried == other.assignment_index;
    if (failed && now < to.failing->next_try) continue;
    if (to.lane != 0) {
      if (busy == 0) busy = to.id;
      continue;
    }
    if (!wait_for_message(home)) send(home, to, other.assignment_index, failed, now, actions);
    if (to.lane == 0) settle_down(to, now);
    return true;
  }
  if (busy == 0) return false;
  slots_.at(busy).lane_waiters.insert(home.id);
  return true;
}

// True if the first message must be read again before anything can be sent.
bool Plan::wait_for_message(Slot& slot) {
  if (slot.loaded != 0) return false;
  slot.reloading = true;
  reload_[slot.id] = slot.queue.front().sequence;
  return true;
}

// The records at the front that may go in one batch.
std::vector<Plan::Entry> Plan::take_batch(Slot& home, std::size_t records_max) {
  std::vector<Entry> entries;
  std::uint64_t bytes = 0;
  while (home.loaded != 0 && entries.size() < records_max) {
    Entry& entry = home.queue.front();
    if (!entries.empty()) {
      if (bytes + entry.bytes > options_.batch_bytes_max) break;
      if (entry.origin != entries.front().origin && !options_.defects.mix_origins) break;
    }
    bytes += entry.bytes;
    entries.push_back(std::move(entry));
    home.queue.pop_front();
    --home.loaded;
  }
  NARAD_ASSERT(!entries.empty());
  return entries;
}

void Plan::send(Slot& home, Slot& to, RaftIndex assignment_index, bool probe, Nanos now,
                Actions& actions) {
  NARAD_ASSERT(to.lane == 0);
  NARAD_ASSERT(home.out == 0 || options_.defects.ignore_home_settling);
  std::vector<Entry> entries = take_batch(home, probe ? 1 : options_.batch_records_max);
  Send out;
  out.id = ++last_batch_;
  out.to = TopicPartition{to.key.topic, to.key.partition};
  out.batch.incarnation = to.key.incarnation;
  out.batch.assignment_index = assignment_index;
  out.batch.origin = entries.front().origin;
  out.batch.rerouted = &home != &to;
  out.batch.records.reserve(entries.size());
  for (const Entry& entry : entries) out.batch.records.push_back({entry.sequence, entry.message});
  to.lane = out.id;
  ++home.out;
  if (probe) ++probes_;
  in_flight_.emplace(out.id,
                     Batch{home.id, to.id, now, assignment_index, probe, std::move(entries)});
  actions.sends.push_back(std::move(out));
  if (options_.defects.ignore_home_settling && &home != &to && !home.queue.empty()) {
    make_ready(home);
  }
}

// ---- results --------------------------------------------------------------------------------

Turn Plan::on_result(BatchId id, BatchResult result, Nanos now) {
  auto node = in_flight_.extract(id);
  NARAD_ASSERT(!node.empty());
  Batch& batch = node.mapped();
  Slot& home = slots_.at(batch.home);
  Slot& to = slots_.at(batch.to);
  NARAD_ASSERT(to.lane == id);
  NARAD_ASSERT(home.out > 0);
  to.lane = 0;
  --home.out;
  if (batch.probe) --probes_;
  Turn turn = Turn::none;
  if (result == BatchResult::committed) {
    (&home == &to ? stats_.committed : stats_.rerouted) += batch.entries.size();
    for (Entry& entry : batch.entries) settle(home, std::move(entry));
    if (to.failing && to.failing->told) turn = Turn::recovered;
    clear_failing(to);
  } else {
    ++stats_.failed_batches;
    put_back(home, std::move(batch.entries));
    const bool again = to.failing && to.failing->tried == batch.assignment_index;
    const Nanos since = again ? to.failing->since : batch.sent_at;
    Nanos unexplained = again ? to.failing->unexplained : batch.sent_at;
    if (result == BatchResult::held_up) unexplained = now;
    // One that hangs until the deadline costs more than one that refuses: ask it less often.
    const Nanos pause = std::clamp(2 * (now - batch.sent_at), options_.retry, options_.retry_max);
    start_failing(to, since, batch.assignment_index, now + pause);
    turn = judge_failure(*to.failing, unexplained, now);
  }
  free_lane(to);
  if (!home.queue.empty()) make_ready(home);
  settle_down(to, now);
  if (&home != &to) settle_down(home, now);
  return turn;
}

void Plan::on_gone(const std::string& topic, Incarnation incarnation, GoneAnswer answer,
                   Nanos now) {
  confirming_.erase({topic, incarnation});
  if (answer != GoneAnswer::gone) return;  // timers ask again
  std::vector<std::uint64_t> ids;
  for (const auto& [id, slot] : slots_) {
    if (slot.key.incarnation == incarnation && slot.key.topic == topic) ids.push_back(id);
  }
  for (std::uint64_t id : ids) {
    Slot& slot = slots_.at(id);
    // Proof: the leader said, behind a barrier, that this life of the topic has ended for good.
    for (Entry& entry : std::exchange(slot.queue, {})) {
      if (!entry.message) stats_.loaded_bytes += entry.bytes;  // as settle() takes it off
      ++stats_.discarded;
      settle(slot, std::move(entry));
    }
    slot.loaded = 0;
    slot.reloading = false;
    reload_.erase(id);
    settle_down(slot, now);
  }
}

void Plan::settle(Slot& home, Entry entry) {
  if (options_.defects.forget_settled_ahead && entry.sequence != checkpoint_) {
    std::vector<Entry> again;
    again.push_back(std::move(entry));
    put_back(home, std::move(again));
    return;
  }
  NARAD_ASSERT(entry.sequence >= checkpoint_);
  std::uint8_t& flag = settled_[entry.sequence.minus(checkpoint_)];
  NARAD_ASSERT(flag == 0);
  flag = 1;
  --stats_.unsettled;
  stats_.loaded_bytes -= entry.bytes;
  highest_settled_ = std::max(highest_settled_, entry.sequence);
  while (!settled_.empty() && settled_.front() != 0) {
    settled_.pop_front();
    checkpoint_ = checkpoint_.next();
  }
}

void Plan::put_back(Slot& home, std::vector<Entry> entries) {
  while (!entries.empty()) {
    Entry entry = std::move(entries.back());
    entries.pop_back();
    if (home.queue.empty() || entry.sequence < home.queue.front().sequence) {
      home.queue.push_front(std::move(entry));
      ++home.loaded;
      continue;
    }
    // Only with a planted defect does a home's queue move on while its records are out.
    auto at = std::lower_bound(home.queue.begin(), home.queue.end(), entry.sequence,
                               [](const Entry& e, Sequence s) { return e.sequence < s; });
    const auto index = static_cast<std::size_t>(at - home.queue.begin());
    if (index <= home.loaded) {
      ++home.loaded;
    } else {
      entry.message.reset();
      stats_.loaded_bytes -= entry.bytes;
    }
    home.queue.insert(at, std::move(entry));
  }
}

void Plan::start_failing(Slot& slot, Nanos since, RaftIndex tried, Nanos next_try) {
  const bool told = slot.failing && slot.failing->told;
  slot.failing = Failing{since, next_try, tried, since, told};
  failing_.insert(slot.id);
}

Turn Plan::judge_failure(Failing& failing, Nanos unexplained, Nanos now) const {
  failing.unexplained = unexplained;
  if (failing.told || now - unexplained < options_.retry) return Turn::none;
  failing.told = true;
  return Turn::began_failing;
}

void Plan::clear_failing(Slot& slot) {
  slot.failing.reset();
  failing_.erase(slot.id);
}

void Plan::free_lane(Slot& slot) {
  for (std::uint64_t id : std::exchange(slot.lane_waiters, {})) {
    if (auto it = slots_.find(id); it != slots_.end()) make_ready(it->second);
  }
  if (!slot.queue.empty() && slot.out == 0 && !slot.timer && !slot.reloading) make_ready(slot);
}

// Forgets a slot that nothing is known about; one that fails is remembered for a while.
void Plan::settle_down(Slot& slot, Nanos now) {
  if (!slot.queue.empty() || slot.out != 0 || slot.lane != 0 || slot.ready) return;
  if (!slot.lane_waiters.empty()) return;
  if (slot.failing) {
    const Nanos forget = slot.failing->next_try + options_.forget_failing;
    if (now < forget) {
      set_timer(slot, forget);
      return;
    }
    clear_failing(slot);
  }
  set_timer(slot, std::nullopt);
  reload_.erase(slot.id);
  if (last_slot_ == &slot) last_slot_ = nullptr;
  ids_.erase(ids_.find(view(slot.key)));
  slots_.erase(slot.id);
}

// ---- looking --------------------------------------------------------------------------------

Sequence Plan::checkpoint() const {
  if (options_.defects.checkpoint_past_unsettled) {
    return std::max(checkpoint_, highest_settled_.next());
  }
  return checkpoint_;
}

PlanStats Plan::stats() const {
  PlanStats out = stats_;
  out.checkpoint = checkpoint_;
  out.next = next_;
  out.in_flight = in_flight_.size();
  out.failing = failing_.size();
  return out;
}

std::string Plan::trouble(Nanos now) const {
  const Slot* worst = nullptr;
  for (std::uint64_t id : failing_) {
    const Slot& slot = slots_.at(id);
    if (slot.queue.empty() && slot.out == 0) continue;
    if (worst == nullptr || slot.failing->since < worst->failing->since) worst = &slot;
  }
  if (worst == nullptr || now - worst->failing->since < options_.grace) return {};
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(now - worst->failing->since);
  return cat(to_string(TopicPartition{worst->key.topic, worst->key.partition}),
             " has taken no records for ", seconds.count(), " s, ", failing_.size(),
             " such destinations");
}

void Plan::check_invariants() const {
  NARAD_ASSERT(next_.minus(checkpoint_) == settled_.size());
  NARAD_ASSERT(settled_.empty() || settled_.front() == 0);
  std::size_t records = 0;
  std::uint64_t loaded = 0;
  std::size_t ready = 0;
  std::size_t timers = 0;
  for (const auto& [id, slot] : slots_) {
    NARAD_ASSERT(slot.id == id);
    NARAD_ASSERT(ids_.find(view(slot.key))->second == id);
    check_slot(slot);
    records += slot.queue.size();
    for (const Entry& entry : slot.queue) loaded += entry.message ? entry.bytes : 0;
    ready += slot.ready ? 1 : 0;
    timers += slot.timer ? 1 : 0;
  }
  for (const auto& [id, batch] : in_flight_) {
    records += batch.entries.size();
    for (const Entry& entry : batch.entries) loaded += entry.bytes;
  }
  const auto open = std::count(settled_.begin(), settled_.end(), 0);
  NARAD_ASSERT(records == stats_.unsettled);
  NARAD_ASSERT(static_cast<std::size_t>(open) == records);
  NARAD_ASSERT(loaded == stats_.loaded_bytes);
  NARAD_ASSERT(ready == ready_.size());
  NARAD_ASSERT(timers == timers_.size());
  NARAD_ASSERT(ids_.size() == slots_.size());
  check_batches();
}

void Plan::check_slot(const Slot& slot) const {
  NARAD_ASSERT(slot.loaded <= slot.queue.size());
  for (std::size_t i = 0; i < slot.queue.size(); ++i) {
    const Entry& entry = slot.queue[i];
    NARAD_ASSERT((entry.message != nullptr) == (i < slot.loaded));
    NARAD_ASSERT(i == 0 || slot.queue[i - 1].sequence < entry.sequence);
    NARAD_ASSERT(entry.sequence >= checkpoint_);
    NARAD_ASSERT(settled_[entry.sequence.minus(checkpoint_)] == 0);
    if (!entry.message) continue;
    NARAD_ASSERT(entry.message->partition == slot.key.partition);
    NARAD_ASSERT(entry.message->incarnation == slot.key.incarnation);
  }
  NARAD_ASSERT(slot.reloading == reload_.contains(slot.id));
  NARAD_ASSERT(slot.failing.has_value() == failing_.contains(slot.id));
  if (slot.queue.empty() || slot.out != 0) return;
  // Something will wake it.
  bool waits = slot.ready || slot.timer || slot.reloading;
  for (const auto& [id, other] : slots_) waits = waits || other.lane_waiters.contains(slot.id);
  NARAD_ASSERT(waits);
}

void Plan::check_batches() const {
  std::map<std::uint64_t, std::size_t> out;
  std::size_t probes = 0;
  for (const auto& [id, batch] : in_flight_) {
    NARAD_ASSERT(slots_.at(batch.to).lane == id);  // hence at most one in flight to each
    ++out[batch.home];
    probes += batch.probe ? 1 : 0;
    const Slot& home = slots_.at(batch.home);
    NARAD_ASSERT(!batch.entries.empty());
    for (std::size_t i = 0; i < batch.entries.size(); ++i) {
      const Entry& entry = batch.entries[i];
      NARAD_ASSERT(settled_[entry.sequence.minus(checkpoint_)] == 0);
      NARAD_ASSERT(i == 0 || batch.entries[i - 1].sequence < entry.sequence);
      NARAD_ASSERT(entry.origin == batch.entries.front().origin);
    }
    // Home settling: nothing of this home is unsettled below it, and what follows waits.
    NARAD_ASSERT(home.queue.empty() || batch.entries.back().sequence < home.queue.front().sequence);
  }
  NARAD_ASSERT(probes == probes_);
  for (const auto& [id, slot] : slots_) {
    NARAD_ASSERT(slot.out == (out.contains(id) ? 1u : 0u));
    NARAD_ASSERT(slot.lane == 0 || in_flight_.contains(slot.lane));
  }
}

}  // namespace narad::dispatch
