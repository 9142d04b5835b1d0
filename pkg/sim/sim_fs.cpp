#include "pkg/sim/sim_fs.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "pkg/base/assert.h"
#include "pkg/base/checksum.h"
#include "pkg/base/text.h"
#include "pkg/sim/pages.h"

namespace narad::sim {

namespace {
constexpr std::uint64_t kSector = 512;
constexpr std::uint64_t kRoot = 1;
constexpr std::size_t kNameBytesMax = 255;
constexpr std::int64_t kFirstMillis = 1'700'000'000'000;
constexpr std::uint64_t kOffsetMax = ~std::uint64_t{0} >> 1;  // off_t
constexpr std::uint64_t kNever = ~std::uint64_t{0};
}  // namespace

const char* to_string(FsCall call) {
  static constexpr const char* kNames[kFsCalls] = {
      "open", "pread",    "pwrite",    "truncate",       "allocate", "sync",
      "size", "try_lock", "remove",    "rename",         "mkdir",    "rmdir",
      "list", "stat",     "set mtime", "sync directory", "space",    "any"};
  return kNames[static_cast<std::size_t>(call)];
}

SimFs::Stats& SimFs::Stats::operator+=(const Stats& o) {
  writes += o.writes;
  syncs += o.syncs;
  cuts += o.cuts;
  kept += o.kept;
  dropped += o.dropped;
  torn += o.torn;
  garbage += o.garbage;
  names_kept += o.names_kept;
  names_lost += o.names_lost;
  lied += o.lied;
  eio += o.eio;
  enospc += o.enospc;
  scripted += o.scripted;
  short_reads += o.short_reads;
  short_writes += o.short_writes;
  slow += o.slow;
  return *this;
}

// ---- the image: plain data, copied by clone() --------------------------------------------------

struct SimFs::Inode {
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
};

struct SimFs::Image {
  // An unsynced operation on directories. from_*: a name that goes; to_*: a name that comes (it
  // may replace one). 0 = no such side.
  struct NameOp {
    std::uint64_t from_dir = 0, to_dir = 0, child = 0;
    std::uint64_t replaced_dir = 0;  // an (empty) directory that stops existing by this operation
    std::string from_name, to_name;
    bool from_synced = false, to_synced = false;
    bool moves_directory = false;
  };

  std::map<std::uint64_t, Inode> inodes;
  std::vector<NameOp> pending;
  std::uint64_t last_id = kRoot;
  std::uint64_t used = 0;  // bytes of files that are linked or open

  Image() {
    Inode& root = inodes[kRoot];
    root.id = kRoot;
    root.directory = true;
    root.linked = true;
    root.durable_links = 1;
  }

  Inode& at(std::uint64_t id) {
    auto it = inodes.find(id);
    NARAD_ASSERT(it != inodes.end());
    return it->second;
  }
  const Inode* find(std::uint64_t id) const {
    auto it = inodes.find(id);
    return it == inodes.end() ? nullptr : &it->second;
  }

  static bool counted(const Inode& inode) { return inode.linked || inode.opens > 0; }
  void resize_seen(Inode& inode, std::uint64_t size) {
    if (counted(inode)) used = used - inode.seen.size() + size;
    inode.seen.resize(size);
  }
  // Frees what nothing names, holds or may bring back.
  void reap(std::uint64_t id) {
    auto it = inodes.find(id);
    if (it == inodes.end()) return;
    const Inode& inode = it->second;
    if (inode.linked || inode.opens > 0 || inode.pending > 0 || inode.durable_links > 0) return;
    inodes.erase(it);
  }
  void close(std::uint64_t id) {
    Inode& inode = at(id);
    NARAD_ASSERT(inode.opens > 0);
    if (--inode.opens == 0 && !inode.linked) used -= inode.seen.size();
    reap(id);
  }
  void unlink_seen(Inode& inode) {
    inode.linked = false;
    if (inode.opens == 0) used -= inode.seen.size();
  }

  void record(NameOp op) {
    for (std::uint64_t id : {op.from_dir, op.to_dir, op.child, op.replaced_dir}) {
      if (id != 0) ++at(id).pending;
    }
    pending.push_back(std::move(op));
  }
  void forget(const NameOp& op) {
    const std::uint64_t ids[] = {op.from_dir, op.to_dir, op.child, op.replaced_dir};
    for (std::uint64_t id : ids) {
      if (id != 0) --at(id).pending;
    }
    for (std::uint64_t id : ids) {
      if (id != 0) reap(id);
    }
  }
  void erase_durable(std::uint64_t dir, const std::string& name) {
    auto& names = at(dir).durable_names;
    auto it = names.find(name);
    if (it == names.end()) return;
    const std::uint64_t id = it->second;
    names.erase(it);
    --at(id).durable_links;
    reap(id);
  }
  void apply(const NameOp& op) {
    if (op.to_dir != 0) ++at(op.child).durable_links;  // first: a move must not free the child
    if (op.from_dir != 0) erase_durable(op.from_dir, op.from_name);
    if (op.to_dir != 0) {
      erase_durable(op.to_dir, op.to_name);
      at(op.to_dir).durable_names[op.to_name] = op.child;
    }
  }

