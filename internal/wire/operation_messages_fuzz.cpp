// Any bytes as what the leader knows or did, or what a node keeps aside: read or refused, and what
// was understood is written so that it reads the same again.
#include "internal/wire/operation_messages.h"
#include "pkg/base/assert.h"

namespace {

template <class T>
void check(narad::Result<T> (*decode)(std::string_view), std::string_view body) {
  const narad::Result<T> read = decode(body);
  if (!read) {
    NARAD_ASSERT(read.error().code() == narad::Errc::invalid_argument);
    return;
  }
  const auto again = decode(narad::wire::encode(read.value()));
  NARAD_ASSERT(again.has_value() && again.value() == read.value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'q') {
    check(&narad::wire::decode_set_aside_copies, body);
  } else if (data[0] % 2 == 0) {
    check(&narad::wire::decode_leader_facts, body);
  } else {
    check(&narad::wire::decode_rebalance_outcome, body);
  }
  return 0;
}
