#pragma once
// Names to addresses, by c-ares on a thread of its own (a static glibc cannot load its resolver,
// and a slow name server must not hold up a disk). The thread starts with the first lookup; the
// configuration (/etc/resolv.conf, /etc/hosts) is read afresh for each burst of lookups.
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pkg/base/result.h"

namespace narad {

struct ResolverOptions {
  std::string servers;    // "127.0.0.1:5353,…"; empty: the system's
  int timeout_ms = 2000;  // of one try
  int tries = 2;
  bool read_hosts_file = true;
};

class Resolver {
 public:
  // IP literals, best first, never empty on success. not_found: no such name; unavailable: no
  // answer.
  using Answer = std::function<void(Result<std::vector<std::string>>)>;

  explicit Resolver(ResolverOptions options = {});
  ~Resolver();

  // `answer` is called once, on the resolver's thread. Thread-safe. Not called after stop().
  void resolve(std::string name, Answer answer);
  // Gives up all lookups and joins the thread; their answers are destroyed. Idempotent.
  void stop();

 private:
  struct Lookup;
  struct Channel;
  void work();

  const ResolverOptions options_;
  int wake_fd_ = -1;
  std::mutex mutex_;
  std::deque<Lookup> waiting_;
  bool stopping_ = false;
  std::thread thread_;  // started with the first lookup
};

}  // namespace narad
