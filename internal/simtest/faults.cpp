// What a plan's faults do to the machines and to the network between them.
#include <algorithm>

#include "internal/simtest/parts.h"
#include "pkg/base/assert.h"

namespace narad::simtest {

using namespace std::chrono_literals;

void World::went_down(int node) {
  // Acks of its partitions that were not on disk yet may be forgotten.
  oracle_.crashed([&](const LogName& log) {
    const auto owner = owner_of(log);
    return !owner || *owner == node;
  });
  const auto at = static_cast<std::size_t>(node);
  went_down_at_[at] = sim_.now();
  sim::Machine& machine = *machines_[at];
  if (const auto& exit = machine.last_exit(); exit && exit->code == kExitSyncFailed) {
    reach_.hit("exit after a failed sync");
  }
  if (clean_stop_) return;
  if (walk_.on) walk_went_down(node);
  const Nanos outage = phase_ == Phase::faults ? down_until_[at] - sim_.now() : Nanos(0);
  machine.boot_after(std::max(Nanos(500ms), outage));
}

void World::apply(const sim::Fault& fault) {
  const auto number = static_cast<std::uint64_t>(fault.number);
  const auto node = static_cast<std::size_t>(fault.node) % machines_.size();
  sim::Machine& machine = *machines_[node];
  auto& faults = machine.disk().faults;
  reach_.hit("fault: " + fault.kind);
  if (fault.kind == "power_cut") {
    machine.kill(sim::Machine::Kill::power_cut);
  } else if (fault.kind == "kill9") {
    machine.kill(sim::Machine::Kill::process_exit);
  } else if (fault.kind == "cut_at_call") {
    // The number says which call, twice, and with its lowest bit whether it lands torn.
    machine.kill_at_disk_call(
        number / 2 + 1, sim::Machine::Kill::power_cut,
        (number & 1) != 0 ? sim::SimFs::Cut::during_call : sim::SimFs::Cut::before_call);
  } else if (fault.kind == "eio_write") {
    machine.disk().fail_call(sim::FsCall::pwrite, number + 1);
  } else if (fault.kind == "eio_sync") {
    machine.disk().fail_call(sim::FsCall::sync, number + 1);
  } else if (fault.kind == "eio_read") {
    machine.disk().fail_call(sim::FsCall::pread, number + 1);
  } else if (fault.kind == "partition_refuses") {
    // The disk calls of one partition fail for a while: its records wait, or are rerouted.
    machine.disk().fail_call(sim::FsCall::pwrite, 1, true, 5, cat("/p0000", number % 3, "/"));
    later(std::chrono::milliseconds(500 + number), [&machine] { machine.disk().clear_failures(); });
  } else if (fault.kind == "disk_full") {
    faults.capacity_bytes = machine.disk().used_bytes() + number;
    later(4s,
          [&machine] { machine.disk().faults.capacity_bytes = sim::FsFaults{}.capacity_bytes; });
  } else if (fault.kind == "short_io") {
    faults.short_read = faults.short_write = static_cast<sim::Ppm>(number);
  } else if (fault.kind == "slow_disk") {
    faults.slow = 200'000;
    faults.slow_max = std::chrono::milliseconds(number + 1);
    later(6s, [&machine] { machine.disk().faults.slow = 0; });
  } else if (fault.kind == "wall_step") {
    machine.clock().step_wall(std::chrono::seconds(number) - 1h);
  } else if (fault.kind == "clean_restart") {
    if (machine.up() && machine.component<App>().ready()) machine.component<App>().stop_cleanly();
    later(12s, [&machine, boots = machine.boots()] {
      if (machine.up() && machine.boots() == boots) machine.kill(sim::Machine::Kill::process_exit);
    });
  } else {
    apply_to_network(fault);
  }
}

// Faults between nodes; the number says with whom and for how long.
void World::apply_to_network(const sim::Fault& fault) {
  const auto number = static_cast<std::uint64_t>(fault.number);
  const auto count = static_cast<std::uint64_t>(machines_.size());
  const auto node = static_cast<sim::NodeId>(static_cast<std::uint64_t>(fault.node) % count);
  const auto other = static_cast<sim::NodeId>((node + 1 + number % (count - 1)) % count);
  const Nanos length = std::chrono::milliseconds(200 + number);
  if (fault.kind == "isolate") {
    net_.partition({node});
    later(length, [this] { heal_network(); });
  } else if (fault.kind == "split") {
    net_.partition({node, other});
    later(length, [this] { heal_network(); });
  } else if (fault.kind == "one_way") {
    net_.block(node, other);
    later(length, [this, node, other] { net_.unblock(node, other); });
  } else if (fault.kind == "deaf") {  // hears nobody, is heard by all
    for (sim::NodeId from = 0; from < static_cast<sim::NodeId>(count); ++from) {
      if (from != node) net_.block(from, node);
    }
    later(length, [this] { heal_network(); });
  } else if (fault.kind == "resets") {
    net_.reset_connections(node, other);
  } else if (fault.kind == "slow_link") {
    sim::Link link;
    link.latency_min = std::chrono::milliseconds(5 + number % 400);
    net_.set_link(node, other, link);
    later(length, [this] { net_.clear_links(); });
  } else if (fault.kind == "wipe") {
    wipe(static_cast<int>(node));
  } else if (fault.kind == "doom") {
    doom(node, number);
  } else if (fault.kind == "ambush") {
    ambush(number);
  } else if (fault.kind == "strike") {
    strikes_.push_back({draw_strike(number), static_cast<int>(node), sim_.now() + 10s});
  } else if (fault.kind == "pause") {
    sim::Machine& machine = *machines_[static_cast<std::size_t>(node)];
    if (!machine.up() || machine.paused()) return;
    machine.pause();
    later(length, [&machine] { machine.resume(); });
  } else {
    NARAD_ASSERT(false, fault.kind);
  }
}

// What is cut off for good stays so.
void World::heal_network() {
  net_.heal();
  for (const int node : cut_off_) net_.partition({node});
}

// A node whose partitions are on their way to others is gone in the middle of it, for so long that
// it is replaced: dead, or cut off and alive.
void World::doom(int node, std::uint64_t number) {
  sim::Machine& machine = *machines_[static_cast<std::size_t>(node)];
  if (!knobs_.moves || !machine.up()) return;
  for (const auto& other : machines_) {
    if (other.get() == &machine || !other->up() || !other->component<App>().started()) continue;
    other->component<App>().start_moving_away(node);
    break;
  }
  const Nanos outage = knobs_.config.timing.dead_after * 7;
  later(std::chrono::milliseconds(number), [this, node, &machine, outage, cut = number % 3 == 0] {
    down_until_[static_cast<std::size_t>(node)] = sim_.now() + outage;
    if (!cut) return machine.kill(sim::Machine::Kill::power_cut);
    cut_off_.insert(node);
    heal_network();
    later(outage, [this, node] {
      cut_off_.erase(node);
      down_until_[static_cast<std::size_t>(node)] = Nanos(0);
      heal_network();
    });
  });
}

// The next partition that is frozen loses one of those who are to end the freeze, for longer than
// the freeze lasts.
void World::ambush(std::uint64_t number) {
  if (knobs_.moves) watch_for_freezes(number, 1000);
}

void World::watch_for_freezes(std::uint64_t number, int looks) {
  look();
  const Assignment* frozen = nullptr;
  if (ownership_.newest() != nullptr) {
    ownership_.newest()->topics.for_each([&](const auto& row) {
      for (const Assignment& a : row->assignments) frozen = a.freeze_armed ? &a : frozen;
    });
  }
  if (frozen != nullptr) {
    const Nanos delay = std::chrono::milliseconds(number / 12 % 100);
    return later(delay, [this, number, a = *frozen] { strike(a, number); });
  }
  if (looks > 0) later(10ms, [this, number, looks] { watch_for_freezes(number, looks - 1); });
}

void World::strike(const Assignment& frozen, std::uint64_t number) {
  const std::string& who = number % 3 == 0 ? frozen.owner_node : frozen.target_node;
  if (number % 3 != 2 && who.empty()) return;
  const int node = number % 3 == 2 ? leader() : node_of(who);
  if (node < 0) return;
  sim::Machine& machine = *machines_[static_cast<std::size_t>(node)];
  if (!machine.up() || machine.paused()) return;
  const Nanos length = knobs_.config.timing.freeze_ttl * 5 / 4 + 500ms;
  reach_.hit(cat("ambush: ", number % 3 == 0 ? "source" : number % 3 == 1 ? "target" : "leader"));
  switch (number / 3 % 4) {
    case 0:
    case 1:
      machine.pause();
      return later(length, [&machine] { machine.resume(); });
    case 2:
      net_.partition({node});
      return later(length, [this] { heal_network(); });
    default:
      return machine.kill(sim::Machine::Kill::power_cut);
  }
}

// A node loses its whole disk: what only that disk held is gone, and nothing else may be. Once a
// run, since a majority that lost its disks is another story.
void World::wipe(int node) {
  sim::Machine& machine = *machines_[static_cast<std::size_t>(node)];
  if (wiped_ || !machine.up()) return;
  wiped_ = node;
  machine.kill(sim::Machine::Kill::power_cut);
  machine.disk().wipe();
  oracle_.disk_lost(node);
}

// An end of a fault, unless calm has come before.
void World::later(Nanos delay, std::function<void()> what) {
  sim_.after(delay, sim::kWorld, "fault ends", [this, what = std::move(what)](bool) {
    if (phase_ == Phase::faults) what();
  });
}

void World::heal() {
  cut_off_.clear();
  net_.heal();
  net_.clear_links();
  for (const auto& machine : machines_) {
    auto& disk = machine->disk();
    disk.cancel_cut();
    disk.clear_failures();
    disk.faults = sim::FsFaults{};
    if (machine->up() && machine->paused()) machine->resume();
  }
}
}  // namespace narad::simtest
