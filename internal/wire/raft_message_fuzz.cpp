// Any bytes as a batch of Raft messages. Holds: no crash, and what was understood is written as it
// was read.
#include "internal/wire/raft_message.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad;
  const ByteView body(reinterpret_cast<const std::byte*>(data), size);
  auto messages = wire::decode_raft_body(body);
  if (!messages) return 0;
  std::size_t bytes = 0;
  for (const raft::Message& m : messages.value()) bytes += 4 + wire::encoded_size(m);
  if (bytes + 5 != size) std::abort();
  if (size > wire::kRaftBatchBytes || messages.value().empty()) return 0;
  const std::vector<std::string> again = wire::encode_raft_bodies(messages.value());
  if (again.size() != 1 || again.front() != as_chars(body)) std::abort();
  return 0;
}
