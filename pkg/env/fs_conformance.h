#pragma once
// What every FileSystem must do, as tests: the kernel's and the simulated one are held to the same
// text. For tests only (includes GoogleTest). A world is a default-constructible type:
//
//   struct World {
//     FileSystem& fs();
//     std::string root();  // an existing empty directory, for this test alone
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Real, FsConformance, World);
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "pkg/env/fs.h"

namespace narad {

template <class World>
class FsConformance : public testing::Test {
 protected:
  FileSystem& fs() { return world_.fs(); }
  std::string path(const std::string& name) { return join_path(world_.root(), name); }

  std::unique_ptr<File> open(const std::string& name, OpenMode mode) {
    auto r = fs().open(path(name), mode);
    if (!r) {
      ADD_FAILURE() << r.error().text();
      return nullptr;
    }
    return std::move(r.value());
  }
  // Creates `name` with `content`.
  void put(const std::string& name, std::string_view content) {
    auto file = open(name, OpenMode::create);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->truncate(0));
    auto r = write_all(*file, as_bytes(content), 0);
    ASSERT_TRUE(r) << r.error().text();
  }
  std::string get(const std::string& name) {
    auto r = read_file(fs(), path(name), 1 << 20);
    if (!r) {
      ADD_FAILURE() << r.error().text();
      return {};
    }
    return to_text(r.value());
  }
  std::vector<std::string> list(const std::string& name = "") {
    auto r = fs().list(name.empty() ? path("").substr(0, path("").size() - 1) : path(name));
    if (!r) {
      ADD_FAILURE() << r.error().text();
      return {};
    }
    return r.value();
  }
  template <class R>
  static int errno_of(const R& result) {
    return result ? 0 : result.error().os_errno();
  }
  using Names = std::vector<std::string>;

 private:
  World world_;
};

TYPED_TEST_SUITE_P(FsConformance);

TYPED_TEST_P(FsConformance, Open_MissingFile_IsNotFoundAndNamesThePath) {
  for (OpenMode mode : {OpenMode::read, OpenMode::read_write}) {
    auto r = this->fs().open(this->path("none"), mode);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), Errc::not_found);
    EXPECT_EQ(r.error().os_errno(), ENOENT);
    EXPECT_NE(r.error().text().find(this->path("none")), std::string::npos) << r.error().text();
  }
  EXPECT_EQ(this->errno_of(this->fs().open(this->path("no/dir"), OpenMode::create)), ENOENT);
}

TYPED_TEST_P(FsConformance, Open_CreateModes_KeepOrRefuseWhatIsThere) {
  this->put("a", "old");
  ASSERT_TRUE(this->open("a", OpenMode::create));
  EXPECT_EQ(this->get("a"), "old");
  auto r = this->fs().open(this->path("a"), OpenMode::create_new);
  EXPECT_EQ(this->errno_of(r), EEXIST);
  EXPECT_EQ(r.error().code(), Errc::exists);
  ASSERT_TRUE(this->open("b", OpenMode::create_new));
  EXPECT_EQ(this->get("b"), "");
}

TYPED_TEST_P(FsConformance, Open_Directory_Fails) {
  ASSERT_TRUE(this->fs().mkdir(this->path("d")));
  EXPECT_EQ(this->errno_of(this->fs().open(this->path("d"), OpenMode::read)), EISDIR);
  EXPECT_EQ(this->errno_of(this->fs().open(this->path("d"), OpenMode::read_write)), EISDIR);
}

TYPED_TEST_P(FsConformance, Open_BelowAFile_IsNotFound) {
  this->put("f", "x");
  auto r = this->fs().open(this->path("f/x"), OpenMode::read);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::not_found);
}

TYPED_TEST_P(FsConformance, Read_AtAndPastTheEnd_IsShortThenZero) {
  this->put("a", "hello");
  auto file = this->open("a", OpenMode::read);
  std::array<std::byte, 16> buffer{};
  auto n = read_up_to(*file, buffer, 3);
  ASSERT_TRUE(n);
  EXPECT_EQ(n.value(), 2u);
  EXPECT_EQ(as_chars(ByteView(buffer.data(), 2)), "lo");
  EXPECT_EQ(file->pread(buffer, 5).value(), 0u);
  EXPECT_EQ(file->pread(buffer, 5000).value(), 0u);
  EXPECT_EQ(file->pread(std::span<std::byte>(), 0).value(), 0u);
  EXPECT_EQ(read_exact(*file, buffer, 0).error().code(), Errc::data_loss);
}

