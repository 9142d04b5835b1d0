#include "internal/ingress/ingress.h"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <cstring>
#include <deque>
#include <utility>

#include "internal/ingress/wal.h"
#include "pkg/async/task_group.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::ingress {
namespace {

// An idle WAL stays below this, with its checkpoint file.
constexpr std::uint64_t kIdleBytesMax = (1u << 20) - (4u << 10);
// A buffer larger than this is not kept for the next group.
constexpr std::size_t kSpareBytesMax = 16u << 20;

// Frames back to back. Grows without zeroing what is about to be overwritten.
class FrameBuffer {
 public:
  // Room for `n` more bytes.
  std::byte* extend(std::size_t n) {
    if (size_ + n > capacity_) grow(size_ + n);
    std::byte* at = data_.get() + size_;
    size_ += n;
    return at;
  }
  std::span<std::byte> bytes() { return {data_.get(), size_}; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  void clear() { size_ = 0; }

 private:
  void grow(std::size_t needed) {
    const std::size_t capacity = std::max({needed, 2 * capacity_, std::size_t{64} << 10});
    auto data = std::make_unique_for_overwrite<std::byte[]>(capacity);
    if (size_ != 0) std::memcpy(data.get(), data_.get(), size_);
    data_ = std::move(data);
    capacity_ = capacity;
  }
  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

// Everything that shares one write and one sync.
struct Group {
  FrameBuffer frames;
  std::vector<MessagePtr> messages;
  std::vector<Parking::Ticket> waiters;
  std::optional<Result<Sequence>> outcome;  // the sequence of the first message
};
using GroupPtr = std::shared_ptr<Group>;

std::uint64_t memory_of(const Message& m) {
  return sizeof(Message) + sizeof(DurableRecord) + 64 + m.topic.size() + m.key.size() +
         m.payload.size();
}

// What the loop must know of the writer after each job that used it.
struct WriterState {
  std::vector<SegmentInfo> sealed;
  SegmentInfo active;
  WalWriter::Health health;
};
WriterState state_of(WalWriter& writer) {
  return {writer.take_sealed(), writer.segment(), writer.health()};
}

struct Opened {
  Inspection inspection;
  std::shared_ptr<WalWriter> writer;
  std::shared_ptr<CheckpointFile> checkpoint_file;
};
Result<Opened> open_files(FileSystem& fs, const WalOptions& options, OriginId origin) {
  NARAD_TRY(Inspection inspection, inspect_wal(fs, options.directory));
  NARAD_TRY(recover_wal(fs, options, inspection));
  NARAD_TRY(auto writer, WalWriter::create(fs, options, origin, inspection.next));
  auto file =
      std::make_shared<CheckpointFile>(fs, options.directory, inspection.checkpoint_slot + 1);
  inspection.last = {};
  return Opened{std::move(inspection), std::move(writer), std::move(file)};
}

// Errors that trying again cannot heal; what the disk itself says always has an errno.
bool is_refusal(const Error& error) {
  return error.os_errno() == 0 &&
         (error.code() == Errc::data_loss || error.code() == Errc::invalid_argument);
}

}  // namespace

std::string_view to_string(State state) {
  switch (state) {
    case State::opening:
      return "opening";
    case State::open:
      return "open";
    case State::refusing:
      return "refusing";
    case State::closed:
      return "closed";
  }
  return "unknown";
}

struct Ingress::Impl {
  Impl(Env& e, Options options)
      : env(e),
        o(std::move(options)),
        wal{o.directory, o.segment_bytes_max, o.preallocate_bytes, o.disk_reserve_percent},
        open_group(std::make_shared<Group>()),
        work(e),
        maintenance(e),
        stopping(e),
        loop_ended(e),
        room(e),
        changed(e),
        tasks(e) {
    stats.reason = "not started";
  }

  // -- accepting
  std::optional<Error> refusal(std::uint64_t bytes) const;
  bool group_full(std::uint64_t bytes) const;
  Task<std::optional<Error>> admit(std::uint64_t bytes, std::size_t count);
  void stage(const MessagePtr& message, std::size_t bytes);
  Task<void> settled(GroupPtr group);

