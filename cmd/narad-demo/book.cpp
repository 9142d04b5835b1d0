#include "cmd/narad-demo/book.h"

#include <algorithm>

namespace narad::demo {

std::size_t Book::add(Item item) {
  const std::size_t number = entries_.size();
  by_key_.emplace(std::pair(item.topic, item.key), number);
  entries_.push_back({std::move(item), 0, false, {}});
  ++outstanding_;
  return number;
}

void Book::sent(std::size_t item, bool accepted) {
  ++entries_[item].sends;
  if (accepted) entries_[item].accepted = true;
}

void Book::delivered(const std::string& topic, const std::string& key, const std::string& payload,
                     std::uint32_t partition, std::uint64_t offset) {
  // A key may have several items (one package in two architectures): the one with these bytes.
  auto [at, end] = by_key_.equal_range(std::pair(topic, key));
  for (; at != end; ++at) {
    Entry& entry = entries_[at->second];
    if (entry.item.payload != payload) continue;
    if (entry.places.empty()) --outstanding_;
    ++entry.places[{partition, offset}];
    return;
  }
  ++damaged_;
}

Totals Book::totals() const {
  Totals t;
  t.damaged = damaged_;
  for (const Entry& e : entries_) {
    if (e.accepted) ++t.accepted;
    if (e.sends > 1) t.resent += e.sends - 1;
    if (e.places.empty()) {
      if (e.accepted) ++t.lost;
      continue;
    }
    ++t.delivered;
    t.delivered_bytes += e.item.payload.size();
    const std::uint64_t copies = e.places.size() - 1;
    const std::uint64_t resent = std::min<std::uint64_t>(copies, e.sends > 0 ? e.sends - 1 : 0);
    t.duplicates_resent += resent;
    t.duplicates_moved += copies - resent;
    for (const auto& [place, deliveries] : e.places) t.duplicates_unacked += deliveries - 1;
  }
  t.duplicates = t.duplicates_resent + t.duplicates_moved + t.duplicates_unacked;
  return t;
}

}  // namespace narad::demo
