#include "pkg/sim/sim_fs.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <set>

#include "pkg/base/text.h"

namespace narad::sim {
namespace {

std::unique_ptr<File> open_file(SimFs& fs, const std::string& path,
                                OpenMode mode = OpenMode::create) {
  auto file = fs.open(path, mode);
  EXPECT_TRUE(file) << file.error().text();
  return std::move(file).value();
}

void put(SimFs& fs, const std::string& path, std::string_view text, bool sync = true) {
  auto file = open_file(fs, path);
  ASSERT_TRUE(write_all(*file, as_bytes(text), 0));
  if (sync) {
    ASSERT_TRUE(file->sync());
  }
}

// A durable file under a durable name in the root.
void put_durably(SimFs& fs, const std::string& path, std::string_view text) {
  put(fs, path, text);
  ASSERT_TRUE(fs.sync_dir(parent_path(path)));
}

std::string seen(const SimFs& fs, const std::string& path) {
  auto bytes = fs.seen_bytes(path);
  return bytes ? to_text(*bytes) : "(absent)";
}

template <class T>
int errno_of(const Result<T>& result) {
  return result ? 0 : result.error().os_errno();
}

void only(SimFs& fs, std::uint32_t keep, std::uint32_t drop, std::uint32_t tear,
          std::uint32_t garbage) {
  fs.faults.cut_keep = keep;
  fs.faults.cut_drop = drop;
  fs.faults.cut_tear = tear;
  fs.faults.cut_garbage = garbage;
}

// ---- what a file system does -------------------------------------------------------------------

TEST(SimFs, ErrorsOfEachCall_CarryErrnoVerbAndPath) {
  SimFs fs;
  put(fs, "/f", "x");
  ASSERT_TRUE(fs.mkdir("/d"));
  ASSERT_TRUE(fs.mkdir("/d/e"));
  EXPECT_EQ(errno_of(fs.open("/none", OpenMode::read)), ENOENT);
  EXPECT_EQ(errno_of(fs.open("/none", OpenMode::read_write)), ENOENT);
  EXPECT_EQ(errno_of(fs.open("/none/f", OpenMode::create)), ENOENT);
  EXPECT_EQ(errno_of(fs.open("/f", OpenMode::create_new)), EEXIST);
  EXPECT_EQ(errno_of(fs.open("/d", OpenMode::read)), EISDIR);
  EXPECT_EQ(errno_of(fs.open("/f/g", OpenMode::create)), ENOTDIR);
  EXPECT_EQ(errno_of(fs.open("/" + std::string(256, 'n'), OpenMode::create)), ENAMETOOLONG);
  EXPECT_EQ(errno_of(fs.remove("/none")), ENOENT);
  EXPECT_EQ(errno_of(fs.remove("/d")), EISDIR);
  EXPECT_EQ(errno_of(fs.mkdir("/d")), EEXIST);
  EXPECT_EQ(errno_of(fs.mkdir("/f")), EEXIST);
  EXPECT_EQ(errno_of(fs.mkdir("/x/y")), ENOENT);
  EXPECT_EQ(errno_of(fs.rmdir("/d")), ENOTEMPTY);
  EXPECT_EQ(errno_of(fs.rmdir("/f")), ENOTDIR);
  EXPECT_EQ(errno_of(fs.rmdir("/none")), ENOENT);
  EXPECT_EQ(errno_of(fs.list("/f")), ENOTDIR);
  EXPECT_EQ(errno_of(fs.list("/none")), ENOENT);
  EXPECT_EQ(errno_of(fs.stat("/none")), ENOENT);
  EXPECT_EQ(errno_of(fs.set_mtime("/none", UnixMillis(1))), ENOENT);
  EXPECT_EQ(errno_of(fs.sync_dir("/none")), ENOENT);
  EXPECT_EQ(errno_of(fs.sync_dir("/f")), ENOTDIR);
  EXPECT_EQ(errno_of(fs.rename("/none", "/x")), ENOENT);
  EXPECT_EQ(errno_of(fs.rename("/f", "/d")), EISDIR);
  EXPECT_EQ(errno_of(fs.rename("/d", "/f")), ENOTDIR);
  EXPECT_EQ(errno_of(fs.rename("/d", "/d/e/inside")), EINVAL);
  ASSERT_TRUE(fs.mkdir("/other"));
  EXPECT_EQ(errno_of(fs.rename("/other", "/d")), ENOTEMPTY);
  EXPECT_EQ(fs.open("/none", OpenMode::read).error().text(),
            "open /none: No such file or directory");
  EXPECT_EQ(fs.rename("/none", "/x").error().text(),
            "rename /none to /x: No such file or directory");
  auto file = open_file(fs, "/f", OpenMode::read);
  EXPECT_EQ(errno_of(file->pwrite(as_bytes("y"), 0)), EBADF);
  EXPECT_EQ(errno_of(file->truncate(0)), EBADF);
}

TEST(SimFs, PathsWithDotsAndDoubleSlashes_MeanTheSameFile) {
  SimFs fs;
  ASSERT_TRUE(fs.mkdir("data"));
  put(fs, "data/f", "x");
  EXPECT_EQ(seen(fs, "/data//./f"), "x");
  EXPECT_EQ(seen(fs, "/data/../data/f"), "x");
  EXPECT_TRUE(fs.sync_dir("."));
}

TEST(SimFs, WritePastTheEnd_LeavesAHoleOfZeros) {
  SimFs fs;
  auto file = open_file(fs, "/f");
  ASSERT_TRUE(write_all(*file, as_bytes("end"), 10'000));
  EXPECT_EQ(file->size().value(), 10'003u);
  Bytes all(10'003);
  ASSERT_TRUE(read_exact(*file, all, 0));
  EXPECT_EQ(all[9'999], std::byte{0});
  EXPECT_EQ(as_chars(ByteView(all).subspan(10'000)), "end");
}

TEST(SimFs, TruncateThenGrow_ShowsZerosNotOldBytes) {
  SimFs fs;
  put(fs, "/f", std::string(9'000, 'x'));
  auto file = open_file(fs, "/f");
  ASSERT_TRUE(file->truncate(4'500));
  ASSERT_TRUE(file->truncate(9'000));
  EXPECT_EQ(seen(fs, "/f"), std::string(4'500, 'x') + std::string(4'500, '\0'));
}

TEST(SimFs, GatherWrite_StoresAllPartsInOrder) {
  SimFs fs;
  auto file = open_file(fs, "/f");
  const ByteView parts[] = {as_bytes("ab"), as_bytes(""), as_bytes("cde")};
  EXPECT_EQ(file->pwritev(parts, 1).value(), 5u);
  EXPECT_EQ(seen(fs, "/f"), std::string("\0abcde", 6));
}

TEST(SimFs, ListAndStat_AreSortedAndKeepTheIdThroughRename) {
  SimFs fs;
  put(fs, "/b", "12");
  put(fs, "/a", "1");
  ASSERT_TRUE(fs.mkdir("/c"));
  EXPECT_EQ(fs.list("/").value(), (std::vector<std::string>{"a", "b", "c"}));
  const FileStat before = fs.stat("/b").value();
  EXPECT_EQ(before.size, 2u);
  EXPECT_FALSE(before.is_directory);
  ASSERT_TRUE(fs.rename("/b", "/c/b2"));
  EXPECT_EQ(fs.stat("/c/b2").value().id, before.id);
  EXPECT_EQ(fs.stat("/c/b2").value().mtime, before.mtime);
  EXPECT_TRUE(fs.stat("/c").value().is_directory);
  const std::uint64_t directory = fs.stat("/c").value().id;
  ASSERT_TRUE(fs.rename("/c", "/z"));
  EXPECT_EQ(fs.stat("/z").value().id, directory);
  EXPECT_EQ(fs.all_paths(), (std::vector<std::string>{"/a", "/z/", "/z/b2"}));
}

TEST(SimFs, Mtime_FollowsTheClockAndSetMtime) {
  SimFs fs;
  UnixMillis now(5'000);
  fs.set_clock([&] { return now; });
  put(fs, "/f", "x");
  EXPECT_EQ(fs.stat("/f").value().mtime, UnixMillis(5'000));
  now = UnixMillis(6'000);
  EXPECT_EQ(fs.stat("/f").value().mtime, UnixMillis(5'000));
  put(fs, "/f", "y");
  EXPECT_EQ(fs.stat("/f").value().mtime, UnixMillis(6'000));
  ASSERT_TRUE(fs.set_mtime("/f", UnixMillis(7)));
  EXPECT_EQ(fs.stat("/f").value().mtime, UnixMillis(7));
}

TEST(SimFs, UnsyncedMtime_IsSometimesLostAndSometimesKept) {
  std::set<std::int64_t> found;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SimFs fs(seed);
    put_durably(fs, "/f", "x");
    ASSERT_TRUE(fs.set_mtime("/f", UnixMillis(100)));
    ASSERT_TRUE(open_file(fs, "/f")->sync());
    ASSERT_TRUE(fs.set_mtime("/f", UnixMillis(200)));
    fs.power_cycle();
    found.insert(fs.stat("/f").value().mtime.value());
  }
  EXPECT_EQ(found, (std::set<std::int64_t>{100, 200}));
}

TEST(SimFs, Lock_IsExclusiveUntilTheFileCloses) {
  SimFs fs;
  auto first = open_file(fs, "/LOCK");
  auto second = open_file(fs, "/LOCK");
  EXPECT_TRUE(first->try_lock().value());
  EXPECT_TRUE(first->try_lock().value());
  EXPECT_FALSE(second->try_lock().value());
  first.reset();
  EXPECT_TRUE(second->try_lock().value());
}

TEST(SimFs, RemovedButOpenFile_StaysReadableAndUsesSpaceUntilClosed) {
  SimFs fs;
  put(fs, "/f", "12345");
  auto file = open_file(fs, "/f");
  ASSERT_TRUE(fs.remove("/f"));
  EXPECT_EQ(fs.used_bytes(), 5u);
  Bytes back(5);
  EXPECT_TRUE(read_exact(*file, back, 0));
  file.reset();
  EXPECT_EQ(fs.used_bytes(), 0u);
}

TEST(SimFs, RenameOverAFile_FreesTheOldOne) {
  SimFs fs;
  put(fs, "/old", "123456789");
  put(fs, "/new", "1");
  ASSERT_TRUE(fs.rename("/new", "/old"));
  EXPECT_EQ(fs.used_bytes(), 1u);
  EXPECT_EQ(fs.all_paths(), std::vector<std::string>{"/old"});
}

TEST(SimFs, FullDisk_WritesWhatFitsThenFailsAndRecovers) {
  SimFs fs;
  fs.faults.capacity_bytes = 10;
  auto file = open_file(fs, "/f");
  EXPECT_EQ(file->pwrite(as_bytes("1234567"), 0).value(), 7u);
  EXPECT_EQ(fs.space("/").value().available, 3u);
  EXPECT_EQ(file->pwrite(as_bytes("abcdef"), 7).value(), 3u);
  auto full = file->pwrite(as_bytes("x"), 10);
  EXPECT_EQ(errno_of(full), ENOSPC);
  EXPECT_EQ(full.error().code(), Errc::unavailable);
  EXPECT_EQ(errno_of(file->allocate(11)), ENOSPC);
  EXPECT_EQ(file->pwrite(as_bytes("overwrite!"), 0).value(), 10u);
  EXPECT_EQ(fs.stats.enospc, 3u);
  ASSERT_TRUE(file->truncate(5));
  EXPECT_EQ(file->pwrite(as_bytes("x"), 5).value(), 1u);
}

TEST(SimFs, Allocate_ReservesSpaceThatLaterWritesUse) {
  SimFs fs;
  fs.faults.capacity_bytes = 100;
  auto file = open_file(fs, "/f");
  ASSERT_TRUE(file->allocate(80));
  EXPECT_EQ(file->size().value(), 80u);
  EXPECT_EQ(errno_of(open_file(fs, "/g")->allocate(30)), ENOSPC);
  EXPECT_EQ(file->pwrite(Bytes(80), 0).value(), 80u);
  ASSERT_TRUE(file->allocate(10));
  EXPECT_EQ(file->size().value(), 80u);
}

TEST(SimFs, HugeOffset_IsRefusedNotAllocated) {
  SimFs fs;
  auto file = open_file(fs, "/f");
  EXPECT_EQ(errno_of(file->pwrite(as_bytes("x"), std::uint64_t{1} << 60)), EFBIG);
  EXPECT_EQ(errno_of(file->truncate(std::uint64_t{1} << 60)), EFBIG);
}

TEST(SimFs, ReadOnlyDisk_RefusesEveryChangeWithErofsAndStillReads) {
  SimFs fs;
  put_durably(fs, "/f", "x");
  ASSERT_TRUE(fs.mkdir("/d"));
  auto writable = open_file(fs, "/f");
  fs.faults.read_only = true;
  EXPECT_EQ(errno_of(writable->pwrite(as_bytes("y"), 0)), EROFS);
  EXPECT_EQ(errno_of(fs.open("/f", OpenMode::read_write)), EROFS);
  EXPECT_EQ(errno_of(fs.open("/new", OpenMode::create)), EROFS);
  EXPECT_EQ(errno_of(fs.remove("/f")), EROFS);
  EXPECT_EQ(errno_of(fs.rename("/f", "/g")), EROFS);
  EXPECT_EQ(errno_of(fs.mkdir("/e")), EROFS);
  EXPECT_EQ(errno_of(fs.rmdir("/d")), EROFS);
  EXPECT_EQ(errno_of(fs.set_mtime("/f", UnixMillis(1))), EROFS);
  Bytes back(1);
  EXPECT_TRUE(read_exact(*open_file(fs, "/f", OpenMode::read), back, 0));
  EXPECT_EQ(back[0], std::byte{'x'});
}

// ---- what a power cut does ---------------------------------------------------------------------

TEST(PowerCut, SyncedFileWithSyncedName_Survives) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SimFs fs(seed);
    put_durably(fs, "/a", "hello");
    fs.power_cycle();
    EXPECT_EQ(seen(fs, "/a"), "hello") << "seed " << seed;
  }
}

TEST(PowerCut, DatasyncAlone_KeepsDataAndSize) {
  SimFs fs;
  put_durably(fs, "/a", "");
  auto file = open_file(fs, "/a");
  ASSERT_TRUE(write_all(*file, as_bytes("grown"), 0));
  ASSERT_TRUE(file->datasync());
  fs.power_cycle();
  EXPECT_EQ(seen(fs, "/a"), "grown");
}

TEST(PowerCut, UnsyncedName_IsSometimesLostThoughTheFileWasSynced) {
  int lost = 0, kept = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SimFs fs(seed);
    put(fs, "/a", "hello");
    fs.power_cycle();
    if (seen(fs, "/a") == "(absent)") {
      ++lost;
    } else {
      EXPECT_EQ(seen(fs, "/a"), "hello");
      ++kept;
    }
  }
  EXPECT_GT(lost, 20);
  EXPECT_GT(kept, 20);
}

TEST(PowerCut, ExtLikeDisk_SyncOfTheFileCoversItsName) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SimFs fs(seed);
    fs.faults.sync_covers_names = true;
    put(fs, "/a", "hello");
    fs.power_cycle();
    EXPECT_EQ(seen(fs, "/a"), "hello");
  }
}

TEST(PowerCut, DurableNameOfAnUnsyncedFile_CanBeEmpty) {
  int empty = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SimFs fs(seed);
    put(fs, "/a", "hello", false);
    ASSERT_TRUE(fs.sync_dir("/"));
    fs.power_cycle();
    EXPECT_NE(seen(fs, "/a"), "(absent)");
    empty += seen(fs, "/a").empty();
  }
  EXPECT_GT(empty, 5);
}

TEST(PowerCut, EachFateOfAnUnsyncedWrite_ReallyOccurs) {
  const std::string old(4'096, 'o'), fresh(4'096, 'n');
  SimFs::Stats sum;
  int all_old = 0, all_new = 0, mixed = 0, noisy = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SimFs fs(seed);
    put_durably(fs, "/a", old);
    put(fs, "/a", fresh, false);
    fs.power_cycle();
    const std::string now = seen(fs, "/a");
    ASSERT_EQ(now.size(), old.size());
    bool has_old = false, has_new = false, has_noise = false;
    for (std::size_t at = 0; at < now.size(); at += 512) {
      const std::string sector = now.substr(at, 512);
      if (sector == old.substr(0, 512)) {
        has_old = true;
      } else if (sector == fresh.substr(0, 512)) {
        has_new = true;
      } else {
        EXPECT_FALSE(has_noise) << "garbage in one sector only";
        has_noise = true;
      }
    }
    noisy += has_noise;
    mixed += has_old && has_new && !has_noise;
    all_old += has_old && !has_new && !has_noise;
    all_new += has_new && !has_old && !has_noise;
    sum += fs.stats;
  }
  EXPECT_GT(all_old, 10);
  EXPECT_GT(all_new, 10);
  EXPECT_GT(mixed, 10);
  EXPECT_GT(noisy, 10);
  EXPECT_EQ(sum.kept + sum.dropped + sum.torn + sum.garbage, 200u);
}

TEST(PowerCut, LossOfOneWrite_NeverTouchesSyncedBytesBesideIt) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SimFs fs(seed);
    put_durably(fs, "/a", std::string(700, 's'));
    auto file = open_file(fs, "/a");
    ASSERT_TRUE(write_all(*file, Bytes(900, std::byte{'u'}), 700));
    file.reset();
    fs.power_cycle();
    EXPECT_EQ(seen(fs, "/a").substr(0, 700), std::string(700, 's')) << "seed " << seed;
  }
}

TEST(PowerCut, UnsyncedTruncate_IsSometimesUndone) {
  std::set<std::size_t> sizes;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SimFs fs(seed);
    put_durably(fs, "/a", "0123456789");
    ASSERT_TRUE(open_file(fs, "/a")->truncate(4));
    fs.power_cycle();
    sizes.insert(seen(fs, "/a").size());
  }
  EXPECT_EQ(sizes, (std::set<std::size_t>{4, 10}));
}

TEST(PowerCut, LaterWriteCanSurviveAnEarlierOneThatDoesNot) {
  int reordered = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SimFs fs(seed);
    only(fs, 1, 1, 0, 0);
    put_durably(fs, "/a", "....");
    auto file = open_file(fs, "/a");
    ASSERT_TRUE(file->pwrite(as_bytes("11"), 0));
    ASSERT_TRUE(file->pwrite(as_bytes("22"), 2));
    fs.power_cycle();
    reordered += seen(fs, "/a") == "..22";
  }
  EXPECT_GT(reordered, 10);
}

TEST(PowerCut, DirectoryOperations_SurviveAsAPrefix) {
  std::set<std::vector<std::string>> found;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SimFs fs(seed);
    for (const char* name : {"/a", "/b", "/c"}) put(fs, name, "x");
    fs.power_cycle();
    found.insert(fs.all_paths());
  }
  EXPECT_EQ(found,
            (std::set<std::vector<std::string>>{{}, {"/a"}, {"/a", "/b"}, {"/a", "/b", "/c"}}));
}

TEST(PowerCut, UnsyncedRemove_CanBringTheFileBack) {
  std::set<std::string> found;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SimFs fs(seed);
    put_durably(fs, "/a", "hello");
    ASSERT_TRUE(fs.remove("/a"));
    fs.power_cycle();
    found.insert(seen(fs, "/a"));
  }
  EXPECT_EQ(found, (std::set<std::string>{"(absent)", "hello"}));
}

TEST(PowerCut, RenameOverAFile_LeavesTheOldOrTheNewWhole) {
  std::set<std::string> found;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SimFs fs(seed);
    put_durably(fs, "/a", "old");
    put(fs, "/a.tmp", "new");
    ASSERT_TRUE(fs.rename("/a.tmp", "/a"));
    fs.power_cycle();
    found.insert(seen(fs, "/a"));
  }
  EXPECT_EQ(found, (std::set<std::string>{"old", "new"}));
}

TEST(PowerCut, ReplaceFile_AtEveryCutPoint_LeavesOldOrNewAndNewWhenItAnswered) {
  SimFs before(1);
  ASSERT_TRUE(before.mkdir("/d"));
  ASSERT_TRUE(before.sync_dir("/"));
  put_durably(before, "/d/f", "old");
  int ran = 0;
  for (auto how : {SimFs::Cut::before_call, SimFs::Cut::during_call}) {
    bool finished = false;
    for (std::uint64_t k = 1; !finished; ++k) {
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        auto fs = before.clone();
        fs->reseed(seed);
        fs->cut_power_at(fs->ops() + k, {}, how);
        auto done = replace_file(*fs, "/d/f", as_bytes("new"));
        if (!done) {
          EXPECT_EQ(errno_of(done), EIO);
        }
        finished = !fs->frozen();
        fs->power_cycle();
        const std::string now = seen(*fs, "/d/f");
        if (done) {
          EXPECT_EQ(now, "new");
        } else {
          EXPECT_TRUE(now == "old" || now == "new") << now;
        }
        ++ran;
      }
    }
  }
  EXPECT_GT(ran, 200);
}

TEST(PowerCut, RenameBetweenDirectories_IsDurableOnlyWhenBothAreSynced) {
  std::set<std::string> one, both;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    for (bool sync_source : {false, true}) {
      SimFs fs(seed);
      ASSERT_TRUE(fs.mkdir("/from"));
      ASSERT_TRUE(fs.mkdir("/to"));
      ASSERT_TRUE(fs.sync_dir("/"));
      put_durably(fs, "/from/f", "x");
      ASSERT_TRUE(fs.rename("/from/f", "/to/f"));
      ASSERT_TRUE(fs.sync_dir("/to"));
      if (sync_source) {
        ASSERT_TRUE(fs.sync_dir("/from"));
      }
      fs.power_cycle();
      const bool at_from = seen(fs, "/from/f") == "x", at_to = seen(fs, "/to/f") == "x";
      EXPECT_NE(at_from, at_to) << "a rename is atomic";
      (sync_source ? both : one).insert(at_to ? "moved" : "not moved");
    }
  }
  EXPECT_EQ(one, (std::set<std::string>{"moved", "not moved"}));
  EXPECT_EQ(both, (std::set<std::string>{"moved"}));
}

TEST(PowerCut, DirectoryWhoseOwnNameIsNotSynced_TakesItsFilesAway) {
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SimFs fs(seed);
    ASSERT_TRUE(fs.mkdir("/d"));
    put(fs, "/d/f", "x");
    ASSERT_TRUE(fs.sync_dir("/d"));
    fs.power_cycle();
    lost += seen(fs, "/d/f") == "(absent)";
  }
  EXPECT_GT(lost, 5);
}

TEST(PowerCut, DirectoryRename_MovesTheWholeTreeOrNothing) {
  std::set<std::vector<std::string>> found;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SimFs fs(seed);
    ASSERT_TRUE(make_directories(fs, "/a/b"));
    put_durably(fs, "/a/b/f", "x");
    ASSERT_TRUE(fs.rename("/a", "/z"));
    fs.power_cycle();
    found.insert(fs.all_paths());
  }
  EXPECT_EQ(found, (std::set<std::vector<std::string>>{{"/a/", "/a/b/", "/a/b/f"},
                                                       {"/z/", "/z/b/", "/z/b/f"}}));
}

TEST(PowerCut, StaleHandles_FailForEver) {
  SimFs fs;
  put_durably(fs, "/a", "x");
  auto file = open_file(fs, "/a");
  ASSERT_TRUE(file->try_lock().value());
  fs.power_cycle();
  Bytes one(1);
  EXPECT_EQ(errno_of(file->pread(one, 0)), EIO);
  EXPECT_EQ(errno_of(file->pwrite(one, 0)), EIO);
  EXPECT_EQ(errno_of(file->sync()), EIO);
  EXPECT_EQ(errno_of(file->size()), EIO);
  EXPECT_TRUE(open_file(fs, "/a")->try_lock().value());
  file.reset();
  EXPECT_EQ(seen(fs, "/a"), "x");
}

TEST(ProcessRestart, KeepsThePageCacheAndDropsHandlesAndLocks) {
  SimFs fs;
  put(fs, "/a", "unsynced", false);
  auto file = open_file(fs, "/a");
  ASSERT_TRUE(file->try_lock().value());
  auto removed = open_file(fs, "/gone");
  ASSERT_TRUE(removed->pwrite(as_bytes("123"), 0));
  ASSERT_TRUE(fs.remove("/gone"));
  fs.freeze();
  EXPECT_EQ(errno_of(file->pwrite(as_bytes("late"), 0)), EIO);
  EXPECT_EQ(errno_of(fs.stat("/a")), EIO);
  fs.process_restart();
  EXPECT_EQ(seen(fs, "/a"), "unsynced");
  EXPECT_EQ(fs.used_bytes(), 8u) << "a removed file that was open is freed with its process";
  EXPECT_EQ(errno_of(file->sync()), EIO);
  EXPECT_TRUE(open_file(fs, "/a")->try_lock().value());
  EXPECT_EQ(fs.stats.cuts, 0u);
}

TEST(CutPowerAt, KthMutatingCall_FailsFreezesAndTellsOnce) {
  SimFs fs;
  int told = 0;
  fs.cut_power_at(3, [&] { ++told; });
  auto file = open_file(fs, "/a");              // 1
  ASSERT_TRUE(file->pwrite(as_bytes("x"), 0));  // 2
  EXPECT_EQ(errno_of(file->sync()), EIO);       // 3
  EXPECT_TRUE(fs.frozen());
  EXPECT_EQ(errno_of(file->pwrite(as_bytes("y"), 0)), EIO);
  EXPECT_EQ(errno_of(fs.open("/b", OpenMode::create)), EIO);
  EXPECT_EQ(told, 1);
  file.reset();
  fs.power_cycle();
  EXPECT_FALSE(fs.frozen());
  EXPECT_TRUE(fs.open("/b", OpenMode::create));
}

TEST(CutPowerAt, DuringTheCall_TheWriteLandsTornOrNotButNeverWhole) {
  const std::string old(8'192, 'o'), fresh(8'192, 'n');
  int torn = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SimFs fs(seed);
    put_durably(fs, "/a", old);
    auto file = open_file(fs, "/a");
    fs.cut_power_at(fs.ops() + 1, {}, SimFs::Cut::during_call);
    EXPECT_EQ(errno_of(file->pwrite(as_bytes(fresh), 0)), EIO);
    file.reset();
    fs.power_cycle();
    const std::string now = seen(fs, "/a");
    EXPECT_NE(now, fresh);
    torn += now != old;
  }
  EXPECT_GT(torn, 30);
}

// ---- faults ------------------------------------------------------------------------------------

TEST(FailedSync, PagesAreCleanAfterwardsAndTheNextSyncLies) {
  int lost = 0, landed = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SimFs fs(seed);
    put_durably(fs, "/a", "old");
    auto file = open_file(fs, "/a");
    ASSERT_TRUE(file->pwrite(as_bytes("new"), 0));
    fs.fail_call(FsCall::sync, 1);
    EXPECT_EQ(errno_of(file->sync()), EIO);
    EXPECT_EQ(seen(fs, "/a"), "new") << "the page cache still shows it";
    EXPECT_TRUE(file->sync()) << "as Linux does it";
    file.reset();
    fs.power_cycle();
    (seen(fs, "/a") == "old" ? lost : landed) += 1;
  }
  EXPECT_GT(lost, 10);
  EXPECT_GT(landed, 10);
}

TEST(FailedSync, CopyToAFreshFile_IsSafe) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SimFs fs(seed);
    put_durably(fs, "/a", "old");
    auto file = open_file(fs, "/a");
    ASSERT_TRUE(file->pwrite(as_bytes("new"), 0));
    fs.fail_call(FsCall::sync, 1);
    ASSERT_FALSE(file->sync());
    ASSERT_TRUE(replace_file(fs, "/a", as_bytes("new")));
    fs.power_cycle();
    EXPECT_EQ(seen(fs, "/a"), "new");
  }
}

TEST(LyingSync, SaysYesAndLosesTheWrite) {
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SimFs fs(seed);
    put_durably(fs, "/a", "old");
    fs.faults.lying_sync = kAlways;
    put(fs, "/a", "new");
    EXPECT_EQ(fs.stats.lied, 1u);
    fs.power_cycle();
    lost += seen(fs, "/a") != "new";
  }
  EXPECT_GT(lost, 10);
}

TEST(Odds, OfEachFault_ShowInStatsAndResults) {
  SimFs fs(7);
  put_durably(fs, "/a", std::string(1'000, 'x'));
  fs.faults.eio_read = fs.faults.eio_write = fs.faults.short_read = fs.faults.short_write = 300'000;
  auto file = open_file(fs, "/a");
  int eio = 0, partial = 0, whole = 0;
  Bytes buffer(1'000);
  for (int i = 0; i < 400; ++i) {
    auto n = i % 2 == 0 ? file->pread(buffer, 0) : file->pwrite(buffer, 0);
    if (!n) {
      EXPECT_EQ(errno_of(n), EIO);
      ++eio;
    } else {
      EXPECT_GE(n.value(), 1u);
      (n.value() < 1'000 ? partial : whole) += 1;
    }
  }
  EXPECT_GT(eio, 60);
  EXPECT_GT(partial, 60);
  EXPECT_GT(whole, 60);
  EXPECT_EQ(fs.stats.eio, static_cast<std::uint64_t>(eio));
  EXPECT_EQ(fs.stats.short_reads + fs.stats.short_writes, static_cast<std::uint64_t>(partial));
}

TEST(FailCall, NthOnce_FailsExactlyThatOne) {
  SimFs fs;
  auto file = open_file(fs, "/a");
  fs.fail_call(FsCall::pwrite, 2, false, ENOSPC);
  EXPECT_TRUE(file->pwrite(as_bytes("1"), 0));
  EXPECT_FALSE(fs.failure_fired());
  EXPECT_EQ(errno_of(file->pwrite(as_bytes("2"), 1)), ENOSPC);
  EXPECT_TRUE(fs.failure_fired());
  EXPECT_TRUE(file->pwrite(as_bytes("3"), 1));
  EXPECT_EQ(seen(fs, "/a"), "13");
  EXPECT_EQ(fs.calls(FsCall::pwrite), 3u);
}

TEST(FailCall, Persistent_FailsThatOneAndAllLaterUntilCleared) {
  SimFs fs;
  auto file = open_file(fs, "/a");
  fs.fail_call(FsCall::pwrite, 2, true);
  EXPECT_TRUE(file->pwrite(as_bytes("1"), 0));
  EXPECT_EQ(errno_of(file->pwrite(as_bytes("2"), 1)), EIO);
  EXPECT_EQ(errno_of(file->pwrite(as_bytes("3"), 1)), EIO);
  fs.clear_failures();
  EXPECT_TRUE(file->pwrite(as_bytes("4"), 1));
}

TEST(FailCall, WithAPathPart_LooksAtThatFileOnly) {
  SimFs fs;
  fs.fail_call(FsCall::any, 1, true, EIO, "/bad");
  EXPECT_TRUE(fs.open("/good", OpenMode::create));
  EXPECT_EQ(errno_of(fs.open("/bad", OpenMode::create)), EIO);
  EXPECT_EQ(errno_of(fs.rename("/bad", "/good")), EIO);
}

TEST(FailCall, SweepOverReplaceFile_AlwaysLeavesOldOrNew) {
  for (bool persistent : {false, true}) {
    bool fired = true;
    for (std::uint64_t n = 1; fired; ++n) {
      SimFs fs(n);
      put_durably(fs, "/f", "old");
      fs.fail_call(FsCall::any, n, persistent);
      auto done = replace_file(fs, "/f", as_bytes("new"));
      fired = fs.failure_fired();
      EXPECT_EQ(static_cast<bool>(done), !fired) << n;
      fs.clear_failures();
      const std::string now = seen(fs, "/f");
      EXPECT_TRUE(now == "old" || now == "new") << now;
      fs.power_cycle();
      EXPECT_TRUE(seen(fs, "/f") == "old" || seen(fs, "/f") == "new") << seen(fs, "/f");
    }
  }
}

TEST(Corrupt, ChangesTheByteInBothViewsAndSurvivesAPowerCut) {
  SimFs fs(3);
  put_durably(fs, "/a", "hello");
  EXPECT_TRUE(fs.corrupt("/a", 1, std::byte{0x01}));
  EXPECT_EQ(seen(fs, "/a"), "hdllo");
  fs.power_cycle();
  EXPECT_EQ(seen(fs, "/a"), "hdllo");
  EXPECT_FALSE(fs.corrupt("/a", 5, std::byte{1}));
  EXPECT_FALSE(fs.corrupt("/none", 0, std::byte{1}));
  auto at = fs.flip_bit("/a");
  ASSERT_TRUE(at);
  EXPECT_NE(seen(fs, "/a"), "hdllo");
}

TEST(Latency, OfCallsAndSlowCalls_AddsUpUntilTaken) {
  SimFs fs;
  fs.faults.call_latency = Nanos(10);
  fs.faults.sync_latency = Nanos(1'000);
  put(fs, "/a", "x");  // open, write, sync
  EXPECT_EQ(fs.take_latency(), Nanos(1'030));
  EXPECT_EQ(fs.take_latency(), Nanos(0));
  fs.faults.slow = kAlways;
  fs.faults.slow_max = Nanos(1'000'000);
  put(fs, "/a", "x");
  EXPECT_GT(fs.take_latency(), Nanos(1'030));
  EXPECT_EQ(fs.stats.slow, 3u);
}

// ---- copies, digests, luck ---------------------------------------------------------------------

TEST(Clone, IsIndependentAndHasTheSameFuture) {
  SimFs fs(9);
  put_durably(fs, "/a", std::string(20'000, 'x'));
  put(fs, "/a", std::string(20'000, 'y'), false);
  put(fs, "/b", "z");
  auto copy = fs.clone();
  EXPECT_EQ(copy->digest(), fs.digest());
  fs.power_cycle();
  EXPECT_NE(copy->digest(), fs.digest());
  copy->power_cycle();
  EXPECT_EQ(copy->digest(), fs.digest());
  put(*copy, "/a", "changed");
  EXPECT_NE(seen(fs, "/a").substr(0, 7), "changed");
}

TEST(Clone, OfADiskWithOpenFiles_HoldsNoHandlesOrLocks) {
  SimFs fs;
  auto file = open_file(fs, "/a");
  ASSERT_TRUE(file->try_lock().value());
  auto gone = open_file(fs, "/gone");
  ASSERT_TRUE(gone->pwrite(as_bytes("123"), 0));
  ASSERT_TRUE(fs.remove("/gone"));
  auto copy = fs.clone();
  EXPECT_TRUE(open_file(*copy, "/a")->try_lock().value());
  EXPECT_EQ(copy->used_bytes(), 0u);
  EXPECT_EQ(fs.used_bytes(), 3u);
}

TEST(Reseed, GivesADifferentFate) {
  SimFs fs(1);
  put_durably(fs, "/a", std::string(40'000, 'x'));
  put(fs, "/a", std::string(40'000, 'y'), false);
  std::set<std::string> fates;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    auto copy = fs.clone();
    copy->reseed(seed);
    copy->power_cycle();
    fates.insert(seen(*copy, "/a"));
  }
  EXPECT_GT(fates.size(), 5u);
}

// ---- everything at once, against a model -------------------------------------------------------

// Random operations, syncs and power cuts on a few names in a few directories, so that they
// collide. The model is told what the door promises, nothing about how SimFs works:
//   - bytes synced and not changed since are what the file holds, if it still exists;
//   - a name (or its absence) whose last change was followed by sync_dir of the directories it
//     involved is so after the cut, if its directory still exists;
//   - a file that was durable under a durable name and was only ever moved is somewhere.
class ModelRun {
 public:
  explicit ModelRun(std::uint64_t seed) : rng_(derive(seed, "model")), fs_(seed) { settle(); }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      step();
      if (rng_.below(40) == 0) cut();
    }
    cut();
  }
  int bytes_checked = 0, names_checked = 0, moved_checked = 0;

 private:
  using Key = std::pair<std::uint64_t, std::string>;  // directory id and name
  struct Name {
    std::uint64_t id = 0;  // 0: absent
    std::set<std::uint64_t> unsynced;
  };

  std::vector<std::string> directories() {
    std::vector<std::string> all{"/"};
    for (const std::string& path : fs_.all_paths()) {
      if (path.back() == '/') all.push_back(path.substr(0, path.size() - 1));
    }
    return all;
  }
  std::string any_directory() {
    const auto all = directories();
    return all[static_cast<std::size_t>(rng_.below(all.size()))];
  }
  std::string any_path() {
    const std::string directory = any_directory();
    const auto n = rng_.below(3);
    return join_path(directory, cat("n", n));
  }
  std::uint64_t id_of(const std::string& path) {
    auto st = fs_.stat(path);
    return st ? st.value().id : 0;
  }
  Key key_of(const std::string& path) {
    return {id_of(parent_path(path)), path.substr(path.rfind('/') + 1)};
  }

  void step() {
    const auto what = rng_.below(14);
    const std::string path = any_path();
    const Key key = key_of(path);
    const std::uint64_t before = id_of(path);
    if (what < 3) {
      auto file = fs_.open(path, OpenMode::create);
      if (!file) return;
      if (before == 0) names_[key] = {id_of(path), {key.first}};
      const auto length = static_cast<std::size_t>(rng_.below(3'000));
      const auto offset = rng_.below(2'000);
      const auto fill = static_cast<std::byte>(rng_.below(256));
      ASSERT_TRUE(write_all(*file.value(), Bytes(length, fill), offset));
      data_.erase(id_of(path));
    } else if (what < 6) {
      auto file = fs_.open(path, OpenMode::read_write);
      if (!file) return;
      ASSERT_TRUE(what == 3 ? file.value()->datasync() : file.value()->sync());
      data_[before] = *fs_.seen_bytes(path);
    } else if (what == 6) {
      auto file = fs_.open(path, OpenMode::read_write);
      if (!file) return;
      ASSERT_TRUE(file.value()->truncate(rng_.below(3'000)));
      data_.erase(before);
    } else if (what == 7) {
      if (path.size() > 9 || !fs_.mkdir(path)) return;
      names_[key] = {id_of(path), {key.first}};
    } else if (what == 8) {
      if (!fs_.remove(path) && !fs_.rmdir(path)) return;
      names_[key] = {0, {key.first}};
      was_durable_.erase(before);
    } else if (what < 11) {
      const std::string to = any_path();
      const Key target = key_of(to);
      const std::uint64_t replaced = id_of(to);
      if (before == replaced || to.size() > 9 || !fs_.rename(path, to)) return;
      names_[key] = {0, {key.first, target.first}};
      names_[target] = {before, {key.first, target.first}};
      was_durable_.erase(replaced);
    } else {
      const std::string directory = any_directory();
      ASSERT_TRUE(fs_.sync_dir(directory));
      for (auto& [k, name] : names_) name.unsynced.erase(id_of(directory));
    }
  }

  void cut() {
    fs_.power_cycle();
    std::map<std::uint64_t, std::string> where;
    for (const std::string& directory : directories()) where[id_of(directory)] = directory;
    std::set<std::uint64_t> files;
    for (const std::string& path : fs_.all_paths()) {
      const std::uint64_t id = id_of(path);
      ASSERT_NE(id, 0u) << path;
      if (path.back() == '/') continue;
      EXPECT_TRUE(files.insert(id).second) << path << " is there twice";
      if (auto data = data_.find(id); data != data_.end()) {
        EXPECT_EQ(*fs_.seen_bytes(path), data->second) << path;
        ++bytes_checked;
      }
    }
    for (const auto& [key, name] : names_) {
      if (!name.unsynced.empty() || !where.contains(key.first)) continue;
      EXPECT_EQ(id_of(join_path(where[key.first], key.second)), name.id)
          << join_path(where[key.first], key.second);
      ++names_checked;
    }
    for (std::uint64_t id : was_durable_) {
      EXPECT_TRUE(files.contains(id)) << "inode " << id << " was moved and is gone";
      ++moved_checked;
    }
    EXPECT_EQ(fs_.unsynced_writes(), 0u);
    EXPECT_EQ(fs_.unsynced_names(), 0u);
    settle();
  }

  // What is there after a power cut is durable as it is.
  void settle() {
    names_.clear();
    data_.clear();
    was_durable_.clear();
    for (const std::string& listed : fs_.all_paths()) {
      const bool directory = listed.back() == '/';
      const std::string path = directory ? listed.substr(0, listed.size() - 1) : listed;
      names_[key_of(path)] = {id_of(path), {}};
      if (directory) continue;
      data_[id_of(path)] = *fs_.seen_bytes(path);
      was_durable_.insert(id_of(path));
    }
  }

  Rng rng_;
  SimFs fs_;
  std::map<Key, Name> names_;
  std::map<std::uint64_t, Bytes> data_;
  std::set<std::uint64_t> was_durable_;  // files, never removed or replaced since
};

TEST(SimFs, RandomOperationsAndPowerCuts_KeepEveryPromise) {
  int bytes = 0, names = 0, moved = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    ModelRun run(seed);
    run.run(400);
    if (HasFailure()) return;
    bytes += run.bytes_checked;
    names += run.names_checked;
    moved += run.moved_checked;
  }
  EXPECT_GT(bytes, 3'000);
  EXPECT_GT(names, 3'000);
  EXPECT_GT(moved, 3'000);
}

TEST(SimFs, EverythingRemoved_LeavesNoInodeBehind) {
  SimFs fs(1);
  ASSERT_TRUE(make_directories(fs, "/a/b"));
  put_durably(fs, "/a/b/f", "x");
  ASSERT_TRUE(fs.rename("/a/b", "/c"));
  put(fs, "/c/g", "y", false);
  ASSERT_TRUE(fs.rename("/c/g", "/a/g"));
  ASSERT_TRUE(remove_tree(fs, "/a"));
  ASSERT_TRUE(remove_tree(fs, "/c"));
  ASSERT_TRUE(fs.sync_dir("/"));
  EXPECT_EQ(fs.unsynced_names(), 0u);
  EXPECT_EQ(fs.used_bytes(), 0u);
  EXPECT_EQ(fs.inodes(), 1u) << "the root alone";
}

}  // namespace
}  // namespace narad::sim
