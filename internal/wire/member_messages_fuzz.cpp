// Any bytes as any message of membership: read or refused, and what was understood is written so
// that it reads the same again.
#include "internal/wire/member_messages.h"
#include "pkg/base/assert.h"

namespace {

template <class T>
void check(const narad::Result<T>& read, narad::Result<T> (*decode)(std::string_view)) {
  if (!read) {
    NARAD_ASSERT(read.error().code() == narad::Errc::invalid_argument);
    return;
  }
  const auto again = decode(encode(read.value()));
  NARAD_ASSERT(again.has_value() && again.value() == read.value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad::wire;
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      check(decode_who_answer(body), &decode_who_answer);
      break;
    case 1:
      check(decode_join_request(body), &decode_join_request);
      break;
    case 2:
      check(decode_join_answer(body), &decode_join_answer);
      break;
    case 3:
      check(decode_heartbeat_request(body), &decode_heartbeat_request);
      break;
    case 4:
      check(decode_heartbeat_answer(body), &decode_heartbeat_answer);
      break;
    default: {
      const MemberRefusal r = decode_refusal(410, body);
      NARAD_ASSERT(decode_refusal(status_of(r.reason), encode(r)) == r ||
                   r.reason == Refused::unavailable);
    }
  }
  return 0;
}
