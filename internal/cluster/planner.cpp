#include "internal/cluster/planner.h"

#include <algorithm>
#include <map>

namespace narad::cluster {
namespace {

using metastore::Member;
using metastore::MemberStatus;
using metastore::State;

struct Item {
  TopicPartition partition;
  const Assignment* row = nullptr;
  const metastore::TopicRow* topic = nullptr;
  std::size_t explained = 0;  // its place there
};

struct Receiver {
  const Member* member = nullptr;
  std::size_t count = 0;  // settled here, or on their way here
  std::size_t share = 0;
  std::vector<Item> settled;
  std::map<std::string, std::size_t> on_disk;
  std::vector<std::string> disks;  // those that take more
};

class Planner {
 public:
  Planner(const State& state, const PlannerLimits& limits) : state_(state), limits_(limits) {}

  MovePlan run() {
    find_receivers();
    state_.topics.for_each([&](const metastore::TopicRowPtr& row) { count(*row); });
    share_out();
    choose();
    return std::move(plan_);
  }

 private:
  void find_receivers() {
    state_.members.for_each([&](const std::shared_ptr<const Member>& m) {
      if (m->status != MemberStatus::alive || m->draining || m->leaving) return;
      Receiver& r = receivers_[m->id];
      r.member = m.get();
      for (const std::string& disk : m->disks) {
        if (!limits_.full.contains({m->id, disk})) r.disks.push_back(disk);
      }
    });
  }

  void count(const metastore::TopicRow& topic) {
    for (std::uint32_t p = 0; p < topic.assignments.size(); ++p) {
      const Assignment& a = topic.assignments[p];
      Item item{{topic.topic.name, PartitionId(p)}, &a, &topic, plan_.explained.size()};
      plan_.explained.push_back({item.partition, Verdict::at_home});
      Verdict& verdict = plan_.explained.back().verdict;
      if (a.owner_node.empty()) {
        verdict = Verdict::unassigned;
      } else if (!a.target_node.empty()) {
        verdict = Verdict::in_flight;
        ++in_flight_;
        take_in(a.target_node, a.target_disk);
      } else {
        verdict = settled(std::move(item));
      }
    }
  }

  void take_in(const std::string& node, const std::string& disk) {
    const auto it = receivers_.find(node);
    if (it == receivers_.end()) return;
    ++it->second.count;
    ++it->second.on_disk[disk];
  }

  // A move would wait for that disk, in the place of one that gets on.
  static bool lost_disk(const Item& item, const Member& owner) {
    const auto& disks = owner.disks;
    return item.row->used &&
           std::find(disks.begin(), disks.end(), item.row->owner_disk) == disks.end();
  }

  Verdict settled(Item item) {
    const std::string owner = item.row->owner_node;
    const bool held = limits_.held.contains(item.partition);
    if (auto it = receivers_.find(owner); it != receivers_.end()) {
      // It is no work for its owner either, which takes its share of the others.
      if (lost_disk(item, *it->second.member)) return Verdict::disk_missing;
      take_in(owner, item.row->owner_disk);
      if (held) return Verdict::held;
      if (limits_.pinned.contains(item.partition)) return Verdict::pinned;
      it->second.settled.push_back(std::move(item));
      return Verdict::at_home;
    }
    const Member* member = state_.members.find(owner);
    const bool dead = member == nullptr || member->status == MemberStatus::dead;
    const bool bytes = item.row->used;
    if (dead && (bytes || member == nullptr || !member->draining)) return Verdict::dead_owner;
    if (held) return Verdict::held;
    if (!dead && lost_disk(item, *member)) return Verdict::disk_missing;
    homeless_.push_back(std::move(item));  // its owner drains
    return receivers_.empty() ? Verdict::no_receiver : Verdict::waits;
  }

  // One that has no room keeps what it has, if that is less than its share would be.
  void share_out() {
    std::vector<Receiver*> sharing;
    for (auto& [id, r] : receivers_) sharing.push_back(&r);
    for (std::size_t before = 0; before != sharing.size();) {
      share_out(sharing);
      before = sharing.size();
      std::erase_if(sharing, [](Receiver* r) {
        const bool short_of_room = r->disks.empty() && r->count < r->share;
        if (short_of_room) r->share = r->count;
        return short_of_room;
      });
      room_lacks_ = room_lacks_ || before != sharing.size();
    }
    for (const auto& [id, r] : receivers_) plan_.shares.push_back({id, r.count, r.share});
  }

  // The larger shares go to those who hold most, so that nobody gives away what it would get back.
  void share_out(std::vector<Receiver*> by_count) const {
    if (by_count.empty()) return;
    std::size_t all = homeless_.size();
    for (const Receiver* r : by_count) all += r->count;
    std::sort(by_count.begin(), by_count.end(), [](const Receiver* a, const Receiver* b) {
      return a->count != b->count ? a->count > b->count : a->member->id < b->member->id;
    });
    const std::size_t floor = all / by_count.size();
    std::size_t larger = all % by_count.size();
    for (Receiver* r : by_count) {
      r->share = floor + (larger > 0 ? 1 : 0);
      if (larger > 0) --larger;
    }
  }

