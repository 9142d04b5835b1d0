#include "internal/node/partitions.h"

#include <algorithm>
#include <utility>

#include "internal/node/record_source.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::node {

Pin::Pin(std::shared_ptr<OpenPartition> partition, const Clock& clock)
    : partition_(std::move(partition)), clock_(&clock) {
  ++partition_->pins;
  partition_->last_used = clock.mono();
}

Pin& Pin::operator=(Pin&& other) noexcept {
  release();
  partition_ = std::move(other.partition_);
  clock_ = other.clock_;
  return *this;
}

void Pin::release() {
  if (auto partition = std::exchange(partition_, nullptr)) {
    --partition->pins;
    partition->last_used = clock_->mono();
  }
}

Partitions::Partitions(Env& env, PartitionsOptions options, const DataDir& data,
                       metastore::Proposer& metastore)
    : env_(env),
      options_(std::move(options)),
      data_(data),
      metastore_(metastore),
      read_ahead_(std::make_shared<delivery::ReadAheadBudget>(options_.read_ahead_bytes)),
      cache_(std::make_shared<CacheBudget>(options_.cache_bytes)),
      shield_(env) {}

Partitions::~Partitions() = default;

std::shared_ptr<Partitions::TopicSlot> Partitions::topic_slot(const std::string& topic) {
  if (const auto at = topics_.find(topic); at != topics_.end()) return at->second;
  forget_topics();
  auto tell = [listener = wake_listener_, topic](std::uint64_t records) {
    if (*listener) (*listener)(topic, records);
  };
  auto slot = std::make_shared<TopicSlot>(env_, std::move(tell));
  topics_.emplace(topic, slot);
  return slot;
}

// Whoever works on a topic or waits for its messages holds a share of its slot, or is noted in it:
// of the others nothing is lost. Keeps their number within twice of what was in use.
void Partitions::forget_topics() {
  if (topics_.size() < forget_at_) return;
  std::erase_if(topics_, [](const auto& item) {
    const std::shared_ptr<TopicSlot>& slot = item.second;
    return slot.use_count() == 1 && slot->waiters.use_count() == 1 && !slot->waiters->wanted();
  });
  forget_at_ = std::max(kTopicsKept, topics_.size() * 2);
}

std::shared_ptr<delivery::Waiters> Partitions::topic_waiters(const std::string& topic) {
  return topic_slot(topic)->waiters;
}

void Partitions::wake_all() {
  for (auto& [topic, slot] : topics_) {
    slot->waiters->wake_all(false);
  }
}

void Partitions::wake_topic(const std::string& topic) {
  const auto it = topics_.find(topic);
  if (it == topics_.end()) return;
  const auto waiters = it->second->waiters;
  waiters->wake_all(true);
}

std::shared_ptr<OpenPartition> Partitions::find_open(const TopicPartition& id) const {
  const auto it = open_.find(id);
  return it == open_.end() ? nullptr : it->second;
}

bool Partitions::still_here(const OpenPartition& partition) const {
  const auto view = metastore_.view();
  const Assignment* row = view->assignment(partition.id.topic, partition.id.partition);
  return row != nullptr && row->incarnation == partition.incarnation &&
         row->owner_node == options_.node_id && row->owned_by_move == partition.by_move &&
         row->owner_disk == partition.disk;
}

// Not of a topic that was deleted: that is closed when it is removed.
bool Partitions::has_moved(const OpenPartition& partition) const {
  const auto view = metastore_.view();
  const Assignment* row = view->assignment(partition.id.topic, partition.id.partition);
  const bool lives = row != nullptr && row->incarnation == partition.incarnation;
  return lives && !still_here(partition);
}

std::vector<std::shared_ptr<OpenPartition>> Partitions::open_now() const {
  std::vector<std::shared_ptr<OpenPartition>> all;
  all.reserve(open_.size());
  for (const auto& [id, partition] : open_) all.push_back(partition);
  return all;
}