TYPED_TEST_P(FsConformance, Write_ToAReadOnlyHandle_Fails) {
  this->put("a", "hello");
  auto file = this->open("a", OpenMode::read);
  EXPECT_FALSE(file->pwrite(as_bytes("x"), 0));
  EXPECT_EQ(this->get("a"), "hello");
}

TYPED_TEST_P(FsConformance, Write_PastTheEnd_LeavesAHoleOfZeros) {
  auto file = this->open("a", OpenMode::create_new);
  ASSERT_TRUE(write_all(*file, as_bytes("x"), 6));
  EXPECT_EQ(file->size().value(), 7u);
  EXPECT_EQ(this->get("a"), std::string(6, '\0') + "x");
}

TYPED_TEST_P(FsConformance, Write_OfNothing_ChangesNothing) {
  auto file = this->open("a", OpenMode::create_new);
  EXPECT_EQ(file->pwrite(ByteView(), 10).value(), 0u);
  EXPECT_EQ(file->pwritev({}, 10).value(), 0u);
  EXPECT_EQ(file->size().value(), 0u);
}

TYPED_TEST_P(FsConformance, Gather_ManyParts_LandInOrder) {
  auto file = this->open("a", OpenMode::create_new);
  std::vector<std::string> words;
  std::string whole;
  for (int i = 0; i < 3000; ++i) words.push_back(i % 7 == 0 ? "" : std::to_string(i) + ",");
  for (const auto& w : words) whole += w;
  // A partial write may end anywhere: go on from the byte it stopped at.
  std::size_t done = 0;
  for (int rounds = 0; done < whole.size(); ++rounds) {
    ASSERT_LT(rounds, 10'000);
    std::vector<ByteView> parts;
    std::size_t skip = done;
    for (const auto& w : words) {
      const std::size_t n = std::min(skip, w.size());
      skip -= n;
      parts.push_back(as_bytes(std::string_view(w).substr(n)));
    }
    auto n = file->pwritev(parts, done);
    ASSERT_TRUE(n) << n.error().text();
    ASSERT_GT(n.value(), 0u);
    done += n.value();
  }
  EXPECT_EQ(this->get("a"), whole);
}

TYPED_TEST_P(FsConformance, Offset_BeyondWhatAFileCanHold_IsAnError) {
  auto file = this->open("a", OpenMode::create_new);
  std::array<std::byte, 1> buffer{};
  EXPECT_FALSE(file->pwrite(as_bytes("x"), ~std::uint64_t{0}));
  EXPECT_FALSE(file->pwrite(as_bytes("x"), std::uint64_t{1} << 63));
  EXPECT_FALSE(file->truncate(std::uint64_t{1} << 63));
  EXPECT_FALSE(file->allocate(std::uint64_t{1} << 63));
  EXPECT_FALSE(file->pread(buffer, ~std::uint64_t{0}));
  EXPECT_EQ(file->size().value(), 0u);
}

TYPED_TEST_P(FsConformance, Truncate_ShrinksAndGrowsWithZeros) {
  this->put("a", "hello");
  auto file = this->open("a", OpenMode::read_write);
  ASSERT_TRUE(file->truncate(2));
  EXPECT_EQ(this->get("a"), "he");
  ASSERT_TRUE(file->truncate(4));
  EXPECT_EQ(this->get("a"), std::string("he\0\0", 4));
}

TYPED_TEST_P(FsConformance, Allocate_ExtendsWithZerosAndNeverShrinks) {
  this->put("a", "hello");
  auto file = this->open("a", OpenMode::read_write);
  ASSERT_TRUE(file->allocate(8));
  EXPECT_EQ(this->get("a"), std::string("hello\0\0\0", 8));
  ASSERT_TRUE(file->allocate(3));
  ASSERT_TRUE(file->allocate(0));
  EXPECT_EQ(this->get("a"), std::string("hello\0\0\0", 8));
}

TYPED_TEST_P(FsConformance, Sync_OfFileAndDirectory_Succeeds) {
  auto file = this->open("a", OpenMode::create_new);
  ASSERT_TRUE(write_all(*file, as_bytes("x"), 0));
  EXPECT_TRUE(file->datasync());
  EXPECT_TRUE(file->sync());
  ASSERT_TRUE(this->fs().mkdir(this->path("d")));
  EXPECT_TRUE(this->fs().sync_dir(this->path("d")));
  EXPECT_EQ(this->errno_of(this->fs().sync_dir(this->path("none"))), ENOENT);
  EXPECT_FALSE(this->fs().sync_dir(this->path("a")));
}

TYPED_TEST_P(FsConformance, Remove_TakesTheNameAndTheHandleStaysUsable) {
  this->put("a", "hello");
  auto file = this->open("a", OpenMode::read_write);
  ASSERT_TRUE(this->fs().remove(this->path("a")));
  EXPECT_EQ(this->errno_of(this->fs().stat(this->path("a"))), ENOENT);
  EXPECT_EQ(this->errno_of(this->fs().remove(this->path("a"))), ENOENT);
  // A new file of the name is another file.
  this->put("a", "new");
  ASSERT_TRUE(write_all(*file, as_bytes("J"), 0));
  std::array<std::byte, 5> buffer{};
  ASSERT_TRUE(read_exact(*file, buffer, 0));
  EXPECT_EQ(as_chars(buffer), "Jello");
  EXPECT_EQ(this->get("a"), "new");
}

TYPED_TEST_P(FsConformance, Remove_OfADirectory_FailsAndKeepsIt) {
  ASSERT_TRUE(this->fs().mkdir(this->path("d")));
  EXPECT_FALSE(this->fs().remove(this->path("d")));
  EXPECT_TRUE(this->fs().stat(this->path("d")));
}

TYPED_TEST_P(FsConformance, Rename_OverAFile_ReplacesItAtOnce) {
  this->put("a", "new");
  this->put("b", "old");
  auto old = this->open("b", OpenMode::read);
  const auto id = this->fs().stat(this->path("a")).value().id;
  ASSERT_TRUE(this->fs().rename(this->path("a"), this->path("b")));
  EXPECT_EQ(this->list(), typename TestFixture::Names{"b"});
  EXPECT_EQ(this->get("b"), "new");
  EXPECT_EQ(this->fs().stat(this->path("b")).value().id, id);
  std::array<std::byte, 3> buffer{};
  ASSERT_TRUE(read_exact(*old, buffer, 0));
  EXPECT_EQ(as_chars(buffer), "old");
  EXPECT_EQ(this->errno_of(this->fs().rename(this->path("a"), this->path("c"))), ENOENT);
}

TYPED_TEST_P(FsConformance, Rename_OntoItself_ChangesNothing) {
  this->put("a", "x");
  ASSERT_TRUE(this->fs().rename(this->path("a"), this->path("a")));
  EXPECT_EQ(this->get("a"), "x");
}

TYPED_TEST_P(FsConformance, Rename_OfADirectory_TakesItsContentAlong) {
  ASSERT_TRUE(this->fs().mkdir(this->path("d")));
  ASSERT_TRUE(this->fs().mkdir(this->path("d/e")));
  this->put("d/e/f", "x");
  auto open = this->open("d/e/f", OpenMode::read_write);
  const auto id = this->fs().stat(this->path("d")).value().id;
  ASSERT_TRUE(this->fs().rename(this->path("d"), this->path("g")));
  EXPECT_EQ(this->get("g/e/f"), "x");
  EXPECT_EQ(this->fs().stat(this->path("g")).value().id, id);
  EXPECT_EQ(this->errno_of(this->fs().stat(this->path("d/e/f"))), ENOENT);
  ASSERT_TRUE(write_all(*open, as_bytes("y"), 1));
  EXPECT_EQ(this->get("g/e/f"), "xy");
}

TYPED_TEST_P(FsConformance, Rename_OfADirectory_ReplacesOnlyAnEmptyOne) {
  ASSERT_TRUE(this->fs().mkdir(this->path("d")));
  this->put("d/f", "x");
  ASSERT_TRUE(this->fs().mkdir(this->path("empty")));
  ASSERT_TRUE(this->fs().mkdir(this->path("full")));
  this->put("full/f", "y");
  auto r = this->fs().rename(this->path("d"), this->path("full"));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::exists);
  EXPECT_EQ(this->get("full/f"), "y");
  ASSERT_TRUE(this->fs().rename(this->path("d"), this->path("empty")));
  EXPECT_EQ(this->get("empty/f"), "x");
}

