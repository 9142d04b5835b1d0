#pragma once
// Accounts for every message of one run: what was sent, how that was answered, what came back.
// Pure. Used by `narad bench --verify` and by the demo.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace narad::cli {

enum class Sent : std::uint8_t {
  never,
  accepted,  // answered 202: must come back
  unknown,   // no answer, or an error: may come back or not
};

struct Tally {
  std::uint64_t accepted = 0;
  std::uint64_t unknown = 0;            // sent, but not answered 202
  std::uint64_t delivered = 0;          // distinct messages of this run that came back
  std::uint64_t unknown_delivered = 0;  // of those, the ones that were not answered 202
  std::uint64_t lost = 0;               // accepted, and never came back
  std::uint64_t duplicated = 0;         // deliveries beyond the first
  std::uint64_t damaged = 0;            // of this run, but other bytes than were sent
  std::uint64_t foreign = 0;            // not of this run
};

class Ledger {
 public:
  // `run` names the run in every payload; payloads are `size` bytes, or as many as the identity
  // takes.
  Ledger(std::uint64_t run, std::size_t size);

  // The payload of message `index`.
  std::string payload(std::uint64_t index) const;
  void sent(std::uint64_t index, Sent outcome);
  // False if it is not of this run.
  bool came_back(std::string_view payload);
  // Whether every accepted message has come back.
  bool complete() const { return missing_ == 0; }
  Tally tally() const;

 private:
  struct Entry {
    Sent outcome = Sent::never;
    std::uint32_t deliveries = 0;
  };
  Entry& entry(std::uint64_t index);

  std::string prefix_;
  std::size_t size_;
  std::vector<Entry> entries_;
  std::uint64_t missing_ = 0;
  std::uint64_t damaged_ = 0;
  std::uint64_t foreign_ = 0;
};

}  // namespace narad::cli
