#include "internal/moves/runner.h"

#include <algorithm>
#include <map>
#include <utility>

#include "internal/metastore/move_budget.h"
#include "internal/metastore/pass_gate.h"
#include "internal/moves/worker.h"
#include "pkg/base/text.h"

namespace narad::moves {

struct Runner::Impl {
  Impl(Env& e, std::string node_id, metastore::Proposer& m, SourceCalls& source,
       LeaderCalls& leader, InstallPlace& place, RunnerTiming timing)
      : env(e),
        shop{e,      std::move(node_id),
             m,      source,
             leader, place,
             timing, Throttle(e, timing.bytes_per_second),
             {}},
        tasks(e) {}

  Env& env;
  Workshop shop;
  std::map<RaftIndex, std::shared_ptr<Worker>> workers;  // by move id
  std::vector<std::function<void()>> listeners;
  using Seen = std::pair<RaftIndex, RaftIndex>;  // versions of topics and assignments
  metastore::PassGate<Seen> gate{shop.timing.full_pass};
  metastore::Receivers receivers;  // as the assignments had it that were read last
  Nanos next_tick{0};
  std::vector<MoveKey> leftovers;  // moves of which an earlier process left something staged
  std::vector<MoveDisk> unseen;    // disks whose staging could not be looked at wholly
  Nanos look_again{0};             // at those
  TaskGroup tasks;

