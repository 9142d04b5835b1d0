#pragma once
// What is on a simulated disk, as plain data: both views of every file and directory, the unsynced
// writes of each file, the unsynced operations on directories. Internal to SimFs. clone() copies
// it.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/sim/pages.h"
#include "pkg/sim/sim_fs.h"

namespace narad::sim {

inline constexpr std::uint64_t kRootInode = 1;

struct FsInode {
  struct Write {
    std::uint64_t offset = 0;
    Bytes bytes;
    bool resize = false;  // to `offset` bytes; no bytes
    bool torn = false;    // the power went during this write: it cannot have landed whole
  };

  std::uint64_t id = 0;
  bool directory = false;
  UnixMillis mtime{0}, durable_mtime{0};
  // A file.
  Pages seen, durable;
  std::vector<Write> dirty;
  // A directory: name to inode id, ordered.
  std::map<std::string, std::uint64_t> names, durable_names;
  // Why it still exists. A directory or file has one name at most in the seen view.
  bool linked = false;
  std::uint32_t durable_links = 0;
  std::uint32_t pending = 0;  // directory operations that mention it
  std::uint32_t opens = 0;
  const void* lock = nullptr;

  // Makes an unsynced write durable.
  void land(const Write& write);
};

// An unsynced operation on directories. from_*: a name that goes; to_*: a name that comes (it may
// replace one). 0 = no such side.
struct FsNameOp {
  std::uint64_t from_dir = 0, to_dir = 0, child = 0;
  std::uint64_t replaced_dir = 0;  // an (empty) directory that stops existing by this operation
  std::string from_name, to_name;
  bool from_synced = false, to_synced = false;
  bool moves_directory = false;
};

// Where a path leads.
struct FsPlace {
  std::uint64_t dir = 0;              // of the last name; 0 for the root itself
  std::string name;                   // last name
  std::uint64_t id = 0;               // what is there, or 0
  std::vector<std::uint64_t> passed;  // directories on the way, `dir` included
};

struct FsImage {
  std::map<std::uint64_t, FsInode> inodes;
  std::vector<FsNameOp> pending;
  std::uint64_t last_id = kRootInode;
  std::uint64_t used = 0;  // bytes of files that are linked or open

  FsImage();
  FsInode& at(std::uint64_t id);
  const FsInode* find(std::uint64_t id) const;
  // A new file or directory under that (free) name, unsynced.
  FsInode& create(const FsPlace& place, bool directory, UnixMillis now);
  // Takes the name away, unsynced. REQUIRES: something is there; a directory is empty.
  void unlink(const FsPlace& place, UnixMillis now);
  // REQUIRES: allowed (SimFs::rename checks).
  void move(const FsPlace& from, const FsPlace& to, UnixMillis now);
  void resize_seen(FsInode& inode, std::uint64_t size);
  void close(std::uint64_t id);  // one handle less
  // The operations on `dir`, and the earlier ones that they need, become durable.
  void sync_names(std::uint64_t dir);
  void sync_all_names();
  // Power cut: the first `keep` pending operations survive, the rest never happened. What durable
  // names do not reach is gone.
  void cut_names(std::size_t keep);
  // 0 or an errno.
  int resolve(std::string_view path, FsPlace& place) const;

 private:
  void reap(std::uint64_t id);
  void unlink_seen(FsInode& inode);
  void record(FsNameOp op);
  void forget(const FsNameOp& op);
  void erase_durable(std::uint64_t dir, const std::string& name);
  void apply(const FsNameOp& op);
};

}  // namespace narad::sim
