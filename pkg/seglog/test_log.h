#pragma once
// Shared by the tests of this directory: a log on a simulated disk, and reading it back whole.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/seglog/log.h"
#include "pkg/seglog/names.h"
#include "pkg/seglog/read.h"
#include "pkg/sim/sim_fs.h"

namespace narad::seglog::testing {

inline constexpr const char* kDir = "/p";
inline constexpr LogId kLog{0x5ea1a11c0ffee123};

struct Rec {
  std::uint64_t origin = 0;
  std::uint64_t sequence = 0;
  std::string key;
  std::string payload;
  bool rerouted = false;
  friend bool operator==(const Rec&, const Rec&) = default;
};

inline Rec rec(std::uint64_t origin, std::uint64_t sequence, std::size_t payload_bytes = 20) {
  Rec r;
  r.origin = origin;
  r.sequence = sequence;
  r.key = cat("k", origin, "-", sequence);
  r.payload = cat("payload ", sequence, " of ", origin, " ");
  r.payload.resize(std::max(payload_bytes, r.payload.size()), 'x');
  return r;
}

// One batch of (origin, first..last).
inline std::vector<Rec> recs(std::uint64_t origin, std::uint64_t first, std::uint64_t last,
                             std::size_t payload_bytes = 20) {
  std::vector<Rec> out;
  for (std::uint64_t s = first; s <= last; ++s) out.push_back(rec(origin, s, payload_bytes));
  return out;
}

// Views into `records`, which must outlive it. All of one origin.
inline AppendBatch batch_of(const std::vector<Rec>& records) {
  AppendBatch batch;
  if (records.empty()) return batch;
  batch.origin = OriginId(records.front().origin);
  batch.rerouted = records.front().rerouted;
  for (const Rec& r : records) {
    batch.records.push_back({Sequence(r.sequence), {r.key, r.payload}});
  }
  return batch;
}

inline SegmentedLog::OpenOptions options(Knobs knobs = {}) {
  SegmentedLog::OpenOptions o;
  o.directory = kDir;
  o.knobs = knobs;
  o.create_if_missing = true;
  o.fresh_id = kLog;
  return o;
}

// Stages and publishes one batch.
inline Result<AppendOutcome> append(SegmentedLog& log, const std::vector<Rec>& records,
                                    UnixMillis now = UnixMillis(1'700'000'000'000)) {
  const std::vector<AppendBatch> batches{batch_of(records)};
  NARAD_TRY(std::vector<AppendOutcome> outcomes, log.stage(batches, now));
  log.publish();
  log.check_invariants();
  return outcomes.front();
}

struct Content {
  std::map<std::uint64_t, std::pair<std::string, std::string>> records;  // by offset
  std::vector<LostRange> lost;
};

// Everything from `from` on, in reads of at most a frame each.
inline Result<Content> read_all(FileSystem& fs, const LogView& view, Offset from,
                                std::size_t soft_records = 1) {
  Content content;
  Offset next = from;
  std::optional<ReadPosition> position;
  while (next < view.hwm) {
    ReadRequest request;
    request.from = next;
    request.records_soft_max = soft_records;
    request.position = position;
    auto sink = [&](Offset offset, UnixMillis, const RecordView& r) {
      content.records[offset.value()] = {std::string(r.key), std::string(r.payload)};
    };
    NARAD_TRY(ReadOutcome outcome, read_records(fs, kDir, view, request, sink));
    NARAD_ASSERT(outcome.next > next);
    for (const LostRange& lost : outcome.lost) {
      if (!content.lost.empty() && content.lost.back().to == lost.from) {
        content.lost.back().to = lost.to;
      } else {
        content.lost.push_back(lost);
      }
    }
    next = outcome.next;
    position = outcome.position;
  }
  return content;
}

inline std::string dump(const std::vector<LostRange>& lost) {
  std::string out;
  for (const LostRange& l : lost) out += cat("[", l.from, ",", l.to, ") ");
  return out;
}

// A disk with the log's directory, durable.
inline std::unique_ptr<sim::SimFs> new_disk(std::uint64_t seed = 1) {
  auto fs = std::make_unique<sim::SimFs>(seed);
  NARAD_ASSERT(fs->mkdir(kDir).has_value());
  NARAD_ASSERT(fs->sync_dir("/").has_value());
  return fs;
}

inline std::string file_path(Offset base, std::string_view suffix = kSegmentSuffix) {
  return join_path(kDir, log_file_name(base, suffix));
}

// Segments of a few frames.
inline Knobs small() {
  Knobs knobs;
  knobs.segment_bytes = 2048;
  knobs.frame_raw_bytes = 300;
  return knobs;
}

inline std::unique_ptr<SegmentedLog> open_log(sim::SimFs& fs, Knobs knobs = {}) {
  auto log = SegmentedLog::open(fs, options(knobs));
  if (!log) {
    ADD_FAILURE() << log.error().text();
    std::abort();
  }
  log.value()->check_invariants();
  return std::move(log.value());
}

inline void expect_content(sim::SimFs& fs, const SegmentedLog& log,
                           const std::vector<Rec>& expected, std::uint64_t from = 0) {
  auto content = read_all(fs, *log.view(), Offset(from));
  ASSERT_TRUE(content) << content.error().text();
  EXPECT_TRUE(content.value().lost.empty()) << dump(content.value().lost);
  ASSERT_EQ(log.hwm(), Offset(expected.size()));
  ASSERT_EQ(content.value().records.size(), expected.size() - from);
  for (std::uint64_t i = from; i < expected.size(); ++i) {
    EXPECT_EQ(content.value().records[i].first, expected[i].key);
    EXPECT_EQ(content.value().records[i].second, expected[i].payload);
  }
}

// Appends batches of one origin until the log has `segments` segments; answers what is in it.
inline std::vector<Rec> fill(SegmentedLog& log, std::size_t segments) {
  std::vector<Rec> all;
  std::uint64_t next = 1;
  while (log.view()->segments() < segments) {
    const auto batch = recs(1, next, next + 4);
    next += 5;
    auto r = append(log, batch);
    if (!r) {
      ADD_FAILURE() << r.error().text();
      break;
    }
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

}  // namespace narad::seglog::testing
