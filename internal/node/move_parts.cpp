#include "internal/node/move_parts.h"

#include <utility>

#include "internal/node/cluster_plane.h"
#include "internal/node/install_place.h"
#include "internal/node/move_timing.h"
#include "internal/node/own_source.h"
#include "internal/node/quarantine.h"
#include "internal/node/remote_source.h"
#include "internal/node/source_partitions.h"
#include "internal/node/stale_copies.h"
#include "pkg/base/assert.h"

namespace narad::node {

// From attach() on; the second half on a node with peers only.
struct MoveParts::Parts {
  std::unique_ptr<SourcePartitions> source_partitions;
  std::unique_ptr<OwnSource> own;
  std::unique_ptr<RemoteSource> owners;
  std::unique_ptr<RemoteLeader> leader;
  std::unique_ptr<CopyPlace> place;
  std::unique_ptr<StaleCopies> stale_copies;
  std::unique_ptr<moves::Runner> runner;
  std::unique_ptr<moves::Sweep> sweep;
};

namespace {

std::unique_ptr<metastore::Proposer> wrapped(const MoveHooks::WrapMetastore& hook,
                                             metastore::Proposer& metastore) {
  return hook ? hook(metastore) : nullptr;
}

}  // namespace

MoveParts::MoveParts(Env& env, const Config& config, const DataDir& data,
                     metastore::Proposer& metastore, ClusterPlane* plane, MoveHooks hooks)
    : env_(env),
      config_(config),
      data_(data),
      metastore_(metastore),
      plane_(plane),
      hooks_(std::move(hooks)),
      node_id_(data.identity().node_id),
      source_metastore_(wrapped(hooks_.source_metastore, metastore)),
      runner_metastore_(wrapped(hooks_.runner_metastore, metastore)),
      parts_(std::make_unique<Parts>()),
      sweep_due_(env),
      tasks_(env) {
  moves::SourceTiming timing = source_timing(config);
  timing.move_lease = hooks_.move_lease.value_or(timing.move_lease);
  source_ = std::make_unique<moves::Source>(
      env, node_id_, source_metastore_ ? *source_metastore_ : metastore, plane != nullptr,
      [this] { return lease_proof(); }, timing);
}

MoveParts::~MoveParts() = default;

// The last answered heartbeat of this process; a partition that is being moved is committed to
// under it (moves.md, "Move lease").
std::optional<moves::LeaseProof> MoveParts::lease_proof() const {
  if (plane_ == nullptr) return std::nullopt;
  const auto& last = plane_->membership().heartbeats().last();
  if (!last) return std::nullopt;
  return moves::LeaseProof{last->sent_boot, last->index};
}

std::shared_ptr<CommitGate> MoveParts::gate(const TopicPartition& id, const Assignment& row) {
  auto gate = source_->gate(id, row);
  return hooks_.gate ? hooks_.gate(std::move(gate)) : gate;
}

void MoveParts::attach(Partitions& partitions, std::function<bool()> clock_trusted) {
  parts_->source_partitions = std::make_unique<SourcePartitions>(
      env_, partitions, source_metastore_ ? *source_metastore_ : metastore_);
  parts_->own = std::make_unique<OwnSource>(*source_);
  source_->attach(*parts_->source_partitions);
  source_->start();
  if (plane_ != nullptr) open_runner(partitions, std::move(clock_trusted));
}

void MoveParts::open_runner(Partitions& partitions, std::function<bool()> clock_trusted) {
  Parts& p = *parts_;
  p.owners = std::make_unique<RemoteSource>(plane_->caller(), node_id_, *p.own);
  p.leader = std::make_unique<RemoteLeader>(
      plane_->caller(), node_id_, [this] { return metastore_.leader().node; },
      [this](std::string node) { return plane_->silence(std::move(node)); });
  p.place = std::make_unique<CopyPlace>(env_, node_id_, data_, partitions, metastore_);
  p.stale_copies = std::make_unique<StaleCopies>(env_, node_id_, data_, partitions, metastore_,
                                                 std::move(clock_trusted));
  moves::RunnerTiming timing = runner_timing(config_);
  timing.plant_believes_less = hooks_.believes_less;
  p.runner = std::make_unique<moves::Runner>(env_, node_id_,
                                             runner_metastore_ ? *runner_metastore_ : metastore_,
                                             *p.owners, *p.leader, *p.place, timing);
  p.sweep = std::make_unique<moves::Sweep>(env_, node_id_, metastore_, *p.owners, *p.stale_copies);
  p.runner->on_tick([this] {
    if (parts_->sweep->tick()) sweep_due_.notify_all();
  });
}

MoveDesk MoveParts::desk() {
  NARAD_ASSERT(parts_->runner != nullptr);
  MoveDesk desk;
  desk.source = parts_->own.get();
  desk.reports = [this] { return wire::MoveReports{reports()}; };
  desk.silence = [this](std::string node) { return plane_->silence(std::move(node)); };
  desk.quarantine = [this] { return list_quarantined(env_, data_.disks()); };
  return desk;
}

void MoveParts::start(std::function<std::uint64_t()> accepted) {
  if (parts_->runner == nullptr) return;
  parts_->runner->give_way_to(
      [this, accepted = std::move(accepted)] { return accepted() + source_->stats().commits; });
  tasks_.spawn("sweep of moves", sweep_loop());
  parts_->runner->start();
}

// In a task of its own, so that it holds up no move (the ticks of a sweep that runs are passed
// over).
Task<void> MoveParts::sweep_loop() {
  for (;;) {
    co_await sweep_due_.wait();
    if (auto swept = co_await parts_->sweep->run(); !swept) {
      NARAD_LOG_WARN(env_.log, "copies of partitions that live elsewhere were not looked at",
                     {"error", swept.error()});
    }
  }
}

Task<void> MoveParts::stop_working() {
  if (parts_->runner) co_await parts_->runner->stop();
  co_await tasks_.stop();
}

Task<void> MoveParts::stop() { co_await source_->stop(); }

std::vector<wire::MoveReport> MoveParts::reports() const {
  return parts_->runner ? parts_->runner->reports() : std::vector<wire::MoveReport>{};
}

MoveStats MoveParts::stats() const {
  MoveStats stats;
  stats.source = source_->stats();
  if (parts_->runner) stats.runner = parts_->runner->stats();
  if (parts_->sweep) stats.sweep = parts_->sweep->stats();
  return stats;
}

}  // namespace narad::node