Result<Assignment> Partitions::check(const TopicPartition& id, Incarnation incarnation) const {
  if (closing_) return Error(Errc::unavailable, "the node is shutting down");
  const auto view = metastore_.view();
  const auto* row = view->topics.find(id.topic);
  if (row == nullptr) return Error(Errc::not_found, "topic not found");
  if (row->topic.incarnation != incarnation) {
    return Error(Errc::gone, cat("topic ", id.topic, " was deleted and created again"));
  }
  if (id.partition.value() >= row->assignments.size()) {
    return Error(Errc::not_found, cat("topic ", id.topic, " has no partition ", id.partition));
  }
  const Assignment& assignment = row->assignments[id.partition.value()];
  if (assignment.owner_node.empty()) {
    return Error(Errc::unavailable, cat("partition ", to_string(id), " has no owner yet"));
  }
  if (assignment.owner_node != options_.node_id) {
    return Error(Errc::not_owner,
                 cat("partition ", to_string(id), " is owned by node ", assignment.owner_node));
  }
  return assignment;
}

Task<Result<Pin>> Partitions::open(TopicPartition id, Incarnation incarnation, OpenFor purpose) {
  if (auto it = open_.find(id);
      it != open_.end() && it->second->incarnation == incarnation && still_here(*it->second)) {
    if (closing_) co_return Error(Errc::unavailable, "the node is shutting down");
    co_return Pin(it->second, env_.clock);
  }
  NARAD_CO_TRY(Assignment row, check(id, incarnation));
  // Its first use is an entry: without a leader it would hold the topic's lock until it gives up.
  if (!row.used && purpose == OpenFor::commit && metastore_.leader().node.empty()) {
    co_return Error(Errc::unavailable, cat("partition ", to_string(id),
                                           " was never used, and nobody leads the metadata now"));
  }
  Task<Result<Pin>> opening = open_now_or_wait(std::move(id), incarnation, purpose);
  co_return co_await shield_.run("open partition", std::move(opening));
}

Task<Result<Pin>> Partitions::open_now_or_wait(TopicPartition id, Incarnation incarnation,
                                               OpenFor purpose) {
  auto slot = topic_slot(id.topic);
  auto guard = co_await slot->lock.lock();
  // Somebody else may have opened it, or deleted the topic, while we waited.
  if (auto lives = check(id, incarnation); !lives) co_return lives.error();
  co_await close_lives(id.topic, [&](Incarnation life) { return life != incarnation; });
  if (auto it = open_.find(id); it != open_.end()) {
    const auto there = it->second;
    if (still_here(*there)) co_return Pin(there, env_.clock);
    // Of an earlier ownership: it went away, and perhaps came back to another disk.
    open_.erase(it);
    co_await close(there);
  }
  NARAD_CO_TRY(Assignment row, check(id, incarnation));
  if (!row.used && purpose == OpenFor::read) {
    co_return Error(Errc::not_found, cat("partition ", to_string(id), " was never used"));
  }
  NARAD_CO_TRY(auto opened, co_await open_files(id, row, slot));
  if (!row.used) {
    // The empty log is durable now, and no frame is in it. From this entry on an absent directory
    // means lost data, never a partition to be created.
    if (auto marked = co_await mark_used(id, row); !marked) {
      co_await close(std::move(opened));
      co_return marked.error();
    }
  }
  auto still = check(id, incarnation);
  if (still && !still_here(*opened)) {
    still = Error(Errc::unavailable, cat("partition ", to_string(id), " has just been moved"));
  }
  if (!still) {
    co_await close(std::move(opened));
    co_return still.error();
  }
  auto [it, inserted] = open_.emplace(id, std::move(opened));
  NARAD_ASSERT(inserted);
  co_return Pin(it->second, env_.clock);
}

Task<Result<void>> Partitions::mark_used(TopicPartition id, Assignment row) {
  metastore::MarkUsed command;
  command.name = id.topic;
  command.incarnation = row.incarnation;
  command.partition = id.partition;
  command.node = row.owner_node;
  command.disk = row.owner_disk;
  metastore::Command entry = std::move(command);
  NARAD_CO_TRY(auto result, co_await metastore_.propose(std::move(entry)));
  if (!result.done()) co_return metastore::to_error(result);
  co_return ok();
}

