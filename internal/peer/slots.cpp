#include "internal/peer/slots.h"

#include <algorithm>
#include <boost/asio/error.hpp>

#include "pkg/base/assert.h"

namespace narad::peer {

Slots::~Slots() {
  for (auto ticket : tickets_) env_.parking.unpark(ticket, asio::error::operation_aborted);
}

Task<Slots::Guard> Slots::take() {
  if (taken_ < places_) {
    ++taken_;
    co_return Guard(this);
  }
  if (tickets_.size() >= sweep_at_) {
    std::erase_if(tickets_, [&](auto ticket) { return !env_.parking.parked(ticket); });
    sweep_at_ = std::max<std::size_t>(64, 2 * tickets_.size());
  }
  // give_back() hands its place to the first who still waits: taken_ does not change in between.
  co_await asio::async_initiate<const asio::use_awaitable_t<>&, void(error_code)>(
      [this](auto handler) {
        tickets_.push_back(env_.parking.park(VoidHandler(std::move(handler))));
      },
      asio::use_awaitable);
  co_return Guard(this);
}

void Slots::give_back() {
  NARAD_ASSERT(taken_ > 0);
  while (taken_ <= places_ && !tickets_.empty()) {
    const auto ticket = tickets_.front();
    tickets_.pop_front();
    if (env_.parking.unpark(ticket)) return;
  }
  --taken_;
}

void Slots::open() {
  for (auto ticket : std::exchange(tickets_, {})) {
    if (env_.parking.unpark(ticket)) ++taken_;
  }
}

std::size_t Slots::waiting() const {
  return static_cast<std::size_t>(std::count_if(
      tickets_.begin(), tickets_.end(), [&](auto ticket) { return env_.parking.parked(ticket); }));
}

}  // namespace narad::peer