  // sync_dir: makes durable the operations on `dir`, and whatever earlier ones they need in order
  // to leave a tree that the program could have seen:
  //   - earlier operations on the same names;
  //   - before a directory goes, everything that happened in it;
  //   - before something moves into a directory, that directory's own (unsynced) arrival: data
  //     that was durable must not become unreachable by a move;
  //   - earlier moves of directories (else two of them could form a ring).
  void sync_names(std::uint64_t dir) {
    for (NameOp& op : pending) {
      if (op.from_dir == dir) op.from_synced = true;
      if (op.to_dir == dir) op.to_synced = true;
    }
    std::vector<bool> take(pending.size(), false);
    std::set<std::pair<std::uint64_t, std::string>> names;
    std::set<std::uint64_t> emptied, arrivals;
    bool directory_moves = false;
    for (std::size_t i = pending.size(); i-- > 0;) {
      const NameOp& op = pending[i];
      const bool synced = (op.from_dir == 0 || op.from_synced) && (op.to_dir == 0 || op.to_synced);
      const bool needed = names.contains({op.from_dir, op.from_name}) ||
                          names.contains({op.to_dir, op.to_name}) ||
                          emptied.contains(op.from_dir) || emptied.contains(op.to_dir) ||
                          (op.to_dir != 0 && arrivals.contains(op.child)) ||
                          (op.moves_directory && directory_moves);
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
    std::vector<NameOp> rest;
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
  void sync_all_names() {
    for (const NameOp& op : pending) {
      apply(op);
      forget(op);
    }
    pending.clear();
  }

  static void land(Inode& inode, const Inode::Write& write) {
    if (write.resize) {
      inode.durable.resize(write.offset);
    } else {
      inode.durable.write(write.offset, write.bytes);
    }
  }

  struct Place {
    std::uint64_t dir = 0;              // of the last name; 0 for the root itself
    std::string name;                   // last name
    std::uint64_t id = 0;               // what is there, or 0
    std::vector<std::uint64_t> passed;  // directories on the way, `dir` included
  };
  // 0 or an errno.
  int resolve(std::string_view path, Place& place) const {
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
    place = Place{};
    place.id = kRoot;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Inode* dir = find(place.id);
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
};

// ---- one open file -----------------------------------------------------------------------------

class SimFile final : public File {
 public:
  SimFile(SimFs& fs, std::uint64_t id, std::string path, bool writable)
      : fs_(fs), id_(id), epoch_(fs.epoch_), path_(std::move(path)), writable_(writable) {
    ++fs_.image_->at(id_).opens;
  }
  SimFile(const SimFile&) = delete;
  ~SimFile() override {
    if (epoch_ != fs_.epoch_) return;  // the process that held it is gone
    if (auto& inode = fs_.image_->at(id_); inode.lock == this) inode.lock = nullptr;
    fs_.image_->close(id_);
  }

  Result<std::size_t> pread(std::span<std::byte> buffer, std::uint64_t offset) override {
    if (int e = enter(FsCall::pread)) return error("read", e);
    if (offset > kOffsetMax) return error("read", EINVAL);
    if (fs_.faults_rng_.chance(fs_.faults.eio_read)) {
      ++fs_.stats.eio;
      return error("read", EIO);
    }
    const auto& inode = this->inode();
    if (offset >= inode.seen.size()) return std::size_t{0};
    std::size_t n = static_cast<std::size_t>(
        std::min<std::uint64_t>(buffer.size(), inode.seen.size() - offset));
    if (n > 1 && fs_.faults_rng_.chance(fs_.faults.short_read)) {
      n = static_cast<std::size_t>(fs_.faults_rng_.range(1, n - 1));
      ++fs_.stats.short_reads;
    }
    inode.seen.read(offset, buffer.first(n));
    return n;
  }

  Result<std::size_t> pwrite(ByteView bytes, std::uint64_t offset) override {
    return write(Bytes(bytes.begin(), bytes.end()), offset);
  }
  Result<std::size_t> pwritev(std::span<const ByteView> parts, std::uint64_t offset) override {
    Bytes all;
    for (ByteView part : parts) all.insert(all.end(), part.begin(), part.end());
    return write(std::move(all), offset);
  }

  Result<void> truncate(std::uint64_t size) override {
    return resize(FsCall::truncate, "truncate", size, false);
  }
  Result<void> allocate(std::uint64_t size) override {
    return resize(FsCall::allocate, "allocate", size, true);
  }
  Result<void> sync() override { return do_sync("sync", false); }
  Result<void> datasync() override { return do_sync("datasync", true); }
  Result<std::uint64_t> size() override {
    if (int e = enter(FsCall::size)) return error("stat", e);
    return inode().seen.size();
  }
  Result<bool> try_lock() override {
    if (int e = enter(FsCall::try_lock)) return error("lock", e);
    auto& inode = this->inode();
    if (inode.lock != nullptr && inode.lock != this) return false;
    inode.lock = this;
    return true;
  }

 private:
  SimFs::Inode& inode() { return fs_.image_->at(id_); }
  Error error(const char* verb, int e) const { return Error::system(e, cat(verb, " ", path_)); }
  int enter(FsCall call) {
    if (epoch_ != fs_.epoch_) return EIO;
    return fs_.enter(call, path_);
  }
  int enter_mutating(FsCall call, bool* torn) {
    if (epoch_ != fs_.epoch_) return EIO;
    if (!writable_) return EBADF;
    return fs_.enter_mutating(call, path_, torn);
  }

  Result<std::size_t> write(Bytes bytes, std::uint64_t offset) {
    bool torn = false;
    const int e = enter_mutating(FsCall::pwrite, &torn);
    if (e != 0 && !torn) return error("write", e);
    if (!torn && fs_.faults_rng_.chance(fs_.faults.eio_write)) {
      ++fs_.stats.eio;
      return error("write", EIO);
    }
    if (bytes.empty()) return torn ? Result<std::size_t>(error("write", e)) : std::size_t{0};
    auto& inode = this->inode();
    const std::uint64_t limit = fs_.faults.file_bytes_max;
    if (offset >= limit) return error("write", EFBIG);
    std::uint64_t n = std::min<std::uint64_t>(bytes.size(), limit - offset);
    const std::uint64_t used = fs_.image_->used, capacity = fs_.faults.capacity_bytes;
    const std::uint64_t room = inode.seen.size() + (capacity > used ? capacity - used : 0);
    if (offset + n > inode.seen.size() && offset + n > room) {
      ++fs_.stats.enospc;
      if (room <= offset) return error("write", ENOSPC);
      n = room - offset;  // what still fits is written, as Linux does
    }
    if (!torn && n > 1 && fs_.faults_rng_.chance(fs_.faults.short_write)) {
      n = fs_.faults_rng_.range(1, n - 1);
      ++fs_.stats.short_writes;
    }
    bytes.resize(static_cast<std::size_t>(n));
    if (offset + n > inode.seen.size()) fs_.image_->resize_seen(inode, offset + n);
    inode.seen.write(offset, bytes);
    inode.mtime = fs_.now();
    fs_.mix(FsCall::pwrite, offset, xxh3(bytes, id_));
    inode.dirty.push_back({offset, std::move(bytes), false, torn});
    ++fs_.stats.writes;
    if (torn) return error("write", e);
    return static_cast<std::size_t>(n);
  }

  Result<void> resize(FsCall call, const char* verb, std::uint64_t size, bool grow_only) {
    bool torn = false;
    const int e = enter_mutating(call, &torn);
    if (e != 0 && !torn) return error(verb, e);
    if (!torn && fs_.faults_rng_.chance(fs_.faults.eio_write)) {
      ++fs_.stats.eio;
      return error(verb, EIO);
    }
    if (size > fs_.faults.file_bytes_max) return error(verb, EFBIG);
    auto& inode = this->inode();
    const std::uint64_t old = inode.seen.size();
    const std::uint64_t used = fs_.image_->used;
    if (size > old && used + (size - old) > fs_.faults.capacity_bytes) {
      ++fs_.stats.enospc;
      return error(verb, ENOSPC);
    }
    if (!grow_only || size > old) {
      fs_.image_->resize_seen(inode, size);
      inode.mtime = fs_.now();
      inode.dirty.push_back({size, {}, true, false});
    }
    fs_.mix(call, id_, size);
    if (torn) return error(verb, e);
    return ok();
  }

  Result<void> do_sync(const char* verb, bool data_only) {
    if (epoch_ != fs_.epoch_) return error(verb, EIO);
    return fs_.sync_file(inode(), path_, verb, data_only);
  }

  SimFs& fs_;
  const std::uint64_t id_;
  const std::uint64_t epoch_;
  const std::string path_;
  const bool writable_;
};

// ---- counting, scripted failures, power --------------------------------------------------------

SimFs::SimFs(std::uint64_t seed)
    : image_(std::make_unique<Image>()), seed_(seed), faults_rng_(derive(seed, "fs-faults")) {
  Inode& root = image_->at(kRoot);
  root.mtime = root.durable_mtime = UnixMillis(kFirstMillis);
}

SimFs::~SimFs() = default;

void SimFs::set_clock(std::function<UnixMillis()> wall) { wall_ = std::move(wall); }
void SimFs::set_trace(std::function<void(std::uint64_t)> mix) { trace_ = std::move(mix); }
void SimFs::freeze() { frozen_ = true; }
bool SimFs::frozen() const { return frozen_; }
std::uint64_t SimFs::ops() const { return ops_; }

UnixMillis SimFs::now() const {
  return wall_ ? wall_() : UnixMillis(kFirstMillis + static_cast<std::int64_t>(ops_));
}

void SimFs::mix(FsCall call, std::uint64_t a, std::uint64_t b) {
  if (!trace_) return;
  trace_(static_cast<std::uint64_t>(call));
  trace_(a);
  trace_(b);
}

int SimFs::enter(FsCall call, const std::string& path) {
  if (frozen_) return EIO;
  ++calls_[static_cast<std::size_t>(call)];
  ++calls_[static_cast<std::size_t>(FsCall::any)];
  latency_ += faults.call_latency;
  if (call == FsCall::sync || call == FsCall::sync_dir) latency_ += faults.sync_latency;
  if (faults_rng_.chance(faults.slow)) {
    ++stats.slow;
    latency_ += Nanos(static_cast<std::int64_t>(
        faults_rng_.below(static_cast<std::uint64_t>(faults.slow_max.count()) + 1)));
  }
  int result = 0;
  for (Failure& failure : failures_) {
    if (failure.kind != FsCall::any && failure.kind != call) continue;
    if (!failure.path_part.empty() && path.find(failure.path_part) == std::string::npos) continue;
    ++failure.seen;
    if (failure.seen == failure.at || (failure.persistent && failure.seen > failure.at)) {
      failure_fired_ = true;
      if (result == 0) result = failure.os_errno;
    }
  }
  if (result != 0) ++stats.scripted;
  return result;
}

int SimFs::enter_mutating(FsCall call, const std::string& path, bool* torn) {
  *torn = false;
  if (frozen_) return EIO;
  if (++ops_ >= cut_at_) {
    frozen_ = true;
    *torn = cut_how_ == Cut::during_call && !faults.read_only;
    if (on_cut_) on_cut_();
    return EIO;
  }
  if (int e = enter(call, path)) return e;
  return faults.read_only && call != FsCall::sync && call != FsCall::sync_dir ? EROFS : 0;
}

void SimFs::cut_power_at(std::uint64_t op, UniqueFunction then, Cut how) {
  cut_at_ = op;
  cut_how_ = how;
  on_cut_ = std::move(then);
}

void SimFs::cancel_cut() { cut_power_at(kNever); }

void SimFs::fail_call(FsCall kind, std::uint64_t n, bool persistent, int os_errno,
                      std::string path_part) {
  NARAD_ASSERT(n > 0 && os_errno > 0);
  failures_.push_back({kind, n, 0, persistent, os_errno, std::move(path_part)});
}

void SimFs::clear_failures() {
  failures_.clear();
  failure_fired_ = false;
}

std::uint64_t SimFs::calls(FsCall kind) const { return calls_[static_cast<std::size_t>(kind)]; }
bool SimFs::failure_fired() const { return failure_fired_; }
Nanos SimFs::take_latency() { return std::exchange(latency_, Nanos(0)); }

void SimFs::process_restart() {
  frozen_ = false;
  cancel_cut();
  ++epoch_;
  for (auto it = image_->inodes.begin(); it != image_->inodes.end();) {
    Inode& inode = (it++)->second;  // reap() below may erase it
    inode.lock = nullptr;
    if (inode.opens == 0) continue;
    inode.opens = 1;
    image_->close(inode.id);
  }
}

namespace {
// What a power cut makes of the unsynced writes of one file.
enum class Fate { keep, drop, tear, garbage };
Fate draw_fate(Rng& rng, const FsFaults& f) {
  const std::uint64_t total = std::uint64_t{f.cut_keep} + f.cut_drop + f.cut_tear + f.cut_garbage;
  if (total == 0) return Fate::drop;
  std::uint64_t r = rng.below(total);
  if (r < f.cut_keep) return Fate::keep;
  r -= f.cut_keep;
  if (r < f.cut_drop) return Fate::drop;
  r -= f.cut_drop;
  return r < f.cut_tear ? Fate::tear : Fate::garbage;
}

// Each sector lands or not on its own.
template <class Put>
void tear(Rng& rng, std::uint64_t offset, ByteView bytes, Put put) {
  for (std::uint64_t at = 0; at < bytes.size();) {
    const std::uint64_t n =
        std::min<std::uint64_t>(kSector - (offset + at) % kSector, bytes.size() - at);
    if (rng.below(2) == 0) {
      put(offset + at, bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(n)));
    }
    at += n;
  }
}

// One sector's part of the write, filled with noise.
std::pair<std::uint64_t, Bytes> garbage_in(Rng& rng, std::uint64_t offset, std::uint64_t size) {
  const std::uint64_t at = offset + rng.below(size);
  const std::uint64_t begin = std::max(offset, at - at % kSector);
  const std::uint64_t end = std::min(offset + size, at - at % kSector + kSector);
  Bytes noise(static_cast<std::size_t>(end - begin));
  for (std::byte& b : noise) b = static_cast<std::byte>(rng.next() & 0xff);
  return {begin, std::move(noise)};
}
}  // namespace

void SimFs::power_cycle() {
  ++cuts_;
  ++stats.cuts;
  Image& image = *image_;
  // A journalling file system keeps the order of directory operations: a prefix survives.
  Rng names_rng(derive(seed_, "cut-names", cuts_));
  const std::size_t keep = static_cast<std::size_t>(names_rng.below(image.pending.size() + 1));
  for (std::size_t i = 0; i < keep; ++i) image.apply(image.pending[i]);
  stats.names_kept += keep;
  stats.names_lost += image.pending.size() - keep;
  for (const auto& op : std::exchange(image.pending, {})) image.forget(op);

  // What the durable names reach stays; the seen view becomes the durable one.
  std::set<std::uint64_t> reached{kRoot};
  std::vector<std::uint64_t> walk{kRoot};
  while (!walk.empty()) {
    const Inode& dir = image.at(walk.back());
    walk.pop_back();
    for (const auto& [name, id] : dir.durable_names) {
      if (reached.insert(id).second && image.at(id).directory) walk.push_back(id);
    }
  }
  std::erase_if(image.inodes, [&](const auto& entry) { return !reached.contains(entry.first); });

  image.used = 0;
  for (auto& [id, inode] : image.inodes) {
    Rng rng(derive(derive(seed_, "cut-file", cuts_), "inode", id));
    // Independent fates alone would make "all of it landed" and "a clean prefix landed" rare.
    const std::uint64_t mood = rng.below(4);
    const bool free_choice = faults.cut_keep != 0 && faults.cut_drop != 0;
    const std::size_t prefix =
        !free_choice || mood < 2 ? 0 : static_cast<std::size_t>(rng.below(inode.dirty.size() + 1));
    for (std::size_t i = 0; i < inode.dirty.size(); ++i) {
      const auto& write = inode.dirty[i];
      Fate fate = draw_fate(rng, faults);
      if (free_choice && mood >= 2) {
        if (i < prefix) fate = Fate::keep;
        if (i > prefix || (i == prefix && mood == 2)) fate = Fate::drop;
      }
      if (write.resize) {
        if (fate == Fate::tear || fate == Fate::garbage) {
          fate = rng.below(2) == 0 ? Fate::keep : Fate::drop;
        }
      } else if (write.torn && fate == Fate::keep) {
        fate = Fate::tear;
      }
      switch (fate) {
        case Fate::keep:
          ++stats.kept;
          Image::land(inode, write);
          break;
        case Fate::drop:
          ++stats.dropped;
          break;
        case Fate::tear:
          ++stats.torn;
          tear(rng, write.offset, write.bytes,
               [&](std::uint64_t at, ByteView part) { inode.durable.write(at, part); });
          break;
        case Fate::garbage: {
          ++stats.garbage;
          Image::land(inode, write);
          auto [at, noise] = garbage_in(rng, write.offset, write.bytes.size());
          inode.durable.write(at, noise);
          break;
        }
      }
    }
    inode.dirty.clear();
    if (inode.mtime != inode.durable_mtime && rng.below(2) == 0) {
      inode.durable_mtime = inode.mtime;
    }
    inode.mtime = inode.durable_mtime;
    inode.seen = inode.durable;
    inode.names = inode.durable_names;
    inode.linked = true;
    inode.opens = 0;
    inode.lock = nullptr;
    image.used += inode.seen.size();
  }
  frozen_ = false;
  cancel_cut();
  ++epoch_;
}

bool SimFs::corrupt(const std::string& path, std::uint64_t offset, std::byte xor_mask) {
  Image::Place place;
  if (image_->resolve(path, place) != 0 || place.id == 0) return false;
  Inode& inode = image_->at(place.id);
  if (inode.directory || offset >= inode.durable.size()) return false;
  inode.durable.flip(offset, xor_mask);
  if (offset < inode.seen.size()) inode.seen.flip(offset, xor_mask);
  return true;
}

std::optional<std::uint64_t> SimFs::flip_bit(const std::string& path) {
  Image::Place place;
  if (image_->resolve(path, place) != 0 || place.id == 0) return std::nullopt;
  const Inode& inode = image_->at(place.id);
  if (inode.directory || inode.durable.size() == 0) return std::nullopt;
  const std::uint64_t offset = faults_rng_.below(inode.durable.size());
  const auto bit = static_cast<unsigned>(faults_rng_.below(8));
  corrupt(path, offset, static_cast<std::byte>(1u << bit));
  return offset;
}

// ---- looking from outside ----------------------------------------------------------------------

std::vector<std::string> SimFs::all_paths() const {
  std::vector<std::string> out;
  std::vector<std::pair<std::string, std::uint64_t>> walk{{"/", kRoot}};
  while (!walk.empty()) {
    auto [prefix, id] = std::move(walk.back());
    walk.pop_back();
    for (const auto& [name, child] : image_->find(id)->names) {
      if (image_->find(child)->directory) {
        out.push_back(prefix + name + "/");
        walk.emplace_back(out.back(), child);
      } else {
        out.push_back(prefix + name);
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<Bytes> SimFs::seen_bytes(const std::string& path) const {
  Image::Place place;
  if (image_->resolve(path, place) != 0 || place.id == 0) return std::nullopt;
  const Inode* inode = image_->find(place.id);
  if (inode->directory) return std::nullopt;
  return inode->seen.read_all();
}

std::optional<Bytes> SimFs::durable_bytes(const std::string& path) const {
  const Inode* inode = image_->find(kRoot);
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == ".") continue;
    auto it = inode->durable_names.find(part);
    if (it == inode->durable_names.end()) return std::nullopt;
    inode = image_->find(it->second);
  }
  if (inode->directory) return std::nullopt;
  return inode->durable.read_all();
}

std::uint64_t SimFs::used_bytes() const { return image_->used; }

std::uint64_t SimFs::unsynced_writes() const {
  std::uint64_t n = 0;
  for (const auto& [id, inode] : image_->inodes) n += inode.dirty.size();
  return n;
}

std::uint64_t SimFs::inodes() const { return image_->inodes.size(); }

std::uint64_t SimFs::unsynced_names() const { return image_->pending.size(); }

std::uint64_t SimFs::digest() const {
  Bytes sum;
  ByteWriter out(sum);
  for (const auto& [id, inode] : image_->inodes) {
    out.u64(id);
    out.u64(static_cast<std::uint64_t>(inode.mtime.value()));
    out.u64(static_cast<std::uint64_t>(inode.durable_mtime.value()));
    out.u64(xxh3(inode.seen.read_all(), inode.seen.size()));
    out.u64(xxh3(inode.durable.read_all(), inode.durable.size()));
    for (const auto& write : inode.dirty) {
      out.u64(write.offset);
      out.u64(xxh3(write.bytes, write.resize ? 1 : 0));
    }
    for (const auto* names : {&inode.names, &inode.durable_names}) {
      out.u64(names->size());
      for (const auto& [name, child] : *names) {
        out.u64(xxh3(as_bytes(name), child));
      }
    }
  }
  for (const auto& op : image_->pending) {
    out.u64(xxh3(as_bytes(op.from_name), op.from_dir));
    out.u64(xxh3(as_bytes(op.to_name), op.to_dir));
    out.u64(op.child);
  }
  return xxh3(sum, 0);
}

std::unique_ptr<SimFs> SimFs::clone() const {
  auto copy = std::make_unique<SimFs>(seed_);
  *copy->image_ = *image_;
  copy->faults = faults;
  copy->faults_rng_ = faults_rng_;
  copy->ops_ = ops_;
  copy->cuts_ = cuts_;
  copy->process_restart();  // handles and locks stay with the original
  return copy;
}

void SimFs::reseed(std::uint64_t seed) {
  seed_ = seed;
  faults_rng_ = Rng(derive(seed, "fs-faults"));
}

// ---- FileSystem --------------------------------------------------------------------------------

namespace {
Error failed(const char* verb, const std::string& path, int os_errno) {
  return Error::system(os_errno, cat(verb, " ", path));
}
}  // namespace

Result<void> SimFs::sync_file(Inode& inode, const std::string& path, const char* verb,
                              bool data_only) {
  bool torn = false;
  int e = enter_mutating(FsCall::sync, path, &torn);
  if (frozen_) return failed(verb, path, EIO);  // the power went: the writes stay undecided
  ++stats.syncs;
  mix(FsCall::sync, inode.id, inode.dirty.size());
  if (e == 0 && faults_rng_.chance(faults.eio_sync)) e = EIO;
  if (e != 0) {
    ++stats.eio;
    for (const auto& write : std::exchange(inode.dirty, {})) {
      if (faults_rng_.below(2) == 0) Image::land(inode, write);
    }
    return failed(verb, path, e);
  }
  if (faults_rng_.chance(faults.lying_sync)) {
    ++stats.lied;
    return ok();
  }
  // The inode is written whole whenever its size has to be.
  if (!data_only || inode.durable.size() != inode.seen.size()) inode.durable_mtime = inode.mtime;
  for (const auto& write : inode.dirty) Image::land(inode, write);
  inode.dirty.clear();
  if (faults.sync_covers_names) image_->sync_all_names();
  return ok();
}

Result<std::unique_ptr<File>> SimFs::open(const std::string& path, OpenMode mode) {
  if (int e = enter(FsCall::open, path)) return failed("open", path, e);
  Image::Place place;
  if (int e = image_->resolve(path, place)) return failed("open", path, e);
  const bool creates = mode == OpenMode::create || mode == OpenMode::create_new;
  const bool writable = mode != OpenMode::read;
  if (place.id != 0) {
    if (mode == OpenMode::create_new) return failed("open", path, EEXIST);
    if (image_->at(place.id).directory) return failed("open", path, EISDIR);
    if (writable && faults.read_only) return failed("open", path, EROFS);
    return std::unique_ptr<File>(new SimFile(*this, place.id, path, writable));
  }
  if (!creates) return failed("open", path, ENOENT);
  if (faults.read_only) return failed("open", path, EROFS);
  bool torn = false;
  if (++ops_ >= cut_at_) {
    frozen_ = true;
    torn = cut_how_ == Cut::during_call;
    if (on_cut_) on_cut_();
    if (!torn) return failed("open", path, EIO);
  }
  Inode& inode = image_->inodes[++image_->last_id];
  inode.id = image_->last_id;
  inode.linked = true;
  inode.mtime = inode.durable_mtime = now();
  Inode& dir = image_->at(place.dir);
  dir.names[place.name] = inode.id;
  dir.mtime = now();
  Image::NameOp op;
  op.to_dir = place.dir;
  op.to_name = place.name;
  op.child = inode.id;
  image_->record(std::move(op));
  mix(FsCall::open, inode.id, place.dir);
  if (torn) return failed("open", path, EIO);
  return std::unique_ptr<File>(new SimFile(*this, inode.id, path, true));
}

Result<void> SimFs::mkdir(const std::string& path) {
  bool torn = false;
  const int e = enter_mutating(FsCall::mkdir, path, &torn);
  if (e != 0 && !torn) return failed("mkdir", path, e);
  Image::Place place;
  if (int bad = image_->resolve(path, place)) return failed("mkdir", path, bad);
  if (place.id != 0) return failed("mkdir", path, EEXIST);
  Inode& inode = image_->inodes[++image_->last_id];
  inode.id = image_->last_id;
  inode.directory = true;
  inode.linked = true;
  inode.mtime = inode.durable_mtime = now();
  Inode& dir = image_->at(place.dir);
  dir.names[place.name] = inode.id;
  dir.mtime = now();
  Image::NameOp op;
  op.to_dir = place.dir;
  op.to_name = place.name;
  op.child = inode.id;
  image_->record(std::move(op));
  mix(FsCall::mkdir, inode.id, place.dir);
  if (torn) return failed("mkdir", path, e);
  return ok();
}

Result<void> SimFs::remove(const std::string& path) {
  bool torn = false;
  const int e = enter_mutating(FsCall::remove, path, &torn);
  if (e != 0 && !torn) return failed("remove", path, e);
  Image::Place place;
  if (int bad = image_->resolve(path, place)) return failed("remove", path, bad);
  if (place.id == 0) return failed("remove", path, ENOENT);
  Inode& inode = image_->at(place.id);
  if (inode.directory) return failed("remove", path, EISDIR);
  Inode& dir = image_->at(place.dir);
  dir.names.erase(place.name);
  dir.mtime = now();
  image_->unlink_seen(inode);
  Image::NameOp op;
  op.from_dir = place.dir;
  op.from_name = place.name;
  op.child = place.id;
  image_->record(std::move(op));
  mix(FsCall::remove, place.id, place.dir);
  if (torn) return failed("remove", path, e);
  return ok();
}

Result<void> SimFs::rmdir(const std::string& path) {
  bool torn = false;
  const int e = enter_mutating(FsCall::rmdir, path, &torn);
  if (e != 0 && !torn) return failed("rmdir", path, e);
  Image::Place place;
  if (int bad = image_->resolve(path, place)) return failed("rmdir", path, bad);
  if (place.id == 0) return failed("rmdir", path, ENOENT);
  if (place.id == kRoot) return failed("rmdir", path, EBUSY);
  Inode& inode = image_->at(place.id);
  if (!inode.directory) return failed("rmdir", path, ENOTDIR);
  if (!inode.names.empty()) return failed("rmdir", path, ENOTEMPTY);
  Inode& dir = image_->at(place.dir);
  dir.names.erase(place.name);
  dir.mtime = now();
  image_->unlink_seen(inode);
  Image::NameOp op;
  op.from_dir = place.dir;
  op.from_name = place.name;
  op.child = place.id;
  image_->record(std::move(op));
  mix(FsCall::rmdir, place.id, place.dir);
  if (torn) return failed("rmdir", path, e);
  return ok();
}

Result<void> SimFs::rename(const std::string& from, const std::string& to) {
  bool torn = false;
  const int e = enter_mutating(FsCall::rename, from, &torn);
  const auto fail = [&](int os_errno) {
    return Error::system(os_errno, cat("rename ", from, " to ", to));
  };
  if (e != 0 && !torn) return fail(e);
  Image::Place source, target;
  if (int bad = image_->resolve(from, source)) return fail(bad);
  if (int bad = image_->resolve(to, target)) return fail(bad);
  if (source.id == 0) return fail(ENOENT);
  if (source.id == kRoot || target.id == kRoot) return fail(EBUSY);
  if (source.id == target.id) return torn ? Result<void>(fail(e)) : Result<void>(ok());
  Inode& child = image_->at(source.id);
  if (std::find(target.passed.begin(), target.passed.end(), source.id) != target.passed.end()) {
    return fail(EINVAL);  // into itself
  }
  Image::NameOp op;
  if (target.id != 0) {
    Inode& old = image_->at(target.id);
    if (child.directory && !old.directory) return fail(ENOTDIR);
    if (!child.directory && old.directory) return fail(EISDIR);
    if (old.directory && !old.names.empty()) return fail(ENOTEMPTY);
    if (old.directory) op.replaced_dir = old.id;
    image_->unlink_seen(old);
  }
  image_->at(source.dir).names.erase(source.name);
  image_->at(target.dir).names[target.name] = source.id;
  image_->at(source.dir).mtime = now();
  image_->at(target.dir).mtime = now();
  op.from_dir = source.dir;
  op.from_name = source.name;
  op.to_dir = target.dir;
  op.to_name = target.name;
  op.child = source.id;
  op.moves_directory = child.directory;
  image_->record(std::move(op));
  if (target.id != 0) image_->reap(target.id);
  mix(FsCall::rename, source.id, target.dir);
  if (torn) return fail(e);
  return ok();
}

Result<std::vector<std::string>> SimFs::list(const std::string& directory) {
  if (int e = enter(FsCall::list, directory)) return failed("list", directory, e);
  if (faults_rng_.chance(faults.eio_read)) {
    ++stats.eio;
    return failed("list", directory, EIO);
  }
  Image::Place place;
  if (int e = image_->resolve(directory, place)) return failed("list", directory, e);
  if (place.id == 0) return failed("list", directory, ENOENT);
  const Inode& dir = image_->at(place.id);
  if (!dir.directory) return failed("list", directory, ENOTDIR);
  std::vector<std::string> names;
  names.reserve(dir.names.size());
  for (const auto& [name, id] : dir.names) names.push_back(name);
  return names;
}

Result<FileStat> SimFs::stat(const std::string& path) {
  if (int e = enter(FsCall::stat, path)) return failed("stat", path, e);
  Image::Place place;
  if (int e = image_->resolve(path, place)) return failed("stat", path, e);
  if (place.id == 0) return failed("stat", path, ENOENT);
  const Inode& inode = image_->at(place.id);
  FileStat out;
  out.is_directory = inode.directory;
  out.size = inode.seen.size();
  out.mtime = inode.mtime;
  out.id = inode.id;
  return out;
}

Result<void> SimFs::set_mtime(const std::string& path, UnixMillis mtime) {
  bool torn = false;
  const int e = enter_mutating(FsCall::set_mtime, path, &torn);
  if (e != 0 && !torn) return failed("set mtime of", path, e);
  Image::Place place;
  if (int bad = image_->resolve(path, place)) return failed("set mtime of", path, bad);
  if (place.id == 0) return failed("set mtime of", path, ENOENT);
  image_->at(place.id).mtime = mtime;
  mix(FsCall::set_mtime, place.id, static_cast<std::uint64_t>(mtime.value()));
  if (torn) return failed("set mtime of", path, e);
  return ok();
}

Result<void> SimFs::sync_dir(const std::string& directory) {
  bool torn = false;
  int e = enter_mutating(FsCall::sync_dir, directory, &torn);
  if (frozen_) return failed("sync directory", directory, EIO);
  Image::Place place;
  if (int bad = image_->resolve(directory, place)) return failed("sync directory", directory, bad);
  if (place.id == 0) return failed("sync directory", directory, ENOENT);
  Inode& dir = image_->at(place.id);
  if (!dir.directory) return failed("sync directory", directory, ENOTDIR);
  ++stats.syncs;
  mix(FsCall::sync_dir, place.id, image_->pending.size());
  if (e == 0 && faults_rng_.chance(faults.eio_sync)) e = EIO;
  if (e != 0) {
    ++stats.eio;
    return failed("sync directory", directory, e);
  }
  if (faults_rng_.chance(faults.lying_sync)) {
    ++stats.lied;
    return ok();
  }
  dir.durable_mtime = dir.mtime;
  if (faults.sync_covers_names) {
    image_->sync_all_names();
  } else {
    image_->sync_names(place.id);
  }
  return ok();
}

Result<DiskSpace> SimFs::space(const std::string& path) {
  if (int e = enter(FsCall::space, path)) return failed("statfs", path, e);
  Image::Place place;
  if (int e = image_->resolve(path, place)) return failed("statfs", path, e);
  if (place.id == 0) return failed("statfs", path, ENOENT);
  DiskSpace out;
  out.total = faults.capacity_bytes;
  out.available = out.total > image_->used ? out.total - image_->used : 0;
  return out;
}

}  // namespace narad::sim
