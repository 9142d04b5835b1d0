#pragma once
// A small pool of threads for blocking jobs. Jobs start in the order they came; completions go to
// the loop, which stays alive while jobs are out.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "pkg/env/blocking.h"

namespace narad {

class RealBlocking final : public Blocking {
 public:
  explicit RealBlocking(unsigned threads);
  ~RealBlocking() override;

  void run(const char* name, UniqueFunction job, VoidHandler handler) override;
  // Waits for the jobs that have started; those that have not are dropped, handlers and all. Call
  // on the loop's thread while the loop's context lives. Later jobs are dropped, too. Idempotent.
  void stop();

 private:
  struct Item;
  void work(unsigned index);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Item> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace narad
