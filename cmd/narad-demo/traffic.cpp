#include "cmd/narad-demo/traffic.h"

#include <algorithm>

#include "pkg/base/text.h"

namespace narad::demo {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kProducers = 8;
constexpr std::size_t kConsumersPerTopic = 4;
constexpr Nanos kRetryPause = milliseconds(20);
constexpr Nanos kSteadyPause = milliseconds(40);  // of each producer, once all was sent once
constexpr Nanos kPoll = seconds(1);
constexpr Nanos kPatience = seconds(90);
constexpr std::size_t kAckTries = 5;

client::ClientOptions pool() {
  client::ClientOptions options;
  options.pool.idle_max = kProducers + 2 * kConsumersPerTopic;
  options.timeout = seconds(10);
  return options;
}

}  // namespace

Traffic::Traffic(Env& env, std::string password, const std::vector<Item>& items)
    : env_(env), password_(std::move(password)), items_(items), progress_(env), tasks_(env) {
  for (const Item& item : items_) {
    if (item.topic == "packages") texts_.push_back(&item);
  }
}

void Traffic::use(const std::string& node, std::uint16_t port) {
  clients_[node] =
      std::make_unique<Client>(env_, cat("http://127.0.0.1:", port), "admin", password_, pool());
}

void Traffic::leave(const std::string& node) {
  const auto at = clients_.find(node);
  if (at == clients_.end()) return;
  left_.push_back(std::move(at->second));
  clients_.erase(at);
}

Client& Traffic::anyone() {
  auto at = clients_.begin();
  std::advance(at, env_.random.next() % clients_.size());
  return *at->second;
}

std::vector<std::string> Traffic::nodes() const {
  std::vector<std::string> names;
  for (const auto& [name, client] : clients_) names.push_back(name);
  return names;
}

void Traffic::start() {
  last_accepted_ = last_delivery_ = env_.clock.mono();
  producing_ = kProducers;
  for (std::size_t i = 0; i < kProducers; ++i) tasks_.spawn("producer", produce());
  for (std::size_t i = 0; i < kConsumersPerTopic; ++i) {
    for (const char* topic : {"packages", "files"}) tasks_.spawn("consumer", consume(topic));
  }
}

Task<void> Traffic::finish() {
  ending_ = true;
  while (producing_ > 0) (void)co_await progress_.wait_for(milliseconds(100));
  last_delivery_ = env_.clock.mono();
  while (!finished()) (void)co_await progress_.wait_for(milliseconds(100));
}

Nanos Traffic::take_longest_gap() {
  const Nanos now = env_.clock.mono();
  return std::max(std::exchange(longest_gap_, Nanos(0)), now - last_accepted_);
}

// The number of the next one in the book.
std::size_t Traffic::next_item() {
  if (book_.size() < items_.size()) return book_.add(items_[book_.size()]);
  Item again =
      texts_.empty() ? items_[repeats_ % items_.size()] : *texts_[repeats_ % texts_.size()];
  again.key += cat("#", ++repeats_);
  return book_.add(std::move(again));
}

// Sends item after item, each through any node; one that was not answered is sent again through
// another, since it may not be there.
Task<void> Traffic::produce() {
  while (!ending_ || book_.size() < items_.size()) {
    if (book_.size() >= items_.size()) co_await sleep_for(env_, kSteadyPause);
    const std::size_t number = next_item();
    const Item* item = &book_.item(number);
    client::ProduceOptions options;
    options.key = item->key;
    for (;;) {
      auto sent = co_await anyone().produce(item->topic, item->payload, options);
      book_.sent(number, sent.has_value());
      if (sent) break;
      co_await sleep_for(env_, kRetryPause);
    }
    ++accepted_;
    const Nanos now = env_.clock.mono();
    longest_gap_ = std::max(longest_gap_, now - std::exchange(last_accepted_, now));
    progress_.notify_all();
  }
  --producing_;
  progress_.notify_all();
}

Task<void> Traffic::consume(std::string topic) {
  client::ConsumeOptions options;
  options.wait = kPoll;
  for (;;) {
    auto messages = co_await anyone().consume(topic, options);
    if (!messages) {
      co_await sleep_for(env_, kRetryPause);
      continue;
    }
    for (const client::Received& m : messages.value()) {
      last_delivery_ = env_.clock.mono();
      book_.delivered(m.topic, m.key, m.payload, m.partition.value(), m.offset.value());
      co_await ack(topic, m.receipt_handle);
    }
  }
}

// Through any node; through another if that one died.
Task<void> Traffic::ack(std::string topic, std::string handle) {
  for (std::size_t i = 0; i < kAckTries; ++i) {
    auto acked = co_await anyone().ack(topic, handle);
    if (acked) ++acked_;
    progress_.notify_all();
    if (acked || acked.error().code() == Errc::gone) co_return;
    co_await sleep_for(env_, kRetryPause);
  }
}

// All is there, and a quiet moment, longer than a lease, has shown that no copy follows.
bool Traffic::finished() const {
  const Nanos quiet = env_.clock.mono() - last_delivery_;
  return (book_.all_delivered() && quiet > kLease + kPoll) || quiet > kPatience;
}

}  // namespace narad::demo