  // -- writing
  Task<void> write_loop();
  Task<void> write_group();
  Task<void> probe();
  Task<void> shrink();
  bool absorb(WriterState state);
  void group_durable(Group& group, Sequence first);
  void group_failed(Group& group, const Error& error);
  void remember(OriginId origin, Sequence sequence, MessagePtr message);
  void forget_front();

  // -- opening, the checkpoint
  Task<Result<void>> open_wal();
  void opened(Opened files);
  Task<void> open_loop();
  Task<void> maintain_loop();
  Task<void> store_checkpoint();
  bool deletable() const { return !sealed.empty() && sealed.front().end <= checkpoint; }
  bool wants_shrink() const {
    return state == State::open && checkpoint == durable_end && active.bytes > kIdleBytesMax;
  }
  std::uint64_t disk_bytes() const { return sealed_bytes + active.bytes; }

  void loop_started() { ++loops; }
  void loop_done() {
    --loops;
    loop_ended.notify_all();
  }

  Env& env;
  const Options o;
  const WalOptions wal;

  State state = State::opening;
  bool started = false;
  bool was_opened = false;
  bool closing = false;
  bool ended = false;  // a sync failed
  std::shared_ptr<WalWriter> writer;
  std::shared_ptr<CheckpointFile> checkpoint_file;

  GroupPtr open_group;     // staged, not yet being written
  std::size_t flying = 0;  // bytes being written
  FrameBuffer spare;

  std::deque<SegmentInfo> sealed;
  std::uint64_t sealed_bytes = 0;
  SegmentInfo active;
  std::vector<OriginId> origins;  // of the segments that opening found
  Sequence checkpoint{1};
  Sequence stored{1};  // durable checkpoint
  Sequence durable_end{1};
  std::deque<DurableRecord> recent;  // the newest durable records, without a gap
  std::uint64_t recent_bytes = 0;
  ReadPosition read_position;
  bool shrink_due = false;
  std::uint64_t accepted_before = 0;
  bool checkpoint_failing = false;

