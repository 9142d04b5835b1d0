#include "internal/moves/sweep.h"

#include <utility>

#include "pkg/base/text.h"

namespace narad::moves {
namespace {

constexpr Nanos kBarrierDeadline = std::chrono::seconds(5);

Judgement unreadable(const Error& why) {
  return {SweepVerdict::defer, cat("this copy cannot be read: ", why.text())};
}

}  // namespace

Sweep::Sweep(Env& env, std::string node_id, metastore::Proposer& metastore, SourceCalls& owners,
             SweepPlace& place)
    : env_(env),
      node_id_(std::move(node_id)),
      metastore_(metastore),
      owners_(owners),
      place_(place) {}

Task<Result<void>> Sweep::run() {
  ++stats_.sweeps;
  NARAD_CO_TRY(auto copies, co_await place_.stale_copies());
  for (StaleCopy& copy : copies) co_await look_at(std::move(copy));
  co_return ok();
}

SweepTerms Sweep::terms(const StaleCopy& copy) const {
  SweepTerms terms;
  terms.self = node_id_;
  terms.now = env_.clock.wall_millis();
  terms.clock_trusted = place_.clock_trusted();
  const auto view = metastore_.view();
  if (const auto* row = view->topics.find(copy.partition.topic)) {
    terms.retention_ms = row->topic.retention_ms;
  }
  return terms;
}

// What the verdict rests on is confirmed after everything has been read; the acts check the row
// once more.
Task<Judgement> Sweep::judge(StaleCopy copy, LocalCopy& seen) {
  Judgement judged;
  if (copy.used) {
    judged = co_await judge_by_owner(copy, seen);
  } else {
    auto local = co_await place_.inspect(copy);
    if (!local) co_return unreadable(local.error());
    seen = std::move(local.value());
    judged = judge_unused_copy(seen);
  }
  if (judged.verdict == SweepVerdict::defer) co_return judged;
  auto barrier = co_await metastore_.barrier(kBarrierDeadline);
  if (!barrier) co_return Judgement{SweepVerdict::defer, barrier.error().text()};
  co_return judged;
}

// The owner is asked before anything is read here.
Task<Judgement> Sweep::judge_by_owner(StaleCopy copy, LocalCopy& seen) {
  const wire::MoveRef outside{copy.partition, copy.incarnation, RaftIndex(0)};
  auto owner = co_await owners_.listing(copy.owner, outside);
  if (!owner) {
    co_return Judgement{SweepVerdict::defer,
                        cat("owner ", copy.owner, " cannot be asked: ", owner.error().text())};
  }
  if (owner.value().incarnation != copy.incarnation) {
    co_return Judgement{SweepVerdict::defer, "the owner serves another life of the topic"};
  }
  auto local = co_await place_.inspect(copy);
  if (!local) co_return unreadable(local.error());
  seen = std::move(local.value());
  co_return judge_stale_copy(seen, owner.value(), terms(copy));
}

Task<void> Sweep::look_at(StaleCopy copy) {
  LocalCopy seen;
  const Judgement judged = co_await judge(copy, seen);
  const std::string name = to_string(copy.partition);
  Result<std::string> acted = std::string();
  if (judged.verdict == SweepVerdict::reclaim) {
    // Proof: the owner's own listing shows all of it that is wanted (or: it holds no record, and
    // its partition was never used), and a barrier made after that has let the state show whether
    // the owner is still the same; the place checks the row once more under the topic's lock.
    auto gone = co_await place_.reclaim(copy, std::move(seen));
    if (!gone) acted = gone.error();
  } else if (judged.verdict == SweepVerdict::quarantine) {
    acted = co_await place_.set_aside(copy, judged.why);
  }
  if (judged.verdict == SweepVerdict::defer || !acted) {
    ++stats_.deferred;
    const std::string why = acted ? judged.why : acted.error().text();
    if (std::exchange(told_[copy.partition], why) != why) {
      NARAD_LOG_INFO(env_.log, "stale copy stays for now", {"partition", name},
                     {"directory", copy.directory}, {"why", why});
    }
    co_return;
  }
  told_.erase(copy.partition);
  if (judged.verdict == SweepVerdict::reclaim) {
    ++stats_.reclaimed;
    NARAD_LOG_INFO(env_.log, "stale copy reclaimed", {"partition", name},
                   {"directory", copy.directory}, {"owner", copy.owner}, {"why", judged.why});
    co_return;
  }
  ++stats_.quarantined;
  NARAD_LOG_ERROR(env_.log,
                  "stale copy quarantined: the owner cannot vouch for all of it. Check the owner, "
                  "then bring its records back or remove it",
                  {"partition", name}, {"path", acted.value()}, {"owner", copy.owner},
                  {"why", judged.why});
}

}  // namespace narad::moves
