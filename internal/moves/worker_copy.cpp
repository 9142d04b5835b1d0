// Worker: one pass of copying, before the freeze or under it.
#include <algorithm>
#include <cerrno>

#include "internal/moves/worker.h"
#include "pkg/base/text.h"

namespace narad::moves {
namespace {

// What moves leave free on a disk: a twentieth of it, and no more than 256 MiB.
constexpr std::uint64_t kSpareBytesMax = 256u << 20;
constexpr std::uint64_t kSpareShare = 20;
std::uint64_t spare_of(const DiskSpace& space) {
  return std::min(kSpareBytesMax, space.total / kSpareShare);
}

// ENOSPC if `bytes` more would go into what is left free.
Result<void> check_spare(FileSystem& fs, const std::string& disk, std::uint64_t bytes) {
  NARAD_TRY(const DiskSpace space, fs.space(disk));
  if (space.available >= bytes + spare_of(space)) return ok();
  return Error(Errc::unavailable,
               cat(disk, " has ", space.available, " bytes left, of which ", spare_of(space),
                   " are kept free"),
               ENOSPC);
}

}  // namespace

// Chunks of one pass, fetched a few at a time, taken in order. Shared by those who fetch and the
// pass, either of which may end before the other.
struct Worker::Fetch {
  explicit Fetch(Env& env) : changed(env) {}
  std::vector<SegmentRange> ranges;
  std::size_t window = 1;
  std::size_t next = 0;   // to be fetched
  std::size_t taken = 0;  // by the pass
  bool frozen = false;    // traffic waits for it
  bool stopped = false;
  bool broken_off = false;  // by a pause, perhaps one that is over by now: nobody fetches on
  std::map<std::size_t, Result<std::string>> landed;
  Event changed;