  void choose() {
    if (receivers_.empty()) return;
    std::vector<std::pair<Item, std::string>> pool;
    for (Item& item : homeless_) pool.emplace_back(item, kDraining);
    for (auto& [id, r] : receivers_) {
      // The last ones go: those that came last in the order of names.
      for (std::size_t surplus = r.count > r.share ? r.count - r.share : 0;
           surplus > 0 && !r.settled.empty(); --surplus) {
        pool.emplace_back(r.settled.back(), kJoined);
        r.settled.pop_back();
      }
    }
    for (auto& [item, reason] : pool) place(item, reason);
  }

  void place(const Item& item, const std::string& reason) {
    Receiver* target = best_for(item);
    if (target == nullptr) {
      // Everybody has its share: more are on their way than fit, or somebody has no room for his.
      const bool no_room = reason == kDraining && room_lacks_;
      if (no_room) plan_.explained[item.explained].verdict = Verdict::no_room;
      return;
    }
    ++plan_.wanted;
    Explained& explained = plan_.explained[item.explained];
    explained.to = target->member->id;
    const std::string disk = emptiest_disk(*target);
    ++target->count;
    ++target->on_disk[disk];
    if (!take_slot(item)) {
      explained.verdict = Verdict::waits;
      return;
    }
    explained.verdict = Verdict::moves;
    metastore::SetTarget move;
    move.name = item.partition.topic;
    move.incarnation = item.topic->topic.incarnation;
    move.partition = item.partition.partition;
    move.owner_node = item.row->owner_node;
    move.move_id = item.row->move_id;
    move.target_node = target->member->id;
    move.target_disk = disk;
    move.reason = reason;
    plan_.moves.push_back(std::move(move));
  }

  bool take_slot(const Item& item) {
    std::size_t& taken = item.row->used ? in_flight_ : plan_.given;
    const std::size_t most = item.row->used ? limits_.in_flight_max : limits_.unused_max;
    if (taken >= most) return false;
    ++taken;
    return true;
  }

  // The receiver that lacks most; among equals one that does not hold the parent's partition.
  // Balance wins over keeping parent and child apart.
  Receiver* best_for(const Item& item) {
    Receiver* best = nullptr;
    bool best_apart = false;
    for (auto& [id, r] : receivers_) {
      if (r.count >= r.share || r.disks.empty()) continue;
      const std::size_t lack = r.share - r.count;
      const bool apart = !holds_parent(id, item);
      const std::size_t best_lack = best == nullptr ? 0 : best->share - best->count;
      if (best == nullptr || lack > best_lack || (lack == best_lack && apart && !best_apart)) {
        best = &r;
        best_apart = apart;
      }
    }
    return best;
  }

  bool holds_parent(const std::string& node, const Item& item) const {
    const std::string& parent = item.topic->topic.parent;
    if (parent.empty()) return false;
    const Assignment* a = state_.assignment(parent, item.partition.partition);
    return a != nullptr && (a->target_node.empty() ? a->owner_node : a->target_node) == node;
  }

  static std::string emptiest_disk(const Receiver& r) {
    const auto load = [&](const std::string& disk) {
      const auto it = r.on_disk.find(disk);
      return it == r.on_disk.end() ? std::size_t{0} : it->second;
    };
    return *std::min_element(r.disks.begin(), r.disks.end(),
                             [&](const auto& a, const auto& b) { return load(a) < load(b); });
  }

  const State& state_;
  const PlannerLimits& limits_;
  std::map<std::string, Receiver> receivers_;
  std::vector<Item> homeless_;  // of draining owners
  bool room_lacks_ = false;     // somebody gets less than a share for lack of room
  std::size_t in_flight_ = 0;   // moves, those of this plan included
  MovePlan plan_;
};

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::moves:
      return "moves";
    case Verdict::in_flight:
      return "in_flight";
    case Verdict::at_home:
      return "at_home";
    case Verdict::waits:
      return "waits";
    case Verdict::pinned:
      return "pinned";
    case Verdict::held:
      return "held";
    case Verdict::dead_owner:
      return "dead_owner";
    case Verdict::disk_missing:
      return "disk_missing";
    case Verdict::no_receiver:
      return "no_receiver";
    case Verdict::no_room:
      return "no_room";
    case Verdict::unassigned:
      return "unassigned";
  }
  return "";
}

MovePlan plan_moves(const State& state, const PlannerLimits& limits) {
  return Planner(state, limits).run();
}

}  // namespace narad::cluster
