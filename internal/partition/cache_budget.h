#pragma once
// CacheBudget: one limit for the record caches of all partitions of a node. When it is passed, the
// cache used least recently gives up first. Lives on the loop.
#include <cstddef>
#include <list>

namespace narad {

class CacheBudget {
 public:
  // A cache that can give memory back.
  class Client {
   public:
    virtual ~Client() = default;
    // Frees something and reports it with `release`; false if it has nothing left.
    virtual bool evict() = 0;

   private:
    friend class CacheBudget;
    std::list<Client*>::iterator place_;
    std::size_t held_ = 0;
    bool joined_ = false;
  };

  explicit CacheBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  CacheBudget(const CacheBudget&) = delete;

  // `client` holds `bytes` more, and was used last of all. May call evict() of any client.
  void charge(Client& client, std::size_t bytes);
  void release(Client& client, std::size_t bytes);
  // The client goes away; what it held is given back.
  void leave(Client& client);

  std::size_t used() const { return used_; }
  std::size_t bytes_max() const { return bytes_max_; }

 private:
  std::size_t bytes_max_;
  std::size_t used_ = 0;
  std::list<Client*> order_;  // least recently used first
};

}  // namespace narad
