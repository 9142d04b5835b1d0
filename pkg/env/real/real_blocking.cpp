#include "pkg/env/real/real_blocking.h"

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/prefer.hpp>

#include "pkg/base/assert.h"
#include "pkg/base/text.h"
#include "pkg/env/real/thread.h"

namespace narad {

struct RealBlocking::Item {
  Item(const char* n, UniqueFunction j, VoidHandler h)
      : name(n),
        job(std::move(j)),
        executor(asio::prefer(asio::get_associated_executor(h),
                              asio::execution::outstanding_work.tracked)),
        handler(std::move(h)) {}
  const char* name;
  UniqueFunction job;
  asio::any_completion_executor executor;  // counts as work of the loop
  VoidHandler handler;
};

RealBlocking::RealBlocking(unsigned threads) {
  NARAD_ASSERT(threads > 0);
  threads_.reserve(threads);
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this, i] { work(i); });
}

RealBlocking::~RealBlocking() { stop(); }

void RealBlocking::run(const char* name, UniqueFunction job, VoidHandler handler) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    queue_.emplace_back(name, std::move(job), std::move(handler));
  }
  wake_.notify_one();
}

void RealBlocking::work(unsigned index) {
  prepare_thread(cat("narad-job-", index));
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    Item item = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    item.job();  // an exception ends the process: nobody could be told
    // The handler is a suspended coroutine: it is neither run nor destroyed on this thread.
    auto executor = asio::prefer(item.executor, asio::execution::blocking.never);
    executor.execute(
        [handler = std::move(item.handler)]() mutable { std::move(handler)(error_code()); });
    lock.lock();
  }
}

void RealBlocking::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
  // Destroying a handler may run code that calls run() again: not under the lock.
  auto dropped = std::exchange(queue_, {});
}

}  // namespace narad
