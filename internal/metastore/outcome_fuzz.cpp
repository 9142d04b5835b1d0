// Any bytes as the leader's answer. Holds: no crash; what was understood is written as it was read;
// what was not is an error of a kind that a proposal may end with.
#include "internal/metastore/outcome.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad;
  using namespace narad::metastore;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto outcome = decode_outcome(text);
  if (!outcome) {
    auto again = decode_outcome(encode_outcome(outcome));
    if (again || again.error().code() != outcome.error().code()) std::abort();
    return 0;
  }
  const std::string once = encode_outcome(outcome);
  auto again = decode_outcome(once);
  if (!again || encode_outcome(again) != once) std::abort();
  return 0;
}
