#pragma once
// For the tests of the runner: partitions with origin tables that outlive the dispatching node, and
// a target that reaches them over a network that delays, loses and answers late.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "internal/dispatch/target.h"
#include "pkg/base/text.h"
#include "pkg/sim/machine.h"

namespace narad::dispatch {

struct TestPartition {
  struct Stored {
    std::string payload;
    Sequence sequence{0};
    bool rerouted = false;
  };
  std::vector<Stored> log;
  std::map<OriginId, Sequence> table;
  OwnerState owner = OwnerState::alive;
  bool refuses = false;
  bool silent = false;  // takes records and never answers
  Nanos latency{0};
};

// Shared by all lives of the node. One topic, "t".
struct TestWorld {
  explicit TestWorld(std::uint32_t count) : partitions(count) {}
  std::vector<TestPartition> partitions;
  std::set<std::string> rerouted;  // payloads that ever were
  std::uint64_t known = 0;
  std::uint64_t commits = 0;
  bool topic_known = true;
  bool topic_gone = false;
  RaftIndex assignment{1};

  // The owner's side (storage.md, "Exactly-once hand-off").
  Result<CommitOutcome> commit(PartitionId id, const CommitBatch& batch) {
    TestPartition& p = partitions[id.value()];
    if (topic_gone) return Error(Errc::gone, "the topic is gone");
    if (p.refuses || p.owner != OwnerState::alive) return Error(Errc::unavailable, "refused");
    CommitOutcome out;
    for (const CommitRecord& r : batch.records) {
      Sequence& last = p.table[batch.origin];
      if (batch.rerouted) rerouted.insert(r.message->payload);
      if (!batch.rerouted && r.sequence <= last) {
        ++out.known;
        continue;
      }
      p.log.push_back({r.message->payload, r.sequence, batch.rerouted});
      if (!batch.rerouted) last = r.sequence;
      ++out.appended;
    }
    known += out.known;
    ++commits;
    return out;
  }
};

class TestTarget final : public CommitTarget {
 public:
  TestTarget(Env& env, sim::Sim& sim, TestWorld& world)
      : env_(env), sim_(sim), world_(world), changed_(env) {}

  Route route(const TopicPartition& tp, Incarnation incarnation) const override {
    Route out;
    out.topic_known = world_.topic_known && !world_.topic_gone;
    out.partitions = static_cast<std::uint32_t>(world_.partitions.size());
    out.owner = world_.partitions[tp.partition.value()].owner;
    out.assignment_index = world_.assignment;
    return out;
  }

  Task<Result<CommitOutcome>> commit(TopicPartition tp, CommitBatch batch) override {
    ++calls;
    if (loss != 0 && random_.below(loss) == 0) co_await sleep_for(env_, std::chrono::hours(1));
    TestPartition& p = world_.partitions[tp.partition.value()];
    const Nanos there(random_.below(static_cast<std::uint64_t>(p.latency.count()) + 1));
    // What is under way arrives, whatever becomes of the sender.
    auto answer = std::make_shared<std::optional<Result<CommitOutcome>>>();
    sim_.after(there, sim::kWorld, "commit",
               [answer, world = &world_, id = tp.partition, batch = std::move(batch)](bool) {
                 answer->emplace(world->commit(id, batch));
               });
    co_await sleep_for(env_, there + std::chrono::microseconds(100));
    if (loss != 0 && random_.below(loss) == 0) co_await sleep_for(env_, std::chrono::hours(1));
    if (p.silent) co_await sleep_for(env_, std::chrono::hours(1));
    if (!*answer) co_return Error(Errc::unavailable, "no answer");
    co_return std::move(**answer);
  }

  Task<Result<bool>> confirm_gone(std::string topic, Incarnation incarnation) override {
    ++questions;
    co_await sleep_for(env_, std::chrono::milliseconds(1));
    if (!leader) co_return Error(Errc::unavailable, "no leader");
    co_return world_.topic_gone;
  }
  Event& routing_changed() override { return changed_; }

  std::uint64_t loss = 0;  // one in so many calls, and answers, is lost
  bool leader = true;
  std::uint64_t calls = 0;
  std::uint64_t questions = 0;

 private:
  Env& env_;
  sim::Sim& sim_;
  TestWorld& world_;
  sim::Rng random_{env_.random.next()};
  Event changed_;
};

}  // namespace narad::dispatch