  Event work;         // for the write loop
  Event maintenance;  // for the maintain loop
  Event stopping;
  Event loop_ended;
  Event room;
  Event changed;
  int loops = 0;
  Stats stats;
  TaskGroup tasks;  // last: its destructor asserts that no task is left
};

// ---- accepting ------------------------------------------------------------------------------

std::optional<Error> Ingress::Impl::refusal(std::uint64_t bytes) const {
  switch (state) {
    case State::opening:
      return Error(Errc::unavailable, cat("the ingress WAL is not open: ", stats.reason));
    case State::closed:
      return Error(Errc::unavailable, ended ? "the ingress WAL failed and the node is ending"
                                            : "this node is stopping; send to another one");
    case State::refusing:
      return Error(Errc::unavailable, stats.reason);
    case State::open:
      break;
  }
  const std::uint64_t used = disk_bytes() + flying + open_group->frames.size();
  if (used + bytes > o.max_backlog_bytes) {
    return Error(Errc::unavailable, cat("the ingress WAL holds ", format_bytes(used),
                                        " of at most ", format_bytes(o.max_backlog_bytes),
                                        " that partitions have not taken yet; retry later"));
  }
  return std::nullopt;
}

bool Ingress::Impl::group_full(std::uint64_t bytes) const {
  const std::size_t staged = open_group->frames.size();
  return staged != 0 && staged + bytes > o.group_bytes_max;
}

// Waits for room in the open group; nothing, or why nothing is accepted.
Task<std::optional<Error>> Ingress::Impl::admit(std::uint64_t bytes, std::size_t count) {
  while (true) {
    if (auto error = refusal(bytes)) {
      stats.refused += count;
      co_return error;
    }
    if (!group_full(bytes)) co_return std::nullopt;
    co_await room.wait();
  }
}

void Ingress::Impl::stage(const MessagePtr& message, std::size_t bytes) {
  encode_frame(open_group->frames.extend(bytes), bytes, *message);
  open_group->messages.push_back(message);
}

// Not cancellable: what is staged will be written, and the caller is told what became of it.
Task<void> Ingress::Impl::settled(GroupPtr group) {
  work.notify_all();
  while (!group->outcome) {
    co_await asio::async_initiate<const asio::use_awaitable_t<>&, void(error_code)>(
        [this, &group](auto handler) {
          auto deaf = asio::bind_cancellation_slot(asio::cancellation_slot(), std::move(handler));
          group->waiters.push_back(env.parking.park(VoidHandler(std::move(deaf))));
        },
        asio::use_awaitable);
  }
}

namespace {

Result<std::size_t> checked_frame_bytes(const Message& message) {
  if (message.topic.empty()) {
    return Error(Errc::invalid_argument, "a message without a topic cannot be accepted");
  }
  return frame_bytes(message);
}

}  // namespace

Task<Result<Sequence>> Ingress::accept(MessagePtr message) {
  auto self = impl_;
  NARAD_CO_TRY(const std::size_t bytes, checked_frame_bytes(*message));
  while (true) {
    if (auto error = self->refusal(bytes)) {
      ++self->stats.refused;
      co_return *error;
    }
    if (!self->group_full(bytes)) break;
    co_await self->room.wait();
  }
  GroupPtr group = self->open_group;
  const std::size_t index = group->messages.size();
  self->stage(message, bytes);
  co_await self->settled(group);
  if (!*group->outcome) co_return group->outcome->error();
  co_return group->outcome->value().plus(index);
}

Task<Result<Sequence>> Ingress::accept_batch(std::vector<MessagePtr> messages) {
  auto self = impl_;
  NARAD_ASSERT(!messages.empty());
  std::vector<std::size_t> sizes(messages.size());
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto size = checked_frame_bytes(*messages[i]);
    if (!size) co_return size.error().with_context(cat("record ", i));
    sizes[i] = size.value();
    bytes += size.value();
  }
  if (auto error = co_await self->admit(bytes, messages.size())) co_return *error;
  GroupPtr group = self->open_group;
  const std::size_t index = group->messages.size();
  for (std::size_t i = 0; i < messages.size(); ++i) self->stage(messages[i], sizes[i]);
  messages.clear();
  co_await self->settled(group);
  if (!*group->outcome) co_return group->outcome->error();
  co_return group->outcome->value().plus(index);
}

// ---- writing --------------------------------------------------------------------------------

Task<void> Ingress::Impl::write_loop() {
  while (!ended) {
    if (!open_group->messages.empty()) {
      co_await write_group();
    } else if (closing) {
      break;
    } else if (state == State::refusing) {
      const bool woken = co_await work.wait_for(o.refusal_retry);
      if (!woken && state == State::refusing) co_await probe();
    } else if (std::exchange(shrink_due, false) && wants_shrink()) {
      co_await shrink();
    } else {
      co_await work.wait();
    }
  }
  loop_done();
}

// One write and one sync for everything that is staged.
Task<void> Ingress::Impl::write_group() {
  GroupPtr group = std::exchange(open_group, std::make_shared<Group>());
  std::swap(open_group->frames, spare);
  open_group->messages.reserve(std::min<std::size_t>(group->messages.size(), 4096));
  flying = group->frames.size();
  struct Done {
    Result<Sequence> first;
    WriterState writer;
  };
  auto job = [w = writer, group]() -> Done {
    Result<Sequence> first = w->append(group->frames.bytes(), group->messages.size());
    return Done{std::move(first), state_of(*w)};
  };
  Done done = co_await blocking(env, "wal append", std::move(job));
  flying = 0;
  if (group->frames.capacity() <= kSpareBytesMax) {
    std::swap(spare, group->frames);
    spare.clear();
  }
  if (!absorb(std::move(done.writer))) co_return;
  if (done.first) {
    group_durable(*group, done.first.value());
  } else {
    group_failed(*group, done.first.error());
  }
  for (Parking::Ticket ticket : group->waiters) env.parking.unpark(ticket);
  room.notify_all();
}

// False if a sync failed: the process is ending, and nobody is told anything.
bool Ingress::Impl::absorb(WriterState now) {
  for (SegmentInfo& segment : now.sealed) {
    sealed_bytes += segment.bytes;
    sealed.push_back(segment);
  }
  if (!now.sealed.empty()) maintenance.notify_all();
  active = now.active;
  if (now.health != WalWriter::Health::sync_failed) return true;
  ended = true;
  state = State::closed;
  maintenance.notify_all();
  stopping.notify_all();
  stats.reason = "a sync of the ingress WAL failed";
  // The kernel may have marked lost pages clean: nothing may be acknowledged on this file again,
  // and only a start that copies what is left of it to a fresh file is safe.
  env.process.exit(kExitSyncFailed,
                   cat("a sync of the ingress WAL in ", o.directory,
                       " failed; acknowledged records are safe. Check the disk, then start again"));
  return false;
}

void Ingress::Impl::group_durable(Group& group, Sequence first) {
  const std::size_t count = group.messages.size();
  NARAD_ASSERT(first == durable_end);
  group.outcome.emplace(first);
  for (std::size_t i = 0; i < count; ++i) {
    remember(active.origin, first.plus(i), std::move(group.messages[i]));
  }
  durable_end = first.plus(count);
  while (recent_bytes > o.memory_bytes_max && !recent.empty()) forget_front();
  stats.accepted += count;
  ++stats.groups;
  changed.notify_all();
}

void Ingress::Impl::group_failed(Group& group, const Error& error) {
  stats.refused += group.messages.size();
  const Errc code =
      error.code() == Errc::unknown_outcome ? Errc::unknown_outcome : Errc::unavailable;
  group.outcome.emplace(Error(code, error.text(), error.os_errno()));
  stats.reason = error.text();
  if (state != State::open) return;
  state = State::refusing;
  NARAD_LOG_WARN(env.log, "ingress refuses messages until its disk takes writes again",
                 {"directory", o.directory}, {"error", error});
}

void Ingress::Impl::remember(OriginId origin, Sequence sequence, MessagePtr message) {
  recent_bytes += memory_of(*message);
  recent.push_back({origin, sequence, std::move(message)});
}

void Ingress::Impl::forget_front() {
  recent_bytes -= memory_of(*recent.front().message);
  recent.pop_front();
}

// Tries whether the disk takes writes again.
Task<void> Ingress::Impl::probe() {
  struct Done {
    Result<void> repaired;
    WriterState writer;
  };
  auto job = [w = writer]() -> Done {
    Result<void> repaired = w->repair();
    return Done{std::move(repaired), state_of(*w)};
  };
  Done done = co_await blocking(env, "wal repair", std::move(job));
  if (!absorb(std::move(done.writer))) co_return;
  if (!done.repaired) {
    stats.reason = done.repaired.error().text();
    co_return;
  }
  if (state != State::refusing) co_return;
  state = State::open;
  stats.reason.clear();
  NARAD_LOG_INFO(env.log, "ingress accepts messages again", {"directory", o.directory});
}

// Begins a new segment, so that the old one, handed over whole, can be deleted.
Task<void> Ingress::Impl::shrink() {
  struct Done {
    Result<void> rolled;
    WriterState writer;
  };
  auto job = [w = writer]() -> Done {
    Result<void> rolled = w->roll();
    return Done{std::move(rolled), state_of(*w)};
  };
  Done done = co_await blocking(env, "wal roll", std::move(job));
  if (!absorb(std::move(done.writer))) co_return;
  if (done.rolled) {
    ++stats.shrinks;
  } else {
    NARAD_LOG_WARN(env.log, "an idle ingress WAL could not be made smaller",
                   {"error", done.rolled.error()});
  }
}

// ---- opening --------------------------------------------------------------------------------

Task<Result<void>> Ingress::Impl::open_wal() {
  OriginId origin{0};
  while (origin.value() == 0) origin = OriginId(env.random.next());
  auto job = [fs = &env.fs, options = wal, origin]() { return open_files(*fs, options, origin); };
  Result<Opened> files = co_await blocking(env, "wal open", std::move(job));
  if (!files) co_return files.error();
  opened(std::move(files.value()));
  co_return ok();
}

void Ingress::Impl::opened(Opened files) {
  const Inspection& found = files.inspection;
  for (const std::string& remark : found.remarks) {
    NARAD_LOG_WARN(env.log, "ingress WAL: odd, but no acknowledged record is touched",
                   {"what", remark});
  }
  if (found.cut) {
    NARAD_LOG_WARN(env.log, "ingress WAL: cut off writes whose sync never completed",
                   {"file", found.cut->path}, {"from_byte", found.cut->at},
                   {"bytes", found.cut->bytes}, {"first_sequence", found.cut->first_lost});
  }
  origins = found.origins;
  sealed.assign(found.segments.begin(), found.segments.end());
  sealed_bytes = 0;
  for (const SegmentInfo& segment : sealed) sealed_bytes += segment.bytes;
  writer = std::move(files.writer);
  checkpoint_file = std::move(files.checkpoint_file);
  active = writer->segment();
  checkpoint = stored = found.checkpoint.lowest;
  durable_end = found.next;
  was_opened = true;
  if (closing) return;
  state = State::open;
  stats.reason.clear();
  NARAD_LOG_INFO(env.log, "ingress WAL opened", {"directory", o.directory},
                 {"checkpoint", checkpoint}, {"next", durable_end}, {"segments", sealed.size()},
                 {"origin", to_hex16(active.origin.value())}, {"clean", found.clean});
  loop_started();
  tasks.spawn("ingress write", write_loop());
  loop_started();
  tasks.spawn("ingress maintain", maintain_loop());
  changed.notify_all();
}

Task<void> Ingress::Impl::open_loop() {
  while (!closing) {
    co_await stopping.wait_for(o.open_retry);
    if (closing) break;
    Result<void> result = co_await open_wal();
    if (result) break;
    if (result.error().text() != stats.reason) {
      NARAD_LOG_ERROR(env.log, "ingress WAL stays closed", {"error", result.error()});
    }
    stats.reason = result.error().text();
    if (is_refusal(result.error())) break;
  }
  loop_done();
}

// ---- the checkpoint -------------------------------------------------------------------------

Task<void> Ingress::Impl::maintain_loop() {
  while (!closing && !ended) {
    if (stored == checkpoint && !deletable() && !wants_shrink()) {
      co_await maintenance.wait();
      continue;
    }
    if (stored != checkpoint || deletable()) {
      co_await store_checkpoint();
    }
    if (wants_shrink() && accepted_before == stats.accepted) {
      shrink_due = true;
      work.notify_all();
    }
    accepted_before = stats.accepted;
    if (!closing && !ended) co_await stopping.wait_for(o.checkpoint_interval);
  }
  loop_done();
}

Task<void> Ingress::Impl::store_checkpoint() {
  const Sequence lowest = checkpoint;
  std::vector<Sequence> names;
  for (const SegmentInfo& segment : sealed) {
    if (segment.end > lowest) break;
    names.push_back(segment.first);
  }
  struct Done {
    Result<void> stored;
    Result<void> removed;
  };
  auto job = [fs = &env.fs, directory = o.directory, file = checkpoint_file, lowest,
              names]() -> Done {
    Result<void> stored = file->store(Checkpoint{lowest, Sequence(0)});
    if (!stored) return Done{std::move(stored), ok()};
    // Proof: the checkpoint that was just made durable says that all their records were handed
    // over.
    Result<void> removed = remove_segments(*fs, directory, names);
    return Done{std::move(stored), std::move(removed)};
  };
  Done done = co_await blocking(env, "wal checkpoint", std::move(job));
  const bool good = done.stored && done.removed;
  if (done.stored) stored = lowest;
  if (good) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      sealed_bytes -= sealed.front().bytes;
      sealed.pop_front();
    }
  } else {
    ++stats.checkpoint_failures;
    const Error& error = done.stored ? done.removed.error() : done.stored.error();
    if (!checkpoint_failing) {
      NARAD_LOG_WARN(env.log, "ingress checkpoint not stored; nothing is lost, it is tried again",
                     {"checkpoint", lowest}, {"error", error});
    }
  }
  checkpoint_failing = !good;
}

