#pragma once
// What is settled of a partition, on disk (storage.md, "Consumer state"): the formats of
// `consumer.offset` (a snapshot of frontier and acked-ahead set) and `consumer.acks` (the acks
// since, one entry a tick). Pure; consumer_files.h reads and writes them.
//
// Both files begin with the same 32 bytes, in this and every later version:
//    0 u32 magic   4 u32 version   8 u64 identity   16 u64 sequence   24 u64 checksum of 0..24
// `identity` says what the state belongs to (the topic's incarnation) and seeds all checksums but
// that one: state of another life of a topic is never taken over.
//   consumer.offset: header (sequence of the snapshot), u64 frontier, runs, u64 checksum of all
//                    before it.
//   consumer.acks:   header (sequence 0), then entries {u32 length of the runs, u32 zero,
//                    u64 checksum of the entry with this field zero, u64 sequence of the snapshot
//                    it follows (0: none), runs}.
//   runs:            varint count, then per run varint distance from the end of the one before (the
//                    first from the frontier, in entries from 0), varint offsets in it; ascending,
//                    apart.
//
// A file whose bytes do not verify is no reason to skip anything: what it held is delivered again.
// A file of another version is refused, and nothing is changed.
#include <optional>
#include <string>
#include <vector>

#include "internal/delivery/leases.h"
#include "pkg/base/bytes.h"

namespace narad::delivery {

inline constexpr std::uint32_t kSnapshotMagic = 0x5343'524e;  // "NRCS"
inline constexpr std::uint32_t kJournalMagic = 0x4a43'524e;   // "NRCJ"
inline constexpr std::uint32_t kConsumerStateVersion = 1;
inline constexpr std::size_t kConsumerHeaderBytes = 32;
inline constexpr std::size_t kJournalEntryHeaderBytes = 24;
inline constexpr const char* kSnapshotFileName = "consumer.offset";
inline constexpr const char* kJournalFileName = "consumer.acks";
// Neither file grows beyond it; a larger one is not read, and counts as damaged.
inline constexpr std::uint64_t kConsumerFileBytesMax = 256 * 1024 * 1024;

// Which life of which partition, and which snapshot.
struct SnapshotId {
  std::uint64_t identity = 0;
  std::uint64_t sequence = 0;
};

Bytes encode_snapshot(SnapshotId id, const ConsumerPositions& positions);
Bytes encode_journal_header(std::uint64_t identity);
// One entry of acks after snapshot `id.sequence`. REQUIRES: runs ascending and apart, not empty.
Bytes encode_journal_entry(SnapshotId id, const std::vector<OffsetRun>& runs);

enum class Readability : std::uint8_t {
  intact,
  damaged,          // does not verify, or is no such file
  unknown_version,  // a header that verifies, of a version this release does not know
};

struct DecodedSnapshot {
  Readability readability = Readability::damaged;
  std::string problem;        // empty if intact: what does not verify, where
  std::uint32_t version = 0;  // if the header verifies
  SnapshotId id;              // if the header verifies
  ConsumerPositions positions;
};
DecodedSnapshot decode_snapshot(ByteView file);

struct JournalEntry {
  std::uint64_t at = 0;  // byte offset in the file
  std::uint64_t sequence = 0;
  std::vector<OffsetRun> runs;
};
struct DecodedJournal {
  Readability readability = Readability::damaged;  // of the header
  std::string problem;                             // of the header, or of the first bad entry
  std::uint32_t version = 0;
  std::uint64_t identity = 0;
  std::vector<JournalEntry> entries;  // up to the first that does not verify
  std::uint64_t end = 0;              // where the last good entry ends
};
DecodedJournal decode_journal(ByteView file);
// Where the next entry lies that verifies, at or behind byte `from`: tells damage in the middle
// from a torn end.
std::optional<std::uint64_t> find_journal_entry(ByteView file, std::uint64_t from,
                                                std::uint64_t identity);

}  // namespace narad::delivery
