#pragma once
// For tests of what is judged of members: some of them in a state that commands are applied to.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "internal/cluster/decommission.h"
#include "internal/metastore/apply.h"
#include "pkg/base/text.h"

namespace narad::cluster {

// n1 … of which the first `voters` vote; n1 leads.
struct Town {
  metastore::State state;
  DrainPicture picture;

  explicit Town(int voters, int learners = 0) {
    std::vector<raft::Member> members;
    for (int i = 1; i <= voters + learners; ++i) {
      const std::string id = cat("n", i);
      members.push_back({raft::ReplicaId(static_cast<std::uint64_t>(i)), id,
                         i <= voters ? raft::MemberRole::voter : raft::MemberRole::learner});
      join(id);
    }
    picture.configuration = raft::Configuration::make(std::move(members)).value();
    picture.leader = "n1";
  }
  metastore::CommandResult run(const metastore::Command& c) {
    auto result = metastore::apply(state, state.applied.next(), c);
    metastore::check_invariants(state);
    return result;
  }
  void join(const std::string& id) {
    run(metastore::RegisterMember{id, "h", "c", "b", {"d"}, UnixMillis(1)});
  }
  void die(const std::string& id) { run(metastore::MarkDead{id, member(id).stamp}); }
  void drain(const std::string& id) { ASSERT_TRUE(run(metastore::SetDraining{id, true}).done()); }
  const metastore::Member& member(const std::string& id) const { return *state.members.find(id); }
  // One partition of its own for each name, on that node.
  void topic(const std::string& name, const std::string& owner, bool used = true) {
    metastore::CreateTopic c;
    c.name = name;
    c.incarnation = Incarnation(state.applied.value() + 1);
    c.partitions = 1;
    c.max_in_flight_per_partition = c.max_acked_ahead_per_partition = 1;
    ASSERT_TRUE(run(c).done());
    const auto& now = row(name);
    if (now.owner_node != owner) {
      ASSERT_TRUE(run(metastore::SetTarget{name, c.incarnation, PartitionId(0), now.owner_node,
                                           RaftIndex(0), owner, "d", "test"})
                      .done());
    }
    if (used) {
      ASSERT_TRUE(run(metastore::MarkUsed{name, c.incarnation, PartitionId(0), owner, "d"}).done());
    }
  }
  const Assignment& row(const std::string& name) const {
    return *state.assignment(name, PartitionId(0));
  }
  void move(const std::string& name, const std::string& to) {
    const Assignment& a = row(name);
    ASSERT_TRUE(run(metastore::SetTarget{name, a.incarnation, PartitionId(0), a.owner_node,
                                         a.move_id, to, "d", "test"})
                    .done());
  }
};

}  // namespace narad::cluster