// ---- the object -----------------------------------------------------------------------------

Ingress::Ingress(Env& env, Options options)
    : impl_(std::make_shared<Impl>(env, std::move(options))) {}

Ingress::~Ingress() = default;

Task<Result<void>> Ingress::start() {
  auto self = impl_;
  NARAD_ASSERT(!self->started);
  self->started = true;
  Result<void> result = co_await self->open_wal();
  if (result) co_return ok();
  self->stats.reason = result.error().text();
  if (is_refusal(result.error())) co_return result.error();
  NARAD_LOG_ERROR(self->env.log, "ingress WAL cannot be opened; trying again",
                  {"directory", self->o.directory}, {"error", result.error()});
  self->loop_started();
  self->tasks.spawn("ingress open", self->open_loop());
  co_return ok();
}

Task<Result<void>> Ingress::close() {
  auto self = impl_;
  if (!self->closing) {
    self->closing = true;
    if (!self->ended) {
      self->state = State::closed;
      self->stats.reason = "closed";
    }
    self->work.notify_all();
    self->maintenance.notify_all();
    self->stopping.notify_all();
    self->room.notify_all();
  }
  while (self->loops > 0) co_await self->loop_ended.wait();
  co_await self->tasks.stop();
  if (self->ended) co_return Error(Errc::internal, self->stats.reason);
  auto writer = std::exchange(self->writer, nullptr);
  if (!writer) co_return ok();  // never opened, or closed by another call
  auto job = [writer, file = self->checkpoint_file,
              last = Checkpoint{self->checkpoint, self->durable_end}]() -> Result<void> {
    NARAD_TRY(writer->close());
    return file->store(last);
  };
  Result<void> result = co_await blocking(self->env, "wal close", std::move(job));
  if (!result) {
    NARAD_LOG_WARN(self->env.log, "ingress WAL not marked clean; the next start copies its end",
                   {"error", result.error()});
  }
  co_return result;
}

