#pragma once
// The load of the demo: workers that produce, consume and ack through every node that is in use,
// and write down what became of each message. Lives on the runtime's loop.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cmd/narad-demo/book.h"
#include "pkg/async/event.h"
#include "pkg/async/task_group.h"
#include "pkg/client/client.h"

namespace narad::demo {

// Of a lease: a message that was on its way to a client when a node died comes back after it.
inline constexpr Nanos kLease = std::chrono::seconds(5);

class Traffic {
 public:
  // `items` are sent first, as fast as it goes; then the texts among them under new keys, at a
  // steady rate, until finish().
  Traffic(Env& env, std::string password, const std::vector<Item>& items);

  // Nodes that clients use. A node that died stays in use: clients find that out.
  void use(const std::string& node, std::uint16_t port);
  void leave(const std::string& node);
  Client& client(const std::string& node) { return *clients_.at(node); }
  Client& anyone();
  std::vector<std::string> nodes() const;

  void start();
  // Ends the producing; returns once all that was accepted came back and nothing more follows, or
  // nothing has come for a long time.
  Task<void> finish();
  Task<void> stop() { return tasks_.stop(); }

  // Wakes after every message that was accepted or acked.
  Event& progress() { return progress_; }
  std::uint64_t accepted() const { return accepted_; }
  std::uint64_t acked() const { return acked_; }
  // Of the longest time in which no message was accepted anywhere, since the last call.
  Nanos take_longest_gap();
  Totals totals() const { return book_.totals(); }

 private:
  Task<void> produce();
  Task<void> consume(std::string topic);
  Task<void> ack(std::string topic, std::string handle);
  std::size_t next_item();
  bool finished() const;

  Env& env_;
  const std::string password_;
  const std::vector<Item>& items_;
  std::vector<const Item*> texts_;
  std::map<std::string, std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Client>> left_;  // calls may still be under way
  Book book_;
  Event progress_;
  bool ending_ = false;
  std::size_t producing_ = 0;
  std::size_t repeats_ = 0;
  std::uint64_t accepted_ = 0;
  std::uint64_t acked_ = 0;
  Nanos last_accepted_{0};
  Nanos longest_gap_{0};
  Nanos last_delivery_{0};
  TaskGroup tasks_;
};

}  // namespace narad::demo
