// What a power cut leaves of a disk.
#include <algorithm>
#include <utility>

#include "pkg/sim/fs_image.h"
#include "pkg/sim/sim_fs.h"

namespace narad::sim {

namespace {

constexpr std::uint64_t kSector = 512;

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

void settle_write(FsInode& inode, const FsInode::Write& write, Fate fate, Rng& rng,
                  SimFs::Stats& stats) {
  switch (fate) {
    case Fate::keep:
      ++stats.kept;
      inode.land(write);
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
      inode.land(write);
      auto [at, noise] = garbage_in(rng, write.offset, write.bytes.size());
      inode.durable.write(at, noise);
      break;
    }
  }
}

void settle_writes(FsInode& inode, Rng& rng, const FsFaults& faults, SimFs::Stats& stats) {
  // Independent fates alone would make "all of it landed" and "a clean prefix landed" rare.
  const std::uint64_t mood = rng.below(4);
  const bool by_prefix = faults.cut_keep != 0 && faults.cut_drop != 0 && mood >= 2;
  const auto prefix =
      by_prefix ? static_cast<std::size_t>(rng.below(inode.dirty.size() + 1)) : std::size_t{0};
  for (std::size_t i = 0; i < inode.dirty.size(); ++i) {
    const FsInode::Write& write = inode.dirty[i];
    Fate fate = draw_fate(rng, faults);
    if (by_prefix && i < prefix) fate = Fate::keep;
    if (by_prefix && (i > prefix || (i == prefix && mood == 2))) fate = Fate::drop;
    if (write.resize && fate != Fate::keep && fate != Fate::drop) {
      fate = rng.below(2) == 0 ? Fate::keep : Fate::drop;
    }
    if (write.torn && fate == Fate::keep) fate = Fate::tear;
    settle_write(inode, write, fate, rng, stats);
  }
  inode.dirty.clear();
}

}  // namespace

void SimFs::power_cycle() {
  ++cuts_;
  ++stats.cuts;
  FsImage& image = *image_;
  // A journalling file system keeps the order of directory operations: a prefix survives.
  Rng names_rng(derive(seed_, "cut-names", cuts_));
  const auto keep = static_cast<std::size_t>(names_rng.below(image.pending.size() + 1));
  stats.names_kept += keep;
  stats.names_lost += image.pending.size() - keep;
  image.cut_names(keep);

  // The seen view becomes the durable one.
  image.used = 0;
  for (auto& [id, inode] : image.inodes) {
    Rng rng(derive(derive(seed_, "cut-file", cuts_), "inode", id));
    settle_writes(inode, rng, faults, stats);
    if (inode.mtime != inode.durable_mtime && rng.below(2) == 0) inode.durable_mtime = inode.mtime;
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

void SimFs::wipe() {
  const std::uint64_t last_id = image_->last_id;
  image_ = std::make_unique<FsImage>();
  image_->last_id = last_id;  // nothing on it has ever been on the old one
  frozen_ = false;
  cancel_cut();
  ++epoch_;
}

}  // namespace narad::sim
