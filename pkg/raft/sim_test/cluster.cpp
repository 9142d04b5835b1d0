#include "pkg/raft/sim_test/cluster.h"

#include <algorithm>

#include "pkg/base/text.h"

namespace narad::raft::simtest {

namespace {
std::uint64_t mix(std::uint64_t h, std::uint64_t v) { return (h ^ v) * 0x100000001b3ull; }
}  // namespace

Cluster::Cluster(std::uint64_t seed, Counters& counters)
    : seed_(seed), counters_(counters), rng_(seed) {
  const std::uint64_t sizes[] = {1, 2, 3, 3, 3, 5, 5, 5, 5, 5};
  std::uint64_t size = sizes[rng_.below(10)];
  changes_members_ = rng_.below(3) != 0;
  crash_weight_ = rng_.below(3);
  restless_ = rng_.below(3) == 0;
  draw_weather();
  std::vector<Member> members;
  for (std::uint64_t n = 1; n <= size; ++n) {
    members.push_back({ReplicaId(n), cat("n", n), MemberRole::voter});
  }
  StartState first;
  first.snapshot.configuration = Configuration::make(members).value();
  for (const Member& m : members) add_machine(m.node, first);
  put(kTick, What::act, ReplicaId());
}

ReplicaId Cluster::add_machine(const std::string& node, StartState first) {
  ReplicaId id(next_replica_++);
  Options o;
  o.self = id;
  o.node = node;
  o.seed = rng_.next();
  o.election_ticks = 10;
  o.append_bytes_max = rng_.range(40, 400);
  o.inflight_bytes_max = rng_.range(100, 2000);
  o.inflight_messages_max = rng_.range(1, 8);
  // Small: what piles up without a majority must go through within the liveness bound later.
  o.uncommitted_bytes_max = rng_.range(2'000, 20'000);
  o.apply_bytes_max = rng_.range(40, 400);
  o.chunk_bytes = rng_.range(7, 60);
  o.caught_up_entries = rng_.below(6);
  o.promote_learners = rng_.below(4) != 0;
  Machine& m = machines_[id];
  m.tick_every = kTick + rng_.below(kTick * 9 / 10);
  m.replica = std::make_unique<Replica>(o, std::move(first), oracle_, counters_);
  m.replica->disk_rng = Rng(rng_.next());
  m.replica->damage_one_in = rng_.below(3) == 0 ? 4 : 0;
  (void)boot(id);
  return id;
}

Cluster::Finding Cluster::boot(ReplicaId id) {
  Machine& m = machines_.at(id);
  if (Finding f = m.replica->boot()) return f;
  ++m.life;
  m.disk_busy = false;
  put(rng_.below(m.tick_every) + 1, What::tick, id);
  return worked(id);
}

void Cluster::crash(ReplicaId id) {
  Machine& m = machines_.at(id);
  m.replica->crash(rng_);
  ++m.life;
}

void Cluster::put(std::uint64_t delay, What what, ReplicaId who, std::shared_ptr<Message> m) {
  std::uint64_t life = what == What::tick || what == What::disk ? machines_.at(who).life : 0;
  events_.push({now_ + delay, order_++, what, who, life, std::move(m)});
}

void Cluster::send(Message m) {
  if (blocked_.count({m.from, m.to}) != 0 || rng_.one_in(lose_one_in_)) {
    counters_.hit("message lost");
    return;
  }
  auto shared = std::make_shared<Message>(std::move(m));
  std::uint64_t copies = rng_.one_in(double_one_in_) ? 2 : 1;
  for (std::uint64_t i = 0; i < copies; ++i) {
    std::uint64_t delay = rng_.range(1, latency_max_);
    if (rng_.one_in(slow_one_in_)) delay += rng_.below(30 * kTick);
    put(delay, What::deliver, shared->to, shared);
  }
}

Cluster::Finding Cluster::one_event() {
  Event e = events_.top();
  events_.pop();
  now_ = e.time;
  trace_ = mix(mix(mix(trace_, e.time), static_cast<std::uint64_t>(e.what)), e.who.value());
  return handle(e);
}

Cluster::Finding Cluster::handle(const Event& e) {
  if (e.what == What::act) {
    put(rng_.range(50, 600), What::act, ReplicaId());
    return peace_ ? std::nullopt : act();
  }
  auto found = machines_.find(e.who);
  if (found == machines_.end() || !found->second.replica->up()) return std::nullopt;
  Machine& m = found->second;
  Replica& r = *m.replica;
  switch (e.what) {
    case What::tick:
      if (e.life != m.life) return std::nullopt;
      put(m.tick_every, What::tick, e.who);
      r.core().tick();
      break;
    case What::disk: {
      if (e.life != m.life) return std::nullopt;
      m.disk_busy = false;
      Finding f = r.store_one([this](Message out) { send(std::move(out)); });
      if (f) return f;
      break;
    }
    case What::deliver: {
      if (blocked_.count({e.message->from, e.who}) != 0) return std::nullopt;
      trace_ = mix(trace_, static_cast<std::uint64_t>(e.message->kind));
      Message copy = *e.message;
      if (!peace_ && copy.kind == MessageKind::snapshot_chunk && rng_.one_in(40)) {
        copy.chunk_checksum ^= 1;  // damaged on the way
        counters_.hit("damaged chunk");
      }
      Result<> done = r.core().step(std::move(copy));
      if (!done && !r.core().fault()) return cat("a message was refused: ", done.error().text());
      break;
    }
    case What::act:
      break;
  }
  return worked(e.who);
}

// After each input: outputs, invariants, and the disk's next piece of work.
Cluster::Finding Cluster::worked(ReplicaId id) {
  Machine& m = machines_.at(id);
  Replica& r = *m.replica;
  if (r.stopped()) return r.core().fault()->text();
  Finding f = r.collect([this](Message out) { send(std::move(out)); });
  if (f) return f;
  if (r.has_writes() && !m.disk_busy) {
    m.disk_busy = true;
    put(rng_.range(1, 100) * m.disk_slow, What::disk, id);
  }
  return std::nullopt;
}

Replica* Cluster::leader() {
  Replica* best = nullptr;
  for (auto& [id, m] : machines_) {
    bool leads = m.replica->up() && m.replica->core().role() == Role::leader;
    if (leads && (best == nullptr || m.replica->core().term() > best->core().term())) {
      best = m.replica.get();
    }
  }
  return best;
}

ReplicaId Cluster::pick() {
  auto at = machines_.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(rng_.below(machines_.size())));
  return at->first;
}

RunResult Cluster::run(std::uint64_t steps) {
  RunResult result;
  Finding f;
  for (; result.steps < steps && !f; ++result.steps) f = one_event();
  if (!f) f = make_peace();
  result.trace = mix(trace_, oracle_.committed().value());
  if (f) result.finding = cat("seed ", seed_, ", step ", result.steps, ", time ", now_, ": ", *f);
  counters_.hit("entries committed", oracle_.committed().value());
  counters_.hit("terms with a leader", oracle_.leaders());
  return result;
}

}  // namespace narad::raft::simtest
