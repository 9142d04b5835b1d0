// Snapshot and journal of any bytes: never a crash, and what is accepted makes sense (runs ascend,
// apart, above the frontier) and is encoded to the same bytes again, or to shorter ones where a
// number was spelt longer than it need be. Inputs are also sealed with the checksums they lack, so
// that the inside is reached.
#include <algorithm>
#include <cstdlib>

#include "internal/delivery/consumer_state.h"
#include "pkg/base/checksum.h"

using namespace narad;
using namespace narad::delivery;

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void check_runs(const std::vector<OffsetRun>& runs, Offset above, bool touching) {
  for (const OffsetRun& run : runs) {
    check(touching ? run.begin >= above : run.begin > above);
    check(run.begin < run.end);
    above = run.end;
    touching = false;
  }
}

void try_snapshot(ByteView file) {
  const DecodedSnapshot out = decode_snapshot(file);
  check(out.problem.empty() == (out.readability == Readability::intact));
  if (out.readability != Readability::intact) {
    check(out.positions == ConsumerPositions{});
    return;
  }
  check_runs(out.positions.acked_ahead, out.positions.frontier, false);
  const Bytes again = encode_snapshot(out.id, out.positions);
  check(again.size() <= file.size());
  if (again.size() == file.size()) check(std::equal(again.begin(), again.end(), file.begin()));
  check(decode_snapshot(again).positions == out.positions);
}

void try_journal(ByteView file) {
  const DecodedJournal out = decode_journal(file);
  if (out.readability != Readability::intact) {
    check(out.entries.empty());
    return;
  }
  check(out.end >= kConsumerHeaderBytes);
  check(out.end <= file.size());
  check(out.problem.empty() == (out.end == file.size()));
  Bytes again = encode_journal_header(out.identity);
  for (const JournalEntry& entry : out.entries) {
    check_runs(entry.runs, Offset(0), true);
    const Bytes bytes = encode_journal_entry({out.identity, entry.sequence}, entry.runs);
    again.insert(again.end(), bytes.begin(), bytes.end());
  }
  check(again.size() <= out.end);
  check(decode_journal(again).entries.size() == out.entries.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView input{reinterpret_cast<const std::byte*>(data), size};
  try_snapshot(input);
  try_journal(input);

  // A snapshot with this content.
  const SnapshotId id{7, 3};
  Bytes snapshot = encode_snapshot(id, ConsumerPositions{});
  snapshot.resize(kConsumerHeaderBytes);
  snapshot.insert(snapshot.end(), input.begin(), input.end());
  Bytes longer = snapshot;
  longer.push_back(std::byte{0});
  for (Bytes* file : {&snapshot, &longer}) {
    const std::uint64_t whole = xxh3(*file, id.identity);
    ByteWriter(*file).u64(whole);
    try_snapshot(*file);
  }
  // Nothing may follow the runs.
  check(decode_snapshot(snapshot).readability != Readability::intact ||
        decode_snapshot(longer).readability != Readability::intact);

  // A journal with this behind its header.
  Bytes tail = encode_journal_header(id.identity);
  tail.insert(tail.end(), input.begin(), input.end());
  try_journal(Bytes(tail));
  for (std::uint64_t from : {kConsumerHeaderBytes, tail.size() / 2}) {
    (void)find_journal_entry(tail, from, id.identity);
  }

  // A journal whose one entry has this content.
  Bytes journal = encode_journal_header(id.identity);
  Bytes entry(kJournalEntryHeaderBytes);
  entry.insert(entry.end(), input.begin(), input.end());
  store_le(entry.data(), static_cast<std::uint32_t>(input.size()));
  store_le(entry.data() + 16, id.sequence);
  const ByteView header = ByteView(entry).first(kJournalEntryHeaderBytes);
  store_le(entry.data() + 8,
           xxh3(ByteView(entry).subspan(header.size()), xxh3(header, id.identity)));
  journal.insert(journal.end(), entry.begin(), entry.end());
  try_journal(journal);
  return 0;
}
