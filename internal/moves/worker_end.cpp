// Worker: what becomes of the staging of a move that is over, or of one before it.
#include "internal/moves/worker.h"
#include "pkg/base/text.h"

namespace narad::moves {

Task<void> Worker::done() {
  if (!mover_.flipped()) {
    ++shop_.stats.ended_without_flip;
    NARAD_LOG_INFO(env_.log, "move: ended without a flip", {"partition", to_string(key_.partition)},
                   {"move", key_.move_id});
    co_return;
  }
  ++shop_.stats.done;
  if (mover_.forced()) ++shop_.stats.force_promoted;
  NARAD_LOG(env_.log, mover_.forced() ? LogLevel::warn : LogLevel::info,
            mover_.forced() ? "move: force-promoted, since the source is dead"
                            : "move: the partition is here",
            {"partition", to_string(key_.partition)}, {"move", key_.move_id},
            {"source", key_.source}, {"records", receipt_.records}, {"bytes", receipt_.bytes},
            {"frozen_ms", receipt_.frozen_ms});
  auto tidy = [&fs = env_.fs, path = path()] { return tidy_install(fs, path); };
  if (auto tidied = co_await blocking(env_, "tidy install", std::move(tidy)); !tidied) {
    NARAD_LOG_WARN(env_.log, "move: staging.json of the installed copy not removed",
                   {"partition", to_string(key_.partition)}, {"why", tidied.error()});
  }
}

Task<void> Worker::dispose() {
  staging_.reset();
  auto disposed = co_await dispose_of(key_.source, key_.move_id, mover_.took_off());
  if (!disposed) {
    fail(disposed.error());
    co_return;
  }
  mover_.on_disposed(now());
}

// By what holds now, behind a barrier, of the staging that lies there, if any.
Task<Result<DisposalCase>> Worker::look_at_staging(std::string source, RaftIndex move_id,
                                                   bool took_off) {
  NARAD_CO_TRY(co_await shop_.metastore.barrier(shop_.timing.barrier_deadline));
  auto inspect = [&fs = env_.fs, directory = staged_path()] {
    return inspect_staging(fs, directory);
  };
  NARAD_CO_TRY(StagingFound found, co_await blocking(env_, "inspect staging", std::move(inspect)));
  DisposalCase c;
  c.holds_records = found.holds_records;
  c.log = found.log;
  c.end = found.end;
  c.took_off = took_off;
  Incarnation incarnation = key_.incarnation;
  if (found.record) {
    source = found.record->source;
    incarnation = found.record->incarnation;
    // This worker's hands have touched only its own move's.
    if (found.record->move_id != move_id) c.took_off = false;
  }
  const metastore::ViewPtr view = shop_.metastore.view();
  c.topic_deleted = view->was_deleted(key_.partition.topic, incarnation);
  const Assignment* row = view->assignment(key_.partition.topic, key_.partition.partition);
  c.row_exists = row != nullptr && row->incarnation == incarnation;
  c.owned_here = c.row_exists && row->owner_node == key_.self;
  const metastore::Member* member = view->members.find(source);
  c.source_gone = member == nullptr || member->status == metastore::MemberStatus::dead;
  if (c.owned_here) {
    auto read = [&fs = env_.fs, path = path()] { return read_marker(fs, path); };
    NARAD_CO_TRY(auto marker, co_await blocking(env_, "move marker", std::move(read)));
    c.installed_from_source = marker && marker->source == source;
  }
  if (judge_disposal(c) == Disposal::ask_owner) {
    const std::string owner = row->owner_node;
    NARAD_CO_TRY(const wire::Listing listing,
                 co_await shop_.source.listing(owner, {key_.partition, incarnation, RaftIndex(0)}));
    c.owner = DisposalCase::Owner{listing.log, listing.hwm};
  }
  co_return c;
}

Task<Result<void>> Worker::dispose_of(std::string source, RaftIndex move_id, bool took_off) {
  NARAD_CO_TRY(const DisposalCase c, co_await look_at_staging(source, move_id, took_off));
  const std::string directory = staged_path();
  switch (judge_disposal(c)) {
    case Disposal::remove: {
      // Proof: judge_disposal() of what a barrier, and the present owner asked after it, have
      // shown.
      auto remove = [&fs = env_.fs, directory] { return remove_staging(fs, directory); };
      co_return co_await blocking(env_, "remove staging", std::move(remove));
    }
    case Disposal::set_aside: {
      auto rename = [&fs = env_.fs, directory] { return set_aside_staging(fs, directory); };
      NARAD_CO_TRY(const std::string to,
                   co_await blocking(env_, "set staging aside", std::move(rename)));
      ++shop_.stats.set_aside;
      NARAD_LOG_ERROR(env_.log,
                      "move: what was staged may hold records that are nowhere else; set aside",
                      {"partition", to_string(key_.partition)}, {"path", to}, {"end", c.end});
      co_return ok();
    }
    case Disposal::keep:
      NARAD_LOG_ERROR(env_.log,
                      "move: what was staged may hold records that the partition here does not "
                      "have; left where it is",
                      {"partition", to_string(key_.partition)}, {"path", directory},
                      {"end", c.end});
      co_return ok();
    case Disposal::ask_owner:
      break;
  }
  co_return Error(Errc::unavailable, "the present owner has not been asked");
}

}  // namespace narad::moves
