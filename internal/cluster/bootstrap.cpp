#include "internal/cluster/bootstrap.h"

#include <algorithm>
#include <map>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"

namespace narad::cluster {
namespace {

using Kind = PeerReport::Kind;

void sort_unique(std::vector<std::string>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

bool contains(const std::vector<std::string>& ids, const std::string& id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

bool names(const std::vector<raft::Member>& members, const std::string& node, ReplicaId replica) {
  return std::any_of(members.begin(), members.end(),
                     [&](const raft::Member& m) { return m.node == node && m.replica == replica; });
}

std::string join_words(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += cat(out.empty() ? "" : ", ", w);
  return out;
}

// A report as a clause: "n2 (connection refused)".
std::string describe(const PeerReport& r) {
  switch (r.kind) {
    case Kind::not_asked:
      return cat(r.id, " (not asked yet)");
    case Kind::unreachable:
    case Kind::refused:
      return cat(r.id, " (", r.why, ")");
    case Kind::answered:
      return r.id;
  }
  NARAD_ASSERT(false, "unknown kind");
}

// An answer that cannot be what the configuration says about that peer.
std::string contradiction(const OwnDisk& own, const PeerReport& r) {
  if (r.kind != Kind::answered) return {};
  if (r.who.node != r.id) {
    return cat("the address of ", r.id, " belongs to ", r.who.node,
               ": correct cluster.peers on this node");
  }
  if (r.who.replica == own.replica) {
    return cat("this node and ", r.id,
               " have the same replica id, so one data directory is a copy of the other: empty the "
               "copy");
  }
  return {};
}

// Two peers with one replica id: one disk is a copy of the other.
std::string twins(const std::vector<PeerReport>& reports) {
  std::map<ReplicaId, std::string> seen;
  for (const PeerReport& r : reports) {
    if (r.kind != Kind::answered) continue;
    const auto [first, added] = seen.emplace(r.who.replica, r.id);
    if (!added) {
      return cat(first->second, " and ", r.id,
                 " have the same replica id, so one data directory is a copy of the other: empty "
                 "the copy");
    }
  }
  return {};
}

// A peer's cluster that this node belongs to or may join; several different ones are a mistake.
struct Known {
  std::map<std::uint64_t, std::vector<std::string>> members;  // cluster id -> who knows it
  const wire::WhoAnswer* founded_with_us = nullptr;
};

Known look_around(const OwnDisk& own, const std::vector<PeerReport>& reports) {
  Known known;
  for (const PeerReport& r : reports) {
    if (r.kind != Kind::answered || r.who.cluster_id == 0) continue;
    known.members[r.who.cluster_id].push_back(r.id);
    if (names(r.who.founding, own.node, own.replica)) known.founded_with_us = &r.who;
  }
  return known;
}

// This node belongs to a cluster by node.json, but its Raft store is empty.
Decision come_back(const BootstrapRules& rules, const OwnDisk& own, const Known& known) {
  // Founding is written to node.json before the Raft store: it was interrupted there.
  if (names(own.founding, own.node, own.replica)) return Found{own.cluster_id, own.founding};
  const wire::WhoAnswer* founded = known.founded_with_us;
  if (founded != nullptr && founded->cluster_id == own.cluster_id) {
    return Found{founded->cluster_id, founded->founding};
  }
  if (rules.peers.empty()) {
    // A node that never had others may begin again under its id; its data is looked after by the
    // check that refuses data without metadata.
    const bool was_alone = !own.joined && own.founding.size() <= 1;
    if (was_alone || rules.forced) {
      return Found{own.cluster_id, {{own.replica, own.node, raft::MemberRole::voter}}};
    }
    return Wait{cat("this node belongs to cluster ", to_hex16(own.cluster_id),
                    ", but its Raft store is empty and cluster.peers names nobody to join: give "
                    "cluster.peers, or restore the metastore directory from a backup")};
  }
  return Join{own.cluster_id, {}};
}

std::vector<std::string> missing_answers(const std::vector<PeerReport>& reports) {
  std::vector<std::string> missing;
  for (const PeerReport& r : reports) {
    if (r.kind != Kind::answered) missing.push_back(describe(r));
  }
  return missing;
}

Found found_from(const BootstrapRules& rules, const OwnDisk& own,
                 const std::vector<PeerReport>& reports) {
  std::vector<raft::Member> nodes{{own.replica, own.node, raft::MemberRole::voter}};
  for (const PeerReport& r : reports) {
    if (r.kind != Kind::answered || !contains(rules.founders, r.id)) continue;
    nodes.push_back({r.who.replica, r.id, raft::MemberRole::voter});
  }
  return Found{0, founding_configuration(std::move(nodes), rules.voters_max)};
}

// Nobody who answered knows a cluster, and this node has none.
Decision out_of_nothing(const BootstrapRules& rules, const OwnDisk& own,
                        const std::vector<PeerReport>& reports) {
  const std::vector<std::string> missing = missing_answers(reports);
  const bool may = contains(rules.founders, own.node);
  if (rules.forced) {
    // The operator answers for the silent ones. They join, whatever they are.
    return Found{0, {{own.replica, own.node, raft::MemberRole::voter}}};
  }
  if (!may) {
    return Wait{cat("waiting for a cluster to join: this node is not in cluster.initial_members",
                    missing.empty() ? "; none of its peers has a cluster yet"
                                    : cat("; no answer from ", join_words(missing)))};
  }
  if (!missing.empty()) {
    return Wait{
        cat("waiting to hear from ", join_words(missing),
            " before a new cluster is founded, since they may know one. If their disks are gone "
            "for good: narad serve --bootstrap on one node")};
  }
  for (const std::string& id : rules.founders) {
    if (id != own.node && !contains(rules.peers, id)) {
      return Wait{cat("cluster.initial_members names ", id,
                      ", which cluster.peers does not: add its address there")};
    }
  }
  if (rules.founders.front() != own.node) {
    return Wait{cat("waiting for ", rules.founders.front(), " to found the cluster")};
  }
  return found_from(rules, own, reports);
}

}  // namespace

BootstrapRules rules_of(const std::string& self, std::vector<std::string> peer_ids,
                        std::vector<std::string> initial_members, bool forced) {
  BootstrapRules rules;
  rules.forced = forced;
  rules.founders = initial_members.empty() ? peer_ids : std::move(initial_members);
  rules.peers = std::move(peer_ids);
  std::erase(rules.peers, self);
  sort_unique(rules.peers);
  if (rules.founders.empty()) rules.founders.push_back(self);
  sort_unique(rules.founders);
  return rules;
}

std::vector<raft::Member> founding_configuration(std::vector<raft::Member> nodes,
                                                 std::size_t voters_max) {
  std::sort(nodes.begin(), nodes.end(),
            [](const raft::Member& a, const raft::Member& b) { return a.node < b.node; });
  if (nodes.size() > wire::kFoundersMax) nodes.resize(wire::kFoundersMax);
  std::size_t voters = std::min(nodes.size(), voters_max);
  if (voters % 2 == 0 && voters > 0) --voters;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].role = i < voters ? raft::MemberRole::voter : raft::MemberRole::learner;
  }
  return nodes;
}

Decision decide_bootstrap(const BootstrapRules& rules, const OwnDisk& own,
                          const std::vector<PeerReport>& reports) {
  NARAD_ASSERT(reports.size() == rules.peers.size());
  NARAD_ASSERT(own.replica.value() != 0);
  if (!own.raft_empty) return Resume{};
  for (const PeerReport& r : reports) {
    if (auto why = contradiction(own, r); !why.empty()) return Wait{why};
  }
  if (auto why = twins(reports); !why.empty()) return Wait{why};
  const Known known = look_around(own, reports);
  if (own.cluster_id != 0) return come_back(rules, own, known);
  if (known.members.size() > 1) {
    std::vector<std::string> parts;
    for (const auto& [id, who] : known.members) {
      parts.push_back(cat(to_hex16(id), " (", join_words(who), ")"));
    }
    return Wait{cat("the peers belong to different clusters: ", join_words(parts),
                    ". Correct cluster.peers, or empty the nodes that should join")};
  }
  if (known.founded_with_us != nullptr) {
    return Found{known.founded_with_us->cluster_id, known.founded_with_us->founding};
  }
  if (!known.members.empty()) {
    return Join{known.members.begin()->first, known.members.begin()->second};
  }
  return out_of_nothing(rules, own, reports);
}

}  // namespace narad::cluster
