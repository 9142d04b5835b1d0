// Partitions on the move: an operator who moves them about, what must hold of owners and former
// owners, and what must be left of it all in the end.
#include <algorithm>

#include "internal/metastore/move_rules.h"
#include "internal/moves/local_copy.h"
#include "internal/simtest/parts.h"
#include "pkg/seglog/frame.h"
#include "pkg/seglog/names.h"
#include "pkg/seglog/scan.h"

namespace narad::simtest {

using namespace std::chrono_literals;

namespace {

constexpr Nanos kLookEvery = 250ms;
constexpr Nanos kMovesMax = 400s;  // after all faults, until every move has ended by itself

bool is_aside(std::string_view name) { return name.find(".quarantine") != std::string_view::npos; }

// Every record of a copy that verifies, whatever became of its directory.
void read_copy(FileSystem& fs, const std::string& directory,
               const std::function<void(std::string_view payload)>& found) {
  const auto copy = moves::read_local_copy(fs, directory);
  if (!copy || !copy.value().log) return;
  for (const auto& segment : copy.value().segments) {
    const auto bytes =
        read_file(fs, join_path(directory, seglog::segment_name(segment.base)), 1u << 28);
    if (!bytes) continue;
    seglog::MemorySource source(bytes.value());
    seglog::ScanOptions options;
    options.log = *copy.value().log;
    options.expected = segment.base;
    options.bytes = bytes.value().size();
    seglog::SegmentScanner scanner(source, options);
    Bytes scratch;
    for (auto more = scanner.next(); more && more.value(); more = scanner.next()) {
      const auto& item = scanner.item();
      if (!item.verified || item.header.is_control()) continue;
      const auto raw = seglog::raw_payload(item.header, item.stored, scratch);
      if (!raw) continue;
      seglog::RecordReader records(raw.value());
      for (auto r = records.next(); r && r.value(); r = records.next()) found(r.value()->payload);
    }
  }
}

}  // namespace

// ---- the operator ------------------------------------------------------------------------------

Task<void> App::mover() {
  Rng random = stream("mover", 0);
  while (world_.phase_ == Phase::faults) {
    co_await sleep_for(env_, pause(random, 3s));
    co_await move_somewhere(random);
  }
}

Task<void> App::move_somewhere(Rng& random) {
  const auto row = node_.broker().view()->topics.get(kTopics[random.below(std::size(kTopics))]);
  if (!row) co_return;
  const PartitionId partition(static_cast<std::uint32_t>(random.below(row->topic.partitions)));
  auto command = draw_move(random, *row, partition);
  if (!command) co_return;
  auto result = co_await node_.metastore().propose(std::move(*command));
  if (result && result.value().done()) world_.reach_.hit("operator: moved, retargeted or aborted");
}

// Where it goes, or that it stays after all.
std::optional<metastore::Command> App::draw_move(Rng& random, const metastore::TopicRow& row,
                                                 PartitionId partition) {
  const Assignment& a = row.assignments[partition.value()];
  const bool moving = !a.target_node.empty();
  const std::uint64_t dice = random.below(4);
  if (moving && dice == 0) {
    metastore::ClearTarget clear;
    clear.name = row.topic.name;
    clear.incarnation = row.topic.incarnation;
    clear.partition = partition;
    clear.target_node = a.target_node;
    clear.move_id = a.move_id;
    clear.reason = cat(metastore::kAbortedBy, "an operator");
    clear.now = env_.clock.wall_millis();
    return clear;
  }
  if (moving && dice != 1) return std::nullopt;  // most are left to themselves
  std::vector<const metastore::Member*> others;
  node_.broker().view()->members.for_each([&](const auto& m) {
    if (m->id != a.owner_node && m->status == metastore::MemberStatus::alive && !m->disks.empty())
      others.push_back(m.get());
  });
  if (others.empty() || a.owner_node.empty()) return std::nullopt;
  const metastore::Member& to = *others[random.below(others.size())];
  metastore::SetTarget set;
  set.name = row.topic.name;
  set.incarnation = row.topic.incarnation;
  set.partition = partition;
  set.owner_node = a.owner_node;
  set.move_id = a.move_id;
  set.target_node = to.id;
  set.target_disk = to.disks.front();
  set.reason = "operator";
  set.now = env_.clock.wall_millis();
  return set;
}

void App::start_moving_away(int node) { clients_.spawn("move away", move_away(node)); }

// Everything that the node owns goes elsewhere.
Task<void> App::move_away(int node) {
  Rng random = stream("move away", static_cast<std::uint64_t>(node));
  for (const auto& row : topics()) {
    for (std::uint32_t p = 0; p < row->topic.partitions; ++p) {
      const Assignment& a = row->assignments[p];
      if (a.owner_node != host_of(node) || !a.target_node.empty()) continue;
      auto command = draw_move(random, *row, PartitionId(p));
      if (command) propose(std::move(*command));
    }
  }
  co_return;
}

void App::propose(metastore::Command command) {
  clients_.spawn("propose", propose_one(this, std::move(command)));
}

Task<void> App::propose_one(App* app, metastore::Command command) {
  (void)co_await app->node_.metastore().propose(std::move(command));
}

// ---- who owns what -----------------------------------------------------------------------------

void World::look() {
  bool any = false;
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    if (!machines_[i]->up()) continue;
    App& app = machines_[i]->component<App>();
    if (!app.started()) continue;
    metastore::ViewPtr view = app.node().broker().view();
    if (view == shown_[i]) continue;
    any = true;
    shown_[i] = view;
    const metastore::ViewPtr& newest = ownership_.newest();
    if (newest == nullptr || view->applied > newest->applied) note_deaths(*view);
    for (const auto& change : ownership_.shown(view)) changed_hands(change);
  }
  ownership_.asked_all(sim_.now());
  if (any) check_former_owners();
}

