#include "internal/cluster/placement.h"

namespace narad::cluster {

std::vector<metastore::AssignPartition> assign_unassigned(const metastore::State& state,
                                                          std::size_t max) {
  std::vector<const metastore::Member*> receivers;
  state.members.for_each([&](const std::shared_ptr<const metastore::Member>& m) {
    if (m->status == metastore::MemberStatus::alive && !m->draining && !m->leaving) {
      receivers.push_back(m.get());
    }
  });
  std::vector<metastore::AssignPartition> out;
  if (receivers.empty()) return out;
  state.topics.for_each([&](const metastore::TopicRowPtr& row) {
    for (std::uint32_t p = 0; p < row->assignments.size() && out.size() < max; ++p) {
      if (!state.needs_home(row->assignments[p])) continue;
      const std::uint64_t turn = state.placed + out.size();
      const metastore::Member& member = *receivers[turn % receivers.size()];
      const std::string& disk = member.disks[turn / receivers.size() % member.disks.size()];
      out.push_back({row->topic.name, row->topic.incarnation, PartitionId(p), member.id, disk});
    }
  });
  return out;
}

}  // namespace narad::cluster
