#include "internal/partition/partition.h"

#include <algorithm>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad {
namespace {

constexpr std::size_t kReadAheadRecords = 1024;
constexpr std::size_t kReadAheadBytes = 256u << 10;
constexpr std::size_t kRecordOverhead = 64;  // counted per queued record

Error closed_error() { return Error(Errc::unavailable, "the partition is closed on this node"); }

// What a disk answers is never the caller's fault, nor proof that something is gone: 503.
Error as_unavailable(const Error& e) {
  if (e.code() == Errc::invalid_argument || e.code() == Errc::too_large) return e;
  return Error(Errc::unavailable, e.text(), e.os_errno());
}

seglog::AppendBatch to_append_batch(const CommitBatch& batch) {
  seglog::AppendBatch out;
  out.origin = batch.origin;
  out.rerouted = batch.rerouted;
  out.records.reserve(batch.records.size());
  for (const CommitRecord& r : batch.records) {
    out.records.push_back({r.sequence, {r.message->key, r.message->payload}});
  }
  return out;
}

std::size_t size_of(const CommitBatch& batch) {
  std::size_t bytes = 0;
  for (const CommitRecord& r : batch.records) {
    bytes += kRecordOverhead + r.message->key.size() + r.message->payload.size();
  }
  return bytes;
}

void log_open_report(Env& env, const PartitionOptions& options, const seglog::SegmentedLog& log) {
  const seglog::OpenReport& report = log.open_report();
  const std::string name = to_string(options.name);
  if (report.created) {
    NARAD_LOG_INFO(env.log, "partition created", {"partition", name},
                   {"directory", options.directory});
  }
  if (report.hwm_missing) {
    NARAD_LOG_WARN(env.log, "partition has no readable high watermark file; it was rebuilt",
                   {"partition", name}, {"hwm", log.hwm()});
  }
  if (report.cut_bytes > 0) {
    bool handed_over = false;
    for (const seglog::OriginMark& mark : report.cut_origins) {
      handed_over |= options.handed_over && options.handed_over(mark.origin, mark.last);
    }
    if (handed_over) {
      NARAD_LOG_ERROR(env.log,
                      "cut off damaged records that the ingress WAL had handed over: unless they "
                      "went to another partition they are lost (kept as .cut)",
                      {"partition", name}, {"byte", report.cut_at}, {"bytes", report.cut_bytes},
                      {"offset", report.cut_from}, {"directory", options.directory});
    } else {
      NARAD_LOG_WARN(env.log, "cut off a commit whose sync never completed (kept as .cut)",
                     {"partition", name}, {"byte", report.cut_at}, {"bytes", report.cut_bytes},
                     {"offset", report.cut_from});
    }
  }
  for (const std::string& stray : report.strays) {
    NARAD_LOG_ERROR(env.log,
                    "set aside a file that was named like a segment but is none; it would have "
                    "hidden the records behind its name",
                    {"partition", name}, {"file", stray});
  }
  if (report.ended_below) {
    NARAD_LOG_ERROR(env.log,
                    "the log ends before records that consumers have acked: they were committed, "
                    "and the disk has lost them; their offsets are not given again",
                    {"partition", name}, {"acked_below", *report.ended_below},
                    {"directory", options.directory});
  }
  for (const seglog::LostRange& lost : report.lost) {
    NARAD_LOG_ERROR(env.log, "records are lost: their bytes are damaged or missing",
                    {"partition", name}, {"from", lost.from}, {"to", lost.to},
                    {"directory", options.directory});
  }
}

}  // namespace

struct Partition::Request {
  Request(Env& env, CommitBatch b)
      : batch(std::make_shared<const CommitBatch>(std::move(b))), done(env) {}
  std::shared_ptr<const CommitBatch> batch;
  seglog::AppendBatch append;  // views into the messages of `batch`
  std::size_t bytes = 0;
  std::optional<Result<CommitOutcome>> result;
  Event done;
};

// Work on the log that is not a commit, in order: each runs when no job is under way.
struct Partition::Command {
  enum class Kind : std::uint8_t { close, retain, look, adopt };
  Command(Env& env, Kind k) : kind(k), done(env) {}
  const Kind kind;
  seglog::RetentionRule rule;        // of retain
  seglog::RetentionOutcome outcome;  // of retain
  ActiveDigests look;                // of look
  bool with_digests = false;
  Offset base{0};                                 // of adopt
  std::optional<seglog::BlockDigester> digester;  // of adopt
  std::optional<Result<void>> result;
  Event done;
};

// ---- opening and closing
// -------------------------------------------------------------------------

