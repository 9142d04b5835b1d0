#include "internal/partition/cache_budget.h"

#include "pkg/base/assert.h"

namespace narad {

void CacheBudget::charge(Client& client, std::size_t bytes) {
  if (client.joined_) {
    order_.splice(order_.end(), order_, client.place_);
  } else {
    client.place_ = order_.insert(order_.end(), &client);
    client.joined_ = true;
  }
  client.held_ += bytes;
  used_ += bytes;
  while (used_ > bytes_max_ && !order_.empty()) {
    Client& oldest = *order_.front();
    if (!oldest.evict()) {
      order_.pop_front();
      oldest.joined_ = false;
    }
  }
}

void CacheBudget::release(Client& client, std::size_t bytes) {
  NARAD_ASSERT(bytes <= client.held_);
  NARAD_ASSERT(bytes <= used_);
  client.held_ -= bytes;
  used_ -= bytes;
}

void CacheBudget::leave(Client& client) {
  release(client, client.held_);
  if (client.joined_) order_.erase(client.place_);
  client.joined_ = false;
}

}  // namespace narad
