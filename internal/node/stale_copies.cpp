#include "internal/node/stale_copies.h"

#include <utility>

#include "internal/moves/local_copy.h"
#include "pkg/base/text.h"

namespace narad::node {
namespace {

using moves::LocalCopy;
using moves::StaleCopy;

// Of another node, for certain, and not on its way here.
bool elsewhere(const Assignment& a, const std::string& self) {
  return !a.owner_node.empty() && a.owner_node != self && a.target_node != self;
}

// The directories of one topic. Incarnation and ownership come from one state, and the directory's
// own incarnation has to be the same (SWP-15).
Result<void> find_in_topic(FileSystem& fs, const Disk& disk, const metastore::TopicRow& row,
                           const std::string& self, std::vector<StaleCopy>& found) {
  const std::string& topic = row.topic.name;
  const auto life = read_topic_incarnation(fs, topic_path(disk, topic));
  if (!life && life.error().code() == Errc::not_found) return ok();
  if (!life) return life.error();
  if (life.value() != row.topic.incarnation) return ok();  // swept apart (SWP-14)
  NARAD_TRY(auto partitions, list_partition_directories(fs, disk, topic));
  for (const PartitionId p : partitions) {
    if (p.value() >= row.assignments.size()) continue;
    const Assignment& a = row.assignments[p.value()];
    if (!elsewhere(a, self)) continue;
    const TopicPartition id{topic, p};
    found.push_back({id, life.value(), disk.id, partition_path(disk, id), a.owner_node, a.used});
  }
  return ok();
}

Error other_life(const StaleCopy& copy) {
  return Error(Errc::conflict, cat("the directory of topic ", copy.partition.topic,
                                   " belongs to another life of it by now"));
}

Result<void> check_life(FileSystem& fs, const Disk& disk, const StaleCopy& copy) {
  NARAD_TRY(auto life, read_topic_incarnation(fs, topic_path(disk, copy.partition.topic)));
  if (life != copy.incarnation) return other_life(copy);
  return ok();
}

}  // namespace

StaleCopies::StaleCopies(Env& env, std::string node_id, const DataDir& data, Partitions& partitions,
                         metastore::Proposer& metastore, std::function<bool()> clock_trusted)
    : env_(env),
      node_id_(std::move(node_id)),
      data_(data),
      partitions_(partitions),
      metastore_(metastore),
      clock_trusted_(std::move(clock_trusted)) {}

Task<Result<std::vector<StaleCopy>>> StaleCopies::stale_copies() {
  auto job = [&fs = env_.fs, disks = data_.disks(), view = metastore_.view(),
              self = node_id_]() -> Result<std::vector<StaleCopy>> {
    std::vector<StaleCopy> found;
    for (const Disk& disk : disks) {
      if (!disk.missing.empty()) continue;
      NARAD_TRY(auto topics, list_topic_directories(fs, disk));
      for (const std::string& topic : topics) {
        const auto row = view->topics.get(topic);
        if (!row) continue;
        NARAD_TRY(find_in_topic(fs, disk, *row, self, found));
      }
    }
    return found;
  };
  co_return co_await blocking(env_, "stale copies", std::move(job));
}

Task<Result<LocalCopy>> StaleCopies::inspect(StaleCopy copy) {
  auto job = [&fs = env_.fs, directory = copy.directory] {
    return moves::read_local_copy(fs, directory);
  };
  co_return co_await blocking(env_, "stale copy", std::move(job));
}

Result<void> StaleCopies::still_stale(const StaleCopy& copy) const {
  const auto view = metastore_.view();
  const auto* row = view->topics.find(copy.partition.topic);
  if (row == nullptr || row->topic.incarnation != copy.incarnation) return other_life(copy);
  const std::uint32_t p = copy.partition.partition.value();
  if (p >= row->assignments.size()) return other_life(copy);
  const Assignment& a = row->assignments[p];
  if (!elsewhere(a, node_id_) || a.owner_node != copy.owner) {
    return Error(Errc::conflict, "the partition has another owner, or comes back here");
  }
  if (a.used != copy.used) {
    return Error(Errc::conflict, "the partition has been used since this copy was looked at");
  }
  return ok();
}

Task<Result<void>> StaleCopies::reclaim(StaleCopy copy, LocalCopy seen) {
  const Disk* disk = data_.disk(copy.disk_id);
  if (disk == nullptr) co_return Error(Errc::unavailable, "the disk is not there");
  auto may = [this, copy] { return still_stale(copy); };
  auto work = [disk = *disk, copy, seen](FileSystem& fs) -> Result<std::string> {
    NARAD_TRY(check_life(fs, disk, copy));
    NARAD_TRY(LocalCopy now, moves::read_local_copy(fs, copy.directory));
    if (now.end != seen.end || now.log != seen.log) {
      return Error(Errc::conflict, "the copy has changed since it was looked at");
    }
    // Proof: our REQUIRES; the state shows the same owner, and the copy is what was judged.
    NARAD_TRY(delete_partition_data(fs, disk, copy.partition));
    return std::string();
  };
  NARAD_CO_TRY(co_await partitions_.with_closed(copy.partition, std::move(may), std::move(work)));
  co_return ok();
}

Task<Result<std::string>> StaleCopies::set_aside(StaleCopy copy, std::string why) {
  const Disk* disk = data_.disk(copy.disk_id);
  if (disk == nullptr) co_return Error(Errc::unavailable, "the disk is not there");
  auto may = [this, copy] { return still_stale(copy); };
  auto work = [disk = *disk, copy, why = std::move(why)](FileSystem& fs) -> Result<std::string> {
    NARAD_TRY(check_life(fs, disk, copy));
    return set_aside_partition(fs, disk, copy.partition, why);
  };
  co_return co_await partitions_.with_closed(copy.partition, std::move(may), std::move(work));
}

}  // namespace narad::node
