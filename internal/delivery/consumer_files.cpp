#include "internal/delivery/consumer_files.h"

#include <algorithm>
#include <optional>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::delivery {
namespace {

// The whole file; nothing if there is none. An error is for this time only.
Result<std::optional<Bytes>> read_state(FileSystem& fs, const std::string& path) {
  auto bytes = read_file(fs, path, kConsumerFileBytesMax);
  if (bytes) return std::optional(std::move(bytes).value());
  if (bytes.error().code() == Errc::not_found) return std::optional<Bytes>();
  if (bytes.error().code() == Errc::too_large) return std::optional(Bytes());  // does not verify
  return bytes.error().with_context(
      "cannot read what consumers have acked (tried again at the next request; if the disk never "
      "gives the file back, move it away, and its records are delivered again)");
}

constexpr const char* kAllAgain = "; all records that are still there are delivered again";
constexpr const char* kSinceSnapshot =
    "; acks that are not in consumer.offset (it is 30 s old at most) may be forgotten, and their "
    "records delivered again";

// What a journal that is not whole means: nothing is lost that consumer.offset has.
void report_journal(const std::string& path, ByteView bytes, const DecodedJournal& journal,
                    ConsumerStateReport& report) {
  if (journal.problem.empty()) return;
  const bool torn = journal.readability == Readability::intact && journal.end > 0 &&
                    !find_journal_entry(bytes, journal.end + 1, journal.identity);
  if (torn) {
    report.torn = cat(path,
                      " ends with an entry whose write never completed (as after a crash); "
                      "acks of the last tenth of a second may be forgotten, and their records "
                      "delivered again");
  } else {
    report.unreadable.push_back(cat(path, " ", journal.problem, kSinceSnapshot));
  }
}

Error unknown_version(const std::string& path, const std::string& problem) {
  return Error(
      Errc::unavailable,
      cat(path, " ", problem,
          "; it was left as it is: run the release that wrote it, or move the file away to "
          "deliver its records again"));
}

bool clamp_positions(ConsumerPositions& positions, Offset hwm) {
  bool clamped = positions.frontier > hwm;
  positions.frontier = std::min(positions.frontier, hwm);
  auto& runs = positions.acked_ahead;
  while (!runs.empty() && runs.back().end > hwm) {
    clamped = true;
    if (runs.back().begin < hwm) {
      runs.back().end = hwm;
      break;
    }
    runs.pop_back();
  }
  return clamped;
}

}  // namespace

ConsumerFiles::ConsumerFiles(FileSystem& fs, std::string directory, std::uint64_t identity)
    : fs_(fs), directory_(std::move(directory)), identity_(identity) {}

Result<ConsumerFiles::Opened> ConsumerFiles::open(FileSystem& fs, std::string directory,
                                                  std::uint64_t identity, Offset hwm) {
  Opened out;
  out.files.reset(new ConsumerFiles(fs, std::move(directory), identity));
  out.files->remove_leftovers();
  NARAD_TRY(out.positions, out.files->load(out.report));
  out.report.frontier_before = out.positions.frontier;
  out.report.clamped = clamp_positions(out.positions, hwm);
  if (out.report.clamped) {
    if (auto stored = out.files->snapshot(out.positions); !stored) {
      return stored.error().with_context(
          "cannot store that consumers' positions above the high watermark are void");
    }
  }
  return out;
}

void ConsumerFiles::remove_leftovers() {
  for (const char* name : {kSnapshotFileName, kJournalFileName}) {
    // A temporary file was never renamed: nothing in it was acknowledged, and the file it was to
    // replace is there. One that cannot be removed does no harm: the next write replaces it.
    (void)fs_.remove(path(name) + ".tmp");
  }
}