void World::note_deaths(const metastore::State& state) {
  state.members.for_each([&](const auto& m) {
    if (m->status != metastore::MemberStatus::dead) {
      died_at_.erase(m->id);
    } else {
      died_at_.emplace(m->id, sim_.now());
    }
  });
}

// An owner is replaced only after it has counted as dead for four times dead_after, by a clock that
// is less than half too fast. One that was alive just now may have committed what nobody copied.
void World::check_silence(const Ownership::Change& change) {
  const auto died = died_at_.find(change.from);
  const bool counts_as_dead = died != died_at_.end();
  const Nanos dead_for = counts_as_dead ? sim_.now() - died->second : Nanos(0);
  if (dead_for >= knobs_.config.timing.dead_after * 2) return;
  oracle_.violation(cat(change.to, " took the place of ", change.from, " at ",
                        to_string(change.log.partition), ", which had counted as dead for ",
                        format_duration(dead_for)));
}

void World::look_regularly() {
  look();
  check_former_owners();
  if (phase_ != Phase::faults) release_brakes();
  sim_.after(kLookEvery, sim::kWorld, "look", [this](bool) { look_regularly(); });
}

void World::changed_hands(const Ownership::Change& change) {
  using metastore::MoveOutcome;
  if (change.from.empty()) return;
  reach_.hit(cat("partition ",
                 change.how == MoveOutcome::running ? "assigned anew" : to_string(change.how)));
  const int from = node_of(change.from);
  const auto at = static_cast<std::size_t>(from);
  sim::Machine& machine = *machines_[at];
  if (change.how == MoveOutcome::moved) {
    // What a life knew that ended just now, perhaps between the freeze and the flip, is not told.
    const bool same_life = sim_.now() - went_down_at_[at] > 15s;
    oracle_.moved(change.log, same_life ? change.armed_after : Nanos(0),
                  life_of(at, machine.boots()));
  } else if (change.how == MoveOutcome::promoted) {
    check_silence(change);
    oracle_.promoted(change.log);
    if (wiped_ == from) oracle_.copies_lost(change.log);
  }
  if (change.from == change.to) return;  // it owns it again
  if (!machine.up() || !machine.component<App>().started()) return;
  // One that is not open may be opened by the same node when it owns the partition again.
  for (const auto& open : machine.component<App>().node().partitions().open_now()) {
    if (open->id != change.log.partition || open->incarnation != change.log.incarnation) continue;
    former_owners_.push_back({change.log, from, machine.boots(), open->opening, open->log->hwm()});
  }
}

// From the moment that anybody shows another owner nothing is committed by the one before.
void World::check_former_owners() {
  std::erase_if(former_owners_, [&](const FormerOwner& f) {
    sim::Machine& machine = *machines_[static_cast<std::size_t>(f.node)];
    if (!machine.up() || machine.boots() != f.boots || !machine.component<App>().started())
      return true;
    for (const auto& open : machine.component<App>().node().partitions().open_now()) {
      if (open->opening != f.opening) continue;
      if (open->log->hwm() == f.hwm) return false;
      oracle_.violation(cat(host_of(f.node), " committed to ", to_string(f.log.partition),
                            " up to ", open->log->hwm(), " after another node had taken over at ",
                            f.hwm));
    }
    return true;
  });
}

// ---- the end -----------------------------------------------------------------------------------

bool World::moves_ended() {
  look();
  const metastore::ViewPtr& state = ownership_.newest();
  bool ended = true;
  state->topics.for_each([&](const auto& row) {
    for (const Assignment& a : row->assignments) {
      ended = ended && a.target_node.empty() && !a.freeze_armed;
    }
  });
  return ended;
}

void World::name_moves() {
  ownership_.newest()->topics.for_each([&](const auto& row) {
    for (std::size_t p = 0; p < row->assignments.size(); ++p) {
      const Assignment& a = row->assignments[p];
      if (a.target_node.empty() && !a.freeze_armed) continue;
      oracle_.violation(cat("move ", a.move_id, " of ", row->topic.name, "/", p, " from ",
                            a.owner_node, " (disk ", a.owner_disk, ") to ", a.target_node,
                            " (disk ", a.target_disk, ")", a.freeze_armed ? ", frozen," : "",
                            " is still under way"));
    }
  });
}