Task<Result<std::shared_ptr<OpenPartition>>> Partitions::open_files(
    TopicPartition id, Assignment row, std::shared_ptr<TopicSlot> slot) {
  const Disk* disk = data_.disk(row.owner_disk);
  if (disk == nullptr) {
    co_return Error(Errc::unavailable,
                    cat("data_missing: partition ", to_string(id), " lies on disk ", row.owner_disk,
                        ", which this node does not have"));
  }
  if (!disk->missing.empty()) {
    co_return Error(Errc::unavailable, cat("data_missing: ", disk->missing));
  }
  auto opened = std::make_shared<OpenPartition>();
  opened->id = id;
  opened->opening = ++openings_;
  opened->incarnation = row.incarnation;
  opened->disk = row.owner_disk;
  opened->by_move = row.owned_by_move;
  opened->directory = partition_path(*disk, id);
  opened->last_used = env_.clock.mono();

  auto prepare = [&fs = env_.fs, disk = *disk, id, incarnation = row.incarnation, used = row.used,
                  directory = opened->directory,
                  view = metastore_.view()]() -> Result<std::string> {
    // Another life of the name left its directory: its removal failed, or has yet to come.
    std::string aside;
    const auto life = read_topic_incarnation(fs, topic_path(disk, id.topic));
    if (life && life.value() != incarnation) {
      NARAD_TRY(aside, clear_life(fs, disk, id.topic, life.value(), *view));
    } else if (!life && life.error().code() != Errc::not_found) {
      return life.error();
    }
    NARAD_TRY(bool there, exists(fs, directory));
    if (used && !there) {
      return Error(Errc::unavailable, cat("data_missing: ", directory,
                                          " of a used partition is gone. "
                                          "Bring the disk back, or restore it from a backup."));
    }
    NARAD_TRY(make_topic_directory(fs, disk, id.topic, incarnation));
    NARAD_TRY(make_directories(fs, directory));
    return aside;
  };
  NARAD_CO_TRY(std::string aside,
               co_await blocking(env_, "partition directory", std::move(prepare)));
  if (!aside.empty()) {
    NARAD_LOG_WARN(env_.log, "directory of an earlier life of the topic set aside",
                   {"topic", id.topic}, {"path", aside});
  }

  auto acked = [&fs = env_.fs, directory = opened->directory, identity = row.incarnation.value()] {
    return delivery::acked_end(fs, directory, identity);
  };
  auto durable_below = co_await blocking(env_, "consumer state", std::move(acked));
  if (!durable_below) co_return durable_below.error().with_context(to_string(id));

  PartitionOptions options;
  options.durable_below = durable_below.value();
  options.handed_over = options_.handed_over;
  options.directory = opened->directory;
  options.name = id;
  options.incarnation = row.incarnation;
  options.create_if_missing = !row.used;
  if (options_.gate) options.gate = options_.gate(id, row);
  options.knobs = options_.log;
  options.cache = cache_;
  auto log = co_await Partition::open(env_, std::move(options));
  if (!log) {
    const Error error = log.error();
    // The files of a used partition are gone or are another log's: they may come back.
    const bool missing = error.code() == Errc::not_found || error.code() == Errc::data_loss;
    if (missing) co_return Error(Errc::unavailable, cat("data_missing: ", error.text()));
    co_return error;
  }
  opened->log = std::move(log).value();

  delivery::DeliveryConfig config;
  config.partition = id;
  config.directory = opened->directory;
  config.identity = row.incarnation.value();
  config.topic_waiters = slot->waiters;
  config.read_ahead = read_ahead_;
  auto source = std::make_shared<PartitionSource>(opened->log);
  auto delivery = co_await delivery::Delivery::open(env_, std::move(config), std::move(source));
  if (!delivery) {
    const Error error = delivery.error();
    co_await opened->log->close();
    co_return error;
  }
  opened->delivery = std::move(delivery.value());
  co_return opened;
}

Task<void> Partitions::close(std::shared_ptr<OpenPartition> partition) {
  // Delivery first: it reads the log until it is closed.
  if (auto closed = co_await partition->delivery->close(); !closed) {
    NARAD_LOG_WARN(env_.log, "consumer state not stored; what was acked last is delivered again",
                   {"partition", to_string(partition->id)}, {"error", closed.error()});
  }
  co_await partition->log->close();
}

Task<void> Partitions::close_lives(const std::string& topic,
                                   const std::function<bool(Incarnation)>& which) {
  std::vector<std::shared_ptr<OpenPartition>> doomed;
  for (const auto& [id, partition] : open_) {
    if (id.topic == topic && which(partition->incarnation)) doomed.push_back(partition);
  }
  for (auto& partition : doomed) {
    open_.erase(partition->id);
    co_await close(partition);
  }
}