TYPED_TEST_P(FsConformance, Rename_BetweenKinds_Fails) {
  ASSERT_TRUE(this->fs().mkdir(this->path("d")));
  this->put("f", "x");
  EXPECT_FALSE(this->fs().rename(this->path("d"), this->path("f")));
  EXPECT_FALSE(this->fs().rename(this->path("f"), this->path("d")));
  EXPECT_EQ(this->get("f"), "x");
}

TYPED_TEST_P(FsConformance, Rename_OfADirectoryIntoItself_Fails) {
  ASSERT_TRUE(this->fs().mkdir(this->path("d")));
  EXPECT_EQ(this->errno_of(this->fs().rename(this->path("d"), this->path("d/e"))), EINVAL);
}

TYPED_TEST_P(FsConformance, Mkdir_TwiceOrWithoutParent_Fails) {
  ASSERT_TRUE(this->fs().mkdir(this->path("d")));
  EXPECT_EQ(this->errno_of(this->fs().mkdir(this->path("d"))), EEXIST);
  this->put("f", "");
  EXPECT_EQ(this->errno_of(this->fs().mkdir(this->path("f"))), EEXIST);
  EXPECT_EQ(this->errno_of(this->fs().mkdir(this->path("x/y"))), ENOENT);
}

TYPED_TEST_P(FsConformance, Rmdir_TakesOnlyAnEmptyDirectory) {
  ASSERT_TRUE(this->fs().mkdir(this->path("d")));
  this->put("d/f", "");
  EXPECT_EQ(this->fs().rmdir(this->path("d")).error().code(), Errc::exists);
  ASSERT_TRUE(this->fs().remove(this->path("d/f")));
  ASSERT_TRUE(this->fs().rmdir(this->path("d")));
  EXPECT_EQ(this->errno_of(this->fs().rmdir(this->path("d"))), ENOENT);
  this->put("f", "");
  EXPECT_FALSE(this->fs().rmdir(this->path("f")));
  EXPECT_EQ(this->get("f"), "");
}

