#include "pkg/sim/sim_fs.h"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "pkg/base/assert.h"
#include "pkg/base/checksum.h"
#include "pkg/base/text.h"
#include "pkg/sim/fs_image.h"

namespace narad::sim {

namespace {
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
  FsInode& inode() { return fs_.image_->at(id_); }
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
    : image_(std::make_unique<FsImage>()), seed_(seed), faults_rng_(derive(seed, "fs-faults")) {
  FsInode& root = image_->at(kRootInode);
  root.mtime = root.durable_mtime = UnixMillis(kFirstMillis);
}

SimFs::~SimFs() = default;

void SimFs::set_clock(std::function<UnixMillis()> wall) { wall_ = std::move(wall); }
void SimFs::set_trace(std::function<void(std::uint64_t)> mix) { trace_ = std::move(mix); }
void SimFs::set_watch(std::function<void(FsCall, const std::string&)> watch) {
  watch_ = std::move(watch);
}
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
  ++ops_;
  if (watch_) watch_(call, path);
  if (ops_ >= cut_at_) {
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
    FsInode& inode = (it++)->second;  // reap() below may erase it
    inode.lock = nullptr;
    if (inode.opens == 0) continue;
    inode.opens = 1;
    image_->close(inode.id);
  }
}

bool SimFs::corrupt(const std::string& path, std::uint64_t offset, std::byte xor_mask) {
  FsPlace place;
  if (image_->resolve(path, place) != 0 || place.id == 0) return false;
  FsInode& inode = image_->at(place.id);
  if (inode.directory || offset >= inode.durable.size()) return false;
  inode.durable.flip(offset, xor_mask);
  if (offset < inode.seen.size()) inode.seen.flip(offset, xor_mask);
  return true;
}

std::optional<std::uint64_t> SimFs::flip_bit(const std::string& path) {
  FsPlace place;
  if (image_->resolve(path, place) != 0 || place.id == 0) return std::nullopt;
  const FsInode& inode = image_->at(place.id);
  if (inode.directory || inode.durable.size() == 0) return std::nullopt;
  const std::uint64_t offset = faults_rng_.below(inode.durable.size());
  const auto bit = static_cast<unsigned>(faults_rng_.below(8));
  corrupt(path, offset, static_cast<std::byte>(1u << bit));
  return offset;
}

// ---- looking from outside ----------------------------------------------------------------------

std::vector<std::string> SimFs::all_paths() const {
  std::vector<std::string> out;
  std::vector<std::pair<std::string, std::uint64_t>> walk{{"/", kRootInode}};
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
  FsPlace place;
  if (image_->resolve(path, place) != 0 || place.id == 0) return std::nullopt;
  const FsInode* inode = image_->find(place.id);
  if (inode->directory) return std::nullopt;
  return inode->seen.read_all();
}

std::optional<Bytes> SimFs::durable_bytes(const std::string& path) const {
  const FsInode* inode = image_->find(kRootInode);
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

Result<void> SimFs::sync_file(FsInode& inode, const std::string& path, const char* verb,
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
      if (faults_rng_.below(2) == 0) inode.land(write);
    }
    return failed(verb, path, e);
  }
  if (faults_rng_.chance(faults.lying_sync)) {
    ++stats.lied;
    return ok();
  }
  // The inode is written whole whenever its size has to be.
  if (!data_only || inode.durable.size() != inode.seen.size()) inode.durable_mtime = inode.mtime;
  for (const auto& write : inode.dirty) inode.land(write);
  inode.dirty.clear();
  if (faults.sync_covers_names) image_->sync_all_names();
  return ok();
}

Result<std::unique_ptr<File>> SimFs::open(const std::string& path, OpenMode mode) {
  if (int e = enter(FsCall::open, path)) return failed("open", path, e);
  FsPlace place;
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
  ++ops_;
  if (watch_) watch_(FsCall::open, path);
  if (ops_ >= cut_at_) {
    frozen_ = true;
    torn = cut_how_ == Cut::during_call;
    if (on_cut_) on_cut_();
    if (!torn) return failed("open", path, EIO);
  }
  FsInode& inode = image_->create(place, false, now());
  mix(FsCall::open, inode.id, place.dir);
  if (torn) return failed("open", path, EIO);
  return std::unique_ptr<File>(new SimFile(*this, inode.id, path, true));
}

