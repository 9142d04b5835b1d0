#include "internal/delivery/waiters.h"

#include <utility>

#include "pkg/async/timeout.h"

namespace narad::delivery {

void Waiters::wake(std::uint64_t count, WakeOrigin origin) {
  if (watched_ && origin == WakeOrigin::here && count > 0) listener_(count);
  for (; count > 0 && !waiting_.empty(); --count) wake_first(last_rank_);
}

void Waiters::wake_first(std::uint64_t rank) {
  if (waiting_.empty() || waiting_.front()->enrolled_ > rank) return;
  Ticket* ticket = waiting_.front();
  waiting_.pop_front();
  ticket->woken_ = true;
  ticket->passing_ = rank;
  ticket->event_.notify_all();
}

Waiters::Ticket::Ticket(Env& env, std::shared_ptr<Waiters> waiters)
    : waiters_(std::move(waiters)), env_(env), event_(env) {
  enrol();
}

Waiters::Ticket::~Ticket() {
  if (!woken_) waiters_->waiting_.erase(place_);
  pass_on();
}

void Waiters::Ticket::enrol() {
  woken_ = false;
  enrolled_ = ++waiters_->last_rank_;
  place_ = waiters_->waiting_.insert(waiters_->waiting_.end(), this);
}

void Waiters::Ticket::pass_on() {
  if (const std::uint64_t rank = std::exchange(passing_, 0)) waiters_->wake_first(rank);
}

void Waiters::Ticket::found() {
  if (!woken_) passing_ = 0;
}

Task<bool> Waiters::Ticket::wait(Deadline deadline) {
  if (!woken_) pass_on();
  while (!woken_) {
    const Nanos left = deadline.left(env_);
    if (left <= Nanos(0)) co_return false;
    co_await event_.wait_for(left);
  }
  enrol();
  co_return true;
}

}  // namespace narad::delivery