TYPED_TEST_P(FsConformance, List_SortsNamesBytewise) {
  for (const char* name : {"b", "a", "B", "10", "9", "\xc3\xa9", "a.tmp"}) this->put(name, "");
  ASSERT_TRUE(this->fs().mkdir(this->path("d")));
  this->put("d/inner", "");
  EXPECT_EQ(this->list(),
            (typename TestFixture::Names{"10", "9", "B", "a", "a.tmp", "b", "d", "\xc3\xa9"}));
  EXPECT_EQ(this->list("d"), typename TestFixture::Names{"inner"});
  EXPECT_EQ(this->errno_of(this->fs().list(this->path("none"))), ENOENT);
  EXPECT_FALSE(this->fs().list(this->path("a")));
}

TYPED_TEST_P(FsConformance, Stat_TellsKindSizeAndIdentity) {
  this->put("a", "hello");
  this->put("b", "");
  ASSERT_TRUE(this->fs().mkdir(this->path("d")));
  const auto a = this->fs().stat(this->path("a")).value();
  const auto b = this->fs().stat(this->path("b")).value();
  const auto d = this->fs().stat(this->path("d")).value();
  EXPECT_FALSE(a.is_directory);
  EXPECT_TRUE(d.is_directory);
  EXPECT_EQ(a.size, 5u);
  EXPECT_EQ(b.size, 0u);
  EXPECT_EQ(d.size, 0u);
  EXPECT_NE(a.id, b.id);
  EXPECT_NE(a.id, d.id);
}

TYPED_TEST_P(FsConformance, SetMtime_IsKeptToTheMillisecondUntilTheNextWrite) {
  this->put("a", "x");
  for (std::int64_t ms : {std::int64_t{1'700'000'000'123}, std::int64_t{0}}) {
    ASSERT_TRUE(this->fs().set_mtime(this->path("a"), UnixMillis(ms)));
    EXPECT_EQ(this->fs().stat(this->path("a")).value().mtime, UnixMillis(ms));
  }
  ASSERT_TRUE(this->fs().rename(this->path("a"), this->path("b")));
  EXPECT_EQ(this->fs().stat(this->path("b")).value().mtime, UnixMillis(0));
  this->put("b", "y");
  EXPECT_GT(this->fs().stat(this->path("b")).value().mtime, UnixMillis(0));
  ASSERT_TRUE(this->fs().mkdir(this->path("d")));
  ASSERT_TRUE(this->fs().set_mtime(this->path("d"), UnixMillis(5000)));
  EXPECT_EQ(this->fs().stat(this->path("d")).value().mtime, UnixMillis(5000));
  EXPECT_EQ(this->errno_of(this->fs().set_mtime(this->path("none"), UnixMillis(1))), ENOENT);
}

