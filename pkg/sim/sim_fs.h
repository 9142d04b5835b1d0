#pragma once
// SimFs: the disk of one simulated machine. It outlives the node and forgets what was not synced.
//
// Two views of everything: what processes see (the page cache) and what is durable (the platter),
// with the unsynced writes of each file and the unsynced operations on directories in between.
// Synchronous and stand-alone: needs no scheduler, no Asio; one thread. Also fit for unit tests of
// anything that takes a FileSystem&.
//
// Promises kept unless a fault says otherwise: what sync()/datasync() answered ok for is durable; a
// name is durable once sync_dir() of its directory was; a rename is atomic; a rename between two
// directories is durable once *both* were synced. Nothing more: not even that a synced file has a
// durable name. See simulation.md, "The disk".
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/unique_function.h"
#include "pkg/env/clock.h"
#include "pkg/env/fs.h"
#include "pkg/sim/rng.h"

namespace narad::sim {

struct FsImage;
struct FsInode;

// What the disk does wrong. All odds are per call, in parts per million, 0 by default.
struct FsFaults {
  Ppm eio_read = 0;
  Ppm eio_write = 0;    // nothing of that write is stored
  Ppm eio_sync = 0;     // each unsynced write landed or was lost, and the pages are clean: as Linux
                        // does it, the next sync says yes. For sync_dir: nothing became durable
  Ppm lying_sync = 0;   // says yes, makes nothing durable (the writes stay unsynced)
  Ppm short_read = 0;   // at least one byte
  Ppm short_write = 0;  // at least one byte
  std::uint64_t capacity_bytes = std::uint64_t{1} << 40;  // then ENOSPC
  std::uint64_t file_bytes_max = std::uint64_t{1} << 36;  // then EFBIG
  bool read_only = false;  // EROFS for everything that changes names,
                           // sizes or bytes
  // true: as ext4, any good sync makes all earlier directory operations durable
  bool sync_covers_names = false;
  // What a power cut does with each unsynced write (weights).
  std::uint32_t cut_keep = 1;
  std::uint32_t cut_drop = 1;
  std::uint32_t cut_tear = 1;     // each 512-byte sector landed or did not
  std::uint32_t cut_garbage = 1;  // one sector's part of it is garbage, the rest landed
  // Virtual time the calls of a job take; whoever runs the job asks take_latency().
  Nanos call_latency{0};
  Nanos sync_latency{0};
  Ppm slow = 0;  // such a call takes up to slow_max longer
  Nanos slow_max{0};
};

// Kinds of calls, for counting and for failing the n-th.
enum class FsCall : std::uint8_t {
  open,
  pread,
  pwrite,  // also pwritev
  truncate,
  allocate,
  sync,  // also datasync
  size,
  try_lock,
  remove,
  rename,
  mkdir,
  rmdir,
  list,
  stat,
  set_mtime,
  sync_dir,
  space,
  any  // for fail_call only: every call
};
inline constexpr std::size_t kFsCalls = static_cast<std::size_t>(FsCall::any) + 1;
const char* to_string(FsCall call);

class SimFs final : public FileSystem {
 public:
  explicit SimFs(std::uint64_t seed = 1);
  ~SimFs() override;  // REQUIRES: its files are gone

  FsFaults faults;

  struct Stats {
    std::uint64_t writes = 0, syncs = 0;
    std::uint64_t cuts = 0;                                      // power cycles
    std::uint64_t kept = 0, dropped = 0, torn = 0, garbage = 0;  // fates of unsynced writes
    std::uint64_t names_kept = 0, names_lost = 0;  // fates of unsynced directory operations
    std::uint64_t lied = 0, eio = 0, enospc = 0, scripted = 0;
    std::uint64_t short_reads = 0, short_writes = 0, slow = 0;
    Stats& operator+=(const Stats& other);
  };
  Stats stats;

  // ---- hooks (optional) -----------------------------------------------------------------------
  // Where mtimes come from. Default: a fixed date plus a millisecond for each mutating call.
  void set_clock(std::function<UnixMillis()> wall);
  // Called with a few numbers per mutating call, for the hash of a run.
  void set_trace(std::function<void(std::uint64_t)> mix);
  // Called with each mutating call, which ops() counts already.
  void set_watch(std::function<void(FsCall, const std::string& path)> watch);

