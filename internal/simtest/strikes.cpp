// One partition that moves under load: at the step of the move that a strike names, one who takes
// part in it is paused, cut off or killed.
#include <algorithm>

#include "internal/simtest/parts.h"

namespace narad::simtest {

using namespace std::chrono_literals;

namespace {

constexpr Nanos kOperatorRests = 300ms;
constexpr Nanos kOtherMoveFor = 50ms;

template <class T>
T pick(Rng& random, std::initializer_list<T> from) {
  return *(from.begin() + static_cast<std::ptrdiff_t>(random.below(from.size())));
}

std::string_view name_of(Strike::Victim victim) {
  switch (victim) {
    case Strike::Victim::source:
      return "source";
    case Strike::Victim::target:
      return "target";
    case Strike::Victim::leader:
      return "leader";
    case Strike::Victim::source_target:
      return "source from target";
    case Strike::Victim::source_leader:
      return "source from leader";
    case Strike::Victim::target_leader:
      return "target from leader";
  }
  return "?";
}

std::string_view name_of(Strike::Action action) {
  switch (action) {
    case Strike::Action::pause:
      return "paused";
    case Strike::Action::cut_off:
      return "cut off";
    case Strike::Action::power_cut:
      return "power cut";
    case Strike::Action::kill9:
      return "killed";
  }
  return "?";
}

}  // namespace

// Everything follows from the number.
Strike World::draw_strike(std::uint64_t number) const {
  using Victim = Strike::Victim;
  using Action = Strike::Action;
  Rng random(sim::derive(number, "strike"));
  const Config::Timing& timing = knobs_.config.timing;
  Strike s;
  s.phase = pick<const char*>(random, {"copying", "freezing", "draining", "fencing", "installing",
                                       "installing", "flipping"});
  // Most soon after it was seen, some up to 20 ms later.
  const std::uint64_t dice = random.below(20);
  s.delay = std::chrono::microseconds(dice * dice * 50);
  s.victim = pick(random, {Victim::source, Victim::source, Victim::source, Victim::target,
                           Victim::target, Victim::target, Victim::leader, Victim::source_target,
                           Victim::source_leader, Victim::target_leader});
  const bool link = s.victim >= Victim::source_target;
  s.action = link ? Action::cut_off
                  : pick(random, {Action::pause, Action::pause, Action::pause, Action::cut_off,
                                  Action::cut_off, Action::power_cut, Action::kill9});
  // Within a freeze; past it; past the mark that calls a node dead; until it is replaced.
  const Nanos freeze = timing.freeze_ttl, dead = timing.dead_after;
  s.length = pick(random, {freeze / 2, freeze * 2 + 500ms, freeze * 2 + 500ms, dead * 2, dead * 8});
  s.retargeted = random.below(s.victim == Victim::target ? 2 : 4) == 0;
  const std::uint64_t aim = random.below(4);
  if (aim == 0) {
    // An owner that is replaced while it lives: it is away for long, and the copy was whole.
    s.phase = pick<const char*>(random, {"copying", "copying", "freezing", "draining"});
    s.victim = Victim::source;
    s.action = pick(random, {Action::pause, Action::cut_off});
    s.length = dead * 8;
    s.retargeted = false;
    s.whole = true;
    s.in_commit = s.phase == "copying" && s.action == Action::pause;
    if (s.in_commit) s.delay = Nanos(0);
    s.source_returns = random.below(2) == 0;
  } else if (aim == 1) {
    // A flip that comes late: its freeze, or its move, is over by then.
    s.phase = pick<const char*>(random, {"fencing", "installing", "installing"});
    s.victim = random.below(4) == 0 ? Victim::source : Victim::target;
    s.action = s.victim == Victim::source ? Action::cut_off : Action::pause;
    s.length = freeze * 2 + 500ms;
    s.retargeted = random.below(2) == 0;
  }
  return s;
}

App* World::anybody() {
  for (const auto& machine : machines_) {
    if (machine->up() && !machine->paused() && !cut_off_.contains(machine->id()) &&
        machine->component<App>().started())
      return &machine->component<App>();
  }
  return nullptr;
}

int World::leader() {
  int found = -1;
  for (const auto& machine : machines_) {
    if (!machine->up() || !machine->component<App>().started()) continue;
    if (machine->component<App>().node().metastore().leader().is_self) found = machine->id();
  }
  return found;
}

// No step may pass unseen: a former owner closes what it had soon after it hears of the flip.
void World::watch_moves() {
  look();
  if (!former_owners_.empty()) check_former_owners();
  if (strikes_.empty()) return;
  const AwaitedStrike first = strikes_.front();
  if (sim_.now() > first.until) {
    reach_.hit("strike: never came");
  } else if (!watch_for(first.strike, first.node)) {
    return;
  }
  strikes_.erase(strikes_.begin());
}

bool World::watch_for(const Strike& strike, int node) {
  if (ownership_.newest() == nullptr) return false;
  const Assignment* row = ownership_.newest()->assignment(kTopics[0], PartitionId(0));
  if (row == nullptr || !row->used) return false;
  if (row->target_node.empty()) {
    move_on(*row, node);
    return false;
  }
  const auto& machine = machines_[static_cast<std::size_t>(node_of(row->target_node))];
  if (!machine->up() || !machine->component<App>().started()) return false;
  for (const wire::MoveReport& report : machine->component<App>().node().move_reports()) {
    if (report.move.move_id != row->move_id || report.phase != strike.phase) continue;
    if (strike.whole && (report.bytes_total == 0 || report.bytes_done < report.bytes_total))
      continue;
    if (strike.in_commit && !commits_now(node_of(row->owner_node))) continue;
    later(strike.delay, [this, a = *row, strike] { strike_at(a, strike); });
    return true;
  }
  return false;
}

// Whether a commit that has passed the gate is not answered yet.
bool World::commits_now(int node) {
  sim::Machine& machine = *machines_[static_cast<std::size_t>(node)];
  if (!machine.up() || !machine.component<App>().started()) return false;
  for (const auto& open : machine.component<App>().node().partitions().open_now()) {
    if (open->log->log_end() > open->log->hwm()) return true;
  }
  return false;
}

// The operator: to one of the others, `node` says which.
void World::move_on(const Assignment& row, int node) {
  App* app = anybody();
  if (app == nullptr || sim_.now() < operator_rests_until_) return;
  operator_rests_until_ = sim_.now() + kOperatorRests;
  std::vector<const metastore::Member*> others;
  ownership_.newest()->members.for_each([&](const auto& m) {
    const bool free = m->id != row.owner_node && m->id != row.target_node && !m->disks.empty();
    if (free && m->status == metastore::MemberStatus::alive) others.push_back(m.get());
  });
  if (others.empty()) return;
  move_to(*app, row, *others[static_cast<std::size_t>(node) % others.size()]);
}

void World::move_to(App& app, const Assignment& row, const metastore::Member& to) {
  metastore::SetTarget set;
  set.name = kTopics[0];
  set.incarnation = row.incarnation;
  set.partition = PartitionId(0);
  set.owner_node = row.owner_node;
  set.move_id = row.move_id;
  set.target_node = to.id;
  set.target_disk = to.disks.front();
  set.reason = "operator";
  set.now = app.wall_millis();
  app.propose(std::move(set));
}

void World::strike_at(const Assignment& row, Strike strike) {
  using Victim = Strike::Victim;
  const int source = node_of(row.owner_node), target = node_of(row.target_node);
  const int leads = leader();
  if (leads < 0 && strike.victim != Victim::source && strike.victim != Victim::target) return;
  const std::string what =
      cat(name_of(strike.action), " at ", strike.phase, ": ", name_of(strike.victim));
  reach_.hit(cat("strike: ", what));
  knobs_.text +=
      cat("\n  at ", format_duration(sim_.now()), " for ", format_duration(strike.length), ", ",
          what, strike.retargeted ? ", retargeted" : "",
          strike.source_returns ? ", returns when it would be replaced" : "",
          strike.replaces ? ", the source is back" : "");
  if (strike.replaces) bring_back(source);
  switch (strike.victim) {
    case Victim::source:
      hold(source, strike);
      break;
    case Victim::target:
      hold(target, strike);
      break;
    case Victim::leader:
      hold(leads, strike);
      break;
    case Victim::source_target:
      separate(source, target, strike.length);
      break;
    case Victim::source_leader:
      separate(source, leads, strike.length);
      break;
    case Victim::target_leader:
      separate(target, leads, strike.length);
      break;
  }
  if (strike.source_returns) await_replacement(target, strike);
  if (!strike.retargeted) return;
  // So late that the other move is under way, and not done, when the strike ends.
  later(strike.length - std::min(strike.length / 2, kOtherMoveFor), [this, move = row.move_id] {
    const Assignment* now = ownership_.newest()->assignment(kTopics[0], PartitionId(0));
    if (now != nullptr && now->move_id == move) move_on(*now, 0);
  });
}

void World::hold(int node, const Strike& strike) {
  sim::Machine& machine = *machines_[static_cast<std::size_t>(node)];
  if (!machine.up() || machine.paused()) return;
  switch (strike.action) {
    case Strike::Action::pause:
      machine.pause();
      return later(strike.length, [&machine] { machine.resume(); });
    case Strike::Action::cut_off:
      cut_off_.insert(node);
      heal_network();
      return later(strike.length, [this, node] {
        cut_off_.erase(node);
        heal_network();
      });
    case Strike::Action::power_cut:
    case Strike::Action::kill9:
      down_until_[static_cast<std::size_t>(node)] = sim_.now() + strike.length;
      return machine.kill(strike.action == Strike::Action::kill9 ? sim::Machine::Kill::process_exit
                                                                 : sim::Machine::Kill::power_cut);
  }
}

// The target is about to take the place of a source that was away for long: now that one is back,
// and the target stands still for a while.
void World::await_replacement(int target, const Strike& strike) {
  Strike next;
  next.phase = "installing";
  next.victim = Strike::Victim::target;
  next.action = Strike::Action::pause;
  next.length = knobs_.config.timing.freeze_ttl * 2 + 500ms;
  next.replaces = true;
  strikes_.insert(strikes_.begin(), {next, target, sim_.now() + strike.length});
}

void World::bring_back(int node) {
  cut_off_.erase(node);
  heal_network();
  machines_[static_cast<std::size_t>(node)]->resume();
}

void World::separate(int a, int b, Nanos length) {
  if (a == b) return;
  net_.block(a, b);
  net_.block(b, a);
  later(length, [this, a, b] {
    net_.unblock(a, b);
    net_.unblock(b, a);
  });
}

}  // namespace narad::simtest
