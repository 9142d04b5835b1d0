#include "internal/delivery/waiters.h"

#include <utility>

#include "pkg/async/timeout.h"

namespace narad::delivery {
namespace {

const std::string kNobody;
// More than wait on any node.
constexpr std::uint64_t kEverybody = 1u << 30;

}  // namespace

void Waiters::wake(std::uint64_t count) {
  const WakeUp wake_up{last_rank_, true, kNobody};
  while (count > 0 && wake_first(wake_up)) --count;
  if (count > 0 && watched_) listener_(count);
}

void Waiters::wake_for(const std::string& node, std::uint64_t count) {
  const WakeUp wake_up{last_rank_, false, node};
  while (count > 0 && wake_first(wake_up)) --count;
}

void Waiters::wake_all(bool elsewhere) {
  wake_for(kNobody, kEverybody);
  if (elsewhere && watched_) listener_(kEverybody);
}

bool Waiters::wake_first(const WakeUp& wake_up) {
  if (waiting_.empty() || waiting_.front()->enrolled_ > wake_up.rank) return false;
  Ticket* ticket = waiting_.front();
  waiting_.pop_front();
  ticket->woken_ = true;
  ticket->passing_ = wake_up.rank;
  ticket->from_here_ = wake_up.from_here;
  ticket->told_by_ = wake_up.told_by;
  ticket->event_.notify_all();
  return true;
}

Waiters::Ticket::Ticket(Env& env, std::shared_ptr<Waiters> waiters)
    : waiters_(std::move(waiters)), env_(env), event_(env) {
  enrol();
}

Waiters::Ticket::~Ticket() {
  if (!woken_) waiters_->waiting_.erase(place_);
  // Those on other nodes are not told: this may run while the node is torn down. They look again by
  // themselves.
  (void)pass_on();
}

void Waiters::Ticket::enrol() {
  woken_ = false;
  enrolled_ = ++waiters_->last_rank_;
  place_ = waiters_->waiting_.insert(waiters_->waiting_.end(), this);
}

bool Waiters::Ticket::pass_on() {
  const std::uint64_t rank = std::exchange(passing_, 0);
  return rank == 0 || waiters_->wake_first({rank, from_here_, told_by_});
}

void Waiters::Ticket::used() {
  if (!woken_) passing_ = 0;
}

Task<bool> Waiters::Ticket::wait(Deadline deadline) {
  if (!woken_) {
    // Nobody here wants it: somebody elsewhere may.
    if (!pass_on() && from_here_ && waiters_->watched_) waiters_->listener_(1);
    told_by_.clear();
  }
  while (!woken_) {
    const Nanos left = deadline.left(env_);
    if (left <= Nanos(0)) co_return false;
    co_await event_.wait_for(left);
  }
  enrol();
  co_return true;
}

}  // namespace narad::delivery
