// Any bytes as each body. Holds: no crash, and what was understood is written and read back the
// same.
#include "internal/wire/broker_messages.h"

#include <cstdlib>

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

template <class Decode>
void round_trip(std::string_view body, Decode decode) {
  auto first = decode(body);
  if (!first) return;
  const std::string written = narad::wire::encode(first.value());
  auto second = decode(written);
  check(second.has_value());
  check(narad::wire::encode(second.value()) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad::wire;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  // The first byte says which body it is.
  const std::string_view body = bytes.substr(1);
  switch (static_cast<unsigned char>(bytes[0]) % 13) {
    case 0:
      round_trip(body, decode_commit);
      break;
    case 1:
      round_trip(body, decode_commit_outcome);
      break;
    case 2:
      round_trip(body, decode_consume);
      break;
    case 3:
      round_trip(body, decode_leased);
      break;
    case 4:
      round_trip(body, decode_settle);
      break;
    case 5:
      round_trip(body, decode_settled);
      break;
    case 6:
      round_trip(body, decode_replay);
      break;
    case 7:
      round_trip(body, decode_replayed);
      break;
    case 8:
      round_trip(body, decode_stats);
      break;
    case 9:
      round_trip(body, decode_stats_answer);
      break;
    case 10:
      round_trip(body, decode_interest);
      break;
    case 11:
      round_trip(body, decode_wake);
      break;
    default:
      (void)decode_error(body).text().size();
  }
  return 0;
}
