#include "pkg/env/parking.h"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/error.hpp>

namespace narad {

Parking::Ticket Parking::park(VoidHandler handler) {
  const Ticket ticket = ++last_;
  if (dead_) return ticket;
  auto slot = asio::get_associated_cancellation_slot(handler);
  waiting_.emplace(ticket, std::move(handler));
  // The slot keeps the ticket, not the handler: the handler owns the frame that owns the slot.
  if (slot.is_connected()) {
    slot.assign([this, ticket](asio::cancellation_type) {
      unpark(ticket, asio::error::operation_aborted);
    });
  }
  return ticket;
}

bool Parking::unpark(Ticket ticket, error_code ec) {
  auto it = waiting_.find(ticket);
  if (it == waiting_.end()) return false;
  VoidHandler handler(std::move(it->second));
  waiting_.erase(it);
  complete(std::move(handler), ec);
  return true;
}

void Parking::drop_all() {
  dead_ = true;
  while (!waiting_.empty()) {
    auto node = waiting_.extract(waiting_.begin());  // ~handler may call back in
  }
}

}  // namespace narad
