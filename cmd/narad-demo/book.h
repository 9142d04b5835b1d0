#pragma once
// What became of every item: sent, sent again, answered, delivered. Pure.
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "cmd/narad-demo/input.h"

namespace narad::demo {

struct Totals {
  std::uint64_t accepted = 0;   // items answered 202
  std::uint64_t resent = 0;     // sends beyond the first, since no answer came
  std::uint64_t delivered = 0;  // distinct items that came back
  std::uint64_t delivered_bytes = 0;
  std::uint64_t lost = 0;                // accepted, never came back
  std::uint64_t damaged = 0;             // came back with other bytes, or is not ours
  std::uint64_t duplicates = 0;          // deliveries beyond the first
  std::uint64_t duplicates_resent = 0;   // of those: stored twice, because it was sent twice
  std::uint64_t duplicates_moved = 0;    // of those: stored twice, though it was sent once
  std::uint64_t duplicates_unacked = 0;  // of those: handed out again, since the ack did not count
};

class Book {
 public:
  // Its number, from 0 on. Key and payload together tell it from all others of its topic.
  std::size_t add(Item item);
  const Item& item(std::size_t number) const { return entries_[number].item; }
  std::size_t size() const { return entries_.size(); }

  void sent(std::size_t item, bool accepted);
  // A message as it came back; (partition, offset) tells a second copy from a second delivery.
  void delivered(const std::string& topic, const std::string& key, const std::string& payload,
                 std::uint32_t partition, std::uint64_t offset);
  bool all_delivered() const { return outstanding_ == 0; }  // of those that were added
  Totals totals() const;

 private:
  struct Entry {
    Item item;
    std::uint64_t sends = 0;
    bool accepted = false;
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> places;  // deliveries by place
  };
  std::deque<Entry> entries_;
  std::multimap<std::pair<std::string, std::string>, std::size_t> by_key_;
  std::uint64_t outstanding_ = 0;
  std::uint64_t damaged_ = 0;
};

}  // namespace narad::demo
