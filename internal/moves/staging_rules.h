#pragma once
// What the destination of a move makes of a listing, of the owner's positions and of the files it
// staged: rules without a file (staging.h runs them). Pure.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "internal/delivery/leases.h"
#include "internal/wire/move_messages.h"

namespace narad::moves {

// The directory below `<disk>/.moves` for a partition: "orders-3". The partition follows the last
// dash; a topic so long that the name (with a quarantine's suffix) would not fit a file system is
// shortened, with a hash behind a '~', which no topic holds (G17).
std::string staging_name(const TopicPartition& partition);

// A listing and when it arrived, by this node's wall clock.
struct TakenListing {
  wire::Listing listing;
  UnixMillis arrived_at{0};
  friend bool operator==(const TakenListing&, const TakenListing&) = default;
};

// How much of a staged segment is known to be on the disk.
struct SyncedSegment {
  Offset base{0};
  std::uint64_t bytes = 0;
  friend bool operator==(const SyncedSegment&, const SyncedSegment&) = default;
};

// `staging.json`: whose staging this is, and what of it counts after a restart. Its being there
// with a listing means that the source was reached.
struct StagingRecord {
  TopicPartition partition;
  Incarnation incarnation{0};
  RaftIndex move_id{0};
  std::string source;
  Offset highest_hwm{0};  // that any answer of the source named
  std::vector<SyncedSegment> synced;
  std::optional<TakenListing> newest;
  friend bool operator==(const StagingRecord&, const StagingRecord&) = default;
};
inline constexpr const char* kStagingRecordName = "staging.json";
inline constexpr std::uint64_t kStagingRecordBytesMax = 128u << 20;
std::string encode_staging_record(const StagingRecord& record);
// Nothing if it is unreadable in any way.
std::optional<StagingRecord> decode_staging_record(std::string_view file);

// Why `now` is not a listing of the log that `before` and everything staged came from: a source can
// come back with less (an emptied or unmounted disk). Empty if it is one: the HWM does not fall,
// the log is the same, segments disappear only from the front and appear only at the end, and a
// sealed one keeps its size.
std::string went_back(const TakenListing* before, Offset highest_hwm, const wire::Listing& now);

// The modification time of the copy of a segment: as old on this node's clock as the source's is on
// its own (AGE-3). Nothing if the copy keeps its write time: an older source says neither time
// (AGE-6), or the result lies more than an hour in the future (AGE-5).
std::optional<UnixMillis> copied_mtime(const wire::ListedSegment& segment,
                                       std::optional<UnixMillis> listed_at, UnixMillis arrived_at,
                                       UnixMillis now);

// The consumers' positions that the copy starts with: none at or past `hwm` (CON-4, CON-5).
struct CopiedPositions {
  delivery::ConsumerPositions positions;
  bool capped = false;  // the frontier was past it (CON-6)
};
CopiedPositions copied_positions(const wire::Listing& listing, Offset hwm);

}  // namespace narad::moves
