#include "pkg/async/event.h"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "pkg/base/assert.h"

namespace narad {
namespace {

Task<void> park(Env& env, std::vector<Parking::Ticket>& tickets) {
  co_await asio::async_initiate<const asio::use_awaitable_t<>&, void(error_code)>(
      [&env, &tickets](auto handler) {
        tickets.push_back(env.parking.park(VoidHandler(std::move(handler))));
      },
      asio::use_awaitable);
}

}  // namespace

Event::~Event() {
  for (auto ticket : tickets_) env_.parking.unpark(ticket, asio::error::operation_aborted);
}

void Event::notify_all() {
  ++notified_;
  auto tickets = std::exchange(tickets_, {});
  for (auto ticket : tickets) env_.parking.unpark(ticket);
}

Task<void> Event::wait() {
  // Cancelled waits leave stale tickets behind; sweep them before the list grows.
  if (tickets_.size() >= 64 && (tickets_.size() & (tickets_.size() - 1)) == 0) {
    std::erase_if(tickets_, [&](auto ticket) { return !env_.parking.parked(ticket); });
  }
  return park(env_, tickets_);
}

// operator|| starts its operands only later, through the executor: a notification that comes before
// the wait is parked must not be lost.
Task<void> Event::wait_unless_notified_since(std::uint64_t count) {
  if (notified_ == count) co_await wait();
}

Task<bool> Event::wait_for(Nanos delay) {
  using namespace asio::experimental::awaitable_operators;
  if (delay <= Nanos(0)) co_return false;
  auto first = co_await (wait_unless_notified_since(notified_) || sleep_for(env_, delay));
  co_return first.index() == 0;
}

Mutex::~Mutex() {
  for (auto ticket : tickets_) env_.parking.unpark(ticket, asio::error::operation_aborted);
}

Task<Mutex::Guard> Mutex::lock() {
  if (!locked_) {
    locked_ = true;
    co_return Guard(this);
  }
  // unlock() hands ownership to the first waiter still parked; locked_ stays true in between.
  co_await asio::async_initiate<const asio::use_awaitable_t<>&, void(error_code)>(
      [this](auto handler) {
        tickets_.push_back(env_.parking.park(VoidHandler(std::move(handler))));
      },
      asio::use_awaitable);
  NARAD_ASSERT(locked_);
  co_return Guard(this);
}

void Mutex::unlock() {
  NARAD_ASSERT(locked_);
  while (!tickets_.empty()) {
    auto ticket = tickets_.front();
    tickets_.pop_front();
    if (env_.parking.unpark(ticket)) return;  // stays locked, for the next holder
  }
  locked_ = false;
}

void Mutex::Guard::release() {
  if (auto* mutex = std::exchange(mutex_, nullptr)) mutex->unlock();
}

}  // namespace narad
