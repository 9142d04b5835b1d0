#include "internal/delivery/waiters.h"

#include "pkg/async/timeout.h"

namespace narad::delivery {

void Waiters::wake(std::uint64_t count) {
  for (; count > 0 && !waiting_.empty(); --count) {
    Ticket* ticket = waiting_.front();
    waiting_.pop_front();
    ticket->woken_ = true;
    ticket->event_.notify_all();
  }
}

Waiters::Ticket::Ticket(Env& env, std::shared_ptr<Waiters> waiters)
    : waiters_(std::move(waiters)), env_(env), event_(env) {
  enrol();
}

Waiters::Ticket::~Ticket() {
  if (woken_) {
    waiters_->wake(1);  // nobody looked for what it was woken for
  } else {
    waiters_->waiting_.erase(place_);
  }
}

void Waiters::Ticket::enrol() {
  woken_ = false;
  place_ = waiters_->waiting_.insert(waiters_->waiting_.end(), this);
}

Task<bool> Waiters::Ticket::wait(Deadline deadline) {
  while (!woken_) {
    const Nanos left = deadline.left(env_);
    if (left <= Nanos(0)) co_return false;
    co_await event_.wait_for(left);
  }
  enrol();
  co_return true;
}

}  // namespace narad::delivery
