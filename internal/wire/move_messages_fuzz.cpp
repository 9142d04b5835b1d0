// Any bytes as any message of moves, or as a marker file: read or refused, and what was understood
// is written so that it reads the same again.
#include "internal/wire/move_messages.h"
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

void check_marker(std::string_view file) {
  const auto read = narad::wire::decode_marker_file(file);
  if (!read) return;
  NARAD_ASSERT(narad::wire::decode_marker_file(narad::wire::encode_marker_file(*read)) == read);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad::wire;
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0:
      check(decode_listing(body), &decode_listing);
      break;
    case 1:
      check(decode_freeze_request(body), &decode_freeze_request);
      break;
    case 2:
      check(decode_freeze_answer(body), &decode_freeze_answer);
      break;
    case 3:
      check(decode_segment_digests(body), &decode_segment_digests);
      break;
    case 4:
      check(decode_move_reports(body), &decode_move_reports);
      break;
    case 5:
      check(decode_silence_answer(body), &decode_silence_answer);
      break;
    default:
      check_marker(body);
  }
  return 0;
}
