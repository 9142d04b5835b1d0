#pragma once
// Waiters: the long-polls that wait for messages of one partition, or of a whole topic, in the
// order they came. A wake-up goes to as many of them as there are messages, and is never lost: one
// that arrives while its poller is busy looking elsewhere is kept for it, and one whose poller
// leaves is passed on. Lives on one loop.
//
//   Waiters::Ticket ticket(env, waiters);          // before the first look
//   for (;;) {
//     ... look everywhere; return if something was found ...
//     if (!co_await ticket.wait(deadline)) return nothing;
//   }
#include <list>
#include <memory>

#include "pkg/async/event.h"

namespace narad {
class Deadline;
}

namespace narad::delivery {

class Waiters {
 public:
  Waiters() = default;
  Waiters(const Waiters&) = delete;

  // Wakes the `count` that have waited longest and are not woken yet.
  void wake(std::uint64_t count);
  // How many wait and are not woken yet.
  std::size_t size() const { return waiting_.size(); }

  class Ticket {
   public:
    // Waits from now on: a wake-up between here and wait() is not missed.
    Ticket(Env& env, std::shared_ptr<Waiters> waiters);
    Ticket(const Ticket&) = delete;
    ~Ticket();

    // True once woken, and enrolled anew, at the end of the row; false when the deadline passes
    // first.
    Task<bool> wait(Deadline deadline);

   private:
    friend class Waiters;
    void enrol();

    std::shared_ptr<Waiters> waiters_;
    Env& env_;
    Event event_;
    bool woken_ = false;
    std::list<Ticket*>::iterator place_;  // valid unless woken
  };

 private:
  std::list<Ticket*> waiting_;
};

}  // namespace narad::delivery
