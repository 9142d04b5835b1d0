#pragma once
// Waiters: the long-polls that wait for messages of one partition, or of a whole topic, in the
// order they came. A wake-up goes to as many of them as there are messages, and is never lost: one
// that arrives while its poller is busy looking elsewhere is kept for it; one whose poller finds
// nothing (the message was not for it, or somebody was faster) or leaves is passed on, to each of
// those who waited before the wake-up once. Lives on one loop.
//
//   Waiters::Ticket ticket(env, waiters);          // before the first look
//   for (;;) {
//     ... look everywhere; if something was found: ticket.found(), return it ...
//     if (!co_await ticket.wait(deadline)) return nothing;
//   }
#include <functional>
#include <list>
#include <memory>

#include "pkg/async/event.h"

namespace narad {
class Deadline;
}

namespace narad::delivery {

enum class WakeOrigin : std::uint8_t {
  here,       // there are messages on this node
  elsewhere,  // another node sent word, or there is another reason to look again
};

class Waiters {
 public:
  // Told of each wake-up that comes from here while watched: there are waiters on other nodes.
  using Listener = std::function<void(std::uint64_t count)>;

  Waiters() = default;
  explicit Waiters(Listener listener) : listener_(std::move(listener)) {}
  Waiters(const Waiters&) = delete;

  // Wakes the `count` that have waited longest and are not woken yet.
  void wake(std::uint64_t count, WakeOrigin origin = WakeOrigin::here);
  // How many wait and are not woken yet.
  std::size_t size() const { return waiting_.size(); }
  // Whether a wake-up is of use to anybody, here or elsewhere.
  bool wanted() const { return !waiting_.empty() || watched_; }
  void set_watched(bool watched) { watched_ = watched && listener_; }

  class Ticket {
   public:
    // Waits from now on: a wake-up between here and wait() is not missed.
    Ticket(Env& env, std::shared_ptr<Waiters> waiters);
    Ticket(const Ticket&) = delete;
    ~Ticket();

    // True once woken, and enrolled anew, at the end of the row; false when the deadline passes
    // first. Called again, it says that nothing was found after the last wake-up.
    Task<bool> wait(Deadline deadline);
    // The last wake-up was put to use and need not be passed on.
    void found();

   private:
    friend class Waiters;
    void enrol();
    void pass_on();

    std::shared_ptr<Waiters> waiters_;
    Env& env_;
    Event event_;
    std::uint64_t enrolled_ = 0;          // rank in the order of enrolment
    bool woken_ = false;                  // and wait() has not answered it yet
    std::uint64_t passing_ = 0;           // a wake-up to pass on reaches ranks up to it; 0: none
    std::list<Ticket*>::iterator place_;  // valid unless woken
  };

 private:
  // Wakes the first of those enrolled up to `rank`, if any.
  void wake_first(std::uint64_t rank);

  Listener listener_;
  bool watched_ = false;
  std::list<Ticket*> waiting_;  // by rank
  std::uint64_t last_rank_ = 0;
};

}  // namespace narad::delivery
