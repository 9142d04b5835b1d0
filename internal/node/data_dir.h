#pragma once
// The data directory of one node: who may use it (LOCK), whose it is (node.json), which disks
// belong to it (disk.id on each), and where things lie in it (storage.md, "Data directory").
// Synchronous: run inside a blocking job, or before the loop starts.
#include <memory>
#include <string>
#include <vector>

#include "internal/model/names.h"
#include "pkg/env/fs.h"
#include "pkg/env/random.h"
#include "pkg/raft/configuration.h"

namespace narad::node {

// Identity lives here, not in an address.
struct Identity {
  std::string node_id;
  std::uint64_t cluster_id = 0;  // 0: belongs to no cluster yet
  // The configuration with which this node founded its cluster, or means to (written before the
  // Raft store): empty if it joined.
  std::vector<raft::Member> founding;
  bool joined = false;  // a cluster of others
  UnixMillis created_at{0};
  std::vector<std::string> disk_ids;  // of every disk this node has ever had, in order of arrival
};

struct Adoption {
  std::uint64_t cluster_id = 0;
  bool joined = false;                 // a cluster of others; else this node founds it
  std::vector<raft::Member> founding;  // with this configuration; empty: not known
};

// One directory that holds partitions. `missing` says why it cannot be used; empty if it can.
struct Disk {
  std::string id;  // 16 hex digits, from disk.id
  std::string path;
  std::string missing;
};

struct DataDirOptions {
  std::string data_dir;                // holds LOCK, node.json, ingress/, metastore/ and partitions
  std::vector<std::string> more_dirs;  // storage.data_dirs: further disks for partitions
  std::string node_id;                 // configured id; empty: keep or take `default_node_id`
  std::string default_node_id;         // host name
  std::string holder;                  // written into LOCK, for whoever finds it taken
};

class DataDir {
 public:
  // Locks the directory, reads or creates node.json and disk.id files, and makes the fixed
  // subdirectories. Errors: unavailable if another process holds LOCK (the text names it); conflict
  // if node.json names another node id; data_loss if node.json is damaged. Nothing is changed on
  // error but directories and the lock file that were missing.
  static Result<std::unique_ptr<DataDir>> open(FileSystem& fs, Random& random, UnixMillis now,
                                               const DataDirOptions& options);

  const Identity& identity() const { return identity_; }

  // Makes the node belong to a cluster. Durable in node.json when it answers; after a crash
  // meanwhile it belongs to it or to none. Repeating it changes nothing. Answers the identity for
  // set_identity(). conflict if it belongs to another cluster. Fit for a job: touches nothing but
  // the file.
  static Result<Identity> adopt_cluster(FileSystem& fs, const std::string& data_dir,
                                        Identity identity, Adoption adoption);
  void set_identity(Identity identity) { identity_ = std::move(identity); }
  const std::vector<Disk>& disks() const { return disks_; }
  // The disk named by an assignment; an empty id means the first one. Null if unknown.
  const Disk* disk(const std::string& id) const;

  std::string ingress_path() const { return join_path(root_, "ingress"); }
  std::string metastore_path() const { return join_path(root_, "metastore"); }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
  std::unique_ptr<File> lock_;
  Identity identity_;
  std::vector<Disk> disks_;
};

// <disk>/topics/<topic>; names are at most 255 characters, which every supported file system takes.
std::string topic_path(const Disk& disk, const std::string& topic);
std::string partition_path(const Disk& disk, const TopicPartition& tp);

// The incarnation that a topic directory carries; not_found if the directory or the file is absent.
Result<Incarnation> read_topic_incarnation(FileSystem& fs, const std::string& topic_directory);

// Makes the topic directory of this incarnation if it is absent. conflict if the directory there
// belongs to another life of the name (set_aside_topic it first).
Result<void> make_topic_directory(FileSystem& fs, const Disk& disk, const std::string& topic,
                                  Incarnation incarnation);

// Renames a topic directory to .quarantine/<topic>@<incarnation>[.N]; answers the new path. Keeps
// every byte. `incarnation` empty if unknown.
Result<std::string> set_aside_topic(FileSystem& fs, const Disk& disk, const std::string& topic);

// Removes the data of a deleted topic: the directory is first renamed into .deleted/, so that a
// crash half-way is finished by finish_deletes(). REQUIRES (proof): the deletion of exactly this
// incarnation has been applied by the metastore, behind a barrier. Does nothing if the directory is
// absent or belongs to another incarnation.
Result<void> delete_topic_data(FileSystem& fs, const Disk& disk, const std::string& topic,
                               Incarnation incarnation);
Result<void> finish_deletes(FileSystem& fs, const Disk& disk);

// The partitions that have a directory under a topic's. Quarantined copies are none.
Result<std::vector<PartitionId>> list_partition_directories(FileSystem& fs, const Disk& disk,
                                                            const std::string& topic);

// Renames a partition's directory to <name>.quarantine[.N] beside it; answers the new path. Keeps
// every byte (QUA-1, G18), and says `why` in it (moves/quarantine_note.h), as set_aside_topic()
// does.
Result<std::string> set_aside_partition(FileSystem& fs, const Disk& disk, const TopicPartition& tp,
                                        std::string_view why);

// Removes one partition's directory, by way of .deleted/ as delete_topic_data(). REQUIRES (proof):
// the caller knows that every record in it that is still wanted lies at the partition's owner.
Result<void> delete_partition_data(FileSystem& fs, const Disk& disk, const TopicPartition& tp);

// Names under <disk>/topics that are directories.
Result<std::vector<std::string>> list_topic_directories(FileSystem& fs, const Disk& disk);
// How many of them do not say which life of the topic they are of: nobody touches those but the
// sweep of a start (SWP-20). Disks that are missing are passed over.
Result<std::size_t> count_unmarked_topics(FileSystem& fs, const std::vector<Disk>& disks);

}  // namespace narad::node
