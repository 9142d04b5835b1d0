// Somebody who holds moves back and lets them go on: pauses of one move, of a node's, of all, and
// the throttle of all nodes. Whatever is forgotten with the life of who gave it is taken back in
// the end.
#include <iterator>

#include "internal/simtest/parts.h"

namespace narad::simtest {

using namespace std::chrono_literals;

namespace {

constexpr Nanos kReleaseEvery = 2s;

// REQUIRES: a pause.
void set_paused(metastore::Command& command, bool paused) {
  if (auto* one = std::get_if<metastore::PauseMove>(&command)) one->paused = paused;
  if (auto* many = std::get_if<metastore::PauseMoves>(&command)) many->paused = paused;
}

// What takes back all that holds moves back.
std::vector<metastore::Command> releases(const metastore::State& state) {
  std::vector<metastore::Command> out;
  if (state.move_rate) out.emplace_back(metastore::SetMoveRate{});
  if (state.moves_paused) out.emplace_back(metastore::PauseMoves{"", false});
  state.members.for_each([&](const auto& m) {
    if (m->moves_paused) out.emplace_back(metastore::PauseMoves{m->id, false});
  });
  state.topics.for_each([&](const metastore::TopicRowPtr& row) {
    for (std::uint32_t p = 0; p < row->assignments.size(); ++p) {
      const Assignment& a = row->assignments[p];
      if (!a.paused) continue;
      out.emplace_back(metastore::PauseMove{row->topic.name, row->topic.incarnation, PartitionId(p),
                                            a.move_id, false});
    }
  });
  return out;
}

}  // namespace

Task<void> App::brakes() {
  Rng random = stream("brakes", 0);
  while (world_.phase_ == Phase::faults) {
    co_await sleep_for(env_, pause(random, 6s));
    if (world_.phase_ == Phase::faults) co_await brake(random);
  }
}

// Any move that is under way, any node, or all of them.
std::optional<metastore::Command> App::draw_pause(Rng& random) {
  const std::uint64_t dice = random.below(4);
  if (dice == 0) return metastore::PauseMoves{"", true};
  if (dice == 1) {
    const auto nodes = static_cast<std::uint64_t>(world_.knobs_.nodes);
    return metastore::PauseMoves{host_of(static_cast<int>(random.below(nodes))), true};
  }
  std::vector<metastore::PauseMove> moves;
  for (const auto& row : topics()) {
    for (std::uint32_t p = 0; p < row->assignments.size(); ++p) {
      const Assignment& a = row->assignments[p];
      if (a.target_node.empty()) continue;
      moves.push_back({row->topic.name, row->topic.incarnation, PartitionId(p), a.move_id, true});
    }
  }
  if (moves.empty()) return std::nullopt;
  return moves[random.below(moves.size())];
}

Task<void> App::brake(Rng& random) {
  if (random.below(4) == 0) {
    const std::optional<std::uint64_t> rates[] = {std::nullopt, 0, 20'000, 100'000};
    metastore::Command rate = metastore::SetMoveRate{rates[random.below(std::size(rates))]};
    auto set = co_await node_.metastore().propose(std::move(rate));
    if (set && set.value().done()) world_.reach_.hit("operator: throttled moves");
    co_return;
  }
  auto command = draw_pause(random);
  if (!command) co_return;
  metastore::Command again = *command;
  auto held = co_await node_.metastore().propose(std::move(*command));
  if (held && held.value().done()) world_.reach_.hit("operator: held moves back");
  co_await sleep_for(env_, pause(random, 3s));
  set_paused(again, false);
  auto released = co_await node_.metastore().propose(std::move(again));
  if (released && released.value().done()) world_.reach_.hit("operator: let moves go on");
}

void World::release_brakes() {
  if (!knobs_.brakes || ownership_.newest() == nullptr) return;
  if (sim_.now() < brakes_looked_at_ + kReleaseEvery) return;
  brakes_looked_at_ = sim_.now();
  App* app = anybody();
  if (app == nullptr) return;
  for (metastore::Command& command : releases(*ownership_.newest())) {
    app->propose(std::move(command));
  }
}

}  // namespace narad::simtest
