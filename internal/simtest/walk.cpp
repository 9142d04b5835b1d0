// One move, walked through step by step: its steps are counted once, then something is done at each
// of them in a run of its own.
#include <algorithm>

#include "internal/simtest/parts.h"

namespace narad::simtest {

using namespace std::chrono_literals;

namespace {

constexpr Nanos kWarmUp = 2s;
constexpr Offset kEarlier{5};         // a state that may come back
constexpr Offset kRecordsFirst{120};  // some segments; more than what is on its way at a time
constexpr Nanos kLookEvery = 100ms;
// Past every time limit of a move but the one after which a dead source is replaced, which is five
// times dead_after; by clocks that are slow.
constexpr Nanos kPassing = 4500ms;
constexpr Nanos kLasting = 26s;
// A node that hears of no leader serves after a minute from what it knows.
constexpr Nanos kServesAnyway = 75s;
constexpr Nanos kRecovery = 20s;
constexpr std::uint64_t kLastingOf = 8;
// Around the flip, so many messages before and after.
constexpr std::uint64_t kRaceBefore = 75, kRaceAfter = 6;

constexpr Role kAllRoles[] = {Role::source, Role::target, Role::leader};

bool at_a_disk_call(Deed deed) { return deed == Deed::cut_before || deed == Deed::cut_torn; }

bool is_marked(sim::FsCall call) {
  using sim::FsCall;
  return call == FsCall::sync || call == FsCall::sync_dir || call == FsCall::rename ||
         call == FsCall::remove || call == FsCall::rmdir;
}

// The roles that are machines of their own.
std::vector<Role> roles_of(const WalkSteps& steps) {
  if (steps.leader_apart) return {kAllRoles, kAllRoles + kRoles};
  return {Role::source, Role::target};
}

}  // namespace

std::string_view to_string(Role role) {
  switch (role) {
    case Role::source:
      return "source";
    case Role::target:
      return "target";
    case Role::leader:
      return "leader";
  }
  return "?";
}

std::string_view to_string(Deed deed) {
  switch (deed) {
    case Deed::none:
      return "none";
    case Deed::cut_before:
      return "cut-before";
    case Deed::cut_torn:
      return "cut-torn";
    case Deed::kill9:
      return "kill9";
    case Deed::power_cut:
      return "power-cut";
    case Deed::pause:
      return "pause";
    case Deed::separate_all_but:
      return "separate-all-but";
    case Deed::reborn_apart:
      return "reborn-apart";
    case Deed::reverted:
      return "reverted";
    case Deed::abort:
      return "abort";
  }
  return "?";
}

sim::Plan walk_plan(std::uint64_t seed, const WalkPoint& point) {
  sim::Plan plan;
  plan.scenario = kWalkScenario;
  plan.seed = seed;
  if (point.deed == Deed::none) return plan;
  plan.options["deed"] = static_cast<std::int64_t>(point.deed);
  plan.options["role"] = static_cast<std::int64_t>(point.role);
  plan.options["step"] = static_cast<std::int64_t>(point.step);
  plan.options["lasting"] = point.lasting ? 1 : 0;
  return plan;
}

std::vector<WalkPoint> walk_points(const WalkSteps& steps, std::uint64_t every,
                                   std::uint64_t start) {
  std::vector<WalkPoint> out;
  std::uint64_t unmarked = 0;
  const auto wanted = [&](bool marked) {
    if (marked || every == 0) return marked;
    return unmarked++ % every == start % every;
  };
  // Where steps are left out, so are most of what lasts.
  std::uint64_t lasting = 0;
  const auto add = [&](Deed deed, Role role, std::uint64_t step) {
    out.push_back({deed, role, step, false});
    if (every <= 1 || lasting++ % kLastingOf == start % kLastingOf) {
      out.push_back({deed, role, step, true});
    }
  };
  const std::vector<Role> roles = roles_of(steps);
  for (const Role role : roles) {
    const auto& calls = steps.calls[static_cast<std::size_t>(role)];
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (!wanted(calls[i])) continue;
      add(Deed::cut_before, role, i + 1);
      add(Deed::cut_torn, role, i + 1);
    }
  }
  for (std::size_t i = 0; i < steps.messages.size(); ++i) {
    if (!wanted(steps.messages[i])) continue;
    for (const Role role : roles) {
      for (const Deed deed : {Deed::kill9, Deed::power_cut, Deed::pause}) add(deed, role, i + 1);
    }
    out.push_back({Deed::reborn_apart, Role::source, i + 1, true});
    for (const Role spared : kAllRoles) {
      // Of two machines there is one pair.
      if (steps.leader_apart || spared == Role::leader) add(Deed::separate_all_but, spared, i + 1);
    }
  }
  for (std::size_t i = 0; i < steps.covered.size(); ++i) {
    if (steps.covered[i]) out.push_back({Deed::reverted, Role::source, i + 1, false});
  }
  for (std::uint64_t i = steps.flip - std::min(steps.flip, kRaceBefore) + 1;
       i <= std::min<std::uint64_t>(steps.flip + kRaceAfter, steps.messages.size()); ++i) {
    for (const Role role : roles) out.push_back({Deed::abort, role, i, false});
  }
  return out;
}

