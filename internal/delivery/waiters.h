#pragma once
// Waiters: the long-polls that wait for messages of one partition, or of a whole topic, in the
// order they came. A wake-up goes to as many of them as there are messages, and is never lost: one
// that arrives while its poller is busy looking elsewhere is kept for it; one whose poller cannot
// use it (the message was not for it) or leaves is passed on, to each of those who waited before
// the wake-up once. Messages that nobody here waits for are told to those who watch for other
// nodes. Lives on one loop.
//
//   Waiters::Ticket ticket(env, waiters);          // before the first look
//   for (;;) {
//     ... look everywhere; if something was found: ticket.used(), return it ...
//     ... if whatever anybody could find here was looked at: ticket.used() ...
//     if (!co_await ticket.wait(deadline)) return nothing;
//   }
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "pkg/async/event.h"

namespace narad {
class Deadline;
}

namespace narad::delivery {

class Waiters {
 public:
  // Told, while watched, of messages on this node that are left when those who wait here have been
  // woken: there are waiters on other nodes.
  using Listener = std::function<void(std::uint64_t count)>;

  Waiters() = default;
  explicit Waiters(Listener listener) : listener_(std::move(listener)) {}
  Waiters(const Waiters&) = delete;

  // There are `count` more messages here than were told before: wakes the `count` that have waited
  // longest, those who sleep before those who are busy looking. Others hear of what no sleeper
  // takes: they would have to ask here, and come later than who is here.
  void wake(std::uint64_t count);
  // Node `node` said that it has `count` messages. An empty name: there is another reason to look.
  void wake_for(const std::string& node, std::uint64_t count);
  // There is a reason for everybody to look again, here and, with `elsewhere`, on other nodes.
  void wake_all(bool elsewhere);
  // How many wait and are not woken yet.
  std::size_t size() const { return sleeping_.size() + busy_.size(); }
  // Whether a wake-up is of use to anybody, here or elsewhere.
  bool wanted() const { return size() > 0 || watched_; }
  void set_watched(bool watched) { watched_ = watched && listener_; }

  class Ticket;
  using Row = std::list<Ticket*>;  // by rank

  class Ticket {
   public:
    // Waits from now on: a wake-up between here and wait() is not missed.
    Ticket(Env& env, std::shared_ptr<Waiters> waiters);
    Ticket(const Ticket&) = delete;
    ~Ticket();

    // True once woken, and enrolled anew, at the end of the row; false when the deadline passes
    // first. Called again without used(), it says that the last wake-up was not for this poller.
    Task<bool> wait(Deadline deadline);
    // The last wake-up need not be passed on: something was found, or a look that began after it
    // and went everywhere has shown that there is nothing for anybody.
    void used();
    // A wake-up came that wait() has not answered yet.
    bool woken() const { return woken_; }
    // The node whose word was the last wake-up; empty if that was another one, or none is open.
    const std::string& told_by() const { return told_by_; }

   private:
    friend class Waiters;
    void enrol();
    void leave_row();
    void move(Row& from, Row& to);
    void pass_on();

    std::shared_ptr<Waiters> waiters_;
    Env& env_;
    Event event_;
    std::uint64_t enrolled_ = 0;  // rank in the order of enrolment
    bool woken_ = false;          // and wait() has not answered it yet
    bool sleeping_ = false;       // in wait(), so in that row if it is not woken
    std::uint64_t passing_ = 0;   // a wake-up to pass on reaches ranks up to it; 0: none
    bool from_here_ = false;      // the last wake-up was for a message of this node
    std::string told_by_;         // of the last wake-up
    Row::iterator place_;         // valid unless woken
  };

 private:
  struct WakeUp {
    std::uint64_t rank = 0;  // for those enrolled up to it
    bool from_here = false;
    std::string told_by;
  };
  // Wakes the first of them; false if there is none.
  bool wake_first(Row& row, const WakeUp& wake_up);

  Listener listener_;
  bool watched_ = false;
  Row sleeping_, busy_;
  std::uint64_t last_rank_ = 0;
};

}  // namespace narad::delivery
