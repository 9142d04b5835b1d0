// Any bytes as a log entry: there is always a command, applying it leaves a sound state, and what
// was understood is written as it was read.
#include "internal/metastore/apply.h"
#include "pkg/base/assert.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad;
  using namespace narad::metastore;
  const Command command =
      decode_command(std::string_view(reinterpret_cast<const char*>(data), size));
  State state;
  apply(state, RaftIndex(1), RegisterMember{"n1", "h:1", "c:1", "b", {"d1", "d2"}, UnixMillis(1)});
  CreateTopic topic;
  topic.name = "orders";
  topic.incarnation = Incarnation(1);
  topic.partitions = 3;
  topic.max_in_flight_per_partition = topic.max_acked_ahead_per_partition = 1;
  apply(state, RaftIndex(2), topic);
  apply(state, RaftIndex(3),
        CreateUser{"svc", "$2b$10$" + std::string(53, 'a'), {}, false, UnixMillis(1)});
  const CommandResult result = apply(state, RaftIndex(4), command);
  check_invariants(state);
  NARAD_ASSERT(!to_string(result.code).empty());
  if (!result.done()) NARAD_ASSERT(!to_error(result).text().empty());
  NARAD_ASSERT(std::holds_alternative<Unsupported>(command) || !op_name(command).empty());
  if (!std::holds_alternative<Unsupported>(command)) {
    const std::string text = encode(command);
    NARAD_ASSERT(encode(decode_command(text)) == text, text);
  }
  return 0;
}
