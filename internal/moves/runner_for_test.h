#pragma once
// For tests of whole moves: a destination over plain files, with all that is asked of its runner.
#include <gtest/gtest.h>

#include <algorithm>

#include "internal/delivery/consumer_files.h"
#include "internal/moves/runner.h"
#include "internal/moves/staging.h"
#include "internal/moves/world_for_test.h"

namespace narad::moves::testing {

// A place over plain files; what internal/node makes of it is tested there.
class FilePlace final : public InstallPlace {
 public:
  FilePlace(Env& env, metastore::Proposer& metastore) : env_(env), metastore_(metastore) {}

  MoveDisk disk(const std::string& id) const override { return {id, "/data", id == "d1"}; }
  std::vector<MoveDisk> disks() const override { return {disk("d1")}; }
  std::string partition_directory(const std::string&, const TopicPartition& p) const override {
    return join_path(cat("/data/topics/", p.topic), partition_directory_name(p.partition));
  }
  Task<Result<void>> prepare(TopicPartition p, Incarnation i, std::string) override {
    const metastore::ViewPtr view = metastore_.view();
    const metastore::TopicRow* row = view->topics.find(p.topic);
    if (row == nullptr || row->topic.incarnation != i)
      co_return Error(Errc::conflict, "another incarnation");
    auto make = [&fs = env_.fs, path = cat("/data/topics/", p.topic)] {
      return make_directories(fs, path);
    };
    co_return co_await blocking(env_, "prepare", std::move(make));
  }
  Task<Result<std::string>> install(TopicPartition p, Incarnation, std::string disk,
                                    std::string staged) override {
    auto put = [&fs = env_.fs, path = partition_directory(disk, p),
                staged]() -> Result<std::string> {
      NARAD_TRY(bool there, exists(fs, path));
      if (there) return Error(Errc::conflict, cat(path, " is taken"));
      NARAD_TRY(fs.rename(staged, path));
      NARAD_TRY(settle_install(fs, path, staged));
      return std::string();
    };
    co_return co_await blocking(env_, "install", std::move(put));
  }
  Task<Result<void>> take_off(TopicPartition p, Incarnation, std::string disk, std::string staged,
                              RaftIndex move) override {
    ++taken_off;
    auto take = [&fs = env_.fs, path = partition_directory(disk, p), staged,
                 move]() -> Result<void> {
      NARAD_TRY(auto marker, read_marker(fs, path));
      if (!marker || marker->move_id != move) return Error(Errc::conflict, "not that install");
      NARAD_TRY(fs.rename(path, staged));
      return settle_install(fs, path, staged);
    };
    co_return co_await blocking(env_, "take off", std::move(take));
  }

  std::uint64_t taken_off = 0;

 private:
  Env& env_;
  metastore::Proposer& metastore_;
};

class FileSite final : public Site {
 public:
  explicit FileSite(Env& env) : env_(env) {}
  Task<Result<void>> open() override { co_return ok(); }
  void begin(metastore::Proposer& metastore) override {
    place_ = std::make_unique<FilePlace>(env_, metastore);
  }
  std::string disk_id() const override { return "d1"; }
  InstallPlace& place() override { return *place_; }
  FilePlace& files() { return *place_; }

 private:
  Env& env_;
  std::unique_ptr<FilePlace> place_;
};

inline std::shared_ptr<Site> make_file_site(Env& env) { return std::make_shared<FileSite>(env); }

inline constexpr const char* kPath = "/data/topics/orders/p00003";
inline constexpr const char* kStaged = "/data/.moves/orders-3";

class RunnerTest : public ::testing::Test {
 protected:
  FilePlace& place() { return static_cast<FileSite&>(*world.node().site).files(); }
  RunnerStats stats() { return world.node().runner->stats(); }
  std::size_t reports() { return world.node().runner->reports().size(); }
  wire::MoveReport report() {
    const auto all = world.node().runner->reports();
    return all.empty() ? wire::MoveReport{} : all.front();
  }
  bool becomes(std::string_view phase, Nanos limit = 60s) {
    return world.until([&] { return report().phase == phase; }, limit);
  }
  // A move whose source is away is aborted in mid-copy, and this process ends with it.
  void end_in_mid_copy() {
    world.log.append(300);
    ASSERT_TRUE(world.boot());
    world.source.faults.latency = 20ms;
    world.set_target();
    ASSERT_TRUE(world.until([&] { return report().bytes_done > 6000; }, 60s));
    world.source.faults.unreachable = true;
    world.clear_target();
    world.pass(1s);
    world.machine.kill(sim::Machine::Kill::process_exit);
  }
  bool arrives(Nanos limit = 120s) {
    return world.until([&] { return world.here() && stats().done == 1 && reports() == 0; }, limit);
  }
  // What the copy at the path holds.
  std::vector<std::string> arrived() {
    auto fs = world.machine.disk().clone();
    seglog::SegmentedLog::OpenOptions o;
    o.directory = kPath;
    auto opened = seglog::SegmentedLog::open(*fs, std::move(o));
    EXPECT_TRUE(opened) << opened.error().text();
    if (!opened) return {};
    EXPECT_TRUE(opened.value()->open_report().clean);
    return SourceLog::records(*fs, kPath, *opened.value()->view());
  }
  bool exists(const std::string& path) {
    const auto all = world.machine.disk().all_paths();
    return std::find(all.begin(), all.end(), path + "/") != all.end();
  }
  void expect_whole_move() {
    EXPECT_EQ(arrived(), world.log.records());
    EXPECT_FALSE(exists(kStaged));
    EXPECT_FALSE(world.machine.disk().seen_bytes(join_path(kPath, kStagingRecordName)));
  }

  World world{make_file_site};
};

}  // namespace narad::moves::testing