Task<Result<void>> Partitions::remove_topic(std::string topic, Incarnation incarnation) {
  Task<Result<void>> removal = remove_whole_topic(std::move(topic), incarnation);
  co_return co_await shield_.run("remove topic", std::move(removal));
}

Task<Result<void>> Partitions::remove_whole_topic(std::string topic, Incarnation incarnation) {
  auto slot = topic_slot(topic);
  auto guard = co_await slot->lock.lock();
  co_await close_lives(topic, [&](Incarnation life) { return life == incarnation; });
  slot->waiters->wake_all(false);
  auto remove = [&fs = env_.fs, disks = data_.disks(), topic, incarnation]() -> Result<void> {
    for (const Disk& disk : disks) {
      if (!disk.missing.empty()) continue;  // doubt keeps data: found again when the disk is back
      // Proof: our REQUIRES; delete_topic_data checks that the directory is of this incarnation.
      NARAD_TRY(delete_topic_data(fs, disk, topic, incarnation));
    }
    return ok();
  };
  co_return co_await blocking(env_, "topic removal", std::move(remove));
}

Task<Result<std::string>> Partitions::with_closed(TopicPartition id, Check may, Work work) {
  Task<Result<std::string>> task = work_closed(std::move(id), std::move(may), std::move(work));
  co_return co_await shield_.run("work on a closed partition", std::move(task));
}

Task<Result<std::string>> Partitions::work_closed(TopicPartition id, Check may, Work work) {
  auto slot = topic_slot(id.topic);
  auto guard = co_await slot->lock.lock();
  if (closing_) co_return Error(Errc::unavailable, "the node is shutting down");
  NARAD_CO_TRY(may());
  if (auto it = open_.find(id); it != open_.end()) {
    const std::shared_ptr<OpenPartition> partition = it->second;
    open_.erase(it);
    co_await close(partition);
    NARAD_CO_TRY(may());
  }
  auto job = [&fs = env_.fs, work = std::move(work)] { return work(fs); };
  co_return co_await blocking(env_, "closed partition", std::move(job));
}

Result<std::string> clear_life(FileSystem& fs, const Disk& disk, const std::string& topic,
                               std::optional<Incarnation> life, const metastore::State& view) {
  if (life && view.was_deleted(topic, *life)) {
    // Proof: the applied state holds the deletion of this very incarnation; a crash or a bad disk
    // kept it from being carried out, or its turn has yet to come.
    NARAD_TRY(delete_topic_data(fs, disk, topic, *life));
    return std::string();
  }
  return set_aside_topic(fs, disk, topic);
}

Task<Result<std::string>> Partitions::sweep_directory(const Disk& disk, std::string topic) {
  auto slot = topic_slot(topic);
  auto guard = co_await slot->lock.lock();  // neither made, opened nor removed meanwhile
  auto job = [&fs = env_.fs, disk, topic, view = metastore_.view()]() -> Result<std::string> {
    const auto life = read_topic_incarnation(fs, topic_path(disk, topic));
    if (!life && life.error().code() != Errc::not_found) return life.error();
    const auto* row = view->topics.find(topic);
    if (life && row != nullptr && life.value() == row->topic.incarnation) return std::string();
    NARAD_TRY(bool there, exists(fs, topic_path(disk, topic)));
    if (!there) return std::string();
    const auto known = life ? std::optional(life.value()) : std::nullopt;
    return clear_life(fs, disk, topic, known, *view);
  };
  co_return co_await blocking(env_, "topic directory", std::move(job));
}

Task<Result<std::vector<Partitions::Retained>>> Partitions::apply_retention(UnixMillis now,
                                                                            bool trusted) {
  std::vector<Retained> removed;
  std::optional<Error> trouble;
  std::vector<metastore::TopicRowPtr> topics;
  metastore_.view()->topics.for_each([&](const auto& row) {
    if (row->topic.retention_ms > 0) topics.push_back(row);
  });
  for (const auto& row : topics) {
    for (std::uint32_t p = 0; p < row->assignments.size() && !closing_; ++p) {
      const Assignment& assignment = row->assignments[p];
      if (!assignment.used || assignment.owner_node != options_.node_id) continue;
      const TopicPartition id{row->topic.name, PartitionId(p)};
      auto outcome = co_await retain(id, assignment, row->topic.retention_ms, now, trusted);
      if (!outcome) {
        if (!trouble) trouble = outcome.error().with_context(to_string(id));
      } else if (outcome.value().segments > 0) {
        removed.push_back({id, outcome.value()});
      }
    }
  }
  if (trouble) co_return *trouble;
  co_return removed;
}

