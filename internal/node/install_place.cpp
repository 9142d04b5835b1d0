#include "internal/node/install_place.h"

#include <utility>

#include "internal/moves/staging.h"
#include "pkg/base/text.h"

namespace narad::node {
namespace {

// INS-5, INC-6: the directory may have become another life's since the state was looked at.
Result<void> check_life(FileSystem& fs, const Disk& disk, const std::string& topic,
                        Incarnation incarnation) {
  NARAD_TRY(auto life, read_topic_incarnation(fs, topic_path(disk, topic)));
  if (life == incarnation) return ok();
  return Error(Errc::conflict,
               cat(topic_path(disk, topic), " belongs to incarnation ", to_hex16(life.value()),
                   " of the topic, not ", to_hex16(incarnation.value())));
}

// Whether the directory is the copy that this move makes.
Result<bool> is_copy_of(FileSystem& fs, const std::string& directory, RaftIndex move_id) {
  NARAD_TRY(auto marker, moves::read_marker(fs, directory));
  return marker && marker->move_id == move_id;
}

// What an earlier ownership left at the path makes room: set aside if it holds any record, whatever
// the incoming copy holds (INS-2, INS-3). Answers where it is now, or nothing.
Result<std::string> make_room(FileSystem& fs, const Disk& disk, const TopicPartition& tp) {
  const std::string path = partition_path(disk, tp);
  NARAD_TRY(auto found, moves::inspect_staging(fs, path));
  if (!found.present) return std::string();
  if (found.holds_records) {
    return set_aside_partition(fs, disk, tp,
                               "it lay at the path of a copy that a move has brought");
  }
  // Proof: its headers were walked, and no frame of it holds a record.
  NARAD_TRY(delete_partition_data(fs, disk, tp));
  return std::string();
}

}  // namespace

CopyPlace::CopyPlace(Env& env, std::string node_id, const DataDir& data, Partitions& partitions,
                     metastore::Proposer& metastore)
    : env_(env),
      node_id_(std::move(node_id)),
      data_(data),
      partitions_(partitions),
      metastore_(metastore) {}

moves::MoveDisk CopyPlace::disk(const std::string& id) const {
  const Disk* disk = data_.disk(id);
  if (disk == nullptr) return {id, {}, false};
  return {disk->id, disk->path, disk->missing.empty()};
}

std::vector<moves::MoveDisk> CopyPlace::disks() const {
  std::vector<moves::MoveDisk> out;
  for (const Disk& disk : data_.disks()) out.push_back(this->disk(disk.id));
  return out;
}

std::string CopyPlace::partition_directory(const std::string& disk_id,
                                           const TopicPartition& partition) const {
  const Disk* disk = data_.disk(disk_id);
  return disk == nullptr ? std::string() : partition_path(*disk, partition);
}

Result<Disk> CopyPlace::usable(const std::string& disk_id) const {
  const Disk* disk = data_.disk(disk_id);
  if (disk == nullptr) {
    return Error(Errc::unavailable, cat("this node does not have disk ", disk_id));
  }
  if (!disk->missing.empty()) return Error(Errc::unavailable, disk->missing);
  return *disk;
}

Result<void> CopyPlace::still_this_life(const TopicPartition& partition,
                                        Incarnation incarnation) const {
  const auto view = metastore_.view();
  const auto* row = view->topics.find(partition.topic);
  if (row == nullptr || row->topic.incarnation != incarnation) {
    return Error(Errc::conflict, cat("topic ", partition.topic, " is not incarnation ",
                                     to_hex16(incarnation.value()), " (any more, or yet)"));
  }
  for (const auto& open : partitions_.open_now()) {
    if (open->id.topic == partition.topic && open->incarnation != incarnation) {
      return Error(Errc::unavailable,
                   cat("an earlier life of topic ", partition.topic, " is still being removed"));
    }
  }
  return ok();
}

Result<void> CopyPlace::not_the_owner(const TopicPartition& partition,
                                      const std::string& disk_id) const {
  const auto view = metastore_.view();
  const Assignment* row = view->assignment(partition.topic, partition.partition);
  if (row == nullptr || row->owner_node != node_id_ || row->owner_disk != disk_id) return ok();
  return Error(Errc::conflict, cat("this node owns partition ", to_string(partition)));
}

Task<Result<void>> CopyPlace::prepare(TopicPartition partition, Incarnation incarnation,
                                      std::string disk_id) {
  NARAD_CO_TRY(const Disk disk, usable(disk_id));
  auto may = [this, partition, incarnation] { return still_this_life(partition, incarnation); };
  auto work = [disk, topic = partition.topic, incarnation,
               view = metastore_.view()](FileSystem& fs) -> Result<std::string> {
    std::string aside;
    const auto life = read_topic_incarnation(fs, topic_path(disk, topic));
    if (life && life.value() != incarnation) {
      NARAD_TRY(aside, clear_life(fs, disk, topic, life.value(), *view));
    } else if (!life && life.error().code() != Errc::not_found) {
      return life.error();
    }
    NARAD_TRY(make_topic_directory(fs, disk, topic, incarnation));
    return aside;
  };
  NARAD_CO_TRY(const std::string aside,
               co_await partitions_.with_closed(partition, std::move(may), std::move(work)));
  if (!aside.empty()) {
    NARAD_LOG_WARN(env_.log, "directory of an earlier life of the topic set aside",
                   {"topic", partition.topic}, {"path", aside});
  }
  co_return ok();
}

Task<Result<std::string>> CopyPlace::install(TopicPartition partition, Incarnation incarnation,
                                             std::string disk_id, std::string staged) {
  NARAD_CO_TRY(const Disk disk, usable(disk_id));
  auto may = [this, partition, incarnation, disk_id]() -> Result<void> {
    NARAD_TRY(not_the_owner(partition, disk_id));
    return still_this_life(partition, incarnation);
  };
  auto work = [disk, partition, incarnation, staged](FileSystem& fs) -> Result<std::string> {
    NARAD_TRY(check_life(fs, disk, partition.topic, incarnation));
    NARAD_TRY(bool there, exists(fs, staged));
    if (!there) return Error(Errc::not_found, cat(staged, " is not there"));
    NARAD_TRY(const std::string aside, make_room(fs, disk, partition));
    const std::string path = partition_path(disk, partition);
    NARAD_TRY(fs.rename(staged, path));
    NARAD_TRY(moves::settle_install(fs, path, staged));
    return aside;
  };
  auto done = co_await partitions_.with_closed(partition, std::move(may), std::move(work));
  if (done && !done.value().empty()) {
    NARAD_LOG_ERROR(env_.log,
                    "move: a copy from an earlier ownership lay at the partition's path and holds "
                    "records; set aside",
                    {"partition", to_string(partition)}, {"path", done.value()});
  }
  co_return done;
}

Task<Result<void>> CopyPlace::take_off(TopicPartition partition, Incarnation incarnation,
                                       std::string disk_id, std::string staged, RaftIndex move_id) {
  NARAD_CO_TRY(const Disk disk, usable(disk_id));
  auto may = [this, partition, incarnation, disk_id]() -> Result<void> {
    NARAD_TRY(not_the_owner(partition, disk_id));
    return still_this_life(partition, incarnation);
  };
  auto work = [disk, partition, incarnation, staged,
               move_id](FileSystem& fs) -> Result<std::string> {
    NARAD_TRY(check_life(fs, disk, partition.topic, incarnation));
    const std::string path = partition_path(disk, partition);
    // INS-6: move ids never come again, so the marker names the very directory that was put there.
    NARAD_TRY(const bool at_path, is_copy_of(fs, path, move_id));
    NARAD_TRY(const bool at_staged, is_copy_of(fs, staged, move_id));
    if (!at_path && !at_staged) {
      return Error(Errc::conflict, cat(path, " does not hold the copy of move ", move_id));
    }
    if (at_path) {
      // Proof: our REQUIRES; nothing is removed, and this node does not own the partition.
      NARAD_TRY(fs.rename(path, staged));
    }
    NARAD_TRY(moves::settle_install(fs, path, staged));
    return std::string();
  };
  NARAD_CO_TRY(co_await partitions_.with_closed(partition, std::move(may), std::move(work)));
  co_return ok();
}

}  // namespace narad::node