  Task<void> run();
  Task<void> take_stock(std::vector<MoveDisk> disks);
  Task<bool> take_stock_of(MoveDisk disk);
  bool at_work(const MoveDisk& disk, const std::string& directory) const;
  Task<void> dispose_nameless(StagingPlace place);
  Task<void> take_up_leftovers();
  void look(bool is_tick);
  Seen versions() const;
  void set_throttle();
  bool read_assignments();
  bool start_worker(MoveKey key);
  Task<void> work(std::shared_ptr<Worker> worker);
};

Runner::Impl::Seen Runner::Impl::versions() const {
  const metastore::ViewPtr view = shop.metastore.view();
  return {view->versions.topics, view->versions.assignments};
}

// What each worker holds in memory bounds how many there are: twice what the planner ever begins,
// so that an operator's orders stand in nobody's way. Blocked and paused ones hold nothing.
constexpr std::ptrdiff_t kWorkersMax = 16;

// One move after the other of which this node is the target. False if one of them has to wait.
bool Runner::Impl::read_assignments() {
  const metastore::ViewPtr view = shop.metastore.view();
  bool all = true;
  receivers = {};
  std::ptrdiff_t room = kWorkersMax - std::count_if(workers.begin(), workers.end(),
                                                    [](auto& w) { return !w.second->idle(); });
  view->topics.for_each([&](const metastore::TopicRowPtr& row) {
    for (std::size_t p = 0; p < row->assignments.size(); ++p) {
      const Assignment& a = row->assignments[p];
      receivers.see(a);
      const bool here = a.move_id.value() != 0 && a.target_node == shop.node_id &&
                        !(a.owner_node == shop.node_id && a.owner_disk == a.target_disk);
      if (!here || a.owner_node.empty() || workers.contains(a.move_id)) continue;
      if (room <= 0) {
        all = false;
        continue;
      }
      MoveKey key;
      key.partition = {row->topic.name, PartitionId(static_cast<std::uint32_t>(p))};
      key.incarnation = a.incarnation;
      key.move_id = a.move_id;
      key.source = a.owner_node;
      key.self = shop.node_id;
      key.disk = a.target_disk;
      const bool begun = start_worker(std::move(key));
      if (begun) --room;
      all = begun && all;
    }
  });
  return all;
}

// False if a worker of an earlier move of that partition has not ended yet.
bool Runner::Impl::start_worker(MoveKey key) {
  for (const auto& [id, worker] : workers) {
    if (worker->key().partition == key.partition) return false;
  }
  const RaftIndex id = key.move_id;
  auto worker = std::make_shared<Worker>(shop, std::move(key));
  workers.emplace(id, worker);
  ++shop.stats.started;
  tasks.spawn("move", work(std::move(worker)));
  return true;
}

Task<void> Runner::Impl::work(std::shared_ptr<Worker> worker) {
  co_await worker->run();
  co_await worker->stop();
  shop.reserved.erase(worker->key().move_id);
  workers.erase(worker->key().move_id);
  gate.reset();  // RUN-5
  // One that waited for it starts at once.
  shop.metastore.changed().notify_all();
}

void Runner::Impl::look(bool is_tick) {
  const Seen at = versions();
  if (gate.may_skip(at, env.clock.mono())) {
    if (is_tick) ++shop.stats.skipped_ticks;
    return;
  }
  ++shop.stats.full_passes;
  gate.reset();
  if (!read_assignments()) return;  // RUN-4
  gate.passed(at, env.clock.mono());
}

// What an earlier process left in staging. No worker begins meanwhile.
Task<void> Runner::Impl::take_stock(std::vector<MoveDisk> disks) {
  for (MoveDisk& disk : disks) {
    if (disk.usable && !co_await take_stock_of(disk)) unseen.push_back(std::move(disk));
  }
  look_again = env.clock.mono() + shop.timing.full_pass;
  if (!leftovers.empty()) tasks.spawn("leftover staging", take_up_leftovers());
}

// False if some of it could not be read: that may be over the next time.
Task<bool> Runner::Impl::take_stock_of(MoveDisk disk) {
  const auto unread = [&](const std::string& path, const Error& why) {
    NARAD_LOG_WARN(env.log, "move: staging of earlier moves could not be looked at; trying again",
                   {"path", path}, {"why", why});
  };
  const std::string staging = join_path(disk.path, ".moves");
  auto find = [&fs = env.fs, staging] { return find_staging(fs, staging); };
  auto places = co_await blocking(env, "find staging", std::move(find));
  if (!places) {
    unread(staging, places.error());
    co_return false;
  }
  bool all = true;
  for (StagingPlace& place : places.value()) {
    if (at_work(disk, place.directory)) continue;
    if (!place.found) {
      unread(place.directory, place.found.error());
      all = false;
    } else if (const auto& record = place.found.value().record) {
      leftovers.push_back({record->partition, record->incarnation, record->move_id, record->source,
                           shop.node_id, disk.id});
    } else {
      co_await dispose_nameless(std::move(place));
    }
  }
  co_return all;
}

// Whether the place is a living worker's own: that one sees to what it finds there.
bool Runner::Impl::at_work(const MoveDisk& disk, const std::string& directory) const {
  const std::string staging = join_path(disk.path, ".moves");
  return std::any_of(workers.begin(), workers.end(), [&](const auto& w) {
    const MoveKey& key = w.second->key();
    return key.disk == disk.id && directory == join_path(staging, staging_name(key.partition));
  });
}

// Nobody can tell which move it was of.
Task<void> Runner::Impl::dispose_nameless(StagingPlace place) {
  auto dispose = [&fs = env.fs, place]() -> Result<std::string> {
    if (place.found.value().holds_records) return set_aside_staging(fs, place.directory);
    // Proof: it holds no record.
    NARAD_TRY(remove_staging(fs, place.directory));
    return std::string();
  };
  auto disposed = co_await blocking(env, "dispose of staging", std::move(dispose));
  if (!disposed) {
    NARAD_LOG_WARN(env.log, "move: staging of an unknown move stays", {"path", place.directory},
                   {"why", disposed.error()});
  } else if (!disposed.value().empty()) {
    ++shop.stats.set_aside;
    NARAD_LOG_ERROR(env.log,
                    "move: what was staged may hold records that are nowhere else; set aside",
                    {"path", disposed.value()}, {"end", place.found.value().end});
  }
}

// A move that ended while this node was away has left its staging: a worker finds out, and
// disposes of it. One that goes on has a worker anyway.
Task<void> Runner::Impl::take_up_leftovers() {
  // By a state older than a move that move has ended.
  while (!leftovers.empty() && !co_await shop.metastore.barrier(shop.timing.barrier_deadline)) {
    co_await sleep_for(env, shop.timing.retry);
  }
  for (const MoveKey& key : std::exchange(leftovers, {})) {
    const RowSeen seen = row_seen(*shop.metastore.view(), key);
    const bool goes_on = seen.row && seen.row->move_id == key.move_id;
    if (!goes_on) start_worker(key);
  }
}

// What the cluster has agreed on comes before this node's own configuration. A source that sends to
// this node alone is held to what this node may receive.
void Runner::Impl::set_throttle() {
  const std::uint64_t budget =
      shop.metastore.view()->move_rate.value_or(shop.timing.bytes_per_second);
  shop.throttle.set_rate(budget);
  for (auto& [node, throttle] : shop.from) {
    const std::size_t n = node == shop.node_id ? 1 : receivers.of(node);
    throttle.set_rate(n == 1 ? 0 : metastore::sending_share(budget, n));
  }
}

Task<void> Runner::Impl::run() {
  set_throttle();
  co_await take_stock(shop.place.disks());
  next_tick = env.clock.mono();
  for (;;) {
    const bool is_tick = env.clock.mono() >= next_tick;
    if (is_tick) next_tick = env.clock.mono() + shop.timing.tick;
    for (const auto& [id, worker] : workers) worker->poke();
    if (!unseen.empty() && env.clock.mono() >= look_again) {
      co_await take_stock(std::exchange(unseen, {}));
    }
    look(is_tick);
    set_throttle();  // a worker that has just begun acts after this
    if (is_tick) {
      for (const auto& listener : listeners) listener();
    }
    const Nanos left = next_tick - env.clock.mono();
    if (left > Nanos(0)) (void)co_await shop.metastore.changed().wait_for(left);
  }
}

Runner::Runner(Env& env, std::string node_id, metastore::Proposer& metastore, SourceCalls& source,
               LeaderCalls& leader, InstallPlace& place, RunnerTiming timing)
    : impl_(std::make_unique<Impl>(env, std::move(node_id), metastore, source, leader, place,
                                   timing)) {}

Runner::~Runner() = default;

void Runner::start() { impl_->tasks.spawn("move runner", impl_->run()); }

Task<void> Runner::stop() {
  co_await impl_->tasks.stop();
  // Their tasks were cancelled; what they had started beside themselves ends here.
  for (auto& [id, worker] : impl_->workers) co_await worker->stop();
  impl_->workers.clear();
}

std::vector<wire::MoveReport> Runner::reports() const {
  std::vector<wire::MoveReport> out;
  for (const auto& [id, worker] : impl_->workers) out.push_back(worker->report());
  return out;
}

RunnerStats Runner::stats() const {
  RunnerStats stats = impl_->shop.stats;
  stats.blocked_unverifiable = stats.blocked_copy_behind = stats.blocked_went_back = 0;
  for (const auto& [id, worker] : impl_->workers) {
    const std::string_view why = worker->blocked();
    if (why == "copy_unverifiable") ++stats.blocked_unverifiable;
    if (why == "source_dead_copy_behind") ++stats.blocked_copy_behind;
    if (why == "source_went_back") ++stats.blocked_went_back;
  }
  return stats;
}

void Runner::give_way_to(std::function<std::uint64_t()> written) {
  impl_->shop.pace.follow(std::move(written));
}

void Runner::on_tick(std::function<void()> listener) {
  impl_->listeners.push_back(std::move(listener));
}

}  // namespace narad::moves