Result<ConsumerPositions> ConsumerFiles::load(ConsumerStateReport& report) {
  const std::string snapshot_path = path(kSnapshotFileName);
  const std::string journal_path = path(kJournalFileName);
  NARAD_TRY(const std::optional<Bytes> snapshot_bytes, read_state(fs_, snapshot_path));
  NARAD_TRY(const std::optional<Bytes> journal_bytes, read_state(fs_, journal_path));

  ConsumerPositions positions;
  std::optional<std::uint64_t> follows;  // the snapshot whose entries count
  if (snapshot_bytes) {
    DecodedSnapshot snapshot = decode_snapshot(*snapshot_bytes);
    if (snapshot.readability == Readability::unknown_version) {
      return unknown_version(snapshot_path, snapshot.problem);
    }
    if (snapshot.readability == Readability::intact && snapshot.id.identity != identity_) {
      snapshot.readability = Readability::damaged;
      snapshot.problem = "belongs to another life of this topic";
    }
    if (snapshot.readability == Readability::intact) {
      positions = std::move(snapshot.positions);
      follows = snapshot.id.sequence;
      sequence_last_ = snapshot.id.sequence;
    } else {
      set_aside_ = true;
      report.unreadable.push_back(cat(snapshot_path, " ", snapshot.problem, kAllAgain));
    }
  }
  if (journal_bytes) {
    DecodedJournal journal = decode_journal(*journal_bytes);
    if (journal.readability == Readability::unknown_version) {
      return unknown_version(journal_path, journal.problem);
    }
    if (journal.readability == Readability::intact && journal.identity != identity_) {
      journal.readability = Readability::damaged;
      journal.problem = "belongs to another life of this topic";
      journal.entries.clear();
    }
    report_journal(journal_path, *journal_bytes, journal, report);
    // The first snapshot is durable before there is any entry.
    if (!snapshot_bytes && !journal.entries.empty()) {
      report.unreadable.push_back(
          cat(snapshot_path, " is missing, though ", kJournalFileName, " continues it", kAllAgain));
    }
    OffsetSet acked;
    for (const OffsetRun& run : positions.acked_ahead) acked.insert(run);
    for (const JournalEntry& entry : journal.entries) {
      sequence_last_ = std::max(sequence_last_, entry.sequence);
      if (entry.sequence != follows) continue;
      for (const OffsetRun& run : entry.runs) acked.insert(run);
    }
    positions.frontier = acked.run_end(positions.frontier);
    acked.erase({Offset(0), positions.frontier});
    positions.acked_ahead = acked.runs();
  }
  return positions;
}

Result<void> ConsumerFiles::snapshot(const ConsumerPositions& positions) {
  must_snapshot_ = true;
  journal_.reset();  // after a failure its content is in doubt; after success it starts anew
  if (set_aside_) {
    auto kept = fs_.rename(path(kSnapshotFileName), path(kUnreadableSnapshotFileName));
    if (!kept && kept.error().code() != Errc::not_found) return kept.error();
    set_aside_ = false;
  }
  // A number is used once even if its write failed: it may be on the disk all the same.
  const std::uint64_t sequence = ++sequence_last_;
  const Bytes content = encode_snapshot(SnapshotId{identity_, sequence}, positions);
  NARAD_TRY(replace_file(fs_, path(kSnapshotFileName), content));
  sequence_ = sequence;
  journal_end_ = kConsumerHeaderBytes;
  must_snapshot_ = false;
  return ok();
}

Result<void> ConsumerFiles::append(const std::vector<OffsetRun>& runs) {
  NARAD_ASSERT(!must_snapshot_);
  must_snapshot_ = true;  // until this entry is known to be stored
  const Bytes entry = encode_journal_entry(SnapshotId{identity_, sequence_}, runs);
  if (journal_ == nullptr) {
    NARAD_TRY(begin_journal(entry));
  } else {
    NARAD_TRY(add_to_journal(entry));
  }
  journal_end_ += entry.size();
  must_snapshot_ = journal_ == nullptr;
  return ok();
}

// The entries it replaces follow earlier snapshots, of which the one in force, durable by now,
// holds everything.
Result<void> ConsumerFiles::begin_journal(const Bytes& entry) {
  Bytes content = encode_journal_header(identity_);
  content.insert(content.end(), entry.begin(), entry.end());
  NARAD_TRY(replace_file(fs_, path(kJournalFileName), content));
  auto file = fs_.open(path(kJournalFileName), OpenMode::read_write);
  // Stored it is; without a file to add to, the next write is a snapshot.
  if (file) journal_ = std::move(file).value();
  return ok();
}

Result<void> ConsumerFiles::add_to_journal(const Bytes& entry) {
  NARAD_TRY(write_all(*journal_, entry, journal_end_));
  return journal_->datasync();
}

Result<Offset> acked_end(FileSystem& fs, std::string directory, std::uint64_t identity) {
  ConsumerFiles files(fs, std::move(directory), identity);
  ConsumerStateReport report;
  NARAD_TRY(const ConsumerPositions positions, files.load(report));
  const auto& runs = positions.acked_ahead;
  return runs.empty() ? positions.frontier : std::max(positions.frontier, runs.back().end);
}

Result<ConsumerStateReport> clamp_consumer_state(FileSystem& fs, std::string directory,
                                                 std::uint64_t identity, Offset hwm) {
  NARAD_TRY(auto opened, ConsumerFiles::open(fs, std::move(directory), identity, hwm));
  return std::move(opened.report);
}

}  // namespace narad::delivery
