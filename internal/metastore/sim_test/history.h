#pragma once
// What clients saw, and whether one order of all operations explains it: each took effect at one
// instant between its call and its answer (linearizability). Keys are independent, so each is
// judged by itself. An operation of unknown outcome took effect at some instant after its call, or
// never.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace narad::metastore::simtest {

// A key holds a register, written blindly, and a counter, raised by whoever names the next number.
struct KeyState {
  std::int64_t value = 0;
  std::uint32_t count = 0;
  friend auto operator<=>(const KeyState&, const KeyState&) = default;
};

struct Operation {
  enum class Kind : std::uint8_t { read, write, raise };
  enum class Outcome : std::uint8_t { done, refused, unknown };
  int client = 0;
  int key = 0;
  Kind kind = Kind::read;
  std::int64_t value = 0;      // of write
  std::uint32_t count = 0;     // of raise: succeeds if the counter is one below
  std::uint64_t called = 0;    // positions in the history; unique
  std::uint64_t answered = 0;  // of unknown: meaningless
  Outcome outcome = Outcome::unknown;
  KeyState seen;  // of a read that is done
};
std::string describe(const Operation& op);

class History {
 public:
  // Begins an operation; answers its number.
  std::size_t call(Operation op);
  void done(std::size_t id);
  void refused(std::size_t id);  // of raise: the counter stood elsewhere
  void read(std::size_t id, KeyState seen);
  // It certainly had no effect, or was a read without an answer.
  void forget(std::size_t id);
  void unknown(std::size_t id);

  std::size_t size() const;  // without the forgotten
  std::size_t unknowns() const;
  // What no order explains: the operations of one key; nothing if all is well.
  std::optional<std::string> violation() const;

 private:
  struct Slot {
    Operation op;
    bool open = true;
    bool forgotten = false;
  };
  std::vector<Slot> slots_;
  std::uint64_t clock_ = 0;
};

}  // namespace narad::metastore::simtest
