#include "pkg/async/event.h"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/system/system_error.hpp>
#include <memory>

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

// Cancelled and timed-out waits leave stale tickets behind. Looked at when the list has doubled
// since the last look, so the cost per wait stays constant.
template <class Tickets>
void sweep_stale(Env& env, Tickets& tickets, std::size_t& sweep_at) {
  if (tickets.size() < sweep_at) return;
  std::erase_if(tickets, [&](auto ticket) { return !env.parking.parked(ticket); });
  sweep_at = std::max<std::size_t>(64, 2 * tickets.size());
}

}  // namespace

Event::~Event() {
  for (auto ticket : tickets_) env_.parking.unpark(ticket, asio::error::operation_aborted);
}

void Event::notify_all() {
  auto tickets = std::exchange(tickets_, {});
  for (auto ticket : tickets) env_.parking.unpark(ticket);
}

void Event::sweep() { sweep_stale(env_, tickets_, sweep_at_); }

Task<void> Event::wait() {
  sweep();
  return park(env_, tickets_);
}

std::size_t Event::waiters() const {
  return static_cast<std::size_t>(std::count_if(
      tickets_.begin(), tickets_.end(), [&](auto ticket) { return env_.parking.parked(ticket); }));
}

// Parks at once: a notification from now on is seen. The timer does not know the waiter, only its
// ticket; the waiter cancels the timer by the signal that the timer's handler keeps alive. So
// neither owns the other.
Task<bool> Event::wait_for(Nanos delay) {
  if (delay <= Nanos(0)) co_return false;
  sweep();
  auto cancel_timer = std::make_shared<asio::cancellation_signal>();
  error_code result;
  auto token = asio::redirect_error(asio::use_awaitable, result);
  co_await asio::async_initiate<decltype(token)&, void(error_code)>(
      [this, delay, cancel_timer](auto handler) {
        Env& env = env_;
        const auto ticket = env.parking.park(VoidHandler(std::move(handler)));
        tickets_.push_back(ticket);
        auto ring = [&env, ticket, cancel_timer](error_code ec) {
          // The wait may have been ended in the same breath, and its emit() is still to come: by
          // then the timer is gone.
          cancel_timer->slot().clear();
          if (!ec) env.parking.unpark(ticket, asio::error::timed_out);
        };
        auto bound = asio::bind_cancellation_slot(
            cancel_timer->slot(), asio::bind_executor(env.executor, std::move(ring)));
        env.timers.wait(delay, VoidHandler(std::move(bound)));
      },
      token);
  if (result == asio::error::timed_out) co_return false;
  cancel_timer->emit(asio::cancellation_type::terminal);
  if (result) throw boost::system::system_error(result);
  co_return true;
}

Mutex::~Mutex() {
  for (auto ticket : tickets_) env_.parking.unpark(ticket, asio::error::operation_aborted);
}

Task<Mutex::Guard> Mutex::lock() {
  if (!locked_) {
    locked_ = true;
    co_return Guard(this);
  }
  sweep_stale(env_, tickets_, sweep_at_);
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