// It starts when there is something to move, with the leader as an onlooker if that can be.
void World::start_walk() {
  if (sim_.now() < kWarmUp || ownership_.newest() == nullptr) return;
  const Assignment* row = ownership_.newest()->assignment(kTopics[0], PartitionId(0));
  App* app = anybody();
  const int leads = leader();
  if (row == nullptr || !row->used || app == nullptr || leads < 0) return;
  const int source = node_of(row->owner_node);
  const auto open =
      machines_[static_cast<std::size_t>(source)]->component<App>().node().partitions().find_open(
          {kTopics[0], PartitionId(0)});
  if (open == nullptr || open->log->hwm() < kEarlier) return;
  if (walk_.earlier == nullptr)
    walk_.earlier = machines_[static_cast<std::size_t>(source)]->disk().clone();
  if (open->log->hwm() < kRecordsFirst) return;
  const metastore::Member* to = nullptr;
  ownership_.newest()->members.for_each([&](const auto& m) {
    if (m->id == row->owner_node || m->disks.empty()) return;
    if (to == nullptr || node_of(m->id) != leads) to = m.get();
  });
  if (to == nullptr) return;
  const int target = node_of(to->id);
  walk_.started = true;
  walk_.incarnation = row->incarnation;
  walk_.nodes[0] = source;
  walk_.nodes[1] = target;
  walk_.nodes[2] = leads;
  walk_.steps.leader_apart = leads != source && leads != target;
  walk_.chunks = net_.stats.chunks;
  walk_.ends_at = sim_.now() + kLasting + kRecovery;
  for (const Role role : kAllRoles) {
    auto& calls = walk_.steps.calls[static_cast<std::size_t>(role)];
    if (role == Role::leader && !walk_.steps.leader_apart) continue;
    of_role(role).disk().set_watch([this, &calls](sim::FsCall call, const std::string&) {
      if (!walk_.steps.whole && phase_ == Phase::faults) calls.push_back(is_marked(call));
    });
  }
  if (at_a_disk_call(walk_.point.deed)) {
    using Cut = sim::SimFs::Cut;
    of_role(walk_.point.role)
        .kill_at_disk_call(
            walk_.point.step, sim::Machine::Kill::power_cut,
            walk_.point.deed == Deed::cut_torn ? Cut::during_call : Cut::before_call);
  }
  move_to(*app, *row, *to);
}

bool World::watch_walk() {
  if (!walk_.started) {
    if (sim_.now() >= walk_.look_at) {
      walk_.look_at = sim_.now() + kLookEvery;
      look();
      start_walk();
    }
    return false;
  }
  look();
  if (!former_owners_.empty()) check_former_owners();
  if (net_.stats.chunks != walk_.chunks) count_message();
  if (sim_.now() < walk_.look_at) return false;
  walk_.look_at = sim_.now() + kLookEvery;
  const Assignment* row = ownership_.newest()->assignment(kTopics[0], PartitionId(0));
  if (row == nullptr) return false;
  walk_.begun = walk_.begun || walk_.struck || !row->target_node.empty() ||
                node_of(row->owner_node) != walk_.nodes[0];
  if (walk_.begun && row->target_node.empty() && !row->freeze_armed && leftovers().empty())
    walk_.steps.whole = true;
  if (walk_.point.deed != Deed::none && !walk_.struck) {
    // A run that ends before the step comes has no such step.
    if (!walk_.steps.whole) return sim_.now() >= walk_.ends_at;
    reach_.hit("walk: the step never came");
    return true;
  }
  if (walk_.struck && sim_.now() < walk_.heals_at) return false;
  return walk_.steps.whole || sim_.now() >= walk_.ends_at;
}

// What the nodes show of the move: another text, another step of it.
std::string World::shown_of_move() {
  std::string text;
  if (const auto* row = ownership_.newest()->assignment(kTopics[0], PartitionId(0))) {
    text =
        cat(row->owner_node, row->target_node, row->move_id, row->freeze_epoch, row->freeze_armed);
  }
  sim::Machine& target = of_role(Role::target);
  if (!target.up() || !target.component<App>().started()) return text;
  for (const auto& report : target.component<App>().node().move_reports()) {
    text += cat(report.phase, report.bytes_done);
  }
  return text;
}

// More than one may come with one step of the simulation, but not to one node.
void World::count_message() {
  walk_.chunks = net_.stats.chunks;
  if (walk_.steps.whole || walk_.struck) return;
  auto& messages = walk_.steps.messages;
  std::string shown = shown_of_move();
  const bool marked = std::exchange(walk_.shown, shown) != shown;
  if (marked && !messages.empty()) messages.back() = true;
  messages.push_back(marked);
  walk_.steps.covered.push_back(shown.find("fencing") != std::string::npos ||
                                shown.find("installing") != std::string::npos);
  const auto owner = owner_of({{kTopics[0], PartitionId(0)}, walk_.incarnation});
  if (walk_.steps.flip == 0 && owner && *owner != walk_.nodes[0])
    walk_.steps.flip = messages.size();
  const Deed deed = walk_.point.deed;
  if (deed != Deed::none && !at_a_disk_call(deed) && messages.size() == walk_.point.step)
    walk_strikes();
}

