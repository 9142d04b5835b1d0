#pragma once
// Reach marks: counters of the rare things a simulation is there to do. A scenario names the marks
// that must not stay at zero over its seeds, so that it cannot go quietly idle.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace narad::sim {

class Reach {
 public:
  void hit(std::string_view mark, std::uint64_t times = 1) {
    auto it = counts_.find(mark);
    if (it == counts_.end()) it = counts_.emplace(mark, 0).first;
    it->second += times;
  }
  std::uint64_t count(std::string_view mark) const {
    auto it = counts_.find(mark);
    return it == counts_.end() ? 0 : it->second;
  }
  void add(const Reach& other) {
    for (const auto& [mark, n] : other.counts_) hit(mark, n);
  }
  // Those of `required` that were never hit.
  std::vector<std::string> missing(const std::vector<std::string>& required) const {
    std::vector<std::string> out;
    for (const std::string& mark : required) {
      if (count(mark) == 0) out.push_back(mark);
    }
    return out;
  }
  const std::map<std::string, std::uint64_t, std::less<>>& all() const { return counts_; }

 private:
  std::map<std::string, std::uint64_t, std::less<>> counts_;
};

}  // namespace narad::sim