Result<void> SimFs::mkdir(const std::string& path) {
  bool torn = false;
  const int e = enter_mutating(FsCall::mkdir, path, &torn);
  if (e != 0 && !torn) return failed("mkdir", path, e);
  FsPlace place;
  if (int bad = image_->resolve(path, place)) return failed("mkdir", path, bad);
  if (place.id != 0) return failed("mkdir", path, EEXIST);
  const FsInode& inode = image_->create(place, true, now());
  mix(FsCall::mkdir, inode.id, place.dir);
  if (torn) return failed("mkdir", path, e);
  return ok();
}

Result<void> SimFs::remove(const std::string& path) {
  bool torn = false;
  const int e = enter_mutating(FsCall::remove, path, &torn);
  if (e != 0 && !torn) return failed("remove", path, e);
  FsPlace place;
  if (int bad = image_->resolve(path, place)) return failed("remove", path, bad);
  if (place.id == 0) return failed("remove", path, ENOENT);
  FsInode& inode = image_->at(place.id);
  if (inode.directory) return failed("remove", path, EISDIR);
  image_->unlink(place, now());
  mix(FsCall::remove, place.id, place.dir);
  if (torn) return failed("remove", path, e);
  return ok();
}

Result<void> SimFs::rmdir(const std::string& path) {
  bool torn = false;
  const int e = enter_mutating(FsCall::rmdir, path, &torn);
  if (e != 0 && !torn) return failed("rmdir", path, e);
  FsPlace place;
  if (int bad = image_->resolve(path, place)) return failed("rmdir", path, bad);
  if (place.id == 0) return failed("rmdir", path, ENOENT);
  if (place.id == kRootInode) return failed("rmdir", path, EBUSY);
  FsInode& inode = image_->at(place.id);
  if (!inode.directory) return failed("rmdir", path, ENOTDIR);
  if (!inode.names.empty()) return failed("rmdir", path, ENOTEMPTY);
  image_->unlink(place, now());
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
  FsPlace source, target;
  if (int bad = image_->resolve(from, source)) return fail(bad);
  if (int bad = image_->resolve(to, target)) return fail(bad);
  if (source.id == 0) return fail(ENOENT);
  if (source.id == kRootInode || target.id == kRootInode) return fail(EBUSY);
  if (source.id == target.id) return torn ? Result<void>(fail(e)) : Result<void>(ok());
  const FsInode& child = image_->at(source.id);
  if (std::find(target.passed.begin(), target.passed.end(), source.id) != target.passed.end()) {
    return fail(EINVAL);  // into itself
  }
  if (target.id != 0) {
    const FsInode& old = image_->at(target.id);
    if (child.directory && !old.directory) return fail(ENOTDIR);
    if (!child.directory && old.directory) return fail(EISDIR);
    if (old.directory && !old.names.empty()) return fail(ENOTEMPTY);
  }
  image_->move(source, target, now());
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
  FsPlace place;
  if (int e = image_->resolve(directory, place)) return failed("list", directory, e);
  if (place.id == 0) return failed("list", directory, ENOENT);
  const FsInode& dir = image_->at(place.id);
  if (!dir.directory) return failed("list", directory, ENOTDIR);
  std::vector<std::string> names;
  names.reserve(dir.names.size());
  for (const auto& [name, id] : dir.names) names.push_back(name);
  return names;
}

Result<FileStat> SimFs::stat(const std::string& path) {
  if (int e = enter(FsCall::stat, path)) return failed("stat", path, e);
  FsPlace place;
  if (int e = image_->resolve(path, place)) return failed("stat", path, e);
  if (place.id == 0) return failed("stat", path, ENOENT);
  const FsInode& inode = image_->at(place.id);
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
  FsPlace place;
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
  FsPlace place;
  if (int bad = image_->resolve(directory, place)) return failed("sync directory", directory, bad);
  if (place.id == 0) return failed("sync directory", directory, ENOENT);
  FsInode& dir = image_->at(place.id);
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
  FsPlace place;
  if (int e = image_->resolve(path, place)) return failed("statfs", path, e);
  if (place.id == 0) return failed("statfs", path, ENOENT);
  DiskSpace out;
  out.total = faults.capacity_bytes;
  out.available = out.total > image_->used ? out.total - image_->used : 0;
  return out;
}

}  // namespace narad::sim
