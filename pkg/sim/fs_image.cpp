#include "pkg/sim/fs_image.h"

#include <algorithm>
#include <cerrno>
#include <set>

#include "pkg/base/assert.h"

namespace narad::sim {

namespace {
constexpr std::size_t kNameBytesMax = 255;
}  // namespace

void FsInode::land(const Write& write) {
  if (write.resize) {
    durable.resize(write.offset);
  } else {
    durable.write(write.offset, write.bytes);
  }
}

FsImage::FsImage() {
  FsInode& root = inodes[kRootInode];
  root.id = kRootInode;
  root.directory = true;
  root.linked = true;
  root.durable_links = 1;
}

FsInode& FsImage::at(std::uint64_t id) {
  auto it = inodes.find(id);
  NARAD_ASSERT(it != inodes.end());
  return it->second;
}

const FsInode* FsImage::find(std::uint64_t id) const {
  auto it = inodes.find(id);
  return it == inodes.end() ? nullptr : &it->second;
}

// ---- the seen view -----------------------------------------------------------------------------

FsInode& FsImage::create(const FsPlace& place, bool directory, UnixMillis now) {
  FsInode& inode = inodes[++last_id];
  inode.id = last_id;
  inode.directory = directory;
  inode.linked = true;
  inode.mtime = inode.durable_mtime = now;
  FsInode& dir = at(place.dir);
  dir.names[place.name] = inode.id;
  dir.mtime = now;
  FsNameOp op;
  op.to_dir = place.dir;
  op.to_name = place.name;
  op.child = inode.id;
  record(std::move(op));
  return inode;
}

void FsImage::unlink(const FsPlace& place, UnixMillis now) {
  FsInode& dir = at(place.dir);
  dir.names.erase(place.name);
  dir.mtime = now;
  unlink_seen(at(place.id));
  FsNameOp op;
  op.from_dir = place.dir;
  op.from_name = place.name;
  op.child = place.id;
  record(std::move(op));
}

void FsImage::move(const FsPlace& from, const FsPlace& to, UnixMillis now) {
  FsNameOp op;
  if (to.id != 0) {
    FsInode& old = at(to.id);
    if (old.directory) op.replaced_dir = old.id;
    unlink_seen(old);
  }
  at(from.dir).names.erase(from.name);
  at(to.dir).names[to.name] = from.id;
  at(from.dir).mtime = now;
  at(to.dir).mtime = now;
  op.from_dir = from.dir;
  op.from_name = from.name;
  op.to_dir = to.dir;
  op.to_name = to.name;
  op.child = from.id;
  op.moves_directory = at(from.id).directory;
  record(std::move(op));
  if (to.id != 0) reap(to.id);
}

void FsImage::resize_seen(FsInode& inode, std::uint64_t size) {
  if (inode.linked || inode.opens > 0) used = used - inode.seen.size() + size;
  inode.seen.resize(size);
}

void FsImage::close(std::uint64_t id) {
  FsInode& inode = at(id);
  NARAD_ASSERT(inode.opens > 0);
  if (--inode.opens == 0 && !inode.linked) used -= inode.seen.size();
  reap(id);
}

void FsImage::unlink_seen(FsInode& inode) {
  inode.linked = false;
  if (inode.opens == 0) used -= inode.seen.size();
}

// Frees what nothing names, holds or may bring back.
void FsImage::reap(std::uint64_t id) {
  auto it = inodes.find(id);
  if (it == inodes.end()) return;
  const FsInode& inode = it->second;
  if (inode.linked || inode.opens > 0 || inode.pending > 0 || inode.durable_links > 0) return;
  inodes.erase(it);
}

int FsImage::resolve(std::string_view path, FsPlace& place) const {
  if (path.empty()) return ENOENT;
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.size() > kNameBytesMax) return ENAMETOOLONG;
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    at = end + 1;
  }
  place = FsPlace{};
  place.id = kRootInode;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const FsInode* dir = find(place.id);
    if (dir == nullptr) return ENOENT;
    if (!dir->directory) return ENOTDIR;
    place.dir = dir->id;
    place.passed.push_back(dir->id);
    place.name = std::string(parts[i]);
    auto it = dir->names.find(place.name);
    place.id = it == dir->names.end() ? 0 : it->second;
  }
  return 0;
}

// ---- the durable view --------------------------------------------------------------------------