  void stop() {
    stopped = true;
    changed.notify_all();
  }
};

void Worker::take_figures() {
  if (!staging_ || !staging_->reached_source()) return;
  figures_.staged = staging_->bytes();
  figures_.listed = staging_->listed_bytes();
  figures_.write_rate = staging_->newest().listing.bytes_per_second;
  figures_.highest_hwm = staging_->highest_hwm();
}

// Takes up what is there, which may be what another move left behind.
Task<Result<void>> Worker::open_staging() {
  if (std::exchange(look_again_, false) && staging_) {
    auto look = [](Staging& staging) { return staging.look_again(); };
    auto looked = co_await job("look at staging", std::move(look));
    // Not there any more at all: it was installed, and left where that is.
    if (!looked && looked.error().code() != Errc::not_found) co_return looked.error();
    if (!looked) staging_.reset();
  }
  if (!staging_) {
    auto open = [&fs = env_.fs, directory = staged_path(),
                 owner = StagingOwner{key_.partition, key_.incarnation, key_.move_id,
                                      key_.source}]() -> Result<std::shared_ptr<Staging>> {
      NARAD_TRY(auto staging, Staging::open(fs, directory, owner));
      return std::shared_ptr<Staging>(std::move(staging));
    };
    auto opened = co_await blocking(env_, "open staging", open);
    if (!opened && opened.error().code() == Errc::conflict) {
      NARAD_CO_TRY(co_await dispose_of(key_.source, key_.move_id, false));
      opened = co_await blocking(env_, "open staging", open);
    }
    if (!opened) co_return opened.error();
    staging_ = std::move(opened.value());
  }
  for (bool more = true; more && !broken_off();) {
    auto read = [](Staging& staging) { return staging.read_back_one(); };
    NARAD_CO_TRY(more, co_await job("read staging back", std::move(read)));
  }
  take_figures();
  co_return ok();
}

Task<Result<wire::Listing>> Worker::take_listing(Step step) {
  if (step.frozen && frozen_listing_) {
    wire::Listing listing = std::move(*frozen_listing_);
    frozen_listing_.reset();
    co_return listing;
  }
  Task<Result<wire::Listing>> call = shop_.source.listing(key_.source, ref());
  co_return co_await unless_over(std::move(call));
}

void Worker::fail_pass(const Error& error) {
  if (error.os_errno() == ENOSPC || error.os_errno() == EDQUOT) {
    mover_.on_no_room(now(), jitter(), error.text());
  } else {
    fail(error);
  }
}

// Room for what is listed and not here, beside what the other workers have yet to write, and some
// for what this node takes from clients (trap 66).
Task<Result<void>> Worker::reserve_room() {
  const std::uint64_t lacks = figures_.listed - std::min(figures_.staged, figures_.listed);
  shop_.reserved[key_.move_id] = {key_.disk, lacks};
  const std::string disk = shop_.place.disk(key_.disk).path;
  auto ask = [&fs = env_.fs, disk] { return fs.space(disk); };
  NARAD_CO_TRY(const DiskSpace space, co_await blocking(env_, "room for a move", std::move(ask)));
  std::uint64_t promised = 0;
  for (const auto& [id, other] : shop_.reserved) {
    if (id != key_.move_id && other.disk == key_.disk) promised += other.bytes;
  }
  const std::uint64_t spare = spare_of(space);
  if (space.available >= lacks + promised + spare) co_return ok();
  co_return Error(Errc::unavailable,
                  cat(disk, " has ", space.available, " bytes left; ", lacks, " are to come, ",
                      promised, " are promised to other moves, and ", spare, " are kept free"),
                  ENOSPC);
}

Task<void> Worker::pass(Step step) {
  if (auto opened = co_await open_staging(); !opened) {
    fail_pass(opened.error());
    co_return;
  }
  auto listing = co_await take_listing(step);
  if (!listing) {
    fail(listing.error());
    co_return;
  }
  if (listing.value().incarnation != key_.incarnation) {
    fail(Error(Errc::gone, "the source lists another life of the topic"));
    co_return;
  }
  const UnixMillis arrived = env_.clock.wall_millis();
  const auto recorded =
      mover_.phase() == "draining" ? Staging::Recorded::with_the_copy : Staging::Recorded::now;
  auto take = [listing = std::move(listing.value()), arrived, recorded,
               believe = shop_.timing.plant_believes_less](Staging& staging) mutable {
    return staging.accept(std::move(listing), arrived, recorded, believe);
  };
  auto accepted = co_await job("take listing", std::move(take));
  if (!accepted && accepted.error().code() == Errc::conflict) {
    mover_.on_went_back(now(), jitter(), accepted.error().text());
    co_return;
  }
  auto copied = accepted ? Result<std::uint64_t>(0) : Result<std::uint64_t>(accepted.error());
  if (accepted) {
    take_figures();
    // Not under a freeze: the tail is small, and each chunk of it leaves free what is kept free.
    Result<void> room = ok();
    if (mover_.phase() != "draining") room = co_await reserve_room();
    copied = room ? co_await copy_missing() : Result<std::uint64_t>(room.error());
    take_figures();
  }
  if (!copied && copied.error().code() == Errc::cancelled && !mover_.ended()) {
    mover_.on_broken_off(now());
    co_return;
  }
  if (!copied) {
    fail_pass(copied.error());
    co_return;
  }
  mover_.on_pass(now(), copied.value(), staging_->newest().listing.hwm);
}

// What was listed and is not here; answers how many bytes that were.
Task<Result<std::uint64_t>> Worker::copy_missing() {
  // More than a listing read before: a restart of the source may have made more of it readable.
  auto unread = [](Staging& staging) { return staging.read_back_one(); };
  for (bool more = true; more && !broken_off();) {
    NARAD_CO_TRY(more, co_await job("read staging back", unread));
  }
  auto fetch = std::make_shared<Fetch>(env_);
  const std::uint64_t chunk = std::min(shop_.timing.chunk_bytes, wire::kChunkBytesMax);
  fetch->ranges = staging_->missing(own_.at_once(from_.at_once(shop_.throttle.at_once(chunk))));
  fetch->window = std::max<std::size_t>(1, shop_.timing.chunks_in_flight);
  const bool draining = mover_.phase() == "draining";
  fetch->frozen = draining;
  start_fetching(fetch);
  unsynced_ = 0;
  auto copied = co_await copy_ranges(fetch);
  fetch->stop();
  // Whatever came of it: no sync goes on beside the next step.
  auto synced = co_await end_sync();
  if (!copied) co_return copied;
  if (!synced) co_return synced.error();
  const std::vector<Offset> open = staging_->undigested(draining);
  for (const Offset base : open) {
    if (broken_off()) co_return Error(Errc::cancelled, "the move is over, or paused");
    NARAD_CO_TRY(co_await hold_against_digests(base));
  }
  if (!draining) {
    auto sync = [](Staging& staging) -> Result<void> {
      NARAD_TRY(staging.sync());
      return staging.walk_ahead();
    };
    NARAD_CO_TRY(co_await job("sync staging", std::move(sync)));
  }
  co_return copied;
}

Task<Result<std::uint64_t>> Worker::copy_ranges(std::shared_ptr<Fetch> fetch) {
  std::uint64_t copied = 0;
  for (std::size_t i = 0; i < fetch->ranges.size(); ++i) {
    const SegmentRange range = fetch->ranges[i];
    NARAD_CO_TRY(std::string chunk, co_await next_chunk(fetch, i));
    const std::uint64_t n = chunk.size();
    NARAD_CO_TRY(co_await take_chunk(range, std::move(chunk), fetch->frozen));
    copied += n;
    if (n < range.bytes) break;  // the rest is asked for after the next listing
    const bool last = i + 1 == fetch->ranges.size() || fetch->ranges[i + 1].base != range.base;
    if (last) {
      NARAD_CO_TRY(co_await segment_landed(range.base));
    }
  }
  co_return copied;
}

Task<Result<void>> Worker::take_chunk(SegmentRange range, std::string bytes, bool frozen) {
  const std::uint64_t n = bytes.size();
  const std::string disk = shop_.place.disk(key_.disk).path;
  auto write = [&fs = env_.fs, disk, range,
                bytes = std::move(bytes)](Staging& staging) -> Result<void> {
    NARAD_TRY(check_spare(fs, disk, bytes.size()));
    return staging.append(range, bytes);
  };
  NARAD_CO_TRY(co_await job("write chunk", std::move(write)));
  count_landed(n);
  figures_.staged += n;
  unsynced_ += n;
  std::uint64_t piece = shop_.timing.sync_every_bytes;
  if (shop_.pace.clients_write(now())) {
    piece = shop_.timing.sync_every_bytes_beside_clients * (mover_.bulk() ? 1 : 4);
  }
  if (frozen || unsynced_ < piece) co_return ok();
  co_return co_await begin_sync(range.base, false);
}

// ---- syncs beside the copying
// ------------------------------------------------------------------------

struct Worker::Sync {
  Sync(Env& env, Offset b, bool w, std::string p)
      : base(b), whole(w), path(std::move(p)), ended(env) {}
  const Offset base;
  const bool whole;  // all of it had landed when it began
  const std::string path;
  std::optional<Result<void>> outcome;
  Event ended;
};

Task<Result<void>> Worker::begin_sync(Offset base, bool whole) {
  NARAD_CO_TRY(co_await end_sync());
  unsynced_ = 0;
  sync_ = std::make_shared<Sync>(env_, base, whole, staging_->path(base));
  tasks_.spawn("sync copy", sync_beside(this, sync_));
  co_return ok();
}

bool Worker::gives_way() {
  return mover_.bulk() && !broken_off() && shop_.pace.clients_write(now());
}

Task<void> Worker::sync_beside(Worker* self, std::shared_ptr<Sync> sync) {
  Pace& pace = self->shop_.pace;
  Mutex::Guard guard = co_await self->shop_.syncing.lock();
  while (self->gives_way() && pace.rests_until() > self->now()) {
    // Not under the lock: a move that is frozen waits for nobody's rest.
    guard.release();
    co_await sleep_for(self->env_, pace.rests_until() - self->now());
    guard = co_await self->shop_.syncing.lock();
  }
  auto work = [&fs = self->env_.fs, path = sync->path] { return sync_file(fs, path); };
  const bool gives_way = self->gives_way();
  const Nanos began = self->now();
  sync->outcome.emplace(co_await blocking(self->env_, "sync copy", std::move(work)));
  if (gives_way) pace.on_synced(began, self->now());
  sync->ended.notify_all();
}

// Waits for the one under way, if any, and takes down what came of it.
Task<Result<void>> Worker::end_sync() {
  const std::shared_ptr<Sync> sync = std::exchange(sync_, nullptr);
  if (!sync) co_return ok();
  while (!sync->outcome) co_await sync->ended.wait();
  mover_.on_progress(now());
  auto take = [base = sync->base, whole = sync->whole, outcome = *sync->outcome](Staging& staging) {
    return staging.after_sync(base, whole, outcome);
  };
  co_return co_await job("take sync", std::move(take));
}

void Worker::start_fetching(std::shared_ptr<Fetch> fetch) {
  const std::size_t n = std::min(fetch->window, fetch->ranges.size());
  for (std::size_t i = 0; i < n; ++i) tasks_.spawn("fetch chunks", fetch_some(fetch));
}

// Whoever leaves tells the pass, which would wait for it otherwise: a pause may be over before the
// pass looks.
bool Worker::must_stop(Fetch& fetch) {
  if (!fetch.stopped && broken_off()) {
    fetch.broken_off = true;
    fetch.stop();
  }
  return fetch.stopped;
}

Task<void> Worker::fetch_some(std::shared_ptr<Fetch> fetch) {
  while (!must_stop(*fetch) && fetch->next < fetch->ranges.size()) {
    if (fetch->next >= fetch->taken + fetch->window) {
      co_await fetch->changed.wait();
      continue;
    }
    const std::size_t i = fetch->next++;
    const SegmentRange range = fetch->ranges[i];
    if (fetch->frozen) {
      from_.take_now(range.bytes);
      shop_.throttle.take_now(range.bytes);
    } else {
      co_await own_.take(range.bytes);
      if (must_stop(*fetch)) co_return;
      co_await from_.take(range.bytes);
      if (must_stop(*fetch)) co_return;
      co_await shop_.throttle.take(range.bytes);
    }
    if (must_stop(*fetch)) co_return;
    auto chunk =
        co_await shop_.source.chunk(key_.source, ref(), range.base, range.from, range.bytes);
    if (!chunk) fetch->stopped = true;
    fetch->landed.emplace(i, std::move(chunk));
    fetch->changed.notify_all();
  }
}

Task<Result<std::string>> Worker::next_chunk(std::shared_ptr<Fetch> fetch, std::size_t i) {
  for (;;) {
    if (fetch->broken_off || broken_off()) {
      co_return Error(Errc::cancelled, "the move is over, or paused");
    }
    auto at = fetch->landed.find(i);
    if (at == fetch->landed.end()) {
      // One before this one may have failed, and nobody fetches on.
      for (const auto& [index, answer] : fetch->landed) {
        if (!answer) co_return answer.error();
      }
      (void)co_await fetch->changed.wait_for(shop_.timing.tick);
      continue;
    }
    Result<std::string> chunk = std::move(at->second);
    fetch->landed.erase(at);
    fetch->taken = i + 1;
    fetch->changed.notify_all();
    if (!chunk) co_return chunk.error();
    const SegmentRange& range = fetch->ranges[i];
    if (chunk.value().empty() || chunk.value().size() > range.bytes) {
      co_return Error(Errc::unavailable,
                      cat("the source answered ", chunk.value().size(), " bytes of ", range.bytes,
                          " that it lists in segment ", range.base));
    }
    co_return chunk;
  }
}

Task<Result<void>> Worker::segment_landed(Offset base) {
  if (staging_->wants_digests(base, false)) {
    NARAD_CO_TRY(co_await hold_against_digests(base));
  }
  if (!staging_->whole(base)) co_return ok();
  co_return co_await begin_sync(base, true);
}

Task<Result<void>> Worker::hold_against_digests(Offset base) {
  Task<Result<wire::SegmentDigests>> call = shop_.source.digests(key_.source, ref(), base);
  auto digests = co_await unless_over(std::move(call));
  if (!digests && digests.error().code() == Errc::not_found) {
    // An older source has none; or the segment is gone, and the next listing says so.
    const wire::Listing& listing = staging_->newest().listing;
    wire::SegmentDigests none;
    for (const wire::ListedSegment& s : listing.segments) {
      if (s.base == base) none.segment_bytes = s.bytes;
    }
    none.blocks.resize(static_cast<std::size_t>((none.segment_bytes >> 20) + 1));
    digests = std::move(none);
  }
  if (!digests) co_return digests.error();
  auto compare = [base, digests = std::move(digests.value())](Staging& staging) {
    return Result<std::vector<SegmentRange>>(staging.compare(base, digests));
  };
  NARAD_CO_TRY(const auto again, co_await job("compare digests", std::move(compare)));
  for (const SegmentRange block : again) {
    Task<Result<std::string>> fetch =
        shop_.source.chunk(key_.source, ref(), block.base, block.from, block.bytes);
    NARAD_CO_TRY(auto bytes, co_await unless_over(std::move(fetch)));
    auto replace = [block, bytes = std::move(bytes)](Staging& staging) {
      return staging.replace(block, bytes);
    };
    NARAD_CO_TRY(co_await job("replace block", std::move(replace)));
    mover_.on_progress(now());
  }
  co_return ok();
}

}  // namespace narad::moves
