// The state with 100,002 partitions in 33,334 topics: the cost of an entry with its published view,
// and of a look-up, as multiples of the same on a state of three topics.
#include <chrono>
#include <cstdio>

#include "internal/metastore/apply.h"

namespace narad::metastore {
namespace {

State state_of(int topics) {
  State state;
  apply(state, state.applied.next(), RegisterMember{"n1", "h:1", "c:1", "b", {"d"}, UnixMillis(1)});
  for (int i = 0; i < topics; ++i) {
    CreateTopic c;
    c.name = "topic-" + std::to_string(i);
    c.incarnation = Incarnation(static_cast<std::uint64_t>(i) + 1);
    c.partitions = 3;
    c.max_in_flight_per_partition = c.max_acked_ahead_per_partition = 1024;
    apply(state, state.applied.next(), c);
  }
  return state;
}

template <class Work>
double nanoseconds(int count, Work work) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) work(i);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / count;
}

double entry_ns(State state, int topics) {
  ViewPtr view = std::make_shared<const State>(state);
  return nanoseconds(20'000, [&](int i) {
    const int t = static_cast<int>((static_cast<std::int64_t>(i) * 7919) % topics);
    auto next = std::make_shared<State>(*view);
    apply(*next, next->applied.next(),
          MarkUsed{"topic-" + std::to_string(t), Incarnation(static_cast<std::uint64_t>(t) + 1),
                   PartitionId(static_cast<std::uint32_t>(i % 3)), "n1", "d"});
    view = next;
  });
}

double look_up_ns(const State& state, int topics) {
  std::size_t found = 0;
  const double ns = nanoseconds(200'000, [&](int i) {
    const int t = static_cast<int>((static_cast<std::int64_t>(i) * 7919) % topics);
    found += state.topics.find("topic-" + std::to_string(t)) != nullptr ? 1 : 0;
  });
  if (found != 200'000) std::printf("look-ups failed\n");
  return ns;
}

}  // namespace
}  // namespace narad::metastore

int main() {
  using namespace narad::metastore;
  const State small = state_of(3);
  const State large = state_of(33'334);
  const double small_entry = entry_ns(small, 3), large_entry = entry_ns(large, 33'334);
  std::printf("entry and view: %7.0f ns with 9 partitions, %7.0f ns with 100,002 (%.1f x)\n",
              small_entry, large_entry, large_entry / small_entry);
  const double small_find = look_up_ns(small, 3), large_find = look_up_ns(large, 33'334);
  std::printf("look-up:        %7.0f ns with 9 partitions, %7.0f ns with 100,002 (%.1f x)\n",
              small_find, large_find, large_find / small_find);
}