Task<Result<std::shared_ptr<Partition>>> Partition::open(Env& env, PartitionOptions options) {
  seglog::SegmentedLog::OpenOptions log_options;
  log_options.directory = options.directory;
  log_options.knobs = options.knobs;
  log_options.create_if_missing = options.create_if_missing;
  log_options.durable_below = options.durable_below;
  const std::uint64_t drawn = env.random.next();
  log_options.fresh_id = LogId(drawn == 0 ? 1 : drawn);
  auto job = [fs = &env.fs, log_options]() -> Result<std::unique_ptr<seglog::SegmentedLog>> {
    if (log_options.create_if_missing) {
      NARAD_TRY(make_directories(*fs, log_options.directory));
    }
    return seglog::SegmentedLog::open(*fs, log_options);
  };
  auto log = co_await blocking(env, "partition.open", std::move(job));
  if (!log) {
    const std::string context = cat("opening partition ", to_string(options.name));
    co_return log.error().with_context(context);
  }
  log_open_report(env, options, *log.value());
  co_return std::shared_ptr<Partition>(
      new Partition(env, std::move(options), std::move(log.value())));
}

Partition::Partition(Env& env, PartitionOptions options, std::unique_ptr<seglog::SegmentedLog> log)
    : env_(env),
      options_(std::move(options)),
      log_(std::move(log)),
      committed_(env),
      wake_(env),
      log_closed_event_(env),
      cache_(
          options_.cache ? options_.cache : std::make_shared<CacheBudget>(options_.tail_bytes_max),
          {options_.tail_bytes_max, options_.tail_records_max, options_.knobs.index_bytes_max}),
      tasks_(env) {
  last_used_ = env_.clock.mono();
  take_log_state();
}

Partition::~Partition() = default;

LogId Partition::id() const { return view_->log; }

void Partition::take_log_state() {
  view_ = log_->view();
  log_stats_ = log_->stats();
  if (!hwm_due_ && !log_->hwm_persisted()) hwm_due_ = env_.clock.mono() + options_.hwm_interval;
  const bool was_latched = latched();
  latched_text_ = log_->latched() ? log_->latched()->text() : std::string();
  if (latched() && !was_latched) {
    repair_due_ = env_.clock.mono();  // the first attempt is made at once
    NARAD_LOG_ERROR(env_.log, "partition takes no commits", {"partition", to_string(name())},
                    {"reason", latched_text_});
  }
}

Task<void> Partition::close() {
  last_used_ = env_.clock.mono();
  if (!closing_) {
    closing_ = true;
    commands_.push_back(std::make_shared<Command>(env_, Command::Kind::close));
    wake_worker();
  }
  while (!log_closed_) co_await log_closed_event_.wait();
  co_await tasks_.stop();
}

// ---- commits
// -----------------------------------------------------------------------------------------

Task<Result<CommitOutcome>> Partition::commit(CommitBatch batch) {
  last_used_ = env_.clock.mono();
  if (closing_) co_return closed_error();
  if (batch.incarnation != options_.incarnation) {
    co_return Error(Errc::conflict,
                    cat("partition ", to_string(name()), " here belongs to life ",
                        to_hex16(options_.incarnation.value()), " of the topic, the batch to life ",
                        to_hex16(batch.incarnation.value())));
  }
  if (latched()) co_return Error(Errc::unavailable, latched_text_);
  auto request = std::make_shared<Request>(env_, std::move(batch));
  request->append = to_append_batch(*request->batch);
  request->bytes = size_of(*request->batch);
  NARAD_CO_TRY(seglog::validate(request->append));
  if (queued_bytes_ > 0 && queued_bytes_ + request->bytes > options_.queue_bytes_max) {
    co_return Error(Errc::busy, cat("partition ", to_string(name()), " has ",
                                    format_bytes(queued_bytes_), " waiting to be written"));
  }
  queued_bytes_ += request->bytes;
  queue_.push_back(request);
  wake_worker();
  while (!request->result) co_await request->done.wait();
  co_return *request->result;
}

void Partition::wake_worker() {
  if (working_) {
    wake_.notify_all();
    return;
  }
  working_ = true;
  tasks_.spawn("partition", work());
}

Task<void> Partition::work() {
  while (!log_closed_) {
    const auto when = due();
    if (when && *when <= env_.clock.mono()) {
      co_await look_after();
    } else if (has_runnable_command()) {
      co_await run_command();
    } else if (!queue_.empty()) {
      co_await commit_group();
    } else if (when) {
      const Nanos delay = *when - env_.clock.mono();
      co_await wake_.wait_for(delay);
    } else {
      break;
    }
  }
  working_ = false;
}