Task<Result<seglog::RetentionOutcome>> Partitions::retain(TopicPartition id, Assignment row,
                                                          std::int64_t retention_ms, UnixMillis now,
                                                          bool trusted) {
  auto slot = topic_slot(id.topic);
  auto guard = co_await slot->lock.lock();  // neither opened, closed nor removed meanwhile
  if (!check(id, row.incarnation)) co_return seglog::RetentionOutcome{};
  if (auto it = open_.find(id); it != open_.end()) {
    auto partition = it->second;  // not pinned: retention is no use that keeps it from being idle
    co_return co_await partition->log->apply_retention(now, retention_ms, trusted);
  }
  const Disk* disk = data_.disk(row.owner_disk);
  if (disk == nullptr || !disk->missing.empty()) co_return seglog::RetentionOutcome{};
  auto job = [&fs = env_.fs, directory = partition_path(*disk, id), now, retention_ms,
              trusted]() -> Result<seglog::RetentionOutcome> {
    NARAD_TRY(bool there, exists(fs, directory));
    if (!there) return seglog::RetentionOutcome{};
    seglog::RetentionRule rule;
    rule.now = now;
    rule.retention_ms = retention_ms;
    rule.trusted = trusted;
    return seglog::retain_cold(fs, directory, rule);
  };
  co_return co_await blocking(env_, "cold retention", std::move(job));
}

bool Partitions::is_idle(const OpenPartition& partition) const {
  auto it = open_.find(partition.id);
  if (it == open_.end() || it->second.get() != &partition || partition.pins != 0) return false;
  if (env_.clock.mono() - partition.last_used < options_.idle_close) return false;
  // Closing forgets leases, and acks that the disk has not taken yet.
  const auto stats = partition.delivery->stats();
  return stats.in_flight == 0 && stats.unsaved_acks == 0;
}

Task<bool> Partitions::close_if_idle(std::shared_ptr<OpenPartition> partition) {
  auto slot = topic_slot(partition->id.topic);
  auto guard = co_await slot->lock.lock();
  if (!is_idle(*partition)) co_return false;
  open_.erase(partition->id);  // nobody finds it any more; opening it again waits for the lock
  co_await close(partition);
  co_return true;
}

Task<bool> Partitions::close_if_elsewhere(std::shared_ptr<OpenPartition> partition) {
  auto slot = topic_slot(partition->id.topic);
  auto guard = co_await slot->lock.lock();
  if (find_open(partition->id) != partition || !has_moved(*partition)) co_return false;
  open_.erase(partition->id);
  co_await close(partition);
  wake_topic(partition->id.topic);
  NARAD_LOG_INFO(env_.log, "partition closed: it has another home now",
                 {"partition", to_string(partition->id)}, {"directory", partition->directory});
  co_return true;
}

Task<std::size_t> Partitions::close_elsewhere() {
  std::size_t closed = 0;
  for (auto& partition : open_now()) {
    if (closing_ || !has_moved(*partition)) continue;
    Task<bool> closing = close_if_elsewhere(partition);
    closed += co_await shield_.run("close partition", std::move(closing)) ? 1 : 0;
  }
  co_return closed;
}

Task<std::size_t> Partitions::close_idle() {
  if (options_.idle_close <= Nanos(0)) co_return 0;
  std::size_t closed = 0;
  for (auto& partition : open_now()) {
    if (!is_idle(*partition)) continue;
    Task<bool> closing = close_if_idle(partition);
    closed += co_await shield_.run("close idle partition", std::move(closing)) ? 1 : 0;
  }
  co_return closed;
}

Task<void> Partitions::close_all() {
  closing_ = true;
  co_await shield_.drain();
  while (!open_.empty()) {
    auto partition = open_.begin()->second;
    auto slot = topic_slot(partition->id.topic);
    auto guard = co_await slot->lock.lock();
    auto it = open_.find(partition->id);
    if (it == open_.end() || it->second != partition) continue;
    open_.erase(it);
    co_await close(partition);
  }
}

}  // namespace narad::node
