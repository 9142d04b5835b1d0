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

// ---- staging that no running move wants (FLP-21, QUA-4 to QUA-6)

struct DisposalCase {
  bool topic_deleted = false;  // the deletion of this life is applied (behind a barrier)
  bool row_exists = false;     // of this life
  bool holds_records = false;
  LogId log{0};   // of what is staged, if it can be told
  Offset end{0};  // of what is staged
  bool owned_here = false;
  // The partition's path holds what a move from that source installed, and this move took nothing
  // off it: the flip of an earlier attempt was applied after all.
  bool installed_from_source = false;
  bool took_off = false;
  bool source_gone = false;  // dead by its record, or without one
  // What the present owner listed after the move had ended; nothing if it was not asked yet.
  struct Owner {
    LogId log{0};
    Offset hwm{0};
  };
  std::optional<Owner> owner;
};
enum class Disposal : std::uint8_t {
  remove,
  set_aside,
  keep,       // where it is, for an operator (QUA-5)
  ask_owner,  // nothing can be said before it has answered
};
Disposal judge_disposal(const DisposalCase& c);

}  // namespace narad::moves