TYPED_TEST_P(FsConformance, TryLock_OneHandleAtATime) {
  this->put("lock", "");
  auto first = this->open("lock", OpenMode::read_write);
  auto second = this->open("lock", OpenMode::read_write);
  EXPECT_TRUE(first->try_lock().value());
  EXPECT_FALSE(second->try_lock().value());
  EXPECT_TRUE(first->try_lock().value());  // it has it already
  first.reset();
  EXPECT_TRUE(second->try_lock().value());
}

TYPED_TEST_P(FsConformance, Space_IsPlausible) {
  auto space = this->fs().space(this->path("").substr(0, this->path("").size() - 1));
  ASSERT_TRUE(space) << space.error().text();
  EXPECT_GT(space.value().total, 0u);
  EXPECT_LE(space.value().available, space.value().total);
  EXPECT_FALSE(this->fs().space(this->path("none")));
}

TYPED_TEST_P(FsConformance, TwoHandles_SeeEachOthersWrites) {
  this->put("a", "12345");
  auto writer = this->open("a", OpenMode::read_write);
  auto reader = this->open("a", OpenMode::read);
  ASSERT_TRUE(write_all(*writer, as_bytes("6"), 5));
  std::array<std::byte, 6> buffer{};
  ASSERT_TRUE(read_exact(*reader, buffer, 0));
  EXPECT_EQ(as_chars(buffer), "123456");
  EXPECT_EQ(reader->size().value(), 6u);
}

TYPED_TEST_P(FsConformance, ReplaceFile_LeavesOnlyTheNewContent) {
  ASSERT_TRUE(replace_file(this->fs(), this->path("a"), as_bytes("one")));
  this->put("a.tmp", "left behind by a crash");
  ASSERT_TRUE(replace_file(this->fs(), this->path("a"), as_bytes("two")));
  EXPECT_EQ(this->get("a"), "two");
  EXPECT_EQ(this->list(), typename TestFixture::Names{"a"});
  EXPECT_EQ(read_file(this->fs(), this->path("a"), 2).error().code(), Errc::too_large);
}

TYPED_TEST_P(FsConformance, Directories_AreMadeAndRemovedAsTrees) {
  ASSERT_TRUE(make_directories(this->fs(), this->path("x/y/z")));
  ASSERT_TRUE(make_directories(this->fs(), this->path("x/y/z")));
  this->put("x/y/f", "1");
  EXPECT_TRUE(exists(this->fs(), this->path("x/y/z")).value());
  // The tree is this test's own.
  ASSERT_TRUE(remove_tree(this->fs(), this->path("x")));
  EXPECT_FALSE(exists(this->fs(), this->path("x")).value());
}

REGISTER_TYPED_TEST_SUITE_P(
    FsConformance, Open_MissingFile_IsNotFoundAndNamesThePath,
    Open_CreateModes_KeepOrRefuseWhatIsThere, Open_Directory_Fails, Open_BelowAFile_IsNotFound,
    Read_AtAndPastTheEnd_IsShortThenZero, Write_ToAReadOnlyHandle_Fails,
    Write_PastTheEnd_LeavesAHoleOfZeros, Write_OfNothing_ChangesNothing,
    Gather_ManyParts_LandInOrder, Offset_BeyondWhatAFileCanHold_IsAnError,
    Truncate_ShrinksAndGrowsWithZeros, Allocate_ExtendsWithZerosAndNeverShrinks,
    Sync_OfFileAndDirectory_Succeeds, Remove_TakesTheNameAndTheHandleStaysUsable,
    Remove_OfADirectory_FailsAndKeepsIt, Rename_OverAFile_ReplacesItAtOnce,
    Rename_OntoItself_ChangesNothing, Rename_OfADirectory_TakesItsContentAlong,
    Rename_OfADirectory_ReplacesOnlyAnEmptyOne, Rename_BetweenKinds_Fails,
    Rename_OfADirectoryIntoItself_Fails, Mkdir_TwiceOrWithoutParent_Fails,
    Rmdir_TakesOnlyAnEmptyDirectory, List_SortsNamesBytewise, Stat_TellsKindSizeAndIdentity,
    SetMtime_IsKeptToTheMillisecondUntilTheNextWrite, TryLock_OneHandleAtATime, Space_IsPlausible,
    TwoHandles_SeeEachOthersWrites, ReplaceFile_LeavesOnlyTheNewContent,
    Directories_AreMadeAndRemovedAsTrees);

}  // namespace narad