// A close waits until the queue is empty.
bool Partition::has_runnable_command() const {
  if (commands_.empty()) return false;
  return queue_.empty() || commands_.front()->kind != Command::Kind::close;
}

std::vector<std::shared_ptr<Partition::Request>> Partition::next_group() {
  std::vector<std::shared_ptr<Request>> group;
  std::size_t bytes = 0;
  while (!queue_.empty()) {
    std::shared_ptr<Request> request = queue_.front();
    if (!group.empty() && bytes + request->bytes > options_.group_bytes_max) break;
    queue_.pop_front();
    // Asked here, when no write is under way: what passes is appended by the very next job.
    Result<void> may = ok();
    if (options_.gate) may = options_.gate->before_append(*request->batch);
    if (may && latched()) may = Error(Errc::unavailable, latched_text_);
    if (!may) {
      finish(*request, may.error());
      continue;
    }
    bytes += request->bytes;
    group.push_back(std::move(request));
  }
  return group;
}

// One write and one sync for all that waits. Acknowledged after: frames written, synced and read
// back, the gate asked again, the watermark and the origin table advanced.
Task<void> Partition::commit_group() {
  const std::vector<std::shared_ptr<Request>> group = next_group();
  if (group.empty()) co_return;
  std::vector<seglog::AppendBatch> batches;
  std::vector<std::shared_ptr<const CommitBatch>> owners;  // the job's views point into these
  for (const auto& request : group) {
    in_flight_records_ += request->append.records.size();
    batches.push_back(std::move(request->append));
    owners.push_back(request->batch);
  }
  const UnixMillis now = env_.clock.wall_millis();
  auto job = [log = log_, batches = std::move(batches), owners = std::move(owners), now] {
    return log->stage(batches, now);
  };
  auto staged = co_await blocking(env_, "partition.commit", std::move(job));
  in_flight_records_ = 0;
  std::optional<Error> failed;
  if (!staged) {
    failed = as_unavailable(staged.error()).with_context(cat("partition ", to_string(name())));
    NARAD_LOG_WARN(env_.log, "commit failed", {"partition", to_string(name())},
                   {"error", staged.error()});
  } else if (options_.gate) {
    if (auto still = options_.gate->after_sync(); !still) failed = still.error();
  }
  if (staged && failed) {
    auto abandon = [log = log_]() -> Result<void> {
      log->abandon();
      return ok();
    };
    (void)co_await blocking(env_, "partition.abandon", std::move(abandon));
  }
  if (failed) {
    take_log_state();
    for (const auto& request : group) finish(*request, *failed);
    co_return;
  }
  publish_group(group, staged.value());
}

void Partition::publish_group(const std::vector<std::shared_ptr<Request>>& group,
                              const std::vector<seglog::AppendOutcome>& outcomes) {
  NARAD_ASSERT(group.size() == outcomes.size());
  const Offset before = log_->hwm();
  const UnixMillis commit_time = log_->staged_commit_time();
  const std::uint64_t bytes_before = log_stats_.record_bytes;
  log_->publish();
  take_log_state();
  rate_.add(log_stats_.record_bytes - bytes_before, env_.clock.mono());
  ++stats_.groups;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const seglog::AppendOutcome& outcome = outcomes[i];
    const auto& records = group[i]->batch->records;
    NARAD_ASSERT(outcome.kept.size() == records.size());
    Offset offset = outcome.first;
    for (std::size_t r = 0; r < records.size(); ++r) {
      if (!outcome.kept[r]) continue;
      cache_.append(offset, commit_time, records[r].message);
      offset = offset.next();
    }
    stats_.appended += outcome.appended;
    stats_.known += outcome.known;
    finish(*group[i], CommitOutcome{outcome.first, outcome.appended, outcome.known});
  }
  cache_.settle();
  if (view_->hwm != before) committed_.notify_all();
}

void Partition::finish(Request& request, Result<CommitOutcome> result) {
  queued_bytes_ -= request.bytes;
  ++(result ? stats_.batches : stats_.failed);
  request.result.emplace(std::move(result));
  request.done.notify_all();
}

// ---- looking after the log
// ----------------------------------------------------------------------------

std::optional<Nanos> Partition::due() const {
  if (latched()) return hwm_due_ ? std::min(repair_due_, *hwm_due_) : repair_due_;
  return hwm_due_;
}