void FsImage::record(FsNameOp op) {
  for (std::uint64_t id : {op.from_dir, op.to_dir, op.child, op.replaced_dir}) {
    if (id != 0) ++at(id).pending;
  }
  pending.push_back(std::move(op));
}

void FsImage::forget(const FsNameOp& op) {
  const std::uint64_t ids[] = {op.from_dir, op.to_dir, op.child, op.replaced_dir};
  for (std::uint64_t id : ids) {
    if (id != 0) --at(id).pending;
  }
  for (std::uint64_t id : ids) {
    if (id != 0) reap(id);
  }
}

void FsImage::erase_durable(std::uint64_t dir, const std::string& name) {
  auto& names = at(dir).durable_names;
  auto it = names.find(name);
  if (it == names.end()) return;
  const std::uint64_t id = it->second;
  names.erase(it);
  --at(id).durable_links;
  reap(id);
}

void FsImage::apply(const FsNameOp& op) {
  if (op.to_dir != 0) ++at(op.child).durable_links;  // first: a move must not free the child
  if (op.from_dir != 0) erase_durable(op.from_dir, op.from_name);
  if (op.to_dir != 0) {
    erase_durable(op.to_dir, op.to_name);
    at(op.to_dir).durable_names[op.to_name] = op.child;
  }
}

// The operations on `dir` become durable, and whatever earlier ones they need in order
// to leave a tree that the program could have seen:
//   - earlier operations on the same names;
//   - before a directory goes, everything that happened in it;
//   - before something moves into a directory, that directory's own (unsynced) arrival: data
//     that was durable must not become unreachable by a move;
//   - earlier moves of directories (else two of them could form a ring).
void FsImage::sync_names(std::uint64_t dir) {
  for (FsNameOp& op : pending) {
    if (op.from_dir == dir) op.from_synced = true;
    if (op.to_dir == dir) op.to_synced = true;
  }
  std::vector<bool> take(pending.size(), false);
  std::set<std::pair<std::uint64_t, std::string>> names;
  std::set<std::uint64_t> emptied, arrivals;
  bool directory_moves = false;
  for (std::size_t i = pending.size(); i-- > 0;) {
    const FsNameOp& op = pending[i];
    const bool synced = (op.from_dir == 0 || op.from_synced) && (op.to_dir == 0 || op.to_synced);
    const bool needed =
        names.contains({op.from_dir, op.from_name}) || names.contains({op.to_dir, op.to_name}) ||
        emptied.contains(op.from_dir) || emptied.contains(op.to_dir) ||
        (op.to_dir != 0 && arrivals.contains(op.child)) || (op.moves_directory && directory_moves);
    if (!synced && !needed) continue;
    take[i] = true;
    if (op.from_dir != 0) names.emplace(op.from_dir, op.from_name);
    if (op.to_dir != 0) names.emplace(op.to_dir, op.to_name);
    const bool removes = op.to_dir == 0;
    const bool moves = op.from_dir != 0 && op.to_dir != 0;
    if (removes && at(op.child).directory) emptied.insert(op.child);
    if (op.replaced_dir != 0) emptied.insert(op.replaced_dir);
    if (moves || arrivals.contains(op.child)) arrivals.insert(op.to_dir);
    directory_moves |= op.moves_directory;
  }
  std::vector<FsNameOp> rest;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (take[i]) {
      apply(pending[i]);
      forget(pending[i]);
    } else {
      rest.push_back(std::move(pending[i]));
    }
  }
  pending = std::move(rest);
}

void FsImage::sync_all_names() {
  for (const FsNameOp& op : pending) {
    apply(op);
    forget(op);
  }
  pending.clear();
}

void FsImage::cut_names(std::size_t keep) {
  for (std::size_t i = 0; i < keep; ++i) apply(pending[i]);
  for (const FsNameOp& op : std::exchange(pending, {})) forget(op);
  std::set<std::uint64_t> reached{kRootInode};
  std::vector<std::uint64_t> walk{kRootInode};
  while (!walk.empty()) {
    const FsInode& dir = at(walk.back());
    walk.pop_back();
    for (const auto& [name, id] : dir.durable_names) {
      if (reached.insert(id).second && at(id).directory) walk.push_back(id);
    }
  }
  std::erase_if(inodes, [&](const auto& entry) { return !reached.contains(entry.first); });
}

}  // namespace narad::sim
