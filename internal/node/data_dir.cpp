#include "internal/node/data_dir.h"

#include <algorithm>
#include <boost/json.hpp>

#include "internal/moves/quarantine_note.h"
#include "pkg/base/text.h"

namespace narad::node {
namespace {

namespace json = boost::json;

constexpr int kFormatVersion = 1;
constexpr std::uint64_t kSmallFileBytesMax = 64 * 1024;

Error damaged(const std::string& path, std::string_view why) {
  return Error(Errc::data_loss,
               cat(path, " is damaged (", why, "). It names this node and must not be guessed: ",
                   "restore it from a backup, or start with an empty data directory to join as a "
                   "new node."));
}

Result<void> parse_founding(const json::value& list, std::vector<raft::Member>& out) {
  const Error bad(Errc::data_loss, "founding is not a list of replicas");
  if (!list.is_array()) return bad;
  for (const auto& item : list.get_array()) {
    if (!item.is_object()) return bad;
    const json::object& o = item.get_object();
    const auto* node = o.if_contains("node");
    const auto* replica = o.if_contains("replica");
    const auto* voter = o.if_contains("voter");
    if (node == nullptr || !node->is_string() || replica == nullptr || !replica->is_string() ||
        voter == nullptr || !voter->is_bool()) {
      return bad;
    }
    const auto id = parse_hex16(std::string_view(replica->get_string()));
    if (!id) return bad;
    out.push_back({raft::ReplicaId(*id), std::string(node->get_string()),
                   voter->get_bool() ? raft::MemberRole::voter : raft::MemberRole::learner});
  }
  return raft::Configuration::make(out) ? Result<void>(ok()) : Result<void>(bad);
}

Result<Identity> parse_identity(const std::string& path, ByteView content) {
  boost::system::error_code ec;
  json::value value = json::parse(json::string_view(as_chars(content).data(), content.size()), ec);
  if (ec || !value.is_object()) return damaged(path, "not a JSON object");
  const json::object& object = value.get_object();
  const auto* format = object.if_contains("format");
  if (format == nullptr || !format->is_int64()) return damaged(path, "no format version");
  if (format->get_int64() != kFormatVersion) {
    return Error(Errc::unavailable,
                 cat(path, " has format version ", format->get_int64(), "; this release knows ",
                     kFormatVersion, ". Run the release that wrote it. Nothing was changed."));
  }
  const auto* node_id = object.if_contains("node_id");
  const auto* cluster_id = object.if_contains("cluster_id");
  const auto* created = object.if_contains("created_at_ms");
  const auto* disks = object.if_contains("disks");
  if (node_id == nullptr || !node_id->is_string() || node_id->get_string().empty()) {
    return damaged(path, "no node_id");
  }
  if (cluster_id == nullptr || !cluster_id->is_string()) return damaged(path, "no cluster_id");
  Identity identity;
  identity.node_id = std::string(node_id->get_string());
  if (!cluster_id->get_string().empty()) {
    auto cluster = parse_hex16(std::string_view(cluster_id->get_string()));
    if (!cluster) return damaged(path, "cluster_id is not 16 hex digits");
    identity.cluster_id = *cluster;
  }
  if (const auto* joined = object.if_contains("joined"); joined != nullptr) {
    if (!joined->is_bool()) return damaged(path, "joined is not true or false");
    identity.joined = joined->get_bool();
  }
  if (const auto* founding = object.if_contains("founding"); founding != nullptr) {
    if (auto read = parse_founding(*founding, identity.founding); !read) {
      return damaged(path, read.error().text());
    }
  }
  if (created != nullptr && created->is_int64())
    identity.created_at = UnixMillis(created->get_int64());
  if (disks == nullptr || !disks->is_array()) return damaged(path, "no disks");
  for (const auto& id : disks->get_array()) {
    if (!id.is_string() || !parse_hex16(std::string_view(id.get_string()))) {
      return damaged(path, "a disk id is not 16 hex digits");
    }
    identity.disk_ids.emplace_back(id.get_string());
  }
  return identity;
}

Result<void> write_identity(FileSystem& fs, const std::string& path, const Identity& identity) {
  json::array disks;
  for (const auto& id : identity.disk_ids) disks.emplace_back(id);
  json::object object{
      {"format", kFormatVersion},
      {"node_id", identity.node_id},
      {"cluster_id", identity.cluster_id == 0 ? std::string() : to_hex16(identity.cluster_id)},
      {"created_at_ms", identity.created_at.value()},
      {"disks", std::move(disks)}};
  if (identity.joined) object["joined"] = true;
  if (!identity.founding.empty()) {
    json::array founding;
    for (const raft::Member& m : identity.founding) {
      founding.push_back(json::object{{"node", m.node},
                                      {"replica", to_hex16(m.replica.value())},
                                      {"voter", m.role == raft::MemberRole::voter}});
    }
    object["founding"] = std::move(founding);
  }
  return replace_file(fs, path, as_bytes(json::serialize(object) + "\n"));
}

// The id in <directory>/disk.id; not_found if there is none yet.
Result<std::string> read_disk_id(FileSystem& fs, const std::string& directory) {
  const std::string path = join_path(directory, "disk.id");
  NARAD_TRY(Bytes content, read_file(fs, path, kSmallFileBytesMax));
  std::string_view text = as_chars(content);
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (!parse_hex16(text)) {
    return Error(Errc::data_loss, cat(path, " is damaged: 16 hex digits expected"));
  }
  return std::string(text);
}

Result<bool> holds_anything(FileSystem& fs, const std::string& directory) {
  for (const char* name : {"topics", "ingress", "metastore"}) {
    const std::string path = join_path(directory, name);
    NARAD_TRY(bool there, exists(fs, path));
    if (!there) continue;
    NARAD_TRY(auto names, fs.list(path));
    if (!names.empty()) return true;
  }
  return false;
}

// Finds out which disk a directory is. A directory without disk.id is a new disk only if nothing is
// stored on it; otherwise (say, an unmounted volume's neighbour) it is reported as missing.
Result<Disk> identify_disk(FileSystem& fs, Random& random, const std::string& path,
                           Identity& identity, bool& identity_changed) {
  Disk disk;
  disk.path = path;
  auto id = read_disk_id(fs, path);
  if (id) {
    disk.id = id.value();
    if (std::find(identity.disk_ids.begin(), identity.disk_ids.end(), disk.id) ==
        identity.disk_ids.end()) {
      disk.missing = cat("disk.id in ", path, " names disk ", disk.id,
                         ", which node.json does not list: it belongs to another node");
    }
    return disk;
  }
  if (id.error().code() != Errc::not_found) {
    disk.missing = id.error().text();
    return disk;
  }
  NARAD_TRY(bool used, holds_anything(fs, path));
  if (used) {
    disk.missing = cat(path, " holds data but no disk.id: restore the file before using the disk");
    return disk;
  }
  disk.id = to_hex16(random.next());
  identity.disk_ids.push_back(disk.id);
  identity_changed = true;
  return disk;
}

// A metastore that was emptied knows no topic: every directory would look like a leftover, every
// record of the ingress WAL like one of a deleted topic. It is made before the first of either.
Result<void> check_metastore_is_there(FileSystem& fs, const DataDir& dir) {
  NARAD_TRY(auto stores, fs.list(dir.metastore_path()));
  if (!stores.empty()) return ok();
  std::string witness;
  NARAD_TRY(auto wal, fs.list(dir.ingress_path()));
  if (!wal.empty()) witness = join_path(dir.ingress_path(), wal.front());
  for (const Disk& disk : dir.disks()) {
    if (!disk.missing.empty()) continue;
    NARAD_TRY(auto topics, fs.list(join_path(disk.path, "topics")));
    if (!topics.empty()) witness = join_path(join_path(disk.path, "topics"), topics.front());
  }
  if (witness.empty()) return ok();
  return Error(Errc::data_loss,
               cat(dir.metastore_path(), " is empty, but there is data (", witness,
                   "). Without its "
                   "metadata nobody can tell what is still wanted, so nothing is touched: restore "
                   "the metastore directory from a backup, or move the data away and start with an "
                   "empty data directory."));
}

}  // namespace

Result<std::unique_ptr<DataDir>> DataDir::open(FileSystem& fs, Random& random, UnixMillis now,
                                               const DataDirOptions& options) {
  auto dir = std::make_unique<DataDir>();
  dir->root_ = options.data_dir;
  NARAD_TRY(make_directories(fs, dir->root_));

  const std::string lock_path = join_path(dir->root_, "LOCK");
  NARAD_TRY(dir->lock_, fs.open(lock_path, OpenMode::create));
  NARAD_TRY(bool locked, dir->lock_->try_lock());
  if (!locked) {
    std::string holder = "another process";
    if (auto content = read_file(fs, lock_path, kSmallFileBytesMax);
        content && !content.value().empty()) {
      holder = to_text(content.value());
      while (!holder.empty() && (holder.back() == '\n' || holder.back() == '\0')) holder.pop_back();
    }
    return Error(Errc::unavailable, cat("data directory ", dir->root_, " is in use by ", holder,
                                        ". Stop it first, or give another --data-dir."));
  }
  // Only a help for people: who holds the lock. The lock itself is the kernel's.
  if (auto r = dir->lock_->truncate(0); r) {
    if (auto w = write_all(*dir->lock_, as_bytes(options.holder + "\n"), 0); !w) {
      return w.error().with_context(cat("write ", lock_path));
    }
  }

  const std::string identity_path = join_path(dir->root_, "node.json");
  bool changed = false;
  auto content = read_file(fs, identity_path, kSmallFileBytesMax);
  if (content) {
    NARAD_TRY(dir->identity_, parse_identity(identity_path, content.value()));
    if (!options.node_id.empty() && options.node_id != dir->identity_.node_id) {
      return Error(Errc::conflict,
                   cat("data directory ", dir->root_, " belongs to node \"", dir->identity_.node_id,
                       "\", but the configuration says node id \"", options.node_id,
                       "\". Use the directory of that node, or correct cluster.node_id."));
    }
  } else if (content.error().code() == Errc::not_found) {
    NARAD_TRY(bool used, holds_anything(fs, dir->root_));
    if (used) {
      return Error(Errc::data_loss,
                   cat(identity_path,
                       " is missing, but the directory holds data. It names this "
                       "node and must not be guessed: restore it from a backup, or start with an "
                       "empty data directory."));
    }
    dir->identity_.node_id = options.node_id.empty() ? options.default_node_id : options.node_id;
    dir->identity_.created_at = now;
    changed = true;
  } else {
    return content.error();
  }

  std::vector<std::string> paths{options.data_dir};
  paths.insert(paths.end(), options.more_dirs.begin(), options.more_dirs.end());
  std::vector<bool> fresh;
  for (const std::string& path : paths) {
    if (auto made = make_directories(fs, path); !made) {
      dir->disks_.push_back(Disk{"", path, made.error().text()});
      fresh.push_back(false);
      continue;
    }
    bool is_new = false;
    NARAD_TRY(Disk disk, identify_disk(fs, random, path, dir->identity_, is_new));
    fresh.push_back(is_new);
    changed = changed || is_new;
    dir->disks_.push_back(std::move(disk));
  }
  if (!dir->disks_[0].missing.empty()) {
    return Error(Errc::data_loss, dir->disks_[0].missing);
  }
  // node.json first: a disk.id that it does not list would be taken for another node's disk. The
  // other way round, a crash leaves a listed id that no disk carries, which nothing refers to.
  if (changed) {
    NARAD_TRY(write_identity(fs, identity_path, dir->identity_));
  }
  for (std::size_t i = 0; i < dir->disks_.size(); ++i) {
    const Disk& disk = dir->disks_[i];
    if (!disk.missing.empty()) continue;
    if (fresh[i]) {
      NARAD_TRY(replace_file(fs, join_path(disk.path, "disk.id"), as_bytes(disk.id + "\n")));
    }
    for (const char* name : {"topics", ".quarantine", ".deleted"}) {
      NARAD_TRY(make_directories(fs, join_path(disk.path, name)));
    }
  }
  NARAD_TRY(make_directories(fs, dir->ingress_path()));
  NARAD_TRY(make_directories(fs, dir->metastore_path()));
  NARAD_TRY(check_metastore_is_there(fs, *dir));
  return dir;
}

Result<Identity> DataDir::adopt_cluster(FileSystem& fs, const std::string& data_dir,
                                        Identity identity, Adoption adoption) {
  const std::uint64_t cluster_id = adoption.cluster_id;
  if (cluster_id == 0) return Error(Errc::invalid_argument, "a cluster has an id that is not 0");
  if (identity.cluster_id != 0 && identity.cluster_id != cluster_id) {
    return Error(Errc::conflict, cat("data directory ", data_dir, " belongs to cluster ",
                                     to_hex16(identity.cluster_id), ", not ", to_hex16(cluster_id),
                                     ": correct cluster.peers, or use an empty data directory"));
  }
  const bool same = identity.cluster_id == cluster_id && identity.founding == adoption.founding &&
                    identity.joined == adoption.joined;
  if (same) return identity;
  identity.cluster_id = cluster_id;
  identity.joined = adoption.joined;
  identity.founding = std::move(adoption.founding);
  NARAD_TRY(write_identity(fs, join_path(data_dir, "node.json"), identity));
  return identity;
}

const Disk* DataDir::disk(const std::string& id) const {
  if (id.empty()) return &disks_.front();
  for (const Disk& disk : disks_) {
    if (disk.id == id) return &disk;
  }
  return nullptr;
}

std::string topic_path(const Disk& disk, const std::string& topic) {
  return join_path(join_path(disk.path, "topics"), topic);
}

std::string partition_path(const Disk& disk, const TopicPartition& tp) {
  return join_path(topic_path(disk, tp.topic), partition_directory_name(tp.partition));
}

Result<Incarnation> read_topic_incarnation(FileSystem& fs, const std::string& topic_directory) {
  const std::string path = join_path(topic_directory, "topic.incarnation");
  NARAD_TRY(Bytes content, read_file(fs, path, kSmallFileBytesMax));
  std::string_view text = as_chars(content);
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  auto value = parse_hex16(text);
  if (!value) return Error(Errc::data_loss, cat(path, " is damaged: 16 hex digits expected"));
  return Incarnation(*value);
}

Result<void> make_topic_directory(FileSystem& fs, const Disk& disk, const std::string& topic,
                                  Incarnation incarnation) {
  const std::string path = topic_path(disk, topic);
  auto present = read_topic_incarnation(fs, path);
  if (present) {
    if (present.value() == incarnation) return ok();
    return Error(Errc::conflict,
                 cat(path, " belongs to incarnation ", to_hex16(present.value().value()),
                     " of the topic, not ", to_hex16(incarnation.value())));
  }
  if (present.error().code() != Errc::not_found) return present.error();
  NARAD_TRY(make_directories(fs, path));
  NARAD_TRY(auto names, fs.list(path));
  for (const std::string& name : names) {
    // A crash between mkdir and the incarnation file leaves at most the temporary.
    if (name != "topic.incarnation.tmp") {
      return Error(Errc::conflict, cat(path, " holds ", name, " but no topic.incarnation"));
    }
  }
  return replace_file(fs, join_path(path, "topic.incarnation"),
                      as_bytes(to_hex16(incarnation.value()) + "\n"));
}

namespace {
Result<std::string> free_name(FileSystem& fs, const std::string& wanted) {
  for (int n = 0;; ++n) {
    std::string path = n == 0 ? wanted : cat(wanted, ".", n);
    NARAD_TRY(bool taken, exists(fs, path));
    if (!taken) return path;
  }
}

Result<std::string> move_topic(FileSystem& fs, const Disk& disk, const std::string& topic,
                               std::string_view where, std::string_view suffix) {
  const std::string from = topic_path(disk, topic);
  const std::string parent = join_path(disk.path, where);
  // A directory name may not pass 255 bytes; "@" and 16 digits are added to the topic.
  std::string name = topic.size() + 1 + suffix.size() + 4 <= 255
                         ? cat(topic, "@", suffix)
                         : cat(topic.substr(0, 200), "@", suffix);
  NARAD_TRY(std::string to, free_name(fs, join_path(parent, name)));
  NARAD_TRY(fs.rename(from, to));
  NARAD_TRY(fs.sync_dir(parent));
  NARAD_TRY(fs.sync_dir(parent_path(from)));
  return to;
}
}  // namespace

Result<std::string> set_aside_topic(FileSystem& fs, const Disk& disk, const std::string& topic) {
  auto incarnation = read_topic_incarnation(fs, topic_path(disk, topic));
  const std::string suffix = incarnation ? to_hex16(incarnation.value().value()) : "unknown";
  NARAD_TRY(std::string to, move_topic(fs, disk, topic, ".quarantine", suffix));
  moves::note_quarantine(fs, to, "the metadata does not know this life of the topic");
  return to;
}

Result<void> delete_topic_data(FileSystem& fs, const Disk& disk, const std::string& topic,
                               Incarnation incarnation) {
  auto present = read_topic_incarnation(fs, topic_path(disk, topic));
  if (!present) {
    if (present.error().code() == Errc::not_found) return ok();
    return present.error();
  }
  if (present.value() != incarnation) return ok();
  NARAD_TRY(std::string moved,
            move_topic(fs, disk, topic, ".deleted", to_hex16(incarnation.value())));
  // Proof: the caller saw the deletion of this very incarnation applied, and the directory carried
  // it.
  NARAD_TRY(remove_tree(fs, moved));
  return fs.sync_dir(parent_path(moved));
}

Result<std::vector<PartitionId>> list_partition_directories(FileSystem& fs, const Disk& disk,
                                                            const std::string& topic) {
  NARAD_TRY(auto names, fs.list(topic_path(disk, topic)));
  std::vector<PartitionId> partitions;
  for (const std::string& name : names) {
    if (const auto partition = parse_partition_directory_name(name)) {
      partitions.push_back(*partition);
    }
  }
  return partitions;
}

Result<std::string> set_aside_partition(FileSystem& fs, const Disk& disk, const TopicPartition& tp,
                                        std::string_view why) {
  const std::string from = partition_path(disk, tp);
  NARAD_TRY(std::string to, free_name(fs, cat(from, ".quarantine")));
  NARAD_TRY(fs.rename(from, to));
  NARAD_TRY(fs.sync_dir(parent_path(from)));
  moves::note_quarantine(fs, to, why);
  return to;
}

Result<void> delete_partition_data(FileSystem& fs, const Disk& disk, const TopicPartition& tp) {
  const std::string from = partition_path(disk, tp);
  const std::string where = join_path(disk.path, ".deleted");
  const std::string name = cat(tp.topic.substr(0, 200), "-", tp.partition);
  NARAD_TRY(std::string moved, free_name(fs, join_path(where, name)));
  NARAD_TRY(fs.rename(from, moved));
  NARAD_TRY(fs.sync_dir(where));
  NARAD_TRY(fs.sync_dir(parent_path(from)));
  // Proof: our REQUIRES.
  NARAD_TRY(remove_tree(fs, moved));
  return fs.sync_dir(where);
}

Result<void> finish_deletes(FileSystem& fs, const Disk& disk) {
  const std::string where = join_path(disk.path, ".deleted");
  NARAD_TRY(auto names, fs.list(where));
  for (const std::string& name : names) {
    // Proof: only delete_topic_data and delete_partition_data put directories here, each after
    // their caller had proven that they may go.
    NARAD_TRY(remove_tree(fs, join_path(where, name)));
  }
  return fs.sync_dir(where);
}

Result<std::vector<std::string>> list_topic_directories(FileSystem& fs, const Disk& disk) {
  const std::string where = join_path(disk.path, "topics");
  NARAD_TRY(auto names, fs.list(where));
  std::vector<std::string> directories;
  for (std::string& name : names) {
    NARAD_TRY(FileStat st, fs.stat(join_path(where, name)));
    if (st.is_directory) directories.push_back(std::move(name));
  }
  return directories;
}

Result<std::size_t> count_unmarked_topics(FileSystem& fs, const std::vector<Disk>& disks) {
  std::size_t unmarked = 0;
  for (const Disk& disk : disks) {
    if (!disk.missing.empty()) continue;
    NARAD_TRY(auto topics, list_topic_directories(fs, disk));
    for (const std::string& topic : topics) {
      const auto life = read_topic_incarnation(fs, topic_path(disk, topic));
      if (!life && life.error().code() == Errc::not_found) ++unmarked;
    }
  }
  return unmarked;
}

}  // namespace narad::node
