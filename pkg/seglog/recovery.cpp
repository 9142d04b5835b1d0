#include "pkg/seglog/recovery.h"

#include <algorithm>

#include "pkg/base/assert.h"

namespace narad::seglog {

Recovery::Recovery(Offset base, Offset persisted, OriginTable table, UnixMillis last_commit)
    : persisted_(persisted) {
  NARAD_ASSERT(base <= persisted);
  now_.end = base;
  now_.table = std::move(table);
  now_.last_commit = last_commit;
}

Result<void> Recovery::feed(const ScanItem& item, LogId log) {
  if (item.kind == ScanItem::Kind::damage) {
    const bool was_durable = item.from < persisted_;
    if (!was_durable && !before_) {
      before_ = now_;
      cut_at_ = item.at;
    }
    mark_doubtful(item);
    keep_damage(item);
    return ok();
  }
  mark_doubtful(item);
  if (item.header.is_control()) {
    NARAD_ASSERT(item.verified);
    NARAD_TRY(std::vector<OriginEntry> origins, decode_control_payload(item.stored, log));
    now_.table.reset(origins);
  } else {
    now_.table.advance(item.header);
    now_.saw_records = true;
  }
  now_.last_commit = std::max(now_.last_commit, item.header.commit_time);
  now_.frames_end = item.at + item.bytes;
  now_.end = item.to;
  // All before it had been synced when it was written: the damage behind us is no torn sync.
  if (item.header.is_sync_head()) {
    before_.reset();
    doubtful_.clear();
  }
  return ok();
}

void Recovery::mark_doubtful(const ScanItem& item) {
  const FrameHeader& h = item.header;
  if (!before_ || !item.has_header || h.is_control() || h.is_rerouted()) return;
  if (h.origin == OriginId(0)) return;
  for (OriginMark& mark : doubtful_) {
    if (mark.origin != h.origin) continue;
    mark.last = std::max(mark.last, h.last_sequence);
    return;
  }
  doubtful_.push_back({h.origin, h.last_sequence});
}

void Recovery::keep_damage(const ScanItem& item) {
  now_.damaged = true;
  const Offset to = item.open_ended ? std::max(item.to, persisted_) : item.to;
  if (to == item.from) return;
  if (!now_.holes.empty() && now_.holes.back().to == item.from) {
    now_.holes.back().to = to;
  } else {
    now_.holes.push_back({item.from, to});
  }
}

RecoveryPlan Recovery::finish(std::uint64_t file_bytes) {
  RecoveryPlan plan;
  if (before_) {
    now_ = std::move(*before_);
    before_.reset();
    plan.cut_at = cut_at_;
    plan.cut_origins = std::move(doubtful_);
  }
  plan.keep_bytes = plan.cut_at ? *plan.cut_at : file_bytes;
  plan.end = now_.end;
  plan.hwm = std::max(persisted_, now_.end);
  if (now_.end < persisted_ && (now_.holes.empty() || now_.holes.back().to < persisted_)) {
    // The segment simply ends too early.
    const Offset from = now_.holes.empty() ? now_.end : std::max(now_.end, now_.holes.back().to);
    if (!now_.holes.empty() && now_.holes.back().to == from) {
      now_.holes.back().to = persisted_;
    } else {
      now_.holes.push_back({from, persisted_});
    }
  }
  plan.holes = std::move(now_.holes);
  // What was damaged behind the watermark's reach is nobody's loss.
  while (!plan.holes.empty() && plan.holes.back().from >= plan.hwm) plan.holes.pop_back();
  if (!plan.holes.empty()) plan.holes.back().to = std::min(plan.holes.back().to, plan.hwm);
  plan.damaged = now_.damaged || plan.end < plan.hwm;
  plan.seal = plan.damaged;
  plan.table = std::move(now_.table);
  plan.last_commit = now_.last_commit;
  plan.saw_records = now_.saw_records;
  plan.table.check_invariants();
  NARAD_ASSERT(plan.keep_bytes <= file_bytes);
  NARAD_ASSERT(now_.frames_end <= plan.keep_bytes);
  return plan;
}

}  // namespace narad::seglog