void World::walk_strikes() {
  const WalkPoint& point = walk_.point;
  const int* nodes = walk_.nodes;
  const Nanos length = point.deed == Deed::reborn_apart ? kServesAnyway
                       : point.lasting                  ? kLasting
                                                        : kPassing;
  sim::Machine& machine = of_role(point.role);
  walk_.struck = true;
  walk_.heals_at = sim_.now() + length;
  walk_.ends_at = walk_.heals_at + (point.lasting ? Nanos(0) : kRecovery);
  reach_.hit(cat("walk: ", to_string(point.deed), ": ", to_string(point.role)));
  switch (point.deed) {
    case Deed::kill9:
      return machine.kill(sim::Machine::Kill::process_exit);
    case Deed::power_cut:
      return machine.kill(sim::Machine::Kill::power_cut);
    case Deed::pause:
      machine.pause();
      return later(length, [&machine] { machine.resume(); });
    case Deed::separate_all_but: {
      const auto spared = static_cast<std::size_t>(point.role);
      return separate(nodes[(spared + 1) % kRoles], nodes[(spared + 2) % kRoles], length);
    }
    case Deed::reborn_apart:
      cut_off_.insert(machine.id());
      heal_network();
      return machine.kill(sim::Machine::Kill::power_cut);
    case Deed::reverted:
      return revert(machine);
    case Deed::abort:
      walk_.heals_at = sim_.now();
      walk_.abort_answer = "nothing";
      return machine.component<App>().start_aborting();
    case Deed::none:
    case Deed::cut_before:
    case Deed::cut_torn:
      return;
  }
}

// A volume that was set back to a snapshot.
void World::revert(sim::Machine& machine) {
  const TopicPartition id{kTopics[0], PartitionId(0)};
  std::string directory;
  if (const auto open = machine.component<App>().node().partitions().find_open(id)) {
    directory = open->directory;
  }
  if (directory.empty()) return;
  // What it had last is where it was staged, and nowhere else.
  oracle_.promoted({id, walk_.incarnation});
  machine.kill(sim::Machine::Kill::power_cut);
  sim::SimFs& disk = machine.disk();
  sim::SimFs& earlier = *walk_.earlier;
  const auto now = disk.list(directory), then = earlier.list(directory);
  NARAD_ASSERT(now && then);
  for (const std::string& name : now.value()) {
    NARAD_ASSERT(disk.remove(join_path(directory, name)));
  }
  for (const std::string& name : then.value()) {
    const std::string path = join_path(directory, name);
    NARAD_ASSERT(replace_file(disk, path, *earlier.seen_bytes(path)));
  }
}

void App::start_aborting() { clients_.spawn("abort", abort_the_move()); }

Task<void> App::abort_the_move() {
  metastore::AbortWish wish;
  wish.partition = {kTopics[0], PartitionId(0)};
  auto answer = co_await node_.broker().abort_move(std::move(wish), "aborted by an operator");
  world_.walk_abort_answered(answer);
}

void World::walk_abort_answered(const Result<metastore::AbortAnswer>& answer) {
  walk_.abort_answer = !answer                  ? answer.error().text()
                       : answer.value().aborted ? "aborted"
                                                : answer.value().refusal.rule;
  reach_.hit(cat("abort: ", walk_.abort_answer));
  look();
  const auto owner = owner_of({{kTopics[0], PartitionId(0)}, walk_.incarnation});
  walk_.moved_at_answer = owner && *owner != walk_.nodes[0];
}

// Nothing else is wrong in that run: the answer is one of two, and what it says is so for good.
void World::check_walk_abort() {
  if (walk_.abort_answer.empty()) return;
  const auto owner = owner_of({{kTopics[0], PartitionId(0)}, walk_.incarnation});
  const bool moved = !owner || *owner != walk_.nodes[0];
  // Asked after its end there is no move.
  const std::string& answer = walk_.abort_answer;
  if (answer == "aborted" && !moved) return;
  if ((answer == "already_moved" || answer == "no_move") && moved && walk_.moved_at_answer) return;
  oracle_.violation(cat("the abort was answered \"", answer, "\", and the partition ",
                        moved ? "has moved" : "has not moved"));
}

// By the deed, at a disk call or not.
void World::walk_went_down(int node) {
  if (phase_ != Phase::faults || !walk_.started) return;
  if (node != of_role(walk_.point.role).id()) return;
  if (at_a_disk_call(walk_.point.deed) && !walk_.struck) walk_strikes();
  if (walk_.point.lasting && walk_.struck)
    down_until_[static_cast<std::size_t>(node)] = walk_.heals_at;
}

}  // namespace narad::simtest
