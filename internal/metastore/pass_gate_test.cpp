#include "internal/metastore/pass_gate.h"

#include <gtest/gtest.h>

#include <vector>

#include "internal/metastore/state.h"

namespace narad::metastore {
namespace {

using namespace std::chrono_literals;

// The two who use it: what each reads, and the versions of that.
struct MoveRunner {
  using Seen = std::pair<RaftIndex, RaftIndex>;
  static Seen of(const Versions& v) { return {v.topics, v.assignments}; }
};
// A stub of what keeps one cursor going per link of a partition: it also looks where children live.
struct FanOutReconciler {
  struct Seen {
    RaftIndex topics{0}, assignments{0}, members{0};
    friend bool operator==(const Seen&, const Seen&) = default;
  };
  static Seen of(const Versions& v) { return {v.topics, v.assignments, v.members}; }
};

// A loop with a gate in front of its read.
template <class User>
class Loop {
 public:
  // True if it read.
  bool tick(Nanos now, bool read_is_whole = true) {
    if (gate.may_skip(User::of(versions), now)) return false;
    gate.reset();
    if (read_is_whole) gate.passed(User::of(versions), now);
    return true;
  }
  Versions versions;
  PassGate<typename User::Seen> gate{30s};
};

template <class User>
std::vector<bool> reads_of_one_life() {
  Loop<User> loop;
  std::vector<bool> read;
  read.push_back(loop.tick(1s));  // the first one
  read.push_back(loop.tick(2s));
  loop.versions.assignments = RaftIndex(7);
  read.push_back(loop.tick(3s));
  loop.versions.users = RaftIndex(8);  // of no concern to either
  read.push_back(loop.tick(4s));
  loop.versions.topics = RaftIndex(9);
  read.push_back(loop.tick(5s, false));  // did not finish
  read.push_back(loop.tick(6s));
  read.push_back(loop.tick(7s));
  loop.gate.reset();  // what an earlier pass had started has ended
  read.push_back(loop.tick(8s));
  read.push_back(loop.tick(37s));
  read.push_back(loop.tick(38s));  // 30 s without one
  return read;
}

TEST(PassGate, RUN_3_RUN_4_RUN_9_MoveRunnerAndFanOutReconciler_SkipByOneRule) {
  const std::vector<bool> expected{true, false, true, false, true, true, false, true, false, true};
  EXPECT_EQ(reads_of_one_life<MoveRunner>(), expected);
  EXPECT_EQ(reads_of_one_life<FanOutReconciler>(), expected);
}

TEST(PassGate, DomainThatOnlyOneOfThemReads_WakesThatOneAlone) {
  Loop<MoveRunner> moves;
  Loop<FanOutReconciler> links;
  ASSERT_TRUE(moves.tick(1s) && links.tick(1s));
  moves.versions.members = links.versions.members = RaftIndex(3);
  EXPECT_FALSE(moves.tick(2s));
  EXPECT_TRUE(links.tick(2s));
}

}  // namespace
}  // namespace narad::metastore