Task<void> Partition::look_after() {
  const Nanos now = env_.clock.mono();
  if (hwm_due_ && *hwm_due_ <= now) {
    auto persist = [log = log_] { return log->persist_hwm(); };
    auto written = co_await blocking(env_, "partition.hwm", std::move(persist));
    hwm_due_.reset();  // set again below if it is still behind
    if (!written) {
      NARAD_LOG_WARN(env_.log, "high watermark not written; trying again",
                     {"partition", to_string(name())}, {"error", written.error()});
    }
    take_log_state();
  }
  if (latched() && repair_due_ <= now) {
    auto repair = [log = log_] { return log->repair(); };
    auto repaired = co_await blocking(env_, "partition.repair", std::move(repair));
    repair_due_ = env_.clock.mono() + options_.repair_interval;
    take_log_state();
    if (repaired) {
      NARAD_LOG_INFO(env_.log, "partition takes commits again: its active segment was copied fresh",
                     {"partition", to_string(name())});
    } else {
      ++stats_.repairs_failed;
      NARAD_LOG_WARN(env_.log, "the fresh copy of the active segment failed; trying again",
                     {"partition", to_string(name())}, {"error", repaired.error()});
    }
  }
}

Task<void> Partition::close_log() {
  auto close = [log = log_] { return log->close(); };
  auto closed = co_await blocking(env_, "partition.close", std::move(close));
  if (!closed) {
    NARAD_LOG_WARN(env_.log, "partition not closed cleanly; the next open will check it",
                   {"partition", to_string(name())}, {"error", closed.error()});
  }
  log_closed_ = true;
  for (const auto& left : commands_) {
    left->result.emplace(closed_error());
    left->done.notify_all();
  }
  commands_.clear();
  cache_.clear();
  committed_.notify_all();
  log_closed_event_.notify_all();
}

Task<void> Partition::run_command() {
  const CommandPtr command = commands_.front();
  commands_.pop_front();
  if (command->kind == Command::Kind::close) co_return co_await close_log();
  if (command->kind == Command::Kind::look) {
    command->look.view = view_;
    if (command->with_digests) command->look.blocks = log_->active_digests();
    command->result.emplace(ok());
  } else if (command->kind == Command::Kind::adopt) {
    auto adopt = [log = log_, base = command->base, digester = std::move(*command->digester)] {
      return log->adopt_digests(base, digester);
    };
    auto adopted = co_await blocking(env_, "partition.digests", std::move(adopt));
    command->result.emplace(adopted ? adopted : as_unavailable(adopted.error()));
  } else {
    auto retain = [log = log_, rule = command->rule] { return log->retain(rule); };
    auto outcome = co_await blocking(env_, "partition.retention", std::move(retain));
    take_log_state();
    if (outcome) {
      command->outcome = outcome.value();
      command->result.emplace(ok());
    } else {
      command->result.emplace(as_unavailable(outcome.error()));
    }
  }
  command->done.notify_all();
}

Task<Result<void>> Partition::run_in_turn(CommandPtr command) {
  if (closing_) co_return closed_error();
  commands_.push_back(command);
  wake_worker();
  while (!command->result) co_await command->done.wait();
  co_return *command->result;
}

Task<Result<seglog::LogViewPtr>> Partition::settled_view() {
  auto command = std::make_shared<Command>(env_, Command::Kind::look);
  NARAD_CO_TRY(co_await run_in_turn(command));
  co_return std::move(command->look.view);
}

Task<Result<Partition::ActiveDigests>> Partition::active_digests() {
  auto command = std::make_shared<Command>(env_, Command::Kind::look);
  command->with_digests = true;
  NARAD_CO_TRY(co_await run_in_turn(command));
  co_return std::move(command->look);
}

Task<Result<void>> Partition::adopt_digests(Offset base, seglog::BlockDigester digester) {
  auto command = std::make_shared<Command>(env_, Command::Kind::adopt);
  command->base = base;
  command->digester.emplace(std::move(digester));
  co_return co_await run_in_turn(command);
}

Task<Result<seglog::RetentionOutcome>> Partition::apply_retention(UnixMillis now,
                                                                  std::int64_t retention_ms,
                                                                  bool trusted) {
  auto command = std::make_shared<Command>(env_, Command::Kind::retain);
  command->rule = seglog::RetentionRule{now, retention_ms, trusted};
  NARAD_CO_TRY(co_await run_in_turn(command));
  const seglog::RetentionOutcome outcome = command->outcome;
  if (outcome.segments > 0) {
    NARAD_LOG_INFO(env_.log, "expired segments removed", {"partition", to_string(name())},
                   {"segments", outcome.segments}, {"bytes", outcome.bytes},
                   {"oldest", outcome.oldest});
  }
  co_return outcome;
}

// ---- reads
// ---------------------------------------------------------------------------------------------

