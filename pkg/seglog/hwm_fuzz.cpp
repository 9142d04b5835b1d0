// Arbitrary bytes as the small files of a log: `hwm` and `.sum`.
#include <cstddef>
#include <cstdint>

#include "pkg/base/assert.h"
#include "pkg/seglog/digest.h"
#include "pkg/seglog/hwm.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace narad;
  using namespace narad::seglog;
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  const HwmState state = decode_hwm_file(bytes);
  if (state.value) {
    const Bytes again = encode_hwm_file(state.sequence, *state.value);
    NARAD_ASSERT(decode_hwm_file(again).value == state.value);
  }
  const LogId seed{7};
  if (const auto sum = decode_sum(bytes, seed)) {
    NARAD_ASSERT(to_text(encode_sum(*sum, seed)) == to_text(bytes));
  }
  // A .sum made of the bytes as digests is read back.
  Sum made;
  made.segment_bytes = size / 8 * kBlockBytes;
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    made.digests.push_back(load_le<std::uint64_t>(bytes.data() + i));
  }
  NARAD_ASSERT(decode_sum(encode_sum(made, seed), seed) == made);
  return 0;
}
