#include "pkg/raft/core.h"

#include "pkg/raft/test_group.h"

namespace narad::raft {
namespace {

TEST(RaftCore, ThreeReplicas_ElectAndCommit) {
  Group g({1, 2, 3});
  g.elect(1);
  g.propose(1, "a");
  g.deliver();
  for (std::uint64_t n : {1, 2, 3}) {
    EXPECT_EQ(g[n].commit_index(), Index(2)) << n;
    EXPECT_EQ(g.stored[n].applied, std::vector<std::string>{"1/2 'a'"}) << n;
  }
}

TEST(RaftCore, SingleVoter_LeadsOnlyOnceItsVoteIsDurable) {
  Group g({1});
  g.hold(1);
  g.tick(1, 20);
  EXPECT_EQ(g[1].role(), Role::candidate);
  g.release(1);
  EXPECT_EQ(g[1].role(), Role::leader);
  g.propose(1, "a");
  EXPECT_EQ(g.stored[1].applied.size(), 1u);
}

TEST(RaftCore, LaggingReplica_GetsASnapshotInChunks) {
  Group g;
  Configuration c = configuration_of({1, 2, 3});
  for (std::uint64_t n : {1, 2, 3}) {
    Options o = options_for(n);
    o.chunk_bytes = 7;
    g.start(n, o, c);
  }
  g.elect(1);
  g.isolate(3);
  for (int i = 0; i < 20; ++i) {
    g.propose(1, "x");
    g.deliver();
  }
  g.snapshot(1);
  g.heal();
  for (int i = 0; i < 8; ++i) {
    g.tick(1);
    g.deliver();
  }
  EXPECT_EQ(g.stored[3].applied, g.stored[1].applied);
  EXPECT_EQ(g[3].snapshot().index, g[1].snapshot().index);
}

}  // namespace
}  // namespace narad::raft