bool Ingress::is_open() const { return impl_->was_opened; }
HandedOver Ingress::handed_over() const {
  HandedOver out;
  out.origins = impl_->origins;
  if (impl_->was_opened) out.origins.push_back(impl_->active.origin);
  out.below = impl_->checkpoint;
  return out;
}

Sequence Ingress::checkpoint() const { return impl_->checkpoint; }
Sequence Ingress::durable_end() const { return impl_->durable_end; }
Event& Ingress::changed() { return impl_->changed; }

Task<Result<std::vector<DurableRecord>>> Ingress::read(Sequence from, std::size_t records_max,
                                                       std::uint64_t bytes_max) {
  auto self = impl_;
  std::vector<DurableRecord> out;
  if (from >= self->durable_end) co_return out;
  NARAD_ASSERT(from >= self->checkpoint);
  if (!self->recent.empty() && from >= self->recent.front().sequence) {
    auto it = self->recent.begin() +
              static_cast<std::ptrdiff_t>(from.minus(self->recent.front().sequence));
    NARAD_ASSERT(it->sequence == from);
    std::uint64_t bytes = 0;
    for (; it != self->recent.end() && out.size() < records_max && bytes < bytes_max; ++it) {
      bytes += it->message->payload.size() + it->message->key.size();
      out.push_back(*it);
    }
    co_return out;
  }
  SegmentInfo segment = self->active;
  segment.end = self->durable_end;
  for (const SegmentInfo& s : self->sealed) {
    if (from < s.end) {
      segment = s;
      break;
    }
  }
  NARAD_ASSERT(segment.first <= from);
  ++self->stats.disk_reads;
  auto job = [fs = &self->env.fs, directory = self->o.directory, segment, from, records_max,
              bytes_max, position = self->read_position]() {
    return read_records(*fs, directory, segment, from, segment.end, records_max, bytes_max,
                        position);
  };
  Result<ReadResult> result = co_await blocking(self->env, "wal read", std::move(job));
  if (!result) co_return result.error();
  self->read_position = result.value().next;
  co_return std::move(result.value().records);
}

void Ingress::advance_checkpoint(Sequence checkpoint) {
  Impl& self = *impl_;
  if (checkpoint <= self.checkpoint) return;
  NARAD_ASSERT(checkpoint <= self.durable_end);
  self.checkpoint = checkpoint;
  while (!self.recent.empty() && self.recent.front().sequence < checkpoint) self.forget_front();
  self.maintenance.notify_all();
}

Stats Ingress::stats() const {
  const Impl& self = *impl_;
  Stats out = self.stats;
  out.state = self.state;
  out.checkpoint = self.checkpoint;
  out.durable_end = self.durable_end;
  out.backlog_bytes = self.disk_bytes();
  out.segments = self.sealed.size() + (self.was_opened ? 1 : 0);
  out.memory_bytes = self.recent_bytes;
  if (out.state == State::open) {
    if (auto full = self.refusal(self.o.max_backlog_bytes / 32)) {
      out.state = State::refusing;
      out.reason = full->text();
    }
  }
  return out;
}

}  // namespace narad::ingress