// What its target says of the move, and whether it is paused.
std::string World::standing_of(const Assignment& move) {
  std::string text = ownership_.newest()->paused(move) ? "; it is paused" : "";
  const auto& machine = machines_[static_cast<std::size_t>(node_of(move.target_node))];
  if (!machine->up() || !machine->component<App>().started()) return text + "; its target is down";
  for (const wire::MoveReport& report : machine->component<App>().node().move_reports()) {
    if (report.move.move_id != move.move_id) continue;
    return text + cat("; it is ", report.phase, ", ", report.bytes_done, " of ", report.bytes_total,
                      " bytes, attempt ", report.attempts, ", pass ", report.passes, ": ",
                      report.last_error);
  }
  return text + "; its target does not work on it";
}

// What an operator does about a move from or to a disk that is gone for good, or that came back
// with less.
void World::abort_moves() {
  App& app = machines_[0]->component<App>();
  for (const auto& row : app.topics()) {
    for (std::uint32_t p = 0; p < row->assignments.size(); ++p) {
      const Assignment& a = row->assignments[p];
      if (a.target_node.empty()) continue;
      if (!wiped_ && !quiet()) {
        oracle_.violation(cat("the move of ", row->topic.name, "/", p, " from ", a.owner_node,
                              " to ", a.target_node, " does not end by itself", standing_of(a)));
      }
      metastore::ClearTarget clear;
      clear.name = row->topic.name;
      clear.incarnation = row->topic.incarnation;
      clear.partition = PartitionId(p);
      clear.target_node = a.target_node;
      clear.move_id = a.move_id;
      clear.reason = cat(metastore::kAbortedBy, "an operator: its disk is gone");
      clear.now = app.wall_millis();
      app.propose(std::move(clear));
    }
  }
}

// No target, no freeze, nothing staged, no copy where nobody owns it; and that for a while.
bool World::end_moves() {
  const auto over = [&] { return each_node([](App&) { return true; }) && moves_ended(); };
  // A move from a source that has less than before waits for an operator.
  const Nanos patience = quiet() ? Nanos(30s) : kMovesMax;
  if (!sim_.run_until(every(1s, over), patience)) abort_moves();
  if (!settle("the end of all moves", every(1s, over))) {
    name_moves();
    return false;
  }
  const auto clean = [&] { return over() && leftovers().empty(); };
  if (sim_.run_until(every(1s, clean), kMovesMax)) return true;
  for (const std::string& path : leftovers()) {
    oracle_.violation(cat("left behind by moves that have ended: ", path));
  }
  return false;
}

// Staging, and copies of partitions on nodes that do not own them.
std::vector<std::string> World::leftovers() const {
  std::vector<std::string> found;
  for (const auto& machine : machines_) {
    for (const std::string& path : machine->disk().all_paths()) {
      if (path.back() != '/' || is_aside(path)) continue;
      const std::size_t staging = path.find("/.moves/");
      if (staging != std::string::npos && path.size() > staging + 8) {
        found.push_back(cat(machine->host(), ":", path));
      }
      const std::size_t topics = path.find("/topics/");
      if (topics == std::string::npos) continue;
      const std::string rest = path.substr(topics + 8, path.size() - topics - 9);
      const std::size_t slash = rest.find('/');
      if (slash == std::string::npos || rest.find('/', slash + 1) != std::string::npos) continue;
      const auto* row = ownership_.newest()->topics.find(rest.substr(0, slash));
      const std::string name = rest.substr(slash + 1);
      if (row == nullptr) continue;
      for (std::uint32_t p = 0; p < row->assignments.size(); ++p) {
        if (name == partition_directory_name(PartitionId(p)) &&
            row->assignments[p].owner_node != machine->host())
          found.push_back(cat(machine->host(), ":", path));
      }
    }
  }
  return found;
}

// What a dead owner committed last is in its own copy, which somebody has set aside by now.
void World::read_copies_set_aside() {
  for (const auto& machine : machines_) {
    for (const std::string& path : machine->disk().all_paths()) {
      if (path.back() != '/' || !is_aside(path)) continue;
      const std::string directory = path.substr(0, path.size() - 1);
      for (const auto& row : machines_[0]->component<App>().topics()) {
        if (path.find(row->topic.name) == std::string::npos) continue;
        for (std::uint32_t p = 0; p < row->assignments.size(); ++p) {
          const LogName log{{row->topic.name, PartitionId(p)}, row->topic.incarnation};
          if (!oracle_.contested(log)) continue;
          read_copy(machine->disk(), directory,
                    [&](std::string_view payload) { oracle_.set_aside(log, payload); });
        }
      }
    }
  }
}

}  // namespace narad::simtest
