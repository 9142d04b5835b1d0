#include "internal/moves/sweep_rules.h"

#include <algorithm>

#include "pkg/base/text.h"

namespace narad::moves {
namespace {

// A marker without the durable stamp comes from an older destination, whose copy may be in its page
// cache only (DUR-5).
constexpr std::uint64_t kUndurableGraceMs = 5 * 60 * 1000;
// What expires so soon may be gone at the owner already (G49).
constexpr std::int64_t kNearExpiryMs = 5 * 60 * 1000;

bool expired(const LocalSegment& s, const SweepTerms& t, std::int64_t ahead_ms) {
  if (t.retention_ms <= 0 || !t.clock_trusted || s.mtime > t.now) return false;
  return t.now.value() - s.mtime.value() > t.retention_ms - ahead_ms;
}

bool has_records(const LocalCopy& copy, std::size_t i) {
  return copy.segments[i].sealed || copy.end > copy.segments[i].base;
}

bool owner_has_records(const wire::Listing& owner) {
  return !owner.segments.empty() && owner.hwm > owner.segments.front().base;
}

const wire::ListedSegment* listed(const wire::Listing& owner, Offset base) {
  const auto at =
      std::lower_bound(owner.segments.begin(), owner.segments.end(), base,
                       [](const wire::ListedSegment& s, Offset wanted) { return s.base < wanted; });
  return at != owner.segments.end() && at->base == base ? &*at : nullptr;
}

Judgement keep(std::string why) { return {SweepVerdict::quarantine, std::move(why)}; }

// SWP-6a to 6c, and that it is one log: what the owner has came from here.
std::string not_from_here(const LocalCopy& copy, const wire::Listing& owner,
                          const SweepTerms& terms) {
  if (!owner_has_records(owner)) return "the owner holds no records";
  if (!owner.marker) return "the owner holds records that no move brought it";
  if (owner.marker->incarnation != owner.incarnation) {
    return "the owner's move marker is of another life of the topic";
  }
  if (owner.marker->source != terms.self) {
    return cat("the owner got its records from node ", owner.marker->source);
  }
  if (!copy.log) return "no file of this copy says which log it is";
  if (owner.log != LogId(0) && owner.log != *copy.log) {
    return cat("the owner serves log ", to_hex16(owner.log.value()), ", this copy is of log ",
               to_hex16(copy.log->value()));
  }
  return {};
}

// SWP-6d.
std::string missing_there(const LocalCopy& copy, const wire::Listing& owner, Offset vouched,
                          const SweepTerms& terms) {
  for (std::size_t i = 0; i < copy.segments.size(); ++i) {
    const LocalSegment& s = copy.segments[i];
    if (s.base >= vouched || !has_records(copy, i) || expired(s, terms, kNearExpiryMs)) continue;
    const wire::ListedSegment* there = listed(owner, s.base);
    if (there == nullptr) return cat("the owner lacks the segment at offset ", s.base);
    if (s.sealed && there->bytes < s.bytes) {
      return cat("the segment at offset ", s.base, " is shorter at the owner (", there->bytes,
                 " of ", s.bytes, " bytes)");
    }
  }
  return {};
}

}  // namespace

bool holds_wanted_records(const LocalCopy& copy, const SweepTerms& terms) {
  for (std::size_t i = 0; i < copy.segments.size(); ++i) {
    if (has_records(copy, i) && !expired(copy.segments[i], terms, 0)) return true;
  }
  return false;
}

Judgement judge_unused_copy(const LocalCopy& copy) {
  for (std::size_t i = 0; i < copy.segments.size(); ++i) {
    if (has_records(copy, i)) {
      return keep("it holds records, though its partition was never used");
    }
  }
  return {SweepVerdict::reclaim, "its partition was never used, and it holds no record"};
}

Judgement judge_stale_copy(const LocalCopy& copy, const wire::Listing& owner,
                           const SweepTerms& terms) {
  if (copy.segments.empty()) {
    if (copy.empty_directory) return {SweepVerdict::reclaim, "it holds no file"};
    return keep("it holds files, but no segment");
  }
  if (!holds_wanted_records(copy, terms)) {
    return {SweepVerdict::reclaim, "it holds no record that retention keeps"};
  }
  if (owner.marker && !owner.marker->durable_at &&
      owner.marker_age_ms.value_or(0) < kUndurableGraceMs) {
    return {SweepVerdict::defer, "the owner's copy may not be on its disk yet"};
  }
  if (auto why = not_from_here(copy, owner, terms); !why.empty()) return keep(std::move(why));
  const Offset vouched = std::min(owner.hwm, owner.marker->promoted_hwm);
  if (auto why = missing_there(copy, owner, vouched, terms); !why.empty()) {
    return keep(std::move(why));
  }
  if (copy.end > vouched) {
    return keep(cat("it goes on to offset ", copy.end, ", the owner vouches only up to ", vouched));
  }
  return {SweepVerdict::reclaim, cat("the owner has all of it, up to offset ", vouched)};
}

}  // namespace narad::moves
