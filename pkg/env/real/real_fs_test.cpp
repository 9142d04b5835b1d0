#include "pkg/env/real/real_fs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "pkg/env/fs_conformance.h"

namespace narad {
namespace {

class TempDir {
 public:
  TempDir() {
    std::string pattern = testing::TempDir() + "narad-fs-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct RealWorld {
  FileSystem& fs() { return real; }
  std::string root() { return dir.path(); }
  RealFs real;
  TempDir dir;
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Real, FsConformance, RealWorld);

TEST(RealFs, NewFile_IsClosedOnExecAndNotForOthers) {
  RealWorld world;
  const std::string path = join_path(world.root(), "f");
  const int next_fd = ::open("/dev/null", O_RDONLY);
  ::close(next_fd);
  auto file = world.fs().open(path, OpenMode::create_new);
  ASSERT_TRUE(file);
  EXPECT_EQ(::fcntl(next_fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  struct stat st;
  ASSERT_EQ(::stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777 & ~0640u, 0u);
}

TEST(RealFs, FullDevice_SaysNoSpaceWithVerbAndPath) {
  RealFs fs;
  auto file = fs.open("/dev/full", OpenMode::read_write);
  ASSERT_TRUE(file);
  auto r = file.value()->pwrite(as_bytes("x"), 0);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().os_errno(), ENOSPC);
  EXPECT_EQ(r.error().code(), Errc::unavailable);
  EXPECT_EQ(r.error().text(), "write /dev/full: No space left on device");
}

TEST(RealFs, MtimeBeforeTheEpoch_IsKept) {
  RealWorld world;
  const std::string path = join_path(world.root(), "f");
  ASSERT_TRUE(world.fs().open(path, OpenMode::create_new));
  ASSERT_TRUE(world.fs().set_mtime(path, UnixMillis(-1)));
  EXPECT_EQ(world.fs().stat(path).value().mtime, UnixMillis(-1));
}

TEST(RealFs, SymlinkedDirectory_IsFollowed) {
  RealWorld world;
  ASSERT_TRUE(world.fs().mkdir(join_path(world.root(), "d")));
  const std::string link = join_path(world.root(), "link");
  ASSERT_EQ(::symlink("d", link.c_str()), 0);
  EXPECT_TRUE(world.fs().stat(link).value().is_directory);
  EXPECT_TRUE(world.fs().sync_dir(link));
}

}  // namespace narad
