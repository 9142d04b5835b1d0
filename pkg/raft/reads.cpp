#include "pkg/raft/reads.h"

namespace narad::raft {

std::uint64_t Reads::begin_round(Index commit) {
  ++round_;
  for (const Read& read : waiting_) asked_.push_back({round_, commit, read});
  waiting_.clear();
  return round_;
}

std::vector<Reads::Answer> Reads::confirm(std::uint64_t confirmed) {
  std::vector<Answer> out;
  while (!asked_.empty() && asked_.front().round <= confirmed) {
    out.push_back({asked_.front().read, asked_.front().index});
    asked_.pop_front();
  }
  return out;
}

std::vector<Read> Reads::drop() {
  std::vector<Read> out;
  for (const Asked& asked : asked_) out.push_back(asked.read);
  out.insert(out.end(), waiting_.begin(), waiting_.end());
  asked_.clear();
  waiting_.clear();
  return out;
}

}  // namespace narad::raft
