// A receipt handle of any bytes: never a crash, and what parses is what the contract calls a handle
// (http-api 2.5) and comes back from its own text.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "internal/model/receipt.h"

using namespace narad;

namespace {

// The contract, spelt out on its own: three fields of digits between two colons, each within 63
// bits, the last not zero.
bool is_handle(std::string_view text) {
  int colons = 0;
  std::size_t digits = 0;
  unsigned __int128 value = 0;
  for (char c : text) {
    if (c == ':') {
      if (digits == 0 || ++colons > 2) return false;
      digits = 0;
      value = 0;
      continue;
    }
    if (c < '0' || c > '9') return false;
    ++digits;
    value = value * 10 + static_cast<unsigned>(c - '0');
    if (value > 0x7fff'ffff'ffff'ffff) return false;
  }
  return colons == 2 && digits > 0 && value > 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto handle = parse_receipt_handle(text);
  if (handle.has_value() != is_handle(text)) std::abort();
  if (!handle) {
    if (handle.error().code() != Errc::invalid_argument) std::abort();
    return 0;
  }
  const auto again = parse_receipt_handle(to_string(handle.value()));
  if (!again || again.value() != handle.value()) std::abort();
  return 0;
}