std::optional<ReadBatch> Partition::find(Offset from, ReadLimits limits) {
  if (from >= hwm()) {
    ReadBatch nothing;
    nothing.next = from;
    return nothing;
  }
  if (from < oldest()) return std::nullopt;
  return cache_.find(from, limits);
}

std::optional<ReadBatch> Partition::read_cached(Offset from, std::size_t max_records,
                                                std::size_t max_bytes) {
  if (closing_) return std::nullopt;
  last_used_ = env_.clock.mono();
  auto found = find(from, ReadLimits{max_records, max_bytes});
  if (found) ++stats_.reads_cached;
  return found;
}

Task<Result<ReadBatch>> Partition::read(Offset from, std::size_t max_records,
                                        std::size_t max_bytes) {
  if (closing_) co_return closed_error();
  if (auto found = read_cached(from, max_records, max_bytes)) co_return std::move(*found);
  if (from < oldest()) {
    co_return Error(Errc::gone, cat("offset ", from, " of partition ", to_string(name()),
                                    " has expired; the oldest is ", oldest()));
  }
  co_return co_await read_disk(from, ReadLimits{max_records, max_bytes});
}

namespace {

struct DiskRead {
  std::shared_ptr<ReadRun> run = std::make_shared<ReadRun>();
  std::optional<seglog::ReadPosition> position;
  seglog::SegmentIndexPtr index;
};

// The job: owns all it touches.
Result<DiskRead> read_run(FileSystem& fs, const std::string& directory, const seglog::LogView& view,
                          const seglog::ReadRequest& request) {
  DiskRead out;
  ReadRun& run = *out.run;
  auto sink = [&run](Offset offset, UnixMillis time, const seglog::RecordView& record) {
    run.records.push_back({offset, time, std::string(record.key), std::string(record.payload)});
    run.bytes += sizeof(StoredRecord) + record.key.size() + record.payload.size();
  };
  NARAD_TRY(seglog::ReadOutcome outcome, read_records(fs, directory, view, request, sink));
  run.from = request.from;
  run.next = outcome.next;
  for (const seglog::LostRange& lost : outcome.lost) run.lost.push_back({lost.from, lost.to});
  out.position = outcome.position;
  out.index = std::move(outcome.index);
  return out;
}

struct Counted {
  explicit Counted(std::size_t& n) : n(n) { ++n; }
  Counted(const Counted&) = delete;
  ~Counted() { --n; }
  std::size_t& n;
};

}  // namespace

Task<Result<ReadBatch>> Partition::read_disk(Offset from, ReadLimits limits) {
  const Counted counted(readers_);
  ++stats_.reads_disk;
  while (true) {
    const seglog::LogViewPtr view = view_;
    seglog::ReadRequest request;
    request.from = from;
    request.records_soft_max = std::max(limits.records_max, kReadAheadRecords);
    request.bytes_soft_max = std::max(limits.bytes_max, kReadAheadBytes);
    request.position = cache_.position_for(from);
    request.index = cache_.index_for(segment_of(*view, from).base);
    auto job = [fs = &env_.fs, directory = options_.directory, view, request] {
      return read_run(*fs, directory, *view, request);
    };
    auto read = co_await blocking(env_, "partition.read", std::move(job));
    if (read) {
      const DiskRead& disk = read.value();
      if (disk.index) cache_.keep_index(disk.index);
      if (disk.position) cache_.remember(*disk.position);
      for (const LostRecords& lost : disk.run->lost) {
        stats_.lost_records_read += lost.to.minus(lost.from);
      }
      if (!closing_) cache_.add_run(disk.run);
      co_return take_from(*disk.run, from, limits);
    }
    if (closing_) co_return closed_error();
    if (from < oldest()) {  // retention came first
      co_return Error(Errc::gone, cat("offset ", from, " of partition ", to_string(name()),
                                      " has expired; the oldest is ", oldest()));
    }
    // A file that retention took from under the read is not in the newer view.
    if (read.error().code() == Errc::not_found && view->oldest() != oldest()) continue;
    ++stats_.read_errors;
    NARAD_LOG_WARN(env_.log, "read failed", {"partition", to_string(name())}, {"from", from},
                   {"error", read.error()});
    co_return as_unavailable(read.error());
  }
}

PartitionStats Partition::stats() const {
  PartitionStats s = stats_;
  s.log = log_stats_;
  s.open = log_->open_report();
  s.queued_bytes = queued_bytes_;
  s.cache_bytes = cache_.bytes();
  s.bytes_per_second = rate_.per_second(env_.clock.mono());
  return s;
}

bool Partition::busy() const {
  return !queue_.empty() || !commands_.empty() || in_flight_records_ > 0 || readers_ > 0;
}

}  // namespace narad
