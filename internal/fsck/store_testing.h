#pragma once
// For the tests of this directory: a data directory as a node leaves it, on a simulated disk.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "internal/delivery/consumer_files.h"
#include "internal/fsck/check.h"
#include "internal/ingress/wal.h"
#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/seglog/log.h"
#include "pkg/seglog/names.h"
#include "pkg/sim/sim_fs.h"
#include "pkg/sqlite/generation_store.h"

namespace narad::fsck::testing {

inline const std::string kData = "/data";
inline const std::string kPartition = "/data/topics/orders/p00000";
inline const std::string kIngress = "/data/ingress";
inline constexpr Incarnation kIncarnation{0xabc};
inline constexpr LogId kLog{0x5ea1a11c0ffee123};

inline void must(const Result<void>& result) {
  NARAD_ASSERT(result.has_value(), result ? "" : result.error().text());
}
inline void put(FileSystem& fs, const std::string& path, std::string_view text) {
  must(replace_file(fs, path, as_bytes(text)));
}

inline void append_records(seglog::SegmentedLog& log, std::size_t count) {
  seglog::AppendBatch batch;
  for (std::size_t n = 0; n < count; ++n) {
    batch.records.push_back({Sequence(0), {"key", "a payload of some length"}});
  }
  must(log.stage({batch}, UnixMillis(1'700'000'000'000)).has_value()
           ? Result<void>(ok())
           : Result<void>(Error(Errc::internal, "stage")));
  log.publish();
}

// Three segments: offsets 0 to 59, four frames of five records in each.
inline std::unique_ptr<seglog::SegmentedLog> open_log(FileSystem& fs) {
  seglog::SegmentedLog::OpenOptions options;
  options.directory = kPartition;
  options.knobs.segment_bytes = 1200;
  options.create_if_missing = true;
  options.fresh_id = kLog;
  auto log = seglog::SegmentedLog::open(fs, options);
  NARAD_ASSERT(log.has_value(), log ? "" : log.error().text());
  return std::move(log).value();
}
inline void fill_partition(FileSystem& fs, bool clean = true) {
  auto log = open_log(fs);
  for (int n = 0; n < 12; ++n) append_records(*log, 5);
  if (clean) {
    must(log->close());
  } else {
    must(log->persist_hwm());
    for (int n = 0; n < 2; ++n) append_records(*log, 5);
  }
}

inline void fill_consumer_state(FileSystem& fs) {
  auto opened =
      delivery::ConsumerFiles::open(fs, kPartition, kIncarnation.value(), Offset(60)).value();
  must(opened.files->snapshot({Offset(10), {{Offset(12), Offset(14)}}}));
  must(opened.files->append({{Offset(10), Offset(11)}}));
  must(opened.files->append({{Offset(20), Offset(30)}}));
}

// Records 1 to 30 in groups of two, in segments of a dozen or so; below 5 all are handed over.
class Wal {
 public:
  explicit Wal(FileSystem& fs) : fs_(fs) {}
  void start(std::uint64_t origin) {
    auto inspection = ingress::inspect_wal(fs_, kIngress);
    NARAD_ASSERT(inspection.has_value(), inspection ? "" : inspection.error().text());
    must(ingress::recover_wal(fs_, options_, inspection.value()));
    writer_ = ingress::WalWriter::create(fs_, options_, OriginId(origin), inspection.value().next)
                  .value();
    slot_ = inspection.value().checkpoint_slot + 1;
  }
  void append(std::size_t count) {
    Bytes frames;
    for (std::size_t n = 0; n < count; ++n) {
      const Message m{kIncarnation, "orders",      PartitionId(0),
                      "key",        UnixMillis(5), std::string(40, 'x')};
      const std::size_t size = ingress::frame_bytes(m).value();
      frames.resize(frames.size() + size);
      ingress::encode_frame(frames.data() + frames.size() - size, size, m);
    }
    NARAD_ASSERT(writer_->append(frames, count).has_value());
  }
  void checkpoint(Sequence lowest, Sequence clean_end = Sequence(0)) {
    ingress::CheckpointFile file(fs_, kIngress, slot_);
    must(file.store({lowest, clean_end}));
    ++slot_;
  }
  void stop() {
    must(writer_->close());
    writer_.reset();
  }
  void crash() { writer_.reset(); }

 private:
  FileSystem& fs_;
  ingress::WalOptions options_{kIngress, 1500, 1024, 0};
  std::unique_ptr<ingress::WalWriter> writer_;
  std::uint64_t slot_ = 0;
};
inline void fill_wal(FileSystem& fs, bool clean = true) {
  Wal wal(fs);
  wal.start(77);
  for (int n = 0; n < 15; ++n) wal.append(2);
  wal.checkpoint(Sequence(5));
  if (clean) {
    wal.stop();
  } else {
    wal.crash();
  }
}

inline void fill_metastore(FileSystem& fs) {
  auto store = sqlite::GenerationStore::open(fs, "/data/metastore", {"raft", "state"}).value();
  std::vector<sqlite::Database> databases;
  for (const char* name : {"raft", "state"}) {
    auto database = store.create_database(name, sqlite::Options{}, [](sqlite::Database& db) {
      return db.exec(
          "CREATE TABLE t(i INTEGER PRIMARY KEY, b BLOB); INSERT INTO t VALUES (1, 'x')");
    });
    databases.push_back(std::move(database).value());
  }
  must(store.close_clean(std::move(databases)));
}

// A node with one topic of one partition, stopped cleanly.
inline std::unique_ptr<sim::SimFs> sound_store() {
  auto fs = std::make_unique<sim::SimFs>(1);
  for (const std::string& path :
       {kPartition, kIngress, std::string("/data/metastore"), std::string("/data/.quarantine"),
        std::string("/data/.deleted")}) {
    must(make_directories(*fs, path));
  }
  put(*fs, "/data/LOCK", "pid 42 on host a\n");
  put(*fs, "/data/disk.id", "00000000000000d1\n");
  put(*fs, "/data/node.json",
      R"({"format":1,"node_id":"n1","cluster_id":"00000000000000c1","created_at_ms":1,)"
      R"("disks":["00000000000000d1"]})"
      "\n");
  put(*fs, "/data/topics/orders/topic.incarnation", "0000000000000abc\n");
  fill_partition(*fs);
  fill_consumer_state(*fs);
  fill_wal(*fs);
  fill_metastore(*fs);
  return fs;
}

// The findings of a kind, "where: what".
inline std::vector<std::string> texts(const Report& report, Kind kind) {
  std::vector<std::string> out;
  for (const Finding& finding : report.findings()) {
    if (finding.kind == kind) out.push_back(cat(finding.where, ": ", finding.what));
  }
  return out;
}

}  // namespace narad::fsck::testing
