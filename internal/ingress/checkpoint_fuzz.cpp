// A checkpoint file of any bytes: never a crash, and what is accepted survives being stored again.
#include <cstdlib>

#include "internal/ingress/wal_format.h"
#include "pkg/base/two_slot.h"

using namespace narad;
using namespace narad::ingress;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteView file{reinterpret_cast<const std::byte*>(data), size};
  (void)two_slot::unknown_version(file, kCheckpointMagic);
  auto slot = two_slot::decode(file, kCheckpointMagic, kCheckpointSeed);
  // Checksums keep most inputs out of the value's parser, so it also gets the bytes as they are.
  for (ByteView value : {slot ? ByteView(slot->value) : ByteView(), file}) {
    auto checkpoint = decode_checkpoint(value);
    if (!checkpoint) continue;
    const Bytes again = encode_checkpoint(*checkpoint);
    if (!std::equal(again.begin(), again.end(), value.begin(), value.end())) std::abort();
  }
  return 0;
}
