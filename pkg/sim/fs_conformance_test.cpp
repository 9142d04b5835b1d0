// The simulated disk is held to the same text as the kernel's.
#include "pkg/env/fs_conformance.h"

#include "pkg/sim/sim_fs.h"

namespace narad {
namespace {

struct SimWorld {
  SimWorld() { EXPECT_TRUE(make_directories(disk, root())); }
  FileSystem& fs() { return disk; }
  std::string root() { return "/data/test"; }
  sim::SimFs disk;
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Sim, FsConformance, SimWorld);

}  // namespace narad
