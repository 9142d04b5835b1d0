#include "internal/moves/staging_rules.h"

#include <algorithm>

#include "internal/wire/json_fields.h"
#include "pkg/base/checksum.h"
#include "pkg/base/text.h"
#include "pkg/json/writer.h"

namespace narad::moves {
namespace {

constexpr std::size_t kNameBytesMax = 255;
constexpr std::size_t kSuffixRoom = 24;  // ".quarantine." and a number
constexpr std::size_t kTopicBytesKept = 180;
constexpr std::uint64_t kRecordSeed = 0x3167'6174'736d'616e;  // "namstag1"
constexpr std::uint64_t kRecordVersion = 1;
constexpr std::int64_t kHourMs = 3'600'000;

const wire::ListedSegment* find(const std::vector<wire::ListedSegment>& segments, Offset base) {
  const auto at =
      std::lower_bound(segments.begin(), segments.end(), base,
                       [](const wire::ListedSegment& s, Offset wanted) { return s.base < wanted; });
  return at != segments.end() && at->base == base ? &*at : nullptr;
}

std::string segments_went_back(const std::vector<wire::ListedSegment>& before,
                               const std::vector<wire::ListedSegment>& now) {
  if (before.empty()) return {};
  if (now.empty()) return "it lists no segment any more";
  if (now.front().base < before.front().base) {
    return cat("segment ", now.front().base,
               " was not there before, and is older than all that were");
  }
  for (const wire::ListedSegment& s : before) {
    if (s.base < now.front().base) continue;  // retention
    const wire::ListedSegment* same = find(now, s.base);
    if (same == nullptr) return cat("segment ", s.base, " has vanished from among the others");
    if (s.sealed && (!same->sealed || same->bytes != s.bytes)) {
      return cat("sealed segment ", s.base, " has ", same->bytes, " bytes and had ", s.bytes);
    }
  }
  for (const wire::ListedSegment& s : now) {
    if (s.base > before.back().base) break;  // new ones
    if (find(before, s.base) == nullptr) {
      return cat("segment ", s.base, " has appeared among older ones");
    }
  }
  return {};
}

}  // namespace

std::string staging_name(const TopicPartition& partition) {
  const std::string number = cat("-", partition.partition);
  if (partition.topic.size() + number.size() + kSuffixRoom <= kNameBytesMax) {
    return partition.topic + number;
  }
  return cat(partition.topic.substr(0, kTopicBytesKept), "~",
             to_hex16(xxh3(as_bytes(partition.topic), 0)), number);
}

std::string encode_staging_record(const StagingRecord& record) {
  json::Writer w;
  w.begin_object()
      .member("v", kRecordVersion)
      .member("topic", record.partition.topic)
      .member("partition", record.partition.partition)
      .member("incarnation", to_hex16(record.incarnation.value()))
      .member("move_id", record.move_id)
      .member("source", record.source)
      .member("highest_hwm", record.highest_hwm);
  w.key("synced").begin_array();
  for (const SyncedSegment& s : record.synced) {
    w.begin_object().member("base", s.base).member("bytes", s.bytes).end_object();
  }
  w.end_array();
  if (record.newest) {
    w.member("arrived_at_ms", record.newest->arrived_at);
    w.key("listing").raw(wire::encode(record.newest->listing));
  }
  w.end_object();
  const std::string text = w.take();
  return cat(text, "\n", to_hex16(xxh3(as_bytes(text), kRecordSeed)), "\n");
}

std::optional<StagingRecord> decode_staging_record(std::string_view file) {
  constexpr std::size_t kTail = 18;  // line feed, 16 digits, line feed
  if (file.size() < kTail) return std::nullopt;
  const std::string_view text = file.substr(0, file.size() - kTail);
  const std::string_view tail = file.substr(text.size());
  if (tail.front() != '\n' || tail.back() != '\n') return std::nullopt;
  const auto sum = parse_hex16(tail.substr(1, 16));
  if (!sum || *sum != xxh3(as_bytes(text), kRecordSeed)) return std::nullopt;

  auto read = [](wire::Fields& f, StagingRecord& r) {
    std::uint64_t version = 0, partition = 0;
    f.number("v", version)
        .text("topic", r.partition.topic, kNameBytesMax)
        .number("partition", partition, UINT32_MAX)
        .id("incarnation", r.incarnation)
        .number("move_id", r.move_id)
        .text("source", r.source, kNameBytesMax)
        .number("highest_hwm", r.highest_hwm);
    if (f.ok() && version != kRecordVersion) f.fail("v", "is unknown");
    r.partition.partition = PartitionId(static_cast<std::uint32_t>(partition));
    f.each("synced", wire::kListedSegmentsMax, [&](json::Value v) {
      SyncedSegment& s = r.synced.emplace_back();
      wire::Fields item(v);
      item.number("base", s.base).number("bytes", s.bytes);
      if (!item.ok()) f.fail("synced", item.problem());
    });
    if (!f.has("listing")) return;
    TakenListing& taken = r.newest.emplace();
    f.number("arrived_at_ms", taken.arrived_at);
    const auto object = f.object("listing");
    if (!object) return;
    auto listing = wire::decode_listing(object->raw());
    if (!listing) {
      f.fail("listing", listing.error().text());
      return;
    }
    taken.listing = std::move(listing.value());
  };
  auto record =
      wire::decode_object<StagingRecord>({"staging.json", kStagingRecordBytesMax}, text, read);
  if (!record) return std::nullopt;
  return std::move(record.value());
}

std::string went_back(const TakenListing* before, Offset highest_hwm, const wire::Listing& now) {
  if (now.hwm < highest_hwm) {
    return cat("its high watermark is ", now.hwm, " and was ", highest_hwm);
  }
  if (before == nullptr) return {};
  const wire::Listing& was = before->listing;
  if (was.log != LogId(0) && now.log != was.log) {
    return cat("it is log ", to_hex16(now.log.value()), " and was log ", to_hex16(was.log.value()));
  }
  return segments_went_back(was.segments, now.segments);
}

std::optional<UnixMillis> copied_mtime(const wire::ListedSegment& segment,
                                       std::optional<UnixMillis> listed_at, UnixMillis arrived_at,
                                       UnixMillis now) {
  if (!segment.mtime || !listed_at) return std::nullopt;
  const std::int64_t age = listed_at->value() - segment.mtime->value();
  const UnixMillis mtime(arrived_at.value() - age);
  if (mtime.value() > now.value() + kHourMs) return std::nullopt;
  return mtime;
}

Disposal judge_disposal(const DisposalCase& c) {
  if (!c.holds_records || c.topic_deleted) return Disposal::remove;
  if (c.owned_here) {
    return c.installed_from_source && !c.took_off ? Disposal::remove : Disposal::keep;
  }
  if (!c.row_exists || c.source_gone) return Disposal::set_aside;
  if (!c.owner) return Disposal::ask_owner;
  const bool same_log = c.log == LogId(0) || c.owner->log == LogId(0) || c.log == c.owner->log;
  return same_log && c.owner->hwm >= c.end ? Disposal::remove : Disposal::set_aside;
}

CopiedPositions copied_positions(const wire::Listing& listing, Offset hwm) {
  CopiedPositions out;
  out.capped = listing.frontier > hwm;
  out.positions.frontier = std::min(listing.frontier, hwm);
  for (const wire::AckedRun& run : listing.acked_ahead) {
    const Offset begin = std::max(run.begin, out.positions.frontier);
    const Offset end = std::min(run.end, hwm);
    if (begin < end) out.positions.acked_ahead.push_back({begin, end});
  }
  return out;
}

}  // namespace narad::moves
