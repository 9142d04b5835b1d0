#include "internal/node/wakes.h"

#include <algorithm>
#include <utility>

namespace narad::node {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kInterest = 10s;  // how long an owner remembers; renewed at half of it
constexpr Nanos kInterestMax = 60s;
constexpr Nanos kGather = 2ms;  // between two words to one node
constexpr std::size_t kInterestsMax = 200'000;
constexpr std::size_t kToldMax = 50'000;  // then expired ones are looked for

}  // namespace

Wakes::Wakes(Env& env, RemoteOwners& owners, Partitions& partitions)
    : env_(env), owners_(owners), partitions_(partitions), tasks_(env) {
  partitions_.on_wake(
      [this](const std::string& topic, std::uint64_t records) { available(topic, records); });
}

Wakes::~Wakes() = default;

Task<Wakes::Cover> Wakes::cover(std::string node, std::string topic) {
  if (told_.size() > kToldMax) forget_expired();
  auto& entry = told_[{node, topic}];
  if (!entry) entry = std::make_shared<Told>(env_);
  const std::shared_ptr<Told> told = entry;
  if (told->calling) {
    // Somebody else's call counts for us too, whatever comes of it: a node that does not answer is
    // not asked by one after the other. Look again, since that call may be older than our look.
    co_await told->done.wait();
    co_return told->until > env_.clock.mono() ? Cover::fresh : Cover::none;
  }
  const Nanos now = env_.clock.mono();
  if (told->until > now + kInterest / 2) co_return Cover::held;
  const bool held = told->until > now;
  told->calling = true;
  wire::InterestCall call;
  call.ttl_ms = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(kInterest).count());
  call.topics.push_back(topic);
  struct Release {  // also if the caller is cancelled
    Told& told;
    ~Release() {
      told.calling = false;
      told.done.notify_all();
    }
  } release{*told};
  const auto answer = co_await owners_.interest(std::move(node), std::move(call));
  // Counted from before the call: the owner remembers at least as long.
  if (answer) told->until = now + kInterest;
  if (held) co_return Cover::held;
  co_return answer ? Cover::fresh : Cover::none;
}

void Wakes::interested(const std::string& node, const wire::InterestCall& call) {
  const Nanos ttl = std::min<Nanos>(
      std::chrono::milliseconds(std::min<std::uint64_t>(call.ttl_ms, 3'600'000)), kInterestMax);
  if (interest_count_ > kInterestsMax / 2) forget_expired();
  for (const std::string& topic : call.topics) {
    auto& nodes = interests_[topic];
    auto it = nodes.find(node);
    if (it == nodes.end()) {
      if (interest_count_ >= kInterestsMax) continue;  // it looks again by itself
      it = nodes.emplace(node, Interest{}).first;
      ++interest_count_;
    }
    it->second.until = env_.clock.mono() + ttl;
    partitions_.topic_waiters(topic)->set_watched(true);
  }
}

void Wakes::forget_expired() {
  const Nanos now = env_.clock.mono();
  for (auto topic = interests_.begin(); topic != interests_.end();) {
    interest_count_ -=
        std::erase_if(topic->second, [&](const auto& item) { return item.second.until <= now; });
    if (!topic->second.empty()) {
      ++topic;
      continue;
    }
    partitions_.topic_waiters(topic->first)->set_watched(false);
    topic = interests_.erase(topic);
  }
  std::erase_if(
      told_, [&](const auto& item) { return !item.second->calling && item.second->until <= now; });
}

void Wakes::woken(const std::string& node, const wire::WakeCall& call) {
  for (const auto& topic : call.topics) {
    partitions_.topic_waiters(topic.name)->wake_for(node, topic.records);
  }
}

void Wakes::available(const std::string& topic, std::uint64_t records) {
  auto found = interests_.find(topic);
  if (found == interests_.end() || tasks_.stopping()) return;
  const Nanos now = env_.clock.mono();
  auto& nodes = found->second;
  for (auto it = nodes.begin(); it != nodes.end();) {
    if (it->second.until <= now) {
      it = nodes.erase(it);
      --interest_count_;
      continue;
    }
    Peer& peer = peers_[it->first];
    peer.word[topic] += records;
    if (!peer.sending) {
      peer.sending = true;
      tasks_.spawn("wake elsewhere", send(it->first));
    }
    ++it;
  }
  if (!nodes.empty()) return;
  interests_.erase(found);
  partitions_.topic_waiters(topic)->set_watched(false);
}

Task<void> Wakes::send(std::string node) {
  for (;;) {
    auto word = std::exchange(peers_[node].word, {});
    if (word.empty()) break;
    wire::WakeCall call;
    call.topics.reserve(word.size());
    for (auto& [topic, records] : word) call.topics.push_back({topic, records});
    (void)co_await owners_.wake(node, std::move(call));
    co_await sleep_for(env_, kGather);
  }
  peers_[node].sending = false;
}

Task<void> Wakes::stop() {
  partitions_.on_wake({});
  co_await tasks_.stop();
}

}  // namespace narad::node