  // ---- crashes --------------------------------------------------------------------------------
  // From now on every call fails with EIO and changes nothing: the machine lost its power, or the
  // process its life. Destructors of dying components may call; nothing reaches the disk.
  void freeze();
  bool frozen() const;
  // Mutating calls so far: open that creates, pwrite, truncate, allocate, sync, remove, rename,
  // mkdir, rmdir, set_mtime, sync_dir; failed ones included.
  std::uint64_t ops() const;
  enum class Cut {
    before_call,  // the call has no effect at all
    during_call   // a write lands torn; another operation stays unsynced, so it may survive
  };
  // At the mutating call that makes ops() reach `op`, the call fails with EIO, the disk freezes
  // and `then` (if any) is called. power_cycle() clears it. 0 or a number already passed: at the
  // next mutating call.
  void cut_power_at(std::uint64_t op, UniqueFunction then = {}, Cut how = Cut::before_call);
  void cancel_cut();
  // Works out what survived the power cut, makes it the new truth and thaws the disk. Open handles
  // become stale (EIO for ever), locks are gone.
  void power_cycle();
  // The disk was replaced by an empty one. As after power_cycle(): handles are stale, locks gone.
  void wipe();
  // The process died, the machine did not: the page cache survives, handles and locks do not.
  void process_restart();

  // ---- faults by hand -------------------------------------------------------------------------
  // Makes the n-th call from now (1 = next) of `kind` fail with `os_errno`; with `persistent`, all
  // later ones too. Only calls on paths containing `path_part` count. A failing sync does what
  // eio_sync does. Several may be armed; each fires on its own.
  void fail_call(FsCall kind, std::uint64_t n, bool persistent = false, int os_errno = 5 /* EIO */,
                 std::string path_part = {});
  void clear_failures();
  // Calls of that kind so far (FsCall::any: all).
  std::uint64_t calls(FsCall kind) const;
  // Whether any armed failure has fired since clear_failures().
  bool failure_fired() const;
  // Bit rot: changes the byte in both views, unsynced writes aside. False if there is no such byte.
  bool corrupt(const std::string& path, std::uint64_t offset, std::byte xor_mask);
  // Flips one random bit of a file; answers its byte offset, or nothing if the file is
  // empty/absent.
  std::optional<std::uint64_t> flip_bit(const std::string& path);

  // The time asked for by calls since the last take.
  Nanos take_latency();

  // ---- looking from outside: no faults, no counting -------------------------------------------
  // Every path of the seen view, sorted; directories end in '/'. Without the root.
  std::vector<std::string> all_paths() const;
  std::optional<Bytes> seen_bytes(const std::string& path) const;
  // What a power cut that drops everything unsynced would leave under that name.
  std::optional<Bytes> durable_bytes(const std::string& path) const;
  std::uint64_t used_bytes() const;
  std::uint64_t unsynced_writes() const;
  std::uint64_t unsynced_names() const;
  std::uint64_t inodes() const;  // files and directories that exist in either view, or are open
  // A hash of both views and of what lies between.
  std::uint64_t digest() const;

  // A copy of the disk as it is, cheap (pages are shared until written). It has no open handles,
  // locks, hooks or armed failures; faults and random state are copied.
  std::unique_ptr<SimFs> clone() const;
  // New luck for everything that is still to be decided.
  void reseed(std::uint64_t seed);

  // ---- FileSystem -----------------------------------------------------------------------------
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override;
  Result<void> remove(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> mkdir(const std::string& path) override;
  Result<void> rmdir(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& directory) override;
  Result<FileStat> stat(const std::string& path) override;
  Result<void> set_mtime(const std::string& path, UnixMillis mtime) override;
  Result<void> sync_dir(const std::string& directory) override;
  Result<DiskSpace> space(const std::string& path) override;

 private:
  friend class SimFile;
  struct Failure {
    FsCall kind;
    std::uint64_t at;  // fires when `seen` reaches it
    std::uint64_t seen = 0;
    bool persistent;
    int os_errno;
    std::string path_part;
  };

  // 0, or the errno with which the call must fail before it does anything.
  int enter(FsCall call, const std::string& path);
  // The same for mutating calls; sets *torn when the power goes during the call.
  int enter_mutating(FsCall call, const std::string& path, bool* torn);
  UnixMillis now() const;
  void mix(FsCall call, std::uint64_t a, std::uint64_t b);
  Result<void> sync_file(FsInode& inode, const std::string& path, const char* verb, bool data_only);

  std::unique_ptr<FsImage> image_;
  std::uint64_t seed_;
  Rng faults_rng_;
  bool frozen_ = false;
  std::uint64_t epoch_ = 1;  // handles of earlier epochs are stale
  std::uint64_t ops_ = 0;
  std::uint64_t cut_at_ = ~std::uint64_t{0};
  Cut cut_how_ = Cut::before_call;
  UniqueFunction on_cut_;
  std::uint64_t cuts_ = 0;
  std::array<std::uint64_t, kFsCalls> calls_{};
  std::vector<Failure> failures_;
  bool failure_fired_ = false;
  Nanos latency_{0};
  std::function<UnixMillis()> wall_;
  std::function<void(std::uint64_t)> trace_;
  std::function<void(FsCall, const std::string&)> watch_;
};

}  // namespace narad::sim
